/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/governance_schema.c - the table of what can be said of clusters, instances, realms and
 * rights: the names, types and ranges of all keys, the members that they fill, and their texts.
 * Parser, defaults, documentation and the comparison of texts follow from it.
 */
#include "bus/config_bridge.h"
#include "bus/governance_table.h"
#include "bus/shield_window.h"
#include "bus/subject.h"

#define SECOND     UINT64_C(1000)
#define HOUR       (3600 * SECOND)
#define WINDOW_MAX ((uint64_t)RBI_WINDOW_MAX_MS)
#define MEGA       UINT64_C(1000000)

static const char *const flags[] = {"false", "true", NULL};
static const char *const stages[] = {"off", "prefer", "strict", NULL};
static const char *const balances[] = {"auto",     "hash",   "maglev", "least",  "rr",
                                       "weighted", "random", "all",    "custom", NULL};
static const char *const on_shields[] = {"hold", "failover", "fail", NULL};
static const char *const presets[] = {"default", "tseer", "envoy", "polaris",
                                      "finagle", "off",   NULL};
static const char *const panics[] = {"ignore_shield", "fail", NULL};
static const char *const scopes[] = {"caller", "instance", "receiver", "cluster", NULL};
static const char *const limit_units[] = {"messages", "bytes", NULL};
static const char *const retries[] = {"auto",      "failfast", "failover", "forking",
                                      "broadcast", "failback", "failsafe", NULL};
static const char *const actions[] = {"fail", "mock", "local", NULL};
static const char *const triggers[] = {"manual", "no_instance", "shielded", "limited", NULL};
static const char *const tokens[] = {"off", "required", NULL};
static const char *const verdicts[] = {"allow", "deny", NULL};
static const char *const verbs[] = {"own", "takeover", "connect", "send", "watch", "admin", NULL};
static const char *const otherwises[] = {"realm", "allow", "deny", NULL};

/* clang-format off */

#define OF struct rbi_balance_policy
static const struct rbi_tree_field balance[] = {
    CHOICE("mode", mode, balances, "auto",
           "How one of several instances is chosen. auto: hash when the message has a key, else as "
           "keyless says."),
    CHOICE("keyless", keyless, balances, "least",
           "For messages without a key, with auto, hash or maglev: least, rr, weighted or random."),
    FIELD(POWER, "slots", slots, 1024, 262144, "0",
          "Slots of the hash table; 0: 65536. Another number moves nearly every key."),
    FIELD(NUMBER, "ranks", ranks, 1, 3, "3", "Owners of a slot in order, for failover."),
    FIELD(PERCENT, "hash_bound", hash_bound, 0, 1000, "0%",
          "Load of the owner, of the mean of all, above which the next rank is asked; 0%: never."),
    FIELD(PERCENT, "strict", strict, 0, 100, "0%",
          "No instance owns more slots than its share and so much; 0%: as the hash has it."),
    FIELD(DURATION, "rehash_delay", rehash_delay_ms, 0, HOUR, "3s",
          "Slots of an instance that died wait so long for its return."),
    CHOICE("on_shield", on_shield, on_shields, "hold",
           "What a key does whose owner is shielded: stays, goes to the next rank, or fails."),
    FIELD(NUMBER, "subset", subset, 0, 65535, "0",
          "A caller links to so many instances only; 0: to all."),
    FLAG("reported_weight", reported_weight,
         "Without a key weights follow what instances say with ringbus_report_load()."),
    FIELD(DURATION, "slow_start", slow_start_ms, 0, HOUR, "0ms",
          "Time until a new instance has its whole weight; 0ms: at once."),
    FIELD(PERCENT, "slow_start_min", slow_start_min, 0, 100, "10%", "Part of the weight at first."),
    FIELD(PERCENT, "slow_start_aggression", slow_start_aggression, 1, 1000, "100%",
          "100% is linear, more is faster at first."),
    FIELD(DURATION, "sticky", sticky_ms, 0, HOUR, "0ms",
          "A caller without a key stays with its choice for so long; 0ms: no longer than a call."),
};
#undef OF

