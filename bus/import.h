/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_IMPORT_H
#define RINGBUS_BUS_IMPORT_H
/*
 * bus/import.h - what a host knows of the instances of other hosts, and when it may forget one.
 * Pure: time is an argument, memory the caller's; what is to be done is asked for by
 * rbi_import_next(). Not thread-safe.
 *
 *   LIVE         the exporter lists it
 *   STALE        it did when it was last heard of, or a file of an earlier life says so: kept, and
 *                verified by the host before it is used, since OPEN ends there
 *   UNCONFIRMED  the exporter does not list it any more, and has not said why: kept for a grace
 *   gone         it is removed
 *
 * It takes two signals to remove one. Either its host says how it ended: in order, or found dead by
 * the kernel there; that is both at once. Or nobody lists it (the exporter does not, or cannot be
 * heard), and it cannot be reached (its link ended or stays silent, or there has been no way to its
 * host for a grace); not listed for a grace counts as well. A source of lists that is lost, while
 * the host itself can be reached, removes nothing, however long it is lost.
 *
 * Many at once are not believed at once: when more than half of the instances that are known of a
 * cluster, if these are 4 or more, or all of them, are out of sight, the second signal has to wait
 * until mass_hold is over, unless somebody has found that very instance dead, or an operator
 * confirms it. The wait is bounded, so the dead are not kept for ever.
 *
 * A host that tells of more than its share of the room is cut there, and its list is asked for
 * again when there is room: rbi_import_host_find() shows how many were refused.
 */
#include "bus/bridge_config.h"
#include "bus/remote.h"

#define RBI_IMPORT_NONE      UINT32_MAX
#define RBI_IMPORT_HOSTS_MAX 256U
/** An ask that is not answered for so long is made again, later each time. */
#define RBI_IMPORT_ASK_NS     UINT64_C(2000000000)
#define RBI_IMPORT_ASK_MIN_NS UINT64_C(50000000)
#define RBI_IMPORT_ASK_MAX_NS UINT64_C(5000000000)
/** Asked again so long after the last answer: that finds what was lost unnoticed. */
#define RBI_IMPORT_REFRESH_NS UINT64_C(30000000000)
/** A path that a local instance holds is tried again after so long, later each time. */
#define RBI_IMPORT_TAKEN_MIN_NS UINT64_C(1000000000)
#define RBI_IMPORT_TAKEN_MAX_NS UINT64_C(30000000000)

enum rbi_import_state {
    RBI_IMPORT_FREE = 0,
    RBI_IMPORT_LIVE = 1,
    RBI_IMPORT_STALE = 2,
    RBI_IMPORT_UNCONFIRMED = 3,
    RBI_IMPORT_GONE = 4, /* to be removed by the next rbi_import_next() */
};

/** An instance of another host. Read it; private but for user. */
struct rbi_import_entry {
    struct rbi_remote remote;
    void *user;     /* the caller's: the proxy */
    uint32_t state; /* enum rbi_import_state */
    uint32_t host;  /* index of its host */
    uint32_t next;  /* in its bucket, or of the free ones */
    uint32_t cluster_next;
    uint32_t cluster_prev;
    uint32_t dirty_next;
    uint32_t reason; /* GONE: enum rbi_reason */
    uint32_t list;   /* number of the last list that named it */
    bool queued;     /* something of it is to be told */
    bool shown;      /* registered, as far as the caller was told to */
    bool shown_stale;
    bool changed;
    bool listed;   /* by the last list that was whole */
    bool cached;   /* from a file, and nobody has confirmed it yet */
    bool doubted;  /* out of sight: not listed, or its host cannot be reached */
    bool held;     /* too many at once: not before hold_until_ns */
    bool conflict; /* another has its path, and that was told */
    bool refused;  /* the daemon did not take it */
    uint32_t tries;
    uint64_t retry_ns;
    uint64_t suspect_ns; /* when its link ended, or was found silent; 0: it is not */
    uint64_t unlisted_ns;
    uint64_t hold_until_ns;
};

/** A host that tells of its instances. Read it; private. */
struct rbi_import_host {
    uint64_t id;
    char name[RBI_HOST_NAME_MAX + 1];
    bool reachable;       /* there is a way to it */
    bool source;          /* and it has answered since: what it lists is current */
    bool asking;          /* an ask has no whole answer yet */
    bool listing;         /* a list of all is being told */
    bool whole;           /* all is to be asked for, whatever is known */
    bool torn;            /* a list broke off: what is known is newer than its revision, in part */
    bool tell_refused;    /* that it was cut */
    uint64_t incarnation; /* of the exporter, 0: none heard */
    uint64_t revision;    /* that all entries of it have */
    uint64_t list_incarnation;
    uint64_t list_revision;
    uint32_t list_number; /* of its last item */
    uint64_t reach_ns;    /* since when it can be reached, or cannot */
    uint64_t ask_ns;      /* when to ask, or ask again; UINT64_MAX: not at all */
    uint64_t asked_ns;    /* the last time */
    uint64_t refresh_ns;  /* with a source: when to ask though nothing is known to be missing */
    uint32_t ask_tries;   /* in a row */
    uint32_t list;        /* number of the list that is being told, or was */
    uint32_t entries;     /* with those that are to be removed */
    uint64_t refused;     /* instances for which there was no room, in the last list */
    uint64_t malformed;   /* items that could not be true, ever */
};

