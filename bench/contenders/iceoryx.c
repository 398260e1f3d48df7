/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/iceoryx.c - Eclipse iceoryx 2 through its C binding, with a RouDi of its own
 * and a small pool. Lossless: the publisher waits for the subscriber. By reference by nature:
 * the payload is built in a loaned chunk and read in place; busy by taking, sleeping by a
 * wait set.
 */
#include "bench/loops.h"

#include <grp.h>
#include <iceoryx_binding_c/publisher.h>
#include <iceoryx_binding_c/runtime.h>
#include <iceoryx_binding_c/subscriber.h>
#include <iceoryx_binding_c/wait_set.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct iox_end {
    iox_pub_storage_t publisher_room;
    iox_sub_storage_t subscriber_room;
    iox_ws_storage_t set_room;
    iox_pub_t publisher;
    iox_sub_t subscriber;
    iox_ws_t set;
};

static const char config[] = "[general]\nversion = 1\n[[segment]]\n"
                             "[[segment.mempool]]\nsize = 128\ncount = 1024\n"
                             "[[segment.mempool]]\nsize = 2048\ncount = 1024\n"
                             "[[segment.mempool]]\nsize = 73728\ncount = 300\n"
                             "[[segment.mempool]]\nsize = 1114112\ncount = 16\n";

static int roudi_setup(struct bench_place *place)
{
    char path[128];
    const char *argv[] = {BENCH_ROUDI, "-c", path, "-m", "off", "-l", "error", NULL};
    (void)snprintf(path, sizeof path, "%s/roudi.toml", place->directory);
    FILE *out = fopen(path, "w");
    if (out == NULL || fputs(config, out) < 0 || fclose(out) != 0) {
        return -1;
    }
    if (bench_place_helper(place, argv) != 0) {
        return -1;
    }
    (void)usleep(500000); /* it makes its segments */
    return 0;
}

static void runtime_name(const struct bench_place *place, int side, char *out, size_t size)
{
    (void)snprintf(out, size, "ringbus-bench-%u-%d", place->number, side);
}

/* Each runtime has a socket and a lock with its name in /tmp, and leaves both behind. */
static void forget_runtime(const struct bench_place *place, int side)
{
    char name[48];
    char path[80];
    runtime_name(place, side, name, sizeof name);
    (void)snprintf(path, sizeof path, "/tmp/%s", name);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "/tmp/%s.lock", name);
    (void)unlink(path);
}

/* What RouDi leaves behind when it was stopped early. */
static void roudi_teardown(struct bench_place *place)
{
    static const char *const left[] = {"/dev/shm/iceoryx_mgmt", "/tmp/roudi", "/tmp/roudi.lock",
                                       "/tmp/iox-unique-roudi.lock"};
    bench_place_helper_stop(place);
    forget_runtime(place, 0);
    forget_runtime(place, 1);
    for (unsigned i = 0; i < sizeof left / sizeof left[0]; i++) {
        (void)unlink(left[i]);
    }
    /* The payloads' segment is named after the group. */
    const struct group *group = getgrgid(getegid());
    if (group != NULL) {
        char path[128];
        (void)snprintf(path, sizeof path, "/dev/shm/%.100s", group->gr_name);
        (void)unlink(path);
    }
}

static int side_open(struct bench_end *end)
{
    char name[48];
    const char *const sides[] = {"side0", "side1"};
    struct iox_end *x = calloc(1, sizeof *x);
    end->state = x;
    if (x == NULL) {
        return -1;
    }
    runtime_name(end->place, end->side, name, sizeof name);
    iox_runtime_init(name);
    iox_pub_options_t pub;
    iox_pub_options_init(&pub);
    pub.subscriberTooSlowPolicy = ConsumerTooSlowPolicy_WAIT_FOR_CONSUMER;
    x->publisher = iox_pub_init(&x->publisher_room, "ringbus", "bench", sides[end->side], &pub);
    iox_sub_options_t sub;
    iox_sub_options_init(&sub);
    sub.queueCapacity = 256;
    sub.queueFullPolicy = QueueFullPolicy_BLOCK_PRODUCER;
    x->subscriber = iox_sub_init(&x->subscriber_room, "ringbus", "bench", sides[!end->side], &sub);
    if (end->sleep) {
        x->set = iox_ws_init(&x->set_room);
        if (iox_ws_attach_subscriber_state(x->set, x->subscriber, SubscriberState_HAS_DATA, 1,
                                           NULL) != WaitSetResult_SUCCESS) {
            return -1;
        }
    }
    for (int i = 0; i < 5000; i++) {
        if (iox_pub_has_subscribers(x->publisher) &&
            iox_sub_get_subscription_state(x->subscriber) == SubscribeState_SUBSCRIBED) {
            return 0;
        }
        (void)usleep(1000);
    }
    return -1;
}

static void side_close(struct bench_end *end)
{
    struct iox_end *x = end->state;
    if (x != NULL) {
        if (x->set != NULL) {
            iox_ws_detach_subscriber_state(x->set, x->subscriber, SubscriberState_HAS_DATA);
            iox_ws_deinit(x->set);
        }
        iox_sub_deinit(x->subscriber);
        iox_pub_deinit(x->publisher);
        iox_runtime_shutdown();
        free(x);
    }
}

BENCH_INLINE int send_iox(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct iox_end *x = end->state;
    void *chunk = NULL;
    if (iox_pub_loan_chunk(x->publisher, &chunk, (uint32_t)size) != AllocationResult_SUCCESS) {
        return 0;
    }
    memcpy(chunk, data, size);
    iox_pub_publish_chunk(x->publisher, chunk);
    return 1;
}

BENCH_INLINE int poll_iox(struct bench_end *end, unsigned max)
{
    struct iox_end *x = end->state;
    const void *chunk = NULL;
    unsigned n = 0;
    while (n < max && iox_sub_take_chunk(x->subscriber, &chunk) == ChunkReceiveResult_SUCCESS) {
        bench_take(end, chunk, end->size);
        while (end->echo && send_iox(end, chunk, end->size) == 0) {
        }
        iox_sub_release_chunk(x->subscriber, chunk);
        n++;
    }
    if (n == 0 && end->sleep) {
        uint64_t missed = 0;
        iox_notification_info_t info;
        const struct timespec timeout = {.tv_sec = 1};
        (void)iox_ws_timed_wait(x->set, timeout, &info, 1, &missed);
    }
    return (int)n;
}
BENCH_LOOPS(iox, send_iox, poll_iox)

const struct bench_contender bench_iceoryx = {
    .name = "iceoryx",
    .package = "iceoryx",
    .text = "iceoryx 2.0, RouDi with a small pool, lossless, built and read in place; wait set "
            "when sleeping",
    .abilities = BENCH_CAN_BUSY | BENCH_CAN_SLEEP | BENCH_TRIPS | BENCH_STREAM,
    .size_max = 1U << 20,
    .setup = roudi_setup,
    .open = side_open,
    .close = side_close,
    .teardown = roudi_teardown,
    .trips = iox_trips,
    .stream = iox_stream,
    .put = iox_put_loop,
    .take = iox_take_loop,
};
