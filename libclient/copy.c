/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/copy.c - see libclient/copy.h. */
#include "libclient/copy.h"

#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

struct rbi_copy *rbi_copy_new(const struct ringbus_addr *to, const struct rbi_outgoing *out)
{
    const struct rbi_attributes *said = out->attributes;
    const bool origin = said != NULL && (said->present & RBI_ATTRIBUTE_ORIGIN) != 0;
    const size_t size = rbi_align_up(out->size, sizeof(uint64_t));
    const size_t origin_size = origin ? said->origin_words * sizeof(uint64_t) : 0;
    struct rbi_copy *copy = malloc(sizeof *copy + size + origin_size);
    if (copy == NULL) {
        return NULL;
    }
    copy->next = NULL;
    copy->due_ns = 0;
    copy->to = *to;
    copy->key = out->key;
    copy->flags = out->flags & ~RINGBUS_MORE;
    copy->record_flags = out->record_flags;
    copy->attributed = said != NULL;
    if (copy->attributed) {
        copy->attributes = *said;
    }
    if (origin) {
        memcpy(copy->payload + size, said->origin, origin_size);
        copy->attributes.origin = copy->payload + size;
    }
    copy->part_count = out->part_count;
    copy->size = out->size;
    for (unsigned i = 0; i < out->part_count; i++) {
        copy->part_sizes[i] = out->parts[i].size;
    }
    rbi_write_parts(copy->payload, out);
    return copy;
}

static void fill_parts(const struct rbi_copy *copy, struct ringbus_part *parts)
{
    const unsigned char *at = copy->payload;
    for (unsigned i = 0; i < copy->part_count; i++) {
        parts[i] = (struct ringbus_part){.data = at, .size = copy->part_sizes[i]};
        at += copy->part_sizes[i];
    }
}

void rbi_copy_outgoing(const struct rbi_copy *copy,
                       struct ringbus_part *parts,
                       struct rbi_outgoing *out)
{
    fill_parts(copy, parts);
    *out = (struct rbi_outgoing){.kind = RBI_RECORD_ONEWAY,
                                 .flags = copy->flags,
                                 .key = copy->key,
                                 .parts = parts,
                                 .part_count = copy->part_count,
                                 .size = copy->size,
                                 .chunk = RBI_CHUNK_NONE,
                                 .record_flags = copy->record_flags,
                                 .attributes = copy->attributed ? &copy->attributes : NULL};
}

bool rbi_copy_expired(const struct rbi_copy *copy, uint64_t now_ns)
{
    return copy->attributed && (copy->attributes.present & RBI_ATTRIBUTE_DEADLINE) != 0 &&
           copy->attributes.deadline_ns <= now_ns;
}

void rbi_copy_give_back(struct ringbus *bus,
                        const struct rbi_copy *copy,
                        const struct ringbus_addr *addr,
                        const char *path,
                        int error)
{
    struct rbi_view view = {.own = true};
    const bool keyed = (copy->flags & RINGBUS_KEY) != 0;
    fill_parts(copy, view.parts);
    view.message = (struct ringbus_message){.from = rbi_addr(&bus->self),
                                            .from_path = bus->self_path,
                                            .kind = RINGBUS_KIND_ONEWAY,
                                            .flags = keyed ? RINGBUS_MESSAGE_KEY : 0U,
                                            .key = copy->key,
                                            .data = copy->payload,
                                            .size = copy->size,
                                            .part_count = copy->part_count,
                                            .parts = view.parts};
    if (copy->attributed) {
        view.attributes = copy->attributes;
        rbi_attributes_show(&view.attributes, &view.shown);
        view.message.attributes = &view.shown;
    }
    const struct ringbus_event event = {.type = RINGBUS_EVENT_UNDELIVERED,
                                        .error = error,
                                        .addr = *addr,
                                        .path = path,
                                        .message = &view.message,
                                        .to = copy->to};
    struct rbi_view *outer = bus->view;
    rbi_count(bus, RBI_COUNTER_undelivered, 1);
    bus->view = &view; /* so that it can be kept */
    rbi_emit(bus, &event);
    bus->view = outer;
}
