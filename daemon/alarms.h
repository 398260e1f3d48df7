/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_ALARMS_H
#define RINGBUS_DAEMON_ALARMS_H
/*
 * daemon/alarms.h - the rules of bus/alarm.h for the clusters of this host, looked at with each
 * sweep over the callers' figures (health.h). What fires or is over is one line in the log and one
 * ALARM to whoever watches the cluster.
 *
 *   alarms.c       rules, which of them is about which cluster, sweeps
 *   alarm_tell.c   the log, watchers, rows
 *
 * Nothing is kept over a restart: what still is so fires again after its time.
 */
#include "bus/alarm.h"
#include "bus/wire.h"
#include "daemon/list.h"
#include "daemon/map.h"

struct rbi_daemon;
struct rbi_peer;

/** One rule for one cluster. */
struct rbi_alarm_entry {
    struct rbi_list in_desk;
    uint64_t number; /* grows along the list */
    uint64_t key;    /* of rule and cluster */
    uint32_t rule;   /* index */
    uint64_t cluster;
    struct rbi_text path;
    struct rbi_alarm alarm;
};

struct rbi_alarm_desk {
    struct rbi_alarm_rules *rules; /* NULL: none */
    uint64_t generation;           /* of the rules; grows from 1 on */
    struct rbi_list entries;
    struct rbi_map by_key;
    uint32_t firing;
    uint64_t next_number;
    uint64_t told; /* number of the last change that watchers were told of */
};

RBI_MUST_CHECK int rbi_alarms_init(struct rbi_alarm_desk *desk);
/** Accepts a zeroed one. */
void rbi_alarms_deinit(struct rbi_alarm_desk *desk);
/** The configuration has changed: what fires goes on, as long as its rule is about it. */
void rbi_alarms_set(struct rbi_daemon *daemon);
/** Looks at all figures. */
void rbi_alarms_sweep(struct rbi_daemon *daemon);
/** Whether there is anything to look at. */
bool rbi_alarms_wanted(const struct rbi_daemon *daemon);

/* ---- alarm_tell.c ----------------------------------------------------------------------- */

/** @param rule  of the entry, lent */
void rbi_alarm_tell(struct rbi_daemon *daemon,
                    const struct rbi_alarm_entry *entry,
                    const struct rbi_alarm_rule *rule,
                    enum rbi_alarm_change change);
/** Sends a client all that fires at and below a path. */
void rbi_alarms_send_present(struct rbi_peer *peer, const struct rbi_text *path);
/** Fills a row. @param entry  of the desk */
void rbi_alarm_row(struct rbi_daemon *daemon,
                   const struct rbi_alarm_entry *entry,
                   struct rbi_wire_row_alarm *row);

#endif
