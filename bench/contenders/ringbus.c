/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/ringbus.c - ringbus through its public API and shared library: copied,
 * built in place, by reference, as request and reply; with default options, and with a
 * larger lane, or without spinning, where that is the question.
 */
#include "bench/contenders/hosts.h"
#include "bench/loops.h"

#include <ringbus/ringbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OPEN_NS UINT64_C(60000000000)

enum flavour { PLAIN, ROOMY, FAR, NO_SPIN, REQUESTS };

struct bus_end {
    struct ringbus *bus;
    struct ringbus_addr peer;
    struct ringbus_loan loan;
    uint64_t number; /* of the next message by reference */
    bool ready;
    bool requests;
};

/* ---- sending --------------------------------------------------------------------------------- */

/* What a refused send means: 0 try again, -1 the end. */
static __attribute__((noinline, cold)) int refused(struct bench_end *end, int r)
{
    struct bus_end *b = end->state;
    if (r != RINGBUS_E_FULL && r != RINGBUS_E_NO_CHUNK) {
        (void)fprintf(stderr, "side %d: %s: %s\n", end->side, ringbus_error_name(r),
                      ringbus_errmsg(b->bus));
        return -1;
    }
    if (end->sleep && !end->echo) {
        (void)ringbus_wait(b->bus, 1);
        (void)ringbus_poll(b->bus, 1);
    }
    return 0;
}

BENCH_INLINE int send_copied(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct bus_end *b = end->state;
    const int r = ringbus_send(b->bus, &b->peer, 0, data, size, 0);
    return __builtin_expect(r == 1, 1) ? 1 : refused(end, r);
}

/* The look whether the receiver sleeps is left to the last of sixteen. */
BENCH_INLINE int send_burst(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct bus_end *b = end->state;
    uint64_t number = 0;
    memcpy(&number, data, sizeof number);
    const unsigned flags = number % 16 == 15 || number == end->last ? 0 : RINGBUS_MORE;
    const int r = ringbus_send(b->bus, &b->peer, 0, data, size, flags);
    return __builtin_expect(r == 1, 1) ? 1 : refused(end, r);
}

BENCH_INLINE int send_claimed(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct bus_end *b = end->state;
    struct ringbus_claim claim;
    const int r = ringbus_claim(b->bus, &b->peer, 0, size, 0, &claim);
    if (__builtin_expect(r != 0, 0)) {
        return refused(end, r);
    }
    memcpy(claim.data, data, size); /* stands for building it there */
    return ringbus_commit(b->bus, &claim, size) == 1 ? 1 : -1;
}

/* The payload is written once and never touched again: its number travels as the key. */
BENCH_INLINE int send_loaned(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct bus_end *b = end->state;
    uint64_t number = b->number;
    if (b->loan.size != size) {
        (void)ringbus_loan_return(b->bus, &b->loan);
        memset(&b->loan, 0, sizeof b->loan);
        const int got = ringbus_loan(b->bus, size, &b->loan);
        if (got != 0) {
            return refused(end, got);
        }
        memset(b->loan.data, 0x5a, size);
    }
    if (!end->echo) {
        memcpy(&number, data, sizeof number);
    }
    const int r = ringbus_send_loan(b->bus, &b->peer, number, &b->loan, size, RINGBUS_KEY);
    return __builtin_expect(r == 1, 1) ? 1 : refused(end, r);
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct bench_end *end = context;
    (void)bus;
    if (result->outcome == RINGBUS_REPLIED) {
        bench_take(end, result->message->data, result->message->size);
    } else {
        end->errors++;
        end->received++;
    }
}

