/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_CONFIG_TREE_H
#define RINGBUS_BUS_CONFIG_TREE_H
/*
 * bus/config_tree.h - the nested part of a configuration: maps and lists of any shape that a
 * table describes, checked against it while they are read, and kept as a tree, so that several
 * texts can be laid over each other field by field. Pure, but for the memory of the tree.
 *
 * The nodes stand in the order of the text, each before what is in it: a subtree is one range of
 * the array, and walking needs neither recursion nor pointers.
 */
#include "bus/config_schema.h"

enum rbi_tree_kind {
    RBI_TREE_VALUE, /* a scalar */
    RBI_TREE_MAP,   /* its keys are those of the table */
    RBI_TREE_LIST,  /* any number of one field */
    RBI_TREE_NAMES, /* a map whose keys are free names, each with one field */
};

/** Flags of a field. */
#define RBI_TREE_REQUIRED 1U /* must stand in its map */
/* List: its items are maps with an id; the same id in a later text changes that item. */
#define RBI_TREE_KEYED 2U
#define RBI_TREE_BITS  4U /* list of choices: the member is a mask of them */
#define RBI_TREE_BIT   8U /* choice of two: clears or sets given_bit, and nothing else */

/** No count beside the array: what is not given is zero. */
#define RBI_TREE_NO_COUNT SIZE_MAX

struct rbi_tree_field {
    /* Name without those around it, NULL in lists; offset from the structure of the map around
     * it; min and max of a list are about the number of its items. */
    struct rbi_config_key key;
    enum rbi_tree_kind kind;
    unsigned flags;                      /* RBI_TREE_* */
    const struct rbi_tree_field *fields; /* of a map its keys, of lists and names the one in them */
    unsigned field_count;
    /* Value, or 0: set in the uint32_t member at given_offset. RBI_TREE_BIT: its bit there. */
    uint32_t given_bit;
    size_t count_offset; /* list: uint32_t member with the number of items */
    size_t item_size;    /* list: bytes of one; of texts as well */
    size_t given_offset;
    /* Map, or NULL: called before its keys are stored, in whatever order they stand.
     * @p first is the text of its first key in the table, or NULL when that was not given. */
    void (*prepare)(void *structure, const char *first, size_t length);
};

struct rbi_tree_node {
    const struct rbi_tree_field *field;
    struct rbi_config_place place;
    uint32_t depth;  /* 0: the root */
    uint32_t end;    /* index behind its subtree */
    uint32_t text;   /* offset of a value or a name in the texts, terminated */
    uint32_t length; /* of it */
};

/** A free name, to be looked up. */
struct rbi_tree_name {
    const char *text; /* terminated */
    uint32_t node;
};

struct rbi_tree {
    struct rbi_tree_node *nodes; /* nodes[0] is the root, a map, unless there are none */
    uint32_t count;
    uint32_t capacity;
    char *texts;
    uint32_t text_size;
    uint32_t text_capacity;
};

#define RBI_TREE_NULL ((struct rbi_tree){.nodes = NULL})
/** Lists and maps in each other, the root counted. */
#define RBI_TREE_DEPTH_MAX 8U
/** Room for the name of a node: "clusters[12].limits[3].rate". */
#define RBI_TREE_NAME_MAX 512U

/** Accepts RBI_TREE_NULL. */
void rbi_tree_deinit(struct rbi_tree *tree);
const char *rbi_tree_text(const struct rbi_tree *tree, const struct rbi_tree_node *node);
/** First node in @p parent, or 0 when it has none; indexes of nodes but the root's are above 0. */
uint32_t rbi_tree_first(const struct rbi_tree *tree, uint32_t parent);
/** Next node in the same map or list, or 0. */
uint32_t rbi_tree_next(const struct rbi_tree *tree, uint32_t parent, uint32_t node);
/**
 * The names in a map of names, ascending, to be searched.
 * @param count  set; 0 with none
 * @return allocated, to be freed, and good while the tree stays; NULL: no memory
 */
