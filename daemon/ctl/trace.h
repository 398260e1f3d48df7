/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_TRACE_H
#define RINGBUS_DAEMON_CTL_TRACE_H
/*
 * daemon/ctl/trace.h - follows one request over hosts, beside the endpoint that sends it: asks the
 * daemon for the hops of a trace of its own, and prints them when the request has ended.
 */
#include "daemon/ctl/control.h"

#include <ringbus/ringbus.h>

struct rbi_ctl_trace {
    struct rbi_ctl_control control;
    uint64_t sent_ns;
};

/**
 * Begins, and says so in the options of the message. Complains itself.
 * @retval RBI_CTL_OK  to be ended by rbi_ctl_trace_deinit(); otherwise an exit code
 */
RBI_MUST_CHECK int rbi_ctl_trace_init(struct rbi_ctl_trace *trace,
                                      const struct rbi_ctl_args *args,
                                      struct ringbus_message_options *options);
/**
 * Prints what is told, the last of it a little after the answer. Complains itself.
 * @param to        instance that has answered, or was to
 * @param answered  it has
 */
void rbi_ctl_trace_print(struct rbi_ctl_trace *trace, const char *to, bool answered);
void rbi_ctl_trace_deinit(struct rbi_ctl_trace *trace);

#endif
