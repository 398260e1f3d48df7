/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/metrics.h"

#include "shm/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void rbi_ctl_label_format(const char *text, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < RBI_CTL_LABEL_MAX && text[i] != '\0'; i++) {
        char byte = text[i];
        if (byte == '\n' || byte == '\\' || byte == '"') {
            out[used++] = '\\';
            if (byte == '\n') {
                byte = 'n';
            }
        } else if (byte < ' ' || byte > '~') {
            byte = '?';
        }
        out[used++] = byte;
    }
    out[used] = '\0';
}

bool rbi_ctl_figure_is_gauge(const char *name)
{
    static const char *const gauges[] = {
        "uptime_ms",     "connections", "endpoints",    "clusters",        "links",
        "watches",       "nodes",       "slot_tables",  "directory_bytes", "descriptors_in_flight",
        "alarms_firing", "bridge_ms",   "bridge_hosts", "bridge_ways"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(gauges); i++) {
        if (strcmp(name, gauges[i]) == 0) {
            return true;
        }
    }
    return false;
}

void rbi_ctl_metric_begin(const char *group, const char *name, const char *help, bool gauge)
{
    const char *end = gauge ? "" : "_total";
    printf("# HELP ringbus_%s_%s%s %s\n", group, name, end, help);
    printf("# TYPE ringbus_%s_%s%s %s\n", group, name, end, gauge ? "gauge" : "counter");
}

void rbi_ctl_metric_value(
    const char *group, const char *name, bool gauge, const char *path, uint64_t value)
{
    const char *end = gauge ? "" : "_total";
    char label[RBI_CTL_LABEL_ROOM];
    if (path != NULL) {
        rbi_ctl_label_format(path, label);
        printf("ringbus_%s_%s%s{path=\"%s\"} %" PRIu64 "\n", group, name, end, label, value);
    } else {
        printf("ringbus_%s_%s%s %" PRIu64 "\n", group, name, end, value);
    }
}
