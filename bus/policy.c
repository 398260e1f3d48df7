/* SPDX-License-Identifier: Apache-2.0 */
/* bus/policy.c - defaults, presets, and the check of what another process wrote. */
#include "bus/policy.h"

#include "bus/table.h"

#include <string.h>
#include <xxhash.h>

#define SLOW_PERCENT    50U
#define SLOW_CALLS      20U
#define DEVIATION_CALLS 100U
#define DEVIATION_HOSTS 5U

/* Ours: four windows, summed over all callers of the host. */
static const struct rbi_shield_policy shield_default = {
    .preset = RBI_SHIELD_DEFAULT,
    .window_count = 4,
    .windows = {{1000, 10, 80, 0}, {3000, 15, 65, 0}, {10000, 20, 50, 0}, {60000, 5, 50, 20}},
    .above_median = 20,
    .max_percent = 50,
    .open_min_ms = 1000,
    .open_max_ms = 60000,
    .jitter = 20,
    .probe_per_s = 4,
    .probe_timeout_ms = 1000,
    .close_ok = 3,
    .close_of = 5,
    .ramp_ms = 3000,
};

/* Follows the published article, which its code does not. */
static const struct rbi_shield_policy shield_tseer = {
    .preset = RBI_SHIELD_TSEER,
    .window_count = 1,
    .windows = {{60000, 2, 51, 0}},
    .consecutive = 5,
    .consecutive_ms = 5000,
    .max_percent = 100,
    .open_min_ms = 30000,
    .open_max_ms = 30000,
    .probe_per_s = 4,
    .probe_timeout_ms = 1000,
    .close_ok = 1,
    .close_of = 1,
};

static const struct rbi_shield_policy shield_envoy = {
    .preset = RBI_SHIELD_ENVOY,
    .window_count = 1,
    .windows = {{10000, 50, 85, 0}},
    .consecutive = 5,
    .deviations_x10 = 19,
    .max_percent = 50,
    .open_min_ms = 30000,
    .open_max_ms = 300000,
    .open_linear = 1,
    .probe_per_s = 4,
    .probe_timeout_ms = 1000,
    .close_ok = 1,
    .close_of = 1,
};

static const struct rbi_shield_policy shield_polaris = {
    .preset = RBI_SHIELD_POLARIS,
    .window_count = 1,
    .windows = {{60000, 10, 50, 0}},
    .consecutive = 10,
    .max_percent = 100,
    .open_min_ms = 30000,
    .open_max_ms = 30000,
    .probe_per_s = 4,
    .probe_timeout_ms = 1000,
    .close_ok = 8,
    .close_of = 10,
    .close_fails = 2,
};

static const struct rbi_shield_policy shield_finagle = {
    .preset = RBI_SHIELD_FINAGLE,
    .window_count = 1,
    .windows = {{30000, 5, 21, 0}},
    .consecutive = 5,
    .max_percent = 100,
    .open_min_ms = 5000,
    .open_max_ms = 300000,
    .jitter = 20,
    .probe_per_s = 4,
    .probe_timeout_ms = 1000,
    .close_ok = 1,
    .close_of = 1,
};

void rbi_shield_preset(struct rbi_shield_policy *shield, enum rbi_shield_preset preset)
{
    switch (preset) {
    case RBI_SHIELD_TSEER:
        *shield = shield_tseer;
        break;
    case RBI_SHIELD_ENVOY:
        *shield = shield_envoy;
        break;
    case RBI_SHIELD_POLARIS:
        *shield = shield_polaris;
        break;
    case RBI_SHIELD_FINAGLE:
        *shield = shield_finagle;
        break;
    case RBI_SHIELD_DEFAULT:
    case RBI_SHIELD_OFF:
        *shield = shield_default;
        shield->preset = preset;
        break;
    }
    /* What these rules need where a configuration switches one on that the preset has not. */
    shield->slow_percent = SLOW_PERCENT;
    shield->slow_calls = SLOW_CALLS;
    shield->deviation_calls = DEVIATION_CALLS;
    shield->deviation_hosts = DEVIATION_HOSTS;
}

void rbi_policy_defaults(struct rbi_policy *policy)
{
    memset(policy, 0, sizeof *policy);
    policy->balance = (struct rbi_balance_policy){.mode = RBI_BALANCE_AUTO,
                                                  .keyless = RBI_BALANCE_LEAST,
                                                  .ranks = 3,
                                                  .rehash_delay_ms = 3000,
                                                  .on_shield = RBI_ON_SHIELD_HOLD,
                                                  .slow_start_min = 10,
                                                  .slow_start_aggression = 100};
    rbi_shield_preset(&policy->shield, RBI_SHIELD_DEFAULT);
    policy->panic = (struct rbi_panic_policy){.enter = 50, .leave = 60};
    policy->realm.remote_first = 1;
    policy->tags.mode = RBI_STAGE_PREFER;
    policy->locality = (struct rbi_locality_policy){.mode = RBI_STAGE_PREFER,
                                                    .overprovision = 140,
                                                    .leave = 71,
                                                    .back = 85,
                                                    .hold_ms = 5000,
                                                    .min_local = 1,
                                                    .capacity_spill = 50};
    policy->overload = (struct rbi_overload_policy){
        .max_inflight = 1024, .sojourn_target_us = 5000, .sojourn_interval_ms = 100};
    policy->retry = (struct rbi_retry_policy){.mode = RBI_RETRY_AUTO,
                                              .tries = 1,
                                              .forks = 2,
                                              .budget_percent = 20,
                                              .budget_min = 3,
                                              .failback_max = 100,
                                              .failback_ms = 1000,
                                              .once_per_instance = 1};
    rbi_policy_seal(policy);
}

