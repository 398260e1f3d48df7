/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/record.h"

#include "bus/record_inline.h"
#include "bus/wire_cursor.h"

#include <errno.h>
#include <string.h>

#define WORD 8U

/** Kinds whose extension this version can read; of others only tag and payload are known. */
static bool known_kind(unsigned kind)
{
    return kind >= RBI_RECORD_READY && kind <= RBI_RECORD_GAP;
}

/** Kinds whose tag is a correlation, so that a key needs a word of its own. */
static bool tag_is_correlation(unsigned kind)
{
    return kind == RBI_RECORD_REQ || kind == RBI_RECORD_REP || kind == RBI_RECORD_ERROR ||
           kind == RBI_RECORD_PING || kind == RBI_RECORD_PONG;
}

/**
 * Loads @p count part sizes.
 * @retval 0; -EPROTO  their sum is not @p total
 */
static int
load_parts(const unsigned char *words, unsigned count, uint64_t total, struct rbi_record *out)
{
    uint64_t left = total;
    for (unsigned i = 0; i < count; i++) {
        const uint64_t size = rbi_record_word(words + (size_t)i * WORD);
        if (size > left) {
            return -EPROTO; /* also what would overflow as a sum */
        }
        left -= size;
        out->part_sizes[i] = size;
    }
    return left == 0 ? 0 : -EPROTO;
}

int rbi_record_parse(uint32_t meta,
                     const unsigned char *body,
                     uint64_t size,
                     struct rbi_record *out)
{
    struct rbi_record rec;
    rec.kind = rbi_record_meta_kind(meta);
    rec.flags = meta >> 8 & 0xffU;
    const unsigned ext_words = meta >> 16 & 0xffU;
    unsigned parts = meta >> 24 & 0x1fU;
    bool key_word = (rec.flags & RBI_RECORD_KEY) != 0 && tag_is_correlation(rec.kind);

    if (!known_kind(rec.kind)) {
        parts = 0; /* skipped with the rest of the extension */
        key_word = false;
        rec.flags &= ~RBI_RECORD_ATTRIBUTES;
    }
    if (rec.kind == 0 || parts > RBI_RECORD_PARTS_MAX || size < RBI_RECORD_TAG ||
        (uint64_t)ext_words * WORD > size - RBI_RECORD_TAG) {
        return -EPROTO;
    }
    const unsigned table_words = parts > 1 ? parts : 0;
    const unsigned first_words = (key_word ? 1U : 0U) + table_words;
    const bool attributes = (rec.flags & RBI_RECORD_ATTRIBUTES) != 0;
    if (first_words + (attributes ? 1U : 0U) > ext_words) {
        return -EPROTO;
    }
    const unsigned char *ext = body + RBI_RECORD_TAG;
    const unsigned char *payload = ext + (size_t)ext_words * WORD;
    rec.tag = rbi_record_word(body);
    rec.key = key_word ? rbi_record_word(ext) : rec.tag;
    rec.payload = payload;
    rec.payload_size = size - RBI_RECORD_TAG - (uint64_t)ext_words * WORD;
    rec.ref = (struct rbi_record_ref){0};
    rec.attributes = attributes ? ext + (size_t)first_words * WORD : NULL;
    rec.attribute_words = attributes ? ext_words - first_words : 0;
    if (rec.flags & RBI_RECORD_REF) {
        if (rec.payload_size != sizeof rec.ref) {
            return -EPROTO;
        }
        rec.ref.offset = rbi_record_word(payload);
        rec.ref.size = rbi_record_word(payload + WORD);
        rec.ref.slot = rbi_record_word(payload + 2 * (size_t)WORD);
        rec.payload = NULL;
        rec.payload_size = rec.ref.size;
    }
    memset(rec.part_sizes, 0, sizeof rec.part_sizes);
    rec.part_count = 1;
    rec.part_sizes[0] = rec.payload_size;
    if (table_words != 0) {
        const unsigned char *table = ext + (key_word ? WORD : 0);
        if (load_parts(table, parts, rec.payload_size, &rec) != 0) {
            return -EPROTO;
        }
        rec.part_count = parts;
    }
    *out = rec;
    return 0;
}

