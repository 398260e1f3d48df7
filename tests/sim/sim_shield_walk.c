/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shield of a cluster in random histories: instances fall ill, heal, restart, leave and join,
 * change weight; operators unshield and change rules; callers die with their probes, give them
 * back, or report late; PINGs get lost; sweeps are late. Features 2.5, section 6 item 3;
 * scenarios 91 and 118.
 *
 * What must hold after every sweep:
 *   - the events alone, replayed, give the state of every member
 *   - no more weight is shielded than the cap allows, of one member none
 *   - nobody stays OPEN or HALF_OPEN longer than its bound, no probe is older than its deadline
 *   - probes of one life of an instance are as far apart as the rate says
 *   - panic is told in turns, and while there is a member, one may be called
 *   - what restarted or was unshielded is OK, and its k is 0
 * and in the end, when all are well, all are back, with traffic and without.
 *
 *   sim_shield_walk [--seed N] [--runs N]
 */
#include "support/shield.h"

#include <stdio.h>
#include <stdlib.h>

#define IDS    12U /* instances 1..IDS, some of which are members */
#define STEPS  4000U
#define SETTLE 8000U /* steps of 250 ms: longer than all bounds together */
#define PROBES 64U

struct seen {
    bool member;
    uint32_t incarnation;
    uint32_t health; /* as the events say */
    uint32_t ramp;
    uint32_t ill;       /* percent of its calls fail */
    bool hung;          /* answers no PING */
    bool cleared;       /* since the last sweep: probes may follow at once */
    uint64_t probed_ns; /* last grant */
};

struct walk {
    struct shield_bench bench;
    struct seen seen[IDS + 1];
    struct rbi_shield_grant held[PROBES];
    unsigned held_count;
    uint64_t seed;
    uint64_t rng;
    bool panic;
    bool traffic;
    uint64_t sweeps_ns[9]; /* the last ones, newest first */
    uint64_t changes;      /* of health; all histories */
    uint64_t panics;
    uint64_t grants;
};

static struct walk walk;

static uint32_t below(uint32_t n)
{
    walk.rng = walk.rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(walk.rng >> 33) % n;
}

static void check(bool right, int32_t id, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "seed %llu, %llu ms, instance %d: %s\n",
                      (unsigned long long)walk.seed,
                      (unsigned long long)((walk.bench.turn.now_ns - SHIELD_START) / SHIELD_MS),
                      (int)id, what);
        exit(1);
    }
}

static bool serves(uint32_t health)
{
    return health == RBI_HEALTH_OK || health == RBI_HEALTH_RAMP;
}

/* ---- events ------------------------------------------------------------------------------ */

/** Which change is which reason's. */
static bool explains(const struct rbi_shield_event *event)
{
    const bool served = serves(event->from);
    switch (event->reason) {
    case RBI_SHIELD_BECAUSE_WINDOW:
    case RBI_SHIELD_BECAUSE_CONSECUTIVE:
    case RBI_SHIELD_BECAUSE_SLOW:
    case RBI_SHIELD_BECAUSE_DEVIATION:
    case RBI_SHIELD_BECAUSE_LOCAL:
        return served && event->to == RBI_HEALTH_OPEN;
    case RBI_SHIELD_BECAUSE_PING_LOST:
    case RBI_SHIELD_BECAUSE_PROBE_FAILED:
    case RBI_SHIELD_BECAUSE_PROBE_EXPIRED:
    case RBI_SHIELD_BECAUSE_INCONCLUSIVE:
        return event->from == RBI_HEALTH_HALF_OPEN && event->to == RBI_HEALTH_OPEN;
    case RBI_SHIELD_BECAUSE_OPEN_OVER:
        return event->from == RBI_HEALTH_OPEN && event->to == RBI_HEALTH_HALF_OPEN;
    case RBI_SHIELD_BECAUSE_PROBES_OK:
    case RBI_SHIELD_BECAUSE_IDLE:
        return event->from == RBI_HEALTH_HALF_OPEN && serves(event->to);
    case RBI_SHIELD_BECAUSE_RAMP:
        return event->from == RBI_HEALTH_RAMP && serves(event->to);
    case RBI_SHIELD_BECAUSE_CAP:
        return !served && serves(event->to);
    case RBI_SHIELD_BECAUSE_RESTART:
    case RBI_SHIELD_BECAUSE_GONE:
    case RBI_SHIELD_BECAUSE_UNSHIELD:
    case RBI_SHIELD_BECAUSE_POLICY:
        return event->from != RBI_HEALTH_OK && event->to == RBI_HEALTH_OK;
    case RBI_SHIELD_BECAUSE_NONE:
    case RBI_SHIELD_BECAUSE_MEDIAN:
        break;
    }
    return false;
}

