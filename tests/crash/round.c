/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/round.h"

#include "crash/partner.h"
#include "crash/trace.h"
#include "crash/victim.h"
#include "support/machine.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Nothing here waits for a timer: PINGs would take three seconds to miss a dead peer. */
#define DOWN_MS 2500U
/* A paused victim is to be given up by them, if nobody else stands still. */
#define PAUSE_PING_MS 20U
#define PAUSE_DOWN_MS 10000U
/* And to be back within; its way is a retry of 50 ms long. */
#define RETURN_MS 5000U
/* Rounds that may be void in all: the machine stood still for longer than PINGs may take. */
#define VOID_MAX 200U

static uint32_t rounds;
static unsigned voids;
static bool woken; /* in this round */

unsigned round_void_count(void)
{
    return voids;
}

/* ---- waiting -------------------------------- */

static void on_child(int number)
{
    (void)number;
    partners_wake();
}

/* Partners sleep between two looks at the victim: a stop of its wakes them. */
static void wake_by_children(bool on)
{
    const struct sigaction action = {.sa_handler = on ? on_child : SIG_DFL, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
}

/** Runs the partners until the victim stops. */
static enum trace_stop wait_running(struct trace *trace)
{
    enum trace_stop stop = TRACE_GOES_ON;
    wake_by_children(true);
    while ((stop = trace_wait(trace, false)) == TRACE_GOES_ON) {
        partners_run();
    }
    wake_by_children(false);
    return stop;
}

/* ---- to the point -------------------------------- */

/** One step. TRACE_GOES_ON: it sleeps in the kernel, where nothing but a message wakes it. */
static enum trace_stop
step(struct trace *trace, const struct operation *operation, enum trace_how how)
{
    CHECK(trace_resume(trace, how) == 0);
    if (operation->by_calls) {
        return wait_running(trace);
    }
    if (!operation->blocks) {
        return trace_wait(trace, true);
    }
    for (;;) {
        for (unsigned looks = 0; looks < 100; looks++) {
            const enum trace_stop stop = trace_wait(trace, false);
            if (stop != TRACE_GOES_ON) {
                return stop;
            }
            (void)sched_yield();
        }
        if (trace_sleeps(trace)) {
            return TRACE_GOES_ON;
        }
    }
}

/** Gives a victim that sleeps, or is about to, what wakes it: a message, or room. */
static void wake(const struct operation *operation)
{
    if (operation->fills) {
        partners_settle();
    } else if (operation->blocks && !woken) {
        partners_give(operation, GIVEN_SMALL);
        woken = true;
    }
}

/** Steps until the point or the end of the operation. @return the last stop */
static enum trace_stop step_to(struct trace *trace,
                               const struct operation *operation,
                               struct round_point at,
                               struct round_result *out)
{
    enum trace_stop stop = TRACE_BEGIN;
    while (out->calls < at.calls && stop != TRACE_END && stop != TRACE_EXITED) {
        stop = step(trace, operation, TRACE_CALL);
        out->calls += stop == TRACE_STEPPED;
    }
    while (out->instructions < at.instructions && stop != TRACE_END && stop != TRACE_EXITED) {
        if (stop == TRACE_GOES_ON) {
            /* Asleep, and that was one point; it wakes for the next ones. */
            wake(operation);
            stop = trace_wait(trace, true);
        } else {
            stop = step(trace, operation, TRACE_INSTRUCTION);
        }
        out->slept |= stop == TRACE_GOES_ON;
        out->instructions += stop == TRACE_STEPPED || stop == TRACE_GOES_ON;
    }
    return stop;
}

/* ---- the verdict -------------------------------- */

/** What the victim had done when it was killed, by its own words. */
struct account {
    uint64_t begun;
    uint64_t sent;
    uint64_t ready;
};

static void take_account(struct account *account)
{
    account->begun = word_get(WORD_BEGUN);
    account->sent = word_get(WORD_SENT);
    account->ready = word_get(WORD_READY);
}

/* Each message to the victim: its handler ran, or it came back, and never both for certain. */
static void judge_messages_to(const struct partner *partner, enum ringbus_reason reason)
{
    for (uint32_t number = 0; number < partner->sent; number++) {
        const uint64_t mask = UINT64_C(1) << number;
        const bool seen = message_seen(number);
        if ((partner->requests & mask) != 0) {
            const int ends = ((partner->replied & mask) != 0) + ((partner->unknown & mask) != 0) +
                             ((partner->not_sent & mask) != 0);
            CHECK(ends == 1);
            CHECK(!seen || (partner->not_sent & mask) == 0);
            CHECK(seen || (partner->replied & mask) == 0);
        } else {
            CHECK(seen || (partner->returned & mask) != 0);
            CHECK(!seen || (partner->returned & ~partner->maybe & mask) == 0);
        }
    }
    /* At most the one whose handler had it is in doubt, unless the victim only stands still. */
    CHECK(reason == RINGBUS_REASON_SILENT || (partner->maybe & (partner->maybe - 1)) == 0);
}

static void judge_link(const struct partner *partner,
                       const struct operation *operation,
                       enum ringbus_reason reason)
{
    CHECK(partner->lives >= 1 && partner->downs == partner->lives);
    CHECK(partner->reasons[0] == reason ||
          (partner->lives == 2 && partner->reasons[0] == RINGBUS_REASON_REPLACED) ||
          (operation->leaves && (partner->reasons[0] == RINGBUS_REASON_LEFT ||
                                 partner->reasons[0] == RINGBUS_REASON_UNTARGETED)));
}

/* Exactly the committed prefix: what had returned is there, what had not begun is not. */
static void
judge(const struct operation *operation, const struct account *account, enum ringbus_reason reason)
{
    for (unsigned i = 0; i < operation->partners; i++) {
        const struct partner *partner = &partners[operation->first_partner + i];
        if (!operation->unlinked) {
            judge_link(partner, operation, reason);
        } else {
            CHECK(partner->lives == partner->downs && partner->lives <= 1);
            CHECK(partner->lives >= account->ready);
        }
        CHECK(partner->got >= account->sent && partner->got <= account->begun);
        /* Chunks of one that only stands still are its own to let go of. */
        CHECK(reason == RINGBUS_REASON_SILENT || node_pool_used(&partner->node) == 0);
        judge_messages_to(partner, reason);
    }
}

/* ---- SIGKILL -------------------------------- */

/* The daemon has forgotten the victim as well, whatever it had told it. */
static void settle_daemon(const struct cluster *cluster, const struct holding *baseline)
{
    struct holding now;
    const uint64_t deadline_ms = test_now_ms() + DOWN_MS;
    for (;;) {
        holding_take(cluster, &now);
        if (holding_counts_equal(baseline, &now)) {
            return;
        }
        if (test_now_ms() > deadline_ms) {
            (void)holding_equal(baseline, &now, true);
            bus_die(__FILE__, __LINE__, "the daemon or a partner keeps something of a dead client");
        }
        partners_run();
    }
}

static void wait_down(unsigned within_ms)
{
    const uint64_t deadline_ms = test_now_ms() + within_ms;
    while (partners_linked()) {
        CHECK(test_now_ms() < deadline_ms);
        partners_run();
    }
}

static void kill_there(const struct cluster *cluster,
                       struct trace *trace,
                       const struct operation *operation,
                       const struct holding *baseline,
                       struct round_result *out)
{
    struct account account;
    const uint64_t killed_ns = machine_now_ns();
    trace_kill(trace);
    take_account(&account);
    wait_down(DOWN_MS);
    out->down_ns = machine_now_ns() - killed_ns;
    partners_settle();
    if (operation->unlinked) {
        settle_daemon(cluster, baseline);
    }
    judge(operation, &account, RINGBUS_REASON_CRASHED);
    CHECK(holding_own_equal(baseline));
}

/* ---- two lives -------------------------------- */

/* Whoever has gone lets go of chunks with the last descriptor, of which the kernel tells. */
static void wait_returned(const struct partner *partner)
{
    const uint64_t deadline_ms = test_now_ms() + DOWN_MS;
    while (node_pool_used(&partner->node) != 0) {
        CHECK(test_now_ms() < deadline_ms);
        partners_run();
    }
}

/* The second is a link of its own, and brought its message and nothing else. */
static void judge_second(const struct operation *operation)
{
    CHECK(word_get(WORD_DONE) == 1);
    for (unsigned i = 0; i < operation->partners; i++) {
        const struct partner *partner = &partners[operation->first_partner + i];
        CHECK(partner->lives == 2 && partner->downs == 2);
        CHECK(partner->reasons[1] == RINGBUS_REASON_LEFT);
        CHECK(partner->back == word_get(WORD_BACK));
        wait_returned(partner);
    }
}

/* What was given up stays so, and the victim was told once and for each link. */
static void judge_return(const struct operation *operation, const uint32_t *got)
{
    CHECK(word_get(WORD_DOWN) == operation->partners);
    CHECK(word_get(WORD_REASON) == RINGBUS_REASON_GIVEN_UP);
    CHECK(word_get(WORD_REFUSED) != 0);
    for (unsigned i = 0; i < operation->partners; i++) {
        CHECK(partners[operation->first_partner + i].got == got[i]);
    }
    judge_second(operation);
}

/* ---- SIGSTOP --------------------------------------------------------------------- */

/** Runs the partners until the victim has ended. */
static void wait_ended(int pidfd)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    const uint64_t deadline_ms = test_now_ms() + RETURN_MS;
    while (poll(&ended, 1, 0) == 0) {
        CHECK(test_now_ms() < deadline_ms);
        partners_run();
    }
}

