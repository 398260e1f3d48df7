/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One system call of the daemon is refused for good. It may not start, then it ends by itself,
 * with an exit code and a line in its log; or it starts, and then it ends in order when it is
 * told to, whether or not it could serve anybody.
 */
#include "support/loops.h"
#include "support/raw.h"
#include "support/test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct refusal {
    const char *name;
    unsigned call;
    unsigned error;
};

#define REFUSE(name, error)                                                                        \
    {                                                                                              \
#name, SYS_##name, error                                                                   \
    }

/* What the daemon asks of the kernel after exec, without what the C library needs to start. */
static const struct refusal refusals[] = {
    REFUSE(socket, EMFILE),         REFUSE(socket, ENOMEM),
    REFUSE(bind, EACCES),           REFUSE(listen, EOPNOTSUPP),
    REFUSE(accept4, EMFILE),        REFUSE(accept4, ENFILE),
    REFUSE(accept4, ENOMEM),        REFUSE(memfd_create, EMFILE),
    REFUSE(memfd_create, ENOMEM),   REFUSE(memfd_create, EPERM),
    REFUSE(fallocate, ENOSPC),      REFUSE(fallocate, EOPNOTSUPP),
    REFUSE(ftruncate, EPERM),       REFUSE(flock, EWOULDBLOCK),
    REFUSE(signalfd4, EMFILE),      REFUSE(timerfd_create, EMFILE),
    REFUSE(timerfd_settime, EPERM), REFUSE(eventfd2, EMFILE),
    REFUSE(epoll_create1, EMFILE),  REFUSE(epoll_ctl, ENOMEM),
    REFUSE(epoll_ctl, ENOSPC),      REFUSE(io_uring_setup, EPERM),
    REFUSE(io_uring_setup, ENOMEM), REFUSE(io_uring_register, EPERM),
    REFUSE(recvmsg, ENOMEM),        REFUSE(sendmsg, ENOMEM),
    REFUSE(sendmsg, ENOBUFS),       REFUSE(getsockopt, EPERM),
    REFUSE(setsockopt, EPERM),      REFUSE(getrandom, EAGAIN),
    REFUSE(pidfd_open, EMFILE),     REFUSE(rt_sigprocmask, EINVAL),
    REFUSE(madvise, ENOMEM),        REFUSE(unlink, EACCES),
    REFUSE(chmod, EPERM),           REFUSE(prlimit64, EPERM),
};

/** In the daemon's process, before exec. */
static void install(void *context)
{
    const struct refusal *refusal = context;
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal->call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (refusal->error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(steps) / sizeof(steps[0]), .filter = steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(125);
    }
}

/** Whether anybody is greeted; not waited for long, since either answer is right. */
static bool serves(void)
{
    struct raw raw;
    struct raw_message message;
    struct rbi_wire_hello hello = {.protocol_min = RBI_WIRE_PROTOCOL_MIN,
                                   .protocol_max = RBI_WIRE_PROTOCOL_MAX,
                                   .fingerprint = rbi_layout_fingerprint()};
    if (raw_connect(&raw, loops_cluster.socket) != 0) {
        return false;
    }
    const bool greeted = raw_send(&raw, RBI_WIRE_HELLO, &hello, NULL, 0) == 0 &&
                         raw_expect(&raw, RBI_WIRE_HELLO_OK, &message, 300) == 0;
    if (greeted) {
        raw_message_deinit(&message);
    }
    raw_close(&raw);
    return greeted;
}

static void refuse(void **state, const struct refusal *refusal)
{
    assert_int_equal(loops_make(state, "handshake_timeout: 500ms", ""), 0);
    const char *arguments[] = {"--config", loops_cluster.config, "--socket", loops_cluster.socket,
                               NULL};
    struct refusal copy = *refusal;
    loops_cluster.before_exec = install;
    loops_cluster.context = &copy;
    const bool started = cluster_start(&loops_cluster) == 0;
    bool served = false;
    int code = 0;
    if (started) {
        served = serves();
        code = cluster_stop(&loops_cluster);
    } else {
        cluster_kill(&loops_cluster);
        code = cluster_run_daemon(&loops_cluster, arguments);
    }
    const unsigned lines = cluster_log_count(&loops_cluster, "=");
    const bool good = started ? code == 0 : code > 0 && code < 125 && lines > 0;
    print_message("%-6s %-16s %-12s %s, exit code %d, %u lines\n", (const char *)*state,
                  refusal->name, strerrorname_np((int)refusal->error),
                  served    ? "serves"
                  : started ? "starts"
                            : "does not start",
                  code, lines);
    cluster_down(&loops_cluster);
    loops_cluster.before_exec = NULL;
    assert_true(good);
}

static void test_refused_for_good(void **state)
{
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(refusals); i++) {
        refuse(state, &refusals[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {LOOPS_BOTH(test_refused_for_good)};
    return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
