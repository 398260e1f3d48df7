/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_CLIENT_RELAYED_H
#define RINGBUS_TESTS_PROCESS_CLIENT_RELAYED_H
/*
 * A client on alpha and a service on beta, with a relay between them that the test cuts as it
 * likes: messages are numbered, and the service holds that each comes once and in order.
 */
#include "support/relay.h"
#include "support/test.h"

#include <string.h>

#define SERVICE   "/game/eu/pc/w1/core/far"
#define SERVICE_1 SERVICE "/1"
#define LARGE     12000U

static struct relay relay;
static struct node client;
static struct node service;
static struct rbi_proxy *proxy;
static uint32_t ping_ms = 60000; /* nobody is given up for being slow */

static struct {
    uint64_t next;     /* the number that comes next */
    uint64_t again;    /* messages with RINGBUS_MESSAGE_REDELIVERED */
    uint64_t skipped;  /* numbers that a GAP had told of */
    unsigned gaps;     /* events */
    uint64_t count;    /* of all of them */
    uint64_t maybe;    /* likewise */
    uint64_t from;     /* of the last */
    uint64_t to;       /* likewise */
    uint64_t gap_next; /* next, when the last one came */
    bool loose;        /* numbers may be missing: no GAP is expected to come before them */
    bool answers;
} got;

static struct {
    uint64_t sent;
    uint64_t back;
    uint64_t back_seen;
    uint64_t first; /* number of the first that came back */
    unsigned suspect;
    unsigned alive;
    bool paused;
    bool cut_when_ready; /* before what it says then has gone on */
} client_saw;

static inline void take(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size >= sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(message->attributes == NULL || message->attributes->priority != 0);
    if (got.loose) {
        CHECK(number >= got.next);
    } else if (number != got.next) {
        print_error("number %llu, expected %llu\n", (unsigned long long)number,
                    (unsigned long long)got.next);
        bus_die(__FILE__, __LINE__, "each once, and in order");
    }
    got.skipped += number - got.next;
    got.next = number + 1;
    got.again += (message->flags & RINGBUS_MESSAGE_REDELIVERED) != 0;
    if (message->kind == RINGBUS_KIND_REQUEST && got.answers) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, &number, sizeof number, 0) == 1);
    }
}

static inline void note_gap(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_GAP) {
        CHECK(event->gap != NULL && event->gap->from < event->gap->to && event->gap->link != 0);
        CHECK(event->gap->maybe_seen <= event->count);
        CHECK(event->reason == RINGBUS_REASON_UNREACHABLE);
        got.gaps++;
        got.count += event->count;
        got.maybe += event->gap->maybe_seen;
        got.from = event->gap->from;
        got.to = event->gap->to;
        got.gap_next = got.next;
    } else {
        CHECK(event->gap == NULL);
    }
}

static inline void note_back(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        uint64_t number = 0;
        memcpy(&number, event->message->data, sizeof number);
        client_saw.first = client_saw.back == 0 ? number : client_saw.first;
        client_saw.back++;
        client_saw.back_seen += event->maybe_seen != 0;
        CHECK(event->error == RINGBUS_E_UNREACHABLE && event->reason == RINGBUS_REASON_UNREACHABLE);
    } else if (event->type == RINGBUS_EVENT_SUSPECT) {
        client_saw.suspect++;
        client_saw.paused = event->paused != 0 && event->reason == RINGBUS_REASON_UNREACHABLE;
    } else if (event->type == RINGBUS_EVENT_ALIVE) {
        client_saw.alive++;
    } else if (event->type == RINGBUS_EVENT_READY) {
        relay.cut |= client_saw.cut_when_ready;
    }
}

