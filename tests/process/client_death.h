/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_CLIENT_DEATH_H
#define RINGBUS_TESTS_PROCESS_CLIENT_DEATH_H
/* One node and its peer, and payloads that tell whether they are whole. */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"

static struct cluster cluster;
static struct node node;

enum { WORD_READY, WORD_GO, WORD_RECEIVED, WORD_DOWN, WORD_SENT };

static inline void payload_of(unsigned char *out, size_t size, uint64_t number)
{
    for (size_t i = 0; i < size; i++) {
        out[i] = (unsigned char)(number * 7 + i);
    }
}

static inline bool payload_is(const void *data, size_t size, uint64_t number)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (unsigned char)(number * 7 + i)) {
            return false;
        }
    }
    return true;
}

static inline size_t size_of(uint64_t number)
{
    return number % 10 == 9 ? 12000 : 20 + number % 50; /* every tenth by reference */
}

/* Becomes READY, then reads nothing more. */
static inline void never_read(const struct cluster *at, void *context)
{
    static struct node peer;
    (void)context;
    node_open(&peer, at, PEER_1);
    RUN_UNTIL(peer.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &peer);
    atomic_store(&bus_shared[WORD_READY], 1);
    for (;;) {
        test_sleep_ms(1000);
    }
}

static struct {
    uint64_t next;
    bool after_down;
    unsigned kept_count;
    struct ringbus_kept *kept[64];
    uint64_t kept_number[64];
} got;

static inline void on_numbered(struct node *at, const struct ringbus_message *message)
{
    CHECK(message->size == size_of(got.next));
    CHECK(payload_is(message->data, message->size, got.next));
    got.after_down |= at->events[RINGBUS_EVENT_DOWN] > 0;
    if (got.kept_count < 64 && got.next % 3 == 0) {
        CHECK(ringbus_keep(at->bus, message, &got.kept[got.kept_count]) == 0);
        got.kept_number[got.kept_count++] = got.next;
    }
    got.next++;
}

static inline int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static inline int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#endif
