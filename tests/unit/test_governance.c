/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration says of clusters, instances, realms and rights: the defaults of the table
 * (features 5), and how entries and layers lie over each other (features B11, J16).
 */
#include "support/governance.h"

#include <string.h>

#define LOBBY "/game/eu/pc/w1/g1/lobby"

static struct layered l;
static const struct rbi_policy *const policy = &l.policy;

static void clear(void)
{
    layered_clear(&l);
}

static void add_layer(const char *text)
{
    layered_add(&l, text);
}

static const struct rbi_policy *policy_of(const char *path)
{
    return layered_policy(&l, path);
}

/** Policy of the lobby under this one text. */
static const struct rbi_policy *policy_under(const char *text)
{
    clear();
    add_layer(text);
    return policy_of(LOBBY);
}

/* ---- values ----------------------------------------------------------------------------- */

static void test_policy_of_what_nobody_names_is_the_default(void **state)
{
    struct rbi_policy defaults;
    (void)state;
    rbi_policy_defaults(&defaults);
    clear();
    assert_memory_equal(policy_of(LOBBY), &defaults, sizeof defaults);
    assert_memory_equal(policy_under("{}"), &defaults, sizeof defaults);
    assert_memory_equal(policy_under("clusters: [{match: /other/**, set: {mode: strict}}]"),
                        &defaults, sizeof defaults);
    assert_memory_equal(policy_under("clusters: []\ninstances: {}\nrealms: {}\nrights: {}\n"),
                        &defaults, sizeof defaults);
}

/* What the documentation says is what holds (features 5). */
static void test_defaults_of_the_table_are_those_of_the_policy(void **state)
{
    struct {
        struct rbi_policy policy;
        unsigned char beside[4096]; /* description and match */
    } room;
    struct rbi_policy defaults;
    (void)state;
    memset(&room, 0, sizeof room);
    rbi_policy_defaults(&defaults);
    room.policy = defaults;
    rbi_tree_defaults(rbi_governance_schema.fields[0].fields, &room);
    rbi_policy_seal(&room.policy);
    assert_memory_equal(&room.policy, &defaults, sizeof defaults);
}

static void test_policy_takes_every_field_of_balance(void **state)
{
    (void)state;
    const struct rbi_balance_policy expected = {.mode = RBI_BALANCE_HASH,
                                                .keyless = RBI_BALANCE_RR,
                                                .slots = 16384,
                                                .ranks = 2,
                                                .hash_bound = 125,
                                                .strict = 5,
                                                .rehash_delay_ms = 0,
                                                .on_shield = RBI_ON_SHIELD_FAIL,
                                                .subset = 7,
                                                .reported_weight = 1,
                                                .slow_start_ms = 60000,
                                                .slow_start_min = 20,
                                                .slow_start_aggression = 150,
                                                .sticky_ms = 2000};
    policy_under(
        "clusters:\n"
        "  - match: /game/**\n"
        "    balance: {mode: hash, keyless: rr, slots: 16384, ranks: 2, hash_bound: 125%,\n"
        "      strict: 5%, rehash_delay: 0ms, on_shield: fail, subset: 7,\n"
        "      reported_weight: true, slow_start: 1m, slow_start_min: 20%,\n"
        "      slow_start_aggression: 150%, sticky: 2s}\n");
    assert_memory_equal(&policy->balance, &expected, sizeof expected);
}

static void test_shield_starts_from_its_preset_wherever_that_stands(void **state)
{
    struct rbi_shield_policy envoy;
    (void)state;
    rbi_shield_preset(&envoy, RBI_SHIELD_ENVOY);
    policy_under("clusters: [{match: '/**', shield: {preset: envoy}}]");
    assert_memory_equal(&policy->shield, &envoy, sizeof envoy);
    envoy.consecutive = 9;
    policy_under("clusters: [{match: '/**', shield: {consecutive: 9, preset: envoy}}]");
    assert_memory_equal(&policy->shield, &envoy, sizeof envoy);
    /* A later entry without one changes what it names, and no more. */
    envoy.max_percent = 30;
    policy_under("clusters:\n"
                 "  - {match: '/**', shield: {preset: envoy, consecutive: 9}}\n"
                 "  - {match: '/game/**', shield: {max_percent: 30%}}\n");
    assert_memory_equal(&policy->shield, &envoy, sizeof envoy);
}

