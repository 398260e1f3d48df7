/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - the program of a service, as an application would be written: opens a handle,
 * declares its targets, then waits, polls and does this and that. It uses the public API;
 * only who got a message that was sent to any instance is read from the library's inside.
 */
#include "libclient/internal.h"
#include "tests/sim/network/world.h"

#include <stdio.h>

#define MAGIC 0x73696d21U

struct payload {
    uint32_t magic;
    uint32_t message; /* 1-based */
    uint32_t size;
    uint32_t check;
};

static uint32_t check_of(uint32_t message, uint32_t size)
{
    return (message * 2654435761U) ^ (size * 40503U);
}

/* ---- sending ------------------------------------------------------------------------------ */

static uint32_t message_new(struct life *life, enum ringbus_kind kind, uint32_t about)
{
    if (world.message_count + 1 >= MESSAGES_MAX || world.copy_count + SLOTS_MAX >= COPIES_MAX) {
        return 0;
    }
    const uint32_t idx = ++world.message_count;
    static const uint32_t sizes[] = {16, 16, 40, 200, 600, 900, 3000};
    world.messages[idx] =
        (struct message){.from = life,
                         .kind = kind,
                         .about = about,
                         .size = sizes[sim_below(sizeof sizes / sizeof sizes[0])]};
    return idx;
}

static void fill(unsigned char *bytes, uint32_t idx)
{
    const uint32_t size = world.messages[idx].size;
    const struct payload head = {
        .magic = MAGIC, .message = idx, .size = size, .check = check_of(idx, size)};
    memset(bytes, (int)(idx & 0xff), size);
    memcpy(bytes, &head, sizeof head);
}

/** Lane positions before a send, to see in which lanes it wrote; and what it is to be chosen by. */
struct positions {
    bool keyed; /* to any of a cluster, by key */
    uint64_t key;
    uint64_t cluster;
    unsigned count;
    uint64_t pos[SLOTS_MAX * 4];
};

static void note_positions(const struct ringbus *bus, struct positions *out)
{
    out->count = 0;
    for (unsigned i = 0; i < bus->end_count && i < SLOTS_MAX * 4; i++) {
        out->pos[out->count++] = bus->ends[i]->tx.pos;
    }
}

/** Whether a send may be refused so. */
static bool may_be_refused(int error)
{
    switch (error) {
    case 0:
    case RINGBUS_E_FULL:
    case RINGBUS_E_NO_CHUNK:
    case RINGBUS_E_NOT_READY:
    case RINGBUS_E_NO_INSTANCE:
    case RINGBUS_E_NO_SERVICE:
    case RINGBUS_E_PEER_GONE:
    case RINGBUS_E_NOT_TARGET:
    case RINGBUS_E_DRAINING:
        return true;
    case RINGBUS_E_RESTARTING:
        world.figures.waiting++;
        return world.policy.by_key;
    case RINGBUS_E_LIMITED:
        world.figures.limited++;
        return world.policy.limited;
    case RINGBUS_E_SHIELDED:
        return world.policy.shields;
    default:
        return false;
    }
}

static void note_sent(struct life *life, uint32_t idx, const struct positions *before, int result)
{
    struct message *message = &world.messages[idx];
    struct life *first = NULL;
    message->fate = result > 0 ? FATE_SENT : FATE_REFUSED;
    if (result <= 0) {
        world.figures.refused++;
        sim_log("message %u refused: %s", idx, ringbus_error_name(result));
        if (!may_be_refused(result)) {
            violation(life, "send failed: %s", ringbus_errmsg(life->bus));
        }
        return;
    }
    for (unsigned i = 0; i < life->bus->end_count; i++) {
        const struct rbi_end *end = life->bus->ends[i];
        /* The first message to oneself makes the lane. */
        if (end->tx.pos == (i < before->count ? before->pos[i] : 0)) {
            continue;
        }
        const struct ringbus_addr addr = rbi_addr(&end->peer);
        struct life *to = life_of(&addr);
        if (to == NULL) {
            violation(life, "sent to a life that never was: %s", end->path);
            return;
        }
        first = first != NULL ? first : to;
        (void)copy_make(idx, to); /* it may have been delivered before the send returned */
        message->copies++;
        world.figures.sent++;
        sim_log("message %u of kind %d, %u bytes, to %s %u", idx, (int)message->kind, message->size,
                to->slot->path, to->addr.incarnation);
    }
    if (before->keyed && first != NULL) {
        keys_sent(life, idx, before->cluster, before->key, first->addr.instance);
    }
    if (message->copies != (unsigned)result) {
        violation(life, "send says %d receivers, %u lanes were written", result, message->copies);
    }
}

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    oracle_result(ringbus_user(bus), (uint32_t)(uintptr_t)context, result);
}

