/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights: ordered rules, the first that matches decides (features 2.11, D62, J24, J26, B18).
 */
#include "bus/acl.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define GATE   "/game/eu/linux/w1/g1/gate/1"
#define BATTLE "/game/eu/linux/w1/g1/battle/7"
#define SHOP   "/shop/eu/linux/w1/g1/trade/3"

static struct rbi_acl acl;

static struct rbi_acl_subject caller(const char *path, uint32_t uid)
{
    return (struct rbi_acl_subject){.path = path,
                                    .path_length = path ? strlen(path) : 0,
                                    .tags = "",
                                    .program = "",
                                    .uid = uid,
                                    .gid = uid};
}

static struct rbi_acl_rule *add(const char *id, uint32_t deny, uint32_t verbs)
{
    struct rbi_acl_rule *rule = &acl.rules[acl.count++];
    *rule = (struct rbi_acl_rule){.deny = deny, .verbs = verbs, .method_high = UINT32_MAX};
    (void)snprintf(rule->id, sizeof(rule->id), "%s", id);
    return rule;
}

static void between(struct rbi_acl_rule *rule, const char *from, const char *to)
{
    (void)snprintf(rule->from, sizeof(rule->from), "%s", from);
    (void)snprintf(rule->to, sizeof(rule->to), "%s", to);
}

static struct rbi_acl_verdict
ask(const struct rbi_acl_subject *subject, enum rbi_acl_verb verb, const char *to, uint32_t owner)
{
    struct rbi_acl_bound bound;
    const struct rbi_acl_object object = {.path = to, .path_length = strlen(to), .uid = owner};
    rbi_acl_bind(&acl, subject, &bound);
    return rbi_acl_ask(&acl, &bound, subject, verb, &object);
}

static bool may(const char *from, uint32_t uid, enum rbi_acl_verb verb, const char *to)
{
    const struct rbi_acl_subject subject = caller(from, uid);
    return ask(&subject, verb, to, 1000).allow;
}

static int setup(void **state)
{
    (void)state;
    memset(&acl, 0, sizeof(acl));
    return 0;
}

/* ---- the default --------------------------------------------------------------------------- */

/** Who, at what: the table of docs/guide/rights.md, without any rule. B18: businesses are apart. */
static void test_default_truth_table(void **state)
{
    static const struct {
        const char *from; /* NULL: anonymous */
        uint32_t uid;     /* the object is of 1000 */
        bool privileged;
        const char *to;
        uint32_t verb;
        bool realm, allow, deny; /* by default */
    } rows[] = {
        {GATE, 1000, false, BATTLE, RBI_ACL_CONNECT, true, true, false},
        {GATE, 1000, false, BATTLE, RBI_ACL_SEND, true, true, false},
        {GATE, 1000, false, BATTLE, RBI_ACL_WATCH, true, true, false},
        {GATE, 1001, false, BATTLE, RBI_ACL_CONNECT, true, true, false},
        {GATE, 1000, false, SHOP, RBI_ACL_CONNECT, false, true, false},
        {GATE, 1000, false, SHOP, RBI_ACL_SEND, false, true, false},
        {GATE, 1000, false, SHOP, RBI_ACL_WATCH, false, true, false},
        {GATE, 0, true, SHOP, RBI_ACL_CONNECT, false, true, false},
        {GATE, 0, true, SHOP, RBI_ACL_WATCH, true, true, true},
        {NULL, 1000, false, SHOP, RBI_ACL_CONNECT, true, true, false},
        {NULL, 1001, false, SHOP, RBI_ACL_CONNECT, true, true, false},
        {NULL, 1001, false, SHOP, RBI_ACL_WATCH, true, true, false},
        {NULL, 0, true, SHOP, RBI_ACL_CONNECT, true, true, false},
        {NULL, 0, true, SHOP, RBI_ACL_WATCH, true, true, true},
        {GATE, 1001, false, GATE, RBI_ACL_OWN, true, true, false},
        {GATE, 0, true, GATE, RBI_ACL_OWN, true, true, false},
        {GATE, 1000, false, GATE, RBI_ACL_TAKEOVER, true, true, false},
        {GATE, 1001, false, GATE, RBI_ACL_TAKEOVER, false, false, false},
        {NULL, 1000, false, BATTLE, RBI_ACL_ADMIN, true, true, false},
        {NULL, 1001, false, BATTLE, RBI_ACL_ADMIN, false, false, false},
        {NULL, 0, true, BATTLE, RBI_ACL_ADMIN, true, true, true},
        {GATE, 0, true, GATE, RBI_ACL_TAKEOVER, true, true, true},
    };
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        struct rbi_acl_subject subject = caller(rows[i].from, rows[i].uid);
        const bool expected[] = {rows[i].realm, rows[i].allow, rows[i].deny};
        subject.privileged = rows[i].privileged;
        for (uint32_t kind = RBI_ACL_DEFAULT_REALM; kind <= RBI_ACL_DEFAULT_DENY; kind++) {
            acl.otherwise = kind;
            const struct rbi_acl_verdict verdict =
                ask(&subject, (enum rbi_acl_verb)rows[i].verb, rows[i].to, 1000);
            if (verdict.allow != expected[kind]) {
                fail_msg("row %u, default %u: %d", i, kind, verdict.allow);
            }
            assert_int_equal(verdict.rule, RBI_ACL_NO_RULE);
            assert_string_equal(rbi_acl_rule_id(&acl, verdict), "default");
        }
    }
}

