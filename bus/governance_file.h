/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GOVERNANCE_FILE_H
#define RINGBUS_BUS_GOVERNANCE_FILE_H
/*
 * bus/governance_file.h - files that a text names (mock_file): whoever may read them does so once,
 * when the text is taken, and what they held goes with it. A policy names it by its hash.
 */
#include "bus/governance.h"

/** One file of a text. */
struct rbi_governance_file {
    char path[RBI_MOCK_PATH_MAX + 1]; /* as it is written */
    uint64_t key;                     /* XXH3-64 of what it held, never 0 */
    uint32_t size;
    unsigned char *bytes; /* owned */
};

/**
 * The next place of a text that names a file.
 * @param after  the place before, 0: the first
 * @return 0: there is no other; else @p path is lent by the text
 */
uint32_t rbi_governance_next_file(const struct rbi_governance *governance,
                                  uint32_t after,
                                  const char **path);
/** Whether the text has it already. */
bool rbi_governance_has_file(const struct rbi_governance *governance, const char *path);
/** Keeps what a file holds, copied. @param size  to RBI_MOCK_FILE_MAX. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_governance_take_file(struct rbi_governance *governance,
                                            const char *path,
                                            const unsigned char *bytes,
                                            uint32_t size);
/** Takes over, copied, what @p from has read of the files that both name. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_governance_carry_files(struct rbi_governance *to,
                                              const struct rbi_governance *from);
void rbi_governance_free_files(struct rbi_governance *governance);
/** Names in a policy what its files hold, as the highest layer has them that has read them. */
void rbi_governance_fill_files(const struct rbi_governance_layers *layers,
                               struct rbi_policy *policy);
/** What a policy names so. NULL: none of the layers has it. Lent by the layer. */
const struct rbi_governance_file *
rbi_governance_find_file(const struct rbi_governance_layers *layers, uint64_t key);

#endif