enum rbi_import_do {
    RBI_IMPORT_DO_NOTHING = 0,
    RBI_IMPORT_DO_REGISTER = 1, /* entry: not known to the daemon yet */
    RBI_IMPORT_DO_UPDATE = 2,   /* entry: other values, or staleness */
    RBI_IMPORT_DO_REMOVE = 3,   /* entry: reason; set and read user for the last time */
    RBI_IMPORT_DO_ASK = 4,      /* host: DIR_ASK with the incarnation and revision that it has */
    RBI_IMPORT_DO_HELD = 5,     /* cluster: count of total wait for mass_hold; once for each time */
    RBI_IMPORT_DO_CONFLICT = 6, /* entry: another host's instance has its path; once */
    RBI_IMPORT_DO_REFUSED = 7,  /* host: no room for count of its instances; once a list */
};

struct rbi_import_action {
    enum rbi_import_do what;
    uint32_t host;        /* index */
    uint32_t entry;       /* index; of REMOVE valid until rbi_import_next() only */
    uint32_t reason;      /* REMOVE: enum rbi_reason */
    bool stale;           /* REGISTER, UPDATE: STALE or UNCONFIRMED */
    uint64_t incarnation; /* ASK: what is known; 0: nothing, or all is wanted again */
    uint64_t revision;
    uint64_t cluster; /* HELD; one of its instances is entry */
    uint32_t count;
    uint32_t total;
};

/** Of a cluster, as far as others have instances of it. Private. */
struct rbi_import_cluster {
    uint64_t id;      /* 0: free */
    uint32_t first;   /* entry */
    uint32_t entries; /* not GONE */
    uint32_t doubted; /* of these, out of sight */
    bool held;        /* the guard is on */
    bool tell;
};

struct rbi_import_config {
    uint64_t own_host; /* what says that it comes from there is not taken */
    uint64_t grace_ns;
    uint64_t mass_hold_ns;
    uint32_t limit; /* instances at most; 0, or more than there is room for: as many as fit */
    const struct rbi_bridge_globs *globs; /* lent: clusters that are taken */
};

/** Counters since the beginning. */
struct rbi_import_counters {
    uint64_t registered;
    uint64_t removed;
    uint64_t mass_held; /* times that the guard went on */
    uint64_t conflicts; /* instances whose path another host's had */
    uint64_t asked;
    uint64_t gaps;    /* revisions that did not follow */
    uint64_t refused; /* no room */
    uint64_t malformed;
    uint64_t confirmed; /* removals that did not wait because somebody confirmed them */
};

/** The table. Private but for reading entries, hosts and counters. */
struct rbi_import {
    struct rbi_import_config config;
    struct rbi_import_counters counters;
    struct rbi_import_entry *entries;
    uint32_t entry_max;
    uint32_t entry_count; /* in use */
    uint32_t entry_free;  /* first of the free ones */
    uint32_t entry_end;   /* all behind it are free, and none of them was ever in use */
    struct rbi_import_cluster *clusters;
    uint32_t *paths; /* by hash: entry, or RBI_IMPORT_NONE */
    uint32_t slot_mask;
    struct rbi_import_host hosts[RBI_IMPORT_HOSTS_MAX];
    uint32_t host_count;
    uint32_t dirty_first;
    uint32_t dirty_last;
    uint32_t removing; /* told to be removed: freed by the next rbi_import_next() */
    uint32_t tells;    /* clusters with tell */
    uint64_t due_ns;   /* nothing happens by itself before */
};

/** Slots of the tables by path and by cluster: twice the entries, a power of two. */
uint32_t rbi_import_slots(uint32_t entry_max);
/**
 * @param entries    entry_max, at least 1
 * @param clusters   rbi_import_slots(entry_max) of them
 * @param paths      as many
 */
void rbi_import_init(struct rbi_import *import,
                     const struct rbi_import_config *config,
                     struct rbi_import_entry *entries,
                     uint32_t entry_max,
                     struct rbi_import_cluster *clusters,
                     uint32_t *paths);
