/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration centre (features J16): what is applied while the daemon runs is checked as a
 * whole, becomes a version, holds at once and over restarts, and can be taken back.
 */
#include "bus/directory.h"
#include "bus/governance.h"
#include "bus/record.h"
#include "daemon/centre_store.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP  "/game/eu/pc/w1/core"
#define ECHO   GROUP "/echo"
#define ECHO_1 ECHO "/1"

/* Tests go on when what they wait for has happened; only broken code waits as long. */
#define PATIENCE_MS 10000U

static const char *socket_path(void)
{
    return loops_cluster.socket;
}

/* ---- asking ------------------------------------------------------------------------------ */

/** Sealed memory with a text. */
static int text_fd(const char *text, size_t size, bool sealed)
{
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, size, 0), (ssize_t)size);
    if (sealed) {
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    }
    return fd;
}

/** The answer to a change. @return 0 with @p applied, or the code of the ERROR with its text */
static int answer(struct raw *raw, struct rbi_wire_applied *applied, struct rbi_text *why)
{
    struct raw_message message;
    int code = 0;
    do {
        assert_int_equal(raw_receive(raw, &message, PATIENCE_MS), 0);
    } while (message.header.type == RBI_WIRE_EVENT);
    if (message.header.type == RBI_WIRE_ERROR) {
        code = message.body.error.code;
        *why = message.body.error.text;
    } else {
        assert_int_equal(message.header.type, RBI_WIRE_APPLIED);
        *applied = message.body.applied;
    }
    raw_message_deinit(&message);
    return code;
}

static struct rbi_wire_applied applied;
static struct rbi_text why;

static int apply_with(struct raw *raw, const char *text, struct rbi_wire_apply *body)
{
    const int fd = text_fd(text, strlen(text), true);
    body->size = (uint32_t)strlen(text);
    rbi_text_set(&body->why, "a test");
    assert_int_equal(raw_send(raw, RBI_WIRE_APPLY, body, &fd, 1), 0);
    assert_int_equal(close(fd), 0);
    return answer(raw, &applied, &why);
}

static int apply(struct raw *raw, const char *text)
{
    return apply_with(raw, text, &(struct rbi_wire_apply){.size = 0});
}

static int edit(struct raw *raw,
                uint32_t what,
                const char *target,
                const char *list,
                const char *id,
                const char *key,
                const char *value)
{
    struct rbi_wire_edit body = {.what = what};
    rbi_text_set(&body.target, target);
    rbi_text_set(&body.list, list);
    rbi_text_set(&body.id, id);
    rbi_text_set(&body.key1, key);
    rbi_text_set(&body.value1, value);
    rbi_text_set(&body.why, "an edit");
    assert_int_equal(raw_send(raw, RBI_WIRE_EDIT, &body, NULL, 0), 0);
    return answer(raw, &applied, &why);
}

static int rollback(struct raw *raw, uint64_t version)
{
    const struct rbi_wire_rollback body = {.version = version};
    assert_int_equal(raw_send(raw, RBI_WIRE_ROLLBACK, &body, NULL, 0), 0);
    return answer(raw, &applied, &why);
}

/** A text of the current version. */
static void get_text(struct raw *raw, bool edits, char *out, size_t room)
{
    const struct rbi_wire_get_text body = {.edits = edits};
    struct raw_message message;
    assert_int_equal(raw_send(raw, RBI_WIRE_GET_TEXT, &body, NULL, 0), 0);
    assert_int_equal(raw_receive(raw, &message, PATIENCE_MS), 0);
    assert_int_equal(message.header.type, RBI_WIRE_TEXT);
    assert_true(message.body.text.size < room);
    assert_int_equal(pread(message.fds.fds[0], out, room, 0), (ssize_t)message.body.text.size);
    out[message.body.text.size] = '\0';
    raw_message_deinit(&message);
}

