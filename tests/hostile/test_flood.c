/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that do too much, or nothing at all: only their own link may suffer. */
#include "hostile/attack.h"
#include "shm/bell.h"

#include <pthread.h>
#include <ringbus/ringbus.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICKS_PER_S 100

static unsigned long_seconds = 2;

/* ---- a peer that writes or rings without end --------------------------------------------- */

enum noise { NOISE_MESSAGES, NOISE_REFERENCES, NOISE_PINGS, NOISE_READY, NOISE_RINGS };

struct noisy {
    enum noise what;
    _Atomic int stop;
    uint64_t made;
};

static void make_noise(const struct noisy *noisy)
{
    static const uint64_t body[4] = {0, 0, 8, 1};
    const struct rbi_ready ready = peer_ready(&peer);
    switch (noisy->what) {
    case NOISE_MESSAGES:
        peer_put(&peer, rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0), body, sizeof(body));
        break;
    case NOISE_REFERENCES:
        peer_put(&peer, rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_REF, 0, 0), body,
                 sizeof(body));
        break;
    case NOISE_PINGS:
        peer_put(&peer, rbi_record_meta(RBI_RECORD_PING, 0, 0, 0), body, 8);
        break;
    case NOISE_READY:
        peer_put_ready(&peer, &ready);
        break;
    case NOISE_RINGS:
        peer_ring(&peer);
        break;
    }
}

/** Keeps the lane as full as it goes; reads what comes back, for that must not stop it. */
static void *be_noisy(void *context)
{
    struct noisy *noisy = context;
    struct rbi_record record;
    while (!noisy->stop) {
        const uint64_t used = peer.pos - rbi_load_acq(&peer_their_side(&peer)->read_pos);
        if (noisy->what == NOISE_RINGS || used + 1024 < PEER_LANE_CAPACITY) {
            make_noise(noisy);
            noisy->made++;
        }
        while (noisy->what != NOISE_RINGS && peer_read(&peer, &record) == 0) {
        }
    }
    return NULL;
}

/** Honest messages, and introductions, go on meanwhile. */
static void expect_service_beside(enum noise what)
{
    struct noisy noisy = {.what = what};
    struct peer other;
    pthread_t thread;
    relink();
    assert_int_equal(peer_up(&other, stage.cluster.socket, HOSTILE "/8"), 0);
    const uint64_t received = stage.scene->honest_received;
    const uint64_t start_ms = test_now_ms();
    assert_int_equal(pthread_create(&thread, NULL, be_noisy, &noisy), 0);
    unsigned links = 0;
    while (test_now_ms() - start_ms < 1000) {
        const uint64_t before_ms = test_now_ms();
        assert_int_equal(peer_link(&other, stage.scene->cluster, (int32_t)stage.scene->instance),
                         0);
        assert_true(test_now_ms() - before_ms < 1000);
        links++;
        peer_unlink(&other);
        test_sleep_ms(20);
    }
    noisy.stop = 1;
    (void)pthread_join(thread, NULL);
    peer_down(&other);
    const uint64_t honest = stage.scene->honest_received - received;
    print_message("noise %d: %llu made, %llu honest messages, %u links beside it\n", (int)what,
                  (unsigned long long)noisy.made, (unsigned long long)honest, links);
    assert_true(noisy.made > 1000);
    assert_true(honest > 100);
    assert_true(links > 3);
    peer_unlink(&peer);
}

static void test_floods(void **state)
{
    (void)state;
    for (int what = NOISE_MESSAGES; what <= NOISE_RINGS; what++) {
        expect_service_beside((enum noise)what);
    }
}

/** A handler that takes its time gives the flood no advantage. */
static void test_flood_of_slow_handler(void **state)
{
    (void)state;
    /* At this pace the victim learns to look at its clock but seldom. */
    stage.scene->pause_honest_us = 20;
    test_sleep_ms(500);
    stage.scene->pause_honest_us = 200;
    stage.scene->slow_us = 500;
    expect_service_beside(NOISE_MESSAGES);
    stage.scene->slow_us = 0;
}