#define OF struct rbi_shield_window
static const struct rbi_tree_field window[] = {
    NEEDED(DURATION, "within", ms, RBI_WINDOW_STEP_MS, WINDOW_MAX, "Length."),
    NEEDED(NUMBER, "calls", calls, 1, 1000000, "Judged when at least so many calls ended in it."),
    NEEDED(PERCENT, "failed", percent, 1, 100, "Trips when at least so many of them failed."),
    FIELD(NUMBER, "quiet_below", quiet_below, 0, 1000000, "0",
          "Judged only while the window before it has fewer calls; 0: always."),
};
#undef OF

#define OF struct rbi_shield_policy
static const struct rbi_tree_field window_item = MAP_ITEM(window);
static const struct rbi_tree_field shield[] = {
    CHOICE("preset", preset, presets, "default",
           "Where everything that is not given below comes from; off: nothing is shielded."),
    LIST("windows", windows, window_count, RBI_SHIELD_WINDOWS_MAX, 0, &window_item,
         "The calls to an instance are judged in each of them; one that trips shields it."),
    FIELD(PERCENT, "above_median", above_median, 0, 100, "20%",
          "Points by which its failures must exceed the median of the cluster."),
    FIELD(NUMBER, "consecutive", consecutive, 0, 1000000, "0",
          "Failures in a row that shield it; 0: not judged."),
    FIELD(DURATION, "consecutive_within", consecutive_ms, 0, WINDOW_MAX, "0ms",
          "These in a row within so long; 0ms: however long."),
    FIELD(NUMBER, "deviations_x10", deviations_x10, 0, 1000, "0",
          "Shielded below the mean of the instances minus so many tenths of the standard "
          "deviation; 0: not judged."),
    FIELD(NUMBER, "deviation_calls", deviation_calls, 1, 1000000, "100",
          "For that: calls that an instance must have in the first window."),
    FIELD(NUMBER, "deviation_hosts", deviation_hosts, 2, 65535, "5",
          "For that: instances with so many calls that there must be."),
    FIELD(DURATION, "slow", slow_ms, 0, HOUR, "0ms", "A later reply is slow; 0ms: not judged."),
    FIELD(PERCENT, "slow_percent", slow_percent, 1, 100, "50%",
          "Part of slow replies that shields an instance."),
    FIELD(NUMBER, "slow_calls", slow_calls, 1, 1000000, "20",
          "When at least so many calls ended in the last 10 s."),
    FIELD(PERCENT, "max_percent", max_percent, 0, 100, "50%",
          "Most of the weight of the cluster that is shielded at once."),
    FIELD(DURATION, "open_min", open_min_ms, 1, HOUR, "1s", "First time out; it doubles."),
    FIELD(DURATION, "open_max", open_max_ms, 1, HOUR, "1m", "Longest time out."),
    FLAG("open_linear", open_linear, "It grows by open_min each time, instead."),
    FIELD(PERCENT, "jitter", jitter, 0, 100, "20%", "The time out is off by so much at random."),
    FIELD(RATE, "probes", probe_per_s, 1, 1000, "4", "Calls that try it then, of all callers."),
    FIELD(DURATION, "probe_timeout", probe_timeout_ms, 1, HOUR, "1s",
          "A try that tells nothing by then has failed."),
    FIELD(NUMBER, "close_ok", close_ok, 1, 1000, "3", "Tries that must succeed ..."),
    FIELD(NUMBER, "close_of", close_of, 1, 1000, "5", "... of so many, for it to come back."),
    FIELD(NUMBER, "close_fails", close_fails, 0, 1000, "0",
          "Tries that may fail; one more, and it is out again."),
    FLAG("split", split,
         "Calls that could not be made at all, for want of room or a link, are judged by the same "
         "windows, apart."),
    FIELD(DURATION, "ramp", ramp_ms, 0, HOUR, "3s", "Time until it has its whole weight again."),
};
#undef OF

#define OF struct rbi_panic_policy
static const struct rbi_tree_field panic[] = {
    FIELD(PERCENT, "enter", enter, 0, 100, "50%",
          "Healthy part of the weight below which shields are not looked at."),
    FIELD(PERCENT, "leave", leave, 0, 100, "60%", "And from which they are again."),
    CHOICE("mode", mode, panics, "ignore_shield", "fail: messages are refused meanwhile."),
};
#undef OF

