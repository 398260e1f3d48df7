/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/centre.h"

#include "bus/governance_file.h"
#include "daemon/centre_turn.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/mock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A text that says nothing. */
static const char nothing[] = "{}\n";

void rbi_centre_deinit(struct rbi_centre *centre)
{
    RBI_ASSERT(!centre->change);
    for (unsigned i = 0; i < RBI_VERSIONS_KEPT; i++) {
        rbi_version_deinit(&centre->versions[i]);
    }
}

const struct rbi_version *rbi_centre_version(const struct rbi_centre *centre, uint64_t number)
{
    const uint64_t wanted = number ? number : centre->current;
    const struct rbi_version *version = &centre->versions[wanted % RBI_VERSIONS_KEPT];
    return wanted != 0 && version->number == wanted ? version : NULL;
}

/* ---- texts to layers ------------------------------------------------------------------- */

/** Both layers of a version, parsed. */
struct centre_layers {
    struct rbi_governance applied;
    struct rbi_governance edits;
};

static void centre_layers_deinit(struct centre_layers *layers)
{
    rbi_governance_deinit(&layers->applied);
    rbi_governance_deinit(&layers->edits);
}

/** Where a text comes from. */
enum centre_source {
    CENTRE_NEW,     /* all of it must be good */
    CENTRE_HOLDS,   /* as it holds already: with the files as they were read then */
    CENTRE_RESUMED, /* of an earlier daemon: a file that is no more is no reason to lose the rest */
};

/** Reads the files that it names. @retval 0;  1 @p errors says which not;  -ENOMEM */
static int centre_read_files(const struct rbi_daemon *daemon,
                             enum centre_source source,
                             struct rbi_governance *text,
                             struct rbi_config_errors *errors)
{
    struct rbi_log_text quoted;
    if (source == CENTRE_HOLDS &&
        rbi_governance_carry_files(text, &daemon->live.layers[RBI_LIVE_APPLIED]) != 0) {
        return -ENOMEM;
    }
    const int result = rbi_mocks_read(daemon->config_path, text, errors);
    if (result > 0 && source != CENTRE_NEW) {
        const char *why = errors->items[0].text;
        rbi_log(RBI_LOG_WARNING, "mock_absent", "error=%s",
                rbi_log_quote(&quoted, why, strlen(why)));
        return 0;
    }
    return result;
}

static enum rbi_centre_result centre_parse_one(const struct rbi_daemon *daemon,
                                               enum centre_source source,
                                               const struct rbi_shared_text *text,
                                               struct rbi_governance *out,
                                               struct rbi_config_errors *errors,
                                               struct rbi_text *why)
{
    int result = rbi_governance_parse(text->bytes, text->size, out, errors);
    if (result == 0) {
        result = centre_read_files(daemon, source, out, errors);
    }
    if (result > 0) {
        rbi_text_format(why, "%u:%u: %.200s", errors->items[0].line, errors->items[0].column,
                        errors->items[0].text);
    }
    return result == 0 ? RBI_CENTRE_OK : result > 0 ? RBI_CENTRE_REFUSED : RBI_CENTRE_NO_MEMORY;
}

/**
 * @param source  of what was applied
 * @return as rbi_centre_commit(); @p out is to be ended when it is RBI_CENTRE_OK
 */
static enum rbi_centre_result centre_parse(const struct rbi_daemon *daemon,
                                           enum centre_source source,
                                           const struct rbi_shared_text *applied,
                                           const struct rbi_shared_text *edits,
                                           struct centre_layers *out,
                                           struct rbi_text *why)
{
    struct rbi_config_errors *errors = malloc(sizeof(*errors));
    *out = (struct centre_layers){.applied = RBI_GOVERNANCE_NULL, .edits = RBI_GOVERNANCE_NULL};
    if (!errors) {
        return RBI_CENTRE_NO_MEMORY;
    }
    enum rbi_centre_result result =
        centre_parse_one(daemon, source, applied, &out->applied, errors, why);
    if (result == RBI_CENTRE_OK) {
        result = centre_parse_one(daemon, source, edits, &out->edits, errors, why);
    }
    if (result != RBI_CENTRE_OK) {
        centre_layers_deinit(out);
    }
    free(errors);
    return result;
}

/* ---- versions -------------------------------------------------------------------------- */

/**
 * The time of day, for people who read the history; nothing is ever compared with it. Asked of
 * the file system, whose stamps it is for.
 */
static uint64_t centre_time_of_day(void)
{
    struct stat made;
    const int fd = memfd_create("ringbus-time", MFD_CLOEXEC);
    const bool known = fd >= 0 && fstat(fd, &made) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return known ? (uint64_t)made.st_ctim.tv_sec : 0;
}

