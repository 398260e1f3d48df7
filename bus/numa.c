/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/numa.h"

/* @return where the number ends; NULL: there is none, or it is too large */
static const char *number(const char *at, const char *end, unsigned *out)
{
    unsigned value = 0;
    const char *const begin = at;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (unsigned)(*at - '0');
        if (value >= RBI_NUMA_NODES_MAX) {
            return NULL;
        }
    }
    *out = value;
    return at > begin ? at : NULL;
}

unsigned rbi_numa_count(const char *text, size_t length)
{
    const char *at = text;
    const char *end = text + length;
    unsigned count = 0;
    end -= length > 0 && end[-1] == '\n' ? 1 : 0;
    while (at < end) {
        unsigned low = 0;
        at = number(at, end, &low);
        unsigned high = low;
        if (at != NULL && at < end && *at == '-') {
            at = number(at + 1, end, &high);
        }
        if (at == NULL || high < low || (at < end && (*at != ',' || at + 1 == end))) {
            return 0;
        }
        count += high - low + 1;
        at += at < end ? 1 : 0;
    }
    return count;
}

bool rbi_numa_seen(struct rbi_numa_seat *seat, uint32_t node, uint64_t now_ns)
{
    const uint32_t seen = node < RBI_NUMA_NODES_MAX ? node + 1 : 0;
    if (seen == seat->node || seen == 0) {
        seat->other = 0;
        return false;
    }
    if (seat->node != 0 && (seen != seat->other || now_ns < seat->since_ns)) {
        seat->other = seen;
        seat->since_ns = now_ns;
        return false;
    }
    if (seat->node != 0 && now_ns - seat->since_ns < RBI_NUMA_MOVED_NS) {
        return false;
    }
    seat->node = seen;
    seat->other = 0;
    return true;
}
