/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/probe.h"

#include "bus/wire.h"
#include "shm/handoff.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define ANSWER_MS 1000

/** A greeting that any version of a daemon refuses: nothing is left of it. */
static int probe_ask(int fd)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    const struct rbi_wire_hello hello = {.protocol_min = 0, .protocol_max = 0};
    const size_t size = rbi_wire_encode(RBI_WIRE_HELLO, &hello, 1, 0, frame);
    return rbi_handoff_send(fd, frame, size, NULL, 0);
}

/** @return whether anything is answered; a daemon that hangs counts as alive, it holds the place */
static bool probe_answers(int fd)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct rbi_fdlist fds = RBI_FDLIST_NULL;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int count = -1;
    do {
        count = poll(&ready, 1, ANSWER_MS);
    } while (count < 0 && errno == EINTR);
    if (count == 0) {
        return true;
    }
    const ssize_t size = rbi_handoff_recv(fd, frame, sizeof(frame), &fds);
    rbi_fdlist_deinit(&fds);
    return size > 0;
}

bool rbi_probe_alive(const char *socket_path)
{
    const int fd = rbi_handoff_connect(socket_path);
    if (fd < 0) {
        return fd == -EAGAIN; /* its backlog is full: somebody listens, and is slow */
    }
    const bool alive = probe_ask(fd) == 0 && probe_answers(fd);
    (void)close(fd);
    return alive;
}
