/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_METRICS_H
#define RINGBUS_DAEMON_CTL_METRICS_H
/*
 * daemon/ctl/metrics.h - figures in the text format of Prometheus, version 0.0.4. Texts of others
 * come into label values only, escaped and cut: whatever a client calls itself, the format stays
 * whole and a line stays short.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a text that a label value keeps: a whole path. */
#define RBI_CTL_LABEL_MAX 255U
/** Room for a label value: each byte may need an escape. */
#define RBI_CTL_LABEL_ROOM (2U * RBI_CTL_LABEL_MAX + 1U)

/**
 * A label value: backslash, quote and newline escaped, other bytes that are no printable ASCII
 * replaced by "?", cut after RBI_CTL_LABEL_MAX bytes.
 * @param out  at least RBI_CTL_LABEL_ROOM bytes, terminated
 */
void rbi_ctl_label_format(const char *text, char *out);

/** Whether a figure of the daemon goes up and down; the others are counts since its start. */
bool rbi_ctl_figure_is_gauge(const char *name);

/** HELP and TYPE of a metric on standard output. A counter's name gets "_total". */
void rbi_ctl_metric_begin(const char *group, const char *name, const char *help, bool gauge);
/** One value of it. @param path  label, or NULL */
void rbi_ctl_metric_value(
    const char *group, const char *name, bool gauge, const char *path, uint64_t value);

#endif
