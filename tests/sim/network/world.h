/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SIM_WORLD_H
#define RINGBUS_TESTS_SIM_WORLD_H
/*
 * world.h - what a history consists of: a daemon and some services, each started, killed and
 * started again under its own path; and what is known of them that ringbus does not know:
 * who really lives, and what became of every message.
 */
#include "tests/sim/network/kernel.h"

#include <ringbus/ringbus.h>

#define SLOTS_MAX    6U
#define LIVES_MAX    48U
#define MESSAGES_MAX 3000U
#define COPIES_MAX   6000U
#define CALLS_MAX    400U
#define CLUSTERS_MAX 2U
#define KEYS         8U    /* that messages have */
#define KEY_SLOTS    1024U /* that they fall into, by the policy */

/** A service: a path under which one process at a time runs. */
struct slot {
    char path[64];
    struct ringbus_addr addr;
    uint32_t targets_clusters; /* bit c: cluster c */
    uint32_t targets_slots;    /* bit s: that instance alone */
    enum ringbus_mode mode;
    bool external_loop; /* waits for ringbus_fd() instead of in ringbus_wait() */
    uint32_t lane_bytes;
    uint32_t ping_interval_ms;
    uint32_t ping_misses;
    bool redelivers; /* what was for any goes on to another */
    uint32_t redeliver_ms;
    int follows;       /* RINGBUS_SLOTS_* */
    struct life *life; /* of its process; NULL: none runs */
    struct life *last; /* that was started */
};

/** One life of a slot: from the start of its process to its end. */
struct life {
    unsigned idx;
    struct slot *slot;
    struct sim_process *process;
    struct ringbus *bus; /* NULL: not open yet, or closed */
    struct ringbus_addr addr;
    uint32_t targets_clusters; /* now */
    uint32_t targets_slots;
    bool ended;
    bool killed;
    bool leave;     /* it is to close */
    bool leaving;   /* it has begun to */
    bool waiting;   /* in a call that messages wake it from */
    bool untargets; /* it has ended an interest at some time */
    bool severed;   /* its connection to the daemon was cut at some time */
    uint64_t ended_ns;
    uint64_t named_by; /* incarnation of a daemon whose directory named it READY */
    bool drains;       /* it takes nothing new */
    bool drained; /* and everybody knows that: of the messages from this one on none may come */
    uint32_t drained_from;
    uint64_t drained_ns;
    uint32_t owners[CLUSTERS_MAX];          /* bit s: as redelivering sender, it may send to it */
    uint32_t unordered_until[CLUSTERS_MAX]; /* messages up to this: their owners changed since */
    uint32_t key_last[CLUSTERS_MAX][KEYS];  /* of its messages with a key, the last that came */
    uint64_t owned[KEY_SLOTS / 64];         /* slots, as events told */
    uint64_t owned_epoch;
    uint64_t owned_daemon; /* incarnation of whose epoch it is */
    bool owned_gained;     /* GAINED came for that epoch */
    unsigned kept_count;
    struct ringbus_kept *kept[4];
    unsigned deferred_count;
    struct ringbus_reply_to deferred[4];
    uint32_t deferred_message[4];
};

enum fate { FATE_ATTEMPT, FATE_REFUSED, FATE_SENT };

struct message {
    struct life *from;
    enum ringbus_kind kind;
    enum fate fate;
    uint32_t about; /* a reply: the request */
    uint32_t size;
    unsigned copies;
    bool handled;  /* a request: its handler ran */
    bool answered; /* a request: a reply or error was accepted by the replier's send */
    bool ended;    /* a request: its callback came */
    bool not_sent; /* a request: the callback said so */
    bool more;     /* sent with RINGBUS_MORE: no wake-up of its own */
    bool any;      /* for one that the library chooses */
    bool keyed;    /* by its key */
    unsigned cluster;
    unsigned key;
};

/** A message on its way to one receiver. */
struct copy {
    uint32_t message;
    struct life *to;
    uint32_t ups; /* which of the links between the two it went by */
    bool delivered;
    bool given_back;
    bool maybe_seen;
};

/** What one life has seen of another. */
struct view {
    bool up;
    bool suspect; /* SUSPECT came, and no ALIVE */
    uint32_t ups;
    uint64_t up_ns;        /* since when */
    uint32_t last_message; /* delivered; 1-based */
    bool gave_up;          /* DOWN came while the other lived */
    bool ended_here;       /* and by an untarget() of ours: we cared no more */
};

/** What the daemon is configured to do with the clusters. */
struct policy {
    bool by_key; /* a key decides who gets a message */
    bool limited;
    bool shields;
    uint32_t rehash_delay_ms;
    char text[1024]; /* as its file says it */
};

