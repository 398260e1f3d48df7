/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights as the daemon asks them: at each request, again when the rules change (scenario 120), and
 * of who takes a name over (scenario 100). features 2.11, D62, J24 to J26, B18.
 */
#include "bus/acl.h"
#include "bus/cgroup.h"
#include "bus/glob.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GATE   "/game/eu/pc/w1/core/gate/1"
#define BATTLE "/game/eu/pc/w1/core/battle/1"
#define SHOP   "/shop/eu/pc/w1/core/till/1"

#define DENY_GATE                                                                                  \
    "rights: {rules: [{id: no-gate, action: deny, verbs: [connect], from: /game/**/gate/*}]}\n"
#define LET_GATE_BUY                                                                               \
    "rights: {rules: [{id: buy, verbs: [connect, send], from: /game/**/gate/*, to: /shop/**}]}\n"

static struct raw gate;
static struct raw battle;
static struct raw shop;

static void reload(const char *rules)
{
    const unsigned before = cluster_log_count(&loops_cluster, "event=reloaded");
    assert_int_equal(cluster_configure(&loops_cluster, rules), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    for (unsigned i = 0; i < 1000; i++) {
        if (cluster_log_count(&loops_cluster, "event=reloaded") > before) {
            return;
        }
        test_sleep_ms(5);
    }
    fail_msg("not reloaded in time");
}

static void up(void **state, const char *rules)
{
    assert_int_equal(loops_up(state, "", rules), 0);
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE), 0);
    assert_int_equal(raw_up(&battle, loops_cluster.socket, BATTLE), 0);
    assert_int_equal(raw_up(&shop, loops_cluster.socket, SHOP), 0);
}

static void down(void)
{
    raw_close(&gate);
    raw_close(&battle);
    raw_close(&shop);
}

/** Asks for a link. @return the code of the refusal; @p why has its text */
static int refused(struct raw *client, const struct raw *server, struct rbi_text *why)
{
    assert_int_equal(
        raw_introduce(client, server->registered.cluster, server->registered.instance, 0), 0);
    return raw_expect_error_text(client, why);
}

