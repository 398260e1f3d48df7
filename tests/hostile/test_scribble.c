/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile peer writes records of every shape while an honest one goes on. Whatever it
 * writes must either do no harm, then its next PING is answered, or close its own link
 * with BAD_PEER.
 */
#include "hostile/attack.h"
#include "shm/lane.h"
#include "support/machine.h"

#include <string.h>

/* ---- commit words ------------------------------------------------------------------------ */

static bool is_message(unsigned kind)
{
    return kind >= RBI_RECORD_REQ && kind <= RBI_RECORD_ERROR && kind != RBI_RECORD_ROUTED;
}

static bool tag_is_correlation(unsigned kind)
{
    return kind == RBI_RECORD_REQ || kind == RBI_RECORD_REP || kind == RBI_RECORD_ERROR ||
           kind == RBI_RECORD_PING || kind == RBI_RECORD_PONG;
}

struct shape {
    unsigned kind;
    unsigned flags;
    unsigned words;
    unsigned parts;
    uint64_t size;
};

/** The rules of bus/record.h, said once more. @return FINE, BAD_PEER, or HUNG: cannot be said */
static int judge_shape(const struct shape *shape, const uint64_t *body)
{
    const bool known = shape->kind >= 1 && shape->kind <= RBI_RECORD_GAP;
    const unsigned parts = known ? shape->parts : 0;
    const unsigned key =
        known && (shape->flags & RBI_RECORD_KEY) && tag_is_correlation(shape->kind);
    const unsigned table = parts > 1 ? parts : 0;
    const unsigned attributes = known && (shape->flags & RBI_RECORD_ATTRIBUTES) ? 1 : 0;
    if (shape->kind == 0 || shape->size > BODY_MAX || parts > RBI_RECORD_PARTS_MAX ||
        shape->size < 8 + 8 * (uint64_t)shape->words || key + table + attributes > shape->words) {
        return RBI_REASON_BAD_PEER;
    }
    if (attributes && is_message(shape->kind)) {
        return HUNG; /* what the words behind key and sizes say is tests/unit/'s */
    }
    const uint64_t payload = shape->size - 8 - 8 * (uint64_t)shape->words;
    uint64_t bytes = payload;
    if (shape->flags & RBI_RECORD_REF) {
        const uint64_t *ref = body + 1 + shape->words;
        if (payload != 24 || !is_message(shape->kind) || ref[1] > peer.raw.pool.size ||
            ref[0] > peer.raw.pool.size - ref[1] || ref[0] % RBI_LINE != 0) {
            return RBI_REASON_BAD_PEER;
        }
        bytes = ref[1];
    }
    uint64_t left = bytes;
    for (unsigned i = 0; i < table; i++) {
        const uint64_t part = body[1 + key + i];
        if (part > left) {
            return RBI_REASON_BAD_PEER;
        }
        left -= part;
    }
    if (table && left) {
        return RBI_REASON_BAD_PEER;
    }
    if (shape->kind == RBI_RECORD_READY || shape->kind == RBI_RECORD_DISCONNECT) {
        return HUNG;
    }
    if (shape->kind == RBI_RECORD_HOLD || shape->kind == RBI_RECORD_GAP) {
        return RBI_REASON_BAD_PEER; /* for links to other hosts */
    }
    if ((shape->kind == RBI_RECORD_DRAIN && payload < 8) ||
        (shape->kind == RBI_RECORD_REFUSED && payload < 16)) {
        return RBI_REASON_BAD_PEER;
    }
    return shape->kind == RBI_RECORD_READY_ACK && payload < 16 ? RBI_REASON_BAD_PEER : FINE;
}

static struct shape roll_shape(void)
{
    static const uint64_t sizes[] = {
        0,  1,  7,  8,  9,  16,  24,  31,   32,           33,       56,
        57, 63, 64, 65, 96, 160, 320, 1000, BODY_MAX - 1, BODY_MAX, BODY_MAX + 1};
    static const unsigned words[] = {0, 0, 0, 1, 2, 3, 16, 17, 255};
    static const unsigned parts[] = {0, 0, 0, 1, 2, 3, 16, 17, 31};
    static const unsigned flags[] = {0, 0, 1, 2, 3, 4, 8, 0xf0, 0xff};
    return (struct shape){.kind = (unsigned)(roll() % 16 == 0 ? 255 : roll() % 15),
                          .flags = flags[roll() % RBI_ARRAY_SIZE(flags)],
                          .words = words[roll() % RBI_ARRAY_SIZE(words)],
                          .parts = parts[roll() % RBI_ARRAY_SIZE(parts)],
                          .size = roll() % 16 == 0 ? roll_extreme() & UINT32_MAX
                                                   : sizes[roll() % RBI_ARRAY_SIZE(sizes)]};
}

