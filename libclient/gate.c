/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/gate.c - see libclient/gate.h. */
#include "libclient/gate.h"

#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

/* Between two polls, an absence; and messages that say how long they have waited come no more. */
#define AWAY_NS   RBI_NS_PER_MS
#define FORGET_NS (1000 * RBI_NS_PER_MS)

static void begin_sojourn(struct rbi_gate *gate, const struct rbi_overload_policy *overload)
{
    rbi_sojourn_init(&gate->sojourn, overload->sojourn_target_us * UINT64_C(1000),
                     overload->sojourn_interval_ms * RBI_NS_PER_MS);
    gate->sheds = false;
}

void rbi_gate_init(struct rbi_gate *gate)
{
    struct rbi_policy defaults;
    rbi_policy_defaults(&defaults);
    begin_sojourn(gate, &defaults.overload);
    gate->due_ns = RBI_NEVER;
}

void rbi_gate_deinit(struct rbi_gate *gate)
{
    free(gate->policy);
    gate->policy = NULL;
}

/* ---- which links -------------------------------------------------------- */

static void follow_end(const struct ringbus *bus, struct rbi_end *end)
{
    end->gated = end->gate_limits != NULL || bus->gate.sheds;
    end->flowing = end->flowing && !end->gated; /* the next message finds out */
}

void rbi_gate_attach(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_gate_limits *old = end->gate_limits;
    struct rbi_limits limits = {.count = 0};
    if (bus->gate.policy != NULL && !end->loop) {
        rbi_limits_compile(&limits, bus->gate.policy, end->path, strlen(end->path),
                           RBI_LIMITS_OF_RECEIVER);
    }
    if (limits.count == 0) {
        end->gate_limits = NULL;
    } else {
        end->gate_limits = calloc(1, sizeof *end->gate_limits);
        if (end->gate_limits == NULL) {
            end->gate_limits = old;
            bus->gate.missed = true; /* tried again with the next tick */
            bus->directory_revision = 0;
            return;
        }
        end->gate_limits->limits = limits;
        if (old != NULL) {
            rbi_limit_words_carry(&end->gate_limits->words, &limits, &old->words, &old->limits,
                                  bus->now_ns);
        }
    }
    free(old);
    end->held = false; /* what waits there may be due by now: the next poll asks */
    follow_end(bus, end);
}

static void attach_all(struct ringbus *bus)
{
    bus->gate.missed = false;
    for (unsigned i = 0; i < bus->end_count; i++) {
        rbi_gate_attach(bus, bus->ends[i]);
    }
}

static void take_policy(struct ringbus *bus, struct rbi_policy *policy)
{
    struct rbi_gate *gate = &bus->gate;
    free(gate->policy);
    gate->policy = policy;
    if (policy != NULL) {
        begin_sojourn(gate, &policy->overload);
    } else {
        rbi_gate_init(gate);
    }
    rbi_store_rlx(&bus->page->state, bus->state);
    attach_all(bus);
}

void rbi_gate_look(struct ringbus *bus)
{
    struct rbi_gate *gate = &bus->gate;
    struct rbi_directory_cluster head;
    struct rbi_policy *policy = NULL;
    if (gate->missed) {
        attach_all(bus);
    }
    if (rbi_directory_epoch(&bus->directory, bus->self.cluster) == gate->epoch) {
        return;
    }
    const int r = rbi_directory_read(&bus->directory, bus->self.cluster, &head, NULL, 0);
    if (r != RBI_DIRECTORY_OK && r != RBI_DIRECTORY_ROOM) {
        return;
    }
    if (head.policy != (gate->policy != NULL ? gate->policy->fingerprint : 0)) {
        if (head.policy != 0 && rbi_policy_read(bus, head.policy, &policy) != RBI_DIRECTORY_OK) {
            bus->directory_revision = 0; /* replaced meanwhile */
            return;
        }
        gate->epoch = head.epoch;
        take_policy(bus, policy);
        return;
    }
    gate->epoch = head.epoch;
}

/* ---- a message of a gated link -------------------------------------------------------- */

void rbi_gate_hold(struct ringbus *bus, struct rbi_end *end, uint64_t until_ns)
{
    end->held = true;
    end->held_until_ns = until_ns;
    bus->gate.due_ns = rbi_min_u64(bus->gate.due_ns, until_ns);
    rbi_deadline_at_most(bus, bus->gate.due_ns);
}

static struct rbi_gate_verdict
limit(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record, uint32_t method)
{
    struct rbi_gate_limits *of = end->gate_limits;
    const struct rbi_limit_question question = {
        .method = method, .bytes = record->payload_size, .now_ns = rbi_now_ns()};
    struct rbi_limit_verdict verdict;
    const enum rbi_limit_result result =
        rbi_limits_check(&of->limits, &of->words, NULL, &question, &verdict);
    end->held = false;
    if (RBI_UNLIKELY(verdict.dry_refused)) {
        rbi_count(bus, RBI_COUNTER_limited_dry, 1);
        rbi_dry_add(bus, bus->self.cluster, RBI_DRY_LIMIT, of->limits.rules[verdict.dry_rule].id);
    }
    if (result == RBI_LIMIT_PASS) {
        rbi_limits_take(&of->limits, &of->words, NULL, &question);
        return (struct rbi_gate_verdict){.error = 0};
    }
    if (record->kind == RBI_RECORD_REQ && result == RBI_LIMIT_REFUSE) {
        return (struct rbi_gate_verdict){.error = RINGBUS_E_LIMITED,
                                         .retry_ms = rbi_ms_of(verdict.wait_ns) + 1};
    }
    rbi_gate_hold(bus, end, question.now_ns + verdict.wait_ns);
    return (struct rbi_gate_verdict){.hold = true};
}

