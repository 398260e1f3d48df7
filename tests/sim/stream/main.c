/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams between two bridges, through cuts behind any frame, two ways that are out of step, deaths
 * of bridges, hosts in between that know no way, links that end and begin at any time, on both
 * sides at once: a seed decides. Scenarios 108, 110, 113.
 *
 * What must hold at every step:
 *   - each record arrives once and in order, and nothing of one link in another
 *   - what is acknowledged has arrived; what a link's end calls not seen has not, and never does
 *   - a link that ends in order has all of its records arrive, if nobody dies or is given up
 *   - nothing comes twice, and what is sent again after a cut is no more than was in flight
 *   - a receiver never keeps more than its window
 *   - the way is called cut and back in turns, a link ends once
 * In the end, when faults stop: both hosts have the same stream or none, everything has arrived and
 * is acknowledged, and nobody is left waiting.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS        800U
#define SETTLE_STEPS 200000U

struct world world;

uint32_t below(uint32_t n)
{
    world.rng = world.rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(world.rng >> 33) % n;
}

bool chance(unsigned of_1000)
{
    return below(1000) < of_1000;
}

void fail(const char *what, const struct tunnel *tunnel)
{
    (void)fprintf(stderr, "seed %llu, %llu us: %s\n", (unsigned long long)world.seed,
                  (unsigned long long)world.now_ns / 1000, what);
    if (tunnel != NULL) {
        (void)fprintf(stderr, "  stream %llx.%llu, state %d\n",
                      (unsigned long long)tunnel->stream.id.life,
                      (unsigned long long)tunnel->stream.id.number, (int)tunnel->stream.state);
    }
    exit(1);
}

/* ---- what endpoints do --------------------------------------------------------------------- */

/** Whether the pair has a local link here, or is to have one. */
static bool has_link(const struct host *host, const struct tunnel *but)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        const struct tunnel *tunnel = &host->tunnels[i];
        const bool there =
            tunnel->used && tunnel->link != NOBODY && host->links[tunnel->link].state != LINK_LEFT;
        if (tunnel->used && tunnel != but && (there || tunnel->linking)) {
            return true;
        }
    }
    return false;
}

static void ask_for_link(struct host *host)
{
    if (host->alive && !has_link(host, NULL)) {
        tunnel_open(host, link_new(host, LINK_ASKED));
    }
}

/** The local link of an acceptor: when that of an earlier stream is gone. */
static void make_link(struct host *host, struct tunnel *tunnel)
{
    if (!tunnel->linking || (!world.quiet && !chance(100))) {
        return;
    }
    if (!world.quiet && world.cut_rate != 0 && chance(100)) {
        tunnel->linking = false;
        tunnel_feed(host, tunnel,
                    (struct rbi_stream_input){.type = RBI_STREAM_IN_FAILED, .code = -3});
    } else if (!has_link(host, tunnel)) {
        tunnel->linking = false;
        tunnel->link = link_new(host, LINK_UP);
        tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_LINKED});
    }
}

/** The endpoint ends its link: in order, or as its rights go. */
static void leave(struct host *host, bool now)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tunnel *tunnel = &host->tunnels[i];
        if (!tunnel->used || tunnel->link == NOBODY ||
            host->links[tunnel->link].state == LINK_LEFT) {
            continue;
        }
        struct link *link = &host->links[tunnel->link];
        world.ledgers[link->id].left = true;
        link->state = LINK_LEFT;
        link->unread = 0; /* nobody reads any more */
        link->read_records = link->unread_records;
        host->link = NOBODY;
        while (tunnel->queued != 0) { /* what waits is for nobody */
            rbi_stream_rx_free(&tunnel->stream.rx, tunnel->queue[--tunnel->queued].kept);
        }
        tunnel_feed(host, tunnel,
                    (struct rbi_stream_input){.type = RBI_STREAM_IN_LEFT,
                                              .now = now,
                                              /* Tells whose CLOSE it was. */
                                              .reason = host == &world.hosts[0]
                                                            ? RBI_REASON_LEFT
                                                            : RBI_REASON_UNTARGETED});
    }
}

