/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_SHIELD_H
#define RINGBUS_BUS_SHIELD_H
/*
 * bus/shield.h - which instances of a cluster are kept from traffic because their calls fail.
 * One decision for the whole host: the callers' counts of one instance are summed and judged,
 * so that the time to it depends on the calls to the instance, not on how many share them.
 * Pure: no I/O, no clock, no randomness; whoever owns it (the daemon) passes them in as a turn,
 * and carries out the events that a call emits.
 *
 *               a rule trips             open time is over
 *       OK ------------------> OPEN ------------------------> HALF_OPEN
 *       ^  ^                    ^  ^                            |  |
 *       |  | ramp is over       |  |  PING lost, probe failed   |  |
 *       |  +------- RAMP        |  +----------------------------+  |
 *       |           |  ^  trips |                                  |
 *       |           +--|--------+                                  |
 *       |              +-------------------------------------------+
 *       |                 enough probes were well, or nobody calls and a PING is answered
 *       +- from anywhere: new incarnation, unshield, other rules
 *
 * Members are the instances that callers may choose: READY or BUSY, and not isolated. One that
 * drains, is isolated or dies is removed, and what was known of it is forgotten.
 *
 * Rules. Each is judged at each sweep, over OK and RAMP members only; ">=" everywhere.
 *   windows      so many calls ended in it, so many percent of them failed
 *   consecutive  so many failures in a row, over all callers (see rbi_shield_count())
 *   slow         of the calls of the last 10 s so many percent took longer than slow_ms
 *   deviation    success rate in the first window below mean - x sigma of the cluster
 * A window that is for little traffic is judged when the one before it has had its time to fill.
 * A rule other than the last sheds no member unless its rate is above_median points over the
 * lower median of the other members in service that have calls in that window: when a service
 * that all of them need is broken, none of them is to blame.
 *
 * Cap: shielded weight, the would-be one counted, is at most max_percent of the members' weight,
 * and a cluster of one is never shielded. The worst rate goes first. When members leave, and more
 * is shielded than may be, the one that is shielded longest comes back. Members of weight 0 weigh
 * nothing; where all are 0, each weighs 1.
 *
 * Healthy is who is in service and trips no rule, whatever cap and median spared it; panic
 * follows from the healthy share of the weight, and never changes what is known of a member.
 *
 * Bounds. OPEN lasts open_max_ms and its jitter at most. In HALF_OPEN a PING and each probe are
 * decided within probe_timeout_ms; the state as a whole within 10 times the open time before it
 * (or as long as close_of probes take, where that is more) and twice probe_timeout_ms.
 *
 * Memory: sizeof(struct rbi_shield_member), about 1.4 KiB, an instance. One thread at a time.
 */
#include "bus/directory.h"
#include "bus/panic.h"
#include "bus/policy.h"
#include "bus/shield_window.h"

#define RBI_SHIELD_MEMBERS_MAX 65535U
#define RBI_SHIELD_PROBES_MAX  8U /* of one instance, under way at once */
/** In HALF_OPEN so many open times without an end: a PING alone decides. */
#define RBI_SHIELD_IDLE_FACTOR 10U
/** k, the exponent of the open time, falls by one in so long without a shield. */
#define RBI_SHIELD_DECAY_MS 60000U

/** How the calls of one caller to one instance ended since it was last asked. */
struct rbi_shield_outcomes {
    uint32_t ok;
    uint32_t fail;       /* timeout, gone while it had the call, shed, listed codes */
    uint32_t slow;       /* of both, those later than slow_ms */
    uint32_t streak;     /* this caller's failures since its last success, of any age */
    uint32_t local;      /* calls that could not be made: no room in its lane, no link to it */
    uint64_t latency_ns; /* sum over ok + fail */
};

