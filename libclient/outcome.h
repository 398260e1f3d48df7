/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_OUTCOME_H
#define RINGBUS_LIBCLIENT_OUTCOME_H
/*
 * libclient/outcome.h - how our calls ended, for each instance apart, in memory of our own that the
 * daemon sums over the host. A link that we asked for gets its slot when it becomes READY, and
 * keeps it to its end; counting then is a few additions.
 *
 * Slot 0 is nobody's: what is counted there, for links without a slot, nobody reads. So that
 * counting needs no branch there always is one, also while there is no segment.
 */
#include "bus/histogram.h"
#include "bus/pidf.h"
#include "bus/suspicion.h"
#include "shm/outcome.h"
#include "shm/segment.h"

struct rbi_cluster;
struct rbi_end;
struct ringbus;

#define RBI_OUTCOME_LOCAL_NS UINT64_C(10000000)

/** What only we need to know of a slot. */
struct rbi_outcome_local {
    uint32_t next_free;
    struct rbi_end *end; /* NULL: it is free */
    struct rbi_suspicion suspicion;
    uint64_t local_ns; /* when a request to it last found no room, of those that count; 0: never */
};

struct rbi_outcome_table {
    struct rbi_outcome *slots; /* those of the segment, or nobody */
    rbi_au64 *changes;
    uint32_t slot_count; /* 1: there is no segment yet */
    uint32_t free_head;  /* 0: none is free */
    struct rbi_outcome_local *locals;
    struct rbi_segment segment;
    struct rbi_end *avoided; /* list of those that we avoid */
    struct rbi_outcome nobody;
    rbi_au64 unseen;
};

/** How a call ended, as far as the instance is judged by it. */
enum rbi_outcome_kind {
    RBI_OUTCOME_NONE = 0, /* says nothing of the instance: our own doing, a limit, a right */
    RBI_OUTCOME_OK = 1,
    RBI_OUTCOME_FAILED = 2, /* it said so */
    RBI_OUTCOME_LOST = 3,   /* it said nothing */
};

void rbi_outcomes_init(struct rbi_outcome_table *table);
void rbi_outcomes_deinit(struct rbi_outcome_table *table);
/**
 * A link that we asked for has become READY: gives it a slot, unless it has one. Cold.
 * @retval 0; RINGBUS_E_NO_MEMORY and such (noted): its calls are not counted
 */
int rbi_outcomes_attach(struct ringbus *bus, struct rbi_end *end);
/** The end is about to be freed: nobody has a call over it any more. */
void rbi_outcomes_detach(struct ringbus *bus, struct rbi_end *end);
/** A daemon that does not know our segment is given it. @param fresh  it was there all the time */
void rbi_outcomes_tell(struct ringbus *bus, bool fresh);
/** Counts what went wrong, and judges for ourselves. */
void rbi_outcomes_bad(struct ringbus *bus,
                      uint32_t slot,
                      enum rbi_outcome_kind kind,
                      uint64_t elapsed_ns,
                      uint64_t now_ns);
/**
 * A request could not be sent to it, for want of room: no failure of the call, which was none, but
 * what a policy that splits failures judges apart. At most one counts in RBI_OUTCOME_LOCAL_NS, as a
 * caller that tries again and again says the same each time.
 */
void rbi_outcomes_local(struct ringbus *bus, uint32_t slot);
/** Ends what we avoid for ourselves, when its time is over. @return when to look again */
uint64_t rbi_outcomes_tick(struct ringbus *bus, uint64_t now_ns);
/** The link of an instance is up: judges it as the policy of its cluster says. */
void rbi_outcomes_follow(const struct rbi_cluster *cluster, struct rbi_end *end);
/** That policy has changed. */
void rbi_outcomes_follow_all(const struct rbi_cluster *cluster);

/** @param slow_ns  one that took longer was slow */
static inline void rbi_outcomes_good(struct rbi_outcome_table *table,
                                     uint32_t slot,
                                     uint64_t elapsed_ns,
                                     uint64_t slow_ns)
{
    struct rbi_outcome *outcome = &table->slots[slot];
    rbi_outcome_add(&outcome->ok, 1);
    rbi_outcome_add(&outcome->latency_ns, elapsed_ns);
    rbi_outcome_timed(outcome, rbi_histogram_bucket(elapsed_ns));
    rbi_store_rlx(&outcome->in_a_row, 0);
    rbi_outcome_add(table->changes, 1);
    if (RBI_UNLIKELY(elapsed_ns > slow_ns)) {
        rbi_outcome_add32(&outcome->slow, 1);
    }
}

#endif