/** Whoever is asked by an anonymous client may send to it as well. */
static void test_anonymous_object_is_of_every_realm(void **state)
{
    static const char path[] = "/anon/local/host/uid1001/client/tool/7";
    struct rbi_acl_object object = {.path = path, .path_length = sizeof(path) - 1, .uid = 1001};
    const struct rbi_acl_subject subject = caller(GATE, 1000);
    struct rbi_acl_bound bound;
    (void)state;
    rbi_acl_bind(&acl, &subject, &bound);
    assert_false(rbi_acl_ask(&acl, &bound, &subject, RBI_ACL_SEND, &object).allow);
    object.anonymous = true;
    assert_true(rbi_acl_ask(&acl, &bound, &subject, RBI_ACL_SEND, &object).allow);
    acl.otherwise = RBI_ACL_DEFAULT_DENY;
    assert_false(rbi_acl_ask(&acl, &bound, &subject, RBI_ACL_SEND, &object).allow);
}

/** Scenario 97: a realm is a whole element, not the beginning of one. */
static void test_realm_is_not_a_prefix_of_bytes(void **state)
{
    (void)state;
    assert_false(may("/game2/eu/linux/w1/g1/gate/1", 1000, RBI_ACL_CONNECT, BATTLE));
    assert_false(may("/gam/eu/linux/w1/g1/gate/1", 1000, RBI_ACL_CONNECT, BATTLE));
    assert_true(may("/game/us/linux/w1/g1/gate/1", 1000, RBI_ACL_CONNECT, BATTLE));
}

/* ---- rules --------------------------------------------------------------------------------- */

static void test_first_match_wins_whatever_follows(void **state)
{
    (void)state;
    between(add("ban-gate-1", 1, RBI_ACL_CONNECT), GATE, "/shop/**");
    between(add("gates", 0, RBI_ACL_CONNECT), "/game/*/*/*/*/gate/*", "/shop/**");
    between(add("nobody", 1, RBI_ACL_CONNECT), "", "/shop/**");
    const struct rbi_acl_subject one = caller(GATE, 1000);
    const struct rbi_acl_subject two = caller("/game/eu/linux/w1/g1/gate/2", 1000);
    const struct rbi_acl_subject inside = caller("/shop/eu/linux/w1/g1/till/1", 1000);
    struct rbi_acl_verdict verdict = ask(&one, RBI_ACL_CONNECT, SHOP, 1000);
    assert_false(verdict.allow);
    assert_string_equal(rbi_acl_rule_id(&acl, verdict), "ban-gate-1");
    verdict = ask(&two, RBI_ACL_CONNECT, SHOP, 1000);
    assert_true(verdict.allow);
    assert_string_equal(rbi_acl_rule_id(&acl, verdict), "gates");
    verdict = ask(&inside, RBI_ACL_CONNECT, SHOP, 1000);
    assert_false(verdict.allow);
    assert_string_equal(rbi_acl_rule_id(&acl, verdict), "nobody");
    assert_true(ask(&one, RBI_ACL_CONNECT, BATTLE, 1000).allow); /* of that nobody spoke */
}

