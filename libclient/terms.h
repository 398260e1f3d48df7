/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_TERMS_H
#define RINGBUS_LIBCLIENT_TERMS_H
/* libclient/terms.h - by what links are judged. */
#include "bus/link.h"
#include "bus/wire.h"

#include <ringbus/ringbus.h>

struct rbi_cluster;
struct rbi_end;
struct rbi_member;
struct rbi_target_terms;
struct ringbus;

/** Takes the options of a handle. 0; RINGBUS_E_ARGUMENT (noted) */
int rbi_terms_open(struct ringbus *bus, const struct ringbus_options *options);
/** Takes the options of a target. 0; RINGBUS_E_ARGUMENT (noted) */
int rbi_terms_target(struct ringbus *bus,
                     const struct ringbus_target_options *options,
                     struct rbi_target_terms *out);
/** What the daemon says for all that the application left open, now or after a reload. */
void rbi_terms_from_daemon(struct ringbus *bus, const struct rbi_wire_hello_ok *body);
/** Those of a member: its own, or its cluster's. */
const struct rbi_link_terms *rbi_terms_of(const struct rbi_cluster *cluster,
                                          const struct rbi_member *member);
/** Opens our use of a link with these terms; a use that has them already stays as it is. */
void rbi_terms_say(struct ringbus *bus, struct rbi_end *end, const struct rbi_link_terms *terms);

#endif
