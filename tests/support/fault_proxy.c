/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault_proxy.h"

#include "support/fault_pair.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_TURN_MS 1000

struct fault_proxy {
    struct faults wanted; /* under the lock */
    uint64_t asked;       /* counts changes, under the lock */
    uint64_t done;        /* the last that holds, under the lock */
    bool ending;          /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int bell;
    char address[32];
    struct sockaddr_in own;
    /* The thread's. */
    int listener;
    struct fault_world world;
};

static struct sockaddr_in address_of(const char *text)
{
    char node[32] = {0};
    unsigned port = 0;
    struct sockaddr_in address = {.sin_family = AF_INET};
    RBI_ASSERT(sscanf(text, "%31[0-9.]:%u", node, &port) == 2);
    RBI_ASSERT(inet_pton(AF_INET, node, &address.sin_addr) == 1);
    address.sin_port = htons((uint16_t)port);
    return address;
}

static int listen_at(const struct sockaddr_in *address)
{
    const int on = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    RBI_ASSERT(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    RBI_ASSERT(bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0);
    RBI_ASSERT(listen(fd, 64) == 0);
    return fd;
}

static void accept_all(struct fault_proxy *proxy)
{
    for (;;) {
        const int fd = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        fault_pair_begin(&proxy->world, fd);
    }
}

/** @return false: it ends */
static bool faults_take(struct fault_proxy *proxy)
{
    const unsigned cut_now = proxy->world.faults.cut_now;
    (void)pthread_mutex_lock(&proxy->lock);
    const uint64_t asked = proxy->asked;
    const bool ending = proxy->ending;
    const bool news = proxy->done != asked;
    if (news) {
        const struct faults old = proxy->world.faults;
        proxy->world.faults = proxy->wanted;
        if (old.cuts_asked == proxy->wanted.cuts_asked) {
            /* A cut may have happened since: it happens once. */
            memcpy(proxy->world.faults.cut_at, old.cut_at, sizeof(old.cut_at));
        }
    }
    (void)pthread_mutex_unlock(&proxy->lock);
    if (!news) {
        return !ending;
    }
    if (proxy->world.faults.door == FAULT_CLOSED && proxy->listener >= 0) {
        (void)close(proxy->listener);
        proxy->listener = -1;
    } else if (proxy->world.faults.door != FAULT_CLOSED && proxy->listener < 0) {
        proxy->listener = listen_at(&proxy->own);
    }
    if (proxy->world.faults.door != FAULT_HOLD) {
        fault_pairs_release(&proxy->world);
    }
    for (unsigned i = 0; i < FAULT_PAIRS && proxy->world.faults.cut_now != cut_now; i++) {
        fault_pair_end(&proxy->world, &proxy->world.pairs[i], proxy->world.faults.cut_reset);
    }
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->done = asked;
    (void)pthread_cond_broadcast(&proxy->changed);
    (void)pthread_mutex_unlock(&proxy->lock);
    return !ending;
}

static void proxy_wait(struct fault_proxy *proxy)
{
    struct pollfd fds[2 + 2 * FAULT_PAIRS];
    uint64_t due = FAULT_NEVER;
    unsigned count = 0;
    fds[count++] = (struct pollfd){.fd = proxy->bell, .events = POLLIN};
    if (proxy->listener >= 0) {
        fds[count++] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    }
    for (unsigned i = 0; i < FAULT_PAIRS; i++) {
        if (proxy->world.pairs[i].there) {
            count += fault_pair_watch(&proxy->world, &proxy->world.pairs[i], fds + count, &due);
        }
    }
    const uint64_t now = fault_now_ns();
    const uint64_t wait_ms = due == FAULT_NEVER ? IDLE_TURN_MS
                             : due <= now       ? 0
                                                : (due - now) / 1000000 + 1;
    (void)poll(fds, count, (int)rbi_min_u64(wait_ms, IDLE_TURN_MS));
    if (fds[0].revents) {
        eventfd_t value = 0;
        (void)eventfd_read(proxy->bell, &value);
    }
}

static void *proxy_run(void *context)
{
    struct fault_proxy *proxy = context;
    while (faults_take(proxy)) {
        if (proxy->listener >= 0) {
            accept_all(proxy);
        }
        for (unsigned i = 0; i < FAULT_PAIRS; i++) {
            if (proxy->world.pairs[i].there) {
                fault_pair_turn(&proxy->world, &proxy->world.pairs[i]);
            }
        }
        proxy_wait(proxy);
    }
    for (unsigned i = 0; i < FAULT_PAIRS; i++) {
        fault_pair_end(&proxy->world, &proxy->world.pairs[i], true);
    }
    return NULL;
}

/* ---- the test's side ------------------------------------------------------------------- */

struct fault_proxy *fault_proxy_start(const char *target)
{
    struct fault_proxy *proxy = calloc(1, sizeof(*proxy));
    RBI_ASSERT(proxy);
    proxy->wanted =
        (struct faults){.target = address_of(target), .cut_at = {FAULT_NEVER, FAULT_NEVER}};
    proxy->world.faults = proxy->wanted;
    proxy->own =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    proxy->listener = listen_at(&proxy->own);
    socklen_t size = sizeof(proxy->own);
    RBI_ASSERT(getsockname(proxy->listener, (struct sockaddr *)&proxy->own, &size) == 0);
    (void)snprintf(proxy->address, sizeof(proxy->address), "127.0.0.1:%u",
                   ntohs(proxy->own.sin_port));
    proxy->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    RBI_ASSERT(proxy->bell >= 0);
    RBI_ASSERT(pthread_mutex_init(&proxy->lock, NULL) == 0);
    RBI_ASSERT(pthread_cond_init(&proxy->changed, NULL) == 0);
    RBI_ASSERT(pthread_create(&proxy->thread, NULL, proxy_run, proxy) == 0);
    return proxy;
}

/** The lock is held. */
static void faults_ask(struct fault_proxy *proxy)
{
    const uint64_t asked = ++proxy->asked;
    (void)eventfd_write(proxy->bell, 1);
    while (proxy->done < asked && !proxy->ending) {
        (void)pthread_cond_wait(&proxy->changed, &proxy->lock);
    }
    (void)pthread_mutex_unlock(&proxy->lock);
}

void fault_proxy_stop(struct fault_proxy *proxy)
{
    if (!proxy) {
        return;
    }
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->ending = true;
    faults_ask(proxy);
    RBI_ASSERT(pthread_join(proxy->thread, NULL) == 0);
    if (proxy->listener >= 0) {
        (void)close(proxy->listener);
    }
    (void)close(proxy->bell);
    (void)pthread_mutex_destroy(&proxy->lock);
    (void)pthread_cond_destroy(&proxy->changed);
    free(proxy);
}

const char *fault_proxy_address(const struct fault_proxy *proxy)
{
    return proxy->address;
}

void fault_proxy_target(struct fault_proxy *proxy, const char *target)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted.target = address_of(target);
    faults_ask(proxy);
}