static void test_shield_windows_are_replaced_as_a_whole(void **state)
{
    (void)state;
    policy_under("clusters:\n"
                 "  - match: '/**'\n"
                 "    shield:\n"
                 "      windows:\n"
                 "        - {within: 500ms, calls: 3, failed: 100%}\n"
                 "        - {within: 1m, calls: 5, failed: 50%, quiet_below: 20}\n");
    assert_int_equal(policy->shield.window_count, 2);
    assert_int_equal(policy->shield.windows[0].ms, 500);
    assert_int_equal(policy->shield.windows[0].percent, 100);
    assert_int_equal(policy->shield.windows[1].quiet_below, 20);
    assert_int_equal(policy->shield.windows[2].ms, 0);
    assert_int_equal(policy->shield.probe_per_s, 4);
}

static void test_policy_takes_places_tags_and_rules(void **state)
{
    (void)state;
    policy_under(
        "clusters:\n"
        "  - match: " LOBBY "\n"
        "    panic: {enter: 30%, leave: 40%, mode: fail}\n"
        "    realm: {mode: prefer, imports: [game_b, game_c], remote_first: false}\n"
        "    set: {mode: strict, dry_run: true}\n"
        "    tags:\n"
        "      mode: strict\n"
        "      canaries:\n"
        "        - {id: five, tag: gray, share: 5%}\n"
        "        - {id: few, tag: pre, share: 0.25%, dry_run: true}\n"
        "    rules:\n"
        "      - id: reads\n"
        "        methods: 3..9\n"
        "        key: {mask: 0xff00000000000000, value: 0x0100000000000000}\n"
        "        labels: [{}, {mask: 0x0f, value: 2}]\n"
        "        tag: replica\n"
        "        mode: prefer\n"
        "    locality: {mode: strict, priority: [[sz, gz], [sh]], hold: 1s, leave: 50%}\n");
    assert_int_equal(policy->panic.enter, 30);
    assert_int_equal(policy->panic.mode, RBI_PANIC_FAIL);
    assert_int_equal(policy->realm.count, 2);
    assert_string_equal(policy->realm.imports[1], "game_c");
    assert_int_equal(policy->realm.remote_first, 0);
    assert_int_equal(policy->set.mode, RBI_STAGE_STRICT);
    assert_int_equal(policy->set.dry_run, 1);
    assert_int_equal(policy->tags.count, 2);
    assert_int_equal(policy->tags.canaries[0].share, 500);
    assert_int_equal(policy->tags.canaries[1].share, 25);
    assert_string_equal(policy->tags.canaries[1].tag, "pre");
    assert_int_equal(policy->rule_count, 1);
    assert_int_equal(policy->rules[0].method_low, 3);
    assert_int_equal(policy->rules[0].method_high, 9);
    assert_true(policy->rules[0].key_mask == UINT64_C(0xff) << 56);
    assert_true(policy->rules[0].key_value == UINT64_C(1) << 56);
    assert_int_equal(policy->rules[0].label_masks[0], 0);
    assert_int_equal(policy->rules[0].label_masks[1], 15);
    assert_int_equal(policy->rules[0].label_values[1], 2);
    assert_int_equal(policy->rules[0].mode, RBI_STAGE_PREFER);
    assert_string_equal(policy->rules[0].tag, "replica");
    assert_int_equal(policy->locality.count, 2);
    assert_int_equal(policy->locality.priorities[0].count, 2);
    assert_string_equal(policy->locality.priorities[0].groups[1], "gz");
    assert_string_equal(policy->locality.priorities[1].groups[0], "sh");
    assert_int_equal(policy->locality.overprovision, 140);
}

