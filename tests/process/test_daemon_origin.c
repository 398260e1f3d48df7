/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proxies: instances of other hosts, as the bridge registers them (features J20, B16, 2.11). Who
 * may register them, what others see, who they are to the rules, what they cost, and that a local
 * instance goes before them.
 */
#include "bus/directory.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HALL   "/game/eu/pc/w1/core/hall"
#define HALL_1 HALL "/1"
#define HALL_2 HALL "/2"
#define GATE_1 "/game/eu/pc/w1/core/gate/1"
#define NOBODY 65534

static struct raw reader; /* whose directory is looked into */

static void up(void **state, const char *rest)
{
    assert_int_equal(loops_up(state, "", rest), 0);
    assert_int_equal(raw_up(&reader, loops_cluster.socket, ""), 0);
}

static struct rbi_wire_registration proxy_body(const char *path, const char *host, uint32_t life)
{
    struct rbi_wire_registration body = {
        .weight = 100, .state = RBI_ENDPOINT_READY, .origin_incarnation = life, .cost = 10};
    rbi_text_set(&body.path, path);
    rbi_text_set(&body.host, host);
    rbi_text_set(&body.via, host);
    return body;
}

static void greet(struct raw *raw)
{
    assert_int_equal(raw_connect(raw, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
}

/** Sends a registration. @return the code of the refusal, or 0: it is registered */
static int try(struct raw *raw, const struct rbi_wire_registration *body)
{
    struct raw_message message;
    assert_int_equal(raw_send_register(raw, body), 0);
    for (;;) {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_ERROR) {
            return message.body.error.code;
        }
        if (message.header.type == RBI_WIRE_REGISTERED) {
            raw->registered = message.body.registered;
            return 0;
        }
        raw_message_deinit(&message);
    }
}

static void proxy_up(struct raw *raw, const char *path, const char *host, uint32_t life)
{
    const struct rbi_wire_registration body = proxy_body(path, host, life);
    greet(raw);
    assert_int_equal(try(raw, &body), 0);
}

static void hidden_up(struct raw *raw, const char *path, const char *host, uint32_t life)
{
    struct rbi_wire_registration body = proxy_body(path, host, life);
    body.hidden = 1;
    greet(raw);
    assert_int_equal(try(raw, &body), 0);
}

/** Instances of the cluster of halls. @return how many */
static unsigned halls(struct rbi_directory_instance *out, unsigned max)
{
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    const uint64_t id = rbi_cluster_id(HALL, strlen(HALL));
    assert_int_equal(rbi_directory_view_init(&view, reader.directory.base, reader.directory.size),
                     0);
    const int result = rbi_directory_read(&view, id, &head, out, max);
    return result == RBI_DIRECTORY_OK ? head.instance_count : 0;
}

/** Asks for something that is answered, so that all before it has been handled. */
static void settle(struct raw *raw)
{
    struct raw_message message;
    const struct rbi_wire_query query = {.what = RBI_QUERY_LINKS};
    assert_int_equal(raw_send(raw, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    assert_int_equal(raw_expect(raw, RBI_WIRE_QUERY_END, &message, RAW_TIMEOUT_MS), 0);
}

static void test_is_listed_with_its_host_and_its_own_life(void **state)
{
    struct rbi_directory_instance all[4];
    struct raw far;
    struct raw near;
    up(state, "");
    assert_int_equal(raw_up(&near, loops_cluster.socket, HALL_1), 0);
    proxy_up(&far, HALL_2, "beta", near.registered.incarnation + 1);
    assert_int_equal(far.registered.incarnation, near.registered.incarnation + 1);
    assert_int_equal(halls(all, 4), 2);
    assert_int_equal(all[0].host, 0);
    assert_int_not_equal(all[1].host, 0);
    assert_int_equal(all[1].incarnation, far.registered.incarnation);
    assert_int_equal(all[1].flags, 0);
    const uint32_t beta = all[1].host;
    raw_close(&far);
    settle(&reader);
    assert_int_equal(halls(all, 4), 1);
    /* Hosts keep their number, and this daemon's lives go on as if that one had never been. */
    proxy_up(&far, HALL_2, "gamma", 7);
    assert_int_equal(halls(all, 4), 2);
    assert_int_not_equal(all[1].host, beta);
    const uint32_t life = near.registered.incarnation;
    raw_close(&near);
    assert_int_equal(raw_up(&near, loops_cluster.socket, HALL_1), 0);
    assert_int_equal(near.registered.incarnation, life + 1);
    raw_close(&far);
    proxy_up(&far, HALL_2, "beta", 7);
    assert_int_equal(halls(all, 4), 2);
    assert_int_equal(all[1].host, beta);
    raw_close(&far);
    raw_close(&near);
    raw_close(&reader);
}

static void test_only_the_bridge_may(void **state)
{
    struct raw_message message;
    struct raw far;
    struct rbi_text why;
    struct rbi_wire_registration body = proxy_body(HALL_1, "beta", 7);
    up(state, "");
    assert_int_equal(chmod(loops_cluster.folder, 0711), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    const int connected = raw_connect(&far, loops_cluster.socket);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(connected, 0);
    assert_int_equal(raw_hello(&far), 0);
    assert_int_equal(raw_send_register(&far, &body), 0);
    assert_int_equal(raw_expect_error_text(&far, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "bridge.user"));
    /* Without a host it is what it was; and then it is no proxy, and must not talk as one. */
    body.host.length = 0;
    body.host.bytes[0] = '\0';
    assert_int_equal(try(&far, &body), RBI_CODE_ARGUMENT);
    body.origin_incarnation = 0;
    body.hidden = 1;
    assert_int_equal(try(&far, &body), RBI_CODE_ARGUMENT);
    body.hidden = 0;
    assert_int_equal(try(&far, &body), 0);
    const struct rbi_wire_proxy proxy = {.state = RBI_ENDPOINT_READY, .weight = 1};
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    assert_int_equal(raw_expect(&far, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.error.code, RBI_CODE_BAD_PEER);
    assert_true(raw_closed(&far, RAW_TIMEOUT_MS));
    raw_close(&far);
    raw_close(&reader);
}

static void test_senseless_proxies_are_refused(void **state)
{
    struct raw far;
    struct rbi_wire_registration body;
    up(state, "");
    greet(&far);
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        body = proxy_body(HALL_1, "beta", 7);                                                      \
        change;                                                                                    \
        assert_int_not_equal(try(&far, &body), 0);                                                 \
    } while (0)
    REFUSED(rbi_text_set(&body.host, "Beta"));
    REFUSED(rbi_text_set(&body.host, "a/b"));
    REFUSED(rbi_text_format(&body.host, "%064d", 1));
    REFUSED(rbi_text_set(&body.via, "x_y"));
    REFUSED(rbi_text_set(&body.path, ""));
    REFUSED(rbi_text_set(&body.path, "/anon/local/host/uid0/client/x/1")); /* not hidden */
    REFUSED(body.origin_incarnation = 0);
    REFUSED(body.health = 4);
    REFUSED(body.reported = 1001);
    REFUSED(body.takeover = 1);
#undef REFUSED
    raw_close(&far);
    raw_close(&reader);
}

static void test_changes_are_published(void **state)
{
    struct rbi_directory_instance one;
    struct raw_message message;
    struct raw far;
    struct rbi_wire_proxy proxy = {.state = RBI_ENDPOINT_BUSY,
                                   .weight = 30,
                                   .health = RBI_HEALTH_HALF_OPEN,
                                   .reported = 120,
                                   .stale = 1};
    up(state, "");
    proxy_up(&far, HALL_1, "beta", 7);
    rbi_text_set(&proxy.set, "a.b.c");
    rbi_text_set(&proxy.idc, "west/2");
    rbi_text_set(&proxy.tags, "canary");
    assert_int_equal(raw_watch(&reader, RBI_WIRE_TARGET, HALL_1), 0);
    assert_int_equal(raw_expect(&reader, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    assert_int_equal(raw_expect(&reader, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_UPDATED);
    assert_int_equal(message.body.event.health, RBI_HEALTH_OPEN);
    assert_int_equal(halls(&one, 1), 1);
    assert_int_equal(one.state, RBI_ENDPOINT_BUSY);
    assert_int_equal(one.weight, 30);
    assert_int_equal(one.health, RBI_HEALTH_OPEN);
    assert_int_equal(one.reported, 120);
    assert_int_equal(one.flags, RBI_INSTANCE_STALE);
    assert_string_equal(one.set, "a.b.c");
    assert_string_equal(one.idc, "west/2");
    assert_string_equal(one.tags, "canary");
    /* The same again is no news; hidden it is gone, and no death; and it can come back. */
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    proxy.hidden = 1;
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    assert_int_equal(raw_expect(&reader, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_REMOVED);
    assert_int_equal(message.body.event.reason, RBI_REASON_LEFT);
    assert_int_equal(halls(&one, 1), 0);
    proxy.hidden = 0;
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    assert_int_equal(raw_expect(&reader, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_ADDED);
    /* What makes no sense is not believed. */
    proxy.weight = 1001;
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    assert_true(raw_closed(&far, RAW_TIMEOUT_MS));
    raw_close(&far);
    raw_close(&reader);
}

/** Says how well an instance is, by its own daemon. */
static void tell_health(struct raw *far, uint32_t health)
{
    const struct rbi_wire_proxy proxy = {
        .state = RBI_ENDPOINT_READY, .weight = 100, .health = health};
    assert_int_equal(raw_send(far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    settle(far);
}

static uint32_t halls_flags(void)
{
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    const uint64_t id = rbi_cluster_id(HALL, strlen(HALL));
    assert_int_equal(rbi_directory_view_init(&view, reader.directory.base, reader.directory.size),
                     0);
    assert_int_equal(rbi_directory_read(&view, id, &head, NULL, 0), RBI_DIRECTORY_ROOM);
    return head.flags;
}

/* All are shielded where they live: nobody here has called them, and somebody has to be tried. */
static void test_panic_counts_what_other_hosts_say(void **state)
{
    struct rbi_directory_instance all[2];
    struct raw far;
    struct raw near;
    up(state, "clusters: [{match: \"/**\", panic: {enter: 50%, leave: 60%}}]\n");
    proxy_up(&far, HALL_1, "beta", 7);
    assert_int_equal(halls_flags(), 0);
    tell_health(&far, RBI_HEALTH_OPEN);
    assert_int_equal(halls_flags(), RBI_CLUSTER_PANIC);
    assert_int_equal(halls(all, 2), 1);
    assert_int_equal(all[0].health, RBI_HEALTH_OPEN); /* which stays the truth */
    assert_int_equal(raw_up(&near, loops_cluster.socket, HALL_2), 0);
    assert_int_equal(halls_flags(), RBI_CLUSTER_PANIC); /* half is not enough to leave it */
    tell_health(&far, RBI_HEALTH_OK);
    assert_int_equal(halls_flags(), 0);
    tell_health(&far, RBI_HEALTH_OPEN);
    assert_int_equal(halls_flags(), 0); /* and enough not to enter it */
    raw_close(&near);
    raw_close(&far);
    raw_close(&reader);
}

static void test_hidden_ones_ask_and_are_not_found(void **state)
{
    struct rbi_directory_instance one;
    struct raw_message message;
    struct raw far;
    struct raw twin;
    struct raw gate;
    struct rbi_wire_registration body = proxy_body(HALL_1, "beta", 7);
    up(state, "");
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE_1), 0);
    hidden_up(&far, HALL_1, "beta", 7);
    assert_int_equal(halls(&one, 1), 0);
    assert_int_equal(raw_introduce(&gate, far.registered.cluster, far.registered.instance, 0), 0);
    assert_int_equal(raw_expect_error(&gate), RBI_CODE_NO_SERVICE);
    assert_int_equal(raw_introduce(&far, gate.registered.cluster, gate.registered.instance, 0), 0);
    assert_int_equal(raw_expect(&gate, RBI_WIRE_INTRODUCED, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.introduced.relayed, 1);
    assert_int_equal(message.body.introduced.incarnation, 7);
    assert_string_equal(message.body.introduced.path.bytes, HALL_1);
    raw_message_deinit(&message);
    /* One of another host with the same path is another; the same twice is not. */
    hidden_up(&twin, HALL_1, "gamma", 7);
    raw_close(&twin);
    body.hidden = 1;
    greet(&twin);
    assert_int_equal(try(&twin, &body), RBI_CODE_IN_USE);
    raw_close(&far);
    assert_int_equal(try(&twin, &body), 0); /* a restart that is quicker than the news of the end */
    /* Anonymous clients of other hosts are hidden. */
    raw_close(&twin);
    hidden_up(&twin, "/anon/local/host/uid0/client/x/1", "beta", 9);
    assert_int_equal(raw_link(&twin, &gate, NULL), 0);
    raw_close(&twin);
    raw_close(&gate);
    raw_close(&reader);
}

static void test_both_ends_know_that_it_is_relayed(void **state)
{
    struct raw_message message;
    struct raw far;
    struct raw other;
    struct raw gate;
    up(state, "");
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE_1), 0);
    proxy_up(&far, HALL_1, "beta", 7);
    assert_int_equal(raw_introduce(&gate, far.registered.cluster, far.registered.instance, 7), 0);
    assert_int_equal(raw_accept(&far, NULL), 0);
    assert_int_equal(raw_expect(&gate, RBI_WIRE_LINKED, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.linked.relayed, 1);
    assert_int_equal(message.body.linked.incarnation, 7);
    raw_message_deinit(&message);
    /* Nobody who asks from another host is sent on to a third one. */
    hidden_up(&other, "/game/eu/pc/w1/core/gate/9", "gamma", 3);
    assert_int_equal(raw_introduce(&other, far.registered.cluster, far.registered.instance, 0), 0);
    assert_int_equal(raw_expect_error(&other), RBI_CODE_NO_INSTANCE);
    raw_close(&other);
    raw_close(&far);
    raw_close(&gate);
    raw_close(&reader);
}

static void test_local_instance_goes_before_a_proxy(void **state)
{
    struct rbi_directory_instance one;
    struct raw_message message;
    struct raw far;
    struct raw near;
    struct rbi_wire_registration body = proxy_body(HALL_1, "beta", 7);
    up(state, "");
    proxy_up(&far, HALL_1, "beta", 7);
    assert_int_equal(raw_up(&near, loops_cluster.socket, HALL_1), 0);
    assert_int_equal(raw_expect(&far, RBI_WIRE_REPLACED, &message, RAW_TIMEOUT_MS), 0);
    assert_true(raw_closed(&far, RAW_TIMEOUT_MS));
    assert_int_equal(halls(&one, 1), 1);
    assert_int_equal(one.host, 0);
    assert_int_equal(one.incarnation, near.registered.incarnation);
    raw_close(&far);
    greet(&far);
    assert_int_equal(try(&far, &body), RBI_CODE_IN_USE);
    assert_int_equal(raw_status(loops_cluster.socket, "host_conflicts"), 2);
    assert_true(cluster_log_wait(&loops_cluster, "event=host_conflict path=" HALL_1, 1000));
    /* As a hidden one it can be there, for those whom it calls; and is shown when it may be. */
    body.hidden = 1;
    assert_int_equal(try(&far, &body), 0);
    struct rbi_wire_proxy proxy = {.state = RBI_ENDPOINT_READY, .weight = 100};
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    settle(&far);
    assert_int_equal(halls(&one, 1), 1);
    assert_int_equal(one.host, 0);
    raw_close(&near);
    settle(&reader);
    assert_int_equal(raw_send(&far, RBI_WIRE_PROXY, &proxy, NULL, 0), 0);
    settle(&far);
    assert_int_equal(halls(&one, 1), 1);
    assert_int_not_equal(one.host, 0);
    raw_close(&far);
    raw_close(&reader);
}

/** Asks for a link to the gate. @return 0, or the code of the refusal */
static int ask(struct raw *from, struct raw *gate, struct rbi_text *why)
{
    struct raw_message message;
    const struct rbi_wire_registered *to = &gate->registered;
    assert_int_equal(raw_introduce(from, to->cluster, to->instance, 0), 0);
    for (;;) {
        struct raw_message at_gate;
        if (raw_receive(from, &message, 20) == 0) {
            const int code = message.body.error.code;
            *why = message.body.error.text;
            assert_int_equal(message.header.type, RBI_WIRE_ERROR);
            return code;
        }
        if (raw_receive(gate, &at_gate, 20) == 0) {
            const bool introduced = at_gate.header.type == RBI_WIRE_INTRODUCED;
            raw_message_deinit(&at_gate);
            if (introduced) {
                return 0;
            }
        }
    }
}

/* Features J20: a rule may name the host; what only a kernel knows of a process no host claims. */
static void test_rules_name_hosts(void **state)
{
    struct rbi_text why;
    struct raw gate;
    struct raw far;
    up(state, "bridge: {host: alpha, insecure: true, start: false}\n"
              "rights:\n"
              "  otherwise: allow\n"
              "  rules:\n"
              "    - {id: root, action: allow, verbs: [connect], uid: 0, to: " GATE_1 "}\n"
              "    - {id: trusted, action: allow, verbs: [connect], uid: 1000, host: beta}\n"
              "    - {id: here, action: allow, verbs: [connect], host: alpha}\n"
              "    - {id: mine, action: deny, verbs: [own], host: gamma, to: " HALL "/*}\n"
              "    - {id: far, action: deny, verbs: [connect], host: \"*\"}\n");
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE_1), 0);
    /* The bridge runs as root, and its proxies do not. */
    hidden_up(&far, HALL_1, "beta", 7);
    assert_int_equal(ask(&far, &gate, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "rule far: host beta may not connect"));
    raw_close(&far);
    /* A rule that names the host takes its word for the user. */
    struct rbi_wire_registration body = proxy_body(HALL_1, "beta", 7);
    body.hidden = 1;
    body.origin_uid = 1000;
    greet(&far);
    assert_int_equal(try(&far, &body), 0);
    assert_int_equal(ask(&far, &gate, &why), 0);
    raw_close(&far);
    /* Of another host that word counts nothing. */
    body = proxy_body(HALL_1, "gamma", 7);
    body.origin_uid = 1000;
    greet(&far);
    assert_int_equal(try(&far, &body), RBI_CODE_DENIED); /* and it may not have this name */
    rbi_text_set(&body.path, "/game/eu/pc/w1/core/shop/1");
    assert_int_equal(try(&far, &body), 0);
    assert_int_equal(ask(&far, &gate, &why), RBI_CODE_DENIED);
    raw_close(&far);
    assert_int_equal(ask(&reader, &gate, &why), 0);
    raw_close(&gate);
    raw_close(&reader);
}

static void reconfigure(const char *rest)
{
    char text[1024];
    const unsigned before = cluster_log_count(&loops_cluster, "event=reloaded");
    (void)snprintf(text, sizeof(text), "%s", rest);
    assert_int_equal(cluster_configure(&loops_cluster, text), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    for (unsigned i = 0; i < 1000; i++) {
        if (cluster_log_count(&loops_cluster, "event=reloaded") > before) {
            return;
        }
        test_sleep_ms(5);
    }
    fail_msg("not reloaded in time");
}

#define BY_HOST "rights: {rules: [{id: b, action: deny, verbs: [connect], host: beta}]}\n"

/* The host itself is called otherwise: what the rules say of that name is about it from now on. */
static void test_name_of_this_host_changes(void **state)
{
    struct raw_message message;
    struct raw gate;
    struct raw hall;
    up(state, "bridge: {host: alpha, insecure: true, start: false}\n" BY_HOST);
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE_1), 0);
    assert_int_equal(raw_up(&hall, loops_cluster.socket, HALL_1), 0);
    assert_int_equal(raw_link(&hall, &gate, NULL), 0);
    reconfigure("bridge: {host: beta, insecure: true, start: false}\n" BY_HOST);
    assert_int_equal(raw_expect(&hall, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.link_down.reason, RBI_REASON_DENIED);
    raw_close(&hall);
    raw_close(&gate);
    raw_close(&reader);
}

static unsigned absent_halls(void)
{
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance all[4];
    const uint64_t id = rbi_cluster_id(HALL, strlen(HALL));
    assert_int_equal(rbi_directory_view_init(&view, reader.directory.base, reader.directory.size),
                     0);
    assert_int_equal(rbi_directory_read_all(&view, id, &head, all, 4), RBI_DIRECTORY_OK);
    return head.absent_count;
}

/*
 * A bridge that dies: the keys of those whom it had wait for the next one, as for any instance that
 * died. Who has left, by what the bridge says, is not waited for.
 */
static void test_keys_wait_for_the_next_bridge(void **state)
{
    struct raw_message message;
    struct raw far;
    const struct rbi_wire_set_state closed = {.state = RBI_ENDPOINT_CLOSED};
    up(state, "clusters: [{match: \"/**\", balance: {rehash_delay: 10m}}]\n");
    proxy_up(&far, HALL_1, "beta", 7);
    raw_close(&far);
    settle(&reader);
    assert_int_equal(absent_halls(), 1);
    proxy_up(&far, HALL_1, "beta", 7);
    assert_int_equal(absent_halls(), 0);
    assert_int_equal(raw_send(&far, RBI_WIRE_SET_STATE, &closed, NULL, 0), 0);
    assert_int_equal(raw_expect(&far, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    raw_close(&far);
    settle(&reader);
    assert_int_equal(absent_halls(), 0);
    raw_close(&reader);
}

/* The default of realms holds for who comes from afar, whoever runs the bridge. */
static void test_default_of_realms_holds(void **state)
{
    struct rbi_text why;
    struct raw gate;
    struct raw far;
    up(state, "");
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE_1), 0);
    hidden_up(&far, "/shop/eu/pc/w1/core/till/1", "beta", 7);
    assert_int_equal(ask(&far, &gate, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "host beta"));
    raw_close(&far);
    raw_close(&gate);
    raw_close(&reader);
}

static void test_are_not_on_the_account_of_the_user(void **state)
{
    struct raw far[4];
    struct raw own;
    struct raw more;
    struct rbi_wire_registration body = proxy_body(HALL "/5", "beta", 5);
    up(state, "quota: {instances: 2}\n"
              "bridge: {host: alpha, insecure: true, start: false,\n"
              "         limits: {instances: 2, streams: 2}}\n");
    for (unsigned i = 0; i < 4; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), HALL "/%u", i + 1);
        proxy_up(&far[i], path, "beta", 7 + i);
    }
    greet(&more);
    assert_int_equal(try(&more, &body), RBI_CODE_QUOTA); /* instances and streams together */
    assert_int_equal(raw_up(&own, loops_cluster.socket, GATE_1), 0);
    raw_close(&own);
    raw_close(&more);
    for (unsigned i = 0; i < 4; i++) {
        raw_close(&far[i]);
    }
    raw_close(&reader);
}

/** Whether the book of names has a path. */
static bool is_in_the_book(const char *path)
{
    static char text[65536];
    char name[160];
    (void)snprintf(name, sizeof(name), "%s.names", loops_cluster.socket);
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    const size_t size = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    return memmem(text, size, path, strlen(path)) != NULL;
}

/* A daemon that is killed: who lives there still stands in the directory of the next one. */
static void test_restart_of_the_daemon(void **state)
{
    struct rbi_directory_instance one;
    struct raw far;
    struct raw gate;
    up(state, "");
    assert_int_equal(raw_up(&gate, loops_cluster.socket, GATE_1), 0);
    proxy_up(&far, HALL_1, "beta", 7);
    assert_int_equal(halls(&one, 1), 1);
    const uint32_t beta = one.host;
    assert_true(is_in_the_book(GATE_1));
    assert_false(is_in_the_book(HALL_1)); /* strangers may have the name of somebody far away */
    cluster_kill(&loops_cluster);
    raw_close(&far);
    raw_close(&gate);
    raw_close(&reader);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(raw_up(&reader, loops_cluster.socket, ""), 0);
    /* No book keeps its name: it comes back with its life, whatever cookie it has. */
    proxy_up(&far, HALL_1, "beta", 7);
    assert_int_equal(halls(&one, 1), 1);
    assert_int_equal(one.incarnation, 7);
    assert_int_equal(one.host, beta);
    raw_close(&far);
    raw_close(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_is_listed_with_its_host_and_its_own_life),
        LOOPS_TEST(test_only_the_bridge_may, "epoll"),
        LOOPS_TEST(test_senseless_proxies_are_refused, "epoll"),
        LOOPS_BOTH(test_changes_are_published),
        LOOPS_TEST(test_panic_counts_what_other_hosts_say, "epoll"),
        LOOPS_BOTH(test_hidden_ones_ask_and_are_not_found),
        LOOPS_TEST(test_both_ends_know_that_it_is_relayed, "epoll"),
        LOOPS_BOTH(test_local_instance_goes_before_a_proxy),
        LOOPS_TEST(test_rules_name_hosts, "epoll"),
        LOOPS_TEST(test_name_of_this_host_changes, "epoll"),
        LOOPS_TEST(test_keys_wait_for_the_next_bridge, "epoll"),
        LOOPS_TEST(test_default_of_realms_holds, "epoll"),
        LOOPS_TEST(test_are_not_on_the_account_of_the_user, "epoll"),
        LOOPS_TEST(test_restart_of_the_daemon, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
