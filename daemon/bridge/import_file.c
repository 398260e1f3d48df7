/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/import_file.h"

#include "bus/bridge_config.h"
#include "bus/wire_cursor.h"
#include "daemon/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define FILE_MAGIC   0x49544252U /* "RBTI" */
#define FILE_VERSION 1U
#define HEAD_BYTES   64U
#define SUM_END      16U /* what is summed begins here */
/* Five texts with a byte of length each, and numbers of fixed size. */
#define ROW_BYTES_MAX                                                                              \
    (5U + RBI_HOST_NAME_MAX + RBI_PATH_MAX + 3U * RBI_DIRECTORY_LABEL_MAX + 4U + 1U + 1U + 2U + 2U)

/* ---- bytes ------------------------------------------------------------------------------- */

static void write_text(struct rbi_writer *writer, const char *text)
{
    const size_t length = strlen(text);
    rbi_writer_u8(writer, (uint8_t)length);
    rbi_writer_bytes(writer, text, length);
}

static void write_row(struct rbi_writer *writer, const struct rbi_import_store_row *row)
{
    const struct rbi_remote *remote = &row->remote;
    write_text(writer, row->host);
    write_text(writer, remote->path);
    rbi_writer_u32(writer, remote->pidf.incarnation);
    rbi_writer_u8(writer, (uint8_t)remote->state);
    rbi_writer_u8(writer, (uint8_t)remote->health);
    rbi_writer_u16(writer, (uint16_t)remote->weight);
    rbi_writer_u16(writer, (uint16_t)remote->reported);
    write_text(writer, remote->set);
    write_text(writer, remote->idc);
    write_text(writer, remote->tags);
}

int rbi_import_file_encode(const struct rbi_import_store_head *head,
                           const struct rbi_import_store_row *rows,
                           uint32_t count,
                           unsigned char **out,
                           size_t *size)
{
    struct rbi_writer writer;
    const size_t room = HEAD_BYTES + (size_t)count * ROW_BYTES_MAX;
    unsigned char *bytes = malloc(room);
    if (!bytes) {
        return -ENOMEM;
    }
    rbi_writer_init(&writer, bytes + HEAD_BYTES, room - HEAD_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        write_row(&writer, &rows[i]);
    }
    const size_t body = writer.used;
    rbi_writer_init(&writer, bytes + SUM_END, HEAD_BYTES - SUM_END);
    rbi_writer_u64(&writer, head->cluster);
    rbi_writer_u64(&writer, head->epoch);
    rbi_writer_u64(&writer, head->revision);
    rbi_writer_u64(&writer, head->wall_s);
    rbi_writer_u32(&writer, count);
    rbi_writer_u32(&writer, (uint32_t)body);
    rbi_writer_u64(&writer, 0);
    rbi_writer_init(&writer, bytes, SUM_END);
    rbi_writer_u32(&writer, FILE_MAGIC);
    rbi_writer_u32(&writer, FILE_VERSION);
    rbi_writer_u64(&writer, XXH3_64bits(bytes + SUM_END, HEAD_BYTES - SUM_END + body));
    *out = bytes;
    *size = HEAD_BYTES + body;
    return 0;
}

uint64_t rbi_import_file_sum(const unsigned char *bytes, size_t size)
{
    return XXH3_64bits(bytes + HEAD_BYTES, size - HEAD_BYTES);
}

/** @param max  bytes without the end */
static int read_text(struct rbi_reader *reader, char *out, size_t max)
{
    uint8_t length = 0;
    const unsigned char *text = NULL;
    if (rbi_reader_u8(reader, &length) < 0 || length > max ||
        rbi_reader_bytes(reader, length, &text) < 0 || memchr(text, '\0', length) != NULL) {
        return -EPROTO;
    }
    memcpy(out, text, length);
    out[length] = '\0';
    return 0;
}

/** One row, whose instance can be. @retval 0; -EPROTO */
static int read_row(struct rbi_reader *reader, struct rbi_import_store_row *row)
{
    struct rbi_remote *remote = &row->remote;
    char path[RBI_PATH_MAX + 1];
    uint8_t state = 0;
    uint8_t health = 0;
    uint16_t weight = 0;
    uint16_t reported = 0;
    memset(row, 0, sizeof *row);
    if (read_text(reader, row->host, RBI_HOST_NAME_MAX) < 0 ||
        read_text(reader, path, RBI_PATH_MAX) < 0 ||
        rbi_remote_set_path(remote, path, strlen(path)) != 0 ||
        rbi_reader_u32(reader, &remote->pidf.incarnation) < 0 ||
        rbi_reader_u8(reader, &state) < 0 || rbi_reader_u8(reader, &health) < 0 ||
        rbi_reader_u16(reader, &weight) < 0 || rbi_reader_u16(reader, &reported) < 0 ||
        read_text(reader, remote->set, RBI_DIRECTORY_LABEL_MAX) < 0 ||
        read_text(reader, remote->idc, RBI_DIRECTORY_LABEL_MAX) < 0 ||
        read_text(reader, remote->tags, RBI_DIRECTORY_LABEL_MAX) < 0) {
        return -EPROTO;
    }
    remote->state = state;
    remote->health = health;
    remote->weight = weight;
    remote->reported = reported;
    return rbi_host_name_valid(row->host, strlen(row->host)) && rbi_remote_valid(remote) ? 0
                                                                                         : -EPROTO;
}

static int read_rows(struct rbi_reader reader,
                     uint32_t count,
                     const struct rbi_import_store_head *head,
                     rbi_import_store_row_fn row,
                     void *context)
{
    struct rbi_import_store_row one;
    for (uint32_t i = 0; i < count; i++) {
        if (read_row(&reader, &one) < 0 || one.remote.pidf.cluster != head->cluster) {
            return -EPROTO;
        }
        if (row) {
            row(context, head, &one);
        }
    }
    return reader.left == 0 ? 0 : -EPROTO;
}

