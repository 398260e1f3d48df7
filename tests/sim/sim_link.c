/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends of a link, each the real state machine, over two queues and a clock of our
 * own. A seed decides who opens, changes terms, untargets, sends, is stopped and for
 * how long, who dies, and when the way between them is cut. Scenarios 39, 41, 43, 47.
 *
 * What must hold at every step:
 *   - an end calls the other silent only if the other did not run, or did not care, and
 *     never right after it slept itself
 *   - what one end closes, the other knows as soon as it runs
 *   - an end that no longer cares does not take the link from one that does
 *   - a peer that stays stopped is called silent within its bound, unless it is held
 *   - suspect and alive take turns, on a link that is up, and suspect comes before silent
 *   - up is reported at most once, down or failed exactly once, nothing is sent after it
 *   - while the way between their hosts is cut, where they have one, nobody is called silent
 *   - in the end both are open or both closed
 */
#include "bus/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS        UINT64_C(1000000)
#define QUEUE     4096U
#define RUN_MS    60000U
#define SETTLE_MS 30000U /* nothing but time: both ends run */
#define SLACK_MS  20U

struct message {
    struct rbi_link_input input;
    uint64_t due_ms;
};

struct end {
    const char *name;
    struct rbi_link_fsm fsm;
    struct rbi_link_terms terms;
    struct message queue[QUEUE]; /* what the other has sent */
    unsigned head;
    unsigned tail;
    bool dead;
    bool holds;            /* it says that it may be stopped in a debugger */
    bool cut;              /* what it was told of the way */
    bool suspects;         /* what it has reported last */
    bool hung;             /* stopped for good: only silence tells */
    uint64_t stopped_till; /* ms */
    uint64_t runs_since;   /* ms; it has run at every step since */
    uint64_t wants_since;  /* ms; its use has been UP at every step since */
    uint64_t idle_since;   /* ms; when its own use ended */
    uint64_t stop_began;   /* hung: ms */
    uint64_t last_stop_ms; /* length of its last stop */
    uint64_t closed_at;    /* ms */
    unsigned ups;
    unsigned ends;
};

struct sim {
    struct end a;
    struct end b;
    uint64_t seed;
    uint64_t rng;
    uint64_t now_ms;
    bool quiet; /* settling */
    bool relayed;
    uint64_t cut_till; /* ms */
    bool verbose;
};

static uint32_t below(struct sim *sim, uint32_t n)
{
    sim->rng = sim->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(sim->rng >> 33) % n;
}

static void check(const struct sim *sim, const struct end *end, bool right, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "seed %llu, %llu ms, end %s: %s\n", (unsigned long long)sim->seed,
                      (unsigned long long)sim->now_ms, end->name, what);
        exit(1);
    }
}

static bool running(const struct sim *sim, const struct end *end)
{
    return !end->dead && !end->hung && sim->now_ms >= end->stopped_till;
}

static bool is_cut(const struct sim *sim)
{
    return sim->now_ms < sim->cut_till;
}

static struct rbi_link_terms some_terms(struct sim *sim)
{
    static const uint32_t intervals[] = {10, 35, 100, 250, 1000};
    struct rbi_link_terms terms;
    terms.ping_interval_ms = intervals[below(sim, RBI_ARRAY_SIZE(intervals))];
    terms.ping_misses = 1 + below(sim, 4);
    terms.dead_after_ms = rbi_link_dead_after_ms(terms.ping_interval_ms, terms.ping_misses);
    return terms;
}

static void send(struct sim *sim, struct end *to, struct rbi_link_input input)
{
    struct message *last = to->tail == to->head ? NULL : &to->queue[(to->tail - 1) % QUEUE];
    uint64_t due_ms = sim->now_ms + below(sim, 3);
    if (last != NULL && last->due_ms > due_ms) {
        due_ms = last->due_ms; /* a lane keeps its order */
    }
    check(sim, to, to->tail - to->head < QUEUE, "more records than anybody sends");
    to->queue[to->tail++ % QUEUE] = (struct message){.input = input, .due_ms = due_ms};
}

