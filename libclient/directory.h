/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DIRECTORY_H
#define RINGBUS_LIBCLIENT_DIRECTORY_H
/* libclient/directory.h - snapshots of the shared directory. */
#include "bus/directory.h"

#include <stdbool.h>
#include <stdint.h>

struct rbi_cluster;
struct ringbus;

/** Maps a directory that was sent. @param hold  keep the one before beside it
 *  @retval 0; -errno, then nothing has changed */
int rbi_directory_map(struct ringbus *bus, int fd, uint64_t bytes, bool hold);
/** Lets go of the one before, and of who was noted as gone. */
void rbi_directory_release_held(struct ringbus *bus);
/** The new one is complete: the same, and all that was made of both is made anew. */
void rbi_directory_settled(struct ringbus *bus);
/** Its link has told of its end, and no daemon has: it is listed no more. */
void rbi_directory_note_gone(struct ringbus *bus, const struct rbi_pidf *pidf);
/** Whether an instance is on another host. Cold; copies the snapshot of its cluster. */
bool rbi_directory_is_far(const struct ringbus *bus, const struct rbi_pidf *pidf);
/**
 * Copies a cluster's snapshot whole: behind the instances, head->absent_count who died just now.
 * @return instances, freed by the caller; NULL: @p absent, or it cannot be had now
 */
struct rbi_directory_instance *rbi_directory_snapshot(const struct rbi_directory_view *view,
                                                      uint64_t cluster,
                                                      struct rbi_directory_cluster *head,
                                                      bool *absent);
/** The same, with those whom the daemon before had listed, while they may still come back. */
struct rbi_directory_instance *rbi_directory_list(struct ringbus *bus,
                                                  uint64_t cluster,
                                                  struct rbi_directory_cluster *head,
                                                  bool *absent);
/** The directory has changed since the last look: who picks from what has, chooses anew. */
void rbi_directory_look(struct ringbus *bus);
/** The same for one cluster; takes over its policy. */
void rbi_directory_look_at(struct ringbus *bus, struct rbi_cluster *cluster);

#endif
