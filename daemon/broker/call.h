/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_CALL_H
#define RINGBUS_DAEMON_BROKER_CALL_H
/*
 * daemon/broker/call.h - a request that was sent on: it ends at its caller as it ended beyond. An
 * answer that finds no room in the caller's lane is kept where it is, by reference if it came so,
 * and tried again.
 */
#include "daemon/broker/face.h"

struct rbi_caller;

struct rbi_call {
    struct rbi_list link; /* in face->waiting, once it was answered without room */
    struct rbi_face *face;
    struct ringbus *beyond; /* handle that it was sent on with */
    struct rbi_caller *caller;
    struct ringbus_reply_to to;
    struct ringbus_kept *kept; /* the answer; NULL: it has no payload */
    struct ringbus_ending ending;
    struct ringbus_part parts[RINGBUS_PARTS_MAX];
};

/** Notes a request before it is sent on. NULL: no memory */
struct rbi_call *rbi_call_new(struct rbi_face *face,
                              struct ringbus *beyond,
                              struct rbi_caller *caller,
                              const struct ringbus_message *request);
/** It could not be sent on. */
void rbi_call_free(struct rbi_call *call);
/** ringbus_reply_fn; @p context is the call. */
void rbi_call_on_reply(struct ringbus *beyond, const struct ringbus_result *result, void *context);
/** Tries the answers that wait. @return how many went */
int rbi_calls_step(struct rbi_face *face);
/** Forgets the answers that wait, as nobody will read them. */
void rbi_calls_drop(struct rbi_face *face);

#endif
