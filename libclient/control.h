/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_CONTROL_H
#define RINGBUS_LIBCLIENT_CONTROL_H
/*
 * libclient/control.h - the connection to ringbusd.
 */
#include "bus/wire.h"
#include "bus/wire_stream.h"
#include "shm/handoff.h"

struct ringbus;

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
    bool nodes_lost;             /* it does not know all nodes that the one before knew */
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

/** Connects and says HELLO; what the daemon answers waits in the socket. 0 or a public error. */
int rbi_control_connect(struct ringbus *bus, uint64_t deadline_ns);
/** Registers, once page and pool are there. @param timeout_ms  for the text. 0 or a public error */
int rbi_control_register(struct ringbus *bus, uint64_t deadline_ns, uint32_t timeout_ms);
void rbi_control_close(struct ringbus *bus);
/** Reads and handles what the daemon sent. */
void rbi_control_input(struct ringbus *bus);
/** Reconnects when its time has come; times out a handshake. */
void rbi_control_tick(struct ringbus *bus, uint64_t now_ns);
uint64_t rbi_control_deadline_ns(const struct ringbus *bus);
/**
 * Queues and tries to send a frame; descriptors are borrowed. @return its serial, 0 when not
 * connected, or not registered yet and the frame is not HELLO or REGISTER
 */
uint32_t rbi_control_send(struct ringbus *bus,
                          enum rbi_wire_type type,
                          const void *body,
                          const int *fds,
                          unsigned fd_count);
void rbi_control_flush(struct ringbus *bus);
/** The connection ended or broke the rules. */
void rbi_control_lost(struct ringbus *bus, const char *why);
/** One frame of the daemon; @p fds are the frame's, taken out as needed. */
void rbi_control_frame(struct ringbus *bus,
                       const struct rbi_wire_header *header,
                       const union rbi_wire_body *body,
                       struct rbi_fdlist *fds);
/** Sends HELLO / everything that a (re)connected daemon must know. */
void rbi_control_hello(struct ringbus *bus);
void rbi_control_state(struct ringbus *bus, uint32_t state);

#endif