/** Numbers of the versions that are kept, the newest first. @return how many */
static unsigned history(struct raw *raw, struct rbi_wire_row_version rows[RBI_VERSIONS_KEPT])
{
    const struct rbi_wire_history body = {.most = 0};
    struct raw_message message;
    unsigned count = 0;
    assert_int_equal(raw_send(raw, RBI_WIRE_HISTORY, &body, NULL, 0), 0);
    for (;;) {
        assert_int_equal(raw_receive(raw, &message, PATIENCE_MS), 0);
        if (message.header.type == RBI_WIRE_QUERY_END) {
            break;
        }
        assert_int_equal(message.header.type, RBI_WIRE_ROW_VERSION);
        assert_true(count < RBI_VERSIONS_KEPT);
        rows[count++] = message.body.row_version;
    }
    assert_int_equal(message.body.query_end.rows, count);
    return count;
}

/* ---- what others see --------------------------------------------------------------------- */

static void look(const struct raw *raw,
                 struct rbi_directory_cluster *head,
                 struct rbi_directory_instance *instances,
                 unsigned max)
{
    struct rbi_directory_view view;
    assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size), 0);
    int result = RBI_DIRECTORY_BUSY;
    for (uint64_t end = test_now_ms() + PATIENCE_MS;
         result == RBI_DIRECTORY_BUSY && test_now_ms() < end;) {
        result =
            rbi_directory_read(&view, rbi_cluster_id(ECHO, strlen(ECHO)), head, instances, max);
    }
    assert_int_equal(result, RBI_DIRECTORY_OK);
}

static void look_policy(const struct raw *raw, struct rbi_policy *policy)
{
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
    struct rbi_directory_view view;
    uint64_t size = 0;
    look(raw, &head, instances, RBI_ARRAY_SIZE(instances));
    rbi_policy_defaults(policy);
    if (head.policy != 0) {
        assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size),
                         0);
        assert_int_equal(
            rbi_directory_read_blob(&view, head.policy, policy, sizeof(*policy), &size),
            RBI_DIRECTORY_OK);
    }
}

static uint32_t tries(const struct raw *raw)
{
    struct rbi_policy policy;
    look_policy(raw, &policy);
    return policy.retry.tries;
}

static struct rbi_directory_instance first(const struct raw *raw)
{
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
    look(raw, &head, instances, RBI_ARRAY_SIZE(instances));
    assert_true(head.instance_count >= 1);
    return instances[0];
}

static void name_of_version(uint64_t number, char out[160])
{
    (void)snprintf(out, 160, "%s.version.%02u", socket_path(),
                   (unsigned)(number % RBI_VERSIONS_KEPT));
}

/* ---- whole texts ------------------------------------------------------------------------- */

