/* SPDX-License-Identifier: Apache-2.0 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX 64U
#define TRIGGERS                                                                                   \
    (RINGBUS_DEGRADE_MANUAL | RINGBUS_DEGRADE_NO_INSTANCE | RINGBUS_DEGRADE_SHIELDED |             \
     RINGBUS_DEGRADE_LIMITED)
_Static_assert(RINGBUS_DEGRADE_MANUAL == RBI_DEGRADE_MANUAL &&
                   RINGBUS_DEGRADE_NO_INSTANCE == RBI_DEGRADE_NO_INSTANCE &&
                   RINGBUS_DEGRADE_SHIELDED == RBI_DEGRADE_SHIELDED &&
                   RINGBUS_DEGRADE_LIMITED == RBI_DEGRADE_LIMITED,
               "same triggers");
_Static_assert((int)RINGBUS_DEGRADE_FAIL == (int)RBI_DEGRADE_FAIL &&
                   (int)RINGBUS_DEGRADE_MOCK == (int)RBI_DEGRADE_MOCK &&
                   (int)RINGBUS_DEGRADE_LOCAL == (int)RBI_DEGRADE_LOCAL,
               "same actions");

void rbi_degrade_rules_unref(struct rbi_degrade_rules *rules)
{
    if (rules == NULL || --rules->refs != 0) {
        return;
    }
    for (unsigned i = 0; i < rules->count; i++) {
        free(rules->rules[i].mock);
    }
    free(rules);
}

/* ---- which rule --------------------------------------------------------------------------- */

/* What nobody handled a request for, as a trigger; 0: none. */
static unsigned trigger_of(int error)
{
    switch (error) {
    case 0:
        return RINGBUS_DEGRADE_MANUAL;
    case RINGBUS_E_NO_SERVICE:
    case RINGBUS_E_NO_INSTANCE:
    case RINGBUS_E_NO_MATCH:
    case RINGBUS_E_NOT_READY:
    case RINGBUS_E_RESTARTING:
    case RINGBUS_E_DRAINING:
    case RINGBUS_E_PEER_GONE:
    case RINGBUS_E_UNREACHABLE:
    case RINGBUS_E_NO_ROUTE:
        return RINGBUS_DEGRADE_NO_INSTANCE;
    case RINGBUS_E_SHIELDED:
        return RINGBUS_DEGRADE_SHIELDED;
    case RINGBUS_E_LIMITED:
    case RINGBUS_E_SHED:
        return RINGBUS_DEGRADE_LIMITED;
    default:
        return 0;
    }
}

static bool
covers(uint32_t low, uint32_t high, unsigned triggers, uint32_t method, unsigned trigger)
{
    return method >= low && method <= high && (triggers & trigger) != 0;
}

static const struct rbi_degrade *
policy_rule(const struct rbi_policy *policy, uint32_t method, unsigned trigger)
{
    for (unsigned i = 0; policy != NULL && i < policy->degrade_count; i++) {
        const struct rbi_degrade *rule = &policy->degrades[i];
        if (covers(rule->method_low, rule->method_high, rule->triggers, method, trigger)) {
            return rule;
        }
    }
    return NULL;
}

static const struct rbi_degrade_rule *
own_rule(const struct rbi_degrade_rules *rules, uint32_t method, unsigned trigger)
{
    for (unsigned i = 0; rules != NULL && i < rules->count; i++) {
        const struct rbi_degrade_rule *rule = &rules->rules[i];
        if (covers(rule->method_low, rule->method_high, rule->triggers, method, trigger)) {
            return rule;
        }
    }
    return NULL;
}

/* The callback that the configuration means when it says "local": the first for that method. */
static const struct rbi_degrade_rule *own_local(const struct rbi_degrade_rules *rules,
                                                uint32_t method)
{
    for (unsigned i = 0; rules != NULL && i < rules->count; i++) {
        const struct rbi_degrade_rule *rule = &rules->rules[i];
        if (rule->action == RINGBUS_DEGRADE_LOCAL && method >= rule->method_low &&
            method <= rule->method_high) {
            return rule;
        }
    }
    return NULL;
}

