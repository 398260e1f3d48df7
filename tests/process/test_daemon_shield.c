/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon makes of the callers' figures: features 2.4 and 2.5, scenarios 91, 118, 132.
 * Instances and callers speak without the library, so that each does exactly what the test
 * wants; the rules themselves are tested on virtual time (tests/unit/test_shield*.c).
 */
#include "bus/directory.h"
#include "shm/outcome.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define PLACE   "/game/eu/pc/w1/core/"
#define SERVERS 3U
#define CALLERS 2U
#define WAIT_MS 10000U
#define CALLS   20U /* of a batch: more than any window asks for */

static struct cluster cluster;

struct caller {
    struct raw raw;
    struct rbi_segment outcomes;
};

/** Instances of one cluster, and callers that are linked with each of them. */
struct stage {
    char path[64];
    unsigned servers_count;
    struct raw servers[SERVERS];
    struct caller callers[CALLERS];
};

/* ---- outcomes ------------------------------------------------------------------------------ */

static struct rbi_outcome *slot_of(struct caller *caller, unsigned server)
{
    return &rbi_outcomes_slots(caller->outcomes.base)[server + 1];
}

static void say_changed(struct caller *caller)
{
    rbi_outcome_add(&((struct rbi_outcomes *)caller->outcomes.base)->changes, 1);
}

static void name_server(struct caller *caller, const struct raw *server, unsigned i)
{
    rbi_outcome_name(slot_of(caller, i), server->registered.cluster,
                     rbi_outcome_who(server->registered.instance, server->registered.incarnation));
    say_changed(caller);
}

/** So many calls were answered, and so many were not. */
static void count(struct caller *caller, unsigned server, uint64_t ok, uint64_t lost)
{
    rbi_outcome_add(&slot_of(caller, server)->ok, ok);
    rbi_outcome_add(&slot_of(caller, server)->lost, lost);
    say_changed(caller);
}

/* ---- the stage ----------------------------------------------------------------------------- */

static void open_caller(struct stage *stage, struct caller *caller)
{
    assert_int_equal(raw_up(&caller->raw, cluster.socket, ""), 0);
    assert_int_equal(rbi_segment_create(&caller->outcomes, "test", RBI_SEGMENT_OUTCOMES,
                                        rbi_outcomes_bytes(RBI_OUTCOME_SLOTS_MIN), 0),
                     0);
    ((struct rbi_outcomes *)caller->outcomes.base)->slot_count = RBI_OUTCOME_SLOTS_MIN;
    for (unsigned i = 0; i < stage->servers_count; i++) {
        assert_int_equal(raw_link(&caller->raw, &stage->servers[i], NULL), 0);
        name_server(caller, &stage->servers[i], i);
    }
    const struct rbi_wire_outcomes body = {.bytes = caller->outcomes.size};
    assert_int_equal(raw_send(&caller->raw, RBI_WIRE_OUTCOMES, &body, &caller->outcomes.fd, 1), 0);
}

static void close_caller(struct caller *caller)
{
    raw_close(&caller->raw);
    rbi_segment_deinit(&caller->outcomes);
}

static void open_server(struct stage *stage, unsigned i)
{
    char path[80];
    (void)snprintf(path, sizeof path, "%s/%u", stage->path, i + 1);
    assert_int_equal(raw_up(&stage->servers[i], cluster.socket, path), 0);
}

static void stage_open(struct stage *stage, const char *name, unsigned servers)
{
    memset(stage, 0, sizeof *stage);
    (void)snprintf(stage->path, sizeof stage->path, PLACE "%s", name);
    stage->servers_count = servers;
    for (unsigned i = 0; i < servers; i++) {
        open_server(stage, i);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        open_caller(stage, &stage->callers[i]);
    }
}

static void stage_close(struct stage *stage)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        close_caller(&stage->callers[i]);
    }
    for (unsigned i = 0; i < stage->servers_count; i++) {
        raw_close(&stage->servers[i]);
    }
}

