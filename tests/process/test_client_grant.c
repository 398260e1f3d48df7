/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 34: what a link needs arrives at a process that has no descriptors left for it.
 * Server and requester are processes of their own, and either has room for 0 to 5 more. The
 * requester learns it within a second, nobody keeps what did arrive, the daemon forgets the
 * link, and it comes about by itself when there is room again.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"

#define ROOM_MAX      6U
#define FDS_LOOKED_AT 256
#define TOLD_MS       1000U

static struct cluster cluster;

/* Shared words. */
enum {
    WORD_ROOM,  /* order: descriptors that the child may have more than now; UINT64_MAX: any */
    WORD_DONE,  /* the order was carried out; its number */
    WORD_FDS,   /* descriptors that the child has */
    WORD_READY, /* links of the child */
    WORD_DOWN,
    WORD_FAILED, /* LINK_FAILED events */
    WORD_ERROR,  /* -error of the last one */
    WORD_TARGET, /* order: target PEER */
    WORD_END,
    WORDS = 16,
};

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Counts without opening anything: with no room at all that fails, wherever there is no gap. */
static unsigned fds_now(const struct rlimit *usual)
{
    unsigned count = 0;
    for (int fd = 0; fd < (int)usual->rlim_max && fd < FDS_LOOKED_AT; fd++) {
        count += is_open(fd);
    }
    return count;
}

