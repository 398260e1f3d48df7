/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_RECORD_FOLLOW_H
#define RINGBUS_BUS_RECORD_FOLLOW_H
/*
 * bus/record_follow.h - messages that are followed from bridge to bridge, and what bridges keep to
 * know their answers again. Pure.
 *
 * A message is followed when its attributes say so and name a trace (bus/record_attributes.h). An
 * answer has no attributes: it is known by the correlation of its request, which passed the same
 * stream the other way.
 */
#include "shm/base.h"

/** What happened to it at a host. Values are those of HOP, in frames and to tools. */
enum rbi_hop {
    RBI_HOP_TAKEN = 1,   /* out of the lane of a local endpoint, and handed on */
    RBI_HOP_FORWARD = 2, /* by a host in between */
    RBI_HOP_PUT = 3,     /* into the lane of a local endpoint */
};

/** As its sender gave it: struct ringbus_message_options, trace_id. */
struct rbi_trace_id {
    unsigned char bytes[16];
};

/** Bytes of a record that decide whether it is followed: the longest tag, extension, reference. */
#define RBI_FOLLOW_HEAD_MAX 2112U

/** What a record says of itself. */
struct rbi_followed {
    bool marked;          /* follow, with a trace */
    bool answer;          /* of a request */
    uint64_t correlation; /* of request and answer; a one-way message has none */
    bool correlated;
    struct rbi_trace_id trace; /* of a marked one */
    uint64_t sent_ns;          /* the same; 0: unsaid */
};

/**
 * Untrusted; reads each word once.
 * @param meta   from the commit word, or the frame
 * @param body   the record's beginning, 8-byte aligned: @p there bytes of @p size. With
 *               RBI_FOLLOW_HEAD_MAX there is always enough
 * @return whether it may be followed; false: of another kind, or it cannot be parsed
 */
bool rbi_followed_read(uint32_t meta,
                       const unsigned char *body,
                       uint64_t there,
                       uint64_t size,
                       struct rbi_followed *out);

#define RBI_FOLLOW_SLOTS 4U
/** Who is not answered by then is not followed back. */
#define RBI_FOLLOW_NS (UINT64_C(60) * 1000000000)

/** Requests of one stream whose answers are to be followed. Zero-initialise. */
struct rbi_follow_memory {
    struct rbi_follow_slot {
        uint64_t correlation;
        uint64_t sent_ns; /* of the request, by the clock of this host */
        uint64_t until_ns;
        struct rbi_trace_id trace;
        uint8_t way;
        bool used;
    } slots[RBI_FOLLOW_SLOTS];
    uint8_t next;
    uint8_t count; /* used ones: 0, there is nothing to look for */
};

/** What is to be told of a record that passes. */
struct rbi_follow_news {
    struct rbi_trace_id trace;
    uint64_t age_ns; /* since the message, or the request of an answer, was sent */
    bool reply;
};

/**
 * A record passes, this way or the other of its stream.
 * @param way  0 or 1; an answer comes the other way than its request
 * @return whether it is followed: @p out is filled
 */
bool rbi_follow_pass(struct rbi_follow_memory *memory,
                     unsigned way,
                     const struct rbi_followed *record,
                     uint64_t now_ns,
                     struct rbi_follow_news *out);

#endif
