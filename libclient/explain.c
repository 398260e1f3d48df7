/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/explain.c - runs the chain for an explanation, and tells it row by row. */
#include "bus/route_class.h"
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the chain ---------------------------------------------------------------------------- */

static bool has_key(const struct rbi_explain *explain)
{
    return (explain->message.flags & RINGBUS_KEY) != 0;
}

static void classify(struct rbi_explain *explain)
{
    const struct ringbus_message_options *message = &explain->message;
    struct rbi_route_classes classes;
    if (explain->self) {
        struct rbi_own_subject self;
        rbi_own_subject_init(&self, explain->policy);
        rbi_route_classes_init(&classes, explain->policy, &self.subject);
        rbi_own_subject_deinit(&self);
    } else {
        rbi_route_classes_init(&classes, explain->policy, explain->subject);
    }
    explain->class.tag = message->tag != NULL ? message->tag : "";
    explain->class.rules =
        rbi_route_rules(&classes, message->method, has_key(explain), message->key, message->labels);
    if (explain->class.tag[0] == '\0') {
        const uint64_t trace = rbi_route_trace(message->trace_id);
        explain->class.canary = has_key(explain) ? rbi_route_canary(&classes, message->key)
                                : trace != 0     ? rbi_route_canary(&classes, trace)
                                                 : 0;
    }
    const uint32_t mode = explain->policy->balance.mode;
    explain->by_key = has_key(explain) && (mode == RBI_BALANCE_AUTO || mode == RBI_BALANCE_HASH ||
                                           mode == RBI_BALANCE_MAGLEV);
}

/* Of this endpoint's own messages the chain remembers something. */
static void remember(struct rbi_explain *explain)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(explain->bus, explain->heads[0].cluster);
    const struct rbi_route_message *class = &explain->class;
    const uint64_t barred = cluster != NULL && rbi_rights_barring(cluster)
                                ? rbi_rights_barred(cluster, explain->message.method)
                                : 0;
    for (unsigned i = 0; cluster != NULL && explain->self && i < cluster->choice_count; i++) {
        const struct rbi_choice *choice = cluster->choices[i];
        if (choice->class.rules == class->rules && choice->class.barred == barred &&
            choice->class.canary == class->canary && strcmp(choice->class.tag, class->tag) == 0) {
            explain->memory = choice->memory;
        }
    }
}

struct rbi_route_input rbi_explain_input(const struct rbi_explain *explain,
                                         struct rbi_route_caller *caller,
                                         unsigned first,
                                         unsigned count)
{
    *caller = (struct rbi_route_caller){
        .set = explain->set, .idc = explain->idc, .host = 0, .node = explain->node};
    return (struct rbi_route_input){.caller = caller,
                                    .message = &explain->class,
                                    .policy = explain->policy,
                                    .clusters = &explain->clusters[first],
                                    .cluster_count = count,
                                    .now_ns = rbi_now_ns()};
}

int rbi_explain_run(struct rbi_explain *explain, unsigned first, unsigned count)
{
    struct rbi_route_caller caller;
    const struct rbi_route_input input = rbi_explain_input(explain, &caller, first, count);
    classify(explain);
    remember(explain);
    free(explain->entries);
    explain->entries = calloc(rbi_route_room(&input) + 1U, sizeof *explain->entries);
    if (explain->entries == NULL) {
        return rbi_fail(explain->bus, RINGBUS_E_NO_MEMORY, "not enough memory to explain");
    }
    rbi_route_run(&input, &explain->memory, explain->entries, &explain->result);
    return 0;
}

/* ---- rows --------------------------------------------------------------------------------- */

struct teller {
    const struct rbi_explain *explain;
    ringbus_explain_fn tell;
    void *user;
};

/* Where an instance fell out, for this message: by key some stages take nobody. */
static unsigned stage_of(const struct rbi_explain *explain, const struct rbi_route_entry *entry)
{
    return explain->by_key && entry->hash_weight > 0 ? RBI_ROUTE_IN : entry->stage;
}

static void tell_targets(const struct teller *teller)
{
    const struct rbi_explain *explain = teller->explain;
    for (unsigned i = 0; i < explain->cluster_count; i++) {
        const struct ringbus_explain_row row = {
            .kind = RINGBUS_EXPLAIN_TARGET,
            .path = explain->heads[i].path,
            .before = explain->clusters[i].count,
            .epoch = explain->heads[i].epoch,
            .panic = explain->clusters[i].panic,
        };
        teller->tell(teller->user, &row);
    }
}

static void tell_instance(const struct teller *teller,
                          const struct rbi_route_entry *entry,
                          struct ringbus_explain_row *row)
{
    char path[RBI_PATH_MAX + RBI_PATH_ELEMENT_MAX + 2];
    const struct rbi_explain *explain = teller->explain;
    const struct rbi_directory_instance *instance =
        &explain->instances[entry->cluster][entry->index];
    (void)snprintf(path, sizeof path, "%s/%s", explain->heads[entry->cluster].path, instance->name);
    row->path = path;
    row->level = rbi_route_level((enum rbi_route_rank)entry->rank);
    teller->tell(teller->user, row);
    row->path = NULL;
}

