/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_names.c - what a name stands for: a section, a key of it, a user, a limit of that; and
 * the nearest that is known, for one that is not.
 */
#include "bus/config_reader.h"

#include <stdio.h>

static size_t find_section(const struct rbi_config_schema *schema, const char *name, size_t length)
{
    size_t i = 0;
    while (i < schema->count &&
           !rbi_config_same(schema->keys[i].name, rbi_config_section_length(&schema->keys[i]), name,
                            length)) {
        i++;
    }
    return i;
}

static void unknown_section(struct rbi_config_reader *r,
                            struct rbi_config_place place,
                            const char *name,
                            size_t length)
{
    const struct rbi_config_schema *schema = r->schema;
    char found[RBI_CONFIG_QUOTE_MAX];
    size_t near = schema->count;
    unsigned nearest = UINT32_MAX;
    const char *nested = NULL;
    if (!rbi_config_error_wanted(r->errors)) {
        r->errors->count++;
        return;
    }
    rbi_config_quote(name, length, found, sizeof found);
    for (size_t i = 0; i < schema->count; i++) {
        const struct rbi_config_key *key = &schema->keys[i];
        const int width = (int)rbi_config_section_length(key);
        if (rbi_config_same(key->name, strlen(key->name), name, length) ||
            rbi_config_same(rbi_config_leaf(key), strlen(rbi_config_leaf(key)), name, length)) {
            rbi_config_error_add(r->errors, place,
                                 "%s: expected a section, found a key; write %s below %.*s", found,
                                 rbi_config_leaf(key), width, key->name);
            return;
        }
        const unsigned d =
            rbi_config_distance(key->name, rbi_config_section_length(key), name, length);
        if (d < nearest) {
            nearest = d;
            near = i;
        }
    }
    nested = r->nested ? rbi_tree_nearest(r->nested, name, length) : NULL;
    if (nested) {
        rbi_config_error_add(r->errors, place, "%s: unknown section; did you mean %s?", found,
                             nested);
    } else if (near < schema->count) {
        const struct rbi_config_key *key = &schema->keys[near];
        rbi_config_error_add(r->errors, place, "%s: unknown section; did you mean %.*s?", found,
                             (int)rbi_config_section_length(key), key->name);
    } else {
        rbi_config_error_add(r->errors, place, "%s: unknown section", found);
    }
}

/** The section at hand, or the user in it, as a name in front of a message. */
static void print_where(const struct rbi_config_reader *r, char *buffer, size_t size)
{
    const struct rbi_config_key *first = &r->schema->keys[r->section];
    const int width = (int)rbi_config_section_length(first);
    if (r->depth > 2 && r->user) {
        (void)snprintf(buffer, size, "%.*s.users.%u", width, first->name, (unsigned)r->user->uid);
    } else {
        (void)snprintf(buffer, size, "%.*s", width, first->name);
    }
}

static void unknown_key(struct rbi_config_reader *r,
                        struct rbi_config_place place,
                        const char *name,
                        size_t length)
{
    const struct rbi_config_key *first = &r->schema->keys[r->section];
    const struct rbi_config_key *near = NULL;
    const struct rbi_config_key *elsewhere = NULL;
    unsigned nearest = UINT32_MAX;
    char found[RBI_CONFIG_QUOTE_MAX];
    if (!rbi_config_error_wanted(r->errors)) {
        r->errors->count++;
        return;
    }
    for (size_t i = 0; i < r->schema->count; i++) {
        const struct rbi_config_key *key = &r->schema->keys[i];
        const char *leaf = rbi_config_leaf(key);
        if (rbi_config_same(leaf, strlen(leaf), name, length)) {
            elsewhere = key;
        }
        const unsigned d = rbi_config_distance(leaf, strlen(leaf), name, length);
        if (rbi_config_same_section(key, first) && d < nearest) {
            nearest = d;
            near = key;
        }
    }
    near = near ? near : elsewhere;
    char where[RBI_CONFIG_USER_NAME_MAX];
    print_where(r, where, sizeof where);
    rbi_config_quote(name, length, found, sizeof found);
    rbi_config_error_add(r->errors, place, "%s: unknown key %s%s%s%s", where, found,
                         near ? "; did you mean " : "", near ? near->name : "", near ? "?" : "");
}

