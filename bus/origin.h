/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ORIGIN_H
#define RINGBUS_BUS_ORIGIN_H
/*
 * bus/origin.h - where a message began and which brokers it has passed, as each of these tells the
 * next one in an attribute of the record (bus/record_attributes.h). Pure.
 *
 *   word 0     bits  0..7   words in all, word 0 among them
 *              bits  8..15  hops, 1..RBI_HOPS_MAX
 *              bits 16..23  bytes of the path
 *              bits 24..63  zero when sent, ignored when received
 *   words 1, 2 PIDF of the first sender, with incarnation
 *   hops words clusters of the brokers, in the order of the way
 *   path       its bytes, in whole words
 *   what a later version appends: a reader skips it
 */
#include "bus/pidf.h"

#define RBI_HOPS_MAX         8U
#define RBI_ORIGIN_WORDS_MAX (1U + 2U + RBI_HOPS_MAX + (RBI_PATH_MAX + 7U) / 8U)

struct rbi_origin {
    struct rbi_pidf pidf;
    uint32_t hops;
    uint64_t via[RBI_HOPS_MAX];
    char path[RBI_PATH_MAX + 1]; /* terminated */
};

unsigned rbi_origin_words(const struct rbi_origin *origin);
/** Writes rbi_origin_words() words. */
void rbi_origin_encode(const struct rbi_origin *origin, unsigned char *at);
/**
 * Untrusted input; reads each word once.
 * @param at     @p words readable words, 8-byte aligned
 * @retval 0        @p out is filled
 * @retval -EPROTO  impossible
 */
RBI_MUST_CHECK int
rbi_origin_decode(const unsigned char *at, unsigned words, struct rbi_origin *out);
/** Adds a broker to the way. @retval 0; 1 it was on it already; 2 the way is too long */
RBI_MUST_CHECK int rbi_origin_pass(struct rbi_origin *origin, uint64_t broker);

#endif
