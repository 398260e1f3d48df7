/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights to a part are rights to no more (features 2.11, J24, J16): who may change one cluster
 * changes that one only, a label that takes a right away ends links, and who may not send takes
 * nothing of what senders share.
 */
#include "bus/record.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GATE   "/game/eu/pc/w1/core/gate/1"
#define BATTLE "/game/eu/pc/w1/core/battle/1"
#define FIGHTS "/game/eu/pc/w1/core/battle"
#define SHOP   "/shop/eu/pc/w1/core/till/1"
/* A line end of YAML, and none of ASCII. */
#define NEL "\xc2\x85"

static struct raw gate;
static struct raw battle;

static void up(void **state, const char *rest)
{
    assert_int_equal(loops_up(state, "", rest), 0);
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE), 0);
    assert_int_equal(raw_up(&battle, loops_cluster.socket, BATTLE), 0);
}

static void down(void)
{
    raw_close(&gate);
    raw_close(&battle);
}

struct change {
    const char *target;
    const char *list;
    const char *id;
    const char *pairs[6]; /* key and value, in turn */
};

/** @return 0, or the code of the refusal */
static int edit(struct raw *raw, const struct change *change)
{
    struct raw_message message;
    struct rbi_wire_edit body = {.what = RBI_EDIT_SET};
    struct rbi_text *const places[] = {&body.key1,   &body.value1, &body.key2,
                                       &body.value2, &body.key3,   &body.value3};
    rbi_text_set(&body.target, change->target);
    rbi_text_set(&body.list, change->list);
    rbi_text_set(&body.id, change->id);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(places) && change->pairs[i]; i++) {
        rbi_text_set(places[i], change->pairs[i]);
    }
    assert_int_equal(raw_send(raw, RBI_WIRE_EDIT, &body, NULL, 0), 0);
    do {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    } while (message.header.type != RBI_WIRE_ERROR && message.header.type != RBI_WIRE_APPLIED);
    const int code = message.header.type == RBI_WIRE_ERROR ? message.body.error.code : 0;
    raw_message_deinit(&message);
    return code;
}

/* What is written down is text around keys and values: none of them may reach beyond its place. */
static void test_edit_of_one_cluster_is_about_no_other(void **state)
{
    static const struct change tries[] = {
        {FIGHTS,
         "limits",
         "a",
         {"}]}" NEL "  - {match", "/**", NEL "limits: [{id", "b", NEL "rate", "1"}},
        {FIGHTS, "limits", "a", {"rate", "1", "x: 1}]}, {match", "/**"}},
        {FIGHTS, "limits", "a" NEL, {"rate", "1"}},
        {FIGHTS, "limits", "a\xe2\x80\xa8", {"rate", "1"}},
        {FIGHTS, "limits: [],x", "a", {"rate", "1"}},
        {FIGHTS, "limits", "a", {"rate", "1\x7f"}},
        {FIGHTS, "limits", "a", {"rate", "1\\"}},
        {FIGHTS, "limits", "a", {"Rate", "1"}},
    };
    up(state, "rights:\n  rules:\n"
              "    - {id: own, verbs: [admin], from: /game/**/gate/*, to: " FIGHTS "}\n"
              "    - {id: rest, action: deny, verbs: [admin]}\n");
    const struct change good = {FIGHTS, "limits", "a", {"rate", "1"}};
    assert_int_equal(edit(&gate, &good), 0);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(tries); i++) {
        assert_int_equal(edit(&gate, &tries[i]), RBI_CODE_ARGUMENT);
    }
    const struct change other = {"/**", "limits", "a", {"rate", "1"}};
    assert_int_equal(edit(&gate, &other), RBI_CODE_DENIED);
    down();
}

