/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory's reader over memory of any content. The input is laid over a good
 * directory: pairs of {u16 word index, u64 value}. The reader must stay inside.
 */
#include "bus/directory_layout.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void publish_some(unsigned char *base, uint64_t size)
{
    struct rbi_directory_writer writer;
    static struct rbi_directory_instance instances[3];
    static struct rbi_directory_cluster head;
    rbi_directory_writer_init(&writer, base, size, 4, 4, 9);
    for (uint32_t i = 0; i < 3; i++) {
        instances[i].instance = (int32_t)i + 1;
        instances[i].name_length = 2;
        memcpy(instances[i].name, "ab", 3);
        memcpy(instances[i].set, "gray", 5);
    }
    for (uint32_t id = 1; id <= 3; id++) {
        head.cluster = id;
        head.epoch = id;
        head.instance_count = id;
        head.path_length = 12;
        memcpy(head.path, "/a/b/c/d/e/f", 13);
        check(rbi_directory_publish(&writer, &head, instances) == RBI_PUBLISH_OK);
    }
}

static void read_all(const struct rbi_directory_view *view)
{
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[4];
    uint64_t cursor = 0;
    uint64_t cluster = 0;
    for (uint64_t id = 0; id < 5; id++) {
        const int r = rbi_directory_read(view, id, &head, instances, 4);
        check(r >= RBI_DIRECTORY_OK && r <= RBI_DIRECTORY_ROOM);
        if (r == RBI_DIRECTORY_OK) {
            check(head.cluster == id && head.path[head.path_length] == 0);
            for (uint32_t i = 0; i < head.instance_count; i++) {
                check(instances[i].name[instances[i].name_length] == 0);
            }
        }
        (void)rbi_directory_epoch(view, id);
    }
    unsigned steps = 0;
    while (rbi_directory_next(view, &cursor, &cluster) == RBI_DIRECTORY_OK) {
        check(++steps <= view->table_mask + 1);
        (void)rbi_directory_epoch(view, cluster);
        (void)!rbi_directory_read(view, cluster, &head, instances, 4);
    }
    for (uint32_t slot = 0; slot < 10; slot++) {
        (void)rbi_directory_attention(view, slot);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t bytes = rbi_directory_size(4, 4, 3000);
    unsigned char *base = aligned_alloc(RBI_PAGE, bytes);
    struct rbi_directory_view view;
    if (base == NULL) {
        return 0;
    }
    memset(base, 0, bytes);
    publish_some(base, bytes);
    check(rbi_directory_view_init(&view, base, bytes) == 0);
    for (size_t at = 0; size - at >= 10; at += 10) {
        uint16_t idx = 0;
        memcpy(&idx, data + at, 2);
        memcpy(base + (idx % (bytes / 8)) * 8, data + at + 2, 8);
    }
    read_all(&view); /* as someone who mapped it before */
    if (rbi_directory_view_init(&view, base, bytes) == 0) {
        read_all(&view); /* as someone who comes now */
    }
    free(base);
    return 0;
}
