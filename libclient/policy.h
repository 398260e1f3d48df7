/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_POLICY_H
#define RINGBUS_LIBCLIENT_POLICY_H
/* libclient/policy.h - the policy of a cluster, as this handle has read it. */
#include <stdbool.h>
#include <stdint.h>

struct rbi_cluster;
struct rbi_policy;
struct ringbus;

/** The policy of a cluster; the defaults where it has none of its own. */
const struct rbi_policy *rbi_cluster_policy(const struct rbi_cluster *cluster);
/**
 * Reads one from the directory. @return RBI_DIRECTORY_OK @p out is from malloc, or NULL: it is of
 * another release, which this one cannot read. Else it cannot be had now
 */
int rbi_policy_read(struct ringbus *bus, uint64_t key, struct rbi_policy **out);
/** A reply later than that is slow by the policy; RBI_NEVER: none is. */
uint64_t rbi_cluster_slow_ns(const struct rbi_cluster *cluster);
/** Whether what is in use was taken over for this key; 0: the defaults. */
bool rbi_cluster_has_policy(const struct rbi_cluster *cluster, uint64_t key);
/**
 * Takes over what the snapshot names. @return false: it cannot be read now, and stays as it was;
 * the next tick looks again
 */
bool rbi_cluster_take_policy(struct ringbus *bus, struct rbi_cluster *cluster, uint64_t key);
/** Takes it as the directory has it now: also for whoever is sent to without a choice. */
void rbi_cluster_look_policy(struct ringbus *bus, struct rbi_cluster *cluster);

#endif
