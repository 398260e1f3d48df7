/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_WALL_H
#define RINGBUS_DAEMON_WALL_H
/*
 * daemon/wall.h - the time of day, for the ends of tokens alone: they are made on one host for
 * another, or for after its next start. Everything else counts with the monotonic clock.
 */
#include "shm/base.h"

/** Seconds since 1970. */
uint64_t rbi_wall_now_s(void);

#endif
