/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_FRAME_H
#define RINGBUS_BUS_FRAME_H
/*
 * bus/frame.h - what bridges of two hosts say to each other: bytes in, structures out. Pure; any
 * thread; nothing is allocated. docs/internals/wire.md has the same byte by byte, and is made from
 * the lists below.
 *
 *   frame   header, 16 bytes | body, `size` bytes
 *   header  0 size u32 | 4 type u8 | 5 flags u8 | 6 zero u16 | 8 handle u32 | 12 mark u32
 *
 * All numbers are little-endian, nothing is aligned or padded. A type that is not known is
 * skipped by its size; what follows the known fields of a body is ignored, so later versions
 * append. Sizes, counts, texts and ranges are checked here; what a frame means where it comes is
 * checked by whoever acts on it.
 *
 * handle  the receiver's number of a stream (bus/stream.h): what it said in OPEN or OPENED on this
 *         very connection. Never used twice on a connection, so a frame that comes late
 *         finds nobody. 0 in frames of the host.
 * mark    of DATA and PIECE: position of the record in its sender's lane / 64, the low 32 bits.
 *
 * Frames with an envelope are from end host to end host, by way of others; a host in between hands
 * them on with rbi_frame_forward(), and all others by putting its own number into the header
 * with rbi_frame_set_handle(). It reads nothing else.
 *
 * DATA and PIECE are what there is a lot of: they are taken apart by functions of their own, and
 * their bytes stay where they were received.
 */
#include "bus/bridge_config.h"
#include "bus/record_follow.h"
#include "bus/remote.h"

#define RBI_FRAME_MAGIC    0x31544252U /* "RBT1" */
#define RBI_FRAME_VERSION  1U
#define RBI_FRAME_HEADER   16U
#define RBI_FRAME_SIZE_MAX (65536U + 64U) /* of a body */
#define RBI_FRAME_MAX      (RBI_FRAME_HEADER + RBI_FRAME_SIZE_MAX)

/** Bytes before those of the record in DATA and PIECE, header included. */
#define RBI_FRAME_DATA_HEAD  (RBI_FRAME_HEADER + 8U)
#define RBI_FRAME_PIECE_HEAD (RBI_FRAME_HEADER + 8U)
/** Most bytes of a record in one frame. What is longer goes on in PIECEs. */
#define RBI_FRAME_PART_MAX 65536U
/** Of every frame but DATA, PIECE and EDGES. */
#define RBI_FRAME_CONTROL_MAX 2048U

#define RBI_FRAME_HOPS_MAX  8U
#define RBI_FRAME_EDGES_MAX RBI_BRIDGE_PEERS_MAX
/** Largest body of a record: that of the largest lane. */
#define RBI_FRAME_BODY_MAX (64U << 20)

/* X(NAME, name, value, what): values are never reused. */
#define RBI_FRAME_TYPES(X)                                                                         \
    X(HELLO, hello, 1, "First, both ways.")                                                        \
    X(PING, ping, 2, "Of the hosts; answered at once.")                                            \
    X(PONG, pong, 3, "Says what PING said.")                                                       \
    X(BYE, bye, 4, "The connection ends in order.")                                                \
    X(EDGES, edges, 5, "Flooded: replaces all edges of its origin.")                               \
    X(OPEN, open, 6, "A stream begins, or goes on over another connection.")                       \
    X(OPENED, opened, 7, "Answers OPEN; its handle is the opener's.")                              \
    X(REFUSED, refused, 8, "Answers OPEN.")                                                        \
    X(DATA, data, 9, "A record, or its beginning.")                                                \
    X(PIECE, piece, 10, "More of the record that DATA began, in order.")                           \
    X(ACK, ack, 11, "What is done with, and how much more may come.")                              \
    X(CLOSE, close, 12, "The stream ends behind a position, or its way does.")                     \
    X(DIR_ASK, dir_ask, 13, "For the instances that a host exports.")                              \
    X(DIR_ITEM, dir_item, 14, "One of them (bus/remote.h).")                                       \
    X(HOP, hop, 15, "Where a message that is followed has come by.")

