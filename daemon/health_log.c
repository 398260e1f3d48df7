/* SPDX-License-Identifier: Apache-2.0 */
/* What shields have done, for the log. Callers can provoke all of it: so many lines a second. */
#include "daemon/daemon.h"
#include "daemon/log.h"

#include <inttypes.h>

#define LOGS_PER_S 4U
#define LOGS_BURST 50U

static bool log_passes(struct rbi_daemon *daemon, uint64_t *withheld)
{
    struct rbi_health_desk *desk = &daemon->health;
    if (rbi_quota_pace(&desk->log_tat_ns, rbi_loop_now_ns(daemon->loop), LOGS_PER_S, LOGS_BURST) !=
        0) {
        desk->logs_withheld++;
        return false;
    }
    *withheld = desk->logs_withheld;
    desk->logs_withheld = 0;
    return true;
}

static void
log_shielded(const char *path, const struct rbi_shield_event *event, uint64_t now_ns, uint64_t held)
{
    const uint64_t open_ms = event->until_ns > now_ns ? (event->until_ns - now_ns) / 1000000 : 0;
    rbi_log(RBI_LOG_WARNING, "shielded",
            "path=%s incarnation=%" PRIu32 " because=\"%s\" window_ms=%" PRIu32 " calls=%" PRIu32
            " bad=%" PRIu32 " median=%" PRIu32 " times=%" PRIu32 " for_ms=%" PRIu64
            " suppressed=%" PRIu64,
            path, event->incarnation, rbi_shield_reason_name(event->reason), event->window_ms,
            event->calls, event->bad, event->median, event->shields, open_ms, held);
}

static void
log_changed(const char *path, struct rbi_daemon *daemon, const struct rbi_shield_event *event)
{
    const bool back = event->from == RBI_HEALTH_OPEN || event->from == RBI_HEALTH_HALF_OPEN;
    uint64_t held = 0;
    if (event->to == RBI_HEALTH_HALF_OPEN || (event->to != RBI_HEALTH_OPEN && !back)) {
        return; /* on its way: ringbusctl show tells */
    }
    if (!log_passes(daemon, &held)) {
        return;
    }
    if (event->to == RBI_HEALTH_OPEN) {
        log_shielded(path, event, rbi_loop_now_ns(daemon->loop), held);
        return;
    }
    rbi_log(RBI_LOG_INFO, "unshielded",
            "path=%s incarnation=%" PRIu32 " because=\"%s\" suppressed=%" PRIu64, path,
            event->incarnation, rbi_shield_reason_name(event->reason), held);
}

void rbi_health_log(struct rbi_cluster_health *health, const struct rbi_shield_event *event)
{
    struct rbi_daemon *daemon = health->daemon;
    const struct rbi_endpoint *endpoint = rbi_cluster_member(health->cluster, event->instance);
    const char *path = endpoint ? endpoint->path.bytes : health->cluster->path.bytes;
    uint64_t held = 0;
    switch (event->kind) {
    case RBI_SHIELD_CHANGED:
        daemon->counters.shields +=
            event->to == RBI_HEALTH_OPEN && event->from != RBI_HEALTH_HALF_OPEN;
        log_changed(path, daemon, event);
        break;
    case RBI_SHIELD_SPARED:
        if (log_passes(daemon, &held)) {
            rbi_log(RBI_LOG_WARNING, "shield_spared",
                    "path=%s because=\"%s\" window_ms=%" PRIu32 " calls=%" PRIu32 " bad=%" PRIu32
                    " median=%" PRIu32 " suppressed=%" PRIu64,
                    path, rbi_shield_reason_name(event->reason), event->window_ms, event->calls,
                    event->bad, event->median, held);
        }
        break;
    case RBI_SHIELD_PANIC:
    case RBI_SHIELD_PANIC_OVER:
        if (log_passes(daemon, &held)) {
            rbi_log(RBI_LOG_WARNING, event->kind == RBI_SHIELD_PANIC ? "panic" : "panic_over",
                    "cluster=%s healthy=%" PRIu32 " suppressed=%" PRIu64,
                    health->cluster->path.bytes, event->healthy, held);
        }
        break;
    case RBI_SHIELD_PING:
        break;
    }
}
