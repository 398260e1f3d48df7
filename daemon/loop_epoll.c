/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EPOLL_BATCH 256

struct epoll_state {
    int fd;
};

static int epoll_start(struct rbi_loop *loop, void **out)
{
    (void)loop;
    struct epoll_state *state = calloc(1, sizeof(*state));
    if (!state) {
        return -ENOMEM;
    }
    state->fd = epoll_create1(EPOLL_CLOEXEC);
    if (state->fd < 0) {
        const int error = errno;
        free(state);
        return -error;
    }
    *out = state;
    return 0;
}

static void epoll_end(void *opaque)
{
    struct epoll_state *state = opaque;
    (void)close(state->fd);
    free(state);
}

static struct epoll_event epoll_interest(const struct rbi_loop_source *source)
{
    struct epoll_event event = {.data = {.u64 = (uint64_t)source->generation << 32 | source->idx}};
    if (source->want & RBI_LOOP_IN) {
        event.events |= EPOLLIN | EPOLLRDHUP;
    }
    if (source->want & RBI_LOOP_OUT) {
        event.events |= EPOLLOUT;
    }
    return event;
}

static int epoll_add(void *opaque, struct rbi_loop_source *source)
{
    const struct epoll_state *state = opaque;
    struct epoll_event event = epoll_interest(source);
    return epoll_ctl(state->fd, EPOLL_CTL_ADD, source->fd, &event) == 0 ? 0 : -errno;
}

static void epoll_change(void *opaque, struct rbi_loop_source *source)
{
    const struct epoll_state *state = opaque;
    struct epoll_event event = epoll_interest(source);
    RBI_ASSERT(epoll_ctl(state->fd, EPOLL_CTL_MOD, source->fd, &event) == 0);
}

static void epoll_remove(void *opaque, struct rbi_loop_source *source)
{
    const struct epoll_state *state = opaque;
    (void)epoll_ctl(state->fd, EPOLL_CTL_DEL, source->fd, NULL);
}

static void epoll_handle(struct rbi_loop *loop, const struct epoll_event *event)
{
    struct rbi_loop_source *source =
        rbi_loop_lookup(loop, (uint32_t)event->data.u64, (uint32_t)(event->data.u64 >> 32));
    if (!source) {
        return; /* removed by an earlier one of this batch */
    }
    unsigned events = 0;
    if (event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        events |= RBI_LOOP_IN;
    }
    if (event->events & EPOLLOUT) {
        events |= RBI_LOOP_OUT;
    }
    if (event->events & (EPOLLHUP | EPOLLERR)) {
        events |= RBI_LOOP_HUP;
    }
    rbi_loop_dispatch(source, events);
}

static int epoll_wait_ns(int fd, struct epoll_event *events, uint64_t timeout_ns)
{
    if (timeout_ns == UINT64_MAX) {
        return epoll_wait(fd, events, EPOLL_BATCH, -1);
    }
    /* Rounded up: a timer that is not due yet would otherwise spin through its last millisecond. */
    const uint64_t timeout_ms = rbi_min_u64((timeout_ns + 999999) / 1000000, 60000);
    return epoll_wait(fd, events, EPOLL_BATCH, (int)timeout_ms);
}

static int epoll_turn(void *opaque, struct rbi_loop *loop, uint64_t timeout_ns)
{
    const struct epoll_state *state = opaque;
    struct epoll_event events[EPOLL_BATCH];
    const int count = epoll_wait_ns(state->fd, events, timeout_ns);
    if (count < 0 && errno != EINTR) {
        return -errno;
    }
    rbi_loop_tick(loop);
    for (int i = 0; i < count; i++) {
        epoll_handle(loop, &events[i]);
    }
    return 0;
}

const struct rbi_loop_backend rbi_loop_epoll = {
    .name = "epoll",
    .start = epoll_start,
    .end = epoll_end,
    .add = epoll_add,
    .change = epoll_change,
    .remove = epoll_remove,
    .wait = epoll_turn,
};
