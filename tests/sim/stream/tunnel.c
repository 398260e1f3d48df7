/* SPDX-License-Identifier: Apache-2.0 */
/* What a bridge does with the actions of a stream and with its frames, as short as can be. */
#include "world.h"

#include <stdio.h>
#include <string.h>

void tunnel_send(struct host *host, const struct tunnel *tunnel, struct frame frame)
{
    frame.handle = tunnel->theirs;
    wire_send(host, tunnel->way, tunnel->conn, frame);
}

/** OPEN or OPENED: a handle of its own for each. */
static void send_open(struct host *host, struct tunnel *tunnel, unsigned type)
{
    struct rbi_stream *stream = &tunnel->stream;
    tunnel->handle = ++host->next_handle;
    const uint64_t granted = rbi_stream_rx_offer(&stream->rx);
    const struct frame frame = {
        .type = type,
        .ours = tunnel->handle,
        .input = {.type = type == RBI_FRAME_OPEN ? RBI_STREAM_IN_OPEN : RBI_STREAM_IN_OPENED,
                  .id = stream->id,
                  .theirs = {.life = host->life, .number = host->count},
                  .attempt = stream->attempt,
                  .opened = stream->opened,
                  .again = type == RBI_FRAME_OPEN && stream->opened != 0,
                  .expect = stream->rx.expect,
                  .begin = stream->tx.acked,
                  .granted = granted}};
    tunnel_send(host, tunnel, frame);
}

void tunnel_refuse(struct host *host,
                   uint32_t way,
                   uint32_t conn,
                   const struct rbi_stream_actions *act)
{
    wire_send(host, way, conn,
              (struct frame){.type = RBI_FRAME_REFUSED,
                             .input = {.type = RBI_STREAM_IN_REFUSED,
                                       .id = act->id,
                                       .attempt = act->attempt,
                                       .code = act->code,
                                       .forgotten = act->forgotten}});
}

static void send_ack(struct host *host, struct tunnel *tunnel)
{
    struct frame frame = {.type = RBI_FRAME_ACK};
    rbi_stream_rx_ack(&tunnel->stream.rx, &frame.input.position, &frame.input.granted);
    tunnel_send(host, tunnel, frame);
}

static void
send_close(struct host *host, struct tunnel *tunnel, const struct rbi_stream_actions *act)
{
    const struct rbi_stream *stream = &tunnel->stream;
    send_ack(host, tunnel);
    tunnel_send(host, tunnel,
                (struct frame){.type = RBI_FRAME_CLOSE,
                               .input = {.type = RBI_STREAM_IN_CLOSE,
                                         .reason = act->reason,
                                         .now = act->now,
                                         .position = stream->tx.pos,
                                         .settled = stream->rx.settled,
                                         .seen = stream->rx.put}});
}

static void drop_part(struct tunnel *tunnel)
{
    if (rbi_stream_discards(&tunnel->stream)) {
        return;
    }
    CHECK(tunnel->queued != 0, "a part of nothing", tunnel);
    struct waiting *last = &tunnel->queue[--tunnel->queued];
    CHECK(!last->whole, "a whole record is dropped as a part", tunnel);
    rbi_stream_rx_free(&tunnel->stream.rx, last->kept);
}

static void set_held(struct link *link, bool held, const struct tunnel *tunnel)
{
    CHECK(link->held != held, "held twice, or let go twice", tunnel);
    link->held = held;
}

static void forget(struct host *host, struct tunnel *tunnel)
{
    struct link *link = link_of(host, tunnel);
    world.resent += tunnel->stream.tx.resent;
    world.resumed += tunnel->resumes;
    CHECK(tunnel->stream.tx.resent <= tunnel->resumes * (2 * WINDOW + 8192),
          "resent more than once a cut", tunnel);
    CHECK(tunnel->stream.rx.duplicates == 0, "something came twice", tunnel);
    if (link != NULL && link->state == LINK_LEFT) {
        const struct ledger *ledger = &world.ledgers[link->id];
        if (tunnel->clean) {
            CHECK(ledger->arrived == ledger->written, "an end in order, and not all has arrived",
                  tunnel);
            world.clean_ends++;
        }
        link->state = LINK_NONE;
        if (host->link == tunnel->link) {
            host->link = NOBODY;
        }
    }
    tunnel->used = false;
}