enum rbi_frame_type {
#define RBI_FRAME_ENUM(NAME, name, value, what) RBI_FRAME_##NAME = (value),
    RBI_FRAME_TYPES(RBI_FRAME_ENUM)
#undef RBI_FRAME_ENUM
};

/* Flags, each of its types only; others are zero when sent and ignored when received. */
#define RBI_FRAME_F_MORE      0x01U /* DATA: PIECEs of its body, or of its payload, follow */
#define RBI_FRAME_F_LAST      0x02U /* PIECE: the record is whole with it */
#define RBI_FRAME_F_ASK       0x04U /* DATA, PIECE: ACK soon, the sender's lane is filling */
#define RBI_FRAME_F_AGAIN     0x08U /* OPEN: it was OPENED before; who does not know it refuses */
#define RBI_FRAME_F_FORGOTTEN 0x10U /* REFUSED, CLOSE: the sender knows nothing of it any more */
#define RBI_FRAME_F_NOW       0x20U /* CLOSE: at once, whatever is still to be read */
#define RBI_FRAME_F_CUT       0x40U /* CLOSE, by a host in between: it leads nowhere any more */
#define RBI_FRAME_F_FOLLOW    0x80U /* DATA: every host on the way tells of it by HOP */

/** Header of a frame, decoded. */
struct rbi_frame_header {
    uint32_t size; /* of the body, 0..RBI_FRAME_SIZE_MAX */
    uint8_t type;  /* enum rbi_frame_type, or one that this version does not know */
    uint8_t flags;
    uint32_t handle;
    uint32_t mark;
};

/** Name of a host, terminated. */
struct rbi_frame_host {
    uint8_t length; /* 1..RBI_HOST_NAME_MAX */
    char bytes[RBI_HOST_NAME_MAX + 1];
};
/** Text, terminated, without NUL inside. */
struct rbi_frame_text {
    uint8_t length;
    char bytes[256];
};
/** Path of an instance, terminated; empty: anonymous. */
struct rbi_frame_path {
    uint8_t length;
    char bytes[RBI_PATH_MAX + 1];
};
/** An endpoint. The ids of its pidf are those of its path: that is checked. */
struct rbi_frame_endpoint {
    struct rbi_pidf pidf;
    struct rbi_frame_path path;
};
/** From which end host to which, and by whom it came. */
struct rbi_frame_envelope {
    uint64_t from; /* host ids, not 0 */
    uint64_t to;
    uint8_t hops; /* that it may still take, 0..RBI_FRAME_HOPS_MAX; the origin sends MAX */
    uint8_t visited_count;
    uint64_t visited[RBI_FRAME_HOPS_MAX]; /* hosts in between, in order */
};
/**
 * Name of a stream: who opened it, counted. The later of two streams of one bridge is known by its
 * number, whatever way an old OPEN took.
 */
struct rbi_stream_id {
    uint64_t life;   /* incarnation of the bridge that opened it, not 0 */
    uint64_t number; /* its count of streams, from 1 */
};
struct rbi_frame_edge {
    uint64_t to; /* id of name */
    uint32_t cost;
    struct rbi_frame_host name;
};
struct rbi_frame_edge_list {
    uint8_t count; /* 0..RBI_FRAME_EDGES_MAX */
    struct rbi_frame_edge edge[RBI_FRAME_EDGES_MAX];
};

/* Field lists: F(kind, name, meaning). The structures, the codec and the tables of
 * docs/internals/wire.md are made from them. */
#define RBI_FRAME_FIELDS_hello(F)                                                                  \
    F(u32, magic, "`RBT1`")                                                                        \
    F(u16, version_min, "oldest version that is spoken, from 1")                                   \
    F(u16, version_max, "newest, at least the oldest")                                             \
    F(u64, host, "id of the name")                                                                 \
    F(u64, incarnation, "of the bridge: random, another with each start, not 0")                   \
    F(u64, features, "none is defined: 0, ignored")                                                \
    F(host, name, "of the host, as in its certificate")                                            \
    F(text, software, "for people")
#define RBI_FRAME_FIELDS_ping(F)                                                                   \
    F(u64, id, "counts PINGs")                                                                     \
    F(u64, sent_ns, "the sender's clock; means nothing to others")
