/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_RAW_H
#define RINGBUS_TESTS_SUPPORT_RAW_H
/*
 * A client of the control socket without a library: says exactly what the test wants,
 * right or wrong. Functions return 0 or -1; nothing asserts.
 */
#include "bus/wire.h"
#include "bus/wire_stream.h"
#include "shm/handoff.h"
#include "shm/layout.h"
#include "shm/segment.h"

struct raw_message {
    struct rbi_wire_header header;
    union rbi_wire_body body;
    struct rbi_fdlist fds; /* owned; raw_message_deinit() closes what was not taken */
};

struct raw {
    int fd;
    uint32_t serial; /* of the last message sent */
    struct rbi_wire_stream stream;
    struct rbi_fdlist fds; /* came, not yet given out */
    /* After raw_hello() and raw_register(). */
    struct rbi_segment directory;
    struct rbi_segment page;
    struct rbi_segment pool;
    struct rbi_wire_hello_ok hello_ok;
    struct rbi_wire_registered registered;
    /* What raw_introduce() offers; renewed by each call. */
    struct rbi_segment side;
    int bell[2];
};

#define RAW_TIMEOUT_MS 3000U

/** Connects; nothing is said. */
int raw_connect(struct raw *raw, const char *socket);
void raw_close(struct raw *raw);

/** Sends a message; descriptors are borrowed. raw->serial is its serial afterwards. */
int raw_send(
    struct raw *raw, enum rbi_wire_type type, const void *body, const int *fds, unsigned fd_count);
/** Next message of any type. @retval 0; 1 the daemon has closed; -1 nothing came in time */
int raw_receive(struct raw *raw, struct raw_message *out, unsigned timeout_ms);
/** Next message of that type; others in between are thrown away. @retval as raw_receive() */
int raw_expect(struct raw *raw,
               enum rbi_wire_type type,
               struct raw_message *out,
               unsigned timeout_ms);
/** Next ERROR. @return its code, 0 when none came */
int raw_expect_error(struct raw *raw);
/** The same, with its text. */
int raw_expect_error_text(struct raw *raw, struct rbi_text *text);
/** Whether the daemon closes the connection within the time. */
bool raw_closed(struct raw *raw, unsigned timeout_ms);
/** Whether nothing comes within the time. */
bool raw_silent(struct raw *raw, unsigned timeout_ms);
void raw_message_deinit(struct raw_message *message);

/** HELLO, HELLO_OK, directory mapped. */
int raw_hello(struct raw *raw);
/** Makes page and pool (of pool_bytes, 0: 16 KiB) and sends REGISTER; waits for nothing. */
int raw_send_register(struct raw *raw, const struct rbi_wire_registration *body);
/** Registers a path in a state (path "" = anonymous). */
int raw_register(struct raw *raw, const char *path, enum rbi_endpoint_state state);
/** Connects, greets and registers. */
int raw_up(struct raw *raw, const char *socket, const char *path);

/** Makes a side of 12 KiB. */
int raw_make_side(struct rbi_segment *side);
/** Sends INTRODUCE with a fresh side and bell; waits for nothing. */
int raw_introduce(struct raw *raw, uint64_t cluster, int32_t instance, uint32_t incarnation);
/** Waits for INTRODUCED and answers ACCEPT with a fresh side. @param link_id  may be NULL */
int raw_accept(struct raw *raw, uint64_t *link_id);
/** Links @p client to @p server: INTRODUCE, ACCEPT, LINKED. */
int raw_link(struct raw *client, struct raw *server, uint64_t *link_id);
int raw_set_state(struct raw *raw, enum rbi_endpoint_state state);
/** Sends TARGET or WATCH and waits for OK. */
int raw_watch(struct raw *raw, enum rbi_wire_type type, const char *path);
/** Value of a status row, or UINT64_MAX. */
uint64_t raw_status(const char *socket, const char *name);
/** Text of a status row. */
int raw_status_text(const char *socket, const char *name, struct rbi_text *out);

#endif
