/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/names.h"

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define RECORD_MAGIC  0x314d414eU /* "NAM1": another layout, another number */
#define RECORDS_MAX   1048576U    /* as many endpoints as a directory may have */
#define BOOK_PATH_MAX 256
#define LOG_LIMIT_NS  (UINT64_C(60) * 1000 * 1000 * 1000)

/** In the file; blank when all zero. */
struct names_record {
    uint32_t magic;
    uint32_t uid;
    uint32_t pid; /* 0: of another namespace */
    uint32_t length;
    uint64_t started; /* of that process, in clock ticks since boot */
    uint64_t cookie;
    char path[RBI_PATH_MAX + 1];
    uint64_t sum; /* of all before it: a record that is cut off is none */
};
_Static_assert(sizeof(struct names_record) == 296, "without padding, which would be summed");

/** Who had a name under the daemon before. */
struct names_owner {
    uint32_t record;
    uint32_t uid;
    uint32_t pid;
    uint64_t started;
    uint64_t cookie;
    struct rbi_text path;
};

static uint64_t names_key(const struct rbi_text *path)
{
    const uint64_t key = XXH3_64bits(path->bytes, path->length);
    return key == 0 || key == UINT64_MAX ? 1 : key;
}

/* ---- records ------------------------------------------------------------------------------- */

/** Room for giving back every record, so that giving back cannot fail. */
static bool names_reserve(struct rbi_names *names, uint32_t end)
{
    if (end <= names->free_capacity) {
        return true;
    }
    const uint32_t capacity = end < 32 ? 64 : end * 2;
    uint32_t *records = realloc(names->free_records, capacity * sizeof(*records));
    if (!records) {
        return false;
    }
    names->free_records = records;
    names->free_capacity = capacity;
    return true;
}

/** @retval 0; -errno */
static int
names_write(const struct rbi_names *names, uint32_t at, const struct names_record *record)
{
    const off_t offset = (off_t)at * (off_t)sizeof(*record);
    const ssize_t n = pwrite(names->fd, record, sizeof(*record), offset);
    return n == (ssize_t)sizeof(*record) ? 0 : n < 0 ? -errno : -ENOSPC;
}

static void names_blank(struct rbi_names *names, uint32_t at)
{
    static const struct names_record blank;
    (void)names_write(names, at, &blank); /* it lies inside the file: nothing is to be had anew */
    names->free_records[names->free_count++] = at;
}

static uint64_t names_sum(const struct names_record *record)
{
    return XXH3_64bits(record, offsetof(struct names_record, sum));
}

/* ---- what the daemon before has left ------------------------------------------------------- */

/** @return whether it is a record; nobody but this daemon's user could have written it */
static bool names_is_record(const struct names_record *record)
{
    return record->magic == RECORD_MAGIC && record->length <= RBI_PATH_MAX &&
           record->sum == names_sum(record);
}

/** @return whether somebody is expected for that record */
static bool names_expect(struct rbi_names *names, uint32_t at, const struct names_record *record)
{
    struct names_owner *owner = calloc(1, sizeof(*owner));
    if (!owner) {
        return false;
    }
    *owner = (struct names_owner){.record = at,
                                  .uid = record->uid,
                                  .pid = record->pid,
                                  .started = record->started,
                                  .cookie = record->cookie};
    owner->path.length = (uint16_t)record->length;
    memcpy(owner->path.bytes, record->path, record->length);
    if (rbi_map_put(&names->expected, names_key(&owner->path), owner) < 0) {
        free(owner);
        return false;
    }
    return true;
}

static int names_read(struct rbi_names *names)
{
    struct names_record record;
    ssize_t n = 0;
    for (uint32_t at = 0; at < RECORDS_MAX; at++) {
        n = pread(names->fd, &record, sizeof(record), (off_t)at * (off_t)sizeof(record));
        if (n != (ssize_t)sizeof(record)) {
            break;
        }
        if (!names_reserve(names, at + 1)) {
            return -ENOMEM;
        }
        names->record_end = at + 1;
        if (!names_is_record(&record) || !names_expect(names, at, &record)) {
            names->free_records[names->free_count++] = at;
        }
    }
    return n < 0 ? -errno : 0;
}

/** @retval 0; -errno; -EPERM it could have been written by others */
static int names_open_file(const char *socket_path)
{
    char path[BOOK_PATH_MAX];
    struct stat found;
    if (snprintf(path, sizeof(path), "%s.names", socket_path) >= (int)sizeof(path)) {
        return -ENAMETOOLONG;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        return -errno;
    }
    const int known = fstat(fd, &found);
    if (known < 0 || !S_ISREG(found.st_mode) || found.st_uid != geteuid() ||
        (found.st_mode & 077) != 0) {
        (void)close(fd);
        return known < 0 ? -EIO : -EPERM;
    }
    return fd;
}

