/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_INTERNAL_H
#define RINGBUS_LIBCLIENT_INTERNAL_H
/*
 * libclient/internal.h - what the files of libringbus share. One handle (struct
 * ringbus) owns everything below it; nothing is global, nothing is locked.
 *
 *   bus ── control    connection to ringbusd (control.c, control_*.c)
 *       ── ends       our end of each link (end*.c, undelivered.c), by address in `peers`
 *       ── clusters   what we know of each cluster that we target (cluster.c, target.c)
 *       ── calls      requests that wait for their reply (calls.c)
 *       ── asks       requests that may take several of those (ask.c)
 *       ── pool, page our own shared memory
 *
 * Callbacks run in ringbus_poll() only; ends are freed there only, after the
 * last callback that could hold them (reap in poll.c).
 */
#include "bus/directory.h"
#include "bus/hrw.h"
#include "bus/link.h"
#include "bus/pidf.h"
#include "bus/record.h"
#include "bus/wire.h"
#include "bus/wire_stream.h"
#include "libclient/attributes.h"
#include "libclient/bound.h"
#include "libclient/choice.h"
#include "libclient/cluster.h"
#include "libclient/control.h"
#include "libclient/degrade.h"
#include "libclient/drain.h"
#include "libclient/end.h"
#include "libclient/explain.h"
#include "libclient/failback.h"
#include "libclient/gate.h"
#include "libclient/health.h"
#include "libclient/hooks.h"
#include "libclient/labels.h"
#include "libclient/limit.h"
#include "libclient/load.h"
#include "libclient/nodes.h"
#include "libclient/outcome.h"
#include "libclient/owned.h"
#include "libclient/probe.h"
#include "libclient/request.h"
#include "libclient/retry.h"
#include "libclient/rights.h"
#include "libclient/undelivered.h"
#include "libclient/watched.h"
#include "shm/barrier.h"
#include "shm/bell.h"
#include "shm/handoff.h"
#include "shm/lane.h"
#include "shm/layout.h"
#include "shm/pool.h"
#include "shm/segment.h"

#include <ck_hs.h>
#include <ringbus/ringbus.h>
#include <string.h>

#define RBI_GUARD_ALIVE UINT64_C(0x72696e6762757331)
#define RBI_NS_PER_MS   UINT64_C(1000000)
#define RBI_NEVER       UINT64_MAX
/* What a tick comes later than this after its deadline, or a handler takes, is told as late. */
#define RBI_LATE_NS (10 * RBI_NS_PER_MS)

/* Most messages that one link may deliver before the next has its turn. */
#define RBI_BATCH_MAX 256U
/*
 * Of what it has read a receiver may keep so much to itself from one poll to the next, and an
 * eighth of the lane at most; while it reads on, no more than a quarter.
 */
#define RBI_UNSAID_BYTES UINT64_C(8192)
/* Quiet links that one poll looks at beside the active ones (turn.c). */
#define RBI_SWEEP 2U
/* Of so many links each look misses the caches and the page tables: one a poll. */
#define RBI_SWEEP_MANY 2048U
/* Longest time that a receiver holds references before its share of the pool is limited. */
#define RBI_HOLDS_NS (50 * RBI_NS_PER_MS)
/* Peers that a send finds without a look-up: power of two. */
#define RBI_RECENT 64U

struct rbi_cluster;
struct rbi_member;
struct rbi_view;

/** Events wait here until ringbus_poll() can call back: never from inside our own tables. */
struct rbi_queued_event {
    enum ringbus_event_type type;
    enum ringbus_reason reason;
    int error;
    uint32_t silent_ms;
    bool paused;
    struct ringbus_slot_range *slots; /* from malloc; or NULL */
    size_t slot_count;
    uint64_t epoch;
    struct rbi_node_news *node; /* from malloc; or NULL */
    struct rbi_node_call *call; /* not an event, but the end of that; or NULL */
    struct rbi_pidf peer;
    char path[RBI_PATH_MAX + 1];
};

struct rbi_events {
    struct rbi_queued_event *items;
    unsigned first;
    unsigned count;
    unsigned room;
    bool lost; /* no memory for one: a RESYNC is reported instead */
};

/** How long to look before sleeping, as learned (spin.c). */
struct rbi_spin {
    uint32_t most_us;
    uint32_t now_us;
    uint32_t holiday;  /* waits without spinning that are left */
    uint32_t rest;     /* length of the last holiday; 0 after a success */
    uint32_t failures; /* spins in a row that found nothing */
    uint64_t received; /* messages when the last wait began */
};

struct rbi_bus_error {
    int code;
    bool formatted;
    struct rbi_pidf peer; /* for the unformatted ones */
    uint64_t value;
    char text[512];
};

struct ringbus {
    /* Hot: read by every call. */
    const rbi_au64 *guard;              /* a page that the kernel wipes in the child of a fork */
    struct rbi_cluster *last_cluster;   /* cache of the last lookup */
    struct rbi_end *recent[RBI_RECENT]; /* and of the last peers, each in its place */
    struct rbi_end **ends;              /* LINKED and LEAVING ones */
    uint64_t *due;                      /* when each is to be looked at next, by its position */
    unsigned end_count;
    unsigned end_room;
    unsigned next_end;     /* where the next poll starts */
    unsigned active_count; /* of ends: those that every poll looks at */
    unsigned next_quiet;   /* where the next sweep of the others goes on */
    unsigned tick_countdown;
    unsigned idle_turns; /* looks that found nothing, and sends that found no room */
    unsigned tick_polls; /* polls between two ticks, adapted to the pace of the caller */
    uint32_t inline_max;
    uint64_t size_max; /* largest payload */
    bool busy_mode;
    bool in_callback;
    bool reap_needed;
    bool woken;         /* ringbus_wake() was called */
    bool external_loop; /* ringbus_fd() was called */
    bool balance_all;   /* some target's balance.mode is all, or was */
    bool probing;       /* a request may be the probe that the daemon asked for */
    bool polling;       /* inside ringbus_poll(), which prepares an external loop at its end */
    bool measured;      /* messages said how long they had waited, since the lanes were empty */
    bool chunk_starved; /* a send found no chunk, or no slot for one */
    uint64_t returned;  /* references and chunks that came back so far */
    uint64_t returned_until; /* of them, when chunk_starved was set */
    uint64_t now_ns;         /* as of the last tick */
    uint64_t core;           /* as told in the page */
    uint64_t load_depth;     /* messages that waited at the last tick (load.c) */
    uint64_t load_begin_ns;  /* when the poll of that tick began to read */
    uint64_t load_ewma_ns;   /* that one takes; 0: unknown */
    uint64_t next_deadline_ns;
    uint64_t target_due_ns; /* when a member is to be introduced, or one that is lost dropped */
    uint64_t late_ns;       /* the most by which a tick came late, of the last seconds */
    uint64_t late_at_ns;    /* and when that was */
    uint64_t counters[RBI_COUNTER_COUNT];
    struct rbi_end *dirty;    /* ends with unrung records */
    struct rbi_end *blocked;  /* ends that a send found full */
    struct rbi_end *residues; /* ended links with payloads out */
    struct rbi_page *page;    /* own, writable */
    struct rbi_pool pool;
    struct rbi_calls calls;
    struct rbi_asks asks;
    struct rbi_outcome_table outcomes;
    struct rbi_probe probe;
    struct rbi_kept_messages kept;
    struct rbi_events events;
    ringbus_message_fn on_message;
    ringbus_event_fn on_event;
    void *user;
    /* What messages sent by the running callback inherit; NULL: nothing. */
    const struct rbi_attributes *inherited;

