/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - what ringbus guarantees, checked against what really happened. The numbers are
 * those of docs/guarantees.md:
 *
 *   1 order of each pair of endpoints
 *   2 exactly once to a receiver that lives
 *   3 what a dead receiver had not consumed comes back, and "not seen" is the truth
 *   4 what a dead sender had committed is delivered, before its DOWN
 *   5 neither the daemon's death nor a pause of somebody else ends a link
 *   6 nobody waits for ever, every message has an end
 *   7 nothing is left behind
 *   8 a key goes to its owner, which is waited for when it died (keys.c) and knows it (slots.c)
 *  11 who drains is dealt nothing
 *
 * What may go on to another when its receiver ended is checked in again.c.
 */
#include "tests/sim/network/world.h"

#include <stdarg.h>
#include <stdio.h>

void violation(const struct life *life, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sim_log("VIOLATION %s", text);
    if (!world.failed) {
        world.failed = true;
        (void)snprintf(world.failure, sizeof world.failure, "%.3f ms, %s %u: %s",
                       (double)(sim.now_ns - SIM_S) / (double)SIM_MS,
                       life != NULL ? life->slot->path : "-",
                       life != NULL ? life->addr.incarnation : 0, text);
    }
}

struct life *life_of(const struct ringbus_addr *addr)
{
    for (unsigned i = world.life_count; i-- > 0;) {
        struct life *life = &world.lives[i];
        if (life->addr.incarnation == addr->incarnation && addr->incarnation != 0 &&
            life->addr.instance == addr->instance && life->addr.cluster == addr->cluster) {
            return life;
        }
    }
    return NULL;
}

static struct copy *copy_of(uint32_t message, const struct life *to)
{
    for (uint32_t i = world.copy_count; i-- > 0;) {
        if (world.copies[i].message == message && world.copies[i].to == to) {
            return &world.copies[i];
        }
    }
    return NULL;
}

struct copy *copy_make(uint32_t message, struct life *to)
{
    struct copy *copy = copy_of(message, to);
    if (copy == NULL) {
        copy = &world.copies[world.copy_count++];
        const struct life *from = world.messages[message].from;
        *copy =
            (struct copy){.message = message, .to = to, .ups = world.views[from->idx][to->idx].ups};
    }
    return copy;
}

static uint32_t message_of(const struct ringbus_message *message)
{
    uint32_t head[2];
    memcpy(head, message->data, sizeof head);
    return head[1];
}

/* ---- deliveries -------------------------------------------------------------------------- */

void oracle_delivered(struct life *to, const struct ringbus_message *message)
{
    const uint32_t idx = message_of(message);
    struct message *sent = &world.messages[idx];
    struct life *from = life_of(&message->from);
    struct view *view = from != NULL ? &world.views[to->idx][from->idx] : NULL;
    sim_log("delivered %u from %s", idx, message->from_path);
    world.figures.delivered++;
    if (from == NULL || from != sent->from) {
        violation(to, "message %u came from another than its sender", idx);
        return;
    }
    if (sent->kind != message->kind || sent->size != message->size) {
        violation(to, "message %u changed on its way", idx);
    }
    /* What one sends oneself by name needs no target. */
    if (!view->up && to != from) {
        violation(to, "message %u came on a link that was not up (4)", idx);
    }
    struct copy *copy = copy_of(idx, to);
    const bool again = copy == NULL && sent->fate == FATE_SENT && again_may_be(sent);
    if (!again) { /* what went on comes late */
        if (idx <= view->last_message) {
            violation(to, "message %u came after %u (%s)", idx, view->last_message,
                      idx == view->last_message ? "2, twice" : "1, order");
        }
        view->last_message = idx;
    }
    /* Who was not yet linked then, or did not target it, is told with its READY. */
    if (sent->any && to->drained && idx >= to->drained_from && view->up_ns < to->drained_ns &&
        !from->untargets) {
        violation(to, "message %u was dealt to it, and all knew that it drains (11)", idx);
    }
    if (sent->fate == FATE_REFUSED) {
        violation(to, "message %u was refused, and came", idx);
    }
    if (sent->kind == RINGBUS_KIND_REQUEST) {
        if (sent->not_sent) {
            violation(to, "request %u is handled, its sender was told NOT_SENT (3)", idx);
        }
        sent->handled = true;
    }
    if (sent->kind == RINGBUS_KIND_REPLY) {
        return;
    }
    if (copy == NULL && sent->fate == FATE_SENT && !again) {
        violation(to, "message %u was sent to another", idx);
        return;
    }
    copy = copy != NULL ? copy : copy_make(idx, to);
    if (copy->delivered) {
        violation(to, "message %u came twice (2)", idx);
    }
    if (copy->given_back && !copy->maybe_seen) {
        violation(to, "message %u came after it was given back as not seen (3)", idx);
    }
    copy->delivered = true;
    if (again_may_be(sent)) {
        again_delivered(to, idx);
    }
    slots_delivered(to, message);
}

