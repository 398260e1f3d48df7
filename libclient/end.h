/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_END_H
#define RINGBUS_LIBCLIENT_END_H
/*
 * libclient/end.h - a link as we see it: its lanes, its bell, its peer.
 */
#include "bus/acl.h"
#include "bus/limit.h"
#include "bus/link.h"
#include "bus/pidf.h"
#include "bus/record.h"
#include "libclient/delay.h"
#include "libclient/refused.h"
#include "shm/handoff.h"
#include "shm/lane.h"
#include "shm/layout.h"
#include "shm/peer_pool.h"
#include "shm/pool.h"
#include "shm/segment.h"

struct ringbus;

/** Leaving in order, as far as this link goes (drain.c). */
struct rbi_end_drain {
    bool understood;      /* the peer's READY or READY_ACK says that it answers DRAIN */
    bool peer;            /* the peer drains: nothing more is dispatched to it */
    bool told;            /* we drain: BEGIN was said, or waits for room */
    bool acknowledged;    /* we drain: the peer dispatches nothing more to us */
    bool emptied;         /* we drain: what it had sent has been dispatched */
    uint64_t mark;        /* we drain: what we had written when all was dispatched */
    uint64_t peer_number; /* of the peer's drain, for the ACK */
};

/** Where an end is in its life. */
enum rbi_end_phase {
    RBI_END_INTRODUCING = 1, /* INTRODUCE sent; only our own side exists */
    RBI_END_LINKED = 2,      /* both sides mapped; the state machine rules */
    RBI_END_LEAVING = 3,     /* peer is dead or gone: its lane is read to the end, then closed */
    RBI_END_CLOSED = 4,      /* to be freed by the next reap */
};

#define RBI_HINDERED_CLAIM  1U /* a claim is open: nothing else may be written */
#define RBI_HINDERED_RIGHTS 2U /* not every method may be sent (rights.c) */
#define RBI_HINDERED_LIMIT  4U /* what is sent is asked for: limiter is not NULL (limit.h) */
/* It was picked in the place of a key's owner, and its next message is to say so (divert.h). */
#define RBI_HINDERED_DIVERTED 8U
#define RBI_HINDERED_BEHIND   32U /* what earlier links to the peer left goes first (relayed.h) */
#define RBI_HINDERED_DELAYED  16U /* what is sent goes behind what waits for a limit (delay.h) */

/** Our end of a link. The first lines are the hot path's. */
struct rbi_end {
    struct rbi_lane_tx tx;
    struct rbi_lane_rx rx;
    struct rbi_pidf peer;
    rbi_au64 *own_begun_pos; /* in our side: which record of the peer's is being handled */
    bool usable;             /* rbi_link_usable(), kept for the send path */
    bool flowing;            /* usable, and a message has come: the peer's lane is mapped whole */
    uint8_t hindered;        /* RBI_HINDERED_*: the plain way of sending is not open */
    bool peer_sleeps;        /* the peer may sleep: look at its epoch after a burst */
    bool unrung;             /* records committed with RINGBUS_MORE: to be looked at later */
    bool blocked;            /* a send found it full; wait for want_bytes */
    bool loop;               /* link to ourselves */
    bool read_out;           /* a leaving end's lane is read to its end */
    uint8_t phase;           /* enum rbi_end_phase */
    uint8_t pending;         /* control records that found no room: RBI_PENDING_* */
    uint8_t pending_tries;   /* ticks in a row that found none for them */
    uint8_t idle_rings;      /* rings in a row that brought nothing */
    bool muted;        /* it rang too often for nothing: its bell is not listened to for a while */
    bool gated;        /* each message is looked at (gate.h): it is never flowing */
    bool held;         /* the next message stays in the lane for a while */
    bool broker;       /* it stands for others (READY) */
    bool hung_up;      /* the peer has ended its side of the bell: it reads our memory no more */
    bool residue;      /* the link has ended, some of its payloads have not (residue.c) */
    int bell;          /* our end of the pair; -1 for the loop */
    uint32_t position; /* in bus->ends */
    uint32_t quiet;    /* polls in a row that found nothing */
    const rbi_au64 *peer_sleep_epoch;
    uint64_t rung;
    const rbi_au64 *peer_want_pos;
    uint64_t want_rung;
    rbi_au64 *own_want_pos;
    uint64_t want_bytes;
    rbi_au64 *own_written_hint;
    const rbi_au64 *peer_written_hint;
    const rbi_au64 *peer_begun_pos;
    struct rbi_refs refs;
    struct rbi_returns returns;
    struct rbi_peer_pool *peer_pool;

