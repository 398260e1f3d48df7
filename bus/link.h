/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_LINK_H
#define RINGBUS_BUS_LINK_H
/*
 * bus/link.h - life of a link as a pure function of (state, input, now). No I/O,
 * no clock: the caller feeds inputs and carries out the actions.
 *
 * A link has two uses, one for each end that wants it: "mine" (I asked for it: I
 * send READY, PING at my interval, and judge the peer) and "theirs" (the peer
 * asked: I answer, and call it gone after the dead_after that its READY named).
 *
 *            open              READY_ACK ok
 *   mine:  IDLE ----> WAIT_ACK -----------> UP
 *                        | refused            | misses reached
 *                        v                    v
 *   link:  OPEN ------------------------------> CLOSED  (terminal)
 *                        ^                    ^
 *   theirs:  IDLE ----> UP -------------------+ DISCONNECT, silence, death
 *             READY
 *
 * The link may carry messages while at least one use is UP. After CLOSED nothing is
 * ever initiated on it; coming back needs a new link.
 *
 * Mine judges by PINGs. One is due an interval after the last, and half an interval after the
 * peer was last heard: so the last sign of life is never older than half an interval (and a
 * round trip) when a peer stops. A PING that is not answered by the next is a miss. Any record
 * given after a PING was sent counts as its PONG. A peer that stops is called silent with the
 * last of N misses: N to N + 1/2 intervals after it stopped.
 *
 * Theirs, while mine is not UP, is judged by any record, and silent for dead_after is gone.
 * While mine is UP as well, my PINGs say whether the peer lives, and a peer that has sent no
 * PING for its dead_after has only ended its use: theirs goes to IDLE, and the next PING brings
 * it back.
 *
 * Before it is called silent a peer is suspect: after the first miss (mine), or half of
 * dead_after without a record (theirs). A sign of life ends that. A suspect link stays usable.
 *
 * Who judges suspects itself first. A tick is due each interval while anything is judged; one
 * that comes more than 2 intervals late does not judge, and the count starts anew. One that is
 * late by more than a quarter may judge, but for the verdict the peer gets an interval more,
 * once in each silence: it may have slept as long as the judge. Feed what lies in the lane
 * before a tick, so that what came while this process slept counts.
 *
 * A peer may ask to be held (it may be stopped in a debugger): then it is suspect and never
 * called silent; with the last miss PINGs end, until it gives a sign of life, so that they do
 * not fill its lane. Death that the kernel reports ends a held link like any other.
 *
 * A peer on another host may be cut off: the bridge says so (HOLD), which knows it of the way.
 * While the way is cut the peer is suspect, nothing is asked of it, and it is never called silent:
 * the bridge itself ends the link when that lasts. When the way is there again all counts begin
 * anew.
 *
 * Ending one of two uses: RBI_LINK_CLOSE with UNTARGETED while theirs is UP takes
 * mine to IDLE and sends nothing, the link stays for the peer; every other reason
 * closes the link. A READY_ACK that refuses ends mine in the same way.
 *
 * A link that nobody opens for RBI_LINK_UNUSED_MS is closed: an introduction
 * whose requester never comes must not stay for ever.
 */
#include "bus/record.h"

enum rbi_use { RBI_USE_IDLE = 0, RBI_USE_WAIT_ACK = 1, RBI_USE_UP = 2 };

/** What one end asks of a link. Checked by rbi_link_terms_check(). */
struct rbi_link_terms {
    uint32_t ping_interval_ms; /* 10..60000 */
    uint32_t ping_misses;      /* 1..100 */
    uint32_t dead_after_ms;    /* >= 2 x interval */
};
#define RBI_PING_INTERVAL_MS_MIN 10U
#define RBI_PING_INTERVAL_MS_MAX 60000U
#define RBI_PING_MISSES_MAX      100U
/**
 * dead_after that goes with an interval and misses: interval x misses + interval / 2, at least 2 x
 * interval.
 */
uint32_t rbi_link_dead_after_ms(uint32_t ping_interval_ms, uint32_t ping_misses);
/** Longest time without any use, from rbi_link_init() on. */
#define RBI_LINK_UNUSED_MS 10000U
/** Untrusted input (from READY, which names no misses: put 1): 0 in range; 1 out of range. */
RBI_MUST_CHECK int rbi_link_terms_check(const struct rbi_link_terms *terms);

