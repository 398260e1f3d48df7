/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_set.c - stage 4: sets, by TSeer's rules. It applies when both sides are in sets of one
 * name; else the instances stay as they are, and locality has its say. Whether an exact group has
 * members is asked of all that are known, those that take no work included: a group whose members
 * are all out does not spill, for it is there to be kept apart. That is STRICT; with PREFER a set
 * in which nobody is healthy says nothing.
 */
#include "bus/label.h"
#include "bus/route_stage.h"

static bool read_set(const struct rbi_route *route,
                     const struct rbi_route_entry *entry,
                     struct rbi_label_set *set)
{
    return entry->cluster == route->result->realm &&
           rbi_label_set_parse(rbi_route_instance(route, entry)->set, set);
}

struct members {
    bool same_name;
    bool same_group; /* exactly */
};

static struct members survey(const struct rbi_route *route, const struct rbi_label_set *own)
{
    struct members members = {false, false};
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        struct rbi_label_set set;
        if (read_set(route, entry, &set) && rbi_label_equal(set.name, own->name)) {
            members.same_name = true;
            members.same_group = members.same_group || (rbi_label_set_same_area(&set, own) &&
                                                        rbi_label_equal(set.group, own->group));
        }
    }
    return members;
}

static bool fits(const struct rbi_label_set *set, const struct rbi_label_set *own, bool same_group)
{
    if (!rbi_label_set_same_area(set, own)) {
        return false;
    }
    if (own->all_groups) {
        return true;
    }
    return same_group ? rbi_label_equal(set->group, own->group) : set->all_groups;
}

static bool
any_healthy(const struct rbi_route *route, const struct rbi_label_set *own, bool same_group)
{
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        struct rbi_label_set set;
        if (rbi_route_is_in(entry) && entry->healthy && read_set(route, entry, &set) &&
            fits(&set, own, same_group)) {
            return true;
        }
    }
    return false;
}

void rbi_route_set(struct rbi_route *route)
{
    const struct rbi_set_policy *policy = &route->in->policy->set;
    const struct rbi_route_cause cause = {.stage = RBI_ROUTE_SET,
                                          .reason = RBI_ROUTE_OTHER_SET,
                                          .rule = RBI_ROUTE_NO_RULE,
                                          .dry = policy->dry_run != 0};
    struct rbi_route_step *step = rbi_route_step(route, RBI_ROUTE_SET);
    struct rbi_label_set own;
    step->mode = (uint8_t)policy->mode;
    step->skipped = true;
    if (policy->mode == RBI_STAGE_OFF || !rbi_label_set_parse(route->in->caller->set, &own)) {
        return;
    }
    const struct members members = survey(route, &own);
    if (!members.same_name) {
        return;
    }
    step->skipped = false;
    if (policy->mode == RBI_STAGE_PREFER && !any_healthy(route, &own, members.same_group)) {
        step->fell_back = !cause.dry;
        return;
    }
    route->result->set_applies = !cause.dry;
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        struct rbi_label_set set;
        if (!read_set(route, entry, &set) || !fits(&set, &own, members.same_group)) {
            rbi_route_drop(entry, &cause);
        }
    }
}
