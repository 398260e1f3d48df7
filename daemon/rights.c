/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rights.h"

#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/policy.h"
#include "daemon/process.h"
#include "daemon/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define LOG_LIMIT_NS (UINT64_C(10) * 1000 * 1000 * 1000)
/* Links that are asked about in a row, before clients have their turn: a few ms at most. */
#define RIGHTS_BATCH 128U

int rbi_rights_init(struct rbi_rights *rights)
{
    *rights = (struct rbi_rights){.epoch = 1, .uid = geteuid()};
    rights->acl = calloc(1, sizeof(*rights->acl));
    return rights->acl ? 0 : -ENOMEM;
}

void rbi_rights_deinit(struct rbi_rights *rights)
{
    free(rights->acl);
    rights->acl = NULL;
}

/* ---- who asks ------------------------------------------------------------------------------ */

/** A client as the rules see it, when it is, or is about to be, called @p endpoint. */
static struct rbi_acl_subject rights_subject(const struct rbi_peer *peer,
                                             const struct rbi_endpoint *endpoint)
{
    const struct rbi_endpoint *named = endpoint && endpoint->name_offset != 0 ? endpoint : NULL;
    if (endpoint && endpoint->origin) {
        return (struct rbi_acl_subject){.path = named ? named->path.bytes : "",
                                        .path_length = named ? named->path.length : 0,
                                        .tags = endpoint->seen.tags,
                                        .program = "",
                                        .host = endpoint->origin->host,
                                        .uid = endpoint->origin->uid,
                                        .remote = true};
    }
    return (struct rbi_acl_subject){.path = named ? named->path.bytes : "",
                                    .path_length = named ? named->path.length : 0,
                                    .tags = endpoint ? endpoint->seen.tags : "",
                                    .program = "", /* asked with the cgroup, where it counts */
                                    .host = peer->daemon->config.bridge.host,
                                    .uid = peer->uid,
                                    .gid = peer->gid,
                                    .privileged =
                                        peer->uid == 0 || peer->uid == peer->daemon->rights.uid};
}

/** Asks the kernel for what some rule asks, and no rule for what the kernel does not say. */
static void rights_bind(struct rbi_peer *peer, const struct rbi_acl_subject *who)
{
    const struct rbi_rights *rights = &peer->daemon->rights;
    struct rbi_acl_subject subject = *who;
    char program[RBI_GLOB_MAX + 1] = "";
    char *text = NULL;
    if (rights->by_program && !who->remote) {
        (void)rbi_process_file(peer->pid, peer->pidfd, program, sizeof(program));
    }
    subject.program = program;
    if (rights->by_cgroup && !who->remote) {
        size_t length = 0;
        subject.cgroup = rbi_process_cgroup(peer->pid, peer->pidfd, &text, &length);
        subject.cgroup_length = subject.cgroup ? length : 0;
    }
    rbi_acl_bind(rights->acl, &subject, &peer->rights.bound);
    free(text);
}

/** The rules that are left for a client as it is. */
static const struct rbi_acl_bound *rights_bound(struct rbi_peer *peer,
                                                const struct rbi_acl_subject *subject)
{
    const struct rbi_rights *rights = &peer->daemon->rights;
    if (peer->rights.epoch != rights->epoch) {
        rights_bind(peer, subject);
        peer->rights.epoch = rights->epoch;
    }
    return &peer->rights.bound;
}

void rbi_rights_forget(struct rbi_peer *peer)
{
    peer->rights.epoch = 0;
    peer->rights.change++;
}

/* ---- asking -------------------------------------------------------------------------------- */

/** Who is refused: its user, or for a proxy, of whose process nothing is known, its host. */
static void rights_name(const struct rbi_acl_subject *subject, char *out, size_t size)
{
    if (subject->remote) {
        (void)snprintf(out, size, "host %s", subject->host);
    } else {
        (void)snprintf(out, size, "uid %" PRIu32, subject->uid);
    }
}

/** @return whether it may; else @p why says by which rule not */
static bool rights_verdict(const struct rbi_acl *acl,
                           const struct rbi_acl_subject *subject,
                           struct rbi_acl_verdict verdict,
                           enum rbi_acl_verb verb,
                           const struct rbi_acl_object *object,
                           struct rbi_text *why)
{
    if (verdict.allow) {
        return true;
    }
    char who[RBI_HOST_NAME_MAX + 8];
    rights_name(subject, who, sizeof(who));
    if (verdict.rule == RBI_ACL_NO_RULE) {
        rbi_text_format(why,
                        "by default %s may not %s %.100s of uid %" PRIu32
                        ": a rule of rights may allow it",
                        who, rbi_acl_verb_name(verb), object->path, object->uid);
    } else {
        rbi_text_format(why, "rule %s: %s may not %s %.100s", rbi_acl_rule_id(acl, verdict), who,
                        rbi_acl_verb_name(verb), object->path);
    }
    return false;
}

