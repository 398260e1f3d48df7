/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program, or linked into it: the N-th allocation fails, whoever makes it. */
#include "faults/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

struct memory *memory_of_process;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv(MEMORY_VARIABLE); /* NOLINT(concurrency-mt-unsafe) */
    const int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *page = fd >= 0
                     ? mmap(NULL, sizeof(struct memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    memory_of_process = page != MAP_FAILED ? page : NULL;
    if (fd >= 0) {
        (void)close(fd);
    }
}

static bool fails(void)
{
    struct memory *memory = memory_of_process;
    if (memory == NULL || !memory->armed || ++memory->calls != memory->n) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

EXPORT void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *made = fails() ? NULL : __libc_memalign(alignment, size);
    if (made == NULL) {
        return ENOMEM;
    }
    *out = made;
    return 0;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}
