/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/calls.c - requests that wait for their reply, and how each ends.
 *
 * A correlation is {generation, slot}: a slot's generation grows with each use, so a late
 * reply can never end a later request: its 44 bits last for half a year of one million requests
 * a second through one slot. And a reply counts only from the very link that the request went
 * over, which is never used again after its end. Deadlines lie in a binary heap of slot numbers.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_SLOT UINT32_MAX
/* Bounds what an application can have outstanding: 2^20 requests. */
#define SLOT_BITS 20U
#define CALLS_MAX (1U << SLOT_BITS)

void rbi_calls_init(struct rbi_calls *calls)
{
    memset(calls, 0, sizeof *calls);
    calls->free_head = NO_SLOT;
}

void rbi_calls_deinit(struct rbi_calls *calls)
{
    free(calls->slots);
    free(calls->heap);
    rbi_calls_init(calls);
}

/* ---- heap of deadlines -------------------------------------------------------------------- */

static void heap_put(struct rbi_calls *calls, uint32_t at, uint32_t slot)
{
    calls->heap[at] = slot;
    calls->slots[slot].heap_position = at;
}

static void heap_up(struct rbi_calls *calls, uint32_t at)
{
    const uint32_t slot = calls->heap[at];
    while (at > 0) {
        const uint32_t parent = (at - 1) / 2;
        if (calls->slots[calls->heap[parent]].deadline_ns <= calls->slots[slot].deadline_ns) {
            break;
        }
        heap_put(calls, at, calls->heap[parent]);
        at = parent;
    }
    heap_put(calls, at, slot);
}

static void heap_down(struct rbi_calls *calls, uint32_t at)
{
    const uint32_t slot = calls->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= calls->heap_count) {
            break;
        }
        if (child + 1 < calls->heap_count && calls->slots[calls->heap[child + 1]].deadline_ns <
                                                 calls->slots[calls->heap[child]].deadline_ns) {
            child++;
        }
        if (calls->slots[slot].deadline_ns <= calls->slots[calls->heap[child]].deadline_ns) {
            break;
        }
        heap_put(calls, at, calls->heap[child]);
        at = child;
    }
    heap_put(calls, at, slot);
}

static void heap_remove(struct rbi_calls *calls, uint32_t at)
{
    const uint32_t last = calls->heap[--calls->heap_count];
    if (at < calls->heap_count) {
        heap_put(calls, at, last);
        heap_up(calls, at);
        heap_down(calls, calls->slots[last].heap_position);
    }
}

uint64_t rbi_calls_deadline_ns(const struct rbi_calls *calls)
{
    return calls->heap_count > 0 ? calls->slots[calls->heap[0]].deadline_ns : RBI_NEVER;
}

/* ---- slots --------------------------------------------------------------------------------- */

static RBI_COLD int grow(struct rbi_calls *calls)
{
    const uint32_t count = calls->slot_count == 0 ? 64 : calls->slot_count * 2;
    if (count > CALLS_MAX) {
        return -ENOBUFS;
    }
    struct rbi_call *slots = realloc(calls->slots, count * sizeof *slots);
    if (slots == NULL) {
        return -ENOMEM;
    }
    calls->slots = slots;
    uint32_t *heap = realloc(calls->heap, count * sizeof *heap);
    if (heap == NULL) {
        return -ENOMEM;
    }
    calls->heap = heap;
    for (uint32_t i = count; i-- > calls->slot_count;) {
        memset(&slots[i], 0, sizeof slots[i]);
        slots[i].generation = 1;
        slots[i].next_free = calls->free_head;
        calls->free_head = i;
    }
    calls->slot_count = count;
    return 0;
}

/* The generation that follows; 0 is none, so that no correlation is 0. */
static uint64_t after(uint64_t generation)
{
    return generation == RBI_CALL_GENERATION_MAX ? 1 : generation + 1;
}

static uint64_t correlation(uint64_t generation, uint32_t slot)
{
    return generation << SLOT_BITS | slot;
}

