/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/control_frames.c - what the frames between us and ringbusd mean. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- getting on the bus ----------------------------------------------------------------- */

void rbi_control_hello(struct ringbus *bus)
{
    struct rbi_wire_hello hello = {.protocol_min = RBI_WIRE_PROTOCOL_MIN,
                                   .protocol_max = RBI_WIRE_PROTOCOL_MAX,
                                   .fingerprint = rbi_layout_fingerprint(),
                                   .layout_min = RBI_LAYOUT_VERSION_MIN,
                                   .layout_max = RBI_LAYOUT_VERSION};
    rbi_text_format(&hello.software, "libringbus %s", ringbus_version());
    rbi_text_set(&hello.program, bus->program);
    (void)rbi_control_send(bus, RBI_WIRE_HELLO, &hello, NULL, 0);
}

static void send_register(struct ringbus *bus)
{
    struct rbi_control *control = &bus->control;
    const int fds[] = {bus->page_segment.fd, bus->pool.segment.fd};
    struct rbi_wire_registration body = {.weight = bus->weight,
                                         .state = bus->state,
                                         .incarnation = bus->self.incarnation,
                                         .page_bytes = bus->page_segment.size,
                                         .pool_bytes = bus->pool.segment.size,
                                         .daemon_incarnation = control->daemon_incarnation,
                                         .cookie = control->cookie,
                                         .takeover = bus->takeover && !control->ever_on,
                                         .node = (uint16_t)bus->place.node};
    rbi_text_set(&body.path, bus->self_path);
    rbi_text_set(&body.set, bus->set);
    rbi_text_set(&body.idc, bus->idc);
    rbi_text_set(&body.tags, bus->tags);
    rbi_text_set(&body.token, bus->token);
    control->phase = RBI_CONTROL_REGISTER;
    control->told_state = bus->state;
    control->register_serial =
        rbi_control_send(bus, RBI_WIRE_REGISTER, &body, fds, RBI_ARRAY_SIZE(fds));
}

static void
on_hello_ok(struct ringbus *bus, const struct rbi_wire_hello_ok *body, struct rbi_fdlist *fds)
{
    struct rbi_control *control = &bus->control;
    const int fd = rbi_fdlist_steal(fds, 0);
    if (fd < 0) {
        rbi_control_lost(bus, "no descriptor for the directory: out of file descriptors?");
        bus->error.code = RINGBUS_E_NO_FDS;
        return;
    }
    rbi_terms_from_daemon(bus, body);
    rbi_place_begin(bus, body->nodes);
    control->protocol = (uint32_t)rbi_min_u64(body->protocol, RBI_WIRE_PROTOCOL_MAX);
    const bool greeting = control->phase == RBI_CONTROL_HELLO; /* else a larger one takes over */
    /* First: while the daemon looks at it there is time for the mapping. */
    if (greeting) {
        send_register(bus);
        control->hello_incarnation = body->daemon_incarnation;
        /* Time of its own: when this process was stopped, the first is over by now. */
        control->deadline_ns = rbi_now_ns() + RBI_HANDSHAKE_NS;
        control->settling = control->protocol >= 2 && body->settling != 0;
        control->nodes_lost = body->nodes_lost != 0;
        control->compared_revision = 0;
    }
    const int r = rbi_directory_map(bus, fd, body->directory_bytes, greeting && control->ever_on);
    (void)close(fd);
    if (r < 0) {
        /* Who comes again is given it again: else nothing could be looked up for good. */
        rbi_control_lost(bus, "its directory cannot be mapped");
        (void)rbi_fail_errno(bus, r, "mapping the directory of ringbusd");
    }
}

static void publish_identity(struct ringbus *bus)
{
    rbi_store_rlx(&bus->page->cluster, bus->self.cluster);
    rbi_store_rlx(&bus->page->instance, (uint64_t)(uint32_t)bus->self.instance);
    rbi_store_rlx(&bus->page->incarnation, bus->self.incarnation);
    rbi_store_rlx(&bus->page->state, bus->state);
}