enum rbi_shield_reason {
    RBI_SHIELD_BECAUSE_NONE = 0,
    RBI_SHIELD_BECAUSE_WINDOW = 1, /* to OPEN: event.window says which one */
    RBI_SHIELD_BECAUSE_CONSECUTIVE = 2,
    RBI_SHIELD_BECAUSE_SLOW = 3,
    RBI_SHIELD_BECAUSE_DEVIATION = 4,
    RBI_SHIELD_BECAUSE_PING_LOST = 5,
    RBI_SHIELD_BECAUSE_PROBE_FAILED = 6,
    RBI_SHIELD_BECAUSE_PROBE_EXPIRED = 7,
    RBI_SHIELD_BECAUSE_INCONCLUSIVE = 8, /* too many probes ended without a word on it */
    RBI_SHIELD_BECAUSE_OPEN_OVER = 9,    /* to HALF_OPEN */
    RBI_SHIELD_BECAUSE_PROBES_OK = 10,   /* back in service */
    RBI_SHIELD_BECAUSE_IDLE = 11,        /* back: nobody called, and it answered a PING */
    RBI_SHIELD_BECAUSE_RAMP = 12,        /* the next share of the weight */
    RBI_SHIELD_BECAUSE_CAP = 13,         /* back, or spared: too much would be shielded */
    RBI_SHIELD_BECAUSE_MEDIAN = 14,      /* spared: the others are as bad */
    RBI_SHIELD_BECAUSE_RESTART = 15,     /* another incarnation */
    RBI_SHIELD_BECAUSE_GONE = 16,
    RBI_SHIELD_BECAUSE_UNSHIELD = 17, /* the operator said so */
    RBI_SHIELD_BECAUSE_POLICY = 18,   /* other rules */
    RBI_SHIELD_BECAUSE_LOCAL = 19,    /* to OPEN: as WINDOW, of calls that could not be made */
};
/** For logs and explain: "window", "probe failed", ... Never NULL. */
const char *rbi_shield_reason_name(enum rbi_shield_reason reason);

enum rbi_shield_event_kind {
    RBI_SHIELD_CHANGED = 1,    /* health or ramp: publish, log */
    RBI_SHIELD_SPARED = 2,     /* trips and stays in service; once until it no longer trips */
    RBI_SHIELD_PING = 3,       /* ask the instance itself; rbi_shield_ping() with event.token */
    RBI_SHIELD_PANIC = 4,      /* of the cluster: instance is 0 */
    RBI_SHIELD_PANIC_OVER = 5, /* the same */
};

/** What a call has done, or wants done. Members that a kind does not name are 0. */
struct rbi_shield_event {
    enum rbi_shield_event_kind kind;
    enum rbi_shield_reason reason; /* CHANGED, SPARED */
    int32_t instance;
    uint32_t incarnation;
    enum rbi_health from; /* CHANGED */
    enum rbi_health to;
    uint32_t ramp;      /* CHANGED to RAMP: percent of the weight */
    uint32_t window_ms; /* of the rule that tripped, with its counts */
    uint32_t calls;
    uint32_t bad;      /* failed; of the slow rule: slow */
    uint32_t median;   /* percent: the others' */
    uint32_t shields;  /* CHANGED to OPEN: the exponent of its open time */
    uint64_t until_ns; /* CHANGED to OPEN: when it ends. PING: answer is due */
    uint64_t token;    /* PING */
    uint32_t healthy;  /* PANIC, PANIC_OVER: percent of the weight */
};

/**
 * What a call gets from outside. Events are emitted from inside the call, in the order of the
 * changes; emit must not call back into the same cluster.
 */
struct rbi_shield_turn {
    uint64_t now_ns; /* never falls from call to call */
    uint64_t random; /* any; another one each time, for the jitter */
    void (*emit)(void *context, const struct rbi_shield_event *event);
    void *context;
};

/** One probe under way. */
struct rbi_shield_probe {
    uint64_t token; /* 0: free */
    uint64_t deadline_ns;
};

/** Columns of counts that the rules look at: the windows, then the last 10 s. */
#define RBI_SHIELD_COLUMNS     (RBI_SHIELD_WINDOWS_MAX + 1U)
#define RBI_SHIELD_COLUMN_LAST RBI_SHIELD_WINDOWS_MAX

