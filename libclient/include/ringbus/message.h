/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_MESSAGE_H
#define RINGBUS_MESSAGE_H
/* ringbus/message.h - a message, as it is received, and what may be said of one. */
#include <ringbus/address.h>
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of send, claim and request. */
#define RINGBUS_KEY  0x1U /**< the key argument counts (0 is a key like any other) */
#define RINGBUS_MORE 0x2U /**< more follows at once: the wake-up waits for the last one */
#define RINGBUS_IDEMPOTENT                                                                         \
    0x4U /**< may be handled twice: on_down sends it on even when its receiver may have seen it */
/** In options only: nothing is taken over from the message whose callback runs. */
#define RINGBUS_NO_INHERIT 0x8U
/** With RINGBUS_ALL only: not to instances that are shielded, in panic neither. */
#define RINGBUS_HEALTHY_ONLY 0x10U
/**
 * With RINGBUS_ALL only: to the sender's set, as a strict set stage would have it; to everyone when
 * no instance is in a set of that name, or the sender is in none.
 */
#define RINGBUS_SAME_SET 0x20U
/** With RINGBUS_ALL only: to this endpoint as well, where it is one of the cluster. */
#define RINGBUS_WITH_SELF 0x40U

/** Most parts of a message. */
#define RINGBUS_PARTS_MAX 16

/** Part of a message, for ringbus_sendv() and in a message view. */
struct ringbus_part {
    const void *data; /**< may be NULL when size is 0 */
    size_t size;
};

enum ringbus_kind {
    RINGBUS_KIND_ONEWAY = 1,
    RINGBUS_KIND_REQUEST = 2,
    RINGBUS_KIND_REPLY = 3,
};

/** Names a request that waits for its answer; copy it to answer after the callback. */
struct ringbus_reply_to {
    struct ringbus_addr peer;
    uint64_t id; /**< 0 in messages that are not requests */
};

/** Flags of a message view. */
#define RINGBUS_MESSAGE_KEY       0x1U /**< key is set */
#define RINGBUS_MESSAGE_BROADCAST 0x2U /**< it was sent to all instances */
#define RINGBUS_MESSAGE_REFERENCED                                                                 \
    0x4U /**< lies in the sender's pool: ringbus_keep() copies nothing */
#define RINGBUS_MESSAGE_IDEMPOTENT  0x8U  /**< its sender said RINGBUS_IDEMPOTENT */
#define RINGBUS_MESSAGE_ANY         0x10U /**< sent to RINGBUS_ANY: this instance was chosen */
#define RINGBUS_MESSAGE_REDELIVERED 0x20U /**< an instance that ended may have handled it before */
/** A reply that no instance gave, but a mock or a local callback (ringbus_degrade()). */
#define RINGBUS_MESSAGE_MOCKED 0x40U
/**
 * Its key is another instance's, whom the sender passed over: shielded (balance.on_shield), too
 * busy (hash_bound), or out of reach (`divert` of the target).
 */
#define RINGBUS_MESSAGE_DIVERTED 0x80U

/** Labels of a message, for routing by parameter. */
#define RINGBUS_LABELS_MAX 4
/** Longest tag, in bytes without the terminator. */
#define RINGBUS_TAG_MAX 63
/** Highest priority; 0 is the lowest, and that of messages without attributes. */
#define RINGBUS_PRIORITY_MAX 3

/** What a sender said of a message beside key and payload (struct ringbus_message_options). */
struct ringbus_attributes {
    const char *tag; /**< "" when none */
    uint32_t method; /**< 0 when none */
    uint16_t codec;  /**< how the payload is written: the application's numbers, 0 unsaid */
    uint16_t schema; /**< and in which version of its schema */
    uint32_t labels[RINGBUS_LABELS_MAX];
    unsigned priority;          /**< 0 to RINGBUS_PRIORITY_MAX */
    uint64_t deadline_ns;       /**< CLOCK_MONOTONIC: who has not begun by then leaves it; 0 none */
    uint64_t sent_ns;           /**< CLOCK_MONOTONIC when it was sent; 0 unsaid */
    unsigned char trace_id[16]; /**< all 0 when none */
    uint64_t span_id;
    struct ringbus_addr dest; /**< cluster 0: its receiver is to handle it; see the options */
};

/** A received message: lent for the time of the callback. */
struct ringbus_message {
    struct ringbus_addr
        from;              /**< stamped from the link, with incarnation; never the sender's word */
    const char *from_path; /**< readable path of the sender's instance */
    enum ringbus_kind kind;
    unsigned flags;
    uint64_t key; /**< valid with RINGBUS_MESSAGE_KEY */
    const void *data;
    size_t size;
    unsigned part_count; /**< 1 for messages that were not sent in parts */
    const struct ringbus_part *parts;
    struct ringbus_reply_to reply_to;
    /** NULL: its sender said nothing. Of a reply: what its request said. */
    const struct ringbus_attributes *attributes;
};

/** What may be said of a message. Start from zero; a zero field says nothing. */
struct ringbus_message_options {
    size_t struct_size; /**< sizeof(struct ringbus_message_options) */
    unsigned flags;     /**< as of ringbus_send(), and RINGBUS_NO_INHERIT */
    uint64_t key;       /**< counts with RINGBUS_KEY */
    const char *tag;    /**< 1 to RINGBUS_TAG_MAX visible bytes of ASCII, no comma; "" none */
    uint32_t method;    /**< a number of the application's */
    uint32_t labels[RINGBUS_LABELS_MAX];
    unsigned priority;       /**< 0 to RINGBUS_PRIORITY_MAX */
    uint32_t timeout_ms;     /**< 1 to 3600000. Of a request, over all tries; 0: as inherited. Of a
                            message: not handled later, 0 no limit */
    uint32_t try_timeout_ms; /**< of a request, for each try; 0: all the time there is */
    unsigned char trace_id[16];
    uint64_t span_id;
    uint16_t codec;
    uint16_t schema;
    /**
     * To a broker: whom it is to bring it to, one instance, RINGBUS_ANY or RINGBUS_ALL of a cluster
     * that it serves; cluster 0: to whom the broker's address stands for (docs/guide/brokers.md).
     */
    struct ringbus_addr dest;
    /**
     * 1: each bridge that the message passes on its way to another host, and its reply on the way
     * back, tells this host where it came by: `ringbusctl call --trace` shows that. It needs a
     * trace_id. Nested messages do not inherit it. For a message now and then: each bridge tells
     * of 100 a second.
     */
    unsigned follow;
};

typedef void (*ringbus_message_fn)(struct ringbus *bus,
                                   const struct ringbus_message *message,
                                   void *user);

#ifdef __cplusplus
}
#endif

#endif
