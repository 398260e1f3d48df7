/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_HEALTH_H
#define RINGBUS_HEALTH_H
/* ringbus/health.h - telling how exchanges ended that are no requests. */
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

#ifdef __cplusplus
}
#endif

#endif
