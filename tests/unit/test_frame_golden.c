/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden vectors of the frames between hosts: what is written, and what is read from it. If one of
 * these fails, hosts of two releases do not understand each other: the code is wrong, never
 * the vector.
 */
#include "frame_golden.h"
#include "support/test.h"

#include <string.h>

#define GATE   "/Game/eu/pc/w1/core/gate/3"
#define BATTLE "/Game/eu/pc/w1/core/battle/1"
#define ALPHA  UINT64_C(0xbe6903b5f625ab5a)
#define BETA   UINT64_C(0x28faff7f97dff641)
#define GAMMA  UINT64_C(0x0070f7bf6f9d29f6)

#define TEXT(s)                                                                                    \
    {                                                                                              \
        .length = sizeof(s) - 1, .bytes = s                                                        \
    }
#define STREAM                                                                                     \
    {                                                                                              \
        .life = UINT64_C(0x1111111122222222), .number = 7                                          \
    }

/** Writes a frame and reads it back: the vector's bytes, and the structure's values. */
static void expect(struct rbi_frame_header header, const void *body)
{
    static unsigned char out[RBI_FRAME_MAX];
    static union rbi_frame_body back;
    const struct golden *golden = &goldens[header.type - 1];
    struct rbi_frame_header seen;
    struct rbi_frame_fault fault = {.text = ""};
    assert_int_equal(golden->type, header.type);
    assert_int_equal(rbi_frame_encode(&header, body, out), golden->size);
    assert_memory_equal(out, golden->bytes, golden->size);
    assert_int_equal(rbi_frame_look(golden->bytes, golden->size, &seen), RBI_FRAME_WHOLE);
    assert_memory_equal(&seen, &header, sizeof seen);
    memset(&back, 0xee, sizeof back);
    assert_int_equal(rbi_frame_decode(&seen, golden->bytes + RBI_FRAME_HEADER, &back, &fault), 0);
    assert_string_equal(fault.text, "");
    /* What was read is what was written: by its bytes, as structures have holes. */
    memset(out, 0, golden->size);
    assert_int_equal(rbi_frame_encode(&seen, &back, out), golden->size);
    assert_memory_equal(out, golden->bytes, golden->size);
}

static void test_frame_of_the_host(void **state)
{
    (void)state;
    const struct rbi_frame_hello hello = {.magic = RBI_FRAME_MAGIC,
                                          .version_min = 1,
                                          .version_max = 3,
                                          .host = ALPHA,
                                          .incarnation = UINT64_C(0x0102030405060708),
                                          .name = TEXT("alpha"),
                                          .software = TEXT("ringbus-bridge 0.2.0")};
    expect((struct rbi_frame_header){.type = RBI_FRAME_HELLO}, &hello);
    const struct rbi_frame_ping ping = {.id = 5, .sent_ns = UINT64_C(0x1122334455667788)};
    expect((struct rbi_frame_header){.type = RBI_FRAME_PING}, &ping);
    expect((struct rbi_frame_header){.type = RBI_FRAME_PONG}, &ping);
    const struct rbi_frame_bye bye = {.reason = 1, .text = TEXT("stopping")};
    expect((struct rbi_frame_header){.type = RBI_FRAME_BYE}, &bye);
    static const struct rbi_frame_edges edges = {
        .origin = BETA,
        .incarnation = 9,
        .sequence = 3,
        .hops = 8,
        .name = TEXT("beta"),
        .list = {.count = 2,
                 .edge = {{.to = ALPHA, .cost = 120, .name = TEXT("alpha")},
                          {.to = GAMMA, .cost = 1000000, .name = TEXT("gamma")}}}};
    expect((struct rbi_frame_header){.type = RBI_FRAME_EDGES}, &edges);
}

static void test_frame_of_the_life_of_a_stream(void **state)
{
    (void)state;
    const struct rbi_frame_open open = {
        .envelope = {.from = ALPHA, .to = BETA, .hops = 7, .visited_count = 1, .visited = {GAMMA}},
        .stream = STREAM,
        .handle = 0x21,
        .attempt = 2,
        .opened = 1,
        .expect = 0x140,
        .begin = 0x80,
        .granted = 262144,
        .uid = 1000,
        .requester = {.pidf = {UINT64_C(0x3e8ec8843dd50820), 3, 5}, .path = TEXT(GATE)},
        .server = {.pidf = {UINT64_C(0x7323110233ff87c1), 1, 9}, .path = TEXT(BATTLE)},
        .lane = 1U << 20};
    expect((struct rbi_frame_header){.type = RBI_FRAME_OPEN, .flags = RBI_FRAME_F_AGAIN}, &open);
    const struct rbi_frame_opened opened = {.envelope = {.from = BETA, .to = ALPHA, .hops = 8},
                                            .stream = STREAM,
                                            .handle = 0x42,
                                            .attempt = 2,
                                            .expect = 0x1c0,
                                            .granted = 65536,
                                            .life = 0x99,
                                            .number = 12,
                                            .lane = 65536};
    expect((struct rbi_frame_header){.type = RBI_FRAME_OPENED, .handle = 0x21}, &opened);
    const struct rbi_frame_refused refused = {.envelope = {.from = BETA, .to = ALPHA, .hops = 8},
                                              .stream = STREAM,
                                              .attempt = 2,
                                              .code = -2,
                                              .text = TEXT("not known")};
    expect((struct rbi_frame_header){.type = RBI_FRAME_REFUSED, .flags = RBI_FRAME_F_FORGOTTEN},
           &refused);
    const struct rbi_frame_close close = {
        .reason = 2, .position = 0x140, .settled = 0x80, .seen = 0xc0};
    expect((struct rbi_frame_header){.type = RBI_FRAME_CLOSE,
                                     .flags = RBI_FRAME_F_NOW,
                                     .handle = 0x21},
           &close);
}

