/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_IMPORT_FILE_H
#define RINGBUS_DAEMON_BRIDGE_IMPORT_FILE_H
/*
 * daemon/bridge/import_file.h - one file of import_store.h: its bytes, and how it takes its place.
 * Any thread; what is said to wait for the disk belongs beside the loop.
 */
#include "daemon/bridge/import_store.h"

/** Bytes of the largest file that is read. */
#define RBI_IMPORT_FILE_MAX    (UINT64_C(64) << 20)
#define RBI_IMPORT_FOLDER_MAX  511U
#define RBI_IMPORT_FILE_SUFFIX 24U /* "/0123456789abcdef.new" */

/**
 * The bytes of a file.
 * @param out  malloc()ed, the caller's
 * @retval 0; -ENOMEM
 */
RBI_MUST_CHECK int rbi_import_file_encode(const struct rbi_import_store_head *head,
                                          const struct rbi_import_store_row *rows,
                                          uint32_t count,
                                          unsigned char **out,
                                          size_t *size);
/** Sum of the rows alone: two files with the same one say the same. */
uint64_t rbi_import_file_sum(const unsigned char *bytes, size_t size);
/**
 * Checks a file as a whole, then hands out its rows. Untrusted input.
 * @param row  may be NULL
 * @retval 0; -EPROTO  *why says what is wrong, and nothing was handed out
 */
RBI_MUST_CHECK int rbi_import_file_decode(const void *bytes,
                                          size_t size,
                                          struct rbi_import_store_head *head,
                                          rbi_import_store_row_fn row,
                                          void *context,
                                          const char **why);

/** "FOLDER/0123456789abcdef.0" for place 0 and so on; RBI_IMPORT_STORE_KEEP: the one being made. */
void rbi_import_file_name(const char *folder,
                          uint64_t cluster,
                          unsigned place,
                          char out[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX]);
/**
 * Puts a file in its place, and those that were there one place further. Whenever it is
 * interrupted, place 0 holds the old one or the new one. Waits for the disk.
 * @retval 0; -errno  the old one stays
 */
RBI_MUST_CHECK int
rbi_import_file_put(const char *folder, uint64_t cluster, const void *bytes, size_t size);
/** Removes all places of a cluster. Waits for the disk. @retval 0; -errno */
RBI_MUST_CHECK int rbi_import_file_remove(const char *folder, uint64_t cluster);
/**
 * Reads a place as it is.
 * @param out  malloc()ed, the caller's
 * @retval 0; -ENOENT there is none; -EPERM others could have written it; -EFBIG; -errno
 */
RBI_MUST_CHECK int rbi_import_file_get(
    const char *folder, uint64_t cluster, unsigned place, unsigned char **out, size_t *size);

#endif
