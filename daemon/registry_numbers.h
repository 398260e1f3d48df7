/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_REGISTRY_NUMBERS_H
#define RINGBUS_DAEMON_REGISTRY_NUMBERS_H
/* registry_numbers.h - numbers that the registry gives. For registry.c alone. */
#include <stdint.h>

struct rbi_daemon;
struct rbi_registry;

/** The next life, or the one that an endpoint had under the daemon before. @param brought  or 0 */
uint32_t rbi_registry_incarnation(struct rbi_registry *registry, uint32_t brought);
/** A slot of the directory. 0; -ENOMEM; -ENOSPC */
int rbi_registry_take_slot(struct rbi_daemon *daemon, uint32_t *slot);
/** Gives it back; cannot fail. */
void rbi_registry_give_slot(struct rbi_registry *registry, uint32_t slot);

#endif
