/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_TOKENS_H
#define RINGBUS_DAEMON_TOKENS_H
/*
 * daemon/tokens.h - tokens that clients bring with REGISTER: whether they are signed by a key that
 * lives, whose they are, what they open and until when. Two keys live at a time, so that one can
 * follow the other without a gap. A token that is over, or whose key is gone, ends the links that
 * needed it, as a change of the rules does (rights.h).
 */
#include "bus/config.h"
#include "bus/token.h"
#include "bus/wire.h"
#include "daemon/loop.h"
#include "daemon/token_hmac.h"

struct rbi_daemon;
struct rbi_endpoint;
struct rbi_peer;

#define RBI_TOKEN_KEYS_MAX 2U

struct rbi_tokens {
    uint32_t count;
    struct rbi_token_key keys[RBI_TOKEN_KEYS_MAX];
};

/** What a client has brought. Zero: nothing. */
struct rbi_peer_token {
    bool valid;
    struct rbi_token token;
    struct rbi_loop_timer timer; /* to its end */
};

/**
 * Reads the keys that the configuration names. One that cannot be read is logged, and the one in
 * its place stays, if there is any; then nothing that it opens is opened.
 */
void rbi_tokens_load(struct rbi_daemon *daemon);
void rbi_tokens_deinit(struct rbi_tokens *tokens);
/**
 * Takes the token of a client that registers as @p endpoint. Without keys none is looked at.
 * @return false: it is none of this bus, of somebody else, or over; @p why says so
 */
bool rbi_token_take(struct rbi_peer *peer,
                    const struct rbi_endpoint *endpoint,
                    const struct rbi_text *text,
                    struct rbi_text *why);
/** Whether a client's token opens an endpoint. @p why is written when not */
bool rbi_peer_token_opens(const struct rbi_peer *peer,
                          const struct rbi_endpoint *server,
                          struct rbi_text *why);
void rbi_peer_token_deinit(struct rbi_peer *peer);

#endif
