/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/mix.c - a day in the life: twenty processes, each linked to all others, with
 * default options, on both cores; many messages of 40 to 200 bytes, some of 1 to 8 KiB, few
 * of 64 KiB to 1 MiB. Each carries its number, its time and its size; the receiver checks the
 * number, the size and every byte. Each sends ten in a tick of a millisecond whatever the
 * others do (open loop), so that a stall shows as latency, which counts from the first attempt
 * to send.
 */
#include "bench/crowd.h"
#include "measure/quantiles.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES  20U
#define CLUSTER    "/Bench/local/host/w0/g0/Mix"
#define TICK_NS    UINT64_C(1000000)
#define TICK_COUNT 10U /* messages of each process in a tick */
#define LARGEST    ((size_t)1 << 20)

struct page {
    _Atomic(uint32_t) linked;
    _Atomic(uint32_t) finished; /* have sent everything */
    _Atomic(uint64_t) sent;
    _Atomic(uint64_t) received;
    _Atomic(uint64_t) errors;
    _Atomic(uint64_t) refused; /* sends that had to be tried again */
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) cpu_ns;
    uint32_t histograms[PROCESSES][RBI_HISTOGRAM_WORDS];
};

struct head {
    uint64_t number;
    uint64_t when_ns;
    uint64_t size;
};

struct player {
    struct page *page;
    struct ringbus *bus;
    unsigned index; /* 0.. */
    uint64_t random;
    uint64_t to_number[PROCESSES + 1];
    uint64_t from_number[PROCESSES + 1];
    uint64_t received; /* since the page was told */
    uint64_t errors;
    unsigned char *payload; /* the pattern, but for head and check word of the last message */
    unsigned char *pattern;
};

static uint64_t next_random(struct player *player)
{
    uint64_t x = player->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return player->random = x;
}

static bool
right(const struct player *player, const struct ringbus_message *message, const struct head *head)
{
    uint64_t last = 0;
    const unsigned char *bytes = message->data;
    const size_t inner = sizeof *head + sizeof last;
    if (message->size < inner || head->size != message->size) {
        return false;
    }
    memcpy(&last, bytes + message->size - sizeof last, sizeof last);
    return last == (head->number ^ ~head->size) &&
           memcmp(bytes + sizeof *head, player->pattern + sizeof *head, message->size - inner) == 0;
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct player *player = user;
    struct head head;
    const int32_t from = message->from.instance;
    (void)bus;
    if (message->size < sizeof head) {
        player->errors++;
        return;
    }
    memcpy(&head, message->data, sizeof head);
    const uint64_t now = bench_now_ns(); /* before the bytes are compared */
    player->received++;
    if (from < 1 || from > (int32_t)PROCESSES || !right(player, message, &head) ||
        head.number != player->from_number[from]) {
        player->errors++;
        return;
    }
    player->from_number[from]++;
    player->page->histograms[player->index][rbi_histogram_index(now - head.when_ns)]++;
}

static size_t draw_size(struct player *player)
{
    const uint64_t kind = next_random(player) % 1000;
    const uint64_t r = next_random(player) >> 16;
    const uint64_t size = kind < 900   ? 40 + r % 161
                          : kind < 998 ? 1024 + r % 7169
                                       : 65536 + r % (LARGEST - 65536 + 1);
    return (size_t)size;
}

