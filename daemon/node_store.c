/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node_store.h"

#include "daemon/centre_store.h"
#include "daemon/daemon.h"
#include "daemon/nodes.h"
#include "daemon/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define STORE_MAGIC UINT64_C(0x315345444f4e4252) /* "RBNODES1"; another layout, another number */
/* A journal below this is not worth writing anew, and one above the other is none of ours. */
#define STORE_SMALL UINT64_C(65536)
#define STORE_LARGE (UINT64_C(1) << 30)
/* Revisions that are set aside at once, so that not each needs a record. */
#define STORE_REVISIONS UINT64_C(1024)
#define STORE_NEW       ".new"
#define STORE_DAMAGED   ".damaged"
#define LOG_LIMIT_NS    (UINT64_C(10) * 1000 * 1000 * 1000)

/** In front of path, creator and value. */
struct store_head {
    uint64_t sum;  /* of all behind it, as far as size */
    uint32_t size; /* of the record, head included */
    uint32_t what; /* enum rbi_node_record_what */
    uint64_t revision;
    uint64_t owner_cluster;
    int32_t owner_instance;
    uint32_t owner_incarnation;
    uint32_t flags;
    uint32_t uid;
    uint16_t path_length;
    uint16_t creator_length;
    uint16_t value_length;
    uint16_t zero;
};
_Static_assert(sizeof(struct store_head) == 56, "without padding, which would be summed");
#define STORE_RECORD_MAX                                                                           \
    (sizeof(struct store_head) + RBI_PATH_MAX + RBI_WIRE_TEXT_MAX + RBI_WIRE_DATA_MAX)

/* ---- records --------------------------------------------------------------------------- */

static uint64_t record_bytes(const struct rbi_node *node)
{
    return sizeof(struct store_head) + node->path_length + node->creator_length +
           node->value_length;
}

static uint64_t record_sum(const unsigned char *record, size_t size)
{
    const size_t begin = sizeof(uint64_t);
    return XXH3_64bits_withSeed(record + begin, size - begin, STORE_MAGIC);
}

static size_t record_seal(unsigned char *record, struct store_head *head, size_t size)
{
    head->size = (uint32_t)size;
    memcpy(record, head, sizeof(*head));
    head->sum = record_sum(record, size);
    memcpy(record, head, sizeof(*head));
    return size;
}

static size_t record_put(unsigned char *record, const struct rbi_node *node)
{
    struct store_head head = {.what = RBI_NODE_RECORD_PUT,
                              .revision = node->revision,
                              .owner_cluster = node->owner_pidf.cluster,
                              .owner_instance = node->owner_pidf.instance,
                              .owner_incarnation = node->owner_pidf.incarnation,
                              .flags = node->flags,
                              .uid = node->uid,
                              .path_length = node->path_length,
                              .creator_length = node->creator_length,
                              .value_length = node->value_length};
    unsigned char *at = record + sizeof(head);
    memcpy(at, node->path, node->path_length);
    at += node->path_length;
    memcpy(at, node->path + node->path_length + 1, node->creator_length);
    at += node->creator_length;
    if (node->value_length != 0) {
        memcpy(at, node->value, node->value_length);
    }
    return record_seal(record, &head, record_bytes(node));
}

static size_t record_drop(unsigned char *record, const struct rbi_node *node, uint64_t revision)
{
    struct store_head head = {
        .what = RBI_NODE_RECORD_REMOVE, .revision = revision, .path_length = node->path_length};
    memcpy(record + sizeof(head), node->path, node->path_length);
    return record_seal(record, &head, sizeof(head) + node->path_length);
}

static size_t record_revision(unsigned char *record, uint64_t revision)
{
    struct store_head head = {.what = RBI_NODE_RECORD_REVISION, .revision = revision};
    return record_seal(record, &head, sizeof(head));
}