/** Whether an end has run at every step of the last @p ms. */
static bool ran_for(const struct sim *sim, const struct end *end, uint64_t ms)
{
    return running(sim, end) && end->runs_since != UINT64_MAX && end->runs_since + ms < sim->now_ms;
}

/** An end has just judged the other silent: was that so? */
static void check_silence(struct sim *sim,
                          const struct end *end,
                          const struct end *other,
                          const struct rbi_link_fsm *before)
{
    const bool other_open = !other->fsm.closed;
    /* Any of its judgements may have been the one: a sleep that is long for all of them. */
    uint64_t longest_ms = 2000;
    uint64_t shortest_ms = 2000;
    if (before->mine != RBI_USE_IDLE) {
        longest_ms = shortest_ms = before->my_terms.ping_interval_ms;
    }
    if (before->mine != RBI_USE_UP && before->theirs == RBI_USE_UP) {
        longest_ms = rbi_max_u64(longest_ms, before->their_terms.ping_interval_ms);
        shortest_ms = rbi_min_u64(shortest_ms, before->their_terms.ping_interval_ms);
    }
    check(sim, end, !before->cut, "gave up a peer that it cannot hear");
    check(sim, end, !before->held || (before->mine != RBI_USE_UP && before->theirs != RBI_USE_UP),
          "gave up a peer that is held");
    check(sim, end,
          before->suspect || before->mine != RBI_USE_IDLE || before->theirs != RBI_USE_UP ||
              sim->now_ms < end->idle_since + before->their_terms.dead_after_ms,
          "silent before it was suspect");
    check(sim, end,
          end->last_stop_ms < 4 * longest_ms + SLACK_MS || ran_for(sim, end, shortest_ms - 2),
          "judges right after its own sleep");
    if (before->mine == RBI_USE_UP) {
        const uint64_t fair = 2 * (uint64_t)before->my_terms.ping_interval_ms + SLACK_MS;
        check(sim, end, !(other_open && ran_for(sim, other, fair)),
              "gave up a peer that ran and would have answered");
    } else if (before->mine == RBI_USE_WAIT_ACK) {
        check(sim, end, !(other_open && ran_for(sim, other, 1000) && ran_for(sim, end, 1000)),
              "gave up a peer that would have acknowledged");
    } else if (before->theirs == RBI_USE_UP) {
        const uint64_t fair = 2 * (uint64_t)before->their_terms.ping_interval_ms + SLACK_MS;
        check(sim, end,
              !(other_open && ran_for(sim, other, fair) && other->wants_since != 0 &&
                other->wants_since + fair < sim->now_ms),
              "gave up a requester that PINGs");
    }
}

static void check_step(struct sim *sim,
                       struct end *end,
                       const struct rbi_link_fsm *before,
                       const struct rbi_link_actions *act)
{
    const unsigned final = RBI_LINK_DO_REPORT_DOWN | RBI_LINK_DO_REPORT_FAILED;
    if (before->closed) {
        check(sim, end, act->todo == 0, "acts after its end");
        return;
    }
    if (act->todo & RBI_LINK_DO_REPORT_UP) {
        check(sim, end, ++end->ups == 1, "up twice");
    }
    if (act->todo & final) {
        check(sim, end, ++end->ends == 1, "ended twice");
        check(sim, end, (act->todo & final) != final, "down and failed");
        check(sim, end, ((act->todo & RBI_LINK_DO_REPORT_DOWN) != 0) == (end->ups == 1),
              "down without up, or failed after it");
    }
    if (act->todo & (RBI_LINK_DO_REPORT_SUSPECT | RBI_LINK_DO_REPORT_ALIVE)) {
        const bool suspect = (act->todo & RBI_LINK_DO_REPORT_SUSPECT) != 0;
        check(sim, end, suspect != end->suspects && suspect == end->fsm.suspect,
              "suspect or alive twice");
        check(sim, end, end->ups == 1 && end->ends == 0, "suspect, and not up");
        end->suspects = suspect;
    }
    check(sim, end, end->fsm.closed || end->fsm.suspect == end->suspects, "suspect in silence");
    check(sim, end, end->fsm.closed == (end->ends == 1), "closed without a word");
    check(sim, end, end->fsm.closed || rbi_link_usable(&end->fsm) == (end->ups == 1),
          "usable and not reported");
}

