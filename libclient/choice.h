/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_CHOICE_H
#define RINGBUS_LIBCLIENT_CHOICE_H
/*
 * libclient/choice.h - one instance of several: what is kept of a cluster's snapshot so that a
 * send chooses with a few loads.
 *
 *   snapshot -> router chain (bus/route.h) -> choice: who takes messages, without a key and by key
 *
 * A choice is for messages of one class: most clusters know one only. It is made anew when the
 * snapshot's epoch, a link or a deadline of the chain has changed, never for a message.
 */
#include "bus/balance.h"
#include "bus/route.h"
#include "bus/route_class.h"
#include "bus/table.h"
#include "libclient/bound.h"
#include "libclient/keyed_table.h"

struct rbi_cluster;
struct rbi_end;
struct ringbus;

/**
 * Choices that one cluster keeps; the one unused for longest goes. All canaries and untagged ones
 * (9), by three kinds of messages that rules tell apart, and some that bring a tag of their own.
 */
#define RBI_CHOICES_MAX 32U

/** What the chain asks of a message: all zero is the class of most. */
struct rbi_choice_class {
    uint32_t rules;
    uint32_t canary;
    /* Of those who may not be sent its method (rbi_rights_barred()); 0: all may be sent it. */
    uint64_t barred;
    uint32_t method; /* one of those that are barred so */
    char tag[RBI_LABEL_MAX + 1];
};

/** One whom the chain deals keys to, if it is run with those who died just now. */
struct rbi_keyed_share {
    int32_t instance;
    uint32_t weight;
    bool healthy;
    bool absent;
};

/** By key: slot table over the members that the directory names, whether linked or not. */
struct rbi_keyed {
    struct rbi_keyed_table *shared; /* with other choices; NULL: none yet */
    struct rbi_table table;         /* of it, as the rest up to members */
    uint64_t fingerprint;           /* 0: none yet */
    const uint16_t *owners;
    const struct rbi_table_member *members;
    struct rbi_end **ends; /* by member; NULL: not to be sent to now */
    uint32_t *absent;      /* bit by member: died just now, its slots wait for it */
    uint32_t *shielded;    /* bit by member */
    unsigned room;         /* of members, ends, bits */
    uint8_t stale;         /* RBI_KEYED_*; not 0: the cold way */
    bool self_made;        /* the daemon did not have it */
    struct rbi_bound bound;
    struct rbi_keyed_share *shares;
    unsigned share_count;
    unsigned share_room;
    struct rbi_cluster *realm; /* whose instances those are */
    bool shields_ignored;
};

#define RBI_KEYED_STALE 1U /* to be compared with the entries before the next pick by key */
#define RBI_KEYED_BOUND 2U /* who is too busy is passed over */

/*
 * Loads of so few are copied with each tick, so that a pick touches no line that a receiver
 * writes; of more the two that are drawn are looked at.
 */
#define RBI_LOADS_COPIED 16U

/** What a caller has sent to one and it has not handled, as far as that is known. */
struct rbi_unhandled {
    uint64_t from;  /* written to its lane after that */
    uint32_t count; /* messages */
    uint32_t shown; /* of them the balancer adds to what the receiver says */
};

/** The balancer of messages without a key, over those that are not suspect, or all when all are. */
struct rbi_turns {
    bool stale;  /* to be set up before the next pick */
    bool picked; /* since the last tick */
    unsigned count;
    unsigned room;
    struct rbi_end **ends;
    struct rbi_least_member *members;
    uint32_t *weights;
    struct rbi_unhandled *unhandled;
    void *memory; /* of the balancer */
    size_t memory_bytes;
    struct rbi_balance balance;
    rbi_au64 copies[RBI_LOADS_COPIED][2];
};

/** Whom a chooser of the application is offered (hooks.h). */
struct rbi_offer {
    unsigned count;
    unsigned room;
    struct ringbus_candidate *candidates;
    struct rbi_end **ends;
    struct rbi_offer_texts *texts;
};

struct rbi_choice {
    struct rbi_choice_class class;
    struct rbi_route_memory memory;
    struct rbi_route_entry *entries; /* of the chain's last run */
    unsigned entry_room;
    struct rbi_route_result result;
    struct rbi_cluster *realm; /* whose instances those are that are in */
    uint64_t used;             /* number of the last pick through the cold way */
    bool stale;
    bool by_key;     /* the policy is one by which a key decides */
    bool probe_fits; /* a message of this class may be the probe of that token */
    uint64_t probe;  /* 0: none looked at */
    /* Without a key: usable ends, in order of instance. */
    struct rbi_end **ready;
    uint32_t *weights;
    unsigned ready_count;
    unsigned ready_room;
    struct rbi_turns turns;
    struct rbi_keyed keyed;
    struct rbi_offer offer; /* with balance.mode custom only */
};