#define OF struct rbi_realm_policy
static const struct rbi_tree_field realm_import = TEXT_ITEM(LABEL, "realm", 1, RBI_LABEL_MAX);
static const struct rbi_tree_field realm[] = {
    CHOICE("mode", mode, stages, "off",
           "prefer: the caller's own business first, then the imports in order. strict: its own "
           "only."),
    LIST("imports", imports, count, RBI_REALMS_MAX, 0, &realm_import,
         "Other businesses, which are first elements of paths."),
    FLAG_TRUE("remote_first", remote_first,
              "The own business at a distant place before another one at home."),
};
static const struct rbi_tree_field realm_entry_fields[] = {
    LIST("imports", imports, count, RBI_REALMS_MAX, 0, &realm_import,
         "Other businesses whose clusters stand in for those of this one, in order."),
    CHOICE("mode", mode, stages, "prefer", "As clusters[].realm.mode."),
    FLAG_TRUE("remote_first", remote_first, "As clusters[].realm.remote_first."),
};
#undef OF

#define OF struct rbi_set_policy
static const struct rbi_tree_field set[] = {
    CHOICE("mode", mode, stages, "off",
           "strict: instances of the caller's set only, as TSeer has it. prefer: others when none "
           "of it is healthy."),
    FLAG("dry_run", dry_run, DRY_RUN),
};
#undef OF

#define OF struct rbi_canary
static const struct rbi_tree_field canary[] = {
    NEEDED(LABEL, "id", id, 1, RBI_LABEL_MAX, "Name of this entry, in what explains a choice."),
    NEEDED(LABEL, "tag", tag, 1, RBI_LABEL_MAX, "Tag of the instances that get it."),
    FIELD(SHARE, "share", share, 0, 10000, "0%",
          "Part of the keys of untagged messages that goes there."),
    FLAG("dry_run", dry_run, DRY_RUN),
};
#undef OF

#define OF struct rbi_tag_policy
static const struct rbi_tree_field canary_item = MAP_ITEM(canary);
static const struct rbi_tree_field tags[] = {
    CHOICE("mode", mode, stages, "prefer",
           "Of tagged messages. prefer: they go to untagged instances when none has the tag."),
    FLAG("untagged_leaks", untagged_leaks,
         "Untagged messages reach tagged instances when there are no others."),
    FLAG("dry_run", dry_run, DRY_RUN),
    LIST("canaries", canaries, count, RBI_CANARIES_MAX, RBI_TREE_KEYED, &canary_item,
         "Parts of the untagged messages for a tag."),
};
#undef OF

/* A label of a rule: two arrays of the rule, so that the second lies so much behind the first. */
#define LABEL_VALUE                                                                                \
    (offsetof(struct rbi_label_rule, label_values) - offsetof(struct rbi_label_rule, label_masks))
static const struct rbi_tree_field label[] = {
    RAW(MASK, "mask", 0, 0, UINT32_MAX, "0", "Bits of this label that are looked at; 0: none."),
    RAW(MASK, "value", LABEL_VALUE, 0, UINT32_MAX, "0", "What they must be."),
};
static const struct rbi_tree_field label_item = MAP_ITEM(label);

#define OF struct rbi_label_rule
static const struct rbi_tree_field rule_key[] = {
    RAW(MASK64, "mask", offsetof(OF, key_mask) - offsetof(OF, key_mask), 0, UINT64_MAX, "0",
        "Bits of the key that are looked at; 0: none, and messages without a key match."),
    RAW(MASK64, "value", offsetof(OF, key_value) - offsetof(OF, key_mask), 0, UINT64_MAX, "0",
        "What they must be."),
};
#undef OF

#define OF struct rbi_caller_match
static const struct rbi_tree_field rule_caller[] = {
    GIVEN(NUMBER, "uid", uid, 0, UINT32_MAX - 1, NULL, NULL, RBI_CALLER_BY_UID, "Its user."),
    GIVEN(NUMBER, "gid", gid, 0, UINT32_MAX - 1, NULL, NULL, RBI_CALLER_BY_GID,
          "Its first group."),
    FIELD(GLOB, "program", program, 0, RBI_GLOB_MAX, "", "Its file: path, or last element."),
    FIELD(GLOB, "cgroup", cgroup, 0, RBI_GLOB_MAX, "", "Its control group (cgroup v2)."),
};
#undef OF

