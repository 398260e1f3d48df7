/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/link.c - the link's state machine. One function an input; what is reported follows
 * from whether the link was and is usable and suspect, in one place, so that no path can
 * report twice or forget to. Only a tick puts asked_ns off: any other input after a sleep
 * would wipe out the evidence of it.
 */
#include "bus/link.h"

#define NS_PER_MS       UINT64_C(1000000)
#define SUSPICION       2U /* intervals that a tick may be late before its judge suspects itself */
#define PUNCTUAL        4U /* a verdict wants a tick that is late by an interval / 4 at most */
#define ACK_WAIT_MS_MIN 2000U

static uint64_t ns_of(uint32_t ms)
{
    return (uint64_t)ms * NS_PER_MS;
}

static uint64_t elapsed(uint64_t now_ns, uint64_t since_ns)
{
    return now_ns > since_ns ? now_ns - since_ns : 0;
}

uint32_t rbi_link_dead_after_ms(uint32_t ping_interval_ms, uint32_t ping_misses)
{
    const uint64_t interval = ping_interval_ms;
    const uint64_t wanted = rbi_max_u64(interval * ping_misses + interval / 2, 2 * interval);
    return (uint32_t)rbi_min_u64(wanted, UINT32_MAX);
}

int rbi_link_terms_check(const struct rbi_link_terms *terms)
{
    const bool good = terms->ping_interval_ms >= RBI_PING_INTERVAL_MS_MIN &&
                      terms->ping_interval_ms <= RBI_PING_INTERVAL_MS_MAX &&
                      terms->ping_misses >= 1 && terms->ping_misses <= RBI_PING_MISSES_MAX &&
                      terms->dead_after_ms >= 2 * terms->ping_interval_ms;
    return good ? 0 : 1;
}

void rbi_link_init(struct rbi_link_fsm *link, uint64_t now_ns)
{
    *link = (struct rbi_link_fsm){
        .last_heard_ns = now_ns,
        .asked_ns = now_ns + ns_of(ACK_WAIT_MS_MIN), /* then each such time, while nobody uses it */
        .ack_deadline_ns = now_ns + ns_of(RBI_LINK_UNUSED_MS),
    };
}

static bool same_terms(const struct rbi_link_terms *a, const struct rbi_link_terms *b)
{
    return a->ping_interval_ms == b->ping_interval_ms && a->ping_misses == b->ping_misses &&
           a->dead_after_ms == b->dead_after_ms;
}

/** Closes for good; what is to be reported is decided behind the step. */
static void close_link(struct rbi_link_fsm *link, enum rbi_reason reason)
{
    link->closed = true;
    link->reason = reason;
    link->mine = RBI_USE_IDLE;
    link->theirs = RBI_USE_IDLE;
    link->asking = false;
    link->suspect = false;
}

static void say_goodbye(struct rbi_link_actions *out, enum rbi_reason reason)
{
    out->todo |= RBI_LINK_DO_SEND_DISCONNECT;
    out->reason = reason;
}

/** The peer gave a sign of life at @p given_ns: it is alive, whatever was asked of it. */
static void heard(struct rbi_link_fsm *link, uint64_t given_ns)
{
    link->last_heard_ns = rbi_max_u64(link->last_heard_ns, given_ns);
    if (link->asking && given_ns < link->pinged_ns) {
        return; /* older than the question */
    }
    link->asking = false;
    link->misses = 0;
    link->suspect = link->suspect && link->cut; /* that ends with the way's being there */
    link->excused = false;
    link->excuse_ns = 0;
    if (link->mine == RBI_USE_WAIT_ACK && link->theirs == RBI_USE_UP) {
        /* It uses the link: its answer to our READY waits for room, behind what it has to read. */
        link->ack_deadline_ns =
            given_ns + rbi_max_u64(ns_of(link->my_terms.dead_after_ms), ns_of(ACK_WAIT_MS_MIN));
    }
}

