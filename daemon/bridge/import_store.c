/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/import_store.h"

#include "daemon/bridge/import_file.h"
#include "daemon/log.h"
#include "daemon/map.h"
#include "daemon/wall.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS_MIN     64U
#define LOG_LIMIT_NS UINT64_C(60000000000)

/** A cluster that has a file, or is to get one. */
struct store_cluster {
    struct rbi_list in_clusters;
    uint64_t id;
    uint64_t epoch;  /* of its last file */
    uint64_t due_ns; /* not written before */
    uint64_t sum;    /* of the rows in it */
    bool dirty;
    bool missing; /* its file is to be written though it would say the same */
    bool empty;   /* it has no file, and needs none */
};

/** What is done beside the loop: a file is written, or it is looked whether it is still there. */
struct store_job {
    struct rbi_job job; /* first: the worker hands it back */
    struct rbi_import_store *store;
    struct store_cluster *cluster;
    unsigned char *bytes; /* NULL: to be removed, as nothing is left of the cluster */
    size_t size;
    int result;
    uint64_t
        *look; /* clusters whose files are looked for; 0 in the place of those that are there */
    uint32_t look_count;
};

struct rbi_import_store {
    struct rbi_loop *loop;
    struct rbi_worker worker;
    struct rbi_loop_timer timer;
    char folder[RBI_IMPORT_FOLDER_MAX + 1];
    rbi_import_store_list_fn list;
    void *context;
    struct rbi_map by_id;
    struct rbi_list clusters;
    struct store_job job; /* one at a time: the disk is not faster for more */
    bool busy;
    bool ending;
    uint64_t every_ns;
    uint64_t look_ns; /* when files are looked for */
    struct rbi_import_store_row *rows;
    uint32_t rows_max;
    uint64_t written;
    uint64_t failed;
    struct rbi_log_limit limit;
};

static void store_turn(void *context);

/** Sets the timer to whatever is due first. */
static void arm(struct rbi_import_store *store)
{
    uint64_t due_ns = store->look_ns;
    if (store->busy || store->ending) {
        return;
    }
    RBI_LIST_EACH(node, spare, &store->clusters)
    {
        const struct store_cluster *cluster =
            RBI_CONTAINER_OF(node, struct store_cluster, in_clusters);
        due_ns = cluster->dirty ? rbi_min_u64(due_ns, cluster->due_ns) : due_ns;
    }
    rbi_loop_timer_set(store->loop, &store->timer, due_ns, store_turn, store);
}

static struct store_cluster *cluster_of(struct rbi_import_store *store, uint64_t id)
{
    struct store_cluster *cluster = rbi_map_get(&store->by_id, id);
    if (cluster) {
        return cluster;
    }
    cluster = calloc(1, sizeof *cluster);
    if (!cluster || rbi_map_put(&store->by_id, id, cluster) < 0) {
        free(cluster);
        return NULL;
    }
    cluster->id = id;
    cluster->empty = true;
    rbi_list_push_back(&store->clusters, &cluster->in_clusters);
    return cluster;
}

static void forget(struct rbi_import_store *store, struct store_cluster *cluster)
{
    (void)rbi_map_remove(&store->by_id, cluster->id);
    rbi_list_remove(&cluster->in_clusters);
    free(cluster);
}

/* ---- beside the loop --------------------------------------------------------------------- */

static void do_write(struct rbi_job *job)
{
    struct store_job *store = RBI_CONTAINER_OF(job, struct store_job, job);
    /* The folder may have been removed, too. */
    if (store->bytes && mkdir(store->store->folder, 0700) < 0 && errno != EEXIST) {
        store->result = -errno;
        return;
    }
    store->result = store->bytes ? rbi_import_file_put(store->store->folder, store->cluster->id,
                                                       store->bytes, store->size)
                                 : rbi_import_file_remove(store->store->folder, store->cluster->id);
}

static void do_look(struct rbi_job *job)
{
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    struct store_job *store = RBI_CONTAINER_OF(job, struct store_job, job);
    for (uint32_t i = 0; i < store->look_count; i++) {
        rbi_import_file_name(store->store->folder, store->look[i], 0, name);
        if (access(name, F_OK) == 0) {
            store->look[i] = 0;
        }
    }
}

/* ---- in the loop ------------------------------------------------------------------------- */

static void wrote(struct rbi_job *job)
{
    struct store_job *done = RBI_CONTAINER_OF(job, struct store_job, job);
    struct rbi_import_store *store = done->store;
    struct store_cluster *cluster = done->cluster;
    uint64_t suppressed = 0;
    if (done->result == 0) {
        cluster->empty = !done->bytes;
        store->written++;
    } else {
        cluster->dirty = true;
        cluster->missing = true;
        store->failed++;
        if (rbi_log_limit_pass(&store->limit, rbi_loop_now_ns(store->loop), LOG_LIMIT_NS,
                               &suppressed)) {
            rbi_log(RBI_LOG_WARNING, "instances_not_kept",
                    "folder=%s cluster=%016" PRIx64 " error=\"%s\" suppressed=%" PRIu64,
                    store->folder, cluster->id, rbi_log_errno(-done->result), suppressed);
        }
    }
    free(done->bytes);
    done->bytes = NULL;
    store->busy = false;
    if (cluster->empty && !cluster->dirty && !store->ending) {
        forget(store, cluster);
    }
    arm(store);
}

