/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SOAK_LEDGER_H
#define RINGBUS_TESTS_SOAK_LEDGER_H
/*
 * soak/ledger.h - where the processes of the soak write down what became of each message, in
 * memory that outlives them. A life is one process of one slot, from its start to its end;
 * each message that a life sent has a fate, marked by whoever knows: its receivers, and
 * the sender when it comes back.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SOAK_SLOTS_MAX 32U    /* a bit each in a fate */
#define SOAK_MESSAGES  40000U /* that one life may send; then it leaves and a new one comes */
#define SOAK_POLL_MAX  256U   /* messages that a poll may take */
#define SOAK_DOWNS     4096U  /* ends of links that one life may see; then the same */

/*
 * DATED: with attributes, and perhaps a deadline. ANY: whoever the library picks, and another one
 * if that one ends. ASKED: a request to any, asked again of others as its target has it.
 */
enum soak_kind {
    SOAK_ONEWAY = 1,
    SOAK_REQUEST = 2,
    SOAK_DATED = 3,
    SOAK_BROADCAST = 4,
    SOAK_ANY = 5,
    SOAK_ASKED = 6,
};

/** What became of one message. */
struct soak_fate {
    uint32_t to_incarnation; /* of its one receiver; written before it is sent */
    uint8_t to_slot;
    uint8_t kind;      /* enum soak_kind */
    uint8_t receivers; /* that took it, as send said; broadcasts: any number */
    uint8_t twice;     /* idempotent: it may be delivered once more when it was maybe seen */
    uint8_t expires;   /* who comes to it too late drops it */
    uint8_t mocked;    /* answered by nobody */
    uint8_t answers;   /* requests: calls of the reply callback */
    uint8_t timed_out; /* requests: the time was over while it was on its way */
    /* Masks of slots. */
    _Atomic uint32_t delivered; /* its handler began */
    _Atomic uint32_t not_seen;  /* given back for certain */
    _Atomic uint32_t maybe;     /* given back, perhaps seen */
};

enum soak_end {
    SOAK_LIVING = 0,
    SOAK_KILLED = 1, /* by us, or it could not drain in time */
    SOAK_LEFT = 2,   /* drained and closed: nothing may be missing */
};

/** The end of a link, as one of its ends saw it. */
struct soak_down {
    uint16_t slot;
    uint16_t reason; /* enum ringbus_reason */
    uint32_t incarnation;
};

/** One process. Written by it alone, but for what the conductor names. */
struct soak_life {
    uint32_t slot;                  /* conductor */
    uint32_t fates;                 /* conductor: which of the fate tables is its own */
    _Atomic uint32_t end;           /* enum soak_end; KILLED by the conductor */
    _Atomic uint32_t settled;       /* conductor: audited, its fates are free */
    _Atomic uint32_t incarnation;   /* once it is known */
    _Atomic uint32_t accepted;      /* messages 1..accepted were sent */
    _Atomic uint64_t refused;       /* sends that were refused */
    _Atomic uint64_t declined;      /* requests that were refused by who was asked, or a limit */
    _Atomic uint64_t received;      /* messages handled */
    _Atomic uint64_t sheds;         /* requests that it refused for having too much to do */
    _Atomic uint64_t sheds_told;    /* senders: of those, plain ones whose refusal they heard */
    _Atomic uint64_t sheds_unheard; /* conductor: and those that nobody can have heard */
    _Atomic uint32_t peers;         /* links that are READY now */
    _Atomic uint32_t quiet;         /* phase QUIET: has said its last to everybody, holds nothing */
    _Atomic uint32_t fds;           /* then: open descriptors */
    _Atomic uint32_t maps;          /* then: mappings of the bus */
    _Atomic uint32_t doubt[SOAK_SLOTS_MAX]; /* the last message that came back as maybe seen */
    _Atomic uint32_t up[SOAK_SLOTS_MAX];    /* incarnation that a link is READY with; 0: none */
    _Atomic uint32_t ready_with[SOAK_SLOTS_MAX]; /* the last incarnation that was READY there */
    _Atomic uint32_t readies[SOAK_SLOTS_MAX];    /* how often that one was */
    _Atomic uint32_t down_count;
    struct soak_down downs[SOAK_DOWNS];
};

enum soak_phase {
    SOAK_CHAOS = 0,
    SOAK_QUIET = 1, /* nothing new but a last word to each peer */
};

struct soak_ledger {
    _Atomic uint32_t phase;
    _Atomic uint32_t violations;
    bool sheds; /* receivers refuse requests when they have too much to do, also plain ones */
    uint32_t slots;
    uint32_t lives_max;
    uint32_t tables;
    struct soak_life *lives; /* [lives_max] */
    struct soak_fate *fates; /* [tables][SOAK_MESSAGES] */
};

/** Whether it is for whoever the library picks, one or another. */
bool soak_goes_on(const struct soak_fate *fate);
/** Maps a ledger that forked children share. Ends the program when there is no memory. */
struct soak_ledger *soak_ledger_new(uint32_t slots, uint32_t lives_max, uint32_t tables);
/** Fate of message @p seq (1..SOAK_MESSAGES) of a life. */
struct soak_fate *
soak_fate(const struct soak_ledger *ledger, const struct soak_life *life, uint32_t seq);
/** The life of a slot with that incarnation; NULL: it never came to know its own. */
struct soak_life *
soak_life_of(const struct soak_ledger *ledger, uint32_t slot, uint32_t incarnation);
/** The last end of a link with that life of a slot which @p life saw; NULL: none. */
const struct soak_down *
soak_down_of(const struct soak_life *life, uint32_t slot, uint32_t incarnation);
/** How often @p life saw a link with that life of a slot end. */
uint32_t soak_down_times(const struct soak_life *life, uint32_t slot, uint32_t incarnation);
void soak_down_add(struct soak_life *life, uint32_t slot, uint32_t incarnation, unsigned reason);

/** Something that must not be: says what, and the soak fails. */
void soak_violation(struct soak_ledger *ledger, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
