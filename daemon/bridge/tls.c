/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/tls.h"

#include "daemon/bridge/tls_session.h"
#include "daemon/log.h"
#include "daemon/wall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_NS    UINT64_C(1000000000)
#define WARN_NS    UINT64_C(3600000000000)
#define FILES      4U
#define PATH_BYTES 256U
/* So long before its end a connection is made anew: a quarter of its life, within these. */
#define RIPE_MAX_S 3600
#define RIPE_MIN_S 2
/* A certificate of ours with less than this part of its life left is told of. */
#define WARN_PART 10

struct file_seen {
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct file_paths {
    char text[FILES][PATH_BYTES];
};

struct rbi_tls {
    struct rbi_loop *loop;
    char host[64];
    struct file_paths paths;
    struct file_seen seen[FILES]; /* when they were last loaded, or could not be */
    SSL_CTX *ctx;
    uint32_t loaded; /* counts */
    int64_t expires;
    int64_t begun; /* when our certificate began to hold, for what a tenth is of */
    struct rbi_list sessions;
    struct rbi_loop_timer timer;
    struct rbi_log_limit warn_limit;
};

SSL_CTX *rbi_tls_context(const struct rbi_tls *tls)
{
    return tls->ctx;
}

int64_t rbi_tls_expires(const struct rbi_tls *tls)
{
    return tls->expires;
}

void rbi_tls_join(struct rbi_tls *tls, struct rbi_tls_session *session)
{
    session->loaded = tls->loaded;
    rbi_list_push_back(&tls->sessions, &session->in_tls);
}

/* ---- files ----------------------------------------------------------------------------- */

/** What can be seen of a file without reading it. Links are followed: they are swapped. */
static struct file_seen file_look(const char *path)
{
    struct stat status;
    if (!path[0] || stat(path, &status) < 0) {
        return (struct file_seen){0};
    }
    return (struct file_seen){
        .inode = status.st_ino, .size = status.st_size, .changed = status.st_mtim};
}

static bool file_same(const struct file_seen *a, const struct file_seen *b)
{
    return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool files_changed(const struct rbi_tls *tls)
{
    for (unsigned i = 0; i < FILES; i++) {
        const struct file_seen now = file_look(tls->paths.text[i]);
        if (!file_same(&now, &tls->seen[i])) {
            return true;
        }
    }
    return false;
}

static struct rbi_tls_files paths_of(const struct file_paths *paths)
{
    return (struct rbi_tls_files){.certificate = paths->text[0],
                                  .key = paths->text[1],
                                  .ca = paths->text[2],
                                  .crl = paths->text[3]};
}

static void paths_set(struct file_paths *paths, const struct rbi_tls_files *files)
{
    const char *given[FILES] = {files->certificate, files->key, files->ca, files->crl};
    for (unsigned i = 0; i < FILES; i++) {
        (void)snprintf(paths->text[i], PATH_BYTES, "%s", given[i] ? given[i] : "");
    }
}

/** Loads from @p paths, or leaves all as it is. */
static int files_load(struct rbi_tls *tls, const struct file_paths *paths, char *why)
{
    struct file_seen seen[FILES];
    for (unsigned i = 0; i < FILES; i++) {
        seen[i] = file_look(paths->text[i]); /* before: what changes meanwhile is seen again */
    }
    const struct rbi_tls_files files = paths_of(paths);
    SSL_CTX *ctx = rbi_tls_load(tls->host, &files, why);
    if (!ctx) {
        return -EINVAL;
    }
    STACK_OF(X509) *chain = NULL;
    (void)SSL_CTX_get0_chain_certs(ctx, &chain);
    X509 *cert = SSL_CTX_get0_certificate(ctx);
    SSL_CTX_free(tls->ctx);
    tls->ctx = ctx;
    tls->loaded++;
    tls->expires = rbi_tls_chain_expires(chain, cert);
    tls->begun = rbi_tls_begins(cert);
    memcpy(tls->seen, seen, sizeof(seen));
    tls->paths = *paths;
    return 0;
}

/* ---- every second ---------------------------------------------------------------------- */

/** Those that are up are checked against what was loaded. */
static void sessions_check(struct rbi_tls *tls)
{
    RBI_LIST_EACH(node, spare, &tls->sessions)
    {
        struct rbi_tls_session *session = RBI_CONTAINER_OF(node, struct rbi_tls_session, in_tls);
        if (session->up && !rbi_tls_session_holds(session, tls->ctx)) {
            session->owner.end(session->owner.context, session->why);
        }
    }
}

static bool
session_ripe(const struct rbi_tls *tls, const struct rbi_tls_session *session, int64_t now)
{
    int64_t before = (session->expires - session->made) / 4;
    before = before > RIPE_MAX_S ? RIPE_MAX_S : before < RIPE_MIN_S ? RIPE_MIN_S : before;
    return session->loaded != tls->loaded || session->expires - now <= before;
}

static void sessions_age(struct rbi_tls *tls, int64_t now)
{
    RBI_LIST_EACH(node, spare, &tls->sessions)
    {
        struct rbi_tls_session *session = RBI_CONTAINER_OF(node, struct rbi_tls_session, in_tls);
        if (!session->up) {
            continue;
        }
        if (session->expires <= now) {
            session->owner.end(session->owner.context,
                               "certificate expired, ours or the peer's: it was not renewed");
        } else if (session_ripe(tls, session, now)) {
            session->owner.ripe(session->owner.context);
        }
    }
}

static void warn_of_expiry(struct rbi_tls *tls, int64_t now)
{
    uint64_t suppressed = 0;
    if (tls->expires - now > (tls->expires - tls->begun) / WARN_PART ||
        !rbi_log_limit_pass(&tls->warn_limit, rbi_loop_now_ns(tls->loop), WARN_NS, &suppressed)) {
        return;
    }
    rbi_log(tls->expires > now ? RBI_LOG_WARNING : RBI_LOG_ERROR, "certificate_expires",
            "file=%s left_s=%lld", tls->paths.text[0], (long long)(tls->expires - now));
}

static void tls_look(void *context)
{
    struct rbi_tls *tls = context;
    char why[RBI_TLS_WHY_MAX + 1U];
    const int64_t now = (int64_t)rbi_wall_now_s();
    if (files_changed(tls) && rbi_tls_reload(tls, NULL, why) == -ENOMEM) {
        memset(tls->seen, 0, sizeof(tls->seen)); /* once more, in a second */
    }
    sessions_age(tls, now);
    warn_of_expiry(tls, now);
    rbi_loop_timer_set(tls->loop, &tls->timer, rbi_loop_now_ns(tls->loop) + LOOK_NS, tls_look, tls);
}

/* ---- life ------------------------------------------------------------------------------ */

int rbi_tls_reload(struct rbi_tls *tls, const struct rbi_tls_files *files, char *why)
{
    struct file_paths paths;
    const struct rbi_tls_files same = paths_of(&tls->paths);
    paths_set(&paths, files ? files : &same);
    const int result = files_load(tls, &paths, why);
    if (result < 0) {
        for (unsigned i = 0; i < FILES; i++) {
            tls->seen[i] = file_look(tls->paths.text[i]); /* told once, until they change again */
        }
        rbi_log(RBI_LOG_ERROR, "certificates_refused", "reason=%s using=old",
                rbi_log_quote(&(struct rbi_log_text){{0}}, why, strlen(why)));
        return result;
    }
    rbi_log(RBI_LOG_INFO, "certificates_loaded", "file=%s valid_s=%lld", tls->paths.text[0],
            (long long)(tls->expires - (int64_t)rbi_wall_now_s()));
    sessions_check(tls);
    return 0;
}

struct rbi_tls *rbi_tls_free(struct rbi_tls *tls)
{
    if (!tls) {
        return NULL;
    }
    RBI_ASSERT(rbi_list_empty(&tls->sessions));
    rbi_loop_timer_cancel(tls->loop, &tls->timer);
    SSL_CTX_free(tls->ctx);
    free(tls);
    return NULL;
}

int rbi_tls_new(struct rbi_loop *loop,
                const char *host,
                const struct rbi_tls_files *files,
                char *why,
                struct rbi_tls **out)
{
    struct rbi_tls *tls = calloc(1, sizeof(*tls));
    if (!tls) {
        return -ENOMEM;
    }
    tls->loop = loop;
    rbi_list_init(&tls->sessions);
    (void)snprintf(tls->host, sizeof(tls->host), "%s", host);
    struct file_paths paths;
    paths_set(&paths, files);
    const int result = files_load(tls, &paths, why);
    if (result < 0) {
        rbi_tls_free(tls);
        return result;
    }
    rbi_loop_timer_set(loop, &tls->timer, rbi_loop_now_ns(loop) + LOOK_NS, tls_look, tls);
    *out = tls;
    return 0;
}
