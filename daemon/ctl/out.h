/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_OUT_H
#define RINGBUS_DAEMON_CTL_OUT_H
/*
 * daemon/ctl/out.h - bytes to a descriptor in large writes. The first error is kept, and
 * what comes after it is dropped.
 */
#include "shm/base.h"

#define RBI_CTL_OUT_ROOM ((size_t)1 << 20)

struct rbi_ctl_out {
    int fd;    /* borrowed */
    int error; /* errno of the first write that failed, or 0 */
    size_t used;
    unsigned char *bytes; /* owned, RBI_CTL_OUT_ROOM */
};

/** @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_ctl_out_init(struct rbi_ctl_out *out, int fd);
void rbi_ctl_out_deinit(struct rbi_ctl_out *out);
/** Takes the bytes; writes when the buffer is full. May wait for the reader of the descriptor. */
void rbi_ctl_out_put(struct rbi_ctl_out *out, const void *data, size_t size);
/** Writes what is there. */
void rbi_ctl_out_flush(struct rbi_ctl_out *out);

#endif
