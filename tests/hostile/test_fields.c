/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 27: each field of each segment that a peer owns, at each extreme value, in each
 * phase in which somebody may read it: offered to the daemon, changed behind the daemon's
 * back before the other end looks, and while messages flow. What comes of it is said by
 * fields.c, exactly; whatever it is, the victim and the honest link go on.
 */
#include "hostile/attack.h"
#include "hostile/fields.h"
#include "support/machine.h"

#include <ringbus/ringbus.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BURST 600U /* more records than the victim's lane has lines */

static const struct field *field_named(const char *name)
{
    for (unsigned i = 0; i < fields_count; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static void
expect(int found, int expected, const char *phase, const struct field *field, uint64_t value)
{
    if (found != expected) {
        print_error("%s: %s = %#llx: got %d, expected %d\n", phase, field->name,
                    (unsigned long long)value, found, expected);
    }
    assert_int_equal(found, expected);
}

/** A further life of ours, since the page and pool of the last one are not believed any more. */
static void another_life(void)
{
    peer_down(&peer);
    assert_int_equal(peer_up(&peer, stage.cluster.socket, HOSTILE_PATH), 0);
}

/* ---- the table itself -------------------------------------------------------------------- */

/** Nothing between two fields is left out, and none is said twice. */
static void test_table_is_whole(void **state)
{
    (void)state;
    uint32_t end = 0;
    for (unsigned i = 0; i < fields_count; i++) {
        if (i > 0 && fields[i].segment != fields[i - 1].segment) {
            end = 0;
        }
        assert_int_equal(fields[i].offset, end);
        assert_int_equal(fields[i].bytes % fields[i].width, 0);
        end += fields[i].bytes;
    }
}

/* ---- a side, offered --------------------------------------------------------------------- */

static int offered_verdict(const struct field *field, uint64_t right, uint64_t value)
{
    switch (field->effect) {
    case FIELD_EXACT:
        return value == right ? 0 : RINGBUS_E_BAD_PEER;
    case FIELD_SHAPE:
        return field_shape_possible(peer_side(&peer), PEER_SIDE_BYTES) ? 0 : RINGBUS_E_BAD_PEER;
    case FIELD_READ_POS:
    case FIELD_RETURNS_POS:
    case FIELD_FREE:
        break;
    }
    return 0;
}

/** READY and PING, which is all that an idle link needs. */
static void expect_link_works(const char *phase, const struct field *field, uint64_t value)
{
    const struct rbi_ready ready = peer_ready(&peer);
    peer_put_ready(&peer, &ready);
    expect(peer_await(&peer, RBI_RECORD_READY_ACK, 0, PEER_TIMEOUT_MS), 0, phase, field, value);
    expect(peer_ping(&peer, PEER_TIMEOUT_MS), 0, phase, field, value);
}

static void offer_side(const struct field *field, uint64_t value)
{
    assert_int_equal(peer_offer(&peer), 0);
    const uint64_t right = field_get(peer_side(&peer), field);
    field_set(peer_side(&peer), field, value);
    const int expected = offered_verdict(field, right, value);
    const int code = peer_introduce(&peer, stage.scene->cluster, (int32_t)stage.scene->instance);
    expect(code, expected, "offered", field, value);
    if (code == 0) {
        expect_link_works("linked", field, value);
    }
    peer_unlink(&peer);
}

static void test_side_offered(void **state)
{
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    for (unsigned i = 0; i < fields_count; i++) {
        if (fields[i].segment != RBI_SEGMENT_SIDE) {
            continue;
        }
        assert_int_equal(peer_offer(&peer), 0);
        const uint64_t right = field_get(peer_side(&peer), &fields[i]);
        const unsigned count = field_values(&fields[i], right, machine_full(), values);
        for (unsigned k = 0; k < count; k++) {
            offer_side(&fields[i], values[k]);
        }
        assert_true(stage_alive(&stage));
    }
}

/* ---- a side, given in answer -------------------------------------------------------------- */

static unsigned next_instance = 10;

/** The victim asks for the link; each time another instance, so that nobody waits. */
static void answer_with(const struct field *field, uint64_t value)
{
    char path[RBI_PATH_MAX + 1];
    peer_down(&peer);
    (void)snprintf(path, sizeof(path), HOSTILE "/%u", next_instance++);
    assert_int_equal(peer_up(&peer, stage.cluster.socket, path), 0);
    assert_int_equal(peer_introduced(&peer), 0);
    const uint64_t right = field_get(peer_side(&peer), field);
    field_set(peer_side(&peer), field, value);
    const int expected = offered_verdict(field, right, value);
    const uint64_t failed = stage.scene->failed;
    assert_int_equal(peer_accept_with(&peer, peer.side.fd, PEER_SIDE_BYTES), 0);
    if (expected == 0) {
        const struct rbi_ready_ack ack = {.version = 1, .reason = RBI_REASON_NONE};
        unsigned char yes[RBI_RECORD_TAG + RBI_CONTROL_BODY_MAX] = {0};
        const uint64_t size = RBI_RECORD_TAG + rbi_ready_ack_encode(&ack, yes + RBI_RECORD_TAG);
        const uint64_t ups = stage.scene->ups;
        expect(peer_await(&peer, RBI_RECORD_READY, 0, PEER_TIMEOUT_MS), 0, "answered", field,
               value);
        peer_put(&peer, rbi_record_meta(RBI_RECORD_READY_ACK, 0, 0, 0), yes, size);
        assert_true(stage_changes(&stage.scene->ups, ups, PEER_TIMEOUT_MS));
    } else if (field->effect == FIELD_EXACT) {
        /* The daemon looks at those, and has the offer refused. */
        expect(raw_expect_error(&peer.raw), RINGBUS_E_BAD_PEER, "answered", field, value);
        assert_true(stage_changes(&stage.scene->failed, failed, PEER_TIMEOUT_MS));
    } else {
        expect(peer_await_down(&peer, PEER_TIMEOUT_MS), RBI_REASON_BAD_PEER, "answered", field,
               value);
        assert_true(stage_changes(&stage.scene->failed, failed, PEER_TIMEOUT_MS));
        assert_int_equal(stage.scene->last_failed_error, RINGBUS_E_BAD_PEER);
    }
}

static void test_side_answered(void **state)
{
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    stage.scene->target_hostile = 1;
    for (unsigned i = 0; i < fields_count; i++) {
        if (fields[i].segment != RBI_SEGMENT_SIDE) {
            continue;
        }
        const unsigned count = field_values(&fields[i], 0, false, values);
        /* Where it is the same code as for an offer, a sample will do. */
        const unsigned step = machine_full() || fields[i].effect == FIELD_SHAPE ? 1 : 8;
        for (unsigned k = 0; k < count; k += step) {
            answer_with(&fields[i], values[k]);
        }
    }
    stage.scene->target_hostile = 0;
    test_sleep_ms(50);
}

/* ---- page and pool, offered to the daemon -------------------------------------------------- */

/** @return the code of the refusal, or 0; @p raw keeps page and pool */
static int try_register(struct raw *raw, const struct field *field, uint64_t value)
{
    struct raw_message message;
    struct rbi_wire_registration body = {
        .weight = 100, .state = RBI_ENDPOINT_READY, .page_bytes = RBI_PAGE};
    void *base = field->segment == RBI_SEGMENT_PAGE ? raw->page.base : raw->pool.base;
    const int fds[] = {raw->page.fd, raw->pool.fd};
    const uint64_t right = field_get(base, field);
    int code = -1000;
    body.pool_bytes = raw->pool.size;
    rbi_text_set(&body.path, HOSTILE "/9");
    field_set(base, field, value);
    if (raw_send(raw, RBI_WIRE_REGISTER, &body, fds, 2) == 0 &&
        raw_receive(raw, &message, RAW_TIMEOUT_MS) == 0) {
        code = message.header.type == RBI_WIRE_ERROR        ? message.body.error.code
               : message.header.type == RBI_WIRE_REGISTERED ? 0
                                                            : -1001;
        raw_message_deinit(&message);
    }
    field_set(base, field, right);
    return code;
}

static void new_candidate(struct raw *raw)
{
    assert_int_equal(raw_connect(raw, stage.cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
    assert_int_equal(rbi_segment_create(&raw->page, "page", RBI_SEGMENT_PAGE, RBI_PAGE, 0), 0);
    assert_int_equal(rbi_segment_create(&raw->pool, "pool", RBI_SEGMENT_POOL, 4 * RBI_PAGE, 0), 0);
}

static void test_page_and_pool_offered(void **state)
{
    uint64_t values[FIELD_VALUES_MAX];
    struct raw raw;
    (void)state;
    new_candidate(&raw);
    for (unsigned i = 0; i < fields_count; i++) {
        const struct field *field = &fields[i];
        if (field->segment == RBI_SEGMENT_SIDE) {
            continue;
        }
        const void *base = field->segment == RBI_SEGMENT_PAGE ? raw.page.base : raw.pool.base;
        const uint64_t right = field_get(base, field);
        const unsigned count = field_values(field, right, machine_full(), values);
        for (unsigned k = 0; k < count; k++) {
            const int code = try_register(&raw, field, values[k]);
            expect(code, offered_verdict(field, right, values[k]), "registered", field, values[k]);
            if (code == 0) {
                raw_close(&raw); /* a connection registers once; a refusal is not held against it */
                new_candidate(&raw);
            }
        }
    }
    raw_close(&raw);
}

/* ---- page and pool, changed behind the daemon's back --------------------------------------- */

static void *own_base(const struct field *field)
{
    return field->segment == RBI_SEGMENT_PAGE   ? peer.raw.page.base
           : field->segment == RBI_SEGMENT_POOL ? peer.raw.pool.base
                                                : peer.side.base;
}

static void test_page_and_pool_before_link(void **state)
{
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    for (unsigned i = 0; i < fields_count; i++) {
        const struct field *field = &fields[i];
        if (field->segment == RBI_SEGMENT_SIDE) {
            continue;
        }
        const uint64_t right = field_get(own_base(field), field);
        const unsigned count = field_values(field, right, machine_full(), values);
        for (unsigned k = 0; k < count; k++) {
            field_set(own_base(field), field, values[k]);
            assert_int_equal(peer_offer(&peer), 0);
            const int code =
                peer_introduce(&peer, stage.scene->cluster, (int32_t)stage.scene->instance);
            expect(code, offered_verdict(field, right, values[k]), "before", field, values[k]);
            if (code == 0) {
                expect_link_works("before", field, values[k]);
            }
            peer_unlink(&peer);
            field_set(own_base(field), field, right);
        }
        assert_true(stage_alive(&stage));
        another_life(); /* arrays have lost what was behind their first word */
    }
}

/** The pool is mapped when the first payload by reference comes, and looked at again then. */
static void test_pool_before_first_reference(void **state)
{
    const uint64_t body[] = {0, 0, 64, 1};
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    for (unsigned i = 0; i < fields_count; i++) {
        const struct field *field = &fields[i];
        if (field->segment != RBI_SEGMENT_POOL) {
            continue;
        }
        const uint64_t right = field_get(own_base(field), field);
        const unsigned count = field_values(field, right, machine_full(), values);
        for (unsigned k = 0; k < count; k++) {
            relink();
            field_set(own_base(field), field, values[k]);
            peer_put(&peer, rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_REF, 0, 0), body,
                     sizeof(body));
            const int bad = field->effect == FIELD_EXACT && values[k] != right;
            expect(verdict(!bad), bad ? RBI_REASON_BAD_PEER : FINE, "referenced", field, values[k]);
            field_set(own_base(field), field, right);
        }
        another_life();
    }
}

/* ---- all of them, while messages flow ------------------------------------------------------ */

static void test_alive(void **state)
{
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    for (unsigned i = 0; i < fields_count; i++) {
        const struct field *field = &fields[i];
        if (field->effect == FIELD_READ_POS || field->effect == FIELD_RETURNS_POS) {
            continue; /* below */
        }
        relink();
        stage.scene->talk = 1;
        const unsigned count =
            field_values(field, field_get(own_base(field), field), machine_full(), values);
        for (unsigned k = 0; k < count; k++) {
            field_set(own_base(field), field, values[k]);
            expect(verdict(true), FINE, "alive", field, values[k]);
        }
        stage.scene->talk = 0;
        assert_true(stage_alive(&stage));
        if (field->segment != RBI_SEGMENT_SIDE) {
            peer_unlink(&peer);
            another_life();
        }
    }
}

/* ---- positions: what is possible depends on what the victim has written -------------------- */

/** Stops the victim's messages and reads what there is. @return references that are out */
static unsigned quiet(void)
{
    struct rbi_record record;
    unsigned references = 0;
    stage.scene->talk = 0;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(stage_changes(&stage.scene->heartbeat, stage.scene->heartbeat, 2000));
    }
    for (;;) {
        const int result = peer_read(&peer, &record);
        assert_true(result >= 0);
        if (result == 1) {
            return references;
        }
        references += (record.flags & RBI_RECORD_REF) != 0;
    }
}

/** A link over which the victim has sent a few, two of them by reference; nothing is on its way. */
static unsigned relink_quiet(void)
{
    const uint64_t deadline_ms = test_now_ms() + PEER_TIMEOUT_MS;
    unsigned references = 0;
    relink();
    while (references < 2) {
        /* The chunks of the last link come back when the victim has seen our end of it. */
        const uint64_t talked = stage.scene->talked;
        stage.scene->talk = 8;
        assert_true(stage_changes(&stage.scene->talked, talked, PEER_TIMEOUT_MS));
        references += quiet();
        assert_true(test_now_ms() < deadline_ms);
    }
    return references;
}

/** The victim sends until it must believe or refuse. @return FINE, HUNG or the reason */
static int judge_by_sending(void)
{
    const uint64_t full = stage.scene->talk_full;
    const uint64_t deadline_ms = test_now_ms() + PEER_TIMEOUT_MS;
    int found = HUNG;
    stage.scene->talk = BURST;
    while (found == HUNG && test_now_ms() < deadline_ms) {
        const int reason = down_told();
        if (reason >= 0) {
            peer.link_id = 0;
            found = reason;
        } else if (stage.scene->talk_full > full + BURST) {
            found = FINE;
        } else {
            (void)usleep(100);
        }
    }
    stage.scene->talk = 0;
    return found;
}

static void test_read_pos(void **state)
{
    const struct field *field = field_named("side.read_pos");
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    const unsigned count = field_values(field, 0, machine_full(), values);
    for (unsigned k = 0; k < count; k++) {
        (void)relink_quiet();
        /* As seen from what was read: then 0 is the truth, and every value tells the same. */
        const uint64_t ahead = values[k];
        field_set(peer.side.base, field, peer.read_pos + ahead);
        /* Ahead by less than the lane the victim gets there itself: then it is our own loss. */
        const bool possible = ahead % RBI_LINE == 0 && ahead <= PEER_LANE_CAPACITY - 1024;
        const int found = judge_by_sending();
        if (ahead == UINT64_MAX - RBI_LINE + 1 && found == FINE) {
            continue; /* a line back: it does not look after each, and may not know better */
        }
        expect(found, possible ? FINE : RBI_REASON_BAD_PEER, "alive", field, ahead);
    }
}

static void test_returns_pos(void **state)
{
    const struct field *field = field_named("side.returns_pos");
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    const unsigned count = field_values(field, 2, machine_full(), values);
    for (unsigned k = 0; k < count; k++) {
        const unsigned out = relink_quiet();
        rbi_word *ring =
            (rbi_word *)(void *)((unsigned char *)peer.side.base + sizeof(struct rbi_side));
        assert_true(out >= 2);
        for (unsigned i = 0; i < PEER_RETURNS; i++) {
            ring[i] = i; /* a fresh link gives its slots out in this order */
        }
        field_set(peer.side.base, field, values[k]);
        expect(judge_by_sending(), values[k] <= out ? FINE : RBI_REASON_BAD_PEER, "alive", field,
               values[k]);
    }
}

/** Entries of the return ring, which is no member: slots that are not out, or were given back. */
static void test_return_entries(void **state)
{
    const struct field entry = {
        .name = "return ring entry", .bytes = 8, .width = 8, .offset = sizeof(struct rbi_side)};
    uint64_t values[FIELD_VALUES_MAX];
    (void)state;
    const unsigned count = field_values(&entry, 1, machine_full(), values);
    for (unsigned at = 0; at < 2; at++) {
        for (unsigned k = 0; k < count; k++) {
            const unsigned out = relink_quiet();
            rbi_word *ring =
                (rbi_word *)(void *)((unsigned char *)peer.side.base + sizeof(struct rbi_side));
            for (unsigned i = 0; i < at; i++) {
                ring[i] = i;
            }
            ring[at] = values[k];
            rbi_store_seq(&peer_side(&peer)->returns_pos, at + 1);
            const bool possible = values[k] >= at && values[k] < out;
            expect(judge_by_sending(), possible ? FINE : RBI_REASON_BAD_PEER, "alive", &entry,
                   values[k]);
        }
    }
}

/* ---- who else reads a page ------------------------------------------------------------------ */

static int run_tool(const char *option)
{
    int status = -1;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stdout);
        (void)execl(RINGBUSCTL_PATH, "ringbusctl", "show", "--socket", stage.cluster.socket,
                    HOSTILE_PATH, option, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}

static void test_tool_reads_page(void **state)
{
    static const uint64_t values[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
    (void)state;
    for (unsigned k = 0; k < RBI_ARRAY_SIZE(values); k++) {
        for (unsigned i = 0; i < fields_count; i++) {
            if (fields[i].segment == RBI_SEGMENT_PAGE && fields[i].effect == FIELD_FREE) {
                field_set(peer.raw.page.base, &fields[i], values[k]);
            }
        }
        assert_int_equal(run_tool(NULL), 0);
        assert_int_equal(run_tool("--json"), 0);
    }
    /* Of a header that it does not know it shows what the daemon says. */
    field_set(peer.raw.page.base, field_named("page.segment.version"), UINT32_MAX);
    assert_int_equal(run_tool(NULL), 0);
    assert_int_equal(run_tool("--json"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_whole),
        cmocka_unit_test_setup_teardown(test_side_offered, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_side_answered, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_page_and_pool_offered, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_page_and_pool_before_link, attack_setup,
                                        attack_teardown),
        cmocka_unit_test_setup_teardown(test_pool_before_first_reference, attack_setup,
                                        attack_teardown),
        cmocka_unit_test_setup_teardown(test_alive, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_read_pos, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_returns_pos, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_return_entries, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_tool_reads_page, attack_setup, attack_teardown),
    };
    return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