static void given_back(struct life *at, const struct ringbus_event *event)
{
    if (event->message->kind == RINGBUS_KIND_REPLY) {
        return; /* what becomes of it shows in the request's outcome */
    }
    const uint32_t idx = message_of(event->message);
    struct life *to = life_of(&event->addr);
    sim_log("given back: %u, %s", idx, event->maybe_seen != 0 ? "maybe seen" : "not seen");
    world.figures.given_back++;
    world.figures.maybe_seen += event->maybe_seen != 0;
    if (idx == 0 || idx > world.message_count || world.messages[idx].from != at) {
        violation(at, "given back: a message that it did not send");
        return;
    }
    struct copy *copy = copy_of(idx, to);
    if (copy == NULL && to != NULL && again_may_be(&world.messages[idx])) {
        copy = copy_make(idx, to); /* it went on to that one */
    }
    if (copy == NULL) {
        violation(at, "given back: message %u, which it did not send there", idx);
        return;
    }
    if (copy->given_back) {
        violation(at, "message %u given back twice (3)", idx);
    }
    if (copy->delivered && event->maybe_seen == 0) {
        violation(at, "message %u given back as not seen, its handler ran (3)", idx);
    }
    copy->given_back = true;
    copy->maybe_seen = event->maybe_seen != 0;
    if (again_may_be(&world.messages[idx])) {
        again_given_back(at, copy);
    }
}

void oracle_result(struct life *at, uint32_t request, const struct ringbus_result *result)
{
    struct message *message = &world.messages[request];
    sim_log("request %u ends: outcome %d, %s", request, (int)result->outcome,
            ringbus_error_name(result->error));
    if (message->from != at || message->ended) {
        violation(at, "request %u ends a second time (6)", request);
    }
    message->ended = true;
    switch (result->outcome) {
    case RINGBUS_REPLIED:
        world.figures.replied++;
        if (world.messages[message_of(result->message)].about != request) {
            violation(at, "request %u got the reply of another", request);
        }
        if (!message->handled) {
            violation(at, "request %u was answered, not handled", request);
        }
        break;
    case RINGBUS_FAILED:
        if (!message->handled) {
            violation(at, "request %u failed in a handler that did not run", request);
        }
        break;
    case RINGBUS_UNKNOWN:
        world.figures.unknown++;
        break;
    case RINGBUS_NOT_SENT:
        world.figures.not_sent++;
        world.figures.not_owner += result->error == RINGBUS_E_NOT_OWNER;
        message->not_sent = true;
        if (message->handled) {
            violation(at, "request %u NOT_SENT, its handler ran (3)", request);
        }
        break;
    }
}

/* ---- links ------------------------------------------------------------------------------- */

/** Whether this process was stopped so lately, or for so long, that others may have judged it. */
static bool was_stopped(const struct life *life)
{
    const struct sim_process *process = life->process;
    /* Until it runs again, though its pause may be over. */
    return process->paused_till_ns != 0 ||
           (process->stopped_ns != 0 && process->stopped_ns + 20 * SIM_S > sim.now_ns);
}