/** @return bytes of the record at @p bytes; 0: there is no whole one */
static size_t record_read(const unsigned char *bytes, size_t left, struct rbi_node_record *out)
{
    struct store_head head;
    if (left < sizeof(head)) {
        return 0;
    }
    memcpy(&head, bytes, sizeof(head));
    const size_t size = sizeof(head) + head.path_length + head.creator_length + head.value_length;
    if (head.size != size || size > left || head.sum != record_sum(bytes, size) ||
        head.path_length > RBI_PATH_MAX || head.creator_length > RBI_WIRE_TEXT_MAX ||
        head.value_length > RBI_WIRE_DATA_MAX || head.what < RBI_NODE_RECORD_PUT ||
        head.what > RBI_NODE_RECORD_REVISION) {
        return 0;
    }
    const char *texts = (const char *)bytes + sizeof(head);
    *out = (struct rbi_node_record){.what = (enum rbi_node_record_what)head.what,
                                    .path = texts,
                                    .path_length = head.path_length,
                                    .creator = texts + head.path_length,
                                    .creator_length = head.creator_length,
                                    .value = (const unsigned char *)texts + head.path_length +
                                             head.creator_length,
                                    .value_length = head.value_length,
                                    .flags = head.flags,
                                    .uid = head.uid,
                                    .owner = {.cluster = head.owner_cluster,
                                              .instance = head.owner_instance,
                                              .incarnation = head.owner_incarnation},
                                    .revision = head.revision};
    return size;
}

/* ---- writing --------------------------------------------------------------------------- */

/** @retval 0; -errno, and the file may be longer than before */
static int store_write_at(int fd, const void *bytes, size_t size, uint64_t at)
{
    size_t used = 0;
    while (used < size) {
        const ssize_t n = pwrite(fd, (const char *)bytes + used, size - used, (off_t)(at + used));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? -ENOSPC : -errno;
        }
        used += (size_t)n;
    }
    return 0;
}

static int store_write_all(const struct rbi_daemon *daemon, int fd, uint64_t *bytes)
{
    unsigned char record[STORE_RECORD_MAX];
    const struct rbi_nodes *nodes = &daemon->nodes;
    const uint64_t magic = STORE_MAGIC;
    int result = store_write_at(fd, &magic, sizeof(magic), 0);
    *bytes = sizeof(magic);
    size_t size = record_revision(record, nodes->store.revision_end);
    for (uint32_t i = 0; result == 0; i++) {
        result = store_write_at(fd, record, size, *bytes);
        *bytes += size;
        if (i == nodes->count) {
            break;
        }
        size = record_put(record, nodes->all[i]); /* parents first: that is the order of paths */
    }
    return result == 0 && fsync(fd) < 0 ? -errno : result;
}