/* ---- control records ---------------------------------------------------------------------
 * Bodies are little-endian, as on the bridge. Sizes are those of version 1: a later
 * one appends, and whatever is behind them is ignored here.
 *
 *   READY      0 version_min u16 | 2 version_max u16 | 4 interval u32 | 8 dead_after u32 |
 *              12 incarnation u32 | 16 features u64 | 24 self: cluster u64, instance i32,
 *              incarnation u32 | 40 path length u16, zero u16 | 44 path, 256 bytes |
 *              300 link life u64, which older writers leave out
 *   READY_ACK  0 version u16 | 2 zero u16 | 4 reason u32 | 8 features u64 | 16 link life u64,
 *              which older writers leave out
 *   DISCONNECT 0 reason u32 | 4 draining u32
 *   DRAIN      0 word u32 | 4 zero u32
 *   REFUSED    0 error i32 | 4 method u32 | 8 count u64
 *   HOLD       0 on u32 | 4 zero u32
 *   GAP        0 link life u64 | 8 from u64 | 16 to u64 | 24 count u64 | 32 maybe seen u64
 */
#define READY_BYTES      300U /* of the first version; then the link life */
#define READY_ACK_BYTES  16U
#define LIFE_BYTES       8U
#define DISCONNECT_BYTES 8U
#define DRAIN_BYTES      8U
#define REFUSED_BYTES    16U
#define HOLD_BYTES       8U
#define GAP_BYTES        40U
_Static_assert(READY_BYTES + LIFE_BYTES <= RBI_CONTROL_BODY_MAX - RBI_RECORD_TAG, "room for READY");

/**
 * Takes a private copy of a body: the peer may change it while it is being looked at.
 * Byte by byte through volatile, so that no byte is loaded twice.
 * @retval 0; -EPROTO  shorter than @p size
 */
static int copy_body(const unsigned char *body, uint64_t have, unsigned char *copy, size_t size)
{
    const volatile unsigned char *from = body;
    if (have < size) {
        return -EPROTO;
    }
    for (size_t i = 0; i < size; i++) {
        copy[i] = from[i];
    }
    return 0;
}

/** The link life behind a body of @p at bytes; 0: the writer is older. */
static uint64_t read_life(const unsigned char *body, uint64_t size, size_t at)
{
    unsigned char copy[LIFE_BYTES];
    struct rbi_reader reader;
    uint64_t life = 0;
    if (copy_body(body + at, size - at, copy, sizeof copy) != 0) {
        return 0;
    }
    rbi_reader_init(&reader, copy, sizeof copy);
    return rbi_reader_u64(&reader, &life) == 0 ? life : 0;
}

uint64_t rbi_ready_encode(const struct rbi_ready *ready, unsigned char *body)
{
    const size_t length = strnlen(ready->path, RBI_PATH_MAX);
    struct rbi_writer writer;
    rbi_writer_init(&writer, body, READY_BYTES + LIFE_BYTES);
    rbi_writer_u16(&writer, ready->version_min);
    rbi_writer_u16(&writer, ready->version_max);
    rbi_writer_u32(&writer, ready->ping_interval_ms);
    rbi_writer_u32(&writer, ready->dead_after_ms);
    rbi_writer_u32(&writer, ready->incarnation);
    rbi_writer_u64(&writer, ready->features);
    rbi_writer_u64(&writer, ready->self.cluster);
    rbi_writer_u32(&writer, (uint32_t)ready->self.instance);
    rbi_writer_u32(&writer, ready->self.incarnation);
    rbi_writer_u16(&writer, (uint16_t)length);
    rbi_writer_u16(&writer, 0);
    rbi_writer_bytes(&writer, ready->path, length);
    memset(body + writer.used, 0, READY_BYTES - writer.used);
    writer.used = READY_BYTES;
    rbi_writer_u64(&writer, ready->link_life);
    return writer.used;
}

/** The path behind its length: canonical, or empty. */
static int read_path(struct rbi_reader *reader, char *path)
{
    uint16_t length = 0;
    uint16_t zero = 0;
    const unsigned char *bytes = NULL;
    struct rbi_path_info info;
    int r = rbi_reader_u16(reader, &length);
    r |= rbi_reader_u16(reader, &zero);
    if (r != 0 || length > RBI_PATH_MAX || rbi_reader_bytes(reader, length, &bytes) != 0) {
        return -EPROTO;
    }
    if (length != 0 && rbi_path_parse((const char *)bytes, length, &info) != 0) {
        return -EPROTO;
    }
    memcpy(path, bytes, length);
    path[length] = 0;
    return 0;
}