/* ---- what the directory says --------------------------------------------------------------- */

static struct rbi_directory_instance seen(const struct stage *stage, unsigned server, bool *panic)
{
    const struct raw *reader = &stage->callers[CALLERS - 1].raw;
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance all[SERVERS];
    int result = RBI_DIRECTORY_BUSY;
    assert_int_equal(rbi_directory_view_init(&view, reader->directory.base, reader->directory.size),
                     0);
    while (result == RBI_DIRECTORY_BUSY) {
        result = rbi_directory_read(&view, stage->servers[server].registered.cluster, &head, all,
                                    SERVERS);
    }
    assert_int_equal(result, RBI_DIRECTORY_OK);
    if (panic) {
        *panic = (head.flags & RBI_CLUSTER_PANIC) != 0;
    }
    for (unsigned i = 0; i < head.instance_count; i++) {
        if (all[i].instance == stage->servers[server].registered.instance) {
            return all[i];
        }
    }
    return (struct rbi_directory_instance){.health = UINT32_MAX};
}

static uint32_t health_of(const struct stage *stage, unsigned server)
{
    return seen(stage, server, NULL).health;
}

static void wait_health(const struct stage *stage, unsigned server, uint32_t health)
{
    const uint64_t deadline_ms = test_now_ms() + WAIT_MS;
    while (health_of(stage, server) != health) {
        if (test_now_ms() > deadline_ms) {
            print_message("health of %u is %u, not %u\n", server, health_of(stage, server), health);
            assert_true(false);
        }
        test_sleep_ms(5);
    }
}

/** The first server fails, the others do not. */
static void shield_first(struct stage *stage)
{
    for (unsigned i = 0; i < stage->servers_count; i++) {
        count(&stage->callers[0], i, i == 0 ? 0 : CALLS, i == 0 ? CALLS : 0);
    }
    wait_health(stage, 0, RBI_HEALTH_OPEN);
}

/** The next message of that type, while callers go on calling the second server. */
static void
next(struct stage *stage, struct raw *raw, enum rbi_wire_type type, struct raw_message *out)
{
    const uint64_t deadline_ms = test_now_ms() + WAIT_MS;
    int result = -1;
    while (result != 0) {
        assert_true(test_now_ms() < deadline_ms);
        for (unsigned i = 0; i < CALLERS; i++) {
            if (stage->callers[i].outcomes.base) {
                count(&stage->callers[i], 1, 1, 0);
            }
        }
        result = raw_expect(raw, type, out, 50);
        assert_true(result <= 0);
    }
}

/** Answers the PING of the daemon: the first server lives. */
static void answer_ping(struct stage *stage)
{
    struct raw_message message;
    next(stage, &stage->servers[0], RBI_WIRE_PROBE, &message);
    const struct rbi_wire_probe body = {.number = message.body.probe.number};
    assert_int_equal(raw_send(&stage->servers[0], RBI_WIRE_PROBE, &body, NULL, 0), 0);
}

/** Waits until one of the callers is asked for a probe. @return which */
static unsigned next_grant(struct stage *stage, struct rbi_wire_probe_grant *grant)
{
    const uint64_t deadline_ms = test_now_ms() + WAIT_MS;
    struct raw_message message;
    for (;;) {
        assert_true(test_now_ms() < deadline_ms);
        for (unsigned i = 0; i < CALLERS; i++) {
            if (!stage->callers[i].outcomes.base) {
                continue;
            }
            count(&stage->callers[i], 1, 1, 0);
            if (raw_expect(&stage->callers[i].raw, RBI_WIRE_PROBE_GRANT, &message, 20) == 0) {
                *grant = message.body.probe_grant;
                return i;
            }
        }
    }
}

