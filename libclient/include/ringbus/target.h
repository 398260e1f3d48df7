/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TARGET_H
#define RINGBUS_TARGET_H
/* ringbus/target.h - the clusters that an endpoint speaks to. */
#include <ringbus/address.h>
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

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
     *
     * An instance of another host may outlive its link (RINGBUS_REASON_UNREACHABLE). What was on
     * its way to that one, and what was sent to it alone or to all, waits for a link to the same
     * life in the same way, goes there before anything new, and is handled once; but of requests
     * that it may have seen only those with RINGBUS_IDEMPOTENT. Sends to it return RINGBUS_E_FULL
     * until then.
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
        4, /**< of all that the stages leave: the first failure, else the last reply */
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
     * owner are there but not linked (RINGBUS_E_NOT_READY, _UNREACHABLE, _NO_ROUTE) or have just
     * died (_RESTARTING), waits for so long for the link: 0 not, to 60000 ms.
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

#ifdef __cplusplus
}
#endif

#endif
