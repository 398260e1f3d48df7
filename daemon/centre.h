/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CENTRE_H
#define RINGBUS_DAEMON_CENTRE_H
/*
 * daemon/centre.h - the configuration centre: changes of what holds while the daemon runs. Each is
 * checked as a whole, becomes a version with who made it and why, is written down, and holds from
 * then on, over restarts as well. A version is the text that was applied and the single changes
 * above it; the file of the daemon lies below both and is never changed.
 */
#include "daemon/centre_store.h"
#include "daemon/governance.h"
#include "daemon/list.h"

struct rbi_daemon;
struct rbi_peer;

struct rbi_centre_change;

struct rbi_centre {
    char prefix[RBI_STORE_PREFIX_MAX + 1];
    uint64_t current; /* number of the version that holds; 0: only the file does */
    uint64_t last;    /* highest number that was ever given */
    struct rbi_version versions[RBI_VERSIONS_KEPT]; /* at their number modulo */
    struct rbi_centre_change *change;               /* being written down; NULL: none is */
    struct rbi_list turns;                          /* requests that wait for it (centre_turn.h) */
    bool taking; /* the request that is handled is the next of them */
};

/** Reads what earlier daemons have written, and makes the newest hold. */
void rbi_centre_init(struct rbi_daemon *daemon);
/** No change is being written down. Accepts a zeroed one. */
void rbi_centre_deinit(struct rbi_centre *centre);
/** A version that is kept. @param number  0: the current one. @return NULL: there is none */
const struct rbi_version *rbi_centre_version(const struct rbi_centre *centre, uint64_t number);

struct rbi_centre_outcome {
    struct rbi_live_change change;
    struct rbi_text warning; /* why the version will not outlive the daemon; "" */
    struct rbi_text why;     /* of a refusal: "LINE:COLUMN: what" */
};

/** Who wants a change, and why. */
struct rbi_centre_author {
    struct rbi_peer *peer;
    const struct rbi_text *why;
    uint32_t serial; /* of its request */
    /** Called when the version holds, unless the client has gone. */
    void (*answer)(struct rbi_peer *peer,
                   uint32_t serial,
                   const struct rbi_centre_outcome *outcome);
};

enum rbi_centre_result {
    RBI_CENTRE_OK = 0,      /* of a dry run: it would be taken */
    RBI_CENTRE_REFUSED = 1, /* the text is wrong, or does not fit the rest */
    RBI_CENTRE_NO_MEMORY = 2,
    RBI_CENTRE_BEGUN = 3, /* it is being written down; then it holds and is answered */
};

/**
 * Makes a version of these two texts hold, as soon as it is durable, or known not to become so:
 * the disk is waited for beside the loop. No other change is under way.
 * @param applied  NULL: as in the current version
 * @param edits    the same
 * @param dry_run  only checks and counts
 * @param out      set but for RBI_CENTRE_BEGUN
 */
RBI_MUST_CHECK enum rbi_centre_result rbi_centre_commit(struct rbi_daemon *daemon,
                                                        const struct rbi_centre_author *author,
                                                        struct rbi_shared_text *applied,
                                                        struct rbi_shared_text *edits,
                                                        bool dry_run,
                                                        struct rbi_centre_outcome *out);
/** Its client is going: a change of its goes on, and nobody is told. */
void rbi_centre_peer_gone(struct rbi_peer *peer);

#endif
