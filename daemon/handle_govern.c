/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the configuration while the daemon runs, and what is kept of them. */
#include "bus/governance_edit.h"
#include "daemon/centre.h"
#include "daemon/centre_turn.h"
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** @return whether the client may change everything, and knows what it changes */
static bool govern_allowed(const struct rbi_request *request,
                           const struct rbi_text *about,
                           bool expected,
                           uint64_t expect)
{
    const uint64_t current = request->daemon->centre.current;
    const bool path = about && about->length > 0 && !memchr(about->bytes, '*', about->length);
    if (!rbi_rights_admin_path(request, path ? about->bytes : "/", path ? about->length : 1)) {
        return false;
    }
    if (expected && expect != current) {
        rbi_request_refuse(request, RBI_CODE_IN_USE,
                           "version %" PRIu64 " was expected, %" PRIu64 " holds: look at the "
                           "history, and try again",
                           expect, current);
        return false;
    }
    return true;
}

static void
govern_answer(struct rbi_peer *peer, uint32_t serial, const struct rbi_centre_outcome *outcome)
{
    const struct rbi_wire_applied body = {.version = peer->daemon->centre.current,
                                          .clusters = (uint32_t)outcome->change.clusters,
                                          .instances = (uint32_t)outcome->change.instances,
                                          .warning = outcome->warning};
    rbi_peer_send(peer, RBI_WIRE_APPLIED, &body, serial);
}

/** Makes a version, which is answered when it holds. */
static void govern_commit(const struct rbi_request *request,
                          const struct rbi_text *why,
                          struct rbi_shared_text *applied,
                          struct rbi_shared_text *edits,
                          bool dry_run)
{
    const struct rbi_centre_author author = {
        .peer = request->peer, .why = why, .serial = request->serial, .answer = govern_answer};
    struct rbi_centre_outcome outcome;
    switch (rbi_centre_commit(request->daemon, &author, applied, edits, dry_run, &outcome)) {
    case RBI_CENTRE_OK:
        govern_answer(request->peer, request->serial, &outcome);
        break;
    case RBI_CENTRE_REFUSED:
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "%s", outcome.why.bytes);
        break;
    case RBI_CENTRE_NO_MEMORY:
        rbi_request_refuse_errno(request, "version", -ENOMEM);
        break;
    case RBI_CENTRE_BEGUN:
        break;
    }
}

/* ---- whole texts ----------------------------------------------------------------------- */

/** Copies a text out of sealed memory: nothing else can be read without waiting. */
static struct rbi_shared_text *govern_read(const struct rbi_request *request, uint32_t size)
{
    const int fd = request->fds->fds[0];
    const int needed = F_SEAL_SHRINK | F_SEAL_WRITE;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & needed) != needed || size > RBI_CONFIG_TEXT_MAX) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "the text is not in sealed memory, or above %u bytes",
                           RBI_CONFIG_TEXT_MAX);
        return NULL;
    }
    char *bytes = malloc((size_t)size + 1);
    struct rbi_shared_text *text = NULL;
    if (bytes && pread(fd, bytes, size, 0) != (ssize_t)size) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "the text is shorter than was said");
    } else {
        text = bytes ? rbi_shared_text_new(bytes, size) : NULL;
        if (!text) {
            rbi_request_refuse_errno(request, "text", -ENOMEM);
        }
    }
    free(bytes);
    return text;
}

void rbi_handle_apply(const struct rbi_request *request)
{
    const struct rbi_wire_apply *body = &request->body->apply;
    if (rbi_turn_wait(request, rbi_handle_apply)) {
        return;
    }
    if (!govern_allowed(request, NULL, body->expected != 0, body->expect)) {
        return;
    }
    struct rbi_shared_text *text = govern_read(request, body->size);
    if (text) {
        govern_commit(request, &body->why, text, NULL, body->dry_run != 0);
        rbi_shared_text_unref(text);
    }
}

void rbi_handle_rollback(const struct rbi_request *request)
{
    const struct rbi_wire_rollback *body = &request->body->rollback;
    if (rbi_turn_wait(request, rbi_handle_rollback)) {
        return;
    }
    if (!govern_allowed(request, NULL, body->expected != 0, body->expect)) {
        return;
    }
    const struct rbi_version *version =
        body->version ? rbi_centre_version(&request->daemon->centre, body->version) : NULL;
    if (!version) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE,
                           "version %" PRIu64 " is not kept: the history shows those that are",
                           body->version);
        return;
    }
    govern_commit(request, &body->why, version->applied, version->edits, false);
}

/** A text in sealed memory. @return a descriptor; -errno */
static int govern_seal(const struct rbi_shared_text *text)
{
    const int fd = memfd_create("ringbus-text", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -errno;
    }
    int result = 0;
    if (pwrite(fd, text->bytes, text->size, 0) != (ssize_t)text->size) {
        result = -ENOSPC;
    } else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
        result = -errno;
    }
    if (result < 0) {
        (void)close(fd);
        return result;
    }
    return fd;
}

