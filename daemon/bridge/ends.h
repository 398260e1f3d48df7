/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_ENDS_H
#define RINGBUS_DAEMON_BRIDGE_ENDS_H
/*
 * daemon/bridge/ends.h - endpoints of other hosts: each has one proxy here, whoever wants it. It is
 * wanted by what its host exports (then the directory shows it), and by streams that it has opened
 * (hidden, unless it is exported as well).
 */
#include "bus/frame.h"
#include "bus/remote.h"
#include "daemon/bridge/bridge.h"
#include "daemon/bridge/proxy.h"

struct rbi_far;

/** Context of its proxy. */
struct rbi_far_end {
    struct rbi_bridge *bridge;
    struct rbi_far *far;
    struct rbi_list in_far;
    struct rbi_proxy *proxy;
    struct rbi_pidf pidf;
    struct rbi_remote remote; /* as last imported; path and ids in any case */
    struct rbi_list tunnels;  /* struct rbi_tunnel */
    uint32_t import_entry;
    uint32_t holds; /* of those who walk its tunnels: not freed meanwhile */
    uint32_t uid;   /* as its OPEN said; UINT32_MAX: it was imported first, nobody has said */
    bool imported;
    bool stale;
};

/** The end at this address, or NULL. */
struct rbi_far_end *rbi_far_end_find(struct rbi_bridge *bridge, uint64_t cluster, int32_t instance);
/**
 * An endpoint that opens a stream to one of this host.
 * @param end  set on success; kept while it has a tunnel, or is imported
 * @retval 0
 * @retval -EEXIST  an endpoint of another host has its path
 * @retval -EINVAL  its path names no instance, -ENOMEM, -errno
 */
RBI_MUST_CHECK int rbi_far_end_caller(struct rbi_bridge *bridge,
                                      struct rbi_far *far,
                                      const struct rbi_frame_endpoint *who,
                                      uint32_t uid,
                                      struct rbi_far_end **end);
/** Its last tunnel may have ended: freed, if nobody wants it any more. */
void rbi_far_end_release(struct rbi_far_end *end);
/** Way, cost or staleness of a host's ends have changed. */
void rbi_far_ends_way(struct rbi_far *far);

/** Forgets all, with their proxies: nobody is told, as at a death. */
void rbi_far_ends_free(struct rbi_bridge *bridge);

/* Of struct rbi_import_desk_calls; context: the bridge. */
struct rbi_import_desk_calls;
extern const struct rbi_import_desk_calls rbi_far_end_calls;

#endif
