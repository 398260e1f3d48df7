/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - what the daemon of a history is configured to do with its clusters. Tables are small:
 * what makes a large one different is measured elsewhere, and here it would be most of the time.
 */
#include "bus/governance.h"
#include "tests/sim/network/world.h"

#include <stdio.h>

static const char *const modes[] = {"auto",  "hash", "auto",     "rr",
                                    "least", "auto", "weighted", "random"};
static const char *const keyless[] = {"least", "rr", "weighted", "random"};

void policy_make(struct policy *policy)
{
    static const uint32_t delays_ms[] = {0, 50, 300, 3000};
    const unsigned mode = sim_below(sizeof modes / sizeof modes[0]);
    *policy = (struct policy){.by_key = mode < 3 || mode == 5,
                              .rehash_delay_ms = delays_ms[sim_below(4)],
                              .limited = sim_one_in(4),
                              .shields = sim_one_in(4)};
    const char *const shield =
        policy->shields ? "{windows: [{within: 1s, calls: 3, failed: 30%}], above_median: 0%, "
                          "open_min: 100ms, open_max: 1s, ramp: 200ms, probe_timeout: 200ms}"
                        : "{preset: \"off\"}";
    const char *const limits = policy->limited
                                   ? "    limits:\n"
                                     "      - {id: each, scope: caller, rate: 100, burst: 5}\n"
                                     "      - {id: one, scope: instance, rate: 60, burst: 4}\n"
                                     "      - {id: all, scope: cluster, rate: 150, burst: 20}\n"
                                   : "";
    const int length =
        snprintf(policy->text, sizeof policy->text,
                 "clusters:\n"
                 "  - match: /S/**\n"
                 "    balance: {mode: %s, keyless: %s, slots: 1024, rehash_delay: %ums}\n"
                 "    shield: %s\n"
                 "%s",
                 modes[mode], keyless[sim_below(4)], policy->rehash_delay_ms, shield, limits);
    if (length < 0 || (size_t)length >= sizeof policy->text) {
        abort();
    }
}

void policy_parse(struct rbi_governance *out)
{
    struct rbi_config_errors errors = {.count = 0};
    if (rbi_governance_parse(world.policy.text, strlen(world.policy.text), out, &errors) != 0) {
        (void)fprintf(stderr, "%s%s\n", world.policy.text, errors.items[0].text);
        abort();
    }
}