static void test_frame_of_records(void **state)
{
    (void)state;
    static const unsigned char record[] = "abcdefghijkl";
    unsigned char head[RBI_FRAME_DATA_HEAD];
    struct rbi_frame_header header;
    const struct rbi_frame_data data = {
        .meta = 0x00020107, .size = 12, .bytes = {.at = record, .size = 8}};
    expect((struct rbi_frame_header){.type = RBI_FRAME_DATA,
                                     .flags = RBI_FRAME_F_MORE | RBI_FRAME_F_ASK,
                                     .handle = 0x42,
                                     .mark = UINT32_MAX},
           &data);
    rbi_frame_data_head(head, RBI_FRAME_F_MORE | RBI_FRAME_F_ASK, 0x42, UINT32_MAX, 0x00020107, 12,
                        8);
    assert_memory_equal(head, golden_data, sizeof head);
    struct rbi_frame_data got;
    assert_int_equal(rbi_frame_look(golden_data, sizeof golden_data, &header), RBI_FRAME_WHOLE);
    assert_int_equal(rbi_frame_data(&header, golden_data + RBI_FRAME_HEADER, &got), 0);
    assert_int_equal(got.meta, data.meta);
    assert_int_equal(got.size, 12);
    assert_ptr_equal(got.bytes.at, golden_data + RBI_FRAME_DATA_HEAD);
    assert_int_equal(got.bytes.size, 8);
    assert_memory_equal(got.bytes.at, record, 8);

    const struct rbi_frame_piece piece = {.offset = 8, .bytes = {.at = record + 8, .size = 4}};
    expect(
        (struct rbi_frame_header){
            .type = RBI_FRAME_PIECE, .flags = RBI_FRAME_F_LAST, .handle = 0x42, .mark = UINT32_MAX},
        &piece);
    rbi_frame_piece_head(head, RBI_FRAME_F_LAST, 0x42, UINT32_MAX, 8, 4);
    assert_memory_equal(head, golden_piece, RBI_FRAME_PIECE_HEAD);
    struct rbi_frame_piece more;
    assert_int_equal(rbi_frame_look(golden_piece, sizeof golden_piece, &header), RBI_FRAME_WHOLE);
    assert_int_equal(rbi_frame_piece(&header, golden_piece + RBI_FRAME_HEADER, &more), 0);
    assert_int_equal(more.offset, 8);
    assert_ptr_equal(more.bytes.at, golden_piece + RBI_FRAME_PIECE_HEAD);
    assert_int_equal(more.bytes.size, 4);

    const struct rbi_frame_ack ack = {.position = UINT64_C(0x4000000000),
                                      .granted = UINT64_C(0x100000000)};
    expect((struct rbi_frame_header){.type = RBI_FRAME_ACK, .handle = 0x21}, &ack);
    struct rbi_frame_ack acked;
    assert_int_equal(rbi_frame_look(golden_ack, sizeof golden_ack, &header), RBI_FRAME_WHOLE);
    assert_int_equal(rbi_frame_ack(&header, golden_ack + RBI_FRAME_HEADER, &acked), 0);
    assert_memory_equal(&acked, &ack, sizeof ack);
}

static void test_frame_of_the_directory(void **state)
{
    (void)state;
    const struct rbi_frame_dir_ask ask = {.envelope = {.from = ALPHA, .to = BETA, .hops = 8}};
    expect((struct rbi_frame_header){.type = RBI_FRAME_DIR_ASK}, &ask);
    const struct rbi_frame_dir_item item = {
        .envelope = {.from = BETA, .to = ALPHA, .hops = 8},
        .item = {.incarnation = 0x77,
                 .revision = 31,
                 .flags = RBI_ITEM_FIRST,
                 .number = 4,
                 .remote = {.pidf = {UINT64_C(0x7323110233ff87c1), 1, 9},
                            .state = 2,
                            .health = RBI_HEALTH_OPEN,
                            .weight = 100,
                            .reported = 80,
                            .path_length = sizeof BATTLE - 1,
                            .path = BATTLE,
                            .set = "s.a.1",
                            .idc = "rack1/zone",
                            .tags = "test"}}};
    expect((struct rbi_frame_header){.type = RBI_FRAME_DIR_ITEM}, &item);
}

static void test_frame_of_what_is_followed(void **state)
{
    (void)state;
    struct rbi_frame_hop hop = {.envelope = {.from = BETA, .to = ALPHA, .hops = 8},
                                .what = RBI_HOP_FORWARD,
                                .age_ns = 49999};
    for (unsigned i = 0; i < sizeof hop.trace.bytes; i++) {
        hop.trace.bytes[i] = (unsigned char)(0xa0 + i);
    }
    rbi_frame_host_set(&hop.host, "beta");
    rbi_frame_text_set(&hop.next, "gamma");
    expect((struct rbi_frame_header){.type = RBI_FRAME_HOP}, &hop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_of_the_host),
        cmocka_unit_test(test_frame_of_the_life_of_a_stream),
        cmocka_unit_test(test_frame_of_records),
        cmocka_unit_test(test_frame_of_the_directory),
        cmocka_unit_test(test_frame_of_what_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
