/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chaos soak: processes that all talk to each other, while they and the daemon are killed,
 * stopped, starved of descriptors and of memory at random. In the end every message has
 * exactly one fate, and whoever lived longest holds no more than who came last.
 *
 *   soak [--seconds N] [--processes N] [--seed S] [--without FAULT,FAULT...]
 *
 * FAULT is kill, stop, leave, fds, memory, daemon-kill, daemon-stop, daemon-fds or govern.
 *
 * Meanwhile an operator changes weights, limits and rights (govern.c), and some instances fail
 * most of what they are asked, so that they are shielded.
 */
#include "actor.h"
#include "audit.h"
#include "govern.h"
#include "support/bus.h"
#include "support/raw.h"

#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLE_MS   30000U /* a sender's end is known to every receiver by then */
#define PATIENT_MS  20000U
#define QUIET_MS    60000U
#define STOPPED_MAX 4U

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_LIMIT_MEMORY false /* a sanitizer maps terabytes */
#else
#define CAN_LIMIT_MEMORY true
#endif

enum slot_state { SLOT_EMPTY, SLOT_RUNNING, SLOT_STOPPED };

/** A place for one process at a time. */
struct slot {
    enum slot_state state;
    pid_t pid;
    uint32_t life;
    uint64_t due_ms;           /* EMPTY: of the next start; STOPPED: when it goes on */
    uint64_t limited_until_ms; /* descriptors or memory are short till then; 0: no */
};

struct tally {
    unsigned kills, stops, terms, daemon_kills, daemon_stops, fd_limits, memory_limits;
    unsigned daemon_fd_limits;
};

static struct {
    struct soak_ledger *ledger;
    struct cluster cluster;
    struct slot slots[SOAK_SLOTS_MAX];
    unsigned slot_count;
    uint32_t life_count;
    uint32_t first_unsettled;
    uint64_t *ended_ms; /* by life; 0: lives */
    bool *table_used;
    uint64_t random;
    uint64_t daemon_due_ms;       /* of its next start; 0: it runs */
    uint64_t daemon_resume_ms;    /* 0: it is not stopped */
    uint64_t daemon_unlimited_ms; /* 0: it is not limited */
    uint64_t daemon_calm_ms;      /* nothing is done to it before */
    const char *without;
    struct tally tally;
    struct soak_sums sums;
} soak;

static const char config[] =
    "quota:\n  connections: 10000\n  connects: 10000\n  control: 100000\n  instances: 10000\n"
    "  bytes: 4GiB\ndaemon:\n  log_level: warning\n";
static char config_text[4096]; /* of the configuration, with the policy */

static uint32_t any_below(uint32_t bound)
{
    return (uint32_t)(bus_random(&soak.random) % bound);
}

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "soak: %s\n", what);
    soak_govern_stop();
    for (unsigned i = 0; i < soak.slot_count; i++) {
        if (soak.slots[i].state != SLOT_EMPTY) {
            child_kill(soak.slots[i].pid);
        }
    }
    (void)cluster_stop(&soak.cluster); /* its log is to be read */
    exit(1);                           /* NOLINT(concurrency-mt-unsafe) */
}

/* ---- lives ---------------------------------------------------------------- */

static uint32_t take_table(void)
{
    for (uint32_t i = 0; i < soak.ledger->tables; i++) {
        if (!soak.table_used[i]) {
            soak.table_used[i] = true;
            return i;
        }
    }
    return UINT32_MAX;
}

static void start(unsigned index)
{
    struct slot *slot = &soak.slots[index];
    const uint32_t table = take_table();
    if (table == UINT32_MAX || soak.life_count == soak.ledger->lives_max) {
        slot->due_ms = test_now_ms() + 100; /* until the books of older lives are closed */
        return;
    }
    struct soak_life *life = &soak.ledger->lives[soak.life_count];
    life->slot = index;
    life->fates = table;
    slot->life = soak.life_count++;
    const uint64_t seed = bus_random(&soak.random);
    sigset_t term;
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, NULL); /* until it can hear it */
    const pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGINT, SIG_IGN);
        _exit(soak_actor(soak.ledger, slot->life, soak.cluster.socket, seed));
    }
    (void)sigprocmask(SIG_UNBLOCK, &term, NULL);
    if (pid < 0) {
        give_up("fork failed");
    }
    slot->pid = pid;
    slot->state = SLOT_RUNNING;
    slot->limited_until_ms = 0;
}