/** Half of them small, so that sums and sizes come out right now and then. */
static void roll_body(const struct shape *shape, uint64_t *body)
{
    for (unsigned i = 0; i < 300; i++) {
        body[i] = roll() % 2 == 0 ? roll() % 3 * 8 : roll_extreme();
    }
    const uint64_t payload = shape->size - 8 - 8 * (uint64_t)shape->words;
    if ((shape->flags & RBI_RECORD_REF) && payload == 24 && roll() % 2 == 0) {
        body[1 + shape->words] = roll() % 200 * 64;
        body[2 + shape->words] = roll() % 4096;
    }
    const unsigned key = (shape->flags & RBI_RECORD_KEY) && tag_is_correlation(shape->kind);
    if (shape->parts > 1 && shape->parts <= 16 && key + shape->parts <= shape->words &&
        roll() % 2 == 0) {
        const uint64_t bytes = shape->flags & RBI_RECORD_REF ? body[2 + shape->words] : payload;
        for (unsigned i = 0; i < shape->parts; i++) {
            body[1 + key + i] = i == 0 ? bytes : 0;
        }
    }
}

/** Commits a record whose body lies there, and compares. @return the verdict */
static int expect_shape(const struct shape *shape, const uint64_t *body)
{
    const int expected = judge_shape(shape, body);
    const uint64_t word = (uint64_t)rbi_record_meta((enum rbi_record_kind)shape->kind, shape->flags,
                                                    shape->words, shape->parts)
                              << 32 |
                          shape->size;
    if (word == 0) {
        return FINE; /* no record at all: nothing was written yet */
    }
    peer_commit(&peer, word);
    /* Behind a record of impossible size there is no place for a PING. */
    const int found = verdict(expected != RBI_REASON_BAD_PEER);
    if (found == HUNG || (expected != HUNG && found != expected)) {
        print_error("kind %u flags %#x words %u parts %u size %llu: verdict %d, expected %d\n",
                    shape->kind, shape->flags, shape->words, shape->parts,
                    (unsigned long long)shape->size, found, expected);
        fail();
    }
    if (found != FINE) {
        relink();
    }
    return found;
}

static void test_shapes(void **state)
{
    static uint64_t body[PEER_LANE_CAPACITY / 8];
    unsigned fine = 0;
    unsigned closed = 0;
    (void)state;
    relink();
    for (unsigned i = 0; i < 3000; i++) {
        const struct shape shape = roll_shape();
        roll_body(&shape, body);
        memcpy(peer_body(&peer), body, 2400);
        if (expect_shape(&shape, body) == FINE) {
            fine++;
        } else {
            closed++;
        }
    }
    assert_true(fine > 300 && closed > 300); /* else the dice are no good */
}

/**
 * Each kind with each class of size, flags, extension and parts; scenario 27 in rows. The body is
 * zero: a reference to nothing at the start of the pool.
 */
static void test_each_kind(void **state)
{
    static const uint64_t sizes[] = {0, 7, 8, 16, 24, 32, 56, 160, BODY_MAX, BODY_MAX + 1};
    static const unsigned words[] = {0, 1, 2, 17, 255};
    static const unsigned parts[] = {0, 1, 2, 16, 17};
    static const uint64_t body[PEER_LANE_CAPACITY / 8];
    const unsigned step =
        machine_full() ? 1 : 31; /* a prime: the sample meets each value of each */
    unsigned row = 0;
    (void)state;
    relink();
    for (unsigned kind = 0; kind < 256; kind += machine_full() || kind < 13 ? 1 : 9) {
        for (unsigned i = 0;
             i < RBI_ARRAY_SIZE(sizes) * RBI_ARRAY_SIZE(words) * RBI_ARRAY_SIZE(parts) * 4;
             i++, row++) {
            const struct shape shape = {.kind = kind,
                                        .flags = i % 4,
                                        .words = words[i / 4 % RBI_ARRAY_SIZE(words)],
                                        .parts = parts[i / 20 % RBI_ARRAY_SIZE(parts)],
                                        .size = sizes[i / 100]};
            const bool none =
                shape.size == 0 && kind + shape.flags + shape.words + shape.parts == 0;
            if (row % step == 0 && !none) {
                memset(peer_body(&peer), 0, 2400);
                expect_shape(&shape, body);
            }
        }
    }
}