struct rbi_tree_name *rbi_tree_names(const struct rbi_tree *tree, uint32_t map, uint32_t *count);
/** Order of struct rbi_tree_name by text, then by place. */
int rbi_tree_name_compare(const void *a, const void *b);
/** Node of a key of a map, or 0. */
uint32_t rbi_tree_find(const struct rbi_tree *tree, uint32_t parent, const char *name);

/** Names the list that had no room. */
typedef void (*rbi_tree_full_fn)(void *context, const struct rbi_tree_node *list);
/**
 * Stores what a map of the tree says in a structure; members that it does not name stay as they
 * are. Lists are replaced; items of keyed ones are looked up by their id, or appended, with the
 * defaults of the table.
 * @param full  called for each item that a list had no room for; may be NULL
 */
void rbi_tree_apply(const struct rbi_tree *tree,
                    uint32_t map,
                    void *structure,
                    rbi_tree_full_fn full,
                    void *context);
/** Stores the defaults of a table's values, maps in it included; lists stay as they are. */
void rbi_tree_defaults(const struct rbi_tree_field *map, void *structure);

/* ---- reading ---------------------------------------------------------------------------- */

struct rbi_tree_frame {
    uint32_t node;
    bool value_next; /* map: the key has been read */
    uint32_t known;  /* map: the node of that key, 0: not known, its value is passed over */
    uint32_t items;  /* of a list or names, so far */
};

/** Takes the events of a YAML reader; errors are listed, and what they are about is left out. */
struct rbi_tree_builder {
    struct rbi_tree *tree;
    struct rbi_config_errors *errors;
    unsigned depth; /* frames in use */
    unsigned skip;  /* open maps and lists inside something that is passed over */
    bool no_memory;
    struct rbi_tree_frame frames[RBI_TREE_DEPTH_MAX + 1];
};

/** Makes the root. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_tree_builder_init(struct rbi_tree_builder *builder,
                                         struct rbi_tree *tree,
                                         const struct rbi_tree_field *root,
                                         struct rbi_config_errors *errors);
/**
 * A key of the root; its value follows. @return false: there is none of this name
 */
bool rbi_tree_begin(struct rbi_tree_builder *builder,
                    struct rbi_config_place place,
                    const char *name,
                    size_t length);
/** The key of the root that is near to this name, or NULL. */
const char *
rbi_tree_nearest(const struct rbi_tree_builder *builder, const char *name, size_t length);
/** Whether the value of rbi_tree_begin() is complete. */
bool rbi_tree_done(const struct rbi_tree_builder *builder);
/** @param plain  without quotes: nothing and "~" are no values then */
void rbi_tree_scalar(struct rbi_tree_builder *builder,
                     struct rbi_config_place place,
                     const char *text,
                     size_t length,
                     bool plain);
void rbi_tree_start(struct rbi_tree_builder *builder, struct rbi_config_place place, bool map);
void rbi_tree_end(struct rbi_tree_builder *builder);
/** An alias, which was reported: it is neither key nor value. */
void rbi_tree_alias(struct rbi_tree_builder *builder);
/**
 * As rbi_config_parse_with(), with sections that are trees beside those of @p schema.
 * @param nested  or NULL; its tree is the caller's, whatever comes of it
 * @param errors  those that are in it stay, and make the text a wrong one
 */
RBI_MUST_CHECK int rbi_config_parse_nested(const struct rbi_config_schema *schema,
                                           const char *text,
                                           size_t size,
                                           void *out,
                                           void *scratch,
                                           struct rbi_tree_builder *nested,
                                           struct rbi_config_errors *errors);

/** Name of a node for messages, as a path from the root. @return @p buffer */
const char *rbi_tree_name(const struct rbi_tree *tree, uint32_t node, char *buffer, size_t size);

#endif
