/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/alarm_tell.c - who is told of alarms: the log, whoever watches the cluster, tools. */
#include "daemon/alarms.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

#include <inttypes.h>

#define NS_PER_MS UINT64_C(1000000)
/* Room for a value as rbi_alarm_format() writes it. */
#define VALUE_MAX 24U

static uint64_t since_ms(struct rbi_daemon *daemon, uint64_t at_ns)
{
    return at_ns ? (rbi_loop_now_ns(daemon->loop) - at_ns) / NS_PER_MS : 0;
}

static void alarm_log(struct rbi_daemon *daemon,
                      const struct rbi_alarm_entry *entry,
                      const struct rbi_alarm_rule *rule,
                      enum rbi_alarm_change change)
{
    char value[VALUE_MAX] = "unknown";
    char threshold[VALUE_MAX];
    rbi_alarm_format(rule->threshold, threshold, sizeof(threshold));
    if (entry->alarm.known) {
        rbi_alarm_format(entry->alarm.value, value, sizeof(value));
    }
    if (change == RBI_ALARM_FIRED) {
        rbi_log(RBI_LOG_WARNING, "alarm_firing",
                "rule=%s path=%s metric=%s value=%s op=\"%s\" threshold=%s for_ms=%" PRIu32,
                rule->id, entry->path.bytes, rbi_alarm_metric_name(rule->metric), value,
                rule->below ? "<" : ">", threshold, rule->for_ms);
    } else {
        rbi_log(RBI_LOG_INFO, "alarm_resolved",
                "rule=%s path=%s metric=%s value=%s op=\"%s\" threshold=%s fired_ms=%" PRIu64,
                rule->id, entry->path.bytes, rbi_alarm_metric_name(rule->metric), value,
                rule->below ? "<" : ">", threshold, since_ms(daemon, entry->alarm.fired_ns));
    }
}

/* ---- watchers ----------------------------------------------------------------------------- */

static void alarm_fill(const struct rbi_alarm_entry *entry,
                       const struct rbi_alarm_rule *rule,
                       enum rbi_alarm_what what,
                       struct rbi_wire_alarm *alarm)
{
    *alarm = (struct rbi_wire_alarm){.what = (uint32_t)what,
                                     .path = entry->path,
                                     .metric = rule->metric,
                                     .below = rule->below != 0,
                                     .threshold = rule->threshold,
                                     .value = entry->alarm.value,
                                     .known = entry->alarm.known != 0};
    rbi_text_set(&alarm->rule, rule->id);
}

static bool alarm_may_see(struct rbi_peer *peer, const struct rbi_text *path)
{
    struct rbi_text why;
    return rbi_rights_may_path(peer, RBI_ACL_WATCH, path->bytes, path->length, &why);
}

static void alarm_tell_peer(struct rbi_peer *peer, void *context)
{
    const struct rbi_wire_alarm *alarm = context;
    const uint64_t told = peer->daemon->alarms.told;
    if (peer->last_alarm == told) {
        return; /* through another prefix */
    }
    peer->last_alarm = told;
    if (alarm_may_see(peer, &alarm->path)) {
        rbi_peer_send_alarm(peer, alarm);
    } else {
        peer->rights.hidden = true;
    }
}

void rbi_alarm_tell(struct rbi_daemon *daemon,
                    const struct rbi_alarm_entry *entry,
                    const struct rbi_alarm_rule *rule,
                    enum rbi_alarm_change change)
{
    struct rbi_wire_alarm alarm;
    alarm_log(daemon, entry, rule, change);
    alarm_fill(entry, rule,
               change == RBI_ALARM_FIRED ? RBI_ALARM_WHAT_FIRING : RBI_ALARM_WHAT_RESOLVED, &alarm);
    rbi_watch_each(daemon, entry->path.bytes, entry->path.length, alarm_tell_peer, &alarm);
}

void rbi_alarms_send_present(struct rbi_peer *peer, const struct rbi_text *path)
{
    const struct rbi_alarm_desk *desk = &peer->daemon->alarms;
    struct rbi_wire_alarm alarm = {.what = RBI_ALARM_WHAT_BEGIN, .path = *path};
    if (desk->generation == 1) {
        return; /* there was never a rule */
    }
    rbi_peer_send_alarm(peer, &alarm);
    RBI_LIST_EACH(node, spare, &desk->entries)
    {
        const struct rbi_alarm_entry *entry =
            RBI_CONTAINER_OF(node, struct rbi_alarm_entry, in_desk);
        if (rbi_alarm_fires(&entry->alarm) &&
            rbi_path_has_prefix(entry->path.bytes, entry->path.length, path->bytes, path->length) &&
            alarm_may_see(peer, &entry->path)) {
            alarm_fill(entry, &desk->rules->items[entry->rule], RBI_ALARM_WHAT_FIRING, &alarm);
            rbi_peer_send_alarm(peer, &alarm);
        }
    }
    alarm = (struct rbi_wire_alarm){.what = RBI_ALARM_WHAT_END, .path = *path};
    rbi_peer_send_alarm(peer, &alarm);
}

/* ---- tools -------------------------------------------------------------------------------- */

void rbi_alarm_row(struct rbi_daemon *daemon,
                   const struct rbi_alarm_entry *entry,
                   struct rbi_wire_row_alarm *row)
{
    const struct rbi_alarm_rule *rule = &daemon->alarms.rules->items[entry->rule];
    *row = (struct rbi_wire_row_alarm){
        .path = entry->path,
        .state = entry->alarm.state,
        .metric = rule->metric,
        .below = rule->below != 0,
        .threshold = rule->threshold,
        .value = entry->alarm.value,
        .known = entry->alarm.known != 0,
        .since_ms = since_ms(daemon, entry->alarm.since_ns),
        .fired_ms = rbi_alarm_fires(&entry->alarm) ? since_ms(daemon, entry->alarm.fired_ns) : 0};
    rbi_text_set(&row->rule, rule->id);
}
