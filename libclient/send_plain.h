/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_SEND_PLAIN_H
#define RINGBUS_LIBCLIENT_SEND_PLAIN_H
/*
 * libclient/send_plain.h - the way of most messages: one piece of payload that fits the lane,
 * to one peer, without extension. One reserve, one copy, one store.
 */
#include "libclient/internal.h"

#include <string.h>

/** Payload in the line of the commit word. */
#define RBI_FIRST_PAYLOAD (RBI_LINE - RBI_LANE_HEADER - RBI_RECORD_TAG)

/** The end of a link to exactly this address, if one of the last sends went there too. */
static inline struct rbi_end *
rbi_end_recent(const struct ringbus *bus, uint64_t cluster, int32_t instance)
{
    struct rbi_end *end = bus->recent[rbi_recent_at(cluster, instance)];
    return RBI_LIKELY(end != NULL && end->peer.instance == instance && end->peer.cluster == cluster)
               ? end
               : NULL;
}

/**
 * Writes tag and payload. The receiver polls the first line: it is written last, at once
 * with the commit word, or that line would go there and back once more in between.
 */
static inline void
rbi_write_plain(unsigned char *body, uint64_t tag, const unsigned char *data, uint64_t size)
{
    if (RBI_LIKELY(size >= RBI_FIRST_PAYLOAD)) {
        if (size > RBI_FIRST_PAYLOAD) {
            memcpy(body + RBI_RECORD_TAG + RBI_FIRST_PAYLOAD, data + RBI_FIRST_PAYLOAD,
                   size - RBI_FIRST_PAYLOAD);
        }
        memcpy(body + RBI_RECORD_TAG, data, RBI_FIRST_PAYLOAD);
    } else if (size > 0) {
        memcpy(body + RBI_RECORD_TAG, data, size);
    }
    memcpy(body, &tag, sizeof tag);
}

/** Room for a message of @p bytes with its tag. 0; a public error (noted). */
static inline int
rbi_send_reserve(struct ringbus *bus, struct rbi_end *end, uint64_t bytes, unsigned char **body)
{
    const int r = rbi_lane_reserve(&end->tx, bytes, RBI_LANE_CONTROL_ROOM, body);
    if (RBI_LIKELY(r == RBI_LANE_OK)) {
        return 0;
    }
    *body = rbi_send_no_room(bus, end, bytes, r);
    if (*body != NULL) {
        return 0;
    }
    return bus->error.code < 0 ? bus->error.code : RINGBUS_E_FULL; /* surely not 0 */
}

/** @retval 1 sent; a public error (noted). The end is usable and not hindered; the size fits. */
static inline int rbi_send_plain(struct ringbus *bus,
                                 struct rbi_end *end,
                                 uint32_t meta,
                                 uint64_t tag,
                                 const void *data,
                                 uint64_t size,
                                 unsigned flags)
{
    unsigned char *body = NULL;
    const uint64_t bytes = RBI_RECORD_TAG + size;
    const int r = rbi_send_reserve(bus, end, bytes, &body);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    rbi_write_plain(body, tag, data, size);
    rbi_send_commit(bus, end, bytes, meta, flags);
    rbi_count(bus, RBI_COUNTER_sent, 1);
    rbi_count(bus, RBI_COUNTER_sent_bytes, size);
    return 1;
}

#endif