void rbi_handle_get_text(const struct rbi_request *request)
{
    const struct rbi_wire_get_text *body = &request->body->get_text;
    if (!rbi_rights_admin_path(request, "/", 1)) {
        return;
    }
    const struct rbi_version *version = rbi_centre_version(&request->daemon->centre, body->version);
    if (!version) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE, "there is no such version");
        return;
    }
    const struct rbi_shared_text *text = body->edits ? version->edits : version->applied;
    const int fd = govern_seal(text);
    if (fd < 0) {
        rbi_request_refuse_errno(request, "text", fd);
        return;
    }
    const struct rbi_wire_text answer = {.version = version->number, .size = text->size};
    const int result =
        rbi_peer_send_with_fds(request->peer, RBI_WIRE_TEXT, &answer, request->serial, &fd, 1);
    (void)close(fd);
    if (result < 0 && !request->peer->doomed) {
        rbi_request_refuse_errno(request, "text", result);
    }
}

void rbi_handle_history(const struct rbi_request *request)
{
    const struct rbi_centre *centre = &request->daemon->centre;
    const uint32_t most = request->body->history.most;
    struct rbi_wire_query_end end = {.rows = 0};
    if (!rbi_rights_admin_path(request, "/", 1)) {
        return;
    }
    for (uint64_t number = centre->last;
         number != 0 && centre->last - number < RBI_VERSIONS_KEPT && (!most || end.rows < most);
         number--) {
        const struct rbi_version *version = rbi_centre_version(centre, number);
        if (version) {
            const struct rbi_wire_row_version row = {.version = number,
                                                     .uid = version->uid,
                                                     .pid = version->pid,
                                                     .when_s = version->when_s,
                                                     .program = version->program,
                                                     .why = version->why,
                                                     .applied_bytes = version->applied->size,
                                                     .edits_bytes = version->edits->size,
                                                     .current = number == centre->current};
            rbi_peer_send(request->peer, RBI_WIRE_ROW_VERSION, &row, request->serial);
            end.rows++;
        }
    }
    rbi_peer_send(request->peer, RBI_WIRE_QUERY_END, &end, request->serial);
}

/* ---- single changes -------------------------------------------------------------------- */

/*
 * The text of an edit is written around these, and whoever may change one cluster must not write
 * about others: keys and lists are words, and nothing between quotes ends them or the line. YAML
 * has more line ends than ASCII has.
 */
static bool govern_is_word(const struct rbi_text *text)
{
    return strspn(text->bytes, "abcdefghijklmnopqrstuvwxyz0123456789_") == text->length;
}

static bool govern_can_be_quoted(const struct rbi_text *text)
{
    for (uint16_t i = 0; i < text->length; i++) {
        const char c = text->bytes[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

/** @return whether it is one that fits; if not the client has been told */
static bool govern_make_edit(const struct rbi_request *request,
                             const struct rbi_text *key,
                             const struct rbi_text *value,
                             struct rbi_edit *out)
{
    const struct rbi_wire_edit *body = &request->body->edit;
    const bool fits = body->list.length <= RBI_EDIT_KEY_MAX && body->id.length <= RBI_LABEL_MAX &&
                      key->length <= RBI_EDIT_KEY_MAX && value->length <= RBI_EDIT_VALUE_MAX;
    if (!fits) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "an id, key or value is too long");
        return false;
    }
    const struct rbi_text *quoted[] = {&body->target, &body->id, value};
    bool good = govern_is_word(&body->list) && govern_is_word(key);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(quoted); i++) {
        good = good && govern_can_be_quoted(quoted[i]);
    }
    if (!good) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "a key is a word, and quotes, backslashes and what is not ASCII are not "
                           "taken");
        return false;
    }
    memset(out, 0, sizeof(*out));
    memcpy(out->target, body->target.bytes, body->target.length);
    memcpy(out->list, body->list.bytes, body->list.length);
    memcpy(out->id, body->id.bytes, body->id.length);
    memcpy(out->key, key->bytes, key->length);
    memcpy(out->value, value->bytes, value->length);
    return true;
}

/** Whether an instance is, without edits, what @p edit says. */
static bool govern_is_so_below(struct rbi_daemon *daemon, const struct rbi_edit *edit)
{
    struct rbi_governance_layers layers = rbi_live_layers(&daemon->live);
    struct rbi_governance_override said;
    layers.count = RBI_LIVE_EDITS;
    (void)rbi_governance_override(&layers, edit->target, strlen(edit->target), &said);
    const bool on = strcmp(edit->key, "staged") == 0 ? said.staged : said.isolated;
    return on == (strcmp(edit->value, "true") == 0);
}

