/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of whichever version it is built as (test_versions.c).
 *
 *   version_peer SOCKET serve PATH         echoes requests, until its input ends
 *   version_peer SOCKET ask PATH TARGET    asks some, of all kinds of sizes, and ends
 *   version_peer SOCKET stay PATH TARGET   asks one after the other, until its input ends
 *
 * Says "ready" when it is, and at the end how many were answered. Exit codes: 0 good, 2 could
 * not open (the reason is said), 3 something went wrong on the way.
 */
#include <poll.h>
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LARGE   ((size_t)100000)
#define WAIT_NS UINT64_C(10000000000)

static struct {
    struct ringbus *bus;
    struct ringbus_addr target;
    unsigned ready;
    unsigned down;
    unsigned back;
    unsigned answered;
    unsigned failed;
    unsigned char expected[LARGE];
    size_t expected_size;
} peer;

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    (void)user;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        (void)ringbus_reply(bus, &message->reply_to, message->data, message->size, 0);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)bus;
    (void)user;
    peer.ready += event->type == RINGBUS_EVENT_READY;
    peer.down += event->type == RINGBUS_EVENT_DOWN;
    peer.back += event->type == RINGBUS_EVENT_DAEMON_BACK;
    if (event->type == RINGBUS_EVENT_READY) {
        peer.target = event->addr;
    }
}

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    if (result->outcome == RINGBUS_REPLIED && result->message->size == peer.expected_size &&
        memcmp(result->message->data, peer.expected, peer.expected_size) == 0) {
        peer.answered++;
    } else {
        peer.failed++;
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int step(void)
{
    if (ringbus_poll(peer.bus, 100) < 0) {
        return 3;
    }
    return ringbus_wait(peer.bus, 1) < 0 ? 3 : 0;
}

static int input_ended(void)
{
    char byte = 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) == 1 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void say(const char *text)
{
    (void)puts(text);
    (void)fflush(stdout);
}

/* Asks once and waits for the answer. */
static int ask(size_t size)
{
    const unsigned before = peer.answered;
    const uint64_t end_ns = now_ns() + WAIT_NS;
    for (size_t i = 0; i < size; i++) {
        peer.expected[i] = (unsigned char)(i * 7 + size);
    }
    peer.expected_size = size;
    if (ringbus_request(peer.bus, &peer.target, 0, peer.expected, size, 0, 10000, on_result, NULL) <
        0) {
        return 3;
    }
    while (peer.answered == before && peer.failed == 0 && now_ns() < end_ns) {
        if (step() != 0) {
            return 3;
        }
    }
    return peer.answered == before + 1 ? 0 : 3;
}

static int wait_ready(void)
{
    const uint64_t end_ns = now_ns() + WAIT_NS;
    while (peer.ready == 0 && now_ns() < end_ns) {
        if (step() != 0) {
            return 3;
        }
    }
    return peer.ready != 0 ? 0 : 3;
}

static int act(const char *role, const char *target)
{
    static const size_t sizes[] = {0, 1, 64, 1000, 10000, LARGE};
    int result = 0;
    if (strcmp(role, "serve") == 0) {
        say("ready");
        while (result == 0 && !input_ended()) {
            result = step();
        }
        return result;
    }
    if (ringbus_target(peer.bus, target, NULL, NULL) != 0 || wait_ready() != 0) {
        return 3;
    }
    say("ready");
    for (unsigned i = 0; result == 0 && i < sizeof sizes / sizeof sizes[0]; i++) {
        result = ask(sizes[i]);
    }
    while (result == 0 && strcmp(role, "stay") == 0 && !input_ended()) {
        result = ask(100);
    }
    return result == 0 && peer.down == 0 ? 0 : 3;
}

/* Leaves in order, which has messages of its own to the daemon and to peers. */
static int drain(void)
{
    const uint64_t end_ns = now_ns() + WAIT_NS;
    if (ringbus_drain(peer.bus) != 0) {
        return 3;
    }
    while (ringbus_drained(peer.bus) == 0) {
        if (step() != 0 || now_ns() > end_ns) {
            return 3;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    if (argc < 4) {
        return 1;
    }
    options.socket = argv[1];
    options.path = argv[3];
    options.on_message = on_message;
    options.on_event = on_event;
    if (ringbus_open(&options, &peer.bus) != 0) {
        say(ringbus_errmsg(NULL));
        return 2;
    }
    int result = act(argv[2], argc > 4 ? argv[4] : NULL);
    if (result == 0 && strcmp(argv[2], "ask") == 0) {
        result = drain();
    }
    if (result != 0) {
        (void)printf("failed: %s\n", ringbus_errmsg(peer.bus));
    }
    (void)printf("answered %u back %u\n", peer.answered, peer.back);
    (void)ringbus_close(peer.bus, 0);
    return result;
}
