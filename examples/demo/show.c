/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate shows. */
#include "gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double us(const struct gate *gate, double share)
{
    return (double)histogram_percentile(&gate->round_trip, share) / 1e3;
}

static double elapsed_s(const struct gate *gate)
{
    return (double)(gate_now_ns() - gate->begin_ns) / 1e9;
}

/* Share of an instance in what its cluster has handled, in percent. */
static double share(const struct gate *gate, const struct peer *peer)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < gate->peer_count; i++) {
        if (gate->peers[i].addr.cluster == peer->addr.cluster) {
            sum += gate->peers[i].figures.handled;
        }
    }
    return sum > 0 ? 100.0 * (double)peer->figures.handled / (double)sum : 0;
}

static int table(const struct gate *gate)
{
    double s = elapsed_s(gate);
    printf("ringbus demo: %zu files, %.1f MB below %s; %.1f s of %" PRIu64 "\033[K\n",
           gate->files.count, (double)gate->files.bytes / 1e6, gate->input, s, gate->seconds);
    printf("messages    %12" PRIu64 "  %10.0f /s\033[K\n", gate->messages,
           (double)gate->messages / s);
    printf("contents    %9.1f MB  %7.1f MB/s\033[K\n", (double)gate->reply_bytes / 1e6,
           (double)gate->reply_bytes / 1e6 / s);
    printf("requests    %12" PRIu64 "  %10.0f /s  %u under way\033[K\n", gate->replies,
           (double)gate->replies / s, gate->in_flight);
    printf("round trip  p50 %.1f us  p99 %.1f us  p99.9 %.1f us\033[K\n", us(gate, 0.5),
           us(gate, 0.99), us(gate, 0.999));
    printf("mismatches  %" PRIu64 ", failures %" PRIu64 "\033[K\n", gate->mismatches,
           gate->failures);
    for (unsigned i = 0; i < gate->peer_count; i++) {
        const struct peer *peer = &gate->peers[i];
        printf("%-10s  %12" PRIu64 "  %5.1f %%  %8.1f MB  %" PRIu64 " announcements%s\033[K\n",
               peer->name, peer->figures.handled, share(gate, peer),
               (double)peer->figures.bytes / 1e6, peer->figures.announcements,
               peer->ready ? "" : "  (gone)");
    }
    return 6 + (int)gate->peer_count;
}

static void line(const struct gate *gate)
{
    double s = elapsed_s(gate);
    printf("%5.1f s: %" PRIu64 " messages, %.0f /s, %.1f MB/s, p50 %.1f us, p99 %.1f us, "
           "p99.9 %.1f us;",
           s, gate->messages, (double)gate->messages / s, (double)gate->reply_bytes / 1e6 / s,
           us(gate, 0.5), us(gate, 0.99), us(gate, 0.999));
    for (unsigned i = 0; i < gate->peer_count; i++) {
        printf(" %s %.1f %%", gate->peers[i].name, share(gate, &gate->peers[i]));
    }
    putchar('\n');
}

static void object(const struct gate *gate, const char *type)
{
    double s = elapsed_s(gate);
    printf("{\"type\":\"%s\",\"seconds\":%.3f,\"files\":%zu,\"bytes\":%" PRIu64
           ",\"mismatches\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"skipped\":%zu",
           type, s, gate->answered, gate->bytes, gate->mismatches, gate->failures,
           gate->files.skipped);
    printf(",\"messages\":%" PRIu64 ",\"messages_per_s\":%.0f,\"requests\":%" PRIu64
           ",\"total_bytes\":%" PRIu64 ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f",
           gate->messages, (double)gate->messages / s, gate->replies, gate->reply_bytes,
           us(gate, 0.5), us(gate, 0.99), us(gate, 0.999));
    printf(",\"instances\":[");
    for (unsigned i = 0; i < gate->peer_count; i++) {
        const struct peer *peer = &gate->peers[i];
        printf("%s{\"name\":\"%s\",\"handled\":%" PRIu64 ",\"share\":%.1f,\"bytes\":%" PRIu64
               ",\"announcements\":%" PRIu64 "}",
               i > 0 ? "," : "", peer->name, peer->figures.handled, share(gate, peer),
               peer->figures.bytes, peer->figures.announcements);
    }
    printf("]}\n");
}

void gate_show(const struct gate *gate)
{
    static int lines; /* on the screen from last time */
    if (gate->json) {
        object(gate, "progress");
    } else if (isatty(STDOUT_FILENO)) {
        if (lines > 0) {
            printf("\033[%dA", lines);
        }
        lines = table(gate);
    } else {
        line(gate);
    }
    fflush(stdout);
}

void gate_show_end(const struct gate *gate)
{
    double s = elapsed_s(gate);
    if (gate->json) {
        object(gate, "result");
    } else {
        printf("demo: %zu files, %" PRIu64 " bytes, %" PRIu64
               " mismatches, %.0f msg/s, p50 %.1f us, p99 %.1f us\n",
               gate->answered, gate->bytes, gate->mismatches, (double)gate->messages / s,
               us(gate, 0.5), us(gate, 0.99));
    }
    fflush(stdout);
}