/** Remembers where a key was given; a second time is an error that names both lines. */
static void note_line(struct rbi_config_reader *r,
                      unsigned *seen_line,
                      struct rbi_config_place place,
                      const char *name,
                      size_t length)
{
    if (*seen_line != 0) {
        rbi_config_error_add(r->errors, place,
                             "%.*s: duplicate key, given in line %u and again in line %u",
                             (int)length, name, *seen_line, place.line);
        return;
    }
    *seen_line = place.line;
}

static void take_section_name(struct rbi_config_reader *r,
                              struct rbi_config_place place,
                              const char *name,
                              size_t length)
{
    r->section = find_section(r->schema, name, length);
    if (r->nested && rbi_tree_begin(r->nested, place, name, length)) {
        r->in_nested = true;
        return;
    }
    if (r->section == r->schema->count) {
        unknown_section(r, place, name, length);
        return;
    }
    note_line(r, &r->section_line[r->section], place, name, length);
}

static void take_key_name(struct rbi_config_reader *r,
                          struct rbi_config_place place,
                          const char *name,
                          size_t length)
{
    const struct rbi_config_key *first = &r->schema->keys[r->section];
    r->key = NULL;
    for (size_t i = r->section; i < r->schema->count; i++) {
        const struct rbi_config_key *key = &r->schema->keys[i];
        if (rbi_config_same_section(key, first) &&
            rbi_config_same(rbi_config_leaf(key), strlen(rbi_config_leaf(key)), name, length)) {
            r->key = key;
            note_line(r, &r->key_line[i], place, key->name, strlen(key->name));
            return;
        }
    }
    unknown_key(r, place, name, length);
}

/** The id of a user, as a key of the map of users. */
static void take_user_id(struct rbi_config_reader *r,
                         struct rbi_config_place place,
                         const char *name,
                         size_t length)
{
    struct rbi_config_users *users = (void *)((char *)r->config + r->key->offset);
    struct rbi_config_fault fault;
    char found[RBI_CONFIG_QUOTE_MAX];
    uint32_t idx = 0;
    r->user = NULL;
    if (rbi_config_users_enter(users, name, length, &idx, &fault) != 0) {
        rbi_config_error_add(r->errors, place, "%s: expected %s, found %s%s%s", r->key->name,
                             fault.expected, rbi_config_quote(name, length, found, sizeof found),
                             fault.hint[0] ? "; " : "", fault.hint);
        return;
    }
    r->user = &users->items[idx];
    memset(r->limit_line, 0, sizeof r->limit_line);
    note_line(r, &r->user_line[idx], place, name, length);
}

/** A key of the section as one of a user. */
static void take_limit_name(struct rbi_config_reader *r,
                            struct rbi_config_place place,
                            const char *name,
                            size_t length)
{
    r->limit_known = false;
    for (size_t i = r->section; &r->schema->keys[i] < r->key; i++) {
        const struct rbi_config_key *key = &r->schema->keys[i];
        if (rbi_config_same(rbi_config_leaf(key), strlen(rbi_config_leaf(key)), name, length)) {
            rbi_config_user_key(key, r->config, r->user, &r->limit);
            r->limit_known = true;
            r->user->given |= UINT32_C(1) << (i - r->section);
            note_line(r, &r->limit_line[i], place, r->limit.name, strlen(r->limit.name));
            return;
        }
    }
    unknown_key(r, place, name, length);
}

void rbi_config_name_take(struct rbi_config_reader *r,
                          struct rbi_config_place place,
                          const char *name,
                          size_t length)
{
    switch (r->depth) {
    case 1:
        take_section_name(r, place, name, length);
        break;
    case 2:
        take_key_name(r, place, name, length);
        break;
    case 3:
        take_user_id(r, place, name, length);
        break;
    default:
        take_limit_name(r, place, name, length);
        break;
    }
}

void rbi_config_name_forget(struct rbi_config_reader *r)
{
    switch (r->depth) {
    case 1:
        r->section = r->schema->count;
        r->key = NULL;
        break;
    case 2:
        r->key = NULL;
        break;
    case 3:
        r->user = NULL;
        break;
    default:
        r->limit_known = false;
        break;
    }
}
