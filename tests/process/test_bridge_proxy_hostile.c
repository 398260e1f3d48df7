/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local endpoint that owns its memory and its bell, and writes into them whatever it likes: the
 * bridge ends its link, and nobody else's.
 */
#include "hostile/peer.h"
#include "support/relay.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVICE                   "/game/eu/pc/w1/core/far"
#define SERVICE_1                 SERVICE "/1"
#define DATA(flags, words, parts) rbi_record_meta(RBI_RECORD_ONEWAY, flags, words, parts)

static struct relay relay;
static struct node alpha; /* innocent, and served all the time */
static struct node beta;

/* ---- the attacker, in a process of its own ---- */

static struct peer peer;
static struct ringbus_addr service;

static void relink(void)
{
    peer_unlink(&peer);
    CHECK(peer_link(&peer, service.cluster, service.instance) == 0);
}

static void expect_bad(const char *what)
{
    const int reason = peer_await_down(&peer, NODE_MS);
    if (reason != RBI_REASON_BAD_PEER) {
        (void)fprintf(stderr, "%s: ended with %d\n", what, reason);
        _exit(1);
    }
}

static void expect_fine(const char *what)
{
    if (peer_ping(&peer, NODE_MS) != 0) {
        (void)fprintf(stderr, "%s: no PONG\n", what);
        _exit(1);
    }
}

static void impossible_records(void)
{
    static const uint64_t words[] = {
        8,                              /* meta 0 */
        UINT64_C(8) << 32 | UINT32_MAX, /* larger than the address space */
        UINT64_C(8) << 32 | PEER_LANE_CAPACITY,
        UINT64_C(8) << 32 | (PEER_LANE_CAPACITY - 64U),
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(words); i++) {
        relink();
        peer_commit(&peer, words[i]);
        expect_bad("impossible record");
    }
}

static void impossible_positions(void)
{
    for (unsigned i = 0; i < 4; i++) {
        relink();
        struct rbi_side *side = peer_side(&peer);
        const uint64_t pos = rbi_load_rlx(&side->read_pos);
        const uint64_t values[] = {pos + 1, pos + (UINT64_C(1) << 20), pos - (UINT64_C(1) << 20),
                                   UINT64_MAX - 63};
        rbi_store_rlx(&side->read_pos, values[i]);
        /* It is looked at when something is put: the answer to a PING. */
        for (uint64_t k = 0; k < 2000; k++) {
            peer_put(&peer, rbi_record_meta(RBI_RECORD_PING, 0, 0, 0), &k, 8);
            if (!peer_consumed(&peer, 1000)) {
                break;
            }
        }
        expect_bad("impossible read position");
    }
}

static void put_reference(uint64_t offset, uint64_t size, uint64_t slot, uint64_t bytes)
{
    struct {
        uint64_t tag;
        struct rbi_record_ref ref;
        uint64_t more;
    } body = {.ref = {.offset = offset, .size = size, .slot = slot}};
    peer_put(&peer, DATA(RBI_RECORD_REF, 0, 0), &body, bytes);
}

static void impossible_references(void)
{
    const uint64_t pool = peer.raw.pool.size;
    const uint64_t cases[][3] = {
        {pool, 1, 32},        {0, pool + 1, 32},      {UINT64_MAX - 63, 128, 32}, {8, 8, 32},
        {64, UINT64_MAX, 32}, {RBI_PAGE, 64, 32 - 8}, {RBI_PAGE, 64, 32 + 8},     {RBI_PAGE, 64, 8},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        relink();
        put_reference(cases[i][0], cases[i][1], 0, cases[i][2]);
        expect_bad("impossible reference");
    }
}

static void impossible_returns(void)
{
    for (unsigned i = 0; i < 3; i++) {
        relink();
        struct rbi_side *side = peer_side(&peer);
        const uint64_t values[] = {1, PEER_RETURNS + 1, UINT64_MAX};
        rbi_store_rlx(&side->returns_pos, values[i]);
        /* Looked at when a payload is to come. */
        peer_put(&peer, DATA(0, 0, 0), "\0\0\0\0\0\0\0\0send", 12);
        expect_bad("impossible return");
    }
}

/* What only costs itself something. */
static void harmless(void)
{
    static const uint64_t values[] = {0, 1, 63, 64, UINT64_MAX, UINT64_C(1) << 63};
    relink();
    struct rbi_side *side = peer_side(&peer);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(values); i++) {
        rbi_store_rlx(&side->want_pos, values[i]);
        rbi_store_rlx(&side->begun_pos, values[i]);
        rbi_store_rlx(&side->written_hint, values[i]);
        rbi_store_rlx(&peer_page(&peer)->sleep_epoch, values[i] | 1);
        side->lane_offset = side->lane_capacity = side->returns_capacity = values[i];
        expect_fine("a word that only it needs");
    }
    for (unsigned i = 0; i < 2000; i++) {
        peer_ring(&peer);
    }
    expect_fine("many rings");
    /* Slots that nobody has: its own ring, its own loss. */
    for (unsigned i = 0; i < 200; i++) {
        put_reference(RBI_PAGE, 64, UINT64_MAX - i, 32);
        expect_fine("a slot of its own");
    }
}

/* It rewrites what was sent on and is not released: positions stay what they were. */
static void rewriter(void)
{
    relink();
    for (unsigned i = 0; i < 50; i++) {
        peer_put(&peer, DATA(0, 0, 0), NULL, 100);
        expect_fine("a record");
        uint64_t *words = peer.side.base;
        for (uint64_t at = RBI_PAGE / 8; at < peer.side.size / 8; at += 8) {
            /* Sizes of everything but where the next one is to come. */
            if ((unsigned char *)&words[at] != peer_body(&peer) - 8 && words[at] != 0) {
                words[at] ^= i % 2 == 0 ? 64 : UINT64_C(1) << 40;
            }
        }
    }
}

