/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pair.h"

#include "bench/stop.h"
#include "bench/watch.h"
#include "measure/lines.h"
#include "measure/quantiles.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_ROUNDS 2000U
#define TURN_STOP    UINT32_MAX

/** One mapping, shared by the parent and both sides. */
struct bench_pair_page {
    struct rbi_lines lines;
    _Alignas(128) _Atomic(uint32_t) turn; /* the parent counts it up: do a block */
    _Alignas(128) _Atomic(uint32_t) done; /* each side counts it up */
    struct bench_part parts[2];
    uint64_t errors[2];
    double ns[2][2]; /* by side, by part */
    double side_ns[2];
    double cpu_ns[2];
    double limit_ns;
    uint64_t switches[2];                       /* against the side's will, in this block */
    uint32_t histogram[2][RBI_HISTOGRAM_WORDS]; /* near, far */
    struct {
        _Alignas(128) struct bench_end slots[BENCH_SLOTS];
    } ends[2]; /* each its side's own; the parent looks whether it goes forward */
};

struct side {
    struct bench_pair *pair;
    struct bench_pair_page *page;
    int number;
    struct bench_end *ends;
};

/* ---- waiting ------------------------------------------------------------------------------- */

static void futex_wait(_Atomic(uint32_t) *word, uint32_t seen, int timeout_ms)
{
    const struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                                     .tv_nsec = (long)(timeout_ms % 1000) * 1000000};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
}

static void futex_wake(_Atomic(uint32_t) *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 8, NULL, NULL, 0);
}

static void barrier(struct side *side)
{
    /* A helper of the contender may need this core. */
    const unsigned looks = side->pair->cpu[0] == side->pair->cpu[1] ? 0 : RBI_LINES_LOOKS;
    (void)rbi_lines_meet(&side->page->lines, side->number, looks);
}

/* ---- one side -------------------------------------------------------------------------------- */

static double run_apart(struct side *side, struct bench_end *end, const struct bench_loop *loop)
{
    /* Few enough for any ring, so that nobody waits; many rounds for the clock. */
    const uint64_t batch = loop->size <= 256 ? 64 : 16;
    const uint64_t rounds = loop->count / batch + 1;
    const struct bench_loop piece = {.size = loop->size, .count = batch};
    uint64_t total = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        barrier(side);
        if (side->number == 0) {
            const uint64_t start = bench_now_ns();
            end->place->contender->put(end, &piece);
            total += bench_now_ns() - start;
        }
        barrier(side);
        if (side->number == 1) {
            const uint64_t start = bench_now_ns();
            end->place->contender->take(end, &piece);
            total += bench_now_ns() - start;
        }
    }
    return (double)total / (double)(rounds * batch);
}

/* The number of the last message still lies where the pattern of a larger payload goes on. */
static void restore_pattern(struct bench_end *end, uint64_t size)
{
    const size_t k = (size_t)size / 8 - 1;
    const uint64_t word = bench_pattern_word(k);
    memcpy(end->pattern + k * 8, &word, 8);
}

static uint32_t *histogram_of(struct bench_pair_page *page)
{
    return page->histogram[page->limit_ns > RBI_LINES_NEAR_NS_MAX];
}

static void run_part(struct side *side, unsigned which)
{
    const struct bench_part *part = &side->page->parts[which];
    if (part->count == 0) {
        return;
    }
    struct bench_end *end = &side->ends[part->slot];
    const struct bench_contender *contender = end->place->contender;
    const struct bench_loop loop = {
        .size = part->size,
        .count = part->count,
        .gap_ns = part->gap_ns,
        .histogram = part->timed && side->number == 0 ? histogram_of(side->page) : NULL};
    end->whole = part->whole;
    barrier(side);
    const uint64_t cpu = bench_cpu_ns();
    double ns = 0;
    if (part->kind == BENCH_KIND_TRIPS) {
        ns = contender->trips(end, &loop);
    } else if (part->kind == BENCH_KIND_STREAM) {
        ns = contender->stream(end, &loop);
    } else {
        ns = run_apart(side, end, &loop);
        side->page->side_ns[side->number] = ns;
    }
    side->page->cpu_ns[side->number] = (double)(bench_cpu_ns() - cpu) / (double)part->count;
    side->page->ns[side->number][which] = ns;
    side->page->errors[side->number] += end->errors;
    end->errors = 0;
    restore_pattern(end, part->size);
}

static uint64_t forced_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nivcsw : 0;
}

static void run_block(struct side *side)
{
    const uint64_t before = forced_switches();
    side->page->errors[side->number] = 0;
    if (side->pair->cpu[0] != side->pair->cpu[1]) {
        struct rbi_lines *lines = &side->page->lines;
        const double ns = rbi_lines_round_trips(lines, side->number, LIMIT_ROUNDS);
        if (side->number == 0) {
            side->page->limit_ns = ns;
        }
    }
    run_part(side, 0);
    run_part(side, 1);
    side->page->switches[side->number] = forced_switches() - before;
}

