/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/out.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rbi_ctl_out_init(struct rbi_ctl_out *out, int fd)
{
    out->fd = fd;
    out->error = 0;
    out->used = 0;
    out->bytes = malloc(RBI_CTL_OUT_ROOM);
    return out->bytes != NULL ? 0 : -ENOMEM;
}

void rbi_ctl_out_deinit(struct rbi_ctl_out *out)
{
    free(out->bytes);
    out->bytes = NULL;
}

static void write_all(struct rbi_ctl_out *out, const unsigned char *data, size_t size)
{
    while (size > 0 && out->error == 0) {
        ssize_t done = write(out->fd, data, size);
        if (done >= 0) {
            data += done;
            size -= (size_t)done;
        } else if (errno == EAGAIN) {
            /* Somebody else made the open file non-blocking. */
            struct pollfd pollfd = {.fd = out->fd, .events = POLLOUT};
            (void)poll(&pollfd, 1, -1);
        } else if (errno != EINTR) {
            out->error = errno;
        }
    }
}

void rbi_ctl_out_flush(struct rbi_ctl_out *out)
{
    write_all(out, out->bytes, out->used);
    out->used = 0;
}

void rbi_ctl_out_put(struct rbi_ctl_out *out, const void *data, size_t size)
{
    if (size == 0) {
        return;
    }
    if (size > RBI_CTL_OUT_ROOM - out->used) {
        rbi_ctl_out_flush(out);
    }
    if (size > RBI_CTL_OUT_ROOM) {
        write_all(out, data, size);
        return;
    }
    memcpy(out->bytes + out->used, data, size);
    out->used += size;
}