/** Both NULL: no rule covers it. */
struct found {
    const struct rbi_cluster *cluster; /* NULL: no target */
    const struct rbi_degrade *policy;
    const struct rbi_degrade_rule *own;
    struct rbi_degrade_rules *rules; /* of the application; NULL: none */
};

static struct found look_up(struct ringbus *bus, const struct rbi_ask *ask, int error)
{
    struct found found = {.policy = NULL};
    const unsigned trigger = trigger_of(error);
    const struct rbi_cluster *cluster =
        ask->to.instance == RINGBUS_ANY ? rbi_cluster_find(bus, ask->to.cluster) : NULL;
    if (cluster == NULL || trigger == 0) {
        return found;
    }
    found.cluster = cluster;
    found.rules = cluster->caller != NULL ? cluster->caller->rules : NULL;
    found.policy = policy_rule(cluster->policy, ask->attributes.method, trigger);
    if (found.policy == NULL) {
        found.own = own_rule(found.rules, ask->attributes.method, trigger);
    }
    return found;
}

static enum ringbus_degrade_action action_of(const struct found *found, const struct rbi_ask *ask)
{
    if (found->policy == NULL) {
        return found->own != NULL ? found->own->action : RINGBUS_DEGRADE_FAIL;
    }
    const enum ringbus_degrade_action action = (enum ringbus_degrade_action)found->policy->action;
    const bool possible =
        action != RINGBUS_DEGRADE_LOCAL || own_local(found->rules, ask->attributes.method) != NULL;
    return possible ? action : RINGBUS_DEGRADE_FAIL;
}

bool rbi_degrade_covers(struct ringbus *bus, const struct rbi_ask *ask, int error)
{
    const struct found found = look_up(bus, ask, error);
    return error == 0 ? found.policy != NULL || found.own != NULL
                      : action_of(&found, ask) != RINGBUS_DEGRADE_FAIL;
}

bool rbi_degrade_fails(struct ringbus *bus, const struct rbi_ask *ask)
{
    const struct found found = look_up(bus, ask, 0);
    return (found.policy != NULL || found.own != NULL) &&
           action_of(&found, ask) == RINGBUS_DEGRADE_FAIL;
}

/* ---- mocks that lie in files ----------------------------------------------------------------- */

void rbi_degrade_forget(struct rbi_cluster *cluster)
{
    for (unsigned i = 0; i < RBI_DEGRADES_MAX; i++) {
        free(cluster->mocks[i]);
        cluster->mocks[i] = NULL;
    }
}

