/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_CTL_H
#define RINGBUS_DAEMON_CTL_CTL_H
/*
 * daemon/ctl/ctl.h - ringbusctl: one table of commands and options (commands.c) drives
 * the parser, the help, and what the documentation is checked against. One file per
 * command; a command prints to standard output, complains on standard error, and
 * returns its exit code. One thread.
 */
#include "shm/base.h"

#include <stdio.h>

enum rbi_ctl_exit {
    RBI_CTL_OK = 0,
    RBI_CTL_FAILED = 1,
    RBI_CTL_USAGE = 2,
    RBI_CTL_NO_DAEMON = 3,
    RBI_CTL_NOT_FOUND = 4,
    RBI_CTL_TIMEOUT = 5,
    RBI_CTL_DENIED = 6,
};

/* Options: each command accepts those of its mask. */
#define RBI_CTL_JSON     0x001U
#define RBI_CTL_SOCKET   0x002U
#define RBI_CTL_WAIT     0x004U /* --timeout */
#define RBI_CTL_KEY      0x008U
#define RBI_CTL_LINES    0x010U
#define RBI_CTL_COUNT    0x020U
#define RBI_CTL_INTERVAL 0x040U
#define RBI_CTL_ECHO     0x080U
#define RBI_CTL_ALL      0x100U
#define RBI_CTL_SECONDS  0x200U
#define RBI_CTL_SIZE     0x400U
#define RBI_CTL_CPUS     0x800U
#define RBI_CTL_BUSY     0x1000U
#define RBI_CTL_SLEEP    0x2000U
#define RBI_CTL_PATH     0x4000U
#define RBI_CTL_TAG      0x8000U
#define RBI_CTL_METHOD   0x10000U
#define RBI_CTL_LABELS   0x20000U
#define RBI_CTL_SET      0x40000U
#define RBI_CTL_IDC      0x80000U
#define RBI_CTL_DRY_RUN  0x100000U
#define RBI_CTL_EXPECT   0x200000U
#define RBI_CTL_WHY      0x400000U
#define RBI_CTL_OFF      0x800000U
#define RBI_CTL_TAGS     0x10000000U
#define RBI_CTL_REVISION 0x20000000U
#define RBI_CTL_STATE    0x40000000U
#define RBI_CTL_SUBJECT  0x1000000U
#define RBI_CTL_TARGET   0x2000000U
#define RBI_CTL_TTL      0x4000000U
#define RBI_CTL_KEY_FILE 0x8000000U /* --key of token */
#define RBI_CTL_TRACE    0x80000000U

/* Ten years. */
#define RBI_CTL_TTL_MAX_S (UINT64_C(3660) * 86400)

/* Sizes of one --size, and the limits of --seconds and --size. */
#define RBI_CTL_SIZES_MAX   8U
#define RBI_CTL_SECONDS_MAX 60U
#define RBI_CTL_SIZE_MIN    16U        /* holds a number twice */
#define RBI_CTL_SIZE_MAX    (1U << 20) /* largest chunk of an endpoint with default options */

#define RBI_CTL_LABELS_MAX 4U

struct rbi_ctl_args;

struct rbi_ctl_command {
    const char *name;
    const char *operands; /* as shown in the usage line */
    unsigned operand_min;
    unsigned operand_max;
    unsigned options; /* RBI_CTL_* */
    const char *summary;
    const char *details; /* several lines, each ends with a newline */
    int (*run)(const struct rbi_ctl_args *args);
};

struct rbi_ctl_option {
    unsigned bit;
    const char *name;  /* with its two dashes */
    const char *value; /* NULL: takes none */
    const char *text;
};

/** What the command line said. Strings are borrowed from argv. */
struct rbi_ctl_args {
    const struct rbi_ctl_command *command;
    const char *operands[3];
    unsigned operand_count;
    unsigned given; /* RBI_CTL_* that were there */
    bool json;
    const char *socket; /* NULL: the usual places */
    const char *key;
    uint64_t count;
    uint32_t timeout_ms;
    uint32_t interval_ms;
    uint32_t seconds;
    uint32_t sizes[RBI_CTL_SIZES_MAX];
    unsigned size_count;
    unsigned cpus[2];
    const char *path;
    uint64_t expect;   /* of changes of the configuration */
    uint64_t revision; /* that a node must have; 0: any */
    const char *why;   /* NULL: not given */
    const char *tags;  /* of move; NULL: not given */
    const char *tag;   /* NULL: not given */
    uint32_t method;
    uint32_t labels[RBI_CTL_LABELS_MAX];
    const char *set;
    const char *idc;
    const char *state;
    const char *subject;
    const char *target;
    const char *key_file;
    uint64_t ttl_s;
};