/** Waits for the end of a link. @return its reason */
static uint32_t link_down(struct raw *raw, uint64_t link_id)
{
    struct raw_message message;
    assert_int_equal(raw_expect(raw, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.link_down.link_id, link_id);
    const uint32_t reason = message.body.link_down.reason;
    raw_message_deinit(&message);
    return reason;
}

/* ---- connect ------------------------------------------------------------------------------- */

static void test_realms_are_apart_unless_a_rule_joins_them(void **state)
{
    struct rbi_text why;
    struct raw_message message;
    up(state, "");
    assert_int_equal(raw_link(&gate, &battle, NULL), 0);
    assert_int_equal(refused(&gate, &shop, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "by default"));
    assert_int_equal(raw_status(loops_cluster.socket, "denied"), 1);
    /* The right comes: who was refused hears of it, on the same connection, and has it. */
    reload(LET_GATE_BUY);
    assert_int_equal(raw_expect(&gate, RBI_WIRE_RIGHTS, &message, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&message);
    assert_int_equal(raw_link(&gate, &shop, NULL), 0);
    assert_int_equal(refused(&battle, &shop, &why), RBI_CODE_DENIED);
    assert_int_equal(raw_status(loops_cluster.socket, "links_revoked"), 0);
    down();
}

static void test_rule_that_denies_is_named(void **state)
{
    struct rbi_text why;
    up(state, DENY_GATE);
    assert_int_equal(refused(&gate, &battle, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "rule no-gate"));
    assert_int_equal(raw_link(&battle, &gate, NULL), 0); /* the other way is another right */
    assert_int_equal(cluster_log_count(&loops_cluster, "event=denied"), 1);
    down();
}

static void test_change_ends_links_at_both_ends(void **state)
{
    uint64_t lost = 0;
    uint64_t kept = 0;
    struct raw other;
    up(state, "");
    assert_int_equal(raw_up(&other, loops_cluster.socket, "/game/eu/pc/w1/core/battle/2"), 0);
    assert_int_equal(raw_link(&gate, &battle, &lost), 0);
    assert_int_equal(raw_link(&other, &battle, &kept), 0);
    const uint64_t begin_ms = test_now_ms();
    reload(DENY_GATE);
    assert_int_equal(link_down(&gate, lost), RBI_REASON_DENIED);
    assert_int_equal(link_down(&battle, lost), RBI_REASON_DENIED);
    assert_true(test_now_ms() - begin_ms < 1000);
    assert_int_equal(raw_status(loops_cluster.socket, "links"), 1);
    assert_int_equal(raw_status(loops_cluster.socket, "links_revoked"), 1);
    assert_true(raw_silent(&other, 50)); /* nobody else hears of it */
    raw_close(&other);
    down();
}

static void test_change_ends_an_introduction_under_way(void **state)
{
    struct raw_message message;
    up(state, "");
    assert_int_equal(raw_introduce(&gate, battle.registered.cluster, battle.registered.instance, 0),
                     0);
    assert_int_equal(raw_expect(&battle, RBI_WIRE_INTRODUCED, &message, RAW_TIMEOUT_MS), 0);
    const uint64_t id = message.body.introduced.link_id;
    raw_message_deinit(&message);
    reload(DENY_GATE);
    assert_int_equal(raw_expect_error(&gate), RBI_CODE_DENIED);
    assert_int_equal(link_down(&battle, id), RBI_REASON_DENIED);
    down();
}

/** Both ends tell a new daemon of a link that its rules do not allow. */
static void test_link_of_the_daemon_before_is_asked_about(void **state)
{
    uint64_t id = 0;
    up(state, "");
    assert_int_equal(raw_link(&gate, &battle, &id), 0);
    const struct rbi_wire_registered before[2] = {gate.registered, battle.registered};
    down();
    assert_int_equal(cluster_configure(&loops_cluster, DENY_GATE), 0);
    cluster_kill(&loops_cluster);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    struct raw *const ends[2] = {&gate, &battle};
    for (unsigned i = 0; i < 2; i++) {
        struct raw_message message;
        struct rbi_wire_registration body = {.state = RBI_ENDPOINT_READY,
                                             .incarnation = before[i].incarnation,
                                             .daemon_incarnation = 1,
                                             .cookie = before[i].cookie};
        rbi_text_set(&body.path, before[i].path.bytes);
        assert_int_equal(raw_connect(ends[i], loops_cluster.socket), 0);
        assert_int_equal(raw_hello(ends[i]), 0);
        assert_int_equal(raw_send_register(ends[i], &body), 0);
        assert_int_equal(raw_expect(ends[i], RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
        raw_message_deinit(&message);
    }
    for (unsigned i = 0; i < 2; i++) {
        const struct rbi_wire_relink told = {.link_id = id,
                                             .cluster = before[!i].cluster,
                                             .instance = before[!i].instance,
                                             .incarnation = before[!i].incarnation,
                                             .requester = i == 0,
                                             .side_bytes = 12288};
        assert_int_equal(raw_send(ends[i], RBI_WIRE_RELINK, &told, NULL, 0), 0);
    }
    assert_int_equal(link_down(&gate, id), RBI_REASON_DENIED);
    assert_int_equal(link_down(&battle, id), RBI_REASON_DENIED);
    down();
}

/* ---- own ----------------------------------------------------------------------------------- */

static int ask(struct raw *raw, const char *path, unsigned takeover, struct rbi_text *why)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.state = RBI_ENDPOINT_READY,
                                         .takeover = (uint8_t)takeover};
    rbi_text_set(&body.path, path);
    rbi_text_set(&body.tags, "blue,canary");
    assert_int_equal(raw_connect(raw, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    const int code = message.header.type == RBI_WIRE_REGISTERED ? 0 : message.body.error.code;
    if (code != 0) {
        *why = message.body.error.text;
    } else {
        raw->registered = message.body.registered;
    }
    raw_message_deinit(&message);
    return code;
}

static void test_own_is_asked_of_a_name(void **state)
{
    struct raw raw;
    struct rbi_text why;
    assert_int_equal(loops_up(state, "",
                              "rights:\n  rules:\n"
                              "    - {id: mine, verbs: [own], uid: 0, to: /game/**/gate/*}\n"
                              "    - {id: canaries, verbs: [own], tag: canary, to: /shop/**}\n"
                              "    - {id: rest, action: deny, verbs: [own]}\n"),
                     0);
    assert_int_equal(ask(&raw, BATTLE, 0, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "rule rest"));
    raw_close(&raw);
    assert_int_equal(ask(&raw, SHOP, 0, &why), 0);
    raw_close(&raw);
    assert_int_equal(ask(&raw, GATE, 0, &why), geteuid() == 0 ? 0 : RBI_CODE_DENIED);
    raw_close(&raw);
    assert_int_equal(raw_up(&raw, loops_cluster.socket, ""), 0); /* no name: nothing to own */
    raw_close(&raw);
}

/** The name is another's: it says so, and lets nobody near. */
static void test_program_of_a_client_is_its_file(void **state)
{
    struct raw raw;
    struct rbi_text why;
    assert_int_equal(loops_up(state, "",
                              "rights:\n  rules:\n"
                              "    - {id: me, verbs: [own], program: test_daemon_rights}\n"
                              "    - {id: rest, action: deny, verbs: [own]}\n"),
                     0);
    assert_int_equal(ask(&raw, GATE, 0, &why), 0);
    raw_close(&raw);
    reload("rights:\n  rules:\n"
           "    - {id: me, verbs: [own], program: raw}\n" /* as it says at HELLO */
           "    - {id: rest, action: deny, verbs: [own]}\n");
    assert_int_equal(ask(&raw, GATE, 0, &why), RBI_CODE_DENIED);
    raw_close(&raw);
}

/** Path of our own control group of version 2. @return whether there is one that a glob can name */
static bool own_cgroup(char *out, size_t size)
{
    char text[4096];
    size_t length = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    const size_t n = file ? fread(text, 1, sizeof(text), file) : 0;
    if (file) {
        (void)fclose(file);
    }
    const char *path = rbi_cgroup_path(text, n, &length);
    (void)snprintf(out, size, "%.*s", path ? (int)length : 0, path ? path : "");
    return path && rbi_glob_check(out, strlen(out), NULL) == RBI_GLOB_OK;
}

/** Features 2.11, J20: asked of the kernel, whatever the client says of itself. */
static void test_cgroup_of_a_client_is_the_kernels_word(void **state)
{
    char own[RBI_GLOB_MAX + 1];
    char rules[1024];
    struct raw raw;
    struct rbi_text why;
    if (!own_cgroup(own, sizeof(own))) {
        skip(); /* a kernel without version 2, or a group whose name no pattern can have */
    }
    (void)snprintf(rules, sizeof(rules),
                   "rights:\n  rules:\n    - {id: mine, verbs: [own], cgroup: %s}\n"
                   "    - {id: rest, action: deny, verbs: [own]}\n",
                   own);
    assert_int_equal(loops_up(state, "", rules), 0);
    assert_int_equal(ask(&raw, GATE, 0, &why), 0);
    raw_close(&raw);
    reload("rights:\n  rules:\n"
           "    - {id: other, verbs: [own], cgroup: /no/such/group/**}\n"
           "    - {id: rest, action: deny, verbs: [own]}\n");
    assert_int_equal(ask(&raw, GATE, 0, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "rule rest"));
    raw_close(&raw);
}

/* ---- takeover ------------------------------------------------------------------------------ */

static void test_takeover_tells_the_old_one_first(void **state)
{
    uint64_t id = 0;
    struct raw next;
    struct raw_message message;
    struct rbi_text why;
    up(state, "");
    assert_int_equal(raw_link(&gate, &battle, &id), 0);
    assert_int_equal(raw_watch(&gate, RBI_WIRE_WATCH, "/game"), 0);
    assert_int_equal(ask(&next, BATTLE, 0, &why), RBI_CODE_IN_USE);
    raw_close(&next);
    assert_int_equal(raw_expect(&gate, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&message);
    assert_int_equal(ask(&next, BATTLE, 1, &why), 0);
    assert_int_not_equal(next.registered.incarnation, battle.registered.incarnation);
    assert_int_equal(raw_receive(&battle, &message, RAW_TIMEOUT_MS), 0);
    while (message.header.type == RBI_WIRE_EVENT) {
        raw_message_deinit(&message);
        assert_int_equal(raw_receive(&battle, &message, RAW_TIMEOUT_MS), 0);
    }
    assert_int_equal(message.header.type, RBI_WIRE_REPLACED);
    assert_int_equal(message.body.replaced.uid, geteuid());
    raw_message_deinit(&message);
    assert_true(raw_closed(&battle, RAW_TIMEOUT_MS));
    /* Its peers: the old life goes, for that reason, before the new one comes. */
    assert_int_equal(link_down(&gate, id), RBI_REASON_REPLACED);
    assert_int_equal(raw_expect(&gate, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_ADDED);
    assert_int_equal(message.body.event.incarnation, next.registered.incarnation);
    raw_message_deinit(&message);
    assert_int_equal(raw_status(loops_cluster.socket, "names_taken_over"), 1);
    assert_int_equal(raw_status(loops_cluster.socket, "deaths"), 0);
    raw_close(&next);
    down();
}

static void test_takeover_is_a_right(void **state)
{
    struct raw next;
    struct rbi_text why;
    up(state, "rights: {rules: [{id: stay, action: deny, verbs: [takeover], to: /game/**}]}\n");
    assert_int_equal(ask(&next, BATTLE, 1, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "rule stay"));
    raw_close(&next);
    assert_true(raw_silent(&battle, 50));
    assert_int_equal(ask(&next, SHOP, 1, &why), 0);
    raw_close(&next);
    assert_int_equal(ask(&next, SHOP, 1, &why), 0); /* nobody has it: as without the flag */
    raw_close(&next);
    down();
}

/** Scenario 100: 50 at once, and without the flag the first of them has it. */
static void test_of_50_at_once_exactly_one_wins(void **state)
{
    static struct raw raws[50];
    unsigned won = 0;
    unsigned in_use = 0;
    assert_int_equal(loops_up(state, "", ""), 0);
    for (unsigned i = 0; i < 50; i++) {
        struct rbi_wire_registration body = {.state = RBI_ENDPOINT_READY};
        rbi_text_set(&body.path, GATE);
        assert_int_equal(raw_connect(&raws[i], loops_cluster.socket), 0);
        assert_int_equal(raw_hello(&raws[i]), 0);
        assert_int_equal(raw_send_register(&raws[i], &body), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        struct raw_message message;
        assert_int_equal(raw_receive(&raws[i], &message, RAW_TIMEOUT_MS), 0);
        won += message.header.type == RBI_WIRE_REGISTERED;
        in_use +=
            message.header.type == RBI_WIRE_ERROR && message.body.error.code == RBI_CODE_IN_USE;
        raw_message_deinit(&message);
    }
    assert_int_equal(won, 1);
    assert_int_equal(in_use, 49);
    for (unsigned i = 0; i < 50; i++) {
        raw_close(&raws[i]);
    }
}

/* ---- watch and admin ----------------------------------------------------------------------- */

static unsigned rows(struct raw *raw, uint32_t what)
{
    struct raw_message message;
    const struct rbi_wire_query query = {.what = what};
    unsigned count = 0;
    assert_int_equal(raw_send(raw, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    for (;;) {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
        const unsigned type = message.header.type;
        raw_message_deinit(&message);
        if (type == RBI_WIRE_QUERY_END) {
            return count;
        }
        count += type == RBI_WIRE_ROW_ENDPOINT || type == RBI_WIRE_ROW_LINK;
    }
}

static void test_watch_shows_what_may_be_seen(void **state)
{
    struct raw_message message;
    up(state, "rights: {rules: [{id: hide, action: deny, verbs: [watch], to: /shop/**}]}\n");
    assert_int_equal(rows(&gate, RBI_QUERY_ENDPOINTS), 2);
    assert_int_equal(raw_watch(&gate, RBI_WIRE_WATCH, "/"), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(raw_expect(&gate, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
        assert_memory_equal(message.body.event.path.bytes, "/game/", 6);
        raw_message_deinit(&message);
    }
    assert_int_equal(raw_set_state(&shop, RBI_ENDPOINT_BUSY), 0);
    assert_true(raw_silent(&gate, 50));
    /* A target is told of it, or nobody would learn that he may not. */
    assert_int_equal(raw_watch(&battle, RBI_WIRE_TARGET, SHOP), 0);
    assert_int_equal(raw_expect(&battle, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&message);
    /* And when it may: what is there, without asking again. */
    reload("rights: {rules: [{id: show, verbs: [watch], to: /shop/**}]}\n");
    do {
        assert_int_equal(raw_expect(&gate, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
        raw_message_deinit(&message);
    } while (strcmp(message.body.event.path.bytes, SHOP) != 0);
    assert_int_equal(rows(&gate, RBI_QUERY_ENDPOINTS), 3);
    down();
}

static int drain(struct raw *raw, const char *path)
{
    struct raw_message message;
    struct rbi_wire_drain body = {.what = RBI_DRAIN_START};
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_send(raw, RBI_WIRE_DRAIN, &body, NULL, 0), 0);
    assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    const int code = message.header.type == RBI_WIRE_ERROR ? message.body.error.code : 0;
    raw_message_deinit(&message);
    return code;
}

static void test_admin_is_a_right(void **state)
{
    up(state, "rights:\n  rules:\n"
              "    - {id: ops, verbs: [admin], from: /game/**/gate/*, to: /shop/**}\n"
              "    - {id: rest, action: deny, verbs: [admin]}\n");
    assert_int_equal(drain(&battle, SHOP), RBI_CODE_DENIED);
    assert_int_equal(drain(&gate, BATTLE), RBI_CODE_DENIED);
    assert_int_equal(drain(&gate, SHOP), 0);
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_realms_are_apart_unless_a_rule_joins_them),
        LOOPS_TEST(test_rule_that_denies_is_named, "epoll"),
        LOOPS_BOTH(test_change_ends_links_at_both_ends),
        LOOPS_BOTH(test_change_ends_an_introduction_under_way),
        LOOPS_TEST(test_link_of_the_daemon_before_is_asked_about, "epoll"),
        LOOPS_TEST(test_own_is_asked_of_a_name, "epoll"),
        LOOPS_TEST(test_program_of_a_client_is_its_file, "epoll"),
        LOOPS_TEST(test_cgroup_of_a_client_is_the_kernels_word, "epoll"),
        LOOPS_BOTH(test_takeover_tells_the_old_one_first),
        LOOPS_TEST(test_takeover_is_a_right, "epoll"),
        LOOPS_BOTH(test_of_50_at_once_exactly_one_wins),
        LOOPS_TEST(test_watch_shows_what_may_be_seen, "epoll"),
        LOOPS_TEST(test_admin_is_a_right, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
