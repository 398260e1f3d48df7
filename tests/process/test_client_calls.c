/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of many to many: none is mistaken for another (scenario 50), none waits for ever, be
 * they nested or both lanes full, and none is kept for a server that is not there (51, 58).
 */
#include "process/client_calls.h"

/* ---- two that ask each other ---------------------------------------------------------------- */

/*
 * What a program does whose handler cannot answer or ask at once: it notes that, goes on
 * dispatching, and tries again after each poll, the oldest first. It needs room for what its
 * peers may have under way with it, and no more.
 */
#define UNDER_WAY 256U

#define TODO_MAX (4U * UNDER_WAY)

struct todo {
    struct ringbus_reply_to answer; /* id 0: ask */
    uint32_t number;
    uint32_t depth;
};

struct question {
    uint32_t number;
    uint32_t depth;
};

struct side {
    struct node node;
    struct ringbus_addr other;
    struct todo todo[TODO_MAX];
    unsigned first;
    unsigned count;
    unsigned most;
    /* Of what was asked here, for a question of the other side: whom to answer. */
    struct ringbus_reply_to waiting[UNDER_WAY * 16U];
    uint64_t asked;
    uint64_t under_way;
    uint64_t answered;
    uint64_t refused; /* inside handlers, for want of room */
    unsigned char ended[20000];
};

static struct side sides[2];

static void later(struct side *side, const struct todo *todo)
{
    CHECK(side->count < TODO_MAX);
    side->todo[(side->first + side->count++) % TODO_MAX] = *todo;
    side->most = side->count > side->most ? side->count : side->most;
}

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context);

/* @return false: no room now */
static bool try_one(struct side *side, const struct todo *todo)
{
    const struct question question = {.number = todo->number, .depth = todo->depth};
    const int r = todo->answer.id != 0
                      ? ringbus_reply(side->node.bus, &todo->answer, &question, sizeof question, 0)
                      : ringbus_request(side->node.bus, &side->other, 0, &question, sizeof question,
                                        0, 60000, on_result, side);
    CHECK(r == 1 || r == RINGBUS_E_FULL);
    return r == 1;
}

static void now_or_later(struct side *side, const struct todo *todo)
{
    /* Nothing passes what waits already. */
    if (side->count > 0 || !try_one(side, todo)) {
        side->refused++;
        later(side, todo);
    }
}

static unsigned slot_of(const struct question *question)
{
    return (question->number % UNDER_WAY) * 16U + question->depth;
}

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct side *side = context;
    struct question question;
    (void)bus;
    CHECK(result->outcome == RINGBUS_REPLIED && result->message->size == sizeof question);
    memcpy(&question, result->message->data, sizeof question);
    struct ringbus_reply_to *waiting = &side->waiting[slot_of(&question)];
    if (waiting->id != 0) {
        const struct todo todo = {
            .answer = *waiting, .number = question.number, .depth = question.depth + 1};
        waiting->id = 0;
        now_or_later(side, &todo);
    } else {
        CHECK(question.number < sizeof side->ended && side->ended[question.number] == 0);
        side->ended[question.number] = 1;
        side->under_way--;
        side->answered++;
    }
}

/* A question of depth 0 is answered; any other is asked back first, one less deep. */
static void on_question(struct node *node, const struct ringbus_message *message)
{
    struct side *side = node->context;
    struct question question;
    memcpy(&question, message->data, sizeof question);
    struct todo todo = {.answer = message->reply_to, .number = question.number};
    if (question.depth > 0) {
        question.depth--;
        CHECK(side->waiting[slot_of(&question)].id == 0);
        side->waiting[slot_of(&question)] = message->reply_to;
        todo = (struct todo){.number = question.number, .depth = question.depth};
    }
    now_or_later(side, &todo);
}

static void step(struct side *side, uint64_t most, uint64_t count, uint32_t depth)
{
    while (side->count > 0 && try_one(side, &side->todo[side->first])) {
        side->first = (side->first + 1) % TODO_MAX;
        side->count--;
    }
    while (side->count == 0 && side->asked < count && side->under_way < most) {
        const struct todo todo = {.number = (uint32_t)side->asked, .depth = depth};
        if (!try_one(side, &todo)) {
            break;
        }
        side->asked++;
        side->under_way++;
    }
    CHECK(ringbus_poll(side->node.bus, 64) >= 0);
}

