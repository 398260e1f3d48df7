/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/call.h"

#include "daemon/broker/caller.h"

#include <stdlib.h>

struct rbi_call *rbi_call_new(struct rbi_face *face,
                              struct ringbus *beyond,
                              struct rbi_caller *caller,
                              const struct ringbus_message *request)
{
    struct rbi_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        return NULL;
    }
    rbi_list_init(&call->link);
    call->face = face;
    call->beyond = beyond;
    call->caller = caller;
    call->to = request->reply_to;
    caller->calls++;
    face->calls++;
    face->broker->calls++;
    return call;
}

void rbi_call_free(struct rbi_call *call)
{
    struct rbi_face *face = call->face;
    rbi_list_remove(&call->link);
    if (call->kept != NULL) {
        (void)ringbus_release(call->beyond, call->kept);
    }
    call->caller->calls--;
    face->calls--;
    face->broker->calls--;
    rbi_caller_settle(face->broker, call->caller);
    free(call);
}

/* @return whether it is over: answered, or nobody is there to be answered */
static bool answer(struct rbi_call *call)
{
    struct rbi_broker_counters *counters = &call->face->broker->counters;
    call->face->active = true; /* so that it sleeps with all that it is to be woken for */
    const int r = ringbus_reply_as(call->face->bus, &call->to, &call->ending);
    if (r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK || r == RINGBUS_E_BUSY) {
        return false;
    }
    counters->answers += r > 0;
    counters->late += r <= 0;
    if (r == RINGBUS_E_TOO_BIG) {
        /* Its pool is smaller than the one of who answered. */
        call->ending = (struct ringbus_ending){.struct_size = sizeof call->ending,
                                               .outcome = RINGBUS_UNKNOWN,
                                               .error = RINGBUS_E_TOO_BIG};
        (void)ringbus_reply_as(call->face->bus, &call->to, &call->ending);
    }
    return true;
}

/* The payload has to outlive the callback. Without memory for that the outcome is all there is. */
static void keep(struct rbi_call *call, const struct ringbus_message *message)
{
    struct ringbus_ending *ending = &call->ending;
    if (message == NULL || ending->part_count == 0) {
        return;
    }
    if (ringbus_keep(call->beyond, message, &call->kept) != 0) {
        *ending = (struct ringbus_ending){.struct_size = sizeof *ending,
                                          .outcome = RINGBUS_UNKNOWN,
                                          .error = RINGBUS_E_NO_MEMORY};
        return;
    }
    const unsigned char *at = call->kept->data;
    for (unsigned i = 0; i < ending->part_count; i++) {
        call->parts[i] = (struct ringbus_part){.data = at, .size = ending->parts[i].size};
        at += ending->parts[i].size;
    }
    ending->parts = call->parts;
}

void rbi_call_on_reply(struct ringbus *beyond, const struct ringbus_result *result, void *context)
{
    struct rbi_call *call = context;
    const struct ringbus_message *message = result->message;
    (void)beyond;
    call->ending = (struct ringbus_ending){.struct_size = sizeof call->ending,
                                           .outcome = result->outcome,
                                           .error = result->error,
                                           .retry_after_ms = result->retry_after_ms,
                                           .parts = message != NULL ? message->parts : NULL,
                                           .part_count = message != NULL ? message->part_count : 0};
    if (call->caller->waiting == 0 && answer(call)) {
        rbi_call_free(call);
        return;
    }
    keep(call, message);
    call->caller->waiting++;
    rbi_list_push_back(&call->face->waiting, &call->link);
}

int rbi_calls_step(struct rbi_face *face)
{
    int gone = 0;
    const struct rbi_caller *full = NULL; /* the last one whose lane had no room */
    RBI_LIST_EACH(node, spare, &face->waiting)
    {
        struct rbi_call *call = RBI_CONTAINER_OF(node, struct rbi_call, link);
        if (call->caller == full) {
            continue;
        }
        if (!answer(call)) {
            full = call->caller;
            continue;
        }
        call->caller->waiting--;
        rbi_call_free(call);
        gone++;
    }
    return gone;
}

void rbi_calls_drop(struct rbi_face *face)
{
    RBI_LIST_EACH(node, spare, &face->waiting)
    {
        struct rbi_call *call = RBI_CONTAINER_OF(node, struct rbi_call, link);
        call->caller->waiting--;
        rbi_call_free(call);
    }
}
