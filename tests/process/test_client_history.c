/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 84, features 2.2, 2.6, 2.7: callers agree on every key whatever they have been through.
 * Instances come, go, die and come back, also twice within one moment; the operator weighs,
 * isolates and stages them, and changes the table; callers are replaced by others that have seen
 * none of it; daemons are killed. After each step every caller has the table that its members alone
 * give, and they are those whom this test counts by itself.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE     "/game/eu/pc/w1/data/store"
#define INSTANCES 8U
#define CALLERS   6U
#define CLASSES   2U
#define STEPS     FULL_OR(1500U, 80U / TEST_SCALE)
#define LONG_MS   30000U

/* Shared words, by instance. */
#define WORD_LEAVE 0U        /* it is to leave in order */
#define WORD_LIVES INSTANCES /* how often it was READY */

static const char *const sets[INSTANCES] = {"app.a.1", "app.a.1", "app.a.1", "app.b.1",
                                            NULL,      NULL,      "app.a.*", "app.b.1"};
static const char *const tags[INSTANCES] = {NULL, NULL, "v2", NULL, NULL, "v2", NULL, "v2,pre"};
static const char *const caller_sets[CALLERS] = {NULL, "app.a.1", NULL, "app.a.1", "app.b.1", NULL};
static const char *const classes[CLASSES] = {NULL, "v2"};
static const char *const balances[] = {
    "{rehash_delay: 60s}",
    "{mode: hash, slots: 1024, ranks: 1, rehash_delay: 60s}",
    "{mode: maglev, rehash_delay: 60s}",
    "{strict: 5%, slots: 4096, rehash_delay: 60s}",
    "{rehash_delay: 60s, on_shield: failover, slots: 16384}",
};

/* What this test knows of an instance. */
struct instance {
    pid_t pid;   /* 0: not running */
    bool waited; /* it died, and has not been back */
    uint32_t weight;
    bool isolated;
    bool staged;
    uint64_t lives;
};

static struct cluster cluster;
static struct instance instances[INSTANCES];
static struct node callers[CALLERS];
static unsigned balance;
static unsigned reloads;
static uint64_t seed;
static uint64_t last_daemon;

static unsigned below(unsigned n)
{
    return (unsigned)(bus_random(&seed) % n);
}

/* ---- instances ------------------------------------------------------------------------------ */

static void be_instance(const struct cluster *at, void *context)
{
    const unsigned self = (unsigned)(uintptr_t)context;
    struct node node = {.bus = NULL};
    char path[RINGBUS_PATH_MAX + 1];
    (void)snprintf(path, sizeof path, STORE "/%u", self + 1);
    struct ringbus_options options = node_options(at, path);
    options.set = sets[self];
    options.tags = tags[self];
    node_open_with(&node, &options);
    atomic_fetch_add(&bus_shared[WORD_LIVES + self], 1);
    while (atomic_load(&bus_shared[WORD_LEAVE + self]) == 0) {
        CHECK(ringbus_poll(node.bus, 100) >= 0);
        CHECK(ringbus_wait(node.bus, 5) >= 0);
    }
    node_close(&node);
}

static void poll_callers(void)
{
    struct node *all[CALLERS];
    for (unsigned i = 0; i < CALLERS; i++) {
        all[i] = &callers[i];
    }
    nodes_step(all, CALLERS);
}

#define POLL_UNTIL(condition)                                                                      \
    do {                                                                                           \
        const uint64_t end_ms = test_now_ms() + LONG_MS;                                           \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < end_ms);                                                         \
            poll_callers();                                                                        \
        }                                                                                          \
    } while (0)

static void start(unsigned i)
{
    atomic_store(&bus_shared[WORD_LEAVE + i], 0);
    instances[i].pid = child_start(be_instance, &cluster, (void *)(uintptr_t)i);
    instances[i].lives++;
    POLL_UNTIL(atomic_load(&bus_shared[WORD_LIVES + i]) == instances[i].lives);
    instances[i].waited = false;
}

static void end(unsigned i, bool in_order)
{
    if (in_order) {
        atomic_store(&bus_shared[WORD_LEAVE + i], 1);
        CHECK(child_wait(instances[i].pid, LONG_MS) == 0);
    } else {
        child_kill(instances[i].pid);
        instances[i].waited = instances[i].weight > 0;
    }
    instances[i].pid = 0;
}

/* ---- callers and the operator --------------------------------------------------------------- */

static void open_caller(unsigned i)
{
    struct ringbus_addr to;
    struct ringbus_options options = node_options(&cluster, NULL);
    options.set = caller_sets[i];
    options.lane_bytes = 16384;
    memset(&callers[i], 0, sizeof callers[i]);
    node_open_with(&callers[i], &options);
    CHECK(ringbus_target(callers[i].bus, STORE, NULL, &to) == 0);
}