#define RBI_FRAME_FIELDS_pong(F)                                                                   \
    F(u64, id, "of the PING")                                                                      \
    F(u64, sent_ns, "of the PING")
#define RBI_FRAME_FIELDS_bye(F)                                                                    \
    F(u32, reason, "why (`enum rbi_reason`)")                                                      \
    F(text, text, "for people")
#define RBI_FRAME_FIELDS_edges(F)                                                                  \
    F(u64, origin, "host whose edges these are: id of the name")                                   \
    F(u64, incarnation, "of its bridge, not 0; another one counts anew")                           \
    F(u64, sequence, "grows with each change: not newer than known is dropped")                    \
    F(u8, hops, "that it may still take, 0..8")                                                    \
    F(host, name, "of the origin")                                                                 \
    F(edge_list, list, "all edges from there")
#define RBI_FRAME_FIELDS_open(F)                                                                   \
    F(envelope, envelope, "from the opener")                                                       \
    F(stream, stream, "its name")                                                                  \
    F(u32, handle, "the sender's number of it on this connection, not 0")                          \
    F(u32, attempt, "counts OPENs of this stream, from 1; not newer than known is dropped")        \
    F(u32, opened, "with AGAIN, the attempt that was OPENED first; else 0")                        \
    F(u64, expect, "position of the next record that the sender wants")                            \
    F(u64, begin, "position of the first record that it can still send")                           \
    F(u64, granted, "bytes of DATA and PIECE, headers included, that it takes from now on")        \
    F(u32, uid, "of the requester's user, as its host says")                                       \
    F(endpoint, requester, "on the opener's host")                                                 \
    F(endpoint, server, "on the other; with a path")                                               \
    F(u64, lane, "bytes of the lane that the sender's records come from; 0: unsaid")
#define RBI_FRAME_FIELDS_opened(F)                                                                 \
    F(envelope, envelope, "back to the opener")                                                    \
    F(stream, stream, "of the OPEN")                                                               \
    F(u32, handle, "the sender's number of it on this connection, not 0")                          \
    F(u32, attempt, "of the OPEN; of an older one it is dropped")                                  \
    F(u64, expect, "as in OPEN")                                                                   \
    F(u64, begin, "as in OPEN")                                                                    \
    F(u64, granted, "as in OPEN")                                                                  \
    F(u64, life, "incarnation of the sender's bridge, not 0")                                      \
    F(u64, number, "its count of streams by now: OPENs of its own up to there are older")          \
    F(u64, lane, "as in OPEN")
#define RBI_FRAME_FIELDS_refused(F)                                                                \
    F(envelope, envelope, "back to the opener; from whoever refuses")                              \
    F(stream, stream, "of the OPEN")                                                               \
    F(u32, attempt, "of the OPEN; of an older one it is dropped")                                  \
    F(i32, code, "`enum ringbus_error`")                                                           \
    F(text, text, "for people")
#define RBI_FRAME_FIELDS_data(F)                                                                   \
    F(u32, meta, "of the record (bus/record.h)")                                                   \
    F(u32, size, "of its body in the lane")                                                        \
    F(rest, bytes,                                                                                 \
      "of the body, at most 65,536: all, or with MORE a beginning; all of one by reference")
#define RBI_FRAME_FIELDS_piece(F)                                                                  \
    F(u64, offset, "in the body, or in the payload of a record by reference")                      \
    F(rest, bytes, "1 to 65,536")
#define RBI_FRAME_FIELDS_ack(F)                                                                    \
    F(u64, position, "records before are done with: their sender may forget them")                 \
    F(u64, granted, "bytes of DATA and PIECE since OPEN or OPENED; never less than before")
#define RBI_FRAME_FIELDS_close(F)                                                                  \
    F(u32, reason, "why (`enum rbi_reason`)")                                                      \
    F(u64, position, "behind the last record that was sent")                                       \
    F(u64, settled, "as position in ACK, for the last time")                                       \
    F(u64, seen, "the other's records before may have been seen by whoever has ended")
