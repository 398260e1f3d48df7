/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    enum rbi_log_level level;
    bool journal;
    uint64_t dropped;
} log_state = {.level = RBI_LOG_INFO};

void rbi_log_init(void)
{
    log_state.journal = getenv("JOURNAL_STREAM") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

void rbi_log_set_level(enum rbi_log_level level)
{
    log_state.level = level;
}

const char *rbi_log_errno(int error)
{
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown error";
}

uint64_t rbi_log_dropped(void)
{
    return log_state.dropped;
}

/** Writes a line without ever waiting for whoever reads it. */
static void log_write(const char *line, size_t size)
{
    ssize_t n = send(STDERR_FILENO, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == ENOTSOCK) {
        /* Setting O_NONBLOCK would change the descriptor for everybody who shares it. */
        struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
        n = poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) ? write(STDERR_FILENO, line, size)
                                                                 : -1;
    }
    if (n != (ssize_t)size) {
        log_state.dropped++;
    }
}

void rbi_log(enum rbi_log_level level, const char *event, const char *format, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    static const int priorities[] = {3, 4, 6, 7};
    char line[RBI_LOG_LINE_MAX];
    if (level > log_state.level) {
        return;
    }
    char prefix[8] = "";
    if (log_state.journal) {
        (void)snprintf(prefix, sizeof(prefix), "<%d>", priorities[level]);
    }
    int used =
        snprintf(line, sizeof(line) - 1, "%slevel=%s event=%s ", prefix, names[level], event);
    RBI_ASSERT(used > 0 && (size_t)used < sizeof(line) - 1);
    va_list args;
    va_start(args, format);
    const int more = vsnprintf(line + used, sizeof(line) - 1 - (size_t)used, format, args);
    va_end(args);
    if (more <= 0) {
        used--; /* the blank */
    } else {
        used = used + more < (int)sizeof(line) - 1 ? used + more : (int)sizeof(line) - 2;
    }
    line[used++] = '\n';
    log_write(line, (size_t)used);
}

const char *rbi_log_quote(struct rbi_log_text *out, const char *text, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    const size_t room = sizeof(out->bytes) - 6; /* an escape, the quote, the end */
    size_t used = 0;
    out->bytes[used++] = '"';
    for (size_t i = 0; i < length && used < room; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            out->bytes[used++] = (char)c;
        } else {
            out->bytes[used++] = '\\';
            out->bytes[used++] = 'x';
            out->bytes[used++] = hex[c >> 4];
            out->bytes[used++] = hex[c & 15];
        }
    }
    out->bytes[used++] = '"';
    out->bytes[used] = '\0';
    return out->bytes;
}

const char *rbi_log_pid(struct rbi_log_pid *out, uint32_t pid)
{
    if (pid == 0) {
        return "unknown";
    }
    (void)snprintf(out->bytes, sizeof(out->bytes), "%" PRIu32, pid);
    return out->bytes;
}

bool rbi_log_limit_pass(struct rbi_log_limit *limit,
                        uint64_t now_ns,
                        uint64_t interval_ns,
                        uint64_t *suppressed)
{
    if (now_ns < limit->next_ns) {
        limit->suppressed++;
        return false;
    }
    *suppressed = limit->suppressed;
    limit->suppressed = 0;
    limit->next_ns = now_ns + interval_ns;
    return true;
}