/* NULL: the directory has it not, or there is no memory; then the rule says that it fails. */
static unsigned char *read_mock(struct ringbus *bus, const struct rbi_degrade *rule)
{
    uint64_t size = 0;
    unsigned char *bytes = malloc(rule->file_size + 1U);
    int r = bytes != NULL ? rbi_directory_read_blob(&bus->directory, rule->file_key, bytes,
                                                    rule->file_size, &size)
                          : RBI_DIRECTORY_ABSENT;
    if (bytes != NULL && r == RBI_DIRECTORY_ABSENT && bus->held_segment.base != NULL) {
        r = rbi_directory_read_blob(&bus->held_directory, rule->file_key, bytes, rule->file_size,
                                    &size);
    }
    if (r != RBI_DIRECTORY_OK || size != rule->file_size) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

void rbi_degrade_follow(struct ringbus *bus, struct rbi_cluster *cluster)
{
    const struct rbi_policy *policy = cluster->policy;
    rbi_degrade_forget(cluster);
    for (unsigned i = 0; policy != NULL && i < policy->degrade_count; i++) {
        if (policy->degrades[i].file_key != 0) {
            cluster->mocks[i] = read_mock(bus, &policy->degrades[i]);
        }
    }
}

/* ---- doing it ----------------------------------------------------------------------------- */

/* The request as its receiver would have seen it. */
static void fill_request(struct ringbus *bus, struct rbi_ask *ask, struct rbi_view *view)
{
    const unsigned char *at = ask->payload;
    for (unsigned i = 0; i < ask->part_count; i++) {
        view->parts[i] = (struct ringbus_part){.data = at, .size = ask->part_sizes[i]};
        at += ask->part_sizes[i];
    }
    view->message = (struct ringbus_message){
        .from = rbi_addr(&bus->self),
        .from_path = bus->self_path,
        .kind = RINGBUS_KIND_REQUEST,
        .flags = (ask->flags & RINGBUS_KEY) != 0 ? RINGBUS_MESSAGE_KEY : 0U,
        .key = ask->key,
        .data = ask->payload,
        .size = ask->size,
        .part_count = ask->part_count,
        .parts = view->parts,
        .attributes = &ask->shown};
}

static void call_local(struct ringbus *bus,
                       struct rbi_ask *ask,
                       const struct rbi_degrade_rule *rule,
                       struct rbi_degraded *out)
{
    struct rbi_view view = {.own = true};
    const bool outer = bus->in_callback;
    struct rbi_view *outer_view = bus->view;
    fill_request(bus, ask, &view);
    bus->in_callback = true;
    bus->view = &view; /* so that it can be kept */
    const int r = rule->local(bus, &view.message, &out->reply, rule->context);
    bus->view = outer_view;
    bus->in_callback = outer;
    out->error = r < 0 ? r : 0;
}

/* A copy: a new policy may take its place while the callback looks at it. false: no memory */
static bool
mock_of_policy(const struct found *found, unsigned char *buffer, struct rbi_degraded *out)
{
    const struct rbi_degrade *rule = found->policy;
    const unsigned char *from = rule->mock;
    size_t size = rbi_min_u64(rule->mock_size, RBI_MOCK_MAX);
    if (rule->mock_file[0] != '\0') { /* which may have been absent: then it fails */
        from = found->cluster->mocks[rule - found->cluster->policy->degrades];
        size = from != NULL ? rule->file_size : 0;
        out->owned = from != NULL ? malloc(size + 1) : NULL;
        buffer = out->owned;
    }
    if (buffer == NULL) {
        rbi_degrade_rules_unref(out->rules);
        return false;
    }
    memcpy(buffer, from, size);
    out->reply = (struct ringbus_part){.data = buffer, .size = size};
    return true;
}

bool rbi_degrade(struct ringbus *bus,
                 struct rbi_ask *ask,
                 int error,
                 unsigned char *buffer,
                 struct rbi_degraded *out)
{
    const struct found found = look_up(bus, ask, error);
    const enum ringbus_degrade_action action = action_of(&found, ask);
    *out = (struct rbi_degraded){.rules = found.rules};
    if (action == RINGBUS_DEGRADE_FAIL) {
        return false;
    }
    if (found.rules != NULL) {
        found.rules->refs++; /* the callback may bring others */
    }
    if (action == RINGBUS_DEGRADE_LOCAL) {
        call_local(
            bus, ask,
            found.policy != NULL ? own_local(found.rules, ask->attributes.method) : found.own, out);
    } else if (found.policy != NULL) {
        return mock_of_policy(&found, buffer, out);
    } else {
        out->reply = (struct ringbus_part){.data = found.own->mock, .size = found.own->mock_size};
    }
    return true;
}

/* ---- the public call ----------------------------------------------------------------------- */

static int check_rule(struct ringbus *bus, const struct ringbus_degrade *rule, unsigned number)
{
    const bool local = rule->action == RINGBUS_DEGRADE_LOCAL;
    if (rule->struct_size < sizeof *rule || rule->struct_size % _Alignof(struct ringbus_degrade) ||
        (unsigned)rule->action > RINGBUS_DEGRADE_LOCAL || rule->triggers == 0 ||
        (rule->triggers & ~TRIGGERS) != 0 ||
        (rule->method_high != 0 && rule->method_high < rule->method_low) ||
        local != (rule->local != NULL) || (rule->mock == NULL && rule->mock_size > 0) ||
        rule->mock_size > RBI_POOL_CHUNK_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "rule %u: struct_size, action %u, triggers 0x%x, methods %u to %u, or what "
                        "its action needs",
                        number, (unsigned)rule->action, rule->triggers, rule->method_low,
                        rule->method_high);
    }
    return 0;
}