static void test_sizes_and_meta(void **state)
{
    (void)state;
    relink();
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(extremes); i++) {
        for (unsigned k = 0; k < RBI_ARRAY_SIZE(extremes); k++) {
            const uint64_t word = extremes[i] << 32 | (extremes[k] & UINT32_MAX);
            const bool possible = word == 0 || (word >> 32 != 0 && (uint32_t)word <= BODY_MAX);
            memset(peer_body(&peer), 0, 64);
            peer_commit(&peer, word);
            const int found = verdict(possible);
            assert_int_not_equal(found, HUNG);
            if (found != FINE) {
                /* The top bit says that the record is withdrawn, and the link with it. */
                assert_int_equal(found, possible && (word & RBI_LANE_WITHDRAWN) != 0
                                            ? RBI_REASON_GIVEN_UP
                                            : RBI_REASON_BAD_PEER);
                relink();
            }
        }
    }
}

static void put_ref(unsigned kind, uint64_t offset, uint64_t size, uint64_t slot)
{
    const uint64_t body[] = {0, offset, size, slot};
    peer_put(&peer, rbi_record_meta((enum rbi_record_kind)kind, RBI_RECORD_REF, 0, 0), body,
             sizeof(body));
}

static void test_references(void **state)
{
    const uint64_t pool = peer.raw.pool.size;
    const uint64_t right[][2] = {{0, 0},    {0, pool},   {64, pool - 64}, {pool - 64, 64},
                                 {pool, 0}, {4096, 100}, {pool - 64, 1},  {4096, 0}};
    const uint64_t wrong[][2] = {{0, pool + 1},
                                 {64, pool},
                                 {pool, 1},
                                 {pool - 64, 65},
                                 {1, 8},
                                 {4097, 0},
                                 {UINT64_MAX, 1},
                                 {UINT64_MAX - 63, 64},
                                 {UINT64_MAX - 63, 128},
                                 {64, UINT64_MAX},
                                 {64, UINT64_MAX - 63},
                                 {UINT64_C(1) << 63, UINT64_C(1) << 63},
                                 {UINT64_C(1) << 32, 8},
                                 {0, UINT64_C(1) << 32}};
    (void)state;
    relink();
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(right); i++) {
        for (unsigned k = 0; k < RBI_ARRAY_SIZE(extremes); k++) {
            put_ref(RBI_RECORD_ONEWAY, right[i][0], right[i][1], extremes[k]);
        }
        expect_verdict(FINE, "reference", right[i][0]);
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(wrong); i++) {
        put_ref(RBI_RECORD_REQ, wrong[i][0], wrong[i][1], 0);
        expect_verdict(RBI_REASON_BAD_PEER, "reference", wrong[i][0]);
    }
    /* More references than the return ring has entries: its own slots are what it confuses. */
    for (unsigned i = 0; i < 2000; i++) {
        put_ref(RBI_RECORD_ONEWAY, 0, 8, i);
        assert_true(peer_consumed(&peer, PEER_TIMEOUT_MS));
    }
    expect_verdict(FINE, "many references", 0);
    for (unsigned kind = RBI_RECORD_READY; kind < RBI_RECORD_REQ; kind++) {
        put_ref(kind, 0, 8, 0);
        expect_verdict(RBI_REASON_BAD_PEER, "control by reference", kind);
    }
}

/* ---- control records --------------------------------------------------------------------- */

static void put_control(unsigned kind, const unsigned char *payload, uint64_t size)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    memcpy(body + 8, payload, size);
    peer_put(&peer, rbi_record_meta((enum rbi_record_kind)kind, 0, 0, 0), body, 8 + size);
}

