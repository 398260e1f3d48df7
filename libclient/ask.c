/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/ask.c - the life of a request that may take several tries: begun, tried, waited for,
 * ended, its callback called once. Who is asked, and whether again, is retry.c's.
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
/* Who waits for a link looks as often whether a key has another owner. */
#define LOOK_NS (10 * RBI_NS_PER_MS)

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

static void set_due(struct ringbus *bus, struct rbi_ask *ask, uint64_t due_ns)
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
static void end(struct ringbus *bus, struct rbi_ask *ask, const struct ringbus_result *how)
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
    set_due(bus, ask, rbi_now_ns());
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
    end(bus, ask, &result);
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
    end(bus, ask, result);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void rbi_asks_link_up(struct ringbus *bus)
{
    if (bus->asks.waiting != 0) {
        bus->asks.due_ns = 0;
        rbi_deadline_at_most(bus, bus->now_ns);
    }
}

/* Its owner, or whoever there is, is on its way back. */
static bool may_come_back(int error)
{
    return error == RINGBUS_E_NOT_READY || error == RINGBUS_E_RESTARTING;
}

/* A limit lets it through in a while, and its policy has it wait for that (max_wait). */
static bool is_delayed(const struct ringbus *bus, int error)
{
    return error == RINGBUS_E_LIMITED && bus->refusal.wait_ns != 0;
}

static void wait_on(struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns)
{
    const uint64_t look_ns = is_delayed(bus, error) ? bus->refusal.retry_us * 1000 : LOOK_NS;
    if (is_delayed(bus, error)) {
        /* Chosen, but not asked: it may be chosen again. */
        ask->tried_count = (uint8_t)rbi_min_u64(ask->tried_count, ask->tries);
    }
    set_due(bus, ask, rbi_min_u64(ask->wait_until_ns, now_ns + look_ns));
}

static void begin_to_wait(
    struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns, uint64_t time_ns)
{
    ask->state = RBI_ASK_WAITING;
    bus->asks.waiting++;
    ask->wait_until_ns = rbi_min_u64(now_ns + time_ns, ask->deadline_ns);
    wait_on(bus, ask, error, now_ns);
}

/* The key's owner is out of reach: another may be asked, if the target says so. 0; the error */
static int divert(struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    if (!may_come_back(error) || (ask->flags & RINGBUS_KEY) == 0 || cluster == NULL ||
        cluster->caller == NULL || !cluster->caller->divert) {
        return error;
    }
    ask->diverting = true;
    return rbi_ask_first(bus, ask, now_ns) == 0 ? 0 : error;
}

int rbi_ask_wait(struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    if (is_delayed(bus, error) && bus->asks.waiting < RBI_WAITING_MAX) {
        begin_to_wait(bus, ask, error, now_ns, bus->refusal.wait_ns);
        return 0;
    }
    if (!may_come_back(error) || cluster == NULL || cluster->caller == NULL ||
        cluster->caller->wait_ms == 0 || bus->asks.waiting >= RBI_WAITING_MAX) {
        return divert(bus, ask, error, now_ns);
    }
    begin_to_wait(bus, ask, error, now_ns, cluster->caller->wait_ms * RBI_NS_PER_MS);
    return 0;
}

bool rbi_ask_is_behind(const struct ringbus *bus, const struct rbi_ask *ask)
{
    const struct rbi_ask *other = bus->asks.waiting != 0 ? bus->asks.first : NULL;
    for (; other != NULL; other = other->next) {
        if (other != ask && other->state == RBI_ASK_WAITING && other->key == ask->key &&
            other->to.cluster == ask->to.cluster &&
            (other->flags & ask->flags & RINGBUS_KEY) != 0) {
            return true;
        }
    }
    return false;
}

/* Its time is over, a link has come, or a table may be another. */
static void look_again(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns)
{
    int r = rbi_ask_first(bus, ask, now_ns);
    if (may_come_back(r) && now_ns >= ask->wait_until_ns) {
        r = divert(bus, ask, r, now_ns);
    }
    if (r == 0) {
        ask->state = RBI_ASK_ASKED;
        ask->due_ns = RBI_NEVER;
        bus->asks.waiting--;
    } else if ((!may_come_back(r) && !is_delayed(bus, r)) || now_ns >= ask->wait_until_ns) {
        const struct ringbus_result how = {.outcome = RINGBUS_NOT_SENT, .error = r};
        end(bus, ask, &how);
    } else {
        wait_on(bus, ask, r, now_ns);
    }
}

uint64_t rbi_asks_tick(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_asks *asks = &bus->asks;
    if (asks->due_ns > now_ns) {
        return asks->due_ns;
    }
    const bool all = asks->due_ns == 0; /* a link has come */
    asks->due_ns = RBI_NEVER;
    /* Callbacks may begin others, which come behind; one that ends is out of the list. */
    struct rbi_ask *last = asks->last;
    for (struct rbi_ask *ask = asks->first; ask != NULL;) {
        struct rbi_ask *next = ask == last ? NULL : ask->next;
        if (ask->state == RBI_ASK_WAITING && (all || ask->due_ns <= now_ns)) {
            look_again(bus, ask, now_ns);
        } else if (ask->state == RBI_ASK_ENDING) {
            const struct ringbus_result how = {.outcome = ask->outcome, .error = ask->error};
            end(bus, ask, &how);
        } else if (ask->due_ns != RBI_NEVER) {
            set_due(bus, ask, ask->due_ns);
        }
        ask = next;
    }
    return asks->due_ns;
}

void rbi_asks_end_all(struct ringbus *bus, int error)
{
    while (bus->asks.first != NULL) {
        const struct ringbus_result how = {.outcome = RINGBUS_NOT_SENT, .error = error};
        end(bus, bus->asks.first, &how);
    }
}
