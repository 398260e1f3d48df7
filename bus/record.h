/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_RECORD_H
#define RINGBUS_BUS_RECORD_H
/*
 * bus/record.h - what the records of a lane mean. Pure.
 *
 * A record's commit word holds the body size and a 32-bit meta:
 *
 *   meta bits  0..7   kind, 1..255 (enum rbi_record_kind)
 *        bits  8..15  flags (RBI_RECORD_*)
 *        bits 16..23  words of extension between the tag and the payload, 0..255
 *        bits 24..28  parts of the payload, 0 = one part without a part table
 *        bits 29..30  zero when sent, ignored when received
 *        bit  31      zero when sent; set later: the sender has taken it back (shm/lane.h)
 *
 *   body = tag (8 bytes) | extension (8 x words) | payload, or a reference
 *
 * The tag is the key of a message, or the correlation of a request, reply or
 * PING. The extension holds, in this order and each only if its flag is set:
 * key (requests with a key), part sizes (parts > 1: one word for each part), attributes
 * (bus/record_attributes.h), and whatever later versions append; a reader skips words that it
 * does not know.
 * With RBI_RECORD_REF the payload is struct rbi_record_ref.
 *
 * Everything here is read from a peer's memory: untrusted, loaded once, checked by
 * rbi_record_parse() and used only as it gives it out.
 */
#include "bus/pidf.h"
#include "shm/base.h"

/** The one table of kinds; values are part of the protocol between processes and hosts. */
enum rbi_record_kind {
    RBI_RECORD_READY = 1,
    RBI_RECORD_READY_ACK = 2,
    RBI_RECORD_PING = 3,
    RBI_RECORD_PONG = 4,
    RBI_RECORD_DISCONNECT = 5,
    RBI_RECORD_REQ = 6,
    RBI_RECORD_REP = 7,
    RBI_RECORD_ONEWAY = 8,
    RBI_RECORD_ROUTED = 9,   /* envelope between brokers */
    RBI_RECORD_ERROR = 10,   /* answer to a REQ: the handler or the receiver refused */
    RBI_RECORD_CREDIT = 11,  /* bridge only */
    RBI_RECORD_DRAIN = 12,   /* leaving in order: begun, acknowledged, taken back */
    RBI_RECORD_REFUSED = 13, /* one-way messages were dropped where they came */
    /* The bridge, in lanes of relayed links towards endpoints of its host: the way is cut, or is
     * there again. The only record that is not the peer's. */
    RBI_RECORD_HOLD = 14,
    RBI_RECORD_GAP = 15, /* on relayed links: what an earlier one has lost for good */
};

#define RBI_RECORD_KEY        0x01U /* the message has a key */
#define RBI_RECORD_REF        0x02U /* payload lies in the sender's pool */
#define RBI_RECORD_BROADCAST  0x04U /* sent to every instance */
#define RBI_RECORD_IDEMPOTENT 0x08U
#define RBI_RECORD_ANY        0x10U /* addressed to any instance, not to this one */
#define RBI_RECORD_AGAIN      0x20U /* a receiver that died may have handled it */
#define RBI_RECORD_ATTRIBUTES 0x40U /* the extension holds attributes */

#define RBI_RECORD_TAG       8U
#define RBI_RECORD_PARTS_MAX 16U

/** Payload of a record with RBI_RECORD_REF. */
struct rbi_record_ref {
    uint64_t offset; /* in the sender's pool segment */
    uint64_t size;   /* bytes of payload */
    uint64_t slot;   /* to be put into the return ring, exactly once */
};
_Static_assert(sizeof(struct rbi_record_ref) == 24, "record layout");

static inline uint32_t
rbi_record_meta(enum rbi_record_kind kind, unsigned flags, unsigned ext_words, unsigned parts)
{
    return (uint32_t)kind | (uint32_t)flags << 8 | (uint32_t)ext_words << 16 |
           (uint32_t)parts << 24;
}

static inline unsigned rbi_record_meta_kind(uint32_t meta)
{
    return meta & 0xffU;
}

/** A record taken apart; every field is a checked copy. */
struct rbi_record {
    unsigned kind;
    unsigned flags;
    uint64_t tag;
    uint64_t key;        /* valid with RBI_RECORD_KEY, whichever place it came from */
    unsigned part_count; /* 1 when there is no part table */
    uint64_t part_sizes[RBI_RECORD_PARTS_MAX]; /* sum = payload size */
    const unsigned char *payload;              /* inline payload; NULL with RBI_RECORD_REF */
    uint64_t payload_size;
    struct rbi_record_ref
        ref; /* with RBI_RECORD_REF: slot and bounds are for the caller to check */
    /* With RBI_RECORD_ATTRIBUTES, else undefined: for rbi_attributes_decode(), not read yet. */
    const unsigned char *attributes;
    unsigned attribute_words;
};

/**
 * Takes a record's body apart. Untrusted input; reads each word once.
 *
 * @param meta  from the commit word
 * @param body  @p size readable bytes, 8-byte aligned
 * @retval 0        @p out is filled
 * @retval -EPROTO  impossible: close the link
 */
RBI_MUST_CHECK int
rbi_record_parse(uint32_t meta, const unsigned char *body, uint64_t size, struct rbi_record *out);

/* ---- control records: bodies behind the tag --------------------------------------------- */

#define RBI_READY_VERSION_MIN 1U
#ifndef RBI_READY_VERSION_MAX
#define RBI_READY_VERSION_MAX 1U
#endif

/** READY and READY_ACK, features: who says it may be stopped in a debugger for any time. */
#define RBI_FEATURE_DEBUG_HOLD UINT64_C(1)
/** And: who says it answers DRAIN. */
#define RBI_FEATURE_DRAIN UINT64_C(2)
/** And: who says it stands for others, and one of its cluster is enough for a broadcast. */
#define RBI_FEATURE_BROKER UINT64_C(256)