/* A new daemon learns of our links from both ends; then it can tell one of the other's death. */
static void tell_links(struct ringbus *bus)
{
    if (bus->control.protocol < 2) {
        return; /* it would take RELINK for an offence */
    }
    for (unsigned i = 0; i < bus->end_count && bus->control.phase == RBI_CONTROL_ON; i++) {
        const struct rbi_end *end = bus->ends[i];
        if (end->phase != RBI_END_LINKED || end->loop || end->link_id == 0) {
            continue;
        }
        const struct rbi_wire_relink body = {.link_id = end->link_id,
                                             .cluster = end->peer.cluster,
                                             .instance = end->peer.instance,
                                             .incarnation = end->peer.incarnation,
                                             .requester = end->serial != 0,
                                             .side_bytes = end->own_side.size,
                                             .limited =
                                                 end->may_get != NULL || end->may_send != NULL};
        (void)rbi_control_send(bus, RBI_WIRE_RELINK, &body, NULL, 0);
    }
}

static void on_registered(struct ringbus *bus,
                          const struct rbi_wire_header *header,
                          const struct rbi_wire_registered *body)
{
    struct rbi_control *control = &bus->control;
    if (control->phase != RBI_CONTROL_REGISTER || header->reply_to != control->register_serial) {
        return;
    }
    const bool back = control->ever_on;
    const bool same_life = body->incarnation == bus->self.incarnation;
    bus->self.cluster = body->cluster;
    bus->self.instance = body->instance;
    bus->self.incarnation = body->incarnation;
    if (bus->loop_end != NULL) {
        bus->loop_end->peer.incarnation = body->incarnation; /* we are who we are told to be */
    }
    (void)snprintf(bus->self_path, sizeof bus->self_path, "%s", body->path.bytes);
    control->cookie = body->cookie;
    if (back && control->daemon_incarnation != control->hello_incarnation) {
        rbi_alarm_sights_over(bus);
    }
    /* Not before: one that we left half-registered has not given us anything. */
    control->daemon_incarnation = control->hello_incarnation;
    control->slot = body->slot;
    control->phase = RBI_CONTROL_ON;
    control->ever_on = true;
    control->retry_count = 0;
    publish_identity(bus);
    if (bus->state != control->told_state) {
        rbi_control_state(bus, bus->state); /* it changed while REGISTER was under way */
    }
    rbi_probe_forget(bus);
    rbi_outcomes_tell(bus, false);
    if (back) {
        bus->daemon_back_pending = true; /* behind a loss that was not reported yet */
        if (same_life) {
            tell_links(bus); /* else their other ends were told of our death */
        }
        rbi_target_returned(bus);
        rbi_nodes_returned(bus, same_life);
        rbi_drain_resend(bus);
    }
}

void rbi_control_state(struct ringbus *bus, uint32_t state)
{
    const struct rbi_wire_set_state body = {.state = state};
    bus->state = state;
    rbi_store_rlx(&bus->page->state, state);
    (void)rbi_control_send(bus, RBI_WIRE_SET_STATE, &body, NULL, 0);
}

/* ---- links ------------------------------------------------------------------------------ */

static void refuse(struct ringbus *bus, uint64_t link_id, int code, const char *text)
{
    struct rbi_wire_refuse body = {.link_id = link_id, .code = code};
    rbi_text_set(&body.text, text);
    (void)rbi_control_send(bus, RBI_WIRE_REFUSE, &body, NULL, 0);
}

/* We want this peer too, or wait for it to meet us: say READY on the link that there is. */
static void open_if_wanted(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_link_terms terms;
    if (!end->wanted && rbi_target_wants(bus, &end->peer, &terms)) {
        rbi_terms_say(bus, end, &terms);
    }
}

