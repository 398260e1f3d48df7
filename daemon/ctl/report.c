/* SPDX-License-Identifier: Apache-2.0 */
/* How ringbusctl complains and ends. */
#include "daemon/ctl/ctl.h"
#include "daemon/ctl/json.h"

#include <errno.h>
#include <ringbus/ringbus.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

uint64_t rbi_ctl_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int rbi_ctl_fail(const struct rbi_ctl_args *args, int code, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stderr);
        rbi_ctl_json_text(&json, "error", text);
        rbi_ctl_json_i64(&json, "exit", code);
        rbi_ctl_json_end(&json);
    } else {
        fprintf(stderr, "ringbusctl: %s\n", text);
    }
    return code;
}

int rbi_ctl_exit_of(int error)
{
    switch (error) {
    case RINGBUS_OK:
        return RBI_CTL_OK;
    case RINGBUS_E_NO_DAEMON:
        return RBI_CTL_NO_DAEMON;
    case RINGBUS_E_NO_SERVICE:
    case RINGBUS_E_NO_INSTANCE:
        return RBI_CTL_NOT_FOUND;
    case RINGBUS_E_TIMEOUT:
        return RBI_CTL_TIMEOUT;
    case RINGBUS_E_PATH:
        return RBI_CTL_USAGE;
    default:
        return ringbus_error_kind(error) == RINGBUS_ERROR_DENIED ? RBI_CTL_DENIED : RBI_CTL_FAILED;
    }
}

int rbi_ctl_fail_bus(const struct rbi_ctl_args *args,
                     int error,
                     const char *what,
                     const char *sentence)
{
    const char *text = sentence != NULL && *sentence != '\0' ? sentence : ringbus_strerror(error);
    return rbi_ctl_fail(args, rbi_ctl_exit_of(error), "%s: %s (%s)", what, text,
                        ringbus_error_name(error));
}

int rbi_ctl_finish(const struct rbi_ctl_args *args, int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        /* strerror() is safe here: this program has one thread. */
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "standard output: %s",
                            strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    }
    return code;
}
