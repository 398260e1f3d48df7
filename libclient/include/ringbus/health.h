/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_HEALTH_H
#define RINGBUS_HEALTH_H
/*
 * ringbus/health.h - telling how exchanges ended that are no requests, and how busy this instance
 * is.
 */
#include <ringbus/address.h>
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/** More is a mistake of units. */
#define RINGBUS_UTILISATION_MAX 100000U

/**
 * Tells which part of what this instance can do it does now, such as the processor time that it
 * used of what it has. Where balance.reported_weight of its cluster is true, ringbusd makes its
 * weight of that, once a second, for messages without a key: messages a second / (utilisation +
 * share of the calls that failed), compared with the other instances. Call it about once a second,
 * for the time since the last call. What the first 10 s say is ignored; after 3 minutes without a
 * call, or a message, it counts as the mean of the others again. A weight that the operator gives
 * goes before.
 *
 * @param utilisation  thousandths: 1000 is all, more is that work waits; 0 says nothing; at most
 *                     RINGBUS_UTILISATION_MAX
 * @retval 0  also when no policy asks for it: nothing follows then
 * @retval RINGBUS_E_ARGUMENT  above the most: give thousandths
 * Thread: that of the handle, also inside callbacks. Cost: one store; no system call.
 */
RINGBUS_API int ringbus_report_load(struct ringbus *bus, uint32_t utilisation);

#ifdef __cplusplus
}
#endif

#endif
