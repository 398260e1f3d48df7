/* SPDX-License-Identifier: Apache-2.0 */
/* epoll.c - epoll sets, level- and edge-triggered, and poll(). */
#include "tests/sim/network/kernel.h"

#include <errno.h>

static bool reports(const struct sim_watch *watch, uint32_t *events)
{
    const uint32_t wanted = watch->events | EPOLLHUP | EPOLLERR;
    *events = sim_file_ready(watch->file) & wanted;
    return *events != 0 &&
           ((watch->events & EPOLLET) == 0 || watch->edges_seen != watch->file->edges);
}

uint32_t sim_epoll_ready(const struct sim_file *epoll)
{
    uint32_t events = 0;
    for (const struct sim_watch *w = epoll->u.watched; w != NULL; w = w->next_of_epoll) {
        if (reports(w, &events)) {
            return EPOLLIN;
        }
    }
    return 0;
}

uint64_t sim_epoll_deadline_ns(const struct sim_file *epoll)
{
    uint64_t at_ns = SIM_NEVER;
    for (const struct sim_watch *w = epoll->u.watched; w != NULL; w = w->next_of_epoll) {
        if (w->file->kind == SIM_TIMERFD && w->file->u.expires_ns < at_ns) {
            at_ns = w->file->u.expires_ns;
        }
    }
    return at_ns;
}

/* ---- what is watched ----------------------------------------------------------------------- */

static struct sim_watch **find_watch(struct sim_file *epoll, const struct sim_file *file, int fd)
{
    struct sim_watch **at = &epoll->u.watched;
    while (*at != NULL && ((*at)->file != file || (*at)->fd != fd)) {
        at = &(*at)->next_of_epoll;
    }
    return at;
}

static void remove_watch(struct sim_watch *watch)
{
    struct sim_watch **at = &watch->file->watches;
    while (*at != watch) {
        at = &(*at)->next_of_file;
    }
    *at = watch->next_of_file;
    at = &watch->epoll->u.watched;
    while (*at != watch) {
        at = &(*at)->next_of_epoll;
    }
    *at = watch->next_of_epoll;
    sim_heap_free(&sim.heap, watch);
}

void sim_epoll_forget(struct sim_file *file)
{
    while (file->watches != NULL) {
        remove_watch(file->watches);
    }
}

void sim_epoll_close(struct sim_file *epoll)
{
    while (epoll->u.watched != NULL) {
        remove_watch(epoll->u.watched);
    }
}

int sim_epoll_create1(int flags)
{
    (void)flags;
    sim_call();
    return sim_fd_install(sim_file_new(SIM_EPOLL));
}

static int add_watch(struct sim_file *epoll, struct sim_file *file, int fd)
{
    struct sim_watch *watch = sim_heap_alloc(&sim.heap, sizeof *watch);
    if (watch == NULL) {
        sim_unsupported("the heap of the kernel is full");
    }
    *watch = (struct sim_watch){.next_of_file = file->watches,
                                .next_of_epoll = epoll->u.watched,
                                .file = file,
                                .epoll = epoll,
                                .fd = fd};
    file->watches = watch;
    epoll->u.watched = watch;
    return 0;
}

int sim_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    sim_call();
    struct sim_file *set = sim_fd_file(epoll);
    struct sim_file *file = sim_fd_file(fd);
    if (set == NULL || file == NULL || set->kind != SIM_EPOLL) {
        return -1;
    }
    struct sim_watch **found = find_watch(set, file, fd);
    if ((operation == EPOLL_CTL_ADD) != (*found == NULL)) {
        errno = *found == NULL ? ENOENT : EEXIST;
        return -1;
    }
    if (operation == EPOLL_CTL_DEL) {
        remove_watch(*found);
        return 0;
    }
    if (operation == EPOLL_CTL_ADD) {
        (void)add_watch(set, file, fd);
    }
    struct sim_watch *watch = *find_watch(set, file, fd);
    watch->events = event->events;
    watch->data = event->data.u64;
    watch->edges_seen = file->edges - 1; /* what is ready now is reported once */
    return 0;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static uint64_t until(int timeout_ms)
{
    return timeout_ms < 0 ? SIM_NEVER : sim.now_ns + (uint64_t)timeout_ms * SIM_MS;
}

static int collect(struct sim_file *epoll, struct epoll_event *events, int max)
{
    int count = 0;
    for (struct sim_watch *w = epoll->u.watched; w != NULL && count < max; w = w->next_of_epoll) {
        uint32_t ready = 0;
        if (reports(w, &ready)) {
            w->edges_seen = w->file->edges;
            events[count++] = (struct epoll_event){.events = ready, .data.u64 = w->data};
        }
    }
    return count;
}

int sim_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
    sim_call();
    struct sim_file *set = sim_fd_file(epoll);
    const uint64_t end_ns = until(timeout_ms);
    if (set == NULL || set->kind != SIM_EPOLL) {
        sim_unsupported("epoll_wait(%d)", epoll);
    }
    int count = collect(set, events, max);
    while (count == 0 && sim.now_ns < end_ns) {
        static const short readable = EPOLLIN;
        sim_block(&set, &readable, 1, end_ns);
        count = collect(set, events, max);
    }
    return count;
}

static int poll_now(struct pollfd *fds, nfds_t count)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = 0;
        if (fds[i].fd < 0) {
            continue;
        }
        const struct sim_file *file = sim_fd_file(fds[i].fd);
        if (file == NULL) {
            sim_unsupported("poll() of descriptor %d, which is not open", fds[i].fd);
        }
        const uint32_t wanted = (uint32_t)fds[i].events | EPOLLHUP | EPOLLERR;
        fds[i].revents = (short)(sim_file_ready(file) & wanted);
        ready += fds[i].revents != 0;
    }
    return ready;
}

int sim_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    struct sim_file *files[4];
    short events[4];
    unsigned waits = 0;
    sim_call();
    const uint64_t end_ns = until(timeout_ms);
    int ready = poll_now(fds, count);
    for (nfds_t i = 0; i < count && waits < 4; i++) {
        if (fds[i].fd >= 0) {
            files[waits] = sim_fd_file(fds[i].fd);
            events[waits++] = fds[i].events;
        }
    }
    while (ready == 0 && sim.now_ns < end_ns) {
        sim_block(files, events, waits, end_ns);
        ready = poll_now(fds, count);
    }
    return ready;
}
