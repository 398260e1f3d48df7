/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define FILES_BUDGET ((uint64_t)256 << 20)

static struct files *walking; /* nftw() passes no context */

static void hash_content(struct file *file, const unsigned char *data)
{
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(data, file->size));
    memcpy(file->hash, hash.digest, sizeof file->hash);
}

/* Reads a whole file into @p data, which has room for one byte more than @p max. */
static int content_read(const char *path, unsigned char *data, size_t max, size_t *out_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t used = 0;
    while (fd >= 0 && used <= max) {
        ssize_t got = read(fd, data + used, max + 1 - used);
        if (got == 0) {
            close(fd);
            *out_size = used;
            return 0;
        }
        if (got < 0 && errno != EINTR) {
            break;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static int skip(const char *path, const char *why)
{
    fprintf(stderr, "demo: skipped %s: %s\n", path, why);
    walking->skipped++;
    return 0;
}

static int file_add(const char *path)
{
    struct files *files = walking;
    struct file file = {.key = ringbus_key(path, strlen(path))};
    if (content_read(path, files->scratch, DEMO_FILE_MAX, &file.size) != 0) {
        return skip(path, "cannot be read, or over 16 MiB");
    }
    hash_content(&file, files->scratch);
    if (files->bytes + file.size <= FILES_BUDGET) {
        file.data = malloc(file.size + 1);
        if (file.data != NULL) {
            memcpy(file.data, files->scratch, file.size);
        }
    }
    file.path = strdup(path);
    if (files->count == files->room) {
        size_t room = files->room == 0 ? 1024 : files->room * 2;
        struct file *items = realloc(files->items, room * sizeof *items);
        if (items == NULL) {
            free(file.path);
            free(file.data);
            return -1;
        }
        files->items = items;
        files->room = room;
    }
    files->items[files->count++] = file;
    files->bytes += file.size;
    files->largest = file.size > files->largest ? file.size : files->largest;
    return file.path != NULL ? 0 : -1;
}

static int on_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type == FTW_DNR || type == FTW_NS) {
        return skip(path, "cannot be read");
    }
    if (type != FTW_F || !S_ISREG(status->st_mode)) {
        return 0;
    }
    return (uint64_t)status->st_size > DEMO_FILE_MAX ? skip(path, "over 16 MiB") : file_add(path);
}

int files_load(struct files *files, const char *directory)
{
    walking = files;
    files->scratch = malloc(DEMO_FILE_MAX + 1);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    if (files->scratch == NULL || nftw(directory, on_entry, 32, FTW_PHYS) != 0) {
        fprintf(stderr, "demo: %s: cannot be read\n", directory);
        return -1;
    }
    if (files->count == 0) {
        fprintf(stderr, "demo: %s: no file there\n", directory);
        return -1;
    }
    return 0;
}

const unsigned char *files_content(struct files *files, struct file *file)
{
    if (file->data != NULL) {
        return file->data;
    }
    /* It may have changed meanwhile; what counts is what is sent now. */
    if (content_read(file->path, files->scratch, files->largest, &file->size) != 0) {
        return NULL;
    }
    hash_content(file, files->scratch);
    return files->scratch;
}

void files_free(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
        free(files->items[i].data);
    }
    free(files->items);
    free(files->scratch);
}
