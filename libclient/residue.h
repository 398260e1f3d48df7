/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_RESIDUE_H
#define RINGBUS_LIBCLIENT_RESIDUE_H
/* libclient/residue.h - payloads that outlive their link. */
#include "bus/pidf.h"

#include <stdbool.h>
#include <stdint.h>

struct rbi_end;
struct ringbus;

/** Most ended links with one peer whose payloads are out, before a new one is refused. */
#define RBI_RESIDUES_MAX 4U
/**
 * The end is about to be freed: while somebody may still read payloads of it, keeps what
 * they need, and their chunks. @return whether it was kept; it is freed by itself later
 */
bool rbi_residue_keep(struct ringbus *bus, struct rbi_end *end);
/** The peer of a residue has ended its side of the bell. */
void rbi_residue_hung_up(struct ringbus *bus, struct rbi_end *end);
/** A payload that was kept from that life of a link is released. */
void rbi_residue_released(struct ringbus *bus, uint64_t link_life);
/** Whether that peer holds payloads of too many earlier links to be given another. */
bool rbi_residue_limit(const struct ringbus *bus, const struct rbi_pidf *peer);
void rbi_residue_free_all(struct ringbus *bus);

#endif
