/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/terms.c - by what links are judged: what the application asked for when it opened
 * the handle or named a target, and the bus's configuration for what it left open. The same
 * for debug hold, by which others judge us.
 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

#define PING_DEFAULT_MS 1000U
#define MISSES_DEFAULT  3U

static int check(struct ringbus *bus, struct rbi_link_terms *terms)
{
    terms->dead_after_ms = rbi_link_dead_after_ms(terms->ping_interval_ms, terms->ping_misses);
    if (rbi_link_terms_check(terms) != 0) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "ping_interval_ms %u and ping_misses %u, expected %u to %u and 1 to %u",
                        terms->ping_interval_ms, terms->ping_misses, RBI_PING_INTERVAL_MS_MIN,
                        RBI_PING_INTERVAL_MS_MAX, RBI_PING_MISSES_MAX);
    }
    return 0;
}

/* The option, else the environment, else the daemon's word, which comes later. */
static int open_hold(struct ringbus *bus, int option)
{
    const char *word = getenv("RINGBUS_DEBUG_HOLD"); /* NOLINT(concurrency-mt-unsafe) */
    if (option != 0) {
        bus->hold = option > 0;
    } else if (word != NULL && word[0] != '\0') {
        if (strcmp(word, "0") != 0 && strcmp(word, "1") != 0) {
            return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                            "RINGBUS_DEBUG_HOLD is \"%.32s\", expected 0 or 1", word);
        }
        bus->hold = word[0] == '1';
    } else {
        bus->hold_from_daemon = true;
    }
    return 0;
}

int rbi_terms_open(struct ringbus *bus, const struct ringbus_options *options)
{
    bus->terms_from_daemon = options->ping_interval_ms == 0 && options->ping_misses == 0;
    bus->terms.ping_interval_ms =
        options->ping_interval_ms != 0 ? options->ping_interval_ms : PING_DEFAULT_MS;
    bus->terms.ping_misses = options->ping_misses != 0 ? options->ping_misses : MISSES_DEFAULT;
    const int r = check(bus, &bus->terms);
    return r != 0 ? r : open_hold(bus, options->debug_hold);
}

int rbi_terms_target(struct ringbus *bus,
                     const struct ringbus_target_options *options,
                     struct rbi_target_terms *out)
{
    struct rbi_target_terms target = {.terms = bus->terms, .from_handle = true};
    if (options->ping_interval_ms != 0) {
        target.terms.ping_interval_ms = options->ping_interval_ms;
        target.from_handle = false;
    }
    if (options->ping_misses != 0) {
        target.terms.ping_misses = options->ping_misses;
        target.from_handle = false;
    }
    if (options->errors_count != 0 && options->errors_count != 1) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "errors_count is %d, expected 0 or 1",
                        options->errors_count);
    }
    target.errors_count = options->errors_count == 1;
    const int r = check(bus, &target.terms);
    if (r == 0) {
        *out = target;
    }
    return r;
}

const struct rbi_link_terms *rbi_terms_of(const struct rbi_cluster *cluster,
                                          const struct rbi_member *member)
{
    return member->named ? &member->target.terms : &cluster->target.terms;
}

void rbi_terms_say(struct ringbus *bus, struct rbi_end *end, const struct rbi_link_terms *terms)
{
    const struct rbi_link_input input = {.type = RBI_LINK_OPEN,
                                         .terms = *terms,
                                         .spread =
                                             (uint32_t)rbi_random_below(bus, RBI_LINK_SPREAD + 1U)};
    end->wanted = true;
    rbi_end_step(bus, end, &input);
}

/* Links that are up are told the new terms by a READY of their own. */
static void apply(struct ringbus *bus)
{
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        struct rbi_cluster *cluster = bus->clusters[c];
        if (cluster->target.from_handle) {
            cluster->target.terms = bus->terms;
        }
        for (unsigned m = 0; m < cluster->member_count; m++) {
            struct rbi_member *member = &cluster->members[m];
            struct rbi_end *end = member->end;
            if (member->target.from_handle) {
                member->target.terms = bus->terms;
            }
            if (end != NULL && end->wanted && end->phase == RBI_END_LINKED && !end->loop) {
                rbi_terms_say(bus, end, rbi_terms_of(cluster, member));
            }
        }
    }
}

void rbi_terms_from_daemon(struct ringbus *bus, const struct rbi_wire_hello_ok *body)
{
    struct rbi_link_terms terms = {.ping_interval_ms = body->ping_interval_ms,
                                   .ping_misses = body->ping_misses};
    terms.dead_after_ms = rbi_link_dead_after_ms(terms.ping_interval_ms, terms.ping_misses);
    /* Untrusted as any other. */
    if (bus->terms_from_daemon && rbi_link_terms_check(&terms) == 0 &&
        memcmp(&terms, &bus->terms, sizeof terms) != 0) {
        bus->terms = terms;
        apply(bus);
    }
    /* Peers read it with READY: once for the life of the handle. */
    if (bus->hold_from_daemon && !bus->control.ever_on) {
        bus->hold = body->debug_hold != 0;
    }
    if (bus->hold && bus->page != NULL) {
        bus->page->flags |= RBI_PAGE_DEBUG_HOLD;
    }
}