static void test_rule_of_another_verb_says_nothing(void **state)
{
    (void)state;
    (void)add("no-watch", 1, RBI_ACL_WATCH | RBI_ACL_ADMIN);
    assert_true(may(GATE, 1000, RBI_ACL_CONNECT, BATTLE));
    assert_false(may(GATE, 1000, RBI_ACL_WATCH, BATTLE));
    assert_false(may(GATE, 1000, RBI_ACL_ADMIN, BATTLE));
    assert_true(may(GATE, 1000, RBI_ACL_TAKEOVER, BATTLE));
}

static void test_every_part_of_a_rule_must_match(void **state)
{
    (void)state;
    struct rbi_acl_rule *rule = add("all", 0, RBI_ACL_CONNECT);
    between(rule, "/game/**", SHOP);
    rule->given = RBI_ACL_BY_UID | RBI_ACL_BY_GID;
    rule->uid = 1000;
    rule->gid = 50;
    (void)snprintf(rule->realm, sizeof(rule->realm), "game");
    (void)snprintf(rule->tag, sizeof(rule->tag), "canary");
    (void)snprintf(rule->program, sizeof(rule->program), "gate");
    struct rbi_acl_subject subject = caller(GATE, 1000);
    subject.gid = 50;
    subject.tags = "blue,canary";
    subject.program = "/usr/bin/gate";
    assert_true(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow);
    struct rbi_acl_subject other = subject;
    other.uid = 1001;
    assert_false(ask(&other, RBI_ACL_CONNECT, SHOP, 7).allow);
    other = subject;
    other.gid = 51;
    assert_false(ask(&other, RBI_ACL_CONNECT, SHOP, 7).allow);
    other = subject;
    other.tags = "blue,canary2";
    assert_false(ask(&other, RBI_ACL_CONNECT, SHOP, 7).allow);
    other = subject;
    other.program = "/usr/bin/gate2";
    assert_false(ask(&other, RBI_ACL_CONNECT, SHOP, 7).allow);
    other = subject;
    other.path = "/gameX/eu/linux/w1/g1/gate/1";
    other.path_length = strlen(other.path);
    assert_false(ask(&other, RBI_ACL_CONNECT, SHOP, 7).allow);
    assert_false(ask(&subject, RBI_ACL_CONNECT, "/shop/eu/linux/w1/g1/trade/31", 7).allow);
}

static void test_program_with_a_slash_is_the_whole_path(void **state)
{
    (void)state;
    struct rbi_acl_rule *rule = add("exact", 0, RBI_ACL_CONNECT);
    (void)snprintf(rule->program, sizeof(rule->program), "/usr/bin/gate");
    struct rbi_acl_subject subject = caller(GATE, 1000);
    subject.program = "/usr/bin/gate";
    assert_true(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow);
    subject.program = "/tmp/gate";
    assert_false(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow);
    subject.program = "";
    assert_false(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow);
}

/* J20: the control group of the caller. */
static void test_cgroup_is_a_glob(void **state)
{
    (void)state;
    struct rbi_acl_rule *rule = add("units", 0, RBI_ACL_CONNECT);
    (void)snprintf(rule->cgroup, sizeof(rule->cgroup), "/game.slice/**");
    struct rbi_acl_subject subject = caller(GATE, 1000);
    assert_false(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow); /* not known */
    const char *inside = "/game.slice/gate-1.service/x@y\\x2d (z)";
    subject.cgroup = inside;
    subject.cgroup_length = strlen(inside);
    assert_true(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow);
    subject.cgroup_length = strlen("/game.slice"); /* the group itself is not below it */
    assert_false(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow);
    subject.cgroup = "/user.slice/game.slice/x";
    subject.cgroup_length = strlen(subject.cgroup);
    assert_false(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).allow);
}