static void test_policy_takes_limits_retries_and_degrades(void **state)
{
    (void)state;
    policy_under(
        "clusters:\n"
        "  - match: /game/*/*/*/*/lobby\n"
        "    limits:\n"
        "      - {id: all, rate: 1000}\n"
        "      - {id: bulk, scope: cluster, unit: bytes, rate: 5000000000, burst: 1,\n"
        "         max_wait: 20ms, methods: 7, caller: /tools/**, dry_run: true}\n"
        "    overload: {max_inflight: 5, sojourn_target: 250us, sojourn_interval: 50ms}\n"
        "    retry: {mode: forking, tries: 2, forks: 3, budget: 50%, budget_min: 1,\n"
        "      failback_max: 9, failback_interval: 2s, once_per_instance: false}\n"
        "    degrade:\n"
        "      - {id: news, methods: all, action: mock, on: [manual, limited], mock: hello}\n"
        "      - {id: raw, action: mock, on: [shielded], mock_hex: 00ffA0}\n"
        "    token: required\n");
    assert_int_equal(policy->limit_count, 2);
    assert_int_equal(policy->limits[0].method_high, UINT32_MAX);
    assert_true(policy->limits[1].rate == UINT64_C(5000000000));
    assert_int_equal(policy->limits[1].scope, RBI_LIMIT_CLUSTER);
    assert_int_equal(policy->limits[1].unit, RBI_LIMIT_BYTES);
    assert_int_equal(policy->limits[1].method_low, 7);
    assert_int_equal(policy->limits[1].method_high, 7);
    assert_string_equal(policy->limits[1].caller, "/tools/**");
    assert_int_equal(policy->overload.sojourn_target_us, 250);
    assert_int_equal(policy->retry.mode, RBI_RETRY_FORKING);
    assert_int_equal(policy->retry.once_per_instance, 0);
    assert_int_equal(policy->degrade_count, 2);
    assert_int_equal(policy->degrades[0].triggers, RBI_DEGRADE_MANUAL | RBI_DEGRADE_LIMITED);
    assert_int_equal(policy->degrades[0].mock_size, 5);
    assert_memory_equal(policy->degrades[0].mock, "hello", 6);
    assert_int_equal(policy->degrades[1].mock_size, 3);
    assert_memory_equal(policy->degrades[1].mock, "\x00\xff\xa0", 3);
    assert_int_equal(policy->token_required, 1);
}

/* ---- entries and layers over each other ------------------------------------------------- */

static void test_entries_that_match_hold_in_order(void **state)
{
    (void)state;
    policy_under("clusters:\n"
                 "  - {match: '/**', retry: {tries: 5}, overload: {max_inflight: 1}}\n"
                 "  - {match: /web/**, retry: {tries: 9}}\n"
                 "  - {match: /game/**, retry: {tries: 6}}\n");
    assert_int_equal(policy->retry.tries, 6);
    assert_int_equal(policy->overload.max_inflight, 1);
    assert_int_equal(policy_of("/web/a/b/c/d/e")->retry.tries, 9);
    assert_int_equal(policy_of("/x/a/b/c/d/e")->retry.tries, 5);
}

/* A push changes and adds, and deletes nothing of the file (features B11). */
static void test_layer_changes_items_by_id_and_deletes_none(void **state)
{
    (void)state;
    clear();
    add_layer("clusters:\n"
              "  - match: '/**'\n"
              "    limits: [{id: a, rate: 10, burst: 3}, {id: b, rate: 20}]\n"
              "    rules: [{id: file, tag: x}]\n");
    add_layer("clusters:\n"
              "  - match: '/**'\n"
              "    limits: [{id: b, burst: 9}, {id: c, rate: 30}]\n"
              "    rules: [{id: pushed, tag: y}]\n");
    add_layer("clusters: [{match: " LOBBY ", limits: [{id: a, rate: 11}]}]");
    policy_of(LOBBY);
    assert_int_equal(policy->limit_count, 3);
    assert_int_equal(policy->limits[0].rate, 11);
    assert_int_equal(policy->limits[0].burst, 3);
    assert_string_equal(policy->limits[1].id, "b");
    assert_int_equal(policy->limits[1].rate, 20);
    assert_int_equal(policy->limits[1].burst, 9);
    assert_string_equal(policy->limits[2].id, "c");
    assert_int_equal(policy->rule_count, 2);
    assert_string_equal(policy->rules[0].id, "file");
    assert_int_equal(policy_of("/web/a/b/c/d/e")->limits[0].rate, 10);
}

