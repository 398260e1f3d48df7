/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_CONFIG_READER_H
#define RINGBUS_BUS_CONFIG_READER_H
/*
 * bus/config_reader.h - where the reader of a configuration is: shared by config.c, which walks the
 * events of libyaml, and config_names.c, which finds what a name stands for.
 */
#include "bus/config_schema.h"
#include "bus/config_tree.h"

#include <string.h>
#include <yaml.h>

struct rbi_config_reader {
    const struct rbi_config_schema *schema;
    void *config; /* scratch */
    struct rbi_config_errors *errors;
    yaml_parser_t yaml;
    const char *text; /* without byte order mark */
    size_t size;
    struct rbi_tree_builder *nested; /* of the sections that are trees, or NULL */
    bool in_nested;                  /* the value of one of them comes */
    bool stop;
    unsigned documents;
    unsigned document_line;
    unsigned depth; /* open maps and lists */
    bool skipping;  /* inside something that was reported or is not known */
    unsigned skip_depth;
    bool value_next[5];               /* at depth 1 to 4: the next node is a value */
    size_t section;                   /* index of its first key, or count: not known */
    const struct rbi_config_key *key; /* whose value comes next, or NULL */
    struct rbi_config_user *user;     /* whose limits come next, or NULL */
    bool limit_known;                 /* whether limit is the key whose value comes next */
    struct rbi_config_user_key limit;
    unsigned user_line[RBI_CONFIG_USERS_MAX];
    unsigned limit_line[RBI_CONFIG_KEYS_MAX]; /* of the user at hand */
    unsigned key_line[RBI_CONFIG_KEYS_MAX];
    unsigned section_line[RBI_CONFIG_KEYS_MAX]; /* at the index of the section's first key */
};

static inline size_t rbi_config_section_length(const struct rbi_config_key *key)
{
    return (size_t)(strchr(key->name, '.') - key->name);
}

static inline const char *rbi_config_leaf(const struct rbi_config_key *key)
{
    return strchr(key->name, '.') + 1;
}

static inline bool rbi_config_same(const char *a, size_t a_length, const char *b, size_t b_length)
{
    return a_length == b_length && memcmp(a, b, a_length) == 0;
}

/** True when keys @p a and @p b stand in one section. */
static inline bool rbi_config_same_section(const struct rbi_config_key *a,
                                           const struct rbi_config_key *b)
{
    return rbi_config_same(a->name, rbi_config_section_length(a), b->name,
                           rbi_config_section_length(b));
}

/** The key whose scalar comes next, or NULL. */
static inline const struct rbi_config_key *rbi_config_key_at_hand(const struct rbi_config_reader *r)
{
    if (r->depth == 4) {
        return r->limit_known ? &r->limit.key : NULL;
    }
    return r->depth == 2 ? r->key : NULL;
}

/** A key of a map has come: a section, a key of one, a user, a limit of one. */
void rbi_config_name_take(struct rbi_config_reader *r,
                          struct rbi_config_place place,
                          const char *name,
                          size_t length);
/** The key at hand is none: what it has below it is passed over. */
void rbi_config_name_forget(struct rbi_config_reader *r);

#endif