/**
 * Goes on in a larger table, with the same indexes; the caller frees the old one. Arrays as for
 * rbi_import_init().
 * @param entry_max  at least as many as there are room for now
 */
void rbi_import_move(struct rbi_import *import,
                     struct rbi_import_entry *entries,
                     uint32_t entry_max,
                     struct rbi_import_cluster *clusters,
                     uint32_t *paths);
/**
 * Other globs, times or limit, after a reload. What is not to be imported any more is removed; what
 * is above a lower limit stays, and nothing is added to it.
 */
void rbi_import_configure(struct rbi_import *import,
                          const struct rbi_import_config *config,
                          uint64_t now_ns);

/* ---- what happened ---------------------------------------------------------------------- */

/** There is a way to a host, or none any more. Makes it known. @retval 0; -ENOSPC; -EINVAL us */
RBI_MUST_CHECK int rbi_import_reach(
    struct rbi_import *import, uint64_t id, const char *name, bool reachable, uint64_t now_ns);
/**
 * A host tells something of its instances.
 * @retval 0; -EPROTO the instance cannot be true: counted and left out, the rest holds; -ENOENT it
 *         cannot be reached as far as we know, so nobody has asked it
 */
RBI_MUST_CHECK int rbi_import_item(struct rbi_import *import,
                                   uint64_t id,
                                   const struct rbi_remote_item *item,
                                   uint64_t now_ns);
/**
 * What lists the instances of a host (an outside registry, or its own exporter) cannot be asked,
 * though the host may be reached: all of it is STALE until the next whole answer.
 */
void rbi_import_source_lost(struct rbi_import *import, uint64_t id, uint64_t now_ns);
/** What was under way to us may be lost: whether something is missing is asked for. */
void rbi_import_way_changed(struct rbi_import *import, uint64_t id, uint64_t now_ns);
/** A host leaves in order: so do all of its instances, now. */
void rbi_import_leave(struct rbi_import *import, uint64_t id, uint64_t now_ns);
/** From a file of an earlier life: STALE, until its host tells. @retval 0; -ENOSPC; -EINVAL;
 *  -EEXIST its host was heard of already, and knows better */
RBI_MUST_CHECK int rbi_import_load(struct rbi_import *import,
                                   uint64_t id,
                                   const char *name,
                                   const struct rbi_remote *remote,
                                   uint64_t now_ns);
/** Its link ended, or its PONGs stay away: a second signal, of no use without the first. */
void rbi_import_suspect(struct rbi_import *import, uint32_t idx, uint64_t now_ns);
/** It was heard of end to end: takes the suspicion back, which ends by itself after a grace. */
void rbi_import_alive(struct rbi_import *import, uint32_t idx, uint64_t now_ns);
/** Its host itself says that there is no such instance: both signals. */
void rbi_import_dead(struct rbi_import *import, uint32_t idx, uint64_t now_ns);
/** The daemon did not take it, a local instance has its path perhaps; it is tried again later. */
void rbi_import_taken(struct rbi_import *import, uint32_t idx, uint64_t now_ns);
/**
 * An operator confirms: who is out of sight is gone.
 * @param id      of the host; 0: of all
 * @param prefix  of paths
 * @return how many are removed by it
 */
uint32_t rbi_import_confirm(struct rbi_import *import,
                            uint64_t id,
                            const char *prefix,
                            size_t prefix_length,
                            uint64_t now_ns);

/* ---- what is to be done ------------------------------------------------------------------ */

/**
 * What is to be done next: to be called until it says NOTHING, after each of the calls above and
 * at rbi_import_due_ns(). A removal of an entry comes before the registration of another one with
 * its path.
 */
void rbi_import_next(struct rbi_import *import, uint64_t now_ns, struct rbi_import_action *out);
/** When rbi_import_next() is to be called though nothing has happened; UINT64_MAX: never. */
uint64_t rbi_import_due_ns(const struct rbi_import *import);

/* ---- looking ----------------------------------------------------------------------------- */

/** The host, or NULL. */
const struct rbi_import_host *rbi_import_host_find(const struct rbi_import *import, uint64_t id);
/** What is known of the instances of one host. */
struct rbi_import_figures {
    uint32_t instances;   /* all of them */
    uint32_t stale;       /* of these: nobody vouches for them now */
    uint32_t unconfirmed; /* of these: not listed any more */
    uint32_t held;        /* of these: out of sight with too many others */
};
/** Counts them: a look at each entry. All zero for a host that is not known. */
void rbi_import_figures(const struct rbi_import *import,
                        uint64_t id,
                        struct rbi_import_figures *out);
/** The entry that is registered under a path, or RBI_IMPORT_NONE. */
uint32_t rbi_import_find(const struct rbi_import *import, const char *path, size_t length);

#endif
