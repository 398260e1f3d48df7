/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_GATE_H
#define RINGBUS_LIBCLIENT_GATE_H
/*
 * libclient/gate.h - what a receiver refuses of what has come: by the limits of its cluster that
 * are kept where messages are read, link by link, and because it has more to do than it can.
 *
 * A link that is gated is never `flowing`, so that each of its messages is looked at; all others
 * cost what they did. Gated is one whose caller a limit of scope `receiver` concerns, and every one
 * while this endpoint is busy or has not quite got over it.
 *
 * A request over its limit is answered LIMITED. Anything else stays where it is until it is due:
 * its sender finds the lane full in the end, and nobody else does.
 *
 * How long messages wait is what those with attributes say, less the time between two polls, when
 * this process did something else, or was not run; a poll that leaves nothing behind in the lanes
 * shows that nothing piles up. Requests alone are shed, and told so.
 */
#include "bus/limit.h"
#include "bus/sojourn.h"

/** Messages said it in the last second; and since the lanes were empty. */
#define RBI_MEASURED      0x1U
#define RBI_MEASURED_SAID 0x2U

struct rbi_end;
struct rbi_record;
struct ringbus;

/** Limits of one caller, where its messages are read. */
struct rbi_gate_limits {
    struct rbi_limits limits;
    struct rbi_limit_words words;
};

/** Of a handle, by the policy of its own cluster. */
struct rbi_gate {
    uint64_t epoch;            /* of the snapshot that was looked at */
    struct rbi_policy *policy; /* NULL: the defaults, which limit nothing */
    struct rbi_sojourn sojourn;
    uint64_t waited_ns; /* of the last message that said it */
    uint64_t said_ns;   /* when that was */
    uint64_t left_ns;   /* end of the last poll, while measured; 0: none was */
    uint64_t due_ns;    /* when the next of what is held may be read; RBI_NEVER */
    bool sheds;         /* links are gated for it */
    bool missed;        /* a link has no limits yet, for want of memory */
};

/** What is to be done with a message of a gated link. */
struct rbi_gate_verdict {
    int error; /* 0; RINGBUS_E_LIMITED, RINGBUS_E_SHED */
    uint32_t retry_ms;
    bool hold; /* it stays where it is */
};

void rbi_gate_init(struct rbi_gate *gate);
void rbi_gate_deinit(struct rbi_gate *gate);
/** The directory may say something else of our own cluster. */
void rbi_gate_look(struct ringbus *bus);
/** A link is there: its limits, if one concerns the peer. */
void rbi_gate_attach(struct ringbus *bus, struct rbi_end *end);
/** Asks for a message of a gated link, and takes it where it passes. Untrusted record. */
struct rbi_gate_verdict
rbi_gate_ask(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);
/** A message that says when it was sent has been taken from its lane. */
void rbi_gate_waited(struct ringbus *bus, uint64_t sent_ns);
/** A poll begins, of a handle that is measured. */
void rbi_gate_enter(struct ringbus *bus);
/** It has taken something, or there is something to judge. @param whole  from every link */
void rbi_gate_leave(struct ringbus *bus, bool whole);
/** What comes next of this link stays in its lane; ringbus_wait() does not return for it before. */
void rbi_gate_hold(struct ringbus *bus, struct rbi_end *end, uint64_t until_ns);
/** Lets go of what is due. @return when to look again */
uint64_t rbi_gate_tick(struct ringbus *bus, uint64_t now_ns);

#endif
