/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with what is known of other hosts (features 2.13): proxies follow the table, hosts
 * are asked, files outlive the bridge, and calls from within calls follow them.
 */
#include "bus/record.h"
#include "daemon/bridge/import_desk.h"
#include "import_bench.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALPHA   1U /* numbers of hosts: their ids follow from their names */
#define BETA    2U
#define LIFE    UINT64_C(77)
#define PROXIES 8U
#define NS_1MS  UINT64_C(1000000)

struct proxy {
    bool there;
    bool stale;
    uint32_t entry;
    uint32_t weight;
    char path[RBI_PATH_MAX + 1];
    char host[RBI_HOST_NAME_MAX + 1];
};

static char base[] = "/tmp/ringbus-desk-XXXXXX";
static char folder[64];
static struct rbi_loop *loop;
static struct rbi_bridge_config config;
static struct rbi_import_desk *desk;
static struct proxy proxies[PROXIES];
static uint32_t reason;
static uint32_t asks;
static uint64_t asked_incarnation;
static uint64_t asked_revision;
static int add_result;
static bool dead_from_within; /* add() says that what it adds is dead */
static unsigned depth;        /* calls of ours that are under way */

static uint64_t id_of(unsigned host)
{
    const char *name = host == ALPHA ? "alpha" : "beta";
    return rbi_host_id(name, strlen(name));
}

static int add(void *context,
               const struct rbi_import_host *host,
               uint32_t entry,
               const struct rbi_remote *remote,
               bool stale,
               void **user)
{
    assert_ptr_equal(context, proxies);
    assert_int_equal(depth++, 0);
    if (dead_from_within) {
        rbi_import_desk_dead(desk, entry);
    }
    depth--;
    for (uint32_t i = 0; i < PROXIES && add_result == 0; i++) {
        if (!proxies[i].there) {
            proxies[i] = (struct proxy){
                .there = true, .stale = stale, .entry = entry, .weight = remote->weight};
            (void)snprintf(proxies[i].path, sizeof proxies[i].path, "%s", remote->path);
            (void)snprintf(proxies[i].host, sizeof proxies[i].host, "%s", host->name);
            *user = &proxies[i];
            return 0;
        }
    }
    return add_result != 0 ? add_result : -ENOMEM;
}

static void update(void *context, void *user, const struct rbi_remote *remote, bool stale)
{
    struct proxy *proxy = user;
    (void)context;
    assert_true(proxy->there);
    assert_string_equal(proxy->path, remote->path);
    proxy->stale = stale;
    proxy->weight = remote->weight;
}

static void take_away(void *context, void *user, uint32_t why)
{
    struct proxy *proxy = user;
    (void)context;
    assert_true(proxy->there);
    proxy->there = false;
    reason = why;
}

static int ask(void *context, uint64_t host, uint64_t incarnation, uint64_t revision)
{
    (void)context;
    assert_true(host == id_of(ALPHA) || host == id_of(BETA));
    asks++;
    asked_incarnation = incarnation;
    asked_revision = revision;
    return 0;
}

static const struct rbi_import_desk_calls calls = {
    .add = add, .update = update, .remove = take_away, .ask = ask};

static void open_desk(void)
{
    assert_int_equal(rbi_import_desk_new(loop, &config, folder, &calls, proxies, &desk), 0);
}

/** The bridge ends, its proxies with it. */
static void close_desk(void)
{
    rbi_import_desk_free(desk);
    desk = NULL;
    memset(proxies, 0, sizeof proxies);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(base, sizeof base, "/tmp/ringbus-desk-XXXXXX");
    assert_non_null(mkdtemp(base));
    (void)snprintf(folder, sizeof folder, "%s/hosts", base);
    assert_int_equal(rbi_loop_new(&loop, RBI_LOOP_EPOLL), 0);
    rbi_bridge_config_defaults(&config);
    (void)snprintf(config.host, sizeof config.host, "gamma");
    config.limits.instances = PROXIES;
    memset(proxies, 0, sizeof proxies);
    asks = 0;
    add_result = 0;
    dead_from_within = false;
    open_desk();
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    close_desk();
    loop = rbi_loop_free(loop);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", base);
    return system(command); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
}

