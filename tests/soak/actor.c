/* SPDX-License-Identifier: Apache-2.0 */
#include "actor.h"

#include "govern.h"
#include "me.h"
#include "support/bus.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <xxhash.h>

#define DRAIN_MS 3000U

struct soak_me me;

static volatile sig_atomic_t term;

static void on_term(int number)
{
    (void)number;
    term = 1;
}

/* ---- messages ------------------------------------------------------------------------------ */

uint64_t soak_sum_of(const void *message, size_t size)
{
    struct head head;
    memcpy(&head, message, sizeof head);
    head.sum = 0;
    return XXH3_64bits_withSeed((const char *)message + sizeof head, size - sizeof head,
                                XXH3_64bits(&head, sizeof head));
}

void soak_compose(unsigned char *message, uint32_t size, uint32_t seq)
{
    struct head head = {.magic = MAGIC,
                        .life = me.index,
                        .seq = seq,
                        .incarnation = me.self.incarnation,
                        .size = size};
    memset(message + sizeof head, (int)(seq & 0xff), size - sizeof head);
    memcpy(message, &head, sizeof head);
    head.sum = soak_sum_of(message, size);
    memcpy(message, &head, sizeof head);
}

bool soak_read_head(const void *data, size_t size, struct head *out)
{
    if (size < sizeof *out) {
        return false;
    }
    memcpy(out, data, sizeof *out);
    return out->magic == MAGIC && out->size == size && out->seq >= 1 && out->seq <= SOAK_MESSAGES &&
           out->life < me.ledger->lives_max && out->sum == soak_sum_of(data, size);
}

/* ---- life ------------------------------------------------------------------------------------ */

/** A word and a payload by reference to each peer, so that every link is mapped whole. */
static void say_last_word(void)
{
    for (uint32_t slot = 0; slot < me.ledger->slots; slot++) {
        const struct ringbus_addr *to = &me.peers[slot];
        if (to->instance != 0 && (me.last_word & (1U << slot)) == 0 &&
            soak_offer(to, SOAK_ONEWAY, 3, 100) && soak_offer(to, SOAK_ONEWAY, 3, 2 * INLINE_MAX)) {
            me.last_word |= 1U << slot;
        }
    }
    const unsigned others =
        (me.ledger->slots == 32 ? ~0U : (1U << me.ledger->slots) - 1U) & ~(1U << me.life->slot);
    soak_release_all();
    if ((me.last_word & others) == others && any_below(30) == 0) {
        atomic_store(&me.life->fds, bus_fd_count());
        atomic_store(&me.life->maps, bus_map_count());
        atomic_store(&me.life->quiet, 1);
    }
}

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
    options.on_message = soak_on_message;
    options.on_event = soak_on_event;
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

static int poll_once(void)
{
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    const int r = ringbus_poll(me.bus, SOAK_POLL_MAX);
    if (me.ledger->sheds && ringbus_stats(me.bus, &stats) == 0) {
        atomic_store(&me.life->sheds, stats.shed);
    }
    return r;
}

static void live(void)
{
    while (!term && atomic_load(&me.life->accepted) + 100 < SOAK_MESSAGES &&
           atomic_load(&me.life->down_count) + 100 < SOAK_DOWNS) {
        const int r = poll_once();
        if (r < 0) {
            soak_violation(me.ledger, "poll: %s", ringbus_errmsg(me.bus));
        }
        soak_answer_late();
        if (atomic_load(&me.ledger->phase) == SOAK_CHAOS) {
            for (unsigned i = any_below(6); i > 0; i--) {
                soak_offer_any();
            }
        } else {
            say_last_word();
        }
        (void)ringbus_wait(me.bus, (int)any_below(4));
    }
}

static void drain(void)
{
    const uint64_t end_ms = test_now_ms() + DRAIN_MS;
    if (ringbus_drain(me.bus) != 0) {
        return; /* ringbus_close() tries again */
    }
    while (ringbus_drained(me.bus) != 1 && test_now_ms() < end_ms) {
        (void)poll_once();
        soak_answer_late();
        (void)ringbus_wait(me.bus, 10);
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
    soak_answer_late();
    soak_release_all();
    if (ledger->sheds) {
        drain(); /* what is refused on the way is counted */
    }
    const int r = ringbus_close(me.bus, DRAIN_MS);
    me.bus = NULL;
    check_answers();
    atomic_store(&me.life->end, r == 0 ? SOAK_LEFT : SOAK_KILLED);
    return 0;
}