static void ended(struct slot *slot, int status)
{
    struct soak_life *life = &soak.ledger->lives[slot->life];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        if (atomic_load(&life->end) == SOAK_LIVING) {
            soak_violation(soak.ledger, "life %u ended without a word", slot->life);
        }
    } else if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        soak_violation(soak.ledger, "life %u (pid %d) ended with status %x", slot->life,
                       (int)slot->pid, (unsigned)status);
    }
    if (atomic_load(&life->end) == SOAK_LIVING) {
        atomic_store(&life->end, SOAK_KILLED);
    }
    soak.ended_ms[slot->life] = test_now_ms();
    slot->state = SLOT_EMPTY;
    slot->due_ms = test_now_ms() + (any_below(2) == 0 ? 0 : any_below(300));
}

static void reap(void)
{
    for (unsigned i = 0; i < soak.slot_count; i++) {
        struct slot *slot = &soak.slots[i];
        int status = 0;
        if (slot->state != SLOT_EMPTY && waitpid(slot->pid, &status, WNOHANG) == slot->pid) {
            ended(slot, status);
        }
    }
}

static void settle(void)
{
    while (soak.first_unsettled < soak.life_count &&
           atomic_load(&soak.ledger->lives[soak.first_unsettled].settled)) {
        soak.first_unsettled++;
    }
    for (uint32_t i = soak.first_unsettled; i < soak.life_count; i++) {
        struct soak_life *life = &soak.ledger->lives[i];
        if (soak.ended_ms[i] == 0 || atomic_load(&life->settled)) {
            continue;
        }
        const uint64_t age_ms = test_now_ms() - soak.ended_ms[i];
        if (soak_audit(soak.ledger, i, age_ms < PATIENT_MS, &soak.sums)) {
            atomic_store(&life->settled, 1);
            soak.table_used[life->fates] = false;
        } else if (age_ms > SETTLE_MS) {
            soak_violation(soak.ledger, "the end of life %u is not known to everybody", i);
            atomic_store(&life->settled, 1);
        }
    }
}

/* ---- chaos ---------------------------------------------------------------- */

static bool may(const char *fault)
{
    const char *at = soak.without ? strstr(soak.without, fault) : NULL;
    const size_t length = strlen(fault);
    while (at &&
           ((at != soak.without && at[-1] != ',') || (at[length] != '\0' && at[length] != ','))) {
        at = strstr(at + 1, fault);
    }
    return at == NULL;
}

static void limit(pid_t pid, int which, rlim_t value)
{
    struct rlimit old;
    if (prlimit(pid, (enum __rlimit_resource)which, NULL, &old) == 0) {
        const struct rlimit new = {.rlim_cur = value < old.rlim_max ? value : old.rlim_max,
                                   .rlim_max = old.rlim_max};
        (void)prlimit(pid, (enum __rlimit_resource)which, &new, NULL);
    }
}

static unsigned fds_of(pid_t pid)
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) { /* NOLINT(concurrency-mt-unsafe) */
        count++;
    }
    if (folder) {
        (void)closedir(folder);
    }
    return count > 2 ? count - 2 : 0;
}

static uint64_t bytes_of(pid_t pid)
{
    char path[64];
    unsigned long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%lu", &pages) != 1) { /* NOLINT(cert-err34-c) */
            pages = 0;
        }
        (void)fclose(file);
    }
    return (uint64_t)pages * 4096;
}

static void limit_slot(struct slot *slot, bool memory)
{
    if (!may(memory ? "memory" : "fds")) {
        return;
    }
    if (memory) {
        limit(slot->pid, RLIMIT_AS, bytes_of(slot->pid) + any_below(1U << 19));
        soak.tally.memory_limits++;
    } else {
        limit(slot->pid, RLIMIT_NOFILE, fds_of(slot->pid) + any_below(4));
        soak.tally.fd_limits++;
    }
    slot->limited_until_ms = test_now_ms() + 50 + any_below(1000);
}

static unsigned stopped_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < soak.slot_count; i++) {
        count += soak.slots[i].state == SLOT_STOPPED;
    }
    return count;
}

static void harm_slot(unsigned dice)
{
    struct slot *slot = &soak.slots[any_below(soak.slot_count)];
    if (slot->state != SLOT_RUNNING) {
        return;
    }
    if (dice < 40 && may("kill")) {
        (void)kill(slot->pid, SIGKILL);
        soak.tally.kills++;
    } else if (dice >= 40 && dice < 65 && may("stop") && stopped_count() < STOPPED_MAX) {
        (void)kill(slot->pid, SIGSTOP);
        slot->state = SLOT_STOPPED;
        slot->due_ms = test_now_ms() + 20 + any_below(any_below(3) == 0 ? 2000 : 300);
        soak.tally.stops++;
    } else if (dice >= 65 && dice < 80 && may("leave")) {
        (void)kill(slot->pid, SIGTERM);
        soak.tally.terms++;
    } else if (dice >= 80 && slot->limited_until_ms == 0) {
        limit_slot(slot, CAN_LIMIT_MEMORY && any_below(2) == 0);
    }
}