static void down(struct life *at, const struct life *of, const struct ringbus_event *event)
{
    if (of == NULL) {
        violation(at, "DOWN of a life that never was: %s", event->path);
        return;
    }
    struct view *view = &world.views[at->idx][of->idx];
    world.figures.downs++;
    if (!view->up) {
        violation(at, "DOWN of %s without UP (5)", event->path);
    }
    view->up = false;
    view->suspect = false;
    view->gave_up |= !of->ended;
    view->ended_here |= event->reason == RINGBUS_REASON_UNTARGETED && at->untargets;
    if (of->ended || of->leaving) {
        return;
    }
    bool right = false;
    switch (event->reason) {
    case RINGBUS_REASON_SILENT:
        /* A link that the other ended its use of lapses, when ours has ended, too. */
        right = was_stopped(of) || of->untargets;
        break;
    case RINGBUS_REASON_GIVEN_UP:
        right = was_stopped(at) || at->untargets;
        break;
    case RINGBUS_REASON_UNTARGETED:
        right = of->untargets || at->untargets;
        break;
    case RINGBUS_REASON_CRASHED:
    case RINGBUS_REASON_LEFT:
    case RINGBUS_REASON_REPLACED:
        right = of->severed;
        break;
    case RINGBUS_REASON_NONE:
    case RINGBUS_REASON_BAD_PEER:
    case RINGBUS_REASON_REFUSED:
    case RINGBUS_REASON_DENIED:
    case RINGBUS_REASON_NO_RESOURCES:
    case RINGBUS_REASON_UNREACHABLE: /* one host */
        break;
    }
    if (!right) {
        violation(at, "DOWN of %s %u, reason %d, and it lives (5)", event->path,
                  event->addr.incarnation, (int)event->reason);
    }
}

/** Whether a link with any life of that slot is up. */
static bool other_life_up(const struct life *at, const struct life *of)
{
    for (unsigned i = 0; i < world.life_count; i++) {
        if (world.lives[i].slot == of->slot && world.views[at->idx][i].up) {
            return true;
        }
    }
    return false;
}

static void ready(struct life *at, const struct life *of, const struct ringbus_event *event)
{
    world.figures.links++;
    if (of == NULL) {
        violation(at, "READY of a life that never was: %s", event->path);
        return;
    }
    if (other_life_up(at, of)) {
        violation(at, "READY of %s before the DOWN of its last link (5)", event->path);
    }
    world.views[at->idx][of->idx].up = true;
    world.views[at->idx][of->idx].ups++;
    world.views[at->idx][of->idx].up_ns = sim.now_ns;
}

/** Notes who is there, by what events say. */
static void presence(const struct life *at, const struct ringbus_event *event)
{
    for (unsigned s = 0; s < world.slot_count; s++) {
        uint32_t *known = &world.known[at->idx][s];
        if (world.slots[s].addr.cluster != event->addr.cluster ||
            world.slots[s].addr.instance != event->addr.instance) {
            continue;
        }
        if (event->type == RINGBUS_EVENT_ADDED) {
            *known = event->addr.incarnation;
        } else if (event->type == RINGBUS_EVENT_REMOVED && *known == event->addr.incarnation) {
            *known = 0;
        }
    }
}

/** Whether a silent peer is told of once, and its sign of life once. */
static void suspicion(struct life *at, const struct life *of, const struct ringbus_event *event)
{
    struct view *view = &world.views[at->idx][of->idx];
    if (event->type == RINGBUS_EVENT_SUSPECT || event->type == RINGBUS_EVENT_ALIVE) {
        const bool suspect = event->type == RINGBUS_EVENT_SUSPECT;
        if (!view->up || view->suspect == suspect) {
            violation(at, "%s of %s out of turn", suspect ? "SUSPECT" : "ALIVE", event->path);
        }
        view->suspect = suspect;
    }
}

/** Nobody is shielded where the policy says so. */
static void health(struct life *at, const struct ringbus_event *event)
{
    world.figures.shielded += event->type == RINGBUS_EVENT_SHIELDED;
    if (!world.policy.shields) {
        violation(at, "%s is told to be shielded, or not, and nobody may be", event->path);
    }
}

