/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_RINGBUS_H
#define RINGBUS_RINGBUS_H
/*
 * ringbus.h - the C API of ringbus, a shared-memory service bus for one Linux host.
 *
 * The shortest receiver: ringbus_open() with a path and an on_message callback, then
 * ringbus_wait() and ringbus_poll() in turn. The shortest sender: ringbus_open(),
 * ringbus_target(), wait for RINGBUS_EVENT_READY, ringbus_send().
 *
 * Threads. A handle is used by one thread at a time; ringbus_wake() alone may be
 * called from any thread and from signal handlers. Another thread may take a handle
 * over with the usual synchronisation (a mutex around the calls will do). Debug
 * builds notice two threads inside one handle: the second gets
 * RINGBUS_E_WRONG_THREAD. One process may open many handles.
 *
 * Calls inside callbacks. Everything is allowed except ringbus_poll(), ringbus_wait()
 * and ringbus_close(), which return RINGBUS_E_BUSY.
 *
 * fork. The child of a fork may not use an inherited handle: every call returns
 * RINGBUS_E_WRONG_PROCESS, costs one load to find out, and leaves the parent's stream
 * untouched. The child opens its own.
 *
 * Errors. Calls return 0 or a count on success and a negative enum ringbus_error
 * otherwise; ringbus_errmsg() has a sentence with names, limits and the way out.
 * Beside what is named at each, every call with a handle may return RINGBUS_E_ARGUMENT (no
 * handle), RINGBUS_E_WRONG_PROCESS and, in debug builds, RINGBUS_E_WRONG_THREAD: mistakes of
 * the program, to be mended there. docs/operating.md says what each code, event and reason
 * means to whoever runs the host.
 * Nothing that a peer, the daemon or the kernel does ends the process or raises a
 * signal.
 *
 * Cost. "No system call" holds while the peer is awake or polls busily; waking a
 * sleeping peer costs one.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RINGBUS_VERSION_MAJOR 0
#define RINGBUS_VERSION_MINOR 1
#define RINGBUS_VERSION_PATCH 0

#if defined(__GNUC__)
#define RINGBUS_API        __attribute__((visibility("default")))
#define RINGBUS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RINGBUS_API
#define RINGBUS_MUST_CHECK
#endif

/** A bus handle: one endpoint. */
struct ringbus;

/* ---- errors ---------------------------------------------------------------------------- */

/** What an error asks of the caller. */
enum ringbus_error_kind {
    RINGBUS_ERROR_NONE = 0,
    RINGBUS_ERROR_RETRY = 1,    /**< try again later, the same call may succeed */
    RINGBUS_ERROR_GONE = 2,     /**< the peer or the daemon is lost */
    RINGBUS_ERROR_DENIED = 3,   /**< rights, quota or limit forbid it */
    RINGBUS_ERROR_USAGE = 4,    /**< the caller's bug */
    RINGBUS_ERROR_SYSTEM = 5,   /**< the kernel refused; errno is in ringbus_errmsg() */
    RINGBUS_ERROR_INTERNAL = 6, /**< a bug of ringbus: please report */
};

/* X(name, value, kind, text). Values are part of the ABI and never reused. */
#define RINGBUS_ERRORS(X)                                                                          \
    X(FULL, -1, RETRY, "the receiver's lane is full; ringbus_wait() returns when there is room")   \
    X(NO_CHUNK, -2, RETRY, "every chunk of the pool that is large enough is in use")               \
    X(NOT_READY, -3, RETRY, "the instance is known but its link is not READY yet")                 \
    X(TIMEOUT, -4, RETRY, "the time given is over")                                                \
    X(BUSY, -5, RETRY, "not inside a callback, or another claim on this link is open")             \
    X(RESTARTING, -6, RETRY, "the owner of this key has died and may come back at its place")      \
    X(SHIELDED, -7, RETRY, "the owner of this key, or all there are, failed too often: shielded")  \
    X(LIMITED, -8, RETRY, "a rate limit of the bus is reached")                                    \
    X(SHED, -9, RETRY, "the receiver has more to do than it can, and refused it")                  \
    X(NO_SERVICE, -10, GONE, "no such cluster is known")                                           \
    X(NO_INSTANCE, -11, GONE, "the cluster has no such instance now")                              \
    X(PEER_GONE, -12, GONE, "the instance died or left")                                           \
    X(NO_DAEMON, -13, GONE, "ringbusd cannot be reached")                                          \
    X(CLOSED, -14, GONE, "the handle, claim or loan has ended")                                    \
    X(UNKNOWN_OUTCOME, -15, GONE, "the request was sent and its receiver may have seen it")        \
    X(NO_MATCH, -16, GONE, "every instance fell out by a routing rule; ringbus_explain() tells")   \
    X(NOT_OWNER, -17, RETRY, "the key has another owner now, as the receiver sees it")             \
    X(DENIED, -20, DENIED, "the rules of the bus forbid it")                                       \
    X(IN_USE, -21, DENIED, "this address is taken by a living instance")                           \
    X(QUOTA, -22, DENIED, "a quota of this user or endpoint is used up")                           \
    X(CLASH, -23, DENIED, "another name has the same id; choose a different one")                  \
    X(VERSION, -24, DENIED, "the other side speaks another version of the protocol or layout")     \
    X(DRAINING, -25, RETRY, "the instance is leaving and takes nothing new; another may come")     \
    X(TOO_BIG, -30, USAGE, "larger than the limit")                                                \
    X(ARGUMENT, -31, USAGE, "an argument is out of its range")                                     \
    X(PATH, -32, USAGE, "not a path /App/Area/Platform/World/Group/Cluster[/Instance]")            \
    X(WRONG_PROCESS, -33, USAGE, "the handle was opened before fork() by the parent")              \
    X(WRONG_THREAD, -34, USAGE, "another thread is inside this handle now")                        \
    X(NOT_TARGET, -35, USAGE, "call ringbus_target() for this cluster first")                      \
    X(NOT_REQUEST, -36, USAGE, "the message is not a request")                                     \
    X(HANDLER_FAILED, -37, GONE, "the receiver's handler reported a failure")                      \
    X(NO_MEMORY, -40, SYSTEM, "not enough memory")                                                 \
    X(NO_FDS, -41, SYSTEM, "out of file descriptors")                                              \
    X(SYSTEM, -42, SYSTEM, "the kernel refused a call")                                            \
    X(BAD_PEER, -50, GONE, "the peer broke the rules of the protocol")                             \
    X(INTERNAL, -99, INTERNAL, "a bug in ringbus")

enum ringbus_error {
    RINGBUS_OK = 0,
#define RINGBUS_ERROR_ENUM(name, value, kind, text) RINGBUS_E_##name = (value),
    RINGBUS_ERRORS(RINGBUS_ERROR_ENUM)
#undef RINGBUS_ERROR_ENUM
};

/** Fixed English text of an error code; never NULL. Any thread. */
RINGBUS_API const char *ringbus_strerror(int error);
/** "RINGBUS_E_FULL" for -1 and so on; never NULL. Any thread. */
RINGBUS_API const char *ringbus_error_name(int error);
/** What the code asks of the caller. Any thread. */
RINGBUS_API enum ringbus_error_kind ringbus_error_kind(int error);
/**
 * Sentence about the last failed call on this handle, with names and limits.
 * @param bus  a handle, or NULL for the last ringbus_open() that failed in this thread
 * @return valid until the next call on the handle; empty when nothing failed
 */
RINGBUS_API const char *ringbus_errmsg(const struct ringbus *bus);
/**
 * After RINGBUS_E_LIMITED: when it is worth trying again, in microseconds from the refusal on. By
 * then the message passes the limit, unless others were sent in between. No system call.
 * @return 0 when the last failure of this handle was another one, or it was the number of requests
 *         under way that is limited: then, when one of them has ended
 */
RINGBUS_API uint64_t ringbus_retry_after_us(const struct ringbus *bus);
/** "0.1.0". */
RINGBUS_API const char *ringbus_version(void);

/* ---- addresses ------------------------------------------------------------------------- */

/** instance: any one of the cluster, as its policy says: with a key its owner, else by load. */
#define RINGBUS_ANY 0
/** instance: every instance of the cluster (any negative value means the same). */
#define RINGBUS_ALL (-1)

/** PIDF, the address: 16 bytes, copied freely. */
struct ringbus_addr {
    uint64_t cluster;     /**< XXH3-64 of the cluster path; 0 is the local daemon */
    int32_t instance;     /**< > 0 that one, 0 any, < 0 all */
    uint32_t incarnation; /**< 0 any life of the instance, else only that one */
};

/** Longest path in bytes, without the terminator. */
#define RINGBUS_PATH_MAX 255

/**
 * Turns a path of 6 or 7 elements into an address. Pure; any thread.
 *
 * A cluster path gives instance RINGBUS_ANY. An element has 1 to 63 bytes of
 * [A-Za-z0-9_.-] and is neither "." nor "..".
 * @retval 0; RINGBUS_E_PATH; RINGBUS_E_ARGUMENT a NULL
 */
RINGBUS_API int ringbus_resolve(const char *path, struct ringbus_addr *out);

/**
 * Readable path of an address, as far as this handle knows it (its targets, its links,
 * the directory); otherwise "#CLUSTER/INSTANCE" in hexadecimal and decimal.
 *
 * @param buffer  at least RINGBUS_PATH_MAX + 1 bytes
 * @return length of the text, or an error
 */
RINGBUS_API int
ringbus_format(struct ringbus *bus, const struct ringbus_addr *addr, char *buffer, size_t size);

/** Key of a string or structure, for the keyed forms of send: XXH3-64. Pure. */
RINGBUS_API uint64_t ringbus_key(const void *data, size_t size);

/* ---- messages and events --------------------------------------------------------------- */

/** Flags of send, claim and request. */
#define RINGBUS_KEY  0x1U /**< the key argument counts (0 is a key like any other) */
#define RINGBUS_MORE 0x2U /**< more follows at once: the wake-up waits for the last one */
#define RINGBUS_IDEMPOTENT                                                                         \
    0x4U /**< may be handled twice: on_down sends it on even when its receiver may have seen it */
