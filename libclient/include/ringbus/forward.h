/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_FORWARD_H
#define RINGBUS_FORWARD_H
/*
 * ringbus/forward.h - for endpoints that stand for others, as ringbus-broker does: where a message
 * came from before it was forwarded, forwarding it, and telling its sender what became of it.
 */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/message.h>
#include <ringbus/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Most brokers that a message passes. */
#define RINGBUS_HOPS_MAX 8

/** Where a message began, as the last broker that it passed says. */
struct ringbus_origin {
    struct ringbus_addr addr; /**< of the first sender, with its incarnation */
    char path[RINGBUS_PATH_MAX + 1];
    unsigned hops;                  /**< brokers that it passed, 1 to RINGBUS_HOPS_MAX */
    uint64_t via[RINGBUS_HOPS_MAX]; /**< clusters of these, in the order of its way */
};

/**
 * Who sent a message that was forwarded. message->from is the broker that it came from last, as
 * the bus knows it; the origin is that broker's word for who stands behind it, and as good as that.
 *
 * @param message  of the running callback, or of RINGBUS_EVENT_UNDELIVERED
 * @param out      written with 1 only
 * @retval 1 forwarded; 0 not: its origin is message->from
 * @retval RINGBUS_E_ARGUMENT  not the message of the running callback
 * @retval RINGBUS_E_BAD_PEER  its sender has written what cannot be read
 * Thread: that of the handle. Cost: a copy of some hundred bytes; no system call.
 */
RINGBUS_API int ringbus_origin(struct ringbus *bus,
                               const struct ringbus_message *message,
                               struct ringbus_origin *out);

/** How a message goes on. Start from zero. */
struct ringbus_forwarding {
    size_t struct_size;     /**< sizeof(struct ringbus_forwarding) */
    struct ringbus_addr to; /**< one instance, RINGBUS_ANY, RINGBUS_ALL; a target of the handle */
    uint64_t via;           /**< cluster of the broker, by which it knows what it has had; not 0 */
    int keep_origin;        /**< 1: its sender is a broker that is trusted to name the origin */
    struct ringbus_addr dest; /**< for the next broker (ringbus_message_options); cluster 0: none */
    uint32_t timeout_ms;      /**< of a request, 1 to 3600000: at most, and none that inherits */
    ringbus_reply_fn on_reply;        /**< of a request, not NULL; else not looked at */
    void *context;                    /**< of on_reply */
    struct ringbus_broadcast *report; /**< with RINGBUS_ALL: as of ringbus_broadcast(), or NULL */
};

/**
 * Sends the message of the running callback on, as it was sent: kind, parts, key, method, codec,
 * schema, labels, priority, tag, trace, deadline, idempotent and redelivered. It gets its origin
 * with it, and this broker is added to the way. Nothing is inherited. The payload is copied once,
 * from where the sender has put it to where the receiver reads it.
 *
 * @param bus      whose callback runs
 * @param message  of that callback: one-way or a request
 * @param out      handle to send with; may be @p bus, or one of another bus or business
 * @return as ringbus_send_with() or ringbus_request_with(), without asking again: that is for its
 *         first sender to do; and
 * @retval RINGBUS_E_NO_ROUTE  this broker has had it, or it has passed RINGBUS_HOPS_MAX of them
 * @retval RINGBUS_E_TIMEOUT   its deadline is over
 * @retval RINGBUS_E_ARGUMENT  not the message of the running callback, an answer, via 0; a request
 *         to all, without callback, or with a timeout out of its range
 * Thread: the two handles are used by the one that calls. Cost: that of the send.
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_forward(struct ringbus *bus,
                                                   const struct ringbus_message *message,
                                                   struct ringbus *out,
                                                   const struct ringbus_forwarding *how);

/**
 * Leaves the one-way message or request of the running callback in its sender's lane, as if it had
 * not been looked at: it comes again with a later poll, and nothing behind it from the same sender
 * does before. A sender that goes on finds the lane full, and nobody else does. For who cannot
 * pass a message on now and is not to lose it.
 *
 * @param wait_us  ringbus_wait() returns for it after so long at the latest, 100 to 1000000
 * @retval 0
 * @retval RINGBUS_E_ARGUMENT  not the message of the running callback, or it was kept; the handle
 *         was not opened with the option broker; @p wait_us is out of its range
 * Thread: that of the handle. Cost: none; the next polls call back again.
 */
RINGBUS_API int
ringbus_defer(struct ringbus *bus, const struct ringbus_message *message, uint32_t wait_us);

/**
 * Tells a peer that a one-way message of it was dropped: it gets RINGBUS_EVENT_REFUSED, at most one
 * a second, with how many they were since the last, and error and method of the last of them.
 *
 * @param peer    who sent them, as in ringbus_message.from
 * @param error   why: an enum ringbus_error
 * @param method  of the message, 0 when it said none
 * @retval 0
 * @retval RINGBUS_E_PEER_GONE  there is no link to it any more: nobody can be told
 * @retval RINGBUS_E_ARGUMENT   no error
 * Cost: a record to the peer.
 */
RINGBUS_API int
ringbus_refuse(struct ringbus *bus, const struct ringbus_addr *peer, int error, uint32_t method);

/** How a request ends that another has answered, or nobody. */
struct ringbus_ending {
    size_t struct_size; /**< sizeof(struct ringbus_ending) */
    enum ringbus_outcome outcome;
    int error;               /**< as of struct ringbus_result; not with RINGBUS_REPLIED, _FAILED */
    uint32_t retry_after_ms; /**< with RINGBUS_NOT_SENT */
    const struct ringbus_part
        *parts; /**< of the reply, or the text of another outcome; may be NULL */
    unsigned part_count;
};

/**
 * Answers a request as another one has ended: its sender gets the same outcome, error and payload
 * as if it had asked itself. ringbus_reply() and the other answers are for who has handled it.
 *
 * @param to   of the request, as for ringbus_reply()
 * @retval as ringbus_reply(), or RINGBUS_E_ARGUMENT: outcome, error or parts out of their range
 * Cost: that of ringbus_reply().
 */
RINGBUS_API int ringbus_reply_as(struct ringbus *bus,
                                 const struct ringbus_reply_to *to,
                                 const struct ringbus_ending *ending);

#ifdef __cplusplus
}
#endif

#endif
