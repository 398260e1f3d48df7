/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 75: sender, receiver and daemon share one core; the receiver may come before
 * everybody else (SCHED_FIFO), and all of them may have a fifth of the core only (a cgroup).
 * Whether they sleep or poll busily, both get on: no 200 ms without a message.
 *
 * What they do to each other is what is tested, so it counts. Subtracted are times in which
 * one of them was ready to run, none of them ran, and their quota was not used up: then the
 * core was somebody else's.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ECHO   "/game/eu/pc/w1/core/echo"
#define ECHO_1 ECHO "/1"

#define GAP_NS_MAX 200000000U
#define NOTE_NS    20000000U
#define SAMPLE_NS  5000000U
#define NOTES_MAX  4096U
#define QUOTA_US   20000U /* of each PERIOD_US */
#define PERIOD_US  100000U
#define END_MARK   UINT64_MAX
#define SKIPPED    77

struct setting {
    const char *name;
    enum ringbus_mode mode;
    bool fifo;
    bool quota;
};

/** Shared with the processes of a run. */
static struct shared {
    _Atomic uint64_t round_trips;
    _Atomic uint64_t streamed;
    _Atomic uint64_t longest_ns;
    _Atomic uint64_t sleeps;
    _Atomic uint32_t note_count;
    struct {
        uint64_t from_ns;
        uint64_t to_ns;
        uint64_t others_ns; /* of it the core was somebody else's */
    } notes[NOTES_MAX];
} * shared;

/* ---- a fifth of a core ---------------------------------------------------------------------- */

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    (void)close(fd);
    return written;
}

static bool write_number(const char *folder, const char *name, unsigned long number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lu", number);
    return write_text(folder, name, text);
}

static char group[96]; /* folder of the cgroup; "" = none */

/* Version 2 where it has the cpu controller, else version 1. @return whether there is a group */
static bool make_group(void)
{
    char text[64];
    (void)snprintf(group, sizeof group, "/sys/fs/cgroup/ringbus-test-%d", (int)getpid());
    (void)snprintf(text, sizeof text, "%u %u", QUOTA_US, PERIOD_US);
    if (access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) == 0 &&
        write_text("/sys/fs/cgroup", "cgroup.subtree_control", "+cpu") && mkdir(group, 0755) == 0) {
        if (write_text(group, "cpu.max", text)) {
            return true;
        }
        (void)rmdir(group);
    }
    (void)snprintf(group, sizeof group, "/sys/fs/cgroup/cpu/ringbus-test-%d", (int)getpid());
    if (mkdir(group, 0755) == 0) {
        /* A share for SCHED_FIFO too, where groups have one: without it that is refused. */
        (void)write_number(group, "cpu.rt_period_us", PERIOD_US);
        (void)write_number(group, "cpu.rt_runtime_us", QUOTA_US);
        if (write_number(group, "cpu.cfs_period_us", PERIOD_US) &&
            write_number(group, "cpu.cfs_quota_us", QUOTA_US)) {
            return true;
        }
        (void)rmdir(group);
    }
    group[0] = '\0';
    return false;
}

static void remove_group(void)
{
    for (unsigned i = 0; group[0] != '\0' && rmdir(group) != 0 && i < 1000; i++) {
        test_sleep_ms(1); /* the last of its processes is still ending */
    }
    group[0] = '\0';
}

/* ---- receiver ------------------------------------------------------------------------------- */

static bool ended;
static uint64_t last_ns;

/** Of the three processes, since they began. */
struct sample {
    uint64_t at_ns;
    uint64_t cpu_ns;
    uint64_t throttled_ns;
    uint64_t delay_ns[3];
};
static pid_t pids[3];
static struct sample sampled;

static uint64_t throttled_ns(void)
{
    char path[160];
    char line[64];
    unsigned long long value = 0;
    uint64_t ns = 0;
    (void)snprintf(path, sizeof path, "%s/cpu.stat", group);
    FILE *file = group[0] != '\0' ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "throttled_time %llu", &value) == 1) {
            ns = value;
        } else if (sscanf(line, "throttled_usec %llu", &value) == 1) {
            ns = value * 1000;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return ns;
}

static struct sample take_sample(uint64_t now_ns)
{
    struct sample sample = {.at_ns = now_ns, .throttled_ns = throttled_ns()};
    for (unsigned i = 0; i < 3; i++) {
        sample.cpu_ns += machine_cpu_ns(pids[i]);
        sample.delay_ns[i] = machine_run_delay_ns(pids[i]);
    }
    return sample;
}

