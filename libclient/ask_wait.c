/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/ask_wait.c - a request whose receiver is on its way back, or that a limit lets through
 * in a while, waits for that.
 */
#include "libclient/internal.h"

/* Who waits for a link looks as often whether a key has another owner. */
#define LOOK_NS (10 * RBI_NS_PER_MS)

void rbi_asks_link_up(struct ringbus *bus)
{
    if (bus->asks.waiting != 0) {
        bus->asks.due_ns = 0;
        rbi_deadline_at_most(bus, bus->now_ns);
    }
}

/* Its owner, or whoever there is, is on its way back. */
static bool may_come_back(int error)
{
    return error == RINGBUS_E_NOT_READY || error == RINGBUS_E_RESTARTING ||
           error == RINGBUS_E_UNREACHABLE || error == RINGBUS_E_NO_ROUTE;
}

/* A limit lets it through in a while, and its policy has it wait for that (max_wait). */
static bool is_delayed(const struct ringbus *bus, int error)
{
    return error == RINGBUS_E_LIMITED && bus->refusal.wait_ns != 0;
}

static void wait_on(struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns)
{
    const uint64_t look_ns = is_delayed(bus, error) ? bus->refusal.retry_us * 1000 : LOOK_NS;
    if (is_delayed(bus, error)) {
        /* Chosen, but not asked: it may be chosen again. */
        ask->tried_count = (uint8_t)rbi_min_u64(ask->tried_count, ask->tries);
    }
    rbi_ask_set_due(bus, ask, rbi_min_u64(ask->wait_until_ns, now_ns + look_ns));
}

static void begin_to_wait(
    struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns, uint64_t time_ns)
{
    ask->state = RBI_ASK_WAITING;
    bus->asks.waiting++;
    ask->wait_until_ns = rbi_min_u64(now_ns + time_ns, ask->deadline_ns);
    wait_on(bus, ask, error, now_ns);
}

/* The key's owner is out of reach: another may be asked, if the target says so. 0; the error */
static int divert(struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    if (!may_come_back(error) || (ask->flags & RINGBUS_KEY) == 0 || cluster == NULL ||
        cluster->caller == NULL || !cluster->caller->divert) {
        return error;
    }
    ask->diverting = true;
    return rbi_ask_first(bus, ask, now_ns) == 0 ? 0 : error;
}

int rbi_ask_wait(struct ringbus *bus, struct rbi_ask *ask, int error, uint64_t now_ns)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    if (is_delayed(bus, error) && bus->asks.waiting < RBI_WAITING_MAX) {
        begin_to_wait(bus, ask, error, now_ns, bus->refusal.wait_ns);
        return 0;
    }
    if (!may_come_back(error) || cluster == NULL || cluster->caller == NULL ||
        cluster->caller->wait_ms == 0 || bus->asks.waiting >= RBI_WAITING_MAX) {
        return divert(bus, ask, error, now_ns);
    }
    begin_to_wait(bus, ask, error, now_ns, cluster->caller->wait_ms * RBI_NS_PER_MS);
    return 0;
}

bool rbi_ask_is_behind(const struct ringbus *bus, const struct rbi_ask *ask)
{
    const struct rbi_ask *other = bus->asks.waiting != 0 ? bus->asks.first : NULL;
    for (; other != NULL; other = other->next) {
        if (other != ask && other->state == RBI_ASK_WAITING && other->key == ask->key &&
            other->to.cluster == ask->to.cluster &&
            (other->flags & ask->flags & RINGBUS_KEY) != 0) {
            return true;
        }
    }
    return false;
}

/* Its time is over, a link has come, or a table may be another. */
static void look_again(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns)
{
    int r = rbi_ask_first(bus, ask, now_ns);
    if (may_come_back(r) && now_ns >= ask->wait_until_ns) {
        r = divert(bus, ask, r, now_ns);
    }
    if (r == 0) {
        ask->state = RBI_ASK_ASKED;
        ask->due_ns = RBI_NEVER;
        bus->asks.waiting--;
    } else if ((!may_come_back(r) && !is_delayed(bus, r)) || now_ns >= ask->wait_until_ns) {
        const struct ringbus_result how = {.outcome = RINGBUS_NOT_SENT, .error = r};
        rbi_ask_end(bus, ask, &how);
    } else {
        wait_on(bus, ask, r, now_ns);
    }
}

uint64_t rbi_asks_tick(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_asks *asks = &bus->asks;
    if (asks->due_ns > now_ns) {
        return asks->due_ns;
    }
    const bool all = asks->due_ns == 0; /* a link has come */
    asks->due_ns = RBI_NEVER;
    /* Callbacks may begin others, which come behind; one that ends is out of the list. */
    struct rbi_ask *last = asks->last;
    for (struct rbi_ask *ask = asks->first; ask != NULL;) {
        struct rbi_ask *next = ask == last ? NULL : ask->next;
        if (ask->state == RBI_ASK_WAITING && (all || ask->due_ns <= now_ns)) {
            look_again(bus, ask, now_ns);
        } else if (ask->state == RBI_ASK_ENDING) {
            const struct ringbus_result how = {.outcome = ask->outcome, .error = ask->error};
            rbi_ask_end(bus, ask, &how);
        } else if (ask->due_ns != RBI_NEVER) {
            rbi_ask_set_due(bus, ask, ask->due_ns);
        }
        ask = next;
    }
    return asks->due_ns;
}
