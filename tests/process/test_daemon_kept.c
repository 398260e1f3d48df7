/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that a service manager kept over a restart of the daemon is believed only when all of
 * it is sound (scenario 102).
 */
#include "process/daemon_manager.h"

/* ---- what is not sound --------------------------------------------------------------------- */

struct forged {
    struct rbi_segment segment;
    struct rbi_directory_writer writer;
};

static void forge(struct forged *forged)
{
    *forged = (struct forged){.segment = RBI_SEGMENT_NULL};
    const uint64_t bytes = rbi_directory_size(64, 16, UINT64_C(64) << 10);
    assert_int_equal(
        rbi_segment_create(&forged->segment, "forged", RBI_SEGMENT_DIRECTORY, bytes, 0), 0);
    rbi_directory_writer_init(&forged->writer, forged->segment.base, forged->segment.size, 64, 16,
                              5);
    rbi_directory_set_revision(&forged->writer, 100);
}

static struct rbi_directory_instance good_instance(int32_t id)
{
    struct rbi_directory_instance instance = {.instance = id,
                                              .incarnation = 77,
                                              .state = RBI_ENDPOINT_READY,
                                              .weight = 5,
                                              .name_length = 1};
    instance.name[0] = (char)('0' + id);
    return instance;
}

static struct rbi_directory_cluster good_cluster(void)
{
    struct rbi_directory_cluster head = {.cluster = rbi_cluster_id(ECHO, strlen(ECHO)),
                                         .epoch = 50,
                                         .instance_count = 2,
                                         .path_length = (uint32_t)strlen(ECHO)};
    memcpy(head.path, ECHO, sizeof ECHO);
    return head;
}

/** Starts the daemon with only this kept. @return whether it believed it */
static bool believes(int fd)
{
    cluster_kill(&cluster);
    hear_all();
    while (manager.kept_count > 0) {
        forget(0);
    }
    const unsigned left = cluster_log_count(&cluster, "event=stored_directory_left");
    const unsigned restored = cluster_log_count(&cluster, "event=directory_restored");
    keep(fcntl(fd, F_DUPFD_CLOEXEC, 3), STORED "0");
    start();
    struct listing after;
    list_fresh(&after);
    const bool believed = cluster_log_count(&cluster, "event=directory_restored") == restored + 1;
    /* One or the other, and a line about it in any case. */
    assert_int_equal(cluster_log_count(&cluster, "event=stored_directory_left"),
                     left + (believed ? 0 : 1));
    if (!believed) {
        assert_int_equal(after.count, 0);
    }
    return believed;
}

static bool believes_snapshot(const struct rbi_directory_cluster *head,
                              const struct rbi_directory_instance *instances)
{
    struct forged forged;
    forge(&forged);
    assert_int_equal(rbi_directory_publish(&forged.writer, head, instances), RBI_PUBLISH_OK);
    const bool believed = believes(forged.segment.fd);
    rbi_segment_deinit(&forged.segment);
    return believed;
}

static void test_what_is_not_sound_is_left_alone(void **state)
{
    (void)state;
    manage("daemon: {return_time: 60s}\n");
    const struct rbi_directory_cluster head = good_cluster();
    const struct rbi_directory_instance two[] = {good_instance(1), good_instance(2)};
    assert_true(believes_snapshot(&head, two));
    struct rbi_directory_cluster bad = head;
    bad.epoch = 101; /* of one that was killed before it had said so: whole all the same */
    assert_true(believes_snapshot(&bad, two));
    struct listing after;
    list_fresh(&after);
    assert_int_equal(after.count, 2);
    assert_int_equal(after.revision, 101);
    bad = head;
    bad.epoch = UINT64_MAX / 2 + 1; /* no life is that long */
    assert_false(believes_snapshot(&bad, two));
    bad = head;
    bad.path[2]++; /* not the path of this id */
    assert_false(believes_snapshot(&bad, two));
    bad = head;
    bad.path_length -= 5; /* not of a cluster */
    assert_false(believes_snapshot(&bad, two));
    struct rbi_directory_instance wrong[] = {two[0], two[1]};
    wrong[1] = wrong[0]; /* twice */
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].instance = 3; /* not the id of its name */
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].incarnation = 0;
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].state = RBI_ENDPOINT_CLOSED;
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].weight = 1001;
    assert_false(believes_snapshot(&head, wrong));
    wrong[1] = good_instance(2);
    wrong[1].name[0] = '/';
    assert_false(believes_snapshot(&head, wrong));
}