/*
 * While it was stepped nobody answered it: the victim may have lost patience with the partners
 * before its point. That is no case of this test.
 */
static bool gave_up_first(const struct operation *operation, pid_t pid, int pidfd)
{
    bool any = false;
    for (unsigned i = 0; i < operation->partners; i++) {
        any |= partners[operation->first_partner + i].reasons[0] == RINGBUS_REASON_GIVEN_UP;
    }
    if (any) {
        CHECK(++voids < VOID_MAX);
        CHECK(kill(pid, SIGKILL) == 0);
        wait_ended(pidfd);
        wait_down(DOWN_MS);
        partners_settle();
        (void)close(pidfd);
    }
    return any;
}

static void pause_there(struct trace *trace,
                        const struct operation *operation,
                        bool asleep,
                        const struct holding *baseline,
                        struct round_result *out)
{
    struct account account;
    uint32_t got[PARTNER_COUNT] = {0};
    const int pidfd = (int)syscall(SYS_pidfd_open, trace->pid, 0);
    CHECK(pidfd >= 0);
    const uint64_t stopped_ns = machine_now_ns();
    CHECK(trace_leave_stopped(trace, asleep) == 0);
    take_account(&account);
    wait_down(PAUSE_DOWN_MS);
    out->down_ns = machine_now_ns() - stopped_ns;
    partners_settle();
    if (gave_up_first(operation, trace->pid, pidfd)) {
        return;
    }
    judge(operation, &account, RINGBUS_REASON_SILENT);
    for (unsigned i = 0; i < operation->partners; i++) {
        got[i] = partners[operation->first_partner + i].got;
    }
    CHECK(kill(trace->pid, SIGCONT) == 0);
    wait_ended(pidfd);
    wait_down(DOWN_MS);
    partners_settle();
    judge_return(operation, got);
    (void)close(pidfd);
    CHECK(holding_own_equal(baseline));
}

