/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/hello.h"
#include "daemon/request.h"
#include "shm/layout.h"

#include <inttypes.h>
#include <string.h>

int rbi_hello_send(struct rbi_peer *peer, uint32_t reply_to)
{
    const struct rbi_segment *directory = &peer->daemon->publish.segment;
    struct rbi_wire_hello_ok ok = {.protocol = peer->protocol,
                                   .daemon_incarnation = peer->daemon->incarnation,
                                   .directory_bytes = directory->size,
                                   .ping_interval_ms = peer->daemon->config.liveness.interval_ms,
                                   .ping_misses = peer->daemon->config.liveness.misses,
                                   .debug_hold = peer->daemon->config.liveness.debug_hold != 0,
                                   .settling = peer->daemon->settle.settling,
                                   .nodes_lost = !peer->daemon->nodes.store.whole,
                                   .nodes = (uint16_t)peer->daemon->numa_nodes};
    rbi_text_set(&ok.software, "ringbusd " RINGBUS_VERSION_TEXT);
    return rbi_peer_send_with_fds(peer, RBI_WIRE_HELLO_OK, &ok, reply_to, &directory->fd, 1);
}

void rbi_hello_send_all(struct rbi_daemon *daemon)
{
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        struct rbi_peer *peer = RBI_CONTAINER_OF(node, struct rbi_peer, in_peers);
        if (peer->hello && !peer->doomed && rbi_hello_send(peer, 0) < 0) {
            /* With a directory that nobody writes any more it would be misled. */
            rbi_peer_doom(peer, "cannot be given the directory");
        }
    }
}

/** Name of a program as one path element: it goes into the path of an anonymous client. */
static void hello_program(struct rbi_peer *peer, const struct rbi_text *program)
{
    size_t used = 0;
    for (size_t i = 0; i < program->length && used < RBI_PATH_ELEMENT_MAX; i++) {
        const char c = program->bytes[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
        peer->program[used++] = (char)(plain ? c : '_');
    }
    peer->program[used] = '\0';
    if (used == 0 || peer->program[0] == '.') {
        /* "", "." and ".." are no path elements; no program of that kind needs its own name. */
        (void)memcpy(peer->program, "unknown", sizeof("unknown"));
    }
}

void rbi_handle_hello(const struct rbi_request *request)
{
    const struct rbi_wire_hello *hello = &request->body->hello;
    struct rbi_peer *peer = request->peer;
    if (hello->protocol_min > RBI_WIRE_PROTOCOL_MAX ||
        hello->protocol_max < RBI_WIRE_PROTOCOL_MIN) {
        rbi_request_refuse(
            request, RBI_CODE_VERSION, "the client speaks protocol %u to %u, the daemon %u to %u",
            hello->protocol_min, hello->protocol_max, RBI_WIRE_PROTOCOL_MIN, RBI_WIRE_PROTOCOL_MAX);
        rbi_peer_doom(peer, "other protocol");
        return;
    }
    if (rbi_layout_version_of(hello->fingerprint) == 0) {
        rbi_request_refuse(request, RBI_CODE_VERSION,
                           "the client's memory layout is %" PRIu32 " to %" PRIu32 " (%016" PRIx64
                           "), the daemon's %u to %u (%016" PRIx64
                           "): install versions that follow each other",
                           hello->layout_min, hello->layout_max, hello->fingerprint,
                           RBI_LAYOUT_VERSION_MIN, RBI_LAYOUT_VERSION, rbi_layout_fingerprint());
        rbi_peer_doom(peer, "other layout");
        return;
    }
    peer->protocol = (uint16_t)rbi_min_u64(hello->protocol_max, RBI_WIRE_PROTOCOL_MAX);
    hello_program(peer, &hello->program);
    const int result = rbi_hello_send(peer, request->serial);
    if (result < 0) {
        rbi_request_refuse_errno(request, "directory", result);
        return;
    }
    peer->hello = true;
    rbi_loop_timer_cancel(peer->daemon->loop, &peer->handshake_timer);
}
