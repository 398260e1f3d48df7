/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas per user and per endpoint, and the fair share of one user in what belongs to
 * another: exactly charged, exactly returned, and refused by name, limit, use and way out.
 */
#include "bus/config.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "daemon/quota.h"
#include "support/loops.h"
#include "support/raw.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ECHO   "/game/eu/pc/w1/core/echo"
#define NOBODY 65534U
#define OTHER  65533U

static const char *socket_path(void)
{
    return loops_cluster.socket;
}

/* ---- the books alone ------------------------------------------------------------------- */

static void test_share_first_gets_half(void **state)
{
    struct rbi_shares shares;
    (void)state;
    rbi_shares_init(&shares);
    assert_int_equal(rbi_shares_room(&shares, 100, 1), 50);
    struct rbi_share *first = rbi_share_take(&shares, 1, 50);
    assert_int_equal(rbi_shares_room(&shares, 50, 1), 0);
    assert_int_equal(rbi_shares_used(&shares, 1), 50);
    /* The second: of 50 a third. */
    assert_int_equal(rbi_shares_room(&shares, 50, 2), 17);
    struct rbi_share *second = rbi_share_take(&shares, 2, 17);
    assert_int_equal(rbi_shares_room(&shares, 33, 2), 0);
    assert_int_equal(rbi_shares_room(&shares, 33, 3), 9);
    rbi_share_return(first, 49);
    assert_int_equal(rbi_shares_used(&shares, 1), 1);
    rbi_share_return(first, 1);
    assert_int_equal(rbi_shares_used(&shares, 1), 0);
    rbi_share_return(second, 17);
    assert_true(rbi_shares_empty(&shares));
    /* Of one place the first has one, of none none. */
    assert_int_equal(rbi_shares_room(&shares, 1, 1), 1);
    assert_int_equal(rbi_shares_room(&shares, 0, 1), 0);
}

/** Whatever 50 greedy users do, there is something left for the next one. */
static void test_share_never_runs_out(void **state)
{
    struct rbi_shares shares;
    struct rbi_share *held[50];
    uint64_t amounts[50];
    uint64_t remaining = UINT64_C(1) << 30;
    (void)state;
    rbi_shares_init(&shares);
    for (uint32_t actor = 0; actor < 50; actor++) {
        amounts[actor] = rbi_shares_room(&shares, remaining, actor);
        assert_true(amounts[actor] > (UINT64_C(1) << 30) / 4096);
        held[actor] = rbi_share_take(&shares, actor, amounts[actor]);
        assert_non_null(held[actor]);
        remaining -= amounts[actor];
    }
    for (uint32_t actor = 0; actor < 50; actor++) {
        rbi_share_return(held[actor], amounts[actor]);
    }
    assert_true(rbi_shares_empty(&shares));
}

struct books {
    struct rbi_config config;
    struct rbi_quota quota;
};

static void books_open(struct books *books)
{
    rbi_config_defaults(&books->config);
    assert_int_equal(rbi_quota_init(&books->quota, &books->config), 0);
}

static void test_charge_exact(void **state)
{
    static const struct {
        enum rbi_quota_kind kind;
        const char *name;
    } kinds[] = {
        {RBI_QUOTA_CONNECTIONS, "quota.connections"},
        {RBI_QUOTA_INSTANCES, "quota.instances"},
        {RBI_QUOTA_BYTES, "quota.bytes"},
        {RBI_QUOTA_LINKS, "quota.user_links"},
        {RBI_QUOTA_WATCHES, "quota.user_watches"},
    };
    struct books books;
    (void)state;
    books_open(&books);
    books.config.quota = (struct rbi_config_limits){
        .connections = 3, .instances = 3, .bytes = 3, .user_links = 3, .user_watches = 3};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(kinds); i++) {
        struct rbi_charge two = {.user = NULL};
        struct rbi_charge more = {.user = NULL};
        struct rbi_text why;
        assert_int_equal(rbi_quota_charge(&books.quota, 7, kinds[i].kind, 2, &two, &why), 0);
        assert_int_equal(rbi_quota_charge(&books.quota, 7, kinds[i].kind, 2, &more, &why), 1);
        assert_null(more.user);
        assert_non_null(strstr(why.bytes, kinds[i].name));
        assert_non_null(strstr(why.bytes, "uid 7"));
        assert_non_null(strstr(why.bytes, "limit 3, used 2, asked for 2"));
        assert_int_equal(rbi_quota_charge(&books.quota, 7, kinds[i].kind, UINT64_MAX, &more, &why),
                         1);
        assert_int_equal(rbi_quota_charge(&books.quota, 8, kinds[i].kind, 3, &more, &why), 0);
        rbi_charge_release(&more);
        rbi_charge_release(&more); /* twice is once */
        assert_int_equal(rbi_quota_charge(&books.quota, 7, kinds[i].kind, 1, &more, &why), 0);
        rbi_charge_release(&more);
        rbi_charge_release(&two);
        assert_int_equal(rbi_quota_charge(&books.quota, 7, kinds[i].kind, 3, &more, &why), 0);
        rbi_charge_release(&more);
    }
    rbi_quota_sweep(&books.quota, 1);
    assert_int_equal(rbi_map_count(&books.quota.users), 0);
    rbi_quota_deinit(&books.quota);
}

