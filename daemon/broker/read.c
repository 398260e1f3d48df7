/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/broker/read.c - the file of ringbus-broker, from disk to a checked structure. */
#include "daemon/broker/broker.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void complain(const char *path, const struct rbi_config_errors *errors)
{
    const unsigned kept =
        errors->count < RBI_CONFIG_ERRORS_MAX ? errors->count : RBI_CONFIG_ERRORS_MAX;
    for (unsigned i = 0; i < kept; i++) {
        const struct rbi_config_error *error = &errors->items[i];
        if (error->line != 0) {
            (void)fprintf(stderr, "%s:%u:%u: %s\n", path, error->line, error->column, error->text);
        } else {
            (void)fprintf(stderr, "%s: %s\n", path, error->text);
        }
    }
}

int rbi_broker_read(const char *path, struct rbi_broker_config *out)
{
    struct rbi_config_errors *errors = calloc(1, sizeof *errors);
    char *text = malloc((size_t)RBI_CONFIG_TEXT_MAX + 1);
    FILE *file = fopen(path, "re");
    int r = 1;
    if (file == NULL || text == NULL || errors == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path, rbi_log_errno(file == NULL ? errno : ENOMEM));
    } else {
        const size_t size = fread(text, 1, (size_t)RBI_CONFIG_TEXT_MAX + 1, file);
        if (ferror(file)) {
            (void)fprintf(stderr, "%s: cannot be read\n", path);
        } else {
            r = rbi_broker_config_parse(text, size, out, errors);
            if (r < 0) {
                (void)fprintf(stderr, "%s: %s\n", path, rbi_log_errno(-r));
            } else {
                complain(path, errors);
            }
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    free(text);
    free(errors);
    return r != 0 ? 1 : 0;
}
