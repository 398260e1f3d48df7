/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be missing. A sender that drained and closed: nothing. A sender that was killed:
 * what it had sent to somebody who was killed too before it saw the sender's end, or who had
 * given the sender up (it was stopped for longer than its bound) and so reads no more of it.
 * A receiver that lives and was told CRASHED has everything, but for requests that it refused: it
 * counts those, and no more may be missing than it counted and nobody heard of.
 */
#include "audit.h"

#include <ringbus/ringbus.h>
#include <stddef.h>

/*
 * EXPIRED: its time was over before its handler began. SHED: its receiver refused it, and whom it
 * told so was dead, or did not wait for it any more.
 */
enum verdict { PRESENT, EXPIRED, SHED, LOST, BOTH_DIED, FORGOTTEN, UNKNOWN };

/** Why a message to one receiver has no fate. */
static enum verdict
why_missing(const struct soak_life *sender, const struct soak_life *receiver, bool patient)
{
    if (atomic_load(&sender->end) == SOAK_LEFT) {
        return LOST;
    }
    if (!receiver) {
        return BOTH_DIED;
    }
    const enum soak_end end = (enum soak_end)atomic_load(&receiver->end);
    const uint32_t incarnation = atomic_load(&sender->incarnation);
    const bool is_up = atomic_load(&receiver->up[sender->slot]) == incarnation;
    const struct soak_down *down = soak_down_of(receiver, sender->slot, incarnation);
    /* The same two may have had a link before, whose end is not this one's. */
    const uint32_t its_own = atomic_load(&receiver->incarnation);
    const bool earlier = atomic_load(&sender->ready_with[receiver->slot]) == its_own &&
                         atomic_load(&sender->readies[receiver->slot]) >
                             soak_down_times(receiver, sender->slot, incarnation);
    if (down && end == SOAK_LIVING && patient && (is_up || earlier)) {
        return UNKNOWN;
    }
    if (down && !is_up) {
        return down->reason == RINGBUS_REASON_CRASHED ? LOST : FORGOTTEN;
    }
    return end == SOAK_LIVING ? UNKNOWN : BOTH_DIED;
}

static enum verdict audit_one(const struct soak_ledger *ledger,
                              const struct soak_life *sender,
                              bool patient,
                              const struct soak_fate *fate)
{
    const uint32_t bit = UINT32_C(1) << fate->to_slot;
    const uint32_t known =
        atomic_load(&fate->delivered) | atomic_load(&fate->not_seen) | atomic_load(&fate->maybe);
    if ((known & bit) != 0) {
        return PRESENT;
    }
    if (fate->expires != 0 ||
        (fate->timed_out != 0 && soak_down_of(sender, fate->to_slot, fate->to_incarnation))) {
        return EXPIRED;
    }
    const enum verdict why =
        why_missing(sender, soak_life_of(ledger, fate->to_slot, fate->to_incarnation), patient);
    const bool deaf = atomic_load(&sender->end) == SOAK_KILLED || fate->timed_out != 0;
    return why == LOST && ledger->sheds && fate->kind == SOAK_REQUEST && deaf ? SHED : why;
}

