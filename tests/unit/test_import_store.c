/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of other hosts, on disk (features 2.13; tests, 8: killed at each step of a write
 * there is the old file or the new one, and a damaged one is ignored).
 */
#include "daemon/bridge/import_file.h"
#include "import_bench.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS    8U
#define NS_10MS UINT64_C(10000000)

static char base[] = "/tmp/ringbus-store-XXXXXX";
static char folder[64];
static struct rbi_loop *loop;
static struct rbi_import_store *store;
static struct rbi_import_store_row rows[ROWS]; /* of "lobby" */
static uint32_t row_count;
static struct rbi_import_store_row got[ROWS];
static struct rbi_import_store_head got_head;
static uint32_t got_count;
static uint64_t lobby;

static uint32_t list(void *context,
                     uint64_t cluster,
                     struct rbi_import_store_row *out,
                     uint32_t max,
                     uint64_t *revision)
{
    (void)context;
    if (cluster != lobby) {
        return 0;
    }
    for (uint32_t i = 0; i < row_count && i < max; i++) {
        out[i] = rows[i];
    }
    *revision = 40 + row_count;
    return row_count;
}

static void take(void *context,
                 const struct rbi_import_store_head *head,
                 const struct rbi_import_store_row *row)
{
    (void)context;
    assert_true(got_count < ROWS);
    got_head = *head;
    got[got_count++] = *row;
}

static void open_store(void)
{
    assert_int_equal(rbi_import_store_new(loop, folder, list, NULL, &store), 0);
}

static void close_store(void)
{
    rbi_import_store_free(store);
    store = NULL;
}

/** A store of the next life. @return files that were ignored */
static uint32_t load(void)
{
    got_count = 0;
    memset(&got_head, 0, sizeof got_head);
    open_store();
    return rbi_import_store_load(store, take, NULL);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(base, sizeof base, "/tmp/ringbus-store-XXXXXX");
    assert_non_null(mkdtemp(base));
    (void)snprintf(folder, sizeof folder, "%s/hosts", base);
    assert_int_equal(rbi_loop_new(&loop, RBI_LOOP_EPOLL), 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%u", (unsigned)i + 1);
        memset(&rows[i], 0, sizeof rows[i]);
        (void)snprintf(rows[i].host, sizeof rows[i].host, i % 2 ? "alpha" : "beta.example");
        rows[i].remote = bench_remote("lobby", name, 100 + i);
        rows[i].remote.weight = 10 * i;
        rows[i].remote.reported = i;
        rows[i].remote.health = i % 4;
        rows[i].remote.state = RBI_ENDPOINT_BUSY;
    }
    (void)snprintf(rows[1].remote.set, sizeof rows[1].remote.set, "a.b.c");
    (void)snprintf(rows[1].remote.idc, sizeof rows[1].remote.idc, "rack/zone");
    (void)snprintf(rows[1].remote.tags, sizeof rows[1].remote.tags, "test,new");
    lobby = rows[0].remote.pidf.cluster;
    row_count = 3;
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    rbi_import_store_free(store);
    store = NULL;
    loop = rbi_loop_free(loop);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", base);
    return system(command); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
}

static void name_of(unsigned place, char out[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX])
{
    rbi_import_file_name(folder, lobby, place, out);
}

static bool there(unsigned place)
{
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    name_of(place, name);
    return access(name, F_OK) == 0;
}

static void turn_until_written(uint64_t count)
{
    for (unsigned i = 0; i < 3000 && rbi_import_store_written(store) < count; i++) {
        assert_int_equal(rbi_loop_turn(loop, NS_10MS), 0);
    }
    assert_int_equal(rbi_import_store_written(store), count);
}

static void check_got(uint32_t count)
{
    assert_int_equal(got_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(got[i].host, rows[i].host);
        assert_true(rbi_remote_equal(&got[i].remote, &rows[i].remote));
    }
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    open_store();
    rbi_import_store_dirty(store, lobby);
    turn_until_written(1);
    close_store();
    assert_int_equal(load(), 0);
    check_got(3);
    assert_int_equal(got_head.cluster, lobby);
    assert_int_equal(got_head.epoch, 1);
    assert_int_equal(got_head.revision, 43);
    assert_true(got_head.wall_s > 1700000000);
}

static void test_an_orderly_end_writes_at_once(void **state)
{
    (void)state;
    open_store();
    rbi_import_store_dirty(store, lobby);
    close_store();
    assert_int_equal(load(), 0);
    check_got(3);
}

static void test_a_cluster_is_written_now_and_then(void **state)
{
    (void)state;
    open_store();
    rbi_import_store_dirty(store, lobby);
    turn_until_written(1);
    row_count = 4;
    rbi_import_store_dirty(store, lobby);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(rbi_loop_turn(loop, NS_10MS / 10), 0);
    }
    assert_int_equal(rbi_import_store_written(store), 1); /* not before 10 s have passed */
    close_store();
    assert_int_equal(load(), 0);
    check_got(4);
    assert_int_equal(got_head.epoch, 2);
}

static void test_the_same_is_not_written_again(void **state)
{
    (void)state;
    open_store();
    rbi_import_store_dirty(store, lobby);
    close_store();
    (void)load();
    rbi_import_store_dirty(store, lobby);
    close_store();
    (void)load();
    assert_int_equal(got_head.epoch, 1);
}

static void test_a_missing_file_is_written_again(void **state)
{
    (void)state;
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    open_store();
    rbi_import_store_every(store, NS_10MS);
    rbi_import_store_dirty(store, lobby);
    turn_until_written(1);
    name_of(0, name);
    assert_int_equal(unlink(name), 0);
    turn_until_written(2);
    assert_true(there(0));
    assert_int_equal(unlink(name), 0); /* and with its folder */
    assert_int_equal(rmdir(folder), 0);
    turn_until_written(3);
    assert_true(there(0));
}

