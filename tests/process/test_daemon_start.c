/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, staying reachable, reloading and stopping. */
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ECHO   "/game/eu/pc/w1/core/echo"
#define ECHO_1 ECHO "/1"

static ino_t inode(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0 ? found.st_ino : 0;
}

static int run_second(const char *socket)
{
    const char *arguments[] = {"--socket", socket, NULL};
    return cluster_run_daemon(&loops_cluster, arguments);
}

/* Scenario 80 b, 68: a living daemon keeps its place; the text of the lock file says nothing. */
static void test_second_daemon(void **state)
{
    struct raw raw;
    char lock[256];
    assert_int_equal(loops_up(state, "", ""), 0);
    const ino_t before = inode(loops_cluster.socket);
    assert_int_equal(raw_up(&raw, loops_cluster.socket, ECHO_1), 0);
    assert_int_equal(run_second(loops_cluster.socket), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "already running"), 1);
    assert_true(inode(loops_cluster.socket) == before);
    /* Not even when somebody deletes the lock file. */
    (void)snprintf(lock, sizeof(lock), "%s.lock", loops_cluster.socket);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(run_second(loops_cluster.socket), 1);
    assert_true(inode(loops_cluster.socket) == before);
    assert_int_equal(raw_set_state(&raw, RBI_ENDPOINT_BUSY), 0);
    raw_close(&raw);
}

/* Scenario 80 a, 68: a killed one leaves its files; the next starts at once. */
static void test_leftovers(void **state)
{
    char lock[256];
    assert_int_equal(loops_up(state, "", ""), 0);
    cluster_kill(&loops_cluster);
    assert_true(inode(loops_cluster.socket) != 0);
    /* The lock file names a living process that has nothing to do with it. */
    (void)snprintf(lock, sizeof(lock), "%s.lock", loops_cluster.socket);
    const int fd = open(lock, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "%d\n", (int)getpid()) > 0);
    (void)close(fd);
    const uint64_t before_ms = test_now_ms();
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_true(test_now_ms() - before_ms < 1000);
}

/* Scenario 80: two at the same moment. */
static void test_two_at_once(void **state)
{
    char path[RBI_SOCKET_PATH_MAX + 1];
    assert_int_equal(loops_make(state, "", ""), 0);
    (void)snprintf(path, sizeof(path), "%s/twin.sock", loops_cluster.folder);
    for (unsigned round = 0; round < 10; round++) {
        pid_t pids[2];
        for (unsigned i = 0; i < 2; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                const int null = open("/dev/null", O_WRONLY);
                (void)dup2(null, STDERR_FILENO);
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)execl(RINGBUSD_PATH, "ringbusd", "--socket", path, (char *)NULL);
                _exit(127);
            }
            assert_true(pids[i] > 0);
        }
        /* The loser ends by itself, with 1; the winner stays. */
        int status = 0;
        const pid_t loser = waitpid(-1, &status, 0);
        assert_true(loser == pids[0] || loser == pids[1]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        const pid_t winner = loser == pids[0] ? pids[1] : pids[0];
        struct raw raw;
        const uint64_t deadline_ms = test_now_ms() + 3000;
        /* The socket of the one before may still take connections for a moment. */
        while ((raw_connect(&raw, path) < 0 || raw_hello(&raw) < 0) &&
               test_now_ms() < deadline_ms) {
            raw_close(&raw);
            test_sleep_ms(2);
        }
        assert_true(raw.fd >= 0);
        raw_close(&raw);
        assert_int_equal(kill(winner, round % 2 ? SIGKILL : SIGTERM), 0);
        assert_int_equal(waitpid(winner, &status, 0), winner);
    }
}

/* Scenario 79. */
static void test_path_length(void **state)
{
    char path[256];
    struct stat found;
    assert_int_equal(loops_make(state, "", ""), 0);
    const size_t folder = strlen(loops_cluster.folder);
    memset(path, 'x', sizeof(path));
    memcpy(path, loops_cluster.folder, folder);
    path[folder] = '/';
    path[108] = '\0';
    assert_int_equal(run_second(path), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "limit=107"), 1);
    assert_int_equal(stat(path, &found), -1);
    memcpy(path + 108, ".lock", 6);
    assert_int_equal(stat(path, &found), -1);
    path[107] = '\0';
    memcpy(loops_cluster.socket, path, 108);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    struct raw raw;
    assert_int_equal(raw_up(&raw, path, ECHO_1), 0);
    raw_close(&raw);
}

