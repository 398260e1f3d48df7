/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_STREAM_H
#define RINGBUS_BUS_STREAM_H
/*
 * bus/stream.h - life of a stream as a pure function of (state, input, now): it joins the local
 * links of two endpoints on two hosts, over connections that come and go. No I/O, no clock: the
 * caller feeds inputs and carries out the actions, in the order of their bits.
 *
 *             OPENED / local link                 cut                way, OPEN sent
 *   OPENING ----------------------> OPEN --------------> HELD -----------------------> RESUMING
 *      |                             ^  OPENED / OPEN again  |                             |
 *      | refused, time               +-----------------------+-----------------------------+
 *      v                                                     | time, refused
 *    CLOSED <------------------------------------------------+
 *
 * The opener's local endpoint asked for the link. It sends OPEN, and sends it again after a cut, as
 * soon as there is a way: it alone does, so that a stream has one way, the same in both
 * directions. The other side, the acceptor, waits for that: it answers where OPEN came from.
 *
 * An attempt is one OPEN. Each has a handle of its own on its connection: frames of an older
 * attempt, or of another connection that is read late, find no stream, and an older OPEN, OPENED
 * or REFUSED is known by its number. OPENED that finds no stream is answered by CLOSE with
 * RBI_FRAME_F_FORGOTTEN (by the caller), or its sender would believe in it.
 *
 * Both sides may open the same pair at once. The OPEN of the host with the lower id stands: that
 * host ignores the other's, which answers OPENED to it as if it had sent none: its local link
 * is there already. So OPENED comes always, from where OPEN went.
 *
 * One pair has one stream, but for one that ends while the next begins. So an opener is not fed WAY
 * before the earlier streams of its pair are gone on its host: what they have still to send would
 * be cut off. Feed an OPEN to the stream of its name. If there is none, to those of its pair, the
 * oldest first, until one does not say DO_NEW: it took the OPEN, or knows that it is old. If all
 * say DO_NEW, a stream is to be made, whose local link can be made when the others' are gone.
 *
 * Ends. Of the local endpoint: everything in its lane is sent, then CLOSE; the other side delivers
 * what was sent, ends its local link, and answers CLOSE. What is lost by a cut is sent again, CLOSE
 * as well. When the other bridge has forgotten the stream, as it was started anew, it refuses to go
 * on with it. What was sent and not acknowledged then *may have been seen*: actions.seen.
 */
#include "bus/frame.h"
#include "bus/record.h"
#include "bus/stream_window.h"

enum rbi_stream_state {
    RBI_STREAM_OPENING = 0,  /* never OPENED; acceptor: the local link is being made */
    RBI_STREAM_OPEN = 1,     /* records go both ways */
    RBI_STREAM_HELD = 2,     /* there is no way */
    RBI_STREAM_RESUMING = 3, /* opener: OPEN is under way again */
    RBI_STREAM_CLOSED = 4,   /* terminal */
};

struct rbi_stream_terms {
    uint64_t window;         /* bytes */
    uint64_t open_ns;        /* a stream that is not OPEN by then fails */
    uint64_t unreachable_ns; /* a cut ends the stream after */
    uint64_t start;          /* position at which both lanes begin: 0 outside of tests */
};

/** Refused for want of a way: OPEN again after so long, twice as long each time. */
#define RBI_STREAM_RETRY_MIN_NS UINT64_C(50000000)
#define RBI_STREAM_RETRY_MAX_NS UINT64_C(1000000000)

