/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SEND_H
#define RINGBUS_SEND_H
/* ringbus/send.h - sending: by copy, in parts, in place, by loan. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/message.h>

#ifdef __cplusplus
extern "C" {
#endif

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
 *               RINGBUS_ALL: every READY instance but the sender itself, shielded ones among
 *               them; not those that are isolated, staged or of weight 0
 * @param data   borrowed for the call; NULL when @p size is 0
 * @param size   0 to ringbus_size_max()
 * @param flags  RINGBUS_KEY, RINGBUS_MORE, RINGBUS_IDEMPOTENT; with RINGBUS_ALL also
 *               RINGBUS_HEALTHY_ONLY, RINGBUS_SAME_SET, RINGBUS_WITH_SELF
 * @return number of receivers that have it; 0: it is kept until a limit lets it pass, within its
 *         max_wait, and goes then by itself (see below), or RINGBUS_ALL reached nobody; or
 * @retval RINGBUS_E_FULL       nothing was sent; wait, dispatch, retry
 * @retval RINGBUS_E_LIMITED    nothing was sent: a limit of the cluster's policy is reached; retry
 *                              after ringbus_retry_after_us()
 * @retval RINGBUS_E_NO_CHUNK   nothing was sent; wait for returns, or open with a larger pool
 * @retval RINGBUS_E_NOT_READY, RINGBUS_E_DRAINING  nobody could take it now, or the key's owner
 * @retval RINGBUS_E_UNREACHABLE, RINGBUS_E_NO_ROUTE  the same, of an instance of another host: the
 *                              way there is cut, or there is none
 *         is not linked: retry, after an event
 * @retval RINGBUS_E_RESTARTING the key's owner has died; it is back, or another takes over, within
 *                              balance.rehash_delay of the policy (3 s): retry
 * @retval RINGBUS_E_SHIELDED   the key's owner is shielded and the policy is to fail then; or all
 *                              that could take it are: retry later, or ask another cluster
 * @retval RINGBUS_E_NO_MATCH   a stage of the policy left nobody: the sentence names it and its
 *                              rule, ringbus_explain() tells all
 * @retval RINGBUS_E_DENIED     there is no right to the instance, to any of them, or to this
 *                              method: the sentence names the rule, or says what does
 * @retval RINGBUS_E_NO_INSTANCE, RINGBUS_E_NO_SERVICE, RINGBUS_E_PEER_GONE  nobody is there; an
 *         instance that comes is linked by itself
 * @retval RINGBUS_E_NOT_TARGET  ringbus_target() first
 * @retval RINGBUS_E_BUSY       a claim on this link is open: end it first
 * @retval RINGBUS_E_BAD_PEER   the receiver broke the protocol: its link has ended, DOWN follows
 * @retval RINGBUS_E_ARGUMENT   a flag that is unknown, or is not for this address; bytes at NULL
 * @retval RINGBUS_E_TOO_BIG    over ringbus_size_max()
 * @retval RINGBUS_E_NO_MEMORY  nothing was sent: it would be the first, and the process has no
 *                              mapping left for the lane
 * Kept are 1024 messages and 4 MiB of a handle, in order: what is sent to the same receiver
 * meanwhile goes behind them, but for answers. What cannot be sent in the end comes back
 * (RINGBUS_EVENT_UNDELIVERED), whatever on_down says: the link ended, RINGBUS_E_TIMEOUT its
 * deadline is over, RINGBUS_E_CLOSED the handle was closed.
 *
 * With RINGBUS_ALL, receivers whose lane is full are skipped and counted ("full");
 * ringbus_broadcast() tells which.
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

/** What became of a broadcast at one instance. */
struct ringbus_delivery {
    struct ringbus_addr instance; /**< this life of it */
    /**
     * 0: it has the message, or a limit lets it pass later. RINGBUS_E_FULL, _LIMITED, _BUSY,
     * _DENIED: it may be sent to it alone, later or never. Skipped: RINGBUS_E_NOT_READY,
     * _DRAINING; _SHIELDED (RINGBUS_HEALTHY_ONLY); _NO_MATCH: isolated, staged, of weight 0, of
     * another set (RINGBUS_SAME_SET), or a broker beside one that has it.
     */
    int error;
};

/** Asks for, and takes, what became of a broadcast. Start from zero. */
struct ringbus_broadcast {
    size_t struct_size;            /**< sizeof(struct ringbus_broadcast) */
    struct ringbus_delivery *each; /**< room for each_max of them; may be NULL with 0 */
    size_t each_max;
    size_t count;     /**< set: instances that are known, this endpoint left out as in the flags;
                           the first each_max of them are in each, by instance */
    size_t delivered; /**< set: those that have it */
    size_t delayed;   /**< set: those that get it when a limit lets it pass (max_wait) */
    size_t full;      /**< set: those whose lane had no room */
    size_t refused;   /**< set: those that another refusal of this call kept it from */
    size_t skipped;   /**< set: those that it was not for */
};

/**
 * Sends one message to all instances of a cluster, and says of each what became of it. All of count
 * is delivered, delayed, full, refused or skipped. A large payload is copied once, whoever gets it.
 *
 * @param to       instance RINGBUS_ALL
 * @param options  as of ringbus_send_with(), with the flags of RINGBUS_ALL
 * @param result   written when the call returns 0 or more; its `each` is the caller's
 * @return result->delivered, or the errors of ringbus_send_with(): then nobody has it
 * Thread: that of the handle, also inside callbacks. Cost: that of a broadcast, and a look at each
 * instance that is known; no allocation, no system call.
 */
RINGBUS_API int ringbus_broadcast(struct ringbus *bus,
                                  const struct ringbus_addr *to,
                                  const struct ringbus_part *parts,
                                  unsigned part_count,
                                  const struct ringbus_message_options *options,
                                  struct ringbus_broadcast *result);

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

#ifdef __cplusplus
}
#endif

#endif