static void test_layers_with_more_items_than_fit_say_so(void **state)
{
    struct rbi_governance_fault fault;
    (void)state;
    clear();
    add_layer("clusters: [{match: '/**', limits: [{id: a, rate: 1}, {id: b, rate: 1}, "
              "{id: c, rate: 1}, {id: d, rate: 1}, {id: e, rate: 1}]}]");
    add_layer("\nclusters: [{match: '/**', limits: [{id: f, rate: 1}, {id: g, rate: 1}, "
              "{id: h, rate: 1}, {id: i, rate: 1}]}]");
    assert_false(rbi_governance_policy(&l.layers, LOBBY, strlen(LOBBY), &l.policy, &fault));
    assert_non_null(strstr(fault.text, "limits: all entries that match have more than 8"));
    assert_non_null(strstr(fault.text, "line 2"));
    assert_int_equal(policy->limit_count, 8);
    assert_true(rbi_policy_valid(&l.policy));
}

static void test_limit_without_any_rate_is_none_and_said(void **state)
{
    struct rbi_governance_fault fault;
    (void)state;
    clear();
    add_layer("clusters: [{match: '/**', limits: [{id: a, burst: 1}, {id: b, rate: 1}]}]");
    assert_false(rbi_governance_policy(&l.layers, LOBBY, strlen(LOBBY), &l.policy, &fault));
    assert_non_null(strstr(fault.text, "a has no rate"));
    assert_int_equal(policy->limit_count, 1);
    assert_string_equal(policy->limits[0].id, "b");
}

static void test_realm_of_a_business_is_below_its_clusters(void **state)
{
    (void)state;
    policy_under("realms: {game: {imports: [game_b]}, web: {mode: strict}}\n"
                 "clusters: [{match: '/**', realm: {remote_first: false}}]\n");
    assert_int_equal(policy->realm.mode, RBI_STAGE_PREFER);
    assert_int_equal(policy->realm.count, 1);
    assert_string_equal(policy->realm.imports[0], "game_b");
    assert_int_equal(policy->realm.remote_first, 0);
    assert_int_equal(policy_of("/web/a/b/c/d/e")->realm.mode, RBI_STAGE_STRICT);
    assert_int_equal(policy_of("/webs/a/b/c/d/e")->realm.mode, RBI_STAGE_OFF);
}

static void test_override_merges_layers_field_by_field(void **state)
{
    struct rbi_governance_override override;
    (void)state;
    clear();
    add_layer("instances:\n  " LOBBY "/1: {weight: 50, set: a.b.c}\n");
    add_layer("instances: {" LOBBY "/1: {weight: 0, isolated: true}, " LOBBY "/2: {tags: \"\"}}");
    assert_true(rbi_governance_override(&l.layers, LOBBY "/1", strlen(LOBBY "/1"), &override));
    assert_int_equal(override.given, RBI_GIVEN_WEIGHT | RBI_GIVEN_ISOLATED | RBI_GIVEN_SET);
    assert_int_equal(override.weight, 0);
    assert_int_equal(override.isolated, 1);
    assert_string_equal(override.set, "a.b.c");
    assert_true(rbi_governance_override(&l.layers, LOBBY "/2", strlen(LOBBY "/2"), &override));
    assert_int_equal(override.given, RBI_GIVEN_TAGS);
    assert_false(rbi_governance_override(&l.layers, LOBBY "/3", strlen(LOBBY "/3"), &override));
    assert_int_equal(override.given, 0);
}

static void test_rights_of_the_lowest_layer_come_first(void **state)
{
    static struct rbi_acl acl;
    (void)state;
    clear();
    add_layer("rights: {otherwise: deny, rules: [{id: ops, verbs: [admin, watch], uid: 0}]}");
    add_layer("rights:\n"
              "  rules:\n"
              "    - {id: web, action: deny, verbs: [send], methods: 5..6, from: /web/**,\n"
              "       to: /game/**, realm: web, tag: x, program: gate, gid: 7,\n"
              "       cgroup: /game.slice/**}\n");
    assert_true(rbi_governance_acl(&l.layers, &acl));
    assert_int_equal(acl.otherwise, RBI_ACL_DEFAULT_DENY);
    assert_int_equal(acl.count, 2);
    assert_int_equal(acl.rules[0].verbs, RBI_ACL_ADMIN | RBI_ACL_WATCH);
    assert_int_equal(acl.rules[0].given, RBI_ACL_BY_UID);
    assert_int_equal(acl.rules[0].method_high, UINT32_MAX);
    assert_int_equal(acl.rules[1].deny, 1);
    assert_int_equal(acl.rules[1].given, RBI_ACL_BY_GID);
    assert_int_equal(acl.rules[1].gid, 7);
    assert_int_equal(acl.rules[1].method_low, 5);
    assert_string_equal(acl.rules[1].program, "gate");
    assert_string_equal(acl.rules[1].cgroup, "/game.slice/**");
}