    /* Cold. */
    struct rbi_pidf self;
    char self_path[RBI_PATH_MAX + 1];
    struct rbi_segment page_segment;
    struct rbi_segment directory_segment;
    struct rbi_directory_view directory;
    struct rbi_segment held_segment; /* of the daemon before; base NULL: none is held */
    struct rbi_directory_view held_directory;
    struct rbi_pidf *gone; /* whose links told of their end while no daemon could */
    unsigned gone_count;
    uint64_t directory_revision; /* as of the last look */
    uint64_t picks;              /* number of the last pick that took the cold way */
    uint64_t sweep_ns;           /* when who was not named by a new daemon is dropped; RBI_NEVER */
    bool directory_mapped;
    void *guard_page;
    ck_hs_t peers; /* &end->peer of every end, by (cluster, instance) */
    struct rbi_end *loop_end;
    struct rbi_cluster **clusters;
    unsigned cluster_count;
    struct rbi_watches watches;
    struct rbi_nodes nodes;
    struct rbi_hooks *hooks; /* NULL: ringbus_hook() was not called */
    struct rbi_owned *owned; /* NULL: the option slots was not given */
    struct rbi_control control;
    int epoll;
    int wake;  /* eventfd of our own, never handed out */
    int timer; /* timerfd for external loops, -1 until asked for */
    uint64_t timer_armed_ns;
    uint64_t idle_since_ns;   /* when messages last came, as far as ticks saw */
    uint64_t last_epoll_ns;   /* when the kernel was last asked for news */
    uint64_t published_ns;    /* when the counters were last copied into the page */
    uint64_t traffic_at_tick; /* to tell a quiet time from a busy one */
    uint32_t state;           /* enum rbi_endpoint_state */
    uint32_t lane_bytes;
    uint32_t refs_per_link;
    uint32_t spin_us;
    struct rbi_spin spin;
    uint64_t core_traffic; /* messages so far, at the last question whose core this is */
    uint32_t core_in_vain; /* times in a row that the core was given away, and nothing came */
    uint32_t core_partner; /* the peer last asked */
    uint32_t core_holiday; /* waits without giving way that are left */
    uint32_t weight;
    struct rbi_link_terms terms;
    bool terms_from_daemon; /* the application named neither interval nor misses */
    bool hold;              /* we may be stopped in a debugger: peers are told */
    bool hold_from_daemon;  /* neither option nor environment says so */
    uint64_t alive_due_ns;  /* when ringbus_alive() is to look at the links again */
    uint64_t random;
    unsigned introducing;  /* INTRODUCE sent, not answered yet */
    uint64_t link_lives;   /* ends made so far */
    unsigned holding;      /* ends with holds */
    unsigned redelivering; /* ends with again */
    uint64_t again_number; /* of the last of those */
    struct rbi_view *view; /* of the message whose callback runs */
    uint64_t life;         /* tells loans of this handle from another's */
    bool closing;          /* also when another has taken our name over (rights.c) */
    bool takeover;         /* REGISTER asks for the name of a living instance as well */
    struct rbi_drain drain;
    bool daemon_lost_pending; /* events that the next poll reports */
    bool daemon_back_pending;
    char socket_path[RBI_SOCKET_PATH_MAX + 1];
    char *set;
    char *idc;
    char *tags;
    struct rbi_labels labels; /* as a caller */
    char *token;
    char program[64];
    struct rbi_bus_error error;
    struct rbi_limit_refusal refusal;
    struct rbi_gate gate;
#ifdef RBI_DEBUG
    _Atomic(uint64_t) user_thread; /* thread inside a call now; 0 = none */
    unsigned user_depth;
#endif
};

/* ---- error.c --------------------------------------------------------------------------- */

/** Notes a failure with a sentence and returns @p code. Cold paths. */
RBI_COLD int rbi_fail(struct ringbus *bus, int code, const char *format, ...) RBI_PRINTF(3, 4);
/** Notes a failure without formatting anything; ringbus_errmsg() makes the sentence. Hot paths. */
int rbi_fail_fast(struct ringbus *bus, int code, const struct rbi_pidf *peer, uint64_t value);
/** Public code for a negative errno of ours, noting the sentence "@p what: strerror". */
RBI_COLD int rbi_fail_errno(struct ringbus *bus, int negative_errno, const char *what);
/** Sentence of the last ringbus_open() that failed in this thread. */
void rbi_open_error_set(const char *text);

/* ---- close.c ---------------------------------------------------------------------------- */

/** Frees a handle with its ends, also one that ringbus_open() could not finish. */
void rbi_handle_free(struct ringbus *bus);

/* ---- drain.c ---------------------------------------------------------------------------- */

static inline bool rbi_draining(const struct ringbus *bus)
{
    return bus->drain.asked || bus->drain.ordered;
}
/** ringbus_close() begins to drain, or goes on with a drain that was done once. */
void rbi_drain_close(struct ringbus *bus);
/** DRAIN_ORDER of the daemon. */
void rbi_drain_order(struct ringbus *bus, const struct rbi_wire_drain_order *body);
/** A link has become usable, or a peer uses it (again): it is told if we drain. */
void rbi_drain_greet(struct ringbus *bus, struct rbi_end *end);
/** A DRAIN record. Untrusted. */
void rbi_drain_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);
/** Looks how far we are, when that is due. @return when to look again */
uint64_t rbi_drain_tick(struct ringbus *bus, uint64_t now_ns);
/** A new daemon knows nothing of the order: it is told how far we are. */
void rbi_drain_resend(struct ringbus *bus);

