/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/busy.c - messages between two busy endpoints, between two getppid() calls that mark
 * the stretch for strace: whatever system call lies between them is one too many.
 */
#include "bench/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SINK "/Bench/local/host/w0/g0/Sink/1"
#define BURST     64U

struct sink {
    uint64_t expected;
    uint64_t errors;
};

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct sink *sink = user;
    uint64_t sequence = 0;
    (void)bus;
    memcpy(&sequence, message->data, sizeof sequence);
    sink->errors += sequence != sink->expected ? 1U : 0U;
    sink->expected = sequence + 1;
}

static void stream(struct ringbus *from,
                   struct ringbus *to,
                   const struct ringbus_addr *addr,
                   struct sink *sink,
                   uint64_t count)
{
    unsigned char payload[48] = {0};
    sink->expected = 0;
    for (uint64_t i = 0; i < count;) {
        memcpy(payload, &i, sizeof i);
        if (ringbus_send(from, addr, 0, payload, sizeof payload, 0) == 1) {
            i++;
        }
        if (i % BURST == 0) {
            (void)ringbus_poll(to, (int)BURST);
            (void)ringbus_poll(from, (int)BURST);
        }
    }
    while (sink->expected < count && sink->errors == 0) {
        (void)ringbus_poll(to, (int)BURST);
    }
}

int main(int argc, char **argv)
{
    struct sink sink = {0};
    struct bench_daemon daemon = {0};
    struct ringbus_addr addr;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
    if (argc < 2 || bench_daemon_start(&daemon, argv[1]) != 0) {
        (void)fprintf(stderr, "usage: busy RINGBUSD [MESSAGES]\n");
        return 2;
    }
    options.path = PATH_SINK;
    options.mode = RINGBUS_MODE_BUSY;
    options.on_message = on_message;
    options.user = &sink;
    struct ringbus *to = bench_open(&daemon, &options, NULL, NULL);
    options.path = NULL;
    options.on_message = NULL;
    struct ringbus *from =
        to != NULL ? bench_open_beside(&daemon, &options, PATH_SINK, &addr, to) : NULL;
    if (from == NULL) {
        bench_daemon_stop(&daemon);
        return 1;
    }
    stream(from, to, &addr, &sink, 10000); /* warm */
    (void)getppid();
    stream(from, to, &addr, &sink, count);
    (void)getppid();
    const int failed = sink.errors != 0 || sink.expected != count;
    (void)printf("%llu messages, %llu out of order\n", (unsigned long long)count,
                 (unsigned long long)sink.errors);
    (void)ringbus_close(from, 0);
    (void)ringbus_close(to, 0);
    bench_daemon_stop(&daemon);
    return failed;
}
