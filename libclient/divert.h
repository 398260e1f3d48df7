/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DIVERT_H
#define RINGBUS_LIBCLIENT_DIVERT_H
/*
 * libclient/divert.h - a key that goes past its owner, as on_shield or hash_bound say: whoever gets
 * it is told (RINGBUS_MESSAGE_DIVERTED), by attributes in the record. Part of internal.h: include
 * that.
 *
 * The pick that goes past an owner is off the hot path. It leaves a bit at the end that it has
 * chosen (RBI_HINDERED_DIVERTED), so that the message takes the long way, which finds it here.
 */
#include "shm/base.h"

#include <stdbool.h>
#include <stdint.h>

struct rbi_attributes;
struct rbi_end;
struct rbi_outgoing;
struct ringbus;

/** Of a handle: the last pick that went past the key's owner, until it is sent by. */
struct rbi_divert {
    struct rbi_end *end; /* NULL: none */
    uint64_t key;
};

/** Words that it adds to a claim in a lane: one is filled, the other keeps it aligned. */
#define RBI_DIVERT_CLAIM_WORDS 2U

/** A pick goes past the owner of @p key, to @p end. */
RBI_COLD void rbi_divert_note(struct ringbus *bus, struct rbi_end *end, uint64_t key);
/** Whether the last pick of that key, to @p end, did. Asked once: then it is forgotten. */
bool rbi_divert_take(struct ringbus *bus, struct rbi_end *end, uint64_t key);
/** Nothing is sent by the last pick. */
void rbi_divert_forget(struct ringbus *bus);
/** Attributes of a message that says nothing else of itself. */
RBI_COLD void
rbi_divert_say(struct ringbus *bus, const struct rbi_end *end, struct rbi_attributes *out);
/** Sends a message of which rbi_divert_take() was true. As rbi_send_new() */
RBI_COLD int
rbi_divert_send(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);

#endif