/* ---- guard.c: wrong process, wrong thread ---------------------------------------------- */

/** The handle of a call that promises its user not to change it, for our own bookkeeping. */
static inline struct ringbus *rbi_mutable(const struct ringbus *bus)
{
    union {
        const struct ringbus *lent;
        struct ringbus *own;
    } handle = {.lent = bus};
    return handle.own;
}

/** First thing in every public call: 0, or the error to return. One load in release builds. */
static inline int rbi_enter(const struct ringbus *bus);
static inline void rbi_leave(const struct ringbus *bus);
#ifdef RBI_DEBUG
int rbi_debug_enter(struct ringbus *bus);
void rbi_debug_leave(struct ringbus *bus);
#endif

static inline int rbi_enter(const struct ringbus *bus)
{
    if (RBI_UNLIKELY(bus == NULL)) {
        return RINGBUS_E_ARGUMENT;
    }
    if (RBI_UNLIKELY(rbi_load_rlx(bus->guard) != RBI_GUARD_ALIVE)) {
        return RINGBUS_E_WRONG_PROCESS;
    }
#ifdef RBI_DEBUG
    return rbi_debug_enter(rbi_mutable(bus));
#else
    return 0;
#endif
}

static inline void rbi_leave(const struct ringbus *bus)
{
#ifdef RBI_DEBUG
    rbi_debug_leave(rbi_mutable(bus));
#else
    (void)bus;
#endif
}

/* ---- stats.c --------------------------------------------------------------------------- */

static inline void rbi_count(struct ringbus *bus, enum rbi_counter counter, uint64_t n)
{
    bus->counters[counter] += n;
}
/** Copies the counters into the page, for tools. Now and then, never per message. */
void rbi_counters_publish(struct ringbus *bus);

/* ---- clock.c --------------------------------------------------------------------------- */

uint64_t rbi_now_ns(void);
static inline uint32_t rbi_ms_of(uint64_t ns)
{
    return (uint32_t)rbi_min_u64(ns / RBI_NS_PER_MS, UINT32_MAX);
}
/** Cheaper and up to a few milliseconds old; never ahead. */
uint64_t rbi_now_coarse_ns(void);
/** Uniform below @p bound, for jitter. */
uint64_t rbi_random_below(struct ringbus *bus, uint64_t bound);
/** An external loop waits on our descriptor: makes its timer follow the next deadline. */
void rbi_wait_rearm(struct ringbus *bus);
/** An external loop waits on our descriptor: makes it readable, so that it polls. */
void rbi_wait_nudge(struct ringbus *bus);
/** Moves the handle's next deadline forward to at most @p deadline_ns. For what is in no table. */
static inline void rbi_deadline_at_most(struct ringbus *bus, uint64_t deadline_ns)
{
    if (deadline_ns < bus->next_deadline_ns) {
        bus->next_deadline_ns = deadline_ns;
        if (RBI_UNLIKELY(bus->external_loop && !bus->polling)) {
            rbi_wait_rearm(bus);
        }
    }
}

/** The same for the introductions of members. */
static inline void rbi_target_at_most(struct ringbus *bus, uint64_t deadline_ns)
{
    bus->target_due_ns = rbi_min_u64(bus->target_due_ns, deadline_ns);
    rbi_deadline_at_most(bus, deadline_ns);
}
/** The same for one end, which is in the table. */
static inline void rbi_due_at_most(struct ringbus *bus, const struct rbi_end *end, uint64_t due_ns)
{
    bus->due[end->position] = rbi_min_u64(bus->due[end->position], due_ns);
    rbi_deadline_at_most(bus, due_ns);
}

/* ---- control.c, control_frames.c: the connection to ringbusd ---------------------------- */

/** Connects and says HELLO; what the daemon answers waits in the socket. 0 or a public error. */
int rbi_control_connect(struct ringbus *bus, uint64_t deadline_ns);
/** Registers, once page and pool are there. @param timeout_ms  for the text. 0 or a public error */
int rbi_control_register(struct ringbus *bus, uint64_t deadline_ns, uint32_t timeout_ms);
void rbi_control_close(struct ringbus *bus);
/** Reads and handles what the daemon sent. */
void rbi_control_input(struct ringbus *bus);
/** Reconnects when its time has come; times out a handshake. */
void rbi_control_tick(struct ringbus *bus, uint64_t now_ns);
uint64_t rbi_control_deadline_ns(const struct ringbus *bus);
/**
 * Queues and tries to send a frame; descriptors are borrowed. @return its serial, 0 when not
 * connected, or not registered yet and the frame is not HELLO or REGISTER
 */
uint32_t rbi_control_send(struct ringbus *bus,
                          enum rbi_wire_type type,
                          const void *body,
                          const int *fds,
                          unsigned fd_count);
void rbi_control_flush(struct ringbus *bus);
/** The connection ended or broke the rules. */
void rbi_control_lost(struct ringbus *bus, const char *why);
/** One frame of the daemon; @p fds are the frame's, taken out as needed. */
void rbi_control_frame(struct ringbus *bus,
                       const struct rbi_wire_header *header,
                       const union rbi_wire_body *body,
                       struct rbi_fdlist *fds);
/** Sends HELLO / everything that a (re)connected daemon must know. */
void rbi_control_hello(struct ringbus *bus);
void rbi_control_state(struct ringbus *bus, uint32_t state);

/* ---- end.c: memory of a link ------------------------------------------------------------ */

/** Creates our own side and its end, without a peer yet. NULL on failure (error noted). */
struct rbi_end *rbi_end_new(struct ringbus *bus, const struct rbi_pidf *peer, const char *path);
/**
 * Maps what the peer gave, as far as an idle link needs it. 0; public error (noted, nothing
 * kept). @p pool_fd is taken over, and -1 then; the others are borrowed.
 */
int rbi_end_attach(struct ringbus *bus,
                   struct rbi_end *end,
                   int side_fd,
                   uint64_t side_bytes,
                   int *pool_fd,
                   uint64_t pool_bytes,
                   int page_fd);
