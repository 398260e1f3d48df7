/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_CONTROL_H
#define RINGBUS_LIBCLIENT_CONTROL_H
/*
 * libclient/control.h - the connection to ringbusd.
 * Part of internal.h: include that.
 */
#include "bus/wire_stream.h"
#include "shm/handoff.h"

enum rbi_control_phase {
    RBI_CONTROL_OFF = 0,      /* not connected; retry_ns says when next */
    RBI_CONTROL_HELLO = 1,    /* HELLO sent */
    RBI_CONTROL_REGISTER = 2, /* REGISTER sent */
    RBI_CONTROL_ON = 3,
};

struct rbi_out_frame {
    struct rbi_out_frame *next;
    uint32_t size;
    unsigned fd_count;
    int fds[RBI_HANDOFF_FDS_MAX]; /* owned duplicates */
    unsigned char bytes[];
};

/* For the daemon to answer HELLO once connected, and then REGISTER. */
#define RBI_HANDSHAKE_NS (UINT64_C(5000) * 1000 * 1000)

struct rbi_control {
    enum rbi_control_phase phase;
    int sock;
    bool ever_on;
    bool write_armed;
    uint32_t serial;
    uint32_t register_serial;
    uint32_t protocol;           /* that both speak */
    bool settling;               /* the daemon is new, and waits for others to come back to it */
    uint64_t compared_revision;  /* what we know holds all changes up to it; 0: unknown */
    uint64_t daemon_incarnation; /* of the daemon that gave us our incarnation */
    uint64_t hello_incarnation;  /* of the one that we talk to */
    uint32_t told_state;         /* enum rbi_endpoint_state, as in REGISTER */
    uint64_t cookie;
    uint64_t retry_ns;
    uint64_t deadline_ns; /* of the phase */
    uint32_t retry_count;
    uint64_t attention_seen;
    uint32_t slot;
    struct rbi_out_frame *out_first;
    struct rbi_out_frame **out_last;
    unsigned out_count;
    struct rbi_fdlist fds; /* of the frame being received */
    struct rbi_wire_stream stream;
};

#endif
