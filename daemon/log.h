/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LOG_H
#define RINGBUS_DAEMON_LOG_H
/*
 * daemon/log.h - structured lines on standard error: "event=NAME key=value ...", with
 * a "<N>" priority in front when the journal reads them. Never waits: a line that
 * the reader has no room for is dropped and counted. One thread.
 */
#include "bus/config.h"

/** Longest line, bytes; longer ones are cut. Below PIPE_BUF: a line is written whole or not. */
#define RBI_LOG_LINE_MAX 1024U

void rbi_log_init(void);
void rbi_log_set_level(enum rbi_log_level level);
uint64_t rbi_log_dropped(void);
/** Text of an errno value, positive; never NULL. */
const char *rbi_log_errno(int error);

/**
 * @param event   word that names what happened
 * @param format  further key=value pairs
 */
void rbi_log(enum rbi_log_level level, const char *event, const char *format, ...) RBI_PRINTF(3, 4);

/** Text in a form that is safe in a line: quoted, everything else than printable ASCII escaped. */
struct rbi_log_text {
    char bytes[160];
};
/** Usage: rbi_log_quote(&(struct rbi_log_text){{0}}, text, length). */
const char *rbi_log_quote(struct rbi_log_text *out, const char *text, size_t length);

/** A process number for people to read: "unknown" for one of another PID namespace. */
struct rbi_log_pid {
    char bytes[12];
};
/** @param pid  0: the kernel has no number for it here */
const char *rbi_log_pid(struct rbi_log_pid *out, uint32_t pid);

/** Lets one line through in each interval. Zero-initialise. */
struct rbi_log_limit {
    uint64_t next_ns;
    uint64_t suppressed; /* since the last line */
};
/**
 * @param suppressed  lines held back since the last one; set when true is returned
 * @return whether to log now
 */
bool rbi_log_limit_pass(struct rbi_log_limit *limit,
                        uint64_t now_ns,
                        uint64_t interval_ns,
                        uint64_t *suppressed);

#endif