static void carry_out(uint64_t room, const struct rlimit *usual)
{
    struct rlimit limit = *usual;
    if (room != UINT64_MAX) {
        /* The limit is one of numbers: those that are free below it are the room. */
        uint64_t left = room;
        int fd = 0;
        while (is_open(fd) || left > 0) {
            left -= !is_open(fd);
            fd++;
        }
        limit.rlim_cur = (rlim_t)fd;
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/** Server or requester; its words begin at @p words. */
static void serve(const struct cluster *at, const char *path, _Atomic uint64_t *words)
{
    static struct node node;
    struct rlimit usual;
    uint64_t room = UINT64_MAX;
    bool targets = false;
    CHECK(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    node_open(&node, at, path);
    while (atomic_load(&words[WORD_END]) == 0) {
        const uint64_t wanted = atomic_load(&words[WORD_ROOM]);
        if (wanted != room) {
            room = wanted;
            carry_out(room, &usual);
        }
        if (targets != (atomic_load(&words[WORD_TARGET]) != 0)) {
            targets = !targets;
            CHECK((targets ? ringbus_target(node.bus, PEER, NULL, NULL)
                           : ringbus_untarget(node.bus, PEER)) == 0);
        }
        CHECK(ringbus_poll(node.bus, 64) >= 0);
        CHECK(ringbus_wait(node.bus, 1) >= 0);
        atomic_store(&words[WORD_READY],
                     node.events[RINGBUS_EVENT_READY] - node.events[RINGBUS_EVENT_DOWN]);
        atomic_store(&words[WORD_FAILED], node.events[RINGBUS_EVENT_LINK_FAILED]);
        atomic_store(&words[WORD_ERROR], (uint64_t)-node.error);
        atomic_store(&words[WORD_FDS], fds_now(&usual));
        atomic_fetch_add(&words[WORD_DONE], 1);
    }
    node_close(&node);
}

static _Atomic uint64_t *words_of(bool server)
{
    return &bus_shared[server ? 0 : WORDS];
}

static void be_server(const struct cluster *at, void *context)
{
    (void)context;
    serve(at, PEER_1, words_of(true));
}

static void be_requester(const struct cluster *at, void *context)
{
    (void)context;
    serve(at, NULL, words_of(false));
}

/** Waits until the child has gone round its loop twice: what was ordered before is done. */
static void settle(_Atomic uint64_t *words)
{
    const uint64_t done = atomic_load(&words[WORD_DONE]);
    RUN_UNTIL(atomic_load(&words[WORD_DONE]) >= done + 2, NODE_MS, NULL);
}

/** One link, with so much room at one of the two. @return whether it failed at first */
static bool link_with(bool at_server, unsigned room)
{
    _Atomic uint64_t *server = words_of(true);
    _Atomic uint64_t *requester = words_of(false);
    _Atomic uint64_t *short_one = at_server ? server : requester;
    const uint64_t failed = atomic_load(&requester[WORD_FAILED]);
    const uint64_t fds[2] = {atomic_load(&server[WORD_FDS]), atomic_load(&requester[WORD_FDS])};
    atomic_store(&short_one[WORD_ROOM], room);
    settle(short_one);
    const uint64_t begin_ms = test_now_ms();
    atomic_store(&requester[WORD_TARGET], 1);
    RUN_UNTIL(atomic_load(&requester[WORD_FAILED]) > failed ||
                  atomic_load(&requester[WORD_READY]) == 1,
              NODE_MS, NULL);
    const bool fails = atomic_load(&requester[WORD_FAILED]) > failed;
    if (fails) {
        assert_true(test_now_ms() - begin_ms <= TOLD_MS);
        assert_int_equal(atomic_load(&requester[WORD_ERROR]), (uint64_t)-RINGBUS_E_NO_FDS);
    }
    /* Room again: it is tried again, and works. */
    atomic_store(&short_one[WORD_ROOM], UINT64_MAX);
    RUN_UNTIL(atomic_load(&requester[WORD_READY]) == 1 && atomic_load(&server[WORD_READY]) == 1,
              NODE_MS, NULL);
    assert_int_equal(raw_status(cluster.socket, "links"), 1);
    atomic_store(&requester[WORD_TARGET], 0);
    RUN_UNTIL(atomic_load(&requester[WORD_READY]) == 0 && atomic_load(&server[WORD_READY]) == 0,
              NODE_MS, NULL);
    /* Nothing of the tries is left anywhere. */
    RUN_UNTIL(atomic_load(&server[WORD_FDS]) == fds[0] &&
                  atomic_load(&requester[WORD_FDS]) == fds[1],
              NODE_MS, NULL);
    RUN_UNTIL(raw_status(cluster.socket, "links") == 0, NODE_MS, NULL);
    return fails;
}

/* What is made once, with the first link of a requester, is made. */
static void link_once(void)
{
    _Atomic uint64_t *requester = words_of(false);
    atomic_store(&requester[WORD_TARGET], 1);
    RUN_UNTIL(atomic_load(&requester[WORD_READY]) == 1, NODE_MS, NULL);
    atomic_store(&requester[WORD_TARGET], 0);
    RUN_UNTIL(raw_status(cluster.socket, "links") == 0, NODE_MS, NULL);
    settle(words_of(true));
    settle(requester);
}

static void test_truncated_grants(void **state)
{
    (void)state;
    bus_shared_reset();
    atomic_store(&words_of(true)[WORD_ROOM], UINT64_MAX);
    atomic_store(&words_of(false)[WORD_ROOM], UINT64_MAX);
    const pid_t server = child_start(be_server, &cluster, NULL);
    const pid_t requester = child_start(be_requester, &cluster, NULL);
    settle(words_of(true));
    settle(words_of(false));
    link_once();
    (void)link_with(true, 100);
    /* The daemon may not have closed our last question's connection yet. */
    int daemon_fds = cluster_fd_count(&cluster);
    for (unsigned i = 0; i < 30; i++) {
        test_sleep_ms(10);
        const int now = cluster_fd_count(&cluster);
        daemon_fds = now < daemon_fds ? now : daemon_fds;
    }
    for (unsigned at_server = 0; at_server < 2; at_server++) {
        unsigned failed = 0;
        for (unsigned room = 0; room < ROOM_MAX; room++) {
            failed += link_with(at_server != 0, room);
        }
        print_message("%s: %u of %u failed at first\n", at_server ? "server" : "requester", failed,
                      ROOM_MAX);
        assert_true(failed >= 3); /* for 1, 2 and 3 at least */
    }
    assert_int_equal(cluster_fd_wait(&cluster, daemon_fds), daemon_fds);
    atomic_store(&words_of(true)[WORD_END], 1);
    atomic_store(&words_of(false)[WORD_END], 1);
    assert_int_equal(child_wait(server, NODE_MS), 0);
    assert_int_equal(child_wait(requester, NODE_MS), 0);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated_grants),
    };
    return cmocka_run_group_tests_name("grant", tests, setup, teardown);
}
