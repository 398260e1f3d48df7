/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/child.c - an inherited handle in the child of a fork. The shared mappings are
 * not there (MADV_DONTFORK), so their addresses may hold something else by now and must
 * not be unmapped; sockets and the epoll set are the parent's too and must not be changed,
 * only our copies of the descriptors closed.
 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void close_copy(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void forget_end(struct rbi_end *end)
{
    close_copy(end->bell);
    close_copy(end->own_side.fd);
    rbi_refs_deinit(&end->refs);
    free(end->tx.inside);
    rbi_delay_free(&end->delayed);
    if (end->peer_pool != NULL) {
        close_copy(end->peer_pool->segment.fd);
        end->peer_pool->segment.fd = -1;
        if (--end->peer_pool->refs == 0) {
            free(end->peer_pool);
        }
    }
    free(end);
}

void rbi_close_in_child(struct ringbus *bus)
{
    ck_hs_iterator_t iterator = CK_HS_ITERATOR_INITIALIZER;
    void *entry = NULL;
    while (ck_hs_next(&bus->peers, &iterator, &entry)) {
        forget_end(RBI_CONTAINER_OF(entry, struct rbi_end, peer));
    }
    ck_hs_destroy(&bus->peers);
    while (bus->residues != NULL) {
        struct rbi_end *end = bus->residues;
        bus->residues = end->next_residue;
        forget_end(end);
    }
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        rbi_cluster_free(bus->clusters[c]);
    }
    free(bus->clusters);
    free(bus->ends);
    free(bus->due);
    rbi_watched_deinit(&bus->watches);
    rbi_alarm_sights_deinit(&bus->alarms);
    rbi_dry_deinit(&bus->dry);
    free(bus->gone);
    rbi_events_deinit(&bus->events);
    rbi_owned_free(bus);
    free(bus->pool.next_free);
    free(bus->pool.ref_count);
    rbi_calls_deinit(&bus->calls);
    rbi_asks_deinit(bus);
    free(bus->outcomes.locals);
    rbi_failback_deinit(bus);
    close_copy(bus->control.sock);
    close_copy(bus->page_segment.fd);
    close_copy(bus->outcomes.segment.fd);
    close_copy(bus->pool.segment.fd);
    close_copy(bus->directory_segment.fd);
    close_copy(bus->held_segment.fd);
    close_copy(bus->epoll);
    close_copy(bus->wake);
    close_copy(bus->timer);
    (void)munmap(bus->guard_page, RBI_PAGE);
    free(bus->set);
    free(bus->idc);
    free(bus->tags);
    free(bus->token);
    free(bus);
}
