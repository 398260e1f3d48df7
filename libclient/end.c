/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/end.c - the memory of a link: our side, what we map of the peer's, and
 * the two tables in which an end is found.
 *
 * Everything in a peer's segments is untrusted. Geometry is copied once, checked, and
 * only the copies are used.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a peer's memory that is mapped page by page at once: what it offers costs us no more. */
#define PREFAULT_MAX (UINT64_C(4) << 20)

/* ---- lookup ---------------------------------------------------------------------------- */

unsigned long rbi_end_hash(uint64_t cluster, int32_t instance)
{
    uint64_t x = cluster ^ ((uint64_t)(uint32_t)instance * UINT64_C(0x9e3779b97f4a7c15));
    return (unsigned long)(x ^ (x >> 29));
}

/* The loop has no peer but ourselves; every end, loop included, is unique by address. */
struct rbi_end *rbi_end_find(struct ringbus *bus, uint64_t cluster, int32_t instance)
{
    const struct rbi_pidf key = {.cluster = cluster, .instance = instance};
    struct rbi_pidf *found = ck_hs_get(&bus->peers, rbi_end_hash(cluster, instance), &key);
    return found != NULL ? RBI_CONTAINER_OF(found, struct rbi_end, peer) : NULL;
}

int rbi_end_index(struct ringbus *bus, struct rbi_end *end)
{
    const unsigned long hash = rbi_end_hash(end->peer.cluster, end->peer.instance);
    return ck_hs_put(&bus->peers, hash, &end->peer) ? 0 : -ENOMEM;
}

void rbi_end_unindex(struct ringbus *bus, struct rbi_end *end)
{
    /* A newer end may have taken the address meanwhile: remove only this one. */
    if (rbi_end_find(bus, end->peer.cluster, end->peer.instance) == end) {
        (void)ck_hs_remove(&bus->peers, rbi_end_hash(end->peer.cluster, end->peer.instance),
                           &end->peer);
    }
    struct rbi_end **recent = &bus->recent[rbi_recent_at(end->peer.cluster, end->peer.instance)];
    if (*recent == end) {
        *recent = NULL;
    }
}

struct rbi_end *rbi_end_find_link(struct ringbus *bus, uint64_t link_id)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (bus->ends[i]->link_id == link_id && !bus->ends[i]->loop) {
            return bus->ends[i];
        }
    }
    return NULL;
}

struct rbi_end *rbi_end_find_serial(struct ringbus *bus, uint32_t serial)
{
    ck_hs_iterator_t iterator = CK_HS_ITERATOR_INITIALIZER;
    void *entry = NULL;
    while (ck_hs_next(&bus->peers, &iterator, &entry)) {
        struct rbi_end *end = RBI_CONTAINER_OF(entry, struct rbi_end, peer);
        if (end->phase == RBI_END_INTRODUCING && end->serial == serial) {
            return end;
        }
    }
    return NULL;
}

/* ---- own side -------------------------------------------------------------------------- */

static int create_side(struct ringbus *bus, struct rbi_end *end)
{
    const uint32_t lane_bytes = end->relayed ? bus->far_lane_bytes : bus->lane_bytes;
    const int r = rbi_side_create(&end->own_side, lane_bytes, bus->refs_per_link);
    if (r < 0) {
        return rbi_fail_errno(bus, r, "memory of a link");
    }
    struct rbi_side *side = end->own_side.base;
    end->own_want_pos = &side->want_pos;
    end->own_begun_pos = &side->begun_pos;
    return 0;
}

static struct rbi_end *alloc_end(const struct rbi_pidf *peer, const char *path)
{
    /* The hot lines of an end must not be shared with anything else. */
    struct rbi_end *end = NULL;
    if (posix_memalign((void **)&end, RBI_LINE, rbi_align_up(sizeof *end, RBI_LINE)) != 0) {
        return NULL;
    }
    memset(end, 0, sizeof *end);
    end->own_side.fd = end->peer_side.fd = end->peer_page.fd = -1;
    end->bell = -1;
    end->slow_ns = RBI_NEVER;
    end->peer = *peer;
    end->phase = RBI_END_INTRODUCING;
    (void)snprintf(end->path, sizeof end->path, "%s", path);
    return end;
}

struct rbi_end *
rbi_end_new(struct ringbus *bus, const struct rbi_pidf *peer, const char *path, bool relayed)
{
    struct rbi_end *end = alloc_end(peer, path);
    if (end == NULL) {
        (void)rbi_fail_errno(bus, -ENOMEM, "memory of a link");
        return NULL;
    }
    end->link_life = ++bus->link_lives;
    end->relayed = relayed;
    if (create_side(bus, end) != 0) {
        rbi_end_free(bus, end);
        return NULL;
    }
    return end;
}