static void test_endless_rings(void **state)
{
    struct noisy noisy = {.what = NOISE_RINGS};
    pthread_t thread;
    (void)state;
    relink();
    stage.scene->pause_honest_us = 50000;
    test_sleep_ms(100);
    const uint64_t waits = stage.scene->waits;
    const long ticks = stage_cpu_ticks(stage.victim);
    assert_int_equal(pthread_create(&thread, NULL, be_noisy, &noisy), 0);
    test_sleep_ms(long_seconds * 1000);
    noisy.stop = 1;
    (void)pthread_join(thread, NULL);
    const long spent = stage_cpu_ticks(stage.victim) - ticks;
    print_message("%llu rings; the victim used %ld of %u ticks, %llu waits returned\n",
                  (unsigned long long)noisy.made, spent, long_seconds * TICKS_PER_S,
                  (unsigned long long)(stage.scene->waits - waits));
    assert_true(stage.scene->waits - waits > long_seconds * 10);
    assert_true(spent < (long)(long_seconds * TICKS_PER_S / 4));
    /* It is heard again, and dies like any other. */
    stage.scene->pause_honest_us = 200;
    assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
    const uint64_t downs = stage.scene->downs;
    (void)shutdown(peer.bell, SHUT_RDWR);
    assert_true(stage_changes(&stage.scene->downs, downs, 2000));
    peer_unlink(&peer);
}

/** Honest rings are never taken for noise, however many come. */
static void test_many_honest_rings(void **state)
{
    (void)state;
    relink();
    for (unsigned i = 0; i < 500; i++) {
        const uint64_t before_ms = test_now_ms();
        assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
        assert_true(test_now_ms() - before_ms < 90); /* muted it would be 100 */
        peer_ring(&peer);                            /* one late ring for each is usual */
    }
}

/* ---- a peer that does nothing ------------------------------------------------------------ */

static void test_never_reads(void **state)
{
    (void)state;
    relink();
    stage.scene->talk = 1;
    const uint64_t deadline_ms = test_now_ms() + 5000;
    uint64_t talked = 0;
    do {
        assert_true(test_now_ms() < deadline_ms);
        talked = stage.scene->talked;
        test_sleep_ms(200);
    } while (talked == 0 || stage.scene->talked != talked); /* until nothing more goes in */
    const uint64_t full = stage.scene->talk_full;
    assert_true(stage_changes(&stage.scene->talk_full, full, 1000));
    assert_true(stage_alive(&stage));
    stage.scene->talk = 0;
    const uint64_t downs = stage.scene->downs;
    peer_unlink(&peer);
    assert_true(stage_changes(&stage.scene->downs, downs, 2000));
    assert_true(stage.scene->undelivered > 0);
}

/**
 * The receiver gives chunks back before it says that it has read their records: what comes
 * back to the sender at its death must not show chunks that hold something else by now.
 */
static void test_returns_before_reading(void **state)
{
    struct rbi_side *side = NULL;
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        relink();
        side = peer_side(&peer);
        rbi_word *ring = (rbi_word *)(void *)((unsigned char *)side + side->returns_offset);
        uint64_t returns = 0;
        struct rbi_record record;
        stage.scene->talk = 1;
        const uint64_t deadline_ms = test_now_ms() + 200;
        const uint64_t released = rbi_load_rlx(&side->read_pos);
        while (test_now_ms() < deadline_ms) {
            while (peer_read(&peer, &record) == 0) {
                rbi_store_seq(&side->read_pos, released);
                /* The last ones stay out: their slots and chunks were others' before. */
                if ((record.flags & RBI_RECORD_REF) && returns < 20) {
                    ring[returns++ % PEER_RETURNS] = record.ref.slot;
                    rbi_store_rel(&side->returns_pos, returns);
                }
            }
            (void)usleep(100);
        }
        stage.scene->talk = 0;
        const uint64_t downs = stage.scene->downs;
        peer_unlink(&peer);
        assert_true(stage_changes(&stage.scene->downs, downs, 2000));
        assert_int_equal(returns, 20);
    }
    assert_true(stage.scene->undelivered > 0);
    assert_int_equal(stage.scene->broken_views, 0);
}

static void test_never_answers_introduction(void **state)
{
    (void)state;
    const uint64_t failed = stage.scene->failed;
    stage.scene->target_hostile = 1;
    assert_true(stage_changes(&stage.scene->failed, failed, 5000));
    assert_int_equal(stage.scene->last_failed_error, RINGBUS_E_TIMEOUT);
    assert_true(stage_alive(&stage));
    stage.scene->target_hostile = 0;
    test_sleep_ms(50);
}

static void test_never_answers_ready(void **state)
{
    (void)state;
    stage.scene->target_hostile = 1;
    assert_int_equal(peer_introduced(&peer), 0);
    const uint64_t failed = stage.scene->failed;
    const uint64_t start_ms = test_now_ms();
    assert_int_equal(peer_accept_with(&peer, peer.side.fd, peer.side.size), 0);
    assert_true(stage_alive(&stage));
    assert_true(stage_changes(&stage.scene->failed, failed, 5000));
    assert_true(test_now_ms() - start_ms < 4000);
    assert_int_equal(stage.scene->last_failed_error, RINGBUS_E_TIMEOUT);
    assert_int_equal(stage.scene->last_failed, RBI_REASON_SILENT);
    stage.scene->target_hostile = 0;
    test_sleep_ms(50);
}

