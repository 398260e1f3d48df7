/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_SERVICE_H
#define RINGBUS_TESTS_SUPPORT_SERVICE_H
/*
 * A service under load: instances in processes of their own, whose speed and health the test
 * sets while they run, and callers in the test's process that ask at a rate and keep books:
 * every request begun ends exactly once, and who answered which key is known.
 *
 * The words that steer an instance lie in bus_shared: call bus_shared_reset() first.
 */
#include "support/bus.h"

#define SERVICE_PATH "/game/eu/pc/w1/core/service"
#define SERVICE_MAX  8U
#define SERVICE_KEYS 1024U

/** What an instance does with a request; the test writes, the instance reads at each one. */
void service_take_ns(unsigned instance, uint64_t ns);
/** So many of 100 requests are answered by an error. */
void service_fail(unsigned instance, unsigned percent);
/** Requests that it has had, over all its lives. */
uint64_t service_asked(unsigned instance);
/** Starts instance 1, 2 ... as SERVICE_PATH/N. @return its process */
pid_t service_start(const struct cluster *cluster, unsigned instance);
/** Lets it close in order, and waits. */
void service_stop(unsigned instance, pid_t pid);

#define LOAD_SLOTS   4096U /* under way at once, at most */
#define LOAD_SAMPLES 65536U

/** Requests without a key and with one, in turn or only one of them. */
enum load_mix { LOAD_KEYLESS = 1, LOAD_KEYED = 2, LOAD_BOTH = 3 };

struct load;

/** One request. */
struct load_call {
    struct load *load;
    uint64_t number; /* in the order begun, from 0 */
    uint64_t begun_ns;
    uint32_t key; /* SERVICE_KEYS: none */
    bool busy;
};

/** A caller and its books. */
struct load {
    struct node node;
    struct ringbus_addr to;
    enum load_mix mix;
    uint64_t period_ns; /* between two requests */
    uint64_t next_ns;
    unsigned most; /* under way at once; what would be more is begun later */
    uint32_t timeout_ms;
    uint64_t turn; /* begun or refused */
    uint64_t begun;
    uint64_t ended;
    uint64_t outcomes[4];   /* by enum ringbus_outcome */
    uint64_t refused[2];    /* by the call itself, and so never begun; [1] with a key */
    uint64_t unanswered[2]; /* ended as UNKNOWN or NOT_SENT; likewise */
    int refusal;            /* the last error of each */
    int error;
    uint64_t answered[SERVICE_MAX + 1]; /* without key, by instance */
    uint64_t last_ns[SERVICE_MAX + 1];  /* when the last of these was begun */
    uint8_t recent[64];                 /* who answered request N without key, at N % 64 */
    uint64_t keyless;                   /* begun without a key */
    /* Who has answered a key last, 0 nobody yet; and how often that was another than before. */
    uint8_t owner[SERVICE_KEYS];
    uint64_t moves;
    /* When not 0: a key may only go from or to this instance; what does otherwise is counted. */
    unsigned moving;
    uint64_t astray;
    uint32_t *samples_us; /* of requests without key, since load_measure() */
    unsigned sample_count;
    unsigned under_way;
    unsigned free_count;
    struct load_call *free[LOAD_SLOTS];
    struct load_call calls[LOAD_SLOTS];
};

/** Opens a caller and targets the service; waits for @p ready links. */
struct load *load_open(const struct cluster *cluster,
                       const struct ringbus_target_options *options,
                       unsigned ready,
                       enum load_mix mix,
                       unsigned per_second);
/** Waits until everything has ended, closes, frees. */
void load_close(struct load *load);
/** Begins what is due, and polls. */
void load_step(struct load *const *loads, unsigned count);
/** Steps until everything that was begun has ended. */
void load_settle(struct load *const *loads, unsigned count);
/** Latencies and counts of answers begin anew. */
void load_measure(struct load *load);
/** @param permille  of the samples that are below; 990 is p99. @return in us */
uint32_t load_percentile_us(struct load *load, unsigned permille);
/** Part of the answers without a key that came from that instance, since load_measure(). */
double load_share(const struct load *load, unsigned instance);

/** Runs ringbusctl under load. @return its exit code; *took_ms as long as it ran */
int load_ctl(struct load *const *loads, unsigned count, const char *const *arguments);

#define LOAD_UNTIL(condition, timeout_ms, loads, count)                                            \
    do {                                                                                           \
        const uint64_t deadline_ms_ = test_now_ms() + (timeout_ms);                                \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > deadline_ms_) {                                                    \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            load_step(loads, count);                                                               \
        }                                                                                          \
    } while (0)

#endif