static void test_bytes_of_another_user(void **state)
{
    struct books books;
    struct rbi_charge own = {.user = NULL};
    struct rbi_charge foreign = {.user = NULL};
    struct rbi_charge more = {.user = NULL};
    struct rbi_text why;
    (void)state;
    books_open(&books);
    books.config.quota.bytes = 100;
    assert_int_equal(rbi_quota_charge_bytes(&books.quota, 1, 1, 20, &own, &why), 0);
    assert_int_equal(rbi_quota_charge_bytes(&books.quota, 1, 2, 41, &foreign, &why), 1);
    assert_non_null(strstr(why.bytes, "uid 2: its share of quota.bytes of uid 1"));
    assert_non_null(strstr(why.bytes, "limit 100, used 20, by uid 2 0, asked for 41"));
    assert_int_equal(own.user->used[RBI_QUOTA_BYTES], 20);
    assert_int_equal(rbi_quota_charge_bytes(&books.quota, 1, 2, 40, &foreign, &why), 0);
    assert_int_equal(own.user->used[RBI_QUOTA_BYTES], 60);
    /* The owner has all the rest. */
    assert_int_equal(rbi_quota_charge_bytes(&books.quota, 1, 1, 40, &more, &why), 0);
    rbi_charge_release(&more);
    rbi_charge_release(&foreign);
    assert_true(rbi_shares_empty(&own.user->foreign_bytes));
    rbi_charge_release(&own);
    rbi_quota_sweep(&books.quota, 1);
    assert_int_equal(rbi_map_count(&books.quota.users), 0);
    rbi_quota_deinit(&books.quota);
}

/** Two endpoints of one user together get what the user may have; a third user does not care. */
static void test_control_bucket_of_a_user(void **state)
{
    struct books books;
    struct rbi_text why;
    struct rbi_charge users[2] = {{.user = NULL}};
    uint64_t tats[3] = {0};
    unsigned at_once = 0;
    (void)state;
    books_open(&books);
    books.config.quota.control_per_s = 100;
    books.config.quota.user_control_per_s = 100;
    for (uint32_t uid = 0; uid < 2; uid++) {
        assert_int_equal(
            rbi_quota_charge(&books.quota, uid, RBI_QUOTA_CONNECTIONS, 1, &users[uid], &why), 0);
    }
    while (rbi_quota_control(&books.quota, users[0].user, &tats[at_once % 2], 1000, &why) == 0) {
        at_once++;
    }
    assert_int_equal(at_once, 200);
    assert_int_equal(rbi_quota_control(&books.quota, users[1].user, &tats[2], 1000, &why), 0);
    /* Each that waits has its own turn, a token later than the one before it. */
    const uint64_t one = rbi_quota_control(&books.quota, users[0].user, &tats[0], 1000, &why);
    const uint64_t two = rbi_quota_control(&books.quota, users[0].user, &tats[1], 1000, &why);
    assert_int_equal(two - one, 10000000);
    assert_non_null(strstr(why.bytes, "uid 0: quota.user_control is used up: limit 100 "));
    rbi_charge_release(&users[0]);
    rbi_charge_release(&users[1]);
    rbi_quota_sweep(&books.quota, 2000);
    assert_int_equal(rbi_map_count(&books.quota.users), 2); /* their buckets are not full yet */
    rbi_quota_sweep(&books.quota, UINT64_C(10000000000));
    assert_int_equal(rbi_map_count(&books.quota.users), 0);
    rbi_quota_deinit(&books.quota);
}

