/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon under a service manager that hands it its socket and keeps its directory over
 * restarts, played by this program (scenario 102): nobody vanishes from the directory because
 * of a restart, and what was kept is believed only when all of it is sound.
 */
#include "bus/directory.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ECHO     "/game/eu/pc/w1/core/echo"
#define ECHO_1   ECHO "/1"
#define ECHO_2   ECHO "/2"
#define KEPT_MAX 4U
#define START_MS 5000U
#define STORED   "ringbus-directory-"

static struct cluster cluster;

/** What the manager holds. */
static struct {
    int notify;
    int socket;
    struct {
        int fd;
        char name[64];
    } kept[KEPT_MAX];
    unsigned kept_count;
    unsigned ready;
    unsigned stores;        /* times it was given one */
    unsigned counted_extra; /* descriptors that it says it hands over, and does not */
} manager;

/** The numbers of `ctest -C full`, or a sample. */
static unsigned full_or(unsigned full, unsigned sample)
{
    return getenv("RINGBUS_TEST_FULL") != NULL ? full : sample; /* NOLINT(concurrency-mt-unsafe) */
}

static uint64_t any(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- the manager --------------------------------------------------------------------------- */

static void forget(unsigned idx)
{
    (void)close(manager.kept[idx].fd);
    manager.kept[idx] = manager.kept[--manager.kept_count];
}

static void keep(int fd, const char *name)
{
    assert_true(manager.kept_count < KEPT_MAX);
    manager.kept[manager.kept_count].fd = fd;
    (void)snprintf(manager.kept[manager.kept_count].name, sizeof manager.kept[0].name, "%s", name);
    manager.kept_count++;
}

static void forget_named(const char *name)
{
    for (unsigned i = manager.kept_count; i-- > 0;) {
        if (strcmp(manager.kept[i].name, name) == 0) {
            forget(i);
        }
    }
}

/** Takes one message of the daemon. @return whether there was one within the time */
static bool hear(unsigned timeout_ms)
{
    char text[256] = {0};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = text, .iov_len = sizeof text - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct pollfd wait = {.fd = manager.notify, .events = POLLIN};
    int fd = -1;
    if (poll(&wait, 1, (int)timeout_ms) <= 0) {
        return false;
    }
    assert_true(recvmsg(manager.notify, &message, MSG_CMSG_CLOEXEC) > 0);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    }
    const char *name = strstr(text, "FDNAME=");
    char first[64] = {0};
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(name ? name + 7 : "", "\n"),
                   name ? name + 7 : "");
    if (strstr(text, "FDSTOREREMOVE=1") != NULL) {
        forget_named(first);
    } else if (strstr(text, "FDSTORE=1") != NULL) {
        assert_true(fd >= 0 && first[0] != '\0');
        keep(fd, first);
        manager.stores++;
    }
    manager.ready += strstr(text, "READY=1") != NULL;
    return true;
}

static void hear_all(void)
{
    while (hear(0)) {
    }
}

static _Noreturn void become_daemon(void)
{
    char text[512];
    const int log = open(cluster.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    (void)dup2(log, STDERR_FILENO);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Out of the way first: their numbers may be among those that are to be handed over. */
    int fds[1 + KEPT_MAX];
    fds[0] = fcntl(manager.socket, F_DUPFD_CLOEXEC, 100);
    for (unsigned i = 0; i < manager.kept_count; i++) {
        fds[1 + i] = fcntl(manager.kept[i].fd, F_DUPFD_CLOEXEC, 100);
    }
    int length = snprintf(text, sizeof text, "ringbusd.socket");
    for (unsigned i = 0; i <= manager.kept_count; i++) {
        (void)dup2(fds[i], 3 + (int)i);
        if (i > 0) {
            length += snprintf(text + length, sizeof text - (size_t)length, ":%s",
                               manager.kept[i - 1].name);
        }
    }
    (void)setenv("LISTEN_FDNAMES", text, 1);
    (void)snprintf(text, sizeof text, "%u", 1 + manager.kept_count + manager.counted_extra);
    (void)setenv("LISTEN_FDS", text, 1);
    (void)snprintf(text, sizeof text, "%d", (int)getpid());
    (void)setenv("LISTEN_PID", text, 1);
    (void)snprintf(text, sizeof text, "%s/manager", cluster.folder);
    (void)setenv("NOTIFY_SOCKET", text, 1);
    (void)execl(RINGBUSD_PATH, "ringbusd", "--config", cluster.config, (char *)NULL);
    _exit(127);
}

/** Starts the daemon with all that is kept, and waits until it is ready. */
static void start(void)
{
    manager.ready = 0;
    cluster.pid = fork();
    assert_true(cluster.pid >= 0);
    if (cluster.pid == 0) {
        become_daemon();
    }
    const uint64_t deadline_ms = test_now_ms() + START_MS;
    while (manager.ready == 0) {
        assert_true(test_now_ms() < deadline_ms);
        (void)hear(10);
    }
}

static void manage(const char *config)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(&manager, 0, sizeof manager);
    assert_int_equal(cluster_make(&cluster, config), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/manager", cluster.folder);
    manager.notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager.notify, (struct sockaddr *)(void *)&address, sizeof address), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", cluster.socket);
    manager.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager.socket, (struct sockaddr *)(void *)&address, sizeof address), 0);
    assert_int_equal(listen(manager.socket, 64), 0);
    start();
}

