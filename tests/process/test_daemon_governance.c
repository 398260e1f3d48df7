/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the configuration says of clusters and instances, as others see it: in the directory, in
 * events, for those who are there and for those who come later.
 */
#include "bus/directory.h"
#include "bus/governance.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define GROUP "/game/eu/pc/w1/core"
#define ECHO  GROUP "/echo"
#define CHAT  GROUP "/chat"

/* Tests go on when what they wait for has happened; only broken code waits as long. */
#define PATIENCE_MS 10000U

static const char *socket_path(void)
{
    return loops_cluster.socket;
}

/** What others see of a cluster. */
struct seen {
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
};

static void look(const struct raw *raw, const char *cluster, struct seen *seen)
{
    struct rbi_directory_view view;
    assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size), 0);
    const uint64_t id = rbi_cluster_id(cluster, strlen(cluster));
    int result = RBI_DIRECTORY_BUSY;
    for (uint64_t end = test_now_ms() + PATIENCE_MS;
         result == RBI_DIRECTORY_BUSY && test_now_ms() < end;) {
        result = rbi_directory_read(&view, id, &seen->head, seen->instances,
                                    RBI_ARRAY_SIZE(seen->instances));
    }
    assert_int_equal(result, RBI_DIRECTORY_OK);
}

/** The policy that the directory has for a cluster. */
static void look_policy(const struct raw *raw, const char *cluster, struct rbi_policy *policy)
{
    struct rbi_directory_view view;
    struct seen seen;
    uint64_t size = 0;
    look(raw, cluster, &seen);
    rbi_policy_defaults(policy);
    if (seen.head.policy == 0) {
        return;
    }
    assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size), 0);
    assert_int_equal(
        rbi_directory_read_blob(&view, seen.head.policy, policy, sizeof(*policy), &size),
        RBI_DIRECTORY_OK);
    assert_int_equal(size, sizeof(*policy));
    assert_true(rbi_policy_valid(policy));
    assert_true(policy->fingerprint == seen.head.policy);
}

