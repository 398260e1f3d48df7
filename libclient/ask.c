/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/ask.c - the life of a request that may take several tries: begun, tried, ended, its
 * callback called once. Who is asked, and whether again, is retry.c's; waiting is ask_wait.c's.
 *
 * A request that was told to the application while copies of it are under way (FORKING) is kept
 * until those have ended: they name it as their context.
 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

/* Requests whose memory is kept for the next ones, and the payload of them. */
#define SPARE_MAX         64U
#define SPARE_PAYLOAD_MAX 4096U

/* ---- memory ---------------------------------------------------------------------------------- */

static void put_last(struct rbi_asks *asks, struct rbi_ask *ask)
{
    ask->next = NULL;
    ask->previous = asks->last;
    if (asks->last != NULL) {
        asks->last->next = ask;
    } else {
        asks->first = ask;
    }
    asks->last = ask;
    asks->count++;
}

static void take_out(struct rbi_asks *asks, struct rbi_ask *ask)
{
    if (ask->previous != NULL) {
        ask->previous->next = ask->next;
    } else {
        asks->first = ask->next;
    }
    if (ask->next != NULL) {
        ask->next->previous = ask->previous;
    } else {
        asks->last = ask->previous;
    }
    asks->count--;
}

void rbi_ask_release(struct rbi_asks *asks, struct rbi_ask *ask)
{
    take_out(asks, ask);
    if (asks->spare_count >= SPARE_MAX) {
        free(ask->payload);
        free(ask);
        return;
    }
    if (ask->payload_room > SPARE_PAYLOAD_MAX) {
        free(ask->payload);
        ask->payload = NULL;
        ask->payload_room = 0;
    }
    ask->next = asks->spare;
    asks->spare = ask;
    asks->spare_count++;
}

struct rbi_ask *rbi_ask_obtain(struct rbi_asks *asks, uint64_t size)
{
    struct rbi_ask *ask = asks->spare;
    if (ask != NULL) {
        asks->spare = ask->next;
        asks->spare_count--;
    } else {
        ask = calloc(1, sizeof *ask);
        if (ask == NULL) {
            return NULL;
        }
    }
    unsigned char *payload = ask->payload;
    uint64_t room = ask->payload_room;
    if (room < size) {
        payload = realloc(payload, size);
        if (payload == NULL) {
            free(ask->payload);
            free(ask);
            return NULL;
        }
        room = size;
    }
    memset(ask, 0, sizeof *ask);
    ask->payload = payload;
    ask->payload_room = room;
    ask->due_ns = RBI_NEVER;
    put_last(asks, ask);
    return ask;
}

void rbi_asks_deinit(struct ringbus *bus)
{
    struct rbi_asks *asks = &bus->asks;
    while (asks->first != NULL) {
        rbi_ask_release(asks, asks->first);
    }
    while (asks->spare != NULL) {
        struct rbi_ask *ask = asks->spare;
        asks->spare = ask->next;
        free(ask->payload);
        free(ask);
    }
    asks->spare_count = 0;
}

