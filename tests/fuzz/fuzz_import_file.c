/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of instances of other hosts, of any content. Its sum is put right, or nothing behind it
 * would ever be looked at. What is believed is written and read again, and is the same.
 */
#include "daemon/bridge/import_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS    64U
#define SUM_AT  8U
#define SUM_END 16U

struct rows {
    uint32_t count;
    struct rbi_import_store_row row[ROWS];
};

static void check(bool right, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "fuzz_import_file: %s\n", what);
        abort();
    }
}

static void take(void *context,
                 const struct rbi_import_store_head *head,
                 const struct rbi_import_store_row *row)
{
    struct rows *rows = context;
    check(row->remote.pidf.cluster == head->cluster && rbi_remote_valid(&row->remote), "a row");
    if (rows->count < ROWS) {
        rows->row[rows->count] = *row;
    }
    rows->count++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rows first;
    static struct rows second;
    struct rbi_import_store_head head = {0};
    struct rbi_import_store_head again = {0};
    const char *why = NULL;
    unsigned char *bytes = malloc(size + 1);
    check(bytes != NULL, "memory");
    memcpy(bytes, data, size);
    if (size >= SUM_END) {
        const uint64_t sum = XXH3_64bits(bytes + SUM_END, size - SUM_END);
        memcpy(bytes + SUM_AT, &sum, sizeof sum);
    }
    first.count = 0;
    const int result = rbi_import_file_decode(bytes, size, &head, take, &first, &why);
    free(bytes);
    if (result != 0) {
        check(why != NULL && first.count == 0, "nothing of what is wrong is handed out");
        return 0;
    }
    if (first.count > ROWS) {
        return 0;
    }
    unsigned char *copy = NULL;
    size_t copy_size = 0;
    check(rbi_import_file_encode(&head, first.row, first.count, &copy, &copy_size) == 0, "encode");
    second.count = 0;
    check(rbi_import_file_decode(copy, copy_size, &again, take, &second, &why) == 0, "decode");
    free(copy);
    check(memcmp(&head, &again, sizeof head) == 0 && first.count == second.count, "the head");
    for (uint32_t i = 0; i < first.count; i++) {
        check(strcmp(first.row[i].host, second.row[i].host) == 0 &&
                  rbi_remote_equal(&first.row[i].remote, &second.row[i].remote),
              "the rows");
    }
    return 0;
}
