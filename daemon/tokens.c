/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tokens.h"

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/wall.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The wall clock may be set: it is looked at again at least so often. */
#define LOOK_NS  (UINT64_C(1000) * 1000 * 1000)
#define LOOK_MAX 10U

/* ---- keys ---------------------------------------------------------------------------------- */

/** @return whether @p out holds a key now */
static bool tokens_read(const char *file, struct rbi_token_key *out)
{
    struct rbi_token_fault fault;
    if (rbi_token_key_read(file, out, &fault) == 0) {
        rbi_log(RBI_LOG_INFO, "token_key", "file=%s key=%08" PRIx32, file, out->id);
        return true;
    }
    rbi_log(RBI_LOG_ERROR, "token_key_refused", "file=%s why=\"%s\"", file, fault.text);
    return false;
}

static const struct rbi_token_key *tokens_key(const struct rbi_tokens *tokens, uint32_t id)
{
    for (uint32_t i = 0; i < tokens->count; i++) {
        if (tokens->keys[i].id == id) {
            return &tokens->keys[i];
        }
    }
    return NULL;
}

/** Tokens whose key is gone open nothing more. */
static void tokens_drop_orphans(struct rbi_daemon *daemon)
{
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        struct rbi_peer *peer = RBI_CONTAINER_OF(node, struct rbi_peer, in_peers);
        if (peer->token.valid && !tokens_key(&daemon->tokens, peer->token.token.key)) {
            rbi_peer_token_deinit(peer);
        }
    }
}

void rbi_tokens_load(struct rbi_daemon *daemon)
{
    const char *const files[RBI_TOKEN_KEYS_MAX] = {daemon->config.tokens.key,
                                                   daemon->config.tokens.previous_key};
    struct rbi_tokens next = {.count = 0};
    for (unsigned i = 0; i < RBI_TOKEN_KEYS_MAX; i++) {
        struct rbi_token_key *key = &next.keys[next.count];
        if (files[i][0] == '\0') {
            continue;
        }
        if (tokens_read(files[i], key)) {
            next.count++;
        } else if (i < daemon->tokens.count) {
            next.keys[next.count++] = daemon->tokens.keys[i]; /* half-written: the old one stays */
        }
    }
    rbi_tokens_deinit(&daemon->tokens);
    daemon->tokens = next;
    for (unsigned i = 0; i < RBI_TOKEN_KEYS_MAX; i++) {
        rbi_token_key_wipe(&next.keys[i]);
    }
    tokens_drop_orphans(daemon);
}

void rbi_tokens_deinit(struct rbi_tokens *tokens)
{
    for (unsigned i = 0; i < RBI_TOKEN_KEYS_MAX; i++) {
        rbi_token_key_wipe(&tokens->keys[i]);
    }
    tokens->count = 0;
}

/* ---- the token of a client ------------------------------------------------------------------ */

static void token_look(void *context)
{
    struct rbi_peer *peer = context;
    const struct rbi_endpoint *endpoint = peer->endpoint;
    const uint64_t now_s = rbi_wall_now_s();
    if (!rbi_token_is_over(&peer->token.token, now_s)) {
        const uint64_t left_s = peer->token.token.expiry_s + RBI_TOKEN_SKEW_S - now_s;
        rbi_loop_timer_set(peer->daemon->loop, &peer->token.timer,
                           rbi_loop_now_ns(peer->daemon->loop) +
                               rbi_min_u64(left_s, LOOK_MAX) * LOOK_NS,
                           token_look, peer);
        return;
    }
    rbi_log(RBI_LOG_INFO, "token_over", "path=%s uid=%" PRIu32 " key=%08" PRIx32,
            endpoint ? endpoint->path.bytes : "none", peer->uid, peer->token.token.key);
    rbi_peer_token_deinit(peer);
    if (peer->endpoint) {
        rbi_rights_recheck_of(peer->endpoint);
    }
}

/** @return what is wrong with a token, or NULL */
static const char *token_fault(const struct rbi_tokens *tokens,
                               const struct rbi_token *token,
                               const struct rbi_text *text,
                               size_t signed_length)
{
    unsigned char mark[RBI_TOKEN_MARK_BYTES];
    const struct rbi_token_key *key = tokens_key(tokens, token->key);
    if (!key) {
        return "its key is not in use any more, or not here";
    }
    if (rbi_token_mark(key, text->bytes, signed_length, mark) < 0 ||
        !rbi_token_marks_equal(mark, token->mark)) {
        return "its mark is wrong";
    }
    return rbi_token_is_over(token, rbi_wall_now_s()) ? "its time is over" : NULL;
}

bool rbi_token_take(struct rbi_peer *peer,
                    const struct rbi_endpoint *endpoint,
                    const struct rbi_text *text,
                    struct rbi_text *why)
{
    const struct rbi_tokens *tokens = &peer->daemon->tokens;
    struct rbi_token token;
    size_t signed_length = 0;
    /* A registration that failed may have brought one: it was for that path, not for this. */
    rbi_peer_token_deinit(peer);
    if (text->length == 0 || tokens->count == 0) {
        return true;
    }
    if (rbi_token_read(text->bytes, text->length, &token, &signed_length) < 0) {
        rbi_text_set(why, "token: none that \"ringbusctl token\" has made");
        return false;
    }
    const char *fault = token_fault(tokens, &token, text, signed_length);
    if (!fault && !rbi_token_is_for(&token, endpoint->path.bytes, endpoint->path.length)) {
        fault = "it is for another path";
    }
    if (fault) {
        rbi_text_format(why, "token of key %08" PRIx32 ": %s", token.key, fault);
        return false;
    }
    peer->token.token = token;
    peer->token.valid = true;
    token_look(peer);
    return true;
}

bool rbi_peer_token_opens(const struct rbi_peer *peer,
                          const struct rbi_endpoint *server,
                          struct rbi_text *why)
{
    if (peer->token.valid &&
        rbi_token_opens(&peer->token.token, server->path.bytes, server->path.length)) {
        return true;
    }
    rbi_text_format(why, "%.140s asks for a token: %s", server->path.bytes,
                    peer->token.valid ? "the one brought is for others" : "none is valid");
    return false;
}

void rbi_peer_token_deinit(struct rbi_peer *peer)
{
    peer->token.valid = false;
    rbi_loop_timer_cancel(peer->daemon->loop, &peer->token.timer);
}