static int teardown(void **state)
{
    (void)state;
    while (manager.kept_count > 0) {
        forget(0);
    }
    (void)close(manager.notify);
    (void)close(manager.socket);
    cluster_down(&cluster);
    return 0;
}

/* ---- looking in ----------------------------------------------------------------------------- */

struct listing {
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
    unsigned count;
    uint64_t revision;
};

static void list(const struct raw *raw, struct listing *out)
{
    struct rbi_directory_view view;
    memset(out, 0, sizeof *out);
    assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size), 0);
    out->revision = rbi_directory_revision(&view);
    if (rbi_directory_read(&view, rbi_cluster_id(ECHO, strlen(ECHO)), &out->head, out->instances,
                           8) == RBI_DIRECTORY_OK) {
        out->count = out->head.instance_count;
    }
}

/** What a client that comes now is given. */
static void list_fresh(struct listing *out)
{
    struct raw raw;
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    list(&raw, out);
    raw_close(&raw);
}

static void register_at(struct raw *raw,
                        const char *path,
                        uint32_t weight,
                        enum rbi_endpoint_state state,
                        const struct raw *before)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.state = state, .weight = weight};
    rbi_text_set(&body.path, path);
    if (before != NULL) {
        body.incarnation = before->registered.incarnation;
        body.cookie = before->registered.cookie;
        body.daemon_incarnation = before->hello_ok.daemon_incarnation;
    }
    assert_int_equal(raw_connect(raw, cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_expect(raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    raw->registered = message.body.registered;
}

static void wait_for_log(const char *text)
{
    assert_true(cluster_log_wait(&cluster, text, START_MS));
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_kept_over(bool in_order)
{
    struct raw a;
    struct raw b;
    struct raw again;
    struct raw watcher;
    struct raw_message message;
    struct listing before;
    struct listing after;
    manage("daemon: {return_time: 1500ms}\n");
    register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
    register_at(&b, ECHO_2, 8, RBI_ENDPOINT_DRAINING, NULL);
    list(&b, &before);
    assert_int_equal(before.count, 2);
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    if (in_order) {
        assert_int_equal(cluster_stop(&cluster), 0);
    } else {
        cluster_kill(&cluster);
    }
    /* The last life of the directory is as it was, and so the next begins. */
    list(&b, &after);
    assert_memory_equal(&after, &before, sizeof before);
    start();
    wait_for_log("event=directory_restored clusters=1 instances=2");
    list_fresh(&after);
    assert_int_equal(after.count, 2);
    assert_memory_equal(after.instances, before.instances, sizeof before.instances);
    assert_int_equal(after.head.epoch, before.head.epoch);
    assert_true(after.revision >= before.revision);
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    /* Listed, but nobody is introduced to one that has not come back, and no event names it. */
    assert_int_equal(raw_connect(&watcher, cluster.socket), 0);
    assert_int_equal(raw_hello(&watcher), 0);
    assert_int_equal(watcher.hello_ok.settling, 1);
    assert_int_equal(raw_register(&watcher, "", RBI_ENDPOINT_READY), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_TARGET, ECHO), 0);
    assert_int_equal(raw_introduce(&watcher, a.registered.cluster, 1, 0), 0);
    assert_int_equal(raw_expect_error(&watcher), RBI_CODE_NO_INSTANCE);
    register_at(&again, ECHO_1, 7, RBI_ENDPOINT_READY, &a);
    assert_int_equal(again.registered.incarnation, a.registered.incarnation);
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_ADDED);
    assert_int_equal(message.body.event.instance, 1);
    list_fresh(&after);
    assert_int_equal(after.count, 2);
    /* Who has not come back when the time is over is gone; who has is not touched. */
    wait_for_log("event=not_returned path=" ECHO_2);
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_SETTLED, &message, RAW_TIMEOUT_MS), 0);
    list_fresh(&after);
    assert_int_equal(after.count, 1);
    assert_int_equal(after.instances[0].instance, 1);
    assert_int_equal(message.body.settled.revision, after.revision);
    assert_true(after.head.epoch > before.head.epoch && after.revision > before.revision);
    assert_int_equal(cluster_log_count(&cluster, "not_returned path=" ECHO_1), 0);
    raw_close(&watcher);
    raw_close(&again);
    raw_close(&a);
    raw_close(&b);
}