/* ---- a daemon -------------------------------------------------------------------------- */

/** As raw_up(), by another user: who connects is who counts. */
static void up_as(struct raw *raw, uid_t uid, const char *path)
{
    assert_int_equal(seteuid(uid), 0);
    const int result = raw_up(raw, socket_path(), path);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(result, 0);
}

static void expect_refusal(struct raw *raw, const char *quota, const char *numbers)
{
    struct rbi_text text;
    assert_int_equal(raw_expect_error_text(raw, &text), RBI_CODE_QUOTA);
    if (!strstr(text.bytes, quota) || !strstr(text.bytes, numbers)) {
        print_error("\"%s\" does not say %s, %s\n", text.bytes, quota, numbers);
        fail();
    }
}

static void link_down(struct raw *raw, struct raw *other, uint64_t link_id)
{
    struct raw_message message;
    const struct rbi_wire_link_down down = {.link_id = link_id, .reason = RBI_REASON_UNTARGETED};
    assert_int_equal(raw_send(raw, RBI_WIRE_LINK_DOWN, &down, NULL, 0), 0);
    assert_int_equal(raw_expect(other, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
}

/** Two endpoints of a user share its links; those that others ask of it are the others'. */
static void test_links_of_a_user(void **state)
{
    struct raw raws[4];
    uint64_t link_id = 0;
    char path[64];
    assert_int_equal(loops_up(state, "", "quota: {user_links: 2}\n"), 0);
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof(path), ECHO "/%u", i + 1);
        assert_int_equal(raw_up(&raws[i], socket_path(), path), 0);
    }
    assert_int_equal(raw_link(&raws[0], &raws[1], &link_id), 0);
    assert_int_equal(raw_link(&raws[0], &raws[2], NULL), 0);
    assert_int_equal(raw_introduce(&raws[3], raws[0].registered.cluster, 1, 0), 0);
    expect_refusal(&raws[3], "quota.user_links", "limit 2, used 2, asked for 1");
    link_down(&raws[1], &raws[0], link_id);
    assert_int_equal(raw_link(&raws[3], &raws[0], NULL), 0);
    raw_close(&raws[2]); /* its end gives one back */
    struct raw_message message;
    assert_int_equal(raw_expect(&raws[0], RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(raw_link(&raws[3], &raws[1], NULL), 0);
    assert_int_equal(raw_status(socket_path(), "quota_refusals"), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=quota_refused"), 1);
    for (unsigned i = 0; i < 4; i++) {
        if (i != 2) {
            raw_close(&raws[i]);
        }
    }
}

static void test_watches_of_a_user(void **state)
{
    struct raw a;
    struct raw b;
    struct rbi_wire_watch watch;
    assert_int_equal(loops_up(state, "", "quota: {watches: 3, user_watches: 4}\n"), 0);
    assert_int_equal(raw_up(&a, socket_path(), ECHO "/1"), 0);
    assert_int_equal(raw_up(&b, socket_path(), ECHO "/2"), 0);
    assert_int_equal(raw_watch(&a, RBI_WIRE_WATCH, "/a"), 0);
    assert_int_equal(raw_watch(&a, RBI_WIRE_WATCH, "/b"), 0);
    assert_int_equal(raw_watch(&a, RBI_WIRE_TARGET, "/a/b/c/d/e/f"), 0);
    rbi_text_set(&watch.prefix, "/c");
    assert_int_equal(raw_send(&a, RBI_WIRE_WATCH, &watch, NULL, 0), 0);
    expect_refusal(&a, "quota.watches", "limit 3 for each endpoint, used 3");
    assert_int_equal(raw_watch(&b, RBI_WIRE_WATCH, "/c"), 0);
    assert_int_equal(raw_send(&b, RBI_WIRE_WATCH, &watch, NULL, 0), 0); /* there already */
    expect_refusal(&b, "quota.user_watches", "limit 4, used 4");
    /* One ends by itself, three with their peer. */
    assert_int_equal(raw_watch(&b, RBI_WIRE_UNWATCH, "/c"), 0);
    assert_int_equal(raw_watch(&b, RBI_WIRE_WATCH, "/d"), 0);
    const int fds = cluster_fd_count(&loops_cluster);
    raw_close(&a);
    assert_true(cluster_fd_wait(&loops_cluster, fds - 4) == fds - 4);
    assert_int_equal(raw_watch(&b, RBI_WIRE_WATCH, "/e"), 0);
    assert_int_equal(raw_watch(&b, RBI_WIRE_WATCH, "/f"), 0);
    raw_close(&b);
}

/** Another user's clients get half of a server's places, a third user's some of the rest. */
static void test_places_of_a_server(void **state)
{
    struct raw server;
    struct raw nobodies[3];
    struct raw other;
    struct raw own[2];
    uint64_t link_id = 0;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(loops_up(state, "", "quota: {links: 4}\n"), 0);
    assert_int_equal(raw_up(&server, socket_path(), ECHO "/1"), 0);
    for (unsigned i = 0; i < 3; i++) {
        up_as(&nobodies[i], NOBODY, "");
    }
    assert_int_equal(raw_link(&nobodies[0], &server, &link_id), 0);
    assert_int_equal(raw_link(&nobodies[1], &server, NULL), 0);
    assert_int_equal(raw_introduce(&nobodies[2], server.registered.cluster, 1, 0), 0);
    expect_refusal(&nobodies[2], "uid 65534: its share of quota.links of " ECHO "/1",
                   "limit 4, used 2, by uid 65534 2");
    up_as(&other, OTHER, "");
    assert_int_equal(raw_link(&other, &server, NULL), 0);
    assert_int_equal(raw_up(&own[0], socket_path(), ""), 0);
    assert_int_equal(raw_up(&own[1], socket_path(), ""), 0);
    assert_int_equal(raw_link(&own[0], &server, NULL), 0);
    assert_int_equal(raw_introduce(&own[1], server.registered.cluster, 1, 0), 0);
    expect_refusal(&own[1], "quota.links", "limit 4, used 4");
    /* What is given back can be taken again. */
    link_down(&nobodies[0], &server, link_id);
    assert_int_equal(raw_link(&own[1], &server, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        raw_close(&nobodies[i]);
    }
    raw_close(&own[0]);
    raw_close(&own[1]);
    raw_close(&other);
    raw_close(&server);
}

/** A server's ends of links are its user's memory: others cause a fair share of it at most. */
static void test_bytes_of_a_server(void **state)
{
    struct raw server;
    struct raw clients[48];
    struct raw_message message;
    struct rbi_text why = {.length = 0};
    unsigned linked = 0;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(loops_up(state, "", "quota: {bytes: 1MiB, connects: 1000}\n"), 0);
    assert_int_equal(raw_up(&server, socket_path(), ECHO "/1"), 0);
    /* Page and pool 20 KiB; each end 12 KiB. Half of what is left are 41 ends. */
    for (unsigned i = 0; i < 48; i++) {
        up_as(&clients[i], i % 2 ? NOBODY : NOBODY - 10, "");
        assert_int_equal(raw_introduce(&clients[i], server.registered.cluster, 1, 0), 0);
        assert_int_equal(raw_accept(&server, NULL), 0);
        assert_int_equal(raw_receive(&clients[i], &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_LINKED) {
            linked++;
        } else {
            assert_int_equal(message.header.type, RBI_WIRE_ERROR);
            assert_int_equal(message.body.error.code, RBI_CODE_QUOTA);
            why = message.body.error.text;
        }
        raw_message_deinit(&message);
    }
    print_message("%u of 48 linked; the others: %s\n", linked, why.bytes);
    /* Two users take turns: each at most a third of what is left, so half of all together. */
    assert_in_range(linked, 30, 43);
    assert_non_null(strstr(why.bytes, "its share of quota.bytes of uid 0"));
    for (unsigned i = 0; i < 48; i++) {
        raw_close(&clients[i]);
    }
    raw_close(&server);
}

/** Limits of one user, which a reload changes; everybody else has the usual ones. */
static void test_limits_of_one_user(void **state)
{
    struct raw nobodies[3];
    struct raw other;
    struct rbi_text text;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(loops_up(state, "", "quota: {users: {65534: {connections: 1, links: 1}}}\n"),
                     0);
    up_as(&nobodies[0], NOBODY, ECHO "/1");
    assert_int_equal(seteuid(NOBODY), 0);
    const int connected = raw_connect(&nobodies[1], socket_path());
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(connected, 0);
    assert_int_equal(raw_expect_error_text(&nobodies[1], &text), RBI_CODE_QUOTA);
    assert_non_null(strstr(text.bytes, "uid 65534: quota.connections is used up: limit 1"));
    raw_close(&nobodies[1]);
    up_as(&other, OTHER, "");
    assert_int_equal(
        cluster_configure(&loops_cluster, "quota: {users: {65534: {connections: 3}}}\n"), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=reloaded", 5000));
    assert_int_equal(cluster_log_count(&loops_cluster,
                                       "key=quota.users.65534.connections old=\"1\" new=\"3\" "
                                       "result=\"applied\""),
                     1);
    assert_int_equal(
        cluster_log_count(&loops_cluster, "key=quota.users.65534.links old=\"1\" new=\"as all\""),
        1);
    up_as(&nobodies[1], NOBODY, "");
    up_as(&nobodies[2], NOBODY, "");
    for (unsigned i = 0; i < 3; i++) {
        raw_close(&nobodies[i]);
    }
    raw_close(&other);
}

/** Links that outlive the daemon are charged as they were, to whom they were. */
static void test_links_told_again(void **state)
{
    struct raw server;
    struct raw client;
    struct raw_message message;
    uint64_t value = 0;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(loops_up(state, "", "quota: {links: 2, user_links: 1}\n"), 0);
    assert_int_equal(raw_up(&server, socket_path(), ECHO "/1"), 0);
    up_as(&client, NOBODY, ECHO "/2");
    const struct rbi_wire_relink by_client = {.link_id = 77,
                                              .cluster = server.registered.cluster,
                                              .instance = server.registered.instance,
                                              .incarnation = server.registered.incarnation,
                                              .requester = 1,
                                              .side_bytes = 12288};
    const struct rbi_wire_relink by_server = {.link_id = 77,
                                              .cluster = client.registered.cluster,
                                              .instance = client.registered.instance,
                                              .incarnation = client.registered.incarnation,
                                              .requester = 0,
                                              .side_bytes = 12288};
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(raw_send(&server, RBI_WIRE_RELINK, &by_server, NULL, 0), 0);
        assert_int_equal(raw_expect(&server, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
        assert_int_equal(raw_send(&client, RBI_WIRE_RELINK, &by_client, NULL, 0), 0);
        assert_int_equal(raw_expect(&client, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
        value = message.body.ok.value;
        assert_int_equal(value, 1);
        /* The client's user has its one link, and one of the server's two places. */
        struct rbi_wire_relink more = by_client;
        more.link_id = 78;
        more.incarnation++;
        assert_int_equal(raw_send(&client, RBI_WIRE_RELINK, &more, NULL, 0), 0);
        expect_refusal(&client, "quota.user_links", "limit 1, used 1");
        struct raw second;
        up_as(&second, NOBODY, "");
        assert_int_equal(raw_introduce(&second, server.registered.cluster, 1, 0), 0);
        expect_refusal(&second, "its share of quota.links", "by uid 65534 1");
        raw_close(&second);
        link_down(&client, &server, 77);
    }
    assert_int_equal(raw_link(&client, &server, NULL), 0);
    raw_close(&client);
    raw_close(&server);
}

int main(void)
{
    const struct CMUnitTest books[] = {
        cmocka_unit_test(test_share_first_gets_half),
        cmocka_unit_test(test_share_never_runs_out),
        cmocka_unit_test(test_charge_exact),
        cmocka_unit_test(test_bytes_of_another_user),
        cmocka_unit_test(test_control_bucket_of_a_user),
    };
    const struct CMUnitTest daemon[] = {
        LOOPS_BOTH(test_links_of_a_user),    LOOPS_BOTH(test_watches_of_a_user),
        LOOPS_BOTH(test_places_of_a_server), LOOPS_BOTH(test_bytes_of_a_server),
        LOOPS_BOTH(test_limits_of_one_user), LOOPS_BOTH(test_links_told_again),
    };
    return cmocka_run_group_tests_name("quota_books", books, NULL, NULL) +
           cmocka_run_group_tests_name("quota_daemon", daemon, NULL, NULL);
}
