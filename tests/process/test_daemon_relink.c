/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links that an earlier daemon has made (scenario 102): their two ends tell of them, and
 * what one end says alone counts for nothing. The clients come as from another daemon.
 */
#include "bus/record.h"
#include "daemon/code.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <string.h>

#define ECHO_1     "/game/eu/pc/w1/core/echo/1"
#define ECHO_2     "/game/eu/pc/w1/core/echo/2"
#define FRONT_1    "/game/eu/pc/w1/core/front/1"
#define SIDE_BYTES UINT64_C(12288)
#define LINK       UINT64_C(0x1234500000001)

static struct cluster cluster;

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "daemon: {request_timeout: 300ms}\nquota: {links: 1000}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

/** One that another daemon has given this incarnation. */
static void come_back(struct raw *raw, const char *path, uint32_t incarnation)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.state = RBI_ENDPOINT_READY,
                                         .weight = 100,
                                         .incarnation = incarnation,
                                         .daemon_incarnation = 1};
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_connect(raw, cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
    assert_int_equal(raw->hello_ok.protocol, RBI_WIRE_PROTOCOL_MAX);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_expect(raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    raw->registered = message.body.registered;
    assert_int_equal(raw->registered.incarnation, incarnation);
}

static struct rbi_wire_relink claim_of(const struct raw *other, uint64_t id, unsigned requester)
{
    return (struct rbi_wire_relink){.link_id = id,
                                    .cluster = other->registered.cluster,
                                    .instance = other->registered.instance,
                                    .incarnation = other->registered.incarnation,
                                    .requester = (uint8_t)requester,
                                    .side_bytes = SIDE_BYTES};
}

/** @return value of OK: 0 waits, 1 linked; the negative code of the refusal */
static int claim(struct raw *raw, const struct rbi_wire_relink *body)
{
    struct raw_message message;
    int result = 0;
    assert_int_equal(raw_send(raw, RBI_WIRE_RELINK, body, NULL, 0), 0);
    do {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    } while (message.header.reply_to != raw->serial);
    if (message.header.type == RBI_WIRE_OK) {
        result = (int)message.body.ok.value;
    } else {
        assert_int_equal(message.header.type, RBI_WIRE_ERROR);
        result = message.body.error.code;
    }
    raw_message_deinit(&message);
    return result;
}

static void expect_down(struct raw *raw, uint64_t id, enum rbi_reason reason)
{
    struct raw_message message;
    assert_int_equal(raw_expect(raw, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.link_down.link_id, id);
    assert_int_equal(message.body.link_down.reason, reason);
}

static void test_both_ends_make_a_link(void **state)
{
    (void)state;
    struct raw a;
    struct raw b;
    come_back(&a, FRONT_1, 7);
    come_back(&b, ECHO_1, 8);
    const struct rbi_wire_relink of_a = claim_of(&b, LINK, 1);
    const struct rbi_wire_relink of_b = claim_of(&a, LINK, 0);
    assert_int_equal(claim(&a, &of_a), 0);
    assert_int_equal(raw_status(cluster.socket, "links"), 0);
    assert_int_equal(claim(&b, &of_b), 1);
    assert_int_equal(raw_status(cluster.socket, "links"), 1);
    assert_int_equal(raw_status(cluster.socket, "links_restored"), 1);
    assert_int_equal(claim(&b, &of_b), RBI_CODE_IN_USE);
    /* Whoever asks for a link meets it. */
    struct raw_message message;
    assert_int_equal(raw_introduce(&b, a.registered.cluster, 1, 0), 0);
    assert_int_equal(raw_expect(&b, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.error.code, RBI_CODE_IN_USE);
    assert_int_equal(message.body.error.link_id, LINK);
    /* The death of one is told to the other, as ever. */
    raw_close(&a);
    expect_down(&b, LINK, RBI_REASON_CRASHED);
    assert_int_equal(raw_status(cluster.socket, "links"), 0);
    raw_close(&b);
}

static void test_an_end_can_give_it_up(void **state)
{
    (void)state;
    struct raw a;
    struct raw b;
    come_back(&a, FRONT_1, 7);
    come_back(&b, ECHO_1, 8);
    const struct rbi_wire_relink of_a = claim_of(&b, LINK, 1);
    const struct rbi_wire_relink of_b = claim_of(&a, LINK, 0);
    const struct rbi_wire_link_down down = {.link_id = LINK, .reason = RBI_REASON_UNTARGETED};
    assert_int_equal(claim(&a, &of_a), 0);
    assert_int_equal(claim(&b, &of_b), 1);
    assert_int_equal(raw_send(&b, RBI_WIRE_LINK_DOWN, &down, NULL, 0), 0);
    expect_down(&a, LINK, RBI_REASON_UNTARGETED);
    /* The pair is free for a new one. */
    assert_int_equal(raw_link(&a, &b, NULL), 0);
    raw_close(&a);
    raw_close(&b);
}

static void test_one_end_alone_counts_for_nothing(void **state)
{
    (void)state;
    struct raw a;
    struct raw b;
    struct raw_message message;
    const struct rbi_wire_link_down down = {.link_id = LINK, .reason = RBI_REASON_LEFT};
    come_back(&a, FRONT_1, 7);
    come_back(&b, ECHO_1, 8);
    const struct rbi_wire_relink of_a = claim_of(&b, LINK, 1);
    assert_int_equal(claim(&a, &of_a), 0);
    assert_int_equal(claim(&a, &of_a), RBI_CODE_IN_USE);
    /* The one who says that it has one is not given another. */
    assert_int_equal(raw_introduce(&a, b.registered.cluster, 1, 0), 0);
    assert_int_equal(raw_expect(&a, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.error.code, RBI_CODE_IN_USE);
    assert_int_equal(message.body.error.link_id, LINK);
    /* The other never heard of it, and is not told when it ends. */
    assert_int_equal(raw_send(&a, RBI_WIRE_LINK_DOWN, &down, NULL, 0), 0);
    assert_int_equal(raw_link(&a, &b, NULL), 0);
    assert_int_equal(claim(&a, &(struct rbi_wire_relink){.link_id = LINK + 1,
                                                         .cluster = 5,
                                                         .instance = 1,
                                                         .incarnation = 1,
                                                         .side_bytes = SIDE_BYTES}),
                     0);
    raw_close(&a);
    raw_close(&b);
}

/* A third who knows the id, another life, the wrong role: nothing meets. */
static void test_liars_meet_nobody(void **state)
{
    (void)state;
    struct raw a;
    struct raw b;
    struct raw c;
    come_back(&a, FRONT_1, 7);
    come_back(&b, ECHO_1, 8);
    come_back(&c, ECHO_2, 9);
    struct rbi_wire_relink of_a = claim_of(&b, LINK, 1);
    struct rbi_wire_relink of_b = claim_of(&a, LINK, 0);
    assert_int_equal(claim(&a, &of_a), 0);
    /* Of whom nothing was said. */
    struct rbi_wire_relink of_c = claim_of(&a, LINK, 0);
    assert_int_equal(claim(&c, &of_c), 0);
    /* As requesters both; about another life of the other; with another id. */
    of_b.requester = 1;
    assert_int_equal(claim(&b, &of_b), 0);
    of_b.requester = 0;
    of_b.incarnation = 6;
    assert_int_equal(claim(&b, &of_b), 0);
    of_b = claim_of(&a, LINK + 1, 0);
    assert_int_equal(claim(&b, &of_b), 0);
    assert_int_equal(raw_status(cluster.socket, "links"), 0);
    /* The truth is not in the way of the lies, nor they of it. */
    of_b = claim_of(&a, LINK, 0);
    assert_int_equal(claim(&b, &of_b), 1);
    assert_int_equal(raw_status(cluster.socket, "links"), 1);
    /* Of the pair there is one link only. */
    of_a.link_id = LINK + 1;
    assert_int_equal(claim(&a, &of_a), RBI_CODE_IN_USE);
    raw_close(&c);
    assert_true(raw_silent(&a, 50));
    raw_close(&a);
    expect_down(&b, LINK, RBI_REASON_CRASHED);
    raw_close(&b);
}

/* Who knows its own id cannot guess another's, and take it under the next daemon. */
static void test_ids_tell_nothing_of_others(void **state)
{
    (void)state;
    struct raw a;
    struct raw b;
    struct raw c;
    uint64_t first = 0;
    uint64_t second = 0;
    come_back(&a, FRONT_1, 7);
    come_back(&b, ECHO_1, 8);
    come_back(&c, ECHO_2, 9);
    assert_int_equal(raw_link(&a, &b, &first), 0);
    assert_int_equal(raw_link(&a, &c, &second), 0);
    const uint64_t apart = first > second ? first - second : second - first;
    assert_true(apart > UINT64_C(1) << 32);
    raw_close(&a);
    raw_close(&b);
    raw_close(&c);
}

static void test_nonsense_is_refused(void **state)
{
    (void)state;
    struct raw a;
    come_back(&a, FRONT_1, 7);
    const struct rbi_wire_relink good = {
        .link_id = LINK, .cluster = 5, .instance = 1, .incarnation = 1, .side_bytes = SIDE_BYTES};
    struct rbi_wire_relink body = good;
    body.link_id = 0;
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    body.link_id = UINT64_MAX;
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    body = good;
    body.instance = -1;
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    body = good;
    body.incarnation = 0;
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    body = good;
    body.requester = 2;
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    body = good;
    body.side_bytes = 0;
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    body.side_bytes = UINT64_C(1) << 40;
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    body = claim_of(&a, LINK, 0); /* with itself */
    assert_int_equal(claim(&a, &body), RBI_CODE_ARGUMENT);
    raw_close(&a);
}

/* As many as there may be links, at once and not at the pace of control messages. */
static void test_bounded_charged_and_quick(void **state)
{
    (void)state;
    struct raw a;
    for (unsigned round = 0; round < 2; round++) {
        come_back(&a, FRONT_1, 7);
        struct rbi_wire_relink body = {
            .cluster = 5, .instance = 1, .incarnation = 1, .side_bytes = SIDE_BYTES};
        for (unsigned i = 1; i <= 1000; i++) {
            body.link_id = i;
            assert_int_equal(claim(&a, &body), 0);
        }
        assert_int_equal(raw_status(cluster.socket, "control_stalls"), 0);
        body.link_id = 1001;
        assert_int_equal(claim(&a, &body), RBI_CODE_QUOTA);
        raw_close(&a);
    }
    come_back(&a, FRONT_1, 7);
    struct rbi_wire_relink large = {
        .cluster = 5, .instance = 1, .incarnation = 1, .side_bytes = UINT64_C(32) << 20};
    int result = 0;
    for (unsigned i = 1; i <= 20 && result == 0; i++) {
        large.link_id = i;
        result = claim(&a, &large);
    }
    assert_int_equal(result, RBI_CODE_QUOTA); /* 512 MiB of quota.bytes */
    raw_close(&a);
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_both_ends_make_a_link),
        ON_OWN_DAEMON(test_an_end_can_give_it_up),
        ON_OWN_DAEMON(test_one_end_alone_counts_for_nothing),
        ON_OWN_DAEMON(test_liars_meet_nobody),
        ON_OWN_DAEMON(test_ids_tell_nothing_of_others),
        ON_OWN_DAEMON(test_nonsense_is_refused),
        ON_OWN_DAEMON(test_bounded_charged_and_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