/** An instance. Read it as you like; only this module writes. */
struct rbi_shield_member {
    int32_t instance;
    uint32_t incarnation;
    uint32_t weight;
    uint32_t health;      /* enum rbi_health */
    uint32_t ramp;        /* percent of the weight: 100 unless RAMP */
    uint32_t tripped;     /* rules that trip now, bits: window i at i, then as shield_impl.h says */
    uint32_t reason;      /* enum rbi_shield_reason of the last change of health */
    uint32_t spared;      /* enum rbi_shield_reason: CAP, MEDIAN; NONE: not spared */
    uint32_t shields;     /* k: times it was shielded, less the minutes it was well since */
    uint32_t streak;      /* failures in a row, over all callers, at least so many */
    uint32_t latency_us;  /* smoothed mean */
    uint64_t since_ns;    /* in this state, or at this share of the ramp */
    uint64_t until_ns;    /* OPEN, RAMP: when it ends */
    uint64_t open_ns;     /* length of the last OPEN */
    uint64_t shielded_ns; /* when it went out of service */
    uint64_t well_ns;     /* OK, RAMP: from when its next minute of health counts */
    /* HALF_OPEN */
    uint64_t ping; /* token of the PING under way; 0: none */
    uint64_t ping_due_ns;
    uint64_t next_probe_ns;
    uint32_t probes_ok;
    uint32_t probes_failed;
    uint32_t probes_spent; /* ok, failed, and those that say nothing */
    struct rbi_shield_probe probes[RBI_SHIELD_PROBES_MAX];
    /* counts */
    struct rbi_tally pending; /* since the last sweep */
    uint64_t pending_latency_ns;
    uint64_t begin_step;   /* its counts begin there */
    uint32_t pending_tail; /* failures after the last success among them, at least */
    struct rbi_tally columns[RBI_SHIELD_COLUMNS]; /* of the last sweep */
    uint32_t severity; /* rate of what shields it now, of 10,000; then the event's figures */
    struct rbi_shield_event cause;
    struct rbi_outcome_window window;
};

struct rbi_shield_cluster {
    struct rbi_shield_policy policy; /* as given */
    struct rbi_shield_policy rules;  /* the same, in bounds */
    struct rbi_panic_policy panic_policy;
    struct rbi_panic panic;
    struct rbi_shield_member **members; /* owned, ascending by instance */
    uint32_t *rates;                    /* owned, scratch of the medians: room for all */
    uint32_t count;
    uint32_t room;
    uint32_t cursor;   /* grants take turns */
    uint32_t failing;  /* members that trip, at the last sweep */
    uint64_t weight;   /* of all members, at least 1 when there is one */
    uint64_t token;    /* last one given */
    uint64_t begin_ns; /* when step 0 began */
    uint64_t swept_ns;
    bool swept;
    bool busy; /* something waits for time or has failures in a window */
};

/** Copies both; a value out of range is taken as the nearest that works. */
void rbi_shield_init(struct rbi_shield_cluster *cluster,
                     const struct rbi_shield_policy *policy,
                     const struct rbi_panic_policy *panic);
/** Frees what it owns, emits nothing. Zeroed or initialised. */
void rbi_shield_deinit(struct rbi_shield_cluster *cluster);
/** Other rules clear the state of every member; the same ones, or other bounds of panic, do not. */
void rbi_shield_set_policy(struct rbi_shield_cluster *cluster,
                           const struct rbi_shield_policy *policy,
                           const struct rbi_panic_policy *panic,
                           const struct rbi_shield_turn *turn);

/**
 * Adds a member or tells its weight. Another incarnation is another life: its state is cleared.
 * @retval 0;  1 RBI_SHIELD_MEMBERS_MAX are there already: it is not watched
 * @retval -ENOMEM nothing has changed
 */
RBI_MUST_CHECK int rbi_shield_put(struct rbi_shield_cluster *cluster,
                                  int32_t instance,
                                  uint32_t incarnation,
                                  uint32_t weight,
                                  const struct rbi_shield_turn *turn);