BENCH_INLINE int send_request(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct bus_end *b = end->state;
    const int r = ringbus_request(b->bus, &b->peer, 0, data, size, 0, 10000, on_reply, end);
    return __builtin_expect(r == 1, 1) ? 1 : refused(end, r);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void on_copied(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct bench_end *end = user;
    bench_take(end, message->data, message->size);
    if (message->reply_to.id != 0) {
        (void)ringbus_reply(bus, &message->reply_to, message->data, message->size, 0);
    } else if (end->echo) {
        while (send_copied(end, message->data, message->size) == 0) {
        }
    }
}

static void on_claimed(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct bench_end *end = user;
    (void)bus;
    bench_take(end, message->data, message->size);
    if (end->echo) {
        while (send_claimed(end, message->data, message->size) == 0) {
        }
    }
}

static void on_loaned(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct bench_end *end = user;
    struct bus_end *b = end->state;
    (void)bus;
    bench_take_number(end, message->key, message->size);
    if (end->echo) {
        b->number = message->key;
        while (send_loaned(end, NULL, message->size) == 0) {
        }
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct bench_end *end = user;
    struct bus_end *b = end->state;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        b->peer = event->addr;
        b->ready = true;
    }
}

static int poll_bus(struct bench_end *end, unsigned max)
{
    struct bus_end *b = end->state;
    const int n = ringbus_poll(b->bus, (int)max);
    if (end->sleep && n == 0) {
        (void)ringbus_wait(b->bus, 100);
    }
    return n;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_as(struct bench_end *end, enum flavour flavour, ringbus_message_fn on_message)
{
    static const struct ringbus_pool_class roomy[] = {{64U << 10, 8}, {1U << 20, 4}};
    static const struct ringbus_pool_class far[] = {{64U << 10, 32}, {1U << 20, 4}};
    char cluster[64];
    char path[80];
    struct bus_end *b = calloc(1, sizeof *b);
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    end->state = b;
    if (b == NULL) {
        return -1;
    }
    (void)snprintf(cluster, sizeof cluster, "/Bench/local/host/w0/g0/Pair%u", end->place->number);
    (void)snprintf(path, sizeof path, "%s/%d", cluster, 2 - end->side);
    options.path = path;
    options.socket = end->place->side_sockets[end->side][0] != '\0'
                         ? end->place->side_sockets[end->side]
                         : end->place->bus_socket;
    options.mode = end->sleep ? RINGBUS_MODE_SLEEP : RINGBUS_MODE_BUSY;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = end;
    /* Between its blocks a pair does not run at all. */
    options.ping_interval_ms = 60000;
    options.ping_misses = 100;
    options.spin_us = flavour == NO_SPIN ? 1 : 0;
    if (flavour == ROOMY) {
        options.lane_bytes = 256U << 10;
        memcpy(options.pool, roomy, sizeof roomy);
    }
    if (flavour == FAR) { /* what is under way between the hosts */
        memcpy(options.pool, far, sizeof far);
    }
    b->requests = flavour == REQUESTS;
    if (ringbus_open(&options, &b->bus) != 0) {
        (void)fprintf(stderr, "open: %s\n", ringbus_errmsg(NULL));
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/1", cluster);
    if (end->side == 0 && ringbus_target(b->bus, path, NULL, NULL) != 0) {
        return -1;
    }
    const uint64_t end_ns = bench_now_ns() + OPEN_NS;
    while (!b->ready && bench_now_ns() < end_ns) {
        (void)ringbus_wait(b->bus, 10);
        (void)ringbus_poll(b->bus, 64);
        (void)usleep(100); /* a real-time spinner would keep the other side from opening */
    }
    return b->ready ? 0 : -1;
}

static int open_plain(struct bench_end *end)
{
    return open_as(end, PLAIN, on_copied);
}

static int open_roomy(struct bench_end *end)
{
    return open_as(end, ROOMY, on_copied);
}

static int open_far(struct bench_end *end)
{
    return open_as(end, FAR, on_copied);
}

static int open_no_spin(struct bench_end *end)
{
    bench_pin(end->cpu); /* on a core of its own it does not take spinning for granted */
    return open_as(end, NO_SPIN, on_copied);
}

static int open_requests(struct bench_end *end)
{
    return open_as(end, REQUESTS, on_copied);
}

static int open_claimed(struct bench_end *end)
{
    return open_as(end, PLAIN, on_claimed);
}

static int open_loaned(struct bench_end *end)
{
    return open_as(end, PLAIN, on_loaned);
}

static void close_bus(struct bench_end *end)
{
    struct bus_end *b = end->state;
    if (b != NULL) {
        (void)ringbus_close(b->bus, 0);
        free(b);
    }
}

BENCH_LOOPS(copied, send_copied, poll_bus)
BENCH_LOOPS(burst, send_burst, poll_bus)
BENCH_LOOPS(claimed, send_claimed, poll_bus)
BENCH_LOOPS(loaned, send_loaned, poll_bus)

/* The answers go back by themselves: side 1 does not echo. */
static double request_trips(struct bench_end *end, const struct bench_loop *loop)
{
    return bench_loop_trips(end, loop, send_request, poll_bus);
}

#define RINGBUS_CONTENDER(symbol, word, how, open_fn, loops, can)                                  \
    const struct bench_contender symbol = {                                                        \
        .name = word,                                                                              \
        .package = "",                                                                             \
        .text = how,                                                                               \
        .abilities = BENCH_OWN | (can),                                                            \
        .size_max = 1U << 20,                                                                      \
        .open = open_fn,                                                                           \
        .close = close_bus,                                                                        \
        .trips = loops##_trips,                                                                    \
        .stream = loops##_stream,                                                                  \
        .put = loops##_put_loop,                                                                   \
        .take = loops##_take_loop,                                                                 \
    }
#define BOTH_MODES (BENCH_CAN_BUSY | BENCH_CAN_SLEEP)
#define BOTH_WAYS  (BENCH_TRIPS | BENCH_STREAM)

RINGBUS_CONTENDER(bench_ringbus,
                  "ringbus",
                  "default options, ringbus_send() copies",
                  open_plain,
                  copied,
                  BOTH_MODES | BOTH_WAYS);
RINGBUS_CONTENDER(bench_ringbus_roomy,
                  "ringbus-roomy",
                  "lanes of 256 KiB, chunks of 64 KiB, ringbus_send() copies",
                  open_roomy,
                  copied,
                  BOTH_MODES | BOTH_WAYS);
RINGBUS_CONTENDER(bench_ringbus_burst,
                  "ringbus-burst",
                  "default options, RINGBUS_MORE on 15 of 16",
                  open_plain,
                  burst,
                  BOTH_MODES | BENCH_STREAM);
RINGBUS_CONTENDER(bench_ringbus_claim,
                  "ringbus-claim",
                  "default options, built in place between ringbus_claim() and ringbus_commit()",
                  open_claimed,
                  claimed,
                  BOTH_MODES | BOTH_WAYS);
RINGBUS_CONTENDER(bench_ringbus_reference,
                  "ringbus-ref",
                  "default options, ringbus_send_loan(), the payload is not touched",
                  open_loaned,
                  loaned,
                  BOTH_MODES | BOTH_WAYS | BENCH_REFERENCE);
RINGBUS_CONTENDER(bench_ringbus_no_spin,
                  "ringbus-no-spin",
                  "pinned before it opens, spin_us = 1: sleeps at once",
                  open_no_spin,
                  copied,
                  BENCH_CAN_SLEEP | BOTH_WAYS);

const struct bench_contender bench_ringbus_request = {
    .name = "ringbus-request",
    .package = "",
    .text = "default options, ringbus_request() and ringbus_reply()",
    .abilities = BENCH_OWN | BENCH_TRIPS | BOTH_MODES,
    .size_max = 1U << 20,
    .open = open_requests,
    .close = close_bus,
    .trips = request_trips,
};

const struct bench_contender bench_ringbus_hosts = {
    .name = "ringbus-hosts",
    .package = "",
    .text = "32 chunks of 64 KiB, ringbus_send() to another host: two daemons, two bridges, TLS",
    .abilities = BENCH_OWN | BENCH_NAMED | BOTH_MODES | BOTH_WAYS,
    .size_max = 1U << 20,
    .setup = bench_hosts_setup,
    .open = open_far,
    .close = close_bus,
    .teardown = bench_hosts_teardown,
    .trips = copied_trips,
    .stream = copied_stream,
};
