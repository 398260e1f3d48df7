/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_REGISTRY_H
#define RINGBUS_DAEMON_REGISTRY_H
/*
 * daemon/registry.h - clusters, their members and the numbers that name lives. A change
 * of what others may see goes through rbi_registry_show(), _update() and _hide(): they
 * write the directory first and tell the watchers then.
 */
#include "bus/panic.h"
#include "bus/wire.h"
#include "daemon/absent.h"
#include "daemon/endpoint.h"
#include "daemon/list.h"
#include "daemon/map.h"
#include "daemon/table.h"
#include "daemon/unconfirmed.h"

struct rbi_policy;

/**
 * Clusters that have lost their last member and stay known, so that "nobody is there" has a stable
 * version; only so many, or clients could fill the memory with names. And clusters of which the
 * next daemon will know.
 */
#define RBI_IDLE_CLUSTERS_MAX  256U
#define RBI_KNOWN_CLUSTERS_MAX RBI_IDLE_CLUSTERS_MAX

struct rbi_cluster {
    uint64_t id;
    uint64_t epoch; /* revision of its last change, so that it grows over any number of lives */
    const struct rbi_policy *policy; /* lent by the configuration of that generation, or NULL */
    uint64_t policy_generation;
    uint64_t policy_key; /* of the blob that its snapshot names; 0: the defaults */
    struct rbi_text path;
    struct rbi_endpoint **members; /* ascending instance */
    uint32_t member_count;
    uint32_t member_capacity;
    struct rbi_unconfirmed unconfirmed; /* of the daemon before, not back yet */
    struct rbi_cluster_table *table;    /* NULL: nobody sends to it by key */
    struct rbi_absent absent;           /* died just now, their slots wait */
    struct rbi_cluster_health *health;  /* NULL: nobody has called it yet */
    struct rbi_panic panic;             /* with what other hosts say of theirs (origin.h) */
    struct rbi_list in_reported;        /* clusters that are weighed by reports */
    uint64_t alarm_generation;          /* of the rules that were looked at for it */
    struct rbi_list in_idle;            /* clusters without members, the oldest first */
    uint64_t empty_ns;                  /* since when, while it is in that list */
    bool known;                         /* somebody was in it, or made it: kept (known.h) */
};

struct rbi_registry {
    struct rbi_map clusters;
    struct rbi_list endpoints; /* all, anonymous ones too, by number */
    uint32_t endpoint_count;
    struct rbi_list unconfirmed; /* clusters that have some */
    struct rbi_list idle;
    uint32_t idle_count;
    uint64_t next_number;
    uint64_t revision;
    uint32_t next_incarnation;
    uint32_t next_anonymous;
    uint32_t *free_slots;
    uint32_t free_slot_count;
    uint32_t free_slot_capacity;
    uint32_t slot_end; /* slots below this were in use once */
};

RBI_MUST_CHECK int rbi_registry_init(struct rbi_registry *registry);
void rbi_registry_deinit(struct rbi_registry *registry);

/** Cluster, or NULL. */
struct rbi_cluster *rbi_registry_cluster(struct rbi_registry *registry, uint64_t id);
/** Member of a cluster, or NULL. */
struct rbi_endpoint *rbi_cluster_member(const struct rbi_cluster *cluster, int32_t instance);

/**
 * Puts an endpoint, whose path, ids and labels are set, under its address: gives it a
 * slot, and an incarnation unless it brings one.
 * @retval 0
 * @retval RBI_REGISTRY_IN_USE, RBI_REGISTRY_CLASH  @p why names the two
 * @retval -errno
 */
enum rbi_registry_result {
    RBI_REGISTRY_OK = 0,
    RBI_REGISTRY_IN_USE = 1,
    RBI_REGISTRY_CLASH = 2,
};
RBI_MUST_CHECK int
rbi_registry_add(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint, struct rbi_text *why);
/**
 * Puts a hidden proxy, which is in no cluster, into the one of its path. Not shown by that.
 * @retval as rbi_registry_add(); it stays as it is then
 */
RBI_MUST_CHECK int
rbi_registry_reveal(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint, struct rbi_text *why);
/** The way back, of one that others do not see any more. */
void rbi_registry_conceal(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint);
/** Takes it out; accepts one that was never in. */
void rbi_registry_remove(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint);
/** Number of the next anonymous endpoint, 1..2^31-1. */
uint32_t rbi_registry_anonymous(struct rbi_registry *registry);
/** Whether an anonymous endpoint with this address is there. Looks at all: for rare use. */
bool rbi_registry_has_anonymous(const struct rbi_registry *registry,
                                uint64_t cluster,
                                int32_t instance);

/**
 * Publishes a cluster that nobody has been in yet, where its policy has something to offer all the
 * same: instances of other businesses, or a mock. Else does nothing.
 */
void rbi_registry_expect(struct rbi_daemon *daemon, const struct rbi_text *path);
/** Cluster of an earlier daemon, without members. NULL: no memory. */
struct rbi_cluster *rbi_registry_restore(
    struct rbi_daemon *daemon, uint64_t id, const char *path, uint32_t length, uint64_t epoch);
/**
 * Makes a cluster known that has been empty for so long, or does nothing when it is there.
 * @param path  of a cluster, terminated
 */
void rbi_registry_know(struct rbi_daemon *daemon,
                       const char *path,
                       uint32_t length,
                       uint64_t empty_for_ns);
/**
 * Keeps a cluster, if it is empty, for a while; the one empty for longest goes when there are
 * many.
 */
void rbi_registry_set_idle(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** Forgets those that have been empty for daemon.cluster_linger. Now and then. */
void rbi_registry_linger(struct rbi_daemon *daemon);
/** Forgets a cluster. @return whether it was empty, and is gone */
bool rbi_registry_forget(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** What is listed of a cluster beside its members has changed. */
void rbi_registry_refresh(struct rbi_daemon *daemon, struct rbi_cluster *cluster);

/** True for states in which others may see an endpoint. */
bool rbi_registry_state_visible(uint32_t state);
/** Makes it visible. @retval 0; -errno the directory cannot hold it: nothing has changed */
RBI_MUST_CHECK int rbi_registry_show(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint);
/** Its state or weight has changed. */
void rbi_registry_update(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint);
/**
 * Publishes those members of a cluster that are marked as stale, in one snapshot, and tells of
 * each. A change that is about many instances costs a snapshot for each cluster, not for each of
 * them.
 * @return how many were marked
 */
uint64_t rbi_registry_update_stale(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** Takes it from sight; harmless when it is not. */
void rbi_registry_hide(struct rbi_daemon *daemon,
                       struct rbi_endpoint *endpoint,
                       enum rbi_reason reason);

#endif
