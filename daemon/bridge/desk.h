/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_DESK_H
#define RINGBUS_DAEMON_BRIDGE_DESK_H
/*
 * daemon/bridge/desk.h - all that a bridge does on its own host: proxies (proxy.h), which are
 * endpoints of other hosts registered here, and halves (half.h), which are their links to local
 * endpoints.
 *
 * The desk lives in a loop and drives itself: while a lane moves it looks at the lanes once a
 * turn, without a system call; a proxy whose lanes were quiet for some turns announces sleep in
 * its page, as an endpoint does, and the bells of its links wake it.
 *
 * Threads: the loop's. Nothing here waits. Callbacks come from the loop only, never from inside a
 * call of the desk, of a proxy or of a half, and each of them may free any proxy and any half.
 */
#include "bus/record.h"
#include "daemon/loop.h"
#include "shm/base.h"
#include "shm/pool.h"

struct rbi_desk;
struct rbi_half;
struct rbi_proxy;

/** What happens at the desk. All are set. */
struct rbi_desk_events {
    /** It is in the directory (unless hidden): for the first time, or with the next daemon. */
    void (*on_registered)(struct rbi_proxy *proxy);
    /**
     * The daemon does not take it: RINGBUS_E_IN_USE (another has its name), RINGBUS_E_DENIED,
     * RINGBUS_E_QUOTA, ... It asks again with back-off, unless it is freed.
     */
    void (*on_refused)(struct rbi_proxy *proxy, int code, const char *text);
    /**
     * A local endpoint asks the proxy for a link: answer by rbi_half_accept() or
     * rbi_half_refuse(), now or later. One that goes away meanwhile is reported by on_failed().
     */
    void (*on_introduced)(struct rbi_proxy *proxy, struct rbi_half *half);
    /** What rbi_proxy_introduce() or rbi_half_accept() began is a link: lanes may be used. */
    void (*on_linked)(struct rbi_half *half);
    /** It came to nothing. @p code enum ringbus_error. Free the half, by rbi_half_end(). */
    void (*on_failed)(struct rbi_half *half, int code, const char *text);
    /**
     * There is something to rbi_half_peek(). Comes once a turn as long as there is, also behind
     * on_down(), unless rbi_half_hold() holds it back: hold it while the other host takes no more,
     * or the loop does not rest.
     */
    void (*on_records)(struct rbi_half *half);
    /** A put or lend that found no room finds some now; or the local peer has read on. */
    void (*on_room)(struct rbi_half *half);
    /**
     * The local peer has ended the link, or died, or broke the protocol (BAD_PEER), or the daemon
     * has ended it. What lies in its lane may still be peeked, to its end, which comes; then, or
     * at once, free the half by rbi_half_end().
     */
    void (*on_down)(struct rbi_half *half, enum rbi_reason reason);
};

/** Of the lanes towards local peers, unless it is said otherwise. */
#define RBI_DESK_LANE_BYTES (UINT64_C(256) << 10)

/** How a desk is made. Zero members stand for their default. */
struct rbi_desk_options {
    struct rbi_loop *loop;                /* lent */
    const char *socket;                   /* of the daemon; copied */
    const struct rbi_desk_events *events; /* lent */
    void *context;                        /* rbi_desk_context() */
    uint64_t lane_bytes;                  /* default RBI_DESK_LANE_BYTES */
    uint32_t refs_per_link;               /* payloads that may be out, each way; default 1024 */
    uint64_t pool_bytes;                  /* of a proxy, of address space; default 64 MiB */
    uint64_t payload_max;                 /* one so large goes as well; default 64 MiB, <= 1 GiB */
};

/**
 * Makes a desk with nothing on it.
 * @param out  written on success only; the caller owns it
 * @retval 0; -EINVAL an option out of range; -ENOMEM; -errno
 */
RBI_MUST_CHECK int rbi_desk_new(const struct rbi_desk_options *options, struct rbi_desk **out);

/**
 * Frees all proxies and halves abruptly, as death would; no callbacks. Accepts NULL.
 * @return NULL
 */
struct rbi_desk *rbi_desk_free(struct rbi_desk *desk);

void *rbi_desk_context(const struct rbi_desk *desk);

/** What a desk has done so far, for status; the counters only grow. */
struct rbi_desk_figures {
    uint32_t proxies;
    uint32_t registered;
    uint32_t halves;   /* linked ones */
    uint32_t residues; /* ended ones whose peer still reads payloads of ours */
    uint64_t records_in;
    uint64_t records_out;
    uint64_t bytes_in; /* bodies of these, and payloads by reference */
    uint64_t bytes_out;
    uint64_t pool_bytes; /* memory of all pools of proxies that live */
    uint64_t rings;      /* bells rung: one system call each */
    uint64_t sleeps;
    uint64_t bad_peers;
};
void rbi_desk_figures(const struct rbi_desk *desk, struct rbi_desk_figures *out);

#endif