static int accept_link(struct ringbus *bus,
                       const struct rbi_wire_introduced *body,
                       int *fds,
                       struct rbi_end **out)
{
    const struct rbi_pidf peer = {
        .cluster = body->cluster, .instance = body->instance, .incarnation = body->incarnation};
    if (rbi_residue_limit(bus, &peer)) {
        return rbi_fail(bus, RINGBUS_E_QUOTA, "%s holds payloads of %u ended links",
                        body->path.bytes, RBI_RESIDUES_MAX);
    }
    struct rbi_end *end = rbi_end_new(bus, &peer, body->path.bytes, body->relayed != 0);
    if (end == NULL) {
        return bus->error.code;
    }
    end->link_id = body->link_id;
    if (rbi_rights_methods(bus, end, &body->get, &body->send) != 0) {
        rbi_end_free(bus, end);
        return bus->error.code;
    }
    int side_fd = end->own_side.fd;
    end->own_side.fd = -1; /* attaching closes it, ACCEPT still needs it */
    int r = rbi_end_attach(bus, end, fds[0], body->side_bytes, &fds[1], body->pool_bytes, fds[2]);
    if (r == 0 && rbi_bell_check(fds[3]) != 0) {
        r = rbi_fail(bus, RINGBUS_E_BAD_PEER, "%s offered a bell that is no socket", end->path);
    }
    if (r == 0) {
        r = rbi_end_index(bus, end);
        r = r == 0 ? rbi_end_activate(bus, end, fds[3]) : r;
        r = r < 0 ? rbi_fail_errno(bus, r, "accepting a link") : 0;
    }
    if (r == 0) {
        const struct rbi_wire_accept accept = {.link_id = body->link_id,
                                               .side_bytes = end->own_side.size};
        if (rbi_control_send(bus, RBI_WIRE_ACCEPT, &accept, &side_fd, 1) == 0) {
            r = RINGBUS_E_NO_DAEMON;
        }
    }
    (void)close(side_fd);
    if (r != 0) {
        if (end->bell >= 0) {
            rbi_epoll_remove(bus, end->bell);
        }
        end->bell = -1; /* still the caller's */
        rbi_end_free(bus, end);
        return r;
    }
    *out = end;
    return 0;
}

static void
on_introduced(struct ringbus *bus, const struct rbi_wire_introduced *body, struct rbi_fdlist *list)
{
    int fds[4];
    unsigned got = 0;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        fds[i] = rbi_fdlist_steal(list, i);
        got += fds[i] >= 0 ? 1U : 0U;
    }
    struct rbi_end *end = NULL;
    int r = 0;
    bool met = false;
    struct rbi_end *old = rbi_end_find(bus, body->cluster, body->instance);
    if (got < RBI_ARRAY_SIZE(fds)) {
        r = rbi_fail(bus, RINGBUS_E_NO_FDS, "a link from %s: out of file descriptors",
                     body->path.bytes);
    } else if (bus->closing) {
        r = rbi_fail(bus, RINGBUS_E_DRAINING, "%s is leaving", bus->self_path);
    } else if (old != NULL && old->phase == RBI_END_INTRODUCING) {
        rbi_end_free(bus, old); /* both asked at once; the daemon chose the other's request */
        met = true;
    } else if (old != NULL && old->peer.incarnation == body->incarnation &&
               old->phase == RBI_END_LINKED) {
        r = rbi_fail(bus, RINGBUS_E_IN_USE, "%s and %s have a link already", old->path,
                     bus->self_path);
    } else if (old != NULL) {
        rbi_end_peer_gone(bus, old, RBI_REASON_REPLACED);
        rbi_end_unindex(bus, old);
    }
    if (r == 0) {
        r = accept_link(bus, body, fds, &end);
    }
    if (end == NULL) {
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
            if (fds[i] >= 0 && i == 3) {
                rbi_bell_close(fds[i]);
            } else if (fds[i] >= 0) {
                rbi_fd_discard(fds[i]);
            }
        }
        refuse(bus, body->link_id, r, ringbus_errmsg(bus));
        if (met) {
            /* Ours is dropped for it, and its refusal will find nobody: ask again. */
            const struct rbi_pidf peer = {.cluster = body->cluster, .instance = body->instance};
            rbi_target_introduce_failed(bus, &peer, RBI_REASON_NONE, r, bus->error.text, false);
        }
        return;
    }
    (void)close(fds[0]); /* mapped; pool and bell stay */
    (void)close(fds[2]);
    end->behind = true; /* whichever there are: one that came to nothing may lie between */
    open_if_wanted(bus, end);
}

