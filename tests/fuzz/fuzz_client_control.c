/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Garbage on a client's control socket. A handle is opened against a daemon that greets
 * properly, has a target, and then gets the input as packets, with descriptors that are
 * sometimes the right ones. Nothing may end the process or be left open.
 *
 * Input: packets of {u8 descriptors, u16 length, bytes}. Low bits of the first byte: how
 * many descriptors; bit 4: the directory in front; bit 5: in another order.
 */
#include "bus/directory.h"
#include "bus/wire_stream.h"
#include "shm/bell.h"
#include "shm/handoff.h"
#include "shm/lane.h"
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <ringbus/ringbus.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENT  "/fuzz/eu/pc/w1/core/client/1"
#define CLUSTER "/fuzz/eu/pc/w1/core/server"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    char socket[64];
    int listener;
    int connection; /* the daemon's end of the one that is open */
    sem_t wanted;
    sem_t greeted;
    struct rbi_segment directory;
    struct rbi_segment side;
    struct rbi_segment pool;
    struct rbi_segment page;
    int bell[2];
} fake;

static void check(bool right, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "fuzz_client_control: %s\n", what);
        abort();
    }
}

/* ---- a daemon that greets -------------------------------------------------------------------- */

static bool answer(int sock, enum rbi_wire_type type, const void *body, const int *fd)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct rbi_wire_header asked;
    struct rbi_fdlist fds = RBI_FDLIST_NULL;
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    if (poll(&ready, 1, 5000) != 1) {
        return false;
    }
    const ssize_t n = rbi_handoff_recv(sock, frame, sizeof frame, &fds);
    rbi_fdlist_deinit(&fds);
    if (n <= 0 || rbi_wire_header_decode(frame, (size_t)n, &asked) != RBI_WIRE_DONE) {
        return false;
    }
    const size_t size = rbi_wire_encode(type, body, asked.serial, asked.serial, frame);
    return rbi_handoff_send(sock, frame, size, fd, fd != NULL ? 1 : 0) == 0;
}

static bool greet(int sock)
{
    const struct rbi_wire_hello_ok hello = {
        .protocol = 1, .daemon_incarnation = 77, .directory_bytes = fake.directory.size};
    struct rbi_wire_registered registered = {
        .cluster = 1, .instance = 1, .incarnation = 1, .cookie = 1};
    struct rbi_pidf self;
    struct rbi_path_info info;
    check(rbi_pidf_parse(CLIENT, strlen(CLIENT), &self, &info) == 0, "own path");
    registered.cluster = self.cluster;
    registered.instance = self.instance;
    rbi_text_set(&registered.path, CLIENT);
    return answer(sock, RBI_WIRE_HELLO_OK, &hello, &fake.directory.fd) &&
           answer(sock, RBI_WIRE_REGISTERED, &registered, NULL);
}

/** One connection for each input; the leavings of an earlier one are dropped. */
static void *be_daemon(void *context)
{
    (void)context;
    for (;;) {
        (void)sem_wait(&fake.wanted);
        do {
            fake.connection = accept4(fake.listener, NULL, NULL, SOCK_CLOEXEC);
            if (fake.connection >= 0 && !greet(fake.connection)) {
                (void)close(fake.connection);
                fake.connection = -1;
            }
        } while (fake.connection < 0);
        (void)sem_post(&fake.greeted);
    }
    return NULL;
}

static void make_side(void)
{
    check(rbi_segment_create(&fake.side, "side", RBI_SEGMENT_SIDE, 2 * RBI_PAGE, RBI_PAGE) == 0,
          "side");
    struct rbi_side *side = fake.side.base;
    side->lane_offset = RBI_PAGE;
    side->lane_capacity = RBI_PAGE;
    side->returns_offset = sizeof *side;
    side->returns_capacity = RBI_RETURNS_MIN;
}

static void remove_socket(void)
{
    (void)unlink(fake.socket);
}