static void test_apply_holds_at_once_above_the_file(void **state)
{
    struct raw echo;
    struct raw tool;
    char text[256];
    assert_int_equal(
        loops_up(state, "", "clusters: [{match: '/**', retry: {tries: 2, forks: 3}}]\n"), 0);
    assert_int_equal(raw_up(&echo, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_connect(&tool, socket_path()), 0);
    assert_int_equal(raw_hello(&tool), 0);
    assert_int_equal(tries(&tool), 2);
    static const char pushed[] = "# by hand\nclusters: [{match: " ECHO ", retry: {tries: 7}}]\n";
    assert_int_equal(apply(&tool, pushed), 0);
    assert_int_equal(applied.version, 1);
    assert_int_equal(applied.clusters, 1);
    assert_int_equal(applied.instances, 0);
    assert_int_equal(applied.warning.length, 0);
    assert_int_equal(tries(&tool), 7);
    get_text(&tool, false, text, sizeof(text));
    assert_string_equal(text, pushed);
    /* A reload of the file goes on below it. */
    char config[256];
    struct rbi_policy policy;
    (void)snprintf(config, sizeof(config),
                   "daemon: {loop: %s}\nclusters: [{match: '/**', retry: {tries: 3, forks: 4}}]\n",
                   (const char *)*state);
    assert_int_equal(cluster_configure(&loops_cluster, config), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=reloaded", PATIENCE_MS));
    look_policy(&tool, &policy);
    assert_int_equal(policy.retry.tries, 7);
    assert_int_equal(policy.retry.forks, 4);
    /* And is there again when nothing is applied any more. */
    assert_int_equal(apply(&tool, "{}\n"), 0);
    assert_int_equal(applied.version, 2);
    assert_int_equal(tries(&tool), 3);
    raw_close(&echo);
    raw_close(&tool);
}

static void test_apply_refuses_what_is_wrong_and_changes_nothing(void **state)
{
    struct raw echo;
    char file[160];
    assert_int_equal(loops_up(state, "",
                              "rights: {rules: [{id: file, verbs: [send]}]}\n" /* line 2 */
                              "clusters: [{match: '/**', limits: [{id: a, rate: 1}, {id: b, rate: "
                              "1}, {id: c, rate: 1}, {id: d, rate: 1}, {id: e, rate: 1}]}]\n"),
                     0);
    assert_int_equal(raw_up(&echo, socket_path(), ECHO_1), 0);
    assert_int_equal(apply(&echo, "clusters:\n  - {match: /a, retry: {tries: x}}\n"),
                     RBI_CODE_ARGUMENT);
    assert_non_null(strstr(why.bytes, "2:32: clusters[0].retry.tries: expected"));
    assert_int_equal(apply(&echo, "daemon: {log_level: debug}\n"), RBI_CODE_ARGUMENT);
    assert_int_equal(apply(&echo, ""), RBI_CODE_ARGUMENT);
    /* Right for itself, and too much together with the file. */
    assert_int_equal(apply(&echo, "clusters: [{match: '/**', limits: [{id: f, rate: 1}, {id: g, "
                                  "rate: 1}, {id: h, rate: 1}, {id: i, rate: 1}]}]\n"),
                     RBI_CODE_ARGUMENT);
    assert_non_null(strstr(why.bytes, ECHO ": limits: all entries that match have more than 8"));
    /* The file's rules stay as they are (features B11). */
    assert_int_equal(apply(&echo, "rights: {rules: [{id: file, verbs: [own]}]}\n"),
                     RBI_CODE_ARGUMENT);
    assert_non_null(strstr(why.bytes, "1:18: rules: file stands in "));
    assert_non_null(strstr(why.bytes, ".yaml:2:18, and a push does not change it: take another"));
    assert_int_equal(apply(&echo, "clusters: [{match: /game/**, limits: [{id: c, rate: 9}]}]\n"),
                     RBI_CODE_ARGUMENT);
    assert_non_null(strstr(why.bytes, "1:39: limits: c stands in "));
    assert_non_null(strstr(why.bytes, ".yaml:3:72, and a push does not change it"));
    assert_int_equal(apply_with(&echo,
                                "clusters: [{match: /game/**, limits: [{id: c, rate: 9}]}]\n",
                                &(struct rbi_wire_apply){.dry_run = 1}),
                     RBI_CODE_ARGUMENT);
    /* Only a client that seals what it sends is read. */
    const int open_fd = text_fd("{}\n", 3, false);
    struct rbi_wire_apply body = {.size = 3};
    assert_int_equal(raw_send(&echo, RBI_WIRE_APPLY, &body, &open_fd, 1), 0);
    assert_int_equal(answer(&echo, &applied, &why), RBI_CODE_ARGUMENT);
    (void)close(open_fd);
    const int short_fd = text_fd("{}\n", 3, true);
    body.size = 4;
    assert_int_equal(raw_send(&echo, RBI_WIRE_APPLY, &body, &short_fd, 1), 0);
    assert_int_equal(answer(&echo, &applied, &why), RBI_CODE_ARGUMENT);
    body.size = UINT32_MAX;
    assert_int_equal(raw_send(&echo, RBI_WIRE_APPLY, &body, &short_fd, 1), 0);
    assert_int_equal(answer(&echo, &applied, &why), RBI_CODE_ARGUMENT);
    (void)close(short_fd);
    name_of_version(1, file);
    assert_int_equal(access(file, F_OK), -1);
    /* The next good one is the first. */
    assert_int_equal(apply(&echo, "{}\n"), 0);
    assert_int_equal(applied.version, 1);
    raw_close(&echo);
}

static void test_apply_expects_a_version_and_tries_without_one(void **state)
{
    struct raw echo;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&echo, socket_path(), ECHO_1), 0);
    static const char text[] = "clusters: [{match: '/**', retry: {tries: 5}}]\n"
                               "instances: {" ECHO_1 ": {weight: 3}, " ECHO "/9: {weight: 3}}\n";
    assert_int_equal(apply_with(&echo, text, &(struct rbi_wire_apply){.dry_run = 1}), 0);
    assert_int_equal(applied.version, 0);
    assert_int_equal(applied.clusters, 1);
    assert_int_equal(applied.instances, 1);
    assert_int_equal(tries(&echo), 1);
    assert_int_equal(apply_with(&echo, text, &(struct rbi_wire_apply){.expected = 1, .expect = 4}),
                     RBI_CODE_IN_USE);
    assert_non_null(strstr(why.bytes, "version 4 was expected, 0 holds"));
    assert_int_equal(apply_with(&echo, text, &(struct rbi_wire_apply){.expected = 1}), 0);
    assert_int_equal(applied.version, 1);
    assert_int_equal(apply_with(&echo, text, &(struct rbi_wire_apply){.expected = 1}),
                     RBI_CODE_IN_USE);
    assert_int_equal(tries(&echo), 5);
    raw_close(&echo);
}