static void test_directory_is_kept_when_the_daemon_is_killed(void **state)
{
    (void)state;
    check_kept_over(false);
}

static void test_directory_is_kept_when_the_daemon_is_stopped(void **state)
{
    (void)state;
    check_kept_over(true);
}

/* One that is starting again is not READY, whatever the last daemon knew of it. */
static void test_one_that_comes_back_otherwise(void **state)
{
    (void)state;
    struct raw a;
    struct raw again;
    struct listing after;
    manage("daemon: {return_time: 60s}\n");
    register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
    hear_all();
    cluster_kill(&cluster);
    raw_close(&a);
    start();
    register_at(&again, ECHO_1, 9, RBI_ENDPOINT_STARTING, NULL);
    list_fresh(&after);
    assert_int_equal(after.count, 0);
    assert_int_equal(raw_set_state(&again, RBI_ENDPOINT_READY), 0);
    list_fresh(&after);
    assert_int_equal(after.count, 1);
    assert_int_equal(after.instances[0].incarnation, again.registered.incarnation);
    assert_int_equal(after.instances[0].weight, 9);
    raw_close(&again);
    list_fresh(&after);
    assert_int_equal(after.count, 0);
}

/* A directory that has grown takes the place of the one that was kept. */
static void test_grown_directory_is_kept(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    static struct raw raws[COUNT];
    char path[96];
    manage("daemon: {return_time: 60s}\ndirectory: {clusters: 16}\n");
    for (unsigned i = 0; i < COUNT; i++) {
        (void)snprintf(path, sizeof path, "/game/eu/pc/w1/core/c%u/1", i);
        register_at(&raws[i], path, 1, RBI_ENDPOINT_READY, NULL);
        hear_all();
        assert_int_equal(manager.kept_count, 1);
    }
    wait_for_log("event=directory_grown");
    cluster_kill(&cluster);
    hear_all();
    manager.stores = 0;
    start();
    wait_for_log("event=directory_restored clusters=40 instances=40");
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    /* It has grown on the way, and no part of it took the place of the whole: killed there, the
     * next would have found a part. */
    assert_true(cluster_log_count(&cluster, "event=directory_grown") > 2);
    assert_int_equal(manager.stores, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        raw_close(&raws[i]);
    }
    cluster_kill(&cluster);
    start(); /* and again from there */
    assert_int_equal(cluster_log_count(&cluster, "event=directory_restored clusters=40"), 2);
}

/* Killed at any moment, also in the middle of writing. */
static void test_killed_while_writing(void **state)
{
    (void)state;
    uint64_t random = 1;
    struct raw a;
    struct listing after;
    manage("daemon: {return_time: 60s}\nquota: {control: 1000000}\n");
    const unsigned rounds = full_or(200, 20);
    for (unsigned round = 0; round < rounds; round++) {
        register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
        hear_all();
        /* Many changes lie in its socket when it dies somewhere among them. */
        const unsigned changes = 20 + (unsigned)(any(&random) % 100);
        for (unsigned i = 0; i < changes; i++) {
            const struct rbi_wire_set_state body = {.state = i % 2 ? RBI_ENDPOINT_READY
                                                                   : RBI_ENDPOINT_BUSY};
            (void)raw_send(&a, RBI_WIRE_SET_STATE, &body, NULL, 0);
        }
        cluster_kill(&cluster);
        raw_close(&a);
        start();
        list_fresh(&after);
        assert_int_equal(after.count, 1);
        assert_int_equal(after.instances[0].incarnation, a.registered.incarnation);
    }
    assert_int_equal(cluster_log_count(&cluster, "stored_directory_left"), 0);
}

