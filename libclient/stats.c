/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/stats.c - counters: private while counting, copied into the endpoint page for tools. */
#include "libclient/internal.h"

/* The public list and the page's list are the same, in the same order. */
enum {
#define RBI_STATS_ENUM(name, text) RBI_STATS_##name,
    RINGBUS_STATS(RBI_STATS_ENUM)
#undef RBI_STATS_ENUM
        RBI_STATS_COUNT
};
#define RBI_STATS_SAME(name, text)                                                                 \
    _Static_assert((int)RBI_STATS_##name == (int)RBI_COUNTER_##name, #name " is out of place");
RINGBUS_STATS(RBI_STATS_SAME)
#undef RBI_STATS_SAME
_Static_assert((int)RBI_STATS_COUNT == (int)RBI_COUNTER_COUNT, "counter lists differ");

void rbi_counters_publish(struct ringbus *bus)
{
    for (unsigned i = 0; i < RBI_COUNTER_COUNT; i++) {
        /* Each word stands alone: a reader needs no order between them. */
        rbi_store_rlx(&bus->page->counters[i], bus->counters[i]);
    }
    rbi_store_rlx(&bus->page->poll_tick_ms, bus->now_ns / RBI_NS_PER_MS);
}

static unsigned usable_links(const struct ringbus *bus)
{
    unsigned n = 0;
    for (unsigned i = 0; i < bus->end_count; i++) {
        n += bus->ends[i]->usable && !bus->ends[i]->loop ? 1U : 0U;
    }
    return n;
}

int ringbus_stats(const struct ringbus *bus, struct ringbus_stats *out)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (out == NULL || out->struct_size < offsetof(struct ringbus_stats, sent)) {
        rbi_leave(bus);
        return RINGBUS_E_ARGUMENT;
    }
    /* What the receivers have given back is not out any more, whether a send noticed or not. */
    rbi_send_collect(rbi_mutable(bus));
    struct ringbus_stats all = {.links = usable_links(bus), .pool_used = rbi_pool_used(&bus->pool)};
#define RBI_STATS_COPY(name, text) all.name = bus->counters[RBI_COUNTER_##name];
    RINGBUS_STATS(RBI_STATS_COPY)
#undef RBI_STATS_COPY
    /* A caller built against another version knows fewer or more of them. */
    const size_t size = out->struct_size < sizeof all ? out->struct_size : sizeof all;
    memset(out, 0, out->struct_size);
    all.struct_size = size;
    memcpy(out, &all, size);
    rbi_leave(bus);
    return 0;
}
