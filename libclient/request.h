/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_REQUEST_H
#define RINGBUS_LIBCLIENT_REQUEST_H
/*
 * libclient/request.h - requests that wait for their reply.
 */
#include "bus/pidf.h"
#include "bus/record.h"

#include <ringbus/ringbus.h>

struct rbi_end;
struct rbi_inflight;
struct ringbus;

/** A request that waits. Slots are reused; the generation keeps late replies out. */
struct rbi_call {
    ringbus_reply_fn on_reply; /* NULL = free */
    void *context;
    uint64_t sent_ns;
    uint64_t deadline_ns;
    struct rbi_pidf peer;
    uint64_t link_life;            /* of the link that it went over */
    struct rbi_inflight *inflight; /* where it counts; NULL: nowhere */
    uint64_t generation;           /* 1 to RBI_CALL_GENERATION_MAX */
    uint32_t heap_position;
    uint32_t next_free;
    uint32_t outcome; /* slot of the instance in which its end is counted */
    uint8_t held;     /* enum rbi_call_held */
    uint8_t probe;    /* number of the probe of a shielded instance that it is, or 0 (probe.h) */
};

#define RBI_CALL_GENERATION_MAX ((UINT64_C(1) << 44) - 1)

/** Its receiver is gone, and it waits for another (redeliver.c). */
enum rbi_call_held {
    RBI_CALL_SENT = 0,
    RBI_CALL_HELD_UNSEEN = 1,
    RBI_CALL_HELD_SEEN = 2, /* maybe */
};

struct rbi_calls {
    struct rbi_call *slots;
    uint32_t slot_count;
    uint32_t free_head;
    uint32_t *heap; /* slot numbers, least deadline first */
    uint32_t heap_count;
};

struct rbi_attributes;
struct rbi_outgoing;
/**
 * Sends a request. As ringbus_request()
 * @param said  what @p out says of it, to be completed by the choice
 */
int rbi_request_send(struct ringbus *bus,
                     const struct ringbus_addr *to,
                     struct rbi_outgoing *out,
                     struct rbi_attributes *said,
                     uint64_t timeout_ns,
                     ringbus_reply_fn on_reply,
                     void *context);
/** Answers one that came. As ringbus_reply() */
int rbi_answer(struct ringbus *bus, const struct ringbus_reply_to *to, struct rbi_outgoing *out);

void rbi_calls_init(struct rbi_calls *calls);
void rbi_calls_deinit(struct rbi_calls *calls);
uint64_t rbi_calls_deadline_ns(const struct rbi_calls *calls);
/** A request is about to go over that link. @param id  its correlation. 0; RINGBUS_E_NO_MEMORY */
int rbi_calls_start(struct ringbus *bus,
                    const struct rbi_end *end,
                    uint64_t timeout_ns,
                    ringbus_reply_fn on_reply,
                    void *context,
                    uint64_t *id);
/** It could not be sent, for that error: nobody is told. */
void rbi_calls_forget(struct ringbus *bus, uint64_t id, int error);
/** A reply or error came. */
void rbi_calls_reply(struct ringbus *bus,
                     struct rbi_end *end,
                     const struct rbi_record *record,
                     const struct ringbus_message *message);
/** Ends the calls whose time is over. */
void rbi_calls_expire(struct ringbus *bus, uint64_t now_ns);
/** Ends the call of a request that its receiver, who is gone, did not consume. */
void rbi_calls_given_back(struct ringbus *bus,
                          const struct rbi_end *end,
                          uint64_t tag,
                          bool maybe_seen);
/** The request waits for another receiver. */
void rbi_calls_hold(struct ringbus *bus, const struct rbi_end *end, uint64_t tag, bool maybe_seen);
/** Correlation under which a request goes on; 0: nobody waits for its reply any more. */
uint64_t rbi_calls_next_tag(struct ringbus *bus, const struct rbi_end *end, uint64_t tag);
/** It has gone on under that correlation. */
void rbi_calls_moved(struct ringbus *bus, uint64_t tag, const struct rbi_end *to);
/** Ends all calls over a link that has ended, but those that are held. */
void rbi_calls_peer_gone(struct ringbus *bus, const struct rbi_end *end, int error);
/** Nothing of it waits for another receiver any more: ends those as well that were held. */
void rbi_calls_over(struct ringbus *bus, const struct rbi_end *end, int error);
void rbi_calls_end_all(struct ringbus *bus, int error);

#endif
