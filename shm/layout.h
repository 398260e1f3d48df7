/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_LAYOUT_H
#define RINGBUS_SHM_LAYOUT_H
/*
 * shm/layout.h - every structure that lies in memory shared by two processes,
 * except the directory's (bus/directory.h). Fixed-width types only; the writer
 * is named at each field; offsets are asserted. A change here bumps
 * RBI_LAYOUT_VERSION, and the fingerprint changes by itself.
 *
 * Every segment has one owner, the only process that can write it; the kernel
 * enforces that by seals (shm/segment.h). To everyone else its content is
 * untrusted: load once, check, use the checked copy.
 */
#include "shm/atomic.h"
#include "shm/base.h"

#define RBI_SEGMENT_MAGIC UINT64_C(0x3130537542676e52) /* "RngBuS01" in memory */

/*
 * Sides of different versions work together when they differ only in what lies in reserved
 * space, zero until then: segments bear the oldest version with which they can be read, and
 * every one between that and the newest is taken. Tests build sides that are older or newer.
 */
#ifndef RBI_LAYOUT_VERSION
#define RBI_LAYOUT_VERSION 6U
#endif
#ifndef RBI_LAYOUT_VERSION_MIN
#define RBI_LAYOUT_VERSION_MIN RBI_LAYOUT_VERSION
#endif

/** What a segment holds. */
enum rbi_segment_kind {
    RBI_SEGMENT_PAGE = 1,      /**< endpoint page */
    RBI_SEGMENT_SIDE = 2,      /**< one end of a link */
    RBI_SEGMENT_POOL = 3,      /**< chunks of one sender */
    RBI_SEGMENT_DIRECTORY = 4, /**< service table of the daemon */
    RBI_SEGMENT_OUTCOMES = 5,  /**< how the calls of one endpoint ended */
};

/** First 64 bytes of every segment. Owner: writes it once, before the descriptor leaves. */
struct rbi_segment_header {
    uint64_t magic;
    uint32_t version;
    uint32_t kind;
    uint64_t fingerprint;
    uint64_t size_bytes;
    uint64_t reserved[4];
};
_Static_assert(sizeof(struct rbi_segment_header) == 64, "layout");

/* ---- side: one per link and end ------------------------------------------------------- */

#define RBI_LANE_CAPACITY_MIN (UINT64_C(4) << 10)
#define RBI_LANE_CAPACITY_MAX (UINT64_C(64) << 20)
#define RBI_RETURNS_MIN       16U
#define RBI_RETURNS_MAX       65536U

#define RBI_SIDE_BETWEEN UINT64_C(1) /* in begun_pos, whose positions are multiples of a line */

/**
 * Head of a side. The lane itself follows at lane_offset, page aligned, and is
 * mapped twice in a row from the first message on. Fields that change have 128 bytes
 * each, so that the neighbour-line prefetcher does not couple them.
 */
struct rbi_side {
    struct rbi_segment_header segment; /* owner, once */
    uint64_t lane_offset;              /* owner, once; multiple of RBI_PAGE */
    uint64_t lane_capacity;            /* owner, once; power of two */
    uint64_t returns_offset;           /* owner, once; multiple of 64 */
    uint64_t returns_capacity;         /* owner, once; entries, power of two */
    uint64_t reserved0[4];
    /* Owner as receiver: position up to which it has consumed the peer's lane. */
    rbi_au64 read_pos;
    uint64_t reserved1[15];
    /* Owner as receiver: number of entries that it has put into its return ring. */
    rbi_au64 returns_pos;
    uint64_t reserved2[15];
    /* Owner as sender: 0, or the read_pos that it waits for, with a ticket in the low bits. */
    rbi_au64 want_pos;
    uint64_t reserved3[15];
    /*
     * Owner as sender: its position at the end of the last burst, for tools. Nobody relies on the
     * value, but on when it is stored (B9 of shm/bell.h).
     */
    rbi_au64 written_hint;
    uint64_t reserved4[15];
    /*
     * Owner as receiver: where the record lies that it handles; between two polls, up to where it
     * has handled them, with RBI_SIDE_BETWEEN. Before its end
     * (libclient/undelivered.c) it is looked at for a guess only (libclient/bound.c): no order.
     */
    rbi_au64 begun_pos;
    uint64_t reserved5[15];
};
_Static_assert(offsetof(struct rbi_side, lane_offset) == 64, "layout");
_Static_assert(offsetof(struct rbi_side, read_pos) == 128, "layout");
_Static_assert(offsetof(struct rbi_side, returns_pos) == 256, "layout");
_Static_assert(offsetof(struct rbi_side, want_pos) == 384, "layout");
_Static_assert(offsetof(struct rbi_side, written_hint) == 512, "layout");
_Static_assert(offsetof(struct rbi_side, begun_pos) == 640, "layout");
_Static_assert(sizeof(struct rbi_side) == 768, "layout");

