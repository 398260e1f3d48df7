/* SPDX-License-Identifier: Apache-2.0 */
#include "actor.h"

#include "govern.h"
#include "support/bus.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <xxhash.h>

#define MAGIC      0x6b616f73U
#define SIZE_MAX_  9000U /* of a message; over INLINE it goes by reference */
#define INLINE_MAX 1024U
#define KEPT_MAX   8U
#define LATE_MAX   16U
#define DRAIN_MS   3000U

/** Head of each message; bytes of a pattern follow, which the sum covers. */
struct head {
    uint32_t magic;
    uint32_t life; /* index of the sender's */
    uint32_t seq;
    uint32_t incarnation;
    uint32_t size; /* of the whole message */
    uint32_t reserved;
    uint64_t sum;
};

struct kept {
    struct ringbus_kept *message;
    uint64_t sum;
};

static struct {
    struct soak_ledger *ledger;
    struct soak_life *life;
    uint32_t index;
    struct ringbus *bus;
    struct ringbus_addr self;
    uint64_t random;
    struct ringbus_addr peers[SOAK_SLOTS_MAX]; /* by slot; instance 0: no link */
    struct {
        uint32_t life;
        uint32_t seq;
    } last[SOAK_SLOTS_MAX]; /* heard of that slot */
    struct kept kept[KEPT_MAX];
    struct ringbus_reply_to late[LATE_MAX]; /* requests to be answered after their handler */
    uint32_t late_seq[LATE_MAX];
    unsigned late_count;
    bool forks;         /* its requests with attributes are asked of two at once */
    unsigned last_word; /* phase QUIET: slots that have had theirs */
} me;

static volatile sig_atomic_t term;

static void on_term(int number)
{
    (void)number;
    term = 1;
}

static uint32_t any_below(uint32_t bound)
{
    return (uint32_t)(bus_random(&me.random) % bound);
}

static uint64_t sum_of(const void *message, size_t size)
{
    struct head head;
    memcpy(&head, message, sizeof head);
    head.sum = 0;
    return XXH3_64bits_withSeed((const char *)message + sizeof head, size - sizeof head,
                                XXH3_64bits(&head, sizeof head));
}

/** Writes the next message, of @p size bytes. */
static void compose(unsigned char *message, uint32_t size, uint32_t seq)
{
    struct head head = {.magic = MAGIC,
                        .life = me.index,
                        .seq = seq,
                        .incarnation = me.self.incarnation,
                        .size = size};
    memset(message + sizeof head, (int)(seq & 0xff), size - sizeof head);
    memcpy(message, &head, sizeof head);
    head.sum = sum_of(message, size);
    memcpy(message, &head, sizeof head);
}

/** Whether it is a whole message of the soak, as it was written. */
static bool read_head(const void *data, size_t size, struct head *out)
{
    if (size < sizeof *out) {
        return false;
    }
    memcpy(out, data, sizeof *out);
    return out->magic == MAGIC && out->size == size && out->seq >= 1 && out->seq <= SOAK_MESSAGES &&
           out->life < me.ledger->lives_max && out->sum == sum_of(data, size);
}