static void test_cgroup_that_is_no_glob_is_refused(void **state)
{
    struct rbi_acl_fault fault;
    (void)state;
    struct rbi_acl_rule *rule = add("units", 0, RBI_ACL_CONNECT);
    (void)snprintf(rule->cgroup, sizeof(rule->cgroup), "/user@1000");
    assert_int_equal(rbi_acl_check(&acl, &fault), 1);
    assert_non_null(strstr(fault.text, "cgroup: "));
}

/** Who lives on a host; of another one when that is not "alpha", which is ours. */
static struct rbi_acl_subject caller_on(const char *host, uint32_t uid)
{
    struct rbi_acl_subject subject = caller(GATE, uid);
    subject.host = host;
    subject.remote = host && strcmp(host, "alpha") != 0;
    return subject;
}

static bool host_matches(const char *rule_host, uint32_t given, const char *host, uint32_t uid)
{
    acl.count = 0;
    acl.otherwise = RBI_ACL_DEFAULT_DENY;
    struct rbi_acl_rule *rule = add("host", 0, RBI_ACL_CONNECT);
    (void)snprintf(rule->host, sizeof(rule->host), "%s", rule_host);
    rule->given = given;
    rule->uid = 1000;
    rule->gid = 1000;
    const struct rbi_acl_subject subject = caller_on(host, uid);
    return ask(&subject, RBI_ACL_CONNECT, BATTLE, 1).allow;
}

/* Features J20: what a host says of a process counts for rules only that name the host. */
static void test_hosts(void **state)
{
    (void)state;
    assert_true(host_matches("", 0, "beta", 1000));
    assert_true(host_matches("beta", 0, "beta", 1000));
    assert_false(host_matches("beta", 0, "gamma", 1000));
    assert_false(host_matches("beta", 0, "beta2", 1000));
    assert_true(host_matches("alpha", 0, "alpha", 1000));
    assert_false(host_matches("alpha", 0, NULL, 1000)); /* this host has no name */
    assert_true(host_matches("*", 0, "beta", 1000));
    assert_false(host_matches("*", 0, "alpha", 1000));
    assert_false(host_matches("*", 0, NULL, 1000));
    assert_true(host_matches("", RBI_ACL_BY_UID, "alpha", 1000));
    assert_false(host_matches("", RBI_ACL_BY_UID, "beta", 1000));
    assert_true(host_matches("beta", RBI_ACL_BY_UID, "beta", 1000));
    assert_true(host_matches("*", RBI_ACL_BY_UID, "beta", 1000));
    assert_false(host_matches("beta", RBI_ACL_BY_UID, "beta", 1001));
    assert_false(host_matches("beta", RBI_ACL_BY_GID, "beta", 1000)); /* nobody tells groups */
    /* By default whose uid it is may administer it: not when a host says so. */
    acl.count = 0;
    acl.otherwise = RBI_ACL_DEFAULT_ALLOW;
    struct rbi_acl_subject subject = caller_on("alpha", 1000);
    assert_true(ask(&subject, RBI_ACL_ADMIN, BATTLE, 1000).allow);
    subject = caller_on("beta", 1000);
    assert_false(ask(&subject, RBI_ACL_ADMIN, BATTLE, 1000).allow);
    assert_false(ask(&subject, RBI_ACL_TAKEOVER, BATTLE, 1000).allow);
}

