/* SPDX-License-Identifier: Apache-2.0 */
/* soak/receive.c - what comes to a process of the soak: messages, replies, events. */
#include "govern.h"
#include "me.h"

#include <string.h>

static void check_order(const struct head *head, uint32_t slot)
{
    const bool newer = head->life > me.last[slot].life;
    if (!newer && (head->life < me.last[slot].life || head->seq <= me.last[slot].seq)) {
        soak_violation(me.ledger, "order: slot %u had life %u message %u, now life %u message %u",
                       slot, me.last[slot].life, me.last[slot].seq, head->life, head->seq);
    }
    me.last[slot].life = head->life;
    me.last[slot].seq = head->seq;
}

static void keep(const struct ringbus_message *message, uint64_t sum)
{
    struct kept *place = &me.kept[any_below(KEPT_MAX)];
    if (place->message) {
        if (soak_sum_of(place->message->data, place->message->size) != place->sum) {
            soak_violation(me.ledger, "a kept payload has changed");
        }
        (void)ringbus_release(me.bus, place->message);
        place->message = NULL;
    }
    if (ringbus_keep(me.bus, message, &place->message) != 0) {
        place->message = NULL;
    }
    place->sum = sum;
}

void soak_release_all(void)
{
    for (unsigned i = 0; i < KEPT_MAX; i++) {
        if (me.kept[i].message) {
            (void)ringbus_release(me.bus, me.kept[i].message);
            me.kept[i].message = NULL;
        }
    }
}

static void answer(const struct ringbus_reply_to *to, uint32_t seq)
{
    if (seq % 10 == 3) {
        (void)ringbus_reply_error(me.bus, to, "the soak says no");
    } else {
        (void)ringbus_reply(me.bus, to, &seq, sizeof seq, 0);
    }
}

/** Some fail nearly always what is to be failed, so that they are shielded. */
static void answer_asked(const struct ringbus_message *message, uint32_t seq)
{
    if (message->attributes && message->attributes->method == SOAK_METHOD_FRAIL &&
        me.life->slot % 4 == 1 && any_below(10) != 0) {
        (void)ringbus_reply_error(me.bus, &message->reply_to, "frail");
    } else {
        answer(&message->reply_to, seq);
    }
}

/** A handler begins: whether it may. */
static void note_delivery(struct soak_fate *fate, const struct head *head, unsigned flags)
{
    const uint32_t bit = UINT32_C(1) << me.life->slot;
    const bool goes_on = soak_goes_on(fate);
    const uint32_t others = goes_on ? ~UINT32_C(0) : bit;
    const uint32_t before = atomic_fetch_or(&fate->delivered, bit);
    const bool again = goes_on && fate->twice &&
                       (fate->kind == SOAK_ASKED || (flags & RINGBUS_MESSAGE_REDELIVERED) != 0);
    if ((before & others) != 0 && !again) {
        soak_violation(me.ledger,
                       "message %u of life %u came twice; kind %u, twice %u, flags %x, before %x",
                       head->seq, head->life, fate->kind, fate->twice, flags, before);
    }
    if ((atomic_load(&fate->not_seen) & others) != 0) {
        soak_violation(me.ledger, "message %u of life %u came after it was given back as not seen",
                       head->seq, head->life);
    }
}

