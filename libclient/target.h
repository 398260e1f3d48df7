/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_TARGET_H
#define RINGBUS_LIBCLIENT_TARGET_H
/* libclient/target.h - interest in clusters: what the daemon is asked, and what it tells. */
#include "bus/record.h"
#include "bus/wire.h"

#include <stdbool.h>
#include <stdint.h>

struct rbi_cluster;
struct rbi_end;
struct rbi_link_terms;
struct rbi_member;
struct rbi_target_terms;
struct ringbus;

/** A cluster that is not known yet, without interest in it. NULL: no memory. */
struct rbi_cluster *rbi_cluster_add(struct ringbus *bus, const char *path);
/** Interest in all instances, present and future. */
void rbi_cluster_want_all(struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          const struct rbi_target_terms *target);
/** Ends that, and, with the next reap, the cluster, unless instances of it are targeted. */
void rbi_cluster_narrow(struct ringbus *bus, struct rbi_cluster *cluster);
/** Frees those that nobody wants any more. By the reaper only: nobody walks or uses any. */
void rbi_clusters_reap(struct ringbus *bus);
void rbi_member_want(struct ringbus *bus, struct rbi_member *member);
/** Ends the link, too, unless the peer wants it. */
void rbi_member_unwant(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_member *member);
/** An EVENT of the daemon. */
void rbi_target_event(struct ringbus *bus, const struct rbi_wire_event *event);
/** Its link has failed or ended: sets when to try again, twice as late as the last time. */
void rbi_member_back_off(struct ringbus *bus, struct rbi_member *member);
/** Reports the end of an instance as if the daemon had, unless it is not known. */
void rbi_target_removed(struct ringbus *bus,
                        const struct rbi_pidf *pidf,
                        const char *path,
                        enum rbi_reason reason);
/** A link has ended: its peer goes too, where no daemon would tell so. */
void rbi_target_link_over(struct ringbus *bus, const struct rbi_end *end);
/** Introduces members whose time has come. @return the next such time */
uint64_t rbi_target_tick(struct ringbus *bus, uint64_t now_ns);
/** Sends every TARGET and WATCH again, after a reconnect. */
void rbi_target_resend(struct ringbus *bus);
/**
 * The answer to an INTRODUCE was an error, or its link closed before it was usable.
 * @param reason  NONE: as the error has it. That a peer refuses, which is DENIED to its caller, is
 *                no right that is missing
 */
void rbi_target_introduce_failed(struct ringbus *bus,
                                 const struct rbi_pidf *peer,
                                 enum rbi_reason reason,
                                 int error,
                                 const char *text,
                                 bool meets_other);
/** The daemon is lost: introductions under way will not be answered. */
void rbi_target_introductions_lost(struct ringbus *bus);
/** Whether we want a link with this peer as requester; its terms when so. */
bool rbi_target_wants(struct ringbus *bus,
                      const struct rbi_pidf *peer,
                      struct rbi_link_terms *terms);

/** Events were lost: compares targets and watched prefixes with the directory. */
void rbi_target_resync(struct ringbus *bus);
/** There was no memory for an event: it is read from the directory before long. */
RBI_COLD void rbi_target_missed(struct ringbus *bus);
void rbi_target_reread(struct ringbus *bus);
/** Registered with a daemon that knows nothing of us: tells it what we want to hear of. */
void rbi_target_returned(struct ringbus *bus);
/** Who has not come back to the new daemon by now is gone. */
void rbi_target_settled(struct ringbus *bus);
/** The same, where the daemon does not say when: its time is over. */
void rbi_target_sweep(struct ringbus *bus);

#endif