static void looked(struct rbi_job *job)
{
    struct store_job *done = RBI_CONTAINER_OF(job, struct store_job, job);
    struct rbi_import_store *store = done->store;
    for (uint32_t i = 0; i < done->look_count; i++) {
        struct store_cluster *cluster =
            done->look[i] != 0 ? rbi_map_get(&store->by_id, done->look[i]) : NULL;
        if (cluster) {
            cluster->dirty = true; /* somebody has removed it, and what it said holds still */
            cluster->missing = true;
        }
    }
    free(done->look);
    done->look = NULL;
    store->busy = false;
    arm(store);
}

/**
 * The cluster as it is now, as bytes for the job; none: there is nothing of it.
 * @retval 0; 1 its file says so already; -ENOMEM
 */
static int picture(struct rbi_import_store *store, struct store_cluster *cluster)
{
    struct store_job *job = &store->job;
    struct rbi_import_store_head head = {
        .cluster = cluster->id, .epoch = cluster->epoch + 1, .wall_s = rbi_wall_now_s()};
    uint32_t count =
        store->list(store->context, cluster->id, store->rows, store->rows_max, &head.revision);
    while (count > store->rows_max) {
        const uint32_t room = (uint32_t)rbi_pow2_ceil(rbi_max_u64(count, ROWS_MIN));
        struct rbi_import_store_row *rows = realloc(store->rows, room * sizeof *rows);
        if (!rows) {
            return -ENOMEM;
        }
        store->rows = rows;
        store->rows_max = room;
        count = store->list(store->context, cluster->id, rows, room, &head.revision);
    }
    job->bytes = NULL;
    if (count == 0) {
        return cluster->empty ? 1 : 0;
    }
    const int result = rbi_import_file_encode(&head, store->rows, count, &job->bytes, &job->size);
    if (result < 0) {
        return result;
    }
    const uint64_t sum = rbi_import_file_sum(job->bytes, job->size);
    if (sum == cluster->sum && !cluster->missing && !cluster->empty) {
        free(job->bytes);
        job->bytes = NULL;
        return 1;
    }
    cluster->sum = sum;
    return 0;
}

/** @return whether the job is made ready; the cluster is as it says unless that is dirty again */
static bool write_ready(struct rbi_import_store *store, struct store_cluster *cluster)
{
    const int result = picture(store, cluster);
    cluster->due_ns = rbi_loop_now_ns(store->loop) + store->every_ns;
    if (result < 0) {
        return false; /* it stays dirty */
    }
    cluster->dirty = false;
    cluster->missing = false;
    if (result > 0) {
        return false;
    }
    cluster->epoch++;
    store->job.cluster = cluster;
    store->job.store = store;
    return true;
}

/** Looks which files are missing. */
static void look_begin(struct rbi_import_store *store)
{
    struct store_job *job = &store->job;
    store->look_ns = rbi_loop_now_ns(store->loop) + store->every_ns;
    job->look = calloc(rbi_map_count(&store->by_id) + 1, sizeof *job->look);
    if (!job->look) {
        return;
    }
    job->look_count = 0;
    RBI_LIST_EACH(node, spare, &store->clusters)
    {
        const struct store_cluster *cluster =
            RBI_CONTAINER_OF(node, struct store_cluster, in_clusters);
        if (!cluster->empty && !cluster->dirty) {
            job->look[job->look_count++] = cluster->id;
        }
    }
    job->store = store;
    store->busy = true;
    rbi_worker_start(&store->worker, &job->job, do_look, looked);
}

/** Begins whatever is due. */
static void store_turn(void *context)
{
    struct rbi_import_store *store = context;
    const uint64_t now_ns = rbi_loop_now_ns(store->loop);
    RBI_LIST_EACH(node, spare, &store->clusters)
    {
        struct store_cluster *cluster = RBI_CONTAINER_OF(node, struct store_cluster, in_clusters);
        if (!store->busy && cluster->dirty && cluster->due_ns <= now_ns) {
            store->busy = write_ready(store, cluster);
            if (store->busy) {
                rbi_worker_start(&store->worker, &store->job.job, do_write, wrote);
            }
        }
    }
    if (!store->busy && store->look_ns <= now_ns) {
        look_begin(store);
    }
    arm(store);
}

void rbi_import_store_dirty(struct rbi_import_store *store, uint64_t id)
{
    struct store_cluster *cluster = cluster_of(store, id);
    if (cluster && !cluster->dirty) { /* without memory for it there will be no file of it */
        cluster->dirty = true;
        arm(store);
    }
}

/* ---- reading ----------------------------------------------------------------------------- */

static void
ignored(const struct rbi_import_store *store, uint64_t cluster, unsigned place, const char *why)
{
    rbi_log(RBI_LOG_WARNING, "instances_ignored", "file=%s/%016" PRIx64 ".%u why=\"%s\"",
            store->folder, cluster, place, why);
}