void soak_on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct head head;
    (void)bus;
    (void)user;
    if (!soak_read_head(message->data, message->size, &head)) {
        soak_violation(me.ledger, "a message of %zu bytes from %s, kind %d, flags %x, is damaged",
                       message->size, message->from_path, (int)message->kind, message->flags);
        return;
    }
    const struct soak_life *sender = &me.ledger->lives[head.life];
    struct soak_fate *fate = soak_fate(me.ledger, sender, head.seq);
    if (atomic_load(&sender->settled)) {
        /* What it was killed in sending, and what we were stopped in handling, may still come. */
        if (head.seq != atomic_load(&sender->accepted) + 1 &&
            head.seq != atomic_load(&sender->doubt[me.life->slot])) {
            const struct soak_down *down = soak_down_of(sender, me.life->slot, me.self.incarnation);
            soak_violation(me.ledger,
                           "message %u of life %u (%s) came after its end; kind %u, back %x %x, "
                           "our bit %x, it saw us end by reason %d",
                           head.seq, head.life,
                           atomic_load(&sender->end) == SOAK_LEFT ? "left" : "killed", fate->kind,
                           atomic_load(&fate->not_seen), atomic_load(&fate->maybe),
                           1U << me.life->slot, down ? down->reason : -1);
        }
        return;
    }
    if (fate->kind == SOAK_ASKED && head.seq % 8 == 5 && any_below(4) == 0) {
        /* As one that has too much to do: others may be asked. */
        (void)ringbus_reply_refused(me.bus, &message->reply_to, RINGBUS_E_SHED, 1);
        return;
    }
    note_delivery(fate, &head, message->flags);
    if (message->from.incarnation != head.incarnation ||
        message->from.instance != (int32_t)sender->slot + 1) {
        soak_violation(me.ledger,
                       "message of slot %u, life %u, incarnation %u bears the name of instance %d, "
                       "incarnation %u",
                       sender->slot, head.life, head.incarnation, message->from.instance,
                       message->from.incarnation);
    }
    if (fate->kind < SOAK_BROADCAST && fate->to_incarnation != me.self.incarnation) {
        soak_violation(me.ledger, "message %u of life %u was for another life", head.seq,
                       head.life);
    }
    if (!soak_goes_on(fate)) { /* that comes late */
        check_order(&head, sender->slot);
    }
    atomic_fetch_add(&me.life->received, 1);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        if (me.late_count < LATE_MAX && head.seq % 4 == 0) {
            me.late[me.late_count] = message->reply_to;
            me.late_seq[me.late_count++] = head.seq;
        } else {
            answer_asked(message, head.seq);
        }
    } else if (any_below(16) == 0) {
        keep(message, head.sum);
    }
}

static void on_reply(struct soak_fate *fate, uint32_t seq, const struct ringbus_result *result)
{
    const struct ringbus_message *message = result->message;
    uint32_t said = 0;
    if (message && (message->flags & RINGBUS_MESSAGE_MOCKED) != 0) {
        fate->mocked = 1;
        if (message->size != strlen(SOAK_MOCK) ||
            memcmp(message->data, SOAK_MOCK, message->size) != 0) {
            soak_violation(me.ledger, "request %u has a mock of %zu bytes", seq, message->size);
        }
        return;
    }
    if (message && message->size == sizeof said) {
        memcpy(&said, message->data, sizeof said);
    }
    if (said != seq) {
        soak_violation(me.ledger, "request %u has the reply of %u", seq, said);
    }
}

void soak_on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    const uint32_t seq = (uint32_t)(uintptr_t)context;
    struct soak_fate *fate = soak_fate(me.ledger, me.life, seq);
    (void)bus;
    if (fate->kind == SOAK_ASKED && result->peer.instance > 0) {
        fate->to_slot = (uint8_t)(result->peer.instance - 1); /* of those asked, the last */
    }
    const uint32_t bit = UINT32_C(1) << fate->to_slot;
    const uint32_t at = fate->kind == SOAK_ASKED ? ~UINT32_C(0) : bit;
    const bool handled = (atomic_load(&fate->delivered) & at) != 0;
    if (++fate->answers != 1) {
        soak_violation(me.ledger, "request %u ended %u times", seq, fate->answers);
    }
    switch (result->outcome) {
    case RINGBUS_REPLIED:
        on_reply(fate, seq, result);
        if (fate->mocked) {
            atomic_fetch_or(&fate->not_seen, bit);
        }
        if (handled == (fate->mocked != 0)) {
            soak_violation(me.ledger, "request %u is answered, and its handler %s", seq,
                           handled ? "ran before the mock" : "did not run");
        }
        break;
    case RINGBUS_FAILED:
        if (result->error == RINGBUS_E_HANDLER_FAILED && !handled) {
            soak_violation(me.ledger, "request %u failed in no handler", seq);
        }
        break;
    case RINGBUS_UNKNOWN:
        if (result->error == RINGBUS_E_TIMEOUT) {
            fate->timed_out = 1; /* it is still on its way */
        } else {
            atomic_fetch_or(&fate->maybe, bit);
            atomic_store(&me.life->doubt[fate->to_slot], seq);
        }
        break;
    case RINGBUS_NOT_SENT:
        atomic_fetch_or(&fate->not_seen, bit);
        atomic_fetch_add(&me.life->declined,
                         result->error == RINGBUS_E_LIMITED || result->error == RINGBUS_E_SHED);
        if (fate->kind == SOAK_REQUEST && result->error == RINGBUS_E_SHED) {
            struct soak_life *by = soak_life_of(me.ledger, fate->to_slot, fate->to_incarnation);
            if (by) {
                atomic_fetch_add(&by->sheds_told, 1);
            }
        }
        if (handled) {
            soak_violation(me.ledger,
                           "request %u was handled by %x and counts as not sent: %s, kind %u, "
                           "twice %u, tries %u, forks %d",
                           seq, atomic_load(&fate->delivered), ringbus_strerror(result->error),
                           fate->kind, fate->twice, result->tries, me.forks);
        }
        break;
    }
}