static void test_something_else_in_the_way(void **state)
{
    assert_int_equal(loops_make(state, "", ""), 0);
    const int fd = open(loops_cluster.socket, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    const ino_t before = inode(loops_cluster.socket);
    assert_int_equal(run_second(loops_cluster.socket), 1);
    assert_true(inode(loops_cluster.socket) == before);
}

static void narrow_umask(void *context)
{
    (void)context;
    (void)umask(0077);
}

static void test_socket_mode(void **state)
{
    struct stat found;
    assert_int_equal(loops_make(state, "socket_mode: \"0666\"", ""), 0);
    loops_cluster.before_exec = narrow_umask;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(stat(loops_cluster.socket, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0666);
}

/* Scenario 8: socket and lock file are deleted under a running daemon. */
static void test_files_removed(void **state)
{
    struct raw old;
    struct raw new;
    char lock[256];
    assert_int_equal(loops_up(state, "", ""), 0);
    const int fds = loops_idle_fds();
    assert_int_equal(raw_up(&old, loops_cluster.socket, ECHO_1), 0);
    (void)snprintf(lock, sizeof(lock), "%s.lock", loops_cluster.socket);
    assert_int_equal(unlink(loops_cluster.socket), 0);
    assert_int_equal(unlink(lock), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=socket_bound_again", 5000));
    assert_int_equal(raw_up(&new, loops_cluster.socket, ECHO "/2"), 0);
    assert_int_equal(raw_link(&new, &old, NULL), 0);
    assert_int_equal(run_second(loops_cluster.socket), 1);
    raw_close(&old);
    raw_close(&new);
    assert_int_equal(cluster_fd_wait(&loops_cluster, fds), fds);
}

/* ---- connecting while it starts --------------------------------------------------------- */

/** Makes a system call fail for good, in the daemon's process. */
static void forbid(unsigned call, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = RBI_ARRAY_SIZE(code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(125);
    }
}

static void forbid_listen(void *context)
{
    (void)context;
    forbid(SYS_listen, EADDRINUSE);
}

static void forbid_rename(void *context)
{
    (void)context;
    forbid(SYS_renameat2, EINVAL);
}

/** A socket that has a name and listens nowhere, as one killed between bind() and listen() leaves
 * it. */
static void leave_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) <
                (int)sizeof(address.sun_path));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&address, sizeof(address)), 0);
    (void)close(fd);
}

/* Nothing is seen of a socket before it listens: where listen() is refused it never appears. */
static void test_no_socket_before_it_listens(void **state)
{
    char beside[256];
    assert_int_equal(loops_make(state, "", ""), 0);
    (void)snprintf(beside, sizeof(beside), "%s.new", loops_cluster.socket);
    loops_cluster.before_exec = forbid_listen;
    assert_int_equal(run_second(loops_cluster.socket), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "step=listen"), 1);
    assert_true(inode(loops_cluster.socket) == 0);
    assert_true(inode(beside) == 0);
}

/* What is left beside the place by one that was killed is no hindrance, on any file system; what
 * is no socket is not ours to remove. */
