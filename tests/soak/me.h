/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SOAK_ME_H
#define RINGBUS_TESTS_SOAK_ME_H
/*
 * soak/me.h - what the parts of a process of the soak share: itself, and what its messages look
 * like. receive.c checks what comes, offer.c sends, actor.c lives.
 */
#include "ledger.h"
#include "support/bus.h"

#define MAGIC      0x6b616f73U
#define SIZE_MAX_  9000U /* of a message; over INLINE it goes by reference */
#define INLINE_MAX 1024U
#define KEPT_MAX   8U
#define LATE_MAX   16U

/** Head of each message; bytes of a pattern follow, which the sum covers. */
struct head {
    uint32_t magic;
    uint32_t life; /* index of the sender's */
    uint32_t seq;
    uint32_t incarnation;
    uint32_t size; /* of the whole message */
    uint32_t reserved;
    uint64_t sum;
};

struct kept {
    struct ringbus_kept *message;
    uint64_t sum;
};

/** The process. */
struct soak_me {
    struct soak_ledger *ledger;
    struct soak_life *life;
    uint32_t index;
    struct ringbus *bus;
    struct ringbus_addr self;
    uint64_t random;
    struct ringbus_addr peers[SOAK_SLOTS_MAX]; /* by slot; instance 0: no link */
    struct {
        uint32_t life;
        uint32_t seq;
    } last[SOAK_SLOTS_MAX]; /* heard of that slot */
    struct kept kept[KEPT_MAX];
    struct ringbus_reply_to late[LATE_MAX]; /* requests to be answered after their handler */
    uint32_t late_seq[LATE_MAX];
    unsigned late_count;
    bool forks;         /* its requests with attributes are asked of two at once */
    unsigned last_word; /* phase QUIET: slots that have had theirs */
};
extern struct soak_me me;

static inline uint32_t any_below(uint32_t bound)
{
    return (uint32_t)(bus_random(&me.random) % bound);
}

/* ---- actor.c --------------------------------------------------------------------------------- */

uint64_t soak_sum_of(const void *message, size_t size);
/** Writes the next message, of @p size bytes. */
void soak_compose(unsigned char *message, uint32_t size, uint32_t seq);
/** Whether it is a whole message of the soak, as it was written. */
bool soak_read_head(const void *data, size_t size, struct head *out);

/* ---- receive.c ------------------------------------------------------------------------------- */

void soak_on_message(struct ringbus *bus, const struct ringbus_message *message, void *user);
void soak_on_event(struct ringbus *bus, const struct ringbus_event *event, void *user);
void soak_on_result(struct ringbus *bus, const struct ringbus_result *result, void *context);
void soak_release_all(void);
void soak_answer_late(void);

/* ---- offer.c --------------------------------------------------------------------------------- */

/** Offers one message, in one of the ways of sending. @return whether it was taken */
bool soak_offer(const struct ringbus_addr *to, enum soak_kind kind, unsigned way, uint32_t size);
void soak_offer_any(void);

#endif