/* ---- the peer's part -------------------------------------------------------------------- */

int rbi_end_open_pool(struct rbi_end *end)
{
    return rbi_peer_pool_open(end->peer_pool);
}

static int adopt_all(struct rbi_end *end,
                     int side_fd,
                     uint64_t side_bytes,
                     int *pool_fd,
                     uint64_t pool_bytes,
                     int page_fd,
                     struct rbi_side_geometry *geometry)
{
    int r = rbi_side_adopt(&end->peer_side, side_fd, side_bytes, geometry);
    if (r < 0) {
        return r;
    }
    /* Checked now, mapped when the first payload comes by reference. */
    r = rbi_peer_pool_new(&end->peer_pool, pool_fd, pool_bytes, end->relayed);
    if (r < 0) {
        return r;
    }
    return rbi_segment_adopt(&end->peer_page, page_fd, RBI_SEGMENT_PAGE, RBI_PAGE, RBI_PAGE);
}

/* Connects lanes and rings of the two sides, whoever owns them. */
static int
wire_up(struct rbi_end *end, const struct rbi_side *peer, const struct rbi_side_geometry *theirs)
{
    struct rbi_side *own = end->own_side.base;
    const struct rbi_side_wiring wiring = {
        .tx = &end->tx, .rx = &end->rx, .returns = &end->returns, .refs = &end->refs};
    end->peer_want_pos = &peer->want_pos;
    end->own_written_hint = &own->written_hint;
    end->peer_written_hint = &peer->written_hint;
    end->peer_begun_pos = &peer->begun_pos;
    return rbi_side_wire(&end->own_side, peer, theirs, &wiring);
}

int rbi_end_attach(struct ringbus *bus,
                   struct rbi_end *end,
                   int side_fd,
                   uint64_t side_bytes,
                   int *pool_fd,
                   uint64_t pool_bytes,
                   int page_fd)
{
    struct rbi_side_geometry theirs;
    int r = adopt_all(end, side_fd, side_bytes, pool_fd, pool_bytes, page_fd, &theirs);
    if (r == 0) {
        r = wire_up(end, end->peer_side.base, &theirs);
    }
    if (r < 0) {
        rbi_segment_deinit(&end->peer_side);
        rbi_segment_deinit(&end->peer_page);
        rbi_peer_pool_unref(end->peer_pool);
        end->peer_pool = NULL;
        rbi_refs_deinit(&end->refs);
        free(end->tx.inside);
        end->tx.inside = NULL;
        if (r == -EPROTO || r == -EBADF || r == -EFBIG) {
            rbi_count(bus, RBI_COUNTER_bad_peer, 1);
            return rbi_fail(bus, RINGBUS_E_BAD_PEER, "%s offered memory that cannot be trusted: %s",
                            end->path,
                            r == -EBADF   ? "not a sealed memfd"
                            : r == -EFBIG ? "another size than announced"
                                          : "another layout");
        }
        return rbi_fail_errno(bus, r, "mapping the memory of a peer");
    }
    const struct rbi_page *page = end->peer_page.base;
    /* Fixed for the life of the endpoint; a peer that lies here only delays itself. */
    const uint64_t flags_raw = ((const volatile struct rbi_page *)page)->flags;
    end->peer_sleeps = (flags_raw & RBI_PAGE_BUSY_POLL) == 0;
    end->peer_fenced = (flags_raw & RBI_PAGE_FENCED) != 0;
    end->peer_sleep_epoch = &page->sleep_epoch;
    /* Most links are idle: they take no more than READY and PING need, until a message goes. */
    rbi_lane_tx_shut(&end->tx);
    rbi_lane_rx_shut(&end->rx);
    rbi_segment_close_fd(&end->own_side);
    return 0;
}

/* ---- the first message -------------------------------------------------------------------- */

/* It pays for the whole first lap: the pages are mapped at once, on either side. */

int rbi_end_open_tx(struct ringbus *bus, struct rbi_end *end)
{
    if (!rbi_lane_tx_is_shut(&end->tx)) {
        return 0;
    }
    const int r = rbi_segment_mirror(&end->own_side);
    if (r < 0) {
        return rbi_fail_errno(bus, r, "mapping the lane of a link");
    }
    rbi_segment_prefault(&end->own_side, UINT64_MAX, true);
    rbi_lane_tx_open(&end->tx);
    return 0;
}

int rbi_end_open_rx(struct rbi_end *end)
{
    if (!rbi_lane_rx_is_shut(&end->rx)) {
        return 0;
    }
    const int r = rbi_segment_mirror(&end->peer_side);
    if (r < 0) {
        return r;
    }
    rbi_segment_prefault(&end->peer_side, PREFAULT_MAX, false);
    rbi_lane_rx_open(&end->rx);
    return 0;
}