void rbi_ask_set_due(struct ringbus *bus, struct rbi_ask *ask, uint64_t due_ns)
{
    ask->due_ns = due_ns;
    bus->asks.due_ns = rbi_min_u64(bus->asks.due_ns, due_ns);
    rbi_deadline_at_most(bus, due_ns);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* What the callback sends inherits what the request did, and its context's deadline. */
static void call_back(struct ringbus *bus, struct rbi_ask *ask, const struct ringbus_result *result)
{
    struct rbi_attributes context = ask->attributes;
    context.deadline_ns = ask->context_deadline_ns;
    context.present &= ~RBI_ATTRIBUTE_DEADLINE;
    context.present |= ask->context_deadline_ns != 0 ? RBI_ATTRIBUTE_DEADLINE : 0U;
    const struct rbi_attributes *outer = bus->inherited;
    const bool outer_callback = bus->in_callback;
    bus->inherited = &context;
    bus->in_callback = true;
    ask->on_reply(bus, result, ask->context);
    bus->in_callback = outer_callback;
    bus->inherited = outer;
}

/* A reply that no instance gave. */
static void end_mocked(struct ringbus *bus, struct rbi_ask *ask, const void *data, size_t size)
{
    struct rbi_view view = {.own = true};
    view.parts[0] = (struct ringbus_part){.data = data, .size = size};
    view.message = (struct ringbus_message){.from = ask->peer,
                                            .from_path = "",
                                            .kind = RINGBUS_KIND_REPLY,
                                            .flags = RINGBUS_MESSAGE_MOCKED,
                                            .data = data,
                                            .size = size,
                                            .part_count = 1,
                                            .parts = view.parts,
                                            .attributes = &ask->shown};
    const struct ringbus_result result = {.outcome = RINGBUS_REPLIED,
                                          .message = &view.message,
                                          .peer = ask->peer,
                                          .elapsed_ns = rbi_now_ns() - ask->started_ns,
                                          .tries = ask->tries};
    struct rbi_view *outer = bus->view;
    rbi_count(bus, RBI_COUNTER_mocked, 1);
    bus->view = &view; /* so that it can be kept */
    call_back(bus, ask, &result);
    bus->view = outer;
}

/* What is done instead. @return whether its callback was called */
static bool degrade(struct ringbus *bus, struct rbi_ask *ask, const struct ringbus_result *how)
{
    unsigned char buffer[RBI_MOCK_MAX];
    struct rbi_degraded instead;
    if (how->outcome != RINGBUS_NOT_SENT || bus->closing ||
        !rbi_degrade(bus, ask, how->error, buffer, &instead)) {
        return false;
    }
    if (instead.error == 0) {
        end_mocked(bus, ask, instead.reply.data, instead.reply.size);
    } else {
        const struct ringbus_result failed = {.outcome = RINGBUS_FAILED,
                                              .error = instead.error,
                                              .peer = ask->peer,
                                              .elapsed_ns = rbi_now_ns() - ask->started_ns,
                                              .tries = ask->tries};
        rbi_count(bus, RBI_COUNTER_mocked, 1);
        call_back(bus, ask, &failed);
    }
    rbi_degrade_rules_unref(instead.rules);
    free(instead.owned);
    return true;
}

static void tell(struct ringbus *bus, struct rbi_ask *ask, const struct ringbus_result *how)
{
    if (degrade(bus, ask, how)) {
        return;
    }
    if (how->outcome != RINGBUS_REPLIED && ask->mode == RBI_RETRY_FAILSAFE && !bus->closing) {
        end_mocked(bus, ask, NULL, 0);
        return;
    }
    struct ringbus_result result = *how;
    if (result.message != NULL) {
        /* Of the view at hand: what its request said, for callbacks that know only the reply. */
        bus->view->message.attributes = &ask->shown;
    }
    result.peer = ask->peer;
    result.elapsed_ns = rbi_now_ns() - ask->started_ns;
    result.tries = ask->tries;
    call_back(bus, ask, &result);
}

/* Told once; it is freed when the last of its calls has ended. */
void rbi_ask_end(struct ringbus *bus, struct rbi_ask *ask, const struct ringbus_result *how)
{
    if (ask->state == RBI_ASK_WAITING) {
        bus->asks.waiting--;
    }
    ask->state = RBI_ASK_ENDED;
    ask->due_ns = RBI_NEVER;
    ask->under_way++; /* the callback may poll nothing, but it may close what ends calls */
    if (how->outcome == RINGBUS_NOT_SENT && ask->doubt != 0) {
        const struct ringbus_result unknown = {.outcome = RINGBUS_UNKNOWN, .error = ask->doubt};
        tell(bus, ask, &unknown);
    } else {
        tell(bus, ask, how);
    }
    if (--ask->under_way == 0) {
        rbi_ask_release(&bus->asks, ask);
    }
}

void rbi_ask_end_later(struct ringbus *bus, struct rbi_ask *ask, int error)
{
    ask->state = RBI_ASK_ENDING;
    ask->outcome = RINGBUS_NOT_SENT;
    ask->error = error;
    rbi_ask_set_due(bus, ask, rbi_now_ns());
}

/* ---- a try ----------------------------------------------------------------------------------- */

static void on_try(struct ringbus *bus, const struct ringbus_result *result, void *context);

static void note_tried(struct rbi_ask *ask, const struct rbi_end *end)
{
    ask->peer = rbi_addr(&end->peer);
    if (ask->tried_count < RBI_TRIES_MAX) {
        ask->tried[ask->tried_count++] = end->peer.instance;
    }
}

/* Sends it over one link. 0; a public error (noted) */
static int ask_over(struct ringbus *bus, struct rbi_ask *ask, struct rbi_end *end, uint64_t now_ns)
{
    struct ringbus_part parts[RINGBUS_PARTS_MAX];
    const unsigned char *at = ask->payload;
    for (unsigned i = 0; i < ask->part_count; i++) {
        parts[i] = (struct ringbus_part){.data = at, .size = ask->part_sizes[i]};
        at += ask->part_sizes[i];
    }
    if (now_ns >= ask->deadline_ns) {
        return rbi_fail(bus, RINGBUS_E_TIMEOUT, "the time of the request is over");
    }
    uint64_t timeout_ns = ask->deadline_ns - now_ns;
    if (ask->try_timeout_ns != 0) {
        timeout_ns = rbi_min_u64(timeout_ns, ask->try_timeout_ns);
    }
    ask->attributes.present |= RBI_ATTRIBUTE_DEADLINE;
    ask->attributes.deadline_ns = now_ns + timeout_ns;
    ask->attributes.sent_ns = now_ns;
    struct rbi_outgoing out = {.kind = RBI_RECORD_REQ,
                               .flags = ask->flags,
                               .key = ask->key,
                               .parts = parts,
                               .part_count = ask->part_count,
                               .size = ask->size,
                               .chunk = RBI_CHUNK_NONE,
                               .record_flags =
                                   ask->to.instance == RINGBUS_ANY ? RBI_RECORD_ANY : 0U,
                               .attributes = &ask->attributes};
    note_tried(ask, end);
    int r = rbi_calls_start(bus, end, timeout_ns, on_try, ask, &out.tag);
    if (r != 0) {
        return r;
    }
    r = rbi_send_new(bus, end, &out);
    if (r != 0) {
        rbi_calls_forget(bus, out.tag, r);
        return r;
    }
    ask->under_way++;
    ask->tries++;
    rbi_count(bus, RBI_COUNTER_requests, 1);
    rbi_count(bus, RBI_COUNTER_retried, ask->again ? 1 : 0);
    ask->again = false;
    ask->flags &= ~RINGBUS_MORE; /* what follows at once follows this one */
    rbi_count(bus, RBI_COUNTER_diverted, ask->attributes.diverted ? 1 : 0);
    return 0;
}

/* Of one more instance. 0; a public error (noted): nobody was asked */
static int ask_one(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns)
{
    struct rbi_end *end = NULL;
    const int r = rbi_retry_choose(bus, ask, &end);
    return r == 0 ? ask_over(bus, ask, end, now_ns) : r;
}

/* Of one, and where that cannot be sent, of the next that may be asked. As ask_one() */
static int ask_next(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns)
{
    unsigned tried = ask->tried_count;
    int r = ask_one(bus, ask, now_ns);
    /* Where nobody was chosen nobody else is. */
    while (r != 0 && ask->tried_count > tried &&
           rbi_retry_allowed(bus, ask, RINGBUS_NOT_SENT, r, now_ns)) {
        const int first = r;
        tried = ask->tried_count;
        r = ask_one(bus, ask, now_ns);
        if (r == RINGBUS_E_NO_INSTANCE || r == RINGBUS_E_NOT_OWNER) {
            return first; /* there is no other: the first says more */
        }
    }
    return r;
}

/* Whom the stages leave, for a request like any other. */
static unsigned whom_all(struct ringbus *bus,
                         const struct rbi_ask *ask,
                         struct rbi_routed *routed,
                         struct rbi_end *const **ends)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    if (cluster == NULL) {
        return 0;
    }
    const struct rbi_choosing by = {.keyed = (ask->flags & RINGBUS_KEY) != 0, .key = ask->key};
    const struct rbi_pick pick = rbi_attributes_pick(&ask->attributes, &by);
    const struct rbi_choice *choice = rbi_cluster_choice_for(bus, cluster, &pick, routed);
    *ends = choice != NULL ? choice->ready : &routed->end;
    return choice != NULL ? choice->ready_count : routed->end != NULL ? 1 : 0;
}

