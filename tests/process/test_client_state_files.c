/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features T28, J10, J42, 2.13: "the registry says empty" empties nothing. The daemon is killed,
 * and whatever it keeps as files (names, nodes, known clusters, versions) is emptied, torn,
 * overwritten or gone when the next one starts: links go on, instances stay where they are, what
 * was told of persistent nodes is not taken back; what has really ended meanwhile is told of all
 * the same.
 */
#include "client_nodes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATS BATTLE "/meta/stats"

enum damage { EMPTIED, TORN, OVERWRITTEN, GONE, DAMAGES };

/* Services meet some of it and nodes the rest, or with RINGBUS_TEST_FULL both meet all. */
static unsigned step_of_damage(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL ? 1 : 2; /* NOLINT(concurrency-mt-unsafe) */
}

static void damage_file(const char *path, enum damage damage)
{
    static const char garbage[64] = "not what it was";
    struct stat found;
    CHECK(stat(path, &found) == 0);
    if (damage == GONE) {
        CHECK(unlink(path) == 0);
        return;
    }
    const int fd = open(path, O_WRONLY);
    CHECK(fd >= 0);
    if (damage == OVERWRITTEN) {
        for (off_t at = 0; at < found.st_size; at += (off_t)sizeof garbage) {
            CHECK(pwrite(fd, garbage, sizeof garbage, at) == (ssize_t)sizeof garbage);
        }
    } else {
        CHECK(ftruncate(fd, damage == EMPTIED ? 0 : found.st_size / 2) == 0);
    }
    CHECK(close(fd) == 0);
}

/* All that lies beside the socket but its lock, the configuration and the log. @return how many */
static unsigned damage_all(enum damage damage)
{
    static const char *const kept[] = {"names", "nodes", "version.", "clusters"};
    char path[512];
    unsigned count = 0;
    DIR *folder = opendir(cluster.folder);
    CHECK(folder != NULL);
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        const char *end = strstr(entry->d_name, ".sock.");
        for (size_t i = 0; end != NULL && i < RBI_ARRAY_SIZE(kept); i++) {
            if (strncmp(end + 6, kept[i], strlen(kept[i])) == 0) {
                (void)snprintf(path, sizeof path, "%s/%s", cluster.folder, entry->d_name);
                damage_file(path, damage);
                count++;
            }
        }
    }
    CHECK(closedir(folder) == 0);
    return count;
}

static void start_bus(void)
{
    CHECK(cluster_up(&cluster, "rights: {otherwise: allow}\n"
                               "daemon: {return_time: 1s}\n"
                               "quota: {control: 100000}\n") == 0);
}

static void wait_for_file(const char *name)
{
    char path[192];
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    (void)snprintf(path, sizeof path, "%s.%s", cluster.socket, name);
    while (access(path, F_OK) != 0) {
        CHECK(test_now_ms() < end_ms);
        test_sleep_ms(5);
    }
}

/* Another daemon over damaged files; all are back, and it has settled. */
static void daemon_over(enum damage damage, struct node *const *nodes, unsigned count)
{
    unsigned back[4] = {0};
    CHECK(count <= RBI_ARRAY_SIZE(back));
    for (unsigned i = 0; i < count; i++) {
        back[i] = nodes[i]->events[RINGBUS_EVENT_DAEMON_BACK];
    }
    cluster_kill(&cluster);
    CHECK(damage_all(damage) >= 2);
    const unsigned settled = cluster_log_count(&cluster, "event=settled");
    CHECK(cluster_start(&cluster) == 0);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    bool all = false;
    while (!all) {
        CHECK(test_now_ms() < end_ms);
        nodes_step(nodes, count);
        all = cluster_log_count(&cluster, "event=settled") > settled;
        for (unsigned i = 0; i < count; i++) {
            all = all && nodes[i]->events[RINGBUS_EVENT_DAEMON_BACK] > back[i];
        }
    }
}

/* Whatever came in answer to SETTLED, and to the scan of the tree after it. */
static void catch_up_all(struct node *const *nodes, unsigned count)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < count; i++) {
            catch_up(nodes[i]);
        }
    }
}

/* ---- services ----------------------------------------------------------------------------- */

static void one_message(struct node *from, struct node *to, const struct ringbus_addr *where)
{
    const uint64_t before = to->messages;
    CHECK(ringbus_send(from->bus, where, 1, "", 0, 0) == 1);
    RUN_UNTIL(to->messages == before + 1, NODE_MS, to, from);
}

