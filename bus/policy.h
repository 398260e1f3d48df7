/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_POLICY_H
#define RINGBUS_BUS_POLICY_H
/*
 * bus/policy.h - what the configuration says of a cluster: how its instances are chosen, watched,
 * shielded, limited. Plain data without pointers: the parser fills it, the daemon publishes it
 * beside the cluster's snapshot, and dispatch, routing, shielding and limits read it.
 *
 * Every list is bounded and every text is terminated, so that a policy is copied as it is.
 * Percentages are whole percent unless a name says otherwise; times are in its name.
 */
#include "bus/pidf.h"
#include "shm/base.h"

#define RBI_LABEL_MAX 63U /* bytes of a set, a location, a tag, a rule's id */
#define RBI_GLOB_MAX  RBI_PATH_MAX

/** How one of several instances is chosen. */
enum rbi_balance_mode {
    RBI_BALANCE_AUTO = 0, /* hash with a key, else as keyless says */
    RBI_BALANCE_HASH = 1, /* rendezvous slot table */
    RBI_BALANCE_MAGLEV = 2,
    RBI_BALANCE_LEAST = 3, /* of two drawn at random the one with less to do */
    RBI_BALANCE_RR = 4,
    RBI_BALANCE_WEIGHTED = 5, /* in turn, by weight, without runs */
    RBI_BALANCE_RANDOM = 6,   /* by weight */
    RBI_BALANCE_ALL = 7,
    RBI_BALANCE_CUSTOM = 8, /* the application's callback */
};

/** What a key does whose owner is shielded. */
enum rbi_on_shield {
    RBI_ON_SHIELD_HOLD = 0,     /* stays: state would travel there and back */
    RBI_ON_SHIELD_FAILOVER = 1, /* goes to the next rank */
    RBI_ON_SHIELD_FAIL = 2,
};

struct rbi_balance_policy {
    uint32_t mode;            /* enum rbi_balance_mode */
    uint32_t keyless;         /* the same, for messages without a key: LEAST RR WEIGHTED RANDOM */
    uint32_t slots;           /* power of two, 1024 to 262144; 0: 65,536 */
    uint32_t ranks;           /* owners a slot, 1 to 3 */
    uint32_t hash_bound;      /* percent of the mean load from which rank 2 is asked; 0: never */
    uint32_t strict;          /* percent over its share that no instance owns more than; 0: off */
    uint32_t rehash_delay_ms; /* slots of an instance that died wait so long for its return */
    uint32_t on_shield;       /* enum rbi_on_shield */
    uint32_t subset;          /* a caller links to so many instances only; 0: to all */
    uint32_t reported_weight; /* 1: weight by what instances report (bus/reported.h) */
    uint32_t slow_start_ms;   /* 0: off */
    uint32_t slow_start_min;  /* percent of the weight at the start */
    uint32_t slow_start_aggression; /* percent: 100 is linear */
    uint32_t sticky_ms;             /* a keyless caller stays with its choice for so long; 0: no */
};

enum rbi_shield_preset {
    RBI_SHIELD_DEFAULT = 0,
    RBI_SHIELD_TSEER = 1,
    RBI_SHIELD_ENVOY = 2,
    RBI_SHIELD_POLARIS = 3,
    RBI_SHIELD_FINAGLE = 4,
    RBI_SHIELD_OFF = 5,
};

#define RBI_SHIELD_WINDOWS_MAX 4U

/** Trips when at least so many calls ended in it and at least so many percent of them failed. */
struct rbi_shield_window {
    uint32_t ms;
    uint32_t calls;
    uint32_t percent;
    uint32_t quiet_below; /* judged only while the window before it holds fewer calls; 0: always */
};

struct rbi_shield_policy {
    uint32_t preset; /* enum rbi_shield_preset, from which what is not given was taken */
    uint32_t window_count;
    struct rbi_shield_window windows[RBI_SHIELD_WINDOWS_MAX];
    uint32_t above_median;    /* points by which the rate must exceed the cluster's median */
    uint32_t consecutive;     /* failures in a row that trip; 0: not judged */
    uint32_t consecutive_ms;  /* within so long; 0: however long */
    uint32_t deviations_x10;  /* success rate below mean - so many tenths of sigma; 0: not judged */
    uint32_t deviation_calls; /* judged for instances with so many calls in the first window */
    uint32_t deviation_hosts; /* and when there are so many such instances */
    uint32_t slow_ms;         /* a reply later than that is slow; 0: not judged */
    uint32_t slow_percent;
    uint32_t slow_calls;
    uint32_t max_percent; /* of the cluster's weight, shielded at once, the new one counted */
    uint32_t open_min_ms; /* first time out; doubles */
    uint32_t open_max_ms;
    uint32_t open_linear; /* 1: grows by open_min_ms each time, instead */
    uint32_t jitter;      /* percent either way */
    uint32_t probe_per_s; /* over all callers */
    uint32_t probe_timeout_ms;
    uint32_t close_ok; /* successes */
    uint32_t close_of; /* of so many probes */
    uint32_t ramp_ms;
    uint32_t close_fails; /* failed probes that are forgiven; one more opens it again */
    uint32_t split;       /* 1: failures at the caller are judged as well, apart; 0: not at all */
    uint32_t reserved;
};

