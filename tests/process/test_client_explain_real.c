/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explanations against what happens (features 2.6; scenario 88): random policies, overrides and
 * rights are loaded one after the other, and after each messages of random kinds are explained and
 * then sent. Who gets one is among those who are said to be in, by key it is the owner; in turn all
 * of them get some; and where nobody is in nothing can be sent. What another endpoint is told
 * of this one is the same.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALL   "/game/eu/pc/w1/core/hall"
#define GUEST  "/play/eu/pc/w1/core/hall"
#define GATE   "/game/eu/pc/w1/core/gate"
#define CALLER GATE "/1"

#define INSTANCES 9U
#define OWN       6U /* the rest is of the other business */
#define SICK      2U /* the first of the own are shielded as long as the policies shield */
#define METHODS   14U
#define NONE      99U

static const char *const names[INSTANCES] = {"read-1",  "read-2", "write-1", "write-2", "big-1",
                                             "small-1", "read-9", "big-9",   "write-9"};
static const char *const tags[] = {"", "v2", "v3", "v2,pre", "test"};
static const char *const sets[] = {"", "app.a.1", "app.a.2", "app.a.*", "app.b.1", "web.a.1"};
static const char *const idcs[] = {"", "r1", "r2/z1", "r3/z1", "r4"};
static const char *const stages[] = {"off", "prefer", "strict"};
static const char *const balances[] = {"auto", "auto",     "hash",   "maglev", "least",
                                       "rr",   "weighted", "random", "all"};

static struct cluster cluster;
static struct node caller;
static struct node asker;
static struct node instances[INSTANCES];
static struct ringbus_addr hall;
static struct ringbus_addr
    clusters[3]; /* all that a choice is made from: hall, guest, own labels */
static uint64_t seed;

/* ---- what arrives -------------------------------------------------------------------------- */

static uint32_t sequence; /* of the message under way */
static unsigned arrived;  /* bit: instance */
static unsigned arrivals;
static unsigned linked; /* bit: instance */

static void on_message(struct node *node, const struct ringbus_message *message)
{
    CHECK(message->size == sizeof sequence && memcmp(message->data, &sequence, 4) == 0);
    arrived |= 1U << (unsigned)(node - instances);
    arrivals++;
}

static unsigned number_of(const struct ringbus_addr *peer)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        struct ringbus_addr self;
        CHECK(ringbus_self(instances[i].bus, &self) == 0);
        if (self.cluster == peer->cluster && self.instance == peer->instance) {
            return i;
        }
    }
    return NONE;
}

static void on_link(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    const unsigned number = number_of(&event->addr);
    if (number != NONE && event->type == RINGBUS_EVENT_READY) {
        linked |= 1U << number;
    } else if (number != NONE && event->type == RINGBUS_EVENT_DOWN) {
        linked &= ~(1U << number);
    }
}

static void step(void)
{
    struct node *nodes[INSTANCES + 2];
    nodes[0] = &caller;
    nodes[1] = &asker;
    for (unsigned i = 0; i < INSTANCES; i++) {
        nodes[i + 2] = &instances[i];
    }
    nodes_step(nodes, INSTANCES + 2);
}

/* ---- random policies ----------------------------------------------------------------------- */

static char config[8192];
static size_t config_used;
static const char *mode; /* of the balance in it */
static const char *on_shield;
static bool sticks;     /* the caller stays with its choice */
static bool panics;     /* the target does, as those that are shielded have a weight */
static bool remembers;  /* the caller's stage of locality has a state of its own */
static unsigned denied; /* bit: instance */
static struct span {
    unsigned low;
    unsigned count;
} barred[INSTANCES];   /* methods that the caller may not send */
static unsigned mark;  /* number of the configuration */
static unsigned marks; /* clusters of which the caller has it */

static unsigned below(unsigned bound)
{
    return (unsigned)(bus_random(&seed) % bound);
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

#define PICK(array) ((array)[below(sizeof(array) / sizeof((array)[0]))])

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(config + config_used, sizeof config - config_used, format, list);
    va_end(list);
    CHECK(n >= 0 && (size_t)n < sizeof config - config_used);
    config_used += (size_t)n;
}

static const char *dry(unsigned percent)
{
    return chance(percent) ? ", dry_run: true" : "";
}

