/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/refused.c - see libclient/refused.h. */
#include "libclient/internal.h"

#define PERIOD_NS (1000 * RBI_NS_PER_MS)

/* The first at once, then one a period. */
static bool is_due(uint64_t count, uint64_t last_ns, uint64_t now_ns)
{
    return count > 0 && (last_ns == 0 || now_ns - last_ns >= PERIOD_NS);
}

static uint64_t due_ns(uint64_t count, uint64_t last_ns)
{
    return count > 0 ? last_ns + PERIOD_NS : RBI_NEVER;
}

uint64_t rbi_refused_due_ns(const struct rbi_end *end)
{
    const struct rbi_refused *refused = &end->refused;
    return rbi_min_u64(due_ns(refused->count, refused->said_ns),
                       due_ns(refused->told_count, refused->told_ns));
}

/* ---- saying --------------------------------------------------------------------------------- */

void rbi_refused_note(struct ringbus *bus, struct rbi_end *end, int error, uint32_t method)
{
    end->refused.count++;
    end->refused.error = error;
    end->refused.method = method;
    if (is_due(end->refused.count, end->refused.said_ns, bus->now_ns)) {
        end->pending |= RBI_PENDING_REFUSED;
        rbi_end_flush_pending(bus, end);
    }
    rbi_tick_follow(bus, end);
}

void rbi_refused_last(struct rbi_end *end)
{
    end->pending |= end->refused.count > 0 ? RBI_PENDING_REFUSED : 0U;
}

void rbi_refused_said(struct ringbus *bus, struct rbi_end *end)
{
    end->refused.count = 0;
    end->refused.said_ns = bus->now_ns;
}

/* Whether a receiver may say so: a code of this version. */
static bool is_told(int error)
{
    return ringbus_error_kind(error) != RINGBUS_ERROR_NONE;
}

int ringbus_refuse(struct ringbus *bus, const struct ringbus_addr *peer, int error, uint32_t method)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    struct rbi_end *end = peer != NULL ? rbi_end_find(bus, peer->cluster, peer->instance) : NULL;
    if (peer == NULL || !is_told(error)) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "%s does not say why a message was dropped",
                     ringbus_error_name(error));
    } else if (end == NULL || !end->usable || end->peer.incarnation != peer->incarnation) {
        r = rbi_fail(bus, RINGBUS_E_PEER_GONE, "there is no link to who sent the message");
    } else {
        rbi_refused_note(bus, end, error, method);
    }
    rbi_leave(bus);
    return r;
}

/* ---- telling -------------------------------------------------------------------------------- */

static void tell(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_refused *refused = &end->refused;
    struct rbi_queued_event *event = rbi_emit_simple(
        bus, RINGBUS_EVENT_REFUSED, &end->peer, end->path, RBI_REASON_NONE, refused->told_error);
    if (event != NULL) {
        event->count = refused->told_count;
        event->method = refused->told_method;
    }
    refused->told_count = 0;
    refused->told_ns = bus->now_ns;
}

void rbi_refused_end(struct ringbus *bus, struct rbi_end *end)
{
    if (end->refused.told_count > 0) {
        tell(bus, end);
    }
}

void rbi_refused_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_refused_body body;
    if (rbi_refused_decode(record->payload, record->payload_size, &body) != 0) {
        rbi_end_bad_peer(bus, end, "REFUSED cannot be read");
        return;
    }
    struct rbi_refused *refused = &end->refused;
    /* Whatever it says, it is one event a period, and no more than we have sent. */
    const uint64_t most = bus->counters[RBI_COUNTER_sent];
    if (!is_told(body.error) || body.count == 0) {
        return; /* a reason of a later version */
    }
    refused->told_error = body.error;
    refused->told_count = rbi_min_u64(refused->told_count + rbi_min_u64(body.count, most), most);
    refused->told_method = body.method;
    if (is_due(refused->told_count, refused->told_ns, bus->now_ns)) {
        tell(bus, end);
    }
    rbi_tick_follow(bus, end);
}

void rbi_refused_tick(struct ringbus *bus, struct rbi_end *end)
{
    if (is_due(end->refused.count, end->refused.said_ns, bus->now_ns)) {
        end->pending |= RBI_PENDING_REFUSED;
    }
    if (is_due(end->refused.told_count, end->refused.told_ns, bus->now_ns)) {
        tell(bus, end);
    }
}
