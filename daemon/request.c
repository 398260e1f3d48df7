/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/request.h"

#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_LIMIT_NS (UINT64_C(10) * 1000 * 1000 * 1000)

/** What must have happened before. */
enum request_stage { STAGE_NEW, STAGE_GREETED, STAGE_REGISTERED };

static const struct request_entry {
    enum rbi_wire_type type;
    enum request_stage stage;
    rbi_request_fn handle;
} request_table[] = {
    {RBI_WIRE_HELLO, STAGE_NEW, rbi_handle_hello},
    {RBI_WIRE_REGISTER, STAGE_GREETED, rbi_handle_registration},
    {RBI_WIRE_SET_STATE, STAGE_REGISTERED, rbi_handle_set_state},
    {RBI_WIRE_TARGET, STAGE_GREETED, rbi_handle_target},
    {RBI_WIRE_UNTARGET, STAGE_GREETED, rbi_handle_untarget},
    {RBI_WIRE_INTRODUCE, STAGE_REGISTERED, rbi_handle_introduce},
    {RBI_WIRE_ACCEPT, STAGE_REGISTERED, rbi_handle_accept},
    {RBI_WIRE_REFUSE, STAGE_REGISTERED, rbi_handle_refuse},
    {RBI_WIRE_LINK_DOWN, STAGE_REGISTERED, rbi_handle_link_down},
    {RBI_WIRE_RELINK, STAGE_REGISTERED, rbi_handle_relink},
    {RBI_WIRE_WATCH, STAGE_GREETED, rbi_handle_watch},
    {RBI_WIRE_UNWATCH, STAGE_GREETED, rbi_handle_unwatch},
    {RBI_WIRE_QUERY, STAGE_GREETED, rbi_handle_query},
    {RBI_WIRE_DRAIN, STAGE_GREETED, rbi_handle_drain},
    {RBI_WIRE_DRAIN_REPORT, STAGE_REGISTERED, rbi_handle_drain_report},
    {RBI_WIRE_APPLY, STAGE_GREETED, rbi_handle_apply},
    {RBI_WIRE_EDIT, STAGE_GREETED, rbi_handle_edit},
    {RBI_WIRE_ROLLBACK, STAGE_GREETED, rbi_handle_rollback},
    {RBI_WIRE_GET_TEXT, STAGE_GREETED, rbi_handle_get_text},
    {RBI_WIRE_HISTORY, STAGE_GREETED, rbi_handle_history},
    {RBI_WIRE_DESCRIBE, STAGE_GREETED, rbi_handle_describe},
    {RBI_WIRE_OUTCOMES, STAGE_REGISTERED, rbi_handle_outcomes},
    {RBI_WIRE_KEYED, STAGE_REGISTERED, rbi_handle_keyed},
    {RBI_WIRE_DRY_RUN, STAGE_REGISTERED, rbi_handle_dry_run},
    {RBI_WIRE_LEASE_DEMAND, STAGE_REGISTERED, rbi_handle_lease_demand},
    {RBI_WIRE_PROBE, STAGE_REGISTERED, rbi_handle_probe},
    {RBI_WIRE_PROBE_RESULT, STAGE_REGISTERED, rbi_handle_probe_result},
    {RBI_WIRE_UNSHIELD, STAGE_GREETED, rbi_handle_unshield},
    {RBI_WIRE_MAY_LINK, STAGE_GREETED, rbi_handle_may_link},
    {RBI_WIRE_NODE, STAGE_GREETED, rbi_handle_node},
    {RBI_WIRE_WHO, STAGE_GREETED, rbi_handle_who},
    {RBI_WIRE_PROXY, STAGE_REGISTERED, rbi_handle_proxy},
    {RBI_WIRE_BRIDGE, STAGE_GREETED, rbi_handle_bridge},
    {RBI_WIRE_HOST, STAGE_GREETED, rbi_handle_host},
    {RBI_WIRE_EDGES, STAGE_GREETED, rbi_handle_edges},
    {RBI_WIRE_CONFIRM, STAGE_GREETED, rbi_handle_confirm},
    {RBI_WIRE_HOP, STAGE_GREETED, rbi_handle_hop},
    {RBI_WIRE_FOLLOW, STAGE_GREETED, rbi_handle_follow},
    {RBI_WIRE_PLACE, STAGE_REGISTERED, rbi_handle_place},
};