/* ---- what is not sound --------------------------------------------------------------------- */

struct forged {
    struct rbi_segment segment;
    struct rbi_directory_writer writer;
};

static void forge(struct forged *forged)
{
    *forged = (struct forged){.segment = RBI_SEGMENT_NULL};
    const uint64_t bytes = rbi_directory_size(64, 16, UINT64_C(64) << 10);
    assert_int_equal(
        rbi_segment_create(&forged->segment, "forged", RBI_SEGMENT_DIRECTORY, bytes, 0), 0);
    rbi_directory_writer_init(&forged->writer, forged->segment.base, forged->segment.size, 64, 16,
                              5);
    rbi_directory_set_revision(&forged->writer, 100);
}

static struct rbi_directory_instance good_instance(int32_t id)
{
    struct rbi_directory_instance instance = {.instance = id,
                                              .incarnation = 77,
                                              .state = RBI_ENDPOINT_READY,
                                              .weight = 5,
                                              .name_length = 1};
    instance.name[0] = (char)('0' + id);
    return instance;
}

static struct rbi_directory_cluster good_cluster(void)
{
    struct rbi_directory_cluster head = {.cluster = rbi_cluster_id(ECHO, strlen(ECHO)),
                                         .epoch = 50,
                                         .instance_count = 2,
                                         .path_length = (uint32_t)strlen(ECHO)};
    memcpy(head.path, ECHO, sizeof ECHO);
    return head;
}

/** Starts the daemon with only this kept. @return whether it believed it */
static bool believes(int fd)
{
    cluster_kill(&cluster);
    hear_all();
    while (manager.kept_count > 0) {
        forget(0);
    }
    const unsigned left = cluster_log_count(&cluster, "event=stored_directory_left");
    const unsigned restored = cluster_log_count(&cluster, "event=directory_restored");
    keep(fcntl(fd, F_DUPFD_CLOEXEC, 3), STORED "0");
    start();
    struct listing after;
    list_fresh(&after);
    const bool believed = cluster_log_count(&cluster, "event=directory_restored") == restored + 1;
    /* One or the other, and a line about it in any case. */
    assert_int_equal(cluster_log_count(&cluster, "event=stored_directory_left"),
                     left + (believed ? 0 : 1));
    if (!believed) {
        assert_int_equal(after.count, 0);
    }
    return believed;
}

static bool believes_snapshot(const struct rbi_directory_cluster *head,
                              const struct rbi_directory_instance *instances)
{
    struct forged forged;
    forge(&forged);
    assert_int_equal(rbi_directory_publish(&forged.writer, head, instances), RBI_PUBLISH_OK);
    const bool believed = believes(forged.segment.fd);
    rbi_segment_deinit(&forged.segment);
    return believed;
}

static void test_what_is_not_sound_is_left_alone(void **state)
{
    (void)state;
    manage("daemon: {return_time: 60s}\n");
    const struct rbi_directory_cluster head = good_cluster();
    const struct rbi_directory_instance two[] = {good_instance(1), good_instance(2)};
    assert_true(believes_snapshot(&head, two));
    struct rbi_directory_cluster bad = head;
    bad.epoch = 101; /* of one that was killed before it had said so: whole all the same */
    assert_true(believes_snapshot(&bad, two));
    struct listing after;
    list_fresh(&after);
    assert_int_equal(after.count, 2);
    assert_int_equal(after.revision, 101);
    bad = head;
    bad.epoch = UINT64_MAX / 2 + 1; /* no life is that long */
    assert_false(believes_snapshot(&bad, two));
    bad = head;
    bad.path[2]++; /* not the path of this id */
    assert_false(believes_snapshot(&bad, two));
    bad = head;
    bad.path_length -= 5; /* not of a cluster */
    assert_false(believes_snapshot(&bad, two));
    struct rbi_directory_instance wrong[] = {two[0], two[1]};
    wrong[1] = wrong[0]; /* twice */
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].instance = 3; /* not the id of its name */
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].incarnation = 0;
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].state = RBI_ENDPOINT_CLOSED;
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].weight = 1001;
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].name[0] = '/';
    assert_false(believes_snapshot(&head, wrong));
}