static bool rights_ask(struct rbi_peer *peer,
                       const struct rbi_acl_subject *subject,
                       enum rbi_acl_verb verb,
                       const struct rbi_acl_object *object,
                       struct rbi_text *why)
{
    const struct rbi_acl *acl = peer->daemon->rights.acl;
    return rights_verdict(acl, subject,
                          rbi_acl_ask(acl, rights_bound(peer, subject), subject, verb, object),
                          verb, object, why);
}

static struct rbi_acl_object rights_object(const struct rbi_endpoint *endpoint)
{
    return (struct rbi_acl_object){.path = endpoint->path.bytes,
                                   .path_length = endpoint->path.length,
                                   .uid = endpoint->peer->uid,
                                   .anonymous = endpoint->name_offset == 0};
}

bool rbi_rights_may(struct rbi_peer *peer,
                    enum rbi_acl_verb verb,
                    const struct rbi_endpoint *object,
                    struct rbi_text *why)
{
    const struct rbi_acl_subject subject = rights_subject(peer, peer->endpoint);
    const struct rbi_acl_object asked = rights_object(object);
    return rights_ask(peer, &subject, verb, &asked, why);
}

bool rbi_rights_may_path(struct rbi_peer *peer,
                         enum rbi_acl_verb verb,
                         const char *path,
                         size_t length,
                         struct rbi_text *why)
{
    /* It belongs to nobody: to the operator. */
    return rbi_rights_may_path_of(peer, verb, path, length, peer->daemon->rights.uid, why);
}

bool rbi_rights_may_path_of(struct rbi_peer *peer,
                            enum rbi_acl_verb verb,
                            const char *path,
                            size_t length,
                            uint32_t uid,
                            struct rbi_text *why)
{
    const struct rbi_acl_subject subject = rights_subject(peer, peer->endpoint);
    const struct rbi_acl_object asked = {.path = path, .path_length = length, .uid = uid};
    return rights_ask(peer, &subject, verb, &asked, why);
}

bool rbi_rights_may_own(struct rbi_peer *peer,
                        const struct rbi_endpoint *endpoint,
                        enum rbi_acl_verb verb,
                        uint32_t holder_uid,
                        struct rbi_text *why)
{
    const struct rbi_acl_object asked = {
        .path = endpoint->path.bytes, .path_length = endpoint->path.length, .uid = holder_uid};
    rbi_rights_forget(peer); /* it is not called that yet */
    const struct rbi_acl_subject subject = rights_subject(peer, endpoint);
    const bool may = rights_ask(peer, &subject, verb, &asked, why);
    rbi_rights_forget(peer);
    return may;
}

/** Whether its token opens the other, if it needs one. */
static bool rights_token_opens(const struct rbi_endpoint *requester,
                               const struct rbi_endpoint *server,
                               struct rbi_text *why)
{
    return !server->cluster ||
           !rbi_daemon_policy(server->daemon, server->cluster)->token_required ||
           rbi_peer_token_opens(requester->peer, server, why);
}

bool rbi_rights_may_link(const struct rbi_endpoint *requester,
                         const struct rbi_endpoint *server,
                         struct rbi_text *why)
{
    return rbi_rights_may(requester->peer, RBI_ACL_CONNECT, server, why) &&
           rights_token_opens(requester, server, why);
}

/* ---- methods ------------------------------------------------------------------------------- */

bool rbi_rights_may_send(const struct rbi_endpoint *sender,
                         const struct rbi_endpoint *receiver,
                         uint32_t method,
                         struct rbi_text *why)
{
    struct rbi_peer *peer = sender->peer;
    const struct rbi_acl *acl = peer->daemon->rights.acl;
    const struct rbi_acl_subject subject = rights_subject(peer, sender);
    const struct rbi_acl_object object = rights_object(receiver);
    return rights_verdict(
        acl, &subject,
        rbi_acl_ask_method(acl, rights_bound(peer, &subject), &subject, &object, method),
        RBI_ACL_SEND, &object, why);
}