static void note(void *context, const struct rbi_shield_event *event)
{
    const int32_t id = event->instance;
    (void)context;
    if (event->kind == RBI_SHIELD_PANIC || event->kind == RBI_SHIELD_PANIC_OVER) {
        check(walk.panic == (event->kind == RBI_SHIELD_PANIC_OVER), 0, "panic not in turns");
        walk.panic = event->kind == RBI_SHIELD_PANIC;
        walk.panics += walk.panic;
        return;
    }
    check(id >= 1 && id <= (int32_t)IDS && walk.seen[id].member, id, "event of a stranger");
    struct seen *seen = &walk.seen[id];
    check(event->incarnation == seen->incarnation, id, "event of another life");
    if (event->kind == RBI_SHIELD_PING) {
        check(seen->health == RBI_HEALTH_HALF_OPEN, id, "PING out of place");
    } else if (event->kind == RBI_SHIELD_CHANGED) {
        check(event->from == seen->health, id, "from another state than it was in");
        check(explains(event), id, rbi_shield_reason_name(event->reason));
        seen->health = event->to;
        seen->ramp = event->to == RBI_HEALTH_RAMP ? event->ramp : 100;
        walk.changes++;
    }
}

/* ---- what happens ------------------------------------------------------------------------ */

static void put(int32_t id, uint32_t weight)
{
    struct seen *seen = &walk.seen[id];
    if (!seen->member) {
        *seen = (struct seen){.member = true,
                              .incarnation = seen->incarnation + 1,
                              .ramp = 100,
                              .ill = below(3) == 0 ? below(101) : 0};
    }
    if (rbi_shield_put(&walk.bench.cluster, id, seen->incarnation, weight, &walk.bench.turn) != 0) {
        exit(1);
    }
}

static void restart(int32_t id)
{
    struct seen *seen = &walk.seen[id];
    const uint32_t weight = shield_of(&walk.bench, id)->weight;
    if (rbi_shield_put(&walk.bench.cluster, id, seen->incarnation + 1, weight, &walk.bench.turn)) {
        exit(1);
    }
    seen->incarnation++;
    seen->ill = 0;
    seen->hung = false;
    seen->cleared = true;
}

static void other_policy(void)
{
    struct rbi_shield_policy *policy = &walk.bench.policy;
    rbi_shield_preset(policy, (enum rbi_shield_preset)below(RBI_SHIELD_OFF + 1));
    policy->max_percent = below(2) ? policy->max_percent : 10 + below(91);
    policy->above_median = below(2) ? policy->above_median : below(50);
    policy->open_min_ms = 500 + below(5000);
    policy->open_max_ms = policy->open_min_ms + below(30000);
    policy->probe_per_s = 1 + below(10);
    policy->slow_ms = below(3) == 0;
    shield_apply(&walk.bench);
    for (unsigned id = 1; id <= IDS; id++) {
        walk.seen[id].cleared = true;
    }
}

/** Something changes with one instance. */
static void happen(int32_t id)
{
    struct seen *seen = &walk.seen[id];
    const uint32_t what = below(16);
    if (!seen->member) {
        put(id, below(4) == 0 ? below(1000) : 100);
    } else if (what == 0) {
        rbi_shield_remove(&walk.bench.cluster, id, &walk.bench.turn);
        seen->member = false;
    } else if (what < 4) {
        restart(id);
    } else if (what == 4) {
        put(id, below(1000));
    } else if (what == 5) {
        seen->hung = !seen->hung;
    } else if (what == 6) {
        check(rbi_shield_unshield(&walk.bench.cluster, id, &walk.bench.turn) == 0, id, "unshield");
        check(shield_of(&walk.bench, id)->health == RBI_HEALTH_OK, id, "unshield: not OK");
        check(shield_of(&walk.bench, id)->shields == 0, id, "unshield: k is left");
        seen->cleared = true;
    } else {
        seen->ill = below(2) == 0 ? 0 : below(101);
    }
}

static void count_calls(void)
{
    for (int32_t id = 1; id <= (int32_t)IDS; id++) {
        const struct seen *seen = &walk.seen[id];
        const bool used = seen->member && (serves(seen->health) || walk.panic || below(10) == 0);
        for (unsigned caller = 0; used && caller < 3; caller++) {
            struct rbi_shield_outcomes outcomes = {0};
            const uint32_t calls = below(id % 3 == 0 ? 2 : 20);
            for (uint32_t i = 0; i < calls; i++) {
                const bool failed = below(100) < seen->ill;
                outcomes.ok += !failed;
                outcomes.fail += failed;
                outcomes.streak = failed ? outcomes.streak + 1 : 0;
                outcomes.slow += below(150) < seen->ill;
            }
            rbi_shield_count(&walk.bench.cluster, id,
                             below(50) == 0 ? seen->incarnation - 1 : seen->incarnation, &outcomes);
        }
    }
}