/** Fills a version; its texts get a reference each. */
static void centre_describe(struct rbi_version *version,
                            const struct rbi_centre_author *author,
                            struct rbi_shared_text *applied,
                            struct rbi_shared_text *edits)
{
    version->when_s = centre_time_of_day();
    version->uid = author->peer->uid;
    version->pid = author->peer->pid;
    rbi_text_set(&version->program, author->peer->program);
    version->why = *author->why;
    version->applied = rbi_shared_text_ref(applied);
    version->edits = rbi_shared_text_ref(edits);
}

static void centre_keep(struct rbi_centre *centre, const struct rbi_version *version)
{
    struct rbi_version *place = &centre->versions[version->number % RBI_VERSIONS_KEPT];
    rbi_version_deinit(place);
    *place = *version;
    centre->current = version->number;
    centre->last = version->number;
}

/* ---- a change that is written down ------------------------------------------------------- */

struct rbi_centre_change {
    struct rbi_job job;
    struct rbi_daemon *daemon;
    struct rbi_centre_author author; /* peer is NULL when it has gone; why is the version's */
    struct rbi_version version;
    struct centre_layers layers;
    /* What the job may touch: */
    const char *prefix;
    struct rbi_store_image image;
    int result;
};

static void centre_change_free(struct rbi_centre_change *change)
{
    centre_layers_deinit(&change->layers);
    rbi_store_image_deinit(&change->image);
    rbi_version_deinit(&change->version);
    free(change);
}

/** Beside the loop. */
static void centre_write(struct rbi_job *job)
{
    struct rbi_centre_change *change = RBI_CONTAINER_OF(job, struct rbi_centre_change, job);
    change->result = rbi_store_write(change->prefix, &change->image);
}

/** Makes it hold, whether or not it will outlive the daemon. */
static void centre_enter(struct rbi_centre_change *change, struct rbi_centre_outcome *out)
{
    struct rbi_daemon *daemon = change->daemon;
    struct rbi_centre *centre = &daemon->centre;
    const struct rbi_version *version = &change->version;
    struct rbi_log_text quoted;
    if (change->result < 0) {
        const char *error = rbi_log_errno(-change->result);
        rbi_text_format(&out->warning, "%.180s: %s", centre->prefix, error);
        rbi_log(RBI_LOG_WARNING, "version_not_kept", "version=%" PRIu64 " file=%s error=\"%s\"",
                version->number, centre->prefix, error);
    }
    rbi_log(RBI_LOG_INFO, "version_applied", "version=%" PRIu64 " uid=%" PRIu32 " why=%s",
            version->number, version->uid,
            rbi_log_quote(&quoted, version->why.bytes, version->why.length));
    centre_keep(centre, version);
    change->version = (struct rbi_version){.number = 0};
    out->change = rbi_live_set(daemon, &change->layers.applied, &change->layers.edits);
}

static void centre_written(struct rbi_job *job)
{
    struct rbi_centre_change *change = RBI_CONTAINER_OF(job, struct rbi_centre_change, job);
    struct rbi_daemon *daemon = change->daemon;
    struct rbi_centre_outcome outcome;
    memset(&outcome, 0, sizeof(outcome));
    centre_enter(change, &outcome);
    const struct rbi_centre_author author = change->author;
    daemon->centre.change = NULL;
    centre_change_free(change);
    if (author.peer) {
        author.answer(author.peer, author.serial, &outcome);
        rbi_turn_over(author.peer);
    }
    rbi_turn_next(daemon);
}

void rbi_centre_peer_gone(struct rbi_peer *peer)
{
    struct rbi_centre_change *change = peer->daemon->centre.change;
    if (change && change->author.peer == peer) {
        change->author.peer = NULL;
    }
}

/** Takes @p layers over. */
static enum rbi_centre_result centre_begin(struct rbi_daemon *daemon,
                                           const struct rbi_centre_author *author,
                                           struct rbi_shared_text *applied,
                                           struct rbi_shared_text *edits,
                                           struct centre_layers *layers)
{
    struct rbi_centre *centre = &daemon->centre;
    struct rbi_centre_change *change = calloc(1, sizeof(*change));
    if (!change) {
        centre_layers_deinit(layers);
        return RBI_CENTRE_NO_MEMORY;
    }
    RBI_ASSERT(!centre->change);
    change->daemon = daemon;
    change->author = *author;
    change->author.why = NULL; /* lent until now */
    change->layers = *layers;
    change->prefix = centre->prefix;
    change->version.number = centre->last + 1;
    centre_describe(&change->version, author, applied, edits);
    if (rbi_store_image(&change->version, &change->image) < 0) {
        centre_change_free(change);
        return RBI_CENTRE_NO_MEMORY;
    }
    rbi_store_make_folder(centre->prefix);
    centre->change = change;
    rbi_turn_begin(author->peer);
    rbi_worker_start(&daemon->worker, &change->job, centre_write, centre_written);
    return RBI_CENTRE_BEGUN;
}

