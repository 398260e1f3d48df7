/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/attack.h"

#include <unistd.h>

struct stage stage;
struct peer peer;

const uint64_t extremes[EXTREMES_COUNT] = {0,
                                           1,
                                           7,
                                           8,
                                           63,
                                           64,
                                           65,
                                           PEER_LANE_CAPACITY - 1,
                                           PEER_LANE_CAPACITY,
                                           PEER_LANE_CAPACITY + 1,
                                           UINT64_C(1) << 31,
                                           UINT32_MAX - 1,
                                           UINT32_MAX,
                                           UINT64_C(1) << 32,
                                           INT64_MAX,
                                           UINT64_C(1) << 63,
                                           UINT64_MAX - 63,
                                           UINT64_MAX - 1,
                                           UINT64_MAX};

static uint64_t random_state = 88172645463325252;

uint64_t roll(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

uint64_t roll_extreme(void)
{
    const uint64_t value = extremes[roll() % RBI_ARRAY_SIZE(extremes)];
    return roll() % 4 == 0 ? value + roll() % 16 : value;
}

void relink(void)
{
    peer_unlink(&peer);
    assert_int_equal(peer_link(&peer, stage.scene->cluster, (int32_t)stage.scene->instance), 0);
}

int down_told(void)
{
    struct raw_message message;
    int reason = -1;
    while (reason < 0 && raw_receive(&peer.raw, &message, 0) == 0) {
        if (message.header.type == RBI_WIRE_LINK_DOWN &&
            message.body.link_down.link_id == peer.link_id) {
            reason = (int)message.body.link_down.reason;
        }
        raw_message_deinit(&message);
    }
    return reason;
}

int verdict(bool ping)
{
    const uint64_t deadline_ms = test_now_ms() + PEER_TIMEOUT_MS;
    const uint64_t tag = ++peer.ping;
    struct rbi_record record;
    if (ping) {
        peer_put(&peer, rbi_record_meta(RBI_RECORD_PING, 0, 0, 0), &tag, sizeof(tag));
    }
    while (test_now_ms() < deadline_ms) {
        const int result = peer_read(&peer, &record);
        if (result == 0 && record.kind == RBI_RECORD_PONG && record.tag == tag) {
            return FINE;
        }
        const int reason = down_told();
        if (reason >= 0) {
            peer.link_id = 0; /* both have forgotten it */
            return reason;
        }
        if (result == 1) {
            peer_ring(&peer);
            (void)usleep(50);
        }
    }
    return HUNG;
}

void expect_verdict(int expected, const char *what, uint64_t value)
{
    const int found = verdict(true);
    if (found != expected) {
        print_error("%s %#llx: verdict %d, expected %d\n", what, (unsigned long long)value, found,
                    expected);
    }
    assert_int_equal(found, expected);
    if (found != FINE) {
        relink();
    }
}

int attack_setup(void **state)
{
    (void)state;
    return stage_up(&stage) == 0 ? peer_up(&peer, stage.cluster.socket, HOSTILE_PATH) : -1;
}

int attack_teardown(void **state)
{
    (void)state;
    const bool alive = stage_alive(&stage);
    if (!alive) {
        print_error("the victim or the honest link stands still\n");
    }
    peer_down(&peer);
    const bool clean = stage_clean(&stage);
    const bool honest = stage.scene->honest_downs == 0;
    return stage_down(&stage) == 0 && alive && clean && honest ? 0 : -1;
}
