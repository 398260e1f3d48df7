/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/known.h"

#include "bus/node_path.h"
#include "daemon/centre_store.h"
#include "daemon/daemon.h"
#include "daemon/registry.h"
#include "daemon/state_file.h"
#include "daemon/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/*
 * "ringbus clusters 1", then lines of seconds since 1970 and path, the one empty for longest first;
 * 0 seconds: it was not empty. The last line is "sum" and the hash of all before it.
 */
#define KNOWN_HEAD   "ringbus clusters 1\n"
#define KNOWN_LINE   (20U + 1U + RBI_PATH_MAX + 1U)
#define KNOWN_SUM    "sum %016" PRIx64 "\n"
#define KNOWN_LARGE  (UINT64_C(8) << 20)
#define KNOWN_NEW    ".new"
#define NS_PER_S     UINT64_C(1000000000)
#define LOG_LIMIT_NS (60 * NS_PER_S)

/* ---- writing --------------------------------------------------------------------------- */

struct writer {
    char *bytes;
    size_t used;
    size_t room;
};

static void write_line(struct writer *writer, uint64_t empty_s, const struct rbi_cluster *cluster)
{
    writer->used += (size_t)snprintf(writer->bytes + writer->used, writer->room - writer->used,
                                     "%" PRIu64 " %s\n", empty_s, cluster->path.bytes);
}

/** @return the text, or NULL: no memory */
static char *known_text(struct rbi_daemon *daemon, size_t *size)
{
    struct rbi_registry *registry = &daemon->registry;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    const uint64_t now_s = rbi_wall_now_s();
    const uint64_t lines = rbi_min_u64(rbi_map_count(&registry->clusters), RBI_KNOWN_CLUSTERS_MAX);
    struct writer writer = {.room = sizeof(KNOWN_HEAD) + (lines + 1) * KNOWN_LINE};
    writer.bytes = malloc(writer.room);
    if (!writer.bytes) {
        return NULL;
    }
    writer.used = (size_t)snprintf(writer.bytes, writer.room, KNOWN_HEAD);
    uint64_t left = lines;
    RBI_LIST_EACH(node, spare, &registry->idle)
    {
        const struct rbi_cluster *cluster = RBI_CONTAINER_OF(node, struct rbi_cluster, in_idle);
        if (cluster->known && left > 0) {
            write_line(&writer, now_s - (now_ns - cluster->empty_ns) / NS_PER_S, cluster);
            left--;
        }
    }
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    const struct rbi_cluster *cluster = NULL;
    while (left > 0 && (cluster = rbi_map_next(&registry->clusters, &cursor)) != NULL) {
        if (cluster->known && rbi_list_empty(&cluster->in_idle)) {
            write_line(&writer, 0, cluster);
            left--;
        }
    }
    writer.used += (size_t)snprintf(writer.bytes + writer.used, writer.room - writer.used,
                                    KNOWN_SUM, XXH3_64bits(writer.bytes, writer.used));
    *size = writer.used;
    return writer.bytes;
}

static int write_file(const char *path, const char *bytes, size_t size)
{
    const int fd = rbi_state_file_create(path);
    if (fd < 0) {
        return fd;
    }
    int result = 0;
    while (size > 0 && result == 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            result = n == 0 ? -ENOSPC : -errno;
        }
    }
    (void)close(fd);
    return result;
}

void rbi_known_sync(struct rbi_daemon *daemon)
{
    struct rbi_known *known = &daemon->known;
    char beside[RBI_KNOWN_PATH_MAX + sizeof(KNOWN_NEW)];
    size_t size = 0;
    uint64_t suppressed = 0;
    if (!known->dirty || !known->open) {
        return;
    }
    char *text = known_text(daemon, &size);
    (void)snprintf(beside, sizeof(beside), "%s" KNOWN_NEW, known->path);
    int result = text ? write_file(beside, text, size) : -ENOMEM;
    free(text);
    if (result == 0 && rename(beside, known->path) < 0) {
        result = -errno;
    }
    known->dirty = result != 0;
    if (result != 0) {
        (void)unlink(beside);
        if (rbi_log_limit_pass(&known->limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                               &suppressed)) {
            rbi_log(RBI_LOG_WARNING, "clusters_not_kept",
                    "file=%s error=\"%s\" suppressed=%" PRIu64, known->path, rbi_log_errno(-result),
                    suppressed);
        }
    }
}

