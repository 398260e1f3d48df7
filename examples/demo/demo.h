/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_EXAMPLES_DEMO_H
#define RINGBUS_EXAMPLES_DEMO_H
/*
 * demo.h - what gate, lobby and battle agree on.
 *
 * A request with a key is work: its content goes gate -> lobby -> battle, the answer, the
 * XXH3-128 of the content in canonical form, comes back the same way. A request without a
 * key asks the instance for its figures. A message without a request is an announcement.
 */
#include <ringbus/ringbus.h>
#include <stddef.h>
#include <stdint.h>

#define DEMO_GATE   "/Demo/cn/pc/w1/g1/Gate/1"
#define DEMO_LOBBY  "/Demo/cn/pc/w1/g1/Lobby"
#define DEMO_BATTLE "/Demo/cn/pc/w1/g1/Battle"

#define DEMO_HASH_BYTES 16U
/* Requests that the gate has under way; nobody can owe more answers than this. */
#define DEMO_WINDOW     64U
#define DEMO_TIMEOUT_MS 10000U
/* Files above this size are skipped. */
#define DEMO_FILE_MAX ((size_t)16 << 20)

/* Answer to a request without a key. */
struct demo_figures {
    uint64_t handled; /* requests answered or passed on */
    uint64_t bytes;   /* of their contents */
    uint64_t announcements;
    uint64_t failures;
};

/* An answer that found no room and is tried again: one for each request at most. */
struct demo_owed {
    struct ringbus_reply_to to;
    unsigned char data[sizeof(struct demo_figures)];
    size_t size; /* 0: a failure */
};

/* Room for what is owed: work of every gate request, and a question for figures. */
#define DEMO_OWED_MAX (DEMO_WINDOW * 4)

struct demo_owing {
    struct demo_owed items[DEMO_OWED_MAX];
    unsigned count;
};

/** Answers now, or later by demo_pay(). @p size 0 answers with a failure. */
void demo_answer(struct ringbus *bus,
                 struct demo_owing *owing,
                 const struct ringbus_reply_to *to,
                 const void *data,
                 size_t size);
/** Tries again what could not be answered for want of room. */
void demo_pay(struct ringbus *bus, struct demo_owing *owing);

/** Pool for payloads of up to @p largest bytes. */
void demo_pool(struct ringbus_options *options, size_t largest);

/** SIGINT and SIGTERM set a flag and wake the bus. */
void demo_signals(struct ringbus *bus);
int demo_stopping(void);
/**
 * Leaves in order once a signal has come; to be asked in each turn of the loop.
 * @param owed  answers that are still to be given
 * @return 1 when there is nothing left to do, or it takes longer than 5 s
 */
int demo_left(struct ringbus *bus, unsigned owed);

/** Reads "--name NUMBER" from the command line. @return the number, or @p otherwise */
uint64_t demo_number(int argc, char **argv, const char *name, uint64_t otherwise);

#endif