static int take_rule(const struct ringbus_degrade *given, struct rbi_degrade_rule *out)
{
    *out = (struct rbi_degrade_rule){.method_low = given->method_low,
                                     .method_high =
                                         given->method_high != 0 ? given->method_high : UINT32_MAX,
                                     .action = given->action,
                                     .triggers = given->triggers,
                                     .local = given->local,
                                     .context = given->context};
    if (given->mock_size == 0) {
        return 0;
    }
    out->mock = malloc(given->mock_size);
    if (out->mock == NULL) {
        return -ENOMEM;
    }
    memcpy(out->mock, given->mock, given->mock_size);
    out->mock_size = given->mock_size;
    return 0;
}

/* 0; a public error (noted). @param out  NULL for no rules */
static int take_rules(struct ringbus *bus,
                      const struct ringbus_degrade *given,
                      unsigned count,
                      struct rbi_degrade_rules **out)
{
    struct rbi_degrade_rules *rules =
        calloc(1, sizeof *rules + (size_t)count * sizeof rules->rules[0]);
    if (rules == NULL) {
        return rbi_fail_errno(bus, -ENOMEM, "rules of ringbus_degrade()");
    }
    rules->refs = 1;
    for (unsigned i = 0; i < count; i++) {
        /* A caller built against another version has larger ones. */
        const void *at = (const unsigned char *)given + i * given->struct_size;
        const struct ringbus_degrade *rule = at;
        int r = rule->struct_size == given->struct_size
                    ? check_rule(bus, rule, i)
                    : rbi_fail(bus, RINGBUS_E_ARGUMENT, "rule %u: struct_size differs", i);
        if (r == 0 && take_rule(rule, &rules->rules[i]) != 0) {
            r = rbi_fail_errno(bus, -ENOMEM, "a mock");
        }
        if (r != 0) {
            rbi_degrade_rules_unref(rules);
            return r;
        }
        rules->count++;
    }
    *out = rules;
    return 0;
}

static int set_rules(struct ringbus *bus,
                     const char *path,
                     const struct ringbus_degrade *given,
                     unsigned count)
{
    struct ringbus_addr addr;
    struct rbi_degrade_rules *rules = NULL;
    int r = ringbus_resolve(path, &addr);
    if (r != 0) {
        return rbi_fail(bus, r, "not the path of a cluster");
    }
    struct rbi_cluster *cluster = rbi_cluster_find(bus, addr.cluster);
    if (addr.instance != RINGBUS_ANY || count > RULES_MAX || (given == NULL && count > 0)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "the path of a cluster and 0 to %u rules must be given", RULES_MAX);
    }
    if (cluster == NULL) {
        return rbi_fail(bus, RINGBUS_E_NOT_TARGET, "%s is not a target", path);
    }
    struct rbi_caller *caller = rbi_caller_of(cluster);
    if (caller == NULL) {
        return rbi_fail_errno(bus, -ENOMEM, "rules of ringbus_degrade()");
    }
    if (count > 0) {
        r = take_rules(bus, given, count, &rules);
    }
    if (r == 0) {
        rbi_degrade_rules_unref(caller->rules);
        caller->rules = rules;
        rbi_caller_changed(cluster);
    }
    return r;
}

int ringbus_degrade(struct ringbus *bus,
                    const char *path,
                    const struct ringbus_degrade *rules,
                    unsigned count)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = set_rules(bus, path, rules, count);
        rbi_leave(bus);
    }
    return r;
}