static void say_rules(void)
{
    const unsigned count = below(4);
    say("    rules:%s\n", count == 0 ? " []" : "");
    for (unsigned i = 0; i < count; i++) {
        const unsigned low = below(8);
        say("      - {id: rule-%u, mode: %s, methods: %u..%u", i, PICK(stages), low,
            low + below(4));
        if (chance(30)) {
            say(", key: {mask: 0x3, value: 0x%x}", below(4));
        }
        if (chance(30)) {
            say(", labels: [{mask: 0x1, value: 0x%x}]", below(2));
        }
        switch (below(4)) {
        case 0:
            say(", tag: v%u", 2 + below(2));
            break;
        case 1:
            say(", set: %s", sets[1 + below(5)]);
            break;
        case 2:
            say(", idc: r%u", 1 + below(4));
            break;
        default:
            say(", instance: '%s'", chance(50) ? "read-*" : "big-*");
            break;
        }
        say("%s}\n", dry(20));
    }
}

static void say_cluster(void)
{
    const unsigned leave = below(101);
    const unsigned back = leave + below(101 - leave);
    remembers = chance(50);
    sticks = chance(20);
    mode = PICK(balances);
    on_shield = PICK(((const char *const[]){"hold", "failover", "fail"}));
    say("  - match: " HALL "\n"
        "    balance: {mode: %s, keyless: %s, slots: 1024, on_shield: %s, rehash_delay: 0ms, "
        "ranks: %u, strict: %u%%, sticky: %s, slow_start: %s}\n",
        mode, PICK(((const char *const[]){"least", "rr", "weighted", "random"})), on_shield,
        1 + below(3), chance(30) ? 1 + below(50) : 0, sticks ? "1h" : "0ms",
        chance(20) ? "1m" : "0ms");
    say("    realm: {mode: %s, imports: [play], remote_first: %s}\n", PICK(stages),
        chance(50) ? "true" : "false");
    say("    set: {mode: %s%s}\n", PICK(stages), dry(10));
    say("    tags: {mode: %s, untagged_leaks: %s%s, canaries: [{id: a, tag: v2, share: %u%%%s}, "
        "{id: b, tag: v3, share: %u%%}]}\n",
        PICK(stages), chance(30) ? "true" : "false", dry(10), PICK(((const unsigned[]){0, 30, 50})),
        dry(20), PICK(((const unsigned[]){0, 25, 50})));
    say_rules();
    say("    locality: {mode: %s, overprovision: %u%%, leave: %u%%, back: %u%%, hold: 0ms, "
        "min_local: %u%s, priority: [[r1, r4], [r2, r3]]}\n",
        PICK(stages), 100 + below(100), leave, remembers ? back : leave, below(3), dry(10));
    say("    panic: {enter: %u%%, leave: %u%%, mode: %s}\n", panics ? 100 : 0, panics ? 100 : 0,
        chance(70) ? "ignore_shield" : "fail");
}

/*
 * Shielded for longer than the test takes, whatever else the policies say. The answer to a method
 * that nobody else uses tells which configuration the caller goes by.
 */
static void say_all(void)
{
    say("clusters:\n"
        "  - match: /**\n"
        "    degrade: [{id: mark, methods: 100, action: mock, on: [manual], mock: mark-%u}]\n"
        "  - match: '/*/eu/pc/w1/core/hall'\n"
        "    shield: {windows: [{within: 1s, calls: 5, failed: 50%%}], above_median: 0%%, "
        "open_min: 30m, open_max: 30m, max_percent: 100%%, jitter: 0%%}\n",
        ++mark);
}

static const char *path_of(unsigned number)
{
    static char path[RINGBUS_PATH_MAX + 1];
    (void)snprintf(path, sizeof path, "%s/%s", number < OWN ? HALL : GUEST, names[number]);
    return path;
}

static void say_instances(void)
{
    say("instances:\n");
    for (unsigned i = 0; i < INSTANCES; i++) {
        static const unsigned weights[] = {100, 100, 100, 1, 1000, 0};
        /* What is known of one that is isolated is forgotten. */
        say("  %s: {weight: %u, isolated: %s, staged: %s", path_of(i),
            i < SICK ? 100 : PICK(weights), i >= SICK && chance(8) ? "true" : "false",
            chance(8) ? "true" : "false");
        say(", set: '%s', idc: '%s', tags: '%s'}\n", PICK(sets), PICK(idcs),
            chance(50) ? "" : PICK(tags));
    }
    say("  " CALLER ": {set: '%s', idc: '%s'}\n", PICK(sets), PICK(idcs));
}