#define RBI_FRAME_FIELDS_dir_ask(F)                                                                \
    F(envelope, envelope, "to the exporter")                                                       \
    F(u64, incarnation, "of the exporter, as known; 0: none")                                      \
    F(u64, revision, "that is known of it")
#define RBI_FRAME_FIELDS_dir_item(F)                                                               \
    F(envelope, envelope, "to whoever asked")                                                      \
    F(item, item, "one instance, or none: flags only (bus/remote.h)")
#define RBI_FRAME_FIELDS_hop(F)                                                                    \
    F(envelope, envelope, "to the host where the message was sent, or its request")                \
    F(trace, trace, "of the message, as its sender gave it")                                       \
    F(host, host, "that tells it")                                                                 \
    F(u8, what, "`enum rbi_hop`: 1 taken from a lane, 2 handed on, 3 put into a lane")             \
    F(u8, reply, "0: the message itself; 1: its answer, on the way back")                          \
    F(text, next, "the neighbour that it goes to from there; empty with 3")                        \
    F(u64, age_ns, "since the message was sent, as far as that host can say")

/* What the kinds of fields are in memory. Used to make the structures only. */
#define RBI_FRAME_C_u8        uint8_t
#define RBI_FRAME_C_u16       uint16_t
#define RBI_FRAME_C_u32       uint32_t
#define RBI_FRAME_C_i32       int32_t
#define RBI_FRAME_C_u64       uint64_t
#define RBI_FRAME_C_host      struct rbi_frame_host
#define RBI_FRAME_C_text      struct rbi_frame_text
#define RBI_FRAME_C_edge_list struct rbi_frame_edge_list
#define RBI_FRAME_C_envelope  struct rbi_frame_envelope
#define RBI_FRAME_C_stream    struct rbi_stream_id
#define RBI_FRAME_C_endpoint  struct rbi_frame_endpoint
#define RBI_FRAME_C_item      struct rbi_remote_item
#define RBI_FRAME_C_trace     struct rbi_trace_id
#define RBI_FRAME_C_rest      struct rbi_frame_rest

/** Bytes in the receive buffer. Lent: as long as the frame. */
struct rbi_frame_rest {
    const unsigned char *at;
    uint32_t size;
};

#define RBI_FRAME_MEMBER(kind, name, meaning) RBI_FRAME_C_##kind name;
#define RBI_FRAME_STRUCT(NAME, name, value, what)                                                  \
    struct rbi_frame_##name {                                                                      \
        RBI_FRAME_FIELDS_##name(RBI_FRAME_MEMBER)                                                  \
    };
RBI_FRAME_TYPES(RBI_FRAME_STRUCT)
#undef RBI_FRAME_STRUCT
#undef RBI_FRAME_MEMBER

/** Body of one frame: the variant that its type names. */
union rbi_frame_body {
#define RBI_FRAME_UNION(NAME, name, value, what) struct rbi_frame_##name name;
    RBI_FRAME_TYPES(RBI_FRAME_UNION)
#undef RBI_FRAME_UNION
};

/** What is wrong with a frame, for the log: "OPEN: hops out of range". */
struct rbi_frame_fault {
    char text[96];
};

enum rbi_frame_result {
    RBI_FRAME_WHOLE = 0,
    RBI_FRAME_SHORT = 1,   /* not all there yet */
    RBI_FRAME_UNKNOWN = 2, /* a type of a later version: skip it */
    RBI_FRAME_DROPPED = 3, /* not to be handed on: no hop is left, or it has been there */
};

/** "HELLO", or "?". */
const char *rbi_frame_type_name(unsigned type);

/* ---- reading: untrusted input ------------------------------------------------------------- */

/**
 * Whether a whole frame lies at @p bytes: RBI_FRAME_HEADER + header.size bytes. Cost: a few loads.
 * @retval RBI_FRAME_WHOLE  @p out is filled
 * @retval RBI_FRAME_SHORT  more bytes are needed, at most RBI_FRAME_MAX in all. @p out is filled
 *                          if the header is there, else its size is 0
 * @retval -EPROTO          no frame can begin so: end the connection. Said of the first 8 bytes,
 *                          before anything is buffered for it
 */
