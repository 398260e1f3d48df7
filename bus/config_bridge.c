/* SPDX-License-Identifier: Apache-2.0 */
/* bus/config_bridge.c - the table of the section "bridge", and what follows from it alone. */
#include "bus/config_bridge.h"

#include "bus/governance_table.h"

#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000)
#define HOUR   (3600 * SECOND)
#define KIB    UINT64_C(1024)
#define MIB    (KIB * 1024)

/* clang-format off */
static const struct rbi_tree_field address_item =
    TEXT_ITEM(TEXT, "An address with its port: 10.0.0.2:7740, [fd00::2]:7740, beta.example:7740.",
              3, RBI_BRIDGE_ADDRESS_MAX);
static const struct rbi_tree_field glob_item =
    TEXT_ITEM(GLOB, "Clusters, by a pattern of their paths.", 1, RBI_GLOB_MAX);

#define OF struct rbi_bridge_peer
static const struct rbi_tree_field peer[] = {
    NEEDED(LABEL, "host", host, 1, RBI_HOST_NAME_MAX, "Its name, as in its certificate."),
    FIELD(TEXT, "address", address, 0, RBI_BRIDGE_ADDRESS_MAX, "",
          "Where it listens; \"\": it connects to us."),
    FIELD(NUMBER, "cost", cost, 0, RBI_BRIDGE_COST_MAX, "0",
          "Added to what the way to it costs: the dearer, the less it is used for others."),
};
static const struct rbi_tree_field peer_item = MAP_ITEM(peer);
#undef OF

#define OF struct rbi_bridge_limits
static const struct rbi_tree_field limits[] = {
    FIELD(NUMBER, "instances", instances, 1, 65536, "1024", "Instances of other hosts seen here."),
    FIELD(NUMBER, "streams", streams, 1, 65536, "4096", "Links to and from other hosts."),
    FIELD(SIZE, "queue", queue_bytes, 128 * KIB, 1024 * MIB, "4MiB",
          "Bytes that wait to be sent, of a connection; what needs more waits where it is."),
};
#undef OF

#define OF struct rbi_bridge_config
const struct rbi_tree_field rbi_config_bridge_fields[RBI_CONFIG_BRIDGE_FIELDS] = {
    NEEDED(LABEL, "host", host, 1, RBI_HOST_NAME_MAX,
           "Name of this host, as in its certificate: lower case, digits, dots and hyphens."),
    LIST("listen", listen, listen_count, RBI_BRIDGE_LISTEN_MAX, 0, &address_item,
         "Addresses at which other hosts connect; []: it only connects itself."),
    FIELD(BOOL, "start", start, 0, 1, "true",
          "ringbusd starts ringbus-bridge, watches it, and starts it again when it ends."),
    {.key = {.name = "user", .type = RBI_CONFIG_TYPE_NUMBER, .offset = offsetof(OF, user),
             .max = UINT32_MAX - 1,
             .text = "Id of a user whose bridge, started by hand, is taken as one beside that of "
             "root and of the daemon's own."},
     .kind = RBI_TREE_VALUE},
    LIST("peers", peers, peer_count, RBI_BRIDGE_PEERS_MAX, 0, &peer_item,
         "Neighbours; other hosts are reached through them."),
    FIELD(BOOL, "insecure", insecure, 0, 1, "false",
          "Without TLS: everybody who can connect is believed. Loopback addresses only."),
    FIELD(TEXT, "certificate", certificate, 0, RBI_BRIDGE_FILE_MAX, "",
          "File with the certificate of this host and its chain, PEM."),
    FIELD(TEXT, "key", key, 0, RBI_BRIDGE_FILE_MAX, "", "File with its private key, PEM."),
    FIELD(TEXT, "ca", ca, 0, RBI_BRIDGE_FILE_MAX, "",
          "File with the certificates that sign those of other hosts, PEM."),
    FIELD(TEXT, "crl", crl, 0, RBI_BRIDGE_FILE_MAX, "",
          "File with those that are revoked, PEM; \"\": none."),
    LIST("export", export.items, export.count, RBI_BRIDGE_GLOBS_MAX, 0, &glob_item,
         "Clusters of this host that others see; none when it is left out."),
    LIST("import", import.items, import.count, RBI_BRIDGE_GLOBS_MAX, 0, &glob_item,
         "Clusters of other hosts that are seen here; all that they export when it is left out."),
    FIELD(BOOL, "transit", transit, 0, 1, "true",
          "What other hosts say to each other may go through."),
    FIELD(DURATION, "ping_interval", ping_interval_ms, 10, 60 * SECOND, "1s",
          "How often hosts look whether the other is there."),
    FIELD(NUMBER, "ping_misses", ping_misses, 1, 100, "3",
          "PINGs without an answer after which a connection is given up."),
    FIELD(DURATION, "unreachable_after", unreachable_after_ms, 0, HOUR, "10s",
          "Links wait so long for a way to come back, and end then."),
    FIELD(DURATION, "grace", grace_ms, 0, 24 * HOUR, "1m",
          "Instances that are out of sight stay listed for so long."),
    FIELD(DURATION, "mass_hold", mass_hold_ms, 0, 24 * HOUR, "30s",
          "Most of a host's instances gone at once are believed so much later, or when confirmed."),
    FIELD(SIZE, "window", window_bytes, 4 * KIB, 16 * MIB, "512KiB",
          "Bytes of a link that may be under way, not yet known to be there."),
    FIELD(MICROS, "batch_delay", batch_delay_us, 0, 1000, "50us",
          "Small messages wait so long for more, while others are under way."),
    MAP("limits", limits, limits, "What other hosts may cost this one."),
};
#undef OF
/* clang-format on */

