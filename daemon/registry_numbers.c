/* SPDX-License-Identifier: Apache-2.0 */
/* registry_numbers.c - numbers that the registry gives: lives, anonymous instances, slots. */
#include "daemon/registry_numbers.h"

#include "daemon/daemon.h"
#include "daemon/endpoint.h"
#include "daemon/publish.h"
#include "daemon/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/* More lives than a daemon sees: those that the last one gave lie so near each other. */
#define INCARNATION_RANGE (1U << 24)
#define BASE_TRIES        8U

static bool is_near(const struct rbi_registry *registry, uint32_t incarnation)
{
    return incarnation - registry->next_incarnation + INCARNATION_RANGE < 2 * INCARNATION_RANGE;
}

uint32_t rbi_registry_incarnation(struct rbi_registry *registry, uint32_t brought)
{
    if (!brought) {
        const uint32_t given = registry->next_incarnation++;
        if (registry->next_incarnation == 0) {
            registry->next_incarnation = 1;
        }
        return given;
    }
    /* Around it lie the lives that the last daemon gave, some of which died unseen: a new one of
     * ours with such a number would be taken for the dead by whoever had a link with it. */
    for (unsigned i = 0; i < BASE_TRIES && is_near(registry, brought); i++) {
        uint32_t base = 0;
        if (getrandom(&base, sizeof(base), 0) != (ssize_t)sizeof(base)) {
            break;
        }
        registry->next_incarnation = (base & 0x3fffffffU) + 1;
    }
    return brought;
}

uint32_t rbi_registry_anonymous(struct rbi_registry *registry)
{
    const uint32_t given = registry->next_anonymous;
    registry->next_anonymous = given == INT32_MAX ? 1 : given + 1;
    return given;
}

bool rbi_registry_has_anonymous(const struct rbi_registry *registry,
                                uint64_t cluster,
                                int32_t instance)
{
    RBI_LIST_EACH(node, spare, &registry->endpoints)
    {
        const struct rbi_endpoint *endpoint =
            RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (endpoint->instance == instance && endpoint->cluster_id == cluster) {
            return true;
        }
    }
    return false;
}

/** Room for giving back every slot ever given out, so that giving back cannot fail. */
static bool reserve_slots(struct rbi_registry *registry)
{
    if (registry->slot_end < registry->free_slot_capacity) {
        return true;
    }
    const uint32_t capacity = registry->free_slot_capacity ? registry->free_slot_capacity * 2 : 64;
    uint32_t *slots = realloc(registry->free_slots, capacity * sizeof(uint32_t));
    if (!slots) {
        return false;
    }
    registry->free_slots = slots;
    registry->free_slot_capacity = capacity;
    return true;
}

int rbi_registry_take_slot(struct rbi_daemon *daemon, uint32_t *slot)
{
    struct rbi_registry *registry = &daemon->registry;
    if (registry->free_slot_count) {
        *slot = registry->free_slots[--registry->free_slot_count];
        return 0;
    }
    if (!reserve_slots(registry)) {
        return -ENOMEM;
    }
    const int result = rbi_publish_slot(daemon, registry->slot_end);
    if (result == 0) {
        *slot = registry->slot_end++;
    }
    return result;
}

void rbi_registry_give_slot(struct rbi_registry *registry, uint32_t slot)
{
    RBI_ASSERT(registry->free_slot_count < registry->free_slot_capacity);
    registry->free_slots[registry->free_slot_count++] = slot;
}
