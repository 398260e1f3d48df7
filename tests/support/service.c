/* SPDX-License-Identifier: Apache-2.0 */
#include "support/service.h"

#include "support/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- instances ------------------------------------------------------------------------------ */

enum word { TAKE_NS, FAIL, ASKED, STOP, WORD_COUNT };

#define FIRST_WORD 256U /* those before are the test's own */

static _Atomic uint64_t *word_of(unsigned instance, enum word word)
{
    CHECK(instance >= 1 && instance <= SERVICE_MAX);
    return &bus_shared[FIRST_WORD + instance * WORD_COUNT + (unsigned)word];
}

void service_take_ns(unsigned instance, uint64_t ns)
{
    atomic_store(word_of(instance, TAKE_NS), ns);
}

void service_fail(unsigned instance, unsigned percent)
{
    atomic_store(word_of(instance, FAIL), percent);
}

uint64_t service_asked(unsigned instance)
{
    return atomic_load(word_of(instance, ASKED));
}

struct worker {
    unsigned instance;
    uint64_t busy_until_ns; /* 0: it has nothing to do */
    unsigned turn;
};

/*
 * Takes the time that a request takes. While there is work, by a time to be ready at and not by a
 * duration: what the scheduler keeps us waiting is not added to it, so that the instance is as
 * fast as the test says on a machine that is slow now and then.
 */
static void work(struct worker *worker)
{
    const uint64_t take_ns = atomic_load(word_of(worker->instance, TAKE_NS));
    const uint64_t now_ns = machine_now_ns();
    worker->busy_until_ns = (worker->busy_until_ns == 0 ? now_ns : worker->busy_until_ns) + take_ns;
    if (take_ns > 0 && worker->busy_until_ns > now_ns) {
        const uint64_t ns = worker->busy_until_ns - now_ns;
        const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000U),
                                       .tv_nsec = (long)(ns % 1000000000U)};
        (void)nanosleep(&pause, NULL);
    }
}

static void serve(struct node *node, const struct ringbus_message *message)
{
    struct worker *worker = node->context;
    atomic_fetch_add(word_of(worker->instance, ASKED), 1);
    work(worker);
    /* 70 of 100 and spread: 37 and 100 have no common divisor. */
    const unsigned turn = worker->turn++ * 37U % 100U;
    if (turn < atomic_load(word_of(worker->instance, FAIL))) {
        CHECK(ringbus_reply_error(node->bus, &message->reply_to, "broken") == 1);
    } else {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static void be_instance(const struct cluster *cluster, void *context)
{
    struct worker worker = {.instance = (unsigned)(uintptr_t)context};
    struct node node = {.on_message = serve, .context = &worker};
    char path[64];
    (void)prctl(PR_SET_TIMERSLACK, 1);
    (void)snprintf(path, sizeof path, SERVICE_PATH "/%u", worker.instance);
    node_open(&node, cluster, path);
    while (atomic_load(word_of(worker.instance, STOP)) == 0) {
        /* One at a time: the load that it publishes is as of now. */
        const int n = ringbus_poll(node.bus, 1);
        CHECK(n >= 0);
        if (n == 0) {
            worker.busy_until_ns = 0;
            CHECK(ringbus_wait(node.bus, 50) >= 0);
        }
    }
    (void)ringbus_close(node.bus, 1000);
}

pid_t service_start(const struct cluster *cluster, unsigned instance)
{
    atomic_store(word_of(instance, STOP), 0);
    return child_start(be_instance, cluster, (void *)(uintptr_t)instance);
}

void service_stop(unsigned instance, pid_t pid)
{
    atomic_store(word_of(instance, STOP), 1);
    CHECK(child_wait(pid, NODE_MS) == 0);
}

/* ---- callers -------------------------------------------------------------------------------- */

struct load *load_open(const struct cluster *cluster,
                       const struct ringbus_target_options *options,
                       unsigned ready,
                       enum load_mix mix,
                       unsigned per_second)
{
    struct load *load = calloc(1, sizeof *load);
    CHECK(load != NULL);
    load->samples_us = calloc(LOAD_SAMPLES, sizeof *load->samples_us);
    CHECK(load->samples_us != NULL);
    load->mix = mix;
    load->period_ns = 1000000000U / per_second;
    load->most = LOAD_SLOTS;
    load->timeout_ms = NODE_MS;
    for (unsigned i = 0; i < LOAD_SLOTS; i++) {
        load->free[load->free_count++] = &load->calls[i];
    }
    struct ringbus_options open = node_options(cluster, NULL);
    open.lane_bytes = 1U << 20U;
    open.refs_per_link = LOAD_SLOTS;
    node_open_with(&load->node, &open);
    CHECK(ringbus_target(load->node.bus, SERVICE_PATH, options, &load->to) == 0);
    RUN_UNTIL(load->node.events[RINGBUS_EVENT_READY] >= ready, NODE_MS, &load->node);
    load->next_ns = machine_now_ns();
    return load;
}

void load_close(struct load *load)
{
    load_settle(&load, 1);
    CHECK(load->ended == load->begun && load->free_count == LOAD_SLOTS);
    node_close(&load->node);
    free(load->samples_us);
    free(load);
}

static void note_key(struct load *load, uint32_t key, unsigned instance)
{
    const unsigned before = load->owner[key];
    if (before != instance && before != 0) {
        load->moves++;
        load->astray += load->moving != 0 && before != load->moving && instance != load->moving;
    }
    load->owner[key] = (uint8_t)instance;
}

static void note_answer(struct load *load, const struct load_call *call, unsigned instance)
{
    const uint64_t took_us = (machine_now_ns() - call->begun_ns) / 1000;
    load->answered[instance]++;
    if (call->begun_ns > load->last_ns[instance]) {
        load->last_ns[instance] = call->begun_ns;
    }
    load->recent[call->number % sizeof load->recent] = (uint8_t)instance;
    if (load->sample_count < LOAD_SAMPLES) {
        load->samples_us[load->sample_count++] =
            took_us < UINT32_MAX ? (uint32_t)took_us : UINT32_MAX;
    }
}

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct load_call *call = context;
    struct load *load = call->load;
    const int32_t instance = result->peer.instance;
    (void)bus;
    CHECK(call->busy); /* once */
    call->busy = false;
    load->free[load->free_count++] = call;
    load->under_way--;
    load->ended++;
    load->outcomes[result->outcome]++;
    if (result->outcome != RINGBUS_REPLIED && result->outcome != RINGBUS_FAILED) {
        load->unanswered[call->key < SERVICE_KEYS]++;
        load->error = result->error;
        return;
    }
    CHECK(instance >= 1 && instance <= (int32_t)SERVICE_MAX);
    if (call->key < SERVICE_KEYS) {
        note_key(load, call->key, (unsigned)instance);
    } else {
        note_answer(load, call, (unsigned)instance);
    }
}

/** A key that is spread: the table looks at the upper bits of the mixed key anyway. */
static uint64_t key_of(uint32_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15);
}