/** The first message is sent: maps our lane whole. 0, also if it is; public error (noted). */
RBI_COLD int rbi_end_open_tx(struct ringbus *bus, struct rbi_end *end);
/** A message comes: maps the peer's lane whole. 0, also if it is; -errno: try again. */
RBI_COLD int rbi_end_open_rx(struct rbi_end *end);
/** A payload comes by reference: maps the peer's pool. 0, also if it is; -errno: try again. */
RBI_COLD int rbi_end_open_pool(struct rbi_end *end);
/** Makes the link to ourselves. NULL on failure (error noted). */
struct rbi_end *rbi_end_new_loop(struct ringbus *bus);
/** Adds an attached end to the polled ones; takes over its bell. */
int rbi_end_activate(struct ringbus *bus, struct rbi_end *end, int bell);
/** Unlinks and frees; only from the reaper, the opening path and close. */
void rbi_end_free(struct ringbus *bus, struct rbi_end *end);
void rbi_peer_pool_unref(struct rbi_peer_pool *pool);
struct rbi_end *rbi_end_find(struct ringbus *bus, uint64_t cluster, int32_t instance);
unsigned long rbi_end_hash(uint64_t cluster, int32_t instance);
/** In the child of a fork: closes our copies of the descriptors, frees, touches nothing shared. */
void rbi_close_in_child(struct ringbus *bus);
struct rbi_end *rbi_end_find_link(struct ringbus *bus, uint64_t link_id);
struct rbi_end *rbi_end_find_serial(struct ringbus *bus, uint32_t serial);
int rbi_end_index(struct ringbus *bus, struct rbi_end *end);
/** Takes an end out of the look-up; it stays polled until the reaper has it. */
void rbi_end_unindex(struct ringbus *bus, struct rbi_end *end);

/* ---- residue.c: payloads that outlive their link ------------------------------------------ */

/** Most ended links with one peer whose payloads are out, before a new one is refused. */
#define RBI_RESIDUES_MAX 4U
/**
 * The end is about to be freed: while somebody may still read payloads of it, keeps what
 * they need, and their chunks. @return whether it was kept; it is freed by itself later
 */
bool rbi_residue_keep(struct ringbus *bus, struct rbi_end *end);
/** The peer of a residue has ended its side of the bell. */
void rbi_residue_hung_up(struct ringbus *bus, struct rbi_end *end);
/** A payload that was kept from that life of a link is released. */
void rbi_residue_released(struct ringbus *bus, uint64_t link_life);
/** Whether that peer holds payloads of too many earlier links to be given another. */
bool rbi_residue_limit(const struct ringbus *bus, const struct rbi_pidf *peer);
void rbi_residue_free_all(struct ringbus *bus);

/* ---- turn.c: whose lane a poll looks at -------------------------------------------------- */

void rbi_turn_add(struct ringbus *bus, struct rbi_end *end);
void rbi_turn_remove(struct ringbus *bus, struct rbi_end *end);
/** Something was found in its lane, or is to be done with it. */
void rbi_turn_promote(struct ringbus *bus, struct rbi_end *end);
/** Nothing was found. @return true when it became quiet: another end is in its place now */
bool rbi_turn_found_empty(struct ringbus *bus, struct rbi_end *end);

/* ---- core.c: giving way to a peer that shares our core ------------------------------------ */

/** Tells peers which core we run on; writes only when that has changed. */
void rbi_core_publish(struct ringbus *bus);
/** A poll found nothing or a send no room: now and then, gives the core to a peer that is on it. */
void rbi_core_idle_turn(struct ringbus *bus);
/** Before sleeping: gives way some times. @return true when something is there */
bool rbi_core_give_way(struct ringbus *bus, uint64_t now_ns);

static inline unsigned rbi_sweep(const struct ringbus *bus)
{
    return bus->end_count < RBI_SWEEP_MANY ? RBI_SWEEP : 1U;
}

/* ---- end_control.c: READY, PING, DISCONNECT --------------------------------------------- */

/** Feeds the state machine and carries out what it says. */
void rbi_end_step(struct ringbus *bus, struct rbi_end *end, const struct rbi_link_input *input);
/** A control record came in. */
void rbi_end_control_record(struct ringbus *bus,
                            struct rbi_end *end,
                            const struct rbi_record *record);
/** An unasked PONG: we work, though we do not poll. */
void rbi_end_say_alive(struct ringbus *bus, struct rbi_end *end);
/** Sends control records that found no room before. */
void rbi_end_flush_pending(struct ringbus *bus, struct rbi_end *end);
/** The peer is dead or gone: read its lane to the end, then close. Callable from anywhere. */
void rbi_end_peer_gone(struct ringbus *bus, struct rbi_end *end, enum rbi_reason reason);
/** What the peer sent cannot be mapped, and has not been for a while: ends the link. */
void rbi_end_starved(struct ringbus *bus, struct rbi_end *end);
/** The peer gave us up while we did not run, and has taken back what we had not begun to read. */
RBI_COLD void rbi_end_withdrawn(struct ringbus *bus, struct rbi_end *end);
/** The peer broke the rules. */
void rbi_end_bad_peer(struct ringbus *bus, struct rbi_end *end, const char *what);

/* ---- undelivered.c: what a peer that is gone had not consumed ----------------------------- */

/** Lane of a leaving end is empty: give back what was not read, report, close. In poll only. */
void rbi_end_finish_leaving(struct ringbus *bus, struct rbi_end *end);
/** It never became usable, and nothing is left that could say otherwise. */
void rbi_end_report_failed(struct ringbus *bus, struct rbi_end *end);
/** The first message from @p position on that was not consumed. @return whether there is one */
bool rbi_unread_next(struct ringbus *bus,
                     struct rbi_end *end,
                     const struct rbi_unread *unread,
                     uint64_t position,
                     struct rbi_returned *out);
/** Tells the application of one: an event, or the end of a request. In poll only. */
void rbi_give_back(struct ringbus *bus, struct rbi_end *end, struct rbi_returned *returned);

/* ---- redeliver.c: what another instance of the cluster is to get ------------------------- */

/** An end begins to leave: nothing new goes to any of its cluster before what it had goes on. */
void rbi_redeliver_hold(struct ringbus *bus, struct rbi_end *end);
/** Whether a cluster is held by one of its ends. */
bool rbi_redeliver_holds(const struct ringbus *bus, uint64_t cluster);
/** A send to any instance of a held cluster: a public error (noted). */
RBI_COLD int rbi_redeliver_refuse(struct ringbus *bus, const struct rbi_cluster *cluster);
/** Sends one on, or keeps it waiting for that. @return false: it is to be given back. In poll */
bool rbi_redeliver(struct ringbus *bus,
                   struct rbi_end *end,
                   struct rbi_unread *unread,
                   const struct rbi_returned *returned);
