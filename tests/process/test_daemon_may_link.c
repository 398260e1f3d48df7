/* SPDX-License-Identifier: Apache-2.0 */
/* Whether one has a right to another, for who explains a route: what rules say, and who is told. */
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <string.h>

#define GATE   "/game/eu/pc/w1/core/gate/1"
#define OTHER  "/game/eu/pc/w1/core/gate/2"
#define BATTLE "/game/eu/pc/w1/core/battle/1"
#define SHOP   "/shop/eu/pc/w1/core/till/1"

static struct raw gate;
static struct raw other;
static struct raw battle;
static struct raw shop;

static void up(void **state, const char *rules)
{
    assert_int_equal(loops_up(state, "", rules), 0);
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE), 0);
    assert_int_equal(raw_up(&other, loops_cluster.socket, OTHER), 0);
    assert_int_equal(raw_up(&battle, loops_cluster.socket, BATTLE), 0);
    assert_int_equal(raw_up(&shop, loops_cluster.socket, SHOP), 0);
}

static void down(void)
{
    raw_close(&gate);
    raw_close(&other);
    raw_close(&battle);
    raw_close(&shop);
}

/* 1: it has; 0: it has not, @p why says so; else the code of the refusal. */
static int
may_send(struct raw *raw, const char *from, const char *to, uint32_t method, struct rbi_text *why)
{
    struct rbi_wire_may_link body = {.from = {.length = 0}, .method = method};
    struct raw_message message;
    rbi_text_set(&body.from, from);
    rbi_text_set(&body.to, to);
    assert_int_equal(raw_send(raw, RBI_WIRE_MAY_LINK, &body, NULL, 0), 0);
    assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    int r = message.body.error.code;
    if (message.header.type == RBI_WIRE_VERDICT) {
        r = message.body.verdict.allowed;
        *why = message.body.verdict.why;
    } else {
        assert_int_equal(message.header.type, RBI_WIRE_ERROR);
    }
    raw_message_deinit(&message);
    return r;
}

static int may_link(struct raw *raw, const char *from, const char *to, struct rbi_text *why)
{
    return may_send(raw, from, to, 0, why);
}

/* Whom a choice leaves out for messages of one method, though there is a link. */
static void test_verdicts_are_of_one_method(void **state)
{
    struct rbi_text why;
    up(state,
       "rights: {rules: [{id: few, verbs: [send], from: /game/**/gate/*, to: /game/**/battle/*,"
       " methods: 0..9}, {id: rest, action: deny, verbs: [send], from: /game/**/gate/*}]}\n");
    assert_int_equal(may_send(&shop, GATE, BATTLE, 9, &why), 1);
    assert_int_equal(may_send(&shop, GATE, BATTLE, 10, &why), 0);
    assert_non_null(strstr(why.bytes, "rule rest"));
    assert_non_null(strstr(why.bytes, "may not send"));
    assert_int_equal(may_send(&shop, BATTLE, GATE, 10, &why), 1);
    down();
}

static void test_verdicts_are_those_of_introductions(void **state)
{
    struct rbi_text why;
    up(state, "rights: {rules: [{id: no-gate, action: deny, verbs: [connect],"
              " from: /game/**/gate/*, to: /game/**/battle/*}]}\n");
    assert_int_equal(may_link(&shop, GATE, BATTLE, &why), 0);
    assert_non_null(strstr(why.bytes, "rule no-gate"));
    assert_int_equal(may_link(&shop, BATTLE, GATE, &why), 1);
    assert_int_equal(why.length, 0);
    assert_int_equal(may_link(&shop, GATE, SHOP, &why), 0);
    assert_non_null(strstr(why.bytes, "by default"));
    assert_int_equal(may_link(&shop, GATE, GATE, &why), 1);
    assert_int_equal(may_link(&shop, GATE, OTHER, &why), 1);
    assert_int_equal(raw_introduce(&gate, battle.registered.cluster, battle.registered.instance, 0),
                     0);
    assert_int_equal(raw_expect_error(&gate), RBI_CODE_DENIED);
    down();
}

static void test_questions_that_have_no_answer(void **state)
{
    struct rbi_text why;
    up(state, "");
    assert_int_equal(may_link(&gate, GATE, "/game/eu/pc/w1/core/battle/7", &why),
                     RBI_CODE_NO_INSTANCE);
    assert_int_equal(may_link(&gate, "/game/eu/pc/w1/core/gate/7", BATTLE, &why),
                     RBI_CODE_NO_INSTANCE);
    assert_int_equal(may_link(&gate, "/game/eu/pc/w1/core/gate", BATTLE, &why), RBI_CODE_PATH);
    assert_int_equal(may_link(&gate, GATE, "battle", &why), RBI_CODE_PATH);
    assert_int_equal(may_link(&gate, "", "", &why), RBI_CODE_PATH);
    assert_int_equal(may_link(&gate, GATE, BATTLE, &why), 1);
    down();
}

/* What the rules hold against somebody is told to who administers him. */
static void test_it_is_told_to_administrators(void **state)
{
    struct rbi_text why;
    up(state, "rights:\n  rules:\n"
              "    - {id: ops, verbs: [admin], from: /game/**/gate/1, to: /game/**}\n"
              "    - {id: rest, action: deny, verbs: [admin]}\n");
    assert_int_equal(may_link(&gate, BATTLE, SHOP, &why), 0);
    assert_int_equal(may_link(&gate, SHOP, BATTLE, &why), RBI_CODE_DENIED);
    assert_int_equal(may_link(&other, BATTLE, SHOP, &why), RBI_CODE_DENIED);
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_verdicts_are_those_of_introductions),
        LOOPS_BOTH(test_verdicts_are_of_one_method),
        LOOPS_TEST(test_questions_that_have_no_answer, "epoll"),
        LOOPS_TEST(test_it_is_told_to_administrators, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
