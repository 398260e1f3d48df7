/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters that ask for a token (features 2.11, J25; scenario 120: expired tokens do not go on).
 */
#include "bus/record.h"
#include "daemon/code.h"
#include "daemon/token_hmac.h"
#include "daemon/wall.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GATE   "/game/eu/pc/w1/core/gate/1"
#define VAULT  "/game/eu/pc/w1/core/vault/1"
#define BATTLE "/game/eu/pc/w1/core/battle/1"

#define KEY_1 "0123456789abcdef0123456789abcdef-1"
#define KEY_2 "0123456789abcdef0123456789abcdef-2"

static struct cluster cluster;
static struct raw gate;
static struct raw vault;
static struct raw battle;
static char key_file[128];
static char other_file[128];

static void put(const char *path, const char *key, mode_t mode)
{
    (void)unlink(path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, key, strlen(key)), strlen(key));
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static void config(char *out, size_t size, const char *previous)
{
    (void)snprintf(out, size,
                   "tokens: {key: %s, previous_key: \"%s\"}\n"
                   "clusters: [{match: /**/vault, token: required}]\n",
                   key_file, previous);
}

static void reload(const char *previous)
{
    char text[512];
    const unsigned before = cluster_log_count(&cluster, "event=reloaded");
    config(text, sizeof(text), previous);
    assert_int_equal(cluster_configure(&cluster, text), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    for (unsigned i = 0; cluster_log_count(&cluster, "event=reloaded") == before; i++) {
        assert_true(i < 1000);
        test_sleep_ms(5);
    }
}

static int setup(void **state)
{
    char text[512];
    (void)state;
    cluster = (struct cluster){.pid = 0};
    if (cluster_make(&cluster, "{}\n") != 0) {
        return -1;
    }
    (void)snprintf(key_file, sizeof(key_file), "%s/key", cluster.folder);
    (void)snprintf(other_file, sizeof(other_file), "%s/other", cluster.folder);
    put(key_file, KEY_1, 0600);
    config(text, sizeof(text), "");
    if (cluster_configure(&cluster, text) != 0 || cluster_start(&cluster) != 0) {
        return -1;
    }
    return raw_up(&vault, cluster.socket, VAULT) == 0 &&
                   raw_up(&battle, cluster.socket, BATTLE) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    raw_close(&vault);
    raw_close(&battle);
    cluster_down(&cluster);
    return 0;
}

/** A token that is over in so many seconds, the skew included. */
static void
make(char *out, const char *key_text, const char *subject, const char *target, int64_t left_s)
{
    struct rbi_token_key key = {.length = (uint32_t)strlen(key_text)};
    struct rbi_token_fault fault;
    struct rbi_token token = {.expiry_s = rbi_wall_now_s() + (uint64_t)left_s - RBI_TOKEN_SKEW_S};
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/signer", cluster.folder);
    put(path, key_text, 0600);
    assert_int_equal(rbi_token_key_read(path, &key, &fault), 0);
    token.key = key.id;
    (void)snprintf(token.subject, sizeof(token.subject), "%s", subject);
    (void)snprintf(token.target, sizeof(token.target), "%s", target);
    const int length = rbi_token_write(&token, out);
    assert_true(length > 0);
    assert_int_equal(rbi_token_mark(&key, out, (size_t)length, token.mark), 0);
    (void)rbi_token_write_mark(&token, out, length);
}

/** Registers with a token. @return 0, or the code of the refusal */
static int come(const char *token, struct rbi_text *why)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.state = RBI_ENDPOINT_READY};
    rbi_text_set(&body.path, GATE);
    rbi_text_set(&body.token, token);
    assert_int_equal(raw_connect(&gate, cluster.socket), 0);
    assert_int_equal(raw_hello(&gate), 0);
    assert_int_equal(raw_send_register(&gate, &body), 0);
    assert_int_equal(raw_receive(&gate, &message, RAW_TIMEOUT_MS), 0);
    const int code = message.header.type == RBI_WIRE_REGISTERED ? 0 : message.body.error.code;
    if (code != 0) {
        *why = message.body.error.text;
    } else {
        gate.registered = message.body.registered;
    }
    raw_message_deinit(&message);
    return code;
}

