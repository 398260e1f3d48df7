/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate: asks the lobbies for every file below a directory, again and again for some
 * seconds, up to 64 at a time, and compares what comes back with its own hash.
 */
#include "gate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define READY_WAIT_NS UINT64_C(10000000000)
#define TICK_NS       UINT64_C(500000000)
#define ANNOUNCE_NS   UINT64_C(100000000)
/* After the time is over, for files that were not answered yet. */
#define STRAGGLERS_NS    UINT64_C(30000000000)
#define MISMATCHES_NAMED 10U

static struct gate gate;

uint64_t gate_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static struct peer *peer_find(const struct ringbus_addr *addr)
{
    for (unsigned i = 0; i < gate.peer_count; i++) {
        struct peer *peer = &gate.peers[i];
        if (peer->addr.cluster == addr->cluster && peer->addr.instance == addr->instance) {
            return peer;
        }
    }
    return NULL;
}

/* Adds a peer where its name sorts, so that the table stays calm. */
static struct peer *peer_add(const struct ringbus_event *event)
{
    struct peer peer = {.ready = 0};
    const char *name = strrchr(event->path, '/');
    while (name != NULL && name > event->path && name[-1] != '/') {
        name--;
    }
    if (gate.peer_count == GATE_PEERS_MAX || name == NULL) {
        return NULL;
    }
    snprintf(peer.name, sizeof peer.name, "%s", name);
    unsigned at = gate.peer_count++;
    while (at > 0 && strcmp(gate.peers[at - 1].name, peer.name) > 0) {
        gate.peers[at] = gate.peers[at - 1];
        at--;
    }
    gate.peers[at] = peer;
    return &gate.peers[at];
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)bus, (void)user;
    if (event->type != RINGBUS_EVENT_READY && event->type != RINGBUS_EVENT_DOWN) {
        return;
    }
    struct peer *peer = peer_find(&event->addr);
    if (peer == NULL && event->type == RINGBUS_EVENT_READY) {
        peer = peer_add(event);
    }
    if (peer != NULL) {
        peer->addr = event->addr;
        peer->ready = event->type == RINGBUS_EVENT_READY;
    }
}

static unsigned ready_count(const struct ringbus_addr *cluster)
{
    unsigned count = 0;
    for (unsigned i = 0; i < gate.peer_count; i++) {
        count += gate.peers[i].ready && gate.peers[i].addr.cluster == cluster->cluster;
    }
    return count;
}

static void on_answer(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct slot *slot = context;
    struct file *file = slot->file;
    const struct ringbus_message *message = result->message;
    (void)bus;
    gate.in_flight--;
    file->pending = 0;
    slot->next = gate.free;
    gate.free = slot;
    if (result->outcome != RINGBUS_REPLIED) {
        gate.failures++;
        return;
    }
    if (message->size != DEMO_HASH_BYTES || memcmp(message->data, slot->hash, message->size) != 0) {
        if (gate.mismatches++ < MISMATCHES_NAMED) {
            fprintf(stderr, "demo: mismatch: %s\n", file->path);
        }
        return;
    }
    histogram_add(&gate.round_trip, result->elapsed_ns);
    gate.replies++;
    gate.reply_bytes += slot->size;
    gate.messages += 4; /* gate, lobby, battle and back */
    if (!file->answered) {
        file->answered = 1;
        gate.answered++;
        gate.bytes += slot->size;
    }
}

/* The file to ask for: in turn while there is time, then those that have no answer yet. */
static struct file *file_next(int over)
{
    for (size_t tried = 0; tried < gate.files.count; tried++) {
        struct file *file = &gate.files.items[(gate.next + tried) % gate.files.count];
        if (!file->pending && (!over || !file->answered)) {
            gate.next = (gate.next + tried) % gate.files.count;
            return file;
        }
    }
    return NULL;
}

/* Fills the window as far as there is room. @return 0, or an error that ends the demo */
static int ask(int over)
{
    while (gate.free != NULL) {
        struct file *file = file_next(over);
        const unsigned char *data = file != NULL ? files_content(&gate.files, file) : NULL;
        if (data == NULL) {
            gate.next += file != NULL;
            return 0;
        }
        struct slot *slot = gate.free;
        slot->file = file;
        slot->size = file->size;
        memcpy(slot->hash, file->hash, sizeof slot->hash);
        int r = ringbus_request(gate.bus, &gate.lobby, file->key, data, file->size, RINGBUS_KEY,
                                DEMO_TIMEOUT_MS, on_answer, slot);
        if (r < 0) {
            return ringbus_error_kind(r) == RINGBUS_ERROR_USAGE ? r : 0;
        }
        gate.free = slot->next;
        gate.in_flight++;
        gate.next++;
        file->pending = 1;
    }
    return 0;
}

static void announce(uint64_t number)
{
    struct ringbus_addr all[2] = {gate.lobby, gate.battle};
    char text[64];
    int size = snprintf(text, sizeof text, "announcement %llu", (unsigned long long)number);
    for (int i = 0; i < 2; i++) {
        all[i].instance = RINGBUS_ALL;
        int r = ringbus_send(gate.bus, &all[i], 0, text, (size_t)size, 0);
        if (r > 0) {
            gate.announced += (uint64_t)r;
            gate.messages += (uint64_t)r;
        }
    }
}

