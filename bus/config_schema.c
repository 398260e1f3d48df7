/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_schema.c - the one table of keys, and what follows from it alone:
 * defaults, reload report, effective values, documentation.
 */
#include "bus/config_schema.h"

#include "bus/config_bridge.h"

#include <string.h>

#define AT(member) offsetof(struct rbi_config, member)
#define KIB        UINT64_C(1024)
#define MIB        (KIB * 1024)
#define GIB        (MIB * 1024)
#define SECOND     UINT64_C(1000)

/* The parser stores enums as uint32_t. */
_Static_assert(sizeof(enum rbi_log_level) == 4 && sizeof(enum rbi_config_loop) == 4, "enum size");

static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL};
static const char *const switches[] = {"false", "true", NULL};
static const char *const loops[] = {"auto", "uring", "epoll", NULL};

/* clang-format off */
#define TEXT     RBI_CONFIG_TYPE_TEXT
#define NUMBER   RBI_CONFIG_TYPE_NUMBER
#define RATE     RBI_CONFIG_TYPE_RATE
#define DURATION RBI_CONFIG_TYPE_DURATION
#define SIZE     RBI_CONFIG_TYPE_SIZE
#define MODE     RBI_CONFIG_TYPE_MODE
#define CHOICE   RBI_CONFIG_TYPE_CHOICE
#define USERS    RBI_CONFIG_TYPE_USERS

/* Name, type, needs restart, member, smallest, largest, default, choices, text. */
static const struct rbi_config_key keys[] = {
    {"daemon.socket", TEXT, true, AT(daemon.socket), 0, 107, "", NULL,
     "Path of the Unix socket that clients connect to. Empty: /run/ringbus/bus.sock where that "
     "folder can be used, else $XDG_RUNTIME_DIR/ringbus/bus.sock."},
    {"daemon.socket_mode", MODE, true, AT(daemon.socket_mode), 0, 0777, "0666", NULL,
     "File mode of the socket: who may connect."},
    {"daemon.log_level", CHOICE, false, AT(daemon.log_level), 0, 3, "info", log_levels,
     "Least important line that is logged."},
    {"daemon.loop", CHOICE, true, AT(daemon.loop), 0, 2, "auto", loops,
     "Event loop. auto: io_uring where the kernel allows it, else epoll."},
    {"daemon.handshake_timeout", DURATION, false, AT(daemon.handshake_timeout_ms),
     100, 60 * SECOND, "5s", NULL,
     "A connection that has not said HELLO by then is closed."},
    {"daemon.request_timeout", DURATION, false, AT(daemon.request_timeout_ms),
     100, 60 * SECOND, "5s", NULL,
     "Longest wait for the rest of a message that has begun, and for a server's answer to an "
     "introduction."},
    {"daemon.return_time", DURATION, true, AT(daemon.return_time_ms), 0, 60 * SECOND, "2s", NULL,
     "After a start: time for the clients of the daemon before to come back; until then nobody is "
     "taken for gone."},
    {"daemon.cluster_linger", DURATION, false, AT(daemon.cluster_linger_ms), SECOND,
     3600 * SECOND * 1000, "24h", NULL,
     "How long a cluster stays known after its last instance has left: until then callers are told "
     "that nobody is there now, afterwards that there is no such service."},
    {"daemon.send_queue", NUMBER, false, AT(daemon.send_queue_max), 16, 65536, "1024", NULL,
     "Messages kept for a client that does not read. From three quarters on events are dropped, "
     "and the client is told to read the directory again; when it is full the client is closed."},
    {"daemon.state_dir", TEXT, true, AT(daemon.state_dir), 0, 200, "", NULL,
     "Folder for what was applied while it ran (ringbusctl apply, isolate and the like). Empty: "
     "$STATE_DIRECTORY of the service manager; with the socket in /run/ringbus /var/lib/ringbus, "
     "with that of a session $XDG_STATE_HOME/ringbus; else files beside the socket."},

    {"directory.slots", NUMBER, true, AT(directory.slots), 64, 1048576, "4096", NULL,
     "Endpoints that the directory has room for at start; it grows by itself."},
    {"directory.clusters", NUMBER, true, AT(directory.clusters), 16, 1048576, "1024", NULL,
     "Clusters that the directory has room for at start; it grows by itself."},
    {"directory.snapshots", SIZE, true, AT(directory.snapshot_bytes), 64 * KIB, GIB, "4MiB", NULL,
     "Memory for the clusters' instance lists at start; it grows by itself."},

    {"quota.connections", NUMBER, false, AT(quota.connections), 1, 1048576, "4096", NULL,
     "Connections to the daemon per user id."},
    {"quota.instances", NUMBER, false, AT(quota.instances), 1, 1048576, "256", NULL,
     "Registered instances per user id."},
    {"quota.links", NUMBER, false, AT(quota.links), 1, 1048576, "1024", NULL,
     "Links per endpoint, whoever asked for them. Of what is left, another user's endpoints get a "
     "fair share: half at most when there is one such user, less with more."},
    {"quota.user_links", NUMBER, false, AT(quota.user_links), 1, 4194304, "32768", NULL,
     "Links per user id that its endpoints have asked for."},
    {"quota.bytes", SIZE, false, AT(quota.bytes), MIB, 1024 * GIB, "512MiB", NULL,
     "Shared memory that the endpoints of one user id may offer, pools and lanes together. What "
     "its servers offer to the clients of another user is that user's fair share at most."},
    {"quota.watches", NUMBER, false, AT(quota.watches), 1, 1048576, "4096", NULL,
     "Watched prefixes and targets per endpoint."},
    {"quota.user_watches", NUMBER, false, AT(quota.user_watches), 1, 4194304, "32768", NULL,
     "Watched prefixes and targets per user id."},
    {"quota.nodes", NUMBER, false, AT(quota.nodes), 1, 1048576, "4096", NULL,
     "Nodes of the tree per user id (docs/guide/directory.md)."},
    {"quota.node_bytes", SIZE, false, AT(quota.node_bytes), 1024, GIB, "1MiB", NULL,
     "Paths and values of those nodes, together."},
    {"quota.control", RATE, false, AT(quota.control_per_s), 1, 1000000, "200", NULL,
     "Control messages per endpoint; bursts of twice as many pass."},
    {"quota.user_control", RATE, false, AT(quota.user_control_per_s), 1, 10000000, "20000", NULL,
     "Control messages per user id, all its endpoints together; bursts of twice as many pass."},
    {"quota.connects", RATE, false, AT(quota.connects_per_s), 1, 1000000, "50", NULL,
     "New connections per user id; bursts of ten times as many pass."},
    {"quota.users", USERS, false, AT(quota_users), 0, RBI_CONFIG_USERS_MAX, "{}", NULL,
     "Users with limits of their own: below each id any of the keys above. What is not given is as "
     "for everybody. Users that the daemon's user namespace does not know are all 65534 to it."},

    {"liveness.interval", DURATION, false, AT(liveness.interval_ms), 10, 60 * SECOND, "1s", NULL,
     "PING interval of links whose requester names none itself (ping_interval_ms in ringbus.h). A "
     "reload changes links that are up as well."},
    {"liveness.misses", NUMBER, false, AT(liveness.misses), 1, 100, "3", NULL,
     "PINGs without an answer after which such a requester calls the link down."},
    {"liveness.debug_hold", CHOICE, false, AT(liveness.debug_hold), 0, 1, "false", switches,
     "For clients that start from now on and name nothing else: they may be stopped in a debugger, "
     "and their peers wait for them without end. Their death is noticed as ever."},

    {"tokens.key", TEXT, false, AT(tokens.key), 0, RBI_CONFIG_STRING_MAX, "", NULL,
     "File with the key that signs tokens, 0600, of root or the daemon's user; read again with "
     "each reload. Empty: tokens are not looked at."},
    {"tokens.previous_key", TEXT, false, AT(tokens.previous_key), 0, RBI_CONFIG_STRING_MAX, "",
     NULL,
     "A second one that counts as well: the key before, until its tokens are over, or the next one "
     "before its first token is given out."},
};
/* clang-format on */
_Static_assert(RBI_ARRAY_SIZE(keys) <= RBI_CONFIG_KEYS_MAX, "table size");

