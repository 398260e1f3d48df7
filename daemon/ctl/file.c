/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/file.h"

#include "daemon/ctl/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads at most one byte more than is allowed: that one tells that there is too much. */
int rbi_ctl_file_read(const struct rbi_ctl_args *args, const char *name, char **text, size_t *size)
{
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rbe");
    if (file == NULL) {
        int code = errno == ENOENT ? RBI_CTL_NOT_FOUND : RBI_CTL_FAILED;
        return rbi_ctl_fail(args, code, "%s: %s", name,
                            strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    }
    char *bytes = malloc((size_t)RBI_CONFIG_TEXT_MAX + 1);
    size_t got = bytes != NULL ? fread(bytes, 1, (size_t)RBI_CONFIG_TEXT_MAX + 1, file) : 0;
    bool failed = bytes == NULL || ferror(file);
    if (file != stdin) {
        fclose(file);
    }
    if (failed) {
        free(bytes);
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "%s: cannot be read", name);
    }
    *text = bytes;
    *size = got;
    return RBI_CTL_OK;
}

static void error_print(const struct rbi_ctl_args *args, const struct rbi_config_error *error)
{
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "file", args->operands[0]);
        rbi_ctl_json_u64(&json, "line", error->line);
        rbi_ctl_json_u64(&json, "column", error->column);
        rbi_ctl_json_text(&json, "text", error->text);
        rbi_ctl_json_end(&json);
    } else if (error->line == 0) {
        printf("%s: %s\n", args->operands[0], error->text);
    } else {
        printf("%s:%u:%u: %s\n", args->operands[0], error->line, error->column, error->text);
    }
}

void rbi_ctl_file_errors(const struct rbi_ctl_args *args, const struct rbi_config_errors *errors)
{
    const unsigned kept =
        errors->count < RBI_CONFIG_ERRORS_MAX ? errors->count : RBI_CONFIG_ERRORS_MAX;
    for (unsigned i = 0; i < kept; i++) {
        error_print(args, &errors->items[i]);
    }
    if (errors->count > kept) {
        fprintf(stderr, "ringbusctl: and %u more\n", errors->count - kept);
    }
}