/* ---- whom it is about -------------------------------------------------------------------- */

struct rbi_endpoint *rbi_request_instance(const struct rbi_request *request,
                                          const struct rbi_text *path)
{
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (rbi_pidf_parse(path->bytes, path->length, &pidf, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        rbi_request_refuse(request, RBI_CODE_PATH, "not the path of an instance");
        return NULL;
    }
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, pidf.cluster);
    struct rbi_endpoint *endpoint = cluster ? rbi_cluster_member(cluster, pidf.instance) : NULL;
    if (!endpoint || endpoint->peer->doomed || endpoint->state == RBI_ENDPOINT_CLOSED) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE, "no instance %.200s", path->bytes);
        return NULL;
    }
    return endpoint;
}

/* ---- answers --------------------------------------------------------------------------- */

void rbi_request_ok(const struct rbi_request *request, uint64_t value)
{
    const struct rbi_wire_ok ok = {.value = value};
    rbi_peer_send(request->peer, RBI_WIRE_OK, &ok, request->serial);
}

void rbi_request_refuse(const struct rbi_request *request, int code, const char *format, ...)
{
    char text[RBI_WIRE_TEXT_MAX + 1];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    rbi_peer_send_error(request->peer, request->serial, code, 0, "%s", text);
}

void rbi_request_refuse_quota(const struct rbi_request *request, const struct rbi_text *why)
{
    struct rbi_daemon *daemon = request->daemon;
    const struct rbi_peer *peer = request->peer;
    uint64_t suppressed = 0;
    daemon->counters.quota_refusals++;
    if (rbi_log_limit_pass(&daemon->refusal_limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "quota_refused",
                "path=%s uid=%" PRIu32 " pid=%s why=\"%s\" suppressed=%" PRIu64,
                peer->endpoint ? peer->endpoint->path.bytes : "none", peer->uid,
                rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid), why->bytes, suppressed);
    }
    rbi_request_refuse(request, RBI_CODE_QUOTA, "%s", why->bytes);
}

void rbi_request_refuse_errno(const struct rbi_request *request, const char *what, int error)
{
    static const struct {
        int error;
        int code;
        const char *text;
    } known[] = {
        {-EBADF, RBI_CODE_BAD_PEER, "not a sealed memfd"},
        {-EFBIG, RBI_CODE_BAD_PEER, "of another size than it says"},
        {-EPROTO, RBI_CODE_BAD_PEER, "of another kind or layout"},
        {-ENOMEM, RBI_CODE_NO_MEMORY, "the daemon is out of memory"},
        {-EMFILE, RBI_CODE_NO_FDS, "the daemon is out of descriptors"},
        {-ENFILE, RBI_CODE_NO_FDS, "the machine is out of descriptors"},
        {-ENOBUFS, RBI_CODE_NOT_READY, "the instance does not read its control messages"},
        {-EPIPE, RBI_CODE_PEER_GONE, "the instance died or left"},
        {-ECONNRESET, RBI_CODE_PEER_GONE, "the instance died before it had read everything"},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(known); i++) {
        if (known[i].error == error) {
            rbi_request_refuse(request, known[i].code, "%s: %s", what, known[i].text);
            return;
        }
    }
    rbi_request_refuse(request, RBI_CODE_SYSTEM, "%s: %s", what, rbi_log_errno(-error));
}