static void ask_each_other(bool both, uint64_t most, uint64_t count, uint32_t depth)
{
    struct side *a = &sides[0];
    struct side *b = &sides[1];
    memset(sides, 0, sizeof sides);
    for (unsigned i = 0; i < 2; i++) {
        struct ringbus_options options = node_options(&cluster, i == 0 ? PLACE "a/1" : PLACE "b/1");
        options.lane_bytes = 4096;
        sides[i].node.on_message = on_question;
        sides[i].node.context = &sides[i];
        node_open_with(&sides[i].node, &options);
    }
    node_target(&a->node, PLACE "b", 1, &b->node);
    assert_int_equal(ringbus_target(b->node.bus, PLACE "a", NULL, NULL), 0);
    RUN_UNTIL(b->node.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &a->node, &b->node);
    a->other = a->node.peer;
    b->other = b->node.peer;
    uint64_t before = 0;
    uint64_t deadline_ms = test_now_ms() + NODE_MS;
    const uint64_t theirs = both ? count : 0;
    while (a->answered < count || b->answered < theirs) {
        step(a, most, count, depth);
        step(b, most, theirs, depth);
        if (a->answered + b->answered != before) {
            before = a->answered + b->answered;
            deadline_ms = test_now_ms() + NODE_MS;
        }
        assert_true(test_now_ms() < deadline_ms); /* they wait for each other */
    }
    const struct ringbus_stats stats = node_stats(&a->node);
    assert_int_equal(stats.late_replies + stats.timeouts, 0);
    assert_int_equal(a->count + b->count, 0);
    print_message("%u at once: full %llu times, %llu in handlers, at most %u noted\n",
                  (unsigned)most, (unsigned long long)stats.full, (unsigned long long)a->refused,
                  a->most > b->most ? a->most : b->most);
    node_close(&a->node);
    node_close(&b->node);
}

/* Both lanes are full of requests, and the replies have to go through them. */
static void test_both_lanes_full(void **state)
{
    (void)state;
    ask_each_other(true, UNDER_WAY, 20000 / TEST_SCALE, 0);
    assert_true(sides[0].refused > 0 && sides[1].refused > 0);
    /* Bounded by what the other has under way. */
    assert_true(sides[0].most <= UNDER_WAY && sides[1].most <= UNDER_WAY);
}

/* The server asks its client, who asks back, ten deep: one at a time, and with full lanes. */
static void test_nested_requests(void **state)
{
    (void)state;
    ask_each_other(false, 1, 200 / TEST_SCALE, 10);
    assert_int_equal(sides[0].refused + sides[1].refused, 0);
    ask_each_other(false, UNDER_WAY, 2000 / TEST_SCALE, 10);
    assert_true(sides[0].refused > 0);
}

/* ---- nobody there --------------------------------------------------------------------------- */

static void never(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)result;
    (void)context;
    bus_die(__FILE__, __LINE__, "a request that was refused has ended as well");
}

/* Scenario 51: refused at once, and nothing of it comes when the server does. */
static void test_target_that_is_not_there(void **state)
{
    (void)state;
    static struct node client;
    static struct node server;
    struct ringbus_addr to;
    node_open(&client, &cluster, NULL);
    assert_int_equal(ringbus_target(client.bus, PLACE "none", NULL, &to), 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(ringbus_request(client.bus, &to, 0, "", 0, 0, 200, never, NULL),
                         RINGBUS_E_NO_SERVICE);
        assert_int_equal(ringbus_send(client.bus, &to, 0, "", 0, 0), RINGBUS_E_NO_SERVICE);
        struct ringbus_addr all = to;
        all.instance = RINGBUS_ALL;
        assert_int_equal(ringbus_send(client.bus, &all, 0, "", 0, 0), 0);
        nodes_step((struct node *[]){&client}, 1);
    }
    assert_int_equal(node_stats(&client).no_peer, 200);
    node_open(&server, &cluster, PLACE "none/1");
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &client, &server);
    assert_int_equal(ringbus_send(client.bus, &to, 0, "", 0, 0), 1);
    RUN_UNTIL(server.messages > 0, NODE_MS, &client, &server);
    assert_int_equal(server.messages, 1);
    node_close(&server);
    node_close(&client);
}

/* Registers, and says nothing until told to. */
static void never_ready(const struct cluster *at, void *context)
{
    static struct node node;
    (void)context;
    node_open(&node, at, PLACE "mute/1");
    atomic_store(&bus_shared[WORD_UP], 1);
    while (atomic_load(&bus_shared[WORD_ASKED]) == 0) {
        test_sleep_ms(1);
    }
    for (;;) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, 1000) >= 0);
        atomic_store(&bus_shared[WORD_ANSWERED], node.messages);
    }
}