/** Somebody whom it may address: a cluster or an instance that it targets. */
static bool choose(struct life *life, struct ringbus_addr *to)
{
    const unsigned at = sim_below(world.cluster_count + world.slot_count);
    for (unsigned i = 0; i < world.cluster_count + world.slot_count; i++) {
        const unsigned n = (at + i) % (world.cluster_count + world.slot_count);
        if (n < world.cluster_count && (life->targets_clusters >> n & 1) != 0) {
            *to = world.clusters[n];
            return true;
        }
        const unsigned s = n - world.cluster_count;
        if (n >= world.cluster_count && (life->targets_slots >> s & 1) != 0) {
            *to = world.slots[s].addr;
            return true;
        }
    }
    return false;
}

static void send_something(struct life *life)
{
    unsigned char bytes[4096];
    struct ringbus_addr to;
    struct positions before;
    struct ringbus *bus = life->bus;
    const unsigned what = sim_below(8);
    if (!choose(life, &to)) {
        return;
    }
    const uint32_t idx =
        message_new(life, what < 2 ? RINGBUS_KIND_REQUEST : RINGBUS_KIND_ONEWAY, 0);
    if (idx == 0) {
        return;
    }
    fill(bytes, idx);
    const uint32_t size = world.messages[idx].size;
    const uint64_t key = sim_below(KEYS);
    unsigned flags = sim_one_in(3) ? RINGBUS_KEY : 0U;
    note_positions(bus, &before);
    before.keyed = (flags & RINGBUS_KEY) != 0 && to.instance == RINGBUS_ANY && what != 2;
    before.key = key;
    before.cluster = to.cluster;
    struct message *message = &world.messages[idx];
    message->any = to.instance == RINGBUS_ANY && what != 2;
    message->keyed = before.keyed;
    message->key = (unsigned)key;
    message->cluster = world.cluster_count > 1 && to.cluster == world.clusters[1].cluster ? 1 : 0;
    again_choosing(life, message);
    int r = 0;
    if (what < 2) {
        world.figures.requests++;
        r = ringbus_request(bus, &to, key, bytes, size, flags, 20 + sim_below(500), on_result,
                            (void *)(uintptr_t)idx);
    } else if (what == 2 && to.instance == RINGBUS_ANY) {
        world.figures.broadcasts++;
        to.instance = RINGBUS_ALL;
        r = ringbus_send(bus, &to, 0, bytes, size, 0);
    } else if (what == 3) {
        struct ringbus_claim claim;
        r = ringbus_claim(bus, &to, key, size, flags, &claim);
        if (r == 0) {
            memcpy(claim.data, bytes, size);
            r = ringbus_commit(bus, &claim, size);
            if (r == RINGBUS_E_FULL) {
                (void)ringbus_abort(bus, &claim); /* it would be open for another try */
            }
        }
    } else if (what == 4) {
        struct ringbus_loan loan;
        r = ringbus_loan(bus, size, &loan);
        if (r == 0) {
            memcpy(loan.data, bytes, size);
            r = ringbus_send_loan(bus, &to, key, &loan, size, flags);
            (void)ringbus_loan_return(bus, &loan);
        }
    } else {
        if (what == 5) {
            flags |= RINGBUS_MORE;
            world.messages[idx].more = true;
        }
        r = ringbus_send(bus, &to, key, bytes, size, flags);
    }
    note_sent(life, idx, &before, r);
    if (sim_one_in(4)) {
        keys_absences(life, to.cluster);
    }
}