static void test_control_cut(void **state)
{
    static const struct {
        unsigned kind;
        uint64_t least;
        int whole;
    } cuts[] = {{RBI_RECORD_READY, 300, FINE},
                {RBI_RECORD_READY_ACK, 16, FINE},
                {RBI_RECORD_DISCONNECT, 8, RBI_REASON_LEFT}};
    unsigned char payload[RBI_CONTROL_BODY_MAX] = {0};
    (void)state;
    relink();
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cuts); i++) {
        for (uint64_t size = 0; size <= cuts[i].least + 2; size += size % 8 == 7 ? 1 : 7) {
            const struct rbi_ready ready = peer_ready(&peer);
            memset(payload, 0, sizeof(payload));
            if (cuts[i].kind == RBI_RECORD_READY) {
                (void)rbi_ready_encode(&ready, payload);
            }
            put_control(cuts[i].kind, payload, size);
            expect_verdict(size < cuts[i].least ? RBI_REASON_BAD_PEER : cuts[i].whole, "cut", size);
        }
    }
}

/* Body of READY behind the tag, as bus/record.c documents it. */
static const struct ready_field {
    const char *name;
    unsigned at;
    unsigned width;
} ready_fields[] = {{"version_min", 0, 2},   {"version_max", 2, 2},  {"ping_interval_ms", 4, 4},
                    {"dead_after_ms", 8, 4}, {"incarnation", 12, 4}, {"features", 16, 8},
                    {"cluster", 24, 8},      {"instance", 32, 4},    {"life", 36, 4},
                    {"path length", 40, 2},  {"zero", 42, 2}};
#define READY_PATH_AT 44U

/** The rules of bus/link.h and bus/record.h, said once more. */
static int judge_ready(const unsigned char *body)
{
    const struct rbi_ready right = peer_ready(&peer);
    struct rbi_ready ready;
    uint16_t length = 0;
    memcpy(&ready.version_min, body, 2);
    memcpy(&ready.version_max, body + 2, 2);
    memcpy(&ready.ping_interval_ms, body + 4, 4);
    memcpy(&ready.dead_after_ms, body + 8, 4);
    memcpy(&ready.self.cluster, body + 24, 8);
    memcpy(&ready.self.instance, body + 32, 4);
    memcpy(&length, body + 40, 2);
    if (ready.version_min > ready.version_max || length != strlen(right.path) ||
        ready.self.cluster != right.self.cluster || ready.self.instance != right.self.instance) {
        return RBI_REASON_BAD_PEER;
    }
    const bool spoken = ready.version_min <= 1 && ready.version_max >= 1;
    const bool possible = ready.ping_interval_ms >= 10 && ready.ping_interval_ms <= 60000 &&
                          ready.dead_after_ms >= 2 * ready.ping_interval_ms;
    return spoken && possible ? FINE : RBI_REASON_REFUSED;
}

static void test_ready_fields(void **state)
{
    unsigned char payload[RBI_CONTROL_BODY_MAX];
    unsigned end = 0;
    (void)state;
    relink();
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(ready_fields); i++) {
        const struct ready_field *field = &ready_fields[i];
        assert_int_equal(field->at, end); /* none is missing */
        end += field->width;
        for (unsigned k = 0; k < 3 * EXTREMES_COUNT; k++) {
            const struct rbi_ready ready = peer_ready(&peer);
            const uint64_t size = rbi_ready_encode(&ready, payload);
            uint64_t value = 0;
            memcpy(&value, payload + field->at, field->width);
            /* The extremes, what is so far from the right one, and the boundaries of the terms. */
            value = k < EXTREMES_COUNT       ? extremes[k]
                    : k < 2 * EXTREMES_COUNT ? value + extremes[k - EXTREMES_COUNT]
                                             : 9999 * (k % 3) + k / 3 + value / 2;
            memcpy(payload + field->at, &value, field->width);
            const int expected = judge_ready(payload);
            put_control(RBI_RECORD_READY, payload, size);
            expect_verdict(expected, field->name, value);
        }
    }
    assert_int_equal(end, READY_PATH_AT);
    /* Another name than the daemon gave. */
    struct rbi_ready lie = peer_ready(&peer);
    lie.path[0] = 0;
    peer_put_ready(&peer, &lie);
    expect_verdict(RBI_REASON_BAD_PEER, "no path", 0);
    lie = peer_ready(&peer);
    memcpy(lie.path, HONEST_PATH, sizeof(HONEST_PATH));
    peer_put_ready(&peer, &lie);
    expect_verdict(RBI_REASON_BAD_PEER, "another's path", 0);
    lie = peer_ready(&peer);
    lie.self.instance++;
    peer_put_ready(&peer, &lie);
    expect_verdict(RBI_REASON_BAD_PEER, "another instance", 0);
}

