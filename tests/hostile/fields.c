/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/fields.h"

#include "hostile/peer.h"

/* ---- the table --------------------------------------------------------------------------- */

/* X(member, effect), in the order of the structure. */
#define HEADER(X)                                                                                  \
    X(segment.magic, FIELD_EXACT)                                                                  \
    X(segment.version, FIELD_EXACT)                                                                \
    X(segment.kind, FIELD_EXACT)                                                                   \
    X(segment.fingerprint, FIELD_EXACT)                                                            \
    X(segment.size_bytes, FIELD_EXACT)                                                             \
    X(segment.reserved, FIELD_FREE)

#define SIDE(X)                                                                                    \
    HEADER(X)                                                                                      \
    X(lane_offset, FIELD_SHAPE)                                                                    \
    X(lane_capacity, FIELD_SHAPE)                                                                  \
    X(returns_offset, FIELD_SHAPE)                                                                 \
    X(returns_capacity, FIELD_SHAPE)                                                               \
    X(reserved0, FIELD_FREE)                                                                       \
    X(read_pos, FIELD_READ_POS)                                                                    \
    X(reserved1, FIELD_FREE)                                                                       \
    X(returns_pos, FIELD_RETURNS_POS)                                                              \
    X(reserved2, FIELD_FREE)                                                                       \
    X(want_pos, FIELD_FREE)                                                                        \
    X(reserved3, FIELD_FREE)                                                                       \
    X(written_hint, FIELD_FREE)                                                                    \
    X(reserved4, FIELD_FREE)                                                                       \
    X(begun_pos, FIELD_FREE)                                                                       \
    X(reserved5, FIELD_FREE)

#define PAGE(X)                                                                                    \
    HEADER(X)                                                                                      \
    X(flags, FIELD_FREE)                                                                           \
    X(reserved0, FIELD_FREE)                                                                       \
    X(sleep_epoch, FIELD_FREE)                                                                     \
    X(reserved1, FIELD_FREE)                                                                       \
    X(cluster, FIELD_FREE)                                                                         \
    X(instance, FIELD_FREE)                                                                        \
    X(incarnation, FIELD_FREE)                                                                     \
    X(state, FIELD_FREE)                                                                           \
    X(load_depth, FIELD_FREE)                                                                      \
    X(load_ewma_ns, FIELD_FREE)                                                                    \
    X(poll_tick_ms, FIELD_FREE)                                                                    \
    X(core, FIELD_FREE)                                                                            \
    X(load_at_ns, FIELD_FREE)                                                                      \
    X(load_report, FIELD_FREE)                                                                     \
    X(reserved2, FIELD_FREE)                                                                       \
    X(counters, FIELD_FREE)                                                                        \
    X(reserved3, FIELD_FREE)

#define POOL(X)                                                                                    \
    HEADER(X)                                                                                      \
    X(class_count, FIELD_FREE)                                                                     \
    X(reserved0, FIELD_FREE)                                                                       \
    X(classes, FIELD_FREE)

/* Without holes every byte is some member's, so the sum tells that one is missing. */
#define SIZE_IN_SIDE(member, effect) +sizeof(((struct rbi_side *)0)->member)
#define SIZE_IN_PAGE(member, effect) +sizeof(((struct rbi_page *)0)->member)
#define SIZE_IN_POOL(member, effect) +sizeof(((struct rbi_pool_head *)0)->member)
_Static_assert(0 SIDE(SIZE_IN_SIDE) == sizeof(struct rbi_side),
               "a member of struct rbi_side is missing above: say what a wrong one does");
_Static_assert(0 PAGE(SIZE_IN_PAGE) == sizeof(struct rbi_page),
               "a member of struct rbi_page is missing above: say what a wrong one does");
_Static_assert(0 POOL(SIZE_IN_POOL) == sizeof(struct rbi_pool_head),
               "a member of struct rbi_pool_head is missing above: say what a wrong one does");

#define ENTRY(text, structure, kind, member, what)                                                 \
    {.name = text #member,                                                                         \
     .segment = (kind),                                                                            \
     .effect = (what),                                                                             \
     .offset = offsetof(structure, member),                                                        \
     .bytes = sizeof(((structure *)0)->member),                                                    \
     .width = sizeof(((structure *)0)->member) < 8 ? 4 : 8},