/** Tries those again that wait. In poll only. */
void rbi_redeliver_step(struct ringbus *bus);
/** Has the next step made, when something waits. @return when to tick again */
uint64_t rbi_redeliver_tick(struct ringbus *bus);
/** Nothing of this end waits any more: the cluster is free. */
void rbi_redeliver_end(struct ringbus *bus, struct rbi_end *end);

/* ---- terms.c: by what links are judged ---------------------------------------------------- */

/** Takes the options of a handle. 0; RINGBUS_E_ARGUMENT (noted) */
int rbi_terms_open(struct ringbus *bus, const struct ringbus_options *options);
/** Takes the options of a target. 0; RINGBUS_E_ARGUMENT (noted) */
int rbi_terms_target(struct ringbus *bus,
                     const struct ringbus_target_options *options,
                     struct rbi_target_terms *out);
/** What the daemon says for all that the application left open, now or after a reload. */
void rbi_terms_from_daemon(struct ringbus *bus, const struct rbi_wire_hello_ok *body);
/** Those of a member: its own, or its cluster's. */
const struct rbi_link_terms *rbi_terms_of(const struct rbi_cluster *cluster,
                                          const struct rbi_member *member);
/** Opens our use of a link with these terms; a use that has them already stays as it is. */
void rbi_terms_say(struct ringbus *bus, struct rbi_end *end, const struct rbi_link_terms *terms);

/* ---- cluster.c, target.c ---------------------------------------------------------------- */

struct rbi_cluster *rbi_cluster_find(struct ringbus *bus, uint64_t id);
struct rbi_member *rbi_member_find(const struct rbi_cluster *cluster, int32_t instance);
/**
 * Adds an absent member in its place; NULL: no memory. Moves the others: pointers to members end.
 */
struct rbi_member *rbi_member_add(struct rbi_cluster *cluster, int32_t instance);
void rbi_cluster_free(struct rbi_cluster *cluster);
/** A cluster that is not known yet, without interest in it. NULL: no memory. */
struct rbi_cluster *rbi_cluster_add(struct ringbus *bus, const char *path);
/** Interest in all instances, present and future. */
void rbi_cluster_want_all(struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          const struct rbi_target_terms *target);
/** Ends that, and, with the next reap, the cluster, unless instances of it are targeted. */
void rbi_cluster_narrow(struct ringbus *bus, struct rbi_cluster *cluster);
/** Frees those that nobody wants any more. By the reaper only: nobody walks or uses any. */
void rbi_clusters_reap(struct ringbus *bus);
/** Makes the choices of a cluster fresh: what was chosen before does not count any more. */
void rbi_cluster_refresh(struct ringbus *bus, struct rbi_cluster *cluster);
/** The end for a key, or one of those that take messages without; NULL: cluster->refusal. */
struct rbi_end *
rbi_cluster_pick(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key);
/** The same for a message that says more of itself. Cold. */
struct rbi_end *
rbi_cluster_pick_for(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_pick *pick);
/** Its choices are to be made anew, and those of the clusters that import it. */
void rbi_cluster_changed(struct ringbus *bus, struct rbi_cluster *cluster);
/** An end became suspect or stopped being so: who is next in turn is to be chosen anew. */
void rbi_cluster_suspicion(struct ringbus *bus, const struct rbi_end *end);
/** The same in a cluster that is held and refreshed, for what it is held for. */
struct rbi_end *
rbi_cluster_pick_held(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key);
/** Whether a pick is not to find this one. */
bool rbi_pick_tried(const struct rbi_pick *pick, const struct rbi_end *end);
/**
 * What a message is chosen from, after the application's routers; not for one that is held.
 * @param routed  what they made of it. NULL: they named somebody there, or cluster->refusal
 */
struct rbi_choice *rbi_cluster_choice_for(struct ringbus *bus,
                                          struct rbi_cluster *cluster,
                                          const struct rbi_pick *pick,
                                          struct rbi_routed *routed);
struct rbi_end *rbi_cluster_pick_held_for(struct ringbus *bus,
                                          struct rbi_cluster *cluster,
                                          const struct rbi_pick *pick);

/** The choices are to be made anew at that time at the latest. */
void rbi_cluster_again(struct ringbus *bus, struct rbi_cluster *cluster, uint64_t due_ns);
/** It died, and no daemon was there to say so: its slots of the hash table wait for it here. */
void rbi_cluster_miss(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct rbi_member *member);

/* ---- subset.c, and of interest.c what it needs -------------------------------------------- */

/**
 * Notes whom the chain's entries leave us to link to. @return false: no memory
 * @param instances  of the cluster itself, the first of the chain's
 */
bool rbi_subset_choose_of(const struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          const struct rbi_route_entry *entries,
                          unsigned count,
                          const struct rbi_directory_instance *instances);
/** The policy may say another number now. */
void rbi_subset_follow(struct ringbus *bus, struct rbi_cluster *cluster);
/** Brings the links in line, when something has changed. */
void rbi_subset_tick(struct ringbus *bus, struct rbi_cluster *cluster);
void rbi_member_want(struct ringbus *bus, struct rbi_member *member);
/** Ends the link, too, unless the peer wants it. */
void rbi_member_unwant(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_member *member);

/* ---- choice.c, turns.c, keyed.c ------------------------------------------------------------- */

/** A choice of a class. NULL: no memory. */
struct rbi_choice *rbi_choice_new(struct ringbus *bus, const struct rbi_choice_class *class);
void rbi_choice_free(struct rbi_choice *choice);
/** Runs the chain on the directory as it is, and collects who is linked. @return 0; -ENOMEM */
int rbi_choice_make(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_choice *choice);
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
void rbi_keyed_free(struct rbi_keyed *keyed);
/** The owner of the key cannot be sent to: another rank, where the policy has it, or why not. */
struct rbi_end *
rbi_keyed_elsewhere(struct rbi_cluster *cluster, const struct rbi_choice *choice, uint64_t key);

/* ---- realm.c ------------------------------------------------------------------------------ */

