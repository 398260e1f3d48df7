/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/partner.h"

#include <stdio.h>
#include <string.h>

#define REQUEST_MS 60000U

struct partner partners[PARTNER_COUNT];
static struct node witness;
static struct ringbus_addr witness_to;
static uint64_t witness_sent;
static uint64_t witness_got;

static const struct operation *operation_now;
static uint32_t round_now;

static uint64_t bit(uint32_t number)
{
    return UINT64_C(1) << number;
}

/* ---- to the victim -------------------------------- */

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct partner *partner = &partners[operation_now->first_partner];
    const uint64_t mask = bit((uint32_t)(uintptr_t)context);
    struct message_head head;
    (void)bus;
    CHECK((partner->requests & mask) != 0);
    CHECK(((partner->replied | partner->unknown | partner->not_sent) & mask) == 0);
    if (result->outcome == RINGBUS_REPLIED) {
        CHECK(message_read(result->message->data, result->message->size, &head));
        CHECK(head.round == round_now && bit(head.number) == mask);
        partner->replied |= mask;
    } else {
        CHECK(result->outcome == RINGBUS_UNKNOWN || result->outcome == RINGBUS_NOT_SENT);
        CHECK(ringbus_error_kind(result->error) == RINGBUS_ERROR_GONE);
        *(result->outcome == RINGBUS_UNKNOWN ? &partner->unknown : &partner->not_sent) |= mask;
    }
}

static void send_next(struct partner *partner, size_t size, bool request)
{
    unsigned char payload[MESSAGE_MAX];
    const uint32_t number = partner->sent++;
    message_write(payload, size, round_now, number);
    if (request) {
        partner->requests |= bit(number);
        CHECK(ringbus_request(partner->node.bus, &partner->victim, 0, payload, size, 0, REQUEST_MS,
                              on_result, (void *)(uintptr_t)number) == 1);
        return;
    }
    const int r = ringbus_send(partner->node.bus, &partner->victim, 0, payload, size, 0);
    if (r != 1) {
        /* READY may be the last that is heard of one that dies while it is linked. */
        CHECK(operation_now->unlinked && (r == RINGBUS_E_PEER_GONE || r == RINGBUS_E_NOT_READY ||
                                          r == RINGBUS_E_NO_INSTANCE || r == RINGBUS_E_NOT_TARGET));
        partner->sent--;
    }
}

static void warm_up(struct partner *partner)
{
    send_next(partner, MESSAGE_SMALL, false);
    send_next(partner, MESSAGE_REFERENCED, false);
    send_next(partner, MESSAGE_SMALL, false);
}

void partners_give(const struct operation *operation, enum operation_given given)
{
    struct partner *partner = &partners[operation->first_partner];
    switch (given) {
    case GIVEN_SMALL:
        send_next(partner, MESSAGE_SMALL, false);
        break;
    case GIVEN_BATCH:
        send_next(partner, MESSAGE_SMALL, false);
        send_next(partner, MESSAGE_REFERENCED, false);
        send_next(partner, MESSAGE_LARGE, false);
        break;
    case GIVEN_REFERENCED:
        send_next(partner, MESSAGE_REFERENCED, false);
        break;
    case GIVEN_REQUEST:
        send_next(partner, MESSAGE_SMALL, true);
        break;
    case GIVEN_NOTHING:
        break;
    }
}

/* ---- from the victim -------------------------------- */

static void from_witness(const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size == sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number == witness_got);
    witness_got++;
}

static void on_message(struct node *node, const struct ringbus_message *message)
{
    struct partner *partner = node->context;
    struct message_head head;
    if (strcmp(message->from_path, CRASH_VICTIM) != 0) {
        from_witness(message);
        return;
    }
    CHECK(partner->linked);
    CHECK(message->from.incarnation == partner->victim.incarnation);
    CHECK(message_read(message->data, message->size, &head));
    CHECK(head.round == round_now);
    if (partner->lives == 1) {
        CHECK(head.number == partner->got);
        partner->got++;
    } else {
        partner->back = head.number + 1;
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        const int r = ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0);
        CHECK(r == 1 || r == RINGBUS_E_PEER_GONE);
    }
}

static void on_ready(struct partner *partner, const struct ringbus_event *event)
{
    CHECK(!partner->linked);
    partner->linked = true;
    partner->victim = event->addr;
    partner->lives++;
    if (partner->lives == 1 && !operation_now->cold &&
        partner->at == operation_now->first_partner) {
        warm_up(partner);
    }
}

static void on_undelivered(struct partner *partner, const struct ringbus_event *event)
{
    struct message_head head;
    CHECK(partner->linked && event->addr.incarnation == partner->victim.incarnation);
    CHECK(event->message != NULL);
    CHECK(message_read(event->message->data, event->message->size, &head));
    CHECK(head.round == round_now);
    if (event->message->kind == RINGBUS_KIND_REPLY) {
        CHECK(head.number < partner->got); /* an answer that nobody can have any more */
        return;
    }
    CHECK(head.number < partner->sent);
    CHECK((partner->returned >> head.number) == 0); /* none twice, and in order */
    partner->returned |= bit(head.number);
    partner->maybe |= event->maybe_seen ? bit(head.number) : 0;
}