static void on_figures(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct peer *peer = peer_find(&result->peer);
    (void)bus, (void)context;
    if (peer == NULL) {
        return;
    }
    peer->asked = 0;
    if (result->outcome == RINGBUS_REPLIED && result->message->size == sizeof peer->figures) {
        memcpy(&peer->figures, result->message->data, sizeof peer->figures);
        gate.messages += 2;
    }
}

static void ask_figures(void)
{
    for (unsigned i = 0; i < gate.peer_count; i++) {
        struct peer *peer = &gate.peers[i];
        if (peer->ready && !peer->asked) {
            peer->asked =
                ringbus_request(gate.bus, &peer->addr, 0, NULL, 0, 0, 2000, on_figures, NULL) > 0;
        }
    }
}

static int figures_asked(void)
{
    for (unsigned i = 0; i < gate.peer_count; i++) {
        if (gate.peers[i].asked) {
            return 1;
        }
    }
    return 0;
}

/* Dispatches; waits a little when there was nothing. */
static int step(int timeout_ms)
{
    int r = ringbus_poll(gate.bus, 256);
    return r == 0 ? ringbus_wait(gate.bus, timeout_ms) : r;
}

static int wait_ready(unsigned lobbies, unsigned battles)
{
    uint64_t end_ns = gate_now_ns() + READY_WAIT_NS;
    int r = ringbus_target(gate.bus, DEMO_LOBBY, NULL, &gate.lobby);
    if (r == 0) {
        r = ringbus_target(gate.bus, DEMO_BATTLE, NULL, &gate.battle);
    }
    while (r >= 0 && (ready_count(&gate.lobby) < lobbies || ready_count(&gate.battle) < battles)) {
        if (demo_stopping() || gate_now_ns() > end_ns) {
            return RINGBUS_E_TIMEOUT;
        }
        r = step(100);
    }
    return r;
}

static int run(void)
{
    uint64_t tick_ns = gate.begin_ns + TICK_NS;
    uint64_t announce_ns = gate.begin_ns;
    uint64_t end_ns = gate.begin_ns + gate.seconds * UINT64_C(1000000000);
    uint64_t number = 0;
    int r = 0;
    while (r >= 0 && !demo_stopping()) {
        uint64_t now_ns = gate_now_ns();
        int over = now_ns >= end_ns;
        int complete = gate.answered == gate.files.count || gate.mismatches > 0;
        if (over && gate.in_flight == 0 && (complete || now_ns > end_ns + STRAGGLERS_NS)) {
            return 0;
        }
        if (now_ns >= announce_ns) {
            announce(++number);
            announce_ns = now_ns + ANNOUNCE_NS;
        }
        if (now_ns >= tick_ns) {
            ask_figures();
            gate_show(&gate);
            tick_ns = now_ns + TICK_NS;
        }
        r = ask(over);
        if (r >= 0) {
            r = step(gate.free != NULL ? 1 : 20);
        }
    }
    return r;
}

/* Each instance's last word, so that the shares add up. */
static void figures_final(void)
{
    uint64_t end_ns = gate_now_ns() + UINT64_C(1000000000);
    while (figures_asked() && gate_now_ns() < end_ns && step(20) >= 0) {
    }
    ask_figures();
    while (figures_asked() && gate_now_ns() < end_ns && step(20) >= 0) {
    }
}

static int demo(int argc, char **argv)
{
    unsigned lobbies = (unsigned)demo_number(argc, argv, "--lobbies", 2);
    unsigned battles = (unsigned)demo_number(argc, argv, "--battles", 3);
    int r = wait_ready(lobbies, battles);
    if (r < 0) {
        fprintf(stderr, "demo: %u of %u lobbies and %u of %u battles are there: %s\n",
                ready_count(&gate.lobby), lobbies, ready_count(&gate.battle), battles,
                ringbus_strerror(r));
        return 1;
    }
    gate.begin_ns = gate_now_ns();
    r = run();
    if (r < 0) {
        fprintf(stderr, "demo: %s\n", ringbus_errmsg(gate.bus));
        return 1;
    }
    figures_final();
    gate_show(&gate);
    return 0;
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    gate.input = "/usr/include";
    gate.seconds = demo_number(argc, argv, "--seconds", 10);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            gate.json = 1;
        } else if (strcmp(argv[i], "--input") == 0 && i + 1 < argc) {
            gate.input = argv[i + 1];
        }
    }
    for (unsigned i = 0; i < DEMO_WINDOW; i++) {
        gate.slots[i].next = gate.free;
        gate.free = &gate.slots[i];
    }
    if (files_load(&gate.files, gate.input) != 0) {
        files_free(&gate.files);
        return 1;
    }
    options.path = DEMO_GATE;
    options.on_event = on_event;
    demo_pool(&options, gate.files.largest);
    if (ringbus_open(&options, &gate.bus) != 0) {
        fprintf(stderr, "demo: %s\n", ringbus_errmsg(NULL));
        files_free(&gate.files);
        return 1;
    }
    demo_signals(gate.bus);
    int code = demo(argc, argv);
    gate_show_end(&gate);
    int complete = gate.answered == gate.files.count && gate.mismatches == 0;
    int closed = ringbus_close(gate.bus, 2000);
    files_free(&gate.files);
    return code == 0 && complete && closed == 0 ? 0 : 1;
}