/* A rule that names a tag, and an operator that gives it: scenario 120. */
static void test_tag_that_takes_a_right_away_ends_links(void **state)
{
    struct raw_message message;
    up(state, "rights: {rules: [{id: out, action: deny, verbs: [connect], tag: quarantine}]}\n");
    assert_int_equal(raw_link(&gate, &battle, NULL), 0);
    const struct change tag = {GATE, "", "", {"tags", "quarantine"}};
    assert_int_equal(edit(&battle, &tag), 0);
    assert_int_equal(raw_expect(&gate, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.link_down.reason, RBI_REASON_DENIED);
    raw_message_deinit(&message);
    assert_int_equal(raw_status(loops_cluster.socket, "links"), 0);
    down();
}

/** How many messages of a type the daemon has sent since. */
static unsigned came(struct raw *raw, enum rbi_wire_type type)
{
    struct raw_message message;
    unsigned count = 0;
    /* What the daemon has to say stands before its answer. */
    const struct rbi_wire_query query = {.what = RBI_QUERY_STATUS};
    assert_int_equal(raw_send(raw, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    do {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
        count += message.header.type == type;
        raw_message_deinit(&message);
    } while (message.header.type != RBI_WIRE_QUERY_END);
    return count;
}

/* From whom something is kept, and that is not what changes, hears of what does and no more. */
static void test_change_is_one_event_for_who_does_not_see_all(void **state)
{
    struct raw shop;
    up(state, "rights: {rules: [{id: hide, action: deny, verbs: [watch], to: /shop/**}]}\n");
    assert_int_equal(raw_up(&shop, loops_cluster.socket, SHOP), 0);
    assert_int_equal(raw_watch(&gate, RBI_WIRE_WATCH, "/"), 0);
    assert_int_equal(came(&gate, RBI_WIRE_EVENT), 2);
    const struct change weight = {BATTLE, "", "", {"weight", "7"}};
    assert_int_equal(edit(&battle, &weight), 0);
    assert_int_equal(came(&gate, RBI_WIRE_EVENT), 1);
    const struct change hidden = {SHOP, "", "", {"weight", "7"}};
    assert_int_equal(edit(&battle, &hidden), 0);
    assert_int_equal(came(&gate, RBI_WIRE_EVENT), 0);
    raw_close(&shop);
    down();
}

/* Features 2.10: a limit of all callers is divided among those who may call. */
static void test_share_is_for_who_may_send(void **state)
{
    struct raw_message message;
    up(state,
       "clusters: [{match: " FIGHTS ", limits: [{id: all, scope: cluster, rate: 100}]}]\n"
       "rights: {rules: [{id: no, action: deny, verbs: [connect], from: /game/**/gate/*}]}\n");
    struct raw other;
    assert_int_equal(raw_up(&other, loops_cluster.socket, "/game/eu/pc/w1/core/lobby/1"), 0);
    struct rbi_wire_lease_demand demand = {.cluster = battle.registered.cluster, .demand = 1000000};
    rbi_text_set(&demand.limit, "all");
    assert_int_equal(raw_send(&gate, RBI_WIRE_LEASE_DEMAND, &demand, NULL, 0), 0);
    assert_int_equal(came(&gate, RBI_WIRE_LEASE), 0);
    assert_int_equal(raw_send(&other, RBI_WIRE_LEASE_DEMAND, &demand, NULL, 0), 0);
    assert_int_equal(raw_expect(&other, RBI_WIRE_LEASE, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.lease.share, 100000); /* all of it */
    raw_message_deinit(&message);
    assert_int_equal(came(&gate, RBI_WIRE_LEASE), 0);
    raw_close(&other);
    down();
}

/** Applies a text. @return 0, or the code of the refusal */
static int apply(struct raw *raw, const char *text)
{
    struct raw_message message;
    const struct rbi_wire_apply body = {.size = (uint32_t)strlen(text)};
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(pwrite(fd, text, body.size, 0), (ssize_t)body.size);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    assert_int_equal(raw_send(raw, RBI_WIRE_APPLY, &body, &fd, 1), 0);
    assert_int_equal(close(fd), 0);
    do {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    } while (message.header.type != RBI_WIRE_ERROR && message.header.type != RBI_WIRE_APPLIED);
    const int code = message.header.type == RBI_WIRE_ERROR ? message.body.error.code : 0;
    raw_message_deinit(&message);
    return code;
}

/* Features B11: a push never changes the file's rules, also when it was there before them. */
static void test_rule_of_the_file_stands_whenever_it_came(void **state)
{
    struct rbi_text why;
    up(state, "");
    assert_int_equal(apply(&gate, "rights:\n  rules:\n"
                                  "    - {id: door, action: allow, verbs: [connect]}\n"
                                  "    - {id: other, verbs: [watch], to: /shop/**}\n"),
                     0);
    assert_int_equal(
        cluster_configure(&loops_cluster,
                          "rights: {rules: [{id: door, action: deny, verbs: [connect]}]}\n"),
        0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=reloaded", RAW_TIMEOUT_MS));
    assert_int_equal(cluster_log_count(&loops_cluster, "event=rights_kept rule=door"), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=items_kept"), 1);
    assert_int_equal(raw_introduce(&gate, battle.registered.cluster, battle.registered.instance, 0),
                     0);
    assert_int_equal(raw_expect_error_text(&gate, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "rule door"));
    /* What has nothing to do with it can be changed all the same. */
    const struct change weight = {BATTLE, "", "", {"weight", "7"}};
    assert_int_equal(edit(&battle, &weight), 0);
    assert_int_equal(apply(&gate, "{}\n"), 0);
    assert_int_equal(apply(&gate, "rights: {rules: [{id: door, verbs: [own]}]}\n"),
                     RBI_CODE_ARGUMENT);
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_TEST(test_edit_of_one_cluster_is_about_no_other, "epoll"),
        LOOPS_BOTH(test_tag_that_takes_a_right_away_ends_links),
        LOOPS_TEST(test_change_is_one_event_for_who_does_not_see_all, "epoll"),
        LOOPS_TEST(test_share_is_for_who_may_send, "epoll"),
        LOOPS_TEST(test_rule_of_the_file_stands_whenever_it_came, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
