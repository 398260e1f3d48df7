/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_PIDF_H
#define RINGBUS_BUS_PIDF_H
/*
 * bus/pidf.h - addresses: the path that people read and the 16 bytes that
 * programs compare. Pure; any thread.
 *
 * Path: "/" then 1 to 7 elements joined by "/", each 1..63 bytes of
 * [A-Za-z0-9_.-], neither "." nor ".."; at most 255 bytes. There is exactly
 * one text for a path: what is accepted is canonical, nothing is normalised.
 * 6 elements name a cluster, 7 an instance, fewer (and "/") a prefix.
 */
#include "shm/base.h"

#define RBI_PATH_MAX               255U
#define RBI_PATH_ELEMENT_MAX       63U
#define RBI_PATH_CLUSTER_ELEMENTS  6U
#define RBI_PATH_INSTANCE_ELEMENTS 7U
/** No cluster or instance has it: below it are the nodes that users make (bus/node_path.h). */
#define RBI_PATH_META        "meta"
#define RBI_PATH_META_LENGTH 4U

/** The same layout as struct ringbus_addr. */
struct rbi_pidf {
    uint64_t cluster;
    int32_t instance;
    uint32_t incarnation;
};

/** What is wrong with a path, and where. */
enum rbi_path_error {
    RBI_PATH_OK = 0,
    RBI_PATH_NO_SLASH = 1, /**< does not begin with "/" */
    RBI_PATH_EMPTY_ELEMENT = 2,
    RBI_PATH_LONG_ELEMENT = 3,
    RBI_PATH_BAD_BYTE = 4,
    RBI_PATH_DOTS = 5, /**< element is "." or ".." */
    RBI_PATH_TOO_LONG = 6,
    RBI_PATH_TOO_MANY = 7, /**< more than 7 elements */
    RBI_PATH_TOO_FEW = 8,  /**< fewer than the caller needs */
    RBI_PATH_TRAILING_SLASH = 9,
    RBI_PATH_RESERVED = 10, /**< element "meta", where none may be */
    RBI_PATH_TOO_DEEP = 11, /**< more than 4 elements below "meta" (bus/node_path.h) */
};

struct rbi_path_info {
    enum rbi_path_error error;
    unsigned error_offset; /* byte at which the error was found */
    unsigned elements;
    unsigned cluster_length; /* bytes of the first 6 elements, when there are as many */
    unsigned length;
};

/**
 * Checks a path. Untrusted input: @p text need not be terminated.
 * @retval 0        canonical; @p out is filled
 * @retval 1        not a path; error and error_offset say why and where
 */
RBI_MUST_CHECK int rbi_path_parse(const char *text, size_t length, struct rbi_path_info *out);
/** Sentence for an error, for example "element longer than 63 bytes". */
const char *rbi_path_error_text(enum rbi_path_error error);

/**
 * Id of a cluster: XXH3-64 of its canonical path; never 0 (0 is the daemon, a hash of 0 becomes
 * 1).
 */
uint64_t rbi_cluster_id(const char *path, size_t length);
/**
 * Id of an instance name: a decimal number 1..2^31-1 without sign or leading zero is
 * itself; a.b.c.d (each 0..255 without leading zeros, a <= 127, not all 0) packs into
 * 32 bits; any other name is XXH3-64 masked to 31 bits, not 0.
 */
int32_t rbi_instance_id(const char *name, size_t length);

/**
 * Path of 6 or 7 elements to an address with incarnation 0; 6 elements give instance 0.
 * @retval 0; 1 as rbi_path_parse(), also for fewer than 6 elements and for the element "meta"
 */
RBI_MUST_CHECK int
rbi_pidf_parse(const char *text, size_t length, struct rbi_pidf *out, struct rbi_path_info *info);

/** "#0123456789abcdef/7" for an address whose path is not known. @return length, below 32 */
int rbi_pidf_format_raw(const struct rbi_pidf *pidf, char *buffer, size_t size);

/** True when @p path (6 or 7 elements, canonical) lies at or below @p prefix (canonical). */
bool rbi_path_has_prefix(const char *path,
                         size_t path_length,
                         const char *prefix,
                         size_t prefix_length);

#endif
