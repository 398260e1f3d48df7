/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config.c - walks libyaml's events over the table of keys.
 *
 * The shape is fixed: a map of sections, each a map of keys, each a scalar, or a map of
 * users, each a map of keys again. So no recursion and no tree: whatever does not fit is
 * reported and skipped by counting depth, up to a limit that is checked while the reader
 * goes on, because its own cost grows with the square of the depth. What is nested deeper
 * are sections of their own, whose events go to the builder of a tree.
 */
#include "bus/config_schema.h"
#include "bus/config_tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* As deep as trees are: deeper text is not an honest mistake. */
#define DEPTH_MAX 8U

struct reader {
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

static struct rbi_config_place place_of(const yaml_mark_t *mark)
{
    const struct rbi_config_place place = {(unsigned)mark->line + 1, (unsigned)mark->column + 1};
    return place;
}

static size_t section_length(const struct rbi_config_key *key)
{
    return (size_t)(strchr(key->name, '.') - key->name);
}

static const char *leaf_of(const struct rbi_config_key *key)
{
    return strchr(key->name, '.') + 1;
}

static bool same(const char *a, size_t a_length, const char *b, size_t b_length)
{
    return a_length == b_length && memcmp(a, b, a_length) == 0;
}

/** True when keys @p a and @p b stand in one section. */
static bool same_section(const struct rbi_config_key *a, const struct rbi_config_key *b)
{
    return same(a->name, section_length(a), b->name, section_length(b));
}

static size_t find_section(const struct rbi_config_schema *schema, const char *name, size_t length)
{
    size_t i = 0;
    while (i < schema->count &&
           !same(schema->keys[i].name, section_length(&schema->keys[i]), name, length)) {
        i++;
    }
    return i;
}

/** True when the reader stopped at a tab. It counts characters, the text has bytes. */
static bool at_tab(const struct reader *r, const yaml_mark_t *mark)
{
    size_t chars = 0;
    for (size_t i = 0; i < r->size; i++) {
        chars += ((unsigned char)r->text[i] & 0xc0) != 0x80;
        if (chars > mark->index) {
            return r->text[i] == '\t';
        }
    }
    return false;
}

/* ---- keys ------------------------------------------------------------------------------- */

static void
unknown_section(struct reader *r, struct rbi_config_place place, const char *name, size_t length)
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
        const int width = (int)section_length(key);
        if (same(key->name, strlen(key->name), name, length) ||
            same(leaf_of(key), strlen(leaf_of(key)), name, length)) {
            rbi_config_error_add(r->errors, place,
                                 "%s: expected a section, found a key; write %s below %.*s", found,
                                 leaf_of(key), width, key->name);
            return;
        }
        const unsigned d = rbi_config_distance(key->name, section_length(key), name, length);
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
                             (int)section_length(key), key->name);
    } else {
        rbi_config_error_add(r->errors, place, "%s: unknown section", found);
    }
}

/** The section at hand, or the user in it, as a name in front of a message. */
static void print_where(const struct reader *r, char *buffer, size_t size)
{
    const struct rbi_config_key *first = &r->schema->keys[r->section];
    const int width = (int)section_length(first);
    if (r->depth > 2 && r->user) {
        (void)snprintf(buffer, size, "%.*s.users.%u", width, first->name, (unsigned)r->user->uid);
    } else {
        (void)snprintf(buffer, size, "%.*s", width, first->name);
    }
}

