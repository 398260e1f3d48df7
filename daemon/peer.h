/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_PEER_H
#define RINGBUS_DAEMON_PEER_H
/*
 * daemon/peer.h - a connection of a client: its socket, its process, what it has begun
 * to say (peer_in.c) and what it has not yet read (peer_out.c). At most one endpoint.
 *
 * A peer is never freed where something goes wrong with it: it is doomed, falls silent
 * at once, and ends at the end of the turn; so sending never pulls anything from under
 * a caller.
 */
#include "bus/wire.h"
#include "bus/wire_stream.h"
#include "daemon/inflight.h"
#include "daemon/list.h"
#include "daemon/loop.h"
#include "daemon/query.h"
#include "daemon/quota.h"
#include "daemon/rights.h"
#include "daemon/tokens.h"
#include "shm/handoff.h"

struct rbi_daemon;
struct rbi_endpoint;

/** Descriptors that wait in the queue of one peer, at most. */
#define RBI_PEER_QUEUED_FDS_MAX 48U

struct rbi_peer {
    struct rbi_daemon *daemon;
    struct rbi_list in_peers;
    struct rbi_list in_doomed; /* or in the list of the lost */
    bool doomed;
    unsigned handling; /* a message of it is being handled: it must not be freed now */
    const char *doom_reason;
    int fd;
    int pidfd; /* -1 when the kernel gave none */
    struct rbi_loop_source source;
    struct rbi_loop_source pid_source;
    uint32_t uid;
    uint32_t gid;
    uint32_t actor; /* whom its charges are for: its uid, or RBI_QUOTA_BRIDGE */
    uint32_t pid;   /* for people to read only; 0 = in another namespace */
    char program[RBI_PATH_ELEMENT_MAX + 1];
    uint64_t connected_ns;
    struct rbi_charge charge;
    struct rbi_endpoint *endpoint;
    struct rbi_list watches;
    uint32_t watch_count;
    struct rbi_peer_rights rights;
    struct rbi_peer_token token;
    uint64_t last_event_revision; /* a change is told once, however many prefixes match */
    uint64_t last_node_revision;  /* the same of nodes */
    uint64_t last_alarm;          /* and of alarms */

    /* In. */
    bool hello;        /* HELLO was answered */
    uint16_t protocol; /* that both speak; 0 until then */
    bool hangup;       /* nothing more will come than what lies in the socket */
    bool reset;        /* the socket has reported an error; what lies in it can still be read */
    bool stalled;      /* its bucket of control messages is empty */
    bool governing;    /* its change is being written down, or waits for that of another */
    bool fds_truncated;
    struct rbi_wire_stream stream;
    struct rbi_fdlist fds; /* of the frame that has begun */
    uint64_t control_tat_ns;
    uint32_t relinks; /* RELINK that were free of charge */
    struct rbi_loop_timer handshake_timer;
    struct rbi_loop_timer frame_timer;
    struct rbi_loop_timer stall_timer;
    struct rbi_query_run query;

    /* Out. */
    struct rbi_list out; /* struct rbi_out_frame */
    uint32_t out_count;
    uint32_t out_fds;
    struct rbi_inflight_sent inflight;
    uint32_t next_serial;
    bool events_lost; /* RESYNC is due */
    struct rbi_loop_timer retry_timer;
};

struct rbi_peers {
    struct rbi_list all;
    struct rbi_list lost;
    struct rbi_list doomed;
    uint32_t count;
    struct rbi_loop_task hang_up;
    struct rbi_loop_task reap;
};

void rbi_peers_init(struct rbi_peers *peers);
/** Takes an accepted connection; on any trouble it is refused and closed. */
void rbi_peer_accept_consume_fd(struct rbi_daemon *daemon, int fd);
/** Ends a connection at the end of this turn. @param reason  literal, for the log */
void rbi_peer_doom(struct rbi_peer *peer, const char *reason);
/**
 * It can no longer be told anything. What it has said before is still heard, at the end
 * of this turn, and then it is doomed: its last words may be that it leaves in order.
 */
void rbi_peer_lose(struct rbi_peer *peer);
/** Whether its connection or its process has ended, be it that we have not come to the news yet. */
bool rbi_peer_is_gone(const struct rbi_peer *peer);
/**
 * Asks the kernel whether it is still there: the loop may not have come to the news yet.
 * One that is not is doomed.
 */
void rbi_peer_verify(struct rbi_peer *peer);
/**
 * Ends the doomed now, but for those whose message is being handled: telling of the others may
 * have doomed them, and whoever calls from a handler looks at its own peer afterwards.
 */
void rbi_peers_reap(struct rbi_daemon *daemon);
/** Ends all of them. */
void rbi_peers_deinit(struct rbi_daemon *daemon);

/** Sets what the loop waits for from what the peer is up to. */
void rbi_peer_update_want(struct rbi_peer *peer);

/* ---- in: peer_in.c --------------------------------------------------------------------- */

/** Reads and handles what there is. */
void rbi_peer_read(struct rbi_peer *peer);
/** Goes on after a pause (query, empty bucket, change of the configuration). */
void rbi_peer_resume(struct rbi_peer *peer);
/** Charges a message. One that comes too early is handled, what follows it waits. */
void rbi_peer_charge(struct rbi_peer *peer);
/** Reads the last words of a peer that has ended, then dooms it. */
void rbi_peer_hang_up(struct rbi_peer *peer, const char *reason);

/* ---- out: peer_out.c ------------------------------------------------------------------- */

/**
 * Sends a message, or queues it. What does not fit the queue dooms the peer.
 * @param body  struct rbi_wire_NAME of @p type
 * @param fds   borrowed
 * @retval 0       sent or queued
 * @retval -errno  not sent: its descriptors could not be kept (peer lives), or the peer is doomed
 */
RBI_MUST_CHECK int rbi_peer_send_with_fds(struct rbi_peer *peer,
                                          enum rbi_wire_type type,
                                          const void *body,
                                          uint32_t reply_to,
                                          const int *fds,
                                          unsigned fd_count);
/** The same without descriptors; failure dooms the peer, so that there is nothing to check. */
void rbi_peer_send(struct rbi_peer *peer,
                   enum rbi_wire_type type,
                   const void *body,
                   uint32_t reply_to);
/**
 * Sends only if it can go at once.
 * @retval 0; 1 it would have to wait: try when writable; -errno the peer is doomed
 */
RBI_MUST_CHECK int rbi_peer_try_send_with_fds(struct rbi_peer *peer,
                                              enum rbi_wire_type type,
                                              const void *body,
                                              uint32_t reply_to,
                                              const int *fds,
                                              unsigned fd_count);
/** Sends an EVENT; without room it is dropped, and RESYNC follows when there is some. */
void rbi_peer_send_event(struct rbi_peer *peer, const struct rbi_wire_event *event);
/** The same with a NODE_EVENT, to clients that know it. */
void rbi_peer_send_node_event(struct rbi_peer *peer, const struct rbi_wire_node_event *event);
/** The same with an ALARM. */
void rbi_peer_send_alarm(struct rbi_peer *peer, const struct rbi_wire_alarm *alarm);
void rbi_peer_send_error(
    struct rbi_peer *peer, uint32_t reply_to, int code, uint64_t link_id, const char *format, ...)
    RBI_PRINTF(5, 6);
/** The socket is writable: sends what waits. */
void rbi_peer_flush(struct rbi_peer *peer);
void rbi_peer_out_deinit(struct rbi_peer *peer);

#endif
