/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_EVENT_H
#define RINGBUS_EVENT_H
/* ringbus/event.h - what on_event is told: links, instances, health, nodes. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/message.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    RINGBUS_REASON_UNTARGETED = 9,    /**< ringbus_untarget(), here or there */
    RINGBUS_REASON_NO_RESOURCES = 10, /**< memory or descriptors were short on one side */
    /**
     * The way to its host was cut for longer than that of a link may be, or a bridge ended: it may
     * live. What was under way comes back as after a death, but more of it may have been seen; its
     * receiver, when it is linked again, learns what it was not sent once more: RINGBUS_EVENT_GAP.
     */
    RINGBUS_REASON_UNREACHABLE = 11
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
     * was SILENT where the kernel refuses membarrier(2). And all that was on its way to another
     * host when the link ended there.
     * A message counts as consumed when its handler has returned. Requests are not reported so:
     * their callback ends with RINGBUS_NOT_SENT or RINGBUS_UNKNOWN. Nor is what on_down sends on.
     * Also one that was kept (RINGBUS_RETRY_FAILBACK, max_wait of a limit) and could not be sent
     * in the end: error says why.
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
    RINGBUS_EVENT_NODE_REMOVED = 26,
    /**
     * A figure of a cluster at or below a watched prefix has been beyond the threshold of a rule
     * of `alarms` for as long as that says, or is so when the watch begins: alarm, and path of
     * the cluster. Comes once.
     */
    RINGBUS_EVENT_ALARM_FIRING = 27,
    /**
     * It has been back for as long as the rule says; or the rule, or the daemon that judged it,
     * is gone: then what still is so fires anew, in its time.
     */
    RINGBUS_EVENT_ALARM_RESOLVED = 28,
    /**
     * An instance has dropped one-way messages of this endpoint. count says how many since it was
     * last told, method that of the last and error why: RINGBUS_E_DENIED, there is no right to
     * them, or not any more; any other, a broker could not pass them on (ringbus_refuse()). Once a
     * second and link at most. What the library here knows of rights it refuses in the call: these
     * were on their way when a rule changed.
     */
    RINGBUS_EVENT_REFUSED = 29,
    /**
     * One-way messages that an instance of another host, which lives on, had sent to this endpoint
     * over a link that ended, and has not sent again: its program was given them back
     * (RINGBUS_EVENT_UNDELIVERED). count says how many, gap which; a handler here has had at most
     * gap->maybe_seen of them. It comes before anything that was sent over the next link, and once;
     * not where all of them had been handled here.
     */
    RINGBUS_EVENT_GAP = 30
};

/** What fires. Texts are lent with the event. */
struct ringbus_alarm {
    const char *rule;   /**< its id */
    const char *metric; /**< "error_ratio", "p99_us" and so on, as in the configuration */
    int below;          /**< 1: it fires below the threshold, else above */
    int known;          /**< 0: there is no value, as of an error ratio without calls */
    double value;       /**< ratios of 1, times in microseconds; as it was then */
    double threshold;
};

/** What was not sent again. Lent with the event. */
struct ringbus_gap {
    /**
     * Bytes of all that had been sent over the link that ended, from its beginning to the first of
     * these messages, and to behind the last: gaps of one link are told in ascending order, and
     * others lay between. Good for comparing, not for counting.
     */
    uint64_t from;
    uint64_t to;
    uint64_t link;       /**< of that link, as the sender counts its own; never 0 */
    uint64_t maybe_seen; /**< of event.count: so many may have been on their way when it ended */
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
    /**
     * SUSPECT: 1 when silence alone ends nothing: the peer holds for a debugger (debug_hold); or,
     * with RINGBUS_REASON_UNREACHABLE, the way to its host is cut, which the bridge bounds.
     */
    int paused;
    struct ringbus_addr to; /**< UNDELIVERED: as it was sent, RINGBUS_ANY, RINGBUS_ALL or addr's
                                 instance; incarnation 0, so that it can be sent there again */
    const struct ringbus_slot_range *slots; /**< SLOTS_GAINED and _LOST: ascending; else NULL */
    size_t slot_count;
    uint64_t epoch; /**< SLOTS_GAINED and _LOST: of the snapshot; grows with one daemon */
    /**
     * NODE_*: of the change; each change of any node has a higher one than those before. 0 of a
     * removal that was found out afterwards.
     */
    uint64_t revision;
    const void *value; /**< NODE_CREATED and _CHANGED: of the node; not terminated */
    size_t value_size;
    uint64_t count;                    /**< REFUSED, GAP: messages */
    uint32_t method;                   /**< REFUSED: of the last of them; 0 when it said none */
    const struct ringbus_alarm *alarm; /**< ALARM_*; else NULL */
    const struct ringbus_gap *gap;     /**< GAP; else NULL */
};

typedef void (*ringbus_event_fn)(struct ringbus *bus,
                                 const struct ringbus_event *event,
                                 void *user);

#ifdef __cplusplus
}
#endif

#endif
