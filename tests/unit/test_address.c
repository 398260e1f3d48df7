/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of other hosts: what can be one, what it is in two parts, and that names are looked up
 * beside the loop, also when nobody waits for them any more.
 */
#include "daemon/bridge/address.h"
#include "daemon/bridge/lookup.h"
#include "support/test.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

static void check(const char *text, const char *node, const char *port, bool numeric)
{
    struct rbi_address address;
    assert_int_equal(rbi_address_parse(text, &address), 0);
    assert_string_equal(address.node, node);
    assert_string_equal(address.port, port);
    assert_int_equal(address.numeric, numeric);
}

static void test_parse_takes_both_families_and_names(void **state)
{
    (void)state;
    check("10.0.0.2:7740", "10.0.0.2", "7740", true);
    check("127.0.0.1:0", "127.0.0.1", "0", true);
    check("[fd00::2]:7740", "fd00::2", "7740", true);
    check("[::]:65535", "::", "65535", true);
    check("[fe80::1%lo]:1", "fe80::1%lo", "1", true);
    check("beta.example:7740", "beta.example", "7740", false);
    check("beta:1", "beta", "1", false);
    check("999.0.0.1:1", "999.0.0.1", "1", false); /* no number: a name that nobody has */
}

static void test_parse_refuses_what_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         ":1",          "beta",        "beta:",     "beta:x",   "beta:65536",
        "beta:-1",  "beta:123456", "fd00::2:80",  "[fd00::2]", "[fd00::2", "[fd00::2]80",
        "[beta]:1", "[]:1",        "[1.2.3.4]:1", "a:1:2",     "beta: 1",  "beta:+1",
    };
    struct rbi_address address = {.node = "untouched"};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        if (rbi_address_parse(bad[i], &address) != -EINVAL) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
    char lengthy[RBI_BRIDGE_ADDRESS_MAX + 20];
    memset(lengthy, 'a', sizeof(lengthy));
    memcpy(lengthy + sizeof(lengthy) - 3, ":1", 3);
    assert_int_equal(rbi_address_parse(lengthy, &address), -EINVAL);
    assert_string_equal(address.node, "untouched");
}

static void test_text_is_what_was_parsed(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.0.0.2:7740", "[fd00::2]:7740", "[::1]:1"};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(texts); i++) {
        struct rbi_address address;
        struct rbi_socket_address found;
        char text[RBI_BRIDGE_ADDRESS_MAX + 1];
        assert_int_equal(rbi_address_parse(texts[i], &address), 0);
        assert_int_equal(rbi_address_find(&address, &found, 1), 1);
        rbi_address_text(&found, text);
        assert_string_equal(text, texts[i]);
    }
}

/* ---- lookups --------------------------------------------------------------------------- */

struct answer {
    bool came;
    int count;
    struct rbi_socket_address first;
};

static void answered(void *context, const struct rbi_socket_address *found, int count)
{
    struct answer *answer = context;
    answer->came = true;
    answer->count = count;
    if (count > 0) {
        answer->first = found[0];
    }
}

static struct answer look_up(struct rbi_loop *loop, const char *text)
{
    struct answer answer = {0};
    struct rbi_address address;
    struct rbi_lookup *lookup = NULL;
    assert_int_equal(rbi_address_parse(text, &address), 0);
    assert_int_equal(rbi_lookup_start(loop, &address, answered, &answer, &lookup), 0);
    assert_false(answer.came);
    while (!answer.came) {
        assert_int_equal(rbi_loop_turn(loop, UINT64_MAX), 0);
    }
    return answer;
}

/* Not so in a tree without /etc/hosts. */
static bool knows_localhost(void)
{
    struct addrinfo *found = NULL;
    if (getaddrinfo("localhost", NULL, NULL, &found) != 0) {
        return false;
    }
    freeaddrinfo(found);
    return true;
}

static void test_names_are_looked_up_beside_the_loop(void **state)
{
    (void)state;
    struct rbi_loop *loop = NULL;
    char text[RBI_BRIDGE_ADDRESS_MAX + 1];
    assert_int_equal(rbi_loop_new(&loop, RBI_LOOP_EPOLL), 0);
    struct answer answer = look_up(loop, "localhost:7740");
    if (knows_localhost()) {
        assert_true(answer.count >= 1);
        rbi_address_text(&answer.first, text);
        assert_true(strcmp(text, "127.0.0.1:7740") == 0 || strcmp(text, "[::1]:7740") == 0);
    } else {
        assert_true(answer.count < 0);
    }
    /* No name can be that; nobody is asked. */
    answer = look_up(loop, "-.-..invalid:1");
    assert_true(answer.count < 0);
    rbi_loop_free(loop);
}

static void test_lookups_may_be_forgotten_at_any_time(void **state)
{
    (void)state;
    struct rbi_loop *loop = NULL;
    struct rbi_address address;
    assert_int_equal(rbi_loop_new(&loop, RBI_LOOP_EPOLL), 0);
    assert_int_equal(rbi_address_parse("localhost:1", &address), 0);
    for (unsigned i = 0; i < 100; i++) {
        struct answer answer = {0};
        struct rbi_lookup *lookup = NULL;
        assert_int_equal(rbi_lookup_start(loop, &address, answered, &answer, &lookup), 0);
        for (unsigned turns = i % 3; turns > 0 && !answer.came; turns--) {
            assert_int_equal(rbi_loop_turn(loop, 100000), 0);
        }
        if (!answer.came) {
            assert_null(rbi_lookup_forget(lookup));
        }
    }
    assert_null(rbi_lookup_forget(NULL));
    rbi_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_takes_both_families_and_names),
        cmocka_unit_test(test_parse_refuses_what_is_none),
        cmocka_unit_test(test_text_is_what_was_parsed),
        cmocka_unit_test(test_names_are_looked_up_beside_the_loop),
        cmocka_unit_test(test_lookups_may_be_forgotten_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