/** Each refusal makes the next try wait longer: no peer can make us introduce at speed. */
static void test_refuses_ready_again_and_again(void **state)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    const struct rbi_ready_ack ack = {.version = 1, .reason = RBI_REASON_REFUSED};
    const uint64_t deadline_ms = test_now_ms() + 2000;
    const uint64_t size = 8 + rbi_ready_ack_encode(&ack, body + 8);
    unsigned asked = 0;
    (void)state;
    stage.scene->target_hostile = 1;
    while (test_now_ms() < deadline_ms) {
        if (peer_introduced(&peer) != 0) {
            break; /* it waits longer than the test has patience */
        }
        asked++;
        assert_int_equal(peer_accept_with(&peer, peer.side.fd, peer.side.size), 0);
        if (peer_await(&peer, RBI_RECORD_READY, 0, PEER_TIMEOUT_MS) == 0) {
            peer_put(&peer, rbi_record_meta(RBI_RECORD_READY_ACK, 0, 0, 0), body, size);
            (void)peer_await_down(&peer, PEER_TIMEOUT_MS);
        }
    }
    stage.scene->target_hostile = 0;
    print_message("asked %u times\n", asked);
    assert_in_range(asked, 2, 8);
    assert_int_equal(stage.scene->last_failed, RBI_REASON_REFUSED);
    test_sleep_ms(50);
}

/* ---- a peer that comes and goes ---------------------------------------------------------- */

static void test_opens_and_closes(void **state)
{
    const uint64_t deadline_ms = test_now_ms() + long_seconds * UINT64_C(1000);
    unsigned links = 0;
    (void)state;
    stage.scene->talk = 1;
    while (test_now_ms() < deadline_ms) {
        if (links % 5 == 0) { /* never says READY */
            assert_int_equal(peer_offer(&peer), 0);
            assert_int_equal(
                peer_introduce(&peer, stage.scene->cluster, (int32_t)stage.scene->instance), 0);
            peer_unlink(&peer);
        } else {
            relink();
        }
        if (links % 5 == 2) {
            (void)shutdown(peer.bell, SHUT_RDWR);
            assert_true(peer_await_down(&peer, PEER_TIMEOUT_MS) >= 0);
        } else if (links % 5 == 3) {
            const uint64_t bye[2] = {0, RBI_REASON_LEFT};
            peer_put(&peer, rbi_record_meta(RBI_RECORD_DISCONNECT, 0, 0, 0), bye, sizeof(bye));
            assert_true(peer_await_down(&peer, PEER_TIMEOUT_MS) >= 0);
        } else if (links % 5 == 4) {
            peer_down(&peer);
            assert_int_equal(peer_up(&peer, stage.cluster.socket, HOSTILE_PATH), 0);
        }
        links++;
    }
    stage.scene->talk = 0;
    print_message("%u links\n", links);
    assert_true(links > 20);
}

/* ---- a liar about what it has read ------------------------------------------------------- */

#define FAKES      300U
#define FAKE_BYTES 40000U

struct caller {
    unsigned ended;
    int outcome;
    unsigned requests;
    struct ringbus_reply_to asked;
    struct ringbus_addr hostile;
    bool hostile_ready;
    bool hostile_down;
    unsigned undelivered;
};

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct caller *caller = context;
    (void)bus;
    caller->ended++;
    caller->outcome = (int)result->outcome;
}

static void on_request(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct caller *caller = user;
    (void)bus;
    caller->requests++;
    caller->asked = message->reply_to;
}

static void on_caller_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct caller *caller = user;
    (void)bus;
    if (strcmp(event->path, HOSTILE_PATH) == 0) {
        if (event->type == RINGBUS_EVENT_READY) {
            caller->hostile = event->addr;
            caller->hostile_ready = true;
        }
        caller->hostile_down |= event->type == RINGBUS_EVENT_DOWN;
    }
    caller->undelivered += event->type == RINGBUS_EVENT_UNDELIVERED;
}

static struct ringbus *open_handle(const char *path, struct caller *caller)
{
    struct ringbus *bus = NULL;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.socket = stage.cluster.socket;
    options.path = path;
    options.inline_max = 50000;
    options.on_message = on_request;
    options.on_event = on_caller_event;
    options.user = caller;
    assert_int_equal(ringbus_open(&options, &bus), 0);
    return bus;
}

