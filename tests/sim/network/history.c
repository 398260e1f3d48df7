/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c - one history: a world is drawn from the seed, things happen to it, then it is
 * left alone until everything has settled, and at last everybody leaves.
 */
#include "tests/sim/network/world.h"

#include <stdio.h>

/* Left alone, everybody is linked after this time at the latest: the longest back-off is 5 s. */
#define SETTLE_NS (60 * SIM_S)
#define STEPS_MAX 400000U

struct world world;

static uint64_t next_trouble_ns;

/* ---- the world ----------------------------------------------------------------------------- */

static void make_slot(struct slot *slot, unsigned idx)
{
    const unsigned cluster = sim_below(world.cluster_count);
    static const uint32_t intervals[] = {50, 100, 200, 1000};
    *slot =
        (struct slot){.mode = sim_one_in(5) ? RINGBUS_MODE_BUSY : RINGBUS_MODE_SLEEP,
                      .external_loop = sim_one_in(3),
                      .lane_bytes = sim_one_in(3) ? 16384 : 4096,
                      .ping_interval_ms = world.length_ms > 10000 ? 1000 : intervals[sim_below(4)],
                      .ping_misses = 2 + sim_below(2)};
    char path[sizeof slot->path];
    const int length = snprintf(path, sizeof path, "%s/%u", world.cluster_paths[cluster], idx + 1);
    if (length < 0 || (size_t)length >= sizeof path) {
        abort();
    }
    memcpy(slot->path, path, sizeof path);
    (void)ringbus_resolve(slot->path, &slot->addr);
    slot->redelivers = world.redelivers && sim_one_in(2);
    slot->redeliver_ms = 20 + sim_below(1000);
    static const int follows[] = {RINGBUS_SLOTS_OFF, RINGBUS_SLOTS_REPORT, RINGBUS_SLOTS_REFUSE};
    slot->follows =
        sim_one_in(4) ? RINGBUS_SLOTS_OFF : follows[1 + sim_below(world.redelivers ? 1 : 2)];
    slot->targets_clusters = sim_below(1U << world.cluster_count);
    slot->targets_slots = sim_below(1U << world.slot_count) & sim_below(1U << world.slot_count);
    if (slot->targets_clusters == 0 && slot->targets_slots == 0 && !sim_one_in(4)) {
        slot->targets_clusters = 1;
    }
}

/** How long, and how much happens: now and then so long that deadlines of seconds pass. */
static void make_pace(void)
{
    static const struct {
        uint32_t length_ms;
        uint32_t calm_us;
        uint32_t wait_us;
    } paces[] = {
        {400, 100000, 30000}, {400, 30000, 30000}, {400, 10000, 3000}, {3000, 100000, 100000}};
    const unsigned pace = sim_below(sizeof paces / sizeof paces[0]);
    const bool is_long = sim_one_in(8);
    world.length_ms = is_long ? 30000 : paces[pace].length_ms;
    world.calm_us = is_long ? 3000000 : paces[pace].calm_us;
    world.wait_us = is_long ? 1000000 : paces[pace].wait_us;
}

static void make_world(void)
{
    make_pace();
    policy_make(&world.policy);
    world.slot_count = 2 + sim_below(SLOTS_MAX - 1);
    world.cluster_count = 1 + sim_below(CLUSTERS_MAX);
    world.redelivers = sim_one_in(2);
    world.life_count = 0;
    world.daemon_starts = 0;
    world.message_count = 0;
    world.copy_count = 0;
    world.copies_settled = 0;
    world.quiet = false;
    world.failed = false;
    for (unsigned c = 0; c < world.cluster_count; c++) {
        (void)snprintf(world.cluster_paths[c], sizeof world.cluster_paths[c], "/Sim/a/p/w/%u",
                       c + 1);
        (void)snprintf(world.cluster_paths[c], sizeof world.cluster_paths[c], "/S/a/p/w/g/%c",
                       "AB"[c]);
        (void)ringbus_resolve(world.cluster_paths[c], &world.clusters[c]);
    }
    for (unsigned s = 0; s < world.slot_count; s++) {
        make_slot(&world.slots[s], s);
    }
    static const unsigned preempt[] = {0, 4, 16, 64};
    sim.preempt_one_in = preempt[sim_below(4)];
    sim.send_buffer = sim_one_in(4) ? 6000 : 212992;
}

