/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/hosts_table.h"

#include <errno.h>
#include <string.h>

static bool line_is_sound(const struct rbi_hosts_line *line)
{
    const size_t name = strnlen(line->name, sizeof(line->name));
    const size_t next = strnlen(line->next, sizeof(line->next));
    return line->number != 0 && rbi_host_name_valid(line->name, name) &&
           (next == 0 || rbi_host_name_valid(line->next, next));
}

int rbi_hosts_table_read(const struct rbi_directory_view *view,
                         struct rbi_hosts_table *table,
                         uint32_t max)
{
    uint64_t size = 0;
    const int result = rbi_directory_read_blob(view, RBI_HOSTS_TABLE_KEY, table,
                                               rbi_hosts_table_bytes(max), &size);
    if (result != RBI_DIRECTORY_OK) {
        return result;
    }
    if (size < sizeof(*table) || table->version != 1 ||
        table->line_bytes != sizeof(struct rbi_hosts_line) || table->count > max ||
        size != rbi_hosts_table_bytes(table->count) ||
        strnlen(table->own, sizeof(table->own)) == sizeof(table->own)) {
        return -EPROTO;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        if (!line_is_sound(&table->lines[i])) {
            return -EPROTO;
        }
    }
    return RBI_DIRECTORY_OK;
}

const struct rbi_hosts_line *rbi_hosts_table_find(const struct rbi_hosts_table *table,
                                                  uint32_t number)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->lines[i].number == number) {
            return &table->lines[i];
        }
    }
    return NULL;
}