/* ---- endpoint page: one per endpoint --------------------------------------------------- */

/** State of an endpoint, in its own page; the daemon's directory says what it is to others. */
enum rbi_endpoint_state {
    RBI_ENDPOINT_STARTING = 0,
    RBI_ENDPOINT_READY = 1,
    RBI_ENDPOINT_BUSY = 2,
    RBI_ENDPOINT_DRAINING = 3,
    RBI_ENDPOINT_CLOSED = 4,
};

#define RBI_PAGE_BUSY_POLL  UINT64_C(1) /* flags: this endpoint never sleeps, do not look */
#define RBI_PAGE_DEBUG_HOLD UINT64_C(2) /* it may be stopped in a debugger: for people to see */
#define RBI_PAGE_FENCED     UINT64_C(4) /* flags: rbi_barrier_everywhere() covers it */

/** Counters of an endpoint, in the order of its page. Written by the endpoint only. */
#define RBI_COUNTERS(X)                                                                            \
    X(sent, "messages accepted by send, request or reply")                                         \
    X(sent_bytes, "payload bytes of those")                                                        \
    X(received, "messages handed to the application")                                              \
    X(received_bytes, "payload bytes of those")                                                    \
    X(full, "sends refused because the lane was full")                                             \
    X(no_chunk, "sends refused because the pool had no chunk")                                     \
    X(no_peer, "sends refused because nobody could take them")                                     \
    X(too_big, "sends refused because of their size")                                              \
    X(requests, "requests sent")                                                                   \
    X(replies, "replies received in time")                                                         \
    X(timeouts, "requests that ended without a reply in time")                                     \
    X(late_replies, "replies dropped because nobody waited for them")                              \
    X(undelivered, "messages given back because their receiver died")                              \
    X(bells_rung, "wake-ups sent to sleeping receivers (one system call each)")                    \
    X(sleeps, "times this endpoint went to sleep")                                                 \
    X(polls, "calls of poll, coarse (updated when idle)")                                          \
    X(links_opened, "links that became READY")                                                     \
    X(links_closed, "links that ended")                                                            \
    X(bad_peer, "links closed because the peer broke the rules")                                   \
    X(daemon_lost, "times the connection to the daemon was lost")                                  \
    X(pings_missed, "PINGs that were not answered in their interval")                              \
    X(redelivered, "messages sent on to another instance because their receiver ended")            \
    X(expired, "messages dropped unhandled because their deadline was over")                       \
    X(retried, "requests asked again after they were refused or lost")                             \
    X(retry_denied, "those not asked again because the retry budget was used up")                  \
    X(mocked, "requests ended by a mock, a local callback or failsafe, not by an instance")        \
    X(diverted, "messages with a key sent to another instance, its own being out of reach")        \
    X(limited, "sends refused because a limit of the policy was reached")                          \
    X(limited_dry, "sends that a limit in a dry run would have refused")                           \
    X(denied, "messages that came without the right to be sent, and were dropped")                 \
    X(not_owner, "requests refused because another instance owns their key")                       \
    X(limited_in, "requests of others that a limit of this cluster refused")                       \
    X(shed, "requests of others refused because more came than could be done")                     \
    X(bad_choice, "messages refused because a hook named an instance that cannot take them")       \
    X(delayed, "one-way messages that waited here until a limit let them pass (max_wait)")         \
    X(duplicates, "messages of other hosts sent again that had been read, and were dropped")

enum rbi_counter {
#define RBI_COUNTER_ENUM(name, text) RBI_COUNTER_##name,
    RBI_COUNTERS(RBI_COUNTER_ENUM)
#undef RBI_COUNTER_ENUM
        RBI_COUNTER_COUNT
};

#define RBI_COUNTERS_MAX 128U
_Static_assert(RBI_COUNTER_COUNT <= RBI_COUNTERS_MAX, "layout");