/** Why a link was refused or ended; the same values as enum ringbus_reason. */
enum rbi_reason {
    RBI_REASON_NONE = 0,
    RBI_REASON_LEFT = 1,
    RBI_REASON_CRASHED = 2,
    RBI_REASON_SILENT = 3,
    RBI_REASON_BAD_PEER = 4,
    RBI_REASON_REFUSED = 5,
    RBI_REASON_DENIED = 6,
    RBI_REASON_REPLACED = 7,
    RBI_REASON_GIVEN_UP = 8,
    RBI_REASON_UNTARGETED = 9,
    RBI_REASON_NO_RESOURCES = 10,
    RBI_REASON_UNREACHABLE = 11,
};
#define RBI_REASON_LAST RBI_REASON_UNREACHABLE

/** READY: a requester opens its use of the link. Sent again after a change of interval. */
struct rbi_ready {
    uint16_t version_min;
    uint16_t version_max;
    uint32_t ping_interval_ms;
    uint32_t dead_after_ms;
    uint32_t incarnation;
    uint64_t features;
    struct rbi_pidf self; /* the receiver checks it against what the daemon said */
    char path[RBI_PATH_MAX + 1];
    /* Number of the writer's end of this link, which it never uses again in its life: FIRST and GAP
     * name the link so. 0: an older writer. */
    uint64_t link_life;
};

/** READY_ACK: accepted (reason NONE) or refused. */
struct rbi_ready_ack {
    uint16_t version; /* chosen: the newest that both know */
    uint16_t reserved;
    uint32_t reason; /* enum rbi_reason */
    uint64_t features;
    uint64_t link_life; /* as in READY */
};

/** DISCONNECT: terminal for this use of the link. */
struct rbi_disconnect {
    uint32_t reason;   /* enum rbi_reason */
    uint32_t draining; /* 1: what was sent before will still be read */
};

/**
 * DRAIN. An instance that leaves says BEGIN; whoever reads it dispatches nothing to it any more
 * and answers ACK, behind all that it has dispatched: the lane is in order, so that an ACK
 * that was read has nothing of the kind behind it. The tag is the number of the drain: the ACK
 * of one that was taken back does not stand for the next.
 */
enum rbi_drain_word { RBI_DRAIN_BEGIN = 1, RBI_DRAIN_ACK = 2, RBI_DRAIN_END = 3 };
struct rbi_drain_body {
    uint32_t word; /* enum rbi_drain_word; others are ignored */
    uint32_t reserved;
};

/**
 * REFUSED: so many one-way messages of the reader's were dropped by the writer since it last said
 * so. Older readers skip it.
 */
struct rbi_refused_body {
    int32_t error;   /* enum ringbus_error; of later versions: ignored */
    uint32_t method; /* of the last of them */
    uint64_t count;
};

/** HOLD. 64 bytes of a lane, as any record of this size; a lane has it only from the bridge. */
struct rbi_hold_body {
    uint32_t on; /* 1: the way to the peer's host is cut; 0: it is there, nothing was lost */
    uint32_t reserved;
};

/**
 * GAP: of what the writer had sent to the reader, in the same lives, over a link that ended, this
 * was given back to its program and comes no more. Positions are those of the writer's lane.
 */
struct rbi_gap_body {
    uint64_t link_life; /* of that link: as READY or READY_ACK named it */
    uint64_t from;      /* of the first */
    uint64_t to;        /* behind the last */
    uint64_t count;     /* one-way messages */
    uint64_t maybe_seen;
};

/* Each encoder fills the body behind the tag and returns its size; @p body has
 * RBI_CONTROL_BODY_MAX bytes. Fields are appended in later versions, never moved:
 * a decoder takes what it knows and fills the rest with zero. */
#define RBI_CONTROL_BODY_MAX 512U
uint64_t rbi_ready_encode(const struct rbi_ready *ready, unsigned char *body);
RBI_MUST_CHECK int
rbi_ready_decode(const unsigned char *body, uint64_t size, struct rbi_ready *out); /* 0; -EPROTO */
uint64_t rbi_ready_ack_encode(const struct rbi_ready_ack *ack, unsigned char *body);
RBI_MUST_CHECK int
rbi_ready_ack_decode(const unsigned char *body, uint64_t size, struct rbi_ready_ack *out);
uint64_t rbi_disconnect_encode(const struct rbi_disconnect *bye, unsigned char *body);
RBI_MUST_CHECK int
rbi_disconnect_decode(const unsigned char *body, uint64_t size, struct rbi_disconnect *out);
uint64_t rbi_drain_encode(const struct rbi_drain_body *drain, unsigned char *body);
RBI_MUST_CHECK int
rbi_drain_decode(const unsigned char *body, uint64_t size, struct rbi_drain_body *out);
uint64_t rbi_refused_encode(const struct rbi_refused_body *refused, unsigned char *body);
RBI_MUST_CHECK int
rbi_refused_decode(const unsigned char *body, uint64_t size, struct rbi_refused_body *out);
uint64_t rbi_hold_encode(const struct rbi_hold_body *hold, unsigned char *body);
RBI_MUST_CHECK int
rbi_hold_decode(const unsigned char *body, uint64_t size, struct rbi_hold_body *out);
uint64_t rbi_gap_encode(const struct rbi_gap_body *gap, unsigned char *body);
/** -EPROTO also for what no writer means: nothing in it, or more maybe seen than there is. */
RBI_MUST_CHECK int
rbi_gap_decode(const unsigned char *body, uint64_t size, struct rbi_gap_body *out);

#endif
