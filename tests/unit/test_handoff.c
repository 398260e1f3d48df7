/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/handoff.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    int a;
    int b;
    unsigned fds_before;
};

static unsigned open_fds(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void setup(struct fixture *f)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    f->a = ends[0];
    f->b = ends[1];
    f->fds_before = open_fds();
}

static void teardown(struct fixture *f)
{
    assert_int_equal(open_fds(), f->fds_before); /* nothing that arrived is left */
    (void)close(f->a);
    (void)close(f->b);
}

static bool same_file(int a, int b)
{
    struct stat sa;
    struct stat sb;
    return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_ino == sb.st_ino &&
           sa.st_dev == sb.st_dev;
}

/** A raw packet with @p count copies of @p fd in one SCM_RIGHTS block. */
static ssize_t send_raw(int sock, const void *data, size_t size, int fd, size_t count)
{
    static union {
        struct cmsghdr header;
        unsigned char bytes[CMSG_SPACE(RBI_HANDOFF_FDS_KERNEL * sizeof(int))];
    } control;
    char copy[256];
    memcpy(copy, data, size);
    struct iovec iov = {.iov_base = copy, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (count > 0) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (size_t i = 0; i < count; i++) {
            memcpy(CMSG_DATA(cmsg) + i * sizeof fd, &fd, sizeof fd);
        }
    }
    return sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void test_handoff_carries_bytes_and_descriptors(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    const int fds[] = {f.a, f.b, STDIN_FILENO};
    struct rbi_fdlist list = RBI_FDLIST_NULL;
    char data[16] = {0};
    assert_int_equal(rbi_handoff_send(f.a, "hello", 5, fds, 3), 0);
    assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), 5);
    assert_string_equal(data, "hello");
    assert_int_equal(list.count, 3);
    assert_false(list.truncated);
    assert_false(list.surplus);
    const int taken = rbi_fdlist_steal(&list, 1);
    assert_true(same_file(taken, f.b));
    assert_true((fcntl(taken, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(rbi_fdlist_steal(&list, 1), -1);
    assert_int_equal(rbi_fdlist_steal(&list, 3), -1);
    assert_int_equal(rbi_fdlist_steal(&list, UINT32_MAX), -1);
    rbi_fdlist_deinit(&list);
    assert_true(fcntl(taken, F_GETFD) >= 0);
    (void)close(taken);
    teardown(&f);
}

static void test_handoff_never_waits(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_fdlist list = RBI_FDLIST_NULL;
    char data[64] = {0};
    assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), -EAGAIN);
    unsigned sent = 0;
    int r = 0;
    while ((r = rbi_handoff_send(f.a, data, sizeof data, NULL, 0)) == 0) {
        sent++;
        assert_true(sent < 1000000);
    }
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), sizeof data);
    teardown(&f);
}

static void test_handoff_reports_a_closed_peer(void **state)
{
    (void)state;
    int ends[2];
    char data[8];
    struct rbi_fdlist list = RBI_FDLIST_NULL;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    (void)close(ends[1]);
    assert_int_equal(rbi_handoff_send(ends[0], "x", 1, NULL, 0), -EPIPE); /* no SIGPIPE */
    assert_int_equal(rbi_handoff_recv(ends[0], data, sizeof data, &list), 0);
    (void)close(ends[0]);
}

/* With SO_PASSCRED the credentials come in a block of their own, before or behind the rights. */
static void test_handoff_finds_rights_among_credentials(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    const int on = 1;
    assert_int_equal(setsockopt(f.b, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    struct rbi_fdlist list = RBI_FDLIST_NULL;
    char data[8];
    assert_int_equal(rbi_handoff_send(f.a, "x", 1, &f.a, 1), 0);
    assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), 1);
    assert_int_equal(list.count, 1);
    assert_false(list.truncated);
    assert_true(same_file(list.fds[0], f.a));
    rbi_fdlist_deinit(&list);
    teardown(&f);
}

static void test_handoff_closes_surplus_descriptors(void **state)
{
    (void)state;
    static const size_t counts[] = {RBI_HANDOFF_FDS_MAX, RBI_HANDOFF_FDS_MAX + 1,
                                    RBI_HANDOFF_FDS_KERNEL};
    struct fixture f;
    setup(&f);
    const int on = 1;
    assert_int_equal(setsockopt(f.b, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(counts); i++) {
        struct rbi_fdlist list = RBI_FDLIST_NULL;
        char data[8];
        assert_int_equal(send_raw(f.a, "abc", 3, STDIN_FILENO, counts[i]), 3);
        assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), 3);
        assert_int_equal(list.count, RBI_HANDOFF_FDS_MAX);
        assert_int_equal(list.surplus, counts[i] > RBI_HANDOFF_FDS_MAX);
        assert_false(list.truncated);
        assert_int_equal(open_fds(), f.fds_before + RBI_HANDOFF_FDS_MAX);
        rbi_fdlist_deinit(&list);
        assert_false(list.surplus);
    }
    teardown(&f);
}