static int complete_link(struct ringbus *bus,
                         struct rbi_end *end,
                         const struct rbi_wire_linked *body,
                         struct rbi_fdlist *list)
{
    int fds[3];
    unsigned got = 0;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        fds[i] = rbi_fdlist_steal(list, i);
        got += fds[i] >= 0 ? 1U : 0U;
    }
    int r = 0;
    if (got < RBI_ARRAY_SIZE(fds)) {
        r = rbi_fail(bus, RINGBUS_E_NO_FDS, "the link to %s: out of file descriptors", end->path);
    } else {
        r = rbi_end_attach(bus, end, fds[0], body->side_bytes, &fds[1], body->pool_bytes, fds[2]);
    }
    if (r == 0) {
        const int bell = end->bell;
        r = rbi_end_activate(bus, end, bell);
        r = r < 0 ? rbi_fail_errno(bus, r, "completing a link") : 0;
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    return r;
}

static void on_linked(struct ringbus *bus,
                      const struct rbi_wire_header *header,
                      const struct rbi_wire_linked *body,
                      struct rbi_fdlist *list)
{
    struct rbi_end *end = rbi_end_find_serial(bus, header->reply_to);
    int r = RINGBUS_E_NOT_TARGET;
    if (end != NULL) {
        end->link_id = body->link_id;
        end->relayed = body->relayed != 0;
        end->peer.incarnation = body->incarnation;
        r = rbi_rights_methods(bus, end, &body->get, &body->send);
        r = r != 0 ? r : complete_link(bus, end, body, list);
    }
    if (r != 0) {
        struct rbi_wire_link_down down = {
            .link_id = body->link_id,
            .reason = r == RINGBUS_E_BAD_PEER ? RBI_REASON_BAD_PEER : RBI_REASON_NO_RESOURCES};
        rbi_text_set(&down.text, end != NULL ? ringbus_errmsg(bus) : "no longer wanted");
        if (end != NULL) {
            /* Before anything is sent: losing the daemon then would free it as well. */
            const struct rbi_pidf peer = end->peer;
            rbi_end_free(bus, end);
            rbi_target_introduce_failed(bus, &peer, RBI_REASON_NONE, r, ringbus_errmsg(bus), false);
        }
        (void)rbi_control_send(bus, RBI_WIRE_LINK_DOWN, &down, NULL, 0);
        return;
    }
    open_if_wanted(bus, end);
}

static void on_link_down(struct ringbus *bus, const struct rbi_wire_link_down *body)
{
    struct rbi_end *end = rbi_end_find_link(bus, body->link_id);
    if (end != NULL) {
        const enum rbi_reason reason = rbi_relayed_told(
            end, body->reason > RBI_REASON_LAST ? RBI_REASON_LEFT : (enum rbi_reason)body->reason);
        end->link_id = 0; /* the daemon has forgotten it: nothing to tell it later */
        if (reason == RBI_REASON_DENIED) {
            rbi_rights_revoked(bus, end, body->text.bytes);
            return;
        }
        if (end->phase == RBI_END_LEAVING && end->leave_reason == rbi_relayed_lost(end) &&
            reason == RBI_REASON_LEFT) {
            end->leave_reason = RBI_REASON_LEFT; /* its bell was silent before the daemon spoke */
            rbi_cluster_end_explained(bus, end);
        }
        rbi_end_peer_gone(bus, end, reason);
    }
}

/* ---- news ------------------------------------------------------------------------------- */

static void on_event(struct ringbus *bus, const struct rbi_wire_event *event)
{
    /* Older than what we have read in the directory since: it would bring back the past. */
    if (event->initial == 0 && event->revision <= bus->control.compared_revision) {
        return;
    }
    rbi_target_event(bus, event);
}