/** Targets what the policy of a cluster imports, and lets go of what it does not any more. */
void rbi_realm_follow(struct ringbus *bus, struct rbi_cluster *cluster);
/** Lets go of all. */
void rbi_realm_release(struct ringbus *bus, struct rbi_cluster *cluster);

/* ---- policy.c ----------------------------------------------------------------------------- */

/** The policy of a cluster; the defaults where it has none of its own. */
const struct rbi_policy *rbi_cluster_policy(const struct rbi_cluster *cluster);
/**
 * Reads one from the directory. @return RBI_DIRECTORY_OK @p out is from malloc, or NULL: it is of
 * another release, which this one cannot read. Else it cannot be had now
 */
int rbi_policy_read(struct ringbus *bus, uint64_t key, struct rbi_policy **out);
/** A reply later than that is slow by the policy; RBI_NEVER: none is. */
uint64_t rbi_cluster_slow_ns(const struct rbi_cluster *cluster);
/**
 * Takes over what the snapshot names. @return false: it cannot be read now, and stays as it was;
 * the next tick looks again
 */
bool rbi_cluster_take_policy(struct ringbus *bus, struct rbi_cluster *cluster, uint64_t key);
/** Takes it as the directory has it now: also for whoever is sent to without a choice. */
void rbi_cluster_look_policy(struct ringbus *bus, struct rbi_cluster *cluster);

/* ---- cluster.c ---------------------------------------------------------------------------- */

/** An end became usable or stopped being so. */
void rbi_cluster_end_changed(struct ringbus *bus, struct rbi_end *end);
/** An EVENT of the daemon. */
void rbi_target_event(struct ringbus *bus, const struct rbi_wire_event *event);
/** Its link has failed or ended: sets when to try again, twice as late as the last time. */
void rbi_member_back_off(struct ringbus *bus, struct rbi_member *member);
/** Reports the end of an instance as if the daemon had, unless it is not known. */
void rbi_target_removed(struct ringbus *bus,
                        const struct rbi_pidf *pidf,
                        const char *path,
                        enum rbi_reason reason);
/** A link has ended: its peer goes too, where no daemon would tell so. */
void rbi_target_link_over(struct ringbus *bus, const struct rbi_end *end);
/** Introduces members whose time has come. @return the next such time */
uint64_t rbi_target_tick(struct ringbus *bus, uint64_t now_ns);
/** Sends every TARGET and WATCH again, after a reconnect. */
void rbi_target_resend(struct ringbus *bus);
/**
 * The answer to an INTRODUCE was an error, or its link closed before it was usable.
 * @param reason  NONE: as the error has it. That a peer refuses, which is DENIED to its caller, is
 *                no right that is missing
 */
void rbi_target_introduce_failed(struct ringbus *bus,
                                 const struct rbi_pidf *peer,
                                 enum rbi_reason reason,
                                 int error,
                                 const char *text,
                                 bool meets_other);
/** The daemon is lost: introductions under way will not be answered. */
void rbi_target_introductions_lost(struct ringbus *bus);
/** Whether we want a link with this peer as requester; its terms when so. */
bool rbi_target_wants(struct ringbus *bus,
                      const struct rbi_pidf *peer,
                      struct rbi_link_terms *terms);

/* ---- resync.c: what we know against what the directory says ------------------------------ */

/** Events were lost: compares targets and watched prefixes with the directory. */
void rbi_target_resync(struct ringbus *bus);
/** Registered with a daemon that knows nothing of us: tells it what we want to hear of. */
void rbi_target_returned(struct ringbus *bus);
/** Who has not come back to the new daemon by now is gone. */
void rbi_target_settled(struct ringbus *bus);
/** The same, where the daemon does not say when: its time is over. */
void rbi_target_sweep(struct ringbus *bus);

/* ---- directory.c ------------------------------------------------------------------------ */

/** Maps a directory that was sent. @param hold  keep the one before beside it
 *  @retval 0; -errno, then nothing has changed */
int rbi_directory_map(struct ringbus *bus, int fd, uint64_t bytes, bool hold);
/** The new one is complete: lets go of the one before, and of who was noted as gone. */
void rbi_directory_release_held(struct ringbus *bus);
/** Its link has told of its end, and no daemon has: it is listed no more. */
void rbi_directory_note_gone(struct ringbus *bus, const struct rbi_pidf *pidf);
/**
 * Copies a cluster's snapshot whole.
 * @param waited  RBI_DIRECTORY_ABSENT_MAX: those who died just now; or NULL
 * @return instances, freed by the caller; NULL: @p absent, or it cannot be had now
 */
struct rbi_directory_instance *rbi_directory_snapshot(const struct rbi_directory_view *view,
                                                      uint64_t cluster,
                                                      struct rbi_directory_cluster *head,
                                                      struct rbi_directory_absent *waited,
                                                      bool *absent);
/** The same, with those whom the daemon before had listed, while they may still come back. */
struct rbi_directory_instance *rbi_directory_list(struct ringbus *bus,
                                                  uint64_t cluster,
                                                  struct rbi_directory_cluster *head,
                                                  struct rbi_directory_absent *waited,
                                                  bool *absent);
/** The directory has changed since the last look: who picks from what has, chooses anew. */
void rbi_directory_look(struct ringbus *bus);
/** The same for one cluster; takes over its policy. */
void rbi_directory_look_at(struct ringbus *bus, struct rbi_cluster *cluster);

/* ---- news.c, watched.c ------------------------------------------------------------------ */

enum rbi_news {
    RBI_NEWS_NONE = 0, /* known already */
    RBI_NEWS_ADDED = 1,
    RBI_NEWS_UPDATED = 2,
    RBI_NEWS_REMOVED = 3,
    RBI_NEWS_REPLACED = 4, /* another life of what is known: REMOVED, then ADDED */
};

/** What an event tells to one who knows this. @param known_incarnation  0: knows nothing */
enum rbi_news rbi_news_of(uint32_t known_incarnation,
                          uint32_t known_state,
                          uint32_t known_weight,
                          const struct rbi_wire_event *event);
/** Reports it to the application. */
void rbi_news_emit(struct ringbus *bus,
                   enum rbi_news news,
                   const struct rbi_wire_event *event,
                   uint32_t old_incarnation);
/** Whether a path is below a watched prefix. */
bool rbi_watched_path(const struct ringbus *bus, const char *path, size_t length);
/** Whether an instance of this cluster can be. */
bool rbi_watched_cluster(const struct ringbus *bus, const char *path, size_t length);
/** Takes in an event below a watched prefix. @param old_incarnation  set when REPLACED */
enum rbi_news rbi_watched_event(struct ringbus *bus,
                                const struct rbi_wire_event *event,
                                uint32_t *old_incarnation);
