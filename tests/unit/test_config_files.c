/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configs/game-zone.yaml, canary.yaml and multi-business.yaml: what they promise in their comments
 * is what the policies and rights that they make do, through the router chain.
 */
#include "bus/record.h"
#include "bus/route.h"
#include "bus/route_class.h"
#include "support/governance.h"

#include <stdio.h>
#include <string.h>

static struct layered l;

static int load(const char *name)
{
    static char text[65536];
    static struct rbi_config config;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s.yaml", CONFIGS_FOLDER, name);
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    const size_t size = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    layered_clear(&l);
    config_accepted(rbi_config_parse_all(text, size, &config, &l.room[0], &l.errors), path,
                    &l.errors);
    l.layers = (struct rbi_governance_layers){.count = 1, .items = {&l.room[0]}};
    return 0;
}

static const struct rbi_policy *policy_of(const char *path)
{
    return layered_policy(&l, path);
}

/* ---- a small world ----------------------------------------------------------------------- */

static struct rbi_directory_instance instances[2][8];
static struct rbi_route_cluster clusters[2];

static void clear(void)
{
    memset(instances, 0, sizeof instances);
    for (unsigned i = 0; i < 2; i++) {
        clusters[i] = (struct rbi_route_cluster){.instances = instances[i]};
    }
}

/** An instance as others see it: with what the configuration says of it, when it has a path. */
static struct rbi_directory_instance *
add(unsigned cluster, const char *path, const char *name, const char *set, const char *tags)
{
    struct rbi_directory_instance *one = &instances[cluster][clusters[cluster].count++];
    struct rbi_governance_override said = {.given = 0};
    char full[300];
    (void)snprintf(full, sizeof full, "%s/%s", path, name);
    (void)rbi_governance_override(&l.layers, full, strlen(full), &said);
    one->instance = (int32_t)clusters[cluster].count;
    one->state = RBI_ENDPOINT_READY;
    one->weight = said.given & RBI_GIVEN_WEIGHT ? said.weight : 100;
    one->override = said.staged ? RBI_OVERRIDE_STAGED : 0;
    (void)snprintf(one->name, sizeof one->name, "%s", name);
    one->name_length = (uint32_t)strlen(name);
    (void)snprintf(one->set, sizeof one->set, "%s", said.given & RBI_GIVEN_SET ? said.set : set);
    (void)snprintf(one->tags, sizeof one->tags, "%s",
                   said.given & RBI_GIVEN_TAGS ? said.tags : tags);
    return one;
}

struct message {
    const char *set; /* of the caller */
    const char *tag;
    uint32_t method;
    uint32_t label;
    uint64_t key;
};

/** Names of those who may get it, as "a b". */
static const char *routed(const struct message *message)
{
    static char names[256];
    struct rbi_route_classes classes;
    rbi_route_classes_init(&classes, &l.policy, NULL);
    const uint32_t labels[RBI_LABELS_MAX] = {message->label};
    const struct rbi_route_message class = {
        .tag = message->tag ? message->tag : "",
        .rules = rbi_route_rules(&classes, message->method, true, message->key, labels),
        .canary = message->tag ? 0 : rbi_route_canary(&classes, message->key)};
    const struct rbi_route_caller caller = {.set = message->set ? message->set : "", .idc = ""};
    const struct rbi_route_input input = {.caller = &caller,
                                          .message = &class,
                                          .policy = &l.policy,
                                          .clusters = clusters,
                                          .cluster_count = clusters[1].count > 0 ? 2 : 1,
                                          .now_ns = 1};
    struct rbi_route_entry entries[16];
    struct rbi_route_result result;
    assert_true(rbi_route_room(&input) <= RBI_ARRAY_SIZE(entries));
    rbi_route_run(&input, NULL, entries, &result);
    names[0] = '\0';
    for (unsigned i = 0; i < result.entry_count; i++) {
        const size_t used = strlen(names);
        if (entries[i].stage == RBI_ROUTE_IN) {
            (void)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "",
                           instances[entries[i].cluster][entries[i].index].name);
        }
    }
    return names;
}

/** A key whose share of 10,000 is in the range. */
static uint64_t key_in(uint32_t low, uint32_t high)
{
    uint64_t key = 1;
    while (rbi_route_share(key) < low || rbi_route_share(key) >= high) {
        key++;
    }
    return key;
}

/* ---- game-zone --------------------------------------------------------------------------- */

