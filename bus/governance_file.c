/* SPDX-License-Identifier: Apache-2.0 */
/* bus/governance_file.c - see bus/governance_file.h. */
#include "bus/governance_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static bool names_file(const struct rbi_tree_node *node)
{
    const struct rbi_tree_field *field = node->field;
    return field != NULL && field->kind == RBI_TREE_VALUE && field->key.name != NULL &&
           strcmp(field->key.name, "mock_file") == 0;
}

uint32_t
rbi_governance_next_file(const struct rbi_governance *governance, uint32_t after, const char **path)
{
    const struct rbi_tree *tree = &governance->tree;
    for (uint32_t at = after + 1; at < tree->count; at++) {
        if (names_file(&tree->nodes[at]) && tree->nodes[at].length > 0) {
            *path = rbi_tree_text(tree, &tree->nodes[at]);
            return at;
        }
    }
    return 0;
}

static const struct rbi_governance_file *find(const struct rbi_governance *governance,
                                              const char *path)
{
    for (uint32_t i = 0; i < governance->file_count; i++) {
        if (strcmp(governance->files[i].path, path) == 0) {
            return &governance->files[i];
        }
    }
    return NULL;
}

bool rbi_governance_has_file(const struct rbi_governance *governance, const char *path)
{
    return find(governance, path) != NULL;
}

int rbi_governance_take_file(struct rbi_governance *governance,
                             const char *path,
                             const unsigned char *bytes,
                             uint32_t size)
{
    struct rbi_governance_file *files =
        realloc(governance->files, (governance->file_count + 1U) * sizeof *files);
    governance->files = files != NULL ? files : governance->files;
    unsigned char *copy = malloc(size + 1U);
    if (files == NULL || copy == NULL) {
        free(copy);
        return -ENOMEM;
    }
    memcpy(copy, bytes, size);
    struct rbi_governance_file *file = &files[governance->file_count++];
    memset(file, 0, sizeof *file);
    memcpy(file->path, path, strnlen(path, RBI_MOCK_PATH_MAX));
    file->key = rbi_max_u64(XXH3_64bits(copy, size), 1);
    file->size = size;
    file->bytes = copy;
    return 0;
}

int rbi_governance_carry_files(struct rbi_governance *to, const struct rbi_governance *from)
{
    const char *path = NULL;
    int result = 0;
    for (uint32_t at = rbi_governance_next_file(to, 0, &path); at && result == 0;
         at = rbi_governance_next_file(to, at, &path)) {
        const struct rbi_governance_file *file = find(from, path);
        if (file != NULL && !rbi_governance_has_file(to, path)) {
            result = rbi_governance_take_file(to, path, file->bytes, file->size);
        }
    }
    return result;
}

void rbi_governance_free_files(struct rbi_governance *governance)
{
    for (uint32_t i = 0; i < governance->file_count; i++) {
        free(governance->files[i].bytes);
    }
    free(governance->files);
    governance->files = NULL;
    governance->file_count = 0;
}

void rbi_governance_fill_files(const struct rbi_governance_layers *layers,
                               struct rbi_policy *policy)
{
    for (uint32_t i = 0; i < policy->degrade_count; i++) {
        struct rbi_degrade *degrade = &policy->degrades[i];
        const struct rbi_governance_file *file = NULL;
        for (unsigned layer = layers->count; degrade->mock_file[0] != '\0' && layer > 0; layer--) {
            file = file != NULL ? file : find(layers->items[layer - 1], degrade->mock_file);
        }
        degrade->file_key = file != NULL ? file->key : 0;
        degrade->file_size = file != NULL ? file->size : 0;
    }
}

const struct rbi_governance_file *
rbi_governance_find_file(const struct rbi_governance_layers *layers, uint64_t key)
{
    for (unsigned layer = layers->count; layer > 0; layer--) {
        const struct rbi_governance *governance = layers->items[layer - 1];
        for (uint32_t i = 0; i < governance->file_count; i++) {
            if (governance->files[i].key == key) {
                return &governance->files[i];
            }
        }
    }
    return NULL;
}