int rbi_ready_decode(const unsigned char *body, uint64_t size, struct rbi_ready *out)
{
    unsigned char copy[READY_BYTES];
    struct rbi_reader reader;
    struct rbi_ready ready;
    uint32_t instance = 0;
    if (copy_body(body, size, copy, sizeof copy) != 0) {
        return -EPROTO;
    }
    memset(&ready, 0, sizeof ready);
    rbi_reader_init(&reader, copy, sizeof copy);
    int r = rbi_reader_u16(&reader, &ready.version_min);
    r |= rbi_reader_u16(&reader, &ready.version_max);
    r |= rbi_reader_u32(&reader, &ready.ping_interval_ms);
    r |= rbi_reader_u32(&reader, &ready.dead_after_ms);
    r |= rbi_reader_u32(&reader, &ready.incarnation);
    r |= rbi_reader_u64(&reader, &ready.features);
    r |= rbi_reader_u64(&reader, &ready.self.cluster);
    r |= rbi_reader_u32(&reader, &instance);
    r |= rbi_reader_u32(&reader, &ready.self.incarnation);
    if (r != 0 || read_path(&reader, ready.path) != 0 || ready.version_min > ready.version_max) {
        return -EPROTO;
    }
    ready.self.instance = (int32_t)instance;
    ready.link_life = read_life(body, size, READY_BYTES);
    *out = ready;
    return 0;
}

uint64_t rbi_ready_ack_encode(const struct rbi_ready_ack *ack, unsigned char *body)
{
    struct rbi_writer writer;
    rbi_writer_init(&writer, body, READY_ACK_BYTES + LIFE_BYTES);
    rbi_writer_u16(&writer, ack->version);
    rbi_writer_u16(&writer, 0);
    rbi_writer_u32(&writer, ack->reason);
    rbi_writer_u64(&writer, ack->features);
    rbi_writer_u64(&writer, ack->link_life);
    return writer.used;
}

int rbi_ready_ack_decode(const unsigned char *body, uint64_t size, struct rbi_ready_ack *out)
{
    unsigned char copy[READY_ACK_BYTES];
    struct rbi_reader reader;
    struct rbi_ready_ack ack;
    if (copy_body(body, size, copy, sizeof copy) != 0) {
        return -EPROTO;
    }
    rbi_reader_init(&reader, copy, sizeof copy);
    int r = rbi_reader_u16(&reader, &ack.version);
    r |= rbi_reader_u16(&reader, &ack.reserved);
    r |= rbi_reader_u32(&reader, &ack.reason);
    r |= rbi_reader_u64(&reader, &ack.features);
    if (r != 0) {
        return -EPROTO;
    }
    ack.reserved = 0;
    ack.link_life = read_life(body, size, READY_ACK_BYTES);
    *out = ack;
    return 0;
}

uint64_t rbi_disconnect_encode(const struct rbi_disconnect *bye, unsigned char *body)
{
    struct rbi_writer writer;
    rbi_writer_init(&writer, body, DISCONNECT_BYTES);
    rbi_writer_u32(&writer, bye->reason);
    rbi_writer_u32(&writer, bye->draining);
    return writer.used;
}

int rbi_disconnect_decode(const unsigned char *body, uint64_t size, struct rbi_disconnect *out)
{
    unsigned char copy[DISCONNECT_BYTES];
    struct rbi_reader reader;
    struct rbi_disconnect bye;
    if (copy_body(body, size, copy, sizeof copy) != 0) {
        return -EPROTO;
    }
    rbi_reader_init(&reader, copy, sizeof copy);
    int r = rbi_reader_u32(&reader, &bye.reason);
    r |= rbi_reader_u32(&reader, &bye.draining);
    if (r != 0) {
        return -EPROTO;
    }
    *out = bye;
    return 0;
}

uint64_t rbi_drain_encode(const struct rbi_drain_body *drain, unsigned char *body)
{
    struct rbi_writer writer;
    rbi_writer_init(&writer, body, DRAIN_BYTES);
    rbi_writer_u32(&writer, drain->word);
    rbi_writer_u32(&writer, 0);
    return writer.used;
}

