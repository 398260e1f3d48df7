/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/operation.h"

#include <stdio.h>
#include <string.h>

#define REQUEST_MS 60000U
#define DRAIN_MS   5000U
#define PATIENT_MS 10000U

static void poll_once(struct victim *victim)
{
    CHECK(ringbus_poll(victim->node.bus, 1000) >= 0);
}

/* ---- sending -------------------------------- */

/* Payloads are made before the operation: their making is not what is tested. */
static void prepare(struct victim *victim, size_t size)
{
    message_write(victim->payload, size, victim->round, victim->next);
}

static void begun(struct victim *victim, unsigned count)
{
    word_set(WORD_BEGUN, victim->next + count);
}

static void sent(struct victim *victim, unsigned count)
{
    victim->next += count;
    word_set(WORD_SENT, victim->next);
}

/*
 * A victim that stood still may find in the middle of its operation that it was given up:
 * the ways to say so are few.
 */
static bool is_refusal(const struct victim *victim, int r)
{
    return victim->ping_interval_ms != 0 && r < 0 &&
           (ringbus_error_kind(r) == RINGBUS_ERROR_GONE || r == RINGBUS_E_NOT_READY);
}

/* Notes a send that has returned. */
static void end_send(struct victim *victim, int r, int receivers)
{
    if (r == receivers) {
        sent(victim, 1);
    } else {
        CHECK(is_refusal(victim, r) || (victim->ping_interval_ms != 0 && r >= 0 && r < receivers));
    }
}

int operation_send(struct victim *victim, size_t size, unsigned flags)
{
    prepare(victim, size);
    begun(victim, 1);
    const int r = ringbus_send(victim->node.bus, &victim->to, 0, victim->payload, size, flags);
    if (r >= 1) {
        sent(victim, 1);
    }
    return r;
}

static void prepare_small(struct victim *victim)
{
    prepare(victim, MESSAGE_SMALL);
}

static void prepare_large(struct victim *victim)
{
    prepare(victim, MESSAGE_LARGE);
}

static void prepare_referenced(struct victim *victim)
{
    prepare(victim, MESSAGE_REFERENCED);
}

static void send_prepared(struct victim *victim, size_t size)
{
    begun(victim, 1);
    end_send(victim, ringbus_send(victim->node.bus, &victim->to, 0, victim->payload, size, 0), 1);
}

static void send_small(struct victim *victim)
{
    send_prepared(victim, MESSAGE_SMALL);
}

static void send_large(struct victim *victim)
{
    send_prepared(victim, MESSAGE_LARGE);
}

static void send_referenced(struct victim *victim)
{
    send_prepared(victim, MESSAGE_REFERENCED);
}

/* Three with one look at the sleep word, in as few instructions as numbering them takes. */
static void send_burst(struct victim *victim)
{
    const unsigned flags[] = {RINGBUS_MORE, RINGBUS_MORE, 0};
    for (unsigned i = 0; i < 3; i++) {
        message_write(victim->payload, sizeof(struct message_head) + 8, victim->round,
                      victim->next);
        begun(victim, 1);
        end_send(victim,
                 ringbus_send(victim->node.bus, &victim->to, 0, victim->payload,
                              sizeof(struct message_head) + 8, flags[i]),
                 1);
    }
}

static int send_filling(struct victim *victim, unsigned i)
{
    begun(victim, 1);
    const int r =
        ringbus_send(victim->node.bus, &victim->to, 0, victim->filling[i], MESSAGE_LARGE, 0);
    if (r == 1) {
        sent(victim, 1);
    }
    return r;
}

/* Until the lane is full; then it sleeps until there is room, and sends one more. */
static void fill_and_wait(struct victim *victim)
{
    unsigned i = 0;
    int r = 1;
    while (i + 1 < OPERATION_FILL && (r = send_filling(victim, i)) == 1) {
        i++;
    }
    while (r == RINGBUS_E_FULL) {
        CHECK(ringbus_wait(victim->node.bus, -1) == 1);
        poll_once(victim);
        r = send_filling(victim, i);
    }
    CHECK(r == 1 || is_refusal(victim, r));
}

