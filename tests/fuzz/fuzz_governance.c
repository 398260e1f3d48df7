/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that are applied, of any content: an error, or policies and rights that are valid for
 * every path; what is written of single changes reads back as the same; no text differs from
 * itself.
 */
#include "bus/governance_diff.h"
#include "bus/governance_edit.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void on_difference(void *context, const char *name, const char *old, const char *next)
{
    (void)context;
    (void)name;
    (void)old;
    (void)next;
    abort();
}

/** Single changes written, read, and written again. */
static void check_edits(const struct rbi_governance *governance)
{
    static struct rbi_config_errors errors;
    struct rbi_edits edits;
    struct rbi_edits again;
    struct rbi_governance read = RBI_GOVERNANCE_NULL;
    char *text = NULL;
    size_t size = 0;
    check(rbi_edits_load(&edits, governance) == 0);
    check(rbi_edits_print(&edits, &text, &size) == 0);
    /* Only what the daemon itself writes has but labels and numbers in it. */
    if (rbi_governance_parse(text, size, &read, &errors) == 0) {
        check(rbi_edits_load(&again, &read) == 0);
        check(again.count == edits.count);
        check(edits.count == 0 ||
              memcmp(again.items, edits.items, edits.count * sizeof edits.items[0]) == 0);
        rbi_edits_deinit(&again);
        rbi_governance_deinit(&read);
    }
    free(text);
    rbi_edits_deinit(&edits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"/game/eu/pc/w1/g1/lobby", "/a/b/c/d/e/f", "/x/x/x/x/x/x"};
    static struct rbi_config_errors errors;
    static struct rbi_policy policy;
    static struct rbi_acl acl;
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    const int r = rbi_governance_parse((const char *)data, size, &governance, &errors);
    check(r == 0 || (r == 1 && errors.count > 0 && !governance.tree.nodes));
    if (r != 0) {
        return 0;
    }
    /* Over itself as well: items are joined, lists replaced. */
    const struct rbi_governance_layers layers = {.count = 2, .items = {&governance, &governance}};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(paths); i++) {
        struct rbi_governance_description description;
        (void)rbi_governance_policy(&layers, paths[i], strlen(paths[i]), &policy, NULL);
        check(rbi_policy_valid(&policy));
        rbi_governance_describe(&layers, paths[i], strlen(paths[i]), &description);
        check(memchr(description.owner, '\0', sizeof description.owner) != NULL);
    }
    struct rbi_acl_fault fault;
    check(!rbi_governance_acl(&layers, &acl) || rbi_acl_check(&acl, &fault) == 0);
    check(rbi_governance_diff(&governance, &governance, on_difference, NULL) == 0);
    check_edits(&governance);
    rbi_governance_deinit(&governance);
    return 0;
}