static void start(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct rbi_directory_writer writer;
    pthread_t thread;
    const uint64_t bytes = rbi_align_up(rbi_directory_size(16, 16, 16384), RBI_PAGE);
    check(rbi_segment_create(&fake.directory, "directory", RBI_SEGMENT_DIRECTORY, bytes, 0) == 0,
          "directory");
    rbi_directory_writer_init(&writer, fake.directory.base, bytes, 16, 16, 77);
    make_side();
    check(rbi_segment_create(&fake.pool, "pool", RBI_SEGMENT_POOL, 2 * RBI_PAGE, 0) == 0, "pool");
    check(rbi_segment_create(&fake.page, "page", RBI_SEGMENT_PAGE, RBI_PAGE, 0) == 0, "page");
    check(rbi_bell_pair(fake.bell) == 0, "bell");
    (void)snprintf(fake.socket, sizeof fake.socket, "/tmp/ringbus-fuzz-%d.sock", (int)getpid());
    memcpy(addr.sun_path, fake.socket, strlen(fake.socket) + 1);
    fake.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    check(bind(fake.listener, (struct sockaddr *)(void *)&addr, sizeof addr) == 0 &&
              listen(fake.listener, 16) == 0 && atexit(remove_socket) == 0 &&
              sem_init(&fake.wanted, 0, 0) == 0 && sem_init(&fake.greeted, 0, 0) == 0 &&
              pthread_create(&thread, NULL, be_daemon, NULL) == 0,
          "daemon");
}

/* ---- the client ------------------------------------------------------------------------------ */

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct ringbus_kept *kept = NULL;
    (void)user;
    if (ringbus_keep(bus, message, &kept) == 0) {
        (void)ringbus_release(bus, kept);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)user;
    check(event->path != NULL && memchr(event->path, 0, RINGBUS_PATH_MAX + 1) != NULL, "path");
    (void)ringbus_send(bus, &event->addr, 0, "x", 1, 0);
}

static struct ringbus *open_client(void)
{
    struct ringbus *bus = NULL;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.socket = fake.socket;
    options.path = CLIENT;
    options.lane_bytes = RBI_LANE_CAPACITY_MIN;
    options.refs_per_link = RBI_RETURNS_MIN;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 4096, .count = 4};
    options.spin_us = 1;
    options.on_message = on_message;
    options.on_event = on_event;
    (void)sem_post(&fake.wanted);
    check(ringbus_open(&options, &bus) == 0, ringbus_errmsg(NULL));
    (void)sem_wait(&fake.greeted);
    check(ringbus_target(bus, CLUSTER, NULL, NULL) == 0, "target");
    check(ringbus_watch(bus, "/w") == 0, "watch");
    return bus;
}

static void send_packet(unsigned choice, const uint8_t *bytes, size_t size)
{
    const int menu[] = {fake.directory.fd, fake.side.fd, fake.pool.fd, fake.page.fd,
                        fake.bell[1],      fake.side.fd, fake.bell[1], fake.listener};
    int fds[RBI_HANDOFF_FDS_MAX];
    const unsigned first = (choice & 0x10U) != 0 ? 0 : 1;
    size_t count = choice & 0xfU;
    count = count < RBI_ARRAY_SIZE(menu) - first ? count : RBI_ARRAY_SIZE(menu) - first;
    for (unsigned i = 0; i < count; i++) {
        fds[i] = menu[first + ((choice & 0x20U) != 0 ? count - 1 - i : i)];
    }
    (void)!rbi_handoff_send(fake.connection, bytes, size, fds, (unsigned)count);
}

static void step(struct ringbus *bus)
{
    for (unsigned i = 0; i < 2; i++) {
        check(ringbus_wait(bus, 0) >= 0, "wait");
        check(ringbus_poll(bus, 64) >= 0, "poll");
    }
}

/** Number of the next descriptor: the same again when nothing was left open. */
static int next_fd(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (!started) {
        started = true;
        start();
    }
    const int before = next_fd();
    struct ringbus *bus = open_client();
    for (unsigned packets = 0; size > 3 && packets < 64; packets++) {
        const size_t wanted = data[1] | (size_t)data[2] << 8;
        const size_t length = wanted < size - 3 ? wanted : size - 3;
        if (length > 0) {
            send_packet(data[0], data + 3, length);
            step(bus);
        }
        data += 3 + length;
        size -= 3 + length;
    }
    step(bus);
    (void)ringbus_close(bus, 0);
    (void)close(fake.connection);
    fake.connection = -1;
    check(next_fd() == before, "a descriptor was left open");
    return 0;
}
