/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringbus_open() that fails when others have met the endpoint already: the connection is lost in
 * the moment in which it was registered. Nothing of their links stays behind (scenario 12).
 */
#include "shm/handoff.h"
#include "support/bus.h"
#include "support/test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MEETING "/game/eu/pc/w1/core/meeting"
#define MINE    MEETING "/1"
#define PACKETS 16U

static struct cluster cluster;
static char relay_path[RBI_SOCKET_PATH_MAX + 1];
static int listener = -1;

struct packet {
    unsigned char bytes[16384];
    size_t size;
    struct rbi_fdlist fds;
};

/* One packet, waited for. */
static void take(int from, struct packet *packet)
{
    struct pollfd input = {.fd = from, .events = POLLIN};
    ssize_t n = -1;
    packet->fds = (struct rbi_fdlist)RBI_FDLIST_NULL;
    CHECK(poll(&input, 1, (int)NODE_MS) == 1);
    n = rbi_handoff_recv(from, packet->bytes, sizeof packet->bytes, &packet->fds);
    CHECK(n > 0);
    packet->size = (size_t)n;
}

static void pass_on(int to, struct packet *packet)
{
    CHECK(rbi_handoff_send(to, packet->bytes, packet->size, packet->fds.fds, packet->fds.count) ==
          0);
    rbi_fdlist_deinit(&packet->fds);
}

/*
 * Between client and daemon. HELLO and REGISTER go through, each with its answer; but the client
 * has the latter only when a peer has been introduced, together with that and the end of all.
 */
static void be_relay(const struct cluster *at, void *context)
{
    static struct packet packets[PACKETS];
    unsigned count = 0;
    (void)context;
    const int client = accept(listener, NULL, NULL);
    const int daemon = rbi_handoff_connect(at->socket);
    CHECK(client >= 0 && daemon >= 0);
    take(client, &packets[0]);
    pass_on(daemon, &packets[0]);
    take(daemon, &packets[0]);
    pass_on(client, &packets[0]);
    take(client, &packets[0]);
    pass_on(daemon, &packets[0]);
    do {
        CHECK(count < PACKETS);
        take(daemon, &packets[count++]);
    } while (packets[count - 1].fds.count == 0); /* INTRODUCED alone has some */
    /* It finds all of it at once, and what no daemon says behind it. */
    CHECK(kill(getppid(), SIGSTOP) == 0);
    for (unsigned i = 0; i < count; i++) {
        pass_on(client, &packets[i]);
    }
    memset(packets[0].bytes, 0xff, sizeof packets[0].bytes);
    pass_on(client, &packets[0]);
    CHECK(kill(getppid(), SIGCONT) == 0);
    while (read(client, packets[0].bytes, sizeof packets[0].bytes) > 0) {
    }
}

static void be_requester(const struct cluster *at, void *context)
{
    static struct node node;
    struct ringbus_addr addr;
    (void)context;
    node_open(&node, at, NULL);
    CHECK(ringbus_target(node.bus, MEETING, NULL, &addr) == 0);
    atomic_store(&bus_shared[0], 1);
    for (;;) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, 10) >= 0);
    }
}

static void test_open_that_fails_leaves_no_link(void **state)
{
    (void)state;
    static struct node node;
    struct ringbus_options options = node_options(&cluster, MINE);
    bus_shared_reset();
    options.socket = relay_path;
    const pid_t requester = child_start(be_requester, &cluster, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[0]) == 1, NODE_MS, NULL);
    for (unsigned i = 0; i < 3; i++) {
        const pid_t relay = child_start(be_relay, &cluster, NULL);
        const unsigned fds = bus_fd_count();
        assert_int_equal(node_try_open(&node, &options), RINGBUS_E_NO_DAEMON);
        assert_int_equal(child_wait(relay, NODE_MS), 0);
        assert_int_equal(bus_fd_count(), fds);
    }
    child_kill(requester);
}

static int setup(void **state)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)state;
    if (cluster_up(&cluster, "{}\n") != 0) {
        return -1;
    }
    (void)snprintf(relay_path, sizeof relay_path, "%s/relay", cluster.folder);
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", relay_path);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return listener >= 0 && bind(listener, (struct sockaddr *)(void *)&addr, sizeof addr) == 0 &&
                   listen(listener, 4) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    (void)close(listener);
    (void)unlink(relay_path);
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_that_fails_leaves_no_link),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
