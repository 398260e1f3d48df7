/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CENTRE_STORE_H
#define RINGBUS_DAEMON_CENTRE_STORE_H
/*
 * daemon/centre_store.h - versions of the configuration as files: one file a version, in
 * RBI_VERSIONS_KEPT places that are used in turn. A file is written beside its place, made durable,
 * and renamed there, so that a place has a whole version or the one before; one that is damaged
 * all the same is passed over.
 */
#include "bus/wire.h"

/** Versions that can be gone back to. */
#define RBI_VERSIONS_KEPT 16U

/** A text that several versions have. */
struct rbi_shared_text {
    uint32_t refs;
    uint32_t size;
    char bytes[];
};
/** Copies a text. @return one reference; NULL: no memory */
struct rbi_shared_text *rbi_shared_text_new(const char *bytes, size_t size);
struct rbi_shared_text *rbi_shared_text_ref(struct rbi_shared_text *text);
/** Gives a reference back; accepts NULL. */
void rbi_shared_text_unref(struct rbi_shared_text *text);

struct rbi_version {
    uint64_t number; /* from 1 on; 0: there is none */
    uint64_t when_s; /* of the wall clock, for people; 0: unknown */
    uint32_t uid;    /* who made it */
    uint32_t pid;
    struct rbi_text program;
    struct rbi_text why;
    struct rbi_shared_text *applied; /* owned */
    struct rbi_shared_text *edits;   /* owned */
};
void rbi_version_deinit(struct rbi_version *version);

/** Longest name of a place, without its number. */
#define RBI_STORE_PREFIX_MAX 255U

/**
 * Where the versions of a daemon are: the configured folder, that of the service manager, the
 * usual one of a daemon at one of the usual sockets, or beside the socket.
 * @param out  "FOLDER/version" or "SOCKET.version"
 */
void rbi_store_place(const char *configured,
                     const char *socket,
                     char out[RBI_STORE_PREFIX_MAX + 1]);
/** Reads a place. @return whether there is a whole version; a damaged one is logged */
bool rbi_store_read(const char *prefix, unsigned place, struct rbi_version *out);
/** A version as the bytes of its file. */
struct rbi_store_image {
    uint64_t number;
    void *bytes; /* owned */
    size_t size;
};
/** @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_store_image(const struct rbi_version *version, struct rbi_store_image *out);
void rbi_store_image_deinit(struct rbi_store_image *image);
/** Makes the folder of the versions, if its parent is there. */
void rbi_store_make_folder(const char *prefix);
/**
 * Writes a version to its place, and waits until it is durable, however long the disk takes: not
 * for the loop.
 * @retval 0; -errno
 */
RBI_MUST_CHECK int rbi_store_write(const char *prefix, const struct rbi_store_image *image);

#endif