static void configure(void)
{
    char text[2048];
    int length = snprintf(text, sizeof text,
                          "clusters: [{match: " STORE ", set: {mode: strict}, "
                          "tags: {mode: strict}, balance: %s}]\n"
                          "quota: {instances: 4096, control: 1000000, connects: 1000000}\n"
                          "instances:\n",
                          balances[balance]);
    for (unsigned i = 0; i < INSTANCES; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "  " STORE "/%u: {weight: %u, isolated: %s, staged: %s}\n", i + 1,
                           instances[i].weight, instances[i].isolated ? "true" : "false",
                           instances[i].staged ? "true" : "false");
    }
    CHECK(cluster_configure(&cluster, text) == 0);
}

static void reload(void)
{
    configure();
    CHECK(kill(cluster.pid, SIGHUP) == 0);
    reloads++;
    POLL_UNTIL(cluster_log_count(&cluster, "event=reloaded") == reloads);
}

/* ---- what must be --------------------------------------------------------------------------- */

static bool serves(unsigned i, const char *set, const char *tag)
{
    const bool tagged = tags[i] != NULL && tag != NULL;
    const bool group = set == NULL || (sets[i] != NULL && strcmp(sets[i], set) == 0);
    return (instances[i].pid != 0 || instances[i].waited) && instances[i].weight > 0 &&
           !instances[i].isolated && !instances[i].staged && group &&
           (tag == NULL ? tags[i] == NULL : tagged);
}

/* Members of no set of this name: sets say nothing. Groups have no members: the area's do. */
static unsigned members_of(const char *set, const char *tag, struct rbi_table_member *members)
{
    unsigned count = 0;
    bool name = false;
    bool group = false;
    const char *stands_in = NULL;
    for (unsigned i = 0; i < INSTANCES; i++) {
        const bool known = instances[i].pid != 0 || instances[i].waited;
        name = name || (known && sets[i] != NULL);
        group = group || (known && set != NULL && sets[i] != NULL && strcmp(set, sets[i]) == 0);
    }
    if (set != NULL && name && !group) {
        stands_in = strcmp(set, "app.a.1") == 0 ? "app.a.*" : "app.b.*";
    }
    for (unsigned i = 0; i < INSTANCES; i++) {
        if (serves(i, !name ? NULL : stands_in != NULL ? stands_in : set, tag)) {
            members[count++] = (struct rbi_table_member){.instance = (int32_t)i + 1,
                                                         .weight = instances[i].weight};
        }
    }
    return count;
}

static const struct rbi_keyed *keyed_of(const struct node *node, const char *tag)
{
    const struct rbi_cluster *store =
        rbi_cluster_find(node->bus, rbi_cluster_id(STORE, strlen(STORE)));
    for (unsigned i = 0; store != NULL && i < store->choice_count; i++) {
        if (strcmp(store->choices[i]->class.tag, tag != NULL ? tag : "") == 0) {
            return &store->choices[i]->keyed;
        }
    }
    return NULL;
}

/* One message by key, so that the table is made, whether somebody has the key or not. */
static const struct rbi_keyed *ask(struct node *node, const char *tag)
{
    const struct ringbus_addr to = {.cluster = rbi_cluster_id(STORE, strlen(STORE))};
    const struct ringbus_part part = {"", 0};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = below(1000), .tag = tag};
    (void)ringbus_send_with(node->bus, &to, &part, 1, &options);
    return keyed_of(node, tag);
}

static bool agrees(unsigned caller, const char *tag)
{
    struct rbi_table_member members[INSTANCES];
    const struct rbi_keyed *keyed = ask(&callers[caller], tag);
    const unsigned count = members_of(caller_sets[caller], tag, members);
    if (keyed == NULL || keyed->fingerprint == 0 || keyed->stale != 0 ||
        keyed->fingerprint != rbi_table_fingerprint(&keyed->table.shape, members, count)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const bool linked = keyed->ends[i] != NULL;
        if (linked != (instances[members[i].instance - 1].pid != 0)) {
            return false;
        }
    }
    return true;
}

static bool all_agree(void)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        for (unsigned j = 0; j < CLASSES; j++) {
            if (!agrees(i, classes[j])) {
                return false;
            }
        }
    }
    return true;
}

/* The bytes, from one built by itself. */
static void check_owners(void)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        const struct rbi_table *table = &keyed_of(&callers[i], NULL)->table;
        struct rbi_table_build build;
        uint16_t *owners = malloc(rbi_table_owner_bytes(&table->shape));
        void *scratch = malloc(rbi_table_scratch_bytes(&table->shape, table->member_count, 0) + 1);
        CHECK(owners != NULL && scratch != NULL);
        rbi_table_build_begin(&build, &table->shape, NULL, table->members, table->member_count,
                              owners, scratch);
        while (!rbi_table_build_step(&build, UINT32_MAX)) {
        }
        CHECK(memcmp(owners, table->owners, rbi_table_owner_bytes(&table->shape)) == 0);
        free(owners);
        free(scratch);
    }
}