/** What a message asks of whoever is chosen. */
struct rbi_pick {
    bool keyed;
    bool spread; /* its key says what it is about, and not who has it: a copy, or a later try */
    uint64_t key;
    const char *tag; /* NULL or "": untagged */
    uint32_t method;
    uint32_t labels[RBI_LABELS_MAX];
    uint64_t trace;       /* rbi_route_trace(): stands for the key where shares are dealt out */
    const int32_t *tried; /* instances that are not to be chosen again, without a key */
    unsigned tried_count;
};

/** What hooks, or a policy that leaves the choice to them, had to do with it. */
enum rbi_hook_refusal {
    RBI_HOOK_NONE = 0,
    RBI_HOOK_REFUSED = 1, /* one refused it */
    RBI_HOOK_BAD = 2,     /* one named nobody that can be sent to */
    RBI_HOOK_NOBODY = 3,  /* custom, and no chooser decides */
    RBI_HOOK_INSIDE = 4,  /* sent inside one */
    RBI_HOOK_ONE = 5,     /* ALL, and one receiver is needed */
};

/** Why the last pick found nobody. */
struct rbi_refusal {
    int error; /* enum ringbus_error; 0: nothing but that nobody is ready */
    int32_t instance;
    uint8_t stage;  /* enum rbi_route_stage */
    uint8_t rule;   /* of the stage; with hook: place of the hook */
    uint8_t hook;   /* enum rbi_hook_refusal */
    int32_t answer; /* of the hook, RBI_HOOK_BAD */
    uint64_t realm; /* cluster of that instance: of another business, perhaps */
};

/** A choice of a class. NULL: no memory. */
struct rbi_choice *rbi_choice_new(struct ringbus *bus, const struct rbi_choice_class *class);
void rbi_choice_free(struct rbi_choice *choice);
/** Runs the chain on the directory as it is, and collects who is linked. @return 0; -ENOMEM */
int rbi_choice_make(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_choice *choice);
/** Whether an instance is one of our targets; left out of a subset it is not. */
bool rbi_choice_targets(const struct rbi_cluster *cluster, int32_t instance);
/**
 * Whether an instance, of @p cluster or of one that it imports, would take messages of this class
 * if it was healthy. Cold: runs the chain; false also without memory.
 */
bool rbi_choice_would_take(struct ringbus *bus,
                           struct rbi_cluster *cluster,
                           struct rbi_choice *choice,
                           uint64_t of,
                           int32_t instance);
/** End of an instance that can be sent to now, or NULL. */
struct rbi_end *rbi_choice_end(const struct rbi_cluster *cluster, int32_t instance);
/** A balancer that has to be set up first; the caller zeroed it. */
void rbi_turns_init(struct ringbus *bus, struct rbi_turns *turns);
void rbi_turns_free(struct rbi_turns *turns);
/** Sets it up over the ends of its choice. @return 0; -ENOMEM */
int rbi_turns_make(const struct rbi_cluster *cluster, struct rbi_choice *choice);
/** Where the receiver says how much it has to do: two words, RBI_LEAST_*. */
const rbi_au64 *rbi_turns_load(const struct rbi_end *end);
/** With each tick: looks anew at what the receivers say of their load, where picks go by it. */
void rbi_turns_look(struct ringbus *bus);
/**
 * The table by key, made anew where members have changed. @return 0; -ENOMEM, then there is none
 */
int rbi_keyed_make(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_choice *choice);
/**
 * Notes whom the keys of a choice are dealt to, after the chain was run for it.
 * @param clusters  those of the input, in its order
 * @return false: no memory
 */
bool rbi_keyed_deal(struct rbi_choice *choice,
                    const struct rbi_route_input *input,
                    struct rbi_cluster *const *clusters);
void rbi_keyed_free(struct rbi_keyed *keyed);
/** Instance of @p cluster that has a key by the table of the last pick; 0: none, or no table. */
int32_t rbi_keyed_owner(const struct rbi_choice *choice, uint64_t cluster, uint64_t key);
/** The owner of the key cannot be sent to: another rank, where the policy has it, or why not. */
struct rbi_end *
rbi_keyed_elsewhere(struct rbi_cluster *cluster, const struct rbi_choice *choice, uint64_t key);

#endif