static unsigned bits(uint32_t mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static void add_known(const struct soak_fate *fate, struct soak_sums *sums)
{
    const uint32_t delivered = atomic_load(&fate->delivered);
    const uint32_t maybe = atomic_load(&fate->maybe);
    const uint32_t back = atomic_load(&fate->not_seen) | maybe;
    /* One that went on to a second receiver counts once. */
    const bool goes_on = soak_goes_on(fate);
    const unsigned again = goes_on && bits(delivered) > 1 ? bits(delivered) - 1 : 0;
    const uint32_t only_back = goes_on && delivered != 0 ? 0 : back & ~delivered;
    sums->accepted += fate->receivers;
    sums->delivered += bits(delivered) - again;
    sums->returned += goes_on && only_back != 0 ? 1 : bits(only_back);
    sums->maybe += bits(maybe & delivered);
    sums->mocked += fate->mocked;
}

/** A broadcast does not say which receivers took it, only how many; one to any says nothing. */
static enum verdict audit_broadcast(const struct soak_life *sender, const struct soak_fate *fate)
{
    const uint32_t known =
        atomic_load(&fate->delivered) | atomic_load(&fate->not_seen) | atomic_load(&fate->maybe);
    if (bits(known) >= fate->receivers) {
        return PRESENT;
    }
    if (fate->timed_out != 0) {
        return EXPIRED;
    }
    return atomic_load(&sender->end) == SOAK_LEFT ? LOST : BOTH_DIED;
}

/** Whether somebody that a dead sender had a link with has not seen the end of it yet. */
static bool anybody_reads(const struct soak_ledger *ledger, const struct soak_life *sender)
{
    for (uint32_t slot = 0; slot < ledger->slots; slot++) {
        const uint32_t with = atomic_load(&sender->ready_with[slot]);
        const struct soak_life *receiver = with ? soak_life_of(ledger, slot, with) : NULL;
        if (receiver && atomic_load(&receiver->end) == SOAK_LIVING &&
            soak_down_times(receiver, sender->slot, atomic_load(&sender->incarnation)) <
                atomic_load(&sender->readies[slot])) {
            return true;
        }
    }
    return false;
}

static void note_shed(struct soak_ledger *ledger, const struct soak_fate *fate)
{
    struct soak_life *receiver = soak_life_of(ledger, fate->to_slot, fate->to_incarnation);
    if (receiver) {
        atomic_fetch_add(&receiver->sheds_unheard, 1);
    }
}

void soak_audit_sheds(struct soak_ledger *ledger, uint32_t life)
{
    const struct soak_life *receiver = &ledger->lives[life];
    /* One that was killed in a poll could not count what that poll refused. */
    const uint64_t killed = atomic_load(&receiver->end) == SOAK_KILLED ? SOAK_POLL_MAX : 0;
    const uint64_t told = atomic_load(&receiver->sheds_told);
    const uint64_t unheard = atomic_load(&receiver->sheds_unheard);
    if (unheard != 0 && told + unheard > atomic_load(&receiver->sheds) + killed) {
        soak_violation(
            ledger, "life %u refused %llu requests, %llu were told so, and %llu more are missing",
            life, (unsigned long long)atomic_load(&receiver->sheds), (unsigned long long)told,
            (unsigned long long)unheard);
    }
}

bool soak_audit(struct soak_ledger *ledger, uint32_t life, bool patient, struct soak_sums *sums)
{
    const struct soak_life *sender = &ledger->lives[life];
    const uint32_t accepted = atomic_load(&sender->accepted);
    struct soak_sums found = {.refused = atomic_load(&sender->refused)};
    for (uint32_t seq = 1; seq <= accepted; seq++) {
        const struct soak_fate *fate = soak_fate(ledger, sender, seq);
        const enum verdict verdict = fate->kind >= SOAK_BROADCAST
                                         ? audit_broadcast(sender, fate)
                                         : audit_one(ledger, sender, patient, fate);
        add_known(fate, &found);
        const uint32_t known = atomic_load(&fate->delivered) | atomic_load(&fate->not_seen) |
                               atomic_load(&fate->maybe);
        const unsigned missing = fate->receivers > bits(known) ? fate->receivers - bits(known) : 0;
        const bool may_come = (verdict == BOTH_DIED && fate->kind >= SOAK_BROADCAST) ||
                              (verdict == EXPIRED && fate->kind != SOAK_REQUEST);
        if (verdict == UNKNOWN || (may_come && patient && anybody_reads(ledger, sender))) {
            return false;
        }
        if (verdict == LOST) {
            soak_violation(ledger,
                           "message %u of %u of life %u (slot %u, incarnation %u, %s) to slot %u, "
                           "incarnation %u is lost; kind %u",
                           seq, accepted, life, sender->slot, atomic_load(&sender->incarnation),
                           atomic_load(&sender->end) == SOAK_LEFT ? "left" : "killed",
                           fate->to_slot, fate->to_incarnation, fate->kind);
        }
        found.returned += verdict == EXPIRED ? missing : 0;
        found.returned += verdict == SHED ? missing : 0;
        if (verdict == SHED) {
            note_shed(ledger, fate);
            found.shed += missing;
        }
        found.expired += verdict == EXPIRED ? missing : 0;
        found.both_died += verdict == BOTH_DIED ? missing : 0;
        found.forgotten += verdict == FORGOTTEN ? missing : 0;
    }
    sums->accepted += found.accepted;
    sums->delivered += found.delivered;
    sums->returned += found.returned;
    sums->maybe += found.maybe;
    sums->both_died += found.both_died;
    sums->forgotten += found.forgotten;
    sums->expired += found.expired;
    sums->mocked += found.mocked;
    sums->shed += found.shed;
    sums->refused += found.refused;
    return true;
}
