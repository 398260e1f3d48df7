/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/alarms.c - what the application knows of alarms below its prefixes. */
#include "bus/alarm.h"
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** One that fires, as the application was told. */
struct rbi_alarm_sight {
    bool seen; /* since the daemon has begun to name all */
    struct rbi_wire_alarm last;
};

static bool is_same(const struct rbi_text *a, const struct rbi_text *b)
{
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* Its place, or their number. */
static unsigned sight_find(const struct rbi_alarm_sights *sights,
                           const struct rbi_wire_alarm *alarm)
{
    unsigned at = 0;
    while (at < sights->count && !(is_same(&sights->all[at]->last.path, &alarm->path) &&
                                   is_same(&sights->all[at]->last.rule, &alarm->rule))) {
        at++;
    }
    return at;
}

static int sight_add(struct rbi_alarm_sights *sights, const struct rbi_wire_alarm *alarm)
{
    if (sights->count == sights->room) {
        const unsigned room = sights->room == 0 ? 4 : sights->room * 2;
        struct rbi_alarm_sight **all = realloc(sights->all, room * sizeof *all);
        if (all == NULL) {
            return -ENOMEM;
        }
        sights->all = all;
        sights->room = room;
    }
    struct rbi_alarm_sight *sight = malloc(sizeof *sight);
    if (sight == NULL) {
        return -ENOMEM;
    }
    *sight = (struct rbi_alarm_sight){.seen = true, .last = *alarm};
    sights->all[sights->count++] = sight;
    return 0;
}

static void sight_remove(struct rbi_alarm_sights *sights, unsigned at)
{
    free(sights->all[at]);
    sights->all[at] = sights->all[--sights->count];
}

/* ---- telling --------------------------------------------------------------------------------- */

static void
emit(struct ringbus *bus, enum ringbus_event_type type, const struct rbi_wire_alarm *from)
{
    struct rbi_queued_event *event =
        rbi_emit_simple(bus, type, NULL, from->path.bytes, RBI_REASON_NONE, 0);
    if (event == NULL) {
        return;
    }
    event->peer.cluster = rbi_cluster_id(from->path.bytes, from->path.length);
    event->alarm = calloc(1, sizeof *event->alarm);
    if (event->alarm == NULL) {
        /* Told all the same, as an event that was lost. */
        event->type = RINGBUS_EVENT_RESYNC;
        event->error = RINGBUS_E_NO_MEMORY;
        return;
    }
    memcpy(event->alarm->rule, from->rule.bytes, from->rule.length);
    event->alarm->alarm =
        (struct ringbus_alarm){.rule = event->alarm->rule,
                               .metric = rbi_alarm_metric_name(from->metric),
                               .below = from->below != 0,
                               .known = from->known != 0,
                               .value = (double)from->value / (double)RBI_ALARM_UNIT,
                               .threshold = (double)from->threshold / (double)RBI_ALARM_UNIT};
}

static void fires(struct ringbus *bus, const struct rbi_wire_alarm *alarm)
{
    const unsigned at = sight_find(&bus->alarms, alarm);
    if (at < bus->alarms.count) {
        bus->alarms.all[at]->seen = true;
    } else if (rbi_watched_path(bus, alarm->path.bytes, alarm->path.length)) {
        if (sight_add(&bus->alarms, alarm) < 0) {
            (void)rbi_fail_errno(bus, -ENOMEM, "an alarm below a watched prefix");
        }
        emit(bus, RINGBUS_EVENT_ALARM_FIRING, alarm);
    }
}

static void resolved(struct ringbus *bus, const struct rbi_wire_alarm *alarm)
{
    const unsigned at = sight_find(&bus->alarms, alarm);
    if (at < bus->alarms.count) {
        sight_remove(&bus->alarms, at);
        emit(bus, RINGBUS_EVENT_ALARM_RESOLVED, alarm);
    }
}

/* Of those at and below a prefix: all are to be named, or who was not is over. */
static void each_below(struct ringbus *bus, const struct rbi_text *prefix, bool end)
{
    for (unsigned i = bus->alarms.count; i-- > 0;) {
        struct rbi_alarm_sight *sight = bus->alarms.all[i];
        const struct rbi_text *path = &sight->last.path;
        if (!rbi_path_has_prefix(path->bytes, path->length, prefix->bytes, prefix->length)) {
            continue;
        }
        if (!end) {
            sight->seen = false;
        } else if (!sight->seen) {
            const struct rbi_wire_alarm last = sight->last;
            sight_remove(&bus->alarms, i);
            emit(bus, RINGBUS_EVENT_ALARM_RESOLVED, &last);
        }
    }
}

void rbi_alarm_sights_event(struct ringbus *bus, const struct rbi_wire_alarm *body)
{
    switch (body->what) {
    case RBI_ALARM_WHAT_FIRING:
        fires(bus, body);
        break;
    case RBI_ALARM_WHAT_RESOLVED:
        resolved(bus, body);
        break;
    case RBI_ALARM_WHAT_BEGIN:
    case RBI_ALARM_WHAT_END:
        each_below(bus, &body->path, body->what == RBI_ALARM_WHAT_END);
        break;
    default:
        break; /* of a later version */
    }
}

void rbi_alarm_sights_over(struct ringbus *bus)
{
    while (bus->alarms.count > 0) {
        const struct rbi_wire_alarm last = bus->alarms.all[bus->alarms.count - 1]->last;
        sight_remove(&bus->alarms, bus->alarms.count - 1);
        emit(bus, RINGBUS_EVENT_ALARM_RESOLVED, &last);
    }
}

void rbi_alarm_sights_unwatched(struct ringbus *bus)
{
    for (unsigned i = bus->alarms.count; i-- > 0;) {
        const struct rbi_text *path = &bus->alarms.all[i]->last.path;
        if (!rbi_watched_path(bus, path->bytes, path->length)) {
            sight_remove(&bus->alarms, i);
        }
    }
}

void rbi_alarm_sights_deinit(struct rbi_alarm_sights *sights)
{
    while (sights->count > 0) {
        sight_remove(sights, sights->count - 1);
    }
    free(sights->all);
    *sights = (struct rbi_alarm_sights){.all = NULL};
}
