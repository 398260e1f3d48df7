/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_MESSAGE_H
#define RINGBUS_TESTS_CRASH_MESSAGE_H
/*
 * What partner and victim say to each other: numbered within a round and from each side,
 * with a payload that follows from round and number, so that a torn, stale or doubled one
 * shows. And the words in shared memory that outlive the victim.
 */
#include "support/bus.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_SMALL      48U   /* in the lane, few instructions */
#define MESSAGE_LARGE      1024U /* in the lane */
#define MESSAGE_REFERENCED 1500U /* in a chunk: over MESSAGE_INLINE_MAX */
#define MESSAGE_INLINE_MAX 1024U
#define MESSAGE_MAX        1500U

struct message_head {
    uint32_t round;
    uint32_t number;
};

/** Fills @p size bytes, sizeof(struct message_head) at least. */
void message_write(void *out, size_t size, uint32_t round, uint32_t number);
/** Whether it is whole; @p head is set. */
bool message_read(const void *data, size_t size, struct message_head *head);

/** Words of bus_shared that a victim writes: they tell what it had done when it was killed. */
enum message_word {
    WORD_BEGUN,   /* sends that were called, to each partner */
    WORD_SENT,    /* of them, those that have returned with success */
    WORD_READY,   /* links that became READY */
    WORD_REPLIED, /* results of requests */
    WORD_KEPT,    /* payloads kept now */
    WORD_DOWN,    /* DOWN events; pause only, as those below */
    WORD_REASON,  /* of the last */
    WORD_REFUSED, /* error of the first send after it, positive */
    WORD_BACK,    /* the message that it sent when it was READY again, + 1 */
    WORD_DONE,    /* it has left in order */
    WORD_IN_USE,  /* times that its address was refused to its next life */
    WORD_SEEN,    /* + number: the handler of this message has run */
};
#define MESSAGE_SEEN_MAX 64U

static inline void word_set(enum message_word word, uint64_t value)
{
    atomic_store(&bus_shared[word], value);
}
static inline uint64_t word_get(enum message_word word)
{
    return atomic_load(&bus_shared[word]);
}
static inline bool message_seen(uint32_t number)
{
    return atomic_load(&bus_shared[WORD_SEEN + number]) != 0;
}

#endif