static void reach(unsigned host, bool reachable)
{
    rbi_import_desk_reach(desk, id_of(host), host == ALPHA ? "alpha" : "beta", reachable);
}

static void
item(unsigned host, uint64_t revision, uint32_t flags, uint32_t number, const char *name)
{
    struct rbi_remote_item told = {
        .incarnation = LIFE, .revision = revision, .flags = flags, .number = number};
    if (name) {
        told.remote = bench_remote("lobby", name, 5);
        told.remote.state =
            flags & RBI_ITEM_REMOVED ? (uint32_t)RBI_REASON_LEFT : told.remote.state;
    }
    assert_int_equal(rbi_import_desk_item(desk, id_of(host), &told), 0);
}

/** Two instances of alpha. */
static void two_of_alpha(void)
{
    reach(ALPHA, true);
    item(ALPHA, 3, RBI_ITEM_FIRST, 1, "1");
    item(ALPHA, 3, 0, 2, "2");
    item(ALPHA, 3, RBI_ITEM_LAST, 3, NULL);
}

static uint32_t count(void)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < PROXIES; i++) {
        there += proxies[i].there ? 1U : 0U;
    }
    return there;
}

static void test_proxies_follow_what_is_told(void **state)
{
    (void)state;
    two_of_alpha();
    assert_int_equal(asks, 1);
    assert_int_equal(count(), 2);
    assert_string_equal(proxies[0].host, "alpha");
    assert_false(proxies[0].stale);
    item(ALPHA, 4, RBI_ITEM_REMOVED | RBI_ITEM_LAST, 0, "1");
    assert_int_equal(count(), 1);
    assert_int_equal(reason, RBI_REASON_LEFT);
    reach(ALPHA, false);
    assert_true(proxies[1].stale);
    assert_int_equal(rbi_import_desk_table(desk)->counters.removed, 1);
    rbi_import_desk_leave(desk, id_of(ALPHA));
    assert_int_equal(count(), 0);
}

static void test_times_pass_in_the_loop(void **state)
{
    (void)state;
    config.grace_ms = 20;
    config.mass_hold_ms = 10;
    rbi_import_desk_configure(desk, &config);
    two_of_alpha();
    reach(ALPHA, false);
    assert_int_equal(count(), 2);
    for (unsigned i = 0; i < 3000 && count() > 0; i++) {
        assert_int_equal(rbi_loop_turn(loop, NS_1MS), 0);
    }
    assert_int_equal(count(), 0);
    assert_int_equal(reason, RBI_REASON_UNREACHABLE);
}

static void test_what_cannot_be_added_is_tried_again(void **state)
{
    (void)state;
    add_result = -EEXIST;
    two_of_alpha();
    assert_int_equal(count(), 0);
    add_result = 0;
    for (unsigned i = 0; i < 3000 && count() < 2; i++) {
        assert_int_equal(rbi_loop_turn(loop, NS_1MS), 0);
    }
    assert_int_equal(count(), 2);
}

static void test_what_the_daemon_has_is_given_up_for_now(void **state)
{
    (void)state;
    two_of_alpha();
    proxies[0].there = false; /* freed, since its path is in use */
    rbi_import_desk_taken(desk, proxies[0].entry);
    assert_int_equal(count(), 1);
    item(ALPHA, 4, RBI_ITEM_REMOVED | RBI_ITEM_LAST, 0, "1"); /* nobody is taken away for it */
    assert_int_equal(count(), 1);
    rbi_import_desk_taken(desk, UINT32_MAX); /* what is unknown is ignored */
    rbi_import_desk_dead(desk, UINT32_MAX);
}

