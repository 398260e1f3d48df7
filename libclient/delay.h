/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DELAY_H
#define RINGBUS_LIBCLIENT_DELAY_H
/*
 * libclient/delay.h - one-way messages that a limit lets pass later, but within its max_wait: each
 * takes its turn in the limit when it is sent, is kept until that is due, and goes then. Requests
 * wait in their own way (ask.c).
 *
 *   send -> limit: due in 30 ms -> queue of the end, charged -> ringbus_poll() -> lane
 *
 * While something waits for an end, the plain way to it is not open (RBI_HINDERED_DELAYED): what
 * comes later, whether a limit is about it or not, goes behind. A cluster without such a limit
 * never gets here.
 */
#include <stdint.h>

struct rbi_copy;
struct rbi_end;
struct rbi_outgoing;
struct ringbus;

/** Most that one handle keeps so. */
#define RBI_DELAYED_MAX       1024U
#define RBI_DELAYED_BYTES_MAX (UINT64_C(4) << 20)

/** Of an end, in the order of sending. Their due times never fall. */
struct rbi_delay_queue {
    struct rbi_copy *first;
    struct rbi_copy *last;
    uint32_t tries; /* of the first, that found no room */
};

/** Of a handle. */
struct rbi_delays {
    uint32_t count;
    uint64_t bytes;
    uint64_t due_ns; /* of the first; RBI_NEVER */
};

void rbi_delay_init(struct rbi_delays *delays);
/**
 * Sends a message, or keeps it, on an end that is limited or behind whose queue it belongs.
 * @retval 0, RBI_SEND_KEPT; a public error (noted)
 */
int rbi_delay_send(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);
/** Nothing may go past what waits. RINGBUS_E_LIMITED (noted): when it is worth trying again */
int rbi_delay_refuse(struct ringbus *bus, const struct rbi_end *end);
/** Sends what is due. In poll only. @return when to look again */
uint64_t rbi_delay_tick(struct ringbus *bus, uint64_t now_ns);
/** The link is over: gives back what waits for it. In poll and close only. */
void rbi_delay_give_back(struct ringbus *bus, struct rbi_end *end, int error);
void rbi_delay_end_all(struct ringbus *bus, int error);
/** Forgets them without a word. */
void rbi_delay_free(struct rbi_delay_queue *queue);

#endif