int rbi_import_file_decode(const void *bytes,
                           size_t size,
                           struct rbi_import_store_head *head,
                           rbi_import_store_row_fn row,
                           void *context,
                           const char **why)
{
    struct rbi_reader reader;
    uint32_t magic = 0;
    uint32_t version = 0;
    uint32_t count = 0;
    uint32_t body = 0;
    uint64_t sum = 0;
    uint64_t zero = 0;
    rbi_reader_init(&reader, bytes, size);
    if (rbi_reader_u32(&reader, &magic) < 0 || magic != FILE_MAGIC ||
        rbi_reader_u32(&reader, &version) < 0) {
        *why = "not a file of instances";
        return -EPROTO;
    }
    if (version != FILE_VERSION) {
        *why = "of another release";
        return -EPROTO;
    }
    *why = "torn or damaged";
    if (rbi_reader_u64(&reader, &sum) < 0 || XXH3_64bits(reader.at, reader.left) != sum ||
        rbi_reader_u64(&reader, &head->cluster) < 0 || rbi_reader_u64(&reader, &head->epoch) < 0 ||
        rbi_reader_u64(&reader, &head->revision) < 0 ||
        rbi_reader_u64(&reader, &head->wall_s) < 0 || rbi_reader_u32(&reader, &count) < 0 ||
        rbi_reader_u32(&reader, &body) < 0 || rbi_reader_u64(&reader, &zero) < 0 ||
        body != reader.left) {
        return -EPROTO;
    }
    *why = "says what cannot be";
    if (read_rows(reader, count, head, NULL, NULL) < 0) {
        return -EPROTO; /* the sum is right, so it was written so: none of it is believed */
    }
    *why = NULL;
    return row ? read_rows(reader, count, head, row, context) : 0;
}

/* ---- places ------------------------------------------------------------------------------ */

void rbi_import_file_name(const char *folder,
                          uint64_t cluster,
                          unsigned place,
                          char out[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX])
{
    const size_t room = RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX;
    if (place == RBI_IMPORT_STORE_KEEP) {
        (void)snprintf(out, room, "%s/%016" PRIx64 ".new", folder, cluster);
    } else {
        (void)snprintf(out, room, "%s/%016" PRIx64 ".%u", folder, cluster, place);
    }
}

static int write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return n == 0 ? -ENOSPC : -errno;
        }
    }
    return fdatasync(fd) < 0 ? -errno : 0;
}

static int sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    const int result = fsync(fd) < 0 ? -errno : 0;
    (void)close(fd);
    return result;
}

/**
 * Those that are kept move on by one place. The one in place 0 gets a second name and keeps its
 * own, so that the place is never empty.
 */
static int move_on(const char *folder, uint64_t cluster)
{
    char from[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    char to[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    for (unsigned place = RBI_IMPORT_STORE_KEEP - 1; place > 1; place--) {
        rbi_import_file_name(folder, cluster, place - 1, from);
        rbi_import_file_name(folder, cluster, place, to);
        if (rename(from, to) < 0 && errno != ENOENT) {
            return -errno;
        }
    }
    rbi_import_file_name(folder, cluster, 0, from);
    rbi_import_file_name(folder, cluster, 1, to);
    /* Two names of one file, after an interruption: then rename() above has done nothing. */
    if (unlink(to) < 0 && errno != ENOENT) {
        return -errno;
    }
    return link(from, to) < 0 && errno != ENOENT ? -errno : 0;
}

int rbi_import_file_put(const char *folder, uint64_t cluster, const void *bytes, size_t size)
{
    char beside[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    char place[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    rbi_import_file_name(folder, cluster, RBI_IMPORT_STORE_KEEP, beside);
    rbi_import_file_name(folder, cluster, 0, place);
    const int fd = rbi_state_file_create(beside);
    if (fd < 0) {
        return fd;
    }
    int result = write_all(fd, bytes, size);
    (void)close(fd);
    result = result == 0 ? move_on(folder, cluster) : result;
    if (result == 0 && rename(beside, place) < 0) {
        result = -errno;
    }
    if (result < 0) {
        (void)unlink(beside);
        return result;
    }
    return sync_folder(folder);
}

int rbi_import_file_remove(const char *folder, uint64_t cluster)
{
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    /* The newest last: one that is older must not be taken for what holds. */
    for (unsigned i = 0; i < RBI_IMPORT_STORE_KEEP; i++) {
        rbi_import_file_name(folder, cluster, RBI_IMPORT_STORE_KEEP - 1 - i, name);
        if (unlink(name) < 0 && errno != ENOENT) {
            return -errno;
        }
    }
    return sync_folder(folder);
}

int rbi_import_file_get(
    const char *folder, uint64_t cluster, unsigned place, unsigned char **out, size_t *size)
{
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    uint64_t length = 0;
    size_t used = 0;
    rbi_import_file_name(folder, cluster, place, name);
    const int fd = rbi_state_file_open(name, &length);
    if (fd < 0) {
        return fd;
    }
    unsigned char *bytes = length <= RBI_IMPORT_FILE_MAX ? malloc(length + 1) : NULL;
    while (bytes && used < length) {
        const ssize_t n = pread(fd, bytes + used, length - used, (off_t)used);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            break; /* its sum will tell */
        }
        used += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    if (!bytes) {
        return length > RBI_IMPORT_FILE_MAX ? -EFBIG : -ENOMEM;
    }
    *out = bytes;
    *size = used;
    return 0;
}