static void tell_state(void)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        (void)fprintf(stderr, "%u: %s%s weight %u%s%s\n", i + 1,
                      instances[i].pid != 0 ? "runs" : "-", instances[i].waited ? " waited" : "",
                      instances[i].weight, instances[i].isolated ? " isolated" : "",
                      instances[i].staged ? " staged" : "");
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        for (unsigned j = 0; j < CLASSES; j++) {
            if (!agrees(i, classes[j])) {
                const struct rbi_keyed *keyed = keyed_of(&callers[i], classes[j]);
                (void)fprintf(stderr, "caller %u class %u:", i, j);
                for (unsigned k = 0; keyed != NULL && k < keyed->table.member_count; k++) {
                    (void)fprintf(stderr, " %d*%u%s", keyed->members[k].instance,
                                  keyed->members[k].weight, keyed->ends[k] != NULL ? "" : "?");
                }
                (void)fprintf(stderr, "\n");
            }
        }
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void change_operator(void)
{
    static const uint32_t weights[] = {100, 100, 0, 1, 7, 1000};
    const unsigned i = below(INSTANCES);
    switch (below(4)) {
    case 0:
        instances[i].isolated = !instances[i].isolated;
        break;
    case 1:
        instances[i].staged = !instances[i].staged;
        break;
    case 2:
        balance = below(RBI_ARRAY_SIZE(balances));
        break;
    default:
        instances[i].weight = weights[below(RBI_ARRAY_SIZE(weights))];
        break;
    }
    /* Who is absent stays as it died. */
    if (instances[i].waited) {
        start(i);
    }
    reload();
}

static unsigned running(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < INSTANCES; i++) {
        count += instances[i].pid != 0 ? 1U : 0U;
    }
    return count;
}

/* Every event has come: who hears of a death from no daemon waits by a clock of its own. */
static bool all_are_told(void)
{
    bool told = true;
    for (unsigned i = 0; i < CALLERS; i++) {
        const struct rbi_cluster *store =
            rbi_cluster_find(callers[i].bus, rbi_cluster_id(STORE, strlen(STORE)));
        told = told && store->member_count == running();
    }
    return told;
}

/* Known to the daemon that runs now, and it alone. */
static bool all_are_back(void)
{
    const uint64_t id = rbi_cluster_id(STORE, strlen(STORE));
    bool back = true;
    for (unsigned i = 0; i < CALLERS; i++) {
        struct rbi_directory_cluster head = {.instance_count = 0};
        const struct ringbus *bus = callers[i].bus;
        back = back && bus->directory_mapped && bus->held_segment.base == NULL &&
               rbi_directory_daemon(&bus->directory) != last_daemon &&
               (rbi_directory_read(&bus->directory, id, &head, NULL, 0) != RBI_DIRECTORY_BUSY) &&
               head.instance_count == running();
    }
    return back;
}

static void restart_daemon(void)
{
    POLL_UNTIL(all_are_told());
    last_daemon = rbi_directory_daemon(&callers[0].bus->directory);
    cluster_kill(&cluster);
    CHECK(cluster_start(&cluster) == 0);
    reloads = cluster_log_count(&cluster, "event=reloaded");
    POLL_UNTIL(all_are_back());
    for (unsigned i = 0; i < INSTANCES; i++) {
        instances[i].waited = false; /* the new daemon has heard of none */
    }
}

static const char *step(void)
{
    const unsigned i = below(INSTANCES);
    const unsigned kind = below(32);
    if (kind == 0) {
        const unsigned caller = below(CALLERS);
        node_close(&callers[caller]);
        open_caller(caller);
        return "another caller";
    }
    if (kind == 1) {
        restart_daemon();
        return "another daemon";
    }
    if (kind < 8) {
        change_operator();
        return "operator";
    }
    if (instances[i].pid == 0) {
        start(i);
        return "start";
    }
    end(i, kind % 2 == 0);
    if (kind < 20) {
        start(i);
        return "again";
    }
    return kind % 2 == 0 ? "left" : "died";
}

static void test_history_is_nothing(void **state)
{
    const char *const given = getenv("RINGBUS_TEST_SEED");
    (void)state;
    seed = given != NULL ? strtoull(given, NULL, 0) : 84;
    for (unsigned i = 0; i < INSTANCES; i++) {
        instances[i].weight = 100;
    }
    configure();
    assert_int_equal(cluster_start(&cluster), 0);
    for (unsigned i = 0; i < CALLERS; i++) {
        open_caller(i);
    }
    for (unsigned i = 0; i < INSTANCES; i++) {
        start(i);
    }
    for (unsigned n = 0; n < STEPS; n++) {
        const char *what = step();
        const uint64_t end_ms = test_now_ms() + LONG_MS;
        while (!all_agree()) {
            if (test_now_ms() > end_ms) {
                (void)fprintf(stderr, "step %u, %s\n", n, what);
                tell_state();
                CHECK(false);
            }
            poll_callers();
        }
        check_owners();
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        node_close(&callers[i]);
    }
    for (unsigned i = 0; i < INSTANCES; i++) {
        if (instances[i].pid != 0) {
            child_kill(instances[i].pid);
        }
    }
}

static int setup(void **state)
{
    (void)state;
    bus_shared_reset();
    return cluster_make(&cluster, "");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_history_is_nothing, setup, teardown),
    };
    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
