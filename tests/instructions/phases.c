/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/instructions/phases.h"

#define SMALL  48U
#define MIDDLE 1024U
#define BLOCK  UINT64_C(4096)

static const unsigned char payload[MIDDLE] __attribute__((aligned(64)));

static void nothing(struct group *group, unsigned operations)
{
    (void)group;
    (void)operations;
}

/* ---- send ---------------------------------------------------------------------------------- */

static void send_small(struct group *group, unsigned operations)
{
    for (unsigned i = 0; i < operations; i++) {
        group->errors += ringbus_send(group->client, &group->first, 0, payload, SMALL, 0) != 1;
    }
    group->sent += operations;
}

static void send_middle(struct group *group, unsigned operations)
{
    for (unsigned i = 0; i < operations; i++) {
        group->errors += ringbus_send(group->client, &group->first, 0, payload, MIDDLE, 0) != 1;
    }
    group->sent += operations;
}

static void send_to_any(struct group *group, unsigned operations)
{
    for (unsigned i = 0; i < operations; i++) {
        group->errors += ringbus_send(group->client, &group->any, 0, payload, SMALL, 0) != 1;
    }
    group->sent += operations;
}

static void send_by_key(struct group *group, unsigned operations)
{
    for (unsigned i = 0; i < operations; i++) {
        group->errors +=
            ringbus_send(group->client, &group->any, i, payload, SMALL, RINGBUS_KEY) != 1;
    }
    group->sent += operations;
}

static void claim_small(struct group *group, unsigned operations)
{
    struct ringbus_claim claim;
    for (unsigned i = 0; i < operations; i++) {
        group->errors += ringbus_claim(group->client, &group->first, 0, SMALL, 0, &claim) != 0;
        group->errors += ringbus_commit(group->client, &claim, SMALL) != 1;
    }
    group->sent += operations;
}

static void publish(struct group *group, unsigned operations)
{
    struct ringbus_addr all = group->any;
    struct ringbus_loan loan;
    all.instance = RINGBUS_ALL;
    for (unsigned i = 0; i < operations; i++) {
        group->errors += ringbus_loan(group->client, BLOCK, &loan) != 0;
        group->errors +=
            ringbus_send_loan(group->client, &all, 0, &loan, BLOCK, 0) != (int)group->count;
        group->errors += ringbus_loan_return(group->client, &loan) != 0;
    }
    group->sent += (uint64_t)operations * group->count;
}

/* ---- poll ---------------------------------------------------------------------------------- */

/* One poll for all operations of the round. */
static void poll_server(struct group *group, unsigned operations)
{
    group->errors += ringbus_poll(group->servers[0], 64) != (int)operations;
}

static void poll_empty(struct group *group, unsigned operations)
{
    for (unsigned i = 0; i < operations; i++) {
        group->errors += ringbus_poll(group->client, 64) != 0;
    }
}

/* ---- request ------------------------------------------------------------------------------- */

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct group *group = context;
    (void)bus;
    group->replies += result->outcome == RINGBUS_REPLIED;
}

static void request(struct group *group, unsigned operations)
{
    const uint64_t replies = group->replies + operations;
    for (unsigned i = 0; i < operations; i++) {
        group->errors += ringbus_request(group->client, &group->first, 0, payload, SMALL, 0, 1000,
                                         on_reply, group) != 1;
        group->errors += ringbus_poll(group->servers[0], 64) != 1;
        group->errors += ringbus_poll(group->client, 64) != 1;
    }
    group->sent += operations;
    group->errors += group->replies != replies;
}

/* -------------------------------------------------------------------------------------------- */

const struct phase phases[] = {
    {"nothing", GROUP_ONE, 1024, 1, NULL, nothing}, /* the counting itself: taken off the others */
    {"send", GROUP_ONE, 16, 512, NULL, send_small},
    {"send-sleeper", GROUP_SLEEPER, 16, 512, NULL, send_small},
    {"send-1KiB", GROUP_ONE, 64, 30, NULL, send_middle},
    {"claim-commit", GROUP_ONE, 16, 512, NULL, claim_small},
    {"any-8", GROUP_8, 16, 512, NULL, send_to_any},
    {"any-512", GROUP_512, 4, 8192, NULL, send_to_any},
    {"by-key-8", GROUP_8, 16, 512, NULL, send_by_key},
    {"by-key-512", GROUP_512, 16, 2048, NULL, send_by_key},
    {"publish-8", GROUP_8, 256, 16, NULL, publish},
    {"poll-1", GROUP_ONE, 8192, 1, send_small, poll_server},
    {"poll-1-sleeper", GROUP_SLEEPER, 8192, 1, send_small, poll_server},
    {"poll-64", GROUP_ONE, 1024, 64, send_small, poll_server},
    {"poll-empty-1", GROUP_ONE, 1, 8192, NULL, poll_empty},
    {"poll-empty-64", GROUP_64, 1, 14336, NULL, poll_empty},
    {"request-reply", GROUP_ONE, 16, 512, NULL, request},
};
const unsigned phase_count = sizeof phases / sizeof phases[0];