static void test_anonymous_matches_no_path(void **state)
{
    (void)state;
    between(add("paths", 1, RBI_ACL_CONNECT), "/**", "/**");
    assert_false(may(GATE, 1000, RBI_ACL_CONNECT, BATTLE));
    assert_true(may(NULL, 1000, RBI_ACL_CONNECT, BATTLE));
    (void)snprintf(acl.rules[0].from, sizeof(acl.rules[0].from), "%s", "");
    assert_false(may(NULL, 1000, RBI_ACL_CONNECT, BATTLE));
}

static void test_rule_beats_what_root_may_by_default(void **state)
{
    (void)state;
    (void)add("hands-off", 1, RBI_ACL_ADMIN);
    struct rbi_acl_subject root = caller(NULL, 0);
    root.privileged = true;
    assert_false(ask(&root, RBI_ACL_ADMIN, BATTLE, 1000).allow);
}

/** Rules beyond the first words of the map of those that are left. */
static void test_last_of_256_rules_is_found(void **state)
{
    (void)state;
    char id[16];
    for (unsigned i = 0; i < RBI_ACL_RULES_MAX; i++) {
        (void)snprintf(id, sizeof(id), "r%u", i);
        struct rbi_acl_rule *rule = add(id, 0, RBI_ACL_CONNECT);
        rule->given = RBI_ACL_BY_UID;
        rule->uid = 5000 + i;
    }
    struct rbi_acl_fault fault;
    assert_int_equal(rbi_acl_check(&acl, &fault), 0);
    for (unsigned i = 0; i < RBI_ACL_RULES_MAX; i++) {
        const struct rbi_acl_subject subject = caller(GATE, 5000 + i);
        assert_int_equal(ask(&subject, RBI_ACL_CONNECT, SHOP, 7).rule, i);
    }
    assert_false(may(GATE, 4999, RBI_ACL_CONNECT, SHOP));
}

/* ---- methods ------------------------------------------------------------------------------- */

static void methods(const char *from, const char *to, struct rbi_acl_methods *out)
{
    const struct rbi_acl_subject subject = caller(from, 1000);
    const struct rbi_acl_object object = {.path = to, .path_length = strlen(to), .uid = 1000};
    struct rbi_acl_bound bound;
    rbi_acl_bind(&acl, &subject, &bound);
    assert_int_equal(rbi_acl_ask_methods(&acl, &bound, &subject, &object, out), 0);
}

static void test_methods_are_those_of_the_first_rule_each(void **state)
{
    (void)state;
    struct rbi_acl_rule *rule = add("not-13", 1, RBI_ACL_SEND);
    rule->method_low = rule->method_high = 13;
    rule = add("low", 0, RBI_ACL_SEND);
    rule->method_low = 1;
    rule->method_high = 99;
    rule = add("next", 0, RBI_ACL_SEND);
    rule->method_low = 100;
    rule->method_high = 120;
    struct rbi_acl_methods found;
    methods(GATE, SHOP, &found);
    const struct rbi_acl_methods expected = {.count = 2, .ranges = {{1, 12}, {14, 120}}};
    assert_true(rbi_acl_methods_equal(&found, &expected));
    assert_false(rbi_acl_methods_all(&found));
    assert_false(rbi_acl_methods_have(&found, 0));
    assert_true(rbi_acl_methods_have(&found, 12));
    assert_false(rbi_acl_methods_have(&found, 13));
    assert_true(rbi_acl_methods_have(&found, 120));
    assert_false(rbi_acl_methods_have(&found, UINT32_MAX));
    const struct rbi_acl_subject subject = caller(GATE, 1000);
    assert_true(ask(&subject, RBI_ACL_SEND, SHOP, 1000).allow);

    struct rbi_acl_bound bound;
    const struct rbi_acl_object shop = {.path = SHOP, .path_length = strlen(SHOP), .uid = 1000};
    rbi_acl_bind(&acl, &subject, &bound);
    for (uint32_t method = 0; method < 200; method++) {
        const struct rbi_acl_verdict verdict =
            rbi_acl_ask_method(&acl, &bound, &subject, &shop, method);
        assert_int_equal(verdict.allow, rbi_acl_methods_have(&found, method));
        assert_int_equal(verdict.rule, method == 13                     ? 0
                                       : method >= 1 && method <= 99    ? 1
                                       : method >= 100 && method <= 120 ? 2
                                                                        : RBI_ACL_NO_RULE);
    }

    methods(GATE, BATTLE, &found); /* inside the realm the rest is as the default says */
    assert_int_equal(found.count, 2);
    assert_int_equal(found.ranges[0].high, 12);
    assert_int_equal(found.ranges[1].low, 14);
    assert_int_equal(found.ranges[1].high, UINT32_MAX);
}

