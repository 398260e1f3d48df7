/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/delay.c - see libclient/delay.h. */
#include "libclient/copy.h"
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* What finds no room is tried again after 1 ms at first, 64 ms at last. */
#define TRIES_SHIFT     4U
#define RETRY_SHIFT_MAX 6U
/* Longest max_wait: a request behind what waits has its own deadline. */
#define BEHIND_NS (60000 * RBI_NS_PER_MS)

void rbi_delay_init(struct rbi_delays *delays)
{
    *delays = (struct rbi_delays){.due_ns = RBI_NEVER};
}

/* ---- keeping -------------------------------------------------------------------------------- */

int rbi_delay_refuse(struct ringbus *bus, const struct rbi_end *end)
{
    const uint64_t now_ns = rbi_now_ns();
    const uint64_t last_ns = end->delayed.last != NULL ? end->delayed.last->due_ns : now_ns;
    rbi_count(bus, RBI_COUNTER_limited, 1);
    bus->refusal.retry_us = (rbi_max_u64(last_ns, now_ns) - now_ns) / 1000 + 1000;
    bus->refusal.wait_ns = BEHIND_NS;
    bus->refusal.inflight = 0;
    (void)snprintf(bus->refusal.id, sizeof bus->refusal.id, "max_wait");
    return rbi_fail_fast(bus, RINGBUS_E_LIMITED, &end->peer, bus->refusal.retry_us);
}

static void set_due(struct ringbus *bus, uint64_t due_ns)
{
    bus->delays.due_ns = rbi_min_u64(bus->delays.due_ns, due_ns);
    rbi_deadline_at_most(bus, due_ns);
}

static struct ringbus_addr asked_for(const struct rbi_end *end, const struct rbi_outgoing *out)
{
    return (struct ringbus_addr){
        .cluster = end->peer.cluster,
        .instance = (out->record_flags & RBI_RECORD_BROADCAST) != 0 ? RINGBUS_ALL
                    : (out->record_flags & RBI_RECORD_ANY) != 0     ? RINGBUS_ANY
                                                                    : end->peer.instance};
}

/* @return RBI_SEND_KEPT; RINGBUS_E_NO_MEMORY (noted) */
static int
keep(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out, uint64_t due_ns)
{
    struct rbi_delay_queue *queue = &end->delayed;
    const struct ringbus_addr to = asked_for(end, out);
    struct rbi_copy *copy = rbi_copy_new(&to, out);
    if (copy == NULL) {
        return rbi_fail(bus, RINGBUS_E_NO_MEMORY, "no memory to keep a message to %s", end->path);
    }
    copy->due_ns = queue->last != NULL ? rbi_max_u64(due_ns, queue->last->due_ns) : due_ns;
    if (queue->last != NULL) {
        queue->last->next = copy;
    } else {
        queue->first = copy;
        queue->tries = 0;
        set_due(bus, due_ns);
    }
    queue->last = copy;
    bus->delays.count++;
    bus->delays.bytes += copy->size;
    end->hindered |= RBI_HINDERED_DELAYED;
    rbi_count(bus, RBI_COUNTER_delayed, 1);
    return RBI_SEND_KEPT;
}

static bool is_full(const struct ringbus *bus, uint64_t size)
{
    return bus->delays.count >= RBI_DELAYED_MAX ||
           (bus->delays.count > 0 && bus->delays.bytes + size > RBI_DELAYED_BYTES_MAX);
}

int rbi_delay_send(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out)
{
    const uint32_t method = out->attributes != NULL ? out->attributes->method : 0;
    const bool behind = end->delayed.first != NULL;
    const bool limited = end->limiter != NULL;
    int r = limited ? rbi_limit_ask(bus, end, method, out->size) : 0;
    if (r == 0 && !behind) {
        r = rbi_send_one(bus, end, out);
    } else if (r != 0 && (r != RINGBUS_E_LIMITED || bus->refusal.wait_ns == 0)) {
        return r;
    } else if (out->kind != RBI_RECORD_ONEWAY || is_full(bus, out->size)) {
        return r != 0 ? r : rbi_delay_refuse(bus, end);
    } else {
        const uint64_t wait_ns = r != 0 ? bus->refusal.retry_us * 1000 : 0;
        bus->counters[RBI_COUNTER_limited] -= r != 0 ? 1 : 0;
        r = keep(bus, end, out, rbi_now_ns() + wait_ns);
    }
    if (r >= 0 && limited) {
        rbi_limit_taken(bus, end, method, out->size); /* also of what is due later */
    }
    return r;
}

