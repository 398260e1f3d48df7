/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/config.h"

#include "bus/config_tree.h"
#include "bus/governance_table.h"
#include "daemon/broker/rename.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000)
#define HOUR   (3600 * SECOND)

static const char *const flags[] = {"false", "true", NULL};

/* clang-format off */
#define OF struct rbi_broker_side
static const struct rbi_tree_field upstream_item =
    TEXT_ITEM(GLOB, "path of an instance", 1, RBI_GLOB_MAX);
static const struct rbi_tree_field side[] = {
    NEEDED(LABEL, "name", name, 1, RBI_LABEL_MAX, "Its name in this file."),
    NEEDED(TEXT, "path", path, 1, RBI_PATH_MAX,
           "Who the broker is on this bus; its portals there have the same instance."),
    FIELD(TEXT, "socket", socket, 0, RBI_CONFIG_STRING_MAX, "",
          "Of the daemon of that bus; empty: where clients look."),
    FIELD(TEXT, "token_file", token, 0, RBI_CONFIG_STRING_MAX, "",
          "Holds the token of the broker on this bus, one line."),
    LIST("upstream", upstream, upstream_count, RBI_BROKER_UPSTREAM_MAX, 0, &upstream_item,
         "Brokers of this bus whose word for the origin of a message is passed on; of all others "
         "the sender is the origin."),
};
#undef OF

#define OF struct rbi_broker_export
static const struct rbi_tree_field export[] = {
    NEEDED(LABEL, "id", id, 1, RBI_LABEL_MAX, "Names it in the log."),
    NEEDED(LABEL, "from", from, 1, RBI_LABEL_MAX, "The side on which the clusters are."),
    NEEDED(LABEL, "to", to, 1, RBI_LABEL_MAX, "The side on which they are shown."),
    NEEDED(GLOB, "match", match, 1, RBI_GLOB_MAX,
           "Path of clusters: elements as they stand, * for any one, ** at the end for the rest."),
    NEEDED(GLOB, "as", as, 1, RBI_GLOB_MAX,
           "Their path where they are shown; its * and ** stand for those of match, in order."),
    FLAG("brokers", brokers,
         "What is found there are brokers: the address of one instance goes on to them."),
    FLAG("redeliver", redeliver,
         "One-way messages and requests that an instance has not handled when it ends go to "
         "another one."),
};
#undef OF

#define OF struct rbi_broker_chunks
static const struct rbi_tree_field chunks[] = {
    NEEDED(SIZE, "chunk", bytes, 64, 1U << 30, "Largest payload that it takes."),
    NEEDED(NUMBER, "count", count, 1, 65536, "How many of them."),
};
#undef OF

#define OF struct rbi_broker_config
static const struct rbi_tree_field chunks_item = MAP_ITEM(chunks);
static const struct rbi_tree_field broker[] = {
    FIELD(DURATION, "request_timeout", request_timeout_ms, 1, HOUR, "30s",
          "Of requests that name no deadline of their own."),
    FIELD(DURATION, "hold", hold_ms, 0, HOUR, "3s",
          "So long a one-way message waits for a receiver that is not ready; then its sender is "
          "told."),
    FIELD(DURATION, "drain", drain_ms, 0, HOUR, "10s", "Leaving takes at most so long."),
    FIELD(NUMBER, "requests", requests, 1, 1000000, "1024",
          "Requests of one caller that may be under way."),
    FIELD(MICROS, "spin", spin_us, 0, 1000000, "0us",
          "It looks for so long before it sleeps: faster, and a core that is busy."),
    FIELD(POWER, "lane", lane_bytes, 4096, 67108864, "65536", "Bytes of the lane towards a peer."),
    LIST("pool", pool, pool_count, RBI_BROKER_POOL_MAX, 0, &chunks_item,
         "Chunks of each endpoint for payloads that do not fit a lane, ascending; none: 16 of "
         "16 KiB, 4 of 128 KiB, 2 of 1 MiB."),
};
static const struct rbi_tree_field side_item = MAP_ITEM(side);
static const struct rbi_tree_field export_item = MAP_ITEM(export);
static const struct rbi_tree_field sections[] = {
    {.key = {.name = "broker", .offset = 0, .text = "How it forwards."},
     .kind = RBI_TREE_MAP, .fields = broker, .field_count = RBI_ARRAY_SIZE(broker)},
    LIST("sides", sides, side_count, RBI_BROKER_SIDES_MAX, RBI_TREE_KEYED | RBI_TREE_REQUIRED,
         &side_item, "The buses that it stands on, or the businesses of one."),
    LIST("exports", exports, export_count, RBI_BROKER_EXPORTS_MAX, RBI_TREE_KEYED, &export_item,
         "What is shown where. Nothing else is."),
};
#undef OF
static const struct rbi_tree_field schema = {
    .key = {.name = NULL}, .kind = RBI_TREE_MAP,
    .fields = sections, .field_count = RBI_ARRAY_SIZE(sections)};
/* clang-format on */

/* ---- what no single value tells ------------------------------------------------------------- */

static bool find_side(const struct rbi_broker_config *config, const char *name, uint32_t *at)
{
    for (uint32_t i = 0; i < config->side_count; i++) {
        if (strcmp(config->sides[i].name, name) == 0) {
            *at = i;
            return true;
        }
    }
    return false;
}

