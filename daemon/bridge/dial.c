/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/dial.h"

#include "daemon/bridge/conn_impl.h"
#include "daemon/bridge/lookup.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOG_NS UINT64_C(10000000000)
/* What ends earlier than this has not been a success: the peer refuses us after its handshake. */
#define LASTED_NS UINT64_C(1000000000)

struct rbi_dial {
    struct rbi_conn_terms *terms;
    const struct rbi_conn_ops *ops;
    void *context;
    char host[RBI_HOST_NAME_MAX + 1U];
    char address_text[RBI_BRIDGE_ADDRESS_MAX + 1U];
    struct rbi_address address;
    struct rbi_lookup *lookup;
    /* Where the name leads, to be tried one after another. */
    struct rbi_socket_address found[RBI_LOOKUP_MAX];
    unsigned found_count;
    unsigned found_next;
    struct rbi_conn *current; /* tried, or up */
    struct rbi_conn *renewal; /* tried while `current` is up */
    bool paused;
    uint64_t step_ns;
    uint64_t seed;
    struct rbi_loop_timer timer;
    uint32_t failures;
    uint64_t attempts;
    char why[RBI_CONN_WHY_MAX + 1U];
    struct rbi_log_limit limit;
};

static void dial_start(void *context);

static bool dial_is_up(const struct rbi_dial *dial)
{
    return dial->current && dial->current->was_up;
}

/* ---- waiting --------------------------------------------------------------------------- */

static uint64_t dial_random(struct rbi_dial *dial)
{
    dial->seed = dial->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return dial->seed >> 32;
}

/** Full jitter: hosts that lost each other together do not come back together. */
static void dial_wait(struct rbi_dial *dial)
{
    struct rbi_loop *loop = dial->terms->loop;
    if (dial->paused) {
        return;
    }
    const uint64_t wait_ns = (dial->step_ns / 1024) * (dial_random(dial) % 1024 + 1);
    dial->step_ns = rbi_min_u64(dial->step_ns * 2, RBI_DIAL_STEP_MAX_NS);
    rbi_loop_timer_set(loop, &dial->timer, rbi_loop_now_ns(loop) + wait_ns, dial_start, dial);
}

static void dial_note(struct rbi_dial *dial, const char *why)
{
    uint64_t suppressed = 0;
    const bool news = strcmp(why, dial->why) != 0;
    (void)snprintf(dial->why, sizeof(dial->why), "%s", why);
    dial->failures++;
    if (news) {
        dial->limit.next_ns = 0;
    }
    if (rbi_log_limit_pass(&dial->limit, rbi_loop_now_ns(dial->terms->loop), LOG_NS, &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "host_dial_failed",
                "host=%s address=%s reason=%s failures=%u suppressed=%llu", dial->host,
                dial->address_text, rbi_log_quote(&(struct rbi_log_text){{0}}, why, strlen(why)),
                dial->failures, (unsigned long long)suppressed);
    }
}

/* ---- attempts -------------------------------------------------------------------------- */

static const struct rbi_conn_maker dial_maker;