static void die(struct host *host)
{
    const unsigned index = host == &world.hosts[0] ? 0 : 1;
    world.deaths++;
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tunnel *tunnel = &host->tunnels[i];
        if (tunnel->used && tunnel->link != NOBODY) {
            struct link *link = &host->links[tunnel->link];
            if (link->state != LINK_LEFT) {
                link_end(host, tunnel, tunnel->stream.tx.furthest);
            }
            link->state = LINK_NONE;
        }
        tunnel->used = false;
    }
    host->alive = false;
    host->link = NOBODY;
    for (uint32_t way = 0; way < WAYS; way++) {
        wire_cut(way);
        world.conns[way].up[index] = false;
    }
}

static void revive(struct host *host)
{
    host->alive = true;
    host->life = (uint64_t)below(1U << 30) << 8 | (world.deaths & 0xff) | 1U << 31;
    host->count = below(3);
}

/* ---- one step ------------------------------------------------------------------------------ */

static void turn(struct host *host)
{
    for (unsigned i = 0; i < STREAMS && host->alive; i++) {
        struct tunnel *tunnel = &host->tunnels[i];
        if (!tunnel->used) {
            continue;
        }
        make_link(host, tunnel);
        if (tunnel->used && world.now_ns >= rbi_stream_deadline_ns(&tunnel->stream)) {
            const bool retries = tunnel->stream.deadline_ns > world.now_ns;
            const unsigned index = host == &world.hosts[0] ? 0 : 1;
            tunnel->way = retries ? below(WAYS) : tunnel->way;
            tunnel->conn = world.conns[tunnel->way].up[index] ? world.conns[tunnel->way].id : 0;
            tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_TICK});
            if (tunnel->used && retries && tunnel->conn == 0) { /* there is no way after all */
                tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_CUT});
            }
        }
        if (tunnel->used && (world.quiet || chance(200))) {
            tunnel_find_way(host, tunnel);
        }
        tunnel_pump(host, tunnel);
        tunnel_serve(host, tunnel);
    }
    if (host->link != NOBODY) {
        struct link *link = &host->links[host->link];
        const unsigned index = host == &world.hosts[0] ? 0 : 1;
        for (unsigned n = 0; n < 4 && link->state == LINK_UP; n++) {
            if (world.quiet || chance(world.reads[index])) {
                link_read(link);
            }
            if (!world.quiet && chance(world.writes[index])) {
                link_write(link);
            }
        }
    }
}

static void meddle(void)
{
    struct host *host = &world.hosts[below(HOSTS)];
    const uint32_t way = below(WAYS);
    if (!host->alive) {
        if (chance(world.quiet ? 1000 : 20)) {
            revive(host);
        }
        return;
    }
    wire_connect(way);
    if (chance(world.quiet ? 300 : world.notice_rate)) {
        wire_notice(way, below(HOSTS));
    }
    if (world.quiet) {
        return;
    }
    if (chance(world.cut_rate)) {
        wire_cut(way);
    }
    if (chance(world.death_rate)) {
        die(host);
    }
    if (chance(world.leave_rate)) {
        leave(host, chance(200));
    }
    if (chance(30)) {
        ask_for_link(host);
        if (chance(300)) {
            ask_for_link(other_host(host));
        }
    }
    if (chance(world.jump_rate)) { /* long enough for anything to be given up */
        world.now_ns += SECOND * (1 + below(4));
    }
}

static void step(void)
{
    world.now_ns += below(200000);
    meddle();
    turn(&world.hosts[below(HOSTS)]);
    for (unsigned n = below(6); n > 0; n--) {
        const uint32_t way = below(WAYS);
        if (world.quiet || chance(world.speed[way])) {
            (void)wire_deliver(way, below(HOSTS));
        }
    }
}

/* ---- the end ------------------------------------------------------------------------------- */

static const struct tunnel *mate_of(const struct host *host, const struct tunnel *tunnel)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        const struct tunnel *mate = &other_host(host)->tunnels[i];
        if (mate->used && mate->stream.id.life == tunnel->stream.id.life &&
            mate->stream.id.number == tunnel->stream.id.number) {
            return mate;
        }
    }
    return NULL;
}