const struct rbi_config_schema rbi_config_schema = {keys, RBI_ARRAY_SIZE(keys),
                                                    sizeof(struct rbi_config)};

void rbi_config_defaults_with(const struct rbi_config_schema *schema, void *config)
{
    memset(config, 0, schema->size);
    for (size_t i = 0; i < schema->count; i++) {
        const struct rbi_config_key *key = &schema->keys[i];
        struct rbi_config_fault fault;
        const size_t length = strlen(key->default_text);
        if (key->type == RBI_CONFIG_TYPE_USERS) {
            continue; /* none, which is what zeros say */
        }
        RBI_ASSERT(rbi_config_value_parse(key, key->default_text, length, config, &fault) == 0);
    }
}

void rbi_config_defaults(struct rbi_config *config)
{
    rbi_config_defaults_with(&rbi_config_schema, config);
    rbi_bridge_config_defaults(&config->bridge);
}

void rbi_config_diff(const struct rbi_config *running,
                     const struct rbi_config *next,
                     rbi_config_diff_fn report,
                     void *context)
{
    for (size_t i = 0; i < RBI_ARRAY_SIZE(keys); i++) {
        char old_value[RBI_CONFIG_VALUE_MAX];
        char new_value[RBI_CONFIG_VALUE_MAX];
        if (keys[i].type == RBI_CONFIG_TYPE_USERS) {
            rbi_config_users_diff(&rbi_config_schema, running, next, report, context);
            continue;
        }
        rbi_config_value_print(&keys[i], running, old_value, sizeof old_value);
        rbi_config_value_print(&keys[i], next, new_value, sizeof new_value);
        if (strcmp(old_value, new_value) != 0) {
            report(context, keys[i].name, old_value, new_value, keys[i].restart);
        }
    }
    rbi_config_bridge_diff(&running->bridge, &next->bridge, report, context);
}

void rbi_config_print(const struct rbi_config *config, rbi_config_print_fn report, void *context)
{
    struct rbi_config defaults;
    rbi_config_defaults(&defaults);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(keys); i++) {
        char value[RBI_CONFIG_VALUE_MAX];
        char standard[RBI_CONFIG_VALUE_MAX];
        if (keys[i].type == RBI_CONFIG_TYPE_USERS && config->quota_users.count > 0) {
            rbi_config_users_print(&rbi_config_schema, config, report, context);
            continue;
        }
        rbi_config_value_print(&keys[i], config, value, sizeof value);
        rbi_config_value_print(&keys[i], &defaults, standard, sizeof standard);
        report(context, keys[i].name, value, strcmp(value, standard) == 0);
    }
    rbi_config_bridge_print(&config->bridge, report, context);
}

void rbi_config_doc(rbi_config_doc_fn report, void *context)
{
    for (size_t i = 0; i < RBI_ARRAY_SIZE(keys); i++) {
        char range[RBI_CONFIG_VALUE_MAX];
        rbi_config_value_range(&keys[i], range, sizeof range);
        report(context, keys[i].name, rbi_config_type_name(keys[i].type),
               rbi_config_type_unit(keys[i].type), keys[i].default_text, range, keys[i].restart,
               keys[i].text);
    }
}
