/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time in which clients of an earlier daemon may come back, when nobody ran meanwhile
 * (scenario 43 and 102): whoever judges asks first whether it was itself asleep.
 */
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>

static void test_time_to_return_begins_anew_after_a_sleep(void **state)
{
    (void)state;
    struct cluster cluster = {.pid = 0};
    struct raw raw;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 2s}\n"), 0);
    assert_int_equal(kill(cluster.pid, SIGSTOP), 0);
    test_sleep_ms(3500);
    assert_int_equal(kill(cluster.pid, SIGCONT), 0);
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    assert_int_equal(raw.hello_ok.settling, 1);
    raw_close(&raw);
    assert_true(cluster_log_wait(&cluster, "event=settled", 10000));
    assert_int_equal(cluster_log_count(&cluster, "event=settled"), 1);
    cluster_down(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_to_return_begins_anew_after_a_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
