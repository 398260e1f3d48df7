/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hold.h"

#include "shm/handoff.h"
#include "support/cluster.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TURN_MS 20

/* ---- in the daemon's process -------------------------------------------------------------- */

/** @return the descriptor at which the kernel asks; -1 */
static int install_filter(const struct hold *hold)
{
    struct sock_filter code[HOLD_CALLS_MAX + 3];
    unsigned n = 0;
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < hold->call_count; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)hold->calls[i],
                                         (unsigned char)(hold->call_count - i), 0);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

/** A name of no file, of the test's own. */
static socklen_t door_address(pid_t test, struct sockaddr_un *out)
{
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    const int length =
        snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "ringbus-hold-%d", (int)test);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1U + (unsigned)length);
}

/* Whatever the test has open is closed by now: hence a door. */
void hold_install(void *context)
{
    struct sockaddr_un address;
    const socklen_t size = door_address(getppid(), &address);
    const int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const int listener = install_filter(context);
    if (listener < 0 || connect(door, (struct sockaddr *)(void *)&address, size) != 0 ||
        rbi_handoff_send(door, "", 1, &listener, 1) != 0) {
        _exit(125);
    }
}

/* ---- the thread --------------------------------------------------------------------------- */

/** What becomes of a call. @return 0: the kernel does it; errno */
static int decide(struct hold *hold, long call)
{
    int error = 0;
    (void)pthread_mutex_lock(&hold->lock);
    if (hold->armed) {
        if (hold->count < HOLD_ORDER_MAX) {
            hold->order[hold->count] = call;
        }
        if (++hold->count == hold->at) {
            hold->held = true;
            hold->released = false;
            (void)pthread_cond_broadcast(&hold->changed);
            while (!hold->released && !hold->ending) {
                (void)pthread_cond_wait(&hold->changed, &hold->lock);
            }
            hold->held = false;
            error = hold->error;
        }
    }
    (void)pthread_mutex_unlock(&hold->lock);
    return error;
}

/** What rings an eventfd, which no disk refuses. */
static bool is_bell(const struct seccomp_data *call)
{
    return call->nr == SYS_write && call->args[2] == sizeof(uint64_t);
}

static void answer_one(struct hold *hold)
{
    struct seccomp_notif asked;
    struct seccomp_notif_resp answer;
    memset(&asked, 0, sizeof asked);
    memset(&answer, 0, sizeof answer);
    if (ioctl(hold->listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
        return; /* it was killed meanwhile */
    }
    const int error = is_bell(&asked.data) ? 0 : decide(hold, asked.data.nr);
    answer.id = asked.id;
    answer.error = -error;
    answer.flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0U;
    (void)ioctl(hold->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void drop_listener(struct hold *hold)
{
    if (hold->listener >= 0) {
        (void)close(hold->listener);
        hold->listener = -1;
    }
}

/** A daemon has been started. */
static void take_listener(struct hold *hold)
{
    char byte = 0;
    struct rbi_fdlist fds = RBI_FDLIST_NULL;
    const int from = accept4(hold->door, NULL, NULL, SOCK_CLOEXEC);
    struct pollfd ready = {.fd = from, .events = POLLIN};
    if (poll(&ready, 1, -1) == 1 && rbi_handoff_recv(from, &byte, 1, &fds) == 1 && fds.count == 1) {
        drop_listener(hold);
        hold->listener = rbi_fdlist_steal(&fds, 0);
    }
    rbi_fdlist_deinit(&fds);
    (void)close(from);
}

static bool is_ending(struct hold *hold)
{
    (void)pthread_mutex_lock(&hold->lock);
    const bool ending = hold->ending;
    (void)pthread_mutex_unlock(&hold->lock);
    return ending;
}

static void *answer_all(void *context)
{
    struct hold *hold = context;
    while (!is_ending(hold)) {
        struct pollfd ready[2] = {{.fd = hold->door, .events = POLLIN},
                                  {.fd = hold->listener, .events = POLLIN}};
        if (poll(ready, 2, TURN_MS) <= 0) {
            continue;
        }
        if (ready[1].revents & POLLIN) {
            answer_one(hold);
        } else if (ready[1].revents) {
            drop_listener(hold); /* nobody is left who could be asked about */
        }
        if (ready[0].revents & POLLIN) {
            take_listener(hold);
        }
    }
    return NULL;
}

/* ---- the test ----------------------------------------------------------------------------- */

int hold_begin(struct hold *hold, const long *calls, unsigned count)
{
    memset(hold, 0, sizeof *hold);
    hold->listener = -1;
    hold->call_count = count;
    memcpy(hold->calls, calls, count * sizeof *calls);
    const uint32_t action = SECCOMP_RET_USER_NOTIF;
    struct sockaddr_un address;
    const socklen_t size = door_address(getpid(), &address);
    hold->door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0 ||
        bind(hold->door, (struct sockaddr *)(void *)&address, size) != 0 ||
        listen(hold->door, 1) != 0) {
        return -1;
    }
    (void)pthread_mutex_init(&hold->lock, NULL);
    (void)pthread_cond_init(&hold->changed, NULL);
    return pthread_create(&hold->thread, NULL, answer_all, hold) == 0 ? 0 : -1;
}

void hold_end(struct hold *hold)
{
    (void)pthread_mutex_lock(&hold->lock);
    hold->ending = true;
    (void)pthread_cond_broadcast(&hold->changed);
    (void)pthread_mutex_unlock(&hold->lock);
    (void)pthread_join(hold->thread, NULL);
    drop_listener(hold);
    (void)close(hold->door);
    (void)pthread_cond_destroy(&hold->changed);
    (void)pthread_mutex_destroy(&hold->lock);
}

void hold_arm(struct hold *hold, unsigned at)
{
    (void)pthread_mutex_lock(&hold->lock);
    hold->armed = true;
    hold->at = at;
    hold->count = 0;
    (void)pthread_mutex_unlock(&hold->lock);
}

bool hold_wait(struct hold *hold, unsigned timeout_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int result = 0;
    (void)pthread_mutex_lock(&hold->lock);
    while (!hold->held && result == 0) {
        result = pthread_cond_timedwait(&hold->changed, &hold->lock, &until);
    }
    const bool held = hold->held;
    (void)pthread_mutex_unlock(&hold->lock);
    return held;
}

void hold_release(struct hold *hold, int error)
{
    (void)pthread_mutex_lock(&hold->lock);
    hold->released = true;
    hold->error = error;
    (void)pthread_cond_broadcast(&hold->changed);
    (void)pthread_mutex_unlock(&hold->lock);
}

unsigned hold_count(struct hold *hold)
{
    (void)pthread_mutex_lock(&hold->lock);
    const unsigned count = hold->count;
    (void)pthread_mutex_unlock(&hold->lock);
    return count;
}