static struct rbi_call *find(struct rbi_calls *calls, uint64_t id, uint32_t *slot)
{
    const uint32_t at = (uint32_t)id & (CALLS_MAX - 1);
    if (at >= calls->slot_count || calls->slots[at].on_reply == NULL ||
        calls->slots[at].generation != id >> SLOT_BITS) {
        return NULL;
    }
    *slot = at;
    return &calls->slots[at];
}

/* Frees the slot before its callback runs: the callback may send the next request. */
static struct rbi_call take(struct rbi_calls *calls, uint32_t slot)
{
    struct rbi_call *call = &calls->slots[slot];
    const struct rbi_call copy = *call;
    heap_remove(calls, call->heap_position);
    call->on_reply = NULL;
    call->generation = after(call->generation);
    call->next_free = calls->free_head;
    calls->free_head = slot;
    rbi_inflight_end(copy.inflight);
    return copy;
}

int rbi_calls_start(struct ringbus *bus,
                    const struct rbi_end *end,
                    uint64_t timeout_ns,
                    ringbus_reply_fn on_reply,
                    void *context,
                    uint64_t *id)
{
    struct rbi_calls *calls = &bus->calls;
    if (RBI_UNLIKELY(calls->free_head == NO_SLOT)) {
        if (grow(calls) != 0) {
            return rbi_fail(bus, RINGBUS_E_NO_MEMORY, "%u requests wait already",
                            calls->slot_count);
        }
    }
    const int r = rbi_inflight_begin(bus, end, end->inflight);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    const uint32_t slot = calls->free_head;
    struct rbi_call *call = &calls->slots[slot];
    calls->free_head = call->next_free;
    call->inflight = end->inflight;
    call->on_reply = on_reply;
    call->context = context;
    call->peer = end->peer;
    call->link_life = end->link_life;
    call->held = RBI_CALL_SENT;
    call->outcome = end->outcome;
    call->probe = RBI_UNLIKELY(bus->probing) ? rbi_probe_begin(bus, end) : 0;
    call->sent_ns = rbi_now_ns();
    call->deadline_ns = call->sent_ns + timeout_ns;
    heap_put(calls, calls->heap_count, slot);
    heap_up(calls, calls->heap_count++);
    rbi_deadline_at_most(bus, call->deadline_ns);
    *id = correlation(call->generation, slot);
    return 0;
}

void rbi_calls_forget(struct ringbus *bus, uint64_t id, int error)
{
    uint32_t slot = 0;
    if (find(&bus->calls, id, &slot) != NULL) {
        const struct rbi_call call = take(&bus->calls, slot);
        if (error == RINGBUS_E_FULL) {
            rbi_outcomes_local(bus, call.outcome);
        }
        if (call.probe != 0) {
            rbi_probe_over(bus, call.probe,
                           error == RINGBUS_E_FULL ? RBI_PROBE_NO_ROOM : RBI_PROBE_UNUSED);
        }
    }
}

/* Calls back; the slot is free, and what it says of the instance is counted. */
static inline void tell(struct ringbus *bus,
                        const struct rbi_call *call,
                        enum ringbus_outcome outcome,
                        int error,
                        const struct ringbus_message *message,
                        uint64_t elapsed_ns)
{
    struct ringbus_result result = {.outcome = outcome,
                                    .error = error,
                                    .message = message,
                                    .peer = rbi_addr(&call->peer),
                                    .elapsed_ns = elapsed_ns,
                                    .tries = 1};
    if (RBI_UNLIKELY(outcome == RINGBUS_NOT_SENT)) {
        result.retry_after_ms = rbi_refusal_retry_ms(bus, message);
    }
    const bool outer = bus->in_callback;
    bus->in_callback = true;
    call->on_reply(bus, &result, call->context);
    bus->in_callback = outer;
}

/* How a call ends that is not simply answered. */
struct ending {
    enum ringbus_outcome outcome;
    int error;
    const struct ringbus_message *message;
    enum rbi_outcome_kind kind; /* what that says of the instance */
};

