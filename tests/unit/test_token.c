/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as text: written, read, judged (features 2.11, J25; scenario 120). */
#include "bus/token.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct rbi_token token;
static char text[RBI_TOKEN_TEXT_MAX + 1];

static int make(void)
{
    const int length = rbi_token_write(&token, text);
    return length < 0 ? length : rbi_token_write_mark(&token, text, length);
}

static int setup(void **state)
{
    (void)state;
    token = (struct rbi_token){.key = 0xdeadbeef,
                               .expiry_s = 1900000000,
                               .nonce = UINT64_C(0x0123456789abcdef),
                               .subject = "/game/eu/pc/w1/core/gate/*",
                               .target = "/shop/**"};
    for (unsigned i = 0; i < RBI_TOKEN_MARK_BYTES; i++) {
        token.mark[i] = (unsigned char)(0xff - 7 * i);
    }
    return 0;
}

static void test_there_and_back(void **state)
{
    struct rbi_token read;
    size_t length = 0;
    (void)state;
    const int whole = make();
    assert_string_equal(text, "rb1:deadbeef:1900000000:0123456789abcdef:"
                              "/game/eu/pc/w1/core/gate/*:/shop/**:"
                              "__jx6uPc1c7HwLmyq6Sdlo-IgXpzbGVeV1BJQjs0LSY");
    assert_int_equal(whole, strlen(text));
    assert_int_equal(rbi_token_read(text, strlen(text), &read, &length), 0);
    assert_memory_equal(&read, &token, sizeof(read));
    assert_int_equal(length, strlen(text) - 44);
    assert_int_equal(text[length], ':');
}

/** Each byte, changed in each way: what is still read says something else, or is refused. */
static void test_one_text_for_a_token(void **state)
{
    struct rbi_token read;
    size_t length = 0;
    char changed[RBI_TOKEN_TEXT_MAX + 1];
    (void)state;
    const size_t whole = (size_t)make();
    for (size_t at = 0; at < whole; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            memcpy(changed, text, whole + 1);
            changed[at] = (char)byte;
            if (byte != (unsigned char)text[at] &&
                rbi_token_read(changed, whole, &read, &length) == 0) {
                assert_memory_not_equal(&read, &token, sizeof(read));
            }
        }
    }
    for (size_t cut = 0; cut < whole; cut++) {
        assert_int_equal(rbi_token_read(text, cut, &read, &length), -EPROTO);
    }
}

static void test_what_is_none(void **state)
{
    static const char mark[] = "__jx6uPc1c7HwLmyq6Sdlo-IgXpzbGVeV1BJQjs0LSY";
    static const char *const wrong[] = {
        "rb2:deadbeef:1:0123456789abcdef:/a/*:/b/*:",
        "rb1:DEADBEEF:1:0123456789abcdef:/a/*:/b/*:",
        "rb1:deadbee:1:0123456789abcdef:/a/*:/b/*:",
        "rb1:deadbeef::0123456789abcdef:/a/*:/b/*:",
        "rb1:deadbeef:01:0123456789abcdef:/a/*:/b/*:",
        "rb1:deadbeef:+1:0123456789abcdef:/a/*:/b/*:",
        "rb1:deadbeef:1000000000000:0123456789abcdef:/a/*:/b/*:",
        "rb1:deadbeef:1:0123456789abcde:/a/*:/b/*:",
        "rb1:deadbeef:1:0123456789abcdef::/b/*:",
        "rb1:deadbeef:1:0123456789abcdef:/a/*::",
        "rb1:deadbeef:1:0123456789abcdef:/a/***:/b/*:",
        "rb1:deadbeef:1:0123456789abcdef:/a/*:/b/*:/c:",
        "rb1:deadbeef:1:0123456789abcdef:/a/*:",
        "rb1:deadbeef:1:0123456789abcdef:/a /*:/b/*:",
        "",
    };
    struct rbi_token read;
    size_t length = 0;
    char whole[RBI_TOKEN_TEXT_MAX + 1];
    (void)state;
    (void)snprintf(whole, sizeof(whole), "rb1:deadbeef:1:0123456789abcdef:/a/*:/b/*:%s", mark);
    assert_int_equal(rbi_token_read(whole, strlen(whole), &read, &length), 0);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(wrong); i++) {
        (void)snprintf(whole, sizeof(whole), "%s%s", wrong[i], mark);
        if (rbi_token_read(whole, strlen(whole), &read, &length) != -EPROTO) {
            fail_msg("taken: %s", whole);
        }
    }
}

static void test_length_is_bounded(void **state)
{
    (void)state;
    memset(token.subject, 'a', 81);
    token.subject[0] = '/';
    token.subject[81] = '\0';
    memset(token.target, 'b', 89);
    token.target[0] = '/';
    token.target[88] = '\0';
    assert_int_equal(make(), RBI_TOKEN_TEXT_MAX);
    token.target[88] = 'b';
    token.target[89] = '\0';
    assert_int_equal(make(), -EMSGSIZE);
    token.target[1] = ':';
    assert_int_equal(make(), -EINVAL);
    token.target[0] = '\0';
    assert_int_equal(make(), -EINVAL);
}

static void test_is_over_after_the_skew(void **state)
{
    (void)state;
    assert_false(rbi_token_is_over(&token, 0));
    assert_false(rbi_token_is_over(&token, 1900000029));
    assert_true(rbi_token_is_over(&token, 1900000030));
    assert_true(rbi_token_is_over(&token, UINT64_MAX));
}

static void test_whose_and_what_for(void **state)
{
    static const char gate[] = "/game/eu/pc/w1/core/gate/17";
    static const char shop[] = "/shop/eu/pc/w1/core/till/1";
    (void)state;
    assert_true(rbi_token_is_for(&token, gate, sizeof(gate) - 1));
    assert_false(rbi_token_is_for(&token, shop, sizeof(shop) - 1));
    assert_true(rbi_token_opens(&token, shop, sizeof(shop) - 1));
    assert_false(rbi_token_opens(&token, gate, sizeof(gate) - 1));
}

static void test_marks_differ_in_any_bit(void **state)
{
    unsigned char other[RBI_TOKEN_MARK_BYTES];
    (void)state;
    memcpy(other, token.mark, sizeof(other));
    assert_true(rbi_token_marks_equal(other, token.mark));
    for (unsigned bit = 0; bit < 8 * RBI_TOKEN_MARK_BYTES; bit++) {
        other[bit / 8] ^= (unsigned char)(1U << bit % 8);
        assert_false(rbi_token_marks_equal(other, token.mark));
        other[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_there_and_back, setup),
        cmocka_unit_test_setup(test_one_text_for_a_token, setup),
        cmocka_unit_test_setup(test_what_is_none, setup),
        cmocka_unit_test_setup(test_length_is_bounded, setup),
        cmocka_unit_test_setup(test_is_over_after_the_skew, setup),
        cmocka_unit_test_setup(test_whose_and_what_for, setup),
        cmocka_unit_test_setup(test_marks_differ_in_any_bit, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