/** The text of the current version, or of none. @return a reference; NULL: no memory */
static struct rbi_shared_text *centre_text(const struct rbi_centre *centre, bool edits)
{
    const struct rbi_version *version = rbi_centre_version(centre, 0);
    if (!version) {
        return rbi_shared_text_new(nothing, sizeof(nothing) - 1);
    }
    return rbi_shared_text_ref(edits ? version->edits : version->applied);
}

static enum rbi_centre_result centre_commit(struct rbi_daemon *daemon,
                                            const struct rbi_centre_author *author,
                                            struct rbi_shared_text *applied,
                                            struct rbi_shared_text *edits,
                                            bool dry_run,
                                            struct rbi_centre_outcome *out)
{
    struct centre_layers layers;
    const struct rbi_version *current = rbi_centre_version(&daemon->centre, 0);
    const bool pushed = !current || applied != current->applied; /* else only the edits are new */
    const enum rbi_centre_result result = centre_parse(daemon, pushed ? CENTRE_NEW : CENTRE_HOLDS,
                                                       applied, edits, &layers, &out->why);
    if (result != RBI_CENTRE_OK) {
        return result;
    }
    const bool fits = (!pushed || rbi_live_try_push(daemon, &layers.applied, &out->why)) &&
                      rbi_live_try(daemon, &layers.applied, &layers.edits, &out->change, &out->why);
    if (fits && !dry_run) {
        return centre_begin(daemon, author, applied, edits, &layers);
    }
    centre_layers_deinit(&layers);
    return fits ? RBI_CENTRE_OK : RBI_CENTRE_REFUSED;
}

enum rbi_centre_result rbi_centre_commit(struct rbi_daemon *daemon,
                                         const struct rbi_centre_author *author,
                                         struct rbi_shared_text *applied,
                                         struct rbi_shared_text *edits,
                                         bool dry_run,
                                         struct rbi_centre_outcome *out)
{
    enum rbi_centre_result result = RBI_CENTRE_NO_MEMORY;
    struct rbi_shared_text *below =
        applied ? rbi_shared_text_ref(applied) : centre_text(&daemon->centre, false);
    struct rbi_shared_text *above =
        edits ? rbi_shared_text_ref(edits) : centre_text(&daemon->centre, true);
    memset(out, 0, sizeof(*out));
    if (below && above) {
        result = centre_commit(daemon, author, below, above, dry_run, out);
    }
    rbi_shared_text_unref(below);
    rbi_shared_text_unref(above);
    return result;
}

/* ---- start ----------------------------------------------------------------------------- */

/** Makes a version of an earlier daemon hold. @return whether its texts are still good */
static bool centre_resume(struct rbi_daemon *daemon, const struct rbi_version *version)
{
    struct centre_layers layers;
    struct rbi_text why = {.length = 0};
    struct rbi_log_text quoted;
    if (centre_parse(daemon, CENTRE_RESUMED, version->applied, version->edits, &layers, &why) !=
        RBI_CENTRE_OK) {
        rbi_log(RBI_LOG_ERROR, "version_refused", "version=%" PRIu64 " why=%s", version->number,
                rbi_log_quote(&quoted, why.bytes, why.length));
        return false;
    }
    daemon->centre.current = version->number;
    (void)rbi_live_set(daemon, &layers.applied, &layers.edits);
    rbi_log(RBI_LOG_INFO, "version_resumed", "version=%" PRIu64, version->number);
    return true;
}

/** The newest version that is older than @p below, or NULL. */
static const struct rbi_version *centre_newest(const struct rbi_centre *centre, uint64_t below)
{
    const struct rbi_version *newest = NULL;
    for (unsigned i = 0; i < RBI_VERSIONS_KEPT; i++) {
        const struct rbi_version *version = &centre->versions[i];
        if (version->number != 0 && version->number < below &&
            (!newest || version->number > newest->number)) {
            newest = version;
        }
    }
    return newest;
}

void rbi_centre_init(struct rbi_daemon *daemon)
{
    struct rbi_centre *centre = &daemon->centre;
    rbi_store_place(daemon->config.daemon.state_dir, daemon->listener.path, centre->prefix);
    for (unsigned place = 0; place < RBI_VERSIONS_KEPT; place++) {
        struct rbi_version version;
        if (rbi_store_read(centre->prefix, place, &version)) {
            /* Each number has one place; a file that was copied to another is none. */
            if (version.number % RBI_VERSIONS_KEPT == place) {
                centre->versions[place] = version;
            } else {
                rbi_version_deinit(&version);
            }
        }
    }
    const struct rbi_version *version = centre_newest(centre, UINT64_MAX);
    centre->last = version ? version->number : 0;
    while (version && !centre_resume(daemon, version)) {
        version = centre_newest(centre, version->number);
    }
}