static int ask_all(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns)
{
    struct rbi_routed routed = {.end = NULL};
    struct rbi_end *const *ends = NULL;
    const unsigned count = whom_all(bus, ask, &routed, &ends);
    int error = 0;
    for (unsigned i = 0; i < count; i++) {
        if (ends[i]->usable && !ends[i]->loop) {
            const int r = ask_over(bus, ask, ends[i], now_ns);
            error = error == 0 ? r : error;
        }
    }
    if (ask->under_way == 0) {
        return error != 0 ? error : rbi_send_no_peer(bus, &ask->to);
    }
    if (error != 0) {
        ask->error = error;
        ask->outcome = RINGBUS_NOT_SENT;
    }
    return 0;
}

/* Of as many at once as its mode says. 0; a public error (noted): nobody was asked */
int rbi_ask_first(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns)
{
    if (ask->mode == RBI_RETRY_BROADCAST) {
        return ask_all(bus, ask, now_ns);
    }
    int r = ask_next(bus, ask, now_ns);
    while (r == 0 && ask->mode == RBI_RETRY_FORKING && ask->tries_left > 0) {
        ask->tries_left--;
        if (ask_one(bus, ask, now_ns) != 0) {
            break; /* fewer are there */
        }
    }
    return r;
}

/* ---- how tries end --------------------------------------------------------------------------- */