static RBI_COLD void
finish(struct ringbus *bus, const struct rbi_call *call, const struct ending *ending)
{
    const uint64_t elapsed_ns = rbi_now_ns() - call->sent_ns;
    enum rbi_probe_outcome probe = RBI_PROBE_FAILED;
    if (ending->kind == RBI_OUTCOME_OK) {
        rbi_outcomes_good(&bus->outcomes, call->outcome, elapsed_ns, RBI_NEVER);
        probe = RBI_PROBE_OK;
    } else if (ending->kind != RBI_OUTCOME_NONE) {
        rbi_outcomes_bad(bus, call->outcome, ending->kind, elapsed_ns, call->sent_ns + elapsed_ns);
    } else {
        probe = RBI_PROBE_CANCELLED;
    }
    if (call->probe != 0) {
        rbi_probe_over(bus, call->probe, probe);
    }
    tell(bus, call, ending->outcome, ending->error, ending->message, elapsed_ns);
}

/* ---- how calls end -------------------------------------------------------------------------- */

/*
 * An answer that is no reply: one of the handler, or a refusal in its place. Overload is the
 * instance's; limits, rights and who owns a key are not.
 */
static RBI_COLD struct ending ending_of_error(struct ringbus *bus,
                                              const struct rbi_end *end,
                                              const struct ringbus_message *answer)
{
    const int refusal = rbi_refusal_of(bus, answer);
    struct ending ending = {.outcome = refusal == 0                      ? RINGBUS_FAILED
                                       : rbi_refusal_unsure(bus, answer) ? RINGBUS_UNKNOWN
                                                                         : RINGBUS_NOT_SENT,
                            .error = refusal != 0 ? refusal : RINGBUS_E_HANDLER_FAILED,
                            .message = answer,
                            .kind = RBI_OUTCOME_NONE};
    if (refusal == 0) {
        ending.kind = end->errors_count ? RBI_OUTCOME_FAILED : RBI_OUTCOME_OK;
    } else if (refusal == RINGBUS_E_SHED || refusal == RINGBUS_E_TIMEOUT) {
        ending.kind = RBI_OUTCOME_FAILED;
    }
    return ending;
}

void rbi_calls_reply(struct ringbus *bus,
                     struct rbi_end *end,
                     const struct rbi_record *record,
                     const struct ringbus_message *message)
{
    uint32_t slot = 0;
    const struct rbi_call *waiting = find(&bus->calls, record->tag, &slot);
    if (waiting == NULL || waiting->link_life != end->link_life) {
        rbi_count(bus, RBI_COUNTER_late_replies, 1);
        return;
    }
    const struct rbi_call call = take(&bus->calls, slot);
    rbi_count(bus, RBI_COUNTER_replies, 1);
    if (RBI_UNLIKELY(record->kind != RBI_RECORD_REP)) {
        const struct ending ending = ending_of_error(bus, end, message);
        finish(bus, &call, &ending);
        return;
    }
    const uint64_t elapsed_ns = rbi_now_ns() - call.sent_ns;
    rbi_outcomes_good(&bus->outcomes, call.outcome, elapsed_ns, end->slow_ns);
    if (RBI_UNLIKELY(call.probe != 0)) {
        rbi_probe_over(bus, call.probe, RBI_PROBE_OK);
    }
    tell(bus, &call, RINGBUS_REPLIED, 0, message, elapsed_ns);
}

/* How it ends without an answer: what still waits to be sent on was certainly not seen. */
static enum ringbus_outcome outcome_of(const struct rbi_call *call)
{
    return call->held == RBI_CALL_HELD_UNSEEN ? RINGBUS_NOT_SENT : RINGBUS_UNKNOWN;
}

void rbi_calls_expire(struct ringbus *bus, uint64_t now_ns)
{
    /* At most those that wait now: a callback that sends anew cannot keep us here. */
    for (uint32_t left = bus->calls.heap_count; left > 0; left--) {
        if (rbi_calls_deadline_ns(&bus->calls) > now_ns) {
            break;
        }
        const struct rbi_call call = take(&bus->calls, bus->calls.heap[0]);
        rbi_count(bus, RBI_COUNTER_timeouts, 1);
        /* One that waits for another receiver says nothing of the last, who is gone. */
        finish(bus, &call,
               &(struct ending){.outcome = outcome_of(&call),
                                .error = RINGBUS_E_TIMEOUT,
                                .kind = call.held == RBI_CALL_SENT ? RBI_OUTCOME_LOST
                                                                   : RBI_OUTCOME_NONE});
    }
}

