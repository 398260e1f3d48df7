/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_ATTRIBUTES_H
#define RINGBUS_LIBCLIENT_ATTRIBUTES_H
/*
 * libclient/attributes.h - what is said of a message beside key and payload: from the options of
 * a sender, through its record, to the view of its receiver; and what nested messages inherit.
 */
#include "bus/record_attributes.h"

#include <ringbus/ringbus.h>

struct rbi_end;
struct rbi_outgoing;
struct rbi_view;

/** By what one instance of several is chosen, beside what the attributes say. */
struct rbi_choosing {
    bool keyed;
    bool spread; /* as in struct rbi_pick */
    uint64_t key;
    const int32_t *tried; /* instances that are not to be chosen again */
    unsigned tried_count;
};

/** Longest timeout of a request. */
#define RBI_TIMEOUT_MS_MAX 3600000U

/**
 * Copies the options of a caller, of whichever version, and checks their ranges.
 * @param all  it is for RINGBUS_ALL: with the flags of that (reach.h)
 * @retval 0; RINGBUS_E_ARGUMENT (noted)
 */
int rbi_options_take(struct ringbus *bus,
                     const struct ringbus_message_options *given,
                     bool all,
                     struct ringbus_message_options *out);
/** Sends @p out with what the options of a caller say of it. As ringbus_send_with() */
int rbi_attributes_say(struct ringbus *bus,
                       const struct ringbus_addr *to,
                       const struct ringbus_message_options *options,
                       struct rbi_outgoing *out);
/**
 * What options say of a message that is sent now, and what it inherits.
 * @retval 0; RINGBUS_E_TIMEOUT (noted) the inherited deadline is over
 */
int rbi_attributes_of(struct ringbus *bus,
                      const struct ringbus_message_options *options,
                      uint64_t now_ns,
                      struct rbi_attributes *out);
/** Tag, trace and priority that are open, and an earlier deadline, of the message at hand. */
void rbi_attributes_inherit(const struct rbi_attributes *from, struct rbi_attributes *to);
/** As the application sees them; valid as long as @p from. */
void rbi_attributes_show(const struct rbi_attributes *from, struct ringbus_attributes *out);

/** What they, and a key, ask of whoever is chosen. */
struct rbi_pick rbi_attributes_pick(const struct rbi_attributes *attributes,
                                    const struct rbi_choosing *by);
/**
 * Finds who is to get a message with them: of RINGBUS_ANY by all that they say of it; they note
 * by which epoch, and whether the key's owner was passed over. 0 or a public error (noted)
 */
int rbi_attributes_resolve(struct ringbus *bus,
                           const struct ringbus_addr *to,
                           const struct rbi_choosing *by,
                           struct rbi_attributes *attributes,
                           struct rbi_end **out);
/** Sends one message with them. @return as ringbus_send() */
int rbi_attributes_send(struct ringbus *bus,
                        const struct ringbus_addr *to,
                        struct rbi_outgoing *out,
                        struct rbi_attributes *attributes);

/** Takes them from a record with RBI_RECORD_ATTRIBUTES into its view. Untrusted. 0; -EPROTO */
int rbi_attributes_view(const struct rbi_record *record, struct rbi_view *view);
/** Whether the deadline of a viewed message is over. */
bool rbi_attributes_expired(const struct ringbus *bus, const struct rbi_view *view);

/** Why the receiver of a request says that it did not handle it; 0: it does not say so. */
int rbi_refusal_of(const struct ringbus *bus, const struct ringbus_message *answer);
/** And whether a handler may have had it all the same, behind the broker that says so. */
bool rbi_refusal_unsure(const struct ringbus *bus, const struct ringbus_message *answer);
uint32_t rbi_refusal_retry_ms(const struct ringbus *bus, const struct ringbus_message *answer);
/** Says so. As ringbus_reply_refused(). */
int rbi_reply_refused(struct ringbus *bus,
                      const struct ringbus_reply_to *to,
                      int error,
                      uint32_t retry_after_ms);

#endif
