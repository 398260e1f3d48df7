/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/hooks_filter.c - directory filters: asked where a choice is made, off the hot path. */
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* @return 1 + place of the first hook that leaves it out; 0: it stays */
static uint8_t ask(struct ringbus *bus, uint64_t target, const struct ringbus_candidate *candidate)
{
    for (unsigned i = 0; i < bus->hooks->count; i++) {
        const struct rbi_hook *hook = &bus->hooks->list[i];
        if (hook->calls.filter != NULL && (hook->cluster == 0 || hook->cluster == target) &&
            hook->calls.filter(hook->calls.user, candidate) == 0) {
            return (uint8_t)(i + 1);
        }
    }
    return 0;
}

static uint8_t ask_for(struct ringbus *bus,
                       const struct rbi_filtering *filtering,
                       const struct rbi_directory_instance *instance)
{
    char path[RBI_PATH_MAX + RBI_PATH_ELEMENT_MAX + 2];
    (void)snprintf(path, sizeof path, "%s/%s", filtering->path, instance->name);
    const struct ringbus_candidate candidate = {
        .addr = {.cluster = filtering->cluster,
                 .instance = instance->instance,
                 .incarnation = instance->incarnation},
        .path = path,
        .set = instance->set,
        .idc = instance->idc,
        .tags = instance->tags,
        .weight = instance->weight,
        .healthy = instance->health == RBI_HEALTH_OK || instance->health == RBI_HEALTH_RAMP ? 1 : 0,
    };
    return ask(bus, filtering->target, &candidate);
}

static bool has_filters(const struct ringbus *bus, uint64_t target)
{
    for (unsigned i = 0; bus->hooks != NULL && i < bus->hooks->count; i++) {
        const struct rbi_hook *hook = &bus->hooks->list[i];
        if (hook->calls.filter != NULL && (hook->cluster == 0 || hook->cluster == target)) {
            return true;
        }
    }
    return false;
}

uint8_t *rbi_hooks_filter(struct ringbus *bus, const struct rbi_filtering *filtering, bool *failed)
{
    *failed = false;
    if (!has_filters(bus, filtering->target)) {
        return NULL;
    }
    uint8_t *out = calloc(filtering->count + 1U, sizeof *out);
    if (out == NULL) {
        *failed = true;
        return NULL;
    }
    const struct rbi_hooks_outer outer = rbi_hooks_begin(bus);
    for (unsigned i = 0; i < filtering->count; i++) {
        out[i] = ask_for(bus, filtering, &filtering->instances[i]);
    }
    rbi_hooks_end(bus, outer);
    return out;
}
