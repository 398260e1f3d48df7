/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - the heap of one process: it ends with the process, whatever state it was in, and
 * knows how many blocks were never freed. Blocks of a freed class are used again, the last
 * freed one first.
 */
#include "tests/sim/network/kernel.h"

#include <errno.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, size)   ((void)(p), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#endif

#define LINE 64U

/** In front of each block, a line of its own. */
struct block {
    uint32_t class_idx;
    uint32_t magic;
    size_t size;
    void *next_free;
    char pad[40];
};
#define MAGIC_USED 0x55534544U
#define MAGIC_FREE 0x46524545U

/* Classes: powers of two from one line on, with a half step between. */
static size_t class_bytes(unsigned idx)
{
    const size_t power = (size_t)LINE << (idx / 2);
    return idx % 2 == 0 ? power : power + power / 2;
}

static unsigned class_of(size_t size)
{
    unsigned idx = 0;
    while (class_bytes(idx) < size) {
        idx++;
    }
    return idx;
}

void sim_heap_init(struct sim_heap *heap, size_t room)
{
    /* Reserved only: pages come when they are touched. */
    void *base = (mmap)(NULL, room, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        sim_unsupported("no address space for a heap");
    }
    *heap = (struct sim_heap){.base = base, .room = room};
}

void sim_heap_reset(struct sim_heap *heap)
{
    ASAN_POISON_MEMORY_REGION(heap->base, heap->used);
    heap->used = 0;
    heap->live = 0;
    memset(heap->free_blocks, 0, sizeof heap->free_blocks);
}

void *sim_heap_alloc(struct sim_heap *heap, size_t size)
{
    const unsigned idx = class_of(size);
    struct block *block = heap->free_blocks[idx];
    if (block != NULL) {
        heap->free_blocks[idx] = block->next_free;
    } else {
        const size_t bytes = sizeof *block + class_bytes(idx);
        if (heap->used + bytes > heap->room) {
            return NULL;
        }
        block = (struct block *)(void *)(heap->base + heap->used);
        ASAN_UNPOISON_MEMORY_REGION(block, sizeof *block);
        heap->used += bytes;
    }
    *block = (struct block){.class_idx = idx, .magic = MAGIC_USED, .size = size};
    ASAN_UNPOISON_MEMORY_REGION(block + 1, size);
    heap->live++;
    return block + 1;
}

void sim_heap_free(struct sim_heap *heap, void *p)
{
    if (p == NULL) {
        return;
    }
    struct block *block = (struct block *)p - 1;
    if ((char *)p < heap->base || (char *)p > heap->base + heap->used ||
        block->magic != MAGIC_USED) {
        sim_unsupported("free() of something that is not allocated in this process");
    }
    block->magic = MAGIC_FREE;
    block->next_free = heap->free_blocks[block->class_idx];
    heap->free_blocks[block->class_idx] = block;
    heap->live--;
    /* Whoever still uses it reads nonsense, the same in every run. */
    memset(p, 0xdd, block->size < 256 ? block->size : 256);
    ASAN_POISON_MEMORY_REGION(p, class_bytes(block->class_idx));
}

/* ---- the calls --------------------------------------------------------------------------- */

static struct sim_heap *current_heap(void)
{
    return sim.current != NULL ? &sim.current->heap : &sim.heap;
}

void *sim_malloc(size_t size)
{
    void *p = sim_heap_alloc(current_heap(), size);
    if (p == NULL) {
        errno = ENOMEM;
    } else {
        memset(p, 0xa5, size < 256 ? size : 256);
    }
    return p;
}

void *sim_calloc(size_t count, size_t size)
{
    void *p = sim_heap_alloc(current_heap(), count * size);
    if (p == NULL) {
        errno = ENOMEM;
    } else {
        memset(p, 0, count * size);
    }
    return p;
}

void *sim_realloc(void *old, size_t size)
{
    void *p = sim_malloc(size);
    if (p != NULL && old != NULL) {
        const struct block *block = (struct block *)old - 1;
        memcpy(p, old, block->size < size ? block->size : size);
        sim_free(old);
    }
    return p;
}

int sim_posix_memalign(void **out, size_t alignment, size_t size)
{
    if (alignment > LINE) {
        sim_unsupported("posix_memalign() to more than a line");
    }
    *out = sim_malloc(size);
    return *out == NULL ? ENOMEM : 0;
}

void sim_free(void *p)
{
    sim_heap_free(current_heap(), p);
}

char *sim_strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = sim_malloc(size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}
