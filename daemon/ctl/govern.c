/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/govern.h"

#include "bus/config.h"
#include "daemon/ctl/json.h"

#include <inttypes.h>
#include <ringbus/ringbus.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void rbi_ctl_govern_why(const struct rbi_ctl_args *args, struct rbi_text *out)
{
    char words[RBI_WIRE_TEXT_MAX + 1];
    size_t used = (size_t)snprintf(words, sizeof words, "%s", args->command->name);
    for (unsigned i = 0; i < args->operand_count && used < sizeof words; i++) {
        used += (size_t)snprintf(words + used, sizeof words - used, " %s", args->operands[i]);
    }
    if ((args->given & RBI_CTL_OFF) && used < sizeof words) {
        used += (size_t)snprintf(words + used, sizeof words - used, " --off");
    }
    if (args->why && used < sizeof words) {
        (void)snprintf(words + used, sizeof words - used, ": %s", args->why);
    }
    rbi_text_set(out, words);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static void print(const struct rbi_ctl_args *args, const struct rbi_wire_applied *applied)
{
    const bool dry_run = (args->given & RBI_CTL_DRY_RUN) != 0;
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_u64(&json, "version", applied->version);
        rbi_ctl_json_bool(&json, "dry_run", dry_run);
        rbi_ctl_json_u64(&json, "clusters", applied->clusters);
        rbi_ctl_json_u64(&json, "instances", applied->instances);
        rbi_ctl_json_text(&json, "warning", applied->warning.bytes);
        rbi_ctl_json_end(&json);
        return;
    }
    if (dry_run) {
        printf("would change ");
    } else {
        printf("version %" PRIu64 " holds: changed ", applied->version);
    }
    printf("%" PRIu32 " cluster%s, %" PRIu32 " instance%s\n", applied->clusters,
           plural(applied->clusters), applied->instances, plural(applied->instances));
    if (applied->warning.length > 0) {
        fprintf(stderr, "ringbusctl: it holds until the daemon ends, and is not kept: %s\n",
                applied->warning.bytes);
    }
}

int rbi_ctl_govern_change(const struct rbi_ctl_args *args,
                          enum rbi_wire_type type,
                          const void *body,
                          int fd)
{
    struct rbi_ctl_control control;
    union rbi_wire_body answer;
    unsigned answered = 0;
    int r = rbi_ctl_control_init(&control, args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_control_exchange(&control, type, body, fd, &answered, &answer, NULL);
    if (r == RBI_CTL_OK && answered == RBI_WIRE_APPLIED) {
        print(args, &answer.applied);
    } else if (r == RBI_CTL_OK) {
        r = rbi_ctl_fail_bus(
            args, answered == RBI_WIRE_ERROR ? answer.error.code : RINGBUS_E_SYSTEM,
            "the daemon refused", answered == RBI_WIRE_ERROR ? answer.error.text.bytes : NULL);
    }
    rbi_ctl_control_deinit(&control);
    return rbi_ctl_finish(args, r);
}

/* ---- what was applied -------------------------------------------------------------------- */

static int text_read(const struct rbi_ctl_args *args, int fd, uint32_t size, char **text)
{
    char *bytes = fd >= 0 && size <= RBI_CONFIG_TEXT_MAX ? malloc((size_t)size + 1) : NULL;
    if (!bytes || pread(fd, bytes, size, 0) != (ssize_t)size) {
        free(bytes);
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "the daemon's text cannot be read");
    }
    bytes[size] = '\0';
    *text = bytes;
    return RBI_CTL_OK;
}

/* @return exit code */
static int text_take(const struct rbi_ctl_args *args,
                     struct rbi_ctl_control *control,
                     char **text,
                     size_t *size)
{
    static const char nothing[] = "{}";
    const struct rbi_wire_get_text body = {.version = 0};
    union rbi_wire_body answer;
    unsigned answered = 0;
    int fd = -1;
    int r =
        rbi_ctl_control_exchange(control, RBI_WIRE_GET_TEXT, &body, -1, &answered, &answer, &fd);
    if (r == RBI_CTL_OK && answered == RBI_WIRE_TEXT) {
        *size = answer.text.size;
        r = text_read(args, fd, answer.text.size, text);
    } else if (r == RBI_CTL_OK && answered == RBI_WIRE_ERROR &&
               answer.error.code == RINGBUS_E_NO_INSTANCE) {
        *text = strdup(nothing);
        *size = sizeof nothing - 1;
        r = *text ? RBI_CTL_OK : rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
    } else if (r == RBI_CTL_OK) {
        r = rbi_ctl_fail_bus(
            args, answered == RBI_WIRE_ERROR ? answer.error.code : RINGBUS_E_SYSTEM,
            "the daemon refused", answered == RBI_WIRE_ERROR ? answer.error.text.bytes : NULL);
    }
    if (fd >= 0) {
        close(fd);
    }
    return r;
}

int rbi_ctl_govern_text(const struct rbi_ctl_args *args, char **text, size_t *size)
{
    struct rbi_ctl_control control;
    int r = rbi_ctl_control_init(&control, args);
    if (r == RBI_CTL_OK) {
        r = text_take(args, &control, text, size);
        rbi_ctl_control_deinit(&control);
    }
    return r;
}