/** The folder is made if its parent is there. Some file systems cannot make a rename durable. */
static void store_folder(const char *path, bool sync)
{
    char folder[RBI_NODE_STORE_PATH_MAX + 1];
    const char *end = strrchr(path, '/');
    const int length = end != NULL && end > path ? (int)(end - path) : 1;
    (void)snprintf(folder, sizeof(folder), "%.*s", length, end != NULL ? path : ".");
    if (!sync) {
        (void)mkdir(folder, 0700);
        return;
    }
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

/** Writes all nodes as a new journal in the place of the old one. @retval 0; -errno */
static int store_rewrite(struct rbi_daemon *daemon)
{
    struct rbi_node_store *store = &daemon->nodes.store;
    char beside[RBI_NODE_STORE_PATH_MAX + sizeof(STORE_NEW)];
    uint64_t bytes = 0;
    store_folder(store->path, false);
    (void)snprintf(beside, sizeof(beside), "%s" STORE_NEW, store->path);
    const int fd = rbi_state_file_create(beside);
    if (fd < 0) {
        return fd;
    }
    int result = store_write_all(daemon, fd, &bytes);
    if (result == 0 && rename(beside, store->path) < 0) {
        result = -errno;
    }
    if (result != 0) {
        (void)unlink(beside);
        (void)close(fd);
        return result;
    }
    store_folder(store->path, true);
    store->dirty = false; /* what was: the new one is durable */
    rbi_node_store_close(store);
    store->fd = fd;
    store->bytes = bytes;
    store->rewrite_at = STORE_SMALL + 2 * bytes;
    return 0;
}

static void store_log(struct rbi_daemon *daemon, int error)
{
    struct rbi_node_store *store = &daemon->nodes.store;
    uint64_t suppressed = 0;
    if (rbi_log_limit_pass(&store->limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "nodes_not_kept", "file=%s error=\"%s\" suppressed=%" PRIu64,
                store->path, rbi_log_errno(-error), suppressed);
    }
}

/** Adds a record to the journal. @retval 0; -errno it is as before */
static int store_append(struct rbi_daemon *daemon, const void *record, size_t size)
{
    struct rbi_node_store *store = &daemon->nodes.store;
    int result = 0;
    if (store->fd < 0 || store->bytes >= store->rewrite_at) {
        result = store_rewrite(daemon);
        if (result < 0 && store->fd >= 0) {
            store_log(daemon, result);
            store->rewrite_at = store->bytes + STORE_SMALL; /* the old one goes on */
            result = 0;
        }
    }
    if (result < 0) {
        return result;
    }
    result = store_write_at(store->fd, record, size, store->bytes);
    if (result < 0) {
        (void)!ftruncate(store->fd, (off_t)store->bytes);
        return result;
    }
    store->bytes += size;
    store->dirty = true;
    return 0;
}

/** Sees that @p revision, once given, is never given again. @retval 0; -errno */
static int store_reserve(struct rbi_daemon *daemon, uint64_t revision)
{
    unsigned char record[sizeof(struct store_head)];
    struct rbi_node_store *store = &daemon->nodes.store;
    if (revision < store->revision_end) {
        return 0;
    }
    const uint64_t before = store->revision_end;
    store->revision_end = revision + STORE_REVISIONS;
    const int result = store_append(daemon, record, record_revision(record, store->revision_end));
    store->revision_end = result == 0 ? store->revision_end : before;
    return result;
}

static int store_note(struct rbi_daemon *daemon,
                      const struct rbi_node *node,
                      const void *record,
                      size_t size,
                      uint64_t revision)
{
    int result = store_reserve(daemon, revision);
    result = result == 0 ? store_append(daemon, record, size) : result;
    if (result < 0) {
        store_log(daemon, result);
    }
    /* Of an ephemeral one nothing is lost but its place while its owner comes back. */
    return node->flags & RBI_NODE_EPHEMERAL ? 0 : result;
}

int rbi_node_store_put(struct rbi_daemon *daemon, const struct rbi_node *node)
{
    unsigned char record[STORE_RECORD_MAX];
    return store_note(daemon, node, record, record_put(record, node), node->revision);
}

int rbi_node_store_drop(struct rbi_daemon *daemon, const struct rbi_node *node, uint64_t revision)
{
    unsigned char record[STORE_RECORD_MAX];
    return store_note(daemon, node, record, record_drop(record, node, revision), revision);
}

/** Beside the loop. */
static void store_sync_work(struct rbi_job *job)
{
    struct rbi_node_store *store = RBI_CONTAINER_OF(job, struct rbi_node_store, job);
    store->job_result = fdatasync(store->job_fd) < 0 ? -errno : 0;
}

static void store_sync_done(struct rbi_job *job)
{
    struct rbi_node_store *store = RBI_CONTAINER_OF(job, struct rbi_node_store, job);
    struct rbi_nodes *nodes = RBI_CONTAINER_OF(store, struct rbi_nodes, store);
    (void)close(store->job_fd);
    store->syncing = false;
    if (store->job_result < 0) {
        store_log(RBI_CONTAINER_OF(nodes, struct rbi_daemon, nodes), store->job_result);
    }
}

void rbi_node_store_sync(struct rbi_daemon *daemon)
{
    struct rbi_node_store *store = &daemon->nodes.store;
    if (!store->dirty || store->fd < 0 || store->syncing) {
        return;
    }
    store->job_fd = fcntl(store->fd, F_DUPFD_CLOEXEC, 0);
    if (store->job_fd >= 0) { /* else the next time */
        store->dirty = false;
        store->syncing = true;
        rbi_worker_start(&daemon->worker, &store->job, store_sync_work, store_sync_done);
    }
}

void rbi_node_store_close(struct rbi_node_store *store)
{
    if (store->dirty && store->fd >= 0) {
        (void)fdatasync(store->fd);
    }
    if (store->fd >= 0) {
        (void)close(store->fd);
    }
    store->fd = -1;
    store->dirty = false;
}

/* ---- reading --------------------------------------------------------------------------- */

/** @return how far it could be read; 0: it is no journal of this release */
static size_t store_replay(struct rbi_daemon *daemon, const unsigned char *bytes, size_t size)
{
    uint64_t magic = 0;
    if (size < sizeof(magic)) {
        return 0;
    }
    memcpy(&magic, bytes, sizeof(magic));
    size_t at = magic == STORE_MAGIC ? sizeof(magic) : 0;
    while (at != 0 && at < size) {
        struct rbi_node_record record;
        const size_t length = record_read(bytes + at, size - at, &record);
        if (length == 0) {
            break;
        }
        if (record.what == RBI_NODE_RECORD_REVISION) {
            struct rbi_nodes *nodes = &daemon->nodes;
            nodes->revision = rbi_max_u64(nodes->revision, record.revision);
        } else if (rbi_nodes_restore(daemon, &record) != 0) {
            break;
        }
        at += length;
    }
    return at;
}

/** @return the file in memory, or NULL: there is none, or it cannot be read */
static unsigned char *store_load(const char *path, size_t *size, const char **why)
{
    uint64_t there = 0;
    const int fd = rbi_state_file_open(path, &there);
    if (fd < 0) {
        *why = fd == -ENOENT || fd == -ENOTDIR ? NULL
               : fd == -EPERM                  ? "others than its user could have written it"
               : fd == -EINVAL                 ? "not a file of nodes"
                                               : rbi_log_errno(-fd);
        return NULL;
    }
    unsigned char *bytes = NULL;
    *why = "not a file of nodes";
    if (there > 0 && there <= STORE_LARGE) {
        bytes = malloc((size_t)there);
        *why = bytes ? NULL : "no memory";
    }
    size_t used = 0;
    while (bytes && used < there) {
        const ssize_t n = pread(fd, bytes + used, (size_t)there - used, (off_t)used);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            break; /* shorter than it was: as if it were torn */
        }
        used += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    *size = used;
    return bytes;
}

/** What could not be read is set aside, and what could is written. */
static void store_repair(struct rbi_daemon *daemon)
{
    const struct rbi_node_store *store = &daemon->nodes.store;
    char aside[RBI_NODE_STORE_PATH_MAX + sizeof(STORE_DAMAGED)];
    (void)snprintf(aside, sizeof(aside), "%s" STORE_DAMAGED, store->path);
    const int result = rename(store->path, aside) < 0 ? -errno : store_rewrite(daemon);
    if (result < 0) {
        store_log(daemon, result);
    }
}

void rbi_node_store_open(struct rbi_daemon *daemon)
{
    struct rbi_nodes *nodes = &daemon->nodes;
    struct rbi_node_store *store = &nodes->store;
    char place[RBI_STORE_PREFIX_MAX + 1];
    size_t size = 0;
    const char *why = NULL;
    /* "FOLDER/version" or "SOCKET.version": beside what is kept of the configuration. */
    rbi_store_place(daemon->config.daemon.state_dir, daemon->listener.path, place);
    const size_t end = strlen(place) - strlen("version");
    (void)snprintf(store->path, sizeof(store->path), "%.*snodes", (int)end, place);
    unsigned char *bytes = store_load(store->path, &size, &why);
    size_t used = 0;
    if (bytes) {
        used = store_replay(daemon, bytes, size);
        why = used < size ? used ? "torn or damaged" : "not a file of this release" : NULL;
    }
    if (why) {
        rbi_log(RBI_LOG_WARNING, "nodes_ignored",
                "file=%s at=%zu size=%zu why=\"%s\" kept=%" PRIu32, store->path, used, size, why,
                nodes->count);
    }
    store->revision_end = nodes->revision;
    store->whole = bytes && !why;
    if (why) {
        store_repair(daemon); /* whatever it is: the next change would write over it */
    }
    free(bytes);
    if (nodes->count != 0) {
        rbi_log(RBI_LOG_INFO, "nodes_read",
                "file=%s nodes=%" PRIu32 " ephemeral=%" PRIu32 " revision=%" PRIu64, store->path,
                nodes->count, nodes->expected, nodes->revision);
    }
}
