/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_OUTCOME_H
#define RINGBUS_DAEMON_OUTCOME_H
/*
 * daemon/outcome.h - how the calls of one endpoint ended, as it counts them in memory of its own
 * (shm/outcome.h), and what of that is new since the last look. What it says is untrusted: it may
 * lie about whom it called, and whoever uses it checks that there is a link.
 */
#include "bus/histogram.h"
#include "daemon/list.h"
#include "daemon/quota.h"
#include "shm/outcome.h"
#include "shm/segment.h"

/** What has come for one life of an instance since the last look. */
struct rbi_outcome_news {
    uint32_t slot;
    uint64_t cluster;
    int32_t instance;
    uint32_t incarnation;
    uint32_t ok; /* this and the following: at most UINT32_MAX at once */
    uint32_t failed;
    uint32_t lost;
    uint32_t slow;
    uint32_t local;
    uint64_t latency_ns;
    uint32_t in_a_row; /* as it stands now */
};

/** A slot as it was at the last look. */
struct rbi_outcome_base {
    struct rbi_outcome_copy last;
    uint64_t active_ns; /* when something last came */
    uint32_t *latency;  /* RBI_LATENCY_BUCKETS; NULL: nobody has asked for them yet */
    bool before_us;     /* it has counted under this name before we came */
};

struct rbi_outcome_reader {
    struct rbi_list in_readers;
    struct rbi_segment segment; /* read-only; base NULL: it has told of none */
    uint32_t slot_count;
    uint64_t changes;
    uint64_t active_ns; /* when something last came in any slot */
    uint64_t vain_ns;   /* when it last said that it calls somebody and may not: he is shielded */
    uint64_t words_ns;  /* when it was looked at for the end of a link last */
    struct rbi_outcome_base *bases;
    struct rbi_charge charge;
};

typedef void (*rbi_outcome_fn)(void *context, const struct rbi_outcome_news *news);

void rbi_outcome_reader_init(struct rbi_outcome_reader *reader);
void rbi_outcome_reader_deinit(struct rbi_outcome_reader *reader);
/**
 * Maps a segment, in the place of one that had no more slots: what was seen of that counts on.
 * Untrusted. @param fd  borrowed  @param fresh  what the first one has counted so far is news
 * @retval 0; -EPROTO not the geometry of one, or smaller than the last; -errno as
 *         rbi_segment_adopt(); nothing has changed then
 */
RBI_MUST_CHECK int
rbi_outcome_adopt(struct rbi_outcome_reader *reader, int fd, uint64_t bytes, bool fresh);
/** Tells of each slot in which something has come. One load when nothing has. */
void rbi_outcome_look(struct rbi_outcome_reader *reader,
                      uint64_t now_ns,
                      rbi_outcome_fn fn,
                      void *context);
/**
 * How long the calls took that have come in a slot since this was last asked; to be called by a
 * rbi_outcome_fn, for a link that there is: it takes memory for the slot.
 * @retval 0; -ENOMEM nothing was counted
 */
RBI_MUST_CHECK int rbi_outcome_latency(struct rbi_outcome_reader *reader,
                                       uint32_t slot,
                                       struct rbi_histogram_growth *out);
/**
 * When its endpoint last called anybody of a cluster, as far as looks have seen; 0: never.
 * @param who  rbi_outcome_who() of one life there
 * @param has  set: whether it has a slot for that life
 */
uint64_t rbi_outcome_active_ns(const struct rbi_outcome_reader *reader,
                               uint64_t cluster,
                               uint64_t who,
                               bool *has);

#endif