/** Nothing is under way, and what there is agrees. @return why not, or NULL */
static const char *unsettled(void)
{
    for (unsigned h = 0; h < HOSTS; h++) {
        const struct host *host = &world.hosts[h];
        for (unsigned i = 0; i < STREAMS; i++) {
            const struct tunnel *tunnel = &host->tunnels[i];
            if (!tunnel->used) {
                continue;
            }
            const struct rbi_stream *stream = &tunnel->stream;
            const struct tunnel *mate = mate_of(host, tunnel);
            if (stream->state != RBI_STREAM_OPEN) {
                return "a stream is not open";
            }
            if (mate == NULL || mate->stream.state != RBI_STREAM_OPEN) {
                return "one side has a stream that the other has not";
            }
            const struct link *link = &host->links[tunnel->link];
            if (link->state != LINK_UP || link->held) {
                return "a link is not up, or held";
            }
            if (stream->tx.acked != link->write_pos || stream->tx.pos != link->write_pos ||
                world.ledgers[link->id].arrived != world.ledgers[link->id].written) {
                return "not everything has arrived and is acknowledged";
            }
        }
    }
    return NULL;
}

static void some_rates(void)
{
    static const unsigned rates[] = {20, 100, 400, 1000};
    world.cut_rate = chance(100) ? 0 : 1 + below(40);
    world.death_rate = world.cut_rate == 0 || chance(500) ? 0 : 1 + below(5);
    world.leave_rate = chance(300) ? 0 : 1 + below(20);
    world.notice_rate = 5 + below(100);
    world.jump_rate = world.cut_rate == 0 || chance(500) ? 0 : 1 + below(4);
    for (unsigned i = 0; i < WAYS; i++) {
        world.speed[i] = rates[below(4)];
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        world.reads[i] = rates[below(4)];
        world.writes[i] = rates[below(4)];
    }
}

static void run(uint64_t seed, bool verbose)
{
    memset(&world, 0, sizeof world);
    world.seed = seed;
    world.rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    world.verbose = verbose;
    world.now_ns = SECOND;
    some_rates();
    world.start = chance(300) ? UINT64_MAX - 64 * (uint64_t)below(300) - 63 : 0; /* they wrap */
    for (unsigned h = 0; h < HOSTS; h++) {
        world.hosts[h].id = h == 0 ? 10 : chance(500) ? 5 : 20;
        world.hosts[h].link = NOBODY;
        world.hosts[h].next_handle = 1000 * h;
        revive(&world.hosts[h]);
    }
    for (unsigned i = 0; i < STEPS; i++) {
        step();
    }
    world.quiet = true;
    unsigned steps = 0;
    const char *why = "";
    do {
        step();
        why = steps % 100 == 0 ? unsettled() : why;
    } while (why != NULL && ++steps < SETTLE_STEPS);
    CHECK(why == NULL, why, NULL);
    ledgers_check();
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    uint64_t runs = getenv("RINGBUS_TEST_FULL") != NULL ? 60000 : 4000;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
            runs = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else {
            (void)fprintf(stderr, "usage: sim_stream [--seed N] [--runs N] [--verbose]\n");
            return 2;
        }
    }
    struct world total = {0};
    for (uint64_t i = 0; i < runs; i++) {
        run(seed + i, verbose);
        total.arrived += world.arrived;
        total.cuts += world.cuts;
        total.resumed += world.resumed;
        total.resent += world.resent;
        total.deaths += world.deaths;
        total.clean_ends += world.clean_ends;
    }
    (void)printf("%llu runs: %llu records, %llu cuts, %llu resumptions, %llu bytes again, %llu "
                 "deaths, %llu ends in order\n",
                 (unsigned long long)runs, (unsigned long long)total.arrived,
                 (unsigned long long)total.cuts, (unsigned long long)total.resumed,
                 (unsigned long long)total.resent, (unsigned long long)total.deaths,
                 (unsigned long long)total.clean_ends);
    return total.arrived > 0 && total.resumed > 0 && total.clean_ends > 0 ? 0 : 1;
}