static void test_leftover_beside(void **state)
{
    char beside[256];
    struct raw raw;
    assert_int_equal(loops_make(state, "", ""), 0);
    (void)snprintf(beside, sizeof(beside), "%s.new", loops_cluster.socket);
    for (unsigned round = 0; round < 2; round++) {
        leave_socket(beside);
        loops_cluster.before_exec = round == 0 ? NULL : forbid_rename;
        assert_int_equal(cluster_start(&loops_cluster), 0);
        assert_true(inode(beside) == 0);
        assert_int_equal(raw_up(&raw, loops_cluster.socket, ECHO_1), 0);
        raw_close(&raw);
        assert_int_equal(cluster_stop(&loops_cluster), 0);
        assert_true(inode(loops_cluster.socket) == 0);
    }
    const int fd = open(beside, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(run_second(loops_cluster.socket), 1);
    assert_true(inode(beside) != 0 && inode(loops_cluster.socket) == 0);
}

/** Connects as soon as the name is there. @return a descriptor; -errno */
static int connect_at_once(const char *path)
{
    const uint64_t end_ms = test_now_ms() + 5000;
    int fd = -ENOENT;
    while (fd == -ENOENT && test_now_ms() < end_ms) {
        fd = rbi_handoff_connect(path);
    }
    return fd;
}

/* Who connects while a daemon starts finds none, or one that takes it: it is never refused. */
static void test_connect_while_it_starts(void **state)
{
    assert_int_equal(loops_make(state, "", ""), 0);
    for (unsigned round = 0; round < 5; round++) {
        int status = 0;
        const pid_t pid = fork();
        if (pid == 0) {
            const int fd = connect_at_once(loops_cluster.socket);
            _exit(fd >= 0 ? 0 : -fd);
        }
        assert_true(pid > 0);
        assert_int_equal(cluster_start(&loops_cluster), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(cluster_stop(&loops_cluster), 0);
    }
}

/* ---- scenario 73: io_uring forbidden --------------------------------------------------- */

static void forbid_uring(void *context)
{
    forbid(SYS_io_uring_setup, *(const unsigned *)context);
}

static void test_uring_forbidden(void **state)
{
    unsigned errors[] = {EPERM, ENOSYS, ENOMEM};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(errors); i++) {
        struct raw raw;
        struct rbi_text loop;
        assert_int_equal(loops_make(state, "", ""), 0);
        loops_cluster.before_exec = forbid_uring;
        loops_cluster.context = &errors[i];
        assert_int_equal(cluster_start(&loops_cluster), 0);
        assert_int_equal(raw_status_text(loops_cluster.socket, "loop", &loop), 0);
        assert_string_equal(loop.bytes, "epoll");
        assert_int_equal(cluster_log_count(&loops_cluster, "refused=io_uring_queue_init"),
                         strcmp(*state, "uring") == 0);
        assert_int_equal(raw_up(&raw, loops_cluster.socket, ECHO_1), 0);
        raw_close(&raw);
        assert_int_equal(cluster_stop(&loops_cluster), 0);
        cluster_down(&loops_cluster);
    }
}

static void test_the_loop_that_was_asked_for(void **state)
{
    struct rbi_text loop;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_status_text(loops_cluster.socket, "loop", &loop), 0);
    assert_string_equal(loop.bytes, strcmp(*state, "uring") == 0 ? "io_uring" : "epoll");
}

/* Scenario 72: hardly any lockable memory. */
static void limit_memlock(void *context)
{
    const struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};
    (void)context;
    (void)setrlimit(RLIMIT_MEMLOCK, &limit);
}

static void test_little_lockable_memory(void **state)
{
    struct raw raw;
    assert_int_equal(loops_make(state, "", ""), 0);
    loops_cluster.before_exec = limit_memlock;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(raw_up(&raw, loops_cluster.socket, ECHO_1), 0);
    raw_close(&raw);
}

/* ---- scenario 128: reload -------------------------------------------------------------- */