/** One value of an EDIT. @retval 0; 1 the client has been told; -ENOMEM */
static int govern_edit_one(const struct rbi_request *request,
                           struct rbi_edits *edits,
                           const struct rbi_text *key,
                           const struct rbi_text *value)
{
    struct rbi_edit edit;
    if (!govern_make_edit(request, key, value, &edit)) {
        return 1;
    }
    if (request->body->edit.what == RBI_EDIT_SET) {
        return rbi_edits_set(edits, &edit);
    }
    rbi_edits_clear(edits, &edit);
    return edit.value[0] == '\0' || govern_is_so_below(request->daemon, &edit)
               ? 0
               : rbi_edits_set(edits, &edit);
}

/** Finds the entry of "degrade" that MOCK means. @return its id, or NULL: the client was told */
static const char *govern_find_mock(const struct rbi_request *request, struct rbi_policy *policy)
{
    const struct rbi_wire_edit *body = &request->body->edit;
    const struct rbi_governance_layers layers = rbi_live_layers(&request->daemon->live);
    char *end = NULL;
    const unsigned long long method = strtoull(body->id.bytes, &end, 10);
    const bool number = body->id.length > 0 && *end == '\0' && method <= UINT32_MAX;
    (void)rbi_governance_policy(&layers, body->target.bytes, body->target.length, policy, NULL);
    for (uint32_t i = 0; i < rbi_min_u64(policy->degrade_count, RBI_ARRAY_SIZE(policy->degrades));
         i++) {
        const struct rbi_degrade *entry = &policy->degrades[i];
        const bool covers = number && entry->action == RBI_DEGRADE_MOCK &&
                            method >= entry->method_low && method <= entry->method_high;
        if (covers || strcmp(entry->id, body->id.bytes) == 0) {
            return entry->id;
        }
    }
    rbi_request_refuse(request, RBI_CODE_NO_INSTANCE,
                       "%.150s has no entry of degrade for %.64s: apply one first",
                       body->target.bytes, body->id.bytes);
    return NULL;
}

static int
govern_mock(const struct rbi_request *request, struct rbi_edits *edits, struct rbi_edit *edit)
{
    struct rbi_policy policy;
    const char *id = govern_find_mock(request, &policy);
    if (!id) {
        return 1;
    }
    (void)snprintf(edit->list, sizeof(edit->list), "degrade");
    (void)snprintf(edit->id, sizeof(edit->id), "%s", id);
    (void)snprintf(edit->key, sizeof(edit->key), "manual");
    return rbi_edits_set(edits, edit);
}

/** Changes the list as the client wants it. @retval 0; 1 the client has been told; -ENOMEM */
static int govern_change(const struct rbi_request *request, struct rbi_edits *edits)
{
    const struct rbi_wire_edit *body = &request->body->edit;
    const struct rbi_text *keys[] = {&body->key1, &body->key2, &body->key3};
    const struct rbi_text *values[] = {&body->value1, &body->value2, &body->value3};
    if (body->what == RBI_EDIT_MOCK) {
        struct rbi_edit edit;
        return govern_make_edit(request, &body->key1, &body->value1, &edit)
                   ? govern_mock(request, edits, &edit)
                   : 1;
    }
    int result = 0;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(keys) && result == 0; i++) {
        if (keys[i]->length > 0 || (i == 0 && body->what == RBI_EDIT_RESET)) {
            result = govern_edit_one(request, edits, keys[i], values[i]);
        }
    }
    return result;
}

void rbi_handle_edit(const struct rbi_request *request)
{
    const struct rbi_wire_edit *body = &request->body->edit;
    struct rbi_edits edits = RBI_EDITS_NULL;
    if (rbi_turn_wait(request, rbi_handle_edit)) {
        return;
    }
    if (!govern_allowed(request, &body->target, body->expected != 0, body->expect)) {
        return;
    }
    if (body->what < RBI_EDIT_SET || body->what > RBI_EDIT_MOCK) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "nothing to do: %" PRIu32, body->what);
        return;
    }
    char *text = NULL;
    size_t size = 0;
    int result = rbi_edits_load(&edits, &request->daemon->live.layers[RBI_LIVE_EDITS]);
    result = result == 0 ? govern_change(request, &edits) : result;
    result = result == 0 ? rbi_edits_print(&edits, &text, &size) : result;
    struct rbi_shared_text *shared = result == 0 ? rbi_shared_text_new(text, size) : NULL;
    if (shared) {
        govern_commit(request, &body->why, NULL, shared, false);
    } else if (result <= 0) {
        rbi_request_refuse_errno(request, "edit", -ENOMEM);
    }
    rbi_shared_text_unref(shared);
    free(text);
    rbi_edits_deinit(&edits);
}