void rbi_known_close(struct rbi_daemon *daemon)
{
    daemon->known.dirty |= daemon->registry.idle_count > 0;
    rbi_known_sync(daemon);
    daemon->known.open = false;
}

/* ---- reading --------------------------------------------------------------------------- */

/** @return the text, terminated, or NULL: there is none, or it cannot be read */
static char *read_file(const char *path, const char **why)
{
    uint64_t size = 0;
    size_t used = 0;
    const int fd = rbi_state_file_open(path, &size);
    if (fd < 0) {
        *why = fd == -ENOENT || fd == -ENOTDIR ? NULL
               : fd == -EPERM                  ? "others than its user could have written it"
                                               : "not a file of clusters";
        return NULL;
    }
    char *text = size <= KNOWN_LARGE ? malloc(size + 1) : NULL;
    while (text && used < size) {
        const ssize_t n = pread(fd, text + used, size - used, (off_t)used);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            break; /* its sum will tell */
        }
        used += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    if (text) {
        text[used] = '\0';
    }
    *why = text ? NULL : "not a file of clusters";
    return text;
}

/** Cuts the sum off. @return whether it is that of what is before it */
static bool text_is_whole(char *text)
{
    char expected[32];
    const size_t length = strlen(text);
    const size_t sum_length = sizeof("sum 0123456789abcdef\n") - 1;
    if (length < sizeof(KNOWN_HEAD) - 1 + sum_length ||
        strncmp(text, KNOWN_HEAD, sizeof(KNOWN_HEAD) - 1) != 0) {
        return false;
    }
    char *sum = text + length - sum_length;
    (void)snprintf(expected, sizeof(expected), KNOWN_SUM, XXH3_64bits(text, length - sum_length));
    const bool whole = strcmp(sum, expected) == 0;
    *sum = '\0';
    return whole;
}

/** One line, without its end. */
static void take_line(struct rbi_daemon *daemon, const char *line)
{
    struct rbi_node_path parsed;
    char *end = NULL;
    const uint64_t empty_s = strtoull(line, &end, 10);
    if (end == line || *end != ' ') {
        return;
    }
    const char *path = end + 1;
    const size_t length = strlen(path);
    if (length > RBI_PATH_MAX || rbi_node_path_parse(path, length, &parsed) != 0 ||
        parsed.kind != RBI_NODE_CLUSTER) {
        return;
    }
    const uint64_t now_s = rbi_wall_now_s();
    const uint64_t since_s = empty_s != 0 && empty_s < now_s ? now_s - empty_s : 0;
    rbi_registry_know(daemon, path, (uint32_t)length, since_s * NS_PER_S);
}

void rbi_known_open(struct rbi_daemon *daemon)
{
    struct rbi_known *known = &daemon->known;
    char place[RBI_STORE_PREFIX_MAX + 1];
    const char *why = NULL;
    /* "FOLDER/version" or "SOCKET.version": beside what is kept of the configuration. */
    rbi_store_place(daemon->config.daemon.state_dir, daemon->listener.path, place);
    const size_t end = strlen(place) - strlen("version");
    (void)snprintf(known->path, sizeof(known->path), "%.*sclusters", (int)end, place);
    char *text = read_file(known->path, &why);
    if (text && !text_is_whole(text)) {
        why = "torn, damaged, or of another release";
    } else if (text) {
        char *rest = text + sizeof(KNOWN_HEAD) - 1;
        for (char *line_end = strchr(rest, '\n'); line_end; line_end = strchr(rest, '\n')) {
            *line_end = '\0';
            take_line(daemon, rest);
            rest = line_end + 1;
        }
    }
    free(text);
    if (why) {
        rbi_log(RBI_LOG_WARNING, "clusters_ignored", "file=%s why=\"%s\"", known->path, why);
    }
    known->open = true;
    known->dirty = true; /* it is there from the start on, so that a full disk is told of then */
}