static void test_a_cluster_without_instances_has_no_file(void **state)
{
    (void)state;
    open_store();
    rbi_import_store_every(store, NS_10MS);
    for (uint64_t i = 1; i <= 3; i++) {
        row_count = (uint32_t)i;
        rbi_import_store_dirty(store, lobby);
        turn_until_written(i);
    }
    assert_true(there(0) && there(1) && there(2) && !there(3));
    row_count = 0;
    rbi_import_store_dirty(store, lobby);
    turn_until_written(4);
    assert_false(there(0) || there(1) || there(2));
    row_count = 2;
    rbi_import_store_dirty(store, lobby);
    turn_until_written(5);
    close_store();
    assert_int_equal(load(), 0);
    check_got(2);
}

/** Three files of 1, 2 and 3 instances, the last the newest. */
static void write_three(void)
{
    for (row_count = 1; row_count <= 3; row_count++) {
        (void)load();
        rbi_import_store_dirty(store, lobby);
        close_store();
    }
    row_count = 3;
}

static void damage(unsigned place, long offset)
{
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    unsigned char byte = 0;
    name_of(place, name);
    const int fd = open(name, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    (void)close(fd);
}

static void test_a_damaged_file_is_ignored_and_the_one_before_it_read(void **state)
{
    (void)state;
    struct stat found;
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    write_three();
    name_of(0, name);
    assert_int_equal(stat(name, &found), 0);
    for (long offset = 0; offset < found.st_size; offset++) { /* any byte at all */
        damage(0, offset);
        assert_int_equal(load(), 1);
        check_got(2);
        close_store();
        damage(0, offset);
    }
    assert_int_equal(truncate(name, found.st_size - 1), 0);
    damage(1, 70);
    assert_int_equal(load(), 2);
    check_got(1);
    close_store();
    assert_int_equal(unlink(name), 0); /* a file that is not there is no damage */
    damage(2, 3);
    assert_int_equal(load(), 2);
    check_got(0);
}

static void test_what_others_could_have_written_is_ignored(void **state)
{
    (void)state;
    char name[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    char other[RBI_IMPORT_FOLDER_MAX + RBI_IMPORT_FILE_SUFFIX];
    write_three();
    name_of(0, name);
    assert_int_equal(chmod(name, 0666), 0);
    assert_int_equal(load(), 1);
    check_got(2);
    close_store();
    assert_int_equal(unlink(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0); /* nobody waits for it */
    assert_int_equal(load(), 1);
    check_got(2);
    close_store();
    name_of(1, name);
    rbi_import_file_name(folder, lobby + 1, 0, other); /* a whole one, in another's place */
    assert_int_equal(rename(name, other), 0);
    assert_int_equal(load(), 2);
    check_got(1);
}

static void test_files_of_others_are_left_alone(void **state)
{
    (void)state;
    char name[128];
    write_three();
    (void)snprintf(name, sizeof name, "%s/README", folder);
    const int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(load(), 0);
    check_got(3);
    close_store();
    assert_int_equal(access(name, F_OK), 0);
}

static void test_a_folder_that_cannot_be(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/none/hosts", base);
    assert_int_equal(rbi_import_store_new(loop, folder, list, NULL, &store), -ENOENT);
    store = NULL;
}

/* ---- killed ------------------------------------------------------------------------------ */

/** Writes one file, until it has made so many system calls. @return whether it ended by itself */
static bool write_and_die(unsigned calls)
{
    int status = 0;
    unsigned char *bytes = NULL;
    size_t size = 0;
    const struct rbi_import_store_head head = {.cluster = lobby, .epoch = row_count};
    assert_int_equal(rbi_import_file_encode(&head, rows, row_count, &bytes, &size), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0) {
            _exit(77);
        }
        (void)raise(SIGSTOP);
        _exit(rbi_import_file_put(folder, lobby, bytes, size) == 0 ? 0 : 1);
    }
    free(bytes);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status)) {
        skip(); /* nobody may be traced here */
    }
    for (unsigned i = 0; i < calls; i++) { /* each is seen twice: where it begins, where it ends */
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSTOPPED(status)) {
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            return true;
        }
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return false;
}

static void test_killed_at_each_step_there_is_an_old_or_a_new_file(void **state)
{
    (void)state;
    write_three();
    unsigned stops = 0;
    bool ended = false;
    uint32_t before = 3;
    while (!ended) {
        row_count = before == 3 ? 4 : 3;
        ended = write_and_die(++stops);
        const uint32_t after = row_count;
        assert_int_equal(load(), 0); /* never a torn one */
        close_store();
        assert_true(there(0));
        assert_true(got_count == before || got_count == after);
        check_got(got_count);
        assert_true(!ended || got_count == after);
        before = got_count;
        assert_true(stops < 1000);
    }
    assert_true(stops > 20); /* it has been killed in the midst of all of them */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(test_what_is_written_is_read),
        CASE(test_an_orderly_end_writes_at_once),
        CASE(test_a_cluster_is_written_now_and_then),
        CASE(test_the_same_is_not_written_again),
        CASE(test_a_missing_file_is_written_again),
        CASE(test_a_cluster_without_instances_has_no_file),
        CASE(test_a_damaged_file_is_ignored_and_the_one_before_it_read),
        CASE(test_what_others_could_have_written_is_ignored),
        CASE(test_files_of_others_are_left_alone),
        CASE(test_a_folder_that_cannot_be),
        CASE(test_killed_at_each_step_there_is_an_old_or_a_new_file),
#undef CASE
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