/* Scenario 58: an instance that never becomes READY holds nothing up, and may do so yet. */
static void test_instance_that_is_never_ready(void **state)
{
    (void)state;
    enum { CLIENTS = 8 };
    static struct node clients[CLIENTS];
    struct node *all[CLIENTS];
    struct ringbus_addr to;
    bus_shared_reset();
    memset(clients, 0, sizeof clients);
    const unsigned maps = bus_map_count();
    const unsigned fds = bus_fd_count();
    const pid_t pid = child_start(never_ready, &cluster, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_UP]) == 1, NODE_MS, NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        all[i] = &clients[i];
        node_open(&clients[i], &cluster, NULL);
        const struct ringbus_target_options options = {
            .struct_size = sizeof options, .ping_interval_ms = 20, .ping_misses = 1};
        assert_int_equal(ringbus_target(clients[i].bus, PLACE "mute", &options, &to), 0);
    }
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    for (unsigned failed = 0; failed < CLIENTS;) {
        failed = 0;
        nodes_step(all, CLIENTS);
        for (unsigned i = 0; i < CLIENTS; i++) {
            const int r = ringbus_request(clients[i].bus, &to, 0, "", 0, 0, 200, never, NULL);
            assert_true(r == RINGBUS_E_NOT_READY || r == RINGBUS_E_NO_SERVICE);
            failed += clients[i].events[RINGBUS_EVENT_LINK_FAILED] > 0;
        }
        assert_true(test_now_ms() < deadline_ms);
    }
    assert_int_equal(clients[0].error, RINGBUS_E_TIMEOUT);
    assert_int_equal(atomic_load(&bus_shared[WORD_ANSWERED]), 0);
    atomic_store(&bus_shared[WORD_ASKED], 1);
    for (unsigned i = 0; i < CLIENTS; i++) {
        RUN_UNTIL(clients[i].events[RINGBUS_EVENT_READY] > 0, NODE_MS, &clients[i]);
        assert_int_equal(ringbus_send(clients[i].bus, &to, 0, "", 0, 0), 1);
    }
    RUN_UNTIL(atomic_load(&bus_shared[WORD_ANSWERED]) == CLIENTS, NODE_MS, &clients[0]);
    for (unsigned i = 0; i < CLIENTS; i++) {
        node_close(&clients[i]);
    }
    child_kill(pid);
    assert_int_equal(bus_map_count(), maps);
    assert_int_equal(bus_fd_count(), fds);
}

/* ---- a link that comes back ----------------------------------------------------------------- */

static struct ringbus_reply_to first_asked;
static unsigned asked_count;

static void note_first(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    if (asked_count++ == 0) {
        first_asked = message->reply_to;
    }
}

/* The reply to what was asked over the last link of two lives ends nothing of the next link. */
static void test_reply_over_the_next_link(void **state)
{
    (void)state;
    static struct node client;
    static struct node server = {.on_message = note_first};
    asked_count = 0;
    node_open(&server, &cluster, PLACE "server/1");
    node_open(&client, &cluster, NULL);
    node_target(&client, PLACE "server", 1, &server);
    const struct ringbus_addr to = client.peer;
    assert_int_equal(ringbus_request(client.bus, &to, 0, "1", 1, 0, 60000, node_on_result, &client),
                     1);
    RUN_UNTIL(asked_count == 1, NODE_MS, &client, &server);
    assert_int_equal(ringbus_untarget(client.bus, PLACE "server"), 0);
    RUN_UNTIL(client.replies[RINGBUS_UNKNOWN] == 1 && server.events[RINGBUS_EVENT_DOWN] == 1,
              NODE_MS, &client, &server);
    node_target(&client, PLACE "server", 1, &server);
    assert_int_equal(client.peer.incarnation, to.incarnation);
    assert_int_equal(ringbus_request(client.bus, &to, 0, "2", 1, 0, 60000, node_on_result, &client),
                     1);
    RUN_UNTIL(asked_count == 2, NODE_MS, &client, &server);
    assert_int_equal(ringbus_reply(server.bus, &first_asked, "1", 1, 0), 1);
    RUN_UNTIL(node_stats(&client).late_replies == 1, NODE_MS, &client, &server);
    assert_int_equal(client.replies[RINGBUS_REPLIED], 0);
    node_close(&client);
    assert_int_equal(client.replies[RINGBUS_UNKNOWN], 2);
    node_close(&server);
}

/* One slot passes over the end of its numbers: each request has its own reply, and no other. */
static void test_numbers_pass_their_end(void **state)
{
    (void)state;
    static struct node client;
    static struct node server = {.on_message = note_first};
    node_open(&server, &cluster, PLACE "server/1");
    node_open(&client, &cluster, NULL);
    node_target(&client, PLACE "server", 1, &server);
    struct ringbus_reply_to before = {.id = 0};
    for (unsigned i = 0; i < 8; i++) {
        asked_count = 0;
        assert_int_equal(
            ringbus_request(client.bus, &client.peer, 0, "", 0, 0, 60000, node_on_result, &client),
            1);
        RUN_UNTIL(asked_count == 1, NODE_MS, &client, &server);
        assert_true(first_asked.id != 0 && first_asked.id != before.id);
        /* The last one is answered twice: what comes second is late. */
        assert_int_equal(before.id == 0 ? 1 : ringbus_reply(server.bus, &before, "", 0, 0), 1);
        assert_int_equal(ringbus_reply(server.bus, &first_asked, "", 0, 0), 1);
        RUN_UNTIL(client.replies[RINGBUS_REPLIED] == i + 1, NODE_MS, &client, &server);
        assert_int_equal(node_stats(&client).late_replies, i);
        before = first_asked;
        if (i == 0) {
            start_near_the_wrap(client.bus);
        }
    }
    node_close(&client);
    node_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_lanes_full),
        cmocka_unit_test(test_nested_requests),
        cmocka_unit_test(test_target_that_is_not_there),
        cmocka_unit_test(test_instance_that_is_never_ready),
        cmocka_unit_test(test_reply_over_the_next_link),
        cmocka_unit_test(test_numbers_pass_their_end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