/* ---- trouble -------------------------------------------------------------------------------- */

static void kill_service(struct slot *slot)
{
    struct life *life = slot->life;
    if (life == NULL) {
        return;
    }
    sim_log("kill %s %u", slot->path, life->addr.incarnation);
    world.figures.kills++;
    sim_process_kill(life->process);
    life->killed = life->ended = true;
    life->ended_ns = sim.now_ns;
    life->bus = NULL;
    slot->life = NULL;
}

static uint64_t some_pause_ns(void)
{
    static const uint64_t longest_ms[] = {2, 20, 200, 2000, 20000};
    return (1 + sim_random() % (longest_ms[sim_below(5)] * 1000)) * SIM_US;
}

static void pause_process(struct sim_process *process)
{
    const uint64_t ns = some_pause_ns();
    sim_log("pause %s for %.3f ms", process->name, (double)ns / (double)SIM_MS);
    world.figures.pauses++;
    sim_process_pause(process, sim.now_ns + ns);
}

static void kill_daemon(void)
{
    sim_log("kill ringbusd");
    world.figures.daemon_kills++;
    sim_process_kill(&sim.processes[0]);
    world.daemon_runs = false;
}

static void stop_daemon(void)
{
    struct sim_process *daemon = &sim.processes[0];
    for (unsigned fd = 0; fd < SIM_FDS_MAX; fd++) {
        if (daemon->fds[fd] != NULL && daemon->fds[fd]->kind == SIM_SIGNALFD) {
            sim_log("SIGTERM to ringbusd");
            daemon->fds[fd]->u.counter = 1;
            return;
        }
    }
}