static void carry_out(struct host *host,
                      struct tunnel *tunnel,
                      const struct rbi_stream_actions *act,
                      uint32_t way,
                      uint32_t conn,
                      uint32_t theirs)
{
    if (act->todo & RBI_STREAM_DO_MOVE) {
        tunnel->way = way;
        tunnel->conn = conn;
        tunnel->theirs = theirs;
    }
    if (act->todo & RBI_STREAM_DO_DROP_PART) {
        drop_part(tunnel);
    }
    if (act->todo & RBI_STREAM_DO_HOLD) {
        set_held(link_of(host, tunnel), true, tunnel);
    }
    if (act->todo & RBI_STREAM_DO_RELEASE) {
        set_held(link_of(host, tunnel), false, tunnel);
    }
    if (act->todo & RBI_STREAM_DO_BACK) {
        tunnel->begun = false;
        tunnel->resumes++;
    }
    if (act->todo & RBI_STREAM_DO_ACCEPT) {
        CHECK(link_of(host, tunnel)->state == LINK_ASKED, "accepted and not asked for", tunnel);
        link_of(host, tunnel)->state = LINK_UP;
    }
    if (act->todo & RBI_STREAM_DO_SEND_OPEN) {
        send_open(host, tunnel, RBI_FRAME_OPEN);
    }
    if (act->todo & RBI_STREAM_DO_SEND_OPENED) {
        send_open(host, tunnel, RBI_FRAME_OPENED);
    }
    if (act->todo & RBI_STREAM_DO_SEND_REFUSED) {
        tunnel_refuse(host, way, conn, act);
    }
    if (act->todo & RBI_STREAM_DO_SEND_CLOSE) {
        send_close(host, tunnel, act);
    }
    if (act->todo & (RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_REFUSE_LOCAL)) {
        CHECK((act->todo & RBI_STREAM_DO_REFUSE_LOCAL) == 0 ||
                  link_of(host, tunnel)->state == LINK_ASKED,
              "refused and was up", tunnel);
        CHECK((act->todo & RBI_STREAM_DO_REFUSE_LOCAL) == 0 || world.cut_rate != 0,
              "a link is refused, and nothing was wrong", tunnel);
        CHECK((act->todo & RBI_STREAM_DO_END_LOCAL) == 0 || world.cut_rate != 0 ||
                  act->reason != RBI_REASON_UNREACHABLE,
              "a link is given up, and nothing was wrong", tunnel);
        if (tunnel->link != NOBODY) {
            link_end(host, tunnel, act->seen);
        }
    }
    if (act->todo & RBI_STREAM_DO_FORGET) {
        forget(host, tunnel);
    }
}

void tunnel_feed_by(struct host *host,
                    struct tunnel *tunnel,
                    struct rbi_stream_input input,
                    uint32_t way,
                    uint32_t conn,
                    uint32_t theirs,
                    struct rbi_stream_actions *act)
{
    const enum rbi_stream_state before = tunnel->stream.state;
    rbi_stream_step(&tunnel->stream, &input, world.now_ns, act);
    if (world.verbose && (act->todo != 0 || input.type != RBI_STREAM_IN_TICK)) {
        (void)printf("%8llu us host %llu stream %llx.%llu attempt %u input %d: %d -> %d todo %x\n",
                     (unsigned long long)world.now_ns / 1000, (unsigned long long)host->id,
                     (unsigned long long)tunnel->stream.id.life,
                     (unsigned long long)tunnel->stream.id.number, tunnel->stream.attempt,
                     (int)input.type, (int)before, (int)tunnel->stream.state, act->todo);
    }
    CHECK((tunnel->stream.state == RBI_STREAM_CLOSED) == ((act->todo & RBI_STREAM_DO_FORGET) != 0),
          "closed and not to be forgotten, or the other way round", tunnel);
    carry_out(host, tunnel, act, way, conn, theirs);
}

void tunnel_feed(struct host *host, struct tunnel *tunnel, struct rbi_stream_input input)
{
    struct rbi_stream_actions act;
    tunnel_feed_by(host, tunnel, input, tunnel->way, tunnel->conn, tunnel->theirs, &act);
}

struct tunnel *tunnel_new(struct host *host)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        if (!host->tunnels[i].used) {
            memset(&host->tunnels[i], 0, sizeof host->tunnels[i]);
            host->tunnels[i].used = true;
            host->tunnels[i].link = NOBODY;
            host->tunnels[i].born = ++world.tunnel_count;
            return &host->tunnels[i];
        }
    }
    fail("streams are not given back", NULL);
    return NULL;
}

struct rbi_stream_terms tunnel_terms(void)
{
    return (struct rbi_stream_terms){.window = WINDOW,
                                     .open_ns = 5 * SECOND,
                                     .unreachable_ns = UNREACHABLE,
                                     .start = world.start};
}