static void
end_probe(struct stage *stage, unsigned caller, uint64_t token, enum rbi_probe_outcome outcome)
{
    const struct rbi_wire_probe_result body = {.token = token, .outcome = (uint32_t)outcome};
    assert_int_equal(raw_send(&stage->callers[caller].raw, RBI_WIRE_PROBE_RESULT, &body, NULL, 0),
                     0);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_one_that_fails_is_shielded_and_comes_back_by_probes(void **state)
{
    (void)state;
    struct stage stage;
    struct rbi_wire_probe_grant grant;
    unsigned asked[CALLERS] = {0};
    stage_open(&stage, "back", SERVERS);
    const uint64_t begin_ms = test_now_ms();
    shield_first(&stage);
    print_message("shielded after %llu ms\n", (unsigned long long)(test_now_ms() - begin_ms));
    assert_int_equal(health_of(&stage, 1), RBI_HEALTH_OK);
    answer_ping(&stage);
    wait_health(&stage, 0, RBI_HEALTH_HALF_OPEN);
    for (unsigned i = 0; i < 3; i++) {
        const unsigned caller = next_grant(&stage, &grant);
        asked[caller]++;
        assert_int_equal(grant.cluster, stage.servers[0].registered.cluster);
        assert_int_equal(grant.instance, stage.servers[0].registered.instance);
        assert_int_equal(grant.incarnation, stage.servers[0].registered.incarnation);
        assert_true(grant.use_ms > 0 && grant.use_ms < grant.timeout_ms);
        assert_int_equal(health_of(&stage, 0), RBI_HEALTH_HALF_OPEN);
        end_probe(&stage, caller, grant.token, RBI_PROBE_OK);
    }
    assert_true(asked[0] > 0 && asked[1] > 0); /* one after the other */
    wait_health(&stage, 0, RBI_HEALTH_RAMP);
    const uint32_t ramp = seen(&stage, 0, NULL).ramp;
    assert_true(ramp > 0 && ramp < 100);
    stage_close(&stage);
}

/* Scenario 118: however a probe ends, the next one comes, or the state, in time. */
static void test_a_prober_that_dies_frees_its_probe(void **state)
{
    (void)state;
    struct stage stage;
    struct rbi_wire_probe_grant grant;
    stage_open(&stage, "prober", SERVERS);
    shield_first(&stage);
    answer_ping(&stage);
    /* The last one reads the directory for us. */
    unsigned caller = next_grant(&stage, &grant);
    while (caller != 0) {
        end_probe(&stage, caller, grant.token, RBI_PROBE_UNUSED);
        caller = next_grant(&stage, &grant);
    }
    const uint64_t dead_token = grant.token;
    close_caller(&stage.callers[0]);
    stage.callers[0].outcomes.base = NULL;
    caller = next_grant(&stage, &grant);
    assert_int_equal(caller, 1);
    assert_true(grant.token != dead_token);
    end_probe(&stage, caller, dead_token, RBI_PROBE_FAILED); /* not its own: not heard */
    assert_int_equal(health_of(&stage, 0), RBI_HEALTH_HALF_OPEN);
    end_probe(&stage, caller, grant.token, RBI_PROBE_FAILED);
    wait_health(&stage, 0, RBI_HEALTH_OPEN);
    stage_close(&stage);
}

static void test_one_that_answers_no_ping_stays_shielded(void **state)
{
    (void)state;
    struct stage stage;
    struct raw_message message;
    stage_open(&stage, "silent", SERVERS);
    shield_first(&stage);
    next(&stage, &stage.servers[0], RBI_WIRE_PROBE, &message);
    const uint64_t stale = message.body.probe.number;
    wait_health(&stage, 0, RBI_HEALTH_OPEN);
    const struct rbi_wire_probe late = {.number = stale};
    assert_int_equal(raw_send(&stage.servers[0], RBI_WIRE_PROBE, &late, NULL, 0), 0);
    assert_int_equal(raw_set_state(&stage.servers[0], RBI_ENDPOINT_READY), 0); /* it was read */
    assert_int_equal(health_of(&stage, 0), RBI_HEALTH_OPEN);
    stage_close(&stage);
}

static void test_unshield_and_restart_clear_the_state(void **state)
{
    (void)state;
    struct stage stage;
    struct raw_message message;
    struct rbi_wire_unshield body = {.incarnation = 0};
    stage_open(&stage, "clear", SERVERS);
    shield_first(&stage);
    struct raw *tool = &stage.callers[1].raw;
    rbi_text_format(&body.path, "%s/1", stage.path);
    assert_int_equal(raw_send(tool, RBI_WIRE_UNSHIELD, &body, NULL, 0), 0);
    assert_int_equal(raw_expect(tool, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    wait_health(&stage, 0, RBI_HEALTH_OK);
    /* Scenario 118, 132: its next life begins with nothing, and the others' state is theirs. */
    shield_first(&stage);
    raw_close(&stage.servers[0]);
    const uint64_t deadline_ms = test_now_ms() + WAIT_MS;
    while (health_of(&stage, 0) != UINT32_MAX) {
        assert_true(test_now_ms() < deadline_ms);
        test_sleep_ms(5);
    }
    open_server(&stage, 0);
    assert_int_equal(health_of(&stage, 0), RBI_HEALTH_OK);
    assert_int_equal(health_of(&stage, 1), RBI_HEALTH_OK);
    rbi_text_format(&body.path, "%s/9", stage.path);
    assert_int_equal(raw_send(tool, RBI_WIRE_UNSHIELD, &body, NULL, 0), 0);
    assert_int_equal(raw_expect_error(tool), -11); /* NO_INSTANCE */
    rbi_text_format(&body.path, "%s", stage.path);
    assert_int_equal(raw_send(tool, RBI_WIRE_UNSHIELD, &body, NULL, 0), 0);
    assert_int_equal(raw_expect_error(tool), -32); /* PATH */
    stage_close(&stage);
}

/* Scenario 91: when all fail, nobody is to blame alone, and all are listed. */
static void test_all_that_fail_are_panic_and_one_alone_is_never_shielded(void **state)
{
    (void)state;
    struct stage stage;
    bool panic = false;
    uint64_t deadline_ms = test_now_ms() + WAIT_MS;
    stage_open(&stage, "panic", SERVERS);
    for (unsigned i = 0; i < SERVERS; i++) {
        count(&stage.callers[0], i, 0, CALLS);
    }
    while (!panic) {
        assert_true(test_now_ms() < deadline_ms);
        (void)seen(&stage, 0, &panic);
        test_sleep_ms(5);
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        assert_int_equal(health_of(&stage, i), RBI_HEALTH_OK); /* the truth: spared by the median */
    }
    deadline_ms = test_now_ms() + WAIT_MS;
    while (panic) {
        assert_true(test_now_ms() < deadline_ms);
        for (unsigned i = 0; i < SERVERS; i++) {
            count(&stage.callers[0], i, CALLS, 0);
        }
        (void)seen(&stage, 0, &panic);
        test_sleep_ms(20);
    }
    stage_close(&stage);
    stage_open(&stage, "alone", 1);
    count(&stage.callers[0], 0, 0, CALLS);
    const uint64_t lost = raw_status(cluster.socket, "calls_lost");
    count(&stage.callers[0], 0, 0, CALLS);
    deadline_ms = test_now_ms() + WAIT_MS;
    while (raw_status(cluster.socket, "calls_lost") < lost + CALLS) {
        assert_true(test_now_ms() < deadline_ms);
        test_sleep_ms(5);
    }
    assert_int_equal(health_of(&stage, 0), RBI_HEALTH_OK);
    stage_close(&stage);
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}");
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_fails_is_shielded_and_comes_back_by_probes),
        cmocka_unit_test(test_a_prober_that_dies_frees_its_probe),
        cmocka_unit_test(test_one_that_answers_no_ping_stays_shielded),
        cmocka_unit_test(test_unshield_and_restart_clear_the_state),
        cmocka_unit_test(test_all_that_fail_are_panic_and_one_alone_is_never_shielded),
    };
    return cmocka_run_group_tests(tests, up, down);
}