static void begin(struct load *load)
{
    struct load_call *call = load->free[load->free_count - 1];
    const bool keyed = load->mix == LOAD_KEYED || (load->mix == LOAD_BOTH && load->turn % 2 != 0);
    *call =
        (struct load_call){.load = load,
                           .number = load->keyless,
                           .begun_ns = machine_now_ns(),
                           .key = keyed ? (uint32_t)(load->turn / 2 % SERVICE_KEYS) : SERVICE_KEYS,
                           .busy = true};
    /* The callback may run within. */
    load->free_count--;
    load->under_way++;
    load->begun++;
    load->turn++;
    load->keyless += !keyed;
    const struct ringbus_part part = {.data = "hi", .size = 2};
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = keyed ? RINGBUS_KEY : 0,
                                                    .key = keyed ? key_of(call->key) : 0,
                                                    .timeout_ms = load->timeout_ms};
    const int r =
        ringbus_request_with(load->node.bus, &load->to, &part, 1, &options, on_result, call);
    if (r != 1) {
        CHECK(call->busy);
        call->busy = false;
        load->free[load->free_count++] = call;
        load->under_way--;
        load->begun--;
        load->refused[keyed]++;
        load->refusal = r;
    }
}

void load_step(struct load *const *loads, unsigned count)
{
    int handled = 0;
    for (unsigned i = 0; i < count; i++) {
        struct load *load = loads[i];
        const uint64_t now_ns = machine_now_ns();
        unsigned due = 0;
        while (load->next_ns <= now_ns && due++ < 64 && load->under_way < load->most) {
            begin(load);
            load->next_ns += load->period_ns;
        }
        if (load->next_ns + 100 * load->period_ns < now_ns) {
            load->next_ns = now_ns; /* held up: not all that at once */
        }
        const int n = ringbus_poll(load->node.bus, 1000);
        CHECK(n >= 0);
        handled += n;
    }
    if (handled == 0) {
        test_sleep_ms(0);
        CHECK(ringbus_wait(loads[0]->node.bus, 1) >= 0);
    }
}

void load_settle(struct load *const *loads, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        RUN_UNTIL(loads[i]->ended == loads[i]->begun, 2 * NODE_MS, &loads[i]->node);
    }
}

void load_measure(struct load *load)
{
    load->sample_count = 0;
    memset(load->answered, 0, sizeof load->answered);
    load->next_ns = machine_now_ns();
}

static int by_size(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

uint32_t load_percentile_us(struct load *load, unsigned permille)
{
    CHECK(load->sample_count > 0);
    qsort(load->samples_us, load->sample_count, sizeof load->samples_us[0], by_size);
    return load->samples_us[(uint64_t)load->sample_count * permille / 1000];
}

double load_share(const struct load *load, unsigned instance)
{
    uint64_t all = 0;
    for (unsigned i = 1; i <= SERVICE_MAX; i++) {
        all += load->answered[i];
    }
    return all == 0 ? 0 : (double)load->answered[instance] / (double)all;
}

int load_ctl(struct load *const *loads, unsigned count, const char *const *arguments)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    int status = 0;
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    while (waitpid(pid, &status, WNOHANG) != pid) {
        if (test_now_ms() > deadline_ms) {
            child_kill(pid);
            return -1;
        }
        load_step(loads, count);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