static void test_methods_all_and_none(void **state)
{
    (void)state;
    struct rbi_acl_methods found;
    methods(GATE, BATTLE, &found);
    assert_true(rbi_acl_methods_all(&found));
    methods(GATE, SHOP, &found);
    assert_int_equal(found.count, 0);
    (void)add("none", 1, RBI_ACL_SEND);
    methods(GATE, BATTLE, &found);
    assert_int_equal(found.count, 0);
    const struct rbi_acl_subject subject = caller(GATE, 1000);
    const struct rbi_acl_verdict verdict = ask(&subject, RBI_ACL_SEND, BATTLE, 1000);
    assert_false(verdict.allow);
    assert_string_equal(rbi_acl_rule_id(&acl, verdict), "none");
}

/** More pieces than there is room for: what is left out is denied, never allowed. */
static void test_methods_without_room_are_denied(void **state)
{
    (void)state;
    char id[16];
    for (unsigned i = 0; i <= RBI_ACL_RANGES_MAX; i++) {
        (void)snprintf(id, sizeof(id), "r%u", i);
        struct rbi_acl_rule *rule = add(id, 0, RBI_ACL_SEND);
        rule->method_low = rule->method_high = 10 * i;
    }
    const struct rbi_acl_subject subject = caller(GATE, 1000);
    const struct rbi_acl_object object = {.path = SHOP, .path_length = strlen(SHOP), .uid = 1};
    struct rbi_acl_bound bound;
    struct rbi_acl_methods found;
    rbi_acl_bind(&acl, &subject, &bound);
    assert_int_equal(rbi_acl_ask_methods(&acl, &bound, &subject, &object, &found), 1);
    assert_true(rbi_acl_methods_have(&found, 10 * (RBI_ACL_RANGES_MAX - 1)));
    assert_false(rbi_acl_methods_have(&found, 10 * RBI_ACL_RANGES_MAX));
}

static void test_methods_as_text(void **state)
{
    static const char *const texts[] = {"",         "none",
                                        "0",        "0-7",
                                        "1-99",     "1-12,14-120",
                                        "5,7,9-11", "4294967295",
                                        "0-1,3",    "4000000000-4294967295"};
    static const char *const wrong[] = {
        "-",  "1-",         "-1",     "2-1", "1,1", "1-5,5", "5,",  ",5",
        "05", "4294967296", "none,1", "1 ",  "a",   "1--2",  "3,1", "99999999999999999999"};
    struct rbi_acl_methods methods;
    char text[256];
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(texts); i++) {
        assert_int_equal(rbi_acl_methods_read(texts[i], &methods), 0);
        assert_int_equal(rbi_acl_methods_write(&methods, text, sizeof(text)), 0);
        assert_string_equal(text, texts[i]);
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(wrong); i++) {
        if (rbi_acl_methods_read(wrong[i], &methods) != 1) {
            fail_msg("taken: %s", wrong[i]);
        }
        assert_int_equal(methods.count, 0); /* no method, rather than every one */
    }
}