/** In options only: nothing is taken over from the message whose callback runs. */
#define RINGBUS_NO_INHERIT 0x8U

/** Most parts of a message. */
#define RINGBUS_PARTS_MAX 16

/** Part of a message, for ringbus_sendv() and in a message view. */
struct ringbus_part {
    const void *data; /**< may be NULL when size is 0 */
    size_t size;
};

enum ringbus_kind {
    RINGBUS_KIND_ONEWAY = 1,
    RINGBUS_KIND_REQUEST = 2,
    RINGBUS_KIND_REPLY = 3,
};

/** Names a request that waits for its answer; copy it to answer after the callback. */
struct ringbus_reply_to {
    struct ringbus_addr peer;
    uint64_t id; /**< 0 in messages that are not requests */
};

/** Flags of a message view. */
#define RINGBUS_MESSAGE_KEY       0x1U /**< key is set */
#define RINGBUS_MESSAGE_BROADCAST 0x2U /**< it was sent to all instances */
#define RINGBUS_MESSAGE_REFERENCED                                                                 \
    0x4U /**< lies in the sender's pool: ringbus_keep() copies nothing */
#define RINGBUS_MESSAGE_IDEMPOTENT  0x8U  /**< its sender said RINGBUS_IDEMPOTENT */
#define RINGBUS_MESSAGE_ANY         0x10U /**< sent to RINGBUS_ANY: this instance was chosen */
#define RINGBUS_MESSAGE_REDELIVERED 0x20U /**< an instance that ended may have handled it before */
/** A reply that no instance gave, but a mock or a local callback (ringbus_degrade()). */
#define RINGBUS_MESSAGE_MOCKED 0x40U
/** Its key is another instance's, whom the sender could not reach: `divert` of the target. */
#define RINGBUS_MESSAGE_DIVERTED 0x80U

/** Labels of a message, for routing by parameter. */
#define RINGBUS_LABELS_MAX 4
/** Longest tag, in bytes without the terminator. */
#define RINGBUS_TAG_MAX 63
/** Highest priority; 0 is the lowest, and that of messages without attributes. */
#define RINGBUS_PRIORITY_MAX 3

/** What a sender said of a message beside key and payload (struct ringbus_message_options). */
struct ringbus_attributes {
    const char *tag; /**< "" when none */
    uint32_t method; /**< 0 when none */
    uint16_t codec;  /**< how the payload is written: the application's numbers, 0 unsaid */
    uint16_t schema; /**< and in which version of its schema */
    uint32_t labels[RINGBUS_LABELS_MAX];
    unsigned priority;          /**< 0 to RINGBUS_PRIORITY_MAX */
    uint64_t deadline_ns;       /**< CLOCK_MONOTONIC: who has not begun by then leaves it; 0 none */
    uint64_t sent_ns;           /**< CLOCK_MONOTONIC when it was sent; 0 unsaid */
    unsigned char trace_id[16]; /**< all 0 when none */
    uint64_t span_id;
};

/** A received message: lent for the time of the callback. */
struct ringbus_message {
    struct ringbus_addr
        from;              /**< stamped from the link, with incarnation; never the sender's word */
    const char *from_path; /**< readable path of the sender's instance */
    enum ringbus_kind kind;
    unsigned flags;
    uint64_t key; /**< valid with RINGBUS_MESSAGE_KEY */
    const void *data;
    size_t size;
    unsigned part_count; /**< 1 for messages that were not sent in parts */
    const struct ringbus_part *parts;
    struct ringbus_reply_to reply_to;
    /** NULL: its sender said nothing. Of a reply: what its request said. */
    const struct ringbus_attributes *attributes;
};

/**
 * Why a link ended, could not be made, or an instance went. After each end but UNTARGETED by this
 * endpoint, an instance that is still a target, and there, is linked again by itself.
 */
enum ringbus_reason {
    RINGBUS_REASON_NONE = 0,
    RINGBUS_REASON_LEFT = 1,     /**< the peer closed in order */
    RINGBUS_REASON_CRASHED = 2,  /**< the kernel reported its end, or the daemon had to close it */
    RINGBUS_REASON_SILENT = 3,   /**< no PONG, or nothing within dead-after; it may live */
    RINGBUS_REASON_BAD_PEER = 4, /**< it broke the protocol */
    RINGBUS_REASON_REFUSED = 5,  /**< it, or the daemon, did not accept the link: see error */
    RINGBUS_REASON_DENIED = 6,   /**< there is no right to it, or not any more: see error */
    RINGBUS_REASON_REPLACED = 7, /**< a new life of the instance took over */
    /** The peer had given us up while we did not run: poll more often, or ringbus_alive(). */
    RINGBUS_REASON_GIVEN_UP = 8,
    RINGBUS_REASON_UNTARGETED = 9,   /**< ringbus_untarget(), here or there */
    RINGBUS_REASON_NO_RESOURCES = 10 /**< memory or descriptors were short on one side */
};

enum ringbus_event_type {
    RINGBUS_EVENT_READY = 1, /**< a link is usable; addr and path say to whom */
    /**
     * A link ended; reason says why. With our own address and RINGBUS_REASON_REPLACED: another
     * process has taken our name over (takeover). The handle is as closed, but for what is kept:
     * every link ends, every send returns RINGBUS_E_CLOSED; close it.
     */
    RINGBUS_EVENT_DOWN = 2,
    /**
     * A message that addr, which has ended, did not consume. Each comes once, in the order sent.
     * message is the sender's own (from is this endpoint), with its key and kind, and can be kept.
     *
     * maybe_seen 0: no handler has had it. maybe_seen 1: at most the one message in whose
     * handler it ended or stands still. All that it had not handled when it may live and read on:
     * it broke the protocol, or ended the link for a reason but LEFT and has not freed it yet, or
     * was SILENT where the kernel refuses membarrier(2).
     * A message counts as consumed when its handler has returned. Requests are not reported so:
     * their callback ends with RINGBUS_NOT_SENT or RINGBUS_UNKNOWN. Nor is what on_down sends on.
     */
    RINGBUS_EVENT_UNDELIVERED = 3,
    RINGBUS_EVENT_ADDED = 4,       /**< an instance joined a target or watched prefix */
    RINGBUS_EVENT_UPDATED = 5,     /**< its state or weight changed */
    RINGBUS_EVENT_REMOVED = 6,     /**< it left or died; reason says which */
    RINGBUS_EVENT_RESYNC = 7,      /**< events were lost: read ringbus_instances() again */
    RINGBUS_EVENT_DAEMON_LOST = 8, /**< links go on, nothing new comes; it is tried again */
    RINGBUS_EVENT_DAEMON_BACK = 9, /**< registered again with the same incarnation */
    /**
     * An instance could not be linked: reason, and error as of the party that refused
     * (RINGBUS_E_QUOTA, _NO_FDS, _TIMEOUT, _PEER_GONE ...). Tried again by itself, after 50 ms
     * and then ever later, up to 5 s; ringbus_errmsg() has the sentence.
     */
    RINGBUS_EVENT_LINK_FAILED = 10,
    /**
     * A peer has been silent for longer than one that is well: it missed a PING of ours, or half
     * of the time after which it counts as gone is over. silent_ms says for how long, paused
     * whether it will be given up. The link stays usable; RINGBUS_ANY without a key prefers
     * others meanwhile, a key stays with its instance. Once in each silence; not before a DOWN
     * that a single miss brings.
     */
    RINGBUS_EVENT_SUSPECT = 11,
    RINGBUS_EVENT_ALIVE = 12,   /**< a suspect peer has given a sign of life; once each SUSPECT */
    RINGBUS_EVENT_DRAIN = 13,   /**< an operator drains this endpoint: it is DRAINING already */
    RINGBUS_EVENT_UNDRAIN = 14, /**< and has taken that back */
    /**
     * With the option slots: parts of the key space that this instance owns from now on, in its
     * cluster's table as every caller has it; slots, slot_count and epoch say which. The first
     * one brings all that it owns. Where both come, LOST comes first.
     */
    RINGBUS_EVENT_SLOTS_GAINED = 15,
    RINGBUS_EVENT_SLOTS_LOST = 16, /**< and parts that another owns now */
    /**
     * An instance that this endpoint targets is shielded: its calls failed too often, summed over
     * all callers of the host. The link stays. What has no key goes to others; the daemon has it
     * probed and lets it back by itself.
     */
    RINGBUS_EVENT_SHIELDED = 20,
    RINGBUS_EVENT_UNSHIELDED = 21, /**< it gets messages again, at first a share of its weight */
    /**
     * So little of a cluster is healthy, by weight, that shields are ignored: all that live get
     * messages, unless the policy is to fail then. addr is the cluster, path its path.
     */
    RINGBUS_EVENT_PANIC = 22,
    RINGBUS_EVENT_PANIC_OVER = 23, /**< enough are well again: shields count */
    /**
     * A node of the tree below a watched prefix was made, or is there when the watch begins: path,
     * revision, value.
     */
    RINGBUS_EVENT_NODE_CREATED = 24,
    RINGBUS_EVENT_NODE_CHANGED = 25, /**< it has another value, or was removed and made anew */
    /**
     * It is gone. reason: _NONE it was removed; _LEFT, _CRASHED, _REPLACED so its owner ended.
     * Also of an ephemeral node of this endpoint that others removed, or that a new daemon did not
     * take back (error says why), be it watched or not.
     */
    RINGBUS_EVENT_NODE_REMOVED = 26
};

/** Slots first to last of the key space, both inclusive. */
struct ringbus_slot_range {
    uint32_t first;
    uint32_t last;
};