/* ---- single changes ---------------------------------------------------------------------- */

/* Scenario 99: the tool that made a change is gone, and it holds all the same. */
static void test_edits_join_and_outlive_their_tool(void **state)
{
    struct raw echo;
    struct raw tool;
    char text[512];
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&echo, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_connect(&tool, socket_path()), 0);
    assert_int_equal(raw_hello(&tool), 0);
    assert_int_equal(edit(&tool, RBI_EDIT_SET, ECHO_1, "", "", "weight", "7"), 0);
    assert_int_equal(applied.instances, 1);
    assert_int_equal(edit(&tool, RBI_EDIT_SET, ECHO_1, "", "", "isolated", "true"), 0);
    assert_int_equal(edit(&tool, RBI_EDIT_SET, ECHO, "limits", "hot", "rate", "50"), 0);
    assert_int_equal(applied.clusters, 1);
    assert_int_equal(applied.version, 3);
    get_text(&tool, true, text, sizeof(text));
    assert_string_equal(text, "instances:\n  \"" ECHO_1 "\": {isolated: \"true\", weight: \"7\"}\n"
                              "clusters:\n  - {match: \"" ECHO
                              "\", limits: [{id: \"hot\", rate: \"50\"}]}\n");
    raw_close(&tool);
    assert_int_equal(first(&echo).weight, 7);
    assert_int_equal(first(&echo).override, RBI_OVERRIDE_ISOLATED);
    /* Applying a text leaves them; what it says of others lies below. */
    assert_int_equal(apply(&echo, "instances: {" ECHO_1 ": {weight: 9, set: a.b.c}}\n"), 0);
    assert_int_equal(first(&echo).weight, 7);
    assert_string_equal(first(&echo).set, "a.b.c");
    assert_int_equal(edit(&echo, RBI_EDIT_RESET, ECHO_1, "", "", "weight", ""), 0);
    assert_int_equal(first(&echo).weight, 9);
    /* Off is off, also where the text below says on. */
    assert_int_equal(apply(&echo, "instances: {" ECHO_1 ": {isolated: true}}\n"), 0);
    assert_int_equal(edit(&echo, RBI_EDIT_RESET, ECHO_1, "", "", "isolated", "false"), 0);
    assert_int_equal(first(&echo).override, 0);
    assert_int_equal(edit(&echo, RBI_EDIT_RESET, ECHO, "limits", "hot", "", ""), 0);
    get_text(&echo, true, text, sizeof(text));
    assert_string_equal(text, "instances:\n  \"" ECHO_1 "\": {isolated: \"false\"}\n");
    raw_close(&echo);
}