/** When the next PING is due; what it finds unanswered is a miss. */
static uint64_t ping_due_ns(const struct rbi_link_fsm *link)
{
    const uint64_t interval_ns = ns_of(link->my_terms.ping_interval_ms);
    const uint64_t due_ns = link->pinged_ns + interval_ns;
    if (link->asking) {
        return due_ns;
    }
    const uint64_t life_ns = rbi_max_u64(link->last_heard_ns, link->pinged_ns);
    return rbi_min_u64(due_ns, life_ns + interval_ns / 2);
}

static void send_ping(struct rbi_link_fsm *link, uint64_t now_ns, struct rbi_link_actions *out)
{
    link->ping_id++;
    link->pinged_ns = now_ns;
    link->asking = true;
    out->todo |= RBI_LINK_DO_SEND_PING;
    out->id = link->ping_id;
}

/** PINGs begin, or begin anew: half an interval from now, less the spread of many links. */
static void start_pings(struct rbi_link_fsm *link, uint64_t now_ns)
{
    const uint64_t half_ns = ns_of(link->my_terms.ping_interval_ms) / 2;
    const uint64_t early_ns = half_ns / RBI_LINK_SPREAD * link->spread;
    link->pinged_ns = now_ns > half_ns + early_ns ? now_ns - half_ns - early_ns : 0;
    link->asking = false;
    link->misses = 0;
    link->excused = false;
    link->excuse_ns = 0;
}

/** Longest time until READY is answered, or until anybody wants the link. */
static uint64_t ack_wait_ns(const struct rbi_link_fsm *link)
{
    return link->mine == RBI_USE_WAIT_ACK
               ? rbi_max_u64(ns_of(link->my_terms.dead_after_ms), ns_of(ACK_WAIT_MS_MIN))
               : ns_of(RBI_LINK_UNUSED_MS);
}

static void on_open(struct rbi_link_fsm *link,
                    const struct rbi_link_terms *terms,
                    uint32_t spread,
                    uint64_t now_ns,
                    struct rbi_link_actions *out)
{
    if (link->mine != RBI_USE_IDLE && same_terms(&link->my_terms, terms)) {
        return;
    }
    link->my_terms = *terms;
    link->spread = rbi_min_u64(spread, RBI_LINK_SPREAD) & UINT32_MAX;
    out->todo |= RBI_LINK_DO_SEND_READY;
    if (link->mine == RBI_USE_IDLE) {
        link->mine = RBI_USE_WAIT_ACK;
        link->ack_deadline_ns =
            now_ns + rbi_max_u64(ns_of(terms->dead_after_ms), ns_of(ACK_WAIT_MS_MIN));
    } else if (link->mine == RBI_USE_UP) {
        /* A count of its own: the old one may be older than a sleep of this process. */
        start_pings(link, now_ns);
    }
}

/** Ends my use alone: the link stays for the peer. */
static void end_mine(struct rbi_link_fsm *link)
{
    link->mine = RBI_USE_IDLE;
    link->asking = false;
    link->misses = 0;
}

static void on_ready(struct rbi_link_fsm *link,
                     const struct rbi_link_input *input,
                     uint64_t now_ns,
                     struct rbi_link_actions *out)
{
    out->todo |= RBI_LINK_DO_SEND_ACK;
    out->reason = input->reason;
    link->held = input->hold;
    if (input->reason == RBI_REASON_NONE) {
        link->theirs = RBI_USE_UP;
        link->their_terms = input->terms;
        link->their_ping_ns = now_ns;
        return;
    }
    /* Refused, or refused after a change: the peer ends its use on reading so. */
    const bool was_up = link->theirs == RBI_USE_UP;
    link->theirs = RBI_USE_IDLE;
    link->their_terms = (struct rbi_link_terms){0};
    if (link->mine == RBI_USE_IDLE || (was_up && link->mine == RBI_USE_WAIT_ACK)) {
        close_link(link, input->reason);
        if (was_up) {
            say_goodbye(out, input->reason); /* it may count on a use of mine that it knows of */
        }
    }
}

