/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that starts from a stored directory of any content. The input is laid over two good
 * ones: triples of {u16 word index, high bit = the second; u64 value}. Whatever was believed,
 * the next daemon must believe as well, and list the same.
 */
#include "bus/directory_layout.h"
#include "bus/pidf.h"
#include "daemon/daemon.h"
#include "daemon/restore.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STORED     2U
#define SLOTS      4U
#define CLUSTERS   4U
#define HEAP_BYTES 8192U
#define CHANGE     10U
#define SECOND     0x8000U

static struct rbi_segment stored[STORED] = {RBI_SEGMENT_NULL, RBI_SEGMENT_NULL};
static unsigned char *good[STORED];

static void check(bool right, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "fuzz_restore: %s\n", what);
        abort();
    }
}

/* ---- what is stored ------------------------------------------------------------------------ */

static void publish_one(struct rbi_directory_writer *writer, uint32_t number, uint64_t epoch)
{
    static struct rbi_directory_instance instances[3];
    struct rbi_directory_cluster head = {.epoch = epoch, .instance_count = number};
    head.path_length = (uint32_t)snprintf(head.path, sizeof head.path, "/a/b/c/d/e/f%u", number);
    head.cluster = rbi_cluster_id(head.path, head.path_length);
    for (uint32_t i = 0; i < number; i++) {
        instances[i] = (struct rbi_directory_instance){.instance = (int32_t)i + 1,
                                                       .incarnation = 7 + i,
                                                       .state = RBI_ENDPOINT_READY,
                                                       .weight = 5,
                                                       .name_length = 1};
        instances[i].name[0] = (char)('1' + i);
        memcpy(instances[i].set, "gray", 5);
    }
    check(rbi_directory_publish(writer, &head, instances) == RBI_PUBLISH_OK, "publish");
}

static void set_up(void)
{
    const uint64_t bytes = rbi_directory_size(SLOTS, CLUSTERS, HEAP_BYTES);
    for (unsigned i = 0; i < STORED; i++) {
        struct rbi_directory_writer writer;
        check(rbi_segment_create(&stored[i], "stored", RBI_SEGMENT_DIRECTORY, bytes, 0) == 0,
              "segment");
        rbi_directory_writer_init(&writer, stored[i].base, bytes, SLOTS, CLUSTERS, 9);
        for (uint32_t number = 0; number <= 2 + i; number++) {
            publish_one(&writer, number, 10 * (i + 1) + number);
        }
        rbi_directory_set_revision(&writer, 10 * (i + 1) + 5);
        good[i] = malloc(bytes);
        check(good[i] != NULL, "memory");
        memcpy(good[i], stored[i].base, bytes);
    }
    rbi_log_set_level(RBI_LOG_ERROR);
}

static void damage(const uint8_t *data, size_t size)
{
    const uint64_t words = stored[0].size / 8;
    for (unsigned i = 0; i < STORED; i++) {
        memcpy(stored[i].base, good[i], stored[i].size);
    }
    for (size_t at = 0; size - at >= CHANGE; at += CHANGE) {
        uint16_t idx = 0;
        memcpy(&idx, data + at, 2);
        unsigned char *base = stored[idx & SECOND ? 1 : 0].base;
        memcpy(base + (idx & ~SECOND) % words * 8, data + at + 2, 8);
    }
}

/* ---- a daemon as far as it is needed --------------------------------------------------------- */

static void begin(struct rbi_daemon *daemon)
{
    memset(daemon, 0, sizeof *daemon);
    rbi_config_defaults(&daemon->config);
    daemon->config.directory.slots = SLOTS;
    daemon->config.directory.clusters = 1; /* so that it has to grow on the way */
    daemon->config.directory.snapshot_bytes = 1024;
    daemon->incarnation = 11;
    rbi_peers_init(&daemon->peers);
    check(rbi_registry_init(&daemon->registry) == 0, "registry");
    check(rbi_publish_init(daemon) == 0, "directory");
    check(rbi_loop_new(&daemon->loop, RBI_LOOP_EPOLL) == 0, "loop"); /* empty clusters note when */
}

static void end(struct rbi_daemon *daemon)
{
    rbi_publish_deinit(&daemon->publish);
    rbi_registry_deinit(&daemon->registry);
    rbi_live_deinit(&daemon->live); /* the policies of what was restored */
    daemon->loop = rbi_loop_free(daemon->loop);
}

static int duplicate(int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    check(copy >= 0, "descriptor");
    return copy;
}

static void check_listed(struct rbi_daemon *daemon)
{
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    uint64_t cursor = 0;
    uint64_t id = 0;
    unsigned clusters = 0;
    unsigned instances = 0;
    const struct rbi_publish *publish = &daemon->publish;
    check(rbi_directory_view_init(&view, publish->segment.base, publish->segment.size) == 0,
          "view");
    check(rbi_directory_revision(&view) == daemon->registry.revision ||
              daemon->registry.revision == 0,
          "revision");
    while (rbi_directory_next(&view, &cursor, &id) == RBI_DIRECTORY_OK) {
        const int result = rbi_directory_read(&view, id, &head, NULL, 0);
        check(result == RBI_DIRECTORY_OK || result == RBI_DIRECTORY_ROOM, "read");
        check(rbi_registry_cluster(&daemon->registry, id) != NULL, "a cluster nobody knows");
        check(head.epoch <= daemon->registry.revision, "an epoch ahead of the revision");
        clusters++;
        instances += head.instance_count;
    }
    check(clusters == rbi_map_count(&daemon->registry.clusters), "clusters");
    check(instances == rbi_unconfirmed_count(daemon), "instances");
}

static bool knows_all_of(struct rbi_daemon *daemon, const struct rbi_segment *segment)
{
    struct rbi_directory_view view;
    uint64_t cursor = 0;
    uint64_t id = 0;
    if (rbi_directory_view_init(&view, segment->base, segment->size) < 0) {
        return false;
    }
    while (rbi_directory_next(&view, &cursor, &id) == RBI_DIRECTORY_OK) {
        if (!rbi_registry_cluster(&daemon->registry, id)) {
            return false;
        }
    }
    return true;
}

/** All of one or nothing. */
static void check_whole(struct rbi_daemon *daemon)
{
    check(rbi_map_count(&daemon->registry.clusters) == 0 || knows_all_of(daemon, &stored[0]) ||
              knows_all_of(daemon, &stored[1]),
          "a part of a directory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rbi_daemon first;
    static struct rbi_daemon next;
    if (good[0] == NULL) {
        set_up();
    }
    damage(data, size);
    begin(&first);
    const int both[STORED] = {duplicate(stored[0].fd), duplicate(stored[1].fd)};
    rbi_restore_consume_fds(&first, both, STORED);
    check_listed(&first);
    check_whole(&first);
    begin(&next);
    const int kept = duplicate(first.publish.segment.fd);
    rbi_restore_consume_fds(&next, &kept, 1);
    check_listed(&next);
    check(rbi_map_count(&next.registry.clusters) == rbi_map_count(&first.registry.clusters) &&
              rbi_unconfirmed_count(&next) == rbi_unconfirmed_count(&first) &&
              next.registry.revision == first.registry.revision,
          "the next daemon believes less");
    rbi_unconfirmed_clear(&next);
    check_listed(&next);
    end(&next);
    end(&first);
    return 0;
}
