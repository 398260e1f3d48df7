/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_LABELS_H
#define RINGBUS_LIBCLIENT_LABELS_H
/*
 * libclient/labels.h - set and location that this endpoint has as a caller: what the operator says
 * of it, else what it says of itself.
 */
#include "bus/directory.h"

struct ringbus;

struct rbi_labels {
    uint64_t daemon; /* whose directory was read, */
    uint64_t epoch;  /* and which snapshot of our cluster; 0: none yet */
    char set[RBI_DIRECTORY_LABEL_MAX + 1];
    char idc[RBI_DIRECTORY_LABEL_MAX + 1];
    char tags[RBI_DIRECTORY_LABEL_MAX + 1];
};

/** What it says of itself, as long as the directory says nothing. */
void rbi_labels_init(struct ringbus *bus);
/** The directory has changed: who was moved chooses anew. */
void rbi_labels_look(struct ringbus *bus);

#endif