/* How long since then somebody else had the core that one of us wanted. */
static uint64_t others_since_ns(const struct sample *then, const struct sample *now)
{
    uint64_t wanted_ns = 0;
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t delay_ns = now->delay_ns[i] - then->delay_ns[i];
        wanted_ns = delay_ns > wanted_ns ? delay_ns : wanted_ns;
    }
    const uint64_t ours_ns = now->cpu_ns - then->cpu_ns + now->throttled_ns - then->throttled_ns;
    return wanted_ns > ours_ns ? wanted_ns - ours_ns : 0;
}

static void note_gap(void)
{
    const uint64_t now_ns = machine_now_ns();
    const uint64_t gap_ns = last_ns != 0 ? now_ns - last_ns : 0;
    const uint32_t n = shared->note_count;
    if (gap_ns > shared->longest_ns) {
        shared->longest_ns = gap_ns;
    }
    if (gap_ns > NOTE_NS || now_ns - sampled.at_ns > SAMPLE_NS) {
        const struct sample sample = take_sample(now_ns);
        if (gap_ns > NOTE_NS && n < NOTES_MAX) {
            shared->notes[n].from_ns = last_ns;
            shared->notes[n].to_ns = now_ns;
            shared->notes[n].others_ns = others_since_ns(&sampled, &sample);
            shared->note_count = n + 1;
        }
        sampled = sample;
    }
    last_ns = now_ns;
}

/* A request is answered, anything else only counted. */
static void on_message(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size == sizeof number);
    memcpy(&number, message->data, sizeof number);
    note_gap();
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, &number, sizeof number, 0) == 1);
    } else {
        ended = number == END_MARK;
    }
}

static void turn(const struct node *node)
{
    const int n = ringbus_poll(node->bus, 64);
    CHECK(n >= 0);
    if (n == 0) {
        CHECK(ringbus_wait(node->bus, 1000) >= 0);
    }
}

static void receive(const struct cluster *at, void *context)
{
    const struct setting *setting = context;
    static struct node node = {.on_message = on_message};
    struct ringbus_options options = node_options(at, ECHO_1);
    options.mode = setting->mode;
    options.ping_interval_ms = 60000; /* nobody is given up because others had the core */
    node_open_with(&node, &options);
    const struct sched_param first = {.sched_priority = 1};
    if (setting->fifo && sched_setscheduler(0, SCHED_FIFO, &first) != 0) {
        _exit(SKIPPED);
    }
    pids[0] = getpid();
    pids[1] = getppid();
    pids[2] = at->pid;
    while (!ended) {
        turn(&node);
    }
    shared->sleeps = node_stats(&node).sleeps;
    node_close(&node);
}

/* ---- sender --------------------------------------------------------------------------------- */

static void round_trips(struct node *node, uint64_t end_ns)
{
    for (uint64_t i = 1; machine_now_ns() < end_ns; i++) {
        CHECK(ringbus_request(node->bus, &node->peer, 0, &i, sizeof i, 0, 60000, node_on_result,
                              node) == 1);
        while (node->replies[RINGBUS_REPLIED] < i) {
            turn(node);
        }
        atomic_store(&shared->round_trips, i);
    }
}

static void send_one(struct node *node, uint64_t number)
{
    int r;
    while ((r = ringbus_send(node->bus, &node->peer, 0, &number, sizeof number, 0)) ==
           RINGBUS_E_FULL) {
        CHECK(ringbus_wait(node->bus, 1000) >= 0);
        CHECK(ringbus_poll(node->bus, 64) >= 0);
    }
    CHECK(r == 1);
}

static void stream(struct node *node, uint64_t end_ns)
{
    for (uint64_t i = 1; machine_now_ns() < end_ns; i++) {
        send_one(node, i);
        atomic_store(&shared->streamed, i);
    }
}

/* The sender, on the one core and in the group, which daemon and receiver inherit. */
static int run(const struct setting *setting, int core, unsigned ms)
{
    static struct node node;
    static struct cluster cluster;
    struct setting copy = *setting;
    CHECK(machine_pin(core) == 0);
    if (setting->quota && !write_number(group, "cgroup.procs", (unsigned long)getpid())) {
        return SKIPPED;
    }
    CHECK(cluster_up(&cluster, "{}\n") == 0);
    const pid_t pid = child_start(receive, &cluster, &copy);
    struct ringbus_options options = node_options(&cluster, NULL);
    options.mode = setting->mode;
    options.ping_interval_ms = 60000; /* nobody is given up because others had the core */
    node_open_with(&node, &options);
    node_target(&node, ECHO, 1, NULL);
    const uint64_t start_ns = machine_now_ns();
    round_trips(&node, start_ns + (uint64_t)ms * 500000U);
    stream(&node, start_ns + (uint64_t)ms * 1000000U);
    send_one(&node, END_MARK);
    const int code = child_wait(pid, NODE_MS);
    node_close(&node);
    cluster_down(&cluster);
    return code;
}

