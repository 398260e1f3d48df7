/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_NODES_H
#define RINGBUS_LIBCLIENT_NODES_H
/*
 * libclient/nodes.h - the node tree of the daemon, as a handle sees it: questions (node_ask.c) that
 * wait for their answers (nodes.c), ephemeral nodes of its own that a new daemon is told of
 * (node_own.c), and what the application was told of below its watched prefixes (node_watch.c).
 *
 * Watching is level-triggered: after each loss of the daemon or of events all that is watched is
 * scanned, in pages that we ask for, so that nothing can overflow; what the scan did not name and
 * was known before is gone. Events and pages come in one order, so the last word is the truth.
 */
#include "bus/node_path.h"
#include "bus/record.h"
#include "bus/wire.h"

#include <ringbus/ringbus.h>

struct ringbus;

/** Questions under way, at most. */
#define RBI_NODE_CALLS_MAX 256U
/** Names of children that one answer may have. */
#define RBI_NODE_CHILDREN_MAX 1024U
#define RBI_NODE_ANSWER_NS    (UINT64_C(10000) * 1000 * 1000)

/** An ephemeral node of ours. */
struct rbi_node_own {
    struct rbi_node_own *next;
    struct rbi_text path;
    struct rbi_data value;
};

/** A question. */
struct rbi_node_call {
    struct rbi_node_call *next;
    ringbus_node_fn on_result; /* NULL: our own */
    void *context;
    uint32_t serial; /* 0: answered */
    uint64_t due_ns;
    enum rbi_node_what what;
    struct rbi_node_own *own; /* CREATE of an ephemeral one: what it will be; owned until then */
    bool again;
    int error;
    uint64_t revision;
    struct rbi_text path;
    struct rbi_text text;              /* sentence of a failure */
    struct rbi_wire_node_state *state; /* GET: the first page; owned */
    char *names;                       /* GET: of children, each terminated; owned */
    size_t names_bytes;
    unsigned name_count;
    bool more;
};

/** A node that the application was told of. */
struct rbi_node_sight {
    uint64_t revision;
    uint64_t daemon; /* incarnation of the one that told of it last */
    bool ephemeral;
    bool seen; /* in this scan, or by an event since it began */
    char path[];
};

struct rbi_nodes {
    struct rbi_node_call *calls; /* in the order asked */
    unsigned call_count;
    uint64_t due_ns;
    struct rbi_node_own *own;
    struct rbi_node_sight **sights; /* ascending path */
    unsigned sight_count;
    unsigned sight_room;
    bool scanning;
    bool scan_drops; /* at its end, what was not seen is gone */
    unsigned scan_prefix;
    uint32_t scan_serial;
    bool missed; /* there was no memory for one: a scan is due */
};

/** What a queued event says of a node. From malloc. */
struct rbi_node_news {
    uint64_t revision;
    size_t size;
    unsigned char value[];
};

/* ---- nodes.c --------------------------------------------------------------------------- */

/** An answer. @return whether it was to a question about nodes */
bool rbi_nodes_answer(struct ringbus *bus,
                      uint32_t reply_to,
                      uint64_t revision,
                      const struct rbi_wire_error *error);
void rbi_nodes_state(struct ringbus *bus,
                     uint32_t reply_to,
                     const struct rbi_wire_node_state *body);
/** No answer will come any more. */
void rbi_nodes_lost(struct ringbus *bus);
/** Calls back for a question that has ended, and frees it. From ringbus_poll() only. */
void rbi_node_call_end(struct ringbus *bus, struct rbi_node_call *call);
/** Ends all at once, calling back. */
void rbi_nodes_end_all(struct ringbus *bus, int error);
/** @return when it is to be called next */
uint64_t rbi_nodes_tick(struct ringbus *bus, uint64_t now_ns);
/** There was no memory for what has come: all is scanned before long. */
RBI_COLD void rbi_nodes_missed(struct ringbus *bus);
void rbi_nodes_close(struct ringbus *bus);
/** It was sent: its answer is waited for. */
void rbi_node_call_asked(struct ringbus *bus, struct rbi_node_call *call);
void rbi_node_call_free(struct rbi_node_call *call);

/* ---- node_ask.c ------------------------------------------------------------------------ */

/** Sends a question, or the one for its next page. @return its serial; 0: the daemon is lost */
uint32_t rbi_node_call_send(struct ringbus *bus,
                            const struct rbi_node_call *call,
                            const struct rbi_wire_node *more);
/** Asks again for an ephemeral node that an earlier daemon had from us. */
void rbi_nodes_ask_again(struct ringbus *bus, const struct rbi_node_own *own);
/** 0; RINGBUS_E_PATH, RINGBUS_E_ARGUMENT (noted) */
int rbi_nodes_check_path(struct ringbus *bus, const char *path, struct rbi_node_path *parsed);

/* ---- node_own.c ------------------------------------------------------------------------ */

struct rbi_node_own *rbi_node_own_find(struct ringbus *bus, const struct rbi_text *path);
/** It has ended: forgets it. @return whether it was ours */
bool rbi_node_own_drop(struct ringbus *bus, const struct rbi_text *path);
/** The daemon is back. @param same_life  it knows us as who we were */
void rbi_nodes_returned(struct ringbus *bus, bool same_life);

/* ---- node_watch.c ---------------------------------------------------------------------- */

void rbi_nodes_event(struct ringbus *bus, const struct rbi_wire_node_event *event);
/** Looks at all that is watched; what was known and is not there any more is reported. */
void rbi_nodes_scan(struct ringbus *bus);
/** A prefix is watched from now on: the last one. */
void rbi_nodes_watched(struct ringbus *bus);
/** One is not any more. */
void rbi_nodes_unwatched(struct ringbus *bus);
/** A page of a scan has ended; NULL: it was refused. @return whether it was the answer to that */
bool rbi_nodes_scanned(struct ringbus *bus,
                       uint32_t reply_to,
                       const struct rbi_wire_node_state *body);
/** Reports the end of a node. */
void rbi_nodes_emit_removed(
    struct ringbus *bus, const char *path, uint64_t revision, enum rbi_reason reason, int error);

#endif
