/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_EXAMPLES_GATE_H
#define RINGBUS_EXAMPLES_GATE_H
/* gate.h - what the gate knows (gate.c), and how it is shown (show.c). */
#include "demo.h"
#include "files.h"
#include "histogram.h"

#define GATE_PEERS_MAX 16U

/* An instance that the gate is linked with. */
struct peer {
    struct ringbus_addr addr;
    char name[64]; /* its last two path elements */
    int ready;
    int asked; /* a question for figures is under way */
    struct demo_figures figures;
};

/* A request that is under way. */
struct slot {
    struct slot *next; /* in the free list */
    struct file *file;
    unsigned char hash[DEMO_HASH_BYTES];
    size_t size;
};

struct gate {
    struct ringbus *bus;
    struct ringbus_addr lobby;
    struct ringbus_addr battle;
    struct files files;
    size_t next;          /* file to ask for */
    size_t answered;      /* files answered at least once */
    uint64_t bytes;       /* of those */
    uint64_t replies;     /* right answers, over all rounds */
    uint64_t reply_bytes; /* contents of those */
    uint64_t messages;    /* on the bus: four for each answer, and the rest */
    uint64_t mismatches;
    uint64_t failures;
    uint64_t announced; /* times that an announcement was delivered */
    uint64_t begin_ns;
    uint64_t seconds;
    unsigned in_flight;
    struct slot slots[DEMO_WINDOW];
    struct slot *free;
    struct peer peers[GATE_PEERS_MAX];
    unsigned peer_count;
    struct histogram round_trip;
    const char *input;
    int json;
};

uint64_t gate_now_ns(void);
/** The live table: redrawn on a terminal, a line otherwise, an object with --json. */
void gate_show(const struct gate *gate);
/** The last line. */
void gate_show_end(const struct gate *gate);

#endif