/* ---- what it shows -------------------------------------------------------------------------- */

static uint64_t longest_own_ns(void)
{
    uint64_t longest_ns = shared->note_count > 0 ? 0 : shared->longest_ns;
    for (uint32_t i = 0; i < shared->note_count; i++) {
        const uint64_t ns = shared->notes[i].to_ns - shared->notes[i].from_ns;
        const uint64_t paused_ns =
            shared->notes[i].others_ns +
            machine_paused_ns(shared->notes[i].from_ns, shared->notes[i].to_ns);
        longest_ns = ns > paused_ns && ns - paused_ns > longest_ns ? ns - paused_ns : longest_ns;
    }
    return longest_ns;
}

/* @return false when rights were missing */
static bool share_a_core(const struct setting *setting)
{
    int cores[64];
    const unsigned count = machine_cores(cores, 64);
    const unsigned ms = FULL_OR(setting->fifo && setting->quota ? 60000 : 10000, 1000);
    assert_in_range(count, 1, CPU_SETSIZE);
    memset(shared, 0, sizeof *shared);
    if (setting->quota && !make_group()) {
        print_message("%s: skipped, no right to make a cgroup with a cpu quota\n", setting->name);
        return false;
    }
    machine_watch_start();
    (void)fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(run(setting, cores[(count < 64 ? count : 64) - 1], ms));
    }
    const int code = child_wait(pid, ms + 60000);
    test_sleep_ms(2);
    const uint64_t own_ns = longest_own_ns();
    (void)machine_watch_stop();
    remove_group();
    if (code == SKIPPED) {
        print_message("%s: skipped, no right to SCHED_FIFO or to enter the cgroup\n",
                      setting->name);
        return false;
    }
    print_message("%s: %llu round trips, %llu streamed, %llu sleeps; longest gap %.1f ms, of it "
                  "not the machine's %.1f ms\n",
                  setting->name, (unsigned long long)shared->round_trips,
                  (unsigned long long)shared->streamed, (unsigned long long)shared->sleeps,
                  (double)shared->longest_ns / 1e6, (double)own_ns / 1e6);
    assert_int_equal(code, 0);
    assert_true(shared->round_trips > 0 && shared->streamed > 0);
    assert_true(own_ns < GAP_NS_MAX);
    return true;
}

#define SETTING(text, how, first, fifth)                                                           \
    {                                                                                              \
        .name = (text), .mode = (how), .fifo = (first), .quota = (fifth)                           \
    }

static void test_asleep(void **state)
{
    (void)state;
    static const struct setting settings[] = {
        SETTING("sleep", RINGBUS_MODE_SLEEP, false, false),
        SETTING("sleep, fifo", RINGBUS_MODE_SLEEP, true, false),
        SETTING("sleep, quota", RINGBUS_MODE_SLEEP, false, true),
        SETTING("sleep, fifo, quota", RINGBUS_MODE_SLEEP, true, true),
    };
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        (void)share_a_core(&settings[i]);
    }
}

static void test_busy(void **state)
{
    (void)state;
    static const struct setting settings[] = {
        SETTING("busy", RINGBUS_MODE_BUSY, false, false),
        SETTING("busy, quota", RINGBUS_MODE_BUSY, false, true),
        SETTING("busy, fifo, quota", RINGBUS_MODE_BUSY, true, true),
    };
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        (void)share_a_core(&settings[i]);
    }
}

static void test_busy_before_everybody_else(void **state)
{
    (void)state;
    static const struct setting setting = SETTING("busy, fifo", RINGBUS_MODE_BUSY, true, false);
    if (!share_a_core(&setting)) {
        exit(SKIPPED); /* NOLINT(concurrency-mt-unsafe) */
    }
}

static int setup(void **state)
{
    (void)state;
    const int flags = MAP_SHARED | MAP_ANONYMOUS;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
    shared = memory;
    return memory != MAP_FAILED ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    remove_group();
    return munmap(shared, sizeof *shared);
}

#define SHARED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* Without arguments all but the last, which is "fifo". */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {SHARED(test_asleep), SHARED(test_busy)};
    const struct CMUnitTest fifo[] = {SHARED(test_busy_before_everybody_else)};
    return argc > 1 && strcmp(argv[1], "fifo") == 0
               ? cmocka_run_group_tests_name("core, fifo", fifo, NULL, NULL)
               : cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