/* Whoever left in order, or whom we wanted no more, has not failed. */
static enum rbi_outcome_kind kind_of_end(const struct rbi_end *end)
{
    return end->leave_reason == RBI_REASON_CRASHED || end->leave_reason == RBI_REASON_SILENT ||
                   end->leave_reason == RBI_REASON_BAD_PEER
               ? RBI_OUTCOME_LOST
               : RBI_OUTCOME_NONE;
}

/* A request of that tag that went over that very link; the tag may be a liar's. */
static struct rbi_call *
asked_over(struct ringbus *bus, const struct rbi_end *end, uint64_t tag, uint32_t *slot)
{
    struct rbi_call *call = find(&bus->calls, tag, slot);
    return call != NULL && call->link_life == end->link_life ? call : NULL;
}

void rbi_calls_given_back(struct ringbus *bus,
                          const struct rbi_end *end,
                          uint64_t tag,
                          bool maybe_seen)
{
    uint32_t slot = 0;
    if (asked_over(bus, end, tag, &slot) != NULL) {
        const struct rbi_call call = take(&bus->calls, slot);
        finish(bus, &call,
               &(struct ending){.outcome = maybe_seen ? RINGBUS_UNKNOWN : RINGBUS_NOT_SENT,
                                .error = rbi_end_error(end),
                                .kind = kind_of_end(end)});
    }
}

void rbi_calls_hold(struct ringbus *bus, const struct rbi_end *end, uint64_t tag, bool maybe_seen)
{
    uint32_t slot = 0;
    struct rbi_call *call = asked_over(bus, end, tag, &slot);
    if (call != NULL) {
        call->held = maybe_seen ? RBI_CALL_HELD_SEEN : RBI_CALL_HELD_UNSEEN;
    }
}

uint64_t rbi_calls_next_tag(struct ringbus *bus, const struct rbi_end *end, uint64_t tag)
{
    uint32_t slot = 0;
    const struct rbi_call *call = asked_over(bus, end, tag, &slot);
    return call != NULL ? correlation(after(call->generation), slot) : 0;
}

void rbi_calls_moved(struct ringbus *bus, uint64_t tag, const struct rbi_end *to)
{
    uint32_t slot = 0;
    struct rbi_call *call = find(&bus->calls, tag, &slot);
    if (call != NULL) {
        call->generation = after(call->generation);
        call->peer = to->peer;
        call->link_life = to->link_life;
        call->held = RBI_CALL_SENT;
        call->outcome = to->outcome;
        if (call->probe != 0) {
            rbi_probe_over(bus, call->probe, RBI_PROBE_CANCELLED);
            call->probe = 0; /* goes on elsewhere: its receiver has ended */
        }
    }
}

static void end_those_over(struct ringbus *bus, const struct rbi_end *end, int error, bool held)
{
    for (uint32_t slot = 0; slot < bus->calls.slot_count; slot++) {
        const struct rbi_call *call = &bus->calls.slots[slot];
        if (call->on_reply != NULL && call->link_life == end->link_life &&
            (held || call->held == RBI_CALL_SENT)) {
            const struct rbi_call ended = take(&bus->calls, slot);
            finish(bus, &ended,
                   &(struct ending){
                       .outcome = RINGBUS_UNKNOWN, .error = error, .kind = kind_of_end(end)});
        }
    }
}

void rbi_calls_peer_gone(struct ringbus *bus, const struct rbi_end *end, int error)
{
    end_those_over(bus, end, error, false);
}

void rbi_calls_over(struct ringbus *bus, const struct rbi_end *end, int error)
{
    end_those_over(bus, end, error, true);
}

void rbi_calls_end_all(struct ringbus *bus, int error)
{
    for (uint32_t slot = 0; slot < bus->calls.slot_count; slot++) {
        if (bus->calls.slots[slot].on_reply != NULL) {
            const struct rbi_call ended = take(&bus->calls, slot);
            finish(bus, &ended, &(struct ending){.outcome = outcome_of(&ended), .error = error});
        }
    }
}