/* ---- errors ------------------------------------------------------------------------------ */

static void on_error(struct ringbus *bus,
                     const struct rbi_wire_header *header,
                     const struct rbi_wire_error *body)
{
    struct rbi_control *control = &bus->control;
    const int code = body->code < 0 ? body->code : RINGBUS_E_INTERNAL;
    if (control->phase == RBI_CONTROL_HELLO || control->phase == RBI_CONTROL_REGISTER) {
        rbi_control_lost(bus, body->text.bytes);
        (void)rbi_fail(bus, code, "%s",
                       body->text.bytes[0] != '\0' ? body->text.bytes : ringbus_strerror(code));
        return;
    }
    struct rbi_end *end = header->reply_to != 0 ? rbi_end_find_serial(bus, header->reply_to) : NULL;
    if (end != NULL) {
        const struct rbi_pidf peer = end->peer;
        rbi_end_free(bus, end);
        rbi_target_introduce_failed(bus, &peer,
                                    body->refused != 0 ? RBI_REASON_REFUSED : RBI_REASON_NONE, code,
                                    body->text.bytes, body->link_id != 0);
        return;
    }
    if (rbi_nodes_answer(bus, header->reply_to, 0, body)) {
        return;
    }
    (void)rbi_fail(bus, code, "%s", body->text.bytes);
}

void rbi_control_frame(struct ringbus *bus,
                       const struct rbi_wire_header *header,
                       const union rbi_wire_body *body,
                       struct rbi_fdlist *fds)
{
    switch (header->type) {
    case RBI_WIRE_HELLO_OK:
        on_hello_ok(bus, &body->hello_ok, fds);
        break;
    case RBI_WIRE_REGISTERED:
        on_registered(bus, header, &body->registered);
        break;
    case RBI_WIRE_ERROR:
        on_error(bus, header, &body->error);
        break;
    case RBI_WIRE_EVENT:
        on_event(bus, &body->event);
        break;
    case RBI_WIRE_RESYNC:
        rbi_target_resync(bus);
        rbi_nodes_scan(bus);
        break;
    case RBI_WIRE_OK:
        (void)rbi_nodes_answer(bus, header->reply_to, body->ok.value, NULL);
        break;
    case RBI_WIRE_NODE_STATE:
        rbi_nodes_state(bus, header->reply_to, &body->node_state);
        break;
    case RBI_WIRE_NODE_EVENT:
        rbi_nodes_event(bus, &body->node_event);
        break;
    case RBI_WIRE_ALARM:
        rbi_alarm_sights_event(bus, &body->alarm);
        break;
    case RBI_WIRE_INTRODUCED:
        on_introduced(bus, &body->introduced, fds);
        break;
    case RBI_WIRE_LINKED:
        on_linked(bus, header, &body->linked, fds);
        break;
    case RBI_WIRE_SETTLED:
        bus->control.settling = false;
        if (bus->control.phase == RBI_CONTROL_ON) {
            rbi_target_settled(bus);
            rbi_nodes_scan(bus);
        }
        break;
    case RBI_WIRE_LINK_DOWN:
        on_link_down(bus, &body->link_down);
        break;
    case RBI_WIRE_METHODS:
        rbi_rights_on_methods(bus, &body->methods);
        break;
    case RBI_WIRE_RIGHTS:
        rbi_rights_changed(bus);
        break;
    case RBI_WIRE_REPLACED:
        rbi_rights_replaced(bus, &body->replaced);
        break;
    case RBI_WIRE_PROBE:
        rbi_probe_answer(bus, &body->probe);
        break;
    case RBI_WIRE_PROBE_GRANT:
        rbi_probe_grant(bus, &body->probe_grant);
        break;
    case RBI_WIRE_DRAIN_ORDER:
        rbi_drain_order(bus, &body->drain_order);
        break;
    case RBI_WIRE_LEASE:
        rbi_limit_lease(bus, &body->lease);
        break;
    default:
        break; /* STOPPING and what later versions may say */
    }
}
