/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/bell.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void test_bell_wanted_once_a_sleep(void **state)
{
    (void)state;
    rbi_au64 epoch = 0;
    uint64_t rung = 0;
    uint64_t rung_other = 0;
    assert_false(rbi_bell_wanted(&epoch, &rung));
    rbi_bell_announce(&epoch);
    assert_true(rbi_load_rlx(&epoch) % 2 == 1);
    assert_true(rbi_bell_wanted(&epoch, &rung));
    assert_false(rbi_bell_wanted(&epoch, &rung));
    assert_true(rbi_bell_wanted(&epoch, &rung_other)); /* each sender for itself */
    rbi_bell_announce(&epoch);                         /* still the same sleep */
    assert_false(rbi_bell_wanted(&epoch, &rung));
    rbi_bell_retract(&epoch);
    rbi_bell_retract(&epoch);
    assert_int_equal(rbi_load_rlx(&epoch), 2);
    assert_false(rbi_bell_wanted(&epoch, &rung));
    rbi_bell_announce(&epoch);
    assert_true(rbi_bell_wanted(&epoch, &rung));
}

static void test_bell_epoch_wraps(void **state)
{
    (void)state;
    rbi_au64 epoch = UINT64_MAX - 1;
    uint64_t rung = 0;
    rbi_bell_announce(&epoch);
    assert_true(rbi_bell_wanted(&epoch, &rung));
    rbi_bell_retract(&epoch);
    assert_int_equal(rbi_load_rlx(&epoch), 0);
    assert_false(rbi_bell_wanted(&epoch, &rung));
}

static void test_bell_burst_end_shows_the_position(void **state)
{
    (void)state;
    rbi_au64 written_hint = 0;
    rbi_bell_burst_end(&written_hint, 640);
    rbi_bell_burst_seen(&written_hint);
    assert_int_equal(rbi_load_rlx(&written_hint), 640);
}

static void space_wanted_from(uint64_t start)
{
    rbi_au64 want = 0;
    uint64_t rung = 0;
    assert_false(rbi_bell_space_wanted(&want, start, &rung));
    rbi_bell_want_space(&want, start + 640, 0);
    assert_false(rbi_bell_space_wanted(&want, start + 576, &rung));
    assert_true(rbi_bell_space_wanted(&want, start + 640, &rung));
    assert_false(rbi_bell_space_wanted(&want, start + 704, &rung)); /* rung for it already */
    rbi_bell_want_none(&want);
    assert_false(rbi_bell_space_wanted(&want, start + 704, &rung));
    rbi_bell_want_space(&want, start + 1280, 1);
    assert_true(rbi_bell_space_wanted(&want, start + 1344, &rung));
    /* The next sleep for the same position is another one; every ticket is. */
    for (uint64_t ticket = 2; ticket < 2 + 2 * RBI_BELL_TICKETS; ticket++) {
        rbi_bell_want_space(&want, start + 1280, ticket);
        assert_false(rbi_bell_space_wanted(&want, start + 1216, &rung));
        assert_true(rbi_bell_space_wanted(&want, start + 1280, &rung));
        assert_false(rbi_bell_space_wanted(&want, start + 1280, &rung));
    }
}

static void test_bell_space_wanted(void **state)
{
    (void)state;
    space_wanted_from(0);
    space_wanted_from((UINT64_C(1) << 63) - 640);
    space_wanted_from((uint64_t)0 - 1024);
}

static void test_bell_rings_and_drains(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(rbi_bell_pair(ends), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rbi_bell_check(ends[i]), 0);
        assert_true((fcntl(ends[i], F_GETFD) & FD_CLOEXEC) != 0);
        assert_true((fcntl(ends[i], F_GETFL) & O_NONBLOCK) != 0);
    }
    assert_false(readable(ends[1]));
    assert_int_equal(rbi_bell_drain(ends[1]), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rbi_bell_ring(ends[0]), 0);
    }
    assert_true(readable(ends[1]));
    assert_false(readable(ends[0]));
    assert_int_equal(rbi_bell_drain(ends[1]), 0);
    assert_false(readable(ends[1]));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Nobody reads, O_NONBLOCK is gone: ringing neither waits nor fails. */
static void test_bell_ring_never_waits(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(rbi_bell_pair(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(rbi_bell_ring(ends[0]), 0);
    }
    /* A flood is taken in bounded steps; the descriptor stays readable until it is through. */
    for (unsigned i = 0; readable(ends[1]); i++) {
        assert_true(i < 100000);
        assert_int_equal(rbi_bell_drain(ends[1]), 0);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void test_bell_reports_a_closed_peer(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(rbi_bell_pair(ends), 0);
    assert_int_equal(rbi_bell_ring(ends[1]), 0);
    assert_int_equal(rbi_bell_ring(ends[0]), 0);
    (void)close(ends[0]); /* with a ring of ours unread: the kernel says ECONNRESET once */
    assert_int_equal(rbi_bell_ring(ends[1]), -EPIPE); /* and no SIGPIPE */
    int r = 0;
    for (unsigned i = 0; i < 3 && r == 0; i++) {
        r = rbi_bell_drain(ends[1]);
    }
    assert_int_equal(r, -EPIPE);
    assert_int_equal(rbi_bell_drain(ends[1]), -EPIPE);
    (void)close(ends[1]);
}

static unsigned open_fds(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void test_bell_drain_throws_descriptors_away(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(rbi_bell_pair(ends), 0);
    const unsigned before = open_fds();
    union {
        struct cmsghdr header;
        unsigned char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    unsigned char byte = 1;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(cmsg), &ends[0], sizeof(int));
    assert_int_equal(sendmsg(ends[0], &msg, 0), 1);
    assert_int_equal(rbi_bell_drain(ends[1]), 0);
    assert_int_equal(open_fds(), before);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void test_bell_check_refuses_everything_else(void **state)
{
    (void)state;
    int pipe_fds[2];
    int packets[2];
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets), 0);
    const int event = eventfd(0, EFD_CLOEXEC);
    const int lone = socket(AF_UNIX, SOCK_STREAM, 0);
    const int tcp = socket(AF_INET, SOCK_STREAM, 0);
    const int fds[] = {-1, pipe_fds[0], pipe_fds[1], packets[0], packets[1], event, lone, tcp};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        assert_int_equal(rbi_bell_check(fds[i]), -EBADF);
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bell_wanted_once_a_sleep),
        cmocka_unit_test(test_bell_epoch_wraps),
        cmocka_unit_test(test_bell_burst_end_shows_the_position),
        cmocka_unit_test(test_bell_space_wanted),
        cmocka_unit_test(test_bell_rings_and_drains),
        cmocka_unit_test(test_bell_ring_never_waits),
        cmocka_unit_test(test_bell_reports_a_closed_peer),
        cmocka_unit_test(test_bell_drain_throws_descriptors_away),
        cmocka_unit_test(test_bell_check_refuses_everything_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