static void harm_daemon(uint64_t now_ms)
{
    if (soak.daemon_due_ms != 0 || soak.daemon_resume_ms != 0 || soak.daemon_unlimited_ms != 0 ||
        now_ms < soak.daemon_calm_ms) {
        return;
    }
    static const char *const faults[] = {"daemon-kill", "daemon-stop", "daemon-fds"};
    const unsigned fault = any_below(3);
    if (!may(faults[fault])) {
        return;
    }
    switch (fault) {
    case 0:
        cluster_kill(&soak.cluster);
        soak.daemon_due_ms = now_ms + 1 + any_below(any_below(3) == 0 ? 1500 : 100);
        soak.tally.daemon_kills++;
        break;
    case 1:
        (void)kill(soak.cluster.pid, SIGSTOP);
        soak.daemon_resume_ms = now_ms + 10 + any_below(800);
        soak.tally.daemon_stops++;
        break;
    default:
        limit(soak.cluster.pid, RLIMIT_NOFILE, fds_of(soak.cluster.pid) + any_below(6));
        soak.daemon_unlimited_ms = now_ms + 20 + any_below(800);
        soak.tally.daemon_fd_limits++;
        break;
    }
}

static void mend_daemon(uint64_t now_ms, bool all)
{
    if (soak.daemon_due_ms != 0 && (all || now_ms >= soak.daemon_due_ms)) {
        if (cluster_start(&soak.cluster) != 0) {
            give_up("the daemon does not start");
        }
        soak.daemon_due_ms = 0;
        soak.daemon_calm_ms = now_ms + 500;
    }
    if (soak.daemon_resume_ms != 0 && (all || now_ms >= soak.daemon_resume_ms)) {
        (void)kill(soak.cluster.pid, SIGCONT);
        soak.daemon_resume_ms = 0;
    }
    if (soak.daemon_unlimited_ms != 0 && (all || now_ms >= soak.daemon_unlimited_ms)) {
        limit(soak.cluster.pid, RLIMIT_NOFILE, 20000);
        soak.daemon_unlimited_ms = 0;
    }
    int status = 0;
    if (soak.daemon_due_ms == 0 && waitpid(soak.cluster.pid, &status, WNOHANG) != 0) {
        soak_violation(soak.ledger, "the daemon ended by itself, status %x", (unsigned)status);
        soak.cluster.pid = 0;
        soak.daemon_due_ms = now_ms;
    }
}

/** Goes on with what was stopped or limited, starts what is due. */
static void mend(uint64_t now_ms, bool all)
{
    mend_daemon(now_ms, all);
    for (unsigned i = 0; i < soak.slot_count; i++) {
        struct slot *slot = &soak.slots[i];
        const bool due = all || now_ms >= slot->due_ms;
        if (slot->state == SLOT_STOPPED && due) {
            (void)kill(slot->pid, SIGCONT);
            slot->state = SLOT_RUNNING;
        } else if (slot->state == SLOT_EMPTY && due) {
            start(i);
        }
        if (slot->state != SLOT_EMPTY && slot->limited_until_ms != 0 &&
            (all || now_ms >= slot->limited_until_ms)) {
            limit(slot->pid, RLIMIT_NOFILE, 20000);
            limit(slot->pid, RLIMIT_AS, RLIM_INFINITY);
            slot->limited_until_ms = 0;
        }
    }
}

static void chaos(unsigned seconds)
{
    const uint64_t end_ms = test_now_ms() + (uint64_t)seconds * 1000;
    uint64_t harm_ms = test_now_ms() + 1000;
    for (uint64_t now_ms = 0; (now_ms = test_now_ms()) < end_ms;) {
        reap();
        mend(now_ms, false);
        if (now_ms >= harm_ms) {
            const unsigned dice = any_below(100);
            if (dice < 92) {
                harm_slot(dice);
            } else {
                harm_daemon(now_ms);
            }
            harm_ms = now_ms + any_below(120);
        }
        if (may("govern")) {
            soak_govern_step(now_ms);
        }
        settle();
        if (atomic_load(&soak.ledger->violations) != 0) {
            return;
        }
        test_sleep_ms(2);
    }
}