/* ---- sending -------------------------------------------------------------------------------- */

static struct rbi_copy *take_first(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_delay_queue *queue = &end->delayed;
    struct rbi_copy *copy = queue->first;
    queue->first = copy->next;
    queue->tries = 0;
    if (queue->first == NULL) {
        queue->last = NULL;
        end->hindered &= (uint8_t)~RBI_HINDERED_DELAYED;
    }
    bus->delays.count--;
    bus->delays.bytes -= copy->size;
    return copy;
}

static void give_back_first(struct ringbus *bus, struct rbi_end *end, int error)
{
    const struct ringbus_addr addr = rbi_addr(&end->peer);
    struct rbi_copy *copy = take_first(bus, end);
    rbi_copy_give_back(bus, copy, &addr, end->path, error);
    free(copy);
}

/* 0; a public error (noted) */
static int send_first(struct ringbus *bus, struct rbi_end *end)
{
    struct ringbus_part parts[RINGBUS_PARTS_MAX];
    struct rbi_outgoing out;
    rbi_copy_outgoing(end->delayed.first, parts, &out);
    /* Nothing that the application offers now is refused here. */
    const uint64_t full = bus->counters[RBI_COUNTER_full];
    const uint64_t no_chunk = bus->counters[RBI_COUNTER_no_chunk];
    const int r = rbi_send_one(bus, end, &out);
    bus->counters[RBI_COUNTER_full] = full;
    bus->counters[RBI_COUNTER_no_chunk] = no_chunk;
    return r;
}

static void send_due(struct ringbus *bus, struct rbi_end *end, uint64_t now_ns)
{
    while (end->delayed.first != NULL) {
        if (rbi_copy_expired(end->delayed.first, now_ns)) {
            give_back_first(bus, end, RINGBUS_E_TIMEOUT);
            continue;
        }
        if (end->delayed.first->due_ns > now_ns || !end->usable) {
            return;
        }
        const int r = send_first(bus, end);
        if (r == 0) {
            free(take_first(bus, end));
        } else if (r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK || r == RINGBUS_E_BUSY ||
                   r == RINGBUS_E_NO_MEMORY) {
            end->delayed.tries++;
            return;
        } else {
            give_back_first(bus, end, r);
        }
    }
}

static uint64_t next_look_ns(const struct rbi_delay_queue *queue, uint64_t now_ns)
{
    const struct rbi_copy *first = queue->first;
    const bool timed =
        first->attributed && (first->attributes.present & RBI_ATTRIBUTE_DEADLINE) != 0;
    const uint64_t retry_ns = RBI_NS_PER_MS
                              << rbi_min_u64(queue->tries >> TRIES_SHIFT, RETRY_SHIFT_MAX);
    const uint64_t next_ns = rbi_max_u64(first->due_ns, now_ns + retry_ns);
    return timed ? rbi_min_u64(next_ns, first->attributes.deadline_ns) : next_ns;
}

uint64_t rbi_delay_tick(struct ringbus *bus, uint64_t now_ns)
{
    if (bus->delays.due_ns > now_ns) {
        return bus->delays.due_ns;
    }
    /* A callback may keep others, and change the places of ends. */
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (bus->ends[i]->delayed.first != NULL) {
            send_due(bus, bus->ends[i], now_ns);
        }
    }
    bus->delays.due_ns = RBI_NEVER;
    for (unsigned i = 0; bus->delays.count > 0 && i < bus->end_count; i++) {
        const struct rbi_delay_queue *queue = &bus->ends[i]->delayed;
        if (queue->first != NULL) {
            bus->delays.due_ns = rbi_min_u64(bus->delays.due_ns, next_look_ns(queue, now_ns));
        }
    }
    return bus->delays.due_ns;
}

/* ---- the end -------------------------------------------------------------------------------- */

void rbi_delay_give_back(struct ringbus *bus, struct rbi_end *end, int error)
{
    while (end->delayed.first != NULL) {
        give_back_first(bus, end, error);
    }
}

void rbi_delay_end_all(struct ringbus *bus, int error)
{
    for (unsigned i = 0; bus->delays.count > 0 && i < bus->end_count; i++) {
        rbi_delay_give_back(bus, bus->ends[i], error);
    }
}

void rbi_delay_free(struct rbi_delay_queue *queue)
{
    while (queue->first != NULL) {
        struct rbi_copy *copy = queue->first;
        queue->first = copy->next;
        free(copy);
    }
    queue->last = NULL;
}
