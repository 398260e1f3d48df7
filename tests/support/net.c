/* SPDX-License-Identifier: Apache-2.0 */
#include "support/net.h"

#include "support/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_NS     UINT64_C(20000000000)
#define TURN_NS     UINT64_C(10000000)
#define EXCHANGE_NS UINT64_C(60000000000)
#define RETIRE_NS   UINT64_C(200000000)
#define QUEUE_SIZE  (4U * 1024U * 1024U)

/** The byte at a place of the stream: it differs wherever two places may be mixed up. */
static unsigned char byte_at(uint64_t place)
{
    return (unsigned char)((place ^ (place >> 8) ^ (place >> 16) * 31U ^ (place >> 24) * 7U));
}

/* ---- what connections call ------------------------------------------------------------- */

static void host_up(void *context, struct rbi_conn *conn, const char *peer)
{
    struct net_host *host = context;
    struct rbi_conn *old = host->conn;
    host->conn = conn;
    host->ups++;
    (void)snprintf(host->peer, sizeof(host->peer), "%s", peer);
    if (old && host->replaces) {
        rbi_conn_close(old, "replaced");
    } else if (old && host->retires) {
        host->old = old;
        host->old_since_ns = machine_now_ns();
    }
}

static size_t
host_bytes(void *context, struct rbi_conn *conn, const unsigned char *bytes, size_t size)
{
    struct net_host *host = context;
    rbi_conn_settle(conn);
    if (host->deaf) {
        return 0;
    }
    const size_t take = host->taste ? size - size % host->taste : size;
    for (size_t i = 0; i < take && !host->unordered; i++) {
        if (bytes[i] != byte_at(host->received + i)) {
            host->wrong = true;
        }
    }
    host->received += take;
    return take;
}

static void host_room(void *context, struct rbi_conn *conn)
{
    struct net_host *host = context;
    (void)conn;
    host->rooms++;
}

static void host_down(void *context, struct rbi_conn *conn, const char *why)
{
    struct net_host *host = context;
    if (host->conn == conn) {
        host->conn = NULL;
    }
    if (host->old == conn) {
        host->old = NULL;
    }
    host->downs++;
    (void)snprintf(host->why, sizeof(host->why), "%s", why);
}

static const struct rbi_conn_ops host_ops = {
    .up = host_up, .bytes = host_bytes, .room = host_room, .down = host_down};

static bool known(void *context, const char *name)
{
    const struct net_host *host = context;
    return strcmp(name, strcmp(host->name, "alpha") == 0 ? "beta" : "alpha") == 0;
}

/* ---- files ----------------------------------------------------------------------------- */

const char *net_file(const struct net_host *host, const char *what)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", host->directory, what);
    return path;
}

struct rbi_tls_files net_files(const struct net_host *host)
{
    return (struct rbi_tls_files){
        .certificate = net_file(host, "certificate"),
        .key = net_file(host, "key"),
        .ca = net_file(host, "ca"),
        .crl = access(net_file(host, "crl"), F_OK) == 0 ? net_file(host, "crl") : NULL};
}

static void copy_file(const char *from, const char *to)
{
    char command[320];
    (void)snprintf(command, sizeof(command), "cp %s %s", from, to);
    RBI_ASSERT(system(command) == 0);
}

/* ---- hosts ----------------------------------------------------------------------------- */

static void host_start_tls(struct net *net, struct net_host *host, const char *name)
{
    char why[RBI_TLS_WHY_MAX + 1U];
    const struct rbi_tls_files files = net_files(host);
    if (rbi_tls_new(net->loop, name, &files, why, &host->terms.tls) != 0) {
        (void)fprintf(stderr, "%s\n", why);
        abort();
    }
}

static void host_start(struct net *net, struct net_host *host, const char *name)
{
    host->name = name;
    host->terms = (struct rbi_conn_terms){.loop = net->loop,
                                          .queue_bytes = QUEUE_SIZE,
                                          .batch_delay_ns = 50000,
                                          .known = known,
                                          .known_context = host};
    if (!net->tls) {
        return;
    }
    char authority[96];
    (void)snprintf(host->directory, sizeof(host->directory), "%.40s/%s", net->directory, name);
    (void)snprintf(authority, sizeof(authority), "%s/ca", net->directory);
    RBI_ASSERT(mkdir(host->directory, 0700) == 0);
    copy_file(authority, net_file(host, "ca"));
    certs_issue(net->authority, name, -60, 3600, net_file(host, "certificate"),
                net_file(host, "key"));
    host_start_tls(net, host, name);
}

void net_rename(struct net *net, struct net_host *host, const char *name)
{
    host->terms.tls = rbi_tls_free(host->terms.tls);
    host_start_tls(net, host, name);
}