static int send_one(struct player *player)
{
    const size_t size = draw_size(player);
    const uint64_t other = next_random(player) % (PROCESSES - 1);
    struct ringbus_addr to;
    const uint32_t peer = (uint32_t)(other + (other >= player->index ? 2 : 1));
    const struct head head = {player->to_number[peer], bench_now_ns(), size};
    const uint64_t last = head.number ^ ~head.size;
    (void)ringbus_resolve(CLUSTER, &to);
    to.instance = (int32_t)peer;
    memcpy(player->payload, &head, sizeof head);
    memcpy(player->payload + size - sizeof last, &last, sizeof last);
    for (;;) {
        const int r = ringbus_send(player->bus, &to, 0, player->payload, size, 0);
        if (r == 1) {
            memcpy(player->payload + size - sizeof last, player->pattern + size - sizeof last,
                   sizeof last);
            player->to_number[peer]++;
            (void)atomic_fetch_add(&player->page->sent, 1);
            (void)atomic_fetch_add(&player->page->bytes, size);
            return 0;
        }
        if (r != RINGBUS_E_FULL && r != RINGBUS_E_NO_CHUNK) {
            (void)fprintf(stderr, "bench: mix: %s\n", ringbus_errmsg(player->bus));
            return -1;
        }
        (void)atomic_fetch_add(&player->page->refused, 1);
        (void)ringbus_poll(player->bus, 64);
        (void)ringbus_wait(player->bus, 1);
    }
}

static void poll_once(struct player *player)
{
    (void)ringbus_wait(player->bus, 1);
    (void)ringbus_poll(player->bus, 64);
    if (player->received > 0) {
        (void)atomic_fetch_add(&player->page->received, player->received);
        player->received = 0;
    }
}

static void poll_until(struct player *player, uint64_t then_ns)
{
    do {
        poll_once(player);
    } while (bench_now_ns() < then_ns);
}

/* Whoever waits in vain is ended by the parent, which sees whether anything goes forward. */
static void await_all(struct player *player, const _Atomic(uint32_t) *word)
{
    while (atomic_load(word) < PROCESSES) {
        poll_once(player);
    }
}

static int link_all(struct player *player)
{
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    if (ringbus_target(player->bus, CLUSTER, NULL, NULL) != 0) {
        return -1;
    }
    while (stats.links < PROCESSES - 1) {
        poll_once(player);
        (void)ringbus_stats(player->bus, &stats);
    }
    (void)atomic_fetch_add(&player->page->linked, 1);
    await_all(player, &player->page->linked);
    return 0;
}

static int play(struct player *player, uint64_t messages)
{
    struct page *page = player->page;
    int r = link_all(player);
    const uint64_t cpu = bench_cpu_ns();
    uint64_t due = bench_now_ns() + next_random(player) % TICK_NS;
    for (uint64_t i = 0; r == 0 && i < messages; i++) {
        if (i % TICK_COUNT == 0) {
            poll_until(player, due);
            due += TICK_NS;
        }
        r = send_one(player);
    }
    (void)atomic_fetch_add(&page->finished, 1);
    if (r == 0) {
        await_all(player, &page->finished);
        while (atomic_load(&page->received) < atomic_load(&page->sent)) {
            poll_once(player);
        }
    }
    (void)atomic_fetch_add(&page->cpu_ns, bench_cpu_ns() - cpu);
    (void)atomic_fetch_add(&page->errors, player->errors);
    return r;
}

static _Noreturn void
player_main(const struct bench_run *run, struct page *page, unsigned index, uint64_t messages)
{
    const struct sched_param normal = {0};
    static struct player player;
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_SLEEP);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sched_setscheduler(0, SCHED_OTHER, &normal);
    (void)snprintf(path, sizeof path, CLUSTER "/%u", index + 1);
    player.page = page;
    player.index = index;
    player.random = UINT64_C(0x9e3779b97f4a7c15) * (index + 1);
    player.payload = malloc(LARGEST);
    player.pattern = malloc(LARGEST);
    options.path = path;
    options.on_message = on_message;
    options.user = &player;
    if (player.payload == NULL || player.pattern == NULL ||
        ringbus_open(&options, &player.bus) != 0) {
        (void)fprintf(stderr, "bench: mix: %s\n", ringbus_errmsg(NULL));
        _exit(3);
    }
    bench_crowd_fill(player.payload, LARGEST);
    bench_crowd_fill(player.pattern, LARGEST);
    bench_pin((int)(index % 2));
    const int r = play(&player, messages);
    (void)ringbus_close(player.bus, 0);
    _exit(r == 0 ? 0 : 3);
}