static void prepare_filling(struct victim *victim)
{
    for (unsigned i = 0; i < OPERATION_FILL; i++) {
        message_write(victim->filling[i], MESSAGE_LARGE, victim->round, victim->next + i);
    }
}

static void send_parts(struct victim *victim)
{
    const struct ringbus_part parts[] = {
        {.data = victim->payload, .size = 20},
        {.data = victim->payload + 20, .size = 0},
        {.data = victim->payload + 20, .size = MESSAGE_SMALL - 20}};
    begun(victim, 1);
    end_send(victim, ringbus_sendv(victim->node.bus, &victim->to, 0, parts, 3, 0), 1);
}

static void claim_and_commit(struct victim *victim)
{
    struct ringbus_claim *claim = &victim->claim;
    begun(victim, 1);
    CHECK(ringbus_claim(victim->node.bus, &victim->to, 0, MESSAGE_LARGE, 0, claim) == 0);
    memcpy(claim->data, victim->payload, MESSAGE_SMALL);
    end_send(victim, ringbus_commit(victim->node.bus, claim, MESSAGE_SMALL), 1);
}

/* A claim of a chunk, given back; a claim in the lane, given back; and one that is sent. */
static void claim_and_abort(struct victim *victim)
{
    struct ringbus_claim *claim = &victim->claim;
    CHECK(ringbus_claim(victim->node.bus, &victim->to, 0, MESSAGE_REFERENCED, 0, claim) == 0);
    CHECK(ringbus_abort(victim->node.bus, claim) == 0);
    CHECK(ringbus_claim(victim->node.bus, &victim->to, 0, MESSAGE_LARGE, 0, claim) == 0);
    memcpy(claim->data, victim->payload, MESSAGE_LARGE);
    CHECK(ringbus_abort(victim->node.bus, claim) == 0);
    send_small(victim);
}

static void loan_to_all(struct victim *victim)
{
    struct ringbus *bus = victim->node.bus;
    struct ringbus_loan *loan = &victim->loan;
    CHECK(ringbus_loan(bus, MESSAGE_REFERENCED, loan) == 0);
    memcpy(loan->data, victim->payload, MESSAGE_REFERENCED);
    begun(victim, 1);
    end_send(victim, ringbus_send_loan(bus, &victim->to, 0, loan, MESSAGE_REFERENCED, 0),
             (int)PARTNER_COUNT);
    CHECK(ringbus_loan_return(bus, loan) == 0);
}

/* Scenario 3: loans that are never sent. */
static void loan_and_hold(struct victim *victim)
{
    struct ringbus_loan loans[3];
    for (unsigned i = 0; i < 3; i++) {
        CHECK(ringbus_loan(victim->node.bus, MESSAGE_REFERENCED, &loans[i]) == 0);
        memcpy(loans[i].data, victim->payload, MESSAGE_SMALL);
    }
}

/* ---- requests -------------------------------- */

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct victim *victim = context;
    (void)bus;
    CHECK(result->outcome == RINGBUS_REPLIED || victim->ping_interval_ms != 0);
    victim->replies++;
    word_set(WORD_REPLIED, victim->replies);
}

static void request(struct victim *victim)
{
    begun(victim, 1);
    end_send(victim,
             ringbus_request(victim->node.bus, &victim->to, 0, victim->payload, MESSAGE_SMALL, 0,
                             REQUEST_MS, on_result, victim),
             1);
}

static void prepare_and_request(struct victim *victim)
{
    prepare_small(victim);
    request(victim);
}

/* ---- receiving -------------------------------- */

void operation_on_message(struct node *node, const struct ringbus_message *message)
{
    struct victim *victim = node->context;
    struct message_head head;
    /* Its bytes are the partner's to check: it lives, and here each would be a step. */
    CHECK(message->size >= sizeof head);
    memcpy(&head, message->data, sizeof head);
    CHECK(head.round == victim->round && head.number < MESSAGE_SEEN_MAX);
    CHECK(!message_seen(head.number));
    word_set((enum message_word)(WORD_SEEN + head.number), 1);
    if (victim->keeping && victim->kept == NULL &&
        (message->flags & RINGBUS_MESSAGE_REFERENCED) != 0) {
        CHECK(ringbus_keep(node->bus, message, &victim->kept) == 0);
        word_set(WORD_KEPT, 1);
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        const int r = ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0);
        CHECK(r == 1 || is_refusal(victim, r));
    }
}