static void test_handoff_drops_a_packet_that_is_too_long(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_fdlist list = RBI_FDLIST_NULL;
    char data[4];
    assert_int_equal(send_raw(f.a, "too long", 8, STDIN_FILENO, 2), 8);
    assert_int_equal(rbi_handoff_send(f.a, "next", 4, NULL, 0), 0);
    assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), -EMSGSIZE);
    assert_int_equal(list.count, 0);
    assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), 4);
    assert_memory_equal(data, "next", 4);
    teardown(&f);
}

/* An empty packet looks like the end of file; descriptors that it carries must not stay. */
static void test_handoff_empty_packet_leaks_nothing(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_fdlist list = RBI_FDLIST_NULL;
    char data[4];
    assert_int_equal(send_raw(f.a, "", 0, STDIN_FILENO, 2), 0);
    assert_int_equal(rbi_handoff_recv(f.b, data, sizeof data, &list), 0);
    assert_int_equal(list.count, 0);
    teardown(&f);
}

/* At the descriptor limit the kernel drops some in silence: that must be seen. */
static void test_handoff_sees_truncated_descriptors(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    const int fds[] = {f.a, f.a, f.a, f.a};
    assert_int_equal(rbi_handoff_send(f.a, "x", 1, fds, 4), 0);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    const int next = dup(f.a);
    (void)close(next);
    const struct rlimit tight = {.rlim_cur = (rlim_t)next + 2, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    struct rbi_fdlist list = RBI_FDLIST_NULL;
    char data[4];
    const ssize_t n = rbi_handoff_recv(f.b, data, sizeof data, &list);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(n, 1);
    assert_true(list.truncated);
    assert_in_range(list.count, 1, 3);
    rbi_fdlist_deinit(&list);
    teardown(&f);
}

static void test_handoff_connect(void **state)
{
    (void)state;
    char dir[] = "/tmp/rbi-handoff-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s/sock", dir);
    assert_int_equal(rbi_handoff_connect(addr.sun_path), -ENOENT);
    assert_int_equal(rbi_handoff_connect(""), -ENOENT);
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)(void *)&addr, sizeof addr), 0);
    assert_int_equal(rbi_handoff_connect(addr.sun_path), -ECONNREFUSED);
    assert_int_equal(listen(listener, 0), 0);
    const int fd = rbi_handoff_connect(addr.sun_path);
    assert_true(fd >= 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    int more[64];
    unsigned count = 0;
    int r = 0;
    while (count < RBI_ARRAY_SIZE(more) && (r = rbi_handoff_connect(addr.sun_path)) >= 0) {
        more[count++] = r;
    }
    assert_int_equal(r, -EAGAIN); /* backlog full: no waiting */
    while (count > 0) {
        (void)close(more[--count]);
    }
    (void)close(fd);
    (void)close(listener);
    (void)unlink(addr.sun_path);
    assert_int_equal(rmdir(dir), 0);
}

static void test_handoff_connect_longest_path(void **state)
{
    (void)state;
    char path[RBI_SOCKET_PATH_MAX + 2];
    memset(path, 'a', sizeof path);
    path[RBI_SOCKET_PATH_MAX] = '\0';
    assert_int_equal(rbi_handoff_connect(path), -ENOENT);
    path[RBI_SOCKET_PATH_MAX] = 'a';
    path[RBI_SOCKET_PATH_MAX + 1] = '\0';
    assert_int_equal(rbi_handoff_connect(path), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handoff_carries_bytes_and_descriptors),
        cmocka_unit_test(test_handoff_never_waits),
        cmocka_unit_test(test_handoff_reports_a_closed_peer),
        cmocka_unit_test(test_handoff_finds_rights_among_credentials),
        cmocka_unit_test(test_handoff_closes_surplus_descriptors),
        cmocka_unit_test(test_handoff_drops_a_packet_that_is_too_long),
        cmocka_unit_test(test_handoff_empty_packet_leaks_nothing),
        cmocka_unit_test(test_handoff_sees_truncated_descriptors),
        cmocka_unit_test(test_handoff_connect),
        cmocka_unit_test(test_handoff_connect_longest_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