static void test_methods_that_do_not_fit_are_denied(void **state)
{
    struct rbi_acl_methods methods = {.count = RBI_ACL_RANGES_MAX};
    struct rbi_acl_methods read;
    char text[256];
    (void)state;
    for (uint32_t i = 0; i < RBI_ACL_RANGES_MAX; i++) {
        methods.ranges[i].low = 4000000000U + 10 * i;
        methods.ranges[i].high = methods.ranges[i].low + 1;
    }
    assert_int_equal(rbi_acl_methods_write(&methods, text, sizeof(text)), 1);
    assert_int_equal(rbi_acl_methods_read(text, &read), 0);
    assert_int_equal(read.count, 255 / 22);
    for (uint32_t i = 0; i < RBI_ACL_RANGES_MAX; i++) {
        assert_int_equal(rbi_acl_methods_have(&read, methods.ranges[i].low), i < read.count);
    }
}

/* ---- what may not be written --------------------------------------------------------------- */

static void faulty(uint32_t rule, const char *part)
{
    struct rbi_acl_fault fault = {.rule = 99};
    assert_int_equal(rbi_acl_check(&acl, &fault), 1);
    assert_int_equal(fault.rule, rule);
    assert_non_null(strstr(fault.text, part));
}

static void test_check_names_what_is_wrong(void **state)
{
    struct rbi_acl_fault fault;
    (void)state;
    struct rbi_acl_rule *first = add("first", 0, RBI_ACL_CONNECT);
    struct rbi_acl_rule *rule = add("second", 1, RBI_ACL_SEND);
    between(rule, "/game/**", "/shop/*/x");
    const struct rbi_acl_rule good = *rule;
    assert_int_equal(rbi_acl_check(&acl, &fault), 0);
    (void)snprintf(rule->id, sizeof(rule->id), "first");
    faulty(1, "first");
    *rule = good;
    rule->id[0] = '\0';
    faulty(1, "id");
    *rule = good;
    rule->verbs = 0;
    faulty(1, "verb");
    rule->verbs = RBI_ACL_VERBS + 1;
    faulty(1, "verb");
    *rule = good;
    rule->method_low = 2;
    rule->method_high = 1;
    faulty(1, "methods");
    *rule = good;
    (void)snprintf(rule->from, sizeof(rule->from), "/a/***");
    faulty(1, "from: three");
    *rule = good;
    memset(rule->to, 'a', sizeof(rule->to));
    faulty(1, "to: it does not end");
    *rule = good;
    memset(rule->tag, 'a', sizeof(rule->tag));
    faulty(1, "does not end");
    *rule = good;
    rule->given = 4;
    faulty(1, "flag");
    *rule = good;
    first->method_high = 5;
    faulty(0, "send");
    first->method_high = UINT32_MAX;
    acl.otherwise = 3;
    faulty(0, "default");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_default_truth_table, setup),
        cmocka_unit_test_setup(test_anonymous_object_is_of_every_realm, setup),
        cmocka_unit_test_setup(test_realm_is_not_a_prefix_of_bytes, setup),
        cmocka_unit_test_setup(test_first_match_wins_whatever_follows, setup),
        cmocka_unit_test_setup(test_rule_of_another_verb_says_nothing, setup),
        cmocka_unit_test_setup(test_every_part_of_a_rule_must_match, setup),
        cmocka_unit_test_setup(test_program_with_a_slash_is_the_whole_path, setup),
        cmocka_unit_test_setup(test_hosts, setup),
        cmocka_unit_test_setup(test_cgroup_is_a_glob, setup),
        cmocka_unit_test_setup(test_cgroup_that_is_no_glob_is_refused, setup),
        cmocka_unit_test_setup(test_anonymous_matches_no_path, setup),
        cmocka_unit_test_setup(test_rule_beats_what_root_may_by_default, setup),
        cmocka_unit_test_setup(test_last_of_256_rules_is_found, setup),
        cmocka_unit_test_setup(test_methods_are_those_of_the_first_rule_each, setup),
        cmocka_unit_test_setup(test_methods_all_and_none, setup),
        cmocka_unit_test_setup(test_methods_without_room_are_denied, setup),
        cmocka_unit_test_setup(test_methods_as_text, setup),
        cmocka_unit_test_setup(test_methods_that_do_not_fit_are_denied, setup),
        cmocka_unit_test_setup(test_check_names_what_is_wrong, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
