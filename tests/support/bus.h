/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_BUS_H
#define RINGBUS_TESTS_SUPPORT_BUS_H
/*
 * Endpoints for tests of the client library: open handles that count what happens to
 * them, children that run as peers, and waiting for a state with a deadline.
 *
 * CHECK and RUN_UNTIL serve in the main process, where they fail the cmocka test, and in
 * a forked child, where they end it with exit code 1; the parent asserts on that.
 */
#include "support/cluster.h"

#include <ringbus/ringbus.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* Sanitizers are slow: how much less work a test does under them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SCALE 10U
#else
#define TEST_SCALE 1U
#endif

#define NODE_MS 10000U /* for whatever ought to happen within milliseconds */

struct node;
typedef void (*node_message_fn)(struct node *node, const struct ringbus_message *message);
typedef void (*node_event_fn)(struct node *node, const struct ringbus_event *event);

/** An endpoint and what happened to it. */
struct node {
    struct ringbus *bus;
    uint64_t messages;
    uint64_t bytes;
    unsigned events[32];        /* by enum ringbus_event_type */
    enum ringbus_reason reason; /* of the last DOWN */
    int error;                  /* of the last LINK_FAILED or DOWN */
    struct ringbus_addr peer;   /* of the last READY */
    struct ringbus_addr from;   /* of the last message */
    unsigned replies[4];        /* by enum ringbus_outcome */
    int reply_error;            /* of the last result */
    node_message_fn on_message; /* both optional */
    node_event_fn on_event;
    void *context;
};

/** Options for a node: NULL path = anonymous. */
struct ringbus_options node_options(const struct cluster *cluster, const char *path);
/** Opens; keeps on_message, on_event and context. Ends the test when it fails. */
void node_open(struct node *node, const struct cluster *cluster, const char *path);
/** The same. @return as ringbus_open() */
int node_try_open(struct node *node, struct ringbus_options *options);
void node_open_with(struct node *node, struct ringbus_options *options);
/** Closes without draining; asserts that it works. */
void node_close(struct node *node);
/** Targets, and waits for as many READY; the others are polled as well. */
struct ringbus_addr
node_target(struct node *node, const char *path, unsigned ready, struct node *other);
/** Polls each; waits up to a millisecond on the first when nothing was there. NULLs are skipped. */
void nodes_step(struct node *const *nodes, unsigned count);
/** ringbus_reply_fn that counts into the node given as context. */
void node_on_result(struct ringbus *bus, const struct ringbus_result *result, void *context);
uint64_t node_pool_used(const struct node *node);
struct ringbus_stats node_stats(const struct node *node);

/** Ends a test that went wrong, in whichever process. */
_Noreturn void bus_die(const char *file, int line, const char *what);

#define CHECK(condition) ((condition) ? (void)0 : bus_die(__FILE__, __LINE__, #condition))
/** Polls the nodes until the condition holds. */
#define RUN_UNTIL(condition, timeout_ms, ...)                                                      \
    do {                                                                                           \
        struct node *const nodes_[] = {__VA_ARGS__};                                               \
        const uint64_t deadline_ms_ = test_now_ms() + (timeout_ms);                                \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > deadline_ms_) {                                                    \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            nodes_step(nodes_, sizeof nodes_ / sizeof nodes_[0]);                                  \
        }                                                                                          \
    } while (0)

/** Words that all processes of a test share. Zeroed by shared_reset(). */
extern _Atomic uint64_t *bus_shared;
/** Maps them; call in the main process before any fork. */
void bus_shared_reset(void);
#define BUS_SHARED_COUNT 512U

/** Forks a peer that runs @p body and exits with 0. */
pid_t child_start(void (*body)(const struct cluster *cluster, void *context),
                  const struct cluster *cluster,
                  void *context);
/** @return exit code; 128 + signal; kills it when it does not end within @p timeout_ms (then -1) */
int child_wait(pid_t pid, unsigned timeout_ms);
void child_kill(pid_t pid);

/** Open descriptors of this process. */
unsigned bus_fd_count(void);
/** Mappings of memfds named ringbus-* in this process. */
unsigned bus_map_count(void);
/** Deterministic random numbers. */
uint64_t bus_random(uint64_t *state);

#endif