#define OF struct rbi_label_rule
static const struct rbi_tree_field rule[] = {
    NEEDED(LABEL, "id", id, 1, RBI_LABEL_MAX, "Name of the rule, in what explains a choice."),
    MAP("caller", caller, rule_caller, "Callers, by their process; left out: all."),
    FIELD(RANGE, "methods", method_low, 0, UINT32_MAX, "all", "Methods that it is about."),
    MAP("key", key_mask, rule_key, "Keys that it is about."),
    {.key = {.name = "labels", .offset = offsetof(OF, label_masks), .max = RBI_LABELS_MAX,
             .text = "Labels that it is about, by their place."},
     .kind = RBI_TREE_LIST, .fields = &label_item, .field_count = 1,
     .count_offset = RBI_TREE_NO_COUNT, .item_size = sizeof(uint32_t)},
    CHOICE("mode", mode, stages, "strict",
           "Of the instances below. prefer: the others when none of them is healthy."),
    FLAG("dry_run", dry_run, DRY_RUN),
    FIELD(LABEL, "tag", tag, 0, RBI_LABEL_MAX, "", "Its messages go to instances with this tag."),
    FIELD(SET, "set", set, 0, RBI_LABEL_MAX, "", "... of this set, or with * of this area."),
    FIELD(IDC, "idc", idc, 0, RBI_LABEL_MAX, "", "... at this location."),
    FIELD(LABEL, "instance", instance, 0, RBI_LABEL_MAX, "", "... with names of this pattern."),
};
#undef OF

static const struct rbi_tree_field group_name = TEXT_ITEM(LABEL, "group", 1, RBI_LABEL_MAX);
#define OF struct rbi_idc_priority
static const struct rbi_tree_field groups = {
    .key = {.name = NULL, .offset = offsetof(OF, groups), .max = RBI_PRIORITY_GROUPS_MAX},
    .kind = RBI_TREE_LIST, .fields = &group_name, .field_count = 1,
    .count_offset = offsetof(OF, count), .item_size = RBI_LABEL_MAX + 1};
#undef OF

#define OF struct rbi_locality_policy
static const struct rbi_tree_field locality[] = {
    CHOICE("mode", mode, stages, "prefer",
           "prefer: instances near the caller first. strict: only at its location. For hash it is "
           "off unless strict, or keys would have other owners elsewhere."),
    FIELD(PERCENT, "overprovision", overprovision, 100, 1000, "140%",
          "A level takes everything while its healthy part times this is 100% or more."),
    FIELD(PERCENT, "leave", leave, 0, 100, "71%", "Healthy part below which a level is left."),
    FIELD(PERCENT, "back", back, 0, 100, "85%", "And from which it is used again."),
    FIELD(DURATION, "hold", hold_ms, 0, HOUR, "5s", "For so long at least."),
    FIELD(NUMBER, "min_local", min_local, 0, 65535, "1", "Instances that a level must have."),
    FIELD(PERCENT, "capacity_spill", capacity_spill, 0, 1000, "50%",
          "A level with less than so much of its share of the demand sends the rest on."),
    FLAG("dry_run", dry_run, DRY_RUN),
    LIST("priority", priorities, count, RBI_PRIORITIES_MAX, 0, &groups,
         "Lists of locations that stand for each other, as [[a, b], [c]]."),
};
#undef OF

#define OF struct rbi_limit
static const struct rbi_tree_field limit[] = {
    NEEDED(LABEL, "id", id, 1, RBI_LABEL_MAX, "Name of the limit, told to whoever meets it."),
    CHOICE("scope", scope, scopes, "caller",
           "Whose: of each caller, of each caller for each instance, of each receiver by link, or "
           "of all callers together."),
    CHOICE("unit", unit, limit_units, "messages", "What is counted."),
    FIELD(COUNT, "rate", rate, 1, UINT64_C(1000000000000), NULL, "So many a second."),
    FIELD(COUNT, "burst", burst, 0, UINT64_C(1000000000000), "0",
          "So many at once; 0: what the rate gives in 100 ms."),
    FIELD(DURATION, "max_wait", max_wait_ms, 0, 60 * SECOND, "0ms",
          "What would pass by then waits: in its sender, or, with scope receiver, in its lane; "
          "what would not is refused with the time."),
    FIELD(RANGE, "methods", method_low, 0, UINT32_MAX, "all", "Methods that it is about."),
    FLAG("dry_run", dry_run, DRY_RUN),
    FIELD(GLOB, "caller", caller, 0, RBI_GLOB_MAX, "", "Callers that it is about; \"\": all."),
};
#undef OF