/** An event: lent for the time of the callback. */
struct ringbus_event {
    enum ringbus_event_type type;
    enum ringbus_reason reason;
    int error;                             /**< enum ringbus_error where one applies, else 0 */
    struct ringbus_addr addr;              /**< whom it is about; all zero when nobody */
    const char *path;                      /**< readable path of addr, "" when none */
    int maybe_seen;                        /**< UNDELIVERED: its handler may have run */
    const struct ringbus_message *message; /**< UNDELIVERED only, else NULL */
    /**
     * SUSPECT, and DOWN with RINGBUS_REASON_SILENT: for so long the peer has not polled. DOWN
     * with RINGBUS_REASON_GIVEN_UP: for so long we have not, at most, in the last 10 s.
     */
    uint32_t silent_ms;
    /** SUSPECT: 1 when the peer holds for a debugger (debug_hold): silence alone ends nothing. */
    int paused;
    struct ringbus_addr to; /**< UNDELIVERED: as it was sent, RINGBUS_ANY, RINGBUS_ALL or addr's
                                 instance; incarnation 0, so that it can be sent there again */
    const struct ringbus_slot_range *slots; /**< SLOTS_GAINED and _LOST: ascending; else NULL */
    size_t slot_count;
    uint64_t epoch; /**< SLOTS_GAINED and _LOST: of the cluster's snapshot; grows */
    /**
     * NODE_*: of the change; each change of any node has a higher one than those before. 0 of a
     * removal that was found out afterwards.
     */
    uint64_t revision;
    const void *value; /**< NODE_CREATED and _CHANGED: of the node; not terminated */
    size_t value_size;
};

/** How a request ended. */
enum ringbus_outcome {
    RINGBUS_REPLIED = 0,  /**< message holds the reply */
    RINGBUS_FAILED = 1,   /**< the handler reported an error; error and message hold it */
    RINGBUS_UNKNOWN = 2,  /**< sent; whether it was handled is unknown (timeout, death) */
    RINGBUS_NOT_SENT = 3, /**< certainly not handled; with an error of its receiver's: refused */
};

/** Result of a request: lent for the time of the callback. */
struct ringbus_result {
    enum ringbus_outcome outcome;
    int error; /**< 0 with RINGBUS_REPLIED; TIMEOUT, PEER_GONE, HANDLER_FAILED ... otherwise */
    const struct ringbus_message *message; /**< the reply, or NULL */
    struct ringbus_addr peer;              /**< who was asked; after several, the last */
    uint64_t elapsed_ns;
    uint32_t retry_after_ms; /**< with RINGBUS_E_LIMITED and _SHED: not sooner; 0 unsaid */
    uint32_t tries;          /**< instances asked; 0: none was */
};

typedef void (*ringbus_message_fn)(struct ringbus *bus,
                                   const struct ringbus_message *message,
                                   void *user);
typedef void (*ringbus_event_fn)(struct ringbus *bus,
                                 const struct ringbus_event *event,
                                 void *user);
typedef void (*ringbus_reply_fn)(struct ringbus *bus,
                                 const struct ringbus_result *result,
                                 void *context);

/* ---- life of a handle ------------------------------------------------------------------ */

/** Chunk sizes of a pool, ascending; a zero count ends the list. */
struct ringbus_pool_class {
    uint32_t chunk_bytes; /**< 64 to 2^30, rounded up to a multiple of 64 */
    uint32_t count;       /**< 1 to 65536 */
};
#define RINGBUS_POOL_CLASSES_MAX 8

enum ringbus_mode {
    RINGBUS_MODE_SLEEP = 0, /**< default: ringbus_wait() spins briefly, then sleeps */
    RINGBUS_MODE_BUSY = 1,  /**< never sleeps: the caller polls; senders never ring */
};

/** Options of ringbus_open(). Start from RINGBUS_OPTIONS_INIT; a zero field means its default. */
struct ringbus_options {
    size_t struct_size; /**< set by RINGBUS_OPTIONS_INIT */
    /** Daemon's socket; default $RINGBUS_SOCKET, then the standard places. */
    const char *socket;
    /** 7 elements; NULL: an anonymous client that nobody can look up. */
    const char *path;
    /** Share of dispatch, 1 to 1000, default 100; RINGBUS_WEIGHT_NONE: 0. */
    uint32_t weight;
    const char *set;  /**< "name.area.group" or NULL */
    const char *idc;  /**< location, "group" or "group/zone", or NULL */
    const char *tags; /**< "tag,tag" or NULL */
    /** From "ringbusctl token", for clusters that ask for one; at most 255 bytes; never logged. */
    const char *token;
    enum ringbus_mode mode;
    /** Ring towards each peer, bytes: power of two, 4 KiB to 64 MiB, default 64 KiB. */
    uint32_t lane_bytes;
    /** Payloads up to so many bytes travel in the ring; default lane_bytes / 8, at most 8 KiB. */
    uint32_t inline_max;
    /** Payloads by reference under way on a link: power of two, 16 to 65536, default 256. */
    uint32_t refs_per_link;
    /** Chunks for larger payloads, default 16 KiB x 16, 128 KiB x 4, 1 MiB x 2. */
    struct ringbus_pool_class pool[RINGBUS_POOL_CLASSES_MAX];
    /** To peers that this endpoint asked for: 10 to 60000, default the daemon's (1000). */
    uint32_t ping_interval_ms;
    /** 1 to 100, default the daemon's (3). */
    uint32_t ping_misses;
    /** For ringbus_open() to reach the daemon, default 5000. */
    uint32_t connect_timeout_ms;
    /** Longest spin of ringbus_wait() before it sleeps, at most 1000000, default 50. */
    uint32_t spin_us;
    /** NULL: messages are counted and dropped, requests answered with an error. */
    ringbus_message_fn on_message;
    /** NULL: events are not reported. */
    ringbus_event_fn on_event;
    void *user; /**< passed to both */
    /**
     * Debug hold: this process may be stopped in a debugger for any time. Its peers are told,
     * get RINGBUS_EVENT_SUSPECT with `paused`, and wait instead of giving it up for silence;
     * what they send waits in its lanes until those are full. Its death ends its links as ever.
     * 1: on; -1: off; 0: $RINGBUS_DEBUG_HOLD (0 or 1), then liveness.debug_hold of the daemon
     * (off). Fixed for the life of the handle. Not for production: a process that hangs is held
     * as well.
     */
    int debug_hold;
    /**
     * 1: takes the name from an instance that lives and has it, if the rules of the bus allow that
     * ("takeover"; by default the same user, and root). That one gets RINGBUS_EVENT_DOWN with its
     * own address and RINGBUS_REASON_REPLACED; links do not move. 0: RINGBUS_E_IN_USE, as ever.
     */
    int takeover;
    /**
     * RINGBUS_SLOTS_*: whether this instance follows which keys it owns. For those whose state
     * goes by key. Takes the memory of two slot tables (128 KiB each by default), and the time to
     * bring one up to date with each change of its cluster.
     */
    int slots;
};

#define RINGBUS_SLOTS_OFF    0
#define RINGBUS_SLOTS_REPORT 1 /**< RINGBUS_EVENT_SLOTS_*, ringbus_slots(), ringbus_owns() */
/**
 * The same, and requests that were dealt to this instance by a key that it does not own (its
 * caller knew an older snapshot) are refused with RINGBUS_E_NOT_OWNER before on_message has them:
 * the caller looks again. Not those that came by another rank or were sent on. Not for clusters
 * whose callers see different instances: by set, or as redelivering targets do.
 */
#define RINGBUS_SLOTS_REFUSE 2
#define RINGBUS_WEIGHT_NONE  UINT32_MAX
#ifdef __cplusplus
#define RINGBUS_OPTIONS_INIT ringbus_options_default()
#else
#define RINGBUS_OPTIONS_INIT                                                                       \
    {                                                                                              \
        .struct_size = sizeof(struct ringbus_options)                                              \
    }
#endif

