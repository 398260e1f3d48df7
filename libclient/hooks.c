/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/hooks.c - hooks of the application: added, taken off, and what concerns whom. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t rbi_hooks_mode(const struct rbi_cluster *cluster)
{
    return cluster->custom ? RBI_BALANCE_CUSTOM : rbi_cluster_policy(cluster)->balance.mode;
}

uint8_t rbi_hooks_bits(const struct ringbus *bus, const struct rbi_cluster *cluster)
{
    const uint32_t mode = rbi_hooks_mode(cluster);
    bool hooked = mode == RBI_BALANCE_CUSTOM || mode == RBI_BALANCE_ALL;
    for (unsigned i = 0; bus->hooks != NULL && i < bus->hooks->count; i++) {
        const struct rbi_hook *hook = &bus->hooks->list[i];
        const bool concerns = hook->cluster == 0 || hook->cluster == cluster->id;
        hooked = hooked || (concerns && hook->calls.route != NULL);
    }
    return hooked ? RBI_DISPATCH_HOOKED : 0U;
}

const char *rbi_hooks_rule_id(const struct ringbus *bus,
                              const struct rbi_policy *policy,
                              enum rbi_route_stage stage,
                              unsigned rule)
{
    if (stage != RBI_ROUTE_FILTER) {
        return rbi_route_rule_id(policy, stage, rule);
    }
    return bus->hooks != NULL && rule < bus->hooks->count ? bus->hooks->list[rule].name : "";
}

int rbi_hooks_refuse(struct ringbus *bus, const struct rbi_cluster *cluster)
{
    const struct rbi_refusal *refusal = &cluster->refusal;
    const struct rbi_hooks *hooks = bus->hooks;
    switch ((enum rbi_hook_refusal)refusal->hook) {
    case RBI_HOOK_NOBODY:
        return rbi_fail(bus, refusal->error,
                        "%s: its balance is custom, and no chooser of a ringbus_hook() decides",
                        cluster->path);
    case RBI_HOOK_ONE:
        return rbi_fail(bus, refusal->error,
                        "%s: its balance is \"all\", and here one receiver is needed",
                        cluster->path);
    case RBI_HOOK_INSIDE:
        return rbi_hooks_idle(bus, "a message to any instance of a target with hooks");
    case RBI_HOOK_REFUSED:
    case RBI_HOOK_BAD:
    case RBI_HOOK_NONE:
        break;
    }
    const char *name =
        hooks != NULL && refusal->rule < hooks->count ? hooks->list[refusal->rule].name : "a hook";
    if (refusal->hook == RBI_HOOK_REFUSED) {
        return rbi_fail(bus, refusal->error, "%s: refused by the hook \"%s\"", cluster->path, name);
    }
    return rbi_fail(bus, refusal->error,
                    "%s: the hook \"%s\" answered %d, which is nobody that can be sent to",
                    cluster->path, name, (int)refusal->answer);
}

struct rbi_hooks_outer rbi_hooks_begin(struct ringbus *bus)
{
    const struct rbi_hooks_outer outer = {.running = bus->hooks->running,
                                          .in_callback = bus->in_callback};
    bus->hooks->running = true;
    bus->in_callback = true;
    return outer;
}

void rbi_hooks_end(struct ringbus *bus, struct rbi_hooks_outer outer)
{
    bus->hooks->running = outer.running;
    bus->in_callback = outer.in_callback;
}

bool rbi_hooks_running(const struct ringbus *bus)
{
    return bus->hooks != NULL && bus->hooks->running;
}

int rbi_hooks_idle(struct ringbus *bus, const char *call)
{
    if (rbi_hooks_running(bus)) {
        return rbi_fail(bus, RINGBUS_E_BUSY, "%s inside a hook", call);
    }
    return 0;
}

/* Whatever was chosen with the hooks of before. */
static void changed(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        rbi_cluster_changed(bus, bus->clusters[i]);
        bus->clusters[i]->dispatch_stale |= rbi_hooks_bits(bus, bus->clusters[i]);
    }
}

/* ---- public calls --------------------------------------------------------------------------- */

