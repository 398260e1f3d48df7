/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that says anything to a daemon in this process, with real descriptors of all
 * kinds. After each input the daemon must have forgotten it. The input is a row of packets:
 * {how, length, bytes}; how: bit 0 a frame header is put in front (the first byte is the
 * type), bits 1-2 which descriptors go along.
 */
#include "daemon/daemon.h"
#include "shm/bell.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOW_FRAME 1U
#define TURNS_MAX 100U

static struct rbi_daemon daemon_under_test;
static char folder[] = "/tmp/ringbus-fuzz-XXXXXX";
static char socket_path[64];
static struct rbi_segment page = RBI_SEGMENT_NULL;
static struct rbi_segment pool = RBI_SEGMENT_NULL;
static struct rbi_segment side = RBI_SEGMENT_NULL;
static int bell[2] = {-1, -1};
static int server_fd = -1;

static void check(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "fuzz_daemon_control: %s\n", what);
        abort();
    }
}

static void turn(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        check(rbi_loop_turn(daemon_under_test.loop, 0) == 0, "turn");
    }
}

static void clean_up(void)
{
    (void)close(server_fd);
    rbi_daemon_deinit(&daemon_under_test);
    char lock[80];
    (void)snprintf(lock, sizeof(lock), "%s.lock", socket_path);
    (void)unlink(lock);
    (void)snprintf(lock, sizeof(lock), "%s.names", socket_path);
    (void)unlink(lock);
    (void)snprintf(lock, sizeof(lock), "%s.clusters", socket_path);
    (void)unlink(lock);
    (void)snprintf(lock, sizeof(lock), "%s.nodes", socket_path);
    (void)unlink(lock);
    (void)rmdir(folder);
    rbi_segment_deinit(&page);
    rbi_segment_deinit(&pool);
    rbi_segment_deinit(&side);
    (void)close(bell[0]);
    (void)close(bell[1]);
}

static void send_frame(int fd, enum rbi_wire_type type, const void *body, const int *fds)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    const size_t size = rbi_wire_encode(type, body, 1, 0, frame);
    check(rbi_handoff_send(fd, frame, size, fds, rbi_wire_type_fds((unsigned)type)) == 0, "send");
    turn(2);
}

static int greet(void)
{
    const struct rbi_wire_hello hello = {.protocol_min = RBI_WIRE_PROTOCOL_MIN,
                                         .protocol_max = RBI_WIRE_PROTOCOL_MAX,
                                         .fingerprint = rbi_layout_fingerprint()};
    const int fd = rbi_handoff_connect(socket_path);
    check(fd >= 0, "connect");
    turn(2);
    send_frame(fd, RBI_WIRE_HELLO, &hello, NULL);
    return fd;
}

/** A server that others can ask for. */
static void add_server(void)
{
    struct rbi_wire_registration body = {
        .weight = 1, .state = RBI_ENDPOINT_READY, .page_bytes = page.size, .pool_bytes = pool.size};
    const int fds[] = {page.fd, pool.fd};
    rbi_text_set(&body.path, "/a/b/c/d/e/f/1");
    server_fd = greet();
    send_frame(server_fd, RBI_WIRE_REGISTER, &body, fds);
    check(daemon_under_test.registry.endpoint_count == 1, "server");
}

static void set_up(void)
{
    struct rbi_daemon_options options = {.socket_path = socket_path};
    check(mkdtemp(folder) != NULL, "mkdtemp");
    (void)snprintf(socket_path, sizeof(socket_path), "%s/bus.sock", folder);
    rbi_config_defaults(&options.config);
    options.config.daemon.loop = RBI_LOOP_EPOLL;
    options.config.daemon.log_level = RBI_LOG_ERROR;
    options.config.quota.connects_per_s = 1000000;
    options.config.quota.control_per_s = 1000000;
    check(rbi_daemon_init(&daemon_under_test, &options) == 0, "daemon");
    check(rbi_segment_create(&page, "page", RBI_SEGMENT_PAGE, RBI_PAGE, 0) == 0, "page");
    check(rbi_segment_create(&pool, "pool", RBI_SEGMENT_POOL, RBI_PAGE, 0) == 0, "pool");
    check(rbi_segment_create(&side, "side", RBI_SEGMENT_SIDE, RBI_PAGE, 0) == 0, "side");
    check(rbi_bell_pair(bell) == 0, "bell");
    add_server();
    (void)atexit(clean_up);
}