static void test_a_reload_makes_room(void **state)
{
    (void)state;
    static struct rbi_bridge_config next;
    close_desk();
    config.limits.instances = 1;
    open_desk();
    two_of_alpha();
    assert_int_equal(count(), 1);
    next = config;
    next.limits.instances = PROXIES;
    asks = 0;
    rbi_import_desk_configure(desk, &next);
    for (unsigned i = 0; i < 3000 && asks == 0; i++) {
        assert_int_equal(rbi_loop_turn(loop, NS_1MS), 0);
    }
    assert_int_equal(asked_incarnation, 0);
    item(ALPHA, 3, RBI_ITEM_FIRST, 1, "1");
    item(ALPHA, 3, 0, 2, "2");
    item(ALPHA, 3, RBI_ITEM_LAST, 3, NULL);
    assert_int_equal(count(), 2);
    item(ALPHA, 4, RBI_ITEM_REMOVED | RBI_ITEM_LAST, 0, "1"); /* from before the larger table */
    assert_int_equal(count(), 1);
}

static void test_calls_from_within_follow(void **state)
{
    (void)state;
    dead_from_within = true;
    two_of_alpha();
    assert_int_equal(count(), 0);
    assert_int_equal(reason, RBI_REASON_CRASHED);
    assert_int_equal(rbi_import_desk_table(desk)->entry_count, 0);
}

static void test_operators_confirm(void **state)
{
    (void)state;
    two_of_alpha();
    reach(ALPHA, false);
    assert_int_equal(rbi_import_desk_confirm(desk, "beta", ""), 0);
    assert_int_equal(rbi_import_desk_confirm(desk, "alpha", "/app/other"), 0);
    assert_int_equal(rbi_import_desk_confirm(desk, "alpha", ""), 2);
    assert_int_equal(count(), 0);
    assert_int_equal(rbi_import_desk_confirm(desk, "", "/"), 0);
}

static void test_a_file_says_whom_we_saw_last(void **state)
{
    (void)state;
    two_of_alpha();
    reach(BETA, true);
    item(BETA, 9, RBI_ITEM_FIRST, 1, "7");
    item(BETA, 9, RBI_ITEM_LAST, 2, NULL);
    close_desk(); /* in order: at once, whatever was written when */
    open_desk();
    assert_int_equal(rbi_loop_turn(loop, NS_1MS), 0);
    for (unsigned i = 0; i < 1000 && count() < 3; i++) {
        assert_int_equal(rbi_loop_turn(loop, NS_1MS), 0);
    }
    assert_int_equal(count(), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(proxies[i].stale);
    }
    asks = 0;
    reach(ALPHA, true);
    assert_int_equal(asks, 1);
    assert_int_equal(asked_incarnation, 0); /* a file is no revision to go on from */
    assert_int_equal(asked_revision, 0);
    item(ALPHA, 8, RBI_ITEM_FIRST, 1, "2");
    item(ALPHA, 8, RBI_ITEM_LAST, 2, NULL);
    assert_int_equal(count(), 2); /* the host knows better */
    for (uint32_t i = 0; i < PROXIES; i++) {
        assert_true(!proxies[i].there ||
                    proxies[i].stale == (strcmp(proxies[i].host, "beta") == 0));
    }
}

static void test_without_a_folder_nothing_is_kept(void **state)
{
    (void)state;
    close_desk();
    (void)snprintf(folder, sizeof folder, "%s/none/hosts", base);
    open_desk(); /* and it works as well */
    two_of_alpha();
    assert_int_equal(count(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(test_proxies_follow_what_is_told),
        CASE(test_times_pass_in_the_loop),
        CASE(test_what_cannot_be_added_is_tried_again),
        CASE(test_what_the_daemon_has_is_given_up_for_now),
        CASE(test_a_reload_makes_room),
        CASE(test_calls_from_within_follow),
        CASE(test_operators_confirm),
        CASE(test_a_file_says_whom_we_saw_last),
        CASE(test_without_a_folder_nothing_is_kept),
#undef CASE
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