struct rbi_end *rbi_end_new_loop(struct ringbus *bus)
{
    struct rbi_end *end = rbi_end_new(bus, &bus->self, bus->self_path, false);
    if (end == NULL) {
        return NULL;
    }
    const struct rbi_side_geometry same = rbi_side_own_geometry(&end->own_side);
    end->loop = true;
    int r = rbi_segment_mirror(&end->own_side);
    if (r == 0) {
        r = wire_up(end, end->own_side.base, &same);
    }
    if (r == 0) {
        rbi_segment_prefault(&end->own_side, UINT64_MAX, true);
        rbi_segment_close_fd(&end->own_side);
        r = rbi_end_index(bus, end);
    }
    if (r == 0) {
        r = rbi_end_activate(bus, end, -1);
    }
    if (r < 0) {
        (void)rbi_fail_errno(bus, r, "memory of the link to oneself");
        rbi_end_free(bus, end);
        return NULL;
    }
    /* Between two polls of an external loop we sleep: what we send ourselves then must wake us. */
    end->peer_sleeps = !bus->busy_mode;
    end->peer_sleep_epoch = &bus->page->sleep_epoch;
    end->drain.peer = rbi_draining(bus); /* we pick ourselves no more */
    end->usable = end->flowing = true;
    bus->loop_end = end;
    return end;
}

/* ---- the polled ones -------------------------------------------------------------------- */

/* One of ours that was under way: the next may begin. */
static void introduction_over(struct ringbus *bus, const struct rbi_end *end)
{
    if (end->phase == RBI_END_INTRODUCING && end->serial != 0) {
        RBI_ASSERT(bus->introducing > 0);
        bus->introducing--;
        rbi_target_at_most(bus, bus->now_ns);
    }
}

int rbi_end_activate(struct ringbus *bus, struct rbi_end *end, int bell)
{
    if (bus->end_count == bus->end_room) {
        const unsigned room = bus->end_room == 0 ? 16 : bus->end_room * 2;
        struct rbi_end **ends = realloc(bus->ends, room * sizeof *ends);
        if (ends == NULL) {
            return -ENOMEM;
        }
        bus->ends = ends;
        uint64_t *due = realloc(bus->due, room * sizeof *due);
        if (due == NULL) {
            return -ENOMEM;
        }
        bus->due = due;
        bus->end_room = room;
    }
    if (bell >= 0) {
        const int r = rbi_epoll_add_bell(bus, end, bell);
        if (r < 0) {
            return r;
        }
    }
    end->bell = bell;
    rbi_turn_add(bus, end);
    introduction_over(bus, end);
    end->phase = RBI_END_LINKED;
    rbi_link_init(&end->fsm, bus->now_ns);
    if (!end->loop) {
        rbi_tick_follow(bus, end);
    }
    return 0;
}

static void unlist(struct ringbus *bus, struct rbi_end *end)
{
    for (struct rbi_end **p = &bus->dirty; *p != NULL; p = &(*p)->next_dirty) {
        if (*p == end) {
            *p = end->next_dirty;
            break;
        }
    }
    for (struct rbi_end **p = &bus->blocked; *p != NULL; p = &(*p)->next_blocked) {
        if (*p == end) {
            *p = end->next_blocked;
            break;
        }
    }
}

void rbi_end_free(struct ringbus *bus, struct rbi_end *end)
{
    if (end == NULL) {
        return;
    }
    introduction_over(bus, end);
    rbi_redeliver_end(bus, end);
    unlist(bus, end);
    rbi_end_unindex(bus, end);
    rbi_turn_remove(bus, end);
    rbi_outcomes_detach(bus, end);
    rbi_limit_detach(end);
    if (rbi_residue_keep(bus, end)) {
        return;
    }
    if (end->refs.chunk_of != NULL) {
        bus->returned += rbi_refs_used(&end->refs);
        rbi_refs_drop_all(&end->refs, &bus->pool);
    }
    rbi_refs_deinit(&end->refs);
    free(end->tx.inside);
    free(end->may_send);
    free(end->may_get);
    free(end->gate_limits);
    rbi_delay_free(&end->delayed);
    if (end->bell >= 0) {
        rbi_epoll_remove(bus, end->bell);
        rbi_bell_close(end->bell);
    }
    rbi_segment_deinit(&end->own_side);
    rbi_segment_deinit(&end->peer_side);
    rbi_segment_deinit(&end->peer_page);
    rbi_peer_pool_unref(end->peer_pool);
    if (bus->loop_end == end) {
        bus->loop_end = NULL;
    }
    if (bus->divert.end == end) {
        bus->divert.end = NULL;
    }
    free(end);
}