/** Marks all as not named. */
void rbi_watched_unsee(struct ringbus *bus);
/** Marks one as named, if it is known in this life. */
void rbi_watched_see(struct ringbus *bus, const struct rbi_pidf *pidf);
/** Whether an instance was reported in this life. @param seen  set then: the daemon has named it */
bool rbi_watched_knows(struct ringbus *bus, const struct rbi_pidf *pidf, bool *seen);
/** Reports the end of those not named; of those linked to us not, where asked. */
void rbi_watched_drop_unseen(struct ringbus *bus, enum rbi_reason reason, bool spare_linked);
/** A prefix is not watched any more: forgets, without a word, what was below it alone. */
void rbi_watched_forget_unwatched(struct ringbus *bus);
void rbi_watched_deinit(struct rbi_watches *watches);

/** Set of pointers to struct rbi_pidf, by cluster and instance. 0; -ENOMEM */
int rbi_address_set_init(ck_hs_t *set);

static inline struct rbi_pidf rbi_member_pidf(const struct rbi_cluster *cluster,
                                              const struct rbi_member *member)
{
    return (struct rbi_pidf){
        .cluster = cluster->id, .instance = member->instance, .incarnation = member->incarnation};
}

/* ---- send.c ----------------------------------------------------------------------------- */

/** What is to be sent, the same for all ways of sending. */
struct rbi_outgoing {
    enum rbi_record_kind kind;
    unsigned flags; /* RINGBUS_* of the caller */
    uint64_t key;
    uint64_t tag; /* correlation of REQ, REP, ERROR */
    const struct ringbus_part *parts;
    unsigned part_count;
    uint64_t size;                           /* sum of the parts */
    uint32_t chunk;                          /* a chunk that holds it already, or RBI_CHUNK_NONE */
    unsigned record_flags;                   /* RBI_RECORD_* that do not follow from the flags */
    const struct rbi_attributes *attributes; /* NULL: none */
};

/** Finds who is to get a message: one end. 0 or a public error (noted). */
int rbi_send_resolve(struct ringbus *bus,
                     const struct ringbus_addr *to,
                     bool keyed,
                     uint64_t key,
                     struct rbi_end **out);
/** Place of a peer in bus->recent: instances of one cluster lie side by side. */
static inline unsigned rbi_recent_at(uint64_t cluster, int32_t instance)
{
    return ((unsigned)cluster + (unsigned)instance) & (RBI_RECENT - 1);
}
/**
 * A reserve that failed with @p r, of rbi_lane_reserve(): opens the lane if that was all.
 * Where the body goes, or NULL: bus->error.code says why. No pointer of the caller's to write
 * through: its stack would have to be guarded, message by message.
 */
RBI_COLD unsigned char *
rbi_send_no_room(struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes, int r);
/**
 * Whether a receiver may have one reference more while @p free_count chunks are left. One
 * that has given nothing back for a while gets two thirds of a pool that others need as well.
 */
static inline bool
rbi_send_share_left(const struct ringbus *bus, struct rbi_end *end, uint32_t free_count)
{
    const uint32_t used = rbi_refs_used(&end->refs);
    if (used == 0) {
        end->gave_ns = bus->now_ns;
        return true;
    }
    return used <= 2U * free_count + 1U || bus->end_count <= 1 ||
           bus->now_ns - end->gave_ns < RBI_HOLDS_NS;
}
/** Nobody can take it: says why. A public error (noted). */
RBI_COLD int rbi_send_no_peer(struct ringbus *bus, const struct ringbus_addr *to);
/** Takes in what this peer has given back. 0; RINGBUS_E_BAD_PEER */
int rbi_send_collect_from(struct ringbus *bus, struct rbi_end *end);
/** Copies the parts of a payload one behind the other. */
void rbi_write_parts(unsigned char *to, const struct rbi_outgoing *out);
/** Writes one message to every usable end of a cluster (broadcast.c). @return how many took it */
int rbi_send_all(struct ringbus *bus, const struct ringbus_addr *to, struct rbi_outgoing *out);
/** The same to these. */
int rbi_send_to_all(struct ringbus *bus,
                    struct rbi_end *const *ends,
                    unsigned count,
                    struct rbi_outgoing *out);
/** Writes one message to one end, within the limits. 0, or a public error (noted). */
int rbi_send_new(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);
/** The same for what no limit is about: answers. */
int rbi_send_one(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);
/** The same without counting it as sent: it was. */
int rbi_send_again(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);
/** Commits a reserved record and wakes the peer as its mode and the flags ask for. */
void rbi_send_commit(
    struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes, uint32_t meta, unsigned flags);
/** After a commit: wakes the peer if it sleeps, or notes the end for later with RINGBUS_MORE. */
void rbi_send_ring(struct ringbus *bus, struct rbi_end *end);
/** Wakes the receivers of everything sent with RINGBUS_MORE. */
void rbi_send_flush(struct ringbus *bus);
/** A send found the lane full: ringbus_wait() is to wait for it. */
void rbi_send_blocked(struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes);
/** A send found no chunk or slot: ringbus_wait() is to wait for returns. */
void rbi_send_starved(struct ringbus *bus);
/** Takes in returned chunks of all links. */
void rbi_send_collect(struct ringbus *bus);
/**
 * A chunk for @p size bytes, collecting returns when the pool is empty. 0 or public error (noted).
 */
int rbi_send_chunk(struct ringbus *bus, struct rbi_end *end, uint64_t size, struct rbi_chunk *out);

/** Checks a loan and a size within it. 0 or a public error (noted). */
int rbi_loan_check(struct ringbus *bus,
                   const struct ringbus_loan *loan,
                   uint64_t size,
                   uint32_t *chunk);

/* ---- calls.c ---------------------------------------------------------------------------- */

void rbi_calls_init(struct rbi_calls *calls);
void rbi_calls_deinit(struct rbi_calls *calls);
uint64_t rbi_calls_deadline_ns(const struct rbi_calls *calls);
/** A request is about to go over that link. @param id  its correlation. 0; RINGBUS_E_NO_MEMORY */
int rbi_calls_start(struct ringbus *bus,
                    const struct rbi_end *end,
                    uint64_t timeout_ns,
                    ringbus_reply_fn on_reply,
                    void *context,
                    uint64_t *id);
