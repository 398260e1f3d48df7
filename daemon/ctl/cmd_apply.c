/* SPDX-License-Identifier: Apache-2.0 */
/* apply and diff: a text of the configuration, to the daemon or beside what it has. */
#include "bus/governance_diff.h"
#include "daemon/ctl/file.h"
#include "daemon/ctl/govern.h"
#include "daemon/ctl/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Parses a text, and prints what is wrong with it. @return exit code */
static int
parse(const struct rbi_ctl_args *args, const char *text, size_t size, struct rbi_governance *out)
{
    static struct rbi_config_errors errors; /* too large for the stack of small threads */
    const int r = rbi_governance_parse(text, size, out, &errors);
    if (r > 0) {
        rbi_ctl_file_errors(args, &errors);
        return RBI_CTL_FAILED;
    }
    return r == 0 ? RBI_CTL_OK : rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
}

/* Reads the file that is the operand. @return exit code; @p text is to be freed when it is 0 */
static int
read_operand(const struct rbi_ctl_args *args, char **text, size_t *size, struct rbi_governance *out)
{
    int r = rbi_ctl_file_read(args, args->operands[0], text, size);
    if (r == RBI_CTL_OK) {
        r = parse(args, *text, *size, out);
        if (r != RBI_CTL_OK) {
            free(*text);
        }
    }
    return r;
}

/* The daemon reads nothing that could change meanwhile, or make it wait. @return -1 on failure */
static int seal(const char *text, size_t size)
{
    const int fd = memfd_create("ringbus-apply", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (pwrite(fd, text, size, 0) != (ssize_t)size ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

int rbi_ctl_apply(const struct rbi_ctl_args *args)
{
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    char *text = NULL;
    size_t size = 0;
    int r = read_operand(args, &text, &size, &governance);
    if (r != RBI_CTL_OK) {
        return r;
    }
    rbi_governance_deinit(&governance);
    struct rbi_wire_apply body = {.size = (uint32_t)size,
                                  .expect = args->expect,
                                  .expected = (args->given & RBI_CTL_EXPECT) != 0,
                                  .dry_run = (args->given & RBI_CTL_DRY_RUN) != 0};
    rbi_ctl_govern_why(args, &body.why);
    const int fd = seal(text, size);
    free(text);
    if (fd < 0) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "no memory to be sealed: %s",
                            strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    }
    r = rbi_ctl_govern_change(args, RBI_WIRE_APPLY, &body, fd);
    close(fd);
    return r;
}

/* ---- diff -------------------------------------------------------------------------------- */

static void
on_difference(void *context, const char *name, const char *old_value, const char *new_value)
{
    const struct rbi_ctl_args *args = *(const struct rbi_ctl_args *const *)context;
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "name", name);
        if (old_value) {
            rbi_ctl_json_text(&json, "old", old_value);
        }
        if (new_value) {
            rbi_ctl_json_text(&json, "new", new_value);
        }
        rbi_ctl_json_end(&json);
        return;
    }
    if (old_value) {
        printf("- %s: %s\n", name, old_value);
    }
    if (new_value) {
        printf("+ %s: %s\n", name, new_value);
    }
}

/* Compares what the daemon has with @p next. @return exit code */
static int diff(const struct rbi_ctl_args *args, const struct rbi_governance *next)
{
    struct rbi_governance now = RBI_GOVERNANCE_NULL;
    char *text = NULL;
    size_t size = 0;
    int r = rbi_ctl_govern_text(args, &text, &size);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = parse(args, text, size, &now);
    free(text);
    if (r == RBI_CTL_OK && rbi_governance_diff(&now, next, on_difference, &args) < 0) {
        r = rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
    }
    rbi_governance_deinit(&now);
    return rbi_ctl_finish(args, r);
}

int rbi_ctl_diff(const struct rbi_ctl_args *args)
{
    struct rbi_governance next = RBI_GOVERNANCE_NULL;
    char *text = NULL;
    size_t size = 0;
    int r = read_operand(args, &text, &size, &next);
    if (r == RBI_CTL_OK) {
        free(text);
        r = diff(args, &next);
        rbi_governance_deinit(&next);
    }
    return r;
}