struct rbi_link_fsm {
    bool closed;
    bool suspect;           /* silent for longer than one that is well */
    bool held;              /* the peer asked for it: silence alone never ends the link */
    bool cut;               /* the way to the peer's host is: nothing is judged */
    bool asking;            /* the last PING is not answered */
    bool excused;           /* in this silence the peer has had its interval more */
    enum rbi_reason reason; /* when closed */
    enum rbi_use mine;
    enum rbi_use theirs;
    struct rbi_link_terms my_terms;
    struct rbi_link_terms their_terms;
    uint64_t last_heard_ns; /* any record of the peer */
    uint64_t pinged_ns;     /* last PING; before the first: so that it comes at its time */
    uint64_t ping_id;       /* of the last PING */
    uint32_t misses;        /* in a row */
    uint32_t spread;        /* of OPEN */
    /* WAIT_ACK: dead_after from OPEN on, at least 2 s; or no use at all */
    uint64_t ack_deadline_ns;
    uint64_t asked_ns;      /* when the next tick is due; late is what comes after */
    uint64_t their_ping_ns; /* last READY or PING of the peer, or a count begun anew */
    uint64_t excuse_ns;     /* excused: no verdict before */
};

enum rbi_link_input_type {
    RBI_LINK_OPEN = 1,      /* the application here wants the link: terms, spread */
    RBI_LINK_READY = 2,     /* READY came: terms (checked), accept or refuse says reason; hold */
    RBI_LINK_READY_ACK = 3, /* reason: NONE = accepted; hold */
    RBI_LINK_PING = 4,      /* id */
    RBI_LINK_PONG = 5,      /* id */
    RBI_LINK_DATA = 6,      /* any other sign of life: given_ns */
    RBI_LINK_DISCONNECT =
        7, /* reason as the peer gave it (any value is taken, unknown ones as LEFT) */
    RBI_LINK_PEER_DEAD = 8, /* the kernel or the daemon says so; reason */
    RBI_LINK_CLOSE = 9,     /* we end it; reason */
    RBI_LINK_TICK = 10,     /* time only */
    RBI_LINK_CUT = 11,      /* relayed links: hold says whether the way is cut */
};

struct rbi_link_input {
    enum rbi_link_input_type type;
    enum rbi_reason reason;
    /* The peer may be stopped in a debugger: RBI_FEATURE_DEBUG_HOLD. Of CUT: the way is cut. */
    bool hold;
    uint64_t id;
    uint64_t given_ns; /* when it was given, as far as is known for certain; 0: now */
    /* 0..RBI_LINK_SPREAD: by how much of half an interval the first PING comes earlier, so
     * that many links do not send theirs at one time. */
    uint32_t spread;
    struct rbi_link_terms terms;
};
#define RBI_LINK_SPREAD 65536U

/* Actions, to be carried out in this order. Whoever judges the peer silent sends one
 * DISCONNECT (GIVEN_UP), for a peer that only slept, and nothing after it. */
#define RBI_LINK_DO_SEND_READY      0x01U
#define RBI_LINK_DO_SEND_ACK        0x02U  /* action reason: NONE accepts */
#define RBI_LINK_DO_SEND_PING       0x04U  /* action id */
#define RBI_LINK_DO_SEND_PONG       0x08U  /* action id */
#define RBI_LINK_DO_SEND_DISCONNECT 0x10U  /* action reason */
#define RBI_LINK_DO_REPORT_UP       0x20U  /* the link became usable */
#define RBI_LINK_DO_REPORT_DOWN     0x40U  /* it was usable and is no more: fsm->reason */
#define RBI_LINK_DO_REPORT_FAILED   0x80U  /* it never became usable: fsm->reason */
#define RBI_LINK_DO_CLOSE           0x100U /* tear it down */
#define RBI_LINK_DO_COUNT_MISS      0x200U
#define RBI_LINK_DO_REPORT_SUSPECT  0x400U /* usable, and silent: see fsm->held and fsm->cut */
#define RBI_LINK_DO_REPORT_ALIVE    0x800U /* it is no longer suspect */

struct rbi_link_actions {
    unsigned todo;          /* RBI_LINK_DO_* */
    enum rbi_reason reason; /* of ACK and DISCONNECT: what the peer is told */
    uint64_t id;
};

void rbi_link_init(struct rbi_link_fsm *link, uint64_t now_ns);
/** Feeds one input. Every (state, input) pair is defined; what makes no sense is ignored. */
void rbi_link_step(struct rbi_link_fsm *link,
                   const struct rbi_link_input *input,
                   uint64_t now_ns,
                   struct rbi_link_actions *out);
/** When the next TICK is due, or UINT64_MAX. */
uint64_t rbi_link_deadline_ns(const struct rbi_link_fsm *link);

static inline bool rbi_link_usable(const struct rbi_link_fsm *link)
{
    return !link->closed && (link->mine == RBI_USE_UP || link->theirs == RBI_USE_UP);
}

#endif