int rbi_drain_decode(const unsigned char *body, uint64_t size, struct rbi_drain_body *out)
{
    unsigned char copy[DRAIN_BYTES];
    struct rbi_reader reader;
    struct rbi_drain_body drain = {.word = 0};
    if (copy_body(body, size, copy, sizeof copy) != 0) {
        return -EPROTO;
    }
    rbi_reader_init(&reader, copy, sizeof copy);
    if (rbi_reader_u32(&reader, &drain.word) != 0) {
        return -EPROTO;
    }
    *out = drain;
    return 0;
}

uint64_t rbi_refused_encode(const struct rbi_refused_body *refused, unsigned char *body)
{
    struct rbi_writer writer;
    rbi_writer_init(&writer, body, REFUSED_BYTES);
    rbi_writer_u32(&writer, (uint32_t)refused->error);
    rbi_writer_u32(&writer, refused->method);
    rbi_writer_u64(&writer, refused->count);
    return writer.used;
}

int rbi_refused_decode(const unsigned char *body, uint64_t size, struct rbi_refused_body *out)
{
    unsigned char copy[REFUSED_BYTES];
    struct rbi_reader reader;
    struct rbi_refused_body refused = {.count = 0};
    uint32_t error = 0;
    if (copy_body(body, size, copy, sizeof copy) != 0) {
        return -EPROTO;
    }
    rbi_reader_init(&reader, copy, sizeof copy);
    int r = rbi_reader_u32(&reader, &error);
    r |= rbi_reader_u32(&reader, &refused.method);
    r |= rbi_reader_u64(&reader, &refused.count);
    if (r != 0) {
        return -EPROTO;
    }
    refused.error = (int32_t)error;
    *out = refused;
    return 0;
}

uint64_t rbi_hold_encode(const struct rbi_hold_body *hold, unsigned char *body)
{
    struct rbi_writer writer;
    rbi_writer_init(&writer, body, HOLD_BYTES);
    rbi_writer_u32(&writer, hold->on);
    rbi_writer_u32(&writer, 0);
    return writer.used;
}

int rbi_hold_decode(const unsigned char *body, uint64_t size, struct rbi_hold_body *out)
{
    unsigned char copy[HOLD_BYTES];
    struct rbi_reader reader;
    struct rbi_hold_body hold = {.on = 0};
    if (copy_body(body, size, copy, sizeof copy) != 0) {
        return -EPROTO;
    }
    rbi_reader_init(&reader, copy, sizeof copy);
    if (rbi_reader_u32(&reader, &hold.on) != 0 || hold.on > 1) {
        return -EPROTO;
    }
    *out = hold;
    return 0;
}

uint64_t rbi_gap_encode(const struct rbi_gap_body *gap, unsigned char *body)
{
    struct rbi_writer writer;
    rbi_writer_init(&writer, body, GAP_BYTES);
    rbi_writer_u64(&writer, gap->link_life);
    rbi_writer_u64(&writer, gap->from);
    rbi_writer_u64(&writer, gap->to);
    rbi_writer_u64(&writer, gap->count);
    rbi_writer_u64(&writer, gap->maybe_seen);
    return writer.used;
}

int rbi_gap_decode(const unsigned char *body, uint64_t size, struct rbi_gap_body *out)
{
    unsigned char copy[GAP_BYTES];
    struct rbi_reader reader;
    struct rbi_gap_body gap;
    if (copy_body(body, size, copy, sizeof copy) != 0) {
        return -EPROTO;
    }
    rbi_reader_init(&reader, copy, sizeof copy);
    int r = rbi_reader_u64(&reader, &gap.link_life);
    r |= rbi_reader_u64(&reader, &gap.from);
    r |= rbi_reader_u64(&reader, &gap.to);
    r |= rbi_reader_u64(&reader, &gap.count);
    r |= rbi_reader_u64(&reader, &gap.maybe_seen);
    if (r != 0 || gap.link_life == 0 || gap.from >= gap.to || gap.count == 0 ||
        gap.maybe_seen > gap.count) {
        return -EPROTO;
    }
    *out = gap;
    return 0;
}