static int check(struct ringbus *bus, const struct ringbus_hooks *hooks)
{
    const size_t length = hooks->name != NULL ? strnlen(hooks->name, RBI_HOOK_NAME_MAX + 1) : 0;
    if (length == 0 || length > RBI_HOOK_NAME_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "hooks need a name of 1 to %u bytes",
                        RBI_HOOK_NAME_MAX);
    }
    if (hooks->filter == NULL && hooks->route == NULL && hooks->choose == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "the hooks \"%s\" have no function", hooks->name);
    }
    if (bus->hooks != NULL && bus->hooks->count >= RINGBUS_HOOKS_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "%d hooks are there already", RINGBUS_HOOKS_MAX);
    }
    return rbi_hooks_idle(bus, "ringbus_hook()");
}

/* @param id  0: all targets */
static int target_id(struct ringbus *bus, const char *target, uint64_t *id)
{
    struct rbi_path_info info;
    *id = 0;
    if (target == NULL) {
        return 0;
    }
    if (rbi_path_parse(target, strnlen(target, RBI_PATH_MAX + 1), &info) != 0 ||
        info.elements != RBI_PATH_CLUSTER_ELEMENTS) {
        return rbi_fail(bus, RINGBUS_E_PATH, "hooks are for the path of a cluster, or for all");
    }
    *id = rbi_cluster_id(target, info.length);
    return 0;
}

static int add(struct ringbus *bus, const char *target, const struct ringbus_hooks *given)
{
    struct ringbus_hooks taken = {0};
    uint64_t id = 0;
    if (given == NULL || given->struct_size < offsetof(struct ringbus_hooks, destroy)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "no hooks, or struct_size is not set");
    }
    memcpy(&taken, given, rbi_min_u64(given->struct_size, sizeof taken));
    int r = check(bus, &taken);
    r = r == 0 ? target_id(bus, target, &id) : r;
    if (r != 0) {
        return r;
    }
    if (bus->hooks == NULL && (bus->hooks = calloc(1, sizeof *bus->hooks)) == NULL) {
        return rbi_fail_errno(bus, -ENOMEM, "hooks");
    }
    struct rbi_hook *hook = &bus->hooks->list[bus->hooks->count++];
    memset(hook, 0, sizeof *hook);
    memcpy(hook->name, taken.name, strlen(taken.name));
    hook->calls = taken;
    hook->calls.name = NULL; /* the caller's */
    hook->cluster = id;
    hook->number = ++bus->hooks->last_number;
    changed(bus);
    return hook->number;
}

int ringbus_hook(struct ringbus *bus, const char *target, const struct ringbus_hooks *hooks)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = add(bus, target, hooks);
        rbi_leave(bus);
    }
    return r;
}

static void destroy(struct ringbus *bus, const struct rbi_hook *hook)
{
    if (hook->calls.destroy != NULL) {
        const struct rbi_hooks_outer outer = rbi_hooks_begin(bus);
        hook->calls.destroy(hook->calls.user);
        rbi_hooks_end(bus, outer);
    }
}

static int take_off(struct ringbus *bus, int number)
{
    struct rbi_hooks *hooks = bus->hooks;
    const int r = rbi_hooks_idle(bus, "ringbus_unhook()");
    if (r != 0) {
        return r;
    }
    for (unsigned i = 0; hooks != NULL && i < hooks->count; i++) {
        if (hooks->list[i].number == number) {
            const struct rbi_hook hook = hooks->list[i];
            hooks->count--;
            memmove(&hooks->list[i], &hooks->list[i + 1],
                    (hooks->count - i) * sizeof hooks->list[0]);
            changed(bus);
            destroy(bus, &hook);
            return 0;
        }
    }
    return rbi_fail(bus, RINGBUS_E_ARGUMENT, "there are no hooks %d", number);
}

int ringbus_unhook(struct ringbus *bus, int hooks)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = take_off(bus, hooks);
        rbi_leave(bus);
    }
    return r;
}

void rbi_hooks_free(struct ringbus *bus)
{
    for (unsigned i = 0; bus->hooks != NULL && i < bus->hooks->count; i++) {
        destroy(bus, &bus->hooks->list[i]);
    }
    free(bus->hooks);
    bus->hooks = NULL;
}