/* ---- receiving ---------------------------------------------------------------------------- */

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
        if (sum_of(place->message->data, place->message->size) != place->sum) {
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

static void release_all(void)
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

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct head head;
    (void)bus;
    (void)user;
    if (!read_head(message->data, message->size, &head)) {
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

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
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
    if (!read_head(event->message->data, event->message->size, &head) || head.life != me.index) {
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

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    const uint32_t slot = (uint32_t)event->addr.instance - 1;
    (void)bus;
    (void)user;
    if (event->addr.cluster != me.self.cluster || slot >= me.ledger->slots) {
        return;
    }
    if (event->type == RINGBUS_EVENT_READY) {
        if (me.peers[slot].incarnation != 0) {
            soak_violation(me.ledger, "READY of slot %u while another life of it is up", slot);
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
            soak_violation(me.ledger, "DOWN of slot %u, which was not up", slot);
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

/* ---- sending ------------------------------------------------------------------------------- */

/** What is said of message @p seq. */
static struct ringbus_message_options said_of(uint32_t seq, const struct soak_fate *fate)
{
    static const uint32_t methods[] = {SOAK_METHOD_PLAIN,   SOAK_METHOD_PACED,  SOAK_METHOD_EACH,
                                       SOAK_METHOD_METERED, SOAK_METHOD_SHARED, SOAK_METHOD_MOCKED,
                                       SOAK_METHOD_FRAIL,   SOAK_METHOD_FRAIL};
    struct ringbus_message_options options = {.struct_size = sizeof options,
                                              .key = seq % 16,
                                              .method = methods[any_below(8)],
                                              .labels = {seq, me.index},
                                              .priority = any_below(RINGBUS_PRIORITY_MAX + 1)};
    options.flags = (any_below(2) == 0 ? RINGBUS_KEY : 0) | (fate->twice ? RINGBUS_IDEMPOTENT : 0);
    options.tag = any_below(8) == 0 ? "blue" : NULL;
    options.trace_id[0] = (unsigned char)(any_below(2) * (seq & 0xff));
    if (fate->kind == SOAK_ASKED) {
        options.timeout_ms = 1 + any_below(2000);
        options.try_timeout_ms = any_below(4) == 0 ? 1 + any_below(100) : 0;
    } else {
        options.timeout_ms = fate->expires ? 1 + any_below(200) : 3600000;
    }
    return options;
}

/** Sends a message with attributes. */
static int
send_said(const struct ringbus_addr *to, const void *message, uint32_t size, uint32_t seq)
{
    const struct soak_fate *fate = soak_fate(me.ledger, me.life, seq);
    const struct ringbus_message_options options = said_of(seq, fate);
    const struct ringbus_part parts[] = {{message, size / 2},
                                         {(const char *)message + size / 2, size - size / 2}};
    const struct ringbus_part whole = {message, size};
    const bool split = fate->kind == SOAK_DATED && seq % 2 == 0;
    if (fate->kind == SOAK_ASKED) {
        return ringbus_request_with(me.bus, to, &whole, 1, &options, on_result,
                                    (void *)(uintptr_t)seq);
    }
    return ringbus_send_with(me.bus, to, split ? parts : &whole, split ? 2 : 1, &options);
}

/** Sends a message in one of the ways. @return what send gave */
static int send_as(unsigned way, const struct ringbus_addr *to, uint32_t size, uint32_t seq)
{
    static _Alignas(16) unsigned char message[SIZE_MAX_];
    struct ringbus_claim claim;
    struct ringbus_loan loan;
    int r = 0;
    switch (way) {
    case 0:
        r = ringbus_claim(me.bus, to, 0, size, 0, &claim);
        if (r != 0) {
            return r;
        }
        compose(claim.data, size, seq);
        if (any_below(8) == 0) {
            (void)ringbus_abort(me.bus, &claim);
            return RINGBUS_E_CLOSED;
        }
        return ringbus_commit(me.bus, &claim, size);
    case 1:
        r = ringbus_loan(me.bus, size, &loan);
        if (r != 0) {
            return r;
        }
        compose(loan.data, size, seq);
        r = ringbus_send_loan(me.bus, to, 0, &loan, size, 0);
        (void)ringbus_loan_return(me.bus, &loan);
        return r;
    case 2:
        compose(message, size, seq);
        return ringbus_request(me.bus, to, 0, message, size, 0, 1 + any_below(2000), on_result,
                               (void *)(uintptr_t)seq);
    case 5:
        compose(message, size, seq);
        return send_said(to, message, size, seq);
    case 4:
        compose(message, size, seq);
        return ringbus_send(me.bus, to, seq % 16, message, size,
                            (seq % 4 < 2 ? RINGBUS_KEY : 0) |
                                (seq % 2 == 0 ? RINGBUS_IDEMPOTENT : 0));
    default:
        compose(message, size, seq);
        return ringbus_send(me.bus, to, 0, message, size, any_below(3) == 0 ? RINGBUS_MORE : 0);
    }
}

/** Offers one message. @return whether it was taken */
static bool offer(const struct ringbus_addr *to, enum soak_kind kind, unsigned way, uint32_t size)
{
    const uint32_t seq = atomic_load(&me.life->accepted) + 1;
    struct soak_fate *fate = soak_fate(me.ledger, me.life, seq);
    memset(fate, 0, sizeof *fate);
    fate->kind = (uint8_t)kind;
    fate->to_incarnation = to->incarnation;
    fate->to_slot = to->instance > 0 ? (uint8_t)(to->instance - 1) : 0;
    fate->twice = (kind == SOAK_ANY && seq % 2 == 0) ||
                  (kind == SOAK_ASKED && (me.forks || any_below(3) == 0));
    fate->expires = kind == SOAK_DATED && any_below(2) == 0;
    const int r = send_as(way, to, size, seq);
    if (r < 0 || (r == 0 && kind != SOAK_BROADCAST)) {
        const enum ringbus_error_kind error = ringbus_error_kind(r);
        if (error == RINGBUS_ERROR_USAGE || error == RINGBUS_ERROR_INTERNAL) {
            soak_violation(me.ledger, "send: %s", ringbus_errmsg(me.bus));
        }
        atomic_fetch_add(&me.life->refused, 1);
        return false;
    }
    fate->receivers = (uint8_t)r;
    atomic_store(&me.life->accepted, seq);
    return true;
}

static uint32_t any_size(void)
{
    const uint32_t least = (uint32_t)sizeof(struct head);
    switch (any_below(8)) {
    case 0:
        return INLINE_MAX + any_below(SIZE_MAX_ - INLINE_MAX);
    case 1:
        return least + any_below(INLINE_MAX - least);
    default:
        return least + any_below(200);
    }
}

static void offer_any(void)
{
    const struct ringbus_addr *to = &me.peers[any_below(me.ledger->slots)];
    const struct ringbus_addr all = {.cluster = me.self.cluster, .instance = RINGBUS_ALL};
    const struct ringbus_addr any = {.cluster = me.self.cluster, .instance = RINGBUS_ANY};
    const unsigned dice = any_below(100);
    if (dice < 6) {
        (void)offer(&all, SOAK_BROADCAST, dice < 3 ? 1 : 3, any_size());
    } else if (dice < 12) {
        (void)offer(&any, SOAK_ANY, 4, any_size());
    } else if (dice < 22) {
        (void)offer(&any, SOAK_ASKED, 5, any_size());
    } else if (to->instance == 0) {
        return;
    } else if (dice < 34) {
        (void)offer(to, SOAK_REQUEST, 2, any_size());
    } else if (dice < 42) {
        (void)offer(to, SOAK_DATED, 5, any_size());
    } else {
        (void)offer(to, SOAK_ONEWAY, dice < 50 ? 0 : dice < 60 ? 1 : 3, any_size());
    }
}

static void answer_late(void)
{
    while (me.late_count > 0) {
        me.late_count--;
        answer(&me.late[me.late_count], me.late_seq[me.late_count]);
    }
}

/** A word and a payload by reference to each peer, so that every link is mapped whole. */
static void say_last_word(void)
{
    for (uint32_t slot = 0; slot < me.ledger->slots; slot++) {
        const struct ringbus_addr *to = &me.peers[slot];
        if (to->instance != 0 && (me.last_word & (1U << slot)) == 0 &&
            offer(to, SOAK_ONEWAY, 3, 100) && offer(to, SOAK_ONEWAY, 3, 2 * INLINE_MAX)) {
            me.last_word |= 1U << slot;
        }
    }
    const unsigned others =
        (me.ledger->slots == 32 ? ~0U : (1U << me.ledger->slots) - 1U) & ~(1U << me.life->slot);
    release_all();
    if ((me.last_word & others) == others && any_below(30) == 0) {
        atomic_store(&me.life->fds, bus_fd_count());
        atomic_store(&me.life->maps, bus_map_count());
        atomic_store(&me.life->quiet, 1);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool open_bus(const char *socket)
{
    char path[128];
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    (void)snprintf(path, sizeof path, SOAK_CLUSTER "/%u", me.life->slot + 1);
    options.socket = socket;
    options.path = path;
    options.lane_bytes = 16384;
    options.inline_max = INLINE_MAX;
    options.refs_per_link = 32;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 4096, .count = 64};
    options.pool[1] = (struct ringbus_pool_class){.chunk_bytes = 16384, .count = 16};
    options.ping_interval_ms = SOAK_PING_MS;
    options.connect_timeout_ms = 2000;
    options.spin_us = 1;
    options.on_message = on_message;
    options.on_event = on_event;
    while (!term) {
        const int r = ringbus_open(&options, &me.bus);
        if (r == 0) {
            return true;
        }
        if (ringbus_error_kind(r) == RINGBUS_ERROR_USAGE ||
            ringbus_error_kind(r) == RINGBUS_ERROR_INTERNAL) {
            soak_violation(me.ledger, "open: %s", ringbus_errmsg(NULL));
            return false;
        }
        test_sleep_ms(5);
    }
    return false;
}

static void live(void)
{
    while (!term && atomic_load(&me.life->accepted) + 100 < SOAK_MESSAGES &&
           atomic_load(&me.life->down_count) + 100 < SOAK_DOWNS) {
        const int r = ringbus_poll(me.bus, 256);
        if (r < 0) {
            soak_violation(me.ledger, "poll: %s", ringbus_errmsg(me.bus));
        }
        answer_late();
        if (atomic_load(&me.ledger->phase) == SOAK_CHAOS) {
            for (unsigned i = any_below(6); i > 0; i--) {
                offer_any();
            }
        } else {
            say_last_word();
        }
        (void)ringbus_wait(me.bus, (int)any_below(4));
    }
}

static void check_answers(void)
{
    for (uint32_t seq = 1; seq <= atomic_load(&me.life->accepted); seq++) {
        const struct soak_fate *fate = soak_fate(me.ledger, me.life, seq);
        const bool asks = fate->kind == SOAK_REQUEST || fate->kind == SOAK_ASKED;
        if (asks && fate->answers != 1) {
            soak_violation(me.ledger, "request %u ended %u times", seq, fate->answers);
        }
    }
}

/** Each life has its own way to ask again, and to take what comes back. */
static bool target_all(void)
{
    static const enum ringbus_retry ways[] = {RINGBUS_RETRY_AUTO, RINGBUS_RETRY_FAILFAST,
                                              RINGBUS_RETRY_FAILOVER, RINGBUS_RETRY_FORKING};
    const struct ringbus_target_options target = {
        .struct_size = sizeof target,
        .on_down = any_below(4) == 0 ? RINGBUS_ON_DOWN_REPORT : RINGBUS_ON_DOWN_REDELIVER,
        .retry = ways[any_below(4)],
        .retry_tries = any_below(4),
        .wait_ms = any_below(3) == 0 ? 200 : 0,
        .divert = (int)any_below(2),
        .errors_count = 1};
    me.forks = target.retry == RINGBUS_RETRY_FORKING;
    return ringbus_target(me.bus, SOAK_CLUSTER, &target, NULL) == 0;
}

int soak_actor(struct soak_ledger *ledger, uint32_t life, const char *socket, uint64_t seed)
{
    const struct sigaction action = {.sa_handler = on_term};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t mask;
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigemptyset(&mask);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    memset(&me, 0, sizeof me);
    me.ledger = ledger;
    me.life = &ledger->lives[life];
    me.index = life;
    me.random = seed;
    if (!open_bus(socket)) {
        atomic_store(&me.life->end, SOAK_LEFT);
        return 0;
    }
    (void)ringbus_self(me.bus, &me.self);
    atomic_store(&me.life->incarnation, me.self.incarnation);
    if (!target_all()) {
        soak_violation(ledger, "target: %s", ringbus_errmsg(me.bus));
    }
    live();
    answer_late();
    release_all();
    const int r = ringbus_close(me.bus, DRAIN_MS);
    me.bus = NULL;
    check_answers();
    atomic_store(&me.life->end, r == 0 ? SOAK_LEFT : SOAK_KILLED);
    return 0;
}
