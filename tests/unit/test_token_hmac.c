/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of tokens: which files are taken, and the marks of RFC 4231 (features 2.11, J25). */
#include "daemon/token_hmac.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[32];
static char file[64];
static struct rbi_token_key key;
static struct rbi_token_fault fault;

static int setup(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/ringbus-test-XXXXXX");
    if (!mkdtemp(folder)) {
        return -1;
    }
    (void)snprintf(file, sizeof(file), "%s/key", folder);
    memset(&key, 0, sizeof(key));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(file);
    (void)rmdir(file);
    return rmdir(folder);
}

static void put(const char *text, size_t length, mode_t mode)
{
    (void)unlink(file);
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static void test_marks_are_those_of_the_standard(void **state)
{
    /* RFC 4231, test case 2, whose key is shorter than ours may be. */
    static const unsigned char expected[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
                                             0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
                                             0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
                                             0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    static const char text[] = "what do ya want for nothing?";
    unsigned char mark[RBI_TOKEN_MARK_BYTES];
    (void)state;
    key.length = 4;
    memcpy(key.bytes, "Jefe", 4);
    assert_int_equal(rbi_token_mark(&key, text, sizeof(text) - 1, mark), 0);
    assert_memory_equal(mark, expected, sizeof(expected));
}

static void test_key_is_the_file_without_its_line_end(void **state)
{
    static const char text[] = "0123456789abcdef0123456789abcdef";
    struct rbi_token_key other;
    (void)state;
    put(text, 32, 0600);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), 0);
    assert_int_equal(key.length, 32);
    assert_memory_equal(key.bytes, text, 32);
    put("0123456789abcdef0123456789abcdef\r\n", 34, 0400);
    assert_int_equal(rbi_token_key_read(file, &other, &fault), 0);
    assert_int_equal(other.id, key.id);
    put("0123456789abcdef0123456789abcdeg\n", 33, 0600);
    assert_int_equal(rbi_token_key_read(file, &other, &fault), 0);
    assert_int_not_equal(other.id, key.id);
}

static void test_key_that_others_may_read_is_none(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0666};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(modes); i++) {
        put("0123456789abcdef0123456789abcdef", 32, modes[i]);
        assert_int_equal(rbi_token_key_read(file, &key, &fault), -EPERM);
        assert_non_null(strstr(fault.text, "chmod 0600"));
    }
    assert_int_equal(key.length, 0);
}

static void test_key_of_another_user_is_none(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    put("0123456789abcdef0123456789abcdef", 32, 0600);
    assert_int_equal(chown(file, 65534, 65534), 0);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), -EPERM);
}

static void test_key_has_its_length(void **state)
{
    char text[RBI_TOKEN_KEY_MAX + 2];
    (void)state;
    memset(text, 'k', sizeof(text));
    put(text, RBI_TOKEN_KEY_MIN - 1, 0600);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), -EINVAL);
    put(text, RBI_TOKEN_KEY_MAX, 0600);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), 0);
    put(text, RBI_TOKEN_KEY_MAX + 1, 0600);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), -EINVAL);
    put("", 0, 0600);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), -EINVAL);
}

static void test_what_is_no_file_is_no_key(void **state)
{
    (void)state;
    assert_int_equal(rbi_token_key_read(file, &key, &fault), -ENOENT);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), -EINVAL); /* and does not wait */
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_int_equal(rbi_token_key_read(file, &key, &fault), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_marks_are_those_of_the_standard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_key_is_the_file_without_its_line_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_key_that_others_may_read_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_key_of_another_user_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_key_has_its_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file_is_no_key, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