static void test_reload(void **state)
{
    struct raw raw;
    char config[256];
    assert_int_equal(loops_up(state, "", "quota: {watches: 10}\n"), 0);
    assert_int_equal(raw_up(&raw, loops_cluster.socket, ECHO_1), 0);
    /* A good one. */
    (void)snprintf(config, sizeof(config),
                   "daemon: {loop: %s, socket_mode: \"0600\"}\nquota: {watches: 1}\n",
                   (const char *)*state);
    assert_int_equal(cluster_configure(&loops_cluster, config), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=reloaded", 2000));
    assert_true(cluster_log_count(&loops_cluster, "key=quota.watches") == 1);
    assert_true(cluster_log_count(&loops_cluster, "result=\"applied\"") == 1);
    assert_true(cluster_log_count(&loops_cluster, "key=daemon.socket_mode") == 1);
    assert_true(cluster_log_count(&loops_cluster, "result=\"needs restart\"") == 1);
    assert_int_equal(raw_watch(&raw, RBI_WIRE_WATCH, "/game"), 0);
    const struct rbi_wire_watch second = {.prefix = {.length = 2, .bytes = "/x"}};
    assert_int_equal(raw_send(&raw, RBI_WIRE_WATCH, &second, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_QUOTA);
    /* Bad ones change nothing. */
    assert_int_equal(cluster_configure(&loops_cluster, "quota: {watches: 100, nonsense: 1}\n"), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=reload_failed", 2000));
    assert_int_equal(unlink(loops_cluster.config), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "cannot be read", 2000));
    assert_int_equal(raw_send(&raw, RBI_WIRE_WATCH, &second, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_QUOTA);
    assert_int_equal(raw_status(loops_cluster.socket, "reloads_failed"), 2);
    /* Many. */
    assert_int_equal(cluster_configure(&loops_cluster, config), 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
        test_sleep_ms(1);
    }
    assert_int_equal(raw_set_state(&raw, RBI_ENDPOINT_BUSY), 0);
    raw_close(&raw);
    /* What needs a restart is said again by each, what was applied is not. */
    assert_true(cluster_log_count(&loops_cluster, "key=daemon.socket_mode") > 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "key=quota.watches"), 1);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
}

/* Scenario 128: the file is swapped by a symbolic link. */
static void test_reload_symlink(void **state)
{
    char real_path[128];
    assert_int_equal(loops_up(state, "", ""), 0);
    (void)snprintf(real_path, sizeof(real_path), "%s/other.yaml", loops_cluster.folder);
    assert_int_equal(rename(loops_cluster.config, real_path), 0);
    FILE *file = fopen(real_path, "ae");
    assert_non_null(file);
    assert_true(fputs("quota: {watches: 7}\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(symlink(real_path, loops_cluster.config), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&loops_cluster, "key=quota.watches", 2000));
}

/* ---- scenarios 10, 77, 78: signals ----------------------------------------------------- */

/* The daemon stops; nobody is signalled, whoever they are. */
static void test_stop_signals_nobody(void **state)
{
    struct raw raws[3];
    struct raw_message message;
    sigset_t set;
    const struct timespec none = {.tv_sec = 0};
    assert_int_equal(sigfillset(&set), 0);
    assert_int_equal(sigdelset(&set, SIGCHLD), 0);
    assert_int_equal(loops_up(state, "", ""), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(raw_up(&raws[i], loops_cluster.socket, ""), 0);
    }
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(raw_expect(&raws[i], RBI_WIRE_STOPPING, &message, RAW_TIMEOUT_MS), 0);
        raw_close(&raws[i]);
    }
    assert_int_equal(sigtimedwait(&set, NULL, &none), -1);
    assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
}

/* A stopped and continued daemon sees its waits interrupted; nothing comes of it. */
static void test_interrupted_waits(void **state)
{
    struct raw server;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&server, loops_cluster.socket, ECHO_1), 0);
    for (unsigned i = 0; i < 200; i++) {
        struct raw client;
        assert_int_equal(kill(loops_cluster.pid, SIGSTOP), 0);
        assert_int_equal(kill(loops_cluster.pid, SIGCONT), 0);
        if (i % 10 == 0) {
            assert_int_equal(raw_up(&client, loops_cluster.socket, ""), 0);
            assert_int_equal(raw_link(&client, &server, NULL), 0);
            raw_close(&client);
        }
    }
    raw_close(&server);
}

/* ---- socket activation ----------------------------------------------------------------- */

static void pass_socket(void *context)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char pid[32];
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", (const char *)context);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (fd != 3 || bind(fd, (struct sockaddr *)(void *)&address, sizeof(address)) != 0 ||
        listen(fd, 16) != 0 || setenv("LISTEN_FDS", "1", 1) != 0 ||
        setenv("LISTEN_PID", pid, 1) != 0) {
        _exit(125);
    }
}

static void test_socket_activation(void **state)
{
    char path[RBI_SOCKET_PATH_MAX + 1];
    struct raw raw;
    assert_int_equal(loops_make(state, "", ""), 0);
    (void)snprintf(path, sizeof(path), "%s/handed.sock", loops_cluster.folder);
    loops_cluster.before_exec = pass_socket;
    loops_cluster.context = path;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(raw_up(&raw, path, ECHO_1), 0);
    raw_close(&raw);
    assert_true(inode(loops_cluster.socket) == 0);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    assert_true(inode(path) != 0); /* the manager's, not ours to remove */
}