/** Reads the file again; it holds when this returns. */
static void reload(void **state, const char *rest, unsigned times)
{
    char config[2048];
    (void)snprintf(config, sizeof(config), "daemon: {loop: %s}\n%s", (const char *)*state, rest);
    assert_int_equal(cluster_configure(&loops_cluster, config), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    for (uint64_t end = test_now_ms() + PATIENCE_MS;
         cluster_log_count(&loops_cluster, "event=reloaded") < times && test_now_ms() < end;) {
        test_sleep_ms(5);
    }
    assert_int_equal(cluster_log_count(&loops_cluster, "event=reloaded"), times);
}

/** The next event is this change of this instance. */
static void expect_event(struct raw *raw, const char *path, uint32_t change, uint32_t weight)
{
    struct raw_message message;
    assert_int_equal(raw_receive(raw, &message, PATIENCE_MS), 0);
    assert_int_equal(message.header.type, RBI_WIRE_EVENT);
    assert_string_equal(message.body.event.path.bytes, path);
    assert_int_equal(message.body.event.change, change);
    assert_int_equal(message.body.event.weight, weight);
    raw_message_deinit(&message);
}

/** The daemon has nothing more to say: its answer to a question comes next. */
static void expect_nothing(struct raw *raw)
{
    struct raw_message message;
    assert_int_equal(raw_send(raw, RBI_WIRE_UNWATCH,
                              &(struct rbi_wire_unwatch){.prefix = {.length = 2, .bytes = "/q"}},
                              NULL, 0),
                     0);
    assert_int_equal(raw_receive(raw, &message, PATIENCE_MS), 0);
    assert_true(message.header.type == RBI_WIRE_OK || message.header.type == RBI_WIRE_ERROR);
    raw_message_deinit(&message);
}

/* Only the clusters that an entry names get another policy; the others keep their epoch. */
static void test_reload_changes_policies_of_named_clusters_only(void **state)
{
    struct raw echo;
    struct raw chat;
    struct seen before;
    struct seen after;
    struct rbi_policy policy;
    assert_int_equal(loops_up(state, "", "clusters: [{match: " ECHO ", retry: {tries: 3}}]\n"), 0);
    assert_int_equal(raw_up(&echo, socket_path(), ECHO "/1"), 0);
    assert_int_equal(raw_up(&chat, socket_path(), CHAT "/1"), 0);
    look_policy(&echo, ECHO, &policy);
    assert_int_equal(policy.retry.tries, 3);
    look(&echo, CHAT, &before);
    assert_true(before.head.policy == 0);
    reload(state, "clusters: [{match: " ECHO ", retry: {tries: 4}, set: {mode: strict}}]\n", 1);
    look_policy(&echo, ECHO, &policy);
    assert_int_equal(policy.retry.tries, 4);
    assert_int_equal(policy.set.mode, RBI_STAGE_STRICT);
    look(&echo, CHAT, &after);
    assert_true(after.head.epoch == before.head.epoch);
    /* One that comes later has it as well, and none is left behind. */
    struct raw gate;
    reload(state, "clusters: [{match: " GROUP "/gate, retry: {tries: 5}}]\n", 2);
    look_policy(&echo, ECHO, &policy);
    assert_int_equal(policy.retry.tries, 1);
    assert_int_equal(raw_up(&gate, socket_path(), GROUP "/gate/1"), 0);
    look_policy(&echo, GROUP "/gate", &policy);
    assert_int_equal(policy.retry.tries, 5);
    raw_close(&echo);
    raw_close(&chat);
    raw_close(&gate);
}

/*
 * Scenarios 99 and 132: what the operator says of an instance is said to watchers once, of that
 * instance alone, and holds for its next life; its registration ends with it.
 */
static void test_override_is_of_one_instance_and_outlives_it(void **state)
{
    struct raw raws[2];
    struct raw watcher;
    struct seen seen;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&raws[0], socket_path(), ECHO "/1"), 0);
    assert_int_equal(raw_up(&raws[1], socket_path(), ECHO "/2"), 0);
    assert_int_equal(raw_up(&watcher, socket_path(), ""), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_WATCH, "/game"), 0);
    expect_event(&watcher, ECHO "/1", RBI_CHANGE_ADDED, 100);
    expect_event(&watcher, ECHO "/2", RBI_CHANGE_ADDED, 100);
    reload(state, "instances: {" ECHO "/1: {weight: 7, set: a.b.c, isolated: true, tags: pre}}\n",
           1);
    expect_event(&watcher, ECHO "/1", RBI_CHANGE_UPDATED, 7);
    expect_nothing(&watcher);
    look(&watcher, ECHO, &seen);
    assert_int_equal(seen.instances[0].weight, 7);
    assert_int_equal(seen.instances[0].override, RBI_OVERRIDE_ISOLATED);
    assert_string_equal(seen.instances[0].set, "a.b.c");
    assert_string_equal(seen.instances[0].tags, "pre");
    assert_int_equal(seen.instances[1].weight, 100);
    assert_int_equal(seen.instances[1].override, 0);
    /* The same once more is no change. */
    reload(state, "instances: {" ECHO "/1: {tags: pre, isolated: true, weight: 7, set: a.b.c}}\n",
           2);
    expect_nothing(&watcher);
    /* What it says of itself meanwhile is kept for later. */
    const struct rbi_wire_set_state own = {
        .state = RBI_ENDPOINT_READY, .weight = 55, .weight_set = 1};
    assert_int_equal(raw_send(&raws[0], RBI_WIRE_SET_STATE, &own, NULL, 0), 0);
    expect_nothing(&raws[0]); /* its OK is read by that as well */
    /* It ends with its registration, and comes back as the operator said. */
    raw_close(&raws[0]);
    expect_event(&watcher, ECHO "/1", RBI_CHANGE_REMOVED, 7);
    assert_int_equal(raw_up(&raws[0], socket_path(), ECHO "/1"), 0);
    expect_event(&watcher, ECHO "/1", RBI_CHANGE_ADDED, 7);
    reload(state, "", 3);
    expect_event(&watcher, ECHO "/1", RBI_CHANGE_UPDATED, 100);
    expect_nothing(&watcher);
    look(&watcher, ECHO, &seen);
    assert_int_equal(seen.instances[0].override, 0);
    assert_string_equal(seen.instances[0].set, "");
    raw_close(&raws[0]);
    raw_close(&raws[1]);
    raw_close(&watcher);
}

