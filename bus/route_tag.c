/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_tag.c - stage 5: canaries. A tagged message goes to healthy instances of its tag, else
 * (PREFER) to untagged ones, else to nobody; never to another tag's. An untagged one goes to
 * untagged instances, even when only tagged ones are left.
 */
#include "bus/label.h"
#include "bus/route_stage.h"

#include <string.h>

/* What an instance is to a message with this tag. */
enum kind { KIND_OWN, KIND_UNTAGGED, KIND_OTHER };

static enum kind kind_of(const struct rbi_directory_instance *instance, const char *tag)
{
    /* Only a message that tests has come past the first stage with a staged one. */
    const bool staged = (instance->override & RBI_OVERRIDE_STAGED) != 0;
    if (staged || (tag[0] != '\0' && rbi_label_has_tag(instance->tags, tag))) {
        return KIND_OWN;
    }
    return rbi_label_tagged(instance->tags) ? KIND_OTHER : KIND_UNTAGGED;
}

struct survey {
    bool own_any;
    bool own_healthy;
    bool untagged_healthy;
};

static struct survey look(const struct rbi_route *route, const char *tag)
{
    struct survey survey = {false, false, false};
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (!rbi_route_is_in(entry)) {
            continue;
        }
        const enum kind kind = kind_of(rbi_route_instance(route, entry), tag);
        survey.own_any = survey.own_any || kind == KIND_OWN;
        survey.own_healthy = survey.own_healthy || (kind == KIND_OWN && entry->healthy);
        survey.untagged_healthy =
            survey.untagged_healthy || (kind == KIND_UNTAGGED && entry->healthy);
    }
    return survey;
}

/* Which kind takes it. Nobody healthy: whoever is there, and health, or panic, decides. */
static enum kind taker(const struct survey *survey, bool strict)
{
    if (strict || survey->own_healthy) {
        return KIND_OWN;
    }
    return survey->untagged_healthy || !survey->own_any ? KIND_UNTAGGED : KIND_OWN;
}

static void tagged(struct rbi_route *route, const char *tag, unsigned canary, bool dry)
{
    struct rbi_route_cause cause = {.stage = RBI_ROUTE_TAG, .rule = canary, .dry = dry};
    const struct survey survey = look(route, tag);
    const enum kind takes = taker(&survey, route->in->policy->tags.mode == RBI_STAGE_STRICT);
    struct rbi_route_step *step = rbi_route_step(route, RBI_ROUTE_TAG);
    step->fell_back = step->fell_back || (!dry && takes != KIND_OWN);
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        const enum kind kind = kind_of(rbi_route_instance(route, entry), tag);
        if (kind != takes) {
            cause.reason = kind == KIND_OWN ? RBI_ROUTE_SICK_TAG : RBI_ROUTE_OTHER_TAG;
            rbi_route_drop(entry, &cause);
        }
    }
}

static void untagged(struct rbi_route *route, bool dry)
{
    const struct rbi_route_cause cause = {
        .stage = RBI_ROUTE_TAG, .reason = RBI_ROUTE_TAGGED, .rule = RBI_ROUTE_NO_RULE, .dry = dry};
    const struct survey survey = look(route, "");
    if (route->in->policy->tags.untagged_leaks != 0 && !survey.untagged_healthy) {
        rbi_route_step(route, RBI_ROUTE_TAG)->fell_back = !dry;
        return;
    }
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        const struct rbi_directory_instance *instance = rbi_route_instance(route, entry);
        if (rbi_label_tagged(instance->tags) && !rbi_route_opened(route, instance)) {
            rbi_route_drop(entry, &cause);
        }
    }
}

/* The canary whose share the message's key is in; NULL: none, or it is tagged itself. */
static const struct rbi_canary *canary_of(const struct rbi_route_input *input)
{
    const struct rbi_tag_policy *policy = &input->policy->tags;
    const uint32_t canary = input->message->canary;
    return input->message->tag[0] == '\0' && canary > 0 && canary <= policy->count
               ? &policy->canaries[canary - 1]
               : NULL;
}

const char *rbi_route_tag_of(const struct rbi_route_input *input)
{
    const struct rbi_tag_policy *policy = &input->policy->tags;
    const struct rbi_canary *canary = canary_of(input);
    const bool counts = canary != NULL && canary->dry_run == 0 && policy->dry_run == 0 &&
                        policy->mode != RBI_STAGE_OFF;
    return counts ? canary->tag : input->message->tag;
}

void rbi_route_tag(struct rbi_route *route)
{
    const struct rbi_tag_policy *policy = &route->in->policy->tags;
    const struct rbi_canary *canary = canary_of(route->in);
    const unsigned index =
        canary != NULL ? (unsigned)(canary - policy->canaries) : RBI_ROUTE_NO_RULE;
    const bool dry = policy->dry_run != 0;
    rbi_route_step(route, RBI_ROUTE_TAG)->mode = (uint8_t)policy->mode;
    if (policy->mode == RBI_STAGE_OFF) {
        rbi_route_step(route, RBI_ROUTE_TAG)->skipped = true;
        return;
    }
    if (canary != NULL && (dry || canary->dry_run != 0)) {
        tagged(route, canary->tag, index, true);
    }
    if (canary != NULL && dry) {
        return;
    }
    if (route->tag[0] != '\0') {
        tagged(route, route->tag, index, dry);
    } else {
        untagged(route, dry);
    }
}