#define OF struct rbi_overload_policy
static const struct rbi_tree_field overload[] = {
    FIELD(NUMBER, "max_inflight", max_inflight, 0, 16777216, "1024",
          "Requests of one caller to the cluster that wait for an answer; 0: no cap."),
    FIELD(MICROS, "sojourn_target", sojourn_target_us, 0, 10 * MEGA, "5ms",
          "A receiver whose messages all wait longer refuses the least important; 0us: never."),
    FIELD(DURATION, "sojourn_interval", sojourn_interval_ms, 1, 60 * SECOND, "100ms",
          "When that has been so for so long."),
};
#undef OF

#define OF struct rbi_retry_policy
static const struct rbi_tree_field retry[] = {
    CHOICE("mode", mode, retries, "auto",
           "auto: failover for requests without a key, else failfast."),
    FIELD(NUMBER, "tries", tries, 0, 16, "1", "Beyond the first."),
    FIELD(NUMBER, "forks", forks, 1, 16, "2", "With forking: requests at once."),
    FIELD(PERCENT, "budget", budget_percent, 0, 100, "20%",
          "Most that retries may add to the requests ..."),
    FIELD(RATE, "budget_min", budget_min, 0, 1000000, "3", "... but so many always."),
    FIELD(NUMBER, "failback_max", failback_max, 0, 65536, "100", "With failback: requests kept."),
    FIELD(DURATION, "failback_interval", failback_ms, 1, HOUR, "1s", "And the time between tries."),
    FLAG_TRUE("once_per_instance", once_per_instance, "No instance is tried twice."),
};
#undef OF

#define OF struct rbi_degrade
static const struct rbi_tree_field trigger_item = {
    .key = {.name = NULL, .type = RBI_CONFIG_TYPE_CHOICE, .max = 3, .choices = triggers},
    .kind = RBI_TREE_VALUE};
static const struct rbi_tree_field degrade[] = {
    NEEDED(LABEL, "id", id, 1, RBI_LABEL_MAX, "Name of the entry."),
    FIELD(RANGE, "methods", method_low, 0, UINT32_MAX, "all", "Methods that it is about."),
    CHOICE("action", action, actions, "fail",
           "What the caller gets: an error, the bytes below, or what its own callback says."),
    BITS("on", triggers, 4, &trigger_item,
         "When: manual (at once, until it is taken out), no_instance, shielded, limited."),
    {.key = {.name = "manual", .type = RBI_CONFIG_TYPE_CHOICE, .max = 1, .choices = flags,
             .default_text = "false", .text = "As manual in on, and beside what that says: the "
             "switch of ringbusctl mock."},
     .kind = RBI_TREE_VALUE, .flags = RBI_TREE_BIT, .given_bit = RBI_DEGRADE_MANUAL,
     .given_offset = offsetof(OF, triggers)},
    FIELD(BYTES, "mock", mock_size, 0, RBI_MOCK_MAX, NULL, "The answer as a text."),
    FIELD(HEX, "mock_hex", mock_size, 0, RBI_MOCK_MAX, NULL, "Or as bytes."),
    FIELD(TEXT, "mock_file", mock_file, 0, RBI_MOCK_PATH_MAX, "",
          "Or a file with at most 65,536 bytes: a path from the folder of the configuration file "
          "on, read when the text is taken."),
};
#undef OF

#define OF struct rbi_governance_description
static const struct rbi_tree_field describe[] = {
    FIELD(TEXT, "owner", owner, 0, RBI_CONFIG_STRING_MAX, "", "Whom to ask."),
    FIELD(COUNT, "qps", qps, 0, UINT64_C(1000000000000), "0", "Calls a second it is made for."),
    FIELD(MICROS, "p99", p99_us, 0, 60 * MEGA, "0us", "Time that 99 of 100 calls take at most."),
    FIELD(TEXT, "schema", schema, 0, RBI_CONFIG_STRING_MAX, "", "Of its messages."),
};
#undef OF

