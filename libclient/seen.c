/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/seen.c - see libclient/seen.h. */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

#define SEEN_FIRST 8U

static struct rbi_seen *at(const struct rbi_seen_links *seen, unsigned i)
{
    return &seen->items[(seen->first + i) & (seen->room - 1)];
}

static struct rbi_seen *
find(const struct rbi_seen_links *seen, const struct rbi_pidf *peer, uint64_t link_life)
{
    for (unsigned i = seen->count; i-- > 0;) {
        struct rbi_seen *one = at(seen, i);
        if (one->link_life == link_life && one->peer.cluster == peer->cluster &&
            one->peer.instance == peer->instance && one->peer.incarnation == peer->incarnation) {
            return one;
        }
    }
    return NULL;
}

static bool grow(struct rbi_seen_links *seen)
{
    const unsigned room = seen->room == 0 ? SEEN_FIRST : seen->room * 2;
    struct rbi_seen *items = room <= RBI_SEEN_MAX ? malloc(room * sizeof *items) : NULL;
    if (items == NULL) {
        return false;
    }
    for (unsigned i = 0; i < seen->count; i++) {
        items[i] = *at(seen, i);
    }
    free(seen->items);
    seen->items = items;
    seen->first = 0;
    seen->room = room;
    return true;
}

void rbi_seen_note(struct ringbus *bus, const struct rbi_end *end)
{
    struct rbi_seen_links *seen = &bus->seen;
    if (!end->relayed || end->peer_life == 0 || rbi_relayed_over(end) || bus->closing) {
        return;
    }
    if (seen->count == seen->room && !grow(seen)) {
        if (seen->count == 0) {
            return; /* no memory: what is sent again is handled again */
        }
        seen->first++;
        seen->count--;
    }
    *at(seen, seen->count++) = (struct rbi_seen){
        .peer = end->peer, .link_life = end->peer_life, .read = rbi_relayed_read_pos(end)};
}

bool rbi_seen_before(struct ringbus *bus,
                     const struct rbi_end *end,
                     const struct rbi_attributes *attributes)
{
    struct rbi_seen *one =
        end->relayed ? find(&bus->seen, &end->peer, attributes->first_life) : NULL;
    if (one == NULL) {
        return false;
    }
    if (attributes->first_position < one->read) {
        return true;
    }
    one->read = attributes->first_position + 1; /* should it come once more */
    return false;
}

bool rbi_seen_gap(struct ringbus *bus, const struct rbi_end *end, struct rbi_gap_body *gap)
{
    struct rbi_seen *one = find(&bus->seen, &end->peer, gap->link_life);
    if (one == NULL) {
        return true;
    }
    if (gap->to <= one->gap_to || gap->to <= one->read) {
        return false;
    }
    one->gap_to = gap->to;
    if (gap->from >= one->read) {
        gap->maybe_seen = 0;
    }
    return true;
}

void rbi_seen_deinit(struct rbi_seen_links *seen)
{
    free(seen->items);
    memset(seen, 0, sizeof *seen);
}
