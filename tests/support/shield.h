/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_SHIELD_H
#define RINGBUS_TESTS_SUPPORT_SHIELD_H
/*
 * A cluster of the shield on a clock of its own, and what it has emitted. Included by tests that
 * link cmocka and by the simulator, which does not: no asserts in here.
 */
#include "bus/shield.h"

#include <string.h>

#define SHIELD_MS     UINT64_C(1000000)
#define SHIELD_START  (UINT64_C(7777750) * SHIELD_MS) /* a multiple of a step: the worst case */
#define SHIELD_EVENTS 256U
#define SHIELD_LIFE   1U /* first incarnation of each instance */

struct shield_bench {
    struct rbi_shield_cluster cluster;
    struct rbi_shield_policy policy;
    struct rbi_panic_policy panic;
    struct rbi_shield_turn turn;
    struct rbi_shield_event events[SHIELD_EVENTS]; /* the last ones */
    unsigned count;
    uint64_t ping;                 /* token of the last PING */
    struct rbi_shield_grant grant; /* the last one */
};

static inline void shield_note(void *context, const struct rbi_shield_event *event)
{
    struct shield_bench *bench = context;
    bench->events[bench->count++ % SHIELD_EVENTS] = *event;
    if (event->kind == RBI_SHIELD_PING) {
        bench->ping = event->token;
    }
}

/** Instances 1..n of equal weight; the preset's rules without jitter. */
static inline bool
shield_begin(struct shield_bench *bench, enum rbi_shield_preset preset, unsigned n)
{
    memset(bench, 0, sizeof *bench);
    bench->turn = (struct rbi_shield_turn){
        .now_ns = SHIELD_START, .random = 1, .emit = shield_note, .context = bench};
    bench->panic = (struct rbi_panic_policy){.enter = 50, .leave = 60};
    rbi_shield_preset(&bench->policy, preset);
    bench->policy.jitter = 0;
    rbi_shield_init(&bench->cluster, &bench->policy, &bench->panic);
    for (unsigned i = 1; i <= n; i++) {
        if (rbi_shield_put(&bench->cluster, (int32_t)i, SHIELD_LIFE, 100, &bench->turn) != 0) {
            return false;
        }
    }
    rbi_shield_sweep(&bench->cluster, &bench->turn);
    return true;
}

/** Uses bench->policy and bench->panic as they are now. */
static inline void shield_apply(struct shield_bench *bench)
{
    rbi_shield_set_policy(&bench->cluster, &bench->policy, &bench->panic, &bench->turn);
}

static inline void shield_calls(struct shield_bench *bench, int32_t id, uint32_t ok, uint32_t fail)
{
    const struct rbi_shield_outcomes outcomes = {
        .ok = ok, .fail = fail, .streak = ok == 0 ? fail : 0, .latency_ns = 0};
    rbi_shield_count(&bench->cluster, id, SHIELD_LIFE, &outcomes);
}

static inline void shield_sweep(struct shield_bench *bench)
{
    bench->turn.now_ns += RBI_WINDOW_STEP_MS * SHIELD_MS;
    bench->turn.random++;
    rbi_shield_sweep(&bench->cluster, &bench->turn);
}

static inline void shield_pass(struct shield_bench *bench, uint64_t ms)
{
    bench->turn.now_ns += ms * SHIELD_MS;
    bench->turn.random++;
}

static inline void shield_sweep_after(struct shield_bench *bench, uint64_t ms)
{
    shield_pass(bench, ms);
    rbi_shield_sweep(&bench->cluster, &bench->turn);
}

static inline const struct rbi_shield_member *shield_of(const struct shield_bench *bench,
                                                        int32_t id)
{
    return rbi_shield_find(&bench->cluster, id);
}

static inline unsigned shield_out(const struct shield_bench *bench)
{
    unsigned out = 0;
    for (uint32_t i = 0; i < bench->cluster.count; i++) {
        const uint32_t health = bench->cluster.members[i]->health;
        out += health == RBI_HEALTH_OPEN || health == RBI_HEALTH_HALF_OPEN;
    }
    return out;
}

static inline const struct rbi_shield_event *shield_last(const struct shield_bench *bench)
{
    return &bench->events[(bench->count + SHIELD_EVENTS - 1) % SHIELD_EVENTS];
}

/** The last event of that kind; NULL: none. */
static inline const struct rbi_shield_event *shield_last_of(const struct shield_bench *bench,
                                                            enum rbi_shield_event_kind kind)
{
    for (unsigned i = 0; i < bench->count && i < SHIELD_EVENTS; i++) {
        const struct rbi_shield_event *event =
            &bench->events[(bench->count - 1 - i) % SHIELD_EVENTS];
        if (event->kind == kind) {
            return event;
        }
    }
    return NULL;
}

/** Calls that trip the first window of most presets, and a sweep. */
static inline void shield_fail(struct shield_bench *bench, int32_t id)
{
    shield_calls(bench, id, 0, 10);
    shield_sweep(bench);
}

/** The answer to the last PING. */
static inline void shield_answer(struct shield_bench *bench, int32_t id, bool answered)
{
    rbi_shield_ping(&bench->cluster, id, bench->ping, answered, &bench->turn);
}

static inline bool shield_grant(struct shield_bench *bench)
{
    return rbi_shield_probe_grant(&bench->cluster, &bench->grant, &bench->turn) == 0;
}

/** The probe that was granted last. */
static inline void shield_end(struct shield_bench *bench, enum rbi_shield_probe_result result)
{
    rbi_shield_probe_end(&bench->cluster, bench->grant.instance, bench->grant.token, result,
                         &bench->turn);
}

/** Waits for the end of the open time and answers the PING. @return whether probes may begin */
static inline bool shield_half_open(struct shield_bench *bench, int32_t id)
{
    const struct rbi_shield_member *member = shield_of(bench, id);
    if (member->health != RBI_HEALTH_OPEN) {
        return false;
    }
    shield_sweep_after(bench, (member->until_ns - bench->turn.now_ns) / SHIELD_MS + 1);
    shield_answer(bench, id, true);
    return member->health == RBI_HEALTH_HALF_OPEN && member->ping == 0;
}

/** Probes that are well until it is back. @return whether it is */
static inline bool shield_close(struct shield_bench *bench, int32_t id)
{
    const struct rbi_shield_member *member = shield_of(bench, id);
    for (unsigned i = 0; i < 20 && member->health == RBI_HEALTH_HALF_OPEN; i++) {
        shield_pass(bench, 250);
        if (!shield_grant(bench)) {
            return false;
        }
        shield_end(bench, RBI_SHIELD_PROBE_OK);
    }
    return member->health == RBI_HEALTH_RAMP || member->health == RBI_HEALTH_OK;
}

#endif