/* As a map, for walks. */
static const struct rbi_tree_field section = {.kind = RBI_TREE_MAP,
                                              .fields = rbi_config_bridge_fields,
                                              .field_count = RBI_CONFIG_BRIDGE_FIELDS};

/* ---- printing and comparing ------------------------------------------------------------------ */

static const uint32_t no_user = RBI_BRIDGE_NO_USER; /* the one number that is none */

/** Room for "bridge.limits.instances". */
#define KEY_MAX 64U

/** A key that is printed: of the section, or of its map of limits. */
struct printed {
    const struct rbi_tree_field *field;
    const char *base;  /* the structure around its member, in the running configuration */
    const char *other; /* in the one that it is compared with */
    char name[KEY_MAX];
};

typedef void (*printed_fn)(void *context, const struct printed *key);

/** The fields of a map but for maps in it. */
static void each_value(const struct rbi_tree_field *map,
                       const struct printed *around,
                       const char *prefix,
                       printed_fn use,
                       void *context)
{
    for (unsigned i = 0; i < map->field_count; i++) {
        struct printed at = *around;
        at.field = &map->fields[i];
        if (at.field->kind != RBI_TREE_MAP) {
            (void)snprintf(at.name, sizeof(at.name), "%.31s.%.31s", prefix, at.field->key.name);
            use(context, &at);
        }
    }
}

/** All keys: of the section, then of the maps in it, which have none in them. */
static void each_key(const struct printed *section_at, printed_fn use, void *context)
{
    each_value(&section, section_at, "bridge", use, context);
    for (unsigned i = 0; i < section.field_count; i++) {
        const struct rbi_tree_field *map = &section.fields[i];
        struct printed at = *section_at;
        char prefix[KEY_MAX / 2];
        if (map->kind == RBI_TREE_MAP) {
            at.base += map->key.offset;
            at.other += map->key.offset;
            (void)snprintf(prefix, sizeof(prefix), "bridge.%.24s", map->key.name);
            each_value(map, &at, prefix, use, context);
        }
    }
}

/** A value as text; of a list how many it has. */
static void key_print(const struct rbi_tree_field *field, const char *base, char *out, size_t size)
{
    const char *member = base + field->key.offset;
    uint32_t number = 0;
    if (field->kind == RBI_TREE_LIST) {
        memcpy(&number, base + field->count_offset, sizeof(number));
        (void)snprintf(out, size, "%u of them", (unsigned)number);
    } else if (field->key.type == RBI_CONFIG_TYPE_LABEL) {
        (void)snprintf(out, size, "\"%s\"", member);
    } else if (field->key.type == RBI_CONFIG_TYPE_MICROS) {
        memcpy(&number, member, sizeof(number));
        (void)snprintf(out, size, "%u us", (unsigned)number);
    } else if (field->key.type == RBI_CONFIG_TYPE_NUMBER &&
               memcmp(member, &no_user, sizeof(no_user)) == 0) {
        (void)snprintf(out, size, "none");
    } else {
        rbi_config_value_print(&field->key, base, out, size);
    }
}

struct print_run {
    rbi_config_print_fn report;
    void *context;
};

static void print_key(void *context, const struct printed *key)
{
    const struct print_run *run = context;
    char value[RBI_CONFIG_VALUE_MAX];
    char standard[RBI_CONFIG_VALUE_MAX];
    key_print(key->field, key->base, value, sizeof(value));
    key_print(key->field, key->other, standard, sizeof(standard));
    run->report(run->context, key->name, value, strcmp(value, standard) == 0);
}

void rbi_config_bridge_print(const struct rbi_bridge_config *config,
                             rbi_config_print_fn report,
                             void *context)
{
    struct print_run run = {.report = report, .context = context};
    static struct rbi_bridge_config defaults;
    if (!config->given) {
        return;
    }
    rbi_bridge_config_defaults(&defaults);
    struct printed at = {.base = (const char *)config, .other = (const char *)&defaults};
    each_key(&at, print_key, &run);
}

struct diff_run {
    rbi_config_diff_fn report;
    void *context;
};

static bool key_same(const struct printed *key)
{
    const struct rbi_tree_field *field = key->field;
    char old_value[RBI_CONFIG_VALUE_MAX];
    char new_value[RBI_CONFIG_VALUE_MAX];
    key_print(field, key->base, old_value, sizeof(old_value));
    key_print(field, key->other, new_value, sizeof(new_value));
    return strcmp(old_value, new_value) == 0 &&
           (field->kind != RBI_TREE_LIST ||
            memcmp(key->base + field->key.offset, key->other + field->key.offset,
                   field->item_size * field->key.max) == 0);
}

static void diff_key(void *context, const struct printed *key)
{
    const struct diff_run *run = context;
    char old_value[RBI_CONFIG_VALUE_MAX];
    char new_value[RBI_CONFIG_VALUE_MAX];
    if (!key_same(key)) {
        key_print(key->field, key->base, old_value, sizeof(old_value));
        key_print(key->field, key->other, new_value, sizeof(new_value));
        run->report(run->context, key->name, old_value, new_value, false);
    }
}

void rbi_config_bridge_diff(const struct rbi_bridge_config *running,
                            const struct rbi_bridge_config *next,
                            rbi_config_diff_fn report,
                            void *context)
{
    struct diff_run run = {.report = report, .context = context};
    struct printed at = {.base = (const char *)running, .other = (const char *)next};
    if (running->given != next->given) {
        report(context, "bridge", running->given ? running->host : "none",
               next->given ? next->host : "none", false);
    }
    if (running->given && next->given) {
        each_key(&at, diff_key, &run);
    }
}
