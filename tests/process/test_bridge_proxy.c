/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of another host as endpoints of this one: an application sees no difference. What lies
 * between the two bridges is done by hand (support/relay.h).
 */
#include "support/relay.h"
#include "support/test.h"

#include <string.h>

#define SERVICE   "/game/eu/pc/w1/core/far"
#define SERVICE_1 SERVICE "/1"

static struct relay relay;
static struct node alpha; /* anonymous, asks */
static struct node beta;  /* the service */

static void answer(struct node *at, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(at->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

/* A service on beta, its proxy on alpha. */
static struct rbi_proxy *begin(const struct rbi_desk_options *options)
{
    struct rbi_proxy *proxy;
    memset(&alpha, 0, sizeof alpha);
    memset(&beta, 0, sizeof beta);
    beta.on_message = answer;
    relay_up(&relay, "{}\n", options);
    node_open(&beta, &relay.host[1].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &beta);
    proxy = relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.registered == 1 || relay.refused > 0, NODE_MS, &beta);
    assert_int_equal(relay.code, 0);
    return proxy;
}

static void target(struct node *node)
{
    node_open(node, &relay.host[0].cluster, NULL);
    assert_int_equal(ringbus_target(node->bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, node->events[RINGBUS_EVENT_READY] == 1, NODE_MS, node, &beta);
}

static void end(void)
{
    node_close(&alpha);
    node_close(&beta);
    relay_down(&relay);
}

static void test_proxy_carries_requests(void **state)
{
    (void)state;
    begin(NULL);
    target(&alpha);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(ringbus_request(alpha.bus, &alpha.peer, 0, &i, sizeof i, 0, 5000,
                                         node_on_result, &alpha),
                         1);
        RELAY_UNTIL(&relay, alpha.replies[RINGBUS_REPLIED] == i + 1, NODE_MS, &alpha, &beta);
    }
    assert_int_equal(beta.messages, 100);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy_carries_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
