/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/layout.h"

#include <xxhash.h>

static uint64_t fingerprint_of(uint32_t version)
{
    const uint64_t facts[] = {
        version,
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
        sizeof(struct rbi_outcomes),
        offsetof(struct rbi_outcomes, changes),
        sizeof(struct rbi_outcome),
        offsetof(struct rbi_outcome, ok),
        offsetof(struct rbi_outcome, latency),
    };
    return XXH3_64bits(facts, sizeof facts);
}

uint64_t rbi_layout_fingerprint(void)
{
    return fingerprint_of(RBI_LAYOUT_VERSION_MIN);
}

uint32_t rbi_layout_version_of(uint64_t fingerprint)
{
    for (uint32_t version = RBI_LAYOUT_VERSION; version >= RBI_LAYOUT_VERSION_MIN; version--) {
        if (fingerprint_of(version) == fingerprint) {
            return version;
        }
    }
    return 0;
}