struct world {
    uint64_t seed;
    struct policy policy;
    uint32_t length_ms; /* of the time of trouble */
    uint32_t calm_us;   /* between two troubles, at most */
    uint32_t wait_us;   /* of a service between two actions, at most */
    unsigned slot_count;
    unsigned cluster_count;
    bool redelivers; /* targets may; else instances may refuse the keys of others */
    struct ringbus_addr clusters[CLUSTERS_MAX];
    char cluster_paths[CLUSTERS_MAX][64];
    struct slot slots[SLOTS_MAX];
    unsigned life_count;
    struct life lives[LIVES_MAX];
    struct view views[LIVES_MAX][LIVES_MAX];
    uint32_t known[LIVES_MAX][SLOTS_MAX]; /* incarnation, as ADDED and REMOVED told; 0: nobody */
    uint32_t message_count;
    struct message messages[MESSAGES_MAX];
    uint32_t copy_count;
    struct copy copies[COPIES_MAX];
    uint32_t copies_settled; /* all before it are */
    bool quiet;              /* nobody starts anything new */
    bool daemon_runs;
    unsigned daemon_starts;
    /* Figures over all histories. */
    struct {
        uint64_t histories, events, lives, kills, pauses, daemon_kills, links, downs, sent, refused,
            delivered, given_back, maybe_seen, requests, replied, unknown, not_sent, broadcasts,
            keys, absences, waiting, limited, shielded, redelivered, drained, slots, not_owner;
    } figures;
    bool failed;
    char failure[512];
};

extern struct world world;

/* ---- oracle.c: the guarantees of ringbus ------------------------------------------------- */

/** Notes that a guarantee was broken; the first one counts. */
__attribute__((format(printf, 2, 3))) void
violation(const struct life *life, const char *format, ...);
/** The copy of a message for one receiver; made if it is not there. */
struct copy *copy_make(uint32_t message, struct life *to);
struct life *life_of(const struct ringbus_addr *addr);
void oracle_delivered(struct life *to, const struct ringbus_message *message);
void oracle_event(struct life *at, const struct ringbus_event *event);
void oracle_result(struct life *at, uint32_t request, const struct ringbus_result *result);
/** Nobody runs and time is about to pass: nothing may lie about. */
void oracle_idle(void);
/**
 * Everything that was to settle has, and each message is accounted for. @return NULL, or what is
 * still missing
 */
const char *oracle_converged(void);

/* ---- service.c, daemon.c: the programs ------------------------------------------------------ */

void service_start(struct slot *slot);
/** Logs its links. */
void service_describe(const struct life *life);
void daemon_start(void);

struct rbi_governance;

/* ---- policy.c ------------------------------------------------------------------------------ */

void policy_make(struct policy *policy);
/** As the daemon reads it. Ends the simulation when the text is wrong. */
void policy_parse(struct rbi_governance *out);

/* ---- keys.c -------------------------------------------------------------------------------- */

/** A message with a key was sent to one of a cluster: whether that is its owner. */
void keys_sent(struct life *life, uint32_t message, uint64_t cluster, uint64_t key, int32_t to);
/** Whether the directory waits for those who died just now. */
void keys_absences(struct life *life, uint64_t cluster);
/** Whether it still waits for somebody. */
bool keys_wait(const struct life *life, uint64_t cluster);

/* ---- again.c: what goes on to another -------------------------------------------------------- */

/** It may be for another one after the first. */
bool again_may_be(const struct message *message);
/** Its sender is about to choose: notes whether who may be chosen has changed. */
void again_choosing(struct life *from, const struct message *message);
/** A message that may go on has come: once, and in the order of its key. */
void again_delivered(struct life *to, uint32_t message);
/** It was given back by whom its sender did not choose at first, or for whom it did. */
void again_given_back(struct life *from, const struct copy *copy);
/** Whether some receiver has had it, or it has come back. */
bool again_accounted(uint32_t message);

/* ---- slots.c: who owns which slots, as events tell ------------------------------------------- */

void slots_event(struct life *at, const struct ringbus_event *event);
/** All events are told: whether nobody else owns the same by the same snapshot. */
void slots_look(struct life *at);
/** A request came by its key: it is ours, where we refuse others. */
void slots_delivered(struct life *at, const struct ringbus_message *message);
/** Each slot has one owner. NULL, or what is wrong */
const char *slots_settled(unsigned cluster);

/* ---- history.c ------------------------------------------------------------------------ */

/** Most troubles of a history. */
#define TROUBLES_MAX 30U

/**
 * Runs one history. @return whether all guarantees held
 * @param troubles  at most so many, then it is left alone
 * @param skipped   bit i: the trouble of that number is left out
 */
bool history_run(uint64_t seed, unsigned troubles, uint64_t skipped);

#endif