static void test_services_stay(void **state)
{
    (void)state;
    for (unsigned damage = EMPTIED; damage < DAMAGES; damage += step_of_damage()) {
        struct told told;
        struct node caller;
        struct node watcher;
        start_bus();
        both_open(BATTLE "/1", BATTLE "/2");
        watcher_open(&watcher, &told, "/game");
        memset(&caller, 0, sizeof caller);
        node_open(&caller, &cluster, NULL);
        struct ringbus_addr battle;
        CHECK(ringbus_target(caller.bus, BATTLE, NULL, &battle) == 0);
        RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &a, &b);
        assert_int_equal(create(&a, SEASON, "winter", 0), 0);
        RUN_UNTIL(watcher.events[RINGBUS_EVENT_ADDED] == 2, NODE_MS, &watcher);
        struct node *const all[] = {&a, &b, &caller, &watcher};
        wait_for_file("clusters"); /* now and then, the others at once */

        daemon_over((enum damage)damage, all, RBI_ARRAY_SIZE(all));
        catch_up_all(all, RBI_ARRAY_SIZE(all));
        assert_int_equal(caller.events[RINGBUS_EVENT_DOWN], 0);
        assert_int_equal(watcher.events[RINGBUS_EVENT_REMOVED], 0);
        assert_int_equal(watcher.events[RINGBUS_EVENT_ADDED], 2);
        for (unsigned i = 0; i < 8; i++) {
            CHECK(ringbus_send(caller.bus, &battle, 1, "", 0, 0) == 1);
        }
        RUN_UNTIL(a.messages + b.messages == 8, NODE_MS, &a, &b, &caller);
        const struct ringbus_addr one = {
            .cluster = battle.cluster, .instance = 2, .incarnation = 0};
        one_message(&caller, &b, &one);

        /* And who leaves then has left. */
        node_close(&b);
        RUN_UNTIL(watcher.events[RINGBUS_EVENT_REMOVED] == 1, NODE_MS, &watcher, &caller, &a);
        node_close(&a);
        node_close(&caller);
        node_close(&watcher);
        cluster_down(&cluster);
    }
}

/* ---- nodes -------------------------------------------------------------------------------- */

/* What is told of the tree by a daemon whose file is not what it was. */
static void test_nodes_stay(void **state)
{
    (void)state;
    for (unsigned damage = TORN % step_of_damage(); damage < DAMAGES; damage += step_of_damage()) {
        struct told told;
        struct node watcher;
        start_bus();
        both_open(BATTLE "/1", BATTLE "/2");
        watcher_open(&watcher, &told, "/game");
        assert_int_equal(create(&a, SEASON, "winter", 0), 0);
        assert_int_equal(create(&a, STATS, "0", 0), 0);
        assert_int_equal(create(&b, LEADER, "2", RINGBUS_NODE_EPHEMERAL), 0);
        RUN_UNTIL(told.count[0] == 3, NODE_MS, &watcher);
        struct node *const all[] = {&a, &b, &watcher};

        daemon_over((enum damage)damage, all, RBI_ARRAY_SIZE(all));
        catch_up_all(all, RBI_ARRAY_SIZE(all));
        assert_int_equal(told.count[0], 3);
        assert_int_equal(told.count[2], 0);
        check_value(&a, LEADER, "2"); /* its owner has said it again */

        /* Who puts it back is heard, though revisions may have begun anew. */
        const bool left = get(&a, STATS) == 0;
        const unsigned changed = told.count[1];
        if (!left) {
            assert_int_equal(create(&a, STATS, "1", 0), 0);
        } else {
            assert_int_equal(set(&a, STATS, "1", 0), 0);
        }
        RUN_UNTIL(told.count[1] == changed + 1, NODE_MS, &watcher);
        assert_string_equal(told.path, STATS);
        assert_string_equal(told.value, "1");
        assert_int_equal(told.count[0], 3);
        /* What ends from now on ends, the owner's as well. */
        assert_int_equal(drop(&a, STATS, 0), 0);
        node_close(&b);
        RUN_UNTIL(told.count[2] == 2, NODE_MS, &watcher);

        /* A daemon that knows the whole tree tells what is not in it any more. */
        const bool season = get(&a, SEASON) == 0;
        if (!season) {
            assert_int_equal(create(&a, STATS, "2", 0), 0); /* it has a file then */
        }
        const unsigned back = watcher.events[RINGBUS_EVENT_DAEMON_BACK];
        cluster_kill(&cluster);
        assert_int_equal(cluster_start(&cluster), 0);
        RUN_UNTIL(watcher.events[RINGBUS_EVENT_DAEMON_BACK] > back, NODE_MS, &watcher, &a);
        RUN_UNTIL(told.count[2] == (season ? 2U : 3U), NODE_MS, &watcher, &a);
        node_close(&a);
        node_close(&watcher);
        cluster_down(&cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_services_stay),
        cmocka_unit_test(test_nodes_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
