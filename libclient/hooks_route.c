/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/hooks_route.c - routers: asked for each message before the stages. */
#include "libclient/internal.h"

#include <string.h>

/* @return false: cluster->refusal */
static bool refuse(struct rbi_cluster *cluster, enum rbi_hook_refusal why, int error, unsigned at)
{
    cluster->refusal.hook = (uint8_t)why;
    cluster->refusal.error = error;
    cluster->refusal.rule = (uint8_t)at;
    return false;
}

/* A text of the router's own ends with its call. @return false: it is none for a message */
static bool keep_tag(struct rbi_routed *out, struct ringbus_routing *routing)
{
    const char *tag = routing->tag != NULL ? routing->tag : "";
    const size_t length = strnlen(tag, RINGBUS_TAG_MAX + 1);
    if (tag != out->tag) {
        if (length > 0 && !rbi_tag_valid(tag, length)) {
            return false;
        }
        memmove(out->tag, tag, length);
        out->tag[length] = '\0';
    }
    routing->tag = out->tag;
    return true;
}

/* Whom a router has named, of the target itself. */
static bool take_instance(struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          struct rbi_routed *out,
                          int32_t instance,
                          unsigned at)
{
    out->end = instance > 0 ? rbi_choice_end(cluster, instance) : NULL;
    if (out->end == NULL) {
        rbi_count(bus, RBI_COUNTER_bad_choice, 1);
        cluster->refusal.answer = instance;
        return refuse(cluster, RBI_HOOK_BAD, RINGBUS_E_NO_INSTANCE, at);
    }
    return true;
}

/* @return false: cluster->refusal */
static bool ask(struct ringbus *bus,
                struct rbi_cluster *cluster,
                struct ringbus_routing *routing,
                struct rbi_routed *out,
                unsigned at)
{
    const struct rbi_hook *hook = &bus->hooks->list[at];
    const struct rbi_hooks_outer outer = rbi_hooks_begin(bus);
    const int answer = hook->calls.route(hook->calls.user, routing);
    rbi_hooks_end(bus, outer);
    if (answer == RINGBUS_HOOK_REFUSE) {
        const bool known =
            routing->error < 0 && ringbus_error_kind(routing->error) != RINGBUS_ERROR_NONE;
        return refuse(cluster, RBI_HOOK_REFUSED, known ? routing->error : RINGBUS_E_NO_MATCH, at);
    }
    if (answer != RINGBUS_HOOK_PASS || !keep_tag(out, routing)) {
        rbi_count(bus, RBI_COUNTER_bad_choice, 1);
        cluster->refusal.answer = answer;
        return refuse(cluster, RBI_HOOK_BAD, RINGBUS_E_NO_INSTANCE, at);
    }
    return routing->instance == 0 || take_instance(bus, cluster, out, routing->instance, at);
}

bool rbi_hooks_route(struct ringbus *bus,
                     struct rbi_cluster *cluster,
                     const struct rbi_pick *pick,
                     struct rbi_routed *out)
{
    struct ringbus_routing routing = {
        .keyed = pick->keyed, .key = pick->key, .tag = pick->tag, .method = pick->method};
    memcpy(routing.labels, pick->labels, sizeof routing.labels);
    out->pick = *pick;
    out->end = NULL;
    out->tag[0] = '\0';
    (void)keep_tag(out, &routing);
    for (unsigned i = 0; bus->hooks != NULL && i < bus->hooks->count && out->end == NULL; i++) {
        const struct rbi_hook *hook = &bus->hooks->list[i];
        if (hook->calls.route != NULL && (hook->cluster == 0 || hook->cluster == cluster->id) &&
            !ask(bus, cluster, &routing, out, i)) {
            return false;
        }
    }
    out->pick.keyed = routing.keyed != 0;
    out->pick.key = routing.key;
    out->pick.tag = out->tag;
    out->pick.method = routing.method;
    memcpy(out->pick.labels, routing.labels, sizeof out->pick.labels);
    return true;
}