static void say_rights(void)
{
    denied = chance(20) ? 1U << below(INSTANCES) : 0;
    denied |= denied != 0 && chance(30) ? 1U << below(INSTANCES) : 0;
    unsigned rules = denied;
    const bool some = chance(30);
    for (unsigned i = 0; i < INSTANCES; i++) {
        barred[i] = (struct span){below(10), some && chance(40) ? 1 + below(4) : 0};
        rules += barred[i].count;
    }
    say("rights:\n  otherwise: allow\n  rules:%s\n", rules == 0 ? " []" : "");
    for (unsigned i = 0; i < INSTANCES; i++) {
        if ((denied >> i & 1U) != 0) {
            say("    - {id: no-%u, action: deny, verbs: [connect], to: %s}\n", i, path_of(i));
        }
        if (barred[i].count > 0) {
            say("    - {id: not-%u, action: deny, verbs: [send], methods: %u..%u, to: %s}\n", i,
                barred[i].low, barred[i].low + barred[i].count - 1, path_of(i));
        }
    }
}

static void on_mark(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    char wanted[32];
    const size_t length = (size_t)snprintf(wanted, sizeof wanted, "mark-%u", mark);
    marks += result->message != NULL && result->message->size == length &&
                     memcmp(result->message->data, wanted, length) == 0
                 ? 1U
                 : 0U;
}

static bool is_known(void)
{
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .method = 100, .timeout_ms = 1000};
    const struct ringbus_part nothing = {"", 0};
    marks = 0;
    for (unsigned i = 0; i < 3; i++) {
        (void)ringbus_request_with(caller.bus, &clusters[i], &nothing, 1, &options, on_mark, NULL);
    }
    step();
    return marks == 3;
}

static bool is_refused(void);
static bool bars(unsigned number, uint32_t method);

static void load(void)
{
    const unsigned before = cluster_log_count(&cluster, "event=reloaded");
    const uint64_t end = test_now_ms() + NODE_MS;
    CHECK(cluster_configure(&cluster, config) == 0);
    CHECK(kill(cluster.pid, SIGHUP) == 0);
    while (cluster_log_count(&cluster, "event=reloaded") == before || !is_known() ||
           linked != (((1U << INSTANCES) - 1U) & ~denied) || !is_refused()) {
        if (test_now_ms() > end) {
            fail_msg("links %x, denied %x after\n%s", linked, denied, config);
        }
        step();
    }
}

static void load_random(void)
{
    config_used = 0;
    say_all();
    say_cluster();
    say_instances();
    say_rights();
    load();
}

/* ---- explanations -------------------------------------------------------------------------- */

struct told {
    int count; /* as returned */
    unsigned in;
    unsigned sick; /* of those: said to be shielded */
    unsigned owner;
    bool owner_sick;
    bool by_key;
    unsigned out;     /* by state */
    unsigned refused; /* by rights */
    bool panic;       /* of the target */
    bool ignored;     /* its shields are */
};

static unsigned named(const char *path)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        if (strcmp(path, path_of(i)) == 0) {
            return i;
        }
    }
    return NONE;
}

static void on_row(void *user, const struct ringbus_explain_row *row)
{
    struct told *told = user;
    if (row->kind == RINGBUS_EXPLAIN_IN) {
        CHECK(named(row->path) != NONE);
        told->in |= 1U << named(row->path);
        told->sick |= row->reason[0] != '\0' ? 1U << named(row->path) : 0;
    } else if (row->kind == RINGBUS_EXPLAIN_OUT) {
        told->out |= strcmp(row->stage, "state") == 0 ? 1U << named(row->path) : 0;
        told->refused |= strcmp(row->stage, "acl") == 0 ? 1U << named(row->path) : 0;
    } else if (row->kind == RINGBUS_EXPLAIN_OWNER) {
        told->owner = named(row->path);
        told->owner_sick = row->reason[0] != '\0';
        told->by_key = true;
    } else if (row->kind == RINGBUS_EXPLAIN_TARGET && strcmp(row->path, HALL) == 0) {
        told->panic = row->panic != 0;
    } else if (row->kind == RINGBUS_EXPLAIN_STAGE && strcmp(row->stage, "health") == 0) {
        told->ignored = row->panic != 0;
    }
}