static void test_unknown_answers(void **state)
{
    const uint64_t tags[] = {0, 1, UINT64_C(1) << 32, UINT64_C(1) << 32 | 1, UINT64_MAX};
    (void)state;
    relink();
    for (unsigned kind = RBI_RECORD_READY_ACK; kind <= RBI_RECORD_GAP + 2; kind++) {
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(tags); i++) {
            const uint64_t body[4] = {tags[i], 0, 0, 0};
            if (kind != RBI_RECORD_DISCONNECT) {
                peer_put(&peer, rbi_record_meta((enum rbi_record_kind)kind, 0, 0, 0), body,
                         sizeof(body));
            }
        }
        expect_verdict(kind == RBI_RECORD_HOLD || kind == RBI_RECORD_GAP ? RBI_REASON_BAD_PEER
                                                                         : FINE,
                       "unasked answer", kind);
    }
}

/* ---- messages before READY, and after the end -------------------------------------------- */

static void test_before_ready(void **state)
{
    const uint64_t body[2] = {0, 0};
    (void)state;
    for (unsigned kind = RBI_RECORD_REQ; kind <= RBI_RECORD_ERROR; kind++) {
        peer_unlink(&peer);
        assert_int_equal(peer_offer(&peer), 0);
        assert_int_equal(
            peer_introduce(&peer, stage.scene->cluster, (int32_t)stage.scene->instance), 0);
        peer_put(&peer, rbi_record_meta((enum rbi_record_kind)kind, 0, 0, 0), body, sizeof(body));
        if (kind != RBI_RECORD_ROUTED) {
            assert_int_equal(verdict(false), RBI_REASON_BAD_PEER);
        }
    }
    assert_int_equal(stage.scene->hostile_received, 0);
}

/** A refused peer has never been linked: what it wrote behind its READY is not delivered. */
static void test_behind_refused_ready(void **state)
{
    const uint64_t body[2] = {0, 0};
    (void)state;
    peer_unlink(&peer);
    assert_int_equal(peer_offer(&peer), 0);
    assert_int_equal(peer_introduce(&peer, stage.scene->cluster, (int32_t)stage.scene->instance),
                     0);
    struct rbi_ready ready = peer_ready(&peer);
    ready.ping_interval_ms = 1;
    /* Both before it may look. */
    unsigned char ready_body[8 + RBI_CONTROL_BODY_MAX] = {0};
    const uint64_t size = rbi_ready_encode(&ready, ready_body + 8) + 8;
    unsigned char *first = peer_body(&peer);
    memcpy(first, ready_body, size);
    const uint64_t start = peer.pos;
    peer.pos += (size + 8 + 63) & ~UINT64_C(63);
    peer_put(&peer, rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0), body, sizeof(body));
    rbi_store_seq(rbi_au64_at(first - 8, 0),
                  (uint64_t)rbi_record_meta(RBI_RECORD_READY, 0, 0, 0) << 32 | size);
    (void)start;
    peer_ring(&peer);
    assert_int_not_equal(verdict(false), HUNG);
    assert_int_equal(stage.scene->hostile_received, 0);
}

static void test_behind_disconnect(void **state)
{
    const uint64_t body[2] = {0, 0};
    const uint64_t bye[2] = {0, RBI_REASON_LEFT};
    (void)state;
    relink();
    for (unsigned i = 0; i < 20; i++) {
        /* Whole batch becomes visible at once. */
        const uint64_t start = peer.pos;
        peer.pos += 64;
        peer_put(&peer, rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0), body, sizeof(body));
        peer.pos = start;
        memcpy(peer_body(&peer), bye, sizeof(bye));
        rbi_store_seq(rbi_au64_at(peer_body(&peer) - 8, 0),
                      (uint64_t)rbi_record_meta(RBI_RECORD_DISCONNECT, 0, 0, 0) << 32 |
                          sizeof(bye));
        peer_ring(&peer);
        assert_int_not_equal(verdict(false), HUNG);
        relink();
    }
    assert_int_equal(stage.scene->hostile_received, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shapes, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_each_kind, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_sizes_and_meta, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_references, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_control_cut, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_ready_fields, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_unknown_answers, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_before_ready, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_behind_refused_ready, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_behind_disconnect, attack_setup, attack_teardown),
    };
    return cmocka_run_group_tests_name("scribble", tests, NULL, NULL);
}