void rbi_rights_methods_between(const struct rbi_endpoint *sender,
                                const struct rbi_endpoint *receiver,
                                struct rbi_text *out)
{
    struct rbi_peer *peer = sender->peer;
    struct rbi_acl_methods methods;
    const struct rbi_acl_subject subject = rights_subject(peer, sender);
    const struct rbi_acl_object object = rights_object(receiver);
    int cut = rbi_acl_ask_methods(peer->daemon->rights.acl, rights_bound(peer, &subject), &subject,
                                  &object, &methods);
    cut |= rbi_acl_methods_write(&methods, out->bytes, sizeof(out->bytes));
    out->length = (uint16_t)strlen(out->bytes);
    if (cut) {
        rbi_log(RBI_LOG_WARNING, "methods_cut",
                "from=%.150s to=%.150s effect=\"the highest are denied\"", sender->path.bytes,
                receiver->path.bytes);
    }
}

/** 0: every method, both ways, which is what ends know that were told nothing. */
static uint64_t rights_methods_hash(const struct rbi_text texts[2])
{
    const uint64_t first = XXH3_64bits(texts[0].bytes, texts[0].length);
    return texts[0].length + texts[1].length == 0
               ? 0
               : XXH3_64bits_withSeed(texts[1].bytes, texts[1].length, first) | 1;
}

void rbi_rights_methods_of(struct rbi_link *link, struct rbi_text out[2])
{
    rbi_rights_methods_between(link->requester, link->server, &out[0]);
    rbi_rights_methods_between(link->server, link->requester, &out[1]);
    link->methods_told = rights_methods_hash(out);
}

void rbi_rights_tell_methods(struct rbi_link *link)
{
    struct rbi_text texts[2];
    const uint64_t told = link->methods_told;
    rbi_rights_methods_of(link, texts);
    if (link->methods_told == told) {
        return;
    }
    /* Who gets is told before who sends: nothing comes that is not known to be allowed. */
    struct rbi_wire_methods methods = {
        .link_id = link->id, .what = RBI_METHODS_GET, .get = texts[0]};
    rbi_peer_send(link->server->peer, RBI_WIRE_METHODS, &methods, 0);
    if (link->linked) { /* else LINKED will say it */
        methods.what = RBI_METHODS_GET | RBI_METHODS_SEND;
        methods.get = texts[1];
        methods.send = texts[0];
        rbi_peer_send(link->requester->peer, RBI_WIRE_METHODS, &methods, 0);
    }
    methods.what = RBI_METHODS_SEND;
    methods.send = texts[1];
    rbi_peer_send(link->server->peer, RBI_WIRE_METHODS, &methods, 0);
}

/* ---- refusing ------------------------------------------------------------------------------ */

static void rights_log(const struct rbi_peer *peer, const struct rbi_text *why)
{
    struct rbi_daemon *daemon = peer->daemon;
    uint64_t suppressed = 0;
    daemon->counters.denied++;
    if (rbi_log_limit_pass(&daemon->rights.denied_limit, rbi_loop_now_ns(daemon->loop),
                           LOG_LIMIT_NS, &suppressed)) {
        struct rbi_log_text quoted;
        rbi_log(RBI_LOG_WARNING, "denied",
                "path=%s uid=%" PRIu32 " pid=%s why=%s suppressed=%" PRIu64,
                peer->endpoint ? peer->endpoint->path.bytes : "none", peer->uid,
                rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid),
                rbi_log_quote(&quoted, why->bytes, why->length), suppressed);
    }
}

void rbi_rights_refuse(const struct rbi_request *request, const struct rbi_text *why)
{
    request->peer->rights.denied = true;
    rights_log(request->peer, why);
    rbi_request_refuse(request, RBI_CODE_DENIED, "%s", why->bytes);
}

bool rbi_rights_admin(const struct rbi_request *request, const struct rbi_endpoint *object)
{
    struct rbi_text why;
    if (rbi_rights_may(request->peer, RBI_ACL_ADMIN, object, &why)) {
        return true;
    }
    rbi_rights_refuse(request, &why);
    return false;
}

bool rbi_rights_admin_path(const struct rbi_request *request, const char *path, size_t length)
{
    struct rbi_text why;
    if (rbi_rights_may_path(request->peer, RBI_ACL_ADMIN, path, length, &why)) {
        return true;
    }
    rbi_rights_refuse(request, &why);
    return false;
}

/* ---- asking again -------------------------------------------------------------------------- */

static struct rbi_link_rights rights_of_now(const struct rbi_link *link)
{
    return (struct rbi_link_rights){
        .epoch = link->daemon->rights.epoch,
        .changes = {link->requester->peer->rights.change, link->server->peer->rights.change}};
}