void rbi_names_open(struct rbi_names *names, const char *socket_path)
{
    int result = rbi_map_init(&names->expected);
    if (result == 0) {
        result = names->fd = names_open_file(socket_path);
    }
    if (result >= 0) {
        result = names_read(names);
    }
    if (result < 0) {
        rbi_log(RBI_LOG_WARNING, "names_not_kept",
                "file=%s.names error=\"%s\" effect=\"after a restart names are free at once\"",
                socket_path,
                result == -EPERM ? "not a file of this user alone" : rbi_log_errno(-result));
        rbi_names_close(names);
    }
}

void rbi_names_close(struct rbi_names *names)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct names_owner *owner = NULL;
    while (names->expected.ready && (owner = rbi_map_next(&names->expected, &cursor)) != NULL) {
        free(owner);
    }
    rbi_map_deinit(&names->expected);
    free(names->free_records);
    if (names->fd >= 0) {
        (void)close(names->fd);
    }
    *names = (struct rbi_names)RBI_NAMES_NULL;
}

static struct names_owner *names_owner_of(struct rbi_names *names, const struct rbi_text *path)
{
    struct names_owner *owner =
        names->expected.ready ? rbi_map_get(&names->expected, names_key(path)) : NULL;
    return owner && owner->path.length == path->length &&
                   memcmp(owner->path.bytes, path->bytes, path->length) == 0
               ? owner
               : NULL;
}

bool rbi_names_allow(struct rbi_names *names,
                     const struct rbi_peer *peer,
                     const struct rbi_text *path,
                     uint64_t cookie,
                     struct rbi_text *why)
{
    const struct names_owner *owner = names_owner_of(names, path);
    if (!owner || (cookie != 0 && cookie == owner->cookie) ||
        (owner->pid != 0 && owner->pid == peer->pid && owner->uid == peer->uid) ||
        (owner->pid != 0 && rbi_process_started(owner->pid) != owner->started)) {
        return true;
    }
    rbi_text_format(why,
                    "%.120s is kept for uid %" PRIu32 ", who had it under the daemon before and "
                    "lives: retry when it is settled",
                    path->bytes, owner->uid);
    return false;
}

/* ---- what is so now ------------------------------------------------------------------------ */

/** A record for a name: the one that it had, or a free one. @return false: there is none */
static bool names_take(struct rbi_names *names, const struct rbi_text *path, uint32_t *at)
{
    struct names_owner *owner = names_owner_of(names, path);
    if (owner) {
        *at = owner->record;
        (void)rbi_map_remove(&names->expected, names_key(path));
        free(owner);
        return true;
    }
    if (names->free_count) {
        *at = names->free_records[--names->free_count];
        return true;
    }
    if (names->record_end == RECORDS_MAX || !names_reserve(names, names->record_end + 1)) {
        return false;
    }
    *at = names->record_end++;
    return true;
}

void rbi_names_enter(struct rbi_names *names, struct rbi_endpoint *endpoint)
{
    uint32_t at = 0;
    const struct rbi_peer *peer = endpoint->peer;
    if (names->fd < 0 || !endpoint->cluster || endpoint->origin ||
        !names_take(names, &endpoint->path, &at)) {
        return;
    }
    struct names_record record = {.magic = RECORD_MAGIC,
                                  .uid = peer->uid,
                                  .pid = peer->pid,
                                  .length = endpoint->path.length,
                                  .started = peer->pid ? rbi_process_started(peer->pid) : 0,
                                  .cookie = endpoint->cookie};
    memcpy(record.path, endpoint->path.bytes, endpoint->path.length);
    record.sum = names_sum(&record);
    endpoint->name_record = at + 1;
    const int result = names_write(names, at, &record);
    if (result < 0) {
        uint64_t suppressed = 0;
        struct rbi_daemon *daemon = endpoint->daemon;
        if (rbi_log_limit_pass(&names->limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                               &suppressed)) {
            rbi_log(RBI_LOG_WARNING, "name_not_kept", "path=%s error=\"%s\" suppressed=%" PRIu64,
                    endpoint->path.bytes, rbi_log_errno(-result), suppressed);
        }
    }
}

void rbi_names_leave(struct rbi_names *names, struct rbi_endpoint *endpoint)
{
    /* A daemon that stops leaves them to the next one. */
    if (endpoint->name_record && names->fd >= 0 && !endpoint->daemon->stopping) {
        names_blank(names, endpoint->name_record - 1);
        endpoint->name_record = 0;
    }
}

void rbi_names_settled(struct rbi_names *names)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct names_owner *owner = NULL;
    while (names->expected.ready && (owner = rbi_map_next(&names->expected, &cursor)) != NULL) {
        names_blank(names, owner->record);
        free(owner);
    }
    rbi_map_deinit(&names->expected);
    names->expected = (struct rbi_map){.ready = false};
}
