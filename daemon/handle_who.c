/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process an instance is of, as rules of routes ask: for who explains a route. It is told to
 * whoever may administer that instance.
 */
#include "daemon/daemon.h"
#include "daemon/process.h"
#include "daemon/request.h"
#include "daemon/rights.h"

#include <stdlib.h>

void rbi_handle_who(const struct rbi_request *request)
{
    struct rbi_wire_who_is answer = {.uid = 0};
    const struct rbi_endpoint *endpoint = rbi_request_instance(request, &request->body->who.path);
    char program[RBI_GLOB_MAX + 1];
    char *text = NULL;
    size_t length = 0;
    if (!endpoint || !rbi_rights_admin(request, endpoint)) {
        return;
    }
    const struct rbi_peer *peer = endpoint->peer;
    if (endpoint->origin) { /* the bridge's process is not its own */
        answer.uid = endpoint->origin->uid;
        answer.gid = UINT32_MAX;
        rbi_peer_send(request->peer, RBI_WIRE_WHO_IS, &answer, request->serial);
        return;
    }
    answer.uid = peer->uid;
    answer.gid = peer->gid;
    (void)rbi_process_file(peer->pid, peer->pidfd, program, sizeof(program));
    rbi_text_set(&answer.program, program);
    const char *cgroup = rbi_process_cgroup(peer->pid, peer->pidfd, &text, &length);
    if (cgroup && length <= RBI_WIRE_TEXT_MAX) {
        rbi_text_format(&answer.cgroup, "%.*s", (int)length, cgroup);
    }
    free(text);
    rbi_peer_send(request->peer, RBI_WIRE_WHO_IS, &answer, request->serial);
}