/** It could not be sent: nobody is told. */
void rbi_calls_forget(struct ringbus *bus, uint64_t id);
/** A reply or error came. */
void rbi_calls_reply(struct ringbus *bus,
                     struct rbi_end *end,
                     const struct rbi_record *record,
                     const struct ringbus_message *message);
/** Ends the calls whose time is over. */
void rbi_calls_expire(struct ringbus *bus, uint64_t now_ns);
/** Ends the call of a request that its receiver, who is gone, did not consume. */
void rbi_calls_given_back(struct ringbus *bus,
                          const struct rbi_end *end,
                          uint64_t tag,
                          bool maybe_seen);
/** The request waits for another receiver. */
void rbi_calls_hold(struct ringbus *bus, const struct rbi_end *end, uint64_t tag, bool maybe_seen);
/** Correlation under which a request goes on; 0: nobody waits for its reply any more. */
uint64_t rbi_calls_next_tag(struct ringbus *bus, const struct rbi_end *end, uint64_t tag);
/** It has gone on under that correlation. */
void rbi_calls_moved(struct ringbus *bus, uint64_t tag, const struct rbi_end *to);
/** Ends all calls over a link that has ended, but those that are held. */
void rbi_calls_peer_gone(struct ringbus *bus, const struct rbi_end *end, int error);
/** Nothing of it waits for another receiver any more: ends those as well that were held. */
void rbi_calls_over(struct ringbus *bus, const struct rbi_end *end, int error);
void rbi_calls_end_all(struct ringbus *bus, int error);

/* ---- event.c, poll.c, tick.c, wait.c, epoll.c ----------------------------------------------- */

/** Message view of a record in our own or a peer's lane. 0; -EPROTO */
int rbi_view_fill(struct ringbus *bus,
                  struct rbi_end *end,
                  const struct rbi_record *record,
                  const unsigned char *pool_base,
                  uint64_t pool_bytes,
                  struct rbi_view *view);
/**
 * Queues an event; path and peer may be NULL. @return it, for what else is to be told, or NULL:
 * nobody takes events, or no memory
 */
struct rbi_queued_event *rbi_emit_simple(struct ringbus *bus,
                                         enum ringbus_event_type type,
                                         const struct rbi_pidf *peer,
                                         const char *path,
                                         enum rbi_reason reason,
                                         int error);
void rbi_events_deinit(struct rbi_events *events);
/** Queues the end of a question about nodes among the events. @return false: no memory */
bool rbi_events_push_node(struct ringbus *bus, struct rbi_node_call *call);
/** Calls back for every queued event. From ringbus_poll() only. */
void rbi_events_flush(struct ringbus *bus);
/** Calls back at once, after those that are queued. From ringbus_poll() only. */
void rbi_emit(struct ringbus *bus, const struct ringbus_event *event);
/** Tells the sender what we have read, and wakes it if it waits for room. */
void rbi_poll_release(struct ringbus *bus, struct rbi_end *end);
/** The first half of a tick, before the lanes are read: clock, what the daemon has sent. */
void rbi_tick(struct ringbus *bus, uint64_t now_ns);
/** The second half, behind the lanes: what came while we slept counts. Deadlines, judgements. */
void rbi_tick_judge(struct ringbus *bus);
/** For how long we ourselves did not poll: the handler that has just ended, or a sleep before. */
uint32_t rbi_tick_silence_ms(const struct ringbus *bus);
/** The end is to be looked at when its link's state machine, or what it could not send, asks. */
void rbi_tick_follow(struct ringbus *bus, struct rbi_end *end);
/**
 * Looks at the epoll set without waiting (@p timeout_ms 0) or waiting. @return events, < 0 -errno
 */
int rbi_epoll_events(struct ringbus *bus, int timeout_ms);
bool rbi_wait_lane_ready(struct ringbus *bus);
/** Tells the senders of the first @p count ends what we have read. */
void rbi_wait_release(struct ringbus *bus, unsigned count);
/** Whether something is in one of the lanes that a poll would look at. */
bool rbi_wait_turn_ready(struct ringbus *bus);
void rbi_spin_init(struct rbi_spin *spin, uint32_t most_us);
/** In the middle of a flow, leaves the line that the sender is writing alone for a moment. */
void rbi_spin_back_off(struct ringbus *bus);
/** Looks for a while. @return true when something is there */
bool rbi_spin(struct ringbus *bus, uint64_t now_ns);
/** A sleep has ended: was it the right thing to do? */
void rbi_spin_learn(struct rbi_spin *spin, uint64_t slept_ns);
/** Whether something is in a lane. */
bool rbi_wait_end_ready(const struct rbi_end *end);
/** And may be read now. */
static inline bool rbi_wait_end_due(const struct rbi_end *end)
{
    return !end->held && rbi_wait_end_ready(end);
}
void rbi_epoll_deinit(struct ringbus *bus);
int rbi_epoll_init(struct ringbus *bus);
int rbi_epoll_add(struct ringbus *bus, int fd, uint64_t tag, bool writable);
/** Listens to the bell of a link. */
int rbi_epoll_add_bell(struct ringbus *bus, struct rbi_end *end, int bell);
/**
 * Before closing: a child of a fork may hold the same description, and would keep it in the set.
 */
void rbi_epoll_remove(struct ringbus *bus, int fd);
int rbi_epoll_modify(struct ringbus *bus, int fd, uint64_t tag, bool writable);
/** Listens again to a bell whose mute time is over. */
void rbi_epoll_unmute(struct ringbus *bus, struct rbi_end *end, uint64_t now_ns);
/** Before an external loop waits: announce sleep and look once more. */
void rbi_wait_prepare(struct ringbus *bus);

#define RBI_EPOLL_CONTROL UINT64_C(1)
#define RBI_EPOLL_WAKE    UINT64_C(2)
#define RBI_EPOLL_TIMER   UINT64_C(3)

/* By value: what is read as another type than it was written as need not be there yet. */
static inline struct ringbus_addr rbi_addr(const struct rbi_pidf *pidf)
{
    struct ringbus_addr addr;
    memcpy(&addr, pidf, sizeof addr);
    return addr;
}
_Static_assert(sizeof(struct ringbus_addr) == sizeof(struct rbi_pidf), "same layout");
_Static_assert(offsetof(struct ringbus_addr, instance) == offsetof(struct rbi_pidf, instance),
               "same layout");

#endif