void fault_proxy_cut(struct fault_proxy *proxy, bool reset)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted.cut_now++;
    proxy->wanted.cut_reset = reset;
    faults_ask(proxy);
}

void fault_proxy_cut_after(struct fault_proxy *proxy,
                           enum fault_way way,
                           uint64_t bytes,
                           bool reset)
{
    RBI_ASSERT(way == FAULT_TO || way == FAULT_BACK);
    (void)pthread_mutex_lock(&proxy->lock);
    const uint64_t passed = atomic_load(&proxy->world.passed[way - 1]);
    proxy->wanted.cuts_asked++;
    proxy->wanted.cut_at[2 - way] = FAULT_NEVER;
    proxy->wanted.cut_at[way - 1] = bytes == FAULT_NEVER ? FAULT_NEVER : passed + bytes;
    proxy->wanted.cut_reset = reset;
    faults_ask(proxy);
}

void fault_proxy_stall(struct fault_proxy *proxy, enum fault_way ways)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted.stalled = ways;
    faults_ask(proxy);
}

void fault_proxy_swallow(struct fault_proxy *proxy, enum fault_way ways)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted.swallowed = ways;
    faults_ask(proxy);
}

void fault_proxy_delay(struct fault_proxy *proxy, enum fault_way ways, unsigned ms)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted.delayed = ways;
    proxy->wanted.delay_ns = ms * UINT64_C(1000000);
    faults_ask(proxy);
}

void fault_proxy_pieces(struct fault_proxy *proxy, unsigned bytes)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted.piece = bytes;
    faults_ask(proxy);
}

void fault_proxy_door(struct fault_proxy *proxy, enum fault_door door)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted.door = door;
    faults_ask(proxy);
}

uint64_t fault_proxy_passed(const struct fault_proxy *proxy, enum fault_way way)
{
    RBI_ASSERT(way == FAULT_TO || way == FAULT_BACK);
    return atomic_load(&proxy->world.passed[way - 1]);
}

uint64_t fault_proxy_came(const struct fault_proxy *proxy)
{
    return atomic_load(&proxy->world.came);
}

unsigned fault_proxy_there(const struct fault_proxy *proxy)
{
    return atomic_load(&proxy->world.there);
}
