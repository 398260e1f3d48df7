/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/probe.c - probes of shielded instances. The daemon keeps the deadlines: whatever
 * happens to us or to the request, it takes the probe for failed when we say nothing in time.
 */
#include "libclient/internal.h"

static void report(struct ringbus *bus, uint64_t token, enum rbi_probe_outcome outcome)
{
    const struct rbi_wire_probe_result body = {.token = token, .outcome = (uint32_t)outcome};
    (void)rbi_control_send(bus, RBI_WIRE_PROBE_RESULT, &body, NULL, 0);
}

void rbi_probe_answer(struct ringbus *bus, const struct rbi_wire_probe *body)
{
    (void)rbi_control_send(bus, RBI_WIRE_PROBE, body, NULL, 0);
}

/* The end over which it can be tried now, or NULL. */
static struct rbi_end *end_of(struct ringbus *bus, const struct rbi_probe *probe)
{
    struct rbi_end *end = rbi_end_find(bus, probe->cluster, probe->instance);
    const bool fit = end != NULL && end->usable && end->wanted && !end->loop &&
                     end->peer.incarnation == probe->incarnation;
    return fit ? end : NULL;
}

void rbi_probe_grant(struct ringbus *bus, const struct rbi_wire_probe_grant *body)
{
    const struct rbi_probe probe = {.token = body->token,
                                    .cluster = body->cluster,
                                    .instance = body->instance,
                                    .incarnation = body->incarnation,
                                    .use_by_ns = rbi_now_ns() + body->use_ms * RBI_NS_PER_MS};
    if (bus->probe.token != 0 || bus->closing || end_of(bus, &probe) == NULL) {
        report(bus, body->token, RBI_PROBE_UNUSED);
        return;
    }
    const uint8_t number = bus->probe.number;
    bus->probe = probe;
    bus->probe.number = number == UINT8_MAX ? 1 : (uint8_t)(number + 1);
    bus->probing = true;
    rbi_deadline_at_most(bus, probe.use_by_ns);
}

/* The choice that the message at hand was for. NULL: the application has said who gets it. */
static struct rbi_choice *choice_at_hand(const struct rbi_cluster *cluster, bool plain)
{
    return plain && cluster->dispatch_stale == RBI_DISPATCH_FRESH ? cluster->choice
                                                                  : cluster->picked;
}

/*
 * A probe is a message like others: it goes only where the stages, or its key, would have it go if
 * the instance was well. The stages are asked once for each probe and class.
 */
static bool fits(struct ringbus *bus,
                 struct rbi_cluster *cluster,
                 struct rbi_choice *choice,
                 const struct rbi_choosing *by)
{
    const struct rbi_probe *probe = &bus->probe;
    if (by->keyed && !by->spread && choice->by_key) {
        return rbi_keyed_owner(choice, probe->cluster, by->key) == probe->instance;
    }
    if (choice->probe != probe->token) {
        choice->probe_fits =
            rbi_choice_would_take(bus, cluster, choice, probe->cluster, probe->instance);
        choice->probe = probe->token;
    }
    return choice->probe_fits;
}

int rbi_probe_route(struct ringbus *bus,
                    const struct ringbus_addr *to,
                    const struct rbi_choosing *by,
                    struct rbi_attributes *said,
                    int error,
                    struct rbi_end **end)
{
    struct rbi_cluster *cluster =
        to->instance == RINGBUS_ANY ? rbi_cluster_find(bus, to->cluster) : NULL;
    struct rbi_choice *choice = cluster != NULL ? choice_at_hand(cluster, said == NULL) : NULL;
    struct rbi_end *tried = choice != NULL ? end_of(bus, &bus->probe) : NULL;
    if (tried == NULL || (error != 0 && error != RINGBUS_E_SHIELDED) ||
        (tried->hindered & RBI_HINDERED_CLAIM) != 0 ||
        (to->incarnation != 0 && to->incarnation != tried->peer.incarnation) ||
        !fits(bus, cluster, choice, by)) {
        return error;
    }
    rbi_divert_forget(bus); /* it has the key, if there is one */
    if (said != NULL) {
        said->diverted = false;
    }
    *end = tried;
    return 0;
}

uint8_t rbi_probe_begin(struct ringbus *bus, const struct rbi_end *end)
{
    if (end->peer.cluster != bus->probe.cluster || end->peer.instance != bus->probe.instance ||
        end->peer.incarnation != bus->probe.incarnation) {
        return 0;
    }
    bus->probing = false;
    return bus->probe.number;
}

void rbi_probe_over(struct ringbus *bus, uint8_t number, enum rbi_probe_outcome outcome)
{
    /* One of the daemon before: its token is nobody's any more, and the one held is another. */
    if (bus->probe.token != 0 && bus->probe.number == number) {
        report(bus, bus->probe.token, outcome);
        rbi_probe_forget(bus);
    }
}

uint64_t rbi_probe_tick(struct ringbus *bus, uint64_t now_ns)
{
    if (!bus->probing) {
        return RBI_NEVER;
    }
    if (now_ns >= bus->probe.use_by_ns) {
        rbi_probe_over(bus, bus->probe.number, RBI_PROBE_UNUSED);
        return RBI_NEVER;
    }
    return bus->probe.use_by_ns;
}

void rbi_probe_forget(struct ringbus *bus)
{
    bus->probe.token = 0;
    bus->probing = false;
}