/* ---- events ------------------------------------------------------------------------------- */

static void on_undelivered(const struct ringbus_event *event)
{
    struct head head;
    const uint32_t slot = (uint32_t)event->addr.instance - 1;
    const uint32_t bit = UINT32_C(1) << slot;
    if (event->message->kind == RINGBUS_KIND_REPLY) {
        return; /* its request died with its requester */
    }
    if (!soak_read_head(event->message->data, event->message->size, &head) ||
        head.life != me.index) {
        soak_violation(me.ledger, "what came back from slot %u is damaged", slot);
        return;
    }
    struct soak_fate *fate = soak_fate(me.ledger, me.life, head.seq);
    const bool again = ((atomic_load(&fate->not_seen) | atomic_load(&fate->maybe)) & bit) != 0;
    const bool late = me.peers[slot].incarnation != event->addr.incarnation;
    if (again || (late && !soak_goes_on(fate))) {
        soak_violation(me.ledger, "message %u came back from slot %u %s", head.seq, slot,
                       again ? "twice" : "after the DOWN");
    }
    if (event->maybe_seen) {
        atomic_fetch_or(&fate->maybe, bit);
        atomic_store(&me.life->doubt[slot], head.seq);
    } else {
        atomic_fetch_or(&fate->not_seen, bit);
        if ((atomic_load(&fate->delivered) & (soak_goes_on(fate) ? ~UINT32_C(0) : bit)) != 0) {
            soak_violation(me.ledger, "message %u was handled by slot %u and counts as not seen",
                           head.seq, slot);
        }
    }
}

void soak_on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    const uint32_t slot = (uint32_t)event->addr.instance - 1;
    (void)bus;
    (void)user;
    if (event->addr.cluster != me.self.cluster || slot >= me.ledger->slots) {
        return;
    }
    if (event->type == RINGBUS_EVENT_READY) {
        if (me.peers[slot].incarnation != 0) {
            soak_violation(me.ledger, "READY of slot %u, incarnation %u, while %u of it is up",
                           slot, event->addr.incarnation, me.peers[slot].incarnation);
        }
        me.peers[slot] = event->addr;
        atomic_store(&me.life->up[slot], event->addr.incarnation);
        if (atomic_exchange(&me.life->ready_with[slot], event->addr.incarnation) !=
            event->addr.incarnation) {
            atomic_store(&me.life->readies[slot], 0);
        }
        atomic_fetch_add(&me.life->readies[slot], 1);
        me.last_word &= ~(1U << slot);
        atomic_fetch_add(&me.life->peers, 1);
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        if (me.peers[slot].incarnation != event->addr.incarnation) {
            soak_violation(me.ledger, "DOWN of slot %u, incarnation %u, by reason %d: %u was up",
                           slot, event->addr.incarnation, (int)event->reason,
                           me.peers[slot].incarnation);
        } else {
            atomic_fetch_sub(&me.life->peers, 1);
        }
        me.peers[slot] = (struct ringbus_addr){0};
        soak_down_add(me.life, slot, event->addr.incarnation, event->reason);
        atomic_store(&me.life->up[slot], 0);
    } else if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        on_undelivered(event);
    }
}

/* ---- answers that come late ------------------------------------------------------------- */

void soak_answer_late(void)
{
    while (me.late_count > 0) {
        me.late_count--;
        answer(&me.late[me.late_count], me.late_seq[me.late_count]);
    }
}
