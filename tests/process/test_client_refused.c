/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that refuses a connection says why and hangs up, perhaps before the client has said
 * a word: the client reports the reason, and not that the connection broke.
 */
#include "support/bus.h"
#include "support/test.h"

#include <string.h>

#define BURST    10U /* connections that a rate of one a second lets in at once */
#define REFUSALS 300U

static struct cluster cluster;

static void test_refusal_is_reported_however_early_it_comes(void **state)
{
    (void)state;
    struct ringbus_options options = node_options(&cluster, NULL);
    struct ringbus *bus = NULL;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 64, .count = 1};
    for (unsigned i = 0; i < BURST; i++) {
        assert_int_equal(ringbus_open(&options, &bus), 0);
        assert_int_equal(ringbus_close(bus, 0), 0);
    }
    const unsigned fds = bus_fd_count();
    unsigned refused = 0;
    for (unsigned i = 0; i < REFUSALS; i++) {
        const int r = ringbus_open(&options, &bus);
        if (r == 0) { /* a second has passed */
            assert_int_equal(ringbus_close(bus, 0), 0);
            continue;
        }
        assert_int_equal(r, RINGBUS_E_QUOTA);
        assert_non_null(strstr(ringbus_errmsg(NULL), "quota.connects"));
        refused++;
    }
    assert_true(refused > REFUSALS / 2);
    assert_int_equal(bus_fd_count(), fds);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "daemon: {return_time: 0s}\nquota: {connects: 1}\n");
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
        cmocka_unit_test(test_refusal_is_reported_however_early_it_comes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
