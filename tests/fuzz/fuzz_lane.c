/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a hostile peer: what lies in its lane, the read positions that it
 * publishes, and words that it changes between two of our calls. We must stay
 * inside the mapping (unmapped pages lie on both sides) and keep our invariants.
 */
#include "shm/lane.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPACITY 4096U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Reads the input front to back; zeros behind its end. */
struct input {
    const uint8_t *data;
    size_t left;
};

static uint64_t next_u64(struct input *in)
{
    uint64_t value = 0;
    const size_t size = in->left < sizeof value ? in->left : sizeof value;
    memcpy(&value, in->data, size);
    in->data += size;
    in->left -= size;
    return value;
}

static unsigned next_u8(struct input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->data++;
}

/** A mirrored lane between two pages that nobody may touch. */
static unsigned char *map_lane(void)
{
    static unsigned char *lane;
    if (lane != NULL) {
        return lane;
    }
    const int fd = memfd_create("fuzz-lane", MFD_CLOEXEC);
    RBI_ASSERT(fd >= 0 && ftruncate(fd, CAPACITY) == 0);
    unsigned char *base =
        mmap(NULL, 2U * CAPACITY + 2U * RBI_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RBI_ASSERT(base != MAP_FAILED);
    for (unsigned i = 0; i < 2; i++) {
        RBI_ASSERT(mmap(base + RBI_PAGE + i * CAPACITY, CAPACITY, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    }
    (void)close(fd);
    lane = base + RBI_PAGE;
    return lane;
}

static void check_inside(const unsigned char *base, const unsigned char *body, uint64_t size)
{
    RBI_ASSERT(body >= base + RBI_LANE_HEADER && size <= rbi_lane_body_max(CAPACITY));
    RBI_ASSERT((uint64_t)(body - base) + size <= 2U * CAPACITY);
    for (uint64_t i = 0; i < size; i++) {
        (void)((const volatile unsigned char *)body)[i];
    }
}

static void consume(unsigned char *base, uint64_t start, struct input *in)
{
    rbi_au64 own_read_pos;
    struct rbi_lane_rx rx;
    rbi_lane_rx_init(&rx, base, CAPACITY, &own_read_pos, start);
    memcpy(base, in->data, in->left < CAPACITY ? in->left : CAPACITY);
    while (in->left > 0) {
        struct rbi_lane_record record;
        const int r = rbi_lane_peek(&rx, &record);
        RBI_ASSERT(r == RBI_LANE_OK || r == RBI_LANE_EMPTY || r == -EPROTO);
        if (r == RBI_LANE_OK) {
            check_inside(base, record.body, record.size);
            RBI_ASSERT(record.meta != 0 && record.next - rx.pos <= CAPACITY);
            RBI_ASSERT(record.next % RBI_LINE == 0 && record.next != rx.pos);
            rbi_lane_advance(&rx, &record);
        }
        if (next_u8(in) % 4 == 0) {
            rbi_lane_release(&rx);
        }
        /* The peer changes a word under us. */
        const uint64_t word = next_u64(in);
        const uint64_t at = next_u8(in) % 2 == 0 ? rx.pos & rx.mask : word % CAPACITY;
        memcpy(base + (at & ~UINT64_C(7)), &word, sizeof word);
    }
}

static void walk_unread(const struct rbi_lane_tx *tx, unsigned char *base)
{
    uint64_t pos = rbi_lane_unread_first(tx);
    struct rbi_lane_record record;
    for (unsigned steps = 0; rbi_lane_unread_at(tx, pos, &record) == RBI_LANE_OK; steps++) {
        RBI_ASSERT(steps < CAPACITY / RBI_LINE);
        check_inside(base, record.body, record.size);
        RBI_ASSERT(tx->pos - record.next < tx->pos - pos);
        pos = record.next;
    }
}

static void produce(unsigned char *base, uint64_t start, struct input *in)
{
    rbi_au64 peer_read_pos = start;
    struct rbi_lane_tx tx;
    uint64_t inside[RBI_LANE_INSIDE_WORDS(CAPACITY)] = {0};
    memset(base, 0, CAPACITY);
    rbi_lane_tx_init(&tx, base, CAPACITY, &peer_read_pos, start, inside);
    while (in->left > 0) {
        const unsigned op = next_u8(in);
        const uint64_t value = next_u64(in);
        unsigned char *body = NULL;
        if (op % 4 == 0) {
            /* Mostly near what is possible, sometimes anything. */
            const uint64_t hostile =
                op % 8 == 0 ? value : tx.read_seen + (value % 128 - 1) * (RBI_LINE / 2);
            rbi_store_rlx(&peer_read_pos, hostile);
            continue;
        }
        const uint64_t size = op % 16 == 1 ? value : value % 1024;
        const int r = rbi_lane_reserve(&tx, size, op % 3 == 0 ? RBI_LANE_CONTROL_ROOM : 0, &body);
        RBI_ASSERT(r == RBI_LANE_OK || r == RBI_LANE_FULL || r == -EPROTO || r == -EMSGSIZE);
        if (r == RBI_LANE_OK) {
            check_inside(base, body, size);
            memset(body, (int)(op | 1), size);
            if (op % 5 != 0) {
                rbi_lane_commit(&tx, size - (op % 7 == 0 ? size / 2 : 0), op);
            }
        }
        RBI_ASSERT(rbi_lane_used(&tx) <= CAPACITY - RBI_LINE);
        RBI_ASSERT(tx.zeroed - tx.pos <= CAPACITY && tx.zeroed != tx.pos);
        uint64_t word = 1;
        memcpy(&word, base + (tx.pos & tx.mask), sizeof word);
        RBI_ASSERT(word == 0); /* nothing is there for an honest consumer to see */
        walk_unread(&tx, base);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.data = data, .left = size};
    unsigned char *base = map_lane();
    const bool producer = next_u8(&in) % 2 == 1;
    const uint64_t start = next_u64(&in) & ~(uint64_t)(RBI_LINE - 1);
    memset(base, 0, CAPACITY);
    if (producer) {
        produce(base, start, &in);
    } else {
        consume(base, start, &in);
    }
    return 0;
}