static void test_edit_refuses_what_is_no_value(void **state)
{
    struct raw raw;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    assert_int_equal(edit(&raw, RBI_EDIT_SET, ECHO_1, "", "", "weight", "1001"), RBI_CODE_ARGUMENT);
    assert_non_null(strstr(why.bytes, "out of range"));
    assert_int_equal(edit(&raw, RBI_EDIT_SET, ECHO, "", "", "weight", "1"), RBI_CODE_ARGUMENT);
    assert_int_equal(edit(&raw, RBI_EDIT_SET, ECHO_1, "", "", "wieght", "1"), RBI_CODE_ARGUMENT);
    assert_int_equal(edit(&raw, RBI_EDIT_SET, ECHO_1, "", "", "set", "a\"}, x: {"),
                     RBI_CODE_ARGUMENT);
    assert_int_equal(edit(&raw, RBI_EDIT_SET, ECHO, "rights", "a", "rate", "1"), RBI_CODE_ARGUMENT);
    assert_int_equal(edit(&raw, 9, ECHO_1, "", "", "weight", "1"), RBI_CODE_ARGUMENT);
    assert_int_equal(edit(&raw, RBI_EDIT_MOCK, ECHO, "", "7", "", "true"), RBI_CODE_NO_INSTANCE);
    struct rbi_wire_row_version rows[RBI_VERSIONS_KEPT];
    assert_int_equal(history(&raw, rows), 0);
    raw_close(&raw);
}