static struct told explain(const struct ringbus_message_options *message, bool by_asker)
{
    struct told told;
    memset(&told, 0, sizeof told); /* and what lies between its members: it is compared as it is */
    told.owner = NONE;
    struct ringbus_addr refused[INSTANCES];
    struct ringbus_explain_options options = {.struct_size = sizeof options, .message = message};
    if (by_asker) {
        options.caller = CALLER;
        options.denied = refused;
        for (unsigned i = 0; i < INSTANCES; i++) {
            const bool no_right = (denied >> i & 1U) != 0 || bars(i, message->method);
            if (no_right) {
                CHECK(ringbus_self(instances[i].bus, &refused[options.denied_count++]) == 0);
            }
        }
    }
    told.count = ringbus_explain(by_asker ? asker.bus : caller.bus, HALL, &options, on_row, &told);
    return told;
}

static bool bars(unsigned number, uint32_t method)
{
    return method - barred[number].low < barred[number].count;
}

/* What the daemon says of rights comes on a way of its own. */
static bool is_refused(void)
{
    bool known = true;
    struct ringbus_message_options message = {.struct_size = sizeof message};
    for (message.method = 0; known && message.method < METHODS; message.method++) {
        const struct told told = explain(&message, false);
        unsigned wanted = denied;
        for (unsigned i = 0; i < INSTANCES; i++) {
            wanted |= bars(i, message.method) ? 1U << i : 0;
        }
        known = told.refused == (wanted & ~told.out);
    }
    return known;
}

/* ---- messages ------------------------------------------------------------------------------ */

static struct ringbus_message_options random_message(void)
{
    struct ringbus_message_options message = {.struct_size = sizeof message};
    message.flags = chance(50) ? RINGBUS_KEY : 0;
    message.key = bus_random(&seed);
    message.method = below(METHODS);
    message.labels[0] = below(4);
    message.tag =
        chance(60) ? NULL : PICK(((const char *const[]){"v2", "v3", "v4", "test", "pre"}));
    if (chance(50)) {
        message.trace_id[3] = (unsigned char)(1 + below(200));
    }
    return message;
}

static _Noreturn void
differs(const struct told *told, const struct ringbus_message_options *message, int r)
{
    char text[8192] = "";
    const struct ringbus_explain_options options = {.struct_size = sizeof options,
                                                    .message = message};
    (void)fprintf(stderr, "sent: %d (%s), arrived %x; explained: %d, in %x, owner %u\n", r,
                  r < 0 ? ringbus_errmsg(caller.bus) : "", arrived, told->count, told->in,
                  told->owner);
    (void)fprintf(stderr, "message: flags %u key %llu method %u label %u tag %s\n%s",
                  message->flags, (unsigned long long)message->key, message->method,
                  message->labels[0], message->tag != NULL ? message->tag : "-", config);
    (void)ringbus_explain_text(caller.bus, HALL, &options, text, sizeof text);
    (void)fprintf(stderr, "%s\n", text);
    bus_die(__FILE__, __LINE__, "explained as it happened");
}

/* @return as ringbus_send_with(), when all that was sent has arrived */
static int send_one(const struct ringbus_message_options *message)
{
    sequence++;
    arrived = 0;
    arrivals = 0;
    const struct ringbus_part part = {&sequence, sizeof sequence};
    const int r = ringbus_send_with(caller.bus, &hall, &part, 1, message);
    const uint64_t end = test_now_ms() + NODE_MS;
    while (r > 0 && arrivals < (unsigned)r) {
        CHECK(test_now_ms() < end);
        step();
    }
    return r;
}

static bool fits(const struct told *told, int r)
{
    const bool holds = strcmp(on_shield, "hold") == 0;
    if (told->count == 0 || told->in == 0) {
        return told->count == 0 && told->in == 0 && r < 0;
    }
    if (strcmp(mode, "all") == 0) {
        return r == told->count && arrived == told->in;
    }
    if (told->by_key && told->owner_sick && !holds && !told->ignored) {
        return r == RINGBUS_E_SHIELDED ||
               (r == 1 && strcmp(on_shield, "failover") == 0 && (arrived & ~told->in) == 0 &&
                (arrived & told->sick) == 0);
    }
    return r == 1 && (told->by_key ? arrived == 1U << told->owner : (arrived & ~told->in) == 0);
}

/* Each that is in has its turn; the chain says so, not only that nobody else has one. */
static void in_turn(const struct told *told, const struct ringbus_message_options *message)
{
    unsigned seen = 0;
    for (int i = 0; i < told->count; i++) {
        const int r = send_one(message);
        if (!fits(told, r)) {
            differs(told, message, r);
        }
        seen |= arrived;
    }
    if (seen != told->in) {
        arrived = seen;
        differs(told, message, told->count);
    }
}

