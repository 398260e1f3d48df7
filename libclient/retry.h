/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_RETRY_H
#define RINGBUS_LIBCLIENT_RETRY_H
/*
 * libclient/retry.h - requests that are asked as often as the policy of their cluster allows
 * (ringbus_request_with()). Each try is a call of its own (request.h); this lies above.
 */
#include "bus/policy.h"
#include "bus/record_attributes.h"
#include "bus/retry_budget.h"

#include <ringbus/ringbus.h>

struct rbi_cluster;
struct rbi_end;

/** Instances that one request is asked of at most, broadcasts apart. */
#define RBI_TRIES_MAX 8U
/** Requests of a handle that wait for a link at once. */
#define RBI_WAITING_MAX 1024U

/** What a caller keeps of a cluster that it asks. */
struct rbi_caller {
    enum ringbus_retry retry; /* of the target; AUTO: as the policy of the bus says */
    uint32_t retry_tries;     /* beyond the first; 0: as the policy says */
    uint32_t wait_ms;
    bool divert; /* a key whose owner is out of reach goes elsewhere after that */
    struct rbi_retry_budget budget;
    unsigned kept;                   /* messages in bus->kept (failback.c) */
    uint64_t kept_pass;              /* of that list, which could not send the first of them */
    struct rbi_degrade_rules *rules; /* of ringbus_degrade(); NULL: none */
};

enum rbi_ask_state {
    RBI_ASK_ASKED = 0,   /* calls of it are under way */
    RBI_ASK_WAITING = 1, /* for a link; asked again when one comes */
    RBI_ASK_ENDING = 2,  /* its callback is due: not from within the call that began it */
    RBI_ASK_ENDED = 3,   /* told; calls of it may be under way */
};

/** A request of ringbus_request_with(). */
struct rbi_ask {
    struct rbi_ask *next; /* in bus->asks */
    struct rbi_ask *previous;
    ringbus_reply_fn on_reply;
    void *context;
    struct ringbus_addr to;
    uint64_t key;
    unsigned flags; /* RINGBUS_KEY, _IDEMPOTENT */
    struct rbi_attributes attributes;
    struct ringbus_attributes shown;
    uint64_t context_deadline_ns; /* of the message whose callback began it; 0: none */
    uint64_t started_ns;
    uint64_t deadline_ns;     /* over all tries */
    uint64_t try_timeout_ns;  /* 0: all the time there is */
    uint64_t wait_until_ns;   /* WAITING */
    uint64_t due_ns;          /* RBI_NEVER: nothing but its calls moves it */
    struct ringbus_addr peer; /* last asked */
    uint8_t state;            /* enum rbi_ask_state */
    uint8_t mode;             /* enum rbi_retry_mode, never AUTO */
    uint8_t tries_left;
    uint8_t tried_count;
    bool once;        /* no instance twice */
    bool owner_again; /* NOT_OWNER was followed once */
    bool following;   /* now: its owner is looked up anew */
    bool again;       /* what is sent next is a retry */
    bool diverting;   /* the owner of its key is out of reach, and others may be asked */
    int32_t tried[RBI_TRIES_MAX];
    uint32_t tries;
    uint32_t under_way;
    int doubt; /* of a try that may have been handled: then no later one makes it NOT_SENT */
    int error; /* of the first that failed: BROADCAST; of what ends it: ENDING */
    enum ringbus_outcome outcome;
    uint32_t retry_after_ms;
    unsigned part_count;
    uint64_t part_sizes[RINGBUS_PARTS_MAX];
    uint64_t size;
    unsigned char *payload;
    uint64_t payload_room;
};

struct rbi_asks {
    struct rbi_ask *first;
    struct rbi_ask *last;
    struct rbi_ask *spare; /* kept for the next ones */
    unsigned count;        /* not ENDED */
    unsigned waiting;
    unsigned spare_count;
    uint64_t due_ns;
};

/* ---- ask.c, ask_wait.c ---------------------------------------------------------------------- */

/** A new one with room for its payload, in the list; NULL: no memory. */
struct rbi_ask *rbi_ask_obtain(struct rbi_asks *asks, uint64_t size);
/** Forgets it: none of its calls is under way, and its callback is not called. */
void rbi_ask_release(struct rbi_asks *asks, struct rbi_ask *ask);
/** Asks as many at once as its mode says. 0; a public error (noted): nobody was asked */
int rbi_ask_first(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns);
/** Nobody can take it now: it waits, or goes elsewhere, if its target says so. 0; the error */
int rbi_ask_wait(struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns);
/** Whether another with the same key waits: it goes first. */
bool rbi_ask_is_behind(const struct ringbus *bus, const struct rbi_ask *ask);
/** Has the next tick end it, as not sent. */
void rbi_ask_end_later(struct ringbus *bus, struct rbi_ask *ask, int error);
/** It is looked at then. */
void rbi_ask_set_due(struct ringbus *bus, struct rbi_ask *ask, uint64_t due_ns);
/** It has ended so: tells the application, and frees it, or what is under way of it does later. */
void rbi_ask_end(struct ringbus *bus, struct rbi_ask *ask, const struct ringbus_result *how);
/** Looks at those that are due. In poll only. @return when to look again */
uint64_t rbi_asks_tick(struct ringbus *bus, uint64_t now_ns);
/** A link has become usable: whoever waits is asked again by the next tick. */
void rbi_asks_link_up(struct ringbus *bus);
/** Ends those that no call ends. */
void rbi_asks_end_all(struct ringbus *bus, int error);
void rbi_asks_deinit(struct ringbus *bus);

/* ---- ask_begin.c --------------------------------------------------------------------------- */

/** Begins one: arguments are checked, options are whole. 1; a public error (noted) */
int rbi_ask_begin(struct ringbus *bus,
                  const struct ringbus_addr *to,
                  const struct ringbus_part *parts,
                  unsigned part_count,
                  uint64_t size,
                  const struct ringbus_message_options *options,
                  ringbus_reply_fn on_reply,
                  void *context);

/* ---- retry.c -------------------------------------------------------------------------------- */

/** What is kept of a cluster that is asked; NULL: no memory. */
struct rbi_caller *rbi_caller_of(struct rbi_cluster *cluster);
void rbi_caller_free(struct rbi_caller *caller);
/** Takes the options of a target. 0; RINGBUS_E_ARGUMENT, _NO_MEMORY (noted) */
int rbi_caller_target(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct ringbus_target_options *options);
/** Requests to it are more than calls: sets cluster->managed anew, also after a new policy. */
void rbi_caller_changed(struct rbi_cluster *cluster);
/** What the bus's configuration says of retries to a cluster, or its defaults. */
const struct rbi_retry_policy *rbi_retry_policy_of(const struct rbi_cluster *cluster);
/** Sets mode and number of tries of a new request. */
void rbi_retry_begin(struct rbi_ask *ask, struct rbi_cluster *cluster);
/** Whether one that ended so may be asked again, and takes it from the budget. */
bool rbi_retry_allowed(struct ringbus *bus,
                       struct rbi_ask *ask,
                       enum ringbus_outcome outcome,
                       int error,
                       uint64_t now_ns);
/** Whom to ask next. 0; a public error (noted) */
int rbi_retry_choose(struct ringbus *bus, struct rbi_ask *ask, struct rbi_end **out);
/** Tells the budget how a try ended. */
void rbi_retry_note(struct ringbus *bus,
                    const struct rbi_ask *ask,
                    enum ringbus_outcome outcome,
                    int error);

#endif