static void
unknown_key(struct reader *r, struct rbi_config_place place, const char *name, size_t length)
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
        const char *leaf = leaf_of(key);
        if (same(leaf, strlen(leaf), name, length)) {
            elsewhere = key;
        }
        const unsigned d = rbi_config_distance(leaf, strlen(leaf), name, length);
        if (same_section(key, first) && d < nearest) {
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
static void note_line(struct reader *r,
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

static void
take_section_name(struct reader *r, struct rbi_config_place place, const char *name, size_t length)
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

static void
take_key_name(struct reader *r, struct rbi_config_place place, const char *name, size_t length)
{
    const struct rbi_config_key *first = &r->schema->keys[r->section];
    r->key = NULL;
    for (size_t i = r->section; i < r->schema->count; i++) {
        const struct rbi_config_key *key = &r->schema->keys[i];
        if (same_section(key, first) && same(leaf_of(key), strlen(leaf_of(key)), name, length)) {
            r->key = key;
            note_line(r, &r->key_line[i], place, key->name, strlen(key->name));
            return;
        }
    }
    unknown_key(r, place, name, length);
}

/** The id of a user, as a key of the map of users. */
static void
take_user_id(struct reader *r, struct rbi_config_place place, const char *name, size_t length)
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
static void
take_limit_name(struct reader *r, struct rbi_config_place place, const char *name, size_t length)
{
    r->limit_known = false;
    for (size_t i = r->section; &r->schema->keys[i] < r->key; i++) {
        const struct rbi_config_key *key = &r->schema->keys[i];
        if (same(leaf_of(key), strlen(leaf_of(key)), name, length)) {
            rbi_config_user_key(key, r->config, r->user, &r->limit);
            r->limit_known = true;
            r->user->given |= UINT32_C(1) << (i - r->section);
            note_line(r, &r->limit_line[i], place, r->limit.name, strlen(r->limit.name));
            return;
        }
    }
    unknown_key(r, place, name, length);
}

static void
take_name(struct reader *r, struct rbi_config_place place, const char *name, size_t length)
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

/** The key at hand is none: what it has below it is passed over. */
static void forget_name(struct reader *r)
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

/** The key whose scalar comes next, or NULL. */
static const struct rbi_config_key *key_at_hand(const struct reader *r)
{
    if (r->depth == 4) {
        return r->limit_known ? &r->limit.key : NULL;
    }
    return r->depth == 2 ? r->key : NULL;
}

/* ---- nodes ------------------------------------------------------------------------------ */

/** After a whole node: keys and values alternate. */
static void node_done(struct reader *r)
{
    if (!r->skipping && r->depth >= 1) {
        r->value_next[r->depth] = !r->value_next[r->depth];
    }
}

/** A key that is not a scalar: it and its value mean nothing. */
static void odd_key(struct reader *r, struct rbi_config_place place, const char *found)
{
    rbi_config_error_add(r->errors, place, "expected a key, found %s", found);
    forget_name(r);
}

/** A value of the wrong shape. */
static void odd_value(struct reader *r, struct rbi_config_place place, const char *found)
{
    if (r->depth == 0) {
        rbi_config_error_add(r->errors, place, "expected a map of sections, found %s", found);
    } else if (r->depth == 1 && r->section < r->schema->count) {
        const struct rbi_config_key *first = &r->schema->keys[r->section];
        rbi_config_error_add(r->errors, place, "%.*s: expected keys below it, found %s%s",
                             (int)section_length(first), first->name, found,
                             strcmp(found, "nothing") == 0 ? "; leave the line out" : "");
    } else if (r->depth == 3 && r->user) {
        rbi_config_error_add(r->errors, place, "%s.%u: expected limits below it, found %s",
                             r->key->name, (unsigned)r->user->uid, found);
    } else if (key_at_hand(r)) {
        struct rbi_config_fault fault;
        rbi_config_value_describe(key_at_hand(r), &fault);
        rbi_config_error_add(r->errors, place, "%s: expected %s, found %s", key_at_hand(r)->name,
                             fault.expected, found);
    }
}

static void
take_value(struct reader *r, struct rbi_config_place place, const char *value, size_t length)
{
    struct rbi_config_fault fault;
    char found[RBI_CONFIG_QUOTE_MAX];
    const struct rbi_config_key *key = key_at_hand(r);
    if (!key || rbi_config_value_parse(key, value, length, r->config, &fault) == 0) {
        return;
    }
    rbi_config_error_add(r->errors, place, "%s: expected %s, found %s%s%s", key->name,
                         fault.expected, rbi_config_quote(value, length, found, sizeof found),
                         fault.hint[0] ? "; " : "", fault.hint);
}

/** An event went to the tree: its section may be complete. */
static void nested_done(struct reader *r)
{
    if (rbi_tree_done(r->nested)) {
        r->in_nested = false;
        node_done(r);
    }
    r->stop = r->stop || r->nested->no_memory;
}

static void on_scalar(struct reader *r, const yaml_event_t *event)
{
    const struct rbi_config_place place = place_of(&event->start_mark);
    const char *value = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const bool nothing = plain && (length == 0 || same(value, length, "~", 1));

    if (r->skipping) {
        return;
    }
    if (r->in_nested) {
        rbi_tree_scalar(r->nested, place, value, length, plain);
        nested_done(r);
        return;
    }
    if (r->depth == 0) {
        if (length == 0 && plain) {
            r->documents = 0; /* "---" and no more: as good as empty */
        } else {
            odd_value(r, place, "a scalar");
        }
    } else if (!r->value_next[r->depth]) {
        if (plain && same(value, length, "<<", 2)) {
            odd_key(r, place, "<<; merge keys are not taken");
        } else {
            take_name(r, place, value, length);
        }
    } else if (nothing) {
        odd_value(r, place, "nothing");
    } else if (r->depth == 1 || r->depth == 3) {
        odd_value(r, place, "a scalar");
    } else {
        take_value(r, place, value, length);
    }
    node_done(r);
}

/** Whether a map may stand as the value at hand. */
static bool map_fits(const struct reader *r)
{
    switch (r->depth) {
    case 1:
        return r->section < r->schema->count;
    case 2:
        return r->key && r->key->type == RBI_CONFIG_TYPE_USERS;
    case 3:
        return r->user != NULL;
    default:
        return false;
    }
}

static void on_start(struct reader *r, const yaml_event_t *event)
{
    const bool map = event->type == YAML_MAPPING_START_EVENT;
    const struct rbi_config_place place = place_of(&event->start_mark);
    if (r->depth == DEPTH_MAX) {
        rbi_config_error_add(r->errors, place, "nested more than %u deep", DEPTH_MAX);
        r->stop = true;
        return;
    }
    if (r->skipping || r->in_nested) {
        if (r->in_nested) {
            rbi_tree_start(r->nested, place, map);
        }
        r->depth++;
        return;
    }
    const bool is_key = r->depth >= 1 && !r->value_next[r->depth];
    if (map && r->depth == 0) {
        r->value_next[1] = false;
    } else if (map && !is_key && map_fits(r)) {
        r->value_next[r->depth + 1] = false;
    } else {
        if (is_key) {
            odd_key(r, place, map ? "a map" : "a list");
        } else {
            odd_value(r, place, map ? "a map" : "a list");
        }
        r->skipping = true;
        r->skip_depth = r->depth;
    }
    r->depth++;
}

static void on_end(struct reader *r)
{
    r->depth--;
    if (r->in_nested) {
        rbi_tree_end(r->nested);
        nested_done(r);
        return;
    }
    if (r->skipping && r->depth == r->skip_depth) {
        r->skipping = false;
    }
    node_done(r);
}

static void on_document(struct reader *r, const yaml_event_t *event)
{
    const struct rbi_config_place place = place_of(&event->start_mark);
    if (r->document_line != 0) {
        rbi_config_error_add(
            r->errors, place,
            "expected one document, found a second one; the first began in line %u",
            r->document_line);
        r->stop = true;
        return;
    }
    r->document_line = place.line;
    r->documents = 1;
}

/** Anchors and tags are refused wherever they stand, in skipped parts as well. */
static void check_decoration(struct reader *r,
                             const yaml_event_t *event,
                             const yaml_char_t *anchor,
                             const yaml_char_t *tag)
{
    const struct rbi_config_place place = place_of(&event->start_mark);
    char found[RBI_CONFIG_QUOTE_MAX];
    if (anchor) {
        const char *name = (const char *)anchor;
        rbi_config_error_add(r->errors, place, "anchors are not taken, found %s",
                             rbi_config_quote(name, strlen(name), found, sizeof found));
    }
    if (tag) {
        const char *name = (const char *)tag;
        rbi_config_error_add(r->errors, place, "tags are not taken, found %s",
                             rbi_config_quote(name, strlen(name), found, sizeof found));
    }
}

static void on_alias(struct reader *r, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    char found[RBI_CONFIG_QUOTE_MAX];
    rbi_config_error_add(r->errors, place_of(&event->start_mark), "aliases are not taken, found %s",
                         rbi_config_quote(name, strlen(name), found, sizeof found));
    if (r->in_nested) {
        rbi_tree_alias(r->nested);
        nested_done(r);
        return;
    }
    if (!r->skipping && r->depth >= 1 && !r->value_next[r->depth]) {
        forget_name(r);
    }
    node_done(r);
}

static void on_event(struct reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        on_document(r, event);
        break;
    case YAML_ALIAS_EVENT:
        on_alias(r, event);
        break;
    case YAML_SCALAR_EVENT:
        check_decoration(r, event, event->data.scalar.anchor, event->data.scalar.tag);
        on_scalar(r, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        check_decoration(r, event, event->data.sequence_start.anchor,
                         event->data.sequence_start.tag);
        on_start(r, event);
        break;
    case YAML_MAPPING_START_EVENT:
        check_decoration(r, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        on_start(r, event);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_end(r);
        break;
    case YAML_STREAM_END_EVENT:
        r->stop = true;
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
}

/* ---- the whole -------------------------------------------------------------------------- */

/** Place of a byte; for errors of libyaml's decoder, which knows bytes only. */
static struct rbi_config_place place_of_byte(const struct reader *r, size_t offset)
{
    struct rbi_config_place place = {1, 1};
    for (size_t i = 0; i < offset && i < r->size; i++) {
        const unsigned char c = (unsigned char)r->text[i];
        if (c == '\n' || (c == '\r' && (i + 1 == r->size || r->text[i + 1] != '\n'))) {
            place.line++;
            place.column = 1;
        } else {
            place.column += (c & 0xc0) != 0x80;
        }
    }
    return place;
}

/** Reports why libyaml gave up. */
static int explain(struct reader *r)
{
    const yaml_parser_t *yaml = &r->yaml;
    if (yaml->error == YAML_MEMORY_ERROR) {
        return -ENOMEM;
    }
    const char *problem = yaml->problem ? yaml->problem : "unreadable";
    if (yaml->error == YAML_READER_ERROR) {
        rbi_config_error_add(r->errors, place_of_byte(r, yaml->problem_offset),
                             "expected UTF-8: %s", problem);
        return 1;
    }
    const bool tab = at_tab(r, &yaml->problem_mark);
    rbi_config_error_add(r->errors, place_of(&yaml->problem_mark), "not YAML: %s%s%s%s",
                         yaml->context ? yaml->context : "", yaml->context ? ": " : "", problem,
                         tab ? "; tabs do not indent, use spaces" : "");
    return 1;
}

/** @retval 0 walked to the end or as far as makes sense; 1 not YAML; -ENOMEM */
static int walk(struct reader *r)
{
    while (!r->stop) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->yaml, &event)) {
            return explain(r);
        }
        on_event(r, &event);
        yaml_event_delete(&event);
    }
    if (r->documents == 0) {
        const struct rbi_config_place whole = {0, 0};
        rbi_config_error_add(r->errors, whole,
                             "expected keys, found nothing; is the file still being written? "
                             "{} asks for the defaults");
    }
    return 0;
}

/** Reads the text, which was looked at. @retval 0; 1 @p r->errors has entries; -ENOMEM */
static int read_text(struct reader *r)
{
    if (!yaml_parser_initialize(&r->yaml)) {
        return -ENOMEM;
    }
    yaml_parser_set_encoding(&r->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->yaml, (const unsigned char *)r->text, r->size);
    int result = walk(r);
    yaml_parser_delete(&r->yaml);
    if (result >= 0 && r->nested && r->nested->no_memory) {
        result = -ENOMEM;
    }
    return result < 0 ? result : r->errors->count != 0;
}

int rbi_config_parse_nested(const struct rbi_config_schema *schema,
                            const char *text,
                            size_t size,
                            void *out,
                            void *scratch,
                            struct rbi_tree_builder *nested,
                            struct rbi_config_errors *errors)
{
    struct reader r = {.schema = schema, .config = scratch, .errors = errors, .nested = nested};
    size_t skip = 0;

    if (size > RBI_CONFIG_TEXT_MAX) {
        const struct rbi_config_place whole = {0, 0};
        rbi_config_error_add(errors, whole, "expected at most %u bytes, found more",
                             RBI_CONFIG_TEXT_MAX);
        return 1;
    }
    if (rbi_config_text_check(text, size, &skip, errors) != 0) {
        return 1;
    }
    r.text = text + skip;
    r.size = size - skip;
    rbi_config_defaults_with(schema, scratch);
    const int result = read_text(&r);
    if (result == 0) {
        rbi_config_users_inherit(schema, scratch);
        memcpy(out, scratch, schema->size);
    }
    return result;
}

int rbi_config_parse_with(const struct rbi_config_schema *schema,
                          const char *text,
                          size_t size,
                          void *out,
                          void *scratch,
                          struct rbi_config_errors *errors)
{
    errors->count = 0;
    return rbi_config_parse_nested(schema, text, size, out, scratch, NULL, errors);
}
