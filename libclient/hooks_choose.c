/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/hooks_choose.c - choosers: what they are offered, and what becomes of their answer.
 * Whatever it is, a message goes to one of the offered, or to nobody.
 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

struct rbi_offer_texts {
    char set[RBI_DIRECTORY_LABEL_MAX + 1];
    char idc[RBI_DIRECTORY_LABEL_MAX + 1];
    char tags[RBI_DIRECTORY_LABEL_MAX + 1];
};

/* ---- the offer ------------------------------------------------------------------------------ */

void rbi_offer_free(struct rbi_offer *offer)
{
    free(offer->candidates);
    free(offer->ends);
    free(offer->texts);
    memset(offer, 0, sizeof *offer);
}

bool rbi_offer_begin(struct rbi_offer *offer, unsigned count)
{
    offer->count = 0;
    if (count <= offer->room) {
        return true;
    }
    rbi_offer_free(offer);
    offer->candidates = calloc(count, sizeof *offer->candidates);
    offer->ends = calloc(count, sizeof(struct rbi_end *));
    offer->texts = calloc(count, sizeof *offer->texts);
    if (offer->candidates == NULL || offer->ends == NULL || offer->texts == NULL) {
        rbi_offer_free(offer);
        return false;
    }
    offer->room = count;
    return true;
}

void rbi_offer_add(struct rbi_offer *offer,
                   struct rbi_end *end,
                   const struct rbi_directory_instance *instance,
                   const struct rbi_route_entry *entry)
{
    RBI_ASSERT(offer->count < offer->room);
    struct rbi_offer_texts *texts = &offer->texts[offer->count];
    memcpy(texts->set, instance->set, sizeof texts->set);
    memcpy(texts->idc, instance->idc, sizeof texts->idc);
    memcpy(texts->tags, instance->tags, sizeof texts->tags);
    offer->ends[offer->count] = end;
    offer->candidates[offer->count++] = (struct ringbus_candidate){
        .addr = rbi_addr(&end->peer),
        .path = end->path,
        .set = texts->set,
        .idc = texts->idc,
        .tags = texts->tags,
        .weight = entry->weight,
        .healthy = entry->healthy,
    };
}

/* What changes without a new choice. */
static void refresh(struct rbi_offer *offer)
{
    for (unsigned i = 0; i < offer->count; i++) {
        const struct rbi_end *end = offer->ends[i];
        const rbi_au64 *load = rbi_turns_load(end);
        offer->candidates[i].waiting = rbi_load_rlx(&load[RBI_LEAST_DEPTH]);
        offer->candidates[i].busy_ns = rbi_load_rlx(&load[RBI_LEAST_EWMA]);
        offer->candidates[i].suspect = end->fsm.suspect || end->avoided ? 1 : 0;
    }
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void refuse(struct rbi_cluster *cluster, enum rbi_hook_refusal why, int error)
{
    cluster->refusal.hook = (uint8_t)why;
    cluster->refusal.error = error;
}

/* Nobody else gets it instead: who wrote the chooser is to see that it is wrong. */
static struct rbi_end *bad_choice(struct ringbus *bus, struct rbi_cluster *cluster, int answer)
{
    rbi_count(bus, RBI_COUNTER_bad_choice, 1);
    refuse(cluster, RBI_HOOK_BAD, RINGBUS_E_NO_INSTANCE);
    cluster->refusal.answer = answer;
    return NULL;
}

/* The first chooser's answer that is not to pass. @return its place; the number of hooks: none */
static unsigned ask(struct ringbus *bus,
                    uint64_t target,
                    const struct ringbus_routing *routing,
                    const struct rbi_offer *offer,
                    int *answer)
{
    const struct rbi_hooks *hooks = bus->hooks;
    unsigned at = 0;
    const struct rbi_hooks_outer outer = rbi_hooks_begin(bus);
    for (; at < hooks->count; at++) {
        const struct rbi_hook *hook = &hooks->list[at];
        if (hook->calls.choose == NULL || (hook->cluster != 0 && hook->cluster != target)) {
            continue;
        }
        *answer = hook->calls.choose(hook->calls.user, routing, offer->candidates, offer->count);
        if (*answer != RINGBUS_HOOK_PASS) {
            break;
        }
    }
    rbi_hooks_end(bus, outer);
    return at;
}

/* Those who were tried already go to the end, where the chooser does not see them. */
static void hide_tried(struct rbi_offer *offer, const struct rbi_pick *pick, unsigned *count)
{
    *count = offer->count;
    for (unsigned i = 0; pick->tried_count > 0 && i < offer->count;) {
        if (!rbi_pick_tried(pick, offer->ends[i])) {
            i++;
            continue;
        }
        const unsigned last = --offer->count;
        struct rbi_end *end = offer->ends[i];
        const struct ringbus_candidate candidate = offer->candidates[i];
        offer->ends[i] = offer->ends[last];
        offer->candidates[i] = offer->candidates[last];
        offer->ends[last] = end;
        offer->candidates[last] = candidate;
    }
}

static struct rbi_end *choose(struct ringbus *bus,
                              struct rbi_cluster *cluster,
                              struct rbi_offer *offer,
                              const struct rbi_pick *pick)
{
    struct ringbus_routing routing = {.keyed = pick->keyed,
                                      .key = pick->key,
                                      .tag = pick->tag != NULL ? pick->tag : "",
                                      .method = pick->method};
    int answer = RINGBUS_HOOK_PASS;
    memcpy(routing.labels, pick->labels, sizeof routing.labels);
    refresh(offer);
    const unsigned at = bus->hooks != NULL ? ask(bus, cluster->id, &routing, offer, &answer) : 0;
    cluster->refusal.rule = (uint8_t)at;
    if (bus->hooks == NULL || at == bus->hooks->count) {
        refuse(cluster, RBI_HOOK_NOBODY, RINGBUS_E_NO_MATCH);
        return NULL;
    }
    if (answer == RINGBUS_HOOK_REFUSE) {
        refuse(cluster, RBI_HOOK_REFUSED, RINGBUS_E_NO_MATCH);
        return NULL;
    }
    if (answer < 0 || (unsigned)answer >= offer->count) {
        return bad_choice(bus, cluster, answer);
    }
    /* It may have ended, or begun to leave, while the chooser thought. */
    struct rbi_end *end = offer->ends[answer];
    return end->phase == RBI_END_LINKED && end->usable && !end->drain.peer
               ? end
               : bad_choice(bus, cluster, answer);
}

struct rbi_end *rbi_hooks_choose(struct ringbus *bus,
                                 struct rbi_cluster *cluster,
                                 struct rbi_choice *choice,
                                 const struct rbi_pick *pick)
{
    struct rbi_offer *offer = &choice->offer;
    unsigned count = 0;
    hide_tried(offer, pick, &count);
    struct rbi_end *end = NULL;
    if (offer->count > 0) {
        end = choose(bus, cluster, offer, pick);
    } else {
        refuse(cluster, RBI_HOOK_NONE, RINGBUS_E_NO_INSTANCE); /* all were tried */
    }
    choice->stale = choice->stale || offer->count != count; /* it is offered in order again */
    offer->count = count;
    return end;
}