#define OF struct rbi_policy
static const struct rbi_tree_field rule_item = MAP_ITEM(rule);
static const struct rbi_tree_field limit_item = MAP_ITEM(limit);
static const struct rbi_tree_field degrade_item = MAP_ITEM(degrade);
static const struct rbi_tree_field cluster[] = {
    {.key = {.name = "match", .type = RBI_CONFIG_TYPE_GLOB,
             .offset = offsetof(struct rbi_governance_entry, match), .min = 1,
             .max = RBI_GLOB_MAX, .text = "Clusters that the entry is about: a path, * for "
             "what is in an element, ** for any number of them."},
     .kind = RBI_TREE_VALUE, .flags = RBI_TREE_REQUIRED},
    MAP("balance", balance, balance, "How an instance is chosen."),
    PREPARED("shield", shield, shield, rbi_governance_prepare_shield,
             "When an instance that fails gets nothing for a while."),
    MAP("panic", panic, panic, "When too many are shielded."),
    MAP("realm", realm, realm, "Instances of other businesses."),
    MAP("set", set, set, "Instances of the caller's set."),
    MAP("tags", tags, tags, "Tagged messages and instances."),
    LIST("rules", rules, rule_count, RBI_RULES_MAX, RBI_TREE_KEYED, &rule_item,
         "Where messages go by what they say of themselves; all that match hold."),
    MAP("locality", locality, locality, "Instances near the caller."),
    LIST("limits", limits, limit_count, RBI_LIMITS_MAX, RBI_TREE_KEYED, &limit_item,
         "How much may be sent; all of them hold."),
    MAP("overload", overload, overload, "When there is more than can be done."),
    MAP("retry", retry, retry, "What happens to requests that were not done."),
    LIST("degrade", degrades, degrade_count, RBI_DEGRADES_MAX, RBI_TREE_KEYED, &degrade_item,
         "Answers without an instance; the first that matches."),
    CHOICE("token", token_required, tokens, "off", "required: links need a token."),
    {.key = {.name = "describe", .offset = offsetof(struct rbi_governance_entry, description),
             .text = "For people."},
     .kind = RBI_TREE_MAP, .fields = describe, .field_count = RBI_ARRAY_SIZE(describe)},
};
#undef OF

#define OF struct rbi_governance_override
static const struct rbi_tree_field instance[] = {
    GIVEN(NUMBER, "weight", weight, 0, 1000, "100", NULL, RBI_GIVEN_WEIGHT,
          "Instead of the weight that it says itself; 0: nothing is dispatched to it."),
    GIVEN(CHOICE, "isolated", isolated, 0, 1, "false", flags, RBI_GIVEN_ISOLATED,
          "It gets nothing from whoever picks."),
    GIVEN(CHOICE, "staged", staged, 0, 1, "false", flags, RBI_GIVEN_STAGED,
          "It is reached by its own path, and by messages tagged test."),
    GIVEN(SET, "set", set, 0, RBI_LABEL_MAX, "", NULL, RBI_GIVEN_SET, "Instead of its own."),
    GIVEN(IDC, "idc", idc, 0, RBI_LABEL_MAX, "", NULL, RBI_GIVEN_IDC, "Instead of its own."),
    GIVEN(LABEL, "tags", tags, 0, RBI_LABEL_MAX, "", NULL, RBI_GIVEN_TAGS, "Instead of its own."),
};
#undef OF

#define OF struct rbi_acl_rule
static const struct rbi_tree_field verb_item = {
    .key = {.name = NULL, .type = RBI_CONFIG_TYPE_CHOICE, .max = 5, .choices = verbs},
    .kind = RBI_TREE_VALUE};