/** Probes in callers' hands end, in every way there is; some never. */
static void end_probes(void)
{
    for (unsigned i = 0; i < walk.held_count;) {
        struct rbi_shield_grant *held = &walk.held[i];
        const struct seen *seen = &walk.seen[held->instance];
        const bool failed = below(100) < seen->ill || seen->hung;
        enum rbi_shield_probe_result result = failed ? RBI_SHIELD_PROBE_FAIL : RBI_SHIELD_PROBE_OK;
        const uint32_t how = below(10);
        if (how == 0) {
            i++; /* late, or never: the sweep ends it */
            continue;
        }
        if (how < 3) {
            result = (enum rbi_shield_probe_result)below(RBI_SHIELD_PROBE_UNUSED + 1);
        }
        rbi_shield_probe_end(&walk.bench.cluster, held->instance, held->token, result,
                             &walk.bench.turn);
        *held = walk.held[--walk.held_count];
    }
}

static void take_grants(void)
{
    struct rbi_shield_grant grant;
    while (rbi_shield_probe_grant(&walk.bench.cluster, &grant, &walk.bench.turn) == 0) {
        struct seen *seen = &walk.seen[grant.instance];
        const uint64_t apart_ns = UINT64_C(1000000000) / walk.bench.policy.probe_per_s;
        const uint64_t now_ns = walk.bench.turn.now_ns;
        check(seen->member && seen->incarnation == grant.incarnation, grant.instance, "grant");
        check(seen->health == RBI_HEALTH_HALF_OPEN, grant.instance, "grant out of place");
        check(seen->cleared || seen->probed_ns == 0 || now_ns - seen->probed_ns >= apart_ns,
              grant.instance, "more probes than the rate allows");
        seen->cleared = false;
        seen->probed_ns = now_ns;
        walk.grants++;
        if (walk.held_count == PROBES) {
            walk.held_count = 0; /* all those callers died, and nobody says so */
        }
        walk.held[walk.held_count++] = grant;
    }
}

/* ---- what must hold ---------------------------------------------------------------------- */

static void check_probes(const struct rbi_shield_member *member)
{
    const uint64_t now_ns = walk.bench.turn.now_ns;
    uint32_t under_way = 0;
    for (unsigned i = 0; i < RBI_SHIELD_PROBES_MAX; i++) {
        const struct rbi_shield_probe *probe = &member->probes[i];
        check(probe->token == 0 || probe->deadline_ns > now_ns, member->instance, "probe too old");
        under_way += probe->token != 0;
    }
    check(under_way == 0 || member->health == RBI_HEALTH_HALF_OPEN, member->instance,
          "probe out of place");
    check(under_way + member->probes_spent <= walk.bench.cluster.rules.close_of, member->instance,
          "more probes than wanted");
}

/** @param late_ns  the last sweeps took: what ends a PING or a probe waits for them */
static void check_member(const struct rbi_shield_member *member, uint64_t late_ns)
{
    const struct rbi_shield_policy *rules = &walk.bench.cluster.rules;
    const struct seen *seen = &walk.seen[member->instance];
    const uint64_t now_ns = walk.bench.turn.now_ns;
    const uint64_t timeout_ns = rules->probe_timeout_ms * SHIELD_MS;
    const uint64_t longest_ns = rules->open_max_ms * SHIELD_MS / 100 * (100 + rules->jitter);
    check(member->health == seen->health && member->ramp == seen->ramp, member->instance,
          "the events say something else");
    check_probes(member);
    if (member->health == RBI_HEALTH_OPEN) {
        check(member->open_ns <= longest_ns, member->instance, "open time beyond its bound");
        check(now_ns < member->until_ns, member->instance, "OPEN too long");
    } else if (member->health == RBI_HEALTH_HALF_OPEN) {
        const uint64_t probes_ns =
            UINT64_C(1000000000) / rules->probe_per_s * rules->close_of + timeout_ns;
        const uint64_t bound_ns =
            rbi_max_u64(RBI_SHIELD_IDLE_FACTOR * member->open_ns, probes_ns) + 2 * timeout_ns;
        check(now_ns - member->since_ns <= bound_ns + late_ns, member->instance,
              "HALF_OPEN too long");
        check(member->ping == 0 || member->ping_due_ns > now_ns, member->instance, "PING too old");
    } else if (member->health == RBI_HEALTH_RAMP) {
        check(now_ns < member->until_ns, member->instance, "RAMP too long");
    }
}