void oracle_event(struct life *at, const struct ringbus_event *event)
{
    static const char *const names[] = {
        "?",       "READY",  "DOWN",        "UNDELIVERED", "ADDED",       "UPDATED",
        "REMOVED", "RESYNC", "DAEMON_LOST", "DAEMON_BACK", "LINK_FAILED", "SUSPECT",
        "ALIVE",   "DRAIN",  "UNDRAIN",     "GAINED",      "LOST",        "?",
        "?",       "?",      "SHIELDED",    "UNSHIELDED",  "PANIC",       "PANIC_OVER"};
    const unsigned type = (unsigned)event->type;
    const struct life *of = life_of(&event->addr);
    sim_log("event %s %s %u reason %d error %d",
            type < sizeof names / sizeof names[0] ? names[type] : "?", event->path,
            event->addr.incarnation, (int)event->reason, event->error);
    presence(at, event);
    if (of != NULL) {
        suspicion(at, of, event);
    }
    if (event->type == RINGBUS_EVENT_READY) {
        ready(at, of, event);
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        down(at, of, event);
    } else if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        given_back(at, event);
    } else if (event->type == RINGBUS_EVENT_SLOTS_GAINED ||
               event->type == RINGBUS_EVENT_SLOTS_LOST) {
        slots_event(at, event);
    } else if (event->type >= RINGBUS_EVENT_SHIELDED) {
        health(at, event);
    }
}

/* ---- rest --------------------------------------------------------------------------------- */

static bool lives(const struct life *life)
{
    return !life->ended && !life->killed;
}

void oracle_idle(void)
{
    while (world.copies_settled < world.copy_count) {
        const struct copy *copy = &world.copies[world.copies_settled];
        if (!copy->delivered && !copy->given_back && lives(copy->to) &&
            lives(world.messages[copy->message].from)) {
            break;
        }
        world.copies_settled++;
    }
    for (uint32_t i = world.copies_settled; i < world.copy_count; i++) {
        const struct copy *copy = &world.copies[i];
        const struct message *message = &world.messages[copy->message];
        const struct life *to = copy->to;
        if (copy->delivered || copy->given_back || !lives(to) || !to->waiting || to->leave ||
            world.views[message->from->idx][to->idx].ups != copy->ups || message->ended ||
            sim_process_is_paused(to->process) || message->more || !lives(message->from) ||
            !world.views[to->idx][message->from->idx].up ||
            !world.views[message->from->idx][to->idx].up ||
            sim_process_is_paused(message->from->process) ||
            (message->keyed && to->slot->follows == RINGBUS_SLOTS_REFUSE)) { /* perhaps refused */
            continue;
        }
        violation(to, "sleeps, and message %u lies in its lane (6)", copy->message);
        return;
    }
}

static const char *missing(const char *who, const char *what, const char *whom)
{
    static char text[300];
    (void)snprintf(text, sizeof text, "%s %s %s", who, what, whom);
    return text;
}

/** Whether @p life is to be linked to the process of @p slot. */
static bool wants(const struct life *life, const struct slot *slot)
{
    const unsigned idx = (unsigned)(slot - world.slots);
    if ((life->targets_slots >> idx & 1) != 0) {
        return true;
    }
    for (unsigned c = 0; c < world.cluster_count; c++) {
        if ((life->targets_clusters >> c & 1) != 0 &&
            world.clusters[c].cluster == slot->addr.cluster) {
            return true;
        }
    }
    return false;
}

static const char *linked(const struct life *life)
{
    for (unsigned s = 0; s < world.slot_count; s++) {
        const struct slot *slot = &world.slots[s];
        if (slot->life != NULL && wants(life, slot) &&
            !world.views[life->idx][slot->life->idx].up) {
            return missing(life->slot->path, "(6) has no link to", slot->path);
        }
    }
    for (unsigned i = 0; i < world.life_count; i++) {
        if (world.lives[i].ended && world.views[life->idx][i].up) {
            return missing(life->slot->path, "(6) keeps its link to a dead",
                           world.lives[i].slot->path);
        }
    }
    return NULL;
}

/** What events have told of its targets against who lives. */
static const char *heard(const struct life *life)
{
    for (unsigned s = 0; s < world.slot_count && !life->untargets; s++) {
        const struct slot *slot = &world.slots[s];
        const uint32_t there = slot->life != NULL ? slot->life->addr.incarnation : 0;
        if (wants(life, slot) && world.known[life->idx][s] != there) {
            return missing(life->slot->path, "(6) has not heard of all that happened to",
                           slot->path);
        }
    }
    return NULL;
}