static int refused(struct raw *server, struct rbi_text *why)
{
    assert_int_equal(
        raw_introduce(&gate, server->registered.cluster, server->registered.instance, 0), 0);
    return raw_expect_error_text(&gate, why);
}

static uint32_t link_down(struct raw *raw)
{
    struct raw_message message;
    assert_int_equal(raw_expect(raw, RBI_WIRE_LINK_DOWN, &message, 5000), 0);
    const uint32_t reason = message.body.link_down.reason;
    raw_message_deinit(&message);
    return reason;
}

static void test_only_a_token_opens_it(void **state)
{
    char token[RBI_TOKEN_TEXT_MAX + 1];
    struct rbi_text why;
    (void)state;
    assert_int_equal(come("", &why), 0);
    assert_int_equal(refused(&vault, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "asks for a token"));
    assert_int_equal(raw_link(&gate, &battle, NULL), 0); /* who asks for none needs none */
    raw_close(&gate);
    make(token, KEY_1, "/game/**/gate/*", "/game/**/battle/*", 3600);
    assert_int_equal(come(token, &why), 0);
    assert_int_equal(refused(&vault, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "for others"));
    raw_close(&gate);
    make(token, KEY_1, "/game/**/gate/*", "/game/**/vault/*", 3600);
    assert_int_equal(come(token, &why), 0);
    assert_int_equal(raw_link(&gate, &vault, NULL), 0);
    raw_close(&gate);
    assert_int_equal(cluster_log_count(&cluster, token), 0); /* nor any part of it */
    assert_int_equal(cluster_log_count(&cluster, KEY_1), 0);
}

static void test_bad_token_is_refused_wanted_or_not(void **state)
{
    char token[RBI_TOKEN_TEXT_MAX + 1];
    struct rbi_text why;
    (void)state;
    assert_int_equal(come("no token", &why), RBI_CODE_DENIED);
    raw_close(&gate);
    make(token, KEY_1, "/game/**/gate/*", "/**", 3600);
    token[strlen(token) - 2] = token[strlen(token) - 2] == 'A' ? 'B' : 'A';
    assert_int_equal(come(token, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "its mark is wrong"));
    assert_null(strstr(why.bytes, token));
    raw_close(&gate);
    make(token, KEY_2, "/game/**/gate/*", "/**", 3600);
    assert_int_equal(come(token, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "key is not in use"));
    raw_close(&gate);
    make(token, KEY_1, "/game/**/battle/*", "/**", 3600);
    assert_int_equal(come(token, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "another path"));
    raw_close(&gate);
    make(token, KEY_1, "/game/**/gate/*", "/**", 0);
    assert_int_equal(come(token, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "time is over"));
    raw_close(&gate);
}

/** Registers on a connection that is up. @return 0, or the code of the refusal */
static int ask(const char *path, const char *token)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.state = RBI_ENDPOINT_READY};
    rbi_text_set(&body.path, path);
    rbi_text_set(&body.token, token);
    assert_int_equal(raw_send_register(&gate, &body), 0);
    assert_int_equal(raw_receive(&gate, &message, RAW_TIMEOUT_MS), 0);
    const int code = message.header.type == RBI_WIRE_REGISTERED ? 0 : message.body.error.code;
    raw_message_deinit(&message);
    return code;
}

/* What a registration that failed has brought, or tried to, opens nothing for the next one. */
static void test_token_of_a_failed_registration_is_forgotten(void **state)
{
    char good[RBI_TOKEN_TEXT_MAX + 1];
    char forged[RBI_TOKEN_TEXT_MAX + 1];
    struct rbi_text why;
    (void)state;
    make(good, KEY_1, "/game/**/battle/*", "/**", 3600);
    make(forged, KEY_1, "/**", "/**", 360000);
    forged[strlen(forged) - 2] = forged[strlen(forged) - 2] == 'A' ? 'B' : 'A';
    assert_int_equal(raw_connect(&gate, cluster.socket), 0);
    assert_int_equal(raw_hello(&gate), 0);
    assert_int_equal(ask(BATTLE, good), RBI_CODE_IN_USE);
    assert_int_equal(ask(GATE, forged), RBI_CODE_DENIED);
    assert_int_equal(ask(GATE, ""), 0);
    assert_int_equal(refused(&vault, &why), RBI_CODE_DENIED);
    assert_non_null(strstr(why.bytes, "none is valid"));
    raw_close(&gate);
}