enum rbi_panic_mode { RBI_PANIC_IGNORE_SHIELD = 0, RBI_PANIC_FAIL = 1 };

struct rbi_panic_policy {
    uint32_t enter; /* percent of healthy weight below which shields are ignored */
    uint32_t leave; /* and from which they count again */
    uint32_t mode;  /* enum rbi_panic_mode */
};

/** How a stage of the router chain treats those who do not match. */
enum rbi_stage_mode {
    RBI_STAGE_OFF = 0,
    RBI_STAGE_PREFER = 1, /* they fall out unless nobody healthy is left */
    RBI_STAGE_STRICT = 2, /* they fall out, whatever is left */
};

#define RBI_REALMS_MAX 8U

/** Same cluster of another business. */
struct rbi_realm_policy {
    uint32_t mode;         /* PREFER: own first, then the others in order. STRICT: own only */
    uint32_t count;        /* of imports */
    uint32_t remote_first; /* 1: own realm at a distant place before another realm at home */
    uint32_t reserved;
    char imports[RBI_REALMS_MAX][RBI_LABEL_MAX + 1]; /* in order */
};

struct rbi_set_policy {
    uint32_t mode; /* STRICT: as TSeer has it */
    uint32_t dry_run;
};

#define RBI_CANARIES_MAX 8U

/** Share of the untagged traffic that goes to a tag. */
struct rbi_canary {
    char id[RBI_LABEL_MAX + 1];
    char tag[RBI_LABEL_MAX + 1];
    uint32_t share; /* of 10,000 keys */
    uint32_t dry_run;
};

struct rbi_tag_policy {
    uint32_t mode;           /* of tagged messages: PREFER falls back to untagged instances */
    uint32_t untagged_leaks; /* 1: untagged messages reach tagged instances when no other is left */
    uint32_t count;
    uint32_t dry_run;
    struct rbi_canary canaries[RBI_CANARIES_MAX];
};

#define RBI_RULES_MAX  8U
#define RBI_LABELS_MAX 4U

/** Process of a caller that a rule is about (bus/subject.h). Zero bytes: any. */
struct rbi_caller_match {
    uint32_t given; /* RBI_CALLER_BY_* */
    uint32_t uid;
    uint32_t gid;
    uint32_t reserved;
    char program[RBI_GLOB_MAX + 1];
    char cgroup[RBI_GLOB_MAX + 1];
};

/** Parameter routing: what the message says of itself decides where it may go. */
struct rbi_label_rule {
    char id[RBI_LABEL_MAX + 1];
    uint32_t method_low; /* inclusive; 0..UINT32_MAX: every method */
    uint32_t method_high;
    uint64_t key_mask; /* (key & mask) == value; mask 0: every key, and none */
    uint64_t key_value;
    uint32_t label_masks[RBI_LABELS_MAX];
    uint32_t label_values[RBI_LABELS_MAX];
    uint32_t mode; /* enum rbi_stage_mode of its targets */
    uint32_t dry_run;
    char tag[RBI_LABEL_MAX + 1]; /* targets: instances with this tag, "" any */
    char set[RBI_LABEL_MAX + 1];
    char idc[RBI_LABEL_MAX + 1];
    char instance[RBI_LABEL_MAX + 1]; /* glob of the instance's name, "" any */
    struct rbi_caller_match caller;   /* messages of others are none of its */
};

#define RBI_PRIORITIES_MAX      8U
#define RBI_PRIORITY_GROUPS_MAX 8U

/** One entry of idc.priority: these groups stand for each other. */
struct rbi_idc_priority {
    uint32_t count;
    uint32_t reserved;
    char groups[RBI_PRIORITY_GROUPS_MAX][RBI_LABEL_MAX + 1];
};

struct rbi_locality_policy {
    uint32_t mode;           /* enum rbi_stage_mode */
    uint32_t overprovision;  /* percent: a level takes all while healthy % x this >= 100 */
    uint32_t leave;          /* percent healthy below which a level is left */
    uint32_t back;           /* and from which it is used again */
    uint32_t hold_ms;        /* for so long */
    uint32_t min_local;      /* instances that a level must have at least */
    uint32_t capacity_spill; /* percent: local share of capacity under this x share of demand */
    uint32_t dry_run;
    uint32_t count;
    uint32_t reserved;
    struct rbi_idc_priority priorities[RBI_PRIORITIES_MAX];
};