void net_up(struct net *net, const char *mode)
{
    const bool uring = strncmp(mode, "uring", 5) == 0;
    *net = (struct net){.tls = strstr(mode, "tls") != NULL};
    RBI_ASSERT(rbi_loop_new(&net->loop, uring ? RBI_LOOP_URING : RBI_LOOP_EPOLL) == 0);
    (void)snprintf(net->directory, sizeof(net->directory), "/tmp/ringbus-net-XXXXXX");
    RBI_ASSERT(mkdtemp(net->directory));
    if (net->tls) {
        char path[96];
        (void)snprintf(path, sizeof(path), "%s/ca", net->directory);
        net->authority = certs_authority("authority", path);
    }
    host_start(net, &net->a, "alpha");
    host_start(net, &net->b, "beta");
}

static void host_stop(struct net *net, struct net_host *host)
{
    host->dial = rbi_dial_free(host->dial);
    host->door = rbi_door_free(host->door);
    if (host->conn) {
        rbi_conn_cut(host->conn, "the test is over");
    }
    if (host->old) {
        rbi_conn_cut(host->old, "the test is over");
    }
    while (host->terms.alive) {
        RBI_ASSERT(rbi_loop_turn(net->loop, TURN_NS) == 0);
    }
    host->terms.tls = rbi_tls_free(host->terms.tls);
}

void net_down(struct net *net)
{
    char command[96];
    /* First those that dial: what is cut then is not made again. */
    net->a.dial = rbi_dial_free(net->a.dial);
    net->b.dial = rbi_dial_free(net->b.dial);
    host_stop(net, &net->a);
    host_stop(net, &net->b);
    net->loop = rbi_loop_free(net->loop);
    certs_authority_free(net->authority);
    (void)snprintf(command, sizeof(command), "rm -rf %s", net->directory);
    RBI_ASSERT(system(command) == 0);
}

void net_open_at(struct net_host *host, const char *address)
{
    RBI_ASSERT(rbi_door_new(&host->terms, address, &host_ops, host, &host->door) == 0);
}

void net_open(struct net_host *host)
{
    net_open_at(host, "127.0.0.1:0");
}

void net_dial(struct net_host *from, const struct net_host *to, const char *address)
{
    RBI_ASSERT(rbi_dial_new(&from->terms, to->name, address, &host_ops, from, &from->dial) == 0);
}

bool net_until(struct net *net, bool (*condition)(struct net *net))
{
    const uint64_t end = machine_now_ns() + WAIT_NS;
    while (!condition(net)) {
        RBI_ASSERT(rbi_loop_turn(net->loop, TURN_NS) == 0);
        if (machine_now_ns() > end) {
            return false;
        }
    }
    return true;
}

static void host_retire(struct net_host *host)
{
    if (host->old && machine_now_ns() - host->old_since_ns > RETIRE_NS) {
        rbi_conn_close(host->old, "retired");
        host->old = NULL;
        host->retired++;
    }
}

void net_turn_ms(struct net *net, unsigned ms)
{
    const uint64_t end = machine_now_ns() + ms * UINT64_C(1000000);
    while (machine_now_ns() < end) {
        RBI_ASSERT(rbi_loop_turn(net->loop, UINT64_C(1000000)) == 0);
        host_retire(&net->a);
        host_retire(&net->b);
    }
}

bool net_connected(struct net *net)
{
    return net->a.conn && net->b.conn;
}

size_t net_send(struct net_host *host, size_t size)
{
    static unsigned char bytes[262144];
    RBI_ASSERT(size <= sizeof(bytes));
    if (!host->conn || rbi_conn_room(host->conn) < size) {
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(host->sent + i);
    }
    if (rbi_conn_write(host->conn, bytes, size) != 0) {
        return 0;
    }
    host->sent += size;
    return size;
}

bool net_all_came(struct net *net)
{
    return net->b.received == net->a.sent && net->a.received == net->b.sent;
}

static uint32_t random_below(uint32_t n)
{
    static uint64_t seed = 5;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

void net_exchange(struct net *net, uint64_t bytes, uint32_t piece)
{
    const uint64_t to = net->a.sent + bytes;
    const uint64_t back = net->b.sent + bytes;
    const uint64_t end = machine_now_ns() + EXCHANGE_NS;
    while (net->a.sent < to || net->b.sent < back) {
        RBI_ASSERT(machine_now_ns() < end);
        for (unsigned i = 0; i < 16; i++) {
            if (net->a.sent < to) {
                net_send(&net->a, 1 + random_below(piece));
            }
            if (net->b.sent < back) {
                net_send(&net->b, 1 + random_below(piece));
            }
        }
        RBI_ASSERT(rbi_loop_turn(net->loop, 0) == 0);
    }
    net->b.taste = 0; /* also what it has left */
    rbi_conn_resume(net->b.conn);
    RBI_ASSERT(net_until(net, net_all_came));
    RBI_ASSERT(!net->a.wrong && !net->b.wrong);
}
