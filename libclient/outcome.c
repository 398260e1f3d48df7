/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/outcome.c - how our calls ended: slots, counting what went wrong, ringbus_report(). */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>

/* An hour: no sum of such is ever full. */
#define REPORT_US_MAX UINT64_C(3600000000)

void rbi_outcomes_init(struct rbi_outcome_table *table)
{
    memset(table, 0, sizeof *table);
    table->segment.fd = -1;
    table->slots = &table->nobody;
    table->changes = &table->unseen;
    table->slot_count = 1;
}

void rbi_outcomes_deinit(struct rbi_outcome_table *table)
{
    rbi_segment_deinit(&table->segment);
    free(table->locals);
    rbi_outcomes_init(table);
}

/* ---- slots ------------------------------------------------------------------------------ */

static uint32_t more_slots(const struct rbi_outcome_table *table)
{
    if (table->slot_count == 1) {
        return RBI_OUTCOME_SLOTS_MIN;
    }
    return (uint32_t)rbi_min_u64(2 * (uint64_t)table->slot_count, RBI_OUTCOME_SLOTS_MAX);
}

/* What was counted goes on in the larger one, slot by slot: the daemon sees no difference. */
static void move_counts(const struct rbi_outcome_table *table, const struct rbi_segment *to)
{
    struct rbi_outcomes *head = to->base;
    struct rbi_outcome *slots = rbi_outcomes_slots(to->base);
    struct rbi_outcome_copy copy;
    for (uint32_t i = 1; i < table->slot_count; i++) {
        rbi_outcome_read(&table->slots[i], &copy);
        rbi_store_rlx(&slots[i].ok, copy.ok);
        rbi_store_rlx(&slots[i].failed, copy.failed);
        rbi_store_rlx(&slots[i].lost, copy.lost);
        rbi_store32_rlx(&slots[i].slow, copy.slow);
        rbi_store32_rlx(&slots[i].local, copy.local);
        rbi_store_rlx(&slots[i].latency_ns, copy.latency_ns);
        for (uint32_t k = 0; k < RBI_LATENCY_BUCKETS; k++) {
            rbi_store32_rlx(&slots[i].latency[k], rbi_load32_rlx(&table->slots[i].latency[k]));
        }
        rbi_outcome_name(&slots[i], copy.cluster, copy.who);
        rbi_store_rlx(&slots[i].in_a_row, copy.in_a_row);
    }
    rbi_store_rlx(&head->changes, rbi_load_rlx(table->changes));
}

static int grow(struct rbi_outcome_table *table)
{
    const uint32_t count = more_slots(table);
    struct rbi_segment segment = RBI_SEGMENT_NULL;
    if (count <= table->slot_count) {
        return -ENOBUFS;
    }
    struct rbi_outcome_local *locals = realloc(table->locals, count * sizeof *locals);
    if (locals == NULL) {
        return -ENOMEM;
    }
    table->locals = locals;
    const int r = rbi_segment_create(&segment, "ringbus-outcomes", RBI_SEGMENT_OUTCOMES,
                                     rbi_outcomes_bytes(count), 0);
    if (r < 0) {
        return r;
    }
    struct rbi_outcomes *head = segment.base;
    head->slot_count = count;
    move_counts(table, &segment);
    rbi_segment_deinit(&table->segment);
    table->segment = segment;
    table->slots = rbi_outcomes_slots(segment.base);
    table->changes = &head->changes;
    for (uint32_t i = count; i-- > table->slot_count;) {
        locals[i] = (struct rbi_outcome_local){.next_free = table->free_head};
        table->free_head = i;
    }
    table->slot_count = count;
    return 0;
}

void rbi_outcomes_tell(struct ringbus *bus, bool fresh)
{
    const struct rbi_segment *segment = &bus->outcomes.segment;
    if (segment->base != NULL) {
        const struct rbi_wire_outcomes body = {.bytes = segment->size, .fresh = fresh};
        (void)rbi_control_send(bus, RBI_WIRE_OUTCOMES, &body, &segment->fd, 1);
    }
}

int rbi_outcomes_attach(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_outcome_table *table = &bus->outcomes;
    if (end->outcome != 0 || end->loop) {
        return 0;
    }
    if (table->free_head == 0) {
        const int r = grow(table);
        if (r < 0) {
            return rbi_fail_errno(bus, r, "memory for counting how calls end");
        }
        rbi_outcomes_tell(bus, true);
    }
    const uint32_t slot = table->free_head;
    struct rbi_outcome_local *local = &table->locals[slot];
    table->free_head = local->next_free;
    *local = (struct rbi_outcome_local){.end = end};
    rbi_outcome_clear(&table->slots[slot]);
    rbi_outcome_name(&table->slots[slot], end->peer.cluster,
                     rbi_outcome_who(end->peer.instance, end->peer.incarnation));
    end->outcome = slot;
    return 0;
}

/* ---- what went wrong -------------------------------------------------------------------- */

static void suspect(struct ringbus *bus,
                    struct rbi_outcome_local *local,
                    const struct rbi_outcome *outcome,
                    uint64_t now_ns)
{
    struct rbi_outcome_table *table = &bus->outcomes;
    struct rbi_end *end = local->end;
    const uint64_t ok = rbi_load_rlx(&outcome->ok);
    const uint64_t bad = rbi_load_rlx(&outcome->failed) + rbi_load_rlx(&outcome->lost);
    rbi_suspicion_failed(&local->suspicion, ok, bad, rbi_load_rlx(&outcome->in_a_row), now_ns);
    if (end->judged && !end->avoided && rbi_suspicion_holds(&local->suspicion, now_ns)) {
        end->avoided = true;
        end->next_avoided = table->avoided;
        table->avoided = end;
        rbi_cluster_suspicion(bus, end);
        rbi_deadline_at_most(bus, local->suspicion.until_ns);
    }
}