/** No longer to be chosen. Unknown ones are ignored. */
void rbi_shield_remove(struct rbi_shield_cluster *cluster,
                       int32_t instance,
                       const struct rbi_shield_turn *turn);
/** @return NULL: no member. Valid until it is removed. Cost: log2(members) */
const struct rbi_shield_member *rbi_shield_find(const struct rbi_shield_cluster *cluster,
                                                int32_t instance);

/**
 * What one caller counted since it was last asked; once a caller and interval, before the sweep.
 * Unknown instances and other incarnations are ignored: the calls went to another life.
 *
 * The failures in a row over all callers are a lower bound, for the order of different callers'
 * calls in an interval is not known. When no caller had a success, all failures prolong the
 * streak. When some had, the last success of all belongs to one of them, and after it came at
 * least that one's own streak: so the least streak among the callers with a success is certain.
 */
void rbi_shield_count(struct rbi_shield_cluster *cluster,
                      int32_t instance,
                      uint32_t incarnation,
                      const struct rbi_shield_outcomes *outcomes);

/**
 * Judges all members and lets time act: every RBI_WINDOW_STEP_MS while rbi_shield_due() says so.
 * A late sweep is harmless, more of them in a step cost time only.
 */
void rbi_shield_sweep(struct rbi_shield_cluster *cluster, const struct rbi_shield_turn *turn);
/**
 * When the next sweep is due, CLOCK_MONOTONIC; UINT64_MAX: when something is counted or changed.
 * One load or two.
 */
uint64_t rbi_shield_due(const struct rbi_shield_cluster *cluster);

/** The answer to RBI_SHIELD_PING; false: it did not answer, or cannot be asked. Stale: ignored. */
void rbi_shield_ping(struct rbi_shield_cluster *cluster,
                     int32_t instance,
                     uint64_t token,
                     bool answered,
                     const struct rbi_shield_turn *turn);

/** Lets one caller send one call to a shielded instance. */
struct rbi_shield_grant {
    int32_t instance;
    uint32_t incarnation;
    uint64_t token;
    uint64_t use_by_ns;   /* sent by then, or given back as UNUSED */
    uint64_t deadline_ns; /* without a result by then it has failed: EXPIRED */
};
/**
 * The next probe that is due, at most probe_per_s a second and instance.
 * @param grant  written on 0 only; for a caller that calls this cluster now, others each time
 * @retval 0;  1 none is due
 */
RBI_MUST_CHECK int rbi_shield_probe_grant(struct rbi_shield_cluster *cluster,
                                          struct rbi_shield_grant *grant,
                                          const struct rbi_shield_turn *turn);

enum rbi_shield_probe_result {
    RBI_SHIELD_PROBE_OK = 0,
    RBI_SHIELD_PROBE_FAIL = 1,         /* counts as a failure of a call does */
    RBI_SHIELD_PROBE_EXPIRED = 2,      /* also said by the sweep, when the deadline has passed */
    RBI_SHIELD_PROBE_CANCELLED = 3,    /* by the caller: says nothing of the instance */
    RBI_SHIELD_PROBE_REFUSED_FULL = 4, /* no credit: neither does this */
    RBI_SHIELD_PROBE_CALLER_DIED = 5,
    RBI_SHIELD_PROBE_UNUSED = 6, /* given back without a call */
};
/** The slot is free whatever the result is. Unknown tokens (late, from another life): ignored. */
void rbi_shield_probe_end(struct rbi_shield_cluster *cluster,
                          int32_t instance,
                          uint64_t token,
                          enum rbi_shield_probe_result result,
                          const struct rbi_shield_turn *turn);

/** The operator clears the state. @retval 0;  1 no such member */
RBI_MUST_CHECK int rbi_shield_unshield(struct rbi_shield_cluster *cluster,
                                       int32_t instance,
                                       const struct rbi_shield_turn *turn);

/** Whether callers are to ignore shields. */
static inline bool rbi_shield_panics(const struct rbi_shield_cluster *cluster)
{
    return cluster->panic.on;
}

#endif
