/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/residue.c - what a link leaves behind when it ends between two living processes.
 *
 * The peer may be in the middle of a payload of ours that went by reference: it was stopped
 * and given up, it keeps the message, or it reads on what came before our DISCONNECT. Its
 * chunk must not go out again before the peer is done; and as long as we keep one of the
 * peer's, it must not send that chunk again either. The bell says so: each end hangs up its
 * side (or dies, which is the same) when it reads nothing more of the other's memory. What
 * remains of an ended link until then is its bell, the chunks that are out, and a count of what
 * we keep.
 *
 * A peer that never hangs up holds at most what a living link may hold, times
 * RBI_RESIDUES_MAX: then it gets no further link.
 */
#include "libclient/internal.h"

#include <stdlib.h>

static bool owes(const struct rbi_end *end)
{
    return end->refs.chunk_of != NULL && rbi_refs_used(&end->refs) > 0 && !end->hung_up;
}

static void drop_refs(struct ringbus *bus, struct rbi_end *end)
{
    if (end->refs.chunk_of != NULL) {
        bus->returned += rbi_refs_used(&end->refs);
        rbi_refs_drop_all(&end->refs, &bus->pool);
    }
    rbi_refs_deinit(&end->refs);
}

static void free_residue(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_end **at = &bus->residues;
    while (*at != end) {
        at = &(*at)->next_residue;
    }
    *at = end->next_residue;
    drop_refs(bus, end);
    rbi_epoll_remove(bus, end->bell);
    rbi_bell_close(end->bell);
    free(end->tx.inside);
    free(end->may_send);
    free(end->may_get);
    free(end->gate_limits);
    free(end);
}

bool rbi_residue_keep(struct ringbus *bus, struct rbi_end *end)
{
    if (end->bell < 0 || bus->closing || (end->kept == 0 && !owes(end))) {
        return false;
    }
    /* Whatever the daemon says of its death: the kernel's word, perhaps not reported yet. */
    end->hung_up |= rbi_bell_is_hung_up(end->bell);
    if (end->kept == 0 && !owes(end)) {
        return false;
    }
    if (end->kept == 0) {
        rbi_bell_hang_up(end->bell);
    }
    if (!owes(end)) {
        drop_refs(bus, end);
    }
    rbi_segment_deinit(&end->own_side);
    rbi_segment_deinit(&end->peer_side);
    rbi_segment_deinit(&end->peer_page);
    rbi_peer_pool_unref(end->peer_pool); /* what is kept holds it by itself */
    end->peer_pool = NULL;
    end->phase = RBI_END_CLOSED;
    end->residue = true;
    end->next_residue = bus->residues;
    bus->residues = end;
    return true;
}

void rbi_residue_hung_up(struct ringbus *bus, struct rbi_end *end)
{
    if (!end->hung_up) {
        return; /* it rings, for nothing */
    }
    drop_refs(bus, end);
    if (end->kept == 0) {
        free_residue(bus, end);
    } else {
        rbi_epoll_remove(bus, end->bell);
    }
}

/* One that was taken out of the look-up, because the peer has another link by now. */
static struct rbi_end *find_leaving(const struct ringbus *bus, uint64_t link_life)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (bus->ends[i]->link_life == link_life) {
            return bus->ends[i];
        }
    }
    return NULL;
}

void rbi_residue_released(struct ringbus *bus, uint64_t link_life)
{
    struct rbi_end *leaving = find_leaving(bus, link_life);
    if (leaving != NULL) {
        leaving->kept--;
        return;
    }
    for (struct rbi_end *end = bus->residues; end != NULL; end = end->next_residue) {
        if (end->link_life != link_life) {
            continue;
        }
        if (--end->kept == 0 && owes(end)) {
            rbi_bell_hang_up(end->bell);
        } else if (end->kept == 0) {
            free_residue(bus, end);
        }
        return;
    }
}

bool rbi_residue_limit(const struct ringbus *bus, const struct rbi_pidf *peer)
{
    unsigned count = 0;
    for (const struct rbi_end *end = bus->residues; end != NULL; end = end->next_residue) {
        count +=
            end->peer.cluster == peer->cluster && end->peer.instance == peer->instance && owes(end);
    }
    return count >= RBI_RESIDUES_MAX;
}

void rbi_residue_free_all(struct ringbus *bus)
{
    while (bus->residues != NULL) {
        free_residue(bus, bus->residues);
    }
}
