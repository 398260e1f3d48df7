/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/dbus.c - dbus-broker with sd-bus at both ends: method calls that expect no
 * answer, with an array of bytes. The broker runs alone, without its launcher (which wants
 * systemd): the parent is its controller and gives it the listening socket and a policy that
 * allows everything.
 */
#include "bench/loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define OBJECT    "/ringbus/bench"
#define INTERFACE "ringbus.bench"
#define BATCH     "bta(btbs)a(btssssuutt)a(btssssuutt)"

struct dbus_end {
    sd_bus *bus;
    char own[32];
    char peer[32];
};

static sd_bus *controller; /* in the parent, as long as the broker runs */

static void socket_path(const struct bench_place *place, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/dbus-%u", place->directory, place->number);
}

/* One batch for everybody: connect, own, send and receive whatever they like. */
static int append_policy(sd_bus_message *m)
{
    int r = sd_bus_message_open_container(m, 'v', "(a(u(" BATCH "))a(buu(" BATCH "))a(ss)bs)");
    r = r < 0 ? r
              : sd_bus_message_open_container(m, 'r', "a(u(" BATCH "))a(buu(" BATCH "))a(ss)bs");
    r = r < 0 ? r
              : sd_bus_message_append(
                    m, "a(u(" BATCH "))a(buu(" BATCH "))a(ss)bs", 1, (uint32_t)-1,    /* any user */
                    1, (uint64_t)1,                                                   /* connect */
                    1, 1, (uint64_t)1, 1, "",                                         /* own */
                    1, 1, (uint64_t)1, "", "", "", "", 0, 0, (uint64_t)0, UINT64_MAX, /* send */
                    1, 1, (uint64_t)1, "", "", "", "", 0, 0, (uint64_t)0, UINT64_MAX, /* receive */
                    0, 0, 0, "");
    r = r < 0 ? r : sd_bus_message_close_container(m);
    return r < 0 ? r : sd_bus_message_close_container(m);
}

static int add_listener(int listener)
{
    sd_bus_message *m = NULL;
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = sd_bus_message_new_method_call(controller, &m, NULL, "/org/bus1/DBus/Broker",
                                           "org.bus1.DBus.Broker", "AddListener");
    r = r < 0 ? r : sd_bus_message_append(m, "oh", "/org/bus1/DBus/Listener/0", listener);
    r = r < 0 ? r : append_policy(m);
    r = r < 0 ? r : sd_bus_call(controller, m, 5000000, &error, NULL);
    if (r < 0) {
        (void)fprintf(stderr, "bench: dbus-broker: %d %s\n", r,
                      error.message != NULL ? error.message : "");
    }
    sd_bus_error_free(&error);
    (void)sd_bus_message_unref(m);
    return r < 0 ? -1 : 0;
}

static int listen_at(const struct bench_place *place)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    socket_path(place, addr.sun_path, sizeof addr.sun_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof addr) != 0 ||
        listen(fd, 16) != 0) {
        perror("bench: dbus socket");
        return -1;
    }
    return fd;
}

static int broker_setup(struct bench_place *place)
{
    int ends[2];
    char fd[16];
    const char *argv[] = {BENCH_DBUS_BROKER,
                          "--controller",
                          fd,
                          "--machine-id",
                          "0123456789abcdef0123456789abcdef",
                          NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        return -1;
    }
    (void)snprintf(fd, sizeof fd, "%d", ends[1]);
    const int listener = listen_at(place);
    int r = bench_place_helper(place, argv);
    (void)close(ends[1]);
    if (r != 0 || listener < 0 || sd_bus_new(&controller) < 0 ||
        sd_bus_set_fd(controller, ends[0], ends[0]) < 0 || sd_bus_start(controller) < 0) {
        return -1;
    }
    r = add_listener(listener);
    (void)close(listener);
    return r;
}

static void broker_teardown(struct bench_place *place)
{
    bench_place_helper_stop(place);
    controller = sd_bus_close_unref(controller);
}

