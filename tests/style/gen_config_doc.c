/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what is known about the configuration from its tables: "table", "bridge", "policies" for
 * docs/configuration.md, "yaml" for configs/ringbusd.yaml, "man" for ringbusd.yaml(5).
 */
#include "bus/governance.h"

#include <stdio.h>
#include <string.h>

static void table_row(void *context,
                      const char *key,
                      const char *type,
                      const char *unit,
                      const char *default_value,
                      const char *range,
                      bool needs_restart,
                      const char *text)
{
    (void)context;
    printf("| `%s` | %s%s%s | `%s` | %s | %s | %s |\n", key, type, unit[0] ? ": " : "", unit,
           default_value[0] ? default_value : "\"\"", range, needs_restart ? "restart" : "reload",
           text);
}

static void policy_row(void *context,
                       const char *key,
                       const char *type,
                       const char *unit,
                       const char *default_value,
                       const char *range,
                       bool needs_restart,
                       const char *text)
{
    (void)context;
    (void)needs_restart;
    printf("| `%s` | %s%s%s | %s%s%s | %s | %s |\n", key, type, unit[0] ? ": " : "", unit,
           default_value[0] ? "`" : "", default_value[0] ? default_value : "\"\"",
           default_value[0] ? "`" : "", range[0] ? range : "-", text);
}

/** The sections of policies, empty as they are when nobody writes any. */
static void yaml_policies(void)
{
    printf("\n# What holds for clusters, instances and businesses, and who may do what: nothing is "
           "said,\n# so the defaults of docs/configuration.md hold. A change needs a reload.\n"
           "clusters: []\n\ninstances: {}\n\nrealms: {}\n\nrights: {}\n");
}

/** Writes a comment in lines of at most 96 columns. */
static void comment(const char *text)
{
    size_t column = 0;
    while (*text) {
        const size_t word = strcspn(text, " ");
        if (column != 0 && column + 1 + word > 96) {
            printf("\n");
            column = 0;
        }
        column += (size_t)printf("%s%.*s", column == 0 ? "  # " : " ", (int)word, text);
        text += word;
        text += strspn(text, " ");
    }
    printf("\n");
}

static void yaml_key(void *context,
                     const char *key,
                     const char *type,
                     const char *unit,
                     const char *default_value,
                     const char *range,
                     bool needs_restart,
                     const char *text)
{
    const char **section = context;
    const char *leaf = strchr(key, '.') + 1;
    const size_t length = (size_t)(leaf - key);
    const bool quoted = strcmp(type, "text") == 0 || strcmp(type, "mode") == 0;
    if (!*section || strncmp(*section, key, length) != 0) {
        printf("%s%.*s:\n", *section ? "\n" : "", (int)length - 1, key);
    } else {
        printf("\n");
    }
    *section = key;
    comment(text);
    printf("  # %s%s%s%s; %s; default %s; a change needs a %s.\n", type, unit[0] ? " (" : "", unit,
           unit[0] ? ")" : "", range, default_value[0] ? default_value : "\"\"",
           needs_restart ? "restart" : "reload");
    printf(quoted ? "  %s: \"%s\"\n" : "  %s: %s\n", leaf, default_value);
}

static void man_key(void *context,
                    const char *key,
                    const char *type,
                    const char *unit,
                    const char *default_value,
                    const char *range,
                    bool needs_restart,
                    const char *text)
{
    (void)context;
    printf(".TP\n.B %s\n%s\n", key, text);
    printf(".br\n%s%s%s%s; %s; default %s; a change needs a %s.\n", type, unit[0] ? " (" : "", unit,
           unit[0] ? ")" : "", range[0] ? range : "any", default_value[0] ? default_value : "empty",
           needs_restart ? "restart" : "reload");
}

static void man_policy(void *context,
                       const char *key,
                       const char *type,
                       const char *unit,
                       const char *default_value,
                       const char *range,
                       bool needs_restart,
                       const char *text)
{
    (void)context;
    (void)needs_restart;
    printf(".TP\n.B %s\n%s\n", key, text);
    if (strcmp(type, "map") != 0) {
        printf(".br\n%s%s%s%s; %s; default %s.\n", type, unit[0] ? " (" : "", unit,
               unit[0] ? ")" : "", range, default_value[0] ? default_value : "empty");
    }
}

static void man_page(void)
{
    printf(
        ".\\\" SPDX-License-Identifier: Apache-2.0\n"
        ".TH RINGBUSD.YAML 5 \"\" \"ringbus\" \"File Formats\"\n"
        ".SH NAME\nringbusd.yaml \\- configuration of ringbusd\n"
        ".SH DESCRIPTION\n"
        "YAML, read strictly: an unknown or repeated key, a wrong type, a number without the\n"
        "unit that it needs, an alias or a tag is an error with line and column, and nothing is\n"
        "applied. Durations have a unit (ms, s, m, h), sizes too (B, KiB, MiB, GiB).\n"
        ".SH KEYS\n");
    rbi_config_doc(man_key, NULL);
    printf(
        ".SH OTHER HOSTS\n"
        "The section bridge joins hosts; without it this host is alone. [] stands for the items\n"
        "of a list. A change needs a reload.\n");
    rbi_config_bridge_doc(man_policy, NULL);
    printf(
        ".SH POLICIES\n"
        "Below these keys stands what holds for clusters, instances and businesses, and who may\n"
        "do what. All entries that match a cluster hold, in order; a later one changes the\n"
        "fields that it names. [] stands for the items of a list, NAME for a free name.\n"
        "A change needs a reload.\n");
    rbi_governance_doc(man_policy, NULL);
    printf(".SH SEE ALSO\n.BR ringbusd (8)\n");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "table") == 0) {
        printf("| key | type: units | default | range | change needs | meaning |\n");
        printf("| --- | --- | --- | --- | --- | --- |\n");
        rbi_config_doc(table_row, NULL);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "policies") == 0) {
        printf("| key | type: units | default | range | meaning |\n");
        printf("| --- | --- | --- | --- | --- |\n");
        rbi_governance_doc(policy_row, NULL);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "bridge") == 0) {
        printf("| key | type: units | default | range | meaning |\n");
        printf("| --- | --- | --- | --- | --- |\n");
        rbi_config_bridge_doc(policy_row, NULL);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "yaml") == 0) {
        const char *section = NULL;
        printf("# SPDX-License-Identifier: Apache-2.0\n"
               "# Every key of ringbusd with its default. Written by the build target config_docs "
               "from\n"
               "# the table in bus/config_schema.c; docs/configuration.md has the rules of the "
               "format.\n");
        rbi_config_doc(yaml_key, &section);
        yaml_policies();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "man") == 0) {
        man_page();
        return 0;
    }
    fprintf(stderr, "usage: gen_config_doc table|bridge|policies|yaml|man\n");
    return 2;
}
