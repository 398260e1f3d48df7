/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_PROXY_H
#define RINGBUS_DAEMON_BRIDGE_PROXY_H
/*
 * daemon/bridge/proxy.h - an endpoint of another host, registered with the daemon of this one
 * under its own path and incarnation. For whoever links to it here it is an instance like any
 * other; what it is sent comes to the bridge (half.h).
 *
 * It has a connection of its own to the daemon, and survives it: it comes back with jitter,
 * registers with the same incarnation, and claims its links again; the lanes go on meanwhile.
 *
 * Threads: the loop's of its desk. No call waits.
 */
#include "bus/pidf.h"
#include "bus/record.h"
#include "daemon/bridge/desk.h"
#include "shm/layout.h"

/** What the directory is to say of it. Texts are copied; NULL stands for an empty one. */
struct rbi_proxy_spec {
    const char *path; /* of the instance, on every host the same */
    uint32_t incarnation;
    const char *host; /* where it lives; not empty */
    const char *via;  /* next hop on the way there; empty: the host itself */
    uint32_t cost;    /* of that way */
    uint32_t state;   /* enum rbi_endpoint_state */
    uint32_t weight;
    uint32_t health;   /* enum rbi_health, as its own host judges */
    uint32_t reported; /* its own load, as ringbus_report_load() says it */
    uint32_t uid;      /* of its process on its host, for rights */
    const char *set;
    const char *idc;
    const char *tags;
    bool hidden; /* registered for links that it asks for itself; in no directory */
    bool stale;  /* the last known list says so; nobody has confirmed it yet */
};

/**
 * Begins to register it; on_registered() or on_refused() follow.
 *
 * @param context  rbi_proxy_context()
 * @param out      written on success only; owned by the caller until rbi_proxy_free()
 * @retval 0
 * @retval -EINVAL  the path names no instance, incarnation or host is missing
 * @retval -EEXIST  there is a proxy with that path at this desk
 * @retval -ENOMEM; -errno  memory or descriptors for page, pool or socket
 */
RBI_MUST_CHECK int rbi_proxy_new(struct rbi_desk *desk,
                                 const struct rbi_proxy_spec *spec,
                                 void *context,
                                 struct rbi_proxy **out);

/**
 * Tells the daemon what has changed. Path, incarnation, host and uid stay: another life is another
 * proxy. Costs a message when something differs.
 * @retval 0; -EINVAL one of these differs
 */
RBI_MUST_CHECK int rbi_proxy_update(struct rbi_proxy *proxy, const struct rbi_proxy_spec *spec);

/**
 * Ends it and all its halves, without callbacks. Accepts NULL.
 * @param reason  what its peers are told: LEFT, CRASHED, SILENT, UNREACHABLE ...; NONE: nothing,
 *                they take it for a crash. Watchers see that it died with CRASHED, SILENT,
 *                UNREACHABLE and NONE, else that it left
 */
void rbi_proxy_free(struct rbi_proxy *proxy, enum rbi_reason reason);

/**
 * Asks a local endpoint for a link in the name of the proxy: on_linked() or on_failed() follow.
 * When it asks the proxy at the same time, the two become one link, and on_linked() reports it.
 *
 * @param peer        incarnation 0: whichever lives
 * @param lane_bytes  of the lane towards it: a power of two, at least as much as the largest record
 *                    that will come takes (half.h); 0: the default
 * @param context     rbi_half_context()
 * @param out         written on success only
 * @retval 0
 * @retval -EAGAIN  it is not registered now; try again after on_registered()
 * @retval -EEXIST  it has a half with this peer: rbi_proxy_half() finds it
 * @retval -EINVAL; -ENOMEM; -errno
 */
RBI_MUST_CHECK int rbi_proxy_introduce(struct rbi_proxy *proxy,
                                       const struct rbi_pidf *peer,
                                       uint64_t lane_bytes,
                                       void *context,
                                       struct rbi_half **out);

/** Its half with that peer, unless that is down; NULL: none. */
struct rbi_half *rbi_proxy_half(const struct rbi_proxy *proxy, uint64_t cluster, int32_t instance);

/** The proxy at a desk that has this address, or NULL. */
struct rbi_proxy *rbi_proxy_find(struct rbi_desk *desk, uint64_t cluster, int32_t instance);

void *rbi_proxy_context(const struct rbi_proxy *proxy);
struct rbi_desk *rbi_proxy_desk(const struct rbi_proxy *proxy);
const char *rbi_proxy_path(const struct rbi_proxy *proxy);
struct rbi_pidf rbi_proxy_pidf(const struct rbi_proxy *proxy);
bool rbi_proxy_is_registered(const struct rbi_proxy *proxy);

#endif