extern const struct rbi_ctl_command rbi_ctl_commands[];
extern const unsigned rbi_ctl_command_count;
extern const struct rbi_ctl_option rbi_ctl_options[];
extern const unsigned rbi_ctl_option_count;

/** NULL when there is no such command. */
const struct rbi_ctl_command *rbi_ctl_command_find(const char *name);
/** "0 done" and so on, NULL for a code that is not used. */
const char *rbi_ctl_exit_text(int code);

/**
 * Reads the command line. Complaints go to standard error.
 * @retval RBI_CTL_OK; RBI_CTL_USAGE
 */
RBI_MUST_CHECK int rbi_ctl_args_parse(int argc, char **argv, struct rbi_ctl_args *out);
/** "5s", "200ms", "2m" or "0" to milliseconds. @retval 0; 1 not a duration */
RBI_MUST_CHECK int rbi_ctl_duration_parse(const char *text, uint32_t *out_ms);

/** Prints "ringbusctl: ..." (or a JSON object) to standard error. @return @p code */
int rbi_ctl_fail(const struct rbi_ctl_args *args, int code, const char *format, ...)
    RBI_PRINTF(3, 4);
/** The same for a negative enum ringbus_error, with its exit code. @p what: "cannot open" */
int rbi_ctl_fail_bus(const struct rbi_ctl_args *args,
                     int error,
                     const char *what,
                     const char *sentence);
/** Exit code that stands for an enum ringbus_error. */
int rbi_ctl_exit_of(int error);
/** Flushes standard output. @return @p code, or RBI_CTL_FAILED when it could not be written */
int rbi_ctl_finish(const struct rbi_ctl_args *args, int code);

uint64_t rbi_ctl_now_ns(void);

int rbi_ctl_status(const struct rbi_ctl_args *args);
int rbi_ctl_metrics(const struct rbi_ctl_args *args);
int rbi_ctl_ls(const struct rbi_ctl_args *args);
int rbi_ctl_deps(const struct rbi_ctl_args *args);
int rbi_ctl_alarms(const struct rbi_ctl_args *args);
int rbi_ctl_show(const struct rbi_ctl_args *args);
int rbi_ctl_hosts(const struct rbi_ctl_args *args);
int rbi_ctl_routes(const struct rbi_ctl_args *args);
int rbi_ctl_route(const struct rbi_ctl_args *args);
int rbi_ctl_bridge(const struct rbi_ctl_args *args);
int rbi_ctl_explain(const struct rbi_ctl_args *args);
int rbi_ctl_watch(const struct rbi_ctl_args *args);
int rbi_ctl_send(const struct rbi_ctl_args *args);
int rbi_ctl_recv(const struct rbi_ctl_args *args);
int rbi_ctl_call(const struct rbi_ctl_args *args);
int rbi_ctl_ping(const struct rbi_ctl_args *args);
int rbi_ctl_bench(const struct rbi_ctl_args *args);
int rbi_ctl_drain(const struct rbi_ctl_args *args);
int rbi_ctl_undrain(const struct rbi_ctl_args *args);
int rbi_ctl_unshield(const struct rbi_ctl_args *args);
int rbi_ctl_create(const struct rbi_ctl_args *args);
int rbi_ctl_set(const struct rbi_ctl_args *args);
int rbi_ctl_rm(const struct rbi_ctl_args *args);
int rbi_ctl_get(const struct rbi_ctl_args *args);
int rbi_ctl_check(const struct rbi_ctl_args *args);
int rbi_ctl_token(const struct rbi_ctl_args *args);
int rbi_ctl_apply(const struct rbi_ctl_args *args);
int rbi_ctl_describe(const struct rbi_ctl_args *args);
int rbi_ctl_diff(const struct rbi_ctl_args *args);
int rbi_ctl_history(const struct rbi_ctl_args *args);
int rbi_ctl_rollback(const struct rbi_ctl_args *args);
int rbi_ctl_isolate(const struct rbi_ctl_args *args);
int rbi_ctl_stage(const struct rbi_ctl_args *args);
int rbi_ctl_weight(const struct rbi_ctl_args *args);
int rbi_ctl_move(const struct rbi_ctl_args *args);
int rbi_ctl_limit(const struct rbi_ctl_args *args);
int rbi_ctl_mock(const struct rbi_ctl_args *args);
int rbi_ctl_version(const struct rbi_ctl_args *args);
int rbi_ctl_help(const struct rbi_ctl_args *args);

#endif