static void test_description_is_told_and_no_part_of_the_policy(void **state)
{
    struct rbi_governance_description description;
    struct rbi_policy defaults;
    (void)state;
    rbi_policy_defaults(&defaults);
    policy_under("clusters: [{match: '/**', describe: {owner: lobby team, qps: 5000, p99: 3ms, "
                 "schema: v7}}]");
    assert_memory_equal(&l.policy, &defaults, sizeof defaults);
    rbi_governance_describe(&l.layers, LOBBY, strlen(LOBBY), &description);
    assert_string_equal(description.owner, "lobby team");
    assert_int_equal(description.qps, 5000);
    assert_int_equal(description.p99_us, 3000);
    assert_string_equal(description.schema, "v7");
}

static void test_parse_all_fills_both_parts(void **state)
{
    static struct rbi_config config;
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    static const char text[] = "liveness: {misses: 7}\n"
                               "clusters: [{match: '/**', retry: {tries: 4}}]\n"
                               "quota: {links: 9}\n";
    (void)state;
    clear();
    assert_int_equal(rbi_config_parse_all(text, sizeof text - 1, &config, &governance, &l.errors),
                     0);
    assert_int_equal(config.liveness.misses, 7);
    assert_int_equal(config.quota.links, 9);
    l.layers.items[l.layers.count++] = &governance;
    assert_int_equal(policy_of(LOBBY)->retry.tries, 4);
    rbi_governance_deinit(&governance);
}

/* ---- documentation ---------------------------------------------------------------------- */

struct docs {
    unsigned count;
    bool mode;
    bool label;
};

static void on_doc(void *context,
                   const char *key,
                   const char *type,
                   const char *unit,
                   const char *default_value,
                   const char *range,
                   bool needs_restart,
                   const char *text)
{
    struct docs *docs = context;
    (void)type;
    (void)unit;
    (void)range;
    assert_false(needs_restart);
    assert_non_null(default_value);
    if (!text || text[0] == '\0') {
        fail_msg("%s has no text", key);
    }
    docs->count++;
    docs->mode |= strcmp(key, "clusters[].balance.mode") == 0 && strcmp(default_value, "auto") == 0;
    docs->label |= strcmp(key, "clusters[].rules[].labels[].value") == 0;
}

static void test_doc_has_every_key_with_a_text(void **state)
{
    struct docs docs = {0};
    (void)state;
    rbi_governance_doc(on_doc, &docs);
    assert_true(docs.count > 120);
    assert_true(docs.mode);
    assert_true(docs.label);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_of_what_nobody_names_is_the_default),
        cmocka_unit_test(test_defaults_of_the_table_are_those_of_the_policy),
        cmocka_unit_test(test_policy_takes_every_field_of_balance),
        cmocka_unit_test(test_shield_starts_from_its_preset_wherever_that_stands),
        cmocka_unit_test(test_shield_windows_are_replaced_as_a_whole),
        cmocka_unit_test(test_policy_takes_places_tags_and_rules),
        cmocka_unit_test(test_policy_takes_limits_retries_and_degrades),
        cmocka_unit_test(test_entries_that_match_hold_in_order),
        cmocka_unit_test(test_layer_changes_items_by_id_and_deletes_none),
        cmocka_unit_test(test_layers_with_more_items_than_fit_say_so),
        cmocka_unit_test(test_limit_without_any_rate_is_none_and_said),
        cmocka_unit_test(test_realm_of_a_business_is_below_its_clusters),
        cmocka_unit_test(test_override_merges_layers_field_by_field),
        cmocka_unit_test(test_rights_of_the_lowest_layer_come_first),
        cmocka_unit_test(test_description_is_told_and_no_part_of_the_policy),
        cmocka_unit_test(test_parse_all_fills_both_parts),
        cmocka_unit_test(test_doc_has_every_key_with_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
