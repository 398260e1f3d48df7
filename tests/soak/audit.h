/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SOAK_AUDIT_H
#define RINGBUS_TESTS_SOAK_AUDIT_H
/* soak/audit.h - the books of a life that has ended: each message has exactly one fate. */
#include "ledger.h"

/** Messages of all audited lives, by what became of them; a broadcast counts once a receiver. */
struct soak_sums {
    uint64_t accepted; /* by send, once a receiver */
    uint64_t delivered;
    uint64_t returned;
    uint64_t maybe;     /* of the delivered ones: came back as well, perhaps seen */
    uint64_t both_died; /* lost with their sender, on the way to somebody who died as well */
    uint64_t forgotten; /* lost with their sender, on the way to somebody who had given it up */
    uint64_t expired;   /* of the returned ones: too late for who came to them */
    uint64_t mocked;    /* of the returned ones: answered by nobody */
    uint64_t shed;      /* of the returned ones: refused, and the sender did not hear of it */
    uint64_t refused;   /* never accepted */
};

/**
 * Audits a life that has ended. Violations are reported.
 * @param patient  its end is so new that somebody may still be reading its broadcasts
 * @return whether all is known; false: some receiver has not seen its end yet, come again
 */
bool soak_audit(struct soak_ledger *ledger, uint32_t life, bool patient, struct soak_sums *sums);
/** When all lives are audited: whether what is missing at this one was refused by it. */
void soak_audit_sheds(struct soak_ledger *ledger, uint32_t life);

#endif