static void say_done(struct side *side)
{
    (void)atomic_fetch_add(&side->page->done, 1);
    futex_wake(&side->page->done);
}

static int open_slot(struct side *side, unsigned i)
{
    struct bench_place *place = &side->pair->places[i];
    struct bench_end *end = &side->ends[i];
    end->place = place;
    end->side = side->number;
    end->cpu = side->pair->cpu[side->number];
    end->sleep = place->mode == BENCH_SLEEP;
    /* On a line, as a buffer that matters would be: memcpy() is a third slower from beside one. */
    end->pattern = aligned_alloc(64, (place->size_max + 16 + 63) & ~(size_t)63);
    if (end->pattern == NULL) {
        return -1;
    }
    for (size_t k = 0; k * 8 < place->size_max; k++) {
        const uint64_t word = bench_pattern_word(k);
        memcpy(end->pattern + k * 8, &word, 8);
    }
    if ((place->contender->abilities & (BENCH_PRIVATE | BENCH_REFERENCE)) == 0) {
        end->copy = calloc(1, place->size_max + 16);
        if (end->copy == NULL) {
            return -1;
        }
    }
    return place->contender->open(end);
}

static void log_name(const struct bench_pair *pair, char *out, size_t size)
{
    (void)snprintf(out, size, "%s/%s.log", pair->places[0].directory,
                   pair->places[0].contender->name);
}

/* What libraries print goes to a file: the terminal is the report's. */
static void be_quiet(const struct bench_pair *pair)
{
    char name[128];
    log_name(pair, name, sizeof name);
    const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)dup2(fd, 1);
        (void)dup2(fd, 2);
        (void)close(fd);
    }
}