#define IN_SIDE(member, what) ENTRY("side.", struct rbi_side, RBI_SEGMENT_SIDE, member, what)
#define IN_PAGE(member, what) ENTRY("page.", struct rbi_page, RBI_SEGMENT_PAGE, member, what)
#define IN_POOL(member, what) ENTRY("pool.", struct rbi_pool_head, RBI_SEGMENT_POOL, member, what)

const struct field fields[] = {SIDE(IN_SIDE) PAGE(IN_PAGE) POOL(IN_POOL)};
const unsigned fields_count = RBI_ARRAY_SIZE(fields);

/* ---- words ------------------------------------------------------------------------------- */

uint64_t field_get(const void *segment, const struct field *field)
{
    const volatile unsigned char *at = (const volatile unsigned char *)segment + field->offset;
    return field->width == 4 ? *(const volatile uint32_t *)(const volatile void *)at
                             : *(const volatile uint64_t *)(const volatile void *)at;
}

void field_set(void *segment, const struct field *field, uint64_t value)
{
    volatile unsigned char *at = (volatile unsigned char *)segment + field->offset;
    for (uint32_t i = 0; i < field->bytes; i += field->width) {
        if (field->width == 4) {
            *(volatile uint32_t *)(volatile void *)(at + i) = (uint32_t)value;
        } else {
            *(volatile uint64_t *)(volatile void *)(at + i) = value;
        }
    }
}

/* ---- values ------------------------------------------------------------------------------ */

struct list {
    uint64_t *values;
    unsigned count;
    uint64_t mask; /* of the field's width */
};

static void add(struct list *list, uint64_t value)
{
    const uint64_t cut = value & list->mask;
    for (unsigned i = 0; i < list->count; i++) {
        if (list->values[i] == cut) {
            return;
        }
    }
    RBI_ASSERT(list->count < FIELD_VALUES_MAX);
    list->values[list->count++] = cut;
}

unsigned field_values(const struct field *field, uint64_t right, bool full, uint64_t *values)
{
    static const uint64_t any[] = {0,
                                   1,
                                   7,
                                   8,
                                   63,
                                   64,
                                   65,
                                   PEER_RETURNS,
                                   PEER_RETURNS + 1,
                                   RBI_PAGE,
                                   PEER_LANE_CAPACITY - 1,
                                   PEER_LANE_CAPACITY,
                                   PEER_LANE_CAPACITY + 1,
                                   PEER_SIDE_BYTES,
                                   sizeof(struct rbi_side),
                                   UINT64_C(1) << 31,
                                   UINT32_MAX,
                                   UINT64_C(1) << 32,
                                   INT64_MAX,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX - RBI_PAGE + 1,
                                   UINT64_MAX - 63,
                                   UINT64_MAX - 1,
                                   UINT64_MAX,
                                   RBI_SEGMENT_MAGIC};
    struct list list = {
        .values = values, .count = 0, .mask = field->width == 4 ? UINT32_MAX : UINT64_MAX};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(any); i++) {
        add(&list, any[i]);
    }
    add(&list, right);
    add(&list, right - 1);
    add(&list, right + 1);
    add(&list, right + RBI_LINE);
    add(&list, right - RBI_LINE);
    add(&list, 2 * right);
    add(&list, ~right);
    add(&list, 0 - right); /* the sum wraps to 0 */
    add(&list, right ^ UINT64_C(1) << 63);
    for (unsigned bit = 0; full && bit < 64; bit++) {
        add(&list, UINT64_C(1) << bit);
        add(&list, (UINT64_C(1) << bit) - 1);
        add(&list, right + (UINT64_C(1) << bit));
    }
    return list.count;
}

bool field_shape_possible(const struct rbi_side *side, uint64_t size)
{
    const uint64_t lane = side->lane_capacity;
    const uint64_t returns = side->returns_capacity;
    const bool lane_fits = lane >= RBI_LANE_CAPACITY_MIN && lane <= RBI_LANE_CAPACITY_MAX &&
                           rbi_is_pow2(lane) && lane < size && side->lane_offset == size - lane &&
                           side->lane_offset % RBI_PAGE == 0;
    /* Entries lie between the head and the lane. */
    return lane_fits && returns >= RBI_RETURNS_MIN && returns <= RBI_RETURNS_MAX &&
           rbi_is_pow2(returns) && side->returns_offset % RBI_LINE == 0 &&
           side->returns_offset >= sizeof(struct rbi_side) &&
           side->returns_offset <= side->lane_offset &&
           returns * 8 <= side->lane_offset - side->returns_offset;
}
