/* SPDX-License-Identifier: Apache-2.0 */
/* bus/suspicion.c - a sliding second out of two counted ones. */
#include "bus/suspicion.h"

/** Of @p count in the last @p elapsed_ns (a second or more) so many in the last second. */
static uint32_t share(uint64_t count, uint64_t elapsed_ns)
{
    const double scaled = (double)count * (double)RBI_SUSPICION_SECOND_NS / (double)elapsed_ns;
    return scaled < (double)UINT32_MAX ? (uint32_t)scaled : UINT32_MAX;
}

/** What is left of the second before, @p elapsed_ns after its end, and what came since. */
static uint64_t slide(uint32_t before, uint64_t since, uint64_t elapsed_ns)
{
    const uint64_t left_ns =
        elapsed_ns < RBI_SUSPICION_SECOND_NS ? RBI_SUSPICION_SECOND_NS - elapsed_ns : 0;
    return since + before * left_ns / RBI_SUSPICION_SECOND_NS;
}

void rbi_suspicion_failed(
    struct rbi_suspicion *suspicion, uint64_t ok, uint64_t bad, uint64_t streak, uint64_t now_ns)
{
    uint64_t elapsed_ns = now_ns > suspicion->since_ns ? now_ns - suspicion->since_ns : 0;
    if (suspicion->since_ns == 0) {
        *suspicion = (struct rbi_suspicion){.since_ns = now_ns, .ok_then = ok, .bad_then = bad - 1};
        elapsed_ns = 0;
    } else if (elapsed_ns >= RBI_SUSPICION_SECOND_NS) {
        *suspicion =
            (struct rbi_suspicion){.until_ns = suspicion->until_ns,
                                   .since_ns = now_ns,
                                   .ok_then = ok,
                                   .bad_then = bad - 1, /* this one is the first of its second */
                                   .ok_before = share(ok - suspicion->ok_then, elapsed_ns),
                                   .bad_before = share(bad - 1 - suspicion->bad_then, elapsed_ns)};
        elapsed_ns = 0;
    }
    const uint64_t well = slide(suspicion->ok_before, ok - suspicion->ok_then, elapsed_ns);
    const uint64_t failed = slide(suspicion->bad_before, bad - suspicion->bad_then, elapsed_ns);
    if (streak >= RBI_SUSPICION_STREAK && failed >= well) {
        suspicion->until_ns = now_ns + RBI_SUSPICION_SECOND_NS;
    }
}
