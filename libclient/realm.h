/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_REALM_H
#define RINGBUS_LIBCLIENT_REALM_H
/* libclient/realm.h - clusters of other businesses that a policy imports. */
struct rbi_cluster;
struct ringbus;

/** Targets what the policy of a cluster imports, and lets go of what it does not any more. */
void rbi_realm_follow(struct ringbus *bus, struct rbi_cluster *cluster);
/** Lets go of all. */
void rbi_realm_release(struct ringbus *bus, struct rbi_cluster *cluster);

#endif
