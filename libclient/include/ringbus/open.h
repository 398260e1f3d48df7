/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_OPEN_H
#define RINGBUS_OPEN_H
/* ringbus/open.h - life of a handle: options, opening, leaving, closing. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/event.h>
#include <ringbus/message.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    const char *set;  /**< "name.area.group", the group perhaps "*", of [A-Za-z0-9_-]; or NULL */
    const char *idc;  /**< location, "group" or "group/zone", or NULL */
    const char *tags; /**< "tag,tag" or NULL; idc and tags of [A-Za-z0-9_.*:=-] */
    /** From "ringbusctl token", for clusters that ask for one; at most 255 bytes; never logged. */
    const char *token;
    enum ringbus_mode mode;
    /**
     * Ring towards each peer, bytes: power of two, 4 KiB to 64 MiB, default 64 KiB, and 256 KiB
     * towards peers on other hosts: what is under way to those lies in it.
     */
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
     * goes by key. An instance with tags owns what messages of its first tag bring it. Takes the
     * memory of two slot tables (128 KiB each by default), and the time to bring one up to date
     * with each change of its cluster.
     */
    int slots;
    /**
     * 1: this endpoint stands for others, to whom it forwards (ringbus/forward.h). Of those that do
     * so under the name of one cluster, one alone gets what is sent to all of it, so that whoever
     * they stand for gets it once; and it may leave messages where they are (ringbus_defer()).
     */
    int broker;
};

#define RINGBUS_SLOTS_OFF    0
#define RINGBUS_SLOTS_REPORT 1 /**< RINGBUS_EVENT_SLOTS_*, ringbus_slots(), ringbus_owns() */
/**
 * The same, and requests that were dealt to this instance by a key that it does not own (its
 * caller knew an older snapshot) are refused with RINGBUS_E_NOT_OWNER before on_message has them:
 * the caller looks again. Not those that came by another rank or were sent on. A message is judged
 * by its own tag, method and labels, and by the policy's canaries. Not for clusters whose callers
 * see different instances: by sets of other names, by rights, or as redelivering targets do.
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

#ifdef __cplusplus
}
#endif

#endif