void tunnel_open(struct host *host, uint32_t link)
{
    struct tunnel *tunnel = tunnel_new(host);
    const struct rbi_stream_terms t = tunnel_terms();
    tunnel->link = link;
    rbi_stream_init_opener(&tunnel->stream,
                           &(struct rbi_stream_id){.life = host->life, .number = ++host->count},
                           host->id, other_host(host)->id, &t, world.now_ns);
}

/** Whether an earlier stream of the pair is still ending here. */
static bool has_earlier(const struct host *host, const struct tunnel *tunnel)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        if (host->tunnels[i].used && host->tunnels[i].born < tunnel->born) {
            return true;
        }
    }
    return false;
}

/**
 * An opener that wants a way takes any that is there. Where nothing goes wrong there is only one:
 * an OPEN that is late by a slower one may make a link that ends at once, which cannot be helped.
 */
void tunnel_find_way(struct host *host, struct tunnel *tunnel)
{
    const uint32_t way = world.cut_rate == 0 ? 0 : below(WAYS);
    const unsigned index = host == &world.hosts[0] ? 0 : 1;
    const struct rbi_stream *stream = &tunnel->stream;
    const bool wants = stream->opener && (stream->state == RBI_STREAM_HELD ||
                                          (stream->state == RBI_STREAM_OPENING && stream->cut));
    if (!wants || !world.conns[way].up[index] || stream->retry_ns != UINT64_MAX ||
        (stream->attempt == 0 && has_earlier(host, tunnel))) {
        return;
    }
    tunnel->way = way;
    tunnel->conn = world.conns[way].id;
    tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_WAY});
}

/* ---- sending ------------------------------------------------------------------------------ */

/** How much goes into one frame; 0: rather than crumbs, wait for a grant. */
static uint64_t part_that_fits(const struct rbi_stream_tx *tx, uint64_t left)
{
    const uint64_t room = rbi_stream_tx_room(tx);
    const uint64_t part =
        rbi_min_u64(left, room > RBI_FRAME_DATA_HEAD ? room - RBI_FRAME_DATA_HEAD : 0);
    return part < rbi_min_u64(left, 1000) ? 0 : rbi_min_u64(part, 2000);
}

static bool send_part(struct host *host, struct tunnel *tunnel, const struct record *record)
{
    struct rbi_stream_tx *tx = &tunnel->stream.tx;
    const bool first = !tunnel->begun;
    const bool by_ref = record->payload != 0;
    const uint64_t total = by_ref ? record->payload : record->size;
    const uint64_t offset = first ? 0 : tunnel->offset;
    uint64_t part = 0;
    if (first && by_ref) {
        part = rbi_stream_tx_room(tx) >= RBI_FRAME_DATA_HEAD + record->size ? record->size : 0;
    } else {
        part = part_that_fits(tx, total - offset);
    }
    if (part == 0) {
        return false;
    }
    if (first) {
        rbi_stream_tx_begin(tx, record->next);
    }
    const uint64_t sent = first && by_ref ? 0 : offset + part;
    struct frame frame = {.type = first ? RBI_FRAME_DATA : RBI_FRAME_PIECE,
                          .flags = rbi_stream_tx_ask(tx, LANE_BYTES) ? RBI_FRAME_F_ASK : 0,
                          .mark = rbi_stream_mark(tx->pos),
                          .record = *record,
                          .offset = offset,
                          .part = part,
                          .bytes = RBI_FRAME_DATA_HEAD + part};
    frame.flags |= sent == total ? (first ? 0 : RBI_FRAME_F_LAST) : (first ? RBI_FRAME_F_MORE : 0);
    rbi_stream_tx_frame(tx, frame.bytes);
    tunnel_send(host, tunnel, frame);
    tunnel->offset = sent;
    tunnel->begun = sent != total;
    if (sent == total) {
        rbi_stream_tx_end(tx, record->next);
    }
    return true;
}

void tunnel_pump(struct host *host, struct tunnel *tunnel)
{
    struct rbi_stream *stream = &tunnel->stream;
    if (tunnel->used && stream->state == RBI_STREAM_OPEN &&
        rbi_stream_rx_ack_due(&stream->rx, world.now_ns)) {
        send_ack(host, tunnel);
    }
    if (!tunnel->used || !rbi_stream_sends(stream)) {
        return;
    }
    const struct link *link = link_of(host, tunnel);
    for (unsigned i = below(8); i > 0; i--) {
        const struct record *record = link_record(link, stream->tx.pos);
        if (record == NULL) {
            CHECK(stream->tx.pos == link->write_pos, "lost its place in the lane", tunnel);
            break;
        }
        if (!send_part(host, tunnel, record)) {
            break;
        }
    }
    if (stream->local_ended && stream->tx.pos == link->write_pos) {
        tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_SENT});
    }
}
