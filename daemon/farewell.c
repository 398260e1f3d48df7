/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/farewell.h"

#include "bus/wire.h"
#include "daemon/log.h"
#include "shm/handoff.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

#define DISCARD_MAX 4096U

void rbi_farewell_silence(int fd)
{
    unsigned char packet[RBI_WIRE_FRAME_MAX];
    /* From here on the client cannot add to what is thrown away. */
    (void)shutdown(fd, SHUT_RDWR);
    for (unsigned i = 0; i < DISCARD_MAX; i++) {
        /* Descriptors that wait in the socket are taken out and dropped one by one: left to
         * close() they could linger, and hold the daemon for as long as their sender likes. */
        struct rbi_fdlist fds = RBI_FDLIST_NULL;
        const ssize_t size = rbi_handoff_recv(fd, packet, sizeof(packet), &fds);
        rbi_fdlist_deinit(&fds);
        if (size <= 0 && size != -EMSGSIZE) {
            break;
        }
    }
}

void rbi_farewell_close(int fd)
{
    rbi_farewell_silence(fd);
    (void)close(fd);
}

void rbi_farewell_refuse(int fd, int code, const char *text)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct rbi_wire_error error = {.code = code};
    rbi_text_set(&error.text, text);
    const size_t size = rbi_wire_encode(RBI_WIRE_ERROR, &error, 1, 0, frame);
    if (rbi_handoff_send(fd, frame, size, NULL, 0) < 0) {
        rbi_log(RBI_LOG_DEBUG, "refusal_not_delivered", "code=%" PRId32, error.code);
    }
    rbi_farewell_close(fd);
}