static void test_mock_switches_the_entry_of_its_method(void **state)
{
    struct raw raw;
    struct rbi_policy policy;
    assert_int_equal(loops_up(state, "",
                              "clusters: [{match: '/**', degrade: [{id: fail, action: fail}, "
                              "{id: news, methods: 5..9, action: mock, on: [limited]}]}]\n"),
                     0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    assert_int_equal(edit(&raw, RBI_EDIT_MOCK, ECHO, "", "7", "", "true"), 0);
    look_policy(&raw, &policy);
    assert_int_equal(policy.degrades[0].triggers, 0);
    assert_int_equal(policy.degrades[1].triggers, RBI_DEGRADE_LIMITED | RBI_DEGRADE_MANUAL);
    assert_int_equal(edit(&raw, RBI_EDIT_MOCK, ECHO, "", "news", "", "false"), 0);
    look_policy(&raw, &policy);
    assert_int_equal(policy.degrades[1].triggers, RBI_DEGRADE_LIMITED);
    assert_int_equal(edit(&raw, RBI_EDIT_MOCK, ECHO, "", "10", "", "true"), RBI_CODE_NO_INSTANCE);
    raw_close(&raw);
}

/* ---- history and restarts ---------------------------------------------------------------- */

static void test_history_keeps_sixteen_and_goes_back_to_any(void **state)
{
    struct raw raw;
    struct rbi_wire_row_version rows[RBI_VERSIONS_KEPT];
    char text[128];
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    for (unsigned i = 1; i <= 20; i++) {
        (void)snprintf(text, sizeof(text),
                       "clusters: [{match: '/**', retry: {failback_max: %u}}]\n", i);
        assert_int_equal(apply(&raw, text), 0);
        assert_int_equal(applied.version, i);
    }
    assert_int_equal(history(&raw, rows), RBI_VERSIONS_KEPT);
    for (unsigned i = 0; i < RBI_VERSIONS_KEPT; i++) {
        assert_int_equal(rows[i].version, 20 - i);
        assert_int_equal(rows[i].uid, getuid());
        assert_int_equal(rows[i].pid, getpid());
        assert_string_equal(rows[i].why.bytes, "a test");
        assert_true(rows[i].when_s > 1000000000);
    }
    assert_int_equal(rollback(&raw, 4), RBI_CODE_NO_INSTANCE);
    assert_int_equal(rollback(&raw, 0), RBI_CODE_NO_INSTANCE);
    assert_int_equal(rollback(&raw, 21), RBI_CODE_NO_INSTANCE);
    assert_int_equal(rollback(&raw, 5), 0);
    assert_int_equal(applied.version, 21);
    struct rbi_policy policy;
    look_policy(&raw, &policy);
    assert_int_equal(policy.retry.failback_max, 5);
    assert_int_equal(history(&raw, rows), RBI_VERSIONS_KEPT);
    assert_int_equal(rows[15].version, 6);
    raw_close(&raw);
}

/** Cuts the last byte off, or changes one. */
static void damage(uint64_t number, bool cut)
{
    char name[160];
    struct stat found;
    name_of_version(number, name);
    const int fd = open(name, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    if (cut) {
        assert_int_equal(ftruncate(fd, found.st_size - 1), 0);
    } else {
        assert_int_equal(pwrite(fd, "X", 1, found.st_size - 2), 1);
    }
    assert_int_equal(close(fd), 0);
}

/* What was applied holds again after a restart, of what is not damaged the newest. */
static void test_versions_outlive_the_daemon(void **state)
{
    struct raw raw;
    struct rbi_wire_row_version rows[RBI_VERSIONS_KEPT];
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    assert_int_equal(apply(&raw, "clusters: [{match: '/**', retry: {tries: 4}}]\n"), 0);
    assert_int_equal(edit(&raw, RBI_EDIT_SET, ECHO_1, "", "", "weight", "7"), 0);
    assert_int_equal(apply(&raw, "clusters: [{match: '/**', retry: {tries: 6}}]\n"), 0);
    assert_int_equal(apply(&raw, "clusters: [{match: '/**', retry: {tries: 8}}]\n"), 0);
    raw_close(&raw);
    cluster_kill(&loops_cluster);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    assert_int_equal(tries(&raw), 8);
    assert_int_equal(first(&raw).weight, 7);
    assert_int_equal(history(&raw, rows), 4);
    assert_string_equal(rows[2].why.bytes, "an edit");
    raw_close(&raw);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    damage(4, true);
    damage(3, false);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=version_ignored"), 2);
    assert_int_equal(cluster_log_count(&loops_cluster, "why=\"cut off\""), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "why=\"damaged\""), 1);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    assert_int_equal(tries(&raw), 4);
    assert_int_equal(first(&raw).weight, 7);
    assert_int_equal(apply(&raw, "{}\n"), 0);
    assert_int_equal(applied.version, 3);
    raw_close(&raw);
}

/* A folder that cannot be written to: it holds, and whoever asked for it is told. */
static void test_apply_without_a_place_holds_until_the_end(void **state)
{
    struct raw raw;
    assert_int_equal(loops_up(state, "state_dir: /proc/no/such", ""), 0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    assert_int_equal(apply(&raw, "clusters: [{match: '/**', retry: {tries: 4}}]\n"), 0);
    assert_non_null(strstr(applied.warning.bytes, "/proc/no/such/version: No such file"));
    assert_int_equal(cluster_log_count(&loops_cluster, "event=version_not_kept"), 1);
    assert_int_equal(tries(&raw), 4);
    assert_int_equal(rollback(&raw, 1), 0);
    raw_close(&raw);
}

/* Changes are for who may administer. */
static void test_changes_need_the_right(void **state)
{
    struct raw raw;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(seteuid(65534), 0);
    const int connected = raw_connect(&raw, socket_path());
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(connected, 0);
    assert_int_equal(raw_hello(&raw), 0);
    assert_int_equal(apply(&raw, "{}\n"), RBI_CODE_DENIED);
    assert_int_equal(edit(&raw, RBI_EDIT_SET, ECHO_1, "", "", "weight", "7"), RBI_CODE_DENIED);
    assert_int_equal(rollback(&raw, 1), RBI_CODE_DENIED);
    assert_int_equal(
        raw_send(&raw, RBI_WIRE_HISTORY, &(struct rbi_wire_history){.most = 0}, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_DENIED);
    assert_int_equal(
        raw_send(&raw, RBI_WIRE_GET_TEXT, &(struct rbi_wire_get_text){.edits = 0}, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_DENIED);
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_apply_holds_at_once_above_the_file),
        LOOPS_BOTH(test_apply_refuses_what_is_wrong_and_changes_nothing),
        LOOPS_BOTH(test_apply_expects_a_version_and_tries_without_one),
        LOOPS_BOTH(test_edits_join_and_outlive_their_tool),
        LOOPS_BOTH(test_edit_refuses_what_is_no_value),
        LOOPS_BOTH(test_mock_switches_the_entry_of_its_method),
        LOOPS_BOTH(test_history_keeps_sixteen_and_goes_back_to_any),
        LOOPS_BOTH(test_versions_outlive_the_daemon),
        LOOPS_BOTH(test_apply_without_a_place_holds_until_the_end),
        LOOPS_BOTH(test_changes_need_the_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
