/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memfds and their mappings. Behind each lies a real one, mapped twice for good:
 * writable for its owner, read-only for everybody else, so that a write to a peer's memory
 * is the fault that it would be. Buffers are used again by the histories that follow, or
 * mapping them would take longer than all else.
 */
#include "tests/sim/network/kernel.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>

struct sim_buffer {
    struct sim_buffer *next_free;
    size_t size;
    size_t tail; /* of the end, mapped again right behind */
    char *writable;
    char *readable;
};

struct sim_mapping {
    struct sim_mapping *next;
    struct sim_file *file; /* NULL: anonymous */
    char *address;
    size_t size;
};

static struct sim_buffer *free_buffers;

/* ---- buffers ---------------------------------------------------------------------------- */

static char *map_twice(int fd, size_t size, size_t tail, int protection)
{
    char *base =
        (mmap)(NULL, size + tail, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED ||
        (mmap)(base, size, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        (tail > 0 && (mmap)(base + size, tail, protection, MAP_SHARED | MAP_FIXED, fd,
                            (off_t)(size - tail)) == MAP_FAILED)) {
        sim_unsupported("no memory for a buffer of %zu bytes", size);
    }
    return base;
}

static struct sim_buffer *buffer_make(size_t size, size_t tail)
{
    struct sim_buffer *buffer = (calloc)(1, sizeof *buffer);
    const int fd = (memfd_create)("sim", MFD_CLOEXEC);
    if (buffer == NULL || fd < 0 || (ftruncate)(fd, (off_t)size) != 0) {
        sim_unsupported("no memory for a buffer of %zu bytes", size);
    }
    *buffer = (struct sim_buffer){.size = size,
                                  .tail = tail,
                                  .writable = map_twice(fd, size, tail, PROT_READ | PROT_WRITE),
                                  .readable = map_twice(fd, size, tail, PROT_READ)};
    (void)(close)(fd);
    return buffer;
}

static struct sim_buffer *buffer_get(size_t size, size_t tail)
{
    for (struct sim_buffer **at = &free_buffers; *at != NULL; at = &(*at)->next_free) {
        if ((*at)->size == size && (*at)->tail == tail) {
            struct sim_buffer *buffer = *at;
            *at = buffer->next_free;
            memset(buffer->writable, 0, size);
            return buffer;
        }
    }
    return buffer_make(size, tail);
}

void sim_memory_close(struct sim_file *file)
{
    struct sim_buffer *buffer = file->u.memory.buffer;
    if (buffer != NULL) {
        buffer->next_free = free_buffers;
        free_buffers = buffer;
    }
}

/* ---- memfds ------------------------------------------------------------------------------ */

static struct sim_file *memory_file(int fd)
{
    struct sim_file *file = sim_fd_file(fd);
    if (file != NULL && file->kind != SIM_MEMFD) {
        errno = EINVAL;
        return NULL;
    }
    return file;
}

int sim_memfd_create(const char *name, unsigned flags)
{
    (void)name;
    (void)flags;
    sim_call();
    return sim_fd_install(sim_file_new(SIM_MEMFD));
}

int sim_fallocate(int fd, int mode, off_t offset, off_t size)
{
    struct sim_file *file = memory_file(fd);
    if (file == NULL || mode != 0 || offset != 0 || file->u.memory.size != 0) {
        sim_unsupported("fallocate() of anything but a new memfd");
    }
    file->u.memory.size = (size_t)size;
    return 0;
}

int sim_fstatfs(int fd, struct statfs *out)
{
    memset(out, 0, sizeof *out);
    out->f_type = memory_file(fd) != NULL ? TMPFS_MAGIC : 0;
    return 0;
}

ssize_t sim_pread(int fd, void *out, size_t size, off_t offset)
{
    const struct sim_file *file = memory_file(fd);
    if (file == NULL || file->u.memory.buffer == NULL ||
        (size_t)offset + size > file->u.memory.size) {
        sim_unsupported("pread() outside of a memfd");
    }
    memcpy(out, file->u.memory.buffer->readable + offset, size);
    return (ssize_t)size;
}

/* ---- mappings ---------------------------------------------------------------------------- */

static void *note_mapping(struct sim_file *file, char *address, size_t size)
{
    struct sim_mapping *mapping = sim_heap_alloc(&sim.heap, sizeof *mapping);
    if (mapping == NULL) {
        sim_unsupported("the heap of the kernel is full");
    }
    *mapping = (struct sim_mapping){
        .next = sim.current->mappings, .file = file, .address = address, .size = size};
    sim.current->mappings = mapping;
    sim.current->mapping_count++;
    return address;
}

static void forget_mapping(struct sim_process *process, struct sim_mapping **at)
{
    struct sim_mapping *mapping = *at;
    *at = mapping->next;
    process->mapping_count--;
    if (mapping->file != NULL) {
        sim_file_unref(mapping->file);
    } else {
        sim_heap_free(&process->heap, mapping->address);
    }
    sim_heap_free(&sim.heap, mapping);
}

unsigned sim_memory_unmap_all(struct sim_process *process)
{
    const unsigned count = process->mapping_count;
    while (process->mappings != NULL) {
        forget_mapping(process, &process->mappings);
    }
    return count;
}

void *sim_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    sim_call();
    if (fd == -1 && address == NULL) {
        char *page = sim_heap_alloc(&sim.current->heap, size);
        if (page == NULL) {
            errno = ENOMEM;
            return MAP_FAILED;
        }
        memset(page, 0, size);
        return note_mapping(NULL, page, size);
    }
    struct sim_file *file = memory_file(fd);
    if (file == NULL || address != NULL || offset != 0 || flags != MAP_SHARED ||
        size < file->u.memory.size) {
        sim_unsupported("mmap(%p, %zu, fd %d, offset %ld)", address, size, fd, (long)offset);
    }
    struct sim_memory *memory = &file->u.memory;
    const size_t tail = size - memory->size;
    if (memory->buffer == NULL) {
        memory->buffer = buffer_get(memory->size, tail);
    }
    /* Room behind what the owner mapped twice is all that anybody asks for. */
    if (tail != 0 && tail != memory->buffer->tail) {
        sim_unsupported("mmap() with %zu bytes behind, the owner has %zu", tail,
                        memory->buffer->tail);
    }
    if ((protection & PROT_WRITE) != 0 && (memory->seals & F_SEAL_FUTURE_WRITE) != 0) {
        errno = EPERM;
        return MAP_FAILED;
    }
    sim_file_ref(file);
    return note_mapping(
        file, (protection & PROT_WRITE) != 0 ? memory->buffer->writable : memory->buffer->readable,
        size);
}

/** Only what shm/segment.c does with it: tries a copy, puts one behind the end. */
void *sim_mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    (void)size;
    sim_call();
    if (old_size != 0) {
        sim_unsupported("mremap() that moves");
    }
    if ((flags & MREMAP_FIXED) != 0) {
        return old; /* it lies there all the time */
    }
    return note_mapping(NULL, sim_heap_alloc(&sim.current->heap, 1), size);
}

int sim_munmap(void *address, size_t size)
{
    sim_call();
    struct sim_process *process = sim.current;
    for (struct sim_mapping **at = &process->mappings; *at != NULL; at = &(*at)->next) {
        if ((*at)->address == address && (*at)->size == size) {
            forget_mapping(process, at);
            return 0;
        }
    }
    sim_unsupported("munmap(%p, %zu): not mapped", address, size);
}

int sim_madvise(void *address, size_t size, int advice)
{
    (void)address;
    (void)size;
    (void)advice;
    return 0;
}