void rbi_peer_violation(struct rbi_peer *peer, uint32_t reply_to, const char *format, ...)
{
    struct rbi_daemon *daemon = peer->daemon;
    char text[RBI_WIRE_TEXT_MAX + 1];
    uint64_t suppressed = 0;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    daemon->counters.bad_frames++;
    if (rbi_log_limit_pass(&daemon->bad_frame_limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        struct rbi_log_text quoted;
        rbi_log(RBI_LOG_WARNING, "bad_frame", "uid=%" PRIu32 " pid=%s why=%s suppressed=%" PRIu64,
                peer->uid, rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid),
                rbi_log_quote(&quoted, text, strlen(text)), suppressed);
    }
    rbi_peer_send_error(peer, reply_to, RBI_CODE_BAD_PEER, 0, "%s", text);
    rbi_peer_doom(peer, "broke the protocol");
}

/* ---- dispatch -------------------------------------------------------------------------- */

static const struct request_entry *request_find(unsigned type)
{
    for (size_t i = 0; i < RBI_ARRAY_SIZE(request_table); i++) {
        if ((unsigned)request_table[i].type == type) {
            return &request_table[i];
        }
    }
    return NULL;
}

/** @return whether the client is far enough for this message; if not it has been told */
static bool request_stage_ok(const struct request_entry *entry, const struct rbi_request *request)
{
    const char *name = rbi_wire_type_name((unsigned)entry->type);
    struct rbi_peer *peer = request->peer;
    if (entry->stage == STAGE_NEW && peer->hello) {
        rbi_peer_violation(peer, request->serial, "%s comes once, at the beginning", name);
        return false;
    }
    if (entry->stage != STAGE_NEW && !peer->hello) {
        rbi_peer_violation(peer, request->serial, "%s before HELLO", name);
        return false;
    }
    if (entry->stage == STAGE_REGISTERED && !peer->endpoint) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "%s needs a registered endpoint", name);
        return false;
    }
    return true;
}

/** @return whether the descriptors are those that the message carries */
static bool request_fds_ok(const struct rbi_request *request,
                           const struct rbi_wire_header *header,
                           bool truncated)
{
    const char *name = rbi_wire_type_name(header->type);
    const unsigned expected = rbi_wire_type_fds(header->type);
    if (header->fd_count != expected) {
        rbi_peer_violation(request->peer, request->serial,
                           "%s carries %u descriptors, its header says %u", name, expected,
                           header->fd_count);
        return false;
    }
    if (request->fds->count == expected) {
        return true;
    }
    if (truncated) {
        request->daemon->counters.no_fds++;
        rbi_request_refuse(request, RBI_CODE_NO_FDS,
                           "descriptors of %s were lost on the way: the daemon is out of them",
                           name);
    } else {
        rbi_peer_violation(request->peer, request->serial, "%s came with %u of %u descriptors",
                           name, request->fds->count, expected);
    }
    return false;
}

void rbi_request_handle(struct rbi_peer *peer,
                        const struct rbi_wire_header *header,
                        const void *frame,
                        struct rbi_fdlist *fds)
{
    union rbi_wire_body body;
    struct rbi_wire_fault fault;
    const struct request_entry *entry = request_find(header->type);
    if (!entry && peer->hello && header->version > RBI_WIRE_PROTOCOL_MAX &&
        !rbi_wire_type_known(header->type)) {
        /* Of a later protocol than HELLO_OK told: skipped by its length. */
        rbi_peer_send_error(peer, header->serial, RBI_CODE_VERSION, 0,
                            "message type %u is not known to this daemon, which speaks protocol %u",
                            header->type, RBI_WIRE_PROTOCOL_MAX);
        return;
    }
    if (!entry) {
        rbi_peer_violation(peer, header->serial, "message type %u is not one of a client",
                           header->type);
        return;
    }
    const int result = rbi_wire_decode(header, frame, &body, &fault);
    if (result != 0) {
        rbi_peer_violation(peer, header->serial, "%s", result < 0 ? fault.text : "unknown message");
        return;
    }
    const struct rbi_request request = {
        .daemon = peer->daemon, .peer = peer, .serial = header->serial, .body = &body, .fds = fds};
    if (request_stage_ok(entry, &request) && request_fds_ok(&request, header, fds->truncated)) {
        entry->handle(&request);
    }
}
