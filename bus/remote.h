/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_REMOTE_H
#define RINGBUS_BUS_REMOTE_H
/*
 * bus/remote.h - an instance as its host tells other hosts of it: what DIR_ITEM frames carry
 * (bus/frame.h), what bus/import keeps, and what is kept on disk. Pure; any thread.
 *
 * An exporter tells a host either all that it exports or what has changed since, as a batch of
 * items; a batch may take many turns:
 *
 *   all      FIRST, .., .., LAST           every item has the revision of the whole
 *   changes        .., .., .., LAST        every item has its own, one more than the one before
 *
 * The items of a list of all are numbered 1, 2, 3, and a change has the number 0: frames may be
 * lost between hosts when the way to one changes, so a list that lacks some must not look whole.
 *
 * An item without a path says nothing of an instance: it is there for its flags. FIRST | LAST
 * without a path: nothing is exported. LAST without a path and with the revision that the asker
 * named: nothing has changed. After the first batch changes follow unasked. Another incarnation of
 * the exporter counts its revisions anew.
 */
#include "bus/directory.h"

#define RBI_ITEM_FIRST   0x1U /* what is not named until LAST is not exported any more */
#define RBI_ITEM_LAST    0x2U
#define RBI_ITEM_REMOVED 0x4U /* remote.state is an enum rbi_reason: why */

struct rbi_remote {
    struct rbi_pidf pidf;
    uint32_t state;       /* enum rbi_endpoint_state */
    uint32_t health;      /* enum rbi_health */
    uint32_t weight;      /* 0..1000 */
    uint32_t reported;    /* as in the directory, 0: none */
    uint32_t path_length; /* 0: no instance */
    char path[RBI_PATH_MAX + 1];
    char set[RBI_DIRECTORY_LABEL_MAX + 1];
    char idc[RBI_DIRECTORY_LABEL_MAX + 1];
    char tags[RBI_DIRECTORY_LABEL_MAX + 1];
};

struct rbi_remote_item {
    uint64_t incarnation; /* of the exporter, not 0 */
    uint64_t revision;
    uint32_t flags;  /* RBI_ITEM_* */
    uint32_t number; /* in a list of all, from 1; 0: a change */
    struct rbi_remote remote;
};

/**
 * Whether it describes an instance that can be: a canonical path of 7 elements whose ids are those
 * of the pidf, an incarnation, every value in its range, every text terminated and of bytes that a
 * label may have. For what another host or a file says.
 */
bool rbi_remote_valid(const struct rbi_remote *remote);
/** Whether both say the same of an instance. */
bool rbi_remote_equal(const struct rbi_remote *a, const struct rbi_remote *b);
/** Sets path, its length, and the ids that follow from it. @retval 0; 1 not an instance's path */
RBI_MUST_CHECK int rbi_remote_set_path(struct rbi_remote *remote, const char *path, size_t length);
/** Bytes of the path that name its cluster. */
size_t rbi_remote_cluster_length(const struct rbi_remote *remote);

#endif
