/* SPDX-License-Identifier: Apache-2.0 */
#include "faults/victim.h"

#include "support/bus.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define LARGE_BYTES 20000U /* by reference: more than goes into a lane */
#define SMALL_BYTES 50U

static unsigned char payload[LARGE_BYTES];

/* ---- what comes ------------------------------------------------------------------------------ */

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct victim *victim = user;
    victim->messages++;
    if (victim->wants_to_keep && victim->kept == NULL) {
        victim->keep_error = ringbus_keep(bus, message, &victim->kept);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct victim *victim = user;
    (void)bus;
    victim->down += event->type == RINGBUS_EVENT_DOWN;
    victim->back += event->type == RINGBUS_EVENT_DAEMON_BACK;
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct victim *victim = context;
    (void)bus;
    if (result->outcome == RINGBUS_REPLIED) {
        victim->replied++;
        victim->damaged |= memcmp(result->message->data, payload, result->message->size) != 0;
    } else {
        victim->not_replied++;
        victim->reply_error = result->error;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/** Remembers the sentence while it is there. */
static int told(struct victim *victim, int r)
{
    if (r < 0) {
        (void)snprintf(victim->error, sizeof victim->error, "%s", ringbus_errmsg(victim->bus));
    }
    return r;
}

static int step(struct victim *victim)
{
    int r = told(victim, ringbus_poll(victim->bus, 100));
    if (r == 0) {
        r = told(victim, ringbus_wait(victim->bus, 20));
    }
    return r < 0 ? r : 0;
}

/** Lives on until the condition holds; a call that fails ends the run. */
#define UNTIL(victim, condition)                                                                   \
    for (const uint64_t deadline_ms_ = test_now_ms() + VICTIM_MS; !(condition);) {                 \
        if (test_now_ms() > deadline_ms_) {                                                        \
            (victim)->never = #condition;                                                          \
            return VICTIM_NEVER;                                                                   \
        }                                                                                          \
        const int step_ = step(victim);                                                            \
        if (step_ < 0) {                                                                           \
            return step_;                                                                          \
        }                                                                                          \
    }

#define TRY(victim, call)                                                                          \
    do {                                                                                           \
        const int try_ = told(victim, call);                                                       \
        if (try_ < 0) {                                                                            \
            return try_;                                                                           \
        }                                                                                          \
    } while (0)

static int open_as(struct victim *victim, const char *path)
{
    struct ringbus_options options = node_options(victim->cluster, path);
    const struct ringbus_pool_class pool[] = {{32768, 4}};
    if (victim->bus != NULL) {
        return 0;
    }
    memcpy(options.pool, pool, sizeof pool);
    options.lane_bytes = 4096;
    options.connect_timeout_ms = 2000;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = victim;
    TRY(victim, ringbus_open(&options, &victim->bus));
    return 0;
}

static int open_anonymous(struct victim *victim)
{
    return open_as(victim, NULL);
}

static int open_named(struct victim *victim)
{
    return open_as(victim, VICTIM_1);
}

static bool is_linked(struct victim *victim)
{
    struct ringbus_instance list[2];
    return ringbus_instances(victim->bus, PARTNER, list, 2) == 1 && list[0].linked == 1;
}

static int link_up(struct victim *victim)
{
    TRY(victim, ringbus_target(victim->bus, PARTNER, NULL, &victim->partner));
    UNTIL(victim, is_linked(victim))
    return 0;
}

static int open_linked(struct victim *victim)
{
    const int r = open_anonymous(victim);
    return r != 0 ? r : link_up(victim);
}

static int ask(struct victim *victim, size_t size)
{
    const unsigned replied = victim->replied;
    const unsigned not_replied = victim->not_replied;
    struct ringbus_addr to = victim->partner;
    to.instance = RINGBUS_ANY;
    TRY(victim,
        ringbus_request(victim->bus, &to, 0, payload, size, 0, VICTIM_MS / 2, on_reply, victim));
    UNTIL(victim, victim->replied > replied || victim->not_replied > not_replied)
    if (victim->replied == replied) {
        (void)snprintf(victim->error, sizeof victim->error, "the request ended: %s",
                       ringbus_strerror(victim->reply_error));
        return victim->reply_error;
    }
    return 0;
}

static int talk_once(struct victim *victim)
{
    int r = open_linked(victim);
    r = r != 0 ? r : ask(victim, SMALL_BYTES);
    return r != 0 ? r : ask(victim, LARGE_BYTES);
}

int victim_talk(struct victim *victim)
{
    const uint64_t deadline_ms = test_now_ms() + VICTIM_MS;
    int r = talk_once(victim);
    /* A link that the error has ended comes back. */
    while (r < 0 && r != VICTIM_NEVER && test_now_ms() < deadline_ms) {
        if (victim->bus != NULL) {
            (void)step(victim);
        }
        r = talk_once(victim);
    }
    return r;
}

int victim_close(struct victim *victim)
{
    if (victim->bus == NULL) {
        return 0;
    }
    const int r = told(victim, ringbus_close(victim->bus, 50));
    if (r == 0 || r == RINGBUS_E_TIMEOUT) {
        victim->bus = NULL;
        return 0;
    }
    return r;
}

/* ---- operations ------------------------------------------------------------------------------ */

static int run_greeting(struct victim *victim)
{
    UNTIL(victim, victim->messages > 0)
    return 0;
}

static int run_small(struct victim *victim)
{
    return ask(victim, SMALL_BYTES);
}

static int run_large(struct victim *victim)
{
    return ask(victim, LARGE_BYTES);
}

static int run_sleep(struct victim *victim)
{
    TRY(victim, ringbus_wait(victim->bus, 10));
    return 0;
}

static int run_wake(struct victim *victim)
{
    TRY(victim, ringbus_wake(victim->bus));
    const uint64_t start_ms = test_now_ms();
    TRY(victim, ringbus_wait(victim->bus, VICTIM_MS));
    victim->never = "the end of a sleep";
    return test_now_ms() - start_ms < VICTIM_MS ? 0 : VICTIM_NEVER;
}

/** The descriptor alone says when to poll. */
static int run_loop(struct victim *victim)
{
    const uint64_t deadline_ms = test_now_ms() + VICTIM_MS;
    const unsigned replied = victim->replied;
    const unsigned not_replied = victim->not_replied;
    struct pollfd ready = {.events = POLLIN};
    TRY(victim, ringbus_fd(victim->bus));
    ready.fd = ringbus_fd(victim->bus);
    TRY(victim, ringbus_request(victim->bus, &victim->partner, 0, payload, SMALL_BYTES, 0, 1000,
                                on_reply, victim));
    while (victim->replied == replied) {
        if (victim->not_replied > not_replied && victim->reply_error != RINGBUS_E_TIMEOUT) {
            (void)snprintf(victim->error, sizeof victim->error, "the request ended: %s",
                           ringbus_strerror(victim->reply_error));
            return victim->reply_error;
        }
        if (test_now_ms() > deadline_ms || victim->not_replied > not_replied) {
            victim->never = "an answer, with a loop of its own";
            return VICTIM_NEVER;
        }
        if (poll(&ready, 1, (int)VICTIM_MS) == 1) {
            TRY(victim, ringbus_poll(victim->bus, 100));
        }
    }
    return 0;
}

static int run_keep(struct victim *victim)
{
    victim->wants_to_keep = true;
    victim->keep_error = 0;
    if (victim->kept == NULL) {
        const unsigned messages = victim->messages;
        struct ringbus_addr to = victim->partner;
        to.instance = RINGBUS_ANY;
        TRY(victim, ringbus_send(victim->bus, &to, 0, payload, LARGE_BYTES, 0));
        UNTIL(victim, victim->messages > messages)
        TRY(victim, victim->keep_error);
    }
    victim->damaged |= memcmp(victim->kept->data, payload, victim->kept->size) != 0;
    TRY(victim, ringbus_release(victim->bus, victim->kept));
    victim->kept = NULL;
    victim->wants_to_keep = false;
    return 0;
}

static int run_instances(struct victim *victim)
{
    struct ringbus_instance list[4];
    TRY(victim, ringbus_instances(victim->bus, PARTNER, list, 4));
    return 0;
}

static int run_watch(struct victim *victim)
{
    TRY(victim, ringbus_watch(victim->bus, "/game"));
    TRY(victim, step(victim));
    TRY(victim, ringbus_unwatch(victim->bus, "/game"));
    return 0;
}

static int run_untarget(struct victim *victim)
{
    if (victim->down == 0) {
        TRY(victim, ringbus_untarget(victim->bus, PARTNER));
    }
    UNTIL(victim, victim->down > 0)
    return 0;
}

static int run_drain(struct victim *victim)
{
    TRY(victim, ringbus_drain(victim->bus));
    UNTIL(victim, ringbus_drained(victim->bus) == 1)
    TRY(victim, ringbus_undrain(victim->bus));
    return 0;
}

static int run_return(struct victim *victim)
{
    if (!victim->asked) {
        victim->asked = true;
        atomic_store(&bus_shared[SHARED_RESTART], 1);
    }
    UNTIL(victim, victim->back > 0)
    return 0;
}

const struct operation operations[] = {
    {"open", NULL, open_anonymous},
    {"open a name", NULL, open_named},
    {"target", open_anonymous, link_up},
    {"accept", open_named, run_greeting},
    {"small", open_linked, run_small},
    {"large", open_linked, run_large},
    {"sleep", open_linked, run_sleep},
    {"wake", open_linked, run_wake},
    {"loop", open_linked, run_loop},
    {"keep", open_linked, run_keep},
    {"instances", open_linked, run_instances},
    {"watch", open_linked, run_watch},
    {"untarget", open_linked, run_untarget},
    {"drain", open_named, run_drain},
    {"close", open_linked, victim_close},
    {"return", open_linked, run_return},
};
const size_t operation_count = RBI_ARRAY_SIZE(operations);

/* ---- partner --------------------------------------------------------------------------------- */

static void serve(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        (void)ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0);
    } else {
        (void)ringbus_send(node->bus, &message->from, 0, message->data, message->size, 0);
    }
}

static void greet(struct node *node, const struct ringbus_event *event)
{
    if (event->type == RINGBUS_EVENT_READY && strcmp(event->path, VICTIM_1) == 0) {
        (void)ringbus_send(node->bus, &event->addr, 0, payload, LARGE_BYTES, 0);
    }
}

void partner_run(const struct cluster *cluster, void *context)
{
    struct node node = {.on_message = serve, .on_event = greet};
    struct ringbus_addr addr;
    (void)context;
    node_open(&node, cluster, PARTNER_1);
    CHECK(ringbus_target(node.bus, VICTIM, NULL, &addr) == 0);
    for (;;) { /* until it is killed */
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, -1) >= 0);
    }
}