static void test_game_zone_keeps_zones_apart(void **state)
{
    static const char lobby[] = "/Game/cn/pc/w1/g1/Lobby";
    (void)state;
    (void)load("game-zone");
    (void)policy_of(lobby);
    clear();
    add(0, lobby, "7a", "game.zone7.1", "");
    add(0, lobby, "7b", "game.zone7.1", "");
    add(0, lobby, "7any", "game.zone7.*", "");
    add(0, lobby, "8a", "game.zone8.1", "");
    assert_string_equal(routed(&(struct message){.set = "game.zone7.1"}), "7a 7b");
    assert_string_equal(routed(&(struct message){.set = "game.zone7.2"}), "7any");
    assert_string_equal(routed(&(struct message){.set = "game.zone8.1"}), "8a");
    assert_string_equal(routed(&(struct message){.set = "game.zone9.1"}), "");
    assert_int_equal(add(0, lobby, "old", "game.zone7.1", "")->weight, 25);
}

static void test_game_zone_gives_each_cluster_its_own(void **state)
{
    struct rbi_governance_description description;
    (void)state;
    (void)load("game-zone");
    (void)policy_of("/Game/cn/pc/w1/g1/Battle");
    assert_int_equal(l.policy.balance.mode, RBI_BALANCE_HASH);
    assert_int_equal(l.policy.balance.rehash_delay_ms, 5000);
    assert_int_equal(l.policy.retry.mode, RBI_RETRY_FAILFAST);
    assert_int_equal(l.policy.shield.max_percent, 30);
    assert_int_equal(l.policy.limits[0].rate, 20000);
    (void)policy_of("/Game/cn/pc/w1/g1/Lobby");
    assert_int_equal(l.policy.balance.mode, RBI_BALANCE_LEAST);
    assert_int_equal(l.policy.limits[1].scope, RBI_LIMIT_CLUSTER);
    assert_int_equal(l.policy.degrades[0].triggers, RBI_DEGRADE_NO_INSTANCE | RBI_DEGRADE_SHIELDED);
    assert_memory_equal(l.policy.degrades[0].mock, "{\"news\":[]}", l.policy.degrades[0].mock_size);
    (void)policy_of("/Game/cn/pc/w1/g1/Log");
    assert_int_equal(l.policy.set.mode, RBI_STAGE_OFF);
    assert_int_equal(l.policy.overload.max_inflight, 256);
    assert_int_equal(l.policy.overload.sojourn_target_us, 50000);
    rbi_governance_describe(&l.layers, "/Game/cn/pc/w1/g1/Log", 21, &description);
    assert_string_equal(description.owner, "game operations");
    assert_int_equal(policy_of("/Other/cn/pc/w1/g1/Log")->overload.max_inflight, 1024);
}

/* ---- canary ------------------------------------------------------------------------------ */

static void test_canary_gets_its_share_and_nothing_else(void **state)
{
    static const char order[] = "/Shop/eu/web/w1/g1/Order";
    (void)state;
    (void)load("canary");
    (void)policy_of(order);
    clear();
    add(0, order, "1", "", "");
    add(0, order, "2", "", "");
    add(0, order, "9", "", "");
    add(0, order, "10", "", "");
    const uint64_t inside = key_in(0, 500);
    const uint64_t beside = key_in(500, 10000);
    assert_string_equal(routed(&(struct message){.key = inside}), "9");
    assert_string_equal(routed(&(struct message){.key = beside}), "1 2");
    assert_string_equal(routed(&(struct message){.key = key_in(500, 600)}), "1 2"); /* dry run */
    assert_string_equal(routed(&(struct message){.tag = "v2"}), "9");
    assert_string_equal(routed(&(struct message){.tag = "test", .key = beside}), "10");
    /* It is not well: those without the tag take its share. */
    instances[0][2].health = RBI_HEALTH_OPEN;
    assert_string_equal(routed(&(struct message){.tag = "v2"}), "1 2");
    /* And when those are gone nobody untagged leaks to it. */
    instances[0][2].health = RBI_HEALTH_OK;
    instances[0][0].weight = instances[0][1].weight = 0;
    assert_string_equal(routed(&(struct message){.key = beside}), "");
}