static void on_ready_ack(struct rbi_link_fsm *link,
                         const struct rbi_link_input *input,
                         uint64_t now_ns,
                         struct rbi_link_actions *out)
{
    if (link->mine == RBI_USE_IDLE) {
        return; /* we have given up that use since */
    }
    link->held = input->hold;
    if (input->reason != RBI_REASON_NONE && link->theirs == RBI_USE_UP) {
        end_mine(link);
    } else if (input->reason != RBI_REASON_NONE) {
        close_link(link, input->reason);
        /* A READY of its own may be under way; it must not wait for an answer. */
        say_goodbye(out, RBI_REASON_LEFT);
    } else if (link->mine == RBI_USE_WAIT_ACK) {
        link->mine = RBI_USE_UP;
        start_pings(link, now_ns);
    }
}

static void on_ping(struct rbi_link_fsm *link,
                    const struct rbi_link_input *input,
                    uint64_t now_ns,
                    struct rbi_link_actions *out)
{
    if (link->their_terms.dead_after_ms == 0) {
        return; /* it has never opened its use */
    }
    link->theirs = RBI_USE_UP; /* also after a lapse */
    link->their_ping_ns = now_ns;
    out->todo |= RBI_LINK_DO_SEND_PONG;
    out->id = input->id;
}

static void
on_close(struct rbi_link_fsm *link, enum rbi_reason reason, struct rbi_link_actions *out)
{
    if (reason == RBI_REASON_UNTARGETED && link->theirs == RBI_USE_UP) {
        end_mine(link);
        return;
    }
    const enum rbi_reason told = reason == RBI_REASON_NONE ? RBI_REASON_LEFT : reason;
    close_link(link, told);
    say_goodbye(out, told);
}

/** The way is cut, or there again: then nothing that was not heard meanwhile counts. */
static void on_cut(struct rbi_link_fsm *link, bool cut, uint64_t now_ns)
{
    if (cut == link->cut) {
        return;
    }
    link->cut = cut;
    link->suspect = cut && rbi_link_usable(link);
    if (cut) {
        link->asking = false;
        link->misses = 0;
        return;
    }
    start_pings(link, now_ns);
    link->asked_ns = UINT64_MAX; /* what was due before is not late now */
    link->last_heard_ns = now_ns;
    link->their_ping_ns = now_ns;
    link->ack_deadline_ns = now_ns + ack_wait_ns(link);
}

/* ---- time -------------------------------------------------------------------------------- */

/** The peer asked for it, and has a use that it holds. */
static bool is_held(const struct rbi_link_fsm *link)
{
    return link->held && (link->mine == RBI_USE_UP || link->theirs == RBI_USE_UP);
}

/** How late this tick is. */
static uint64_t late_ns(const struct rbi_link_fsm *link, uint64_t now_ns)
{
    return elapsed(now_ns, link->asked_ns);
}

/** A tick so much later than it was due that the judge itself must have been asleep. */
static bool overslept(const struct rbi_link_fsm *link, uint64_t now_ns, uint32_t interval_ms)
{
    return late_ns(link, now_ns) > SUSPICION * ns_of(interval_ms);
}

/**
 * The peer is silent: tell it, in case that it only slept, and close. Not so after a tick that
 * came late, once in each silence, and not for a peer that is held.
 */
static void give_up(struct rbi_link_fsm *link,
                    uint64_t now_ns,
                    uint32_t interval_ms,
                    struct rbi_link_actions *out)
{
    if (!link->excused && late_ns(link, now_ns) > ns_of(interval_ms) / PUNCTUAL) {
        link->excused = true;
        link->excuse_ns = now_ns + ns_of(interval_ms);
    }
    if (now_ns >= link->excuse_ns && !is_held(link)) {
        close_link(link, RBI_REASON_SILENT);
        say_goodbye(out, RBI_REASON_GIVEN_UP);
    }
}

/** Of waiting for an answer to READY, or for a READY. */
static uint32_t wait_interval_ms(const struct rbi_link_fsm *link)
{
    return link->mine == RBI_USE_WAIT_ACK ? link->my_terms.ping_interval_ms : ACK_WAIT_MS_MIN;
}

static void tick_waiting(struct rbi_link_fsm *link, uint64_t now_ns, struct rbi_link_actions *out)
{
    const uint32_t interval_ms = wait_interval_ms(link);
    if (overslept(link, now_ns, interval_ms)) {
        link->ack_deadline_ns = now_ns + ack_wait_ns(link);
    } else if (now_ns >= link->ack_deadline_ns) {
        give_up(link, now_ns, interval_ms, out);
    }
}

