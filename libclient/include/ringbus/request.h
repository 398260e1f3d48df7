/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_REQUEST_H
#define RINGBUS_REQUEST_H
/* ringbus/request.h - requests and their answers. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/message.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef void (*ringbus_reply_fn)(struct ringbus *bus,
                                 const struct ringbus_result *result,
                                 void *context);

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

#ifdef __cplusplus
}
#endif

#endif