struct rbi_gate_verdict
rbi_gate_ask(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_gate *gate = &bus->gate;
    struct rbi_attributes attributes = {.method = 0};
    if (record->kind == RBI_RECORD_REP || record->kind == RBI_RECORD_ERROR) {
        return (struct rbi_gate_verdict){.error = 0};
    }
    if ((record->flags & RBI_RECORD_ATTRIBUTES) != 0 &&
        rbi_attributes_decode(record, &attributes) != 0) {
        return (struct rbi_gate_verdict){.error = 0}; /* the link ends where it is taken */
    }
    if (gate->sheds && record->kind == RBI_RECORD_REQ) {
        const uint64_t now_ns = rbi_now_ns();
        const bool says = (attributes.present & RBI_ATTRIBUTE_SENT) != 0;
        const uint64_t waited_ns =
            says && attributes.sent_ns < now_ns ? now_ns - attributes.sent_ns : gate->waited_ns;
        if (rbi_sojourn_sheds(&gate->sojourn, attributes.priority, waited_ns, now_ns)) {
            if (says) {
                rbi_gate_waited(bus, attributes.sent_ns);
            }
            return (struct rbi_gate_verdict){.error = RINGBUS_E_SHED};
        }
    }
    return end->gate_limits != NULL ? limit(bus, end, record, attributes.method)
                                    : (struct rbi_gate_verdict){.error = 0};
}

/* ---- how long they wait -------------------------------------------------------- */

/* All links or none: while something is refused, or may be again with the next interval. */
static void follow_sojourn(struct ringbus *bus)
{
    struct rbi_gate *gate = &bus->gate;
    const bool sheds = gate->sojourn.pressure > 0;
    /* For tools; whoever chooses between instances sees by the load words how much waits. */
    rbi_store_rlx(&bus->page->state,
                  rbi_sojourn_busy(&gate->sojourn) && bus->state == RBI_ENDPOINT_READY
                      ? (uint64_t)RBI_ENDPOINT_BUSY
                      : bus->state);
    if (sheds != gate->sheds) {
        gate->sheds = sheds;
        for (unsigned i = 0; i < bus->end_count; i++) {
            follow_end(bus, bus->ends[i]);
        }
    }
}

void rbi_gate_waited(struct ringbus *bus, uint64_t sent_ns)
{
    struct rbi_gate *gate = &bus->gate;
    if (gate->sojourn.target_ns == 0) {
        return;
    }
    const uint64_t now_ns = rbi_now_ns();
    if (bus->measured == 0) {
        rbi_sojourn_forget(&gate->sojourn);
    }
    bus->measured = RBI_MEASURED | RBI_MEASURED_SAID;
    gate->said_ns = now_ns;
    gate->waited_ns = sent_ns < now_ns ? now_ns - sent_ns : 0; /* what a peer says of its clock */
    (void)rbi_sojourn_took(&gate->sojourn, gate->waited_ns, now_ns);
    follow_sojourn(bus);
}

void rbi_gate_enter(struct ringbus *bus)
{
    struct rbi_gate *gate = &bus->gate;
    const uint64_t now_ns = rbi_now_ns();
    if (gate->left_ns != 0 && now_ns - gate->left_ns > AWAY_NS) {
        rbi_sojourn_away(&gate->sojourn, gate->left_ns, now_ns);
    } else if (now_ns - gate->said_ns > FORGET_NS) {
        bus->measured = 0; /* polls need no time any more */
    }
    gate->left_ns = now_ns; /* unless it finds something to do */
}

static bool anything_waits(const struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->active_count; i++) {
        if (rbi_wait_end_due(bus->ends[i])) {
            return true;
        }
    }
    return false;
}

void rbi_gate_leave(struct ringbus *bus, bool whole)
{
    struct rbi_gate *gate = &bus->gate;
    const uint64_t now_ns = rbi_now_ns();
    gate->left_ns = now_ns;
    if (!whole || (bus->measured & RBI_MEASURED_SAID) == 0) {
        return;
    }
    /*
     * All lanes had their turn, which is not yet that nothing waits: of a long one only a batch was
     * taken, and into others something came meanwhile. Where some wait was short it is all one.
     */
    if (gate->sojourn.least_ns > gate->sojourn.target_ns && anything_waits(bus)) {
        return;
    }
    bus->measured = RBI_MEASURED;
    (void)rbi_sojourn_idle(&gate->sojourn, now_ns);
    follow_sojourn(bus);
}

uint64_t rbi_gate_tick(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_gate *gate = &bus->gate;
    if (gate->sheds && now_ns >= gate->sojourn.end_ns) {
        gate->waited_ns = 0; /* nothing has come that said so: nothing waits */
        (void)rbi_sojourn_idle(&gate->sojourn, now_ns);
        follow_sojourn(bus);
    }
    if (gate->due_ns <= now_ns) {
        gate->due_ns = RBI_NEVER;
        for (unsigned i = 0; i < bus->end_count; i++) {
            struct rbi_end *end = bus->ends[i];
            if (end->held && end->held_until_ns <= now_ns) {
                end->held = false;
                rbi_turn_promote(bus, end);
            } else if (end->held) {
                gate->due_ns = rbi_min_u64(gate->due_ns, end->held_until_ns);
            }
        }
    }
    return gate->sheds ? rbi_min_u64(gate->due_ns, gate->sojourn.end_ns) : gate->due_ns;
}