static void say(struct bench_run *run, const char *name, struct page *page, double seconds)
{
    static const double at[] = {0.5, 0.9, 0.99, 0.999, 1.0};
    const uint64_t received = atomic_load(&page->received);
    struct bench_figure f = {.workload = name,
                             .contender = "ringbus",
                             .param = "20 processes",
                             .mode = "sleep",
                             .regime = "all",
                             .unit = "k/s",
                             .value = (double)received / seconds / 1e3,
                             .messages = received,
                             .blocks = 1};
    for (unsigned i = 1; i < PROCESSES; i++) {
        for (unsigned k = 0; k < RBI_HISTOGRAM_WORDS; k++) {
            page->histograms[0][k] += page->histograms[i][k];
        }
    }
    for (unsigned i = 0; i < 5; i++) {
        f.latency[i] = rbi_histogram_quantile(page->histograms[0], at[i]);
    }
    f.value_p10 = f.value_p90 = f.value;
    f.cpu_ns[0] = f.cpu_ns[1] = (double)atomic_load(&page->cpu_ns) / (double)received / 2;
    bench_run_figure(run, &f);
}

/* All end by themselves, or all are ended when nothing goes forward any more. */
static int await_players(const struct page *page, struct bench_watch *watch, const pid_t *pids)
{
    unsigned left = PROCESSES;
    int r = 0;
    bench_watch_begin(watch);
    for (bool ended[PROCESSES] = {false}; left > 0; (void)usleep(1000)) {
        for (unsigned i = 0; i < PROCESSES; i++) {
            int status = 0;
            if (!ended[i] && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
                ended[i] = true;
                left--;
                r = status == 0 ? r : -1;
            }
        }
        const uint64_t progress = atomic_load(&page->sent) + atomic_load(&page->received) +
                                  atomic_load(&page->linked) + left;
        if (r != 0 || bench_watch_stuck(watch, progress)) {
            for (unsigned i = 0; i < PROCESSES; i++) {
                if (!ended[i]) {
                    (void)kill(pids[i], SIGKILL);
                    (void)waitpid(pids[i], NULL, 0);
                }
            }
            return -1;
        }
    }
    return r;
}

static int mix(struct bench_run *run, const struct bench_workload *workload)
{
    pid_t pids[PROCESSES];
    const double seconds = bench_run_seconds(run, workload);
    const uint64_t messages = seconds > 0 ? (uint64_t)(seconds * 1e3) * TICK_COUNT : 500;
    struct page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct bench_watch watch;
    if (page == MAP_FAILED) {
        return -1;
    }
    (void)fflush(NULL);
    bench_watch_init(&watch);
    bench_watch_add(&watch, run->daemon);
    for (unsigned i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            player_main(run, page, i, messages);
        }
        bench_watch_add(&watch, pids[i]);
    }
    int r = await_players(page, &watch, pids);
    const uint64_t sent = atomic_load(&page->sent);
    const uint64_t received = atomic_load(&page->received);
    if (sent != received || atomic_load(&page->errors) != 0 || sent != messages * PROCESSES) {
        (void)fprintf(stderr, "bench: mix: %llu sent, %llu received, %llu wrong\n",
                      (unsigned long long)sent, (unsigned long long)received,
                      (unsigned long long)atomic_load(&page->errors));
        r = -1;
    }
    if (r == 0) {
        say(run, workload->name, page, (double)messages / TICK_COUNT * (double)TICK_NS / 1e9);
    }
    (void)munmap(page, sizeof *page);
    return r;
}

const struct bench_workload bench_mix = {
    "mix", "20 processes, all linked: 90 % 40-200 B, 9.8 % 1-8 KiB, 0.2 % 64 KiB-1 MiB, paced", 5,
    false, mix};