static void sleep_us(uint64_t us)
{
    sim_block(NULL, NULL, 0, sim.now_ns + us * SIM_US);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void reply(struct life *life, const struct ringbus_reply_to *to, uint32_t request)
{
    unsigned char bytes[4096];
    struct positions before;
    const uint32_t idx = message_new(life, RINGBUS_KIND_REPLY, request);
    if (idx == 0) {
        return;
    }
    fill(bytes, idx);
    note_positions(life->bus, &before);
    const int r = sim_one_in(8) ? ringbus_reply_error(life->bus, to, "no")
                                : ringbus_reply(life->bus, to, bytes, world.messages[idx].size, 0);
    world.messages[idx].fate = r > 0 ? FATE_SENT : FATE_REFUSED;
    world.messages[request].answered |= r > 0;
    sim_log("request %u answered by message %u: %d", request, idx, r);
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct life *life = user;
    struct payload head;
    if (message->size < sizeof head) {
        violation(life, "a message of %zu bytes that nobody sent", message->size);
        return;
    }
    memcpy(&head, message->data, sizeof head);
    const unsigned char *bytes = message->data;
    if (head.magic != MAGIC || head.message == 0 || head.message > world.message_count ||
        head.size != message->size || head.check != check_of(head.message, head.size) ||
        (message->size > sizeof head &&
         bytes[message->size - 1] != (unsigned char)(head.message & 0xff))) {
        violation(life, "a message that nobody sent, or another one's bytes");
        return;
    }
    oracle_delivered(life, message);
    if (sim_one_in(16)) {
        sleep_us(1 + sim_below(5000)); /* work, in which it may be killed */
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        if (sim_one_in(4) && life->deferred_count < 4) {
            life->deferred[life->deferred_count] = message->reply_to;
            life->deferred_message[life->deferred_count++] = head.message;
        } else if (!sim_one_in(12)) {
            reply(life, &message->reply_to, head.message);
        }
    } else if (life->kept_count < 4 && !world.quiet && !life->leaving && sim_one_in(16)) {
        if (ringbus_keep(bus, message, &life->kept[life->kept_count]) == 0) {
            life->kept_count++;
        }
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)bus;
    oracle_event(user, event);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void answer_one(struct life *life)
{
    if (life->deferred_count > 0) {
        life->deferred_count--;
        reply(life, &life->deferred[life->deferred_count],
              life->deferred_message[life->deferred_count]);
    }
}

static void release_one(struct life *life)
{
    if (life->kept_count > 0) {
        (void)ringbus_release(life->bus, life->kept[--life->kept_count]);
    }
}

static int target(struct life *life, const char *path)
{
    const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                   .on_down = RINGBUS_ON_DOWN_REDELIVER,
                                                   .redeliver_ms = life->slot->redeliver_ms};
    return ringbus_target(life->bus, path, life->slot->redelivers ? &options : NULL, NULL);
}

static void retarget(struct life *life)
{
    const unsigned n = sim_below(world.cluster_count + world.slot_count);
    const bool cluster = n < world.cluster_count;
    uint32_t *mask = cluster ? &life->targets_clusters : &life->targets_slots;
    const unsigned bit = cluster ? n : n - world.cluster_count;
    const char *path = cluster ? world.cluster_paths[n] : world.slots[bit].path;
    const uint32_t wanted = cluster ? life->slot->targets_clusters : life->slot->targets_slots;
    if ((wanted >> bit & 1) == 0) {
        return;
    }
    if ((*mask >> bit & 1) != 0) {
        sim_log("untargets %s", path);
        life->untargets = true;
        *mask &= ~(1U << bit);
        if (ringbus_untarget(life->bus, path) != 0) {
            violation(life, "untarget: %s", ringbus_errmsg(life->bus));
        }
    } else {
        sim_log("targets %s", path);
        *mask |= 1U << bit;
        if (target(life, path) != 0) {
            violation(life, "target: %s", ringbus_errmsg(life->bus));
        }
    }
}

/** What it is to want in the end, it wants. */
static void want_all(struct life *life)
{
    for (unsigned c = 0; c < world.cluster_count; c++) {
        if ((life->slot->targets_clusters & ~life->targets_clusters) >> c & 1) {
            life->targets_clusters |= 1U << c;
            (void)target(life, world.cluster_paths[c]);
        }
    }
    for (unsigned s = 0; s < world.slot_count; s++) {
        if ((life->slot->targets_slots & ~life->targets_slots) >> s & 1) {
            life->targets_slots |= 1U << s;
            (void)target(life, world.slots[s].path);
        }
    }
}

/** Out of service, and back. */
static void drain(struct life *life, bool drains)
{
    if (life->drains == drains) {
        return;
    }
    life->drains = drains;
    life->drained = false;
    life->named_by = 0; /* who drains gives its slots away: they do not wait when it dies */
    sim_log("%s", drains ? "drains" : "drains no more");
    if ((drains ? ringbus_drain(life->bus) : ringbus_undrain(life->bus)) != 0) {
        violation(life, "drain: %s", ringbus_errmsg(life->bus));
    }
}

static void look_at_drain(struct life *life)
{
    if (life->drains && !life->drained && ringbus_drained(life->bus) == 1) {
        sim_log("is drained");
        life->drained = true;
        life->drained_from = world.message_count + 1;
        life->drained_ns = sim.now_ns;
        world.figures.drained++;
    }
}

static void act(struct life *life)
{
    look_at_drain(life);
    slots_look(life);
    if (world.quiet) {
        drain(life, false);
        want_all(life);
        answer_one(life);
        release_one(life);
        return;
    }
    /* What is said while the daemon has not answered yet is easily lost. */
    const bool greeting = life->bus->control.phase == RBI_CONTROL_HELLO ||
                          life->bus->control.phase == RBI_CONTROL_REGISTER;
    switch (sim_below(greeting ? 3 : 25)) {
    case 0:
        retarget(life);
        break;
    case 1:
        answer_one(life);
        break;
    case 2:
        release_one(life);
        break;
    case 3:
        if (sim_one_in(life->drains ? 2 : 8)) {
            drain(life, !life->drains);
        }
        break;
    case 4:
    case 5:
    case 6:
        break;
    default:
        for (unsigned i = sim_below(4); i > 0; i--) {
            send_something(life);
        }
        break;
    }
}

static void wait_for_work(struct life *life)
{
    const uint64_t us = world.quiet ? 500000 : 100 + sim_below(world.wait_us);
    if (life->slot->mode == RINGBUS_MODE_BUSY) {
        sleep_us(us < 2000 ? us : 2000);
        return;
    }
    life->waiting = true;
    if (life->slot->external_loop) {
        struct pollfd fd = {.fd = life->bus->epoll, .events = POLLIN};
        (void)sim_poll(&fd, 1, (int)(us / 1000) + 1);
    } else {
        (void)ringbus_wait(life->bus, (int)(us / 1000) + 1);
    }
    life->waiting = false;
}

static void join(struct life *life)
{
    const struct slot *slot = life->slot;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.socket = SIM_SOCKET_PATH;
    options.path = slot->path;
    options.mode = slot->mode;
    options.lane_bytes = slot->lane_bytes;
    options.inline_max = 256;
    options.refs_per_link = 16;
    options.pool[0] = (struct ringbus_pool_class){1024, 3};
    options.pool[1] = (struct ringbus_pool_class){4096, 3};
    options.ping_interval_ms = slot->ping_interval_ms;
    options.ping_misses = slot->ping_misses;
    options.spin_us = 1;
    options.slots = slot->follows;
    options.connect_timeout_ms = 1000;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = life;
    for (;;) {
        struct ringbus *bus = NULL;
        const int r = ringbus_open(&options, &bus);
        sim_log("open: %s", r == 0 ? "done" : ringbus_errmsg(NULL));
        if (r == 0) {
            life->bus = bus;
            (void)ringbus_self(bus, &life->addr);
            return;
        }
        if (life->leave) {
            life->ended = true;
            life->slot->life = NULL;
            sim_process_exit();
        }
        if (r != RINGBUS_E_NO_DAEMON && r != RINGBUS_E_TIMEOUT) {
            violation(life, "open: %s", ringbus_errmsg(NULL));
        }
        sleep_us(1000 + sim_below(50000));
    }
}

static void leave(struct life *life)
{
    life->leaving = true;
    while (life->kept_count > 0) {
        release_one(life);
    }
    struct ringbus *bus = life->bus;
    /* A busy one would look at its lanes a million times. */
    const bool drain = life->slot->mode == RINGBUS_MODE_SLEEP && sim_one_in(2);
    const int r = ringbus_close(bus, drain ? 1 + sim_below(100) : 0);
    sim_log("closed: %d", r);
    if (r != 0 && r != RINGBUS_E_TIMEOUT) {
        violation(life, "close: %d", r);
    }
    life->bus = NULL;
    life->ended = true;
    life->ended_ns = sim.now_ns;
    life->slot->life = NULL;
    sim_process_exit();
}

static void service_main(void *context)
{
    struct life *life = context;
    join(life);
    if (life->slot->external_loop && ringbus_fd(life->bus) < 0) {
        violation(life, "fd: %s", ringbus_errmsg(life->bus));
    }
    want_all(life);
    while (!life->leave) {
        wait_for_work(life);
        const int r = ringbus_poll(life->bus, sim_one_in(4) ? 1 : 64);
        if (r < 0) {
            violation(life, "poll: %s", ringbus_errmsg(life->bus));
        }
        if (life->bus->counters[RBI_COUNTER_bad_peer] != 0) {
            violation(life, "took an honest peer for a bad one: %s", ringbus_errmsg(life->bus));
        }
        act(life);
        if (world.failed) {
            sim_yield();
        }
    }
    leave(life);
}

void service_describe(const struct life *life)
{
    for (unsigned i = 0; life->bus != NULL && i < life->bus->end_count; i++) {
        const struct rbi_end *end = life->bus->ends[i];
        sim_log("  end %s %u: phase %d mine %d theirs %d usable %d reason %d, %u references out",
                end->path, end->peer.incarnation, (int)end->phase, (int)end->fsm.mine,
                (int)end->fsm.theirs, (int)end->usable, (int)end->leave_reason,
                rbi_refs_used(&end->refs));
    }
    for (const struct rbi_end *end = life->bus != NULL ? life->bus->residues : NULL; end != NULL;
         end = end->next_residue) {
        sim_log("  residue %s %u: hung up %d, %u kept, %u references out", end->path,
                end->peer.incarnation, (int)end->hung_up, end->kept, rbi_refs_used(&end->refs));
    }
}

void service_start(struct slot *slot)
{
    if (slot->life != NULL || world.life_count >= LIVES_MAX) {
        return;
    }
    struct life *life = &world.lives[world.life_count];
    *life = (struct life){.idx = world.life_count++, .slot = slot};
    life->process = &sim.processes[1 + (unsigned)(slot - world.slots)];
    for (unsigned i = 0; i < world.life_count; i++) {
        world.views[life->idx][i] = (struct view){.up = false};
        world.views[i][life->idx] = (struct view){.up = false};
    }
    memset(world.known[life->idx], 0, sizeof world.known[life->idx]);
    slot->life = slot->last = life;
    world.figures.lives++;
    life->process->name = slot->path + 11;
    sim_process_start(life->process, service_main, life);
}