/* @p redeliver_ms  0: what comes back is reported */
static inline void begin(uint32_t redeliver_ms)
{
    memset(&client, 0, sizeof client);
    memset(&service, 0, sizeof service);
    memset(&got, 0, sizeof got);
    memset(&client_saw, 0, sizeof client_saw);
    service.on_message = take;
    service.on_event = note_gap;
    client.on_event = note_back;
    relay_up(&relay, "{}\n", NULL);
    node_open(&service, &relay.host[1].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &service);
    proxy = relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.registered == 1, NODE_MS, &service);
    struct ringbus_options options = node_options(&relay.host[0].cluster, NULL);
    options.lane_bytes = 65536;
    node_open_with(&client, &options);
    const struct ringbus_target_options target = {
        .struct_size = sizeof target,
        .on_down = redeliver_ms != 0 ? RINGBUS_ON_DOWN_REDELIVER : RINGBUS_ON_DOWN_REPORT,
        .redeliver_ms = redeliver_ms,
        .ping_interval_ms = ping_ms,
        .ping_misses = 2};
    assert_int_equal(ringbus_target(client.bus, SERVICE, &target, NULL), 0);
    RELAY_UNTIL(&relay, client.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &client, &service);
}

static inline void finish(void)
{
    node_close(&client);
    node_close(&service);
    relay_down(&relay);
}

static inline struct ringbus_addr any(void)
{
    struct ringbus_addr addr = client.peer;
    addr.instance = RINGBUS_ANY;
    addr.incarnation = 0;
    return addr;
}

static inline int send_to(const struct ringbus_addr *to, size_t size, unsigned flags)
{
    static unsigned char bytes[LARGE];
    memcpy(bytes, &client_saw.sent, sizeof client_saw.sent);
    const int r = ringbus_send(client.bus, to, 0, bytes, size, flags);
    client_saw.sent += r == 1;
    return r;
}

/* Small and large ones, to the instance. */
static inline void send_some(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const size_t size = client_saw.sent % 8 == 5 ? LARGE : 8 + client_saw.sent % 60;
        assert_int_equal(send_to(&client.peer, size, 0), 1);
    }
}

/* So many turns that what could move has. */
static inline void turns(unsigned count, struct node *a, struct node *b)
{
    struct node *const nodes[] = {a, b};
    for (unsigned i = 0; i < count; i++) {
        (void)relay_poll(nodes, 2);
        relay_turn(&relay, true);
    }
}

static inline void put_hold(unsigned host, bool on)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    const struct rbi_hold_body hold = {.on = on ? 1 : 0};
    const uint64_t size = 8 + rbi_hold_encode(&hold, body + 8);
    assert_int_equal(rbi_half_put(relay_only(&relay)->half[host],
                                  rbi_record_meta(RBI_RECORD_HOLD, 0, 0, 0), body, size),
                     RBI_LANE_OK);
}

/* The way is cut, or there again: both ends are told. */
static inline void cut(bool on)
{
    relay.cut = on;
    put_hold(0, on);
    put_hold(1, on);
    if (!on) {
        relay_go_on(&relay);
    }
}

/* It was cut for too long. The target asks for a new link by itself. */
static inline void lose(void)
{
    const unsigned downs = client.events[RINGBUS_EVENT_DOWN];
    relay_pair_over(relay_only(&relay), RBI_REASON_UNREACHABLE);
    relay.cut = relay.ack_held = relay.swallowed = false;
    RELAY_UNTIL(&relay,
                client.events[RINGBUS_EVENT_DOWN] == downs + 1 &&
                    service.events[RINGBUS_EVENT_DOWN] == downs + 1,
                NODE_MS, &client, &service);
    CHECK(client.reason == RINGBUS_REASON_UNREACHABLE);
    CHECK(service.reason == RINGBUS_REASON_UNREACHABLE);
}

static inline void link_again(void)
{
    const unsigned ready = client.events[RINGBUS_EVENT_DOWN] + 1;
    RELAY_UNTIL(&relay,
                client.events[RINGBUS_EVENT_READY] == ready &&
                    service.events[RINGBUS_EVENT_READY] == ready,
                NODE_MS, &client, &service);
}

#endif
