/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GLOB_H
#define RINGBUS_BUS_GLOB_H
/*
 * bus/glob.h - patterns of paths and names, as rights, limits and label rules name them. Pure; any
 * thread.
 *
 *   *    any bytes of one element, none as well: a whole element, or a part of it
 *   **   any bytes, '/' too: whatever lies below, or whatever comes between
 *
 * Every other byte stands for itself. A pattern is for the whole text: one that ends in a slash and
 * two stars describes all that lies below a path, yet not the path itself.
 */
#include "shm/base.h"

#define RBI_GLOB_BYTES_MAX 255U

/** What is wrong with a pattern. */
enum rbi_glob_error {
    RBI_GLOB_OK = 0,
    RBI_GLOB_EMPTY = 1,
    RBI_GLOB_TOO_LONG = 2, /* more than RBI_GLOB_BYTES_MAX bytes */
    RBI_GLOB_BAD_BYTE = 3, /* neither a byte of a path nor '*' */
    RBI_GLOB_STARS = 4,    /* three stars in a row */
};

/**
 * Checks a pattern. Untrusted input: @p pattern need not be terminated.
 * @param offset  where the error is; may be NULL; written with an error only
 */
RBI_MUST_CHECK enum rbi_glob_error
rbi_glob_check(const char *pattern, size_t length, unsigned *offset);
/** Sentence for an error, for example "three '*' in a row". */
const char *rbi_glob_error_text(enum rbi_glob_error error);

/**
 * Whether all of @p text is what @p pattern describes. Neither need be terminated; a pattern longer
 * than RBI_GLOB_BYTES_MAX matches nothing.
 * Cost: text x pattern steps at the most, whatever the stars; no recursion, no allocation.
 */
bool rbi_glob_match(const char *pattern, size_t pattern_length, const char *text, size_t length);
/**
 * Whether there is a text that both describe. Patterns longer than RBI_GLOB_BYTES_MAX meet nothing.
 * Cost: a step for each pair of their bytes.
 */
bool rbi_glob_meet(const char *a, size_t a_length, const char *b, size_t b_length);

#endif