static void on_event(struct node *node, const struct ringbus_event *event)
{
    struct partner *partner = node->context;
    if (strcmp(event->path, CRASH_VICTIM) != 0) {
        CHECK(event->type != RINGBUS_EVENT_DOWN && event->type != RINGBUS_EVENT_UNDELIVERED);
        return;
    }
    if (event->type == RINGBUS_EVENT_READY) {
        on_ready(partner, event);
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        CHECK(partner->linked && event->addr.incarnation == partner->victim.incarnation);
        partner->linked = false;
        CHECK(partner->downs < 2);
        partner->reasons[partner->downs++] = event->reason;
    } else if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        on_undelivered(partner, event);
    }
}

/* ---- all of them -------------------------------- */

static void open_partner(const struct cluster *cluster, unsigned at)
{
    char path[RINGBUS_PATH_MAX + 1];
    struct partner *partner = &partners[at];
    (void)snprintf(path, sizeof path, CRASH_PARTNER "/%u", at + 1);
    struct ringbus_options options = node_options(cluster, path);
    options.lane_bytes = 8192;
    options.inline_max = MESSAGE_INLINE_MAX;
    options.refs_per_link = 16;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 2048, .count = 16};
    memset(partner, 0, sizeof *partner);
    partner->at = at;
    partner->node.on_message = on_message;
    partner->node.on_event = on_event;
    partner->node.context = partner;
    node_open_with(&partner->node, &options);
}

/* What a handle makes once, with the first link that it asks for, is made before anybody counts. */
static void link_once(struct node *node, struct node *other, const char *path)
{
    const node_event_fn on_event[] = {node->on_event, other->on_event};
    node->on_event = other->on_event = NULL;
    const unsigned down[] = {node->events[RINGBUS_EVENT_DOWN], other->events[RINGBUS_EVENT_DOWN]};
    node_target(node, path, 1, other);
    CHECK(ringbus_untarget(node->bus, path) == 0);
    RUN_UNTIL(node->events[RINGBUS_EVENT_DOWN] > down[0] &&
                  other->events[RINGBUS_EVENT_DOWN] > down[1],
              NODE_MS, node, other);
    node->on_event = on_event[0];
    other->on_event = on_event[1];
}

void partners_open(const struct cluster *cluster)
{
    for (unsigned at = 0; at < PARTNER_COUNT; at++) {
        open_partner(cluster, at);
    }
    /* Twice: with the second link the daemon has taken what it was told with the first. */
    for (unsigned i = 0; i < 2 * PARTNER_COUNT; i++) {
        char path[RINGBUS_PATH_MAX + 1];
        const unsigned at = i % PARTNER_COUNT;
        const unsigned other = (at + 1) % PARTNER_COUNT;
        (void)snprintf(path, sizeof path, CRASH_PARTNER "/%u", other + 1);
        link_once(&partners[at].node, &partners[other].node, path);
    }
    CHECK(ringbus_fd(partners[PARTNER_ASLEEP].node.bus) >= 0);
    struct ringbus_options options = node_options(cluster, NULL);
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 2048, .count = 1};
    node_open_with(&witness, &options);
    witness_to = node_target(&witness, CRASH_PARTNER "/1", 1, &partners[0].node);
    /* Both lanes whole from the start: PINGs alone would map them page by page as time goes on. */
    CHECK(ringbus_send(partners[0].node.bus, &partners[0].node.peer, 0, "", 0, 0) == 1);
    RUN_UNTIL(witness.messages == 1, NODE_MS, &witness);
}

void partners_close(void)
{
    node_close(&witness);
    for (unsigned at = 0; at < PARTNER_COUNT; at++) {
        node_close(&partners[at].node);
    }
}

void partners_want(const struct operation *operation, bool on)
{
    struct ringbus *bus = partners[operation->first_partner].node.bus;
    if (operation->wanted) {
        CHECK((on ? ringbus_target(bus, CRASH_VICTIM, NULL, NULL)
                  : ringbus_untarget(bus, CRASH_VICTIM)) == 0);
    }
}

void partners_round(const struct operation *operation, uint32_t round)
{
    operation_now = operation;
    round_now = round;
    for (unsigned at = 0; at < PARTNER_COUNT; at++) {
        const struct node node = partners[at].node;
        CHECK(!partners[at].linked);
        partners[at] = (struct partner){.node = node, .at = at};
    }
}

bool partners_step(void)
{
    bool any = false;
    const int r = ringbus_send(witness.bus, &witness_to, 0, &witness_sent, sizeof witness_sent, 0);
    CHECK(r == 1 || r == RINGBUS_E_FULL);
    witness_sent += r == 1;
    for (unsigned at = 0; at < PARTNER_COUNT; at++) {
        const uint64_t witnessed = witness_got;
        const int n = ringbus_poll(partners[at].node.bus, 1000);
        CHECK(n >= 0);
        any |= (uint64_t)n > witness_got - witnessed;
    }
    CHECK(ringbus_poll(witness.bus, 1000) >= 0);
    return any;
}

void partners_run(void)
{
    if (!partners_step()) {
        CHECK(ringbus_wait(partners[PARTNER_AWAKE].node.bus, 1) >= 0);
    }
}

void partners_settle(void)
{
    while (partners_step() || witness_got != witness_sent) {
    }
}

bool partners_linked(void)
{
    bool any = false;
    for (unsigned at = 0; at < PARTNER_COUNT; at++) {
        any |= partners[at].linked;
    }
    return any;
}

void partners_wake(void)
{
    if (partners[PARTNER_AWAKE].node.bus) {
        (void)ringbus_wake(partners[PARTNER_AWAKE].node.bus);
    }
}

uint64_t partners_witnessed(void)
{
    return witness_got;
}