/** What a manager may hand over by mistake. */
enum wrong { WRONG_FILE, WRONG_FAMILY, WRONG_TYPE, WRONG_PAIR, WRONG_SILENT, WRONG_COUNT };

static int wrong_fd(enum wrong wrong)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int pair[2] = {-1, -1};
    switch (wrong) {
    case WRONG_FILE:
        return open("/dev/null", O_RDWR);
    case WRONG_FAMILY:
        return socket(AF_INET, SOCK_STREAM, 0);
    case WRONG_TYPE:
        return socket(AF_UNIX, SOCK_STREAM, 0);
    case WRONG_PAIR:
        return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0 ? pair[0] : -1;
    case WRONG_SILENT: /* it has a name, and nobody listens there */
        pair[0] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        return bind(pair[0], (struct sockaddr *)(void *)&address, sizeof(sa_family_t)) == 0
                   ? pair[0]
                   : -1;
    case WRONG_COUNT:
        break;
    }
    return -1;
}

static void pass_wrong(void *context)
{
    char pid[32];
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (wrong_fd(*(const enum wrong *)context) != 3 || setenv("LISTEN_FDS", "1", 1) != 0 ||
        setenv("LISTEN_PID", pid, 1) != 0) {
        _exit(125);
    }
}

/* It says so and does not start, rather than be READY where nobody can come. */
static void test_wrong_socket_is_refused(void **state)
{
    assert_int_equal(loops_make(state, "", ""), 0);
    const char *arguments[] = {"--config", loops_cluster.config, NULL};
    for (enum wrong wrong = WRONG_FILE; wrong < WRONG_COUNT; wrong++) {
        loops_cluster.before_exec = pass_wrong;
        loops_cluster.context = &wrong;
        assert_int_equal(cluster_run_daemon(&loops_cluster, arguments), 1);
        assert_int_equal(
            cluster_log_count(&loops_cluster, "event=socket_failed path=LISTEN_FDS step=not a"),
            wrong + 1);
    }
}

static void test_arguments(void **state)
{
    assert_int_equal(loops_make(state, "", ""), 0);
    const char *check[] = {"--config", loops_cluster.config, "--check", NULL};
    assert_int_equal(cluster_run_daemon(&loops_cluster, check), 0);
    const char *print[] = {"--config", loops_cluster.config, "--print-config", NULL};
    assert_int_equal(cluster_run_daemon(&loops_cluster, print), 0);
    assert_true(cluster_log_count(&loops_cluster, "quota.links = ") == 1);
    assert_int_equal(cluster_configure(&loops_cluster, "daemon: {nonsense: 1}\n"), 0);
    assert_int_equal(cluster_run_daemon(&loops_cluster, check), 1);
    assert_true(cluster_log_count(&loops_cluster, "ringbusd.yaml:1:10: ") == 1);
    const char *version[] = {"--version", NULL};
    assert_int_equal(cluster_run_daemon(&loops_cluster, version), 0);
    const char *unknown[] = {"--nonsense", NULL};
    assert_int_equal(cluster_run_daemon(&loops_cluster, unknown), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_second_daemon),
        LOOPS_BOTH(test_leftovers),
        LOOPS_TEST(test_two_at_once, "uring"),
        LOOPS_TEST(test_path_length, "uring"),
        LOOPS_TEST(test_something_else_in_the_way, "uring"),
        LOOPS_TEST(test_socket_mode, "uring"),
        LOOPS_BOTH(test_files_removed),
        LOOPS_TEST(test_no_socket_before_it_listens, "uring"),
        LOOPS_TEST(test_leftover_beside, "uring"),
        LOOPS_TEST(test_connect_while_it_starts, "uring"),
        LOOPS_BOTH(test_uring_forbidden),
        LOOPS_BOTH(test_the_loop_that_was_asked_for),
        LOOPS_BOTH(test_little_lockable_memory),
        LOOPS_BOTH(test_reload),
        LOOPS_TEST(test_reload_symlink, "uring"),
        LOOPS_BOTH(test_stop_signals_nobody),
        LOOPS_BOTH(test_interrupted_waits),
        LOOPS_BOTH(test_socket_activation),
        LOOPS_BOTH(test_wrong_socket_is_refused),
        LOOPS_TEST(test_arguments, "uring"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