static struct rbi_config_place
place_of(const struct rbi_tree *tree, const char *list, uint32_t at, const char *key)
{
    uint32_t node = rbi_tree_first(tree, rbi_tree_find(tree, 0, list));
    while (at-- > 0) {
        node = rbi_tree_next(tree, rbi_tree_find(tree, 0, list), node);
    }
    const uint32_t value = rbi_tree_find(tree, node, key);
    return tree->nodes[value != 0 ? value : node].place;
}

static void check_side(const struct rbi_tree *tree,
                       const struct rbi_broker_config *config,
                       uint32_t at,
                       struct rbi_config_errors *errors)
{
    const struct rbi_broker_side *own = &config->sides[at];
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (rbi_pidf_parse(own->path, strlen(own->path), &pidf, &info) != 0 || pidf.instance == 0) {
        rbi_config_error_add(errors, place_of(tree, "sides", at, "path"),
                             "sides[%u].path: expected the path of an instance, seven elements",
                             at);
    }
    for (uint32_t i = 0; i < at; i++) {
        const struct rbi_broker_side *other = &config->sides[i];
        if (strcmp(own->path, other->path) == 0 && strcmp(own->socket, other->socket) == 0) {
            rbi_config_error_add(errors, place_of(tree, "sides", at, "path"),
                                 "sides[%u].path: side %s has it on the same bus", at, other->name);
        }
    }
}

/* Two exports whose names may be the same would both answer to them. */
static void check_names(const struct rbi_tree *tree,
                        const struct rbi_broker_config *config,
                        uint32_t at,
                        struct rbi_config_errors *errors)
{
    const struct rbi_broker_export *own = &config->exports[at];
    for (uint32_t i = 0; i < at; i++) {
        const struct rbi_broker_export *other = &config->exports[i];
        if (own->to_side == other->to_side && rbi_rename_meet(own->as, other->as)) {
            rbi_config_error_add(errors, place_of(tree, "exports", at, "as"),
                                 "exports[%u].as: export %s has names of the same kind there", at,
                                 other->id);
        }
    }
    if (own->from_side == own->to_side && rbi_rename_meet(own->match, own->as)) {
        rbi_config_error_add(errors, place_of(tree, "exports", at, "as"),
                             "exports[%u].as: on one side it must be another name than match", at);
    }
}

static void check_export(const struct rbi_tree *tree,
                         struct rbi_broker_config *config,
                         uint32_t at,
                         struct rbi_config_errors *errors)
{
    struct rbi_broker_export *own = &config->exports[at];
    const unsigned before = errors->count;
    if (!find_side(config, own->from, &own->from_side)) {
        rbi_config_error_add(errors, place_of(tree, "exports", at, "from"),
                             "exports[%u].from: there is no side %s", at, own->from);
    }
    if (!find_side(config, own->to, &own->to_side)) {
        rbi_config_error_add(errors, place_of(tree, "exports", at, "to"),
                             "exports[%u].to: there is no side %s", at, own->to);
    }
    if (!rbi_rename_valid(own->match)) {
        rbi_config_error_add(errors, place_of(tree, "exports", at, "match"),
                             "exports[%u].match: expected the path of a cluster, six elements, of "
                             "which some may be *, the last ones **",
                             at);
    } else if (!rbi_rename_fits(own->match, own->as)) {
        rbi_config_error_add(errors, place_of(tree, "exports", at, "as"),
                             "exports[%u].as: expected the path of a cluster with as many * as "
                             "match has, and ** at the end if that has",
                             at);
    }
    if (errors->count == before) {
        check_names(tree, config, at, errors);
    }
}

static int take(const struct rbi_tree *tree,
                struct rbi_broker_config *config,
                struct rbi_config_errors *errors)
{
    memset(config, 0, sizeof *config);
    rbi_tree_defaults(&schema, config);
    if (tree->count > 0) {
        rbi_tree_apply(tree, 0, config, NULL, NULL);
    }
    for (uint32_t i = 0; i < config->side_count; i++) {
        check_side(tree, config, i, errors);
    }
    for (uint32_t i = 0; i < config->export_count; i++) {
        check_export(tree, config, i, errors);
    }
    for (uint32_t i = 1; i < config->pool_count; i++) {
        if (config->pool[i].bytes <= config->pool[i - 1].bytes) {
            rbi_config_error_add(errors, (struct rbi_config_place){0},
                                 "broker.pool[%u].chunk: expected sizes that ascend", i);
        }
    }
    if (config->side_count == 0 && errors->count == 0) {
        rbi_config_error_add(errors, (struct rbi_config_place){0}, "sides: expected one at least");
    }
    return errors->count > 0 ? 1 : 0;
}

int rbi_broker_config_parse(const char *text,
                            size_t size,
                            struct rbi_broker_config *out,
                            struct rbi_config_errors *errors)
{
    static const struct rbi_config_schema none = {.keys = NULL};
    struct rbi_tree tree = RBI_TREE_NULL;
    struct rbi_tree_builder builder;
    char room[1];
    errors->count = 0;
    struct rbi_broker_config *config = malloc(sizeof *config);
    int r = config == NULL ? -ENOMEM : rbi_tree_builder_init(&builder, &tree, &schema, errors);
    if (r == 0) {
        r = rbi_config_parse_nested(&none, text, size, room, room, &builder, errors);
    }
    if (r == 0) {
        r = take(&tree, config, errors);
    }
    if (r == 0) {
        *out = *config;
    }
    rbi_tree_deinit(&tree);
    free(config);
    return r;
}