/** One place of a cluster. @retval 0 taken; 1 there is none; -errno ignored */
static int load_place(struct rbi_import_store *store,
                      struct store_cluster *cluster,
                      unsigned place,
                      rbi_import_store_row_fn row,
                      void *context)
{
    struct rbi_import_store_head head = {0};
    const char *why = NULL;
    unsigned char *bytes = NULL;
    size_t size = 0;
    int result = rbi_import_file_get(store->folder, cluster->id, place, &bytes, &size);
    if (result == -ENOENT) {
        return 1;
    }
    if (result < 0) {
        why = result == -EPERM ? "others than its user could have written it"
                               : rbi_log_errno(-result);
    } else {
        result = rbi_import_file_decode(bytes, size, &head, NULL, NULL, &why);
        if (result == 0 && head.cluster != cluster->id) {
            result = -EPROTO;
            why = "of another cluster";
        }
    }
    if (result == 0) {
        cluster->epoch = head.epoch;
        cluster->sum = rbi_import_file_sum(bytes, size);
        cluster->empty = false;
        result = rbi_import_file_decode(bytes, size, &head, row, context, &why);
    } else {
        ignored(store, cluster->id, place, why);
    }
    free(bytes);
    return result;
}

/** @return files of it that were ignored */
static uint32_t load_cluster(struct rbi_import_store *store,
                             uint64_t id,
                             rbi_import_store_row_fn row,
                             void *context)
{
    struct store_cluster *cluster = cluster_of(store, id);
    uint32_t count = 0;
    for (unsigned place = 0; cluster && place < RBI_IMPORT_STORE_KEEP; place++) {
        const int result = load_place(store, cluster, place, row, context);
        if (result == 0) {
            break;
        }
        count += result < 0 ? 1U : 0U;
    }
    return count;
}

/** "0123456789abcdef.0" and so on. */
static bool name_parse(const char *name, uint64_t *cluster)
{
    char *end = NULL;
    if (strlen(name) != 18 || strspn(name, "0123456789abcdef") != 16) {
        return false;
    }
    *cluster = strtoull(name, &end, 16);
    return end[0] == '.' && end[1] >= '0' && end[1] < '0' + (char)RBI_IMPORT_STORE_KEEP &&
           *cluster != 0 && *cluster != UINT64_MAX;
}

uint32_t
rbi_import_store_load(struct rbi_import_store *store, rbi_import_store_row_fn row, void *context)
{
    uint32_t count = 0;
    uint64_t id = 0;
    DIR *folder = opendir(store->folder);
    if (!folder) {
        return 0;
    }
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this folder */
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (name_parse(entry->d_name, &id) && !rbi_map_get(&store->by_id, id)) {
            count += load_cluster(store, id, row, context);
        }
    }
    (void)closedir(folder);
    return count;
}

/* ---- life -------------------------------------------------------------------------------- */

int rbi_import_store_new(struct rbi_loop *loop,
                         const char *folder,
                         rbi_import_store_list_fn list,
                         void *context,
                         struct rbi_import_store **out)
{
    if (strlen(folder) > RBI_IMPORT_FOLDER_MAX) {
        return -ENAMETOOLONG;
    }
    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        return -errno;
    }
    struct rbi_import_store *store = calloc(1, sizeof *store);
    const int result = store ? rbi_map_init(&store->by_id) : -ENOMEM;
    if (result < 0) {
        free(store);
        return result;
    }
    store->loop = loop;
    store->list = list;
    store->context = context;
    (void)snprintf(store->folder, sizeof store->folder, "%s", folder);
    rbi_list_init(&store->clusters);
    rbi_worker_init(&store->worker, loop);
    rbi_import_store_every(store, RBI_IMPORT_STORE_EVERY_NS);
    *out = store;
    return 0;
}

void rbi_import_store_every(struct rbi_import_store *store, uint64_t every_ns)
{
    store->every_ns = every_ns;
    store->look_ns = rbi_loop_now_ns(store->loop) + every_ns;
    arm(store);
}

void rbi_import_store_free(struct rbi_import_store *store)
{
    if (!store) {
        return;
    }
    store->ending = true;
    rbi_loop_timer_cancel(store->loop, &store->timer);
    rbi_worker_finish(&store->worker);
    while (!rbi_list_empty(&store->clusters)) {
        struct store_cluster *cluster =
            RBI_LIST_FIRST(&store->clusters, struct store_cluster, in_clusters);
        /* Here and now: there is no loop any more that it could hold up. */
        if (cluster->dirty && write_ready(store, cluster)) {
            do_write(&store->job.job);
            wrote(&store->job.job);
        }
        forget(store, cluster);
    }
    rbi_worker_deinit(&store->worker);
    rbi_map_deinit(&store->by_id);
    free(store->rows);
    free(store);
}

uint64_t rbi_import_store_written(const struct rbi_import_store *store)
{
    return store->written;
}

uint64_t rbi_import_store_failed(const struct rbi_import_store *store)
{
    return store->failed;
}
