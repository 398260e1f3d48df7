/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_NET_H
#define RINGBUS_TESTS_SUPPORT_NET_H
/*
 * Two hosts of a bridge in one process, on one loop: each with a door, a dial, and what their
 * connections have brought. For tests of daemon/bridge/conn.h and what is below it. What is sent
 * is a stream of numbers, so that whoever receives knows what has to come.
 */
#include "daemon/bridge/dial.h"
#include "daemon/bridge/door.h"
#include "daemon/bridge/tls.h"
#include "support/certs.h"

struct net_host {
    const char *name;
    struct rbi_conn_terms terms;
    char directory[64];
    struct rbi_door *door;
    struct rbi_dial *dial;
    struct rbi_conn *conn; /* the last that came up */
    char peer[64];         /* what up() told of it */
    unsigned ups;
    unsigned downs;
    char why[RBI_CONN_WHY_MAX + 1U]; /* of the last down() */
    uint64_t sent;                   /* bytes, of all connections */
    uint64_t received;               /* bytes that came in order */
    bool wrong;                      /* others than the next ones came */
    bool deaf;                       /* takes nothing */
    size_t taste;                    /* 0, or takes only multiples of this */
    bool unordered;                  /* bytes of two connections: counted, and not looked at */
    unsigned rooms;
    bool replaces; /* closes the old connection when a new one comes up */
    bool retires;  /* does so 200 ms later: what was under way on it has come by then */
    struct rbi_conn *old;
    uint64_t old_since_ns;
    unsigned retired;
};

struct net {
    struct rbi_loop *loop;
    bool tls;
    char directory[64];
    struct certs_authority *authority;
    struct net_host a;
    struct net_host b;
};

/** @param mode  two words: "uring" or "epoll", "plain" or "tls" */
void net_up(struct net *net, const char *mode);
void net_down(struct net *net);
/** Path of a file of a host: "certificate", "key", "ca", "crl". Holds for seven more calls. */
const char *net_file(const struct net_host *host, const char *what);
/** Certificate files of a host. */
struct rbi_tls_files net_files(const struct net_host *host);
/** Listens at any port of 127.0.0.1. */
void net_open(struct net_host *host);
void net_open_at(struct net_host *host, const char *address);
/** @p from keeps @p to dialled, where it listens. */
void net_dial(struct net_host *from, const struct net_host *to, const char *address);
/** Takes the TLS of a host away and gives it that of other files, or of another name. */
void net_rename(struct net *net, struct net_host *host, const char *name);
/** Turns the loop until the condition holds. @return false after 20 s */
bool net_until(struct net *net, bool (*condition)(struct net *net));
/** Turns the loop for so long. */
void net_turn_ms(struct net *net, unsigned ms);
/** Both have a connection. */
bool net_connected(struct net *net);
/** All that was sent has come. */
bool net_all_came(struct net *net);
/** Both send so much, in pieces of 1 to @p piece bytes, and get it; in order, or the test ends. */
void net_exchange(struct net *net, uint64_t bytes, uint32_t piece);
/** Writes the next numbers, as much as there is room for. @return bytes written */
size_t net_send(struct net_host *host, size_t size);

#endif