/** @retval 0; -errno it did not even begin */
static int
dial_connect(struct rbi_dial *dial, const struct rbi_socket_address *to, struct rbi_conn **out)
{
    const int fd = socket(to->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    dial->attempts++;
    struct rbi_conn *conn = NULL;
    const int result = rbi_conn_make(dial->terms, fd, to, dial->host, &dial_maker, dial, &conn);
    if (result == 0) {
        rbi_conn_own(conn, dial->ops, dial->context);
        *out = conn;
    }
    return result;
}

/** The next of the addresses; when all were tried, a pause. */
static void dial_next(struct rbi_dial *dial)
{
    while (dial->found_next < dial->found_count) {
        const struct rbi_socket_address *to = &dial->found[dial->found_next++];
        const int result = dial_connect(dial, to, &dial->current);
        if (result == 0) {
            return;
        }
        dial_note(dial, rbi_log_errno(-result));
    }
    dial_wait(dial);
}

static void dial_found(void *context, const struct rbi_socket_address *found, int count)
{
    struct rbi_dial *dial = context;
    dial->lookup = NULL;
    if (count < 0) {
        char why[RBI_CONN_WHY_MAX + 1U];
        (void)snprintf(why, sizeof(why), "no address of %.127s: %.100s", dial->address.node,
                       rbi_log_errno(-count));
        dial_note(dial, why);
        dial_wait(dial);
        return;
    }
    memcpy(dial->found, found, (size_t)count * sizeof(*found));
    dial->found_count = (unsigned)count;
    dial->found_next = 0;
    dial_next(dial);
}

static void dial_start(void *context)
{
    struct rbi_dial *dial = context;
    if (dial->paused || dial->current || dial->lookup) {
        return;
    }
    if (dial->address.numeric) {
        struct rbi_socket_address found;
        dial_found(dial, &found, rbi_address_find(&dial->address, &found, 1));
        return;
    }
    const int result =
        rbi_lookup_start(dial->terms->loop, &dial->address, dial_found, dial, &dial->lookup);
    if (result < 0) {
        dial_note(dial, rbi_log_errno(-result));
        dial_wait(dial);
    }
}

/** Begins anew, in a turn of its own. */
static void dial_soon(struct rbi_dial *dial)
{
    struct rbi_loop *loop = dial->terms->loop;
    dial->step_ns = RBI_DIAL_STEP_MIN_NS;
    rbi_loop_timer_set(loop, &dial->timer, rbi_loop_now_ns(loop), dial_start, dial);
}

/* ---- what becomes of them -------------------------------------------------------------- */

static bool dial_up(void *context, struct rbi_conn *conn)
{
    struct rbi_dial *dial = context;
    if (conn != dial->renewal) {
        return true;
    }
    struct rbi_conn *old = dial->current;
    dial->renewal = NULL;
    if (old && rbi_conn_expires(conn) <= rbi_conn_expires(old) &&
        rbi_conn_loaded(conn) == rbi_conn_loaded(old)) {
        conn->maker = NULL;
        return false; /* neither side has other certificates yet */
    }
    if (old) {
        old->maker = NULL; /* its owner closes it, now that it has another */
    }
    dial->current = conn;
    return true;
}

static void dial_over(void *context, struct rbi_conn *conn, const char *why)
{
    struct rbi_dial *dial = context;
    const bool was_up = conn->was_up;
    if (conn == dial->renewal) {
        dial->renewal = NULL;
        if (why) {
            dial_note(dial, why);
        }
        return;
    }
    dial->current = dial->renewal;
    dial->renewal = NULL;
    const uint64_t lasted = rbi_loop_now_ns(dial->terms->loop) - conn->figures.connected_ns;
    if (was_up && (conn->settled || lasted >= LASTED_NS)) {
        dial->failures = 0;
        dial->step_ns = RBI_DIAL_STEP_MIN_NS;
    }
    if (why) {
        dial_note(dial, why);
    }
    if (dial->current || dial->paused) {
        return;
    }
    if (was_up) {
        dial_wait(dial);
    } else {
        dial_next(dial);
    }
}

static void dial_ripe(void *context, struct rbi_conn *conn)
{
    struct rbi_dial *dial = context;
    if (conn != dial->current || dial->renewal || dial->paused || !dial->found_count) {
        return;
    }
    const struct rbi_socket_address *to = &dial->found[dial->found_next - 1];
    if (dial_connect(dial, to, &dial->renewal) < 0) {
        dial->renewal = NULL; /* tried again in a second */
    }
}

static const struct rbi_conn_maker dial_maker = {
    .up = dial_up, .over = dial_over, .ripe = dial_ripe};

/* ---- life ------------------------------------------------------------------------------ */

/** Whatever is under way to a new connection, but for one that is up. */
static void dial_stop(struct rbi_dial *dial)
{
    rbi_loop_timer_cancel(dial->terms->loop, &dial->timer);
    dial->lookup = rbi_lookup_forget(dial->lookup);
    if (dial->renewal) {
        rbi_conn_orphan(dial->renewal);
        dial->renewal = NULL;
    }
    if (dial->current && !dial->current->was_up) {
        rbi_conn_orphan(dial->current);
        dial->current = NULL;
    }
    dial->found_next = dial->found_count;
}

int rbi_dial_move(struct rbi_dial *dial, const char *address)
{
    struct rbi_address parsed;
    if (strlen(address) > RBI_BRIDGE_ADDRESS_MAX || rbi_address_parse(address, &parsed) < 0) {
        return -EINVAL;
    }
    if (strcmp(address, dial->address_text) == 0) {
        return 0;
    }
    (void)snprintf(dial->address_text, sizeof(dial->address_text), "%s", address);
    dial->address = parsed;
    dial_stop(dial);
    if (!dial->current && !dial->paused) {
        dial_soon(dial);
    }
    return 0;
}

void rbi_dial_pause(struct rbi_dial *dial)
{
    dial->paused = true;
    dial_stop(dial);
}

void rbi_dial_resume(struct rbi_dial *dial)
{
    if (dial->paused) {
        dial->paused = false;
        if (!dial->current) {
            dial_soon(dial);
        }
    }
}

void rbi_dial_report(const struct rbi_dial *dial, struct rbi_dial_report *out)
{
    out->state = dial_is_up(dial)                ? RBI_DIAL_CONNECTED
                 : dial->paused                  ? RBI_DIAL_PAUSED
                 : dial->current || dial->lookup ? RBI_DIAL_TRYING
                                                 : RBI_DIAL_WAITING;
    out->failures = dial->failures;
    out->attempts = dial->attempts;
    memcpy(out->why, dial->why, sizeof(out->why));
}

struct rbi_dial *rbi_dial_free(struct rbi_dial *dial)
{
    if (!dial) {
        return NULL;
    }
    dial_stop(dial);
    if (dial->current) {
        rbi_conn_orphan(dial->current);
    }
    free(dial);
    return NULL;
}

int rbi_dial_new(struct rbi_conn_terms *terms,
                 const char *host,
                 const char *address,
                 const struct rbi_conn_ops *ops,
                 void *context,
                 struct rbi_dial **out)
{
    struct rbi_dial *dial = calloc(1, sizeof(*dial));
    if (!dial) {
        return -ENOMEM;
    }
    dial->terms = terms;
    dial->ops = ops;
    dial->context = context;
    (void)snprintf(dial->host, sizeof(dial->host), "%s", host);
    if (getrandom(&dial->seed, sizeof(dial->seed), GRND_NONBLOCK) < 0) {
        dial->seed = (uintptr_t)dial ^ rbi_loop_now_ns(terms->loop);
    }
    if (rbi_dial_move(dial, address) < 0) {
        free(dial);
        return -EINVAL;
    }
    *out = dial;
    return 0;
}