static void tell_out(const struct teller *teller, unsigned stage)
{
    const struct rbi_explain *explain = teller->explain;
    for (unsigned i = 0; i < explain->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &explain->entries[i];
        struct ringbus_explain_row row = {.stage =
                                              rbi_route_stage_name((enum rbi_route_stage)stage)};
        if (stage_of(explain, entry) == stage) {
            row.kind = RINGBUS_EXPLAIN_OUT;
            row.reason = rbi_route_reason_text((enum rbi_route_reason)entry->reason);
            row.rule = rbi_hooks_rule_id(explain->bus, explain->policy, (enum rbi_route_stage)stage,
                                         entry->rule);
            tell_instance(teller, entry, &row);
        }
        if (entry->would_stage == stage) {
            row.kind = RINGBUS_EXPLAIN_WOULD;
            row.reason = rbi_route_reason_text((enum rbi_route_reason)entry->would_reason);
            row.rule = rbi_hooks_rule_id(explain->bus, explain->policy, (enum rbi_route_stage)stage,
                                         entry->would_rule);
            tell_instance(teller, entry, &row);
        }
    }
}

static void tell_stages(const struct teller *teller)
{
    static const char *const modes[] = {"off", "prefer", "strict"};
    const struct rbi_explain *explain = teller->explain;
    unsigned before = explain->result.entry_count;
    for (unsigned stage = RBI_ROUTE_STATE; stage < RBI_ROUTE_STAGES; stage++) {
        const struct rbi_route_step *step = &explain->result.steps[stage];
        unsigned out = 0;
        if (stage == RBI_ROUTE_FILTER && step->skipped) {
            continue; /* most programs have none, and no other program's are known here */
        }
        for (unsigned i = 0; i < explain->result.entry_count; i++) {
            out += stage_of(explain, &explain->entries[i]) == stage ? 1U : 0U;
        }
        const struct ringbus_explain_row row = {
            .kind = RINGBUS_EXPLAIN_STAGE,
            .stage = rbi_route_stage_name((enum rbi_route_stage)stage),
            .mode = modes[step->mode],
            .before = before,
            .after = before - out,
            .would_out = step->would_out,
            .skipped = step->skipped,
            .fell_back = step->fell_back,
            .panic = stage == RBI_ROUTE_HEALTH && explain->result.shields_ignored,
        };
        teller->tell(teller->user, &row);
        tell_out(teller, stage);
        before -= out;
    }
}

static void tell_in(const struct teller *teller)
{
    const struct rbi_explain *explain = teller->explain;
    for (unsigned i = 0; i < explain->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &explain->entries[i];
        if (stage_of(explain, entry) == RBI_ROUTE_IN) {
            struct ringbus_explain_row row = {
                .kind = RINGBUS_EXPLAIN_IN,
                .stage = rbi_route_stage_name(RBI_ROUTE_IN),
                .reason = entry->healthy ? "" : rbi_route_reason_text(RBI_ROUTE_SHIELDED),
                .weight = explain->by_key ? entry->hash_weight : entry->weight,
            };
            tell_instance(teller, entry, &row);
        }
    }
}

/* By key one of them has it; whether it can be sent to now is another matter. */
static void tell_owner(const struct teller *teller, const struct rbi_explain *explain)
{
    struct rbi_explain_owner owner;
    if (rbi_explain_owner(explain, &owner) == 0) {
        return;
    }
    struct ringbus_explain_row row = {
        .kind = RINGBUS_EXPLAIN_OWNER, .weight = owner.entry.hash_weight, .reason = ""};
    if (owner.absent) {
        row.reason = "has died just now, and its keys wait for it";
    } else if (!owner.entry.healthy) {
        row.reason = rbi_route_reason_text(RBI_ROUTE_SHIELDED);
    }
    tell_instance(teller, &owner.entry, &row);
}

int ringbus_explain(struct ringbus *bus,
                    const char *target,
                    const struct ringbus_explain_options *options,
                    ringbus_explain_fn tell,
                    void *user)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    struct ringbus_explain_options given = {0};
    if (target == NULL || tell == NULL ||
        (options != NULL && options->struct_size < sizeof options->struct_size)) {
        rbi_leave(bus);
        return RINGBUS_E_ARGUMENT;
    }
    if (options != NULL) {
        memcpy(&given, options, rbi_min_u64(options->struct_size, sizeof given));
    }
    struct rbi_explain *explain = calloc(1, sizeof *explain);
    if (explain == NULL) {
        rbi_leave(bus);
        return rbi_fail(bus, RINGBUS_E_NO_MEMORY, "not enough memory to explain");
    }
    explain->bus = bus;
    r = rbi_explain_read(explain, target, &given);
    r = r == 0 ? rbi_explain_run(explain, 0, explain->cluster_count) : r;
    rbi_leave(bus);
    if (r == 0) {
        const struct teller teller = {explain, tell, user};
        const bool outer = bus->in_callback;
        bus->in_callback = true; /* the handle stays, and what is mapped */
        tell_targets(&teller);
        tell_stages(&teller);
        tell_in(&teller);
        if (explain->by_key) {
            tell_owner(&teller, explain);
        }
        bus->in_callback = outer;
        r = (int)(explain->by_key ? explain->result.keyed_count : explain->result.in_count);
    }
    rbi_explain_free(explain);
    return r;
}