/* ---- the end ---------------------------------------------------------------- */

static bool everybody_quiet(void)
{
    for (unsigned i = 0; i < soak.slot_count; i++) {
        const struct slot *slot = &soak.slots[i];
        if (slot->state != SLOT_RUNNING || !atomic_load(&soak.ledger->lives[slot->life].quiet)) {
            return false;
        }
    }
    return true;
}

/** Whether old lives hold as many descriptors and mappings as new ones. */
static bool everybody_holds_the_same(bool last_look)
{
    const struct soak_life *first = &soak.ledger->lives[soak.slots[0].life];
    bool same = true;
    for (unsigned i = 1; i < soak.slot_count; i++) {
        const struct soak_life *life = &soak.ledger->lives[soak.slots[i].life];
        if (atomic_load(&life->fds) == atomic_load(&first->fds) &&
            atomic_load(&life->maps) == atomic_load(&first->maps)) {
            continue;
        }
        same = false;
        if (last_look) {
            soak_violation(soak.ledger,
                           "leak: slot %u holds %u descriptors and %u mappings, slot 0 %u and %u",
                           i, atomic_load(&life->fds), atomic_load(&life->maps),
                           atomic_load(&first->fds), atomic_load(&first->maps));
        }
    }
    return same;
}

/** All are whole again and linked with each other; then an old life has what a new one has. */
static void calm_down(void)
{
    const uint64_t deadline_ms = test_now_ms() + QUIET_MS;
    mend(test_now_ms(), true);
    soak_govern_undo();
    test_sleep_ms(500);
    atomic_store(&soak.ledger->phase, SOAK_QUIET);
    while (!everybody_quiet() && atomic_load(&soak.ledger->violations) == 0) {
        if (test_now_ms() > deadline_ms) {
            for (unsigned i = 0; i < soak.slot_count; i++) {
                const struct soak_life *life = &soak.ledger->lives[soak.slots[i].life];
                (void)fprintf(stderr, "soak: slot %u: %s, %u links%s\n", i,
                              soak.slots[i].state == SLOT_RUNNING ? "runs" : "does not run",
                              atomic_load(&life->peers),
                              atomic_load(&life->quiet) ? ", quiet" : "");
            }
            soak_violation(soak.ledger, "not everybody found everybody within %u ms", QUIET_MS);
            return;
        }
        reap();
        mend(test_now_ms(), false);
        settle();
        test_sleep_ms(5);
    }
    for (unsigned i = 0; i < 50 && !everybody_holds_the_same(false); i++) {
        test_sleep_ms(100); /* what went out last has come back */
    }
    (void)everybody_holds_the_same(true);
}

static void everybody_leaves(int fds_before)
{
    for (unsigned i = 0; i < soak.slot_count; i++) {
        if (soak.slots[i].state != SLOT_EMPTY) {
            (void)kill(soak.slots[i].pid, SIGTERM);
        }
    }
    for (unsigned i = 0; i < soak.slot_count; i++) {
        int status = 0;
        if (soak.slots[i].state != SLOT_EMPTY) {
            (void)waitpid(soak.slots[i].pid, &status, 0);
            ended(&soak.slots[i], status);
        }
    }
    settle();
    /* Fewer: the file of nodes is open from the first change on, and not in this daemon's life. */
    if (cluster_fd_wait(&soak.cluster, fds_before) > fds_before) {
        soak_violation(soak.ledger, "leak: the daemon holds %d descriptors, at first %d",
                       cluster_fd_count(&soak.cluster), fds_before);
    }
    static const char *const names[] = {"endpoints", "links"};
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t value = raw_status(soak.cluster.socket, names[i]);
        if (value != 0) {
            soak_violation(soak.ledger, "leak: the daemon has %s %llu", names[i],
                           (unsigned long long)value);
        }
    }
}

