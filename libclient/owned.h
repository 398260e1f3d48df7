/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_OWNED_H
#define RINGBUS_LIBCLIENT_OWNED_H
/*
 * libclient/owned.h - the slots of the key space that this instance owns in its own cluster, as
 * every caller sees it: what was gained and lost is told, and messages for keys of others can be
 * refused.
 */
#include "bus/table.h"
#include "libclient/choice.h"

#include <ringbus/ringbus.h>

struct rbi_cluster;
struct ringbus;

struct rbi_owned {
    struct rbi_cluster *cluster; /* our own, as if we targeted it; in no list */
    struct rbi_table table;      /* as it was told last; owns its two arrays */
    uint16_t *owners;
    struct rbi_table_member *members;
    uint64_t fingerprint;          /* 0: nothing was told yet */
    struct rbi_choice_class class; /* of the messages whose table that is */
    bool refuse;                   /* RINGBUS_SLOTS_REFUSE */
    ringbus_message_fn on_message; /* of the application, while ours stands before it */
};

/** Begins to follow. 0; a public error (noted) */
int rbi_owned_open(struct ringbus *bus, int option);
void rbi_owned_free(struct ringbus *bus);
/** The directory has changed. */
void rbi_owned_look(struct ringbus *bus);

#endif