/** What the directory says against who lives. */
static const char *knows(struct life *life)
{
    for (unsigned c = 0; c < world.cluster_count; c++) {
        struct ringbus_instance seen[SLOTS_MAX * 2];
        const int count = ringbus_instances(life->bus, world.cluster_paths[c], seen, SLOTS_MAX * 2);
        int right = 0;
        int all = 0;
        for (unsigned s = 0; s < world.slot_count; s++) {
            const struct slot *slot = &world.slots[s];
            if (slot->life == NULL || slot->addr.cluster != world.clusters[c].cluster) {
                continue;
            }
            all++;
            for (int i = 0; i < count && i < (int)(SLOTS_MAX * 2); i++) {
                right += seen[i].addr.instance == slot->addr.instance &&
                         seen[i].addr.incarnation == slot->life->addr.incarnation;
            }
        }
        if (right != all || (count > 0 && count != all)) {
            return missing(life->slot->path, "(6) sees others than there are in",
                           world.cluster_paths[c]);
        }
        const char *wrong = slots_settled(c);
        if (wrong != NULL) {
            return wrong;
        }
        if (keys_wait(life, world.clusters[c].cluster)) {
            return missing(life->slot->path, "(6) still sees slots wait in",
                           world.cluster_paths[c]);
        }
    }
    return NULL;
}

static const char *settled(struct life *life)
{
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    if (life->kept_count != 0 || life->deferred_count != 0) {
        return missing(life->slot->path, "still works", "");
    }
    if (ringbus_stats(life->bus, &stats) != 0 || stats.pool_used != 0) {
        return missing(life->slot->path, "(7) misses chunks of its pool", "");
    }
    return NULL;
}

/** Whether each message has its end: delivered, or given back. */
static const char *accounted(void)
{
    static char text[200];
    for (uint32_t i = 0; i < world.copy_count; i++) {
        const struct copy *copy = &world.copies[i];
        const struct message *message = &world.messages[copy->message];
        const struct life *from = message->from;
        const struct life *to = copy->to;
        if (copy->delivered || copy->given_back || message->ended ||
            (again_may_be(message) && again_accounted(copy->message))) {
            continue; /* how a request ended was checked then */
        }
        if (message->kind == RINGBUS_KIND_REQUEST && message->keyed && !lives(from) &&
            to->slot->follows == RINGBUS_SLOTS_REFUSE) {
            continue; /* perhaps it was another's, and nobody was left to be told */
        }
        if (again_may_be(message) && !lives(from)) {
            continue; /* perhaps taken back from one that was stopped, to go on: and it died then */
        }
        if (lives(to) && !world.views[to->idx][from->idx].gave_up) {
            (void)snprintf(text, sizeof text, "message %u of %s %u never came to %s (%d)",
                           copy->message, from->slot->path, from->addr.incarnation, to->slot->path,
                           lives(from) ? 2 : 4);
            return text;
        }
        if (lives(from) && !world.views[from->idx][to->idx].ended_here) {
            (void)snprintf(text, sizeof text,
                           "message %u of %s was not delivered to %s %u, nor given back (3)",
                           copy->message, from->slot->path, to->slot->path, to->addr.incarnation);
            return text;
        }
    }
    return NULL;
}

const char *oracle_converged(void)
{
    for (unsigned s = 0; s < world.slot_count; s++) {
        struct life *life = world.slots[s].life;
        if (life == NULL) {
            continue;
        }
        if (life->bus == NULL) {
            return missing(life->slot->path, "(6) is not on the bus", "");
        }
        /* Handles are asked between two calls of their owner. */
        sim.current = life->process;
        const unsigned preempt = sim.preempt_one_in;
        sim.preempt_one_in = 0;
        const char *what = linked(life);
        what = what != NULL ? what : heard(life);
        what = what != NULL ? what : knows(life);
        what = what != NULL ? what : settled(life);
        sim.preempt_one_in = preempt;
        sim.current = NULL;
        if (what != NULL) {
            return what;
        }
    }
    for (uint32_t i = 1; i <= world.message_count; i++) {
        const struct message *message = &world.messages[i];
        if (message->kind == RINGBUS_KIND_REQUEST && message->fate == FATE_SENT &&
            !message->ended && lives(message->from)) {
            return missing(message->from->slot->path, "(6) waits for the end of a request", "");
        }
    }
    return accounted();
}