static void tick_mine(struct rbi_link_fsm *link, uint64_t now_ns, struct rbi_link_actions *out)
{
    const uint32_t interval_ms = link->my_terms.ping_interval_ms;
    if (now_ns < ping_due_ns(link)) {
        return;
    }
    if (overslept(link, now_ns, interval_ms)) {
        link->misses = 0;
    } else if (link->asking) {
        link->suspect = true;
        if (link->misses < link->my_terms.ping_misses) {
            link->misses++;
            out->todo |= RBI_LINK_DO_COUNT_MISS;
        }
        if (link->misses >= link->my_terms.ping_misses) {
            give_up(link, now_ns, interval_ms, out);
            if (link->closed) {
                return;
            }
        }
    }
    if (link->held && link->misses >= link->my_terms.ping_misses) {
        link->pinged_ns = now_ns; /* asked often enough: the next miss is due all the same */
    } else {
        send_ping(link, now_ns, out);
    }
}

/** Since when there is nothing of a peer that I judge by its records. */
static uint64_t their_last_ns(const struct rbi_link_fsm *link)
{
    return link->mine == RBI_USE_UP ? link->their_ping_ns
                                    : rbi_max_u64(link->their_ping_ns, link->last_heard_ns);
}

/** When their use ends if nothing comes. */
static uint64_t their_end_ns(const struct rbi_link_fsm *link)
{
    return their_last_ns(link) + ns_of(link->their_terms.dead_after_ms);
}

/** When their silence becomes suspect. */
static uint64_t their_doubt_ns(const struct rbi_link_fsm *link)
{
    return their_last_ns(link) + ns_of(link->their_terms.dead_after_ms) / 2;
}

static void tick_theirs(struct rbi_link_fsm *link, uint64_t now_ns, struct rbi_link_actions *out)
{
    const uint32_t interval_ms = link->their_terms.ping_interval_ms;
    if (overslept(link, now_ns, interval_ms)) {
        link->their_ping_ns = now_ns;
        return;
    }
    if (late_ns(link, now_ns) > ns_of(interval_ms) / PUNCTUAL) {
        /* Time in which I did not look is not their silence: the machine may have slept. */
        const uint64_t last_ns = their_last_ns(link) + late_ns(link, now_ns);
        link->their_ping_ns = rbi_min_u64(last_ns, now_ns);
    }
    if (link->mine != RBI_USE_UP && now_ns >= their_doubt_ns(link)) {
        link->suspect = true;
    }
    if (now_ns < their_end_ns(link)) {
        return;
    }
    if (link->mine == RBI_USE_UP) {
        link->theirs = RBI_USE_IDLE; /* a lapse: my own PINGs say whether it lives */
    } else {
        give_up(link, now_ns, interval_ms, out);
    }
}

static bool waiting(const struct rbi_link_fsm *link)
{
    return link->mine == RBI_USE_WAIT_ACK ||
           (link->mine == RBI_USE_IDLE && link->theirs == RBI_USE_IDLE);
}

/** @p due_ns, or the end of the peer's excuse behind it; never for one that is held. */
static uint64_t verdict_ns(const struct rbi_link_fsm *link, uint64_t due_ns)
{
    return is_held(link) ? UINT64_MAX : rbi_max_u64(due_ns, link->excuse_ns);
}

/** When something is to be judged or sent, seen from a tick at @p tick_ns. */
static uint64_t next_tick_ns(const struct rbi_link_fsm *link, uint64_t tick_ns)
{
    uint64_t due = UINT64_MAX;
    if (link->cut) {
        return due; /* the bridge says when it is over */
    }
    /* While something is judged, a tick is asked for every interval: only so can a
     * judge tell that it was asleep. */
    if (waiting(link)) {
        due = rbi_min_u64(verdict_ns(link, link->ack_deadline_ns),
                          tick_ns + ns_of(wait_interval_ms(link)));
    } else if (link->mine == RBI_USE_UP) {
        due = ping_due_ns(link);
    }
    if (link->theirs == RBI_USE_UP) {
        const uint64_t end_ns = their_end_ns(link);
        due = rbi_min_u64(due, link->mine == RBI_USE_UP ? end_ns : verdict_ns(link, end_ns));
        due = rbi_min_u64(due, tick_ns + ns_of(link->their_terms.ping_interval_ms));
        if (link->mine != RBI_USE_UP && !link->suspect) {
            due = rbi_min_u64(due, their_doubt_ns(link));
        }
    }
    return due;
}

