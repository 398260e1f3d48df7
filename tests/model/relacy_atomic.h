/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_MODEL_RELACY_ATOMIC_H
#define RINGBUS_TESTS_MODEL_RELACY_ATOMIC_H
/*
 * Stands in for shm/atomic.h, so that the production text of shm/ compiles under
 * the Relacy model checker. Include it before anything of shm/.
 *
 * A lane is an array of struct model_line instead of bytes. Production code never
 * touches it but through rbi_au64_at(), with offsets of commit words; the models
 * reach a body through model_line_of().
 */
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <relacy/relacy.hpp>

#define RINGBUS_SHM_ATOMIC_H 1
/* Layouts are asserted where the types are the real ones. */
#define _Static_assert(...)
#define RBI_LANE_CONTROL_ROOM 0U
/*
 * A run is the whole lane, so that nothing is zeroed ahead while a record is unread; the
 * model "lane_runs" has runs of a line, and so many more interleavings.
 */
#ifndef RBI_LANE_ZERO_RUN
#define RBI_LANE_ZERO_RUN 4U
#endif
#define MODEL_LINES    4U
#define MODEL_CAPACITY (MODEL_LINES * 64U)

typedef rl::atomic<uint64_t> rbi_au64;
typedef rl::atomic<uint32_t> rbi_au32;
typedef rl::var<uint64_t> rbi_word; /* each access is checked for races */

#define rbi_load_acq(p)      (const_cast<rbi_au64 *>(p)->load(rl::mo_acquire, $))
#define rbi_store_rel(p, v)  ((p)->store((v), rl::mo_release, $))
#define rbi_load_seq(p)      (const_cast<rbi_au64 *>(p)->load(rl::mo_seq_cst, $))
#define rbi_store_seq(p, v)  ((p)->store((v), rl::mo_seq_cst, $))
#define rbi_load_asym(p)     rbi_load_rlx(p)
#define rbi_store_asym(p, v) rbi_store_rlx(p, v)
#define rbi_load_rlx(p)      (const_cast<rbi_au64 *>(p)->load(rl::mo_relaxed, $))
#define rbi_store_rlx(p, v)  ((p)->store((v), rl::mo_relaxed, $))
#define rbi_word_get(p)      ((uint64_t)(*const_cast<rbi_word *>(p))($))
#define rbi_word_put(p, v)   ((*(p))($) = (uint64_t)(v))

/** One line of a lane: the word that may be a commit word or body, and one word that is body. */
struct model_line {
    rbi_au64 word;
    rbi_word word_plain; /* written and read along with word when it is body, to see races */
    rbi_word body;
};

static inline rbi_au64 *rbi_au64_at(unsigned char *base, uint64_t offset)
{
    return &((struct model_line *)(void *)base)[offset / 64 % MODEL_LINES].word;
}

static inline const rbi_au64 *rbi_au64_at_const(const unsigned char *base, uint64_t offset)
{
    return rbi_au64_at(const_cast<unsigned char *>(base), offset);
}

/** Line @p idx of the record whose body pointer the lane gave out. */
static inline struct model_line *
model_line_of(struct model_line *lines, const unsigned char *body, unsigned idx)
{
    const uint64_t offset = (uint64_t)(body - (const unsigned char *)(void *)lines);
    return &lines[(offset / 64 + idx) % MODEL_LINES];
}

static inline void model_lines_init(struct model_line *lines)
{
    for (unsigned i = 0; i < MODEL_LINES; i++) {
        rbi_store_rlx(&lines[i].word, 0);
    }
}

#include "shm/base.h"
void rbi_assert_failed(const char *what, const char *file, int line)
{
    (void)what;
    rl::debug_info info("RBI_ASSERT", file, (unsigned)line);
    rl::ctx().fail_test(what, rl::test_result_user_assert_failed, info);
    abort();
}

/** Runs a model; true when it ends as it should. */
template <typename model_t>
static bool
model_run(const char *name, rl::scheduler_type_e how, rl::iteration_t count, unsigned switches = 1)
{
    rl::test_params params;
    params.search_type = how;
    params.iteration_count = count;
    params.context_bound = switches; /* of rl::fair_context_bound_scheduler_type alone */
    params.execution_depth_limit = 10000;
    params.progress_stream = &std::cerr;
    params.progress_output_period = 100000;
    const bool ok = rl::simulate<model_t>(params);
    std::cout << name << ": " << (ok ? "ok" : "FAILED") << ", " << params.stop_iteration
              << " executions" << std::endl;
    return ok;
}

#endif