static void attack(const struct cluster *cluster, void *context)
{
    (void)context;
    CHECK(ringbus_resolve(SERVICE_1, &service) == 0);
    CHECK(peer_up(&peer, cluster->socket, "/game/eu/pc/w1/core/bad/1") == 0);
    impossible_records();
    impossible_positions();
    impossible_references();
    impossible_returns();
    harmless();
    rewriter();
    peer_down(&peer);
}

/* ---- the rest of the world ---- */

static unsigned char payload[20000];

static void serve(struct node *at, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(at->bus, &message->reply_to, "ok", 2, 0) == 1);
    } else if (message->size == 4) {
        /* A payload by reference for who asks in that way. */
        (void)ringbus_send(at->bus, &message->from, 0, payload, sizeof payload, 0);
    }
}

static int ended(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void begin(void)
{
    memset(&alpha, 0, sizeof alpha);
    memset(&beta, 0, sizeof beta);
    beta.on_message = serve;
    bus_shared_reset();
    relay_up(&relay, "{}\n", NULL);
    node_open(&beta, &relay.host[1].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &beta);
    (void)relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.registered == 1, NODE_MS, &beta);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &alpha, &beta);
}

/* Serves alpha until the attacker has ended. */
static void serve_until_ended(pid_t pid)
{
    struct node *const nodes[] = {&alpha, &beta};
    int status = -1;
    unsigned asked = 0;
    while ((status = ended(pid)) < 0) {
        if (alpha.replies[RINGBUS_REPLIED] == asked) {
            asked++;
            CHECK(ringbus_request(alpha.bus, &alpha.peer, 0, "?", 1, 0, 20000, node_on_result,
                                  &alpha) == 1);
        }
        relay_turn(&relay, relay_poll(nodes, 2));
    }
    assert_int_equal(status, 0);
    RELAY_UNTIL(&relay, alpha.replies[RINGBUS_REPLIED] == asked, NODE_MS, &alpha, &beta);
    assert_int_equal(alpha.events[RINGBUS_EVENT_DOWN], 0);
}

static void end(void)
{
    node_close(&alpha);
    node_close(&beta);
    relay_down(&relay);
}

static void test_hostile_peer_ends_its_own_link_only(void **state)
{
    (void)state;
    begin();
    serve_until_ended(child_start(attack, &relay.host[0].cluster, NULL));
    struct rbi_desk_figures figures;
    rbi_desk_figures(relay.host[0].desk, &figures);
    assert_true(figures.bad_peers >= 4 + 4 + 8);
    RELAY_UNTIL(&relay, (rbi_desk_figures(relay.host[0].desk, &figures), figures.halves == 1),
                NODE_MS, &alpha, &beta);
    end();
}

/* ---- what it offers at first ---- */

static void offer(const struct cluster *cluster, void *context)
{
    (void)context;
    CHECK(ringbus_resolve(SERVICE_1, &service) == 0);
    CHECK(peer_up(&peer, cluster->socket, "/game/eu/pc/w1/core/bad/1") == 0);
    for (unsigned i = 0; i < 4; i++) {
        CHECK(peer_offer(&peer) == 0);
        struct rbi_side *side = peer_side(&peer);
        const uint64_t bad[4][2] = {{0, PEER_LANE_CAPACITY},
                                    {RBI_PAGE, PEER_LANE_CAPACITY * 2},
                                    {RBI_PAGE, PEER_LANE_CAPACITY - 64},
                                    {RBI_PAGE, 0}};
        side->lane_offset = bad[i][0];
        side->lane_capacity = bad[i][1];
        const int code = peer_introduce(&peer, service.cluster, service.instance);
        CHECK(code == RINGBUS_E_BAD_PEER);
    }
    relink();
    expect_fine("a right one");
    peer_down(&peer);
}

static void test_hostile_offer_is_refused(void **state)
{
    (void)state;
    begin();
    serve_until_ended(child_start(offer, &relay.host[0].cluster, NULL));
    end();
}

/* ---- dice ---- */

static void scribble(const struct cluster *cluster, void *context)
{
    uint64_t dice = *(const uint64_t *)context;
    CHECK(ringbus_resolve(SERVICE_1, &service) == 0);
    CHECK(peer_up(&peer, cluster->socket, "/game/eu/pc/w1/core/bad/1") == 0);
    for (unsigned i = 0; i < 60; i++) {
        peer_unlink(&peer);
        if (peer_link(&peer, service.cluster, service.instance) != 0) {
            continue;
        }
        unsigned char *bytes = peer.side.base;
        for (unsigned k = 0; k < 30; k++) {
            const uint64_t at = bus_random(&dice) % (peer.side.size / 8) * 8;
            const uint64_t value = bus_random(&dice) >> bus_random(&dice) % 64;
            if (at >= sizeof(struct rbi_segment_header)) {
                memcpy(bytes + at, &value, 8);
            }
            peer_commit(&peer, bus_random(&dice) % 4096 | bus_random(&dice) % 16 << 32 |
                                   bus_random(&dice) % 256 << 40);
        }
    }
    peer_down(&peer);
}

static void test_hostile_dice(void **state)
{
    (void)state;
    static uint64_t seed;
    for (seed = 1; seed <= 3; seed++) {
        begin();
        serve_until_ended(child_start(scribble, &relay.host[0].cluster, &seed));
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_peer_ends_its_own_link_only),
        cmocka_unit_test(test_hostile_offer_is_refused),
        cmocka_unit_test(test_hostile_dice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