static struct {
    unsigned messages, nobody, by_key, diverted, turns;
} figures;

static void compare(void)
{
    const struct ringbus_message_options message = random_message();
    const struct told told = explain(&message, false);
    const struct told other = explain(&message, true);
    if (!remembers && memcmp(&told, &other, sizeof told) != 0) {
        (void)fprintf(stderr, "told another: %d, in %x, owner %u\n", other.count, other.in,
                      other.owner);
        differs(&told, &message, 0);
    }
    const int r = send_one(&message);
    if (!fits(&told, r)) {
        differs(&told, &message, r);
    }
    figures.messages++;
    figures.nobody += told.count == 0 ? 1U : 0U;
    figures.by_key += told.by_key ? 1U : 0U;
    figures.diverted += told.by_key && r == 1 && arrived != 1U << told.owner ? 1U : 0U;
    if (strcmp(mode, "rr") == 0 && !sticks && told.count > 1) {
        in_turn(&told, &message);
        figures.turns++;
    }
}

/* ---- the bus ------------------------------------------------------------------------------- */

static void open_all(void)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        instances[i].on_message = on_message;
        node_open(&instances[i], &cluster, path_of(i));
    }
    caller.on_event = on_link;
    node_open(&caller, &cluster, CALLER);
    node_open(&asker, &cluster, NULL);
    static const char *const paths[] = {HALL, GUEST, GATE};
    for (unsigned i = 0; i < 3; i++) {
        CHECK(ringbus_target(caller.bus, paths[i], NULL, &clusters[i]) == 0);
    }
    hall = clusters[0];
    CHECK(ringbus_target(asker.bus, HALL, NULL, &hall) == 0);
}

/* Two fail the calls of another than the caller, which would avoid them by itself, until the daemon
 * shields them. */
static void make_sick(void)
{
    config_used = 0;
    say("rights: {otherwise: allow}\n");
    say_all();
    load();
    RUN_UNTIL(asker.events[RINGBUS_EVENT_READY] >= OWN, NODE_MS, &asker, &instances[0],
              &instances[1], &instances[2], &instances[3], &instances[4], &instances[5]);
    struct told told = {.owner = NONE};
    const uint64_t end = test_now_ms() + NODE_MS;
    const struct ringbus_message_options any = {.struct_size = sizeof any};
    mode = "auto";
    while (told.in != (((1U << OWN) - 1U) & ~((1U << SICK) - 1U))) {
        CHECK(test_now_ms() < end);
        for (unsigned i = 0; i < OWN; i++) {
            struct ringbus_addr self;
            CHECK(ringbus_self(instances[i].bus, &self) == 0);
            CHECK(ringbus_report(asker.bus, &self,
                                 i < SICK ? RINGBUS_REPORT_ERROR : RINGBUS_REPORT_OK, 100) == 0);
        }
        step();
        told = explain(&any, false);
    }
}

/* The daemon judges that some time after it has read the policy; what is loaded next is later. */
static void swap_panic(void)
{
    const uint64_t end = test_now_ms() + NODE_MS;
    const struct ringbus_message_options any = {.struct_size = sizeof any};
    panics = !panics;
    load_random();
    while (explain(&any, false).panic != panics) {
        CHECK(test_now_ms() < end);
        step();
    }
}

static void test_explained_as_it_happens(void **state)
{
    (void)state;
    const char *full = getenv("RINGBUS_TEST_FULL");
    const char *given = getenv("RINGBUS_TEST_SEED");
    const unsigned rounds = (full != NULL ? 5000U : 150U) / TEST_SCALE;
    seed = given != NULL ? strtoull(given, NULL, 0) : 20261130;
    bus_shared_reset();
    assert_int_equal(cluster_up(&cluster, "{}\n"), 0);
    open_all();
    make_sick();
    for (unsigned round = 0; round < rounds; round++) {
        if (round % 25 == 24) {
            swap_panic();
        }
        load_random();
        for (unsigned i = 0; i < 12; i++) {
            compare();
        }
    }
    (void)printf("%u messages, %u to nobody, %u by key (%u diverted), %u in turn\n",
                 figures.messages, figures.nobody, figures.by_key, figures.diverted, figures.turns);
    node_close(&caller);
    node_close(&asker);
    for (unsigned i = 0; i < INSTANCES; i++) {
        node_close(&instances[i]);
    }
    cluster_down(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explained_as_it_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
