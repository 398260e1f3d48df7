/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections keep their order each, and none with each other. A cut may happen behind any frame;
 * what was under way before it may still be read, for as long as the reader does not notice.
 */
#include "world.h"

void wire_send(struct host *from, uint32_t way, uint32_t conn, struct frame frame)
{
    struct conn *wire = &world.conns[way];
    const unsigned to = from == &world.hosts[0] ? 1 : 0;
    if (wire->id != conn || wire->cut || !wire->up[to]) {
        return; /* it goes nowhere, which the sender has not noticed */
    }
    CHECK(wire->tail[to] - wire->head[to] < QUEUE, "more frames than windows allow", NULL);
    wire->queue[to][wire->tail[to]++ % QUEUE] = frame;
}

bool wire_deliver(uint32_t way, unsigned to)
{
    struct conn *wire = &world.conns[way];
    if (!wire->up[to] || wire->head[to] == wire->tail[to] || !world.hosts[to].alive) {
        return false;
    }
    const struct frame frame = wire->queue[to][wire->head[to]++ % QUEUE];
    tunnel_frame(&world.hosts[to], way, &frame);
    return true;
}

void wire_connect(uint32_t way)
{
    struct conn *wire = &world.conns[way];
    if (wire->up[0] || wire->up[1] || !world.hosts[0].alive || !world.hosts[1].alive) {
        return;
    }
    wire->id = ++world.conn_count;
    wire->cut = false;
    for (unsigned i = 0; i < HOSTS; i++) {
        wire->up[i] = true;
        wire->head[i] = wire->tail[i] = 0;
    }
    /* HELLO: a bridge that has another life knows nothing of the streams of the one before. */
    for (unsigned i = 0; i < HOSTS; i++) {
        struct host *host = &world.hosts[i];
        for (unsigned k = 0; k < STREAMS && chance(500); k++) {
            struct tunnel *tunnel = &host->tunnels[k];
            const uint64_t life = other_host(host)->life;
            if (tunnel->used && (tunnel->stream.opener ? tunnel->stream.theirs.life != 0 &&
                                                             tunnel->stream.theirs.life != life
                                                       : tunnel->stream.id.life != life)) {
                tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_LOST});
            }
        }
    }
}

void wire_cut(uint32_t way)
{
    struct conn *wire = &world.conns[way];
    if (wire->id == 0 || wire->cut) {
        return;
    }
    world.cuts++;
    wire->cut = true;
    for (unsigned i = 0; i < HOSTS; i++) {
        const uint32_t there = wire->tail[i] - wire->head[i];
        wire->tail[i] -= there == 0 ? 0 : below(there + 1);
    }
}

void wire_notice(uint32_t way, unsigned index)
{
    struct conn *wire = &world.conns[way];
    struct host *host = &world.hosts[index];
    if (!wire->cut || !wire->up[index]) {
        return;
    }
    wire->up[index] = false;
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tunnel *tunnel = &host->tunnels[i];
        if (tunnel->used && tunnel->conn == wire->id) {
            tunnel->conn = 0;
            tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_CUT});
        }
    }
}