/** Read it; changed by the functions below. */
struct rbi_stream {
    enum rbi_stream_state state;
    bool opener;
    bool local;        /* the local link has stood */
    bool cut;          /* OPENING: no connection carries it, or it was not sent yet */
    bool told_hold;    /* the local end was told that the way is cut */
    bool local_ended;  /* CLOSE is to be sent, or was */
    bool local_now;    /* without what is still unsent */
    bool close_sent;   /* on this connection */
    bool remote_ended; /* CLOSE came: the local link ends when everything is in its lane */
    struct rbi_stream_id id;
    uint64_t self_host;
    uint64_t peer_host;
    uint32_t attempt;            /* opener: of its last OPEN; acceptor: of the last that it knows */
    uint32_t opened;             /* opener: the attempt that was OPENED first; 0: none */
    struct rbi_stream_id theirs; /* OPENs of that life up to that number are old */
    struct rbi_stream_id crossed; /* OPEN that was ignored because ours stands; number 0: none */
    uint32_t crossed_attempt;
    enum rbi_reason local_reason;
    enum rbi_reason remote_reason;
    uint64_t remote_seen;
    struct rbi_stream_terms terms;
    uint64_t deadline_ns; /* OPENING, HELD, RESUMING: the end; else UINT64_MAX */
    uint64_t retry_ns;    /* HELD, refused for want of a way: next OPEN; else UINT64_MAX */
    uint64_t retry_wait_ns;
    struct rbi_stream_tx tx;
    struct rbi_stream_rx rx;
};

enum rbi_stream_input_type {
    RBI_STREAM_IN_WAY = 1,      /* opener: OPEN can be sent */
    RBI_STREAM_IN_CUT = 2,      /* the connection of this attempt is gone, or CLOSE with F_CUT */
    RBI_STREAM_IN_OPEN = 3,     /* id, attempt, again, opened, expect, begin, granted */
    RBI_STREAM_IN_OPENED = 4,   /* attempt, expect, begin, granted, theirs */
    RBI_STREAM_IN_REFUSED = 5,  /* attempt, code, forgotten */
    RBI_STREAM_IN_LINKED = 6,   /* acceptor: the local link stands */
    RBI_STREAM_IN_FAILED = 7,   /* acceptor: it will not; code */
    RBI_STREAM_IN_LEFT = 8,     /* the local link has ended: reason; now: send nothing more */
    RBI_STREAM_IN_SENT = 9,     /* after LEFT: all that lies in its lane was sent */
    RBI_STREAM_IN_CLOSE = 10,   /* reason, position, settled, seen, now, forgotten */
    RBI_STREAM_IN_DRAINED = 11, /* after CLOSE: all that was received lies in the local lane */
    RBI_STREAM_IN_LOST = 12,    /* the other host's bridge has another incarnation */
    RBI_STREAM_IN_BROKEN = 13,  /* a frame or a record made no sense; reason */
    RBI_STREAM_IN_TICK = 14,
};

struct rbi_stream_input {
    enum rbi_stream_input_type type;
    struct rbi_stream_id id;     /* OPEN */
    struct rbi_stream_id theirs; /* OPENED: life and number */
    uint32_t attempt;
    uint32_t opened; /* OPEN */
    bool again;
    bool forgotten;
    bool now;
    enum rbi_reason reason;
    int32_t code;
    uint64_t expect;
    uint64_t begin;
    uint64_t granted;
    uint64_t position;
    uint64_t settled;
    uint64_t seen;
};

/* Actions, to be carried out in this order. */
/** The OPEN is taken: the connection that it came by, and the handle in it, are the stream's. */
#define RBI_STREAM_DO_MOVE 0x0001U
/** rx forgot a record that is not whole: so do you, and rbi_stream_rx_free() what you kept. */
#define RBI_STREAM_DO_DROP_PART 0x0002U
/** The local end is to be told that the way is cut, or is back (RBI_RECORD_HOLD). */
#define RBI_STREAM_DO_HOLD    0x0004U
#define RBI_STREAM_DO_RELEASE 0x0008U
/** Step the local lane back to tx.pos; a record that is being sent is begun anew. */
#define RBI_STREAM_DO_BACK 0x0010U
/** Opener: the local link is accepted. */
#define RBI_STREAM_DO_ACCEPT 0x0020U
/** OPEN with id, attempt, opened, rx.expect, tx.acked as begin, rbi_stream_rx_offer(); F_AGAIN if
 *  opened is not 0. */