static void avoid_no_more(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_end **link = &bus->outcomes.avoided;
    while (*link != end) {
        link = &(*link)->next_avoided;
    }
    *link = end->next_avoided;
    end->avoided = false;
    rbi_cluster_suspicion(bus, end);
}

uint64_t rbi_outcomes_tick(struct ringbus *bus, uint64_t now_ns)
{
    uint64_t due_ns = RBI_NEVER;
    for (struct rbi_end *end = bus->outcomes.avoided, *next = NULL; end != NULL; end = next) {
        const struct rbi_suspicion *suspicion = &bus->outcomes.locals[end->outcome].suspicion;
        next = end->next_avoided;
        if (rbi_suspicion_holds(suspicion, now_ns)) {
            due_ns = rbi_min_u64(due_ns, suspicion->until_ns);
        } else {
            avoid_no_more(bus, end);
        }
    }
    return due_ns;
}

void rbi_outcomes_follow(const struct rbi_cluster *cluster, struct rbi_end *end)
{
    end->slow_ns = rbi_cluster_slow_ns(cluster);
    end->judged = rbi_cluster_policy(cluster)->shield.preset != RBI_SHIELD_OFF;
}

void rbi_outcomes_follow_all(const struct rbi_cluster *cluster)
{
    for (unsigned i = 0; i < cluster->member_count; i++) {
        if (cluster->members[i].end != NULL) {
            rbi_outcomes_follow(cluster, cluster->members[i].end);
        }
    }
}

void rbi_outcomes_bad(struct ringbus *bus,
                      uint32_t slot,
                      enum rbi_outcome_kind kind,
                      uint64_t elapsed_ns,
                      uint64_t now_ns)
{
    struct rbi_outcome_table *table = &bus->outcomes;
    struct rbi_outcome *outcome = &table->slots[slot];
    if (slot == 0) {
        return;
    }
    rbi_outcome_add(kind == RBI_OUTCOME_LOST ? &outcome->lost : &outcome->failed, 1);
    rbi_outcome_add(&outcome->latency_ns, elapsed_ns);
    rbi_outcome_timed(outcome, rbi_histogram_bucket(elapsed_ns));
    rbi_outcome_add(&outcome->in_a_row, 1);
    rbi_outcome_add(table->changes, 1);
    suspect(bus, &table->locals[slot], outcome, now_ns);
}

void rbi_outcomes_local(struct ringbus *bus, uint32_t slot)
{
    struct rbi_outcome_table *table = &bus->outcomes;
    const uint64_t now_ns = rbi_now_ns();
    if (slot == 0 || now_ns - table->locals[slot].local_ns < RBI_OUTCOME_LOCAL_NS) {
        return;
    }
    table->locals[slot].local_ns = now_ns;
    rbi_outcome_add32(&table->slots[slot].local, 1);
    rbi_outcome_add(table->changes, 1);
}

void rbi_outcomes_detach(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_outcome_table *table = &bus->outcomes;
    const uint32_t slot = end->outcome;
    if (end->avoided) {
        avoid_no_more(bus, end);
    }
    end->outcome = 0;
    /* At the end of all it keeps its name: the daemon reads it once more when it hears of that. */
    if (slot != 0 && !bus->closing) {
        rbi_outcome_name(&table->slots[slot], 0, 0);
        table->locals[slot] = (struct rbi_outcome_local){.next_free = table->free_head};
        table->free_head = slot;
    }
}

/* ---- the public call -------------------------------------------------------------------- */

static int do_report(struct ringbus *bus,
                     struct rbi_end *end,
                     enum ringbus_report_outcome outcome,
                     uint64_t us)
{
    const int r = rbi_outcomes_attach(bus, end); /* nothing to do but where memory was short */
    if (r != 0) {
        return r;
    }
    const uint64_t ns = rbi_min_u64(us, REPORT_US_MAX) * 1000;
    if (outcome == RINGBUS_REPORT_OK) {
        rbi_outcomes_good(&bus->outcomes, end->outcome, ns, end->slow_ns);
    } else {
        rbi_outcomes_bad(bus, end->outcome,
                         outcome == RINGBUS_REPORT_TIMEOUT ? RBI_OUTCOME_LOST : RBI_OUTCOME_FAILED,
                         ns, bus->now_ns);
    }
    return 0;
}

int ringbus_report(struct ringbus *bus,
                   const struct ringbus_addr *instance,
                   enum ringbus_report_outcome outcome,
                   uint64_t cost_us)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (instance == NULL || instance->instance <= 0 || (unsigned)outcome > RINGBUS_REPORT_TIMEOUT) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT,
                     "a report names one instance, and its outcome is OK, ERROR or TIMEOUT");
    } else {
        struct rbi_end *end = rbi_end_find(bus, instance->cluster, instance->instance);
        if (end == NULL || !end->wanted || end->loop) {
            r = rbi_fail(bus, RINGBUS_E_NOT_TARGET, "no link that this endpoint has asked for");
        } else if (!end->usable ||
                   (instance->incarnation != 0 && instance->incarnation != end->peer.incarnation)) {
            r = rbi_fail(bus, RINGBUS_E_PEER_GONE, "%s is not linked in that life", end->path);
        } else {
            r = do_report(bus, end, outcome, cost_us);
        }
    }
    rbi_leave(bus);
    return r;
}