static _Noreturn void side_main(struct bench_pair *pair, int number)
{
    struct side side = {
        .pair = pair, .page = pair->page, .number = number, .ends = pair->page->ends[number].slots};
    uint32_t seen = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    be_quiet(pair);
    if (pair->cpu[0] == pair->cpu[1]) {
        const struct sched_param normal = {0}; /* two real-time spinners would never change */
        (void)sched_setscheduler(0, SCHED_OTHER, &normal);
    }
    if (pair->pin_first) {
        bench_pin(pair->cpu[number]);
    }
    for (unsigned i = 0; i < pair->slot_count; i++) {
        if (open_slot(&side, i) != 0) {
            (void)fprintf(stderr, "side %d: %s did not open\n", number,
                          pair->places[i].contender->name);
            _exit(3);
        }
    }
    bench_pin(pair->cpu[number]); /* after opening: threads of a library may float */
    say_done(&side);
    for (;;) {
        uint32_t turn = atomic_load(&pair->page->turn);
        if (turn == seen) {
            futex_wait(&pair->page->turn, seen, -1);
            continue;
        }
        seen = turn;
        if (turn == TURN_STOP) {
            break;
        }
        run_block(&side);
        say_done(&side);
    }
    for (unsigned i = pair->slot_count; i-- > 0;) {
        pair->places[i].contender->close(&side.ends[i]);
    }
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static int fail(struct bench_pair *pair, const char *why)
{
    if (!pair->failed) {
        (void)snprintf(pair->why, sizeof pair->why, "%s", why);
    }
    pair->failed = true;
    for (int i = 0; i < 2; i++) {
        if (pair->child[i] > 0) {
            (void)kill(pair->child[i], SIGKILL);
        }
    }
    return -1;
}

/* With the last line that a side or its library printed. */
static int fail_ended(struct bench_pair *pair, int side, int status)
{
    char line[96] = "";
    char next[96];
    char why[160];
    char name[128];
    log_name(pair, name, sizeof name);
    FILE *in = fopen(name, "r");
    while (in != NULL && fgets(next, sizeof next, in) != NULL) {
        next[strcspn(next, "\n")] = '\0';
        (void)snprintf(line, sizeof line, "%s", next);
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    (void)snprintf(why, sizeof why, "side %d ended (%s %d): %s", side,
                   WIFSIGNALED(status) ? "signal" : "status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), line);
    return fail(pair, why);
}

/* Any figure that changes as long as messages arrive, or the sides meet. */
static uint64_t progress(const struct bench_pair *pair)
{
    struct bench_pair_page *page = pair->page;
    struct rbi_lines *lines = &page->lines;
    uint64_t sum = atomic_load(&page->done) + atomic_load(&lines->ping) +
                   atomic_load(&lines->barrier[0]) + atomic_load(&lines->barrier[1]);
    for (unsigned i = 0; i < pair->slot_count; i++) {
        for (unsigned side = 0; side < 2; side++) {
            sum += *(const volatile uint64_t *)&page->ends[side].slots[i].received;
        }
    }
    return sum;
}

/* Waits until both sides have counted @p target. */
static int await_done(struct bench_pair *pair, uint32_t target, const char *why)
{
    struct bench_watch watch;
    bench_watch_init(&watch);
    for (int i = 0; i < 2; i++) {
        bench_watch_add(&watch, pair->child[i]);
    }
    for (unsigned i = 0; i < pair->slot_count; i++) {
        bench_watch_add(&watch, pair->places[i].helper);
    }
    bench_watch_begin(&watch);
    for (;;) {
        const uint32_t done = atomic_load(&pair->page->done);
        if (done >= target) {
            return 0;
        }
        futex_wait(&pair->page->done, done, 100);
        for (int i = 0; i < 2; i++) {
            int status = 0;
            if (waitpid(pair->child[i], &status, WNOHANG) == pair->child[i]) {
                pair->child[i] = 0;
                return fail_ended(pair, i, status);
            }
        }
        if (bench_watch_stuck(&watch, progress(pair))) {
            return fail(pair, why);
        }
    }
}

static int setup_places(struct bench_pair *pair)
{
    for (unsigned i = 0; i < pair->slot_count; i++) {
        struct bench_place *place = &pair->places[i];
        for (unsigned k = 0; k < 4; k++) {
            place->fds[k] = -1;
        }
        if (place->contender->setup != NULL && place->contender->setup(place) != 0) {
            return -1;
        }
    }
    return 0;
}

int bench_pair_start(struct bench_pair *pair)
{
    pair->page = mmap(NULL, sizeof *pair->page, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pair->page == MAP_FAILED) {
        pair->page = NULL;
        return fail(pair, "no memory");
    }
    if (setup_places(pair) != 0) {
        return fail(pair, "could not be set up");
    }
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        pair->child[i] = fork();
        if (pair->child[i] == 0) {
            side_main(pair, i);
        }
        if (pair->child[i] < 0) {
            return fail(pair, "no process");
        }
    }
    return await_done(pair, 2, "did not open");
}

/* A round trip is side 0's; a stream ends when the slower side has ended. */
static double part_ns(const struct bench_pair_page *page, unsigned which)
{
    const double *ns[2] = {page->ns[0], page->ns[1]};
    if (page->parts[which].kind == BENCH_KIND_TRIPS || ns[0][which] > ns[1][which]) {
        return ns[0][which];
    }
    return ns[1][which];
}

int bench_pair_block(struct bench_pair *pair,
                     const struct bench_part *base,
                     const struct bench_part *part,
                     struct bench_outcome *out)
{
    struct bench_pair_page *page = pair->page;
    if (pair->failed) {
        return -1;
    }
    if (bench_stopping()) {
        return fail(pair, "stopped by a signal");
    }
    const uint32_t target = atomic_load(&page->done) + 2;
    page->parts[0] = *base;
    page->parts[1] = *part;
    (void)atomic_fetch_add(&page->turn, 1);
    futex_wake(&page->turn);
    if (await_done(pair, target, "stuck: messages were lost") != 0) {
        return -1;
    }
    const struct bench_outcome outcome = {.limit_ns = page->limit_ns,
                                          .ns = {part_ns(page, 0), part_ns(page, 1)},
                                          .side_ns = {page->side_ns[0], page->side_ns[1]},
                                          .cpu_ns = {page->cpu_ns[0], page->cpu_ns[1]},
                                          .errors = page->errors[0] + page->errors[1],
                                          .disturbed = page->switches[0] + page->switches[1] > 0};
    *out = outcome;
    return outcome.errors == 0 ? 0 : fail(pair, "lost, reordered or wrong messages");
}

const uint32_t *bench_pair_histogram(const struct bench_pair *pair, unsigned regime)
{
    return pair->page->histogram[regime];
}

void bench_pair_clear_histogram(struct bench_pair *pair)
{
    memset(pair->page->histogram, 0, sizeof pair->page->histogram);
}

/* Gives a side time to end by itself; a peer's library may hang in its clean-up. */
static int reap(pid_t child)
{
    int status = 0;
    for (int i = 0; i < 3000; i++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            return status == 0 ? 0 : -1;
        }
        (void)usleep(1000);
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
    return -1;
}

int bench_pair_stop(struct bench_pair *pair)
{
    int r = pair->failed ? -1 : 0;
    if (pair->page != NULL) {
        atomic_store(&pair->page->turn, TURN_STOP);
        futex_wake(&pair->page->turn);
    }
    for (int i = 0; i < 2; i++) {
        if (pair->child[i] > 0) {
            r = reap(pair->child[i]) != 0 ? -1 : r;
            pair->child[i] = 0;
        }
    }
    for (unsigned i = pair->slot_count; i-- > 0;) {
        struct bench_place *place = &pair->places[i];
        if (place->contender->teardown != NULL) {
            place->contender->teardown(place);
        }
        bench_place_helper_stop(place);
        bench_place_free(place);
        for (unsigned k = 0; k < 4; k++) {
            if (place->fds[k] >= 0) {
                (void)close(place->fds[k]);
                place->fds[k] = -1;
            }
        }
    }
    if (pair->page != NULL) {
        (void)munmap(pair->page, sizeof *pair->page);
        pair->page = NULL;
    }
    return r;
}