static void test_canary_rules_go_by_method_and_label(void **state)
{
    static const char order[] = "/Shop/eu/web/w1/g1/Order";
    const uint64_t key = key_in(600, 10000);
    (void)state;
    (void)load("canary");
    (void)policy_of(order);
    clear();
    add(0, order, "1", "", "");
    add(0, order, "p", "shop.partner.1", "");
    assert_string_equal(routed(&(struct message){.key = key, .label = 7}), "p");
    assert_string_equal(routed(&(struct message){.key = key, .label = 8}), "1 p");
    assert_string_equal(routed(&(struct message){.key = key, .label = 0x107}), "p");
    /* No replica is there: preferred, not demanded. */
    assert_string_equal(routed(&(struct message){.key = key, .method = 150}), "1 p");
    instances[0][1].weight = 0;
    assert_string_equal(routed(&(struct message){.key = key, .label = 7}), "");
}

/* ---- multi-business ---------------------------------------------------------------------- */

static void test_multi_business_takes_a_sister_when_the_own_is_gone(void **state)
{
    static const char chat[] = "/GameA/cn/pc/w1/g1/Chat";
    (void)state;
    (void)load("multi-business");
    (void)policy_of(chat);
    assert_int_equal(l.policy.realm.count, 2);
    assert_string_equal(l.policy.realm.imports[0], "GameB");
    clear();
    add(0, chat, "a1", "", "");
    add(0, chat, "a2", "", "");
    add(1, "/GameB/cn/pc/w1/g1/Chat", "b1", "", "");
    assert_string_equal(routed(&(struct message){.key = 1}), "a1 a2");
    instances[0][0].health = RBI_HEALTH_OPEN;
    assert_string_equal(routed(&(struct message){.key = 1}), "a2");
    instances[0][1].state = RBI_ENDPOINT_DRAINING;
    assert_string_equal(routed(&(struct message){.key = 1}), "b1");
    (void)policy_of("/GameB/cn/pc/w1/g1/Chat");
    assert_int_equal(l.policy.realm.mode, RBI_STAGE_STRICT);
}

static bool may(const struct rbi_acl *acl, const char *from, enum rbi_acl_verb verb, const char *to)
{
    const struct rbi_acl_subject subject = {.path = from,
                                            .path_length = strlen(from),
                                            .tags = "",
                                            .program = "",
                                            .uid = 1000,
                                            .gid = 1000};
    const struct rbi_acl_object object = {.path = to, .path_length = strlen(to), .uid = 2000};
    struct rbi_acl_bound bound;
    rbi_acl_bind(acl, &subject, &bound);
    return rbi_acl_ask(acl, &bound, &subject, verb, &object).allow;
}

static void test_multi_business_rights_are_as_written(void **state)
{
    static struct rbi_acl acl;
    static const char game_a[] = "/GameA/cn/pc/w1/g1/Lobby/1";
    static const char pay[] = "/Pay/cn/pc/w1/g1/Gate/1";
    (void)state;
    (void)load("multi-business");
    assert_true(rbi_governance_acl(&l.layers, &acl));
    assert_true(may(&acl, game_a, RBI_ACL_CONNECT, pay));
    assert_true(may(&acl, game_a, RBI_ACL_SEND, pay));
    assert_false(may(&acl, game_a, RBI_ACL_CONNECT, "/Pay/cn/pc/w1/g1/Ledger/1"));
    assert_true(may(&acl, game_a, RBI_ACL_CONNECT, "/GameB/cn/pc/w1/g1/Chat/1"));
    assert_false(may(&acl, "/GameB/cn/pc/w1/g1/Chat/1", RBI_ACL_CONNECT, game_a));
    assert_false(may(&acl, game_a, RBI_ACL_CONNECT, "/GameB/cn/pc/w1/g1/Lobby/1"));
    assert_true(may(&acl, "/Ops/cn/pc/w1/g1/Watch/1", RBI_ACL_WATCH, game_a));
    assert_false(may(&acl, "/Ops/cn/pc/w1/g1/Watch/1", RBI_ACL_ADMIN, game_a));
    const struct rbi_policy *gate = policy_of("/Pay/cn/pc/w1/g1/Gate");
    assert_int_equal(gate->token_required, 1);
    assert_int_equal(gate->limit_count, 3);
    assert_string_equal(gate->limits[1].caller, "/GameB/**");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_game_zone_keeps_zones_apart),
        cmocka_unit_test(test_game_zone_gives_each_cluster_its_own),
        cmocka_unit_test(test_canary_gets_its_share_and_nothing_else),
        cmocka_unit_test(test_canary_rules_go_by_method_and_label),
        cmocka_unit_test(test_multi_business_takes_a_sister_when_the_own_is_gone),
        cmocka_unit_test(test_multi_business_rights_are_as_written),
    };
    const int result = cmocka_run_group_tests(tests, NULL, NULL);
    layered_clear(&l);
    return result;
}
