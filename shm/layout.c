/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/layout.h"

#include <xxhash.h>

uint64_t rbi_layout_fingerprint(void)
{
    static const uint64_t facts[] = {
        RBI_LAYOUT_VERSION,
        RBI_LINE,
        RBI_PAGE,
        sizeof(struct rbi_segment_header),
        sizeof(struct rbi_side),
        offsetof(struct rbi_side, lane_offset),
        offsetof(struct rbi_side, read_pos),
        offsetof(struct rbi_side, returns_pos),
        offsetof(struct rbi_side, want_pos),
        offsetof(struct rbi_side, begun_pos),
        sizeof(struct rbi_page),
        offsetof(struct rbi_page, flags),
        offsetof(struct rbi_page, sleep_epoch),
        offsetof(struct rbi_page, cluster),
        offsetof(struct rbi_page, state),
        offsetof(struct rbi_page, counters),
        sizeof(struct rbi_pool_head),
        sizeof(struct rbi_pool_class),
        offsetof(struct rbi_pool_head, classes),
    };
    return XXH3_64bits(facts, sizeof facts);
}