/** The same as a value, for assignment. */
static inline struct ringbus_options ringbus_options_default(void)
{
    struct ringbus_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/**
 * Connects to the daemon, reserves memory, registers the endpoint.
 *
 * Talks to the daemon; waits at most connect_timeout_ms for it. All memory that sends will
 * need is reserved here, where failing is an error; a large pool takes its time (about
 * 0.25 ms a MiB), which does not count. The first handle of a process that has threads already
 * takes some 15 ms more, once: the kernel makes its threads known to membarrier(2).
 *
 * @param options  copied, strings included; NULL: all defaults, an anonymous client
 * @param out      written on success only; to be closed by ringbus_close()
 * @retval 0
 * @retval RINGBUS_E_NO_DAEMON, RINGBUS_E_TIMEOUT  nobody listens or answers; retry later
 * @retval RINGBUS_E_IN_USE, RINGBUS_E_CLASH, RINGBUS_E_DENIED, RINGBUS_E_QUOTA, RINGBUS_E_VERSION
 *         refused by the daemon; ringbus_errmsg(NULL) has its sentence
 * @retval RINGBUS_E_NO_MEMORY, RINGBUS_E_NO_FDS, RINGBUS_E_SYSTEM
 * @retval RINGBUS_E_ARGUMENT, RINGBUS_E_PATH
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_open(const struct ringbus_options *options,
                                                struct ringbus **out);

/**
 * Begins to leave in order, and returns at once: the endpoint goes on, but nobody new is
 * introduced to it, and nobody dispatches to it any more.
 *
 * What that takes is done by ringbus_poll(); ringbus_drained() says when it is over. Sends that
 * name this instance (instance > 0) and replies still come: whoever began something with it can
 * end it. They are refused or given back (RINGBUS_EVENT_UNDELIVERED, RINGBUS_NOT_SENT) once it
 * has closed. For loops that must not block: ringbus_drain(), poll as ever until
 * ringbus_drained() and nothing that the application owes is open, then
 * ringbus_close(bus, 0). Allowed inside callbacks; harmless when it drains already.
 *
 * @retval 0  also while the daemon is away: it is told when it is back
 * Cost: a message to the daemon, a record to each peer that targets this instance.
 */
RINGBUS_API int ringbus_drain(struct ringbus *bus);
/**
 * Takes ringbus_drain() back: the endpoint is READY again, and dispatched to. Allowed inside
 * callbacks.
 * @retval 0                also when it was not draining
 * @retval RINGBUS_E_DENIED an operator has drained it: that is for "ringbusctl undrain" to end.
 *                          The application's own will is taken back all the same
 * @retval RINGBUS_E_CLOSED inside ringbus_close(): too late
 * Cost: as ringbus_drain().
 */
RINGBUS_API int ringbus_undrain(struct ringbus *bus);
/**
 * Whether the drain, by ringbus_drain() or by an operator, is over: every peer that dispatched
 * to this endpoint has acknowledged that it does so no more; all that came before has been
 * through on_message; the endpoint's own requests have ended; and the peers have read what it
 * had sent. Requests that it has not answered are the application's to know of.
 *
 * Peers of an earlier version do not acknowledge: half a second is taken for it. A peer that
 * neither acknowledges nor dies keeps it from being over: give up by ringbus_close(bus, 0).
 *
 * @retval 1 over; 0 not, or not draining
 * Cost: no system call. Changes in ringbus_poll() only; ringbus_wait() returns for it.
 */
RINGBUS_API int ringbus_drained(const struct ringbus *bus);

/**
 * Leaves the bus and frees the handle.
 *
 * With @p drain_ms > 0 it drains first, as ringbus_drain() does (which may have begun it), and
 * calls back for what comes, for at most that long; then it says DISCONNECT behind its last
 * message. Answers that the application owes must be given from the callbacks, or before:
 * whoever waits for one that never comes ends with RINGBUS_UNKNOWN. So do requests of this
 * endpoint that are still unanswered.
 *
 * With 0 it waits for nothing and says goodbye at once. What it had sent is read by those peers
 * that live, all the same; what they had sent and it has not read, they get back.
 *
 * @param bus       NULL is accepted; owned by nobody afterwards, but for BUSY and WRONG_THREAD
 * @param drain_ms  0 to UINT32_MAX, in milliseconds: longer than the slowest handler takes
 * @retval 0                drained; or @p drain_ms is 0, which nobody can be late for
 * @retval RINGBUS_E_TIMEOUT the time was over before; the handle is freed all the same
 * @retval RINGBUS_E_BUSY   called inside a callback: nothing was done
 * @retval RINGBUS_E_WRONG_PROCESS the child's copy is freed, the parent's endpoint untouched
 * Cost: a record to each peer, a message to the daemon, and the memory given back to the kernel.
 */
RINGBUS_API int ringbus_close(struct ringbus *bus, uint32_t drain_ms);

/** The endpoint's own address, with its incarnation. */
RINGBUS_API int ringbus_self(const struct ringbus *bus, struct ringbus_addr *out);
/** The endpoint's own path; valid as long as the handle. NULL for a wrong handle. */
RINGBUS_API const char *ringbus_self_path(const struct ringbus *bus);
/** What the application keeps beside the handle. */
RINGBUS_API void *ringbus_user(const struct ringbus *bus);

/* ---- the loop -------------------------------------------------------------------------- */

/**
 * Dispatches what has arrived: messages, events, replies, timeouts. Never waits.
 *
 * @param max  messages at most, 1 to 1000000
 * @return messages handled (0: nothing was there), or
 * @retval RINGBUS_E_BUSY      inside a callback: return from it first
 * @retval RINGBUS_E_ARGUMENT  @p max is out of its range
 * Cost: no system call in busy mode, unless nothing comes and a peer shares our core: then
 * sched_yield() now and then. Else one now and then for the control socket.
 */
RINGBUS_API int ringbus_poll(struct ringbus *bus, int max);

/**
 * Waits until ringbus_poll() has something to do, a full lane that refused a send has
 * room again or a chunk has come back that one was refused for, or ringbus_wake() was called.
 *
 * @param timeout_ms  0 looks only, < 0 without limit
 * @retval 1 something may be there
 * @retval 0 the time is over
 * @retval RINGBUS_E_BUSY inside a callback: return from it first
 */
RINGBUS_API int ringbus_wait(struct ringbus *bus, int timeout_ms);

/**
 * "I am working": for handlers that take longer than peers wait for a sign of life.
 *
 * PINGs are answered by ringbus_poll(), and by nothing else: a process that lives but does not
 * poll is called down by its peers after their bound (RINGBUS_REASON_SILENT, with silent_ms),
 * as one that hangs. A handler that works for long calls this now and then, at least twice in
 * each ping interval of its peers. Nothing is dispatched. Allowed inside callbacks and out.
 *
 * Cost: a look at the clock, no system call; twice in an interval one record for each link, and
 * one system call for each peer that sleeps. A peer on whose lane a claim is open hears nothing.
 * @retval 0
 */
RINGBUS_API int ringbus_alive(struct ringbus *bus);

/** Ends a ringbus_wait(), now or the next one. Any thread; async-signal-safe; one system call. */
RINGBUS_API int ringbus_wake(struct ringbus *bus);

/**
 * Descriptor for an event loop of the application's own: readable (level-triggered)
 * when ringbus_poll() should be called. Stays the handle's. After it was asked for,
 * each ringbus_poll() that finds nothing prepares for sleep by itself; call poll once
 * before the first wait.
 */
RINGBUS_API int ringbus_fd(struct ringbus *bus);

/* ---- targets and discovery ------------------------------------------------------------- */

/** What becomes of messages that an instance did not consume when it ends. */
enum ringbus_on_down {
    RINGBUS_ON_DOWN_REPORT = 0, /**< default: RINGBUS_EVENT_UNDELIVERED, or the request's end */
    /**
     * Those sent to RINGBUS_ANY, requests too, go on to another instance of the cluster, chosen
     * as for a new one: those that no handler has had, and with RINGBUS_IDEMPOTENT also those
     * that one may have had, once. A request keeps its callback and its deadline. The rest is
     * reported: what was sent to one instance or to all is for no other, not even for the next
     * life of that instance.
     *
     * Order per key is kept as long as no instance joins meanwhile: from the end of the link until
     * all has gone on, sends to RINGBUS_ANY of the cluster return RINGBUS_E_FULL. Messages wait for
     * room and for an instance up to redeliver_ms, in the memory that they were in, and are
     * reported then, after RINGBUS_EVENT_DOWN.
     */
    RINGBUS_ON_DOWN_REDELIVER = 1,
};

/**
 * How a request of ringbus_request_with() to RINGBUS_ANY is asked. Asked again is what was
 * certainly not handled: its receiver ended, left, is not ready or full, or refused it with
 * RINGBUS_E_SHED; with RINGBUS_IDEMPOTENT also what was lost or took longer than try_timeout_ms.
 * A handler's own failure is an answer. All tries are within timeout_ms, and no instance is asked
 * twice; of the requests to a cluster no more than 20 % are asked again, 3 a second at least, and
 * none while half of them or more fail. RINGBUS_E_NOT_OWNER is followed once, in each mode: the
 * owner of the key is looked up anew.
 */
enum ringbus_retry {
    /** As the policy of the bus says; without one FAILOVER, with a key FAILFAST. */
    RINGBUS_RETRY_AUTO = 0,
    RINGBUS_RETRY_FAILFAST = 1, /**< once */
    /** Of another instance, retry_tries times; one with a key is marked RINGBUS_MESSAGE_DIVERTED */
    RINGBUS_RETRY_FAILOVER = 2,
    RINGBUS_RETRY_FORKING = 3, /**< of two at once, whatever the key: the first answer counts */
    RINGBUS_RETRY_BROADCAST =
        4, /**< of all that are READY: the first failure, else the last reply */
    /**
     * For ringbus_send_with(): what cannot be sent now is kept, 100 messages at most, and tried
     * again each second, or when a link comes, in their order, until it is sent or its timeout_ms
     * is over. Then, and at ringbus_close(), it is given back (RINGBUS_EVENT_UNDELIVERED with error
     * and the cluster as addr). A full store is RINGBUS_E_FULL. Requests: as FAILFAST.
     */
    RINGBUS_RETRY_FAILBACK = 5,
    /** Once; a failure counts as answered, by an empty message with RINGBUS_MESSAGE_MOCKED. */
    RINGBUS_RETRY_FAILSAFE = 6,
};

/** Options of ringbus_target(). Zero fields mean defaults. */
struct ringbus_target_options {
    size_t struct_size;
    uint32_t ping_interval_ms;    /**< 10 to 60000, default: the handle's */
    uint32_t ping_misses;         /**< 1 to 100, default: the handle's */
    enum ringbus_on_down on_down; /**< default: RINGBUS_ON_DOWN_REPORT */
    uint32_t redeliver_ms;        /**< how long they wait, 1 to 60000 ms, default 1000 */
    enum ringbus_retry retry;     /**< default: as the policy of the bus says */
    uint32_t retry_tries;         /**< beyond the first, 1 to 7, default the policy's (1) */
    /**
     * A request of ringbus_request_with() that nobody can take now, whose instances or whose key's
     * owner are there but not linked (RINGBUS_E_NOT_READY) or have just died (_RESTARTING), waits
     * for so long for the link: 0 not, to 60000 ms.
     */
    uint32_t wait_ms;
    /**
     * 1: what is sent by ringbus_request_with() with a key whose owner is not linked, or has just
     * died, goes to another instance, after wait_ms, marked with RINGBUS_MESSAGE_DIVERTED. 0: it
     * fails.
     */
    int divert;
    /**
     * 1: an answer by ringbus_reply_error() counts against the instance as a timeout does, and
     * who fails too often is shielded. Default 0: it counts as answered, since "no such player"
     * is no fault of the instance. 0 or 1.
     */
    int errors_count;
    /** 1: a chooser (ringbus_hook()) says who gets a message, whatever the policy's balance is. */
    int custom;
};

/**
 * Declares interest in a cluster: its instances, present and future, are linked and kept; and
 * those of the same cluster of other businesses that its policy imports.
 *
 * Returns at once; RINGBUS_EVENT_READY comes for each link. A cluster without instances,
 * or not known yet, is waited for.
 *
 * Targeting again with other options changes the links that are up. What is asked for an
 * instance counts for that one, until its cluster is targeted again.
 *
 * @param path  6 elements: every instance; 7: that one only
 * @param options  copied; NULL: all defaults. struct_size is to be set
 * @param out   the cluster (RINGBUS_ANY) or the instance; may be NULL
 * @retval 0  also while the daemon is away: it is asked when it is back
 * @retval RINGBUS_E_PATH      not 6 or 7 elements: the sentence says where it is wrong
 * @retval RINGBUS_E_ARGUMENT  an option out of its range, which the sentence names
 * @retval RINGBUS_E_NO_MEMORY
 * Cost: a message to the daemon; each link takes memory of lane_bytes, and descriptors.
 */
RINGBUS_API int ringbus_target(struct ringbus *bus,
                               const char *path,
                               const struct ringbus_target_options *options,
                               struct ringbus_addr *out);
/**
 * Ends the interest; links that the peer did not ask for are closed, with RINGBUS_EVENT_DOWN and
 * RINGBUS_REASON_UNTARGETED. What was sent before is delivered.
 * @retval 0; RINGBUS_E_PATH; RINGBUS_E_NOT_TARGET it is none
 * Cost: a message to the daemon, a record to each peer.
 */
RINGBUS_API int ringbus_untarget(struct ringbus *bus, const char *path);

/** State of an instance in the directory. */
enum ringbus_instance_state {
    RINGBUS_INSTANCE_STARTING = 0,
    RINGBUS_INSTANCE_READY = 1,
    RINGBUS_INSTANCE_BUSY = 2,
    RINGBUS_INSTANCE_DRAINING = 3,
};

struct ringbus_instance {
    struct ringbus_addr addr;
    char path[RINGBUS_PATH_MAX + 1];
    enum ringbus_instance_state state;
    uint32_t weight;
    int linked; /**< 1: its link with this endpoint is READY */
};

/**
 * Instances of a cluster, from the directory in shared memory. No system call, works while
 * the daemon is down.
 *
 * @param path  6 elements
 * @param out   room for @p max entries; may be NULL when @p max is 0
 * @return number of instances there are (may be more than @p max), or
 * @retval RINGBUS_E_NO_SERVICE the cluster was never seen
 */
RINGBUS_API int
ringbus_instances(struct ringbus *bus, const char *path, struct ringbus_instance *out, size_t max);

/**
 * The slots that this instance owns, as told last. Needs the option slots.
 * @param out  room for @p max ranges, ascending; may be NULL when @p max is 0
 * @return number of ranges there are (may be more than @p max): 0 also before the first snapshot
 * @retval RINGBUS_E_ARGUMENT opened without the option slots
 * Cost: no system call; a pass over the table.
 */
RINGBUS_API int ringbus_slots(struct ringbus *bus, struct ringbus_slot_range *out, size_t max);
/**
 * Whether this instance owns a key. Needs the option slots.
 * @retval 1 it does; 0 another does, or nobody
 * @retval RINGBUS_E_NOT_READY no snapshot of its cluster is known yet
 * @retval RINGBUS_E_ARGUMENT  opened without the option slots
 * Cost: no system call; a few loads.
 */
RINGBUS_API int ringbus_owns(struct ringbus *bus, uint64_t key);

/**
 * Reports ADDED, UPDATED and REMOVED for every instance below a prefix, starting with an
 * ADDED for each present one. What changed while the daemon was away is reported once it is
 * back and others have had time to come back too (daemon.return_time, 2 s by default): REMOVED
 * for who has died, REMOVED and then ADDED for who was restarted, ADDED for who is new, and
 * nothing for who lived on. Instances below several watched prefixes are reported once. Nodes at
 * and below it are reported alike: NODE_CREATED, NODE_CHANGED, NODE_REMOVED, one event a change.
 * @param prefix  "/", 1 to 7 elements, or the path of a node
 * @retval 0  also while the daemon is away
 * @retval RINGBUS_E_PATH, RINGBUS_E_NO_MEMORY
 * Cost: a message to the daemon; then a message of it for each change.
 */
RINGBUS_API int ringbus_watch(struct ringbus *bus, const char *prefix);
/** Ends it. @retval 0; RINGBUS_E_PATH; RINGBUS_E_NOT_TARGET it is not watched */
RINGBUS_API int ringbus_unwatch(struct ringbus *bus, const char *prefix);

/**
 * Waits until a target can be sent to: a link to it is READY. Calls back meanwhile for what comes,
 * as ringbus_poll() does. For programs that may wait; others take RINGBUS_EVENT_READY.
 *
 * @param path        a target: 6 elements: any instance of the cluster; 7: that one
 * @param timeout_ms  0 looks only, < 0 without limit
 * @retval 0
 * @retval RINGBUS_E_NO_SERVICE  the time is over, and nobody has ever heard of the cluster
 * @retval RINGBUS_E_NO_INSTANCE the same; it is known, and nobody is there
 * @retval RINGBUS_E_NOT_READY   the same; somebody is there, and not linked: ringbus_errmsg() and
 *                               RINGBUS_EVENT_LINK_FAILED say why
 * @retval RINGBUS_E_NOT_TARGET  call ringbus_target() first
 * @retval RINGBUS_E_CLOSED      another has taken this name over
 * @retval RINGBUS_E_PATH; RINGBUS_E_BUSY inside a callback
 */
RINGBUS_API RINGBUS_MUST_CHECK int
ringbus_wait_ready(struct ringbus *bus, const char *path, int timeout_ms);

/* ---- nodes ----------------------------------------------------------------------------- */

/** Longest value of a node, in bytes. */
#define RINGBUS_NODE_VALUE_MAX 1024
/** For ringbus_node_create(): the node ends with this endpoint. */
#define RINGBUS_NODE_EPHEMERAL 0x1U

/** What is at a path of the tree (docs/guide/directory.md). */
enum ringbus_node_kind {
    RINGBUS_NODE_PREFIX = 0,   /**< there while something is below it */
    RINGBUS_NODE_CLUSTER = 1,  /**< 6 elements */
    RINGBUS_NODE_INSTANCE = 2, /**< 7 elements */
    RINGBUS_NODE_META = 3,     /**< ends with "meta": there while a node is below it */
    RINGBUS_NODE_USER = 4,     /**< below it: what ringbus_node_create() makes */
};

/** Something in the tree: lent for the time of the callback. */
struct ringbus_node {
    const char *path;
    enum ringbus_node_kind kind;
    uint64_t revision; /**< USER: of its last change; no other change has the same */
    const void *value; /**< USER; not terminated */
    size_t size;       /**< of value, 0 to RINGBUS_NODE_VALUE_MAX */
    int ephemeral;     /**< USER: 1 when it ends with the endpoint that made it */
    const char
        *creator;       /**< USER: path of that endpoint, or program of a tool; INSTANCE: program */
    uint32_t uid;       /**< USER, INSTANCE: whose it is */
    uint32_t instances; /**< CLUSTER: how many are there */
    const char *const *children; /**< names of what is right below it, ascending; at most 1024 */
    size_t child_count;
    int more; /**< 1: there are more: ask again with the last name as @p after */
};

/** How a question about a node ended: lent for the time of the callback. */
struct ringbus_node_result {
    int error;                       /**< 0, or enum ringbus_error: see each call */
    const char *text;                /**< sentence of a failure, "" when none */
    uint64_t revision;               /**< CREATE, SET, REMOVE: of the change; 0 of a cluster */
    const struct ringbus_node *node; /**< GET: what is there, else NULL */
};
typedef void (*ringbus_node_fn)(struct ringbus *bus,
                                const struct ringbus_node_result *result,
                                void *context);

/**
 * Makes a node below the element "meta" of a prefix or cluster, as in /game/eu/meta/season.
 *
 * Returns at once; the answer comes by @p on_result from ringbus_poll(), once, whatever happens:
 * - 0; revision is the new node's
 * - RINGBUS_E_IN_USE: it is there already; of several who try, one succeeds
 * - RINGBUS_E_NO_SERVICE: the node above it is not there
 * - RINGBUS_E_QUOTA (quota.nodes, quota.node_bytes), RINGBUS_E_DENIED (right "own"),
 *   RINGBUS_E_PATH, RINGBUS_E_ARGUMENT (no place for a node), RINGBUS_E_SYSTEM (not to be kept)
 * - RINGBUS_E_UNKNOWN_OUTCOME: the daemon was lost first, or took 10 s: get it when it is back
 * - RINGBUS_E_CLOSED: ringbus_close()
 *
 * A node stays until it is removed, over restarts of the daemon too. With RINGBUS_NODE_EPHEMERAL it
 * ends with this endpoint, stays this endpoint's whoever changes it, and has no children; a new
 * daemon is told of it by the library, and keeps its place until then.
 *
 * The path of a cluster, without a value: it is known from now on, and waited for (right "admin").
 *
 * @param value      copied; may be NULL when @p size is 0
 * @param size       0 to RINGBUS_NODE_VALUE_MAX bytes
 * @param flags      0 or RINGBUS_NODE_EPHEMERAL
 * @param on_result  not called when this call fails
 * @retval 0  asked
 * @retval RINGBUS_E_NO_DAEMON  ask again after RINGBUS_EVENT_DAEMON_BACK
 * @retval RINGBUS_E_QUOTA      256 questions wait for their answers: poll first
 * @retval RINGBUS_E_PATH, RINGBUS_E_TOO_BIG, RINGBUS_E_ARGUMENT, RINGBUS_E_NO_MEMORY
 * @retval RINGBUS_E_VERSION    the daemon is of an earlier version
 * Cost: a message to the daemon, and one of it.
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_create(struct ringbus *bus,
                                                       const char *path,
                                                       const void *value,
                                                       size_t size,
                                                       unsigned flags,
                                                       ringbus_node_fn on_result,
                                                       void *context);
/**
 * Gives a node another value. As ringbus_node_create(), and:
 * - RINGBUS_E_IN_USE: it has another revision by now: get it, and decide anew
 * - RINGBUS_E_NO_SERVICE: there is no such node
 * - RINGBUS_E_DENIED: the right "admin" of it; and of instances, which are their own
 * @param revision  only while it has this one; 0: whatever it has
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_set(struct ringbus *bus,
                                                    const char *path,
                                                    const void *value,
                                                    size_t size,
                                                    uint64_t revision,
                                                    ringbus_node_fn on_result,
                                                    void *context);
/**
 * Removes a node, an empty cluster, or an instance that an earlier daemon had and that has not come
 * back. As ringbus_node_set(), and:
 * - RINGBUS_E_IN_USE: something is below it
 * - RINGBUS_E_NO_INSTANCE: no such instance; RINGBUS_E_DENIED: it lives
 * @param revision  of a node, only while it has this one; 0: whatever it has
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_remove(struct ringbus *bus,
                                                       const char *path,
                                                       uint64_t revision,
                                                       ringbus_node_fn on_result,
                                                       void *context);
/**
 * Asks what is at a path, and right below it. The answer, by @p on_result:
 * - 0: node says what is there
 * - RINGBUS_E_NO_INSTANCE: a cluster that is known and has nobody in it now; node is there all the
 *   same. It is worth waiting: ringbus_target(), ringbus_watch(). Of 7 elements: no such instance
 * - RINGBUS_E_NO_SERVICE: there is no such node, and nobody has heard of such a cluster
 * - RINGBUS_E_DENIED (right "watch"), RINGBUS_E_NO_DAEMON, RINGBUS_E_TIMEOUT, RINGBUS_E_CLOSED
 * @param path   "/", 1 to 7 elements, or the path of a node
 * @param after  NULL, or: only children behind this name
 * @retval as ringbus_node_create()
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_get(struct ringbus *bus,
                                                    const char *path,
                                                    const char *after,
                                                    ringbus_node_fn on_result,
                                                    void *context);

/* ---- health ---------------------------------------------------------------------------- */

/** How something that this endpoint asked of an instance ended. */
enum ringbus_report_outcome {
    RINGBUS_REPORT_OK = 0,
    RINGBUS_REPORT_ERROR = 1,   /**< it answered with a failure of its own */
    RINGBUS_REPORT_TIMEOUT = 2, /**< it did not answer in time */
};

/**
 * Tells how an exchange of the application's own protocol ended, made of one-way messages: who
 * fails too often is shielded for all callers of the host. Requests need no report: theirs are
 * counted when they end (answered; timeout; the instance died; RINGBUS_E_SHED; and with
 * errors_count what ringbus_reply_error() says), but for what says nothing of the instance:
 * rate limits, rights, arguments, the end of this handle or of its interest.
 *
 * @param instance  one instance, of a cluster that was targeted; incarnation 0: the one linked
 * @param cost_us   how long it took, microseconds
 * @retval 0
 * @retval RINGBUS_E_ARGUMENT    not one instance, or not an outcome
 * @retval RINGBUS_E_NOT_TARGET  call ringbus_target() first
 * @retval RINGBUS_E_PEER_GONE   that life of it has no READY link: nothing to report
 * @retval RINGBUS_E_NO_MEMORY   its figures have no place in shared memory: free some, try again
 * Thread: that of the handle, also inside callbacks. Cost: a look-up and a few additions; no
 * system call.
 */
RINGBUS_API int ringbus_report(struct ringbus *bus,
                               const struct ringbus_addr *instance,
                               enum ringbus_report_outcome outcome,
                               uint64_t cost_us);

/* ---- sending --------------------------------------------------------------------------- */

/**
 * Sends one message by copying it. Never waits.
 *
 * Order per receiver is kept over all kinds and sizes. Payloads over the inline limit are
 * copied into a chunk of the pool and travel by reference. The first message to a receiver
 * maps the lane to it, which takes some ten microseconds.
 *
 * @param to     instance > 0: that one; RINGBUS_ANY: one of those that the stages of the
 *               cluster's policy leave, with RINGBUS_KEY the one that owns the key, else by
 *               default the one with less to do of two (docs/guide/dispatch.md);
 *               RINGBUS_ALL: every READY instance but the sender itself
 * @param data   borrowed for the call; NULL when @p size is 0
 * @param size   0 to ringbus_size_max()
 * @param flags  RINGBUS_KEY, RINGBUS_MORE, RINGBUS_IDEMPOTENT
 * @return number of receivers that have it (for RINGBUS_ALL also 0), or
 * @retval RINGBUS_E_FULL       nothing was sent; wait, dispatch, retry
 * @retval RINGBUS_E_LIMITED    nothing was sent: a limit of the cluster's policy is reached; retry
 *                              after ringbus_retry_after_us()
 * @retval RINGBUS_E_NO_CHUNK   nothing was sent; wait for returns, or open with a larger pool
 * @retval RINGBUS_E_NOT_READY, RINGBUS_E_DRAINING  nobody could take it now, or the key's owner
 *         is not linked: retry, after an event
 * @retval RINGBUS_E_RESTARTING the key's owner has died; it is back, or another takes over, within
 *                              balance.rehash_delay of the policy (3 s): retry
 * @retval RINGBUS_E_SHIELDED   the key's owner is shielded and the policy is to fail then; or all
 *                              that could take it are: retry later, or ask another cluster
 * @retval RINGBUS_E_NO_MATCH   a stage of the policy left nobody: the sentence names it and its
 *                              rule, ringbus_explain() tells all
 * @retval RINGBUS_E_DENIED     there is no right to the instance, to any of them, or to this
 *                              method: the sentence names the rule
 * @retval RINGBUS_E_NO_INSTANCE, RINGBUS_E_NO_SERVICE, RINGBUS_E_PEER_GONE  nobody is there; an
 *         instance that comes is linked by itself
 * @retval RINGBUS_E_NOT_TARGET  ringbus_target() first
 * @retval RINGBUS_E_BUSY       a claim on this link is open: end it first
 * @retval RINGBUS_E_BAD_PEER   the receiver broke the protocol: its link has ended, DOWN follows
 * @retval RINGBUS_E_ARGUMENT   an unknown flag, or bytes at NULL
 * @retval RINGBUS_E_TOO_BIG    over ringbus_size_max()
 * @retval RINGBUS_E_NO_MEMORY  nothing was sent: it would be the first, and the process has no
 *                              mapping left for the lane
 * With RINGBUS_ALL, receivers whose lane is full are skipped and counted ("full").
 */
RINGBUS_API int ringbus_send(struct ringbus *bus,
                             const struct ringbus_addr *to,
                             uint64_t key,
                             const void *data,
                             size_t size,
                             unsigned flags);

/** As ringbus_send(), in up to RINGBUS_PARTS_MAX parts; the receiver sees the same parts. */
RINGBUS_API int ringbus_sendv(struct ringbus *bus,
                              const struct ringbus_addr *to,
                              uint64_t key,
                              const struct ringbus_part *parts,
                              unsigned part_count,
                              unsigned flags);

/** What may be said of a message. Start from zero; a zero field says nothing. */
struct ringbus_message_options {
    size_t struct_size; /**< sizeof(struct ringbus_message_options) */
    unsigned flags;     /**< as of ringbus_send(), and RINGBUS_NO_INHERIT */
    uint64_t key;       /**< counts with RINGBUS_KEY */
    const char *tag;    /**< 1 to RINGBUS_TAG_MAX visible bytes of ASCII, no comma; "" none */
    uint32_t method;    /**< a number of the application's */
    uint32_t labels[RINGBUS_LABELS_MAX];
    unsigned priority;       /**< 0 to RINGBUS_PRIORITY_MAX */
    uint32_t timeout_ms;     /**< 1 to 3600000. Of a request, over all tries; 0: as inherited. Of a
                            message: not handled later, 0 no limit */
    uint32_t try_timeout_ms; /**< of a request, for each try; 0: all the time there is */
    unsigned char trace_id[16];
    uint64_t span_id;
    uint16_t codec;
    uint16_t schema;
};

/**
 * As ringbus_sendv(), and says of the message what @p options do: the receiver finds it in
 * ringbus_message.attributes. Receivers of earlier releases get the message without.
 *
 * In a callback of on_message or of a reply, tag, trace and priority that @p options leave open
 * are those of the message at hand, and its deadline is not exceeded; RINGBUS_NO_INHERIT says no.
 * A message whose deadline is over before its handler begins is dropped by its receiver and
 * counted there (expired). Attributes stay with a message that is redelivered or given back.
 *
 * To a target with RINGBUS_RETRY_FAILBACK: see there. Then 0: it is kept, to be sent later.
 *
 * @param options  borrowed for the call, with tag; NULL: as ringbus_sendv() without flags
 * @return as ringbus_send(), or
 * @retval RINGBUS_E_TIMEOUT   the inherited deadline is over: nothing was sent
 * @retval RINGBUS_E_ARGUMENT  an option out of its range, which the sentence names
 * Cost: a look at the clock, and 8 to 144 bytes more in the lane.
 */
RINGBUS_API int ringbus_send_with(struct ringbus *bus,
                                  const struct ringbus_addr *to,
                                  const struct ringbus_part *parts,
                                  unsigned part_count,
                                  const struct ringbus_message_options *options);

/** Largest payload that this handle can send, in bytes. */
RINGBUS_API size_t ringbus_size_max(const struct ringbus *bus);

/** Room for a message that is built in place. */
struct ringbus_claim {
    void *data;  /**< lent until commit or abort; 16-byte aligned; content undefined */
    size_t size; /**< as asked for */
    uint64_t opaque[6];
};

/**
 * Reserves room in the receiver's lane (or a chunk, for large sizes) to build a message in.
 *
 * One claim per link at a time; until it ends, sends to the same instance return
 * RINGBUS_E_BUSY, and signs of life to it wait as well: end it within half a ping interval.
 * @p to must name one instance or RINGBUS_ANY.
 */
RINGBUS_API int ringbus_claim(struct ringbus *bus,
                              const struct ringbus_addr *to,
                              uint64_t key,
                              size_t size,
                              unsigned flags,
                              struct ringbus_claim *out);
/**
 * Sends the first @p size bytes of the claim. @retval 1; RINGBUS_E_PEER_GONE; RINGBUS_E_CLOSED;
 * RINGBUS_E_ARGUMENT (still open)
 */
RINGBUS_API int ringbus_commit(struct ringbus *bus, struct ringbus_claim *claim, size_t size);
/** Gives the room back; nothing is sent. */
RINGBUS_API int ringbus_abort(struct ringbus *bus, struct ringbus_claim *claim);

/** A chunk of the own pool, to be sent by reference any number of times. */
struct ringbus_loan {
    void *data;  /**< 64-byte aligned; content undefined; not to be written after the first send */
    size_t size; /**< bytes asked for */
    uint64_t opaque[2];
};
/** Takes a chunk. @retval 0; RINGBUS_E_NO_CHUNK; RINGBUS_E_TOO_BIG */
RINGBUS_API int ringbus_loan(struct ringbus *bus, size_t size, struct ringbus_loan *out);
/**
 * Sends the first @p size bytes of a loan without copying; the loan stays the caller's. Returns as
 * ringbus_send().
 */
RINGBUS_API int ringbus_send_loan(struct ringbus *bus,
                                  const struct ringbus_addr *to,
                                  uint64_t key,
                                  const struct ringbus_loan *loan,
                                  size_t size,
                                  unsigned flags);
/** Ends the loan; the chunk is free when the last receiver has let go of it. */
RINGBUS_API int ringbus_loan_return(struct ringbus *bus, struct ringbus_loan *loan);

/* ---- requests -------------------------------------------------------------------------- */

/**
 * Sends a request; @p on_reply is called exactly once, from ringbus_poll(), unless this
 * call itself fails.
 *
 * A handler may send requests of its own, also back to who asked, to any depth: it returns, and
 * answers from the callback of the last one with a copy of reply_to. How a request ends:
 * RINGBUS_REPLIED; RINGBUS_FAILED, its handler said so; RINGBUS_NOT_SENT, no handler has had it or
 * will; RINGBUS_UNKNOWN, one may have had it or may yet (timeout, or its receiver ended). The
 * receiver's end ends it at once, unless on_down sends it on. A reply that comes later is dropped
 * and counted (late_replies): it never ends another request.
 *
 * @param to          as in ringbus_send(), not RINGBUS_ALL
 * @param timeout_ms  1 to 3600000
 * @param on_reply    not NULL
 * @retval 1 sent; otherwise the errors of ringbus_send()
 */
RINGBUS_API int ringbus_request(struct ringbus *bus,
                                const struct ringbus_addr *to,
                                uint64_t key,
                                const void *data,
                                size_t size,
                                unsigned flags,
                                uint32_t timeout_ms,
                                ringbus_reply_fn on_reply,
                                void *context);

/**
 * As ringbus_request(), says of the request what @p options do (ringbus_send_with()), and asks
 * again as its target's options have it (enum ringbus_retry), with a copy of the payload.
 *
 * @param options  borrowed for the call; NULL, or timeout_ms 0, needs a deadline to inherit
 * @retval 1 on its way: @p on_reply comes exactly once, also when all that is left is a mock
 * @retval RINGBUS_E_TIMEOUT   the inherited deadline is over
 * @retval RINGBUS_E_NO_MEMORY, RINGBUS_E_ARGUMENT and the errors of ringbus_send(): nobody could
 *         be asked, and @p on_reply does not come
 * Cost: that of ringbus_send_with(), a copy of the payload, no allocation in the steady state.
 */
RINGBUS_API int ringbus_request_with(struct ringbus *bus,
                                     const struct ringbus_addr *to,
                                     const struct ringbus_part *parts,
                                     unsigned part_count,
                                     const struct ringbus_message_options *options,
                                     ringbus_reply_fn on_reply,
                                     void *context);

/** What ends a request to a cluster instead of one of its instances. */
enum ringbus_degrade_action {
    RINGBUS_DEGRADE_FAIL = 0,  /**< it fails; with MANUAL at once, with RINGBUS_E_DENIED */
    RINGBUS_DEGRADE_MOCK = 1,  /**< a reply of fixed bytes */
    RINGBUS_DEGRADE_LOCAL = 2, /**< a callback of the application's */
};

/** When. */
#define RINGBUS_DEGRADE_MANUAL      0x1U /**< always: nobody is asked */
#define RINGBUS_DEGRADE_NO_INSTANCE 0x2U /**< nobody was there, or ready, to be asked */
#define RINGBUS_DEGRADE_SHIELDED    0x4U /**< RINGBUS_E_SHIELDED */
#define RINGBUS_DEGRADE_LIMITED     0x8U /**< RINGBUS_E_LIMITED, RINGBUS_E_SHED */

/**
 * Answers in the place of an instance, from ringbus_poll().
 * @param request  as its receiver would see it, lent; from is this endpoint
 * @param reply    to be filled; its bytes are looked at until the request's callback has returned
 * @return 0; below 0 the request's outcome is RINGBUS_FAILED with that error
 */
typedef int (*ringbus_local_fn)(struct ringbus *bus,
                                const struct ringbus_message *request,
                                struct ringbus_part *reply,
                                void *context);

struct ringbus_degrade {
    size_t struct_size; /**< sizeof(struct ringbus_degrade) */
    uint32_t method_low;
    uint32_t method_high; /**< inclusive; 0: no bound */
    enum ringbus_degrade_action action;
    unsigned triggers;      /**< RINGBUS_DEGRADE_*, one at least */
    const void *mock;       /**< MOCK: copied; may be NULL with size 0 */
    size_t mock_size;       /**< at most 2^30 */
    ringbus_local_fn local; /**< LOCAL only, else NULL */
    void *context;          /**< of local */
};

/**
 * Sets what ends requests to RINGBUS_ANY of a cluster when nobody is asked, or nobody has handled
 * them: the first rule that covers method and trigger. Rules of the bus's configuration come
 * before these; where one of those says "local" it means the first callback here for its method.
 * Such a reply has RINGBUS_MESSAGE_MOCKED, and counts as mocked, not as a reply.
 *
 * @param path   6 elements, a target; ringbus_untarget() forgets the rules
 * @param rules  copied with their mocks; replace those before
 * @param count  0 to 64; 0: none
 * @retval 0; RINGBUS_E_PATH; RINGBUS_E_NOT_TARGET; RINGBUS_E_ARGUMENT; RINGBUS_E_NO_MEMORY
 * Cost: allocates. Allowed inside callbacks.
 */
RINGBUS_API int ringbus_degrade(struct ringbus *bus,
                                const char *path,
                                const struct ringbus_degrade *rules,
                                unsigned count);

/**
 * Answers a request, inside its callback or later with a copy of its reply_to.
 *
 * A second answer to one request is not noticed here; the requester drops and counts it.
 *
 * RINGBUS_E_FULL and RINGBUS_E_NO_CHUNK: keep @p to and the answer, return from the callback, and
 * try again after later polls, the oldest first; ringbus_wait() returns when there is room. Never
 * stop polling for it: two endpoints whose lanes to each other are full come free by reading, and
 * by nothing else. What is kept so is bounded by what the requesters have under way with this
 * endpoint; one that wants a bound of its own lets the requests beyond it run into their timeout.
 * examples/02_request does it.
 * @retval 1; RINGBUS_E_NOT_REQUEST; RINGBUS_E_PEER_GONE; RINGBUS_E_FULL; RINGBUS_E_NO_CHUNK;
 *            RINGBUS_E_TOO_BIG
 */
RINGBUS_API int ringbus_reply(struct ringbus *bus,
                              const struct ringbus_reply_to *to,
                              const void *data,
                              size_t size,
                              unsigned flags);
/** Answers with a failure: the requester's outcome is RINGBUS_FAILED. @p text may be NULL. */
RINGBUS_API int
ringbus_reply_error(struct ringbus *bus, const struct ringbus_reply_to *to, const char *text);
/**
 * Answers that the request was not handled and will not be: its outcome is RINGBUS_NOT_SENT with
 * @p error, and its sender may ask another instance. To senders of earlier releases it is a
 * failure, as by ringbus_reply_error().
 *
 * @param error           RINGBUS_E_SHED, _NOT_OWNER, _LIMITED, _NOT_READY, _DRAINING, _DENIED,
 *                        _RESTARTING or _TIMEOUT
 * @param retry_after_ms  not sooner; 0: unsaid
 * @retval 1; RINGBUS_E_ARGUMENT another error; and as ringbus_reply()
 */
RINGBUS_API int ringbus_reply_refused(struct ringbus *bus,
                                      const struct ringbus_reply_to *to,
                                      int error,
                                      uint32_t retry_after_ms);

/* ---- keeping what was received --------------------------------------------------------- */

/** A message that outlives its callback. */
struct ringbus_kept {
    const void *data;
    size_t size;
    struct ringbus_addr from;
    uint64_t key;
    uint64_t opaque[4];
};
/**
 * Keeps the payload of a message. Referenced payloads are not copied: their chunk stays with
 * this endpoint, and counts against what the sender may have under way, until
 * ringbus_release(); inline ones are copied. Survives the sender's death.
 * @retval 0; RINGBUS_E_NO_MEMORY
 */
RINGBUS_API int
ringbus_keep(struct ringbus *bus, const struct ringbus_message *message, struct ringbus_kept **out);
/** Ends it; @p kept is freed. NULL is accepted. Must come before ringbus_close(). */
RINGBUS_API int ringbus_release(struct ringbus *bus, struct ringbus_kept *kept);

/* ---- explanations ---------------------------------------------------------------------- */

enum ringbus_explain_kind {
    RINGBUS_EXPLAIN_TARGET = 1, /**< a cluster that may serve: path, before, epoch, panic */
    /** A stage of routing: stage, mode, before, after, would_out, skipped, fell_back, panic. */
    RINGBUS_EXPLAIN_STAGE = 2,
    RINGBUS_EXPLAIN_OUT = 3,   /**< it took this instance out: stage, path, reason, rule */
    RINGBUS_EXPLAIN_WOULD = 4, /**< its dry run would have: the same */
    RINGBUS_EXPLAIN_IN = 5,    /**< nobody did: path, weight, level; reason, if it is shielded */
    /** Has the message's key, where a key decides: path; reason, if it is shielded or has died. */
    RINGBUS_EXPLAIN_OWNER = 6,
};

/** One line of an explanation. Texts are never NULL where its kind has them; lent for the call. */
struct ringbus_explain_row {
    enum ringbus_explain_kind kind;
    /**
     * "state", "acl", "filter" (only where there is a hook of that kind), "realm", "set", "tag",
     * "rules", "locality", "health"
     */
    const char *stage;
    const char *mode;   /**< "off", "prefer", "strict" */
    const char *path;   /**< of the cluster or the instance */
    const char *reason; /**< a few words */
    const char *rule;   /**< id of the rule or canary, or name of the hook, that did it; "" none */
    unsigned before;    /**< instances that came to the stage; of a cluster: all */
    unsigned after;     /**< and that were left */
    unsigned would_out; /**< of those, that its dry run would have taken out */
    int skipped;        /**< the stage had nothing to say */
    int fell_back;      /**< nobody healthy fitted, so that others stayed */
    int panic;          /**< so few are healthy that shields are ignored */
    unsigned level;     /**< of locality: 0 same node to 5 anywhere */
    uint32_t weight;    /**< share, to be compared with the others' */
    uint64_t epoch;     /**< of the cluster's snapshot */
};

/** Called for each row, in order. A callback: ringbus_poll() and _close() are refused in it. */
typedef void (*ringbus_explain_fn)(void *user, const struct ringbus_explain_row *row);

/** Whose message of which kind. Start from zero; a zero field means this endpoint, or nothing. */
struct ringbus_explain_options {
    size_t struct_size; /**< sizeof(struct ringbus_explain_options) */
    const char *caller; /**< path of an instance that is registered; NULL: this endpoint; "" none */
    const char *set;    /**< instead of the caller's; "" none */
    const char *idc;
    const struct ringbus_message_options *message; /**< flags, key, tag, method, labels, trace_id */
    /** Instances that the caller has no right to. What was denied to this endpoint is known. */
    const struct ringbus_addr *denied;
    size_t denied_count;
};

/**
 * Tells how a message would be routed: each stage, who was in, who fell out and by which rule.
 * From the mapped directory, so that it works while ringbusd is away; no system call; nothing is
 * sent, and nothing changes.
 *
 * It says who may get the message and, by key, whose it is; not which of several gets one without
 * a key, and not whether the link is up. Of rights it knows those that this endpoint was refused.
 * Of own messages it counts what the stage of locality remembers of the last seconds.
 *
 * @param target   path of a cluster (6 elements); it need not be a target of this endpoint
 * @param options  NULL: this endpoint, a message that says nothing of itself
 * @return number of instances that are in; 0: nobody could get it. Or
 * @retval RINGBUS_E_PATH         target or caller is no such path
 * @retval RINGBUS_E_NO_SERVICE   the cluster was never seen; start an instance, or mind the name
 * @retval RINGBUS_E_NO_INSTANCE  the caller is not registered
 * @retval RINGBUS_E_NO_DAEMON    there is no directory yet: poll until the daemon is there
 * @retval RINGBUS_E_NO_MEMORY; RINGBUS_E_ARGUMENT
 * Cost: cold; allocates, and copies the snapshots.
 */
RINGBUS_API int ringbus_explain(struct ringbus *bus,
                                const char *target,
                                const struct ringbus_explain_options *options,
                                ringbus_explain_fn tell,
                                void *user);

/**
 * The same as text, one row a line, for a log or a person. The format may change.
 * @param buffer  terminated, and cut off where it ends; NULL with size 0: only the length
 * @return bytes of the whole text without its terminator, or an error as ringbus_explain()
 */
RINGBUS_API int ringbus_explain_text(struct ringbus *bus,
                                     const char *target,
                                     const struct ringbus_explain_options *options,
                                     char *buffer,
                                     size_t size);

/* ---- hooks: whom messages go to, as the application says --------------------------------- */

/** An instance, as hooks see it. Texts are terminated, "" is not given; lent for the call. */
struct ringbus_candidate {
    struct ringbus_addr addr;
    const char *path;
    const char *set;
    const char *idc;
    const char *tags;
    uint32_t weight; /**< its own, 0 to 1000; in a chooser its share, to be compared */
    int healthy;     /**< 0: shielded */
    int suspect;     /**< 1: silent, or failing in a row, as this endpoint sees it; choosers only */
    uint64_t waiting; /**< messages that wait there, as it has told last; choosers only */
    uint64_t busy_ns; /**< that it needs for one; 0: unknown; choosers only */
};

/** What routing knows of a message. */
struct ringbus_routing {
    int keyed; /**< 1: it has a key */
    uint64_t key;
    const char *tag; /**< "" untagged; never NULL */
    uint32_t method;
    uint32_t labels[RINGBUS_LABELS_MAX];
    /** A router sets it: goes to this instance of the target, whatever the stages say. 0: chosen */
    int32_t instance;
    int error; /**< a router that refuses sets it: RINGBUS_E_*; 0: RINGBUS_E_NO_MATCH */
};

/** What a chooser and a router may answer, beside an index. */
#define RINGBUS_HOOK_PASS   (-1) /**< the next one is asked, or the message goes its way */
#define RINGBUS_HOOK_REFUSE (-2) /**< nobody is to get it */

/** Most hooks of one handle. */
#define RINGBUS_HOOKS_MAX 16

/**
 * Functions of the application that have a say in routing. All are optional, but one. They run on
 * the thread of the handle, inside the call that needs them, and must not call the bus: sending to
 * a target with hooks, ringbus_poll(), _wait(), _close(), _target(), _untarget(), _hook() and
 * _unhook() fail with RINGBUS_E_BUSY there.
 */
struct ringbus_hooks {
    size_t struct_size; /**< sizeof(struct ringbus_hooks) */
    const char *name;   /**< 1 to 31 bytes, copied: explanations and errors name it */
    void *user;         /**< given to each function */
    /**
     * Directory filter: asked for each instance when the choices of a target are made anew, which
     * is after a change, never for a message. The same instance may be asked for several times.
     * @return 0: it is left out, and explained as the stage "filter"; else it stays
     * A key has its owner among those that are left: other callers need the same filter.
     */
    int (*filter)(void *user, const struct ringbus_candidate *candidate);
    /**
     * Router: asked for each message to any instance of the target, before the stages. It may
     * change key, tag, method and labels: routing goes by them, while the message itself stays as
     * it was sent. Or it names the instance.
     * @param routing  of the message, as the routers before this one left it
     * @return RINGBUS_HOOK_PASS; RINGBUS_HOOK_REFUSE
     */
    int (*route)(void *user, struct ringbus_routing *routing);
    /**
     * Chooser: asked for each message, with a key or without, to any instance of a target whose
     * balance.mode is custom, or that was targeted with the option custom.
     * @param candidates  whom the stages have left and who is linked; at least one
     * @return index of one of them; RINGBUS_HOOK_PASS; RINGBUS_HOOK_REFUSE. Any other answer is
     *         refused with RINGBUS_E_NO_INSTANCE and counted as bad_choice, as is one whose
     *         instance cannot be sent to: nothing goes elsewhere instead.
     */
    int (*choose)(void *user,
                  const struct ringbus_routing *routing,
                  const struct ringbus_candidate *candidates,
                  unsigned count);
    /** The hooks are taken off, or the handle is closed: the last call. */
    void (*destroy)(void *user);
};

/**
 * Adds hooks. Those of one kind are asked in the order in which they were added: every filter must
 * leave an instance in, routers change what the next one sees until one refuses or names an
 * instance, and of choosers the first that does not pass decides.
 *
 * @param target  path of a cluster (6 elements), which need not be a target yet; NULL: all targets
 * @param hooks   copied; what user points to must live until destroy
 * @return number of the hooks, above 0, for ringbus_unhook(); or
 * @retval RINGBUS_E_PATH      not the path of a cluster
 * @retval RINGBUS_E_ARGUMENT  no function, no name, or RINGBUS_HOOKS_MAX are there already
 * @retval RINGBUS_E_BUSY      inside a hook
 * @retval RINGBUS_E_NO_MEMORY
 * Where it fails, destroy is not called. Cost: the choices of the targets are made anew. A target
 * without router and chooser pays nothing for them when it sends; with one a message takes some
 * 100 ns more, and with a chooser two loads a candidate.
 */
RINGBUS_API int
ringbus_hook(struct ringbus *bus, const char *target, const struct ringbus_hooks *hooks);
/**
 * Takes hooks off, and calls their destroy.
 * @retval 0; RINGBUS_E_ARGUMENT there are no such; RINGBUS_E_BUSY inside a hook
 */
RINGBUS_API int ringbus_unhook(struct ringbus *bus, int hooks);

/**
 * Lists whom a message may go to: all that the stages leave, of the own business and of each that
 * the policy imports, without a preference between them. For who wants to speak to each of them,
 * not to send one message. From the mapped directory, also while ringbusd is away; links are not
 * needed, and filters of this handle count.
 * @param target   path of a cluster (6 elements); it need not be a target
 * @param message  flags, key, tag, method, labels and trace_id are looked at; NULL: it says nothing
 * @param out      room for @p max entries; may be NULL when @p max is 0
 * @return number of instances there are (may be more than @p max); errors as ringbus_explain()
 * Cost: cold; allocates, and copies the snapshots.
 */
RINGBUS_API int ringbus_candidates(struct ringbus *bus,
                                   const char *target,
                                   const struct ringbus_message_options *message,
                                   struct ringbus_instance *out,
                                   size_t max);

/* ---- figures --------------------------------------------------------------------------- */

/* X(name, text): counters since open. */
#define RINGBUS_STATS(X)                                                                           \
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
    X(bells_rung, "wake-ups sent to sleeping receivers, one system call each")                     \
    X(sleeps, "times this endpoint went to sleep")                                                 \
    X(polls, "calls of poll, updated when idle")                                                   \
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
    X(bad_choice, "messages refused because a hook named an instance that cannot take them")

struct ringbus_stats {
    size_t struct_size; /**< set by the caller: sizeof(struct ringbus_stats) */
    uint64_t links;     /**< READY now */
    uint64_t pool_used; /**< chunks out now */
#define RINGBUS_STATS_FIELD(name, text) uint64_t name;
    RINGBUS_STATS(RINGBUS_STATS_FIELD)
#undef RINGBUS_STATS_FIELD
};
/** Copies the figures; no system call. */
RINGBUS_API int ringbus_stats(const struct ringbus *bus, struct ringbus_stats *out);

#ifdef __cplusplus
}
#endif

#endif