static void
step(struct sim *sim, struct end *end, struct end *other, const struct rbi_link_input *input)
{
    const struct rbi_link_fsm before = end->fsm;
    struct rbi_link_actions act;
    rbi_link_step(&end->fsm, input, sim->now_ms * MS, &act);
    if (sim->verbose && (act.todo != 0 || input->type != RBI_LINK_TICK)) {
        (void)printf("%6llu %s input %d reason %d -> mine %d theirs %d closed %d todo %x\n",
                     (unsigned long long)sim->now_ms, end->name, (int)input->type,
                     (int)input->reason, (int)end->fsm.mine, (int)end->fsm.theirs,
                     (int)end->fsm.closed, act.todo);
    }
    check_step(sim, end, &before, &act);
    if (!before.closed && end->fsm.closed) {
        end->closed_at = sim->now_ms;
        if (end->fsm.reason == RBI_REASON_SILENT) {
            check_silence(sim, end, other, &before);
        } else if (input->type == RBI_LINK_CLOSE && input->reason == RBI_REASON_UNTARGETED) {
            const uint64_t fair = 2 * (uint64_t)other->fsm.my_terms.ping_interval_ms + SLACK_MS;
            check(sim, end,
                  !(ran_for(sim, end, fair) && ran_for(sim, other, fair) &&
                    other->wants_since != 0 && other->wants_since + fair < sim->now_ms),
                  "took the link from a peer that uses it");
        }
    }
    if (before.mine != RBI_USE_IDLE && end->fsm.mine == RBI_USE_IDLE) {
        end->idle_since = sim->now_ms;
    }
    if (act.todo & RBI_LINK_DO_SEND_READY) {
        end->wants_since = 0; /* other terms: another count */
    }
    end->wants_since = end->fsm.mine != RBI_USE_UP ? 0
                       : end->wants_since == 0     ? sim->now_ms
                                                   : end->wants_since;
    static const struct {
        unsigned todo;
        enum rbi_link_input_type type;
    } sends[] = {
        {RBI_LINK_DO_SEND_READY, RBI_LINK_READY},
        {RBI_LINK_DO_SEND_ACK, RBI_LINK_READY_ACK},
        {RBI_LINK_DO_SEND_PING, RBI_LINK_PING},
        {RBI_LINK_DO_SEND_PONG, RBI_LINK_PONG},
        {RBI_LINK_DO_SEND_DISCONNECT, RBI_LINK_DISCONNECT},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(sends); i++) {
        if (act.todo & sends[i].todo) {
            send(sim, other,
                 (struct rbi_link_input){.type = sends[i].type,
                                         .reason = act.reason,
                                         .hold = end->holds,
                                         .id = act.id,
                                         .terms = end->fsm.my_terms});
        }
    }
}

static void feed(struct sim *sim, struct end *end, struct end *other, struct rbi_link_input input)
{
    step(sim, end, other, &input);
}

