/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_REQUEST_H
#define RINGBUS_DAEMON_REQUEST_H
/*
 * daemon/request.h - one message of a client on its way through its handler. The
 * handlers, one file each, are in the table of request.c.
 */
#include "bus/wire.h"
#include "shm/handoff.h"

struct rbi_daemon;
struct rbi_peer;

struct rbi_request {
    struct rbi_daemon *daemon;
    struct rbi_peer *peer;
    uint32_t serial;
    const union rbi_wire_body *body;
    struct rbi_fdlist *fds; /* as many as the message carries; a handler steals what it keeps */
};

/** Handles a whole frame. Untrusted. @param fds  of this frame; the caller closes what is left */
void rbi_request_handle(struct rbi_peer *peer,
                        const struct rbi_wire_header *header,
                        const void *frame,
                        struct rbi_fdlist *fds);

/* ---- what handlers answer -------------------------------------------------------------- */

void rbi_request_ok(const struct rbi_request *request, uint64_t value);
/** Answers ERROR; the client may go on. */
void rbi_request_refuse(const struct rbi_request *request, int code, const char *format, ...)
    RBI_PRINTF(3, 4);
/** Answers ERROR for a quota, counts it, logs it now and then. @param why  who and what */
void rbi_request_refuse_quota(const struct rbi_request *request, const struct rbi_text *why);
/** Answers ERROR for what a system call or an adopted segment said. @param what  "page" */
void rbi_request_refuse_errno(const struct rbi_request *request, const char *what, int error);
/** The client broke the protocol: ERROR with the reason, a line in the log, end. */
void rbi_peer_violation(struct rbi_peer *peer, uint32_t reply_to, const char *format, ...)
    RBI_PRINTF(3, 4);

/* ---- the handlers ---------------------------------------------------------------------- */

typedef void (*rbi_request_fn)(const struct rbi_request *request);

void rbi_handle_hello(const struct rbi_request *request);
void rbi_handle_registration(const struct rbi_request *request);
void rbi_handle_set_state(const struct rbi_request *request);
void rbi_handle_target(const struct rbi_request *request);
void rbi_handle_untarget(const struct rbi_request *request);
void rbi_handle_introduce(const struct rbi_request *request);
void rbi_handle_accept(const struct rbi_request *request);
void rbi_handle_refuse(const struct rbi_request *request);
void rbi_handle_link_down(const struct rbi_request *request);
void rbi_handle_relink(const struct rbi_request *request);
void rbi_handle_watch(const struct rbi_request *request);
void rbi_handle_unwatch(const struct rbi_request *request);
void rbi_handle_query(const struct rbi_request *request);
void rbi_handle_drain(const struct rbi_request *request);
void rbi_handle_drain_report(const struct rbi_request *request);
void rbi_handle_apply(const struct rbi_request *request);
void rbi_handle_edit(const struct rbi_request *request);
void rbi_handle_rollback(const struct rbi_request *request);
void rbi_handle_get_text(const struct rbi_request *request);
void rbi_handle_history(const struct rbi_request *request);
void rbi_handle_describe(const struct rbi_request *request);
void rbi_handle_keyed(const struct rbi_request *request);
void rbi_handle_dry_run(const struct rbi_request *request);
void rbi_handle_lease_demand(const struct rbi_request *request);
void rbi_handle_outcomes(const struct rbi_request *request);
void rbi_handle_probe(const struct rbi_request *request);
void rbi_handle_probe_result(const struct rbi_request *request);
void rbi_handle_unshield(const struct rbi_request *request);
/** The instance that is meant, or NULL: whoever asks has been told why not. */
struct rbi_endpoint *rbi_request_instance(const struct rbi_request *request,
                                          const struct rbi_text *path);
void rbi_handle_may_link(const struct rbi_request *request);
void rbi_handle_node(const struct rbi_request *request);
void rbi_handle_bridge(const struct rbi_request *request);
void rbi_handle_host(const struct rbi_request *request);
void rbi_handle_edges(const struct rbi_request *request);
void rbi_handle_confirm(const struct rbi_request *request);
void rbi_handle_hop(const struct rbi_request *request);
void rbi_handle_follow(const struct rbi_request *request);
void rbi_handle_proxy(const struct rbi_request *request);
void rbi_handle_place(const struct rbi_request *request);
void rbi_handle_who(const struct rbi_request *request);

#endif