/** Endpoint page: exactly one page of memory. */
struct rbi_page {
    struct rbi_segment_header segment; /* owner, once */
    uint64_t flags;                    /* owner, once: RBI_PAGE_* */
    uint64_t reserved0[7];
    /* Owner: odd while it sleeps; grows by one at each change. */
    rbi_au64 sleep_epoch;
    uint64_t reserved1[15];
    /* Owner, each change: identity after registration, state, load. */
    rbi_au64 cluster;
    rbi_au64 instance;     /* int32_t, widened without sign */
    rbi_au64 incarnation;  /* uint32_t, 0 before registration */
    rbi_au64 state;        /* enum rbi_endpoint_state */
    rbi_au64 load_depth;   /* messages waiting in its lanes (shm/load.h) */
    rbi_au64 load_ewma_ns; /* that one takes */
    rbi_au64 poll_tick_ms; /* CLOCK_MONOTONIC of its last poll, coarse */
    rbi_au64 core;         /* where and when it ran last (libclient/core.c), 0 unknown */
    rbi_au64 load_at_ns;   /* CLOCK_MONOTONIC when the load was written */
    rbi_au64 load_report;  /* ringbus_report_load(): thousandths | number << 32, 0: never called */
    uint64_t reserved2[6];
    rbi_au64 counters[RBI_COUNTERS_MAX];
    uint64_t reserved3[336];
};
_Static_assert(offsetof(struct rbi_page, sleep_epoch) == 128, "layout");
_Static_assert(offsetof(struct rbi_page, cluster) == 256, "layout");
_Static_assert(offsetof(struct rbi_page, counters) == 384, "layout");
_Static_assert(sizeof(struct rbi_page) == RBI_PAGE, "layout: exactly one page");

/* ---- pool: one per endpoint ------------------------------------------------------------ */

#define RBI_POOL_CLASSES_MAX 8U
#define RBI_POOL_CHUNK_MIN   64U
#define RBI_POOL_CHUNK_MAX   (UINT64_C(1) << 30)
#define RBI_POOL_CHUNKS_MAX  65536U

struct rbi_pool_class {
    uint64_t chunk_bytes; /* multiple of 64 */
    uint64_t count;
    uint64_t offset; /* of the class's first chunk in the segment; multiple of RBI_PAGE */
};

/** Head of a pool segment; the chunks follow, class by class. Receivers need only its size. */
struct rbi_pool_head {
    struct rbi_segment_header segment; /* owner, once */
    uint64_t class_count;              /* owner, once */
    uint64_t reserved0[7];
    struct rbi_pool_class classes[RBI_POOL_CLASSES_MAX]; /* owner, once; ascending chunk_bytes */
};
_Static_assert(sizeof(struct rbi_pool_head) == 320, "layout");

/* ---- outcomes: one per endpoint that calls others ---------------------------------------- */

/* So many instances can be counted apart: eight pages of memory at first. */
#define RBI_OUTCOME_SLOTS_MIN 8U
#define RBI_OUTCOME_SLOTS_MAX 65536U
/* Of a histogram of times; which is for which time, bus/histogram.h says. */
#define RBI_LATENCY_BUCKETS 896U

/**
 * How the calls of one endpoint to one life of one instance ended. The counters only grow,
 * also when the slot is given to another: whoever sums them keeps what he saw last, and begins
 * anew when the name has changed.
 */
struct rbi_outcome {
    rbi_au64 cluster;    /* owner: whom it is about */
    rbi_au64 who;        /* owner: incarnation << 32 | instance; 0: nobody */
    rbi_au64 ok;         /* owner: calls that were answered, whatever the answer */
    rbi_au64 failed;     /* owner: answered with an error that counts as a failure */
    rbi_au64 lost;       /* owner: not answered: time over, or ended meanwhile */
    rbi_au32 slow;       /* owner: of the answered, those later than the policy allows; may wrap */
    rbi_au32 local;      /* owner: could not be sent for want of room in its lane; may wrap */
    rbi_au64 latency_ns; /* owner: sum over all */
    rbi_au64 in_a_row;   /* owner: failed or lost since the last that was ok */
    /* Owner: how many took how long, of all; begins anew with another name. May wrap around. */
    rbi_au32 latency[RBI_LATENCY_BUCKETS];
};
_Static_assert(offsetof(struct rbi_outcome, latency) == RBI_LINE, "layout: the rest has one line");
_Static_assert(sizeof(struct rbi_outcome) == 57UL * RBI_LINE, "layout");

/** Head of an outcomes segment; the slots follow. The daemon reads it, no peer does. */
struct rbi_outcomes {
    struct rbi_segment_header segment; /* owner, once */
    uint64_t slot_count;               /* owner, once: as many as the segment has room for */
    uint64_t reserved0[7];
    /* Owner: grows with each outcome: who finds it as it was need not look at any slot. */
    rbi_au64 changes;
    uint64_t reserved1[15];
};
_Static_assert(offsetof(struct rbi_outcomes, changes) == 128, "layout");
_Static_assert(sizeof(struct rbi_outcomes) == 256, "layout");

/**
 * Identifies this build's idea of all layouts above: a hash over sizes, offsets and
 * RBI_LAYOUT_VERSION_MIN. What this build makes bears it.
 */
uint64_t rbi_layout_fingerprint(void);
/** Version of a fingerprint that this build can read, or 0. Others are refused before mapping. */
uint32_t rbi_layout_version_of(uint64_t fingerprint);

#endif
