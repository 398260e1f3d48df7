/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_EXPORT_IMPL_H
#define RINGBUS_DAEMON_BRIDGE_EXPORT_IMPL_H
/*
 * daemon/bridge/export_impl.h - what the parts of daemon/bridge/export share: export_look.c
 * compares with the directory and numbers what has changed, export.c tells it to hosts.
 */
#include "daemon/bridge/export.h"
#include "daemon/list.h"

/** Removals whose reasons are known before the directory is read. */
#define EXPORT_REASONS_MAX 256U

struct export_one {
    struct rbi_remote remote;
    bool missing; /* gone, and nobody has said why: that is to come with the next look */
};

/** A cluster that is exported, as it was told. */
struct export_cluster {
    struct rbi_list in_clusters;
    uint64_t id;
    uint64_t epoch; /* of the directory */
    bool again;     /* to be compared though its epoch may be the same */
    bool unwanted;  /* not exported: kept so that its path is not looked at each time */
    uint32_t look;  /* number of the last look that found it */
    uint32_t count;
    struct export_one *ones; /* by instance */
};

struct export_reason {
    struct rbi_pidf who;
    uint32_t reason;
    uint32_t look; /* after which it came */
};

/** All that was exported at one revision, for those who are being told. */
struct export_list {
    uint32_t users;
    uint64_t revision;
    uint32_t count;
    struct rbi_remote remotes[];
};

enum export_phase {
    EXPORT_CALM = 0,    /* is told what changes */
    EXPORT_LIST = 1,    /* is being told everything */
    EXPORT_CHANGES = 2, /* is being told changes; without any, that there are none */
};

/** A host that has asked. */
struct export_host {
    struct rbi_list in_hosts;
    uint64_t id;
    enum export_phase phase;
    bool paused;    /* there is no way to it */
    uint64_t known; /* the last revision that it was told, or said that it knows */
    struct export_list *list;
    uint32_t at; /* items of the list that were told */
};

struct rbi_export {
    uint64_t incarnation;
    const struct rbi_bridge_globs *globs;
    rbi_export_sink_fn sink;
    void *context;
    bool ready; /* the directory was read as a whole, with all who belong there */
    bool globs_changed;
    uint64_t daemon; /* whose directory it was */
    uint32_t look;
    struct rbi_map by_id; /* clusters */
    struct rbi_list clusters;
    uint32_t count;
    uint64_t revision;
    struct rbi_remote_item *log; /* of revision r in r % RBI_EXPORT_LOG_MAX */
    uint64_t log_from;           /* the first revision that it holds */
    struct export_reason reasons[EXPORT_REASONS_MAX];
    uint32_t reason_count;
    struct export_list *list; /* the newest, while somebody uses it */
    struct rbi_list hosts;
    uint32_t host_count;
    struct rbi_directory_instance *scratch;
    uint32_t scratch_max;
};

/** Numbers a change. @param reason  of a removal; UINT32_MAX: it is there */
void rbi_export_note(struct rbi_export *export, const struct rbi_remote *remote, uint32_t reason);

#endif