/* ---- the round -------------------------------- */

static void restart_there(struct trace *trace,
                          const struct victim_order *order,
                          const struct holding *baseline,
                          struct round_result *out)
{
    struct account account;
    struct victim_order second = *order;
    second.again = true;
    const int pidfd = (int)syscall(SYS_pidfd_open, victim_start(&second), 0);
    CHECK(pidfd >= 0);
    const uint64_t killed_ns = machine_now_ns();
    trace_kill(trace);
    take_account(&account);
    victim_go();
    wait_ended(pidfd);
    wait_down(DOWN_MS);
    out->down_ns = machine_now_ns() - killed_ns;
    out->in_use = (unsigned)word_get(WORD_IN_USE);
    partners_settle();
    judge(order->operation, &account, RINGBUS_REASON_CRASHED);
    judge_second(order->operation);
    (void)close(pidfd);
    CHECK(holding_own_equal(baseline));
}

/* ---- no death yet -------------------------------- */

/*
 * It stands still for less than anybody's patience (scenario 15): what it has not committed
 * is waited for, and then all of it is there.
 */
static void
stall_there(struct trace *trace, const struct operation *operation, enum trace_stop stop)
{
    struct account account;
    take_account(&account);
    for (unsigned i = 0; i < 3; i++) {
        partners_settle();
    }
    for (unsigned i = 0; i < operation->partners; i++) {
        const struct partner *partner = &partners[operation->first_partner + i];
        CHECK(partner->lives == 1 && partner->downs == 0);
        CHECK(partner->got >= account.sent && partner->got <= account.begun);
    }
    if (stop == TRACE_END) {
        return;
    }
    wake(operation);
    if (stop == TRACE_GOES_ON) {
        CHECK(trace_wait(trace, true) == TRACE_STEPPED);
    }
    CHECK(trace_resume(trace, TRACE_RUN) == 0);
    CHECK(wait_running(trace) == TRACE_END);
}