/** One millisecond of a process: what lies in the lane first, then the clock. */
static void run_end(struct sim *sim, struct end *end, struct end *other)
{
    if (!running(sim, end)) {
        end->last_stop_ms = end->runs_since == UINT64_MAX ? end->last_stop_ms + 1 : 1;
        end->runs_since = UINT64_MAX;
        return;
    }
    if (end->runs_since == UINT64_MAX) {
        end->runs_since = sim->now_ms;
    }
    if (end->cut != is_cut(sim)) {
        end->cut = is_cut(sim);
        feed(sim, end, other, (struct rbi_link_input){.type = RBI_LINK_CUT, .hold = end->cut});
    }
    if (end->cut) {
        end->runs_since = sim->now_ms; /* what is fair is counted from its end on */
    }
    while (!end->cut && end->head != end->tail &&
           end->queue[end->head % QUEUE].due_ms <= sim->now_ms) {
        struct rbi_link_input input = end->queue[end->head++ % QUEUE].input;
        if (input.type == RBI_LINK_READY) {
            input.reason = !sim->quiet && below(sim, 30) == 0 ? RBI_REASON_DENIED : RBI_REASON_NONE;
        }
        step(sim, end, other, &input);
    }
    if (sim->now_ms * MS >= rbi_link_deadline_ns(&end->fsm)) {
        feed(sim, end, other, (struct rbi_link_input){.type = RBI_LINK_TICK});
        check(sim, end, rbi_link_deadline_ns(&end->fsm) > sim->now_ms * MS, "deadline stands");
    }
    if (!end->fsm.closed && rbi_link_usable(&end->fsm) && !sim->quiet && below(sim, 50) == 0) {
        send(sim, other, (struct rbi_link_input){.type = RBI_LINK_DATA});
    }
}

static void stop(struct sim *sim, struct end *end)
{
    static const uint32_t longest[] = {5, 50, 500, 5000, 20000};
    end->stopped_till = sim->now_ms + 1 + below(sim, longest[below(sim, RBI_ARRAY_SIZE(longest))]);
}

/** What the world does to an end. */
static void meddle(struct sim *sim, struct end *end, struct end *other)
{
    switch (below(sim, 13)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (running(sim, end)) {
            end->terms = below(sim, 3) == 0 ? some_terms(sim) : end->terms;
            feed(sim, end, other,
                 (struct rbi_link_input){.type = RBI_LINK_OPEN,
                                         .terms = end->terms,
                                         .spread = below(sim, RBI_LINK_SPREAD)});
        }
        break;
    case 4:
    case 5:
        if (running(sim, end)) {
            feed(sim, end, other,
                 (struct rbi_link_input){.type = RBI_LINK_CLOSE, .reason = RBI_REASON_UNTARGETED});
        }
        break;
    case 6:
    case 7:
    case 8:
        stop(sim, end);
        break;
    case 9: /* the whole machine sleeps */
        stop(sim, end);
        other->stopped_till = end->stopped_till + below(sim, 5);
        break;
    case 10:
        if (below(sim, 4) == 0 && running(sim, end)) {
            feed(sim, end, other,
                 (struct rbi_link_input){.type = RBI_LINK_CLOSE, .reason = RBI_REASON_LEFT});
        }
        break;
    case 11:
        if (sim->relayed) {
            sim->cut_till = sim->now_ms + 1 + below(sim, below(sim, 2) == 0 ? 100 : 10000);
        }
        break;
    default:
        if (below(sim, 6) == 0 && !other->hung && !other->dead) {
            if (below(sim, 2) == 0) {
                end->dead = true;
                feed(sim, other, end, (struct rbi_link_input){.type = RBI_LINK_PEER_DEAD});
            } else {
                end->hung = true;
                end->stop_began = sim->now_ms;
            }
        }
        break;
    }
}

/** What one end has closed, the other knows soon after it could read it. */
static void check_told(struct sim *sim, const struct end *end, const struct end *other)
{
    check(sim, end,
          !end->fsm.closed || other->fsm.closed || end->closed_at + SLACK_MS >= sim->now_ms ||
              !ran_for(sim, other, SLACK_MS),
          "closed, and the other was not told");
}

/** A hung peer is found within the bound that I asked for, unless I was stopped myself. */
static void check_bound(struct sim *sim, const struct end *end, const struct end *other)
{
    if (!other->hung || end->fsm.closed || end->fsm.mine != RBI_USE_UP || !running(sim, end) ||
        end->fsm.held) {
        return;
    }
    /* Half an interval more than the misses, and one more where the judge had been stopped. */
    const uint64_t bound =
        (uint64_t)end->fsm.my_terms.ping_interval_ms * (2 * end->fsm.my_terms.ping_misses + 3) / 2 +
        SLACK_MS;
    uint64_t since = other->stop_began;
    since = rbi_max_u64(since, end->runs_since);
    since = rbi_max_u64(since, end->wants_since);
    check(sim, end, sim->now_ms <= since + bound, "has not noticed a hung peer");
}