static const struct rbi_tree_field right[] = {
    NEEDED(LABEL, "id", id, 1, RBI_LABEL_MAX, "Name of the rule, told to whoever it refuses."),
    CHOICE("action", deny, verdicts, "allow", "What it does."),
    BITS_NEEDED("verbs", verbs, 6, &verb_item, "What it is about."),
    GIVEN(NUMBER, "uid", uid, 0, UINT32_MAX - 1, NULL, NULL, RBI_ACL_BY_UID, "User of the caller."),
    GIVEN(NUMBER, "gid", gid, 0, UINT32_MAX - 1, NULL, NULL, RBI_ACL_BY_GID, "Its first group."),
    FIELD(RANGE, "methods", method_low, 0, UINT32_MAX, "all", "With send: methods."),
    FIELD(GLOB, "from", from, 0, RBI_GLOB_MAX, "", "Path of the caller; \"\": any."),
    FIELD(GLOB, "to", to, 0, RBI_GLOB_MAX, "", "Path of the other side; \"\": any."),
    FIELD(LABEL, "realm", realm, 0, RBI_LABEL_MAX, "", "First element of the caller's path."),
    FIELD(LABEL, "tag", tag, 0, RBI_LABEL_MAX, "", "One of the caller's tags."),
    FIELD(GLOB, "program", program, 0, RBI_GLOB_MAX, "", "Its file: path, or last element."),
    FIELD(GLOB, "cgroup", cgroup, 0, RBI_GLOB_MAX, "", "Its control group (cgroup v2)."),
    FIELD(LABEL, "host", host, 0, RBI_LABEL_MAX, "", "Host of the caller; *: any other than this."),
};
#undef OF

#define OF struct rbi_acl
static const struct rbi_tree_field right_item = MAP_ITEM(right);
static const struct rbi_tree_field rights[] = {
    CHOICE("otherwise", otherwise, otherwises, "realm",
           "When no rule matches. realm: allowed to those of the same business, denied to others."),
    LIST("rules", rules, count, RBI_ACL_RULES_MAX, RBI_TREE_KEYED, &right_item,
         "The first that matches decides."),
};
#undef OF

static const struct rbi_tree_field cluster_item = {
    .key = {.name = NULL}, .kind = RBI_TREE_MAP,
    .fields = cluster, .field_count = RBI_ARRAY_SIZE(cluster)};
static const struct rbi_tree_field instance_item = {
    .key = {.name = NULL, .type = RBI_CONFIG_TYPE_INSTANCE}, .kind = RBI_TREE_MAP,
    .fields = instance, .field_count = RBI_ARRAY_SIZE(instance)};
static const struct rbi_tree_field realm_item = {
    .key = {.name = NULL, .type = RBI_CONFIG_TYPE_LABEL, .min = 1, .max = RBI_LABEL_MAX},
    .kind = RBI_TREE_MAP, .fields = realm_entry_fields,
    .field_count = RBI_ARRAY_SIZE(realm_entry_fields)};

static const struct rbi_tree_field sections[] = {
    {.key = {.name = "clusters", .max = 1024, .text = "What holds for clusters; all entries that "
             "match, in order."},
     .kind = RBI_TREE_LIST, .fields = &cluster_item, .field_count = 1,
     .count_offset = RBI_TREE_NO_COUNT},
    {.key = {.name = "instances", .max = 4096, .text = "What the operator says of instances, by "
             "path, whether they are there yet or not."},
     .kind = RBI_TREE_NAMES, .fields = &instance_item, .field_count = 1},
    {.key = {.name = "realms", .max = 256, .text = "Businesses, which are first elements of paths: "
             "realm of all their clusters."},
     .kind = RBI_TREE_NAMES, .fields = &realm_item, .field_count = 1},
    {.key = {.name = "rights", .text = "Who may do what."},
     .kind = RBI_TREE_MAP, .fields = rights, .field_count = RBI_ARRAY_SIZE(rights)},
    {.key = {.name = "alarms", .max = RBI_ALARMS_MAX, .text = "Figures of clusters that are to "
             "wake somebody when they are beyond a threshold for a while."},
     .kind = RBI_TREE_LIST, .flags = RBI_TREE_KEYED, .fields = &rbi_governance_alarm_item,
     .field_count = 1, .count_offset = RBI_TREE_NO_COUNT},
    /* The last, and of the file only. */
    {.key = {.name = "bridge", .text = "Other hosts: how they are reached, and what is shared."},
     .kind = RBI_TREE_MAP, .fields = rbi_config_bridge_fields,
     .field_count = RBI_CONFIG_BRIDGE_FIELDS},
};
const struct rbi_tree_field rbi_governance_schema = {
    .key = {.name = NULL}, .kind = RBI_TREE_MAP,
    .fields = sections, .field_count = RBI_ARRAY_SIZE(sections) - 1};
const struct rbi_tree_field rbi_governance_file_schema = {
    .key = {.name = NULL}, .kind = RBI_TREE_MAP,
    .fields = sections, .field_count = RBI_ARRAY_SIZE(sections)};
/* clang-format on */