/** Sends one packet; the daemon may have closed: then nothing more matters. */
static bool say(int fd, unsigned how, const uint8_t *bytes, size_t size)
{
    unsigned char packet[RBI_WIRE_FRAME_MAX];
    const int sets[4][2] = {{-1, -1}, {page.fd, pool.fd}, {side.fd, bell[1]}, {side.fd, -1}};
    const unsigned set = (how >> 1) & 3;
    const unsigned fd_count = (sets[set][0] >= 0 ? 1U : 0U) + (sets[set][1] >= 0 ? 1U : 0U);
    size_t used = 0;
    if (how & HOW_FRAME) {
        const uint32_t magic = RBI_WIRE_MAGIC;
        const uint32_t length = (uint32_t)(RBI_WIRE_HEADER + size - 1);
        memset(packet, 0, RBI_WIRE_HEADER);
        memcpy(packet, &magic, sizeof(magic));
        memcpy(packet + 4, &length, sizeof(length));
        packet[8] = bytes[0];
        packet[10] = RBI_WIRE_PROTOCOL_MAX;
        packet[11] = (unsigned char)fd_count;
        packet[12] = 1;
        used = RBI_WIRE_HEADER;
        bytes++;
        size--;
    }
    memcpy(packet + used, bytes, size);
    const bool sent = rbi_handoff_send(fd, packet, used + size, sets[set], fd_count) == 0;
    turn(2);
    return sent;
}

/** Reads whatever the daemon said, so that it never has to stop talking. */
static void listen_to(int fd)
{
    unsigned char packet[2 * RBI_WIRE_FRAME_MAX];
    struct rbi_fdlist fds = RBI_FDLIST_NULL;
    while (rbi_handoff_recv(fd, packet, sizeof(packet), &fds) > 0) {
        rbi_fdlist_deinit(&fds);
        fds = (struct rbi_fdlist)RBI_FDLIST_NULL;
    }
    rbi_fdlist_deinit(&fds);
}

/** What persists is taken away: it would be there for the next input. */
static void remove_nodes(void)
{
    struct rbi_nodes *nodes = &daemon_under_test.nodes;
    while (nodes->count > 0) { /* from the end: children are behind their parents */
        struct rbi_node *last = nodes->all[nodes->count - 1];
        check((last->flags & RBI_NODE_EPHEMERAL) == 0, "an ephemeral node is left");
        check(rbi_node_remove(&daemon_under_test, last) == 0, "a node cannot be removed");
    }
}

/** All charges of a client that is gone have come back: what the server has is left. */
static void check_accounts(void)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    rbi_inflight_look(&daemon_under_test); /* an end that lingers keeps its charge till then */
    const struct rbi_quota_user *user = NULL;
    while ((user = rbi_map_next(&daemon_under_test.quota.users, &cursor)) != NULL) {
        /* What was a bridge, or its proxies, had an account that is forgotten a little later. */
        const bool bridge = user->uid == RBI_QUOTA_BRIDGE;
        const uint64_t held = bridge ? 0 : 1;
        check(bridge || user->uid == geteuid(), "a user is left");
        check(user->used[RBI_QUOTA_CONNECTIONS] == held &&
                  user->used[RBI_QUOTA_INSTANCES] == held &&
                  user->used[RBI_QUOTA_BYTES] == held * (page.size + pool.size) &&
                  user->used[RBI_QUOTA_LINKS] == 0 && user->used[RBI_QUOTA_WATCHES] == 0 &&
                  user->used[RBI_QUOTA_NODES] == 0 && user->used[RBI_QUOTA_NODE_BYTES] == 0 &&
                  rbi_shares_empty(&user->foreign_bytes),
              "a charge is left");
    }
    check(daemon_under_test.routes.bridge == NULL, "a bridge is left");
    check(daemon_under_test.inflight.total == 0, "a descriptor is in flight");
    check(rbi_map_count(&daemon_under_test.relink.claims) == 0, "a claim is left");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (server_fd < 0) {
        set_up();
    }
    const int fd = greet();
    while (size >= 3) {
        const size_t length = rbi_min_u64(data[1] + 1U, size - 2);
        if (!say(fd, data[0], data + 2, length)) {
            break;
        }
        listen_to(fd);
        listen_to(server_fd);
        data += 2 + length;
        size -= 2 + length;
    }
    (void)close(fd);
    for (unsigned i = 0; i < TURNS_MAX && daemon_under_test.peers.count > 1; i++) {
        turn(1);
    }
    listen_to(server_fd);
    check(daemon_under_test.peers.count == 1, "a connection is left");
    check(daemon_under_test.registry.endpoint_count == 1, "an endpoint is left");
    check(daemon_under_test.links.count == 0, "a link is left");
    check(daemon_under_test.watches.count == 0, "a watch is left");
    remove_nodes();
    check_accounts();
    return 0;
}
