/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses configuration files as the daemon would. check_configs FILE...: each is accepted.
 * check_configs --all-defaults FILE: every key stands in it, with its default.
 */
#include "bus/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[RBI_CONFIG_TEXT_MAX + 1];
static struct rbi_config config;
static unsigned failures;

/** @return bytes read */
static size_t read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        exit(1);
    }
    const size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    return size;
}

static void parse_file(const char *path)
{
    static struct rbi_config_errors errors;
    const size_t size = read_file(path);
    if (rbi_config_parse(text, size, &config, &errors) == 0) {
        return;
    }
    failures++;
    for (unsigned i = 0; i < errors.count && i < RBI_CONFIG_ERRORS_MAX; i++) {
        const struct rbi_config_error *e = &errors.items[i];
        fprintf(stderr, "%s:%u:%u: %s\n", path, e->line, e->column, e->text);
    }
}

/** The text from the section's line on has a line "  key:" with this default. */
static void expect_key(void *context,
                       const char *key,
                       const char *type,
                       const char *unit,
                       const char *default_value,
                       const char *range,
                       bool needs_restart,
                       const char *explanation)
{
    (void)context;
    (void)type;
    (void)unit;
    (void)range;
    (void)needs_restart;
    (void)explanation;
    char wanted[256];
    char quoted[256];
    const char *leaf = strchr(key, '.') + 1;
    (void)snprintf(wanted, sizeof wanted, "\n%.*s:\n", (int)(leaf - key - 1), key);
    const char *section = strstr(text, wanted);
    (void)snprintf(wanted, sizeof wanted, "\n  %s: %s\n", leaf, default_value);
    (void)snprintf(quoted, sizeof quoted, "\n  %s: \"%s\"\n", leaf, default_value);
    if (!section || (!strstr(section, wanted) && !strstr(section, quoted))) {
        fprintf(stderr, "%s: not there with its default %s\n", key, default_value);
        failures++;
    }
}

static void unexpected(void *context,
                       const char *key,
                       const char *old_value,
                       const char *new_value,
                       bool needs_restart)
{
    (void)context;
    (void)needs_restart;
    fprintf(stderr, "%s: default is %s, the file says %s\n", key, old_value, new_value);
    failures++;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--all-defaults") == 0) {
        struct rbi_config defaults;
        rbi_config_defaults(&defaults);
        parse_file(argv[2]);
        rbi_config_diff(&defaults, &config, unexpected, NULL);
        rbi_config_doc(expect_key, NULL);
        return failures ? 1 : 0;
    }
    for (int i = 1; i < argc; i++) {
        parse_file(argv[i]);
    }
    return argc > 1 && failures == 0 ? 0 : 1;
}
