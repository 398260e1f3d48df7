/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leak matrix of canaries (features 2.6, J31, J32; section 6 item 6): every message tag against
 * every instance tag in every condition, alone and with an untagged instance beside it. Expected is
 * what the guide says in words, not what the chain computes.
 */
#include "route_table.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char *const message_tags[] = {"", "v2", "v3", "pre", "test"};
static const char *const instance_tags[] = {"", "v2", "v3", "v2+v3", "pre", "test", "v20"};
static const char *const conditions[] = {"ready",    "busy",     "starting", "draining",
                                         "isolated", "weight=0", "staged",   "shielded"};
enum { READY, BUSY, STARTING, DRAINING, ISOLATED, WEIGHT_0, STAGED, SHIELDED };
static const char *const companions[] = {"", " u", " u(shielded)"};
enum { ALONE, WELL, SICK };
static const char *const modes[] = {"strict", "prefer", "prefer leaks"};
enum { STRICT, PREFER, LEAKS };

struct cell {
    unsigned message;
    unsigned tags;
    unsigned condition;
    unsigned companion;
    unsigned mode;
    bool panic;
};

static bool has_tag(const struct cell *cell)
{
    const char *tag = message_tags[cell->message];
    const char *tags = instance_tags[cell->tags];
    return tag[0] != '\0' &&
           (strcmp(tags, tag) == 0 ||
            (strcmp(tags, "v2+v3") == 0 && (cell->message == 1 || cell->message == 2)));
}

/* Whether it takes work from such a message at all, and is what the message asks for. */
static bool takes_work(const struct cell *cell)
{
    return cell->condition == READY || cell->condition == BUSY || cell->condition == SHIELDED ||
           (cell->condition == STAGED && cell->message == 4);
}

static bool fits(const struct cell *cell)
{
    const bool untagged = instance_tags[cell->tags][0] == '\0';
    return takes_work(cell) &&
           (cell->message == 0 ? untagged : has_tag(cell) || cell->condition == STAGED);
}

/* May the instance of the cell get the message, with all that is beside it? */
static bool reached(const struct cell *cell)
{
    const bool untagged = instance_tags[cell->tags][0] == '\0';
    const bool usable = cell->condition != SHIELDED || cell->panic;
    if (!takes_work(cell) || !usable) {
        return false;
    }
    if (fits(cell)) {
        /* Its tag, but shielded, and an untagged one is well: that one, in panic too. */
        return !(cell->message != 0 && cell->condition == SHIELDED && cell->mode != STRICT &&
                 cell->companion == WELL);
    }
    if (cell->message == 0) { /* a tagged one: only by leave, and when no other is well */
        return cell->mode == LEAKS && cell->companion != WELL;
    }
    return untagged && cell->mode != STRICT; /* fallback */
}

static bool companion_reached(const struct cell *cell)
{
    if (cell->companion == ALONE || (cell->companion == SICK && !cell->panic)) {
        return false;
    }
    if (cell->message == 0) {
        return true;
    }
    if (cell->mode == STRICT) {
        return false;
    }
    /* Falls back to it when none of the tag is well; two that are sick: the tag's, in panic. */
    const bool tagged_well = fits(cell) && cell->condition != SHIELDED;
    return !tagged_well && !(fits(cell) && cell->companion == SICK);
}

static void check(struct route_table *table, const struct cell *cell)
{
    char message[32];
    char instances[128];
    snprintf(message, sizeof message, "tag=%s", message_tags[cell->message]);
    snprintf(instances, sizeof instances, "x(tags=%s,%s)%s%s", instance_tags[cell->tags],
             conditions[cell->condition], companions[cell->companion], cell->panic ? " panic" : "");
    assert_true(route_table_row(table, "-", message, instances));
    route_table_run(table, NULL);
    const bool in = table->entries[0].weight > 0;
    const bool companion = cell->companion != ALONE && table->entries[1].weight > 0;
    if (in != reached(cell) || companion != companion_reached(cell)) {
        fail_msg("tag %s, mode %s, %s: x is %s, u is %s", message_tags[cell->message],
                 modes[cell->mode], instances, in ? "in" : "out", companion ? "in" : "out");
    }
    /* By key the same doors are closed. */
    if (table->entries[0].hash_weight > 0) {
        struct cell open = *cell;
        open.panic = true;
        assert_true(reached(&open));
    }
}

static void test_leak_matrix(void **state)
{
    (void)state;
    static struct route_table table;
    unsigned cells = 0;
    for (struct cell c = {.mode = 0}; c.mode < RBI_ARRAY_SIZE(modes); c.mode++) {
        char policy[64];
        snprintf(policy, sizeof policy, "tag=%s", modes[c.mode]);
        assert_true(route_table_policy(&table, policy));
        for (c.message = 0; c.message < RBI_ARRAY_SIZE(message_tags); c.message++) {
            for (c.tags = 0; c.tags < RBI_ARRAY_SIZE(instance_tags); c.tags++) {
                for (c.condition = 0; c.condition < RBI_ARRAY_SIZE(conditions); c.condition++) {
                    for (c.companion = 0; c.companion < RBI_ARRAY_SIZE(companions); c.companion++) {
                        c.panic = false;
                        check(&table, &c);
                        c.panic = true;
                        check(&table, &c);
                        cells += 2;
                    }
                }
            }
        }
    }
    assert_int_equal(cells, 3 * 5 * 7 * 8 * 3 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leak_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