#define RBI_STREAM_DO_SEND_OPEN 0x0040U
/** OPENED, the same, to where OPEN came from. From here on the stream may send. */
#define RBI_STREAM_DO_SEND_OPENED 0x0080U
/** REFUSED with actions.id, attempt, code (0: it took too long), forgotten. */
#define RBI_STREAM_DO_SEND_REFUSED 0x0100U
/** ACK of what is settled, then CLOSE with actions.reason, now, tx.pos, rx.settled, and what the
 *  local endpoint may have seen: rx.put, unless you know better. */
#define RBI_STREAM_DO_SEND_CLOSE 0x0200U
/** The local link ends, or is not to be made: actions.reason; of its lane [tx.acked, actions.seen)
 *  may have been seen, what lies behind has not. */
#define RBI_STREAM_DO_END_LOCAL 0x0400U
/** Opener: the local endpoint is refused its link: actions.code, or 0: it took too long. */
#define RBI_STREAM_DO_REFUSE_LOCAL 0x0800U
/** The stream is CLOSED: forget it, and its half of the local link if that is still there. */
#define RBI_STREAM_DO_FORGET 0x1000U
/** The OPEN is not for this stream: feed it to the next of the pair, else make one of it. */
#define RBI_STREAM_DO_NEW 0x2000U

struct rbi_stream_actions {
    unsigned todo; /* RBI_STREAM_DO_* */
    struct rbi_stream_id id;
    uint32_t attempt;
    bool forgotten;
    bool now;
    enum rbi_reason reason;
    int32_t code;
    uint64_t seen;
};

/** A local endpoint asked for a link to one of @p peer_host. Feed WAY next. */
void rbi_stream_init_opener(struct rbi_stream *stream,
                            const struct rbi_stream_id *id,
                            uint64_t self_host,
                            uint64_t peer_host,
                            const struct rbi_stream_terms *terms,
                            uint64_t now_ns);
/**
 * An OPEN came of a stream that is not known, and its pair has none either, or DO_NEW was said.
 * @param open  its input
 * @retval 0        OPENING: have the local link made, feed LINKED or FAILED
 * @retval -EPROTO  it goes on with what was never begun here: answer REFUSED, forgotten
 */
RBI_MUST_CHECK int rbi_stream_init_acceptor(struct rbi_stream *stream,
                                            const struct rbi_stream_input *open,
                                            uint64_t self_host,
                                            uint64_t peer_host,
                                            const struct rbi_stream_terms *terms,
                                            uint64_t now_ns);
/** Feeds one input. Every (state, input) pair is defined; what makes no sense is ignored. */
void rbi_stream_step(struct rbi_stream *stream,
                     const struct rbi_stream_input *input,
                     uint64_t now_ns,
                     struct rbi_stream_actions *out);
/** When the next TICK is due, or UINT64_MAX. */
uint64_t rbi_stream_deadline_ns(const struct rbi_stream *stream);

/** Records may be sent: also those of a local endpoint that has ended. */
static inline bool rbi_stream_sends(const struct rbi_stream *stream)
{
    return stream->state == RBI_STREAM_OPEN && !stream->close_sent && !stream->remote_ended;
}
/** DATA and PIECE are to be taken: rbi_stream_rx_data(), rbi_stream_rx_piece(). */
static inline bool rbi_stream_takes(const struct rbi_stream *stream)
{
    return stream->state == RBI_STREAM_OPEN && !stream->remote_ended;
}

/**
 * And what they bring, as well as what waits still, is dropped and rbi_stream_rx_free() at once: it
 * is for nobody. Put and settled stay where they are, so its sender has it back; but it has
 * to be granted, or a side that ends as well never came to its own CLOSE.
 */
static inline bool rbi_stream_discards(const struct rbi_stream *stream)
{
    return stream->local_ended;
}

#endif
