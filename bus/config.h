/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_CONFIG_H
#define RINGBUS_BUS_CONFIG_H
/*
 * bus/config.h - configuration of ringbusd: YAML text to a checked structure. Pure:
 * text in, structure or list of errors out; reading the file is the caller's part.
 *
 * Strict: unknown and duplicate keys, aliases, anchors, tags, merge keys, several
 * documents, wrong types, bare numbers where a unit is needed and values out of range
 * are errors with file:line:column, key, what was expected, what was found, and
 * "did you mean" where a known key is near. All errors of a file are listed (20 at
 * most). Nothing half applied: the output is written on success only.
 *
 * One table (bus/config_schema.c) holds key, type, unit, default, range, whether a
 * change needs a restart, and its text; parser, printer, docs/configuration.md and the
 * reload report are driven by it.
 */
#include "bus/bridge_config.h"
#include "bus/pidf.h"
#include "shm/base.h"

#define RBI_CONFIG_TEXT_MAX   1048576U /* larger files are refused by name of this limit */
#define RBI_CONFIG_STRING_MAX 255U

enum rbi_log_level { RBI_LOG_ERROR = 0, RBI_LOG_WARNING = 1, RBI_LOG_INFO = 2, RBI_LOG_DEBUG = 3 };
enum rbi_config_loop { RBI_LOOP_AUTO = 0, RBI_LOOP_URING = 1, RBI_LOOP_EPOLL = 2 };

/** How much one user, or one of its endpoints, may make the daemon keep and do. */
struct rbi_config_limits {
    uint32_t connections;  /* quota.connections per uid */
    uint32_t instances;    /* quota.instances per uid */
    uint32_t links;        /* quota.links per endpoint */
    uint32_t user_links;   /* quota.user_links per uid: those that its endpoints have asked for */
    uint64_t bytes;        /* quota.bytes of shared memory per uid */
    uint32_t watches;      /* quota.watches per endpoint */
    uint32_t user_watches; /* quota.user_watches per uid */
    /* quota.control: control messages a second per endpoint, burst 2x */
    uint32_t control_per_s;
    /* quota.user_control: the same per uid */
    uint32_t user_control_per_s;
    /* quota.connects: new connections a second per uid, burst 10x */
    uint32_t connects_per_s;
    uint32_t nodes;      /* quota.nodes per uid */
    uint64_t node_bytes; /* quota.node_bytes per uid: their paths and values */
};

#define RBI_CONFIG_USERS_MAX 64U

/** A user with limits of its own: an entry of quota.users. */
struct rbi_config_user {
    uint32_t uid;
    uint32_t given;                  /* bit i: the i-th key of the section was given */
    struct rbi_config_limits limits; /* those not given are as for everybody */
};

struct rbi_config_users {
    uint32_t count;
    struct rbi_config_user items[RBI_CONFIG_USERS_MAX];
};

struct rbi_config {
    struct {
        char socket[RBI_CONFIG_STRING_MAX + 1]; /* daemon.socket; "" = standard place; restart */
        uint32_t socket_mode;                   /* daemon.socket_mode "0666"; octal text; restart */
        enum rbi_log_level log_level;           /* daemon.log_level */
        enum rbi_config_loop loop;              /* daemon.loop; restart */
        uint32_t handshake_timeout_ms;          /* daemon.handshake_timeout, 100ms..60s */
        /* daemon.request_timeout: rest of a begun frame, answer to INTRODUCE */
        uint32_t request_timeout_ms;
        /* daemon.return_time: for clients of the last daemon to come back to a new one, 0..60s */
        uint32_t return_time_ms;
        /* daemon.cluster_linger: how long an empty cluster is known, 1s..1000h */
        uint32_t cluster_linger_ms;
        /* daemon.send_queue: frames kept for a client that does not read, 16..65536 */
        uint32_t send_queue_max;
        char state_dir[RBI_CONFIG_STRING_MAX + 1]; /* daemon.state_dir; "" = usual place; restart */
    } daemon;
    struct {
        uint32_t slots;          /* directory.slots: endpoints, 64..1048576; grows */
        uint32_t clusters;       /* directory.clusters: 16..1048576; grows */
        uint64_t snapshot_bytes; /* directory.snapshots: 64KiB..1GiB; grows */
    } directory;
    struct rbi_config_limits quota;
    struct rbi_config_users quota_users; /* quota.users */
    struct {
        uint32_t interval_ms; /* liveness.interval, 10ms..60s */
        uint32_t misses;      /* liveness.misses, 1..100 */
        uint32_t debug_hold;  /* liveness.debug_hold: 0 or 1 */
    } liveness;
    struct {
        char key[RBI_CONFIG_STRING_MAX + 1];          /* tokens.key: file; "" = none */
        char previous_key[RBI_CONFIG_STRING_MAX + 1]; /* tokens.previous_key */
    } tokens;
    struct rbi_bridge_config bridge; /* other hosts (bus/bridge_config.h) */
};

/** The limits of a user: its own, or those of everybody. */
const struct rbi_config_limits *rbi_config_limits(const struct rbi_config *config, uint32_t uid);

struct rbi_config_error {
    unsigned line;   /* 1-based; 0 = the file as a whole */
    unsigned column; /* 1-based */
    char text[400];  /* without file:line:column; one line, printable bytes */
};
#define RBI_CONFIG_ERRORS_MAX 20U
struct rbi_config_errors {
    unsigned count; /* found; only the first RBI_CONFIG_ERRORS_MAX are kept */
    struct rbi_config_error items[RBI_CONFIG_ERRORS_MAX];
};

/** Fills @p config with the defaults. */
void rbi_config_defaults(struct rbi_config *config);
/**
 * Parses YAML text over the defaults. Untrusted input; time and memory are bounded by its length.
 *
 * A text without any key is an error, because a file that is just being written
 * looks like that; "{}" asks for the defaults. The sections of bus/governance.h are checked as
 * well and not kept; rbi_config_parse_all() keeps them.
 * @retval 0  @p out is written
 * @retval 1  @p errors has at least one entry; @p out is untouched
 * @retval -ENOMEM
 */
RBI_MUST_CHECK int rbi_config_parse(const char *text,
                                    size_t size,
                                    struct rbi_config *out,
                                    struct rbi_config_errors *errors);

/** One line for each difference between a running and a new configuration. */
typedef void (*rbi_config_diff_fn)(void *context,
                                   const char *key,
                                   const char *old_value,
                                   const char *new_value,
                                   bool needs_restart);
void rbi_config_diff(const struct rbi_config *running,
                     const struct rbi_config *next,
                     rbi_config_diff_fn report,
                     void *context);
/** Calls back once a key with its effective value in base units ("1000 ms"). */
typedef void (*rbi_config_print_fn)(void *context,
                                    const char *key,
                                    const char *value,
                                    bool is_default);
void rbi_config_print(const struct rbi_config *config, rbi_config_print_fn report, void *context);
/** The table behind docs/configuration.md: one call a key, in order. */
typedef void (*rbi_config_doc_fn)(void *context,
                                  const char *key,
                                  const char *type,
                                  const char *unit,
                                  const char *default_value,
                                  const char *range,
                                  bool needs_restart,
                                  const char *text);
void rbi_config_doc(rbi_config_doc_fn report, void *context);
/** The same of the section bridge, which is nested. */
void rbi_config_bridge_doc(rbi_config_doc_fn report, void *context);

#endif