static void test_link_ends_with_its_token(void **state)
{
    char token[RBI_TOKEN_TEXT_MAX + 1];
    struct rbi_text why;
    (void)state;
    make(token, KEY_1, "/game/**/gate/*", "/**", 3);
    const uint64_t begin_ms = test_now_ms();
    assert_int_equal(come(token, &why), 0);
    assert_int_equal(raw_link(&gate, &battle, NULL), 0);
    assert_int_equal(raw_link(&gate, &vault, NULL), 0);
    assert_int_equal(link_down(&gate), RBI_REASON_DENIED);
    assert_true(test_now_ms() - begin_ms >= 1900);
    assert_int_equal(link_down(&vault), RBI_REASON_DENIED);
    assert_int_equal(raw_status(cluster.socket, "links"), 1); /* the other did not need it */
    assert_int_equal(refused(&vault, &why), RBI_CODE_DENIED);
    assert_int_equal(cluster_log_count(&cluster, "event=token_over"), 1);
    raw_close(&gate);
}

static void test_two_keys_live(void **state)
{
    char token[RBI_TOKEN_TEXT_MAX + 1];
    struct rbi_text why;
    (void)state;
    make(token, KEY_1, "/game/**/gate/*", "/**", 3600);
    assert_int_equal(come(token, &why), 0);
    assert_int_equal(raw_link(&gate, &vault, NULL), 0);
    put(other_file, KEY_1, 0600);
    put(key_file, KEY_2, 0600);
    reload(other_file);
    assert_true(raw_silent(&gate, 50)); /* its key is the second one now */
    /* A file that is not whole takes nothing away. */
    put(key_file, "short", 0600);
    reload(other_file);
    assert_true(cluster_log_count(&cluster, "event=token_key_refused") == 1);
    assert_true(raw_silent(&gate, 50));
    put(key_file, KEY_2, 0600);
    reload("");
    assert_int_equal(link_down(&gate), RBI_REASON_DENIED);
    assert_int_equal(link_down(&vault), RBI_REASON_DENIED);
    raw_close(&gate);
    make(token, KEY_2, "/game/**/gate/*", "/**", 3600);
    assert_int_equal(come(token, &why), 0);
    assert_int_equal(raw_link(&gate, &vault, NULL), 0);
    raw_close(&gate);
}

static void test_without_a_key_it_is_closed(void **state)
{
    char token[RBI_TOKEN_TEXT_MAX + 1];
    struct rbi_text why;
    (void)state;
    make(token, KEY_1, "/game/**/gate/*", "/**", 3600);
    (void)chmod(key_file, 0644);
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(cluster_log_count(&cluster, "event=token_key_refused"), 1);
    raw_close(&vault);
    assert_int_equal(raw_up(&vault, cluster.socket, VAULT), 0);
    assert_int_equal(come(token, &why), 0); /* not looked at */
    assert_int_equal(refused(&vault, &why), RBI_CODE_DENIED);
    raw_close(&gate);
}

/** As an operator makes it. */
static void test_token_of_the_tool(void **state)
{
    char command[1024];
    char token[RBI_TOKEN_TEXT_MAX + 2] = "";
    struct rbi_text why;
    (void)state;
    (void)snprintf(command, sizeof(command),
                   "%s token --subject '/game/**/gate/*' --target '/**' --ttl 1h --key %s",
                   RINGBUSCTL_PATH, key_file);
    FILE *tool = popen(command, "re"); /* NOLINT(cert-env33-c): a fixed program */
    assert_non_null(tool);
    assert_non_null(fgets(token, sizeof(token), tool));
    assert_int_equal(pclose(tool), 0);
    token[strcspn(token, "\n")] = '\0';
    assert_int_equal(come(token, &why), 0);
    assert_int_equal(raw_link(&gate, &vault, NULL), 0);
    raw_close(&gate);
    (void)chmod(key_file, 0644);
    tool = popen(command, "re"); /* NOLINT(cert-env33-c) */
    assert_non_null(tool);
    assert_null(fgets(token, sizeof(token), tool));
    assert_int_not_equal(pclose(tool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_a_token_opens_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_token_is_refused_wanted_or_not, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_of_a_failed_registration_is_forgotten, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_link_ends_with_its_token, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_keys_live, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_key_it_is_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_of_the_tool, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