void rbi_policy_seal(struct rbi_policy *policy)
{
    const size_t begin = sizeof policy->fingerprint;
    const uint64_t hash =
        XXH3_64bits((const unsigned char *)policy + begin, sizeof *policy - begin);
    policy->fingerprint = hash != 0 ? hash : 1;
}

/* ---- check ------------------------------------------------------------------------------ */

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

#define IS_TEXT(array) is_text(array, sizeof(array))

static bool balance_valid(const struct rbi_balance_policy *balance)
{
    return balance->mode <= RBI_BALANCE_CUSTOM && balance->keyless <= RBI_BALANCE_CUSTOM &&
           balance->on_shield <= RBI_ON_SHIELD_FAIL && balance->ranks >= 1 && balance->ranks <= 3 &&
           balance->strict <= RBI_TABLE_STRICT_MAX &&
           (balance->slots == 0 ||
            (rbi_is_pow2(balance->slots) && balance->slots >= 1024 && balance->slots <= 262144));
}

static bool shield_valid(const struct rbi_shield_policy *shield)
{
    return shield->preset <= RBI_SHIELD_OFF && shield->window_count <= RBI_SHIELD_WINDOWS_MAX;
}

static bool realm_valid(const struct rbi_realm_policy *realm)
{
    bool valid = realm->mode <= RBI_STAGE_STRICT && realm->count <= RBI_REALMS_MAX;
    for (unsigned i = 0; valid && i < realm->count; i++) {
        valid = IS_TEXT(realm->imports[i]);
    }
    return valid;
}

static bool tags_valid(const struct rbi_tag_policy *tags)
{
    bool valid = tags->mode <= RBI_STAGE_STRICT && tags->count <= RBI_CANARIES_MAX;
    for (unsigned i = 0; valid && i < tags->count; i++) {
        valid = IS_TEXT(tags->canaries[i].id) && IS_TEXT(tags->canaries[i].tag) &&
                tags->canaries[i].share <= 10000;
    }
    return valid;
}

static bool rules_valid(const struct rbi_policy *policy)
{
    bool valid = policy->rule_count <= RBI_RULES_MAX;
    for (unsigned i = 0; valid && i < policy->rule_count; i++) {
        const struct rbi_label_rule *rule = &policy->rules[i];
        valid = rule->mode <= RBI_STAGE_STRICT && IS_TEXT(rule->id) && IS_TEXT(rule->tag) &&
                IS_TEXT(rule->set) && IS_TEXT(rule->idc) && IS_TEXT(rule->instance) &&
                IS_TEXT(rule->caller.program) && IS_TEXT(rule->caller.cgroup);
    }
    return valid;
}

static bool locality_valid(const struct rbi_locality_policy *locality)
{
    bool valid = locality->mode <= RBI_STAGE_STRICT && locality->count <= RBI_PRIORITIES_MAX;
    for (unsigned i = 0; valid && i < locality->count; i++) {
        const struct rbi_idc_priority *priority = &locality->priorities[i];
        valid = priority->count <= RBI_PRIORITY_GROUPS_MAX;
        for (unsigned j = 0; valid && j < priority->count; j++) {
            valid = IS_TEXT(priority->groups[j]);
        }
    }
    return valid;
}

static bool limits_valid(const struct rbi_policy *policy)
{
    bool valid = policy->limit_count <= RBI_LIMITS_MAX;
    for (unsigned i = 0; valid && i < policy->limit_count; i++) {
        const struct rbi_limit *limit = &policy->limits[i];
        valid = limit->scope <= RBI_LIMIT_CLUSTER && limit->unit <= RBI_LIMIT_BYTES &&
                limit->rate > 0 && IS_TEXT(limit->id) && IS_TEXT(limit->caller);
    }
    return valid;
}

static bool degrades_valid(const struct rbi_policy *policy)
{
    bool valid = policy->degrade_count <= RBI_DEGRADES_MAX;
    for (unsigned i = 0; valid && i < policy->degrade_count; i++) {
        const struct rbi_degrade *degrade = &policy->degrades[i];
        valid = degrade->action <= RBI_DEGRADE_LOCAL && degrade->mock_size <= RBI_MOCK_MAX &&
                degrade->file_size <= RBI_MOCK_FILE_MAX && IS_TEXT(degrade->id) &&
                IS_TEXT(degrade->mock_file);
    }
    return valid;
}

bool rbi_policy_valid(const struct rbi_policy *policy)
{
    return policy->fingerprint != 0 && balance_valid(&policy->balance) &&
           shield_valid(&policy->shield) && policy->panic.mode <= RBI_PANIC_FAIL &&
           realm_valid(&policy->realm) && policy->set.mode <= RBI_STAGE_STRICT &&
           tags_valid(&policy->tags) && rules_valid(policy) && locality_valid(&policy->locality) &&
           limits_valid(policy) && policy->retry.mode <= RBI_RETRY_FAILSAFE &&
           degrades_valid(policy);
}