/*
 * A change about many instances of a cluster is one snapshot, and an event of its own for each of
 * them, or a large cluster would be written as often as it has instances.
 */
static void test_change_of_many_is_one_snapshot(void **state)
{
    struct raw raws[4];
    struct raw watcher;
    struct raw_message message;
    struct rbi_directory_view view;
    struct seen before;
    struct seen after;
    assert_int_equal(loops_up(state, "", ""), 0);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(raws); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), ECHO "/%u", i + 1);
        assert_int_equal(raw_up(&raws[i], socket_path(), path), 0);
    }
    assert_int_equal(raw_up(&watcher, socket_path(), ""), 0);
    look(&watcher, ECHO, &before);
    /* Through two paths, and told once. */
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_TARGET, ECHO), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_WATCH, "/"), 0);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(raws); i++) {
        assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, PATIENCE_MS), 0);
        raw_message_deinit(&message);
    }
    reload(state,
           "instances: {" ECHO "/1: {weight: 1}, " ECHO "/2: {weight: 2}, " ECHO
           "/4: {weight: 4}}\n",
           1);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(raw_receive(&watcher, &message, PATIENCE_MS), 0);
        assert_int_equal(message.header.type, RBI_WIRE_EVENT);
        assert_int_equal(message.body.event.change, RBI_CHANGE_UPDATED);
        assert_int_equal(message.body.event.weight, i == 3 ? 4 : i);
        assert_true(message.body.event.revision == before.head.epoch + i);
        raw_message_deinit(&message);
    }
    expect_nothing(&watcher);
    look(&watcher, ECHO, &after);
    assert_true(after.head.epoch == before.head.epoch + 1);
    assert_int_equal(after.instances[3].weight, 4);
    assert_int_equal(rbi_directory_view_init(&view, watcher.directory.base, watcher.directory.size),
                     0);
    assert_true(rbi_directory_revision(&view) == before.head.epoch + 3);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(raws); i++) {
        raw_close(&raws[i]);
    }
    raw_close(&watcher);
}

/* All or nothing: a file with an error in one section changes none of the others (128). */
static void test_reload_with_an_error_changes_nothing(void **state)
{
    struct raw echo;
    struct rbi_policy policy;
    assert_int_equal(loops_up(state, "", "clusters: [{match: '/**', retry: {tries: 3}}]\n"), 0);
    assert_int_equal(raw_up(&echo, socket_path(), ECHO "/1"), 0);
    assert_int_equal(cluster_configure(&loops_cluster,
                                       "clusters: [{match: '/**', retry: {tries: 9}}]\n"
                                       "instances: {" ECHO "/1: {weight: 2000}}\n"),
                     0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=reload_failed", PATIENCE_MS));
    assert_int_equal(cluster_log_count(&loops_cluster, "line=2 column=50"), 1);
    look_policy(&echo, ECHO, &policy);
    assert_int_equal(policy.retry.tries, 3);
    raw_close(&echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_reload_changes_policies_of_named_clusters_only),
        LOOPS_BOTH(test_override_is_of_one_instance_and_outlives_it),
        LOOPS_BOTH(test_change_of_many_is_one_snapshot),
        LOOPS_BOTH(test_reload_with_an_error_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
