/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_SIDE_H
#define RINGBUS_SHM_SIDE_H
/*
 * shm/side.h - the two memories of a link, one for each end: makes ours, checks the peer's, and
 * connects the lanes and return rings that lie in them.
 *
 * Everything in the peer's is untrusted. Its geometry is copied once, checked, and only the copy
 * is used.
 *
 * Threads: none of its own. Cold: a few system calls each, but for rbi_side_wire().
 */
#include "shm/lane.h"
#include "shm/layout.h"
#include "shm/pool.h"
#include "shm/segment.h"

/** Where lane and return ring lie in a side: of our own, or checked. */
struct rbi_side_geometry {
    uint64_t lane_offset;
    uint64_t lane_capacity;
    uint64_t returns_offset;
    uint64_t returns_capacity;
};

/**
 * Makes a side; its lane can be mapped a second time by rbi_segment_mirror().
 *
 * @param lane_bytes  RBI_LANE_CAPACITY_MIN to _MAX, a power of two
 * @param returns     entries of the return ring, RBI_RETURNS_MIN to _MAX, a power of two
 * @retval            those of rbi_segment_create()
 */
RBI_MUST_CHECK int rbi_side_create(struct rbi_segment *out, uint64_t lane_bytes, uint64_t returns);

/** Geometry of a side that we have made ourselves. */
struct rbi_side_geometry rbi_side_own_geometry(const struct rbi_segment *own);

/**
 * Maps the peer's side read-only and checks its geometry, with room for the second copy of its
 * lane.
 *
 * @param out       on success the caller's; on failure, too, whatever is in it is to be given to
 *                  rbi_segment_deinit()
 * @param fd        borrowed
 * @param bytes     as announced
 * @param geometry  written on success only
 * @retval 0; those of rbi_segment_adopt(), -EPROTO also for a geometry that cannot be
 */
RBI_MUST_CHECK int
rbi_side_adopt(struct rbi_segment *out, int fd, uint64_t bytes, struct rbi_side_geometry *geometry);

/** What lies in two sides, as one end of the link uses it. All members are filled. */
struct rbi_side_wiring {
    struct rbi_lane_tx *tx;      /* our lane */
    struct rbi_lane_rx *rx;      /* the peer's */
    struct rbi_returns *returns; /* our return ring, for the peer's payloads */
    struct rbi_refs *refs;       /* our payloads, by the peer's return ring */
};

/**
 * Connects lanes and rings of the two sides, whoever owns them. Both lanes are open, positions
 * begin at 0.
 *
 * @param own     made here
 * @param peer    mapped; may be our own, as with a link to oneself
 * @param theirs  its geometry
 * @retval 0
 * @retval -ENOMEM  tx->inside and refs are for the caller to free all the same
 */
RBI_MUST_CHECK int rbi_side_wire(const struct rbi_segment *own,
                                 const struct rbi_side *peer,
                                 const struct rbi_side_geometry *theirs,
                                 const struct rbi_side_wiring *out);

#endif
