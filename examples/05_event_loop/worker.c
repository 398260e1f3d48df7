/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bus handle in an event loop of one's own: epoll over the bus, a timer and the
 * signals. The bus is one more descriptor that becomes readable. On a signal the worker
 * leaves in order, and its loop goes on until that is done.
 */
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LEAVE_TICKS 250 /* 5 s: a sender that hangs must not keep it for ever */

struct worker {
    unsigned jobs;
    unsigned ticks;
    unsigned leaving; /* ticks left to do so, 0 before the signal */
};

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct worker *worker = user;
    (void)bus;
    worker->jobs++;
    printf("job %u: %.*s\n", worker->jobs, (int)message->size, (const char *)message->data);
}

/* Adds a descriptor to the loop; its number is all that the loop needs to know of it. */
static int watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    return fd < 0 ? -1 : epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int signals_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int timer_open(void)
{
    struct itimerspec every = {.it_interval = {0, 20000000}, .it_value = {0, 20000000}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer >= 0 && timerfd_settime(timer, 0, &every, NULL) != 0) {
        close(timer);
        timer = -1;
    }
    return timer;
}

/* @return 0, or an error of the bus */
static int loop(struct ringbus *bus, struct worker *worker, int epoll, int timer, int signals)
{
    int bus_fd = ringbus_fd(bus);
    int r = watch(epoll, bus_fd) == 0 ? 0 : RINGBUS_E_SYSTEM;
    while (r >= 0 && (worker->leaving == 0 || (ringbus_drained(bus) == 0 && worker->leaving > 1))) {
        struct epoll_event events[8];
        /* Everything that is there, then once more: the call that finds nothing makes the
         * descriptor ready to ring. */
        do {
            r = ringbus_poll(bus, 100);
        } while (r > 0);
        fflush(stdout);
        int count = r == 0 ? epoll_wait(epoll, events, 8, -1) : 0;
        for (int i = 0; i < count; i++) {
            uint64_t expired = 0;
            struct signalfd_siginfo info;
            if (events[i].data.fd == timer) {
                worker->ticks += read(timer, &expired, sizeof expired) > 0 ? 1 : 0;
                worker->leaving -= worker->leaving > 1 ? 1 : 0;
            } else if (events[i].data.fd == signals && read(signals, &info, sizeof info) > 0) {
                worker->leaving = LEAVE_TICKS;
                r = ringbus_drain(bus); /* returns at once; the loop does the rest */
            }
        }
    }
    return r < 0 ? r : 0;
}

int main(void)
{
    struct worker worker = {0, 0, 0};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus *bus;
    options.path = "/Demo/cn/pc/w1/g1/Worker/1";
    options.on_message = on_message;
    options.user = &worker;
    int signals = signals_open(); /* before the bus: no signal may come unnoticed */
    int timer = timer_open();
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || watch(epoll, timer) != 0 || watch(epoll, signals) != 0) {
        perror("worker");
        return 1;
    }
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "worker: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = loop(bus, &worker, epoll, timer, signals);
    if (r < 0) {
        fprintf(stderr, "worker: %s\n", ringbus_strerror(r));
    }
    int closed = ringbus_close(bus, 0); /* drained already */
    printf("%u jobs, the timer %s\n", worker.jobs, worker.ticks > 0 ? "ran" : "did not run");
    close(epoll);
    close(timer);
    close(signals);
    return r == 0 && closed == 0 ? 0 : 1;
}
