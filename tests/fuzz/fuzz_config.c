/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files of any content: an error or a structure, and what the structure says can
 * be written as YAML and read back to the same.
 */
#include "bus/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

#define YAML_MAX 65536U

/** Appends one key of the printed form to a YAML text in flow style. */
static void on_value(void *context, const char *key, const char *value, bool is_default)
{
    char *yaml = context;
    const char *leaf = strchr(key, '.') + 1;
    const char *number_end = strchr(value, ' ');
    const size_t used = strlen(yaml);
    (void)is_default;
    if (strcmp(key, "daemon.socket") == 0 || strcmp(key, "daemon.state_dir") == 0) {
        return; /* escaping it is not this test's subject */
    }
    if (strncmp(key, "bridge.", 7) == 0) {
        return; /* of its lists only the lengths are printed */
    }
    /* "1000 ms" is written 1000ms, "200 per second" 200. */
    const bool rate = number_end && strcmp(number_end, " per second") == 0;
    (void)snprintf(yaml + used, YAML_MAX - used, "%.*s.%s: %.*s%s\n", (int)(leaf - key - 1), key,
                   leaf, (int)(number_end ? number_end - value : (long)strlen(value)), value,
                   number_end && !rate ? number_end + 1 : "");
}

static void on_difference(void *context,
                          const char *key,
                          const char *old_value,
                          const char *new_value,
                          bool needs_restart)
{
    (void)context;
    (void)old_value;
    (void)new_value;
    (void)needs_restart;
    check(strcmp(key, "daemon.socket") == 0 || strcmp(key, "daemon.state_dir") == 0 ||
          strcmp(key, "bridge") == 0);
}

/**
 * Turns the rest of a line "quota.users.5.links: 1" into a nested map.
 * @param user  the one of the line before, or ""
 * @return the line without all that
 */
static const char *nest_user(const char *rest, char user[16], char *yaml, size_t *used)
{
    const size_t width = strcspn(rest + 6, ".");
    if (user[0] == '\0') {
        *used += (size_t)snprintf(yaml + *used, YAML_MAX - *used, "  users:\n");
    }
    if (strlen(user) != width || memcmp(user, rest + 6, width) != 0) {
        (void)snprintf(user, 16, "%.*s", (int)width, rest + 6);
        *used += (size_t)snprintf(yaml + *used, YAML_MAX - *used, "    %s:\n", user);
    }
    *used += (size_t)snprintf(yaml + *used, YAML_MAX - *used, "    ");
    return rest + 6 + width + 1;
}

/** Turns lines "section.key: value" into a nested map. */
static void nest(const char *flat, char *yaml, size_t size)
{
    char section[64] = "";
    char user[16] = "";
    size_t used = 0;
    while (*flat) {
        const size_t width = strcspn(flat, ".");
        const size_t line = strcspn(flat, "\n");
        if (strlen(section) != width || memcmp(section, flat, width) != 0) {
            (void)snprintf(section, sizeof section, "%.*s", (int)width, flat);
            used += (size_t)snprintf(yaml + used, size - used, "%s:\n", section);
        }
        const char *end = flat + line;
        const char *rest = flat + width + 1;
        if (strncmp(rest, "users.", 6) == 0) {
            rest = nest_user(rest, user, yaml, &used);
        }
        used += (size_t)snprintf(yaml + used, size - used, "  %.*s\n", (int)(end - rest), rest);
        check(used < size);
        flat += line + 1;
    }
}

static void check_round_trip(const struct rbi_config *config)
{
    static struct rbi_config again;
    static struct rbi_config_errors errors;
    static char flat[YAML_MAX];
    static char yaml[YAML_MAX];
    flat[0] = yaml[0] = '\0';
    rbi_config_print(config, on_value, flat);
    nest(flat, yaml, sizeof yaml);
    check(rbi_config_parse(yaml, strlen(yaml), &again, &errors) == 0);
    rbi_config_diff(config, &again, on_difference, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rbi_config config;
    static struct rbi_config untouched;
    static struct rbi_config_errors errors;
    memset(&config, 0x5a, sizeof config);
    memset(&untouched, 0x5a, sizeof untouched);

    const int r = rbi_config_parse((const char *)data, size, &config, &errors);
    if (r == 0) {
        check(memchr(config.daemon.socket, '\0', sizeof config.daemon.socket) != NULL);
        check_round_trip(&config);
        return 0;
    }
    check(r == 1 && errors.count > 0);
    check(memcmp(&config, &untouched, sizeof config) == 0);
    for (unsigned i = 0; i < errors.count && i < RBI_CONFIG_ERRORS_MAX; i++) {
        const struct rbi_config_error *e = &errors.items[i];
        check(memchr(e->text, '\0', sizeof e->text) != NULL && e->text[0] != '\0');
        for (const char *c = e->text; *c; c++) {
            check((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f);
        }
        check((e->line == 0) == (e->column == 0) && e->line <= size + 1);
    }
    return 0;
}
