/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_DESK_PARTS_H
#define RINGBUS_DAEMON_BRIDGE_DESK_PARTS_H
/*
 * daemon/bridge/desk_parts.h - what the files of the desk share: desk.c, proxy*.c and half*.c.
 * Nobody else includes it.
 */
#include "daemon/bridge/desk.h"
#include "daemon/bridge/half.h"
#include "daemon/bridge/proxy.h"
#include "daemon/bridge/track.h"
#include "daemon/bridge/uplink.h"
#include "daemon/list.h"
#include "daemon/map.h"
#include "shm/lane.h"
#include "shm/layout.h"
#include "shm/peer_pool.h"
#include "shm/pool.h"
#include "shm/segment.h"
#include "shm/side.h"

#define RBI_DESK_NS_PER_MS UINT64_C(1000000)

struct rbi_desk {
    struct rbi_loop *loop;
    const struct rbi_desk_events *events;
    void *context;
    uint64_t lane_bytes;
    uint32_t refs_per_link;
    struct rbi_pool_plan pool_plan;
    struct rbi_map proxies; /* by rbi_proxy_key() */
    struct rbi_list all;    /* struct rbi_proxy.node */
    /* struct rbi_half.turn, of proxies that do not sleep: those that move, and the others. */
    struct rbi_list moving;
    struct rbi_list resting;
    uint32_t moving_count;
    struct rbi_list awake_proxies; /* struct rbi_proxy.awake_node */
    struct rbi_list dirty; /* struct rbi_half.unrung_node: put, and the bell not looked at */
    struct rbi_list news;  /* struct rbi_half.news_node: a callback is due */
    const struct rbi_half *visited; /* callbacks of it run; NULL: it has been freed in one */
    struct rbi_loop_task task;
    struct rbi_desk_figures figures;
    bool fenced; /* rbi_barrier_everywhere() covers us */
    char socket[RBI_SOCKET_PATH_MAX + 1];
};

struct rbi_proxy {
    struct rbi_desk *desk;
    void *context;
    struct rbi_list node;       /* in desk->all */
    struct rbi_list awake_node; /* in desk->awake_proxies */
    struct rbi_list halves;     /* struct rbi_half.node */
    uint32_t half_count;        /* without residues */
    struct rbi_pidf pidf;
    struct rbi_uplink uplink;
    bool awake;
    bool registered;
    bool ever_registered;
    bool changed; /* since REGISTER was sent */
    uint32_t register_serial;
    uint64_t cookie;
    uint64_t daemon_incarnation; /* of the daemon that we are registered with, or were last */
    uint64_t hello_incarnation;  /* of the one that we talk to */
    uint64_t active_ns;          /* when a lane has moved last */
    uint64_t sleeps;             /* tickets of shm/bell.h */
    struct rbi_segment page_segment;
    struct rbi_page *page;
    struct rbi_pool pool;
    uint64_t *backed; /* a bit for each chunk that has its memory */
    uint64_t backed_bytes;
    uint32_t starved; /* halves that wait for a chunk or a slot */
    struct rbi_loop_timer starve_timer;
    struct rbi_wire_registration body; /* as the daemon is told */
};

/** The first lines are the hot path's. */
struct rbi_half {
    struct rbi_lane_tx tx;
    struct rbi_lane_rx rx;    /* up to where was sent on */
    struct rbi_lane_rx trail; /* up to where was released: its position alone */
    struct rbi_track track;   /* what lies between the two */
    struct rbi_proxy *proxy;
    rbi_au64 *own_begun_pos;
    uint64_t begun; /* the last that was stored there, without its low bits */
    uint8_t phase;  /* enum rbi_half_phase */
    bool residue;   /* freed for its user; payloads are out */
    bool peer_sleeps;
    bool held;           /* by rbi_half_hold() */
    bool unrung;         /* in desk->dirty */
    bool blocked;        /* a put found no room */
    bool starved;        /* a lend found no chunk */
    bool awaiting;       /* the peer is to read up to await_pos */
    bool room_due;       /* on_room() is to be called whatever there is */
    bool introduced_due; /* on_introduced() */
    bool linked_due;     /* on_linked() */
    bool failed_due;     /* on_failed(): error, text */
    bool down_due;       /* on_down() */
    bool read_out;       /* nothing of its lane counts any more */
    bool hung_up;        /* the peer has ended its side of the bell */
    bool broken;         /* it broke the protocol */
    bool said_bye;       /* a DISCONNECT was put: nothing behind it counts */
    bool limited;        /* not every method may be sent on it */
    bool requester;      /* we have asked for it */
    bool rests;          /* in desk->resting */
    uint32_t quiet;      /* turns in a row that found nothing */
    uint64_t want_bytes;
    uint64_t await_pos;
    uint64_t starved_ns; /* since when what came could not be mapped; 0: it can */
    uint64_t gave_ns;    /* when it last gave a payload back, or had none */
    const rbi_au64 *peer_sleep_epoch;
    uint64_t rung;
    const rbi_au64 *peer_want_pos;
    uint64_t want_rung;
    rbi_au64 *own_want_pos;
    rbi_au64 *own_written_hint;
    const rbi_au64 *peer_written_hint;
    const rbi_au64 *peer_begun_pos;
    struct rbi_refs refs;
    struct rbi_returns returns;
    struct rbi_peer_pool *peer_pool;