static void keep_next(struct victim *victim)
{
    victim->keeping = true;
}

static void release(struct victim *victim)
{
    CHECK(ringbus_release(victim->node.bus, victim->kept) == 0);
    victim->kept = NULL;
    word_set(WORD_KEPT, 0);
}

static void sleep_and_wake(struct victim *victim)
{
    CHECK(ringbus_wait(victim->node.bus, -1) == 1);
    poll_once(victim);
}

/* ---- links -------------------------------- */

void operation_target(struct victim *victim,
                      const struct operation *operation,
                      unsigned ping_interval_ms)
{
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus_target_options options = {.struct_size = sizeof options,
                                             .ping_interval_ms = ping_interval_ms};
    if (operation->partners == 1) {
        (void)snprintf(path, sizeof path, CRASH_PARTNER "/%u", operation->first_partner + 1);
    } else {
        (void)snprintf(path, sizeof path, CRASH_PARTNER);
    }
    CHECK(ringbus_target(victim->node.bus, path, &options, &victim->to) == 0);
    if (operation->partners > 1) {
        victim->to.instance = RINGBUS_ALL;
    }
}

static void on_event(struct node *node, const struct ringbus_event *event)
{
    struct victim *victim = node->context;
    if (event->type == RINGBUS_EVENT_READY) {
        word_set(WORD_READY, node->events[RINGBUS_EVENT_READY]);
        return;
    }
    if (event->type != RINGBUS_EVENT_DOWN) {
        return;
    }
    /* What a paused one is told, and what a send says behind it. */
    word_set(WORD_DOWN, node->events[RINGBUS_EVENT_DOWN]);
    word_set(WORD_REASON, event->reason);
    const int r = ringbus_send(node->bus, &event->addr, 0, victim->payload, MESSAGE_SMALL, 0);
    word_set(WORD_REFUSED, r < 0 ? (uint64_t)-r : 0);
    if (victim->ping_interval_ms != 0) {
        /* Its next link is not meant to end so, however long the machine stands still. */
        operation_target(victim, victim->operation, PATIENT_MS);
    }
}

int operation_try_open(struct victim *victim)
{
    struct ringbus_options options = node_options(victim->cluster, CRASH_VICTIM);
    options.lane_bytes = 8192;
    options.inline_max = MESSAGE_INLINE_MAX;
    options.refs_per_link = 16;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 2048, .count = 8};
    options.ping_interval_ms = victim->ping_interval_ms;
    options.ping_misses = victim->ping_interval_ms != 0 ? 2 : 0;
    options.spin_us = 1; /* so that falling asleep takes the same instructions each time */
    victim->node.on_message = operation_on_message;
    victim->node.on_event = on_event;
    victim->node.context = victim;
    return node_try_open(&victim->node, &options);
}

void operation_open(struct victim *victim)
{
    if (operation_try_open(victim) != 0) {
        bus_die(__FILE__, __LINE__, ringbus_errmsg(NULL));
    }
}

void operation_link(struct victim *victim, const struct operation *operation)
{
    operation_target(victim, operation, 0);
    while (victim->node.events[RINGBUS_EVENT_READY] < operation->partners) {
        CHECK(ringbus_wait(victim->node.bus, -1) >= 0);
        poll_once(victim);
    }
}

static void open_only(struct victim *victim)
{
    operation_open(victim);
}

static const struct operation link_one = {.partners = 1};

static void open_before(struct victim *victim)
{
    operation_open(victim);
    prepare_filling(victim);
}

static void link_only(struct victim *victim)
{
    operation_link(victim, &link_one);
}

static void untarget(struct victim *victim)
{
    CHECK(ringbus_untarget(victim->node.bus, CRASH_PARTNER "/1") == 0);
    poll_once(victim);
}

