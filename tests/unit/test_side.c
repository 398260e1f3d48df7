/* SPDX-License-Identifier: Apache-2.0 */
/* The two memories of a link: made, checked, connected. */
#include "shm/peer_pool.h"
#include "shm/side.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANE    UINT64_C(16384)
#define RETURNS UINT64_C(64)

struct end {
    struct rbi_segment own;
    struct rbi_segment peer;
    struct rbi_lane_tx tx;
    struct rbi_lane_rx rx;
    struct rbi_returns returns;
    struct rbi_refs refs;
};

static void attach(struct end *end, const struct end *other)
{
    struct rbi_side_geometry theirs;
    const struct rbi_side_wiring wiring = {
        .tx = &end->tx, .rx = &end->rx, .returns = &end->returns, .refs = &end->refs};
    assert_int_equal(rbi_side_adopt(&end->peer, other->own.fd, other->own.size, &theirs), 0);
    assert_int_equal(theirs.lane_capacity, LANE);
    assert_int_equal(theirs.returns_capacity, RETURNS);
    assert_int_equal(rbi_side_wire(&end->own, end->peer.base, &theirs, &wiring), 0);
    assert_int_equal(rbi_segment_mirror(&end->own), 0);
    assert_int_equal(rbi_segment_mirror(&end->peer), 0);
}

static void detach(struct end *end)
{
    free(end->tx.inside);
    rbi_refs_deinit(&end->refs);
    rbi_segment_deinit(&end->own);
    rbi_segment_deinit(&end->peer);
}

static void test_side_joins_two_ends(void **state)
{
    (void)state;
    struct end ends[2] = {{.own = RBI_SEGMENT_NULL, .peer = RBI_SEGMENT_NULL},
                          {.own = RBI_SEGMENT_NULL, .peer = RBI_SEGMENT_NULL}};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rbi_side_create(&ends[i].own, LANE, RETURNS), 0);
        const struct rbi_side_geometry own = rbi_side_own_geometry(&ends[i].own);
        assert_int_equal(own.lane_offset + own.lane_capacity, ends[i].own.size);
    }
    attach(&ends[0], &ends[1]);
    attach(&ends[1], &ends[0]);
    for (unsigned i = 0; i < 2; i++) {
        unsigned char *body = NULL;
        struct rbi_lane_record record = {0};
        assert_int_equal(rbi_lane_reserve(&ends[i].tx, 100, RBI_LANE_CONTROL_ROOM, &body),
                         RBI_LANE_OK);
        memset(body, 7 + (int)i, 100);
        rbi_lane_commit(&ends[i].tx, 100, 42);
        assert_int_equal(rbi_lane_peek(&ends[1 - i].rx, &record), RBI_LANE_OK);
        assert_int_equal(record.meta, 42);
        assert_int_equal(record.body[99], 7 + i);
        rbi_lane_advance(&ends[1 - i].rx, &record);
        rbi_lane_release(&ends[1 - i].rx);
        assert_int_equal(rbi_lane_used(&ends[i].tx), 0);
    }
    detach(&ends[0]);
    detach(&ends[1]);
}

/* Each word of the geometry, wrong in its own way. */
static void test_side_adopt_refuses_impossible_geometry(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_side_create(&own, LANE, RETURNS), 0);
    struct rbi_side *side = own.base;
    const struct rbi_side_geometry good = rbi_side_own_geometry(&own);
    const struct rbi_side_geometry bad[] = {
        {good.lane_offset + RBI_LINE, LANE, good.returns_offset, RETURNS},
        {0, LANE, good.returns_offset, RETURNS},
        {good.lane_offset, LANE - RBI_LINE, good.returns_offset, RETURNS},
        {good.lane_offset, LANE * 2, good.returns_offset, RETURNS},
        {good.lane_offset, RBI_LANE_CAPACITY_MIN / 2, good.returns_offset, RETURNS},
        {good.lane_offset, 0, good.returns_offset, RETURNS},
        {good.lane_offset, LANE, 0, RETURNS},
        {good.lane_offset, LANE, good.returns_offset + 8, RETURNS},
        {good.lane_offset, LANE, good.lane_offset + RBI_LINE, RETURNS},
        {good.lane_offset, LANE, good.returns_offset, RETURNS + 1},
        {good.lane_offset, LANE, good.returns_offset, RBI_RETURNS_MIN / 2},
        {good.lane_offset, LANE, good.returns_offset, RBI_RETURNS_MAX},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        struct rbi_segment peer = RBI_SEGMENT_NULL;
        struct rbi_side_geometry out;
        side->lane_offset = bad[i].lane_offset;
        side->lane_capacity = bad[i].lane_capacity;
        side->returns_offset = bad[i].returns_offset;
        side->returns_capacity = bad[i].returns_capacity;
        assert_int_equal(rbi_side_adopt(&peer, own.fd, own.size, &out), -EPROTO);
        rbi_segment_deinit(&peer);
    }
    rbi_segment_deinit(&own);
}

static void test_peer_pool_is_checked_now_and_mapped_later(void **state)
{
    (void)state;
    const struct rbi_pool_plan plan = {.class_count = 1, .classes = {{4096, 4}}};
    for (unsigned sparse = 0; sparse < 2; sparse++) {
        struct rbi_pool pool = {.class_count = 0};
        struct rbi_peer_pool *peer = NULL;
        assert_int_equal(sparse ? rbi_pool_init_sparse(&pool, &plan) : rbi_pool_init(&pool, &plan),
                         0);
        int fd = fcntl(pool.segment.fd, F_DUPFD_CLOEXEC, 3);
        const int kept = fd;
        assert_int_equal(rbi_peer_pool_new(&peer, &fd, pool.segment.size + RBI_PAGE, sparse),
                         -EFBIG);
        assert_int_equal(fd, kept);
        if (sparse) {
            assert_int_equal(rbi_peer_pool_new(&peer, &fd, pool.segment.size, false), -EBADF);
        }
        assert_int_equal(rbi_peer_pool_new(&peer, &fd, pool.segment.size, sparse), 0);
        assert_int_equal(fd, -1);
        assert_int_equal(peer->bytes, 0);
        assert_int_equal(rbi_peer_pool_open(peer), 0);
        assert_int_equal(rbi_peer_pool_open(peer), 0);
        assert_int_equal(peer->bytes, pool.segment.size);
        assert_int_equal(fcntl(kept, F_GETFD), -1); /* closed */
        rbi_peer_pool_unref(peer);
        rbi_pool_deinit(&pool);
    }
    rbi_peer_pool_unref(NULL);
    assert_int_equal(rbi_peer_pool_open(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_joins_two_ends),
        cmocka_unit_test(test_side_adopt_refuses_impossible_geometry),
        cmocka_unit_test(test_peer_pool_is_checked_now_and_mapped_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
