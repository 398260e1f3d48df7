/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_ORIGIN_H
#define RINGBUS_DAEMON_ORIGIN_H
/*
 * daemon/origin.h - proxies: endpoints in the stead of instances of other hosts, registered by the
 * bridge, a connection each. To everybody they are instances as any, with what is different here:
 *
 *   name     a local instance goes before a proxy of the same path, and the book of names (names.h)
 *            has no proxies: nobody is kept from a name because a host far away used it
 *   life     the incarnation is that of the origin, taken as it is; of this daemon's own numbers
 *            none is given to it, nor kept from anybody because of it
 *   rights   uid, group, program and cgroup of the bridge say nothing of the origin: rules that
 *            name them do not match, unless they name the host, whose word on the uid counts then
 *   charges  RBI_QUOTA_BRIDGE (quota.h)
 *   hidden   it only asks for links, in the stead of who asked for one on its host: it stands in
 *            no cluster, so that nobody finds it
 */
#include "bus/bridge_config.h"
#include "bus/directory.h"
#include "bus/wire.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_endpoint;
struct rbi_peer;
struct rbi_request;

/** What a proxy is beside an endpoint. */
struct rbi_origin {
    char host[RBI_HOST_NAME_MAX + 1]; /* its home */
    char via[RBI_HOST_NAME_MAX + 1];  /* neighbour that the way there begins with; "": unknown */
    uint32_t number;                  /* of the host, in the directory (bus/hosts_table.h) */
    uint32_t cost;                    /* of the way */
    uint32_t uid;                     /* of its process, as its host says */
    uint32_t health;                  /* as its own daemon says: enum rbi_health */
    uint16_t reported;                /* the same, weight by load; 0: none */
    bool hidden;
    bool stale; /* its host cannot be reached */
};

/** Whether a client may register proxies, and be the bridge: root, our user, bridge.user. */
bool rbi_origin_may(const struct rbi_peer *peer);
/** Whether REGISTER may be about a proxy, or is not; if not the client has been told. */
bool rbi_origin_check(const struct rbi_request *request);
/**
 * Makes an endpoint a proxy, as REGISTER says; its peer is paid for by the bridge from now on.
 * @retval 0; -ENOMEM
 */
RBI_MUST_CHECK int rbi_origin_init(const struct rbi_request *request,
                                   struct rbi_endpoint *endpoint);
/** The bridge pays for a connection from now on. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_origin_pay(struct rbi_peer *peer);
/** Accepts one that is no proxy. */
void rbi_origin_deinit(struct rbi_endpoint *endpoint);
/** What the directory says of it; does nothing with one that is no proxy. */
void rbi_origin_describe(const struct rbi_endpoint *endpoint, struct rbi_directory_instance *out);
/** Its health as others are told: that of its own daemon, or worse. Of any endpoint. */
uint32_t rbi_origin_health(const struct rbi_endpoint *endpoint);
/**
 * Judges whether too few of a cluster are healthy, those of other hosts counted: the shields here
 * know only how calls from here ended. Does nothing with a cluster of local instances. Before its
 * snapshot is written.
 */
void rbi_origin_judge(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** A hidden proxy with this address, which is in no cluster. Looks at all: for rare use. */
struct rbi_endpoint *rbi_origin_find_hidden(const struct rbi_daemon *daemon,
                                            const struct rbi_endpoint *like);
/** Its name is taken here: counts and logs that, now and then. */
void rbi_origin_conflict(struct rbi_daemon *daemon, const struct rbi_endpoint *endpoint);

#endif
