/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_users.c - quota.users: users with limits of their own. An entry has a copy of
 * the section's structure, so that the section's own keys, moved there, read and print it.
 */
#include "bus/config_schema.h"

#include <stdio.h>
#include <string.h>

const struct rbi_config_limits *rbi_config_limits(const struct rbi_config *config, uint32_t uid)
{
    for (uint32_t i = 0; i < config->quota_users.count; i++) {
        if (config->quota_users.items[i].uid == uid) {
            return &config->quota_users.items[i].limits;
        }
    }
    return &config->quota;
}

void rbi_config_user_key(const struct rbi_config_key *key,
                         const void *config,
                         const struct rbi_config_user *item,
                         struct rbi_config_user_key *out)
{
    const char *leaf = strchr(key->name, '.') + 1;
    const size_t limits = (size_t)((const char *)&item->limits - (const char *)config);
    (void)snprintf(out->name, sizeof out->name, "%.*s.users.%u.%s", (int)(leaf - 1 - key->name),
                   key->name, (unsigned)item->uid, leaf);
    out->key = *key;
    out->key.name = out->name;
    out->key.offset = key->offset - offsetof(struct rbi_config, quota) + limits;
}

int rbi_config_users_enter(struct rbi_config_users *users,
                           const char *text,
                           size_t length,
                           uint32_t *idx,
                           struct rbi_config_fault *fault)
{
    uint32_t uid = 0;
    /* -1 is the kernel's "no user". */
    const struct rbi_config_key id = {
        "users", RBI_CONFIG_TYPE_NUMBER, false, 0, 0, UINT32_MAX - 1, "0", NULL, ""};
    if (rbi_config_value_parse(&id, text, length, &uid, fault) != 0) {
        (void)snprintf(fault->expected, sizeof fault->expected,
                       "a user id, which is what \"id -u NAME\" says");
        return 1;
    }
    for (uint32_t i = 0; i < users->count; i++) {
        if (users->items[i].uid == uid) {
            *idx = i;
            return 0;
        }
    }
    if (users->count == RBI_CONFIG_USERS_MAX) {
        (void)snprintf(fault->expected, sizeof fault->expected, "at most %u users",
                       RBI_CONFIG_USERS_MAX);
        fault->hint[0] = '\0';
        return 1;
    }
    users->items[users->count].uid = uid;
    *idx = users->count++;
    return 0;
}

/* ---- all keys of all users -------------------------------------------------------------- */

/** Index of the first key of the section that has users, or the number of keys. */
static size_t first_key(const struct rbi_config_schema *schema, size_t *end)
{
    size_t users = 0;
    while (users < schema->count && schema->keys[users].type != RBI_CONFIG_TYPE_USERS) {
        users++;
    }
    *end = users; /* it is the last of its section */
    size_t first = users;
    if (users < schema->count) {
        const size_t length =
            (size_t)(strchr(schema->keys[users].name, '.') + 1 - schema->keys[users].name);
        while (first > 0 &&
               strncmp(schema->keys[first - 1].name, schema->keys[users].name, length) == 0) {
            first--;
        }
    }
    return first;
}

void rbi_config_users_inherit(const struct rbi_config_schema *schema, void *config)
{
    size_t end = 0;
    const size_t first = first_key(schema, &end);
    if (end == schema->count) {
        return;
    }
    struct rbi_config_users *users = (void *)((char *)config + schema->keys[end].offset);
    for (uint32_t i = 0; i < users->count; i++) {
        for (size_t k = first; k < end; k++) {
            struct rbi_config_user_key own;
            rbi_config_user_key(&schema->keys[k], config, &users->items[i], &own);
            if (!(users->items[i].given >> (k - first) & 1)) {
                rbi_config_value_copy(&schema->keys[k], &own.key, config);
            }
        }
    }
}

static const struct rbi_config_user *find_user(const struct rbi_config *config, uint32_t uid)
{
    for (uint32_t i = 0; i < config->quota_users.count; i++) {
        if (config->quota_users.items[i].uid == uid) {
            return &config->quota_users.items[i];
        }
    }
    return NULL;
}

/** Value of a key for a user, "as all" where it was not given. */
static void print_for_user(const struct rbi_config_key *key,
                           uint32_t bit,
                           const struct rbi_config *config,
                           uint32_t uid,
                           struct rbi_config_user_key *own,
                           char value[RBI_CONFIG_VALUE_MAX])
{
    const struct rbi_config_user *item = find_user(config, uid);
    (void)snprintf(value, RBI_CONFIG_VALUE_MAX, "as all");
    if (item && (item->given >> bit & 1)) {
        rbi_config_user_key(key, config, item, own);
        rbi_config_value_print(&own->key, config, value, RBI_CONFIG_VALUE_MAX);
    }
}

static void diff_user(const struct rbi_config_schema *schema,
                      const struct rbi_config *running,
                      const struct rbi_config *next,
                      uint32_t uid,
                      rbi_config_diff_fn report,
                      void *context)
{
    size_t end = 0;
    const size_t first = first_key(schema, &end);
    for (size_t k = first; k < end; k++) {
        struct rbi_config_user_key own = {.name = ""};
        char old_value[RBI_CONFIG_VALUE_MAX];
        char new_value[RBI_CONFIG_VALUE_MAX];
        const uint32_t bit = (uint32_t)(k - first);
        print_for_user(&schema->keys[k], bit, running, uid, &own, old_value);
        print_for_user(&schema->keys[k], bit, next, uid, &own, new_value);
        if (strcmp(old_value, new_value) != 0) {
            report(context, own.name, old_value, new_value, schema->keys[k].restart);
        }
    }
}

void rbi_config_users_diff(const struct rbi_config_schema *schema,
                           const struct rbi_config *running,
                           const struct rbi_config *next,
                           rbi_config_diff_fn report,
                           void *context)
{
    for (uint32_t i = 0; i < running->quota_users.count; i++) {
        diff_user(schema, running, next, running->quota_users.items[i].uid, report, context);
    }
    for (uint32_t i = 0; i < next->quota_users.count; i++) {
        const uint32_t uid = next->quota_users.items[i].uid;
        if (!find_user(running, uid)) {
            diff_user(schema, running, next, uid, report, context);
        }
    }
}

void rbi_config_users_print(const struct rbi_config_schema *schema,
                            const struct rbi_config *config,
                            rbi_config_print_fn report,
                            void *context)
{
    size_t end = 0;
    const size_t first = first_key(schema, &end);
    for (uint32_t i = 0; i < config->quota_users.count; i++) {
        const struct rbi_config_user *item = &config->quota_users.items[i];
        for (size_t k = first; k < end; k++) {
            struct rbi_config_user_key own;
            char value[RBI_CONFIG_VALUE_MAX];
            if (item->given >> (k - first) & 1) {
                rbi_config_user_key(&schema->keys[k], config, item, &own);
                rbi_config_value_print(&own.key, config, value, sizeof value);
                report(context, own.name, value, false);
            }
        }
    }
}