static void check_all(uint64_t late_ns)
{
    const struct rbi_shield_cluster *cluster = &walk.bench.cluster;
    uint64_t total = 0;
    uint64_t out = 0;
    uint32_t members = 0;
    uint32_t in = 0;
    for (unsigned id = 1; id <= IDS; id++) {
        const struct rbi_shield_member *member = shield_of(&walk.bench, (int32_t)id);
        check((member != NULL) == walk.seen[id].member, (int32_t)id, "member or not");
        total += member != NULL ? member->weight : 0;
    }
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct rbi_shield_member *member = cluster->members[i];
        check_member(member, late_ns);
        members++;
        in += serves(member->health);
        out += serves(member->health) ? 0 : total == 0 ? 1 : member->weight;
    }
    total = total == 0 ? members : total;
    check(out * 100 <= total * cluster->rules.max_percent, 0, "more than the cap is shielded");
    check(members != 1 || in == 1, 0, "the only one is shielded");
    check(members == 0 || in > 0 || rbi_shield_panics(cluster), 0, "nobody to call");
    check(walk.panic == rbi_shield_panics(cluster), 0, "panic was not told");
}

/* ---- a history --------------------------------------------------------------------------- */

static void answer_pings(void)
{
    for (int32_t id = 1; id <= (int32_t)IDS; id++) {
        const struct rbi_shield_member *member = shield_of(&walk.bench, id);
        if (member != NULL && member->ping != 0 && !walk.seen[id].hung && below(4) != 0) {
            rbi_shield_ping(&walk.bench.cluster, id, member->ping, below(20) != 0,
                            &walk.bench.turn);
        }
    }
}

static void step(void)
{
    const uint32_t late_ms = below(20) == 0 ? below(3000) : below(20);
    if (walk.traffic) {
        count_calls();
    }
    shield_pass(&walk.bench, below(100));
    end_probes();
    answer_pings();
    shield_pass(&walk.bench, 150 + late_ms);
    walk.bench.turn.random = walk.rng;
    rbi_shield_sweep(&walk.bench.cluster, &walk.bench.turn);
    memmove(&walk.sweeps_ns[1], &walk.sweeps_ns[0], 8 * sizeof walk.sweeps_ns[0]);
    walk.sweeps_ns[0] = walk.bench.turn.now_ns;
    check_all(walk.sweeps_ns[0] - walk.sweeps_ns[8]);
    if (walk.traffic) {
        take_grants();
    }
}

/** All are well from now on: everybody is back in the end. */
static void settle(bool traffic)
{
    walk.traffic = traffic;
    for (unsigned id = 1; id <= IDS; id++) {
        walk.seen[id].ill = 0;
        walk.seen[id].hung = false;
    }
    for (unsigned i = 0; i < SETTLE; i++) {
        step();
    }
    check(!walk.panic, 0, "still in panic");
    for (unsigned id = 1; id <= IDS; id++) {
        check(!walk.seen[id].member || walk.seen[id].health == RBI_HEALTH_OK, (int32_t)id,
              "is not back");
    }
    check(traffic || rbi_shield_due(&walk.bench.cluster) == UINT64_MAX, 0, "never comes to rest");
}

static void run(uint64_t seed)
{
    const uint64_t sums[] = {walk.changes, walk.panics, walk.grants};
    memset(&walk, 0, sizeof walk);
    walk.changes = sums[0];
    walk.panics = sums[1];
    walk.grants = sums[2];
    walk.seed = seed;
    walk.rng = seed * UINT64_C(0x9e3779b97f4a7c15);
    walk.traffic = true;
    if (!shield_begin(&walk.bench, RBI_SHIELD_DEFAULT, 0)) {
        exit(1);
    }
    walk.bench.turn.emit = note;
    walk.bench.policy.jitter = 20;
    shield_apply(&walk.bench);
    for (unsigned i = 0; i < STEPS; i++) {
        if (below(8) == 0) {
            happen(1 + (int32_t)below(1 + below(IDS)));
        }
        if (below(500) == 0) {
            other_policy();
        }
        step();
    }
    settle(seed % 2 == 0);
    rbi_shield_deinit(&walk.bench.cluster);
}

int main(int argc, char **argv)
{
    const char *full = getenv("RINGBUS_TEST_FULL");
    uint64_t seed = 1;
    uint64_t runs = full != NULL && full[0] == '1' ? 2000 : 20;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
            runs = strtoull(argv[++i], NULL, 10);
        } else {
            (void)fprintf(stderr, "usage: sim_shield_walk [--seed N] [--runs N]\n");
            return 2;
        }
    }
    for (uint64_t i = 0; i < runs; i++) {
        run(seed + i);
    }
    (void)printf("sim_shield_walk: %llu runs from seed %llu, %llu changes, %llu panics, %llu "
                 "probes\n",
                 (unsigned long long)runs, (unsigned long long)seed,
                 (unsigned long long)walk.changes, (unsigned long long)walk.panics,
                 (unsigned long long)walk.grants);
    return walk.changes == 0 || walk.panics == 0 || walk.grants == 0; /* nothing was tried */
}
