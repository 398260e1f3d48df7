/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/centre_store.h"

#include "bus/config.h"
#include "daemon/log.h"
#include "daemon/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define STORE_MAGIC UINT64_C(0x0031464e43425221) /* another layout, another number */

/** In front of the two texts. */
struct store_head {
    uint64_t magic;
    uint64_t sum; /* of all behind it, the texts included */
    uint64_t number;
    uint64_t when_s;
    uint32_t uid;
    uint32_t pid;
    uint32_t applied_size;
    uint32_t edits_size;
    char program[RBI_WIRE_TEXT_MAX + 1];
    char why[RBI_WIRE_TEXT_MAX + 1];
};
_Static_assert(sizeof(struct store_head) == 48 + 512, "without padding, which would be summed");

/* ---- texts ----------------------------------------------------------------------------- */

struct rbi_shared_text *rbi_shared_text_new(const char *bytes, size_t size)
{
    struct rbi_shared_text *text = malloc(sizeof(*text) + size + 1);
    if (text) {
        text->refs = 1;
        text->size = (uint32_t)size;
        memcpy(text->bytes, bytes, size);
        text->bytes[size] = '\0';
    }
    return text;
}

struct rbi_shared_text *rbi_shared_text_ref(struct rbi_shared_text *text)
{
    text->refs++;
    return text;
}

void rbi_shared_text_unref(struct rbi_shared_text *text)
{
    if (text && --text->refs == 0) {
        free(text);
    }
}

void rbi_version_deinit(struct rbi_version *version)
{
    rbi_shared_text_unref(version->applied);
    rbi_shared_text_unref(version->edits);
    *version = (struct rbi_version){.number = 0};
}

/* ---- places ---------------------------------------------------------------------------- */

/** First of the folders that the service manager names; they are separated by colons. */
static size_t store_first_folder(const char *list)
{
    return list ? strcspn(list, ":") : 0;
}

void rbi_store_place(const char *configured, const char *socket, char out[RBI_STORE_PREFIX_MAX + 1])
{
    const size_t room = RBI_STORE_PREFIX_MAX + 1;
    /* NOLINTBEGIN(concurrency-mt-unsafe): there is one thread */
    const char *manager = getenv("STATE_DIRECTORY");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    /* NOLINTEND(concurrency-mt-unsafe) */
    char usual[RBI_STORE_PREFIX_MAX + 1];
    (void)snprintf(usual, sizeof(usual), "%s/ringbus/bus.sock", runtime ? runtime : "");
    if (configured[0] != '\0') {
        (void)snprintf(out, room, "%s/version", configured);
    } else if (store_first_folder(manager) != 0) {
        (void)snprintf(out, room, "%.*s/version", (int)store_first_folder(manager), manager);
    } else if (strcmp(socket, "/run/ringbus/bus.sock") == 0) {
        (void)snprintf(out, room, "/var/lib/ringbus/version");
    } else if (runtime && strcmp(socket, usual) == 0 && state && *state) {
        (void)snprintf(out, room, "%s/ringbus/version", state);
    } else if (runtime && strcmp(socket, usual) == 0 && home && *home) {
        (void)snprintf(out, room, "%s/.local/state/ringbus/version", home);
    } else {
        (void)snprintf(out, room, "%s.version", socket);
    }
}

/** "PREFIX.07", or with another ending. */
static void store_name(const char *prefix, uint64_t number, const char *end, char *out, size_t room)
{
    (void)snprintf(out, room, "%s.%02u%s", prefix, (unsigned)(number % RBI_VERSIONS_KEPT), end);
}

/* ---- reading --------------------------------------------------------------------------- */