static void on_tick(struct rbi_link_fsm *link, uint64_t now_ns, struct rbi_link_actions *out)
{
    if (link->cut) {
        /* Nothing to judge. */
    } else if (waiting(link)) {
        tick_waiting(link, now_ns, out);
    } else if (link->mine == RBI_USE_UP) {
        tick_mine(link, now_ns, out);
    }
    if (!link->cut && link->theirs == RBI_USE_UP) {
        tick_theirs(link, now_ns, out);
    }
    link->asked_ns = next_tick_ns(link, now_ns);
}

uint64_t rbi_link_deadline_ns(const struct rbi_link_fsm *link)
{
    return link->closed ? UINT64_MAX : link->asked_ns;
}

/* ---- one step ---------------------------------------------------------------------------- */

static enum rbi_reason reason_of_peer(enum rbi_reason reason)
{
    return (unsigned)reason > RBI_REASON_LAST || reason == RBI_REASON_NONE ? RBI_REASON_LEFT
                                                                           : reason;
}

static void dispatch(struct rbi_link_fsm *link,
                     const struct rbi_link_input *input,
                     uint64_t now_ns,
                     struct rbi_link_actions *out)
{
    switch (input->type) {
    case RBI_LINK_OPEN:
        on_open(link, &input->terms, input->spread, now_ns, out);
        break;
    case RBI_LINK_READY:
        heard(link, now_ns);
        on_ready(link, input, now_ns, out);
        break;
    case RBI_LINK_READY_ACK:
        heard(link, now_ns);
        on_ready_ack(link, input, now_ns, out);
        break;
    case RBI_LINK_PING:
        heard(link, now_ns);
        on_ping(link, input, now_ns, out);
        break;
    case RBI_LINK_PONG:
        heard(link, now_ns);
        break;
    case RBI_LINK_DATA:
        heard(link, input->given_ns != 0 ? rbi_min_u64(input->given_ns, now_ns) : now_ns);
        break;
    case RBI_LINK_DISCONNECT:
        close_link(link, reason_of_peer(input->reason));
        break;
    case RBI_LINK_PEER_DEAD:
        close_link(link, input->reason == RBI_REASON_NONE ? RBI_REASON_CRASHED : input->reason);
        break;
    case RBI_LINK_CLOSE:
        on_close(link, input->reason, out);
        break;
    case RBI_LINK_CUT:
        on_cut(link, input->hold, now_ns);
        break;
    case RBI_LINK_TICK:
        on_tick(link, now_ns, out);
        break;
    }
}

void rbi_link_step(struct rbi_link_fsm *link,
                   const struct rbi_link_input *input,
                   uint64_t now_ns,
                   struct rbi_link_actions *out)
{
    *out = (struct rbi_link_actions){0};
    if (link->closed) {
        return;
    }
    const bool was_usable = rbi_link_usable(link);
    const bool was_suspect = link->suspect;
    dispatch(link, input, now_ns, out);
    if (input->type != RBI_LINK_TICK) {
        /* Sooner, if something else is judged now; never later, or a tick would look on time
         * that is not. */
        link->asked_ns = rbi_min_u64(link->asked_ns, next_tick_ns(link, now_ns));
    }
    if (link->closed) {
        out->todo |= was_usable ? RBI_LINK_DO_REPORT_DOWN : RBI_LINK_DO_REPORT_FAILED;
        out->todo |= RBI_LINK_DO_CLOSE;
    } else if (!was_usable && rbi_link_usable(link)) {
        out->todo |= RBI_LINK_DO_REPORT_UP;
    } else if (was_suspect != link->suspect) {
        out->todo |= link->suspect ? RBI_LINK_DO_REPORT_SUSPECT : RBI_LINK_DO_REPORT_ALIVE;
    }
}