RBI_MUST_CHECK int rbi_frame_look(const void *bytes, size_t size, struct rbi_frame_header *out);

/**
 * Takes the body of a whole frame apart. Only the variant of its type is written, and nothing on
 * failure. Cost: of the largest (EDGES) a few microseconds.
 * @param body   behind the header, @p header->size bytes
 * @param fault  may be NULL
 * @retval RBI_FRAME_WHOLE; RBI_FRAME_UNKNOWN
 * @retval -EPROTO  too short, or a value out of its range; @p fault names type and field
 */
RBI_MUST_CHECK int rbi_frame_decode(const struct rbi_frame_header *header,
                                    const void *body,
                                    union rbi_frame_body *out,
                                    struct rbi_frame_fault *fault);

/**
 * The same for DATA, PIECE and ACK alone, without a table.
 * @retval 0; -EPROTO
 */
RBI_MUST_CHECK int
rbi_frame_data(const struct rbi_frame_header *header, const void *body, struct rbi_frame_data *out);
RBI_MUST_CHECK int rbi_frame_piece(const struct rbi_frame_header *header,
                                   const void *body,
                                   struct rbi_frame_piece *out);
RBI_MUST_CHECK int
rbi_frame_ack(const struct rbi_frame_header *header, const void *body, struct rbi_frame_ack *out);

/* ---- writing: our own structures ----------------------------------------------------------- */

/**
 * Writes a whole frame. What is out of range is a broken invariant; texts are cut to what fits.
 * @param header  type, flags, handle, mark; size is set
 * @param body    the struct rbi_frame_NAME of its type
 * @param out     RBI_FRAME_CONTROL_MAX bytes; RBI_FRAME_MAX for DATA, PIECE and EDGES
 * @return bytes of the frame
 */
size_t rbi_frame_encode(struct rbi_frame_header *header, const void *body, void *out);

/**
 * Heads of DATA and PIECE, when the bytes of the record are written from where they lie.
 * @param part  bytes of the record that follow the head, at most RBI_FRAME_PART_MAX
 * @param out   RBI_FRAME_DATA_HEAD or RBI_FRAME_PIECE_HEAD bytes
 */
void rbi_frame_data_head(void *out,
                         unsigned flags,
                         uint32_t handle,
                         uint32_t mark,
                         uint32_t meta,
                         uint32_t size,
                         uint32_t part);
void rbi_frame_piece_head(
    void *out, unsigned flags, uint32_t handle, uint32_t mark, uint64_t offset, uint32_t part);

void rbi_frame_text_set(struct rbi_frame_text *text, const char *s);
/** @p name is a valid name of a host. */
void rbi_frame_host_set(struct rbi_frame_host *host, const char *name);
/** @p path is that of an instance, or "". */
void rbi_frame_path_set(struct rbi_frame_path *path, const char *s);

/* ---- handing on ---------------------------------------------------------------------------- */

/** Whether frames of a type have an envelope. */
bool rbi_frame_has_envelope(unsigned type);
/** Reads the envelope alone. @retval 0; -EPROTO */
RBI_MUST_CHECK int rbi_frame_envelope(const struct rbi_frame_header *header,
                                      const void *body,
                                      struct rbi_frame_envelope *out);
/**
 * Hands a frame with an envelope on: one hop less, ourselves among the visited, everything else
 * as it is, also what this version does not know of it.
 * @param self    our host id
 * @param handle  put into the header (OPENED, REFUSED...: the number that the next host knows)
 * @param ours    OPEN, OPENED: our own number on the next connection, put in place of the sender's
 * @param out     RBI_FRAME_CONTROL_MAX bytes
 * @param size    set: bytes of the frame
 * @retval RBI_FRAME_WHOLE; RBI_FRAME_DROPPED; -EPROTO
 */
RBI_MUST_CHECK int rbi_frame_forward(const struct rbi_frame_header *header,
                                     const void *body,
                                     uint64_t self,
                                     uint32_t handle,
                                     uint32_t ours,
                                     void *out,
                                     size_t *size);
/** Puts another handle into the header of a whole frame that is handed on as it is. */
void rbi_frame_set_handle(void *frame, uint32_t handle);

#endif
