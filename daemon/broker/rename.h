/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_RENAME_H
#define RINGBUS_DAEMON_BROKER_RENAME_H
/*
 * daemon/broker/rename.h - patterns of clusters, and the names that those get elsewhere. Pure.
 *
 * A pattern has the six elements of a cluster. One that is * stands for any; ** as the last one
 * stands for all that are left. The pattern of the new name has as many of them, which stand for
 * the same, in order:
 *
 *     match: /shop/eu/pc/w1/trade/ *     as: /public/eu/pc/w1/shop/ *     (without the blanks)
 */
#include "bus/pidf.h"

/** Whether it is a pattern. */
bool rbi_rename_valid(const char *pattern);
/** Whether @p as can name what the valid pattern @p match finds. */
bool rbi_rename_fits(const char *match, const char *as);
/**
 * The new name of a cluster.
 * @param cluster  6 elements; need not be terminated
 * @retval 0 @p out is filled; 1 the pattern is not about it, or the name would be too long
 */
RBI_MUST_CHECK int rbi_rename(const char *match,
                              const char *as,
                              const char *cluster,
                              size_t length,
                              char out[RBI_PATH_MAX + 1]);
/** Whether the pattern is about a cluster. */
bool rbi_rename_matches(const char *pattern, const char *cluster, size_t length);
/** Whether there is a cluster that both are about. */
bool rbi_rename_meet(const char *a, const char *b);
/** Bytes of the elements before the first star, without the slash behind them; 0: none. */
size_t rbi_rename_prefix(const char *pattern);
/** Whether it stands for one cluster only. */
bool rbi_rename_is_plain(const char *pattern);

#endif