/* ---- the round -------------------------------- */

enum beginning { BEGUN = 0, BEGUN_VOID, BEGUN_REFUSED };

/** Starts the victim. Void: it was given up before its operation. */
static enum beginning
begin(struct trace *trace, const struct operation *operation, const struct victim_order *order)
{
    bus_shared_reset();
    partners_round(operation, order->round);
    const pid_t pid = victim_start(order);
    if (trace_attach(trace, pid) != 0) {
        CHECK(errno == EPERM);
        (void)kill(pid, SIGKILL);
        return BEGUN_REFUSED;
    }
    victim_go();
    const enum trace_stop stop = wait_running(trace);
    partners_settle();
    bool void_round = false;
    for (unsigned at = 0; at < PARTNER_COUNT; at++) {
        void_round |= partners[at].downs > 0;
    }
    if (void_round && order->ping_interval_ms != 0) {
        if (stop != TRACE_EXITED) {
            trace_kill(trace);
        }
        wait_down(DOWN_MS);
        CHECK(++voids < VOID_MAX);
        return BEGUN_VOID;
    }
    CHECK(stop == TRACE_BEGIN);
    return BEGUN;
}

void round_run(const struct cluster *cluster,
               const struct operation *operation,
               enum round_mode mode,
               struct round_point at,
               const struct holding *baseline,
               struct round_result *out)
{
    struct trace trace;
    struct victim_order order = {
        .operation = operation,
        .ping_interval_ms = mode == ROUND_PAUSE ? PAUSE_PING_MS : 0,
        .comes_back = mode == ROUND_PAUSE,
    };
    enum beginning beginning = BEGUN_VOID;
    memset(out, 0, sizeof *out);
    while (beginning == BEGUN_VOID) {
        order.round = ++rounds;
        beginning = begin(&trace, operation, &order);
    }
    out->refused = beginning == BEGUN_REFUSED;
    if (out->refused) {
        return;
    }
    woken = false;
    partners_give(operation, operation->given);
    const enum trace_stop stop = step_to(&trace, operation, at, out);
    CHECK(stop != TRACE_EXITED);
    out->reached = stop != TRACE_END;
    if (mode == ROUND_PAUSE) {
        pause_there(&trace, operation, stop == TRACE_GOES_ON, baseline, out);
    } else if (mode == ROUND_RESTART) {
        restart_there(&trace, &order, baseline, out);
    } else {
        if (mode == ROUND_STALL) {
            stall_there(&trace, operation, stop);
        }
        kill_there(cluster, &trace, operation, baseline, out);
    }
    out->arrived = partners[operation->first_partner].got;
}