static int connect_side(struct bench_end *end, struct dbus_end *d)
{
    char path[108];
    char address[160];
    socket_path(end->place, path, sizeof path);
    (void)snprintf(address, sizeof address, "unix:path=%s", path);
    return sd_bus_new(&d->bus) < 0 || sd_bus_set_address(d->bus, address) < 0 ||
                   sd_bus_set_bus_client(d->bus, 1) < 0 || sd_bus_start(d->bus) < 0 ||
                   sd_bus_request_name(d->bus, d->own, 0) < 0
               ? -1
               : 0;
}

static int side_open(struct bench_end *end)
{
    struct dbus_end *d = calloc(1, sizeof *d);
    end->state = d;
    if (d == NULL) {
        return -1;
    }
    (void)snprintf(d->own, sizeof d->own, "ringbus.bench.Side%d", end->side);
    (void)snprintf(d->peer, sizeof d->peer, "ringbus.bench.Side%d", !end->side);
    if (connect_side(end, d) != 0) {
        return -1;
    }
    for (int i = 0; i < 5000; i++) {
        sd_bus_message *reply = NULL;
        const int r =
            sd_bus_call_method(d->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                               "org.freedesktop.DBus", "GetNameOwner", NULL, &reply, "s", d->peer);
        (void)sd_bus_message_unref(reply);
        if (r >= 0) {
            return 0;
        }
        (void)usleep(1000);
    }
    return -1;
}

static void side_close(struct bench_end *end)
{
    struct dbus_end *d = end->state;
    if (d != NULL) {
        (void)sd_bus_flush_close_unref(d->bus);
        free(d);
    }
}

static int send_dbus(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct dbus_end *d = end->state;
    sd_bus_message *m = NULL;
    int r = sd_bus_message_new_method_call(d->bus, &m, d->peer, OBJECT, INTERFACE, "Put");
    r = r < 0 ? r : sd_bus_message_set_expect_reply(m, 0);
    r = r < 0 ? r : sd_bus_message_append_array(m, 'y', data, size);
    r = r < 0 ? r : sd_bus_send(d->bus, m, NULL);
    r = r < 0 ? r : sd_bus_flush(d->bus);
    (void)sd_bus_message_unref(m);
    return r < 0 ? -1 : 1;
}

static int hand_out(struct bench_end *end, sd_bus_message *m)
{
    const void *data = NULL;
    size_t size = 0;
    if (sd_bus_message_is_method_call(m, INTERFACE, "Put") <= 0 ||
        sd_bus_message_read_array(m, 'y', &data, &size) < 0) {
        return 0;
    }
    bench_take(end, data, size);
    return end->echo && send_dbus(end, data, size) != 1 ? -1 : 1;
}

static int poll_dbus(struct bench_end *end, unsigned max)
{
    struct dbus_end *d = end->state;
    sd_bus_message *m = NULL;
    (void)max; /* one at a time is all that there is */
    int r = sd_bus_process(d->bus, &m);
    if (r == 0) {
        (void)sd_bus_wait(d->bus, 1000000);
        return 0;
    }
    r = r < 0 ? -1 : m != NULL ? hand_out(end, m) : 0;
    (void)sd_bus_message_unref(m);
    return r;
}
BENCH_LOOPS(dbus, send_dbus, poll_dbus)

const struct bench_contender bench_dbus = {
    .name = "dbus-broker",
    .package = "dbus-broker",
    .text = "dbus-broker, sd-bus method calls without an answer, blocking",
    .abilities = BENCH_CAN_SLEEP | BENCH_TRIPS | BENCH_STREAM,
    .size_max = 64U << 10,
    .setup = broker_setup,
    .open = side_open,
    .close = side_close,
    .teardown = broker_teardown,
    .trips = dbus_trips,
    .stream = dbus_stream,
    .put = dbus_put_loop,
    .take = dbus_take_loop,
};