    struct rbi_list node;        /* in proxy->halves */
    struct rbi_list turn;        /* in desk->moving or desk->resting */
    struct rbi_list unrung_node; /* in desk->dirty */
    struct rbi_list news_node;   /* in desk->news */
    void *context;
    struct rbi_pidf peer;
    uint32_t peer_uid;
    uint64_t link_id; /* 0: the daemon knows no such link (any more) */
    uint32_t serial;  /* of our INTRODUCE */
    int bell;         /* ours; -1: none */
    struct rbi_loop_source bell_source;
    struct rbi_loop_timer mute_timer;
    uint32_t idle_rings; /* in a row that brought nothing */
    uint64_t ring_seen;  /* what had moved at the last one that brought something */
    uint64_t down_pos;   /* where we stood when the peer was gone */
    enum rbi_reason reason;
    int error;      /* of on_failed() */
    int offered[4]; /* INTRODUCED: side, pool, page, bell; else -1 each */
    uint64_t offered_side_bytes;
    uint64_t offered_pool_bytes;
    struct rbi_segment own_side;
    struct rbi_segment peer_side;
    struct rbi_segment peer_page;
    char path[RBI_PATH_MAX + 1];
    char text[RBI_WIRE_TEXT_MAX + 1]; /* of on_failed() */
};

/* ---- desk.c -------------------------------------------------------------------------------- */

/** Something may move: the proxy's lanes are looked at from now on, without sleep. */
void rbi_desk_wake(struct rbi_proxy *proxy);
/** It is gone, or has no more halves: it neither wakes nor sleeps. */
void rbi_desk_forget(struct rbi_proxy *proxy);
/** Something of it may move: it is looked at each turn, until it has been quiet for a while. */
void rbi_desk_attend(struct rbi_half *half);
/** It is looked at no more. */
void rbi_desk_leave(struct rbi_half *half);
/** A callback of it is due. */
void rbi_desk_tell(struct rbi_half *half);
/** Its bell is to be looked at when the turn is over. */
void rbi_desk_unrung(struct rbi_half *half);

/* ---- proxy.c, proxy_daemon.c, proxy_pool.c ------------------------------------------------- */

uint64_t rbi_proxy_key(uint64_t cluster, int32_t instance);
extern const struct rbi_uplink_events rbi_proxy_uplink_events;
/** Tells the daemon what it is now, unless it will be told with REGISTER. */
void rbi_proxy_tell(struct rbi_proxy *proxy);
/** Classes of a pool of about so many bytes, and some for single large payloads. 0; -EINVAL */
int rbi_proxy_plan_pool(uint64_t bytes, uint64_t payload_max, struct rbi_pool_plan *out);
/** A chunk that has its memory. @retval as rbi_half_lend() */
int rbi_proxy_take_chunk(struct rbi_proxy *proxy, uint64_t size, struct rbi_chunk *out);
/** Takes in what the peers of all its halves have given back. */
void rbi_proxy_collect(struct rbi_proxy *proxy);
/** Halves that want a chunk are told when one may be there. */
void rbi_proxy_starve(struct rbi_half *half);

/* ---- half.c, half_side.c, half_bell.c, half_in.c, half_out.c ------------------------------- */

struct rbi_half *
rbi_half_new(struct rbi_proxy *proxy, const struct rbi_pidf *peer, const char *path);
/** Frees it, whatever its phase; the peer hears of its bell alone. */
void rbi_half_free(struct rbi_half *half);
/** Makes our side. @retval 0; -EINVAL; -errno */
int rbi_half_make_side(struct rbi_half *half, uint64_t lane_bytes);
/** Makes our side and asks the daemon. @retval 0; -EINVAL; -EAGAIN the daemon is lost; -errno */
int rbi_half_introduce(struct rbi_half *half, uint64_t lane_bytes);
/** What rbi_half_introduce() has made is not wanted any more. */
void rbi_half_drop_request(struct rbi_half *half);
/** Maps what the peer gave. @p fds side, pool, page: borrowed, the pool's is taken. 0; -errno */
int rbi_half_attach(struct rbi_half *half, int fds[3], uint64_t side_bytes, uint64_t pool_bytes);
/** Maps our lane, or the peer's, whole. 0, also if it is; -errno */
int rbi_half_open_tx(struct rbi_half *half);
int rbi_half_open_rx(struct rbi_half *half);
/** Watches its bell, and takes it over. 0; -errno */
int rbi_half_listen(struct rbi_half *half, int bell);
/** The link is there: lanes may be used, on_linked() follows. */
void rbi_half_linked(struct rbi_half *half);
/** It came to nothing: on_failed() follows. */
void rbi_half_failed(struct rbi_half *half, int code, const char *text);
/** The link has ended for us: on_down() follows. */
void rbi_half_down(struct rbi_half *half, enum rbi_reason reason);
/** The peer broke the protocol. @return -EPROTO */
int rbi_half_bad_peer(struct rbi_half *half);
/** Looks at the bell of the peer for what was put. */
void rbi_half_ring(struct rbi_half *half);
/** Says in our side how far its lane is released, and wakes it if it waits for that. */
void rbi_half_publish(struct rbi_half *half);
/** Whether there is something to peek. */
bool rbi_half_has_records(const struct rbi_half *half);
/** Whether somebody who waits for room, or for the peer to read, has it now; he waits no more. */
bool rbi_half_has_room(struct rbi_half *half);
/** Says in our side what we wait for; nothing any more. */
void rbi_half_want(struct rbi_half *half);
void rbi_half_want_none(struct rbi_half *half);

#endif