static void report(void)
{
    const struct tally *t = &soak.tally;
    const struct soak_sums *s = &soak.sums;
    const uint64_t lost = s->both_died + s->forgotten;
    (void)printf("soak: %u lives; killed %u, stopped %u, asked to leave %u, short of descriptors "
                 "%u, of memory %u; the daemon killed %u, stopped %u, short of descriptors %u\n",
                 soak.life_count, t->kills, t->stops, t->terms, t->fd_limits, t->memory_limits,
                 t->daemon_kills, t->daemon_stops, t->daemon_fd_limits);
    (void)printf("soak: offered %llu = delivered %llu + returned %llu + refused %llu + lost with "
                 "their killed sender %llu (receiver killed too %llu, had given it up %llu); "
                 "perhaps seen and seen %llu\n",
                 (unsigned long long)(s->accepted + s->refused), (unsigned long long)s->delivered,
                 (unsigned long long)s->returned, (unsigned long long)s->refused,
                 (unsigned long long)lost, (unsigned long long)s->both_died,
                 (unsigned long long)s->forgotten, (unsigned long long)s->maybe);
    const struct soak_edits edits = soak_govern_edits();
    uint64_t declined = 0;
    uint64_t sheds = 0;
    for (uint32_t i = 0; i < soak.life_count; i++) {
        declined += atomic_load(&soak.ledger->lives[i].declined);
        sheds += atomic_load(&soak.ledger->lives[i].sheds);
        soak_audit_sheds(soak.ledger, i);
    }
    (void)printf("soak: returned are with those that were too late %llu, answered by a mock %llu, "
                 "of %llu that were shed unheard %llu, refused when they were asked %llu; of the "
                 "operator's commands done %u, in vain %u, killed %u\n",
                 (unsigned long long)s->expired, (unsigned long long)s->mocked,
                 (unsigned long long)sheds, (unsigned long long)s->shed,
                 (unsigned long long)declined, edits.done, edits.failed, edits.killed);
    if (s->accepted != s->delivered + s->returned + lost) {
        soak_violation(soak.ledger, "the books do not balance");
    }
}

static unsigned number(const char *text, unsigned least, unsigned most)
{
    char *end = NULL;
    const unsigned long value = strtoul(text, &end, 10);
    if (*end != '\0' || value < least || value > most) {
        (void)fprintf(stderr, "soak: '%s' is not a number from %u to %u\n", text, least, most);
        exit(2); /* NOLINT(concurrency-mt-unsafe) */
    }
    return (unsigned)value;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
                                            {"processes", required_argument, NULL, 'p'},
                                            {"seed", required_argument, NULL, 'r'},
                                            {"without", required_argument, NULL, 'w'},
                                            {NULL, 0, NULL, 0}};
    unsigned seconds = 10;
    uint64_t seed = test_now_ms() ^ (uint64_t)getpid() << 20;
    soak.slot_count = 20;
    for (int c = 0; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's') {
            seconds = number(optarg, 1, 86400);
        } else if (c == 'p') {
            soak.slot_count = number(optarg, 2, SOAK_SLOTS_MAX);
        } else if (c == 'w') {
            soak.without = optarg;
        } else if (c == 'r') {
            seed = strtoull(optarg, NULL, 10);
        } else {
            return 2;
        }
    }
    soak.random = seed;
    const uint32_t lives_max = 1000 + seconds * 20;
    soak.ledger = soak_ledger_new(soak.slot_count, lives_max, 4 * soak.slot_count + 40);
    soak.ended_ms = calloc(lives_max, sizeof *soak.ended_ms);
    soak.table_used = calloc(soak.ledger->tables, sizeof *soak.table_used);
    /* One seed of two: where nobody sheds them, each plain request has a fate of its own. */
    soak.ledger->sheds = seed % 2 == 0;
    (void)snprintf(config_text, sizeof config_text, "%s%s%s", config, soak_policy,
                   soak.ledger->sheds ? "" : "    overload: {sojourn_target: 0us}\n");
    if (!soak.ended_ms || !soak.table_used || cluster_up(&soak.cluster, config_text) != 0) {
        give_up("cannot start");
    }
    soak_govern_init(soak.ledger, &soak.cluster, seed ^ 0x676f7665);
    (void)printf("soak: %u processes, %u s, --seed %llu\n", soak.slot_count, seconds,
                 (unsigned long long)seed);
    (void)fflush(stdout);
    (void)raw_status(soak.cluster.socket, "endpoints");
    test_sleep_ms(300); /* that connection is over */
    const int fds_before = cluster_fd_count(&soak.cluster);
    chaos(seconds);
    if (atomic_load(&soak.ledger->violations) == 0) {
        calm_down();
        everybody_leaves(fds_before);
        report();
    }
    const uint32_t violations = atomic_load(&soak.ledger->violations);
    if (violations != 0) {
        (void)printf("soak: FAILED, %u violations, --seed %llu; the daemon's log is %s\n",
                     violations, (unsigned long long)seed, soak.cluster.log);
        give_up("stopped");
    }
    cluster_down(&soak.cluster);
    (void)printf("soak: passed\n");
    return 0;
}