static void test_other_descriptors_are_left_alone(void **state)
{
    (void)state;
    manage("daemon: {return_time: 60s}\n");
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int plain = memfd_create("plain", MFD_CLOEXEC);
    assert_int_equal(ftruncate(plain, 1 << 20), 0);
    assert_false(believes(null));
    assert_false(believes(plain));
    struct rbi_segment pool = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&pool, "pool", RBI_SEGMENT_POOL, 1 << 16, 0), 0);
    assert_false(believes(pool.fd));
    struct forged forged;
    forge(&forged);
    assert_true(believes(forged.segment.fd)); /* empty, and sound */
    struct rbi_segment_header *header = forged.segment.base;
    header->fingerprint++; /* made by another layout */
    assert_false(believes(forged.segment.fd));
    header->fingerprint--;
    rbi_directory_set_revision(&forged.writer, UINT64_MAX);
    assert_false(believes(forged.segment.fd));
    rbi_segment_deinit(&forged.segment);
    rbi_segment_deinit(&pool);
    (void)close(plain);
    (void)close(null);
}

/* What lies behind those that it hands over is ours, and not taken for another of its. */
static void test_manager_that_counts_wrong(void **state)
{
    (void)state;
    struct raw a;
    struct listing after;
    manage("daemon: {return_time: 60s}\n");
    register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
    hear_all();
    cluster_kill(&cluster);
    manager.counted_extra = 3;
    start();
    wait_for_log("event=directory_restored clusters=1 instances=1");
    list_fresh(&after);
    assert_int_equal(after.count, 1);
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    assert_int_equal(cluster_log_count(&cluster, "event=handed_over_in_vain"), 0);
    raw_close(&a);
}

/* Random damage: it starts every time, and lists what is sound or nothing. */
static void test_damage(void **state)
{
    (void)state;
    uint64_t random = 42;
    unsigned believed = 0;
    const unsigned rounds = full_or(500, 40);
    const struct rbi_directory_cluster head = good_cluster();
    const struct rbi_directory_instance two[] = {good_instance(1), good_instance(2)};
    manage("daemon: {return_time: 60s}\n");
    for (unsigned round = 0; round < rounds; round++) {
        struct forged forged;
        forge(&forged);
        assert_int_equal(rbi_directory_publish(&forged.writer, &head, two), RBI_PUBLISH_OK);
        unsigned char *bytes = forged.segment.base;
        /* Heads, table, and the first block. */
        for (unsigned i = 0; i < 3; i++) {
            const uint64_t at = any(&random) % 4096;
            bytes[at] = (unsigned char)any(&random);
            const uint64_t in_block =
                rbi_directory_size(64, 16, 0) - RBI_PAGE + any(&random) % RBI_PAGE;
            bytes[in_block % forged.segment.size] ^= (unsigned char)(1U << (any(&random) % 8));
        }
        believed += believes(forged.segment.fd);
        rbi_segment_deinit(&forged.segment);
    }
    print_message("damage: %u of %u were sound all the same\n", believed, rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_what_is_not_sound_is_left_alone, teardown),
        cmocka_unit_test_teardown(test_other_descriptors_are_left_alone, teardown),
        cmocka_unit_test_teardown(test_manager_that_counts_wrong, teardown),
        cmocka_unit_test_teardown(test_damage, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
