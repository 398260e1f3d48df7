/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_SESSION_H
#define RINGBUS_DAEMON_CTL_SESSION_H
/*
 * daemon/ctl/session.h - an endpoint of ringbusctl, through the public API: open, wait
 * for the receiver, dispatch, stop at a signal. One at a time, one thread.
 */
#include "daemon/ctl/ctl.h"

#include <ringbus/ringbus.h>

struct rbi_ctl_session {
    const struct rbi_ctl_args *args;
    struct ringbus *bus;
    struct ringbus_addr to; /* the receiver, after rbi_ctl_session_target() */
    const char *to_path;
    unsigned ready;   /* links to it that are READY now */
    bool lost;        /* one of them ended while it was needed */
    uint32_t wait_ms; /* for a request whose receiver is not linked yet; as of target options */
    enum ringbus_reason lost_reason;
    int link_error;            /* of the last LINK_FAILED, 0 when none */
    uint64_t undelivered;      /* messages that nobody consumed */
    ringbus_event_fn on_event; /* or NULL: further interest in events */
    void *user;
};

/**
 * Opens an endpoint. Complains itself. @p options: path, pool and callbacks are the
 * caller's, the rest is filled in; on_event and user are the session's own.
 * @return exit code
 */
RBI_MUST_CHECK int rbi_ctl_session_open(struct rbi_ctl_session *session,
                                        const struct rbi_ctl_args *args,
                                        struct ringbus_options *options);
/**
 * Targets @p path and waits until a link is READY, at most --timeout. The receiver is
 * given much longer than usual to answer PINGs: one that waits for its own standard
 * output is slow, not dead, and real death is told by the kernel.
 * @return exit code; complains itself
 */
RBI_MUST_CHECK int rbi_ctl_session_target(struct rbi_ctl_session *session, const char *path);
/** What --key, --tag, --method and --labels say of a message. */
void rbi_ctl_message_of(const struct rbi_ctl_args *args, struct ringbus_message_options *out);
/** Waits (again) until a link is READY, at most --timeout. Complains itself. @return exit code */
RBI_MUST_CHECK int rbi_ctl_session_wait_ready(struct rbi_ctl_session *session);
/**
 * Dispatches once; waits up to @p timeout_ms when there was nothing. Complains itself. @return
 * exit code
 */
RBI_MUST_CHECK int rbi_ctl_session_step(struct rbi_ctl_session *session, int timeout_ms);
/** Closes; with @p drain_ms waits for the consumption of what was sent. @return exit code */
int rbi_ctl_session_close(struct rbi_ctl_session *session, uint32_t drain_ms);

/** True after SIGINT or SIGTERM. */
bool rbi_ctl_stopping(void);
/** "crashed" and so on. */
const char *rbi_ctl_reason_name(enum ringbus_reason reason);
/**
 * Reads standard input to its end, at most @p max bytes. Complains itself; caller frees. @return
 * exit code
 */
RBI_MUST_CHECK int rbi_ctl_input_read(const struct rbi_ctl_args *args,
                                      size_t max,
                                      unsigned char **out,
                                      size_t *out_size);
/** Pool of an endpoint that sends payloads of up to @p size bytes, a few at a time. */
void rbi_ctl_pool_for(struct ringbus_options *options, size_t size);

#endif
