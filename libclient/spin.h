/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_SPIN_H
#define RINGBUS_LIBCLIENT_SPIN_H
/* libclient/spin.h - looking for a while before sleeping. */
#include <stdbool.h>
#include <stdint.h>

struct ringbus;

/** How long to look before sleeping, as learned (spin.c). */
struct rbi_spin {
    uint32_t most_us;
    uint32_t now_us;
    uint32_t holiday;  /* waits without spinning that are left */
    uint32_t rest;     /* length of the last holiday; 0 after a success */
    uint32_t failures; /* spins in a row that found nothing */
    uint64_t received; /* messages when the last wait began */
};
void rbi_spin_init(struct rbi_spin *spin, uint32_t most_us);
/** In the middle of a flow, leaves the line that the sender is writing alone for a moment. */
void rbi_spin_back_off(struct ringbus *bus);
/** Looks for a while. @return true when something is there */
bool rbi_spin(struct ringbus *bus, uint64_t now_ns);
/** A sleep has ended: was it the right thing to do? */
void rbi_spin_learn(struct rbi_spin *spin, uint64_t slept_ns);

#endif