enum rbi_limit_scope {
    RBI_LIMIT_CALLER = 0,   /* each caller for itself, before sending */
    RBI_LIMIT_INSTANCE = 1, /* each caller, for each instance */
    RBI_LIMIT_RECEIVER = 2, /* each receiver, by link, when it reads */
    RBI_LIMIT_CLUSTER = 3,  /* all callers together; shares are leased by the daemon */
};
enum rbi_limit_unit { RBI_LIMIT_MESSAGES = 0, RBI_LIMIT_BYTES = 1 };

#define RBI_LIMITS_MAX 8U

struct rbi_limit {
    char id[RBI_LABEL_MAX + 1];
    uint32_t scope;       /* enum rbi_limit_scope */
    uint32_t unit;        /* enum rbi_limit_unit */
    uint64_t rate;        /* a second */
    uint64_t burst;       /* 0: what the rate gives in 100 ms, 1 at least */
    uint32_t max_wait_ms; /* what passes by then waits, what does not is refused */
    uint32_t method_low;
    uint32_t method_high;
    uint32_t dry_run;
    char caller[RBI_GLOB_MAX + 1]; /* glob of the caller's path, "" every one */
};

struct rbi_overload_policy {
    uint32_t max_inflight;      /* requests of one caller to the cluster; 0: no cap */
    uint32_t sojourn_target_us; /* 0: never sheds */
    uint32_t sojourn_interval_ms;
    uint32_t reserved;
};

enum rbi_retry_mode {
    RBI_RETRY_AUTO = 0, /* FAILOVER for requests without a key, else FAILFAST */
    RBI_RETRY_FAILFAST = 1,
    RBI_RETRY_FAILOVER = 2,
    RBI_RETRY_FORKING = 3,
    RBI_RETRY_BROADCAST = 4,
    RBI_RETRY_FAILBACK = 5,
    RBI_RETRY_FAILSAFE = 6,
};

struct rbi_retry_policy {
    uint32_t mode;  /* enum rbi_retry_mode */
    uint32_t tries; /* beyond the first */
    uint32_t forks; /* FORKING: requests at once */
    uint32_t budget_percent;
    uint32_t budget_min;   /* a second */
    uint32_t failback_max; /* queued */
    uint32_t failback_ms;  /* between tries */
    uint32_t once_per_instance;
};

enum rbi_degrade_action {
    RBI_DEGRADE_FAIL = 0,
    RBI_DEGRADE_MOCK = 1,
    RBI_DEGRADE_LOCAL = 2, /* the application's callback */
};

#define RBI_DEGRADE_MANUAL      1U /* triggers: switched on by the operator */
#define RBI_DEGRADE_NO_INSTANCE 2U
#define RBI_DEGRADE_SHIELDED    4U
#define RBI_DEGRADE_LIMITED     8U

#define RBI_DEGRADES_MAX  4U
#define RBI_MOCK_MAX      1024U
#define RBI_MOCK_FILE_MAX 65536U
#define RBI_MOCK_PATH_MAX 127U

struct rbi_degrade {
    char id[RBI_LABEL_MAX + 1];
    uint32_t method_low;
    uint32_t method_high;
    uint32_t action;   /* enum rbi_degrade_action */
    uint32_t triggers; /* RBI_DEGRADE_* */
    uint32_t mock_size;
    uint32_t file_size; /* with file_key */
    unsigned char mock[RBI_MOCK_MAX];
    uint64_t file_key; /* its blob holds the answer, in the place of mock; 0: no file */
    char mock_file[RBI_MOCK_PATH_MAX + 1]; /* whose; "" none */
};

/** All of it, for one cluster. Zero bytes where nothing is said. */
struct rbi_policy {
    uint64_t fingerprint; /* rbi_policy_seal(): XXH3-64 of what follows; 0 is no policy's */
    struct rbi_balance_policy balance;
    struct rbi_shield_policy shield;
    struct rbi_panic_policy panic;
    struct rbi_realm_policy realm;
    struct rbi_set_policy set;
    struct rbi_tag_policy tags;
    uint32_t rule_count;
    uint32_t limit_count;
    uint32_t degrade_count;
    uint32_t token_required; /* 1: links to it need a token */
    struct rbi_label_rule rules[RBI_RULES_MAX];
    struct rbi_locality_policy locality;
    struct rbi_limit limits[RBI_LIMITS_MAX];
    struct rbi_overload_policy overload;
    struct rbi_retry_policy retry;
    struct rbi_degrade degrades[RBI_DEGRADES_MAX];
};

/** The defaults of every cluster that no configuration names. */
void rbi_policy_defaults(struct rbi_policy *policy);
/** What a preset says; the other fields of @p shield are overwritten as well. */
void rbi_shield_preset(struct rbi_shield_policy *shield, enum rbi_shield_preset preset);
/** Sets the fingerprint: to be called when all else is as it stays. */
void rbi_policy_seal(struct rbi_policy *policy);
/**
 * Whether every field is in its range: counts, enums, terminated texts. For policies that were
 * read from memory which another process writes.
 */
bool rbi_policy_valid(const struct rbi_policy *policy);

#endif