static void trouble(void)
{
    struct slot *slot = &world.slots[sim_below(world.slot_count)];
    struct sim_process *daemon = &sim.processes[0];
    switch (sim_below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        if (slot->life == NULL) {
            service_start(slot);
        }
        break;
    case 5:
    case 6:
    case 7:
        kill_service(slot);
        if (sim_one_in(2)) {
            service_start(slot);
        }
        break;
    case 8:
    case 9:
        if (slot->life != NULL) {
            slot->life->leave = true;
        }
        break;
    case 10:
    case 11:
    case 12:
        if (slot->life != NULL) {
            pause_process(slot->life->process);
        }
        break;
    case 13:
    case 14:
        if (daemon->state == SIM_ENDED) {
            daemon_start();
        } else if (sim_one_in(2)) {
            kill_daemon();
        } else {
            stop_daemon();
        }
        break;
    case 15:
    case 16:
        if (daemon->state == SIM_ENDED) {
            daemon_start();
        } else {
            pause_process(daemon);
        }
        break;
    case 17:
    case 18:
        /* The whole machine sleeps: every clock is late at once. */
        sim.now_ns += some_pause_ns();
        sim_log("the machine has slept");
        break;
    default:
        break;
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

/** Lets one process run, or time pass until one can. */
static void step(uint64_t until_ns)
{
    struct sim_process *ready[SIM_PROCESSES_MAX];
    unsigned count = 0;
    sim.steps++;
    for (unsigned i = 0; i <= world.slot_count; i++) {
        if (sim_process_can_run(&sim.processes[i])) {
            ready[count++] = &sim.processes[i];
        }
    }
    if (count > 0) {
        sim_process_run(ready[sim_below(count)]);
        if (sim_one_in(16)) {
            sim.now_ns += sim_below(200) * SIM_US;
        }
        return;
    }
    oracle_idle();
    uint64_t next_ns = until_ns;
    for (unsigned i = 0; i <= world.slot_count; i++) {
        const uint64_t at_ns = sim_process_deadline_ns(&sim.processes[i]);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    if (next_ns > sim.now_ns) {
        sim.now_ns = next_ns;
    }
}

static bool too_long(void)
{
    if (sim.steps > STEPS_MAX) {
        violation(NULL, "the history does not end (6)");
    }
    return world.failed;
}

static void run_trouble(unsigned troubles, uint64_t skipped)
{
    unsigned count = 0;
    const uint64_t end_ns = sim.now_ns + (20 + sim_below(world.length_ms)) * SIM_MS;
    const uint32_t calm_us = 500 + sim_below(world.calm_us);
    next_trouble_ns = sim.now_ns;
    while (sim.now_ns < end_ns && count < troubles && !too_long()) {
        if (sim.now_ns >= next_trouble_ns) {
            if ((skipped >> count & 1) == 0) {
                trouble();
            }
            count++;
            next_trouble_ns = sim.now_ns + (1 + sim_below(calm_us)) * SIM_US;
        }
        step(next_trouble_ns);
    }
}

static void settle(void)
{
    sim_log("left alone from here");
    world.quiet = true;
    for (unsigned i = 0; i < SIM_PROCESSES_MAX; i++) {
        if (sim_process_is_paused(&sim.processes[i])) {
            sim_process_pause(&sim.processes[i], sim.now_ns);
        }
    }
    const uint64_t end_ns = sim.now_ns + SETTLE_NS;
    const char *missing = "";
    while (missing != NULL && !too_long()) {
        if (sim.processes[0].state == SIM_ENDED) {
            daemon_start();
        }
        const uint64_t look_ns = sim.now_ns + 50 * SIM_MS;
        while (sim.now_ns < look_ns && !too_long()) {
            step(look_ns);
        }
        missing = oracle_converged();
        if (missing != NULL && sim.now_ns > end_ns) {
            for (unsigned s = 0; sim.verbose && s < world.slot_count; s++) {
                if (world.slots[s].life != NULL) {
                    sim_log("%s:", world.slots[s].path);
                    service_describe(world.slots[s].life);
                }
            }
            violation(NULL, "after %u s of quiet: %s", (unsigned)(SETTLE_NS / SIM_S), missing);
        }
    }
}

static void everybody_leaves(void)
{
    bool any = true;
    for (unsigned s = 0; s < world.slot_count; s++) {
        if (world.slots[s].life != NULL) {
            world.slots[s].life->leave = true;
        }
    }
    while (any && !too_long()) {
        step(SIM_NEVER - 1);
        any = false;
        for (unsigned s = 0; s < world.slot_count; s++) {
            any = any || world.slots[s].life != NULL;
        }
    }
    while (sim.processes[0].state != SIM_ENDED && !too_long()) {
        stop_daemon();
        step(SIM_NEVER - 1);
    }
    if (!world.failed && sim.files != 0) {
        violation(NULL, "%u files are left when everybody has gone (7)", sim.files);
    }
}

static void check_left_behind(void)
{
    for (unsigned i = 0; i <= world.slot_count; i++) {
        if (sim.processes[i].state == SIM_ENDED && sim.processes[i].left_behind != 0) {
            violation(NULL, "%s left %u things behind (7)", sim.processes[i].name,
                      sim.processes[i].left_behind);
        }
    }
}

bool history_run(uint64_t seed, unsigned troubles, uint64_t skipped)
{
    sim_kernel_reset(seed);
    world.seed = seed;
    world.figures.histories++;
    make_world();
    daemon_start();
    run_trouble(troubles, skipped);
    if (!world.failed) {
        settle();
    }
    if (!world.failed) {
        everybody_leaves();
    }
    if (!world.failed) {
        check_left_behind();
    }
    world.figures.events += sim.steps;
    return !world.failed;
}