static void test_other_descriptors_are_left_alone(void **state)
{
    (void)state;
    manage("daemon: {return_time: 60s}\n");
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int plain = memfd_create("plain", MFD_CLOEXEC);
    assert_int_equal(ftruncate(plain, 1 << 20), 0);
    assert_false(believes(null));
    assert_false(believes(plain));
    struct rbi_segment pool = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&pool, "pool", RBI_SEGMENT_POOL, 1 << 16, 0), 0);
    assert_false(believes(pool.fd));
    struct forged forged;
    forge(&forged);
    assert_true(believes(forged.segment.fd)); /* empty, and sound */
    struct rbi_segment_header *header = forged.segment.base;
    header->fingerprint++; /* made by another layout */
    assert_false(believes(forged.segment.fd));
    header->fingerprint--;
    rbi_directory_set_revision(&forged.writer, UINT64_MAX);
    assert_false(believes(forged.segment.fd));
    rbi_segment_deinit(&forged.segment);
    rbi_segment_deinit(&pool);
    (void)close(plain);
    (void)close(null);
}

/* What lies behind those that it hands over is ours, and not taken for another of its. */
static void test_manager_that_counts_wrong(void **state)
{
    (void)state;
    struct raw a;
    struct listing after;
    manage("daemon: {return_time: 60s}\n");
    register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
    hear_all();
    cluster_kill(&cluster);
    manager.counted_extra = 3;
    start();
    wait_for_log("event=directory_restored clusters=1 instances=1");
    list_fresh(&after);
    assert_int_equal(after.count, 1);
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    assert_int_equal(cluster_log_count(&cluster, "event=handed_over_in_vain"), 0);
    raw_close(&a);
}

/* Random damage: it starts every time, and lists what is sound or nothing. */
static void test_damage(void **state)
{
    (void)state;
    uint64_t random = 42;
    unsigned believed = 0;
    const unsigned rounds = full_or(500, 40);
    const struct rbi_directory_cluster head = good_cluster();
    const struct rbi_directory_instance two[] = {good_instance(1), good_instance(2)};
    manage("daemon: {return_time: 60s}\n");
    for (unsigned round = 0; round < rounds; round++) {
        struct forged forged;
        forge(&forged);
        assert_int_equal(rbi_directory_publish(&forged.writer, &head, two), RBI_PUBLISH_OK);
        unsigned char *bytes = forged.segment.base;
        /* Heads, table, and the first block. */
        for (unsigned i = 0; i < 3; i++) {
            const uint64_t at = any(&random) % 4096;
            bytes[at] = (unsigned char)any(&random);
            const uint64_t in_block =
                rbi_directory_size(64, 16, 0) - RBI_PAGE + any(&random) % RBI_PAGE;
            bytes[in_block % forged.segment.size] ^= (unsigned char)(1U << (any(&random) % 8));
        }
        believed += believes(forged.segment.fd);
        rbi_segment_deinit(&forged.segment);
    }
    print_message("damage: %u of %u were sound all the same\n", believed, rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_directory_is_kept_when_the_daemon_is_killed, teardown),
        cmocka_unit_test_teardown(test_directory_is_kept_when_the_daemon_is_stopped, teardown),
        cmocka_unit_test_teardown(test_one_that_comes_back_otherwise, teardown),
        cmocka_unit_test_teardown(test_grown_directory_is_kept, teardown),
        cmocka_unit_test_teardown(test_killed_while_writing, teardown),
        cmocka_unit_test_teardown(test_what_is_not_sound_is_left_alone, teardown),
        cmocka_unit_test_teardown(test_other_descriptors_are_left_alone, teardown),
        cmocka_unit_test_teardown(test_manager_that_counts_wrong, teardown),
        cmocka_unit_test_teardown(test_damage, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
