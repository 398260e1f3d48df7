/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_REFUSED_H
#define RINGBUS_LIBCLIENT_REFUSED_H
/*
 * libclient/refused.h - one-way messages that their receiver drops, for want of a right or because
 * a broker cannot pass them on: nobody waits for an answer to them, so their sender is told in a
 * record of its own (REFUSED), once a second and link at most, with how many they were since.
 * Requests are answered one by one.
 */
#include <stdint.h>

struct rbi_end;
struct rbi_record;
struct ringbus;

/** Of an end, each way. */
struct rbi_refused {
    uint64_t count;  /* dropped, and their sender does not know yet */
    uint32_t method; /* of the last of them */
    int error;       /* the same */
    uint64_t said_ns;
    uint64_t told_count; /* the peer has dropped, and the application does not know yet */
    uint32_t told_method;
    int told_error;
    uint64_t told_ns;
};

/** A message of the peer's was dropped, for that error. */
void rbi_refused_note(struct ringbus *bus, struct rbi_end *end, int error, uint32_t method);
/** We end the link: what was not said yet is said before. */
void rbi_refused_last(struct rbi_end *end);
/** It has ended, and all that came over it was read: what was not told yet is told now. */
void rbi_refused_end(struct ringbus *bus, struct rbi_end *end);
/** When it is to be said, or told; RBI_NEVER. */
uint64_t rbi_refused_due_ns(const struct rbi_end *end);
/** Says and tells what is due; it is sent with what else is pending. */
void rbi_refused_tick(struct ringbus *bus, struct rbi_end *end);
/** It was sent. */
void rbi_refused_said(struct ringbus *bus, struct rbi_end *end);
/** A REFUSED record. Untrusted. */
void rbi_refused_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);

#endif