void rbi_rights_note_link(struct rbi_link *link)
{
    link->rights = rights_of_now(link);
}

/** What the rules say is as it was: only the token can be another, or be asked for by now. */
static bool rights_as_before(const struct rbi_link *link)
{
    const struct rbi_link_rights now = rights_of_now(link);
    return memcmp(&link->rights, &now, sizeof(now)) == 0;
}

void rbi_rights_recheck_link(struct rbi_link *link)
{
    struct rbi_text why;
    struct rbi_peer *peer = link->requester->peer;
    const bool as_before = rights_as_before(link);
    if (as_before ? rights_token_opens(link->requester, link->server, &why)
                  : rbi_rights_may_link(link->requester, link->server, &why)) {
        if (!as_before) {
            rbi_rights_tell_methods(link);
            rbi_rights_note_link(link);
        }
        return;
    }
    peer->rights.denied = true;
    link->daemon->counters.links_revoked++;
    rights_log(peer, &why);
    rbi_link_end(link, NULL, RBI_REASON_DENIED, RBI_CODE_DENIED, why.bytes);
}

static void rights_recheck_some(void *context)
{
    struct rbi_daemon *daemon = context;
    struct rbi_rights *rights = &daemon->rights;
    unsigned left = RIGHTS_BATCH;
    RBI_LIST_EACH(node, spare, &daemon->links.all)
    {
        struct rbi_link *link = RBI_CONTAINER_OF(node, struct rbi_link, in_links);
        if (link->number <= rights->checked) {
            continue;
        }
        if (left == 0) {
            rbi_loop_timer_set(daemon->loop, &rights->recheck_timer, rbi_loop_now_ns(daemon->loop),
                               rights_recheck_some, daemon);
            return;
        }
        left -= !rights_as_before(link);
        rights->checked = link->number;
        rbi_rights_recheck_link(link);
    }
}

void rbi_rights_recheck(struct rbi_daemon *daemon)
{
    daemon->rights.checked = 0;
    rights_recheck_some(daemon);
}

void rbi_rights_recheck_of(struct rbi_endpoint *requester)
{
    RBI_LIST_EACH(node, spare, &requester->links_out)
    {
        rbi_rights_recheck_link(RBI_CONTAINER_OF(node, struct rbi_link, in_requester));
    }
}

/**
 * Those who were refused may ask again, and those who watch see what they may see now: all when
 * the rules are other ones, else those of whom something else is known now.
 */
static void rights_tell(struct rbi_daemon *daemon, bool changed_rules)
{
    const struct rbi_wire_rights changed = {.epoch = daemon->rights.epoch};
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        struct rbi_peer *peer = RBI_CONTAINER_OF(node, struct rbi_peer, in_peers);
        if (!peer->hello || peer->doomed) {
            continue;
        }
        if (peer->rights.denied) {
            peer->rights.denied = false;
            rbi_peer_send(peer, RBI_WIRE_RIGHTS, &changed, 0);
        }
        if (peer->rights.hidden && !peer->doomed && (changed_rules || peer->rights.epoch == 0)) {
            peer->rights.hidden = false;
            rbi_watch_send_all_present(peer);
        }
    }
}

/** @return whether the rules are other ones now */
static bool rights_take(struct rbi_rights *rights, const struct rbi_acl *acl)
{
    if (memcmp(rights->acl, acl, sizeof(*acl)) == 0) {
        return false;
    }
    *rights->acl = *acl;
    rights->epoch++;
    rights->by_program = false;
    rights->by_cgroup = false;
    for (uint32_t i = 0; i < acl->count; i++) {
        rights->by_program = rights->by_program || acl->rules[i].program[0] != '\0';
        rights->by_cgroup = rights->by_cgroup || acl->rules[i].cgroup[0] != '\0';
    }
    return true;
}

void rbi_rights_set(struct rbi_daemon *daemon, const struct rbi_acl *acl)
{
    const uint64_t revoked = daemon->counters.links_revoked;
    const bool changed = rights_take(&daemon->rights, acl);
    rights_tell(daemon, changed); /* first: whose links end now has nothing to ask for */
    rbi_rights_recheck(daemon);
    if (changed) {
        rbi_log(RBI_LOG_INFO, "rights_changed",
                "rules=%" PRIu32 " epoch=%" PRIu64 " revoked=%" PRIu64, acl->count,
                daemon->rights.epoch, daemon->counters.links_revoked - revoked);
    }
}