/* Takes in the link that the partner has asked for, and uses it at once. */
static void accept_only(struct victim *victim)
{
    while (victim->node.events[RINGBUS_EVENT_READY] == 0) {
        CHECK(ringbus_wait(victim->node.bus, -1) >= 0);
        poll_once(victim);
    }
    victim->to = victim->node.peer;
    CHECK(send_filling(victim, 0) == 1);
}

static void close_at_once(struct victim *victim)
{
    CHECK(ringbus_close(victim->node.bus, 0) == 0);
}

static void close_drained(struct victim *victim)
{
    CHECK(ringbus_close(victim->node.bus, DRAIN_MS) == 0);
}

/* ---- the table -------------------------------- */

static const struct operation operations[] = {
    {.name = "send", .partners = 1, .before = prepare_small, .run = send_small},
    {.name = "send_large", .partners = 1, .before = prepare_large, .run = send_large},
    {.name = "send_chunk", .partners = 1, .before = prepare_referenced, .run = send_referenced},
    {.name = "send_parts", .partners = 1, .before = prepare_small, .run = send_parts},
    {.name = "send_first", .partners = 1, .cold = true, .before = prepare_small, .run = send_small},
    {.name = "send_bell",
     .first_partner = PARTNER_ASLEEP,
     .partners = 1,
     .before = prepare_small,
     .run = send_small},
    {.name = "send_burst", .first_partner = PARTNER_ASLEEP, .partners = 1, .run = send_burst},
    {.name = "send_full",
     .partners = 1,
     .blocks = true,
     .fills = true,
     .before = prepare_filling,
     .run = fill_and_wait},
    {.name = "claim_commit", .partners = 1, .before = prepare_small, .run = claim_and_commit},
    {.name = "claim_abort", .partners = 1, .before = prepare_small, .run = claim_and_abort},
    {.name = "loan_all",
     .partners = PARTNER_COUNT,
     .before = prepare_referenced,
     .run = loan_to_all},
    {.name = "loan_unsent", .partners = 1, .before = prepare_referenced, .run = loan_and_hold},
    {.name = "request", .partners = 1, .before = prepare_small, .run = request},
    {.name = "reply", .partners = 1, .given = GIVEN_REQUEST, .run = poll_once},
    {.name = "take_reply", .partners = 1, .before = prepare_and_request, .run = poll_once},
    {.name = "poll", .partners = 1, .given = GIVEN_SMALL, .run = poll_once},
    {.name = "poll_batch", .partners = 1, .given = GIVEN_BATCH, .run = poll_once},
    {.name = "poll_first", .partners = 1, .cold = true, .given = GIVEN_BATCH, .run = poll_once},
    {.name = "poll_chunk", .partners = 1, .given = GIVEN_REFERENCED, .run = poll_once},
    {.name = "keep",
     .partners = 1,
     .given = GIVEN_REFERENCED,
     .before = keep_next,
     .run = poll_once},
    {.name = "release", .partners = 1, .keeps = true, .run = release},
    {.name = "sleep", .partners = 1, .blocks = true, .run = sleep_and_wake},
    {.name = "open", .partners = 1, .unlinked = true, .by_calls = true, .run = open_only},
    {.name = "link",
     .partners = 1,
     .unlinked = true,
     .by_calls = true,
     .before = open_before,
     .run = link_only},
    {.name = "accept",
     .partners = 1,
     .unlinked = true,
     .wanted = true,
     .by_calls = true,
     .before = open_before,
     .run = accept_only},
    {.name = "untarget", .partners = 1, .leaves = true, .run = untarget},
    {.name = "close", .partners = 1, .by_calls = true, .leaves = true, .run = close_at_once},
    {.name = "drain", .partners = 1, .by_calls = true, .leaves = true, .run = close_drained},
};

const struct operation *operation_at(unsigned i)
{
    return i < sizeof operations / sizeof operations[0] ? &operations[i] : NULL;
}

const struct operation *operation_find(const char *name)
{
    const struct operation *operation = NULL;
    for (unsigned i = 0; (operation = operation_at(i)) != NULL; i++) {
        if (strcmp(operation->name, name) == 0) {
            return operation;
        }
    }
    return NULL;
}