/** After the last quiet time nobody is left with one that is gone, but with one that is held. */
static void check_over(const struct sim *sim, const struct end *end, const struct end *other)
{
    const bool gone = other->dead || (other->hung && !end->fsm.held);
    check(sim, end, !gone || end->fsm.closed, "open to a dead peer");
    check(sim, end, !other->hung || end->fsm.closed || end->fsm.suspect, "not even suspect");
}

static void run(struct sim *sim)
{
    rbi_link_init(&sim->a.fsm, 0);
    rbi_link_init(&sim->b.fsm, 0);
    sim->a.terms = some_terms(sim);
    sim->b.terms = some_terms(sim);
    sim->relayed = below(sim, 2) == 0;
    sim->a.holds = below(sim, 8) == 0;
    sim->b.holds = below(sim, 8) == 0;
    feed(sim, &sim->a, &sim->b,
         (struct rbi_link_input){.type = RBI_LINK_OPEN, .terms = sim->a.terms});
    const uint32_t calm = 50 + below(sim, 3000);
    for (sim->now_ms = 1; sim->now_ms < RUN_MS + SETTLE_MS; sim->now_ms++) {
        sim->quiet = sim->now_ms >= RUN_MS;
        sim->cut_till = sim->quiet ? 0 : sim->cut_till;
        if (!sim->quiet && below(sim, calm) == 0) {
            const bool first = below(sim, 2) == 0;
            meddle(sim, first ? &sim->a : &sim->b, first ? &sim->b : &sim->a);
        }
        run_end(sim, &sim->a, &sim->b);
        run_end(sim, &sim->b, &sim->a);
        check_bound(sim, &sim->a, &sim->b);
        check_bound(sim, &sim->b, &sim->a);
        check_told(sim, &sim->a, &sim->b);
        check_told(sim, &sim->b, &sim->a);
        if (sim->a.fsm.closed && sim->b.fsm.closed) {
            break;
        }
    }
    const bool both_live = running(sim, &sim->a) && running(sim, &sim->b);
    check(sim, &sim->a, !both_live || sim->a.fsm.closed == sim->b.fsm.closed,
          "one end open, the other closed");
    check_over(sim, &sim->a, &sim->b);
    check_over(sim, &sim->b, &sim->a);
}

int main(int argc, char **argv)
{
    static struct sim sim;
    uint64_t seed = 1;
    uint64_t runs = 100;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
            runs = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else {
            (void)fprintf(stderr, "usage: sim_link [--seed N] [--runs N] [--verbose]\n");
            return 2;
        }
    }
    uint64_t ups = 0;
    uint64_t silent = 0;
    uint64_t held = 0;
    for (uint64_t i = 0; i < runs; i++) {
        memset(&sim, 0, sizeof sim);
        sim.a.name = "a";
        sim.b.name = "b";
        sim.seed = seed + i;
        sim.rng = sim.seed * UINT64_C(0x9e3779b97f4a7c15);
        sim.verbose = verbose;
        run(&sim);
        ups += sim.a.ups + sim.b.ups;
        silent += sim.a.fsm.reason == RBI_REASON_SILENT;
        held += sim.b.hung && !sim.a.fsm.closed && sim.a.fsm.held;
    }
    (void)printf(
        "sim_link: %llu runs from seed %llu, %llu links up, %llu ended by silence, %llu held\n",
        (unsigned long long)runs, (unsigned long long)seed, (unsigned long long)ups,
        (unsigned long long)silent, (unsigned long long)held);
    return ups == 0 || silent == 0; /* nothing was tried */
}
