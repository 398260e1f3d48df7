/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping: round trips of empty requests. An endpoint that does not handle requests answers
 * with a failure, which has come all the way from its loop and counts as well.
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PING_COUNT_DEFAULT 10U
/* Above this many only the newest are kept for the percentiles. */
#define PING_SAMPLES_MAX ((uint64_t)1 << 20)

struct ping {
    struct rbi_ctl_session session;
    const struct rbi_ctl_args *args;
    uint64_t sent;
    uint64_t answered;
    uint64_t lost;
    bool waiting;
    uint64_t *samples_ns; /* owned, a ring */
};

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static void
print_answer(struct ringbus *bus, const struct ping *ping, const struct ringbus_result *result)
{
    char peer[RINGBUS_PATH_MAX + 1] = "";
    bool answered = result->outcome == RINGBUS_REPLIED || result->outcome == RINGBUS_FAILED;
    (void)ringbus_format(bus, &result->peer, peer, sizeof peer);
    if (ping->args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_u64(&json, "number", ping->sent);
        rbi_ctl_json_text(&json, "peer", peer);
        rbi_ctl_json_bool(&json, "answered", answered);
        rbi_ctl_json_real(&json, "us", us(result->elapsed_ns));
        rbi_ctl_json_end(&json);
    } else if (answered) {
        printf("%" PRIu64 ": %s %.1f us\n", ping->sent, peer, us(result->elapsed_ns));
    } else {
        printf("%" PRIu64 ": %s %s\n", ping->sent, peer, ringbus_error_name(result->error));
    }
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct ping *ping = context;
    ping->waiting = false;
    if (result->outcome == RINGBUS_REPLIED || result->outcome == RINGBUS_FAILED) {
        ping->samples_ns[ping->answered % PING_SAMPLES_MAX] = result->elapsed_ns;
        ping->answered++;
    } else {
        ping->lost++;
    }
    if (ping->args->interval_ms > 0) {
        print_answer(bus, ping, result);
        (void)fflush(stdout);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static int summary(struct ping *ping)
{
    static const struct {
        const char *name;
        double share;
    } points[] = {{"min", 0}, {"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}, {"max", 1}};
    uint64_t count = rbi_min_u64(ping->answered, PING_SAMPLES_MAX);
    struct rbi_ctl_json json;
    qsort(ping->samples_ns, (size_t)count, sizeof *ping->samples_ns, by_value);
    if (ping->args->json) {
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_u64(&json, "sent", ping->sent);
        rbi_ctl_json_u64(&json, "answered", ping->answered);
    } else {
        printf("%" PRIu64 " sent, %" PRIu64 " answered", ping->sent, ping->answered);
    }
    for (size_t i = 0; count > 0 && i < RBI_ARRAY_SIZE(points); i++) {
        /* Nearest rank: the smallest sample that at least this share does not exceed. */
        double below = points[i].share * (double)count;
        uint64_t rank = (uint64_t)below + ((double)(uint64_t)below < below ? 1 : 0);
        double value = us(ping->samples_ns[rank > 0 ? rank - 1 : 0]);
        if (ping->args->json) {
            char name[16];
            snprintf(name, sizeof name, "%s_us", points[i].name);
            rbi_ctl_json_real(&json, name, value);
        } else {
            printf(", %s %.1f us", points[i].name, value);
        }
    }
    if (ping->args->json) {
        rbi_ctl_json_end(&json);
    } else {
        putchar('\n');
    }
    return ping->answered == ping->sent && ping->sent > 0 ? RBI_CTL_OK
           : ping->answered > 0                           ? RBI_CTL_FAILED
                                                          : RBI_CTL_TIMEOUT;
}

/* Dispatches until the answer is there and the time for the next has come. */
static int wait_next(struct ping *ping, uint64_t next_ns)
{
    while (!rbi_ctl_stopping()) {
        uint64_t now_ns = rbi_ctl_now_ns();
        if (!ping->waiting && now_ns >= next_ns) {
            return RBI_CTL_OK;
        }
        int left_ms = now_ns < next_ns ? (int)((next_ns - now_ns + 999999) / 1000000) : 1000;
        int r = rbi_ctl_session_step(&ping->session, left_ms);
        if (r != RBI_CTL_OK) {
            return r;
        }
    }
    return RBI_CTL_OK;
}

static int ping_all(struct ping *ping)
{
    const struct rbi_ctl_args *args = ping->args;
    uint64_t count = (args->given & RBI_CTL_COUNT) != 0 ? args->count : PING_COUNT_DEFAULT;
    uint64_t key = args->key != NULL ? ringbus_key(args->key, strlen(args->key)) : 0;
    int r = rbi_ctl_session_target(&ping->session, args->operands[0]);
    if (r != RBI_CTL_OK) {
        return r;
    }
    while (ping->sent < count && !rbi_ctl_stopping()) {
        uint64_t begin_ns = rbi_ctl_now_ns();
        r = ringbus_request(ping->session.bus, &ping->session.to, key, NULL, 0,
                            args->key != NULL ? RINGBUS_KEY : 0, args->timeout_ms, on_reply, ping);
        if (r < 0) {
            return rbi_ctl_fail_bus(args, r, "not sent", ringbus_errmsg(ping->session.bus));
        }
        ping->waiting = true;
        ping->sent++;
        uint64_t pause_ns = ping->sent < count ? (uint64_t)args->interval_ms * 1000000 : 0;
        r = wait_next(ping, begin_ns + pause_ns);
        if (r != RBI_CTL_OK) {
            return r;
        }
    }
    if (ping->waiting) {
        ping->sent--; /* interrupted: nobody knows about the last */
    }
    return RBI_CTL_OK;
}

int rbi_ctl_ping(const struct rbi_ctl_args *args)
{
    struct ping ping = {.args = args};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    ping.samples_ns = calloc(PING_SAMPLES_MAX, sizeof *ping.samples_ns);
    if (ping.samples_ns == NULL) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
    }
    int r = rbi_ctl_session_open(&ping.session, args, &options);
    if (r == RBI_CTL_OK) {
        r = ping_all(&ping);
        if (ping.sent > 0) {
            int figures = summary(&ping);
            r = r != RBI_CTL_OK ? r : figures;
        }
        /* The callback of a request that still waits must find its ping. */
        (void)rbi_ctl_session_close(&ping.session, 0);
    }
    free(ping.samples_ns);
    return r;
}
