/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/follow.h"

#include "daemon/bridge/fars.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/station.h"
#include "daemon/bridge/tunnel.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define SECOND_NS    UINT64_C(1000000000)
#define LOG_LIMIT_NS (10 * SECOND_NS)

/* The loop's is that of its turn, in which a message may come and go. */
static uint64_t exact_now_ns(void)
{
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- at the origin -------------------------------------------------------------------------- */

static struct rbi_follow_source *source_of(struct rbi_bridge *bridge,
                                           const struct rbi_trace_id *trace)
{
    const uint64_t now_ns = rbi_bridge_now_ns(bridge);
    for (unsigned i = 0; i < RBI_FOLLOW_SOURCES; i++) {
        struct rbi_follow_source *source = &bridge->follow.sources[i];
        if (source->until_ns > now_ns &&
            memcmp(source->trace.bytes, trace->bytes, sizeof trace->bytes) == 0) {
            return source;
        }
    }
    return NULL;
}

/** A message of an endpoint of this host. */
static void note_source(struct rbi_tunnel *tunnel, const struct rbi_trace_id *trace)
{
    struct rbi_follow *follow = &tunnel->bridge->follow;
    const uint32_t uid = rbi_half_peer_uid(tunnel->half);
    struct rbi_follow_source *source = source_of(tunnel->bridge, trace);
    if (source == NULL || source->uid != uid) {
        source = &follow->sources[follow->next++ % RBI_FOLLOW_SOURCES];
        *source = (struct rbi_follow_source){.trace = *trace, .uid = uid};
    }
    source->until_ns = rbi_bridge_now_ns(tunnel->bridge) + RBI_FOLLOW_NS;
}

void rbi_follow_on_hop(struct rbi_bridge *bridge, const struct rbi_frame_hop *hop)
{
    struct rbi_follow_source *source = source_of(bridge, &hop->trace);
    if (source == NULL || source->told == RBI_FOLLOW_HOPS) {
        return;
    }
    source->told++;
    struct rbi_wire_hop out = {.what = hop->what,
                               .reply = hop->reply,
                               .age_ns = hop->age_ns,
                               .heard_ns = exact_now_ns(),
                               .uid = source->uid};
    out.trace.length = sizeof hop->trace.bytes;
    memcpy(out.trace.bytes, hop->trace.bytes, sizeof hop->trace.bytes);
    rbi_text_set(&out.host, hop->host.bytes);
    rbi_text_set(&out.next, hop->next.bytes);
    rbi_station_hop(bridge->station, &out);
}

/* ---- telling -------------------------------------------------------------------------------- */

static bool may_tell(struct rbi_bridge *bridge)
{
    struct rbi_follow *follow = &bridge->follow;
    const uint64_t now_ns = rbi_bridge_now_ns(bridge);
    uint64_t suppressed = 0;
    if (now_ns - follow->window_ns >= SECOND_NS) {
        follow->window_ns = now_ns;
        follow->sent = 0;
    }
    if (follow->sent < RBI_FOLLOW_RATE) {
        follow->sent++;
        return true;
    }
    follow->dropped++;
    if (rbi_log_limit_pass(&follow->dropped_limit, now_ns, LOG_LIMIT_NS, &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "hops_dropped", "dropped=%" PRIu64 " rate=%u", follow->dropped,
                RBI_FOLLOW_RATE);
    }
    return false;
}

/**
 * Tells the host @p to of it.
 * @param next  that it goes to; NULL: it is put
 */
static void tell(struct rbi_bridge *bridge,
                 uint64_t to,
                 enum rbi_hop what,
                 const struct rbi_session *next,
                 const struct rbi_follow_news *news)
{
    if (!may_tell(bridge)) {
        return;
    }
    struct rbi_frame_hop hop = {
        .envelope = {.from = bridge->self, .to = to, .hops = RBI_FRAME_HOPS_MAX},
        .trace = news->trace,
        .what = (uint8_t)what,
        .reply = news->reply ? 1 : 0,
        .age_ns = news->age_ns};
    rbi_frame_host_set(&hop.host, bridge->config.host);
    if (next != NULL && next->neighbour != NULL) {
        rbi_frame_text_set(&hop.next, next->neighbour->peer.host);
    }
    const struct rbi_far *far = to != bridge->self ? rbi_fars_find(bridge, to) : NULL;
    struct rbi_session *way = far != NULL ? rbi_far_way(far) : NULL;
    if (to == bridge->self) {
        rbi_follow_on_hop(bridge, &hop);
    } else if (way != NULL) {
        (void)rbi_session_send(way, RBI_FRAME_HOP, 0, 0, &hop);
    }
}

bool rbi_follow_tunnel(struct rbi_tunnel *tunnel,
                       enum rbi_follow_way way,
                       uint32_t meta,
                       const unsigned char *body,
                       uint64_t size,
                       uint64_t base_ns)
{
    struct rbi_bridge *bridge = tunnel->bridge;
    struct rbi_followed record;
    struct rbi_follow_news news;
    if (!rbi_followed_read(meta, body, RBI_FOLLOW_HEAD_MAX, size, &record)) {
        return false;
    }
    record.sent_ns += record.sent_ns != 0 ? base_ns : 0;
    if (!rbi_follow_pass(&tunnel->follow, way, &record, exact_now_ns(), &news)) {
        return false;
    }
    const bool from_here = (way == RBI_FOLLOW_OUT) != news.reply;
    if (from_here && !news.reply) {
        note_source(tunnel, &news.trace);
    }
    tell(bridge, from_here ? bridge->self : tunnel->far->id,
         way == RBI_FOLLOW_OUT ? RBI_HOP_TAKEN : RBI_HOP_PUT,
         way == RBI_FOLLOW_OUT ? tunnel->session : NULL, &news);
    return true;
}

void rbi_follow_transit(struct rbi_follow_stream *stream,
                        unsigned from,
                        struct rbi_session *next,
                        const struct rbi_frame_header *header,
                        const void *body)
{
    static _Alignas(8) unsigned char head[RBI_FOLLOW_HEAD_MAX]; /* one thread */
    struct rbi_frame_data data;
    struct rbi_followed record;
    struct rbi_follow_news news;
    if (rbi_frame_data(header, body, &data) != 0) {
        return; /* its receiver says so */
    }
    const uint64_t there = rbi_min_u64(data.bytes.size, sizeof head);
    memcpy(head, data.bytes.at, there);
    if (!rbi_followed_read(data.meta, head, there, data.size, &record)) {
        return;
    }
    record.sent_ns += record.sent_ns != 0 ? rbi_bridge_now_ns(next->bridge) : 0;
    if (rbi_follow_pass(&stream->memory, from, &record, exact_now_ns(), &news)) {
        tell(next->bridge, stream->hosts[news.reply ? 1 - from : from], RBI_HOP_FORWARD, next,
             &news);
    }
}
