/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/close.c - the end of a handle: draining, goodbye, giving everything back. */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DRAIN_BATCH 1024

static void free_ends(struct ringbus *bus)
{
    while (bus->end_count > 0) {
        rbi_end_free(bus, bus->ends[bus->end_count - 1]);
    }
    /* Those whose introduction is under way are in the look-up only. */
    ck_hs_iterator_t iterator = CK_HS_ITERATOR_INITIALIZER;
    void *entry = NULL;
    while (bus->peers.map != NULL && ck_hs_next(&bus->peers, &iterator, &entry)) {
        rbi_end_free(bus, RBI_CONTAINER_OF(entry, struct rbi_end, peer));
        ck_hs_iterator_init(&iterator); /* the table has changed */
    }
    rbi_residue_free_all(bus);
}

void rbi_handle_free(struct ringbus *bus)
{
    rbi_hooks_free(bus); /* calls back: while all that a call may look at is there */
    /* Also of an open that failed: who targets us may have been introduced by then. */
    free_ends(bus);
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        rbi_cluster_free(bus->clusters[c]);
    }
    free(bus->clusters);
    rbi_watched_deinit(&bus->watches);
    rbi_alarm_sights_deinit(&bus->alarms);
    rbi_dry_deinit(&bus->dry);
    rbi_nodes_close(bus);
    rbi_events_deinit(&bus->events);
    rbi_owned_free(bus);
    rbi_gate_deinit(&bus->gate);
    rbi_gaps_deinit(&bus->gaps);
    rbi_seen_deinit(&bus->seen);
    rbi_calls_deinit(&bus->calls);
    rbi_asks_deinit(bus);
    rbi_outcomes_deinit(&bus->outcomes);
    rbi_failback_deinit(bus);
    rbi_control_close(bus);
    rbi_pool_deinit(&bus->pool);
    rbi_segment_deinit(&bus->page_segment);
    rbi_segment_deinit(&bus->directory_segment);
    rbi_directory_release_held(bus);
    if (bus->peers.map != NULL) {
        ck_hs_destroy(&bus->peers);
    }
    free(bus->ends);
    free(bus->due);
    rbi_epoll_deinit(bus);
    if (bus->guard_page != NULL) {
        (void)munmap(bus->guard_page, RBI_PAGE);
    }
    free(bus->set);
    free(bus->idc);
    free(bus->tags);
    if (bus->token != NULL) {
        explicit_bzero(bus->token, strlen(bus->token));
        free(bus->token);
    }
    free(bus);
}

/* Leaves discovery, goes on serving, waits until the peers have read everything. */
static int drain(struct ringbus *bus, uint32_t drain_ms)
{
    const uint64_t end_ns = rbi_now_ns() + drain_ms * RBI_NS_PER_MS;
    bus->now_ns = rbi_now_ns();
    rbi_drain_close(bus);
    for (;;) {
        (void)ringbus_poll(bus, DRAIN_BATCH);
        if (ringbus_drained(bus)) {
            return 0;
        }
        const uint64_t now_ns = rbi_now_ns();
        if (now_ns >= end_ns) {
            return RINGBUS_E_TIMEOUT;
        }
        /* Its own looks are deadlines, which end the wait. */
        (void)ringbus_wait(bus, (int)rbi_min_u64((end_ns - now_ns) / RBI_NS_PER_MS + 1, INT32_MAX));
    }
}

static void say_goodbye(struct ringbus *bus)
{
    bus->closing = true;
    rbi_send_flush(bus);
    bus->now_ns = rbi_now_ns();
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        if (end->phase == RBI_END_LINKED && !end->loop) {
            const struct rbi_link_input input = {.type = RBI_LINK_CLOSE, .reason = RBI_REASON_LEFT};
            end->hindered = 0;
            rbi_end_step(bus, end, &input);
        }
    }
    rbi_control_state(bus, RBI_ENDPOINT_CLOSED);
}

int ringbus_close(struct ringbus *bus, uint32_t drain_ms)
{
    if (bus == NULL) {
        return 0;
    }
    if (rbi_load_rlx(bus->guard) != RBI_GUARD_ALIVE) {
        /*
         * The child of a fork: shared mappings are not there (MADV_DONTFORK), descriptors
         * are the parent's too. Closing our copies is all that may be done.
         */
        rbi_close_in_child(bus);
        return RINGBUS_E_WRONG_PROCESS;
    }
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    r = rbi_hooks_idle(bus, "ringbus_close()");
    if (r == 0 && bus->in_callback) {
        r = rbi_fail(bus, RINGBUS_E_BUSY, "ringbus_close() inside a callback");
    }
    if (r != 0) {
        rbi_leave(bus);
        return r;
    }
    if (drain_ms > 0) {
        r = drain(bus, drain_ms);
    }
    rbi_dry_flush(bus);
    say_goodbye(bus);
    rbi_calls_end_all(bus, RINGBUS_E_CLOSED);
    rbi_asks_end_all(bus, RINGBUS_E_CLOSED);
    rbi_nodes_end_all(bus, RINGBUS_E_CLOSED);
    rbi_failback_end_all(bus, RINGBUS_E_CLOSED);
    rbi_delay_end_all(bus, RINGBUS_E_CLOSED);
    rbi_leave(bus);
    rbi_handle_free(bus);
    return r;
}