/* One of several: what counts is the first failure; without one the last reply. */
static void one_of_all(struct ringbus *bus, struct rbi_ask *ask, const struct ringbus_result *how)
{
    struct ringbus_result result = *how;
    if (how->outcome != RINGBUS_REPLIED && ask->error == 0) {
        ask->error = how->error;
        ask->outcome = how->outcome;
    }
    if (ask->under_way != 0) {
        return;
    }
    if (ask->error != 0) {
        result.error = ask->error;
        result.outcome = ask->outcome;
        result.message = NULL;
    }
    rbi_ask_end(bus, ask, &result);
}

static void on_try(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct rbi_ask *ask = context;
    const bool answered = result->outcome == RINGBUS_REPLIED || result->outcome == RINGBUS_FAILED;
    ask->under_way--;
    rbi_retry_note(bus, ask, result->outcome, result->error);
    if (ask->state == RBI_ASK_ENDED) {
        if (ask->under_way == 0) {
            rbi_ask_release(&bus->asks, ask);
        }
        return;
    }
    if (ask->mode == RBI_RETRY_BROADCAST) {
        one_of_all(bus, ask, result);
        return;
    }
    if (result->outcome == RINGBUS_UNKNOWN && ask->doubt == 0) {
        ask->doubt = result->error;
    }
    if (!answered && ask->under_way != 0) {
        return; /* a copy of it may fare better */
    }
    const uint64_t now_ns = rbi_now_ns();
    if (!answered && rbi_retry_allowed(bus, ask, result->outcome, result->error, now_ns) &&
        ask_next(bus, ask, now_ns) == 0) {
        return;
    }
    rbi_ask_end(bus, ask, result);
}

void rbi_asks_end_all(struct ringbus *bus, int error)
{
    while (bus->asks.first != NULL) {
        const struct ringbus_result how = {.outcome = RINGBUS_NOT_SENT, .error = error};
        rbi_ask_end(bus, bus->asks.first, &how);
    }
}