    struct rbi_link_fsm fsm;
    uint64_t link_id;        /* 0 before the daemon told it */
    uint32_t serial;         /* of our INTRODUCE */
    uint64_t link_life;      /* number of this end among all of the handle: never used again */
    uint64_t peer_life;      /* relayed: the same as the peer counts its ends; 0: not said */
    uint64_t inserted_bytes; /* relayed: of what the bridge put in itself, so far */
    uint64_t slow_ns;        /* a reply later than that is slow */
    uint32_t outcome;        /* slot in which its calls are counted (outcome.h) */
    bool errors_count;       /* what its handlers report as failed counts against it */
    bool judged;             /* failures in a row make us avoid it (bus/suspicion.h) */
    bool avoided;            /* now: of what may go elsewhere it gets nothing */
    struct rbi_end *next_avoided;
    bool behind; /* earlier lives of the peer, if there are, are read to their end first */
    enum rbi_reason leave_reason;
    uint64_t gave_ns;       /* when it last gave back a reference, or had none; as of the tick */
    uint64_t alive_said_ns; /* by ringbus_alive() */
    uint64_t heard_ns;      /* when records last came, not yet told to fsm; 0: none */
    uint64_t read_seen_pos; /* the peer's read position when it was last looked at for life */
    uint64_t read_seen_ns;  /* and when that was */
    uint64_t leave_pos;     /* where our reading stood when it began to leave */
    uint64_t emptied_epoch; /* of our sleep, when its bell was last emptied */
    uint64_t ring_seen;     /* what had moved (epoll.c) at the last ring that brought something */
    uint64_t unmute_ns;
    uint64_t starved_ns; /* since when what came could not be mapped; 0: it can */
    uint64_t pending_ping_id;
    uint64_t pending_pong_id;
    enum rbi_reason pending_reason;
    enum rbi_reason pending_ack;
    uint32_t silent_ms;      /* leaving: see struct ringbus_event */
    bool wanted;             /* we are its requester */
    bool relayed;            /* the peer is on another host, this leads to its proxy (relayed.h) */
    bool peer_fenced;        /* rbi_barrier_everywhere() covers the peer, as it says */
    bool said_bye;           /* it was we who ended it: the peer reads on up to our DISCONNECT */
    bool bye_unknown;        /* the peer ended it, for a reason of a later version */
    bool holds;              /* what it leaves goes to others before anything new (redeliver.c) */
    struct rbi_again *again; /* closed, and what waits for another receiver (redeliver.c) */
    uint16_t ready_version;  /* the newest that the peer's READY and we know; 0: none came yet */
    bool broken;             /* its read position is impossible: closed by the next tick */
    bool failed;             /* it ended before READY_ACK was read: reported when the lane is */
    bool reported_up;        /* the application has had its READY event */
    struct rbi_end_drain drain;
    struct rbi_refused refused;
    struct rbi_inflight *inflight; /* of the cluster of the peer; NULL: it is no target */
    struct rbi_limiter *limiter;
    struct rbi_limit_words limit_words;  /* of the limits that count for each instance */
    struct rbi_delay_queue delayed;      /* what its limits let pass later */
    struct rbi_gate_limits *gate_limits; /* of what comes; NULL: none concerns the peer */
    uint64_t held_until_ns;              /* with held */
    struct rbi_acl_methods *may_send;    /* NULL: every method */
    struct rbi_acl_methods *may_get;     /* of what comes; then never flowing: each is looked at */
    struct rbi_segment own_side;
    struct rbi_segment peer_side;
    struct rbi_segment peer_page;
    uint32_t kept;                /* payloads of the peer's pool that the application keeps */
    struct rbi_end *next_residue; /* list of ended links with payloads out */
    struct rbi_end *next_dirty;   /* list of ends with unrung records */
    struct rbi_end *next_blocked; /* list of ends that a send found full */
    char path[RBI_PATH_MAX + 1];
};

#define RBI_PENDING_READY      0x01U
#define RBI_PENDING_ACK        0x02U
#define RBI_PENDING_PING       0x04U
#define RBI_PENDING_PONG       0x08U
#define RBI_PENDING_DISCONNECT 0x10U
#define RBI_PENDING_DRAIN      0x20U
#define RBI_PENDING_DRAIN_ACK  0x40U
#define RBI_PENDING_REFUSED    0x80U

/**
 * Creates our own side and its end, without a peer yet. NULL on failure (error noted).
 * @param relayed  the peer is on another host: what is under way to it lies in our lane
 */
struct rbi_end *
rbi_end_new(struct ringbus *bus, const struct rbi_pidf *peer, const char *path, bool relayed);
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
struct rbi_end *rbi_end_find(struct ringbus *bus, uint64_t cluster, int32_t instance);
unsigned long rbi_end_hash(uint64_t cluster, int32_t instance);
struct rbi_end *rbi_end_find_link(struct ringbus *bus, uint64_t link_id);
struct rbi_end *rbi_end_find_serial(struct ringbus *bus, uint32_t serial);
int rbi_end_index(struct ringbus *bus, struct rbi_end *end);
/** Takes an end out of the look-up; it stays polled until the reaper has it. */
void rbi_end_unindex(struct ringbus *bus, struct rbi_end *end);

#endif
