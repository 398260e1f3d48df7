/* SPDX-License-Identifier: Apache-2.0 */
/* token: what a client shows to be linked to a cluster that asks for it. */
#include "daemon/ctl/ctl.h"
#include "daemon/ctl/json.h"
#include "daemon/token_hmac.h"
#include "daemon/wall.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#define TTL_DEFAULT_S 3600U

static int
token_print(const struct rbi_ctl_args *args, const struct rbi_token *token, const char *text)
{
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "token", text);
        rbi_ctl_json_text(&json, "subject", token->subject);
        rbi_ctl_json_text(&json, "target", token->target);
        rbi_ctl_json_u64(&json, "expiry", token->expiry_s);
        rbi_ctl_json_end(&json);
    } else {
        puts(text);
    }
    return rbi_ctl_finish(args, RBI_CTL_OK);
}

/* Signs what is to be said. @return exit code */
static int token_make(const struct rbi_ctl_args *args,
                      const struct rbi_token_key *key,
                      struct rbi_token *token)
{
    char text[RBI_TOKEN_TEXT_MAX + 1];
    token->key = key->id;
    const int length = rbi_token_write(token, text);
    if (length == -EMSGSIZE) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE,
                            "the token would be longer than %u bytes: shorter --subject or "
                            "--target, with ** for what lies below",
                            RBI_TOKEN_TEXT_MAX);
    }
    if (length < 0) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "--subject or --target is neither path nor glob");
    }
    if (rbi_token_mark(key, text, (size_t)length, token->mark) < 0) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "libcrypto cannot make HMAC-SHA256");
    }
    (void)rbi_token_write_mark(token, text, length);
    return token_print(args, token, text);
}

int rbi_ctl_token(const struct rbi_ctl_args *args)
{
    struct rbi_token token = {.key = 0};
    struct rbi_token_key key = {.length = 0};
    struct rbi_token_fault fault;
    if (args->subject == NULL || args->target == NULL || args->key_file == NULL) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "--subject, --target and --key are needed");
    }
    if (strlen(args->subject) >= sizeof token.subject ||
        strlen(args->target) >= sizeof token.target) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "--subject or --target is too long");
    }
    memcpy(token.subject, args->subject, strlen(args->subject));
    memcpy(token.target, args->target, strlen(args->target));
    token.expiry_s = rbi_wall_now_s() + (args->ttl_s != 0 ? args->ttl_s : TTL_DEFAULT_S);
    if (getrandom(&token.nonce, sizeof token.nonce, 0) != (ssize_t)sizeof token.nonce) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "no random number");
    }
    if (rbi_token_key_read(args->key_file, &key, &fault) < 0) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "%s: %s", args->key_file, fault.text);
    }
    const int code = token_make(args, &key, &token);
    rbi_token_key_wipe(&key);
    return code;
}