static bool store_read_all(int fd, void *out, size_t size)
{
    size_t used = 0;
    while (used < size) {
        const ssize_t n = pread(fd, (char *)out + used, size - used, (off_t)used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        used += (size_t)n;
    }
    return true;
}

static uint64_t store_sum(const struct store_head *head, size_t size)
{
    const size_t begin = offsetof(struct store_head, number);
    return XXH3_64bits((const char *)head + begin, size - begin);
}

/** @return NULL, or what is wrong with it */
static const char *store_check(const struct store_head *head, size_t size)
{
    if (size < sizeof(*head) || head->magic != STORE_MAGIC) {
        return "not a version of this release";
    }
    if (head->applied_size > RBI_CONFIG_TEXT_MAX || head->edits_size > 4 * RBI_CONFIG_TEXT_MAX ||
        size != sizeof(*head) + head->applied_size + head->edits_size) {
        return "cut off";
    }
    if (head->number == 0 || head->sum != store_sum(head, size) ||
        !memchr(head->program, '\0', sizeof(head->program)) ||
        !memchr(head->why, '\0', sizeof(head->why))) {
        return "damaged";
    }
    return NULL;
}

static bool store_take(const struct store_head *head, struct rbi_version *out)
{
    const char *texts = (const char *)(head + 1);
    struct rbi_version version = {
        .number = head->number, .when_s = head->when_s, .uid = head->uid, .pid = head->pid};
    rbi_text_set(&version.program, head->program);
    rbi_text_set(&version.why, head->why);
    version.applied = rbi_shared_text_new(texts, head->applied_size);
    version.edits = rbi_shared_text_new(texts + head->applied_size, head->edits_size);
    if (!version.applied || !version.edits) {
        rbi_version_deinit(&version);
        return false;
    }
    *out = version;
    return true;
}

bool rbi_store_read(const char *prefix, unsigned place, struct rbi_version *out)
{
    char name[RBI_STORE_PREFIX_MAX + 16];
    uint64_t size = 0;
    store_name(prefix, place, "", name, sizeof(name));
    const int fd = rbi_state_file_open(name, &size);
    if (fd == -ENOENT || fd == -ENOTDIR) {
        return false;
    }
    const char *why =
        fd == -EPERM ? "others than its user could have written it" : "cannot be read";
    const size_t most = sizeof(struct store_head) + 5 * (size_t)RBI_CONFIG_TEXT_MAX;
    struct store_head *head = NULL;
    if (fd >= 0 && size > 0 && size <= most) {
        head = malloc((size_t)size);
        if (head && store_read_all(fd, head, (size_t)size)) {
            why = store_check(head, (size_t)size);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!why && !store_take(head, out)) {
        why = "no memory";
    }
    if (why) {
        rbi_log(RBI_LOG_WARNING, "version_ignored", "file=%s why=\"%s\"", name, why);
    }
    free(head);
    return why == NULL;
}

/* ---- writing --------------------------------------------------------------------------- */

static bool store_write_all(int fd, const void *bytes, size_t size)
{
    size_t used = 0;
    while (used < size) {
        const ssize_t n = write(fd, (const char *)bytes + used, size - used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return false;
        }
        used += (size_t)n;
    }
    return true;
}

static void store_folder(const char *prefix, char *folder, size_t room)
{
    const char *end = strrchr(prefix, '/');
    const size_t length = end ? (size_t)(end - prefix) : 0;
    (void)snprintf(folder, room, "%.*s", length ? (int)length : 1,
                   length ? prefix
                   : end  ? "/"
                          : ".");
}

void rbi_store_make_folder(const char *prefix)
{
    char folder[RBI_STORE_PREFIX_MAX + 1];
    store_folder(prefix, folder, sizeof(folder));
    (void)mkdir(folder, 0700);
}

/** Makes a rename durable. Some file systems cannot, and need not. */
static void store_sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

int rbi_store_write(const char *prefix, const struct rbi_store_image *image)
{
    char name[RBI_STORE_PREFIX_MAX + 16];
    char beside[RBI_STORE_PREFIX_MAX + 16];
    char folder[RBI_STORE_PREFIX_MAX + 1];
    store_folder(prefix, folder, sizeof(folder));
    store_name(prefix, image->number, "", name, sizeof(name));
    store_name(prefix, image->number, ".new", beside, sizeof(beside));
    const int fd = rbi_state_file_create(beside);
    if (fd < 0) {
        return fd;
    }
    int result = store_write_all(fd, image->bytes, image->size) && fsync(fd) == 0 ? 0 : -errno;
    (void)close(fd);
    if (result == 0 && rename(beside, name) < 0) {
        result = -errno;
    }
    if (result != 0) {
        (void)unlink(beside);
        return result;
    }
    store_sync_folder(folder);
    return 0;
}

int rbi_store_image(const struct rbi_version *version, struct rbi_store_image *out)
{
    const size_t size = sizeof(struct store_head) + version->applied->size + version->edits->size;
    struct store_head *head = calloc(1, size);
    if (!head) {
        return -ENOMEM;
    }
    head->magic = STORE_MAGIC;
    head->number = version->number;
    head->when_s = version->when_s;
    head->uid = version->uid;
    head->pid = version->pid;
    head->applied_size = version->applied->size;
    head->edits_size = version->edits->size;
    memcpy(head->program, version->program.bytes, version->program.length);
    memcpy(head->why, version->why.bytes, version->why.length);
    char *texts = (char *)(head + 1);
    memcpy(texts, version->applied->bytes, version->applied->size);
    memcpy(texts + version->applied->size, version->edits->bytes, version->edits->size);
    head->sum = store_sum(head, size);
    *out = (struct rbi_store_image){.number = version->number, .bytes = head, .size = size};
    return 0;
}

void rbi_store_image_deinit(struct rbi_store_image *image)
{
    free(image->bytes);
    *image = (struct rbi_store_image){.number = 0};
}