static void step(struct ringbus *one, struct ringbus *two)
{
    (void)ringbus_wait(one, 1);
    assert_true(ringbus_poll(one, 64) >= 0);
    assert_true(ringbus_poll(two, 64) >= 0);
}

/** Lines of the payload pass for requests with the tags that the caller's own calls have. */
static void fill_fakes(unsigned char *payload)
{
    memset(payload, 0, FAKE_BYTES);
    for (unsigned i = 0; i < FAKES; i++) {
        const uint64_t word = (uint64_t)rbi_record_meta(RBI_RECORD_REQ, 0, 0, 0) << 32 | 40;
        const uint64_t tag = UINT64_C(1) << 32 | i % 8;
        unsigned char *at = payload + (size_t)64 * (i + 1) - 16;
        memcpy(at, &word, sizeof(word));
        memcpy(at + 8, &tag, sizeof(tag));
    }
}

static void test_forged_requests(void **state)
{
    static unsigned char payload[FAKE_BYTES];
    struct caller caller = {.ended = 0};
    struct caller served = {.ended = 0};
    struct ringbus_addr server;
    struct ringbus *bus = open_handle("/bad/eu/pc/w1/core/caller/1", &caller);
    struct ringbus *honest = open_handle("/bad/eu/pc/w1/core/server/1", &served);
    struct ringbus_addr self;
    (void)state;
    assert_int_equal(ringbus_target(bus, "/bad/eu/pc/w1/core/server/1", NULL, &server), 0);
    const uint64_t deadline_ms = test_now_ms() + 5000;
    while (ringbus_request(bus, &server, 0, NULL, 0, 0, 60000, on_reply, &caller) != 1) {
        assert_true(test_now_ms() < deadline_ms);
        step(bus, honest);
    }
    while (served.requests == 0) {
        assert_true(test_now_ms() < deadline_ms);
        step(bus, honest);
    }
    /* The hostile peer links itself, by hand, since the caller runs in this thread. */
    assert_int_equal(ringbus_self(bus, &self), 0);
    assert_int_equal(peer_offer(&peer), 0);
    const struct rbi_wire_introduce body = {
        .cluster = self.cluster, .instance = self.instance, .side_bytes = peer.side.size};
    const int fds[] = {peer.side.fd, peer.bell_copy};
    assert_int_equal(raw_send(&peer.raw, RBI_WIRE_INTRODUCE, &body, fds, 2), 0);
    const struct rbi_ready ready = peer_ready(&peer);
    peer_put_ready(&peer, &ready);
    while (!caller.hostile_ready) {
        assert_true(test_now_ms() < deadline_ms);
        step(bus, honest);
    }
    struct raw_message linked;
    assert_int_equal(raw_expect(&peer.raw, RBI_WIRE_LINKED, &linked, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&linked);
    fill_fakes(payload);
    /* READY_ACK lies in the first line. */
    assert_int_equal(ringbus_send(bus, &caller.hostile, 0, payload, sizeof(payload), 0), 1);
    rbi_store_seq(&peer_side(&peer)->read_pos, 128);
    (void)shutdown(peer.bell, SHUT_RDWR);
    while (!caller.hostile_down) {
        assert_true(test_now_ms() < deadline_ms);
        step(bus, honest);
    }
    assert_int_equal(caller.ended, 0);
    assert_int_equal(ringbus_reply(honest, &served.asked, NULL, 0, 0), 1);
    while (caller.ended == 0) {
        assert_true(test_now_ms() < deadline_ms);
        step(bus, honest);
    }
    assert_int_equal(caller.outcome, RINGBUS_REPLIED);
    assert_int_equal(ringbus_close(bus, 0), 0);
    assert_int_equal(ringbus_close(honest, 0), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_floods, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_flood_of_slow_handler, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_endless_rings, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_many_honest_rings, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_never_reads, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_returns_before_reading, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_never_answers_introduction, attack_setup,
                                        attack_teardown),
        cmocka_unit_test_setup_teardown(test_never_answers_ready, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_refuses_ready_again_and_again, attack_setup,
                                        attack_teardown),
        cmocka_unit_test_setup_teardown(test_opens_and_closes, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_forged_requests, attack_setup, attack_teardown),
    };
    if (argc == 3 && strcmp(argv[1], "--seconds") == 0) {
        long_seconds = (unsigned)strtoul(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests_name("flood", tests, NULL, NULL);
}
