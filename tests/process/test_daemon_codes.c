/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's codes are the client's: it does not include the header that defines them. */
#include "daemon/code.h"
#include "support/test.h"

#include <ringbus/ringbus.h>

static void test_codes_are_those_of_the_client(void **state)
{
    (void)state;
#define SAME(name) assert_int_equal((int)RBI_CODE_##name, (int)RINGBUS_E_##name)
    SAME(NOT_READY);
    SAME(TIMEOUT);
    SAME(NO_SERVICE);
    SAME(NO_INSTANCE);
    SAME(PEER_GONE);
    SAME(CLOSED);
    SAME(UNREACHABLE);
    SAME(NO_ROUTE);
    SAME(DENIED);
    SAME(IN_USE);
    SAME(QUOTA);
    SAME(CLASH);
    SAME(VERSION);
    SAME(DRAINING);
    SAME(TOO_BIG);
    SAME(ARGUMENT);
    SAME(PATH);
    SAME(NO_MEMORY);
    SAME(NO_FDS);
    SAME(SYSTEM);
    SAME(BAD_PEER);
#undef SAME
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes_are_those_of_the_client)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
