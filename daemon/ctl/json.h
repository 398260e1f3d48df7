/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_JSON_H
#define RINGBUS_DAEMON_CTL_JSON_H
/*
 * daemon/ctl/json.h - writes JSON to a stream, one object a line. Numbers that may pass
 * 2^53 and are ids go as text, so that no reader rounds them. No state but the comma.
 */
#include "shm/base.h"

#include <stdio.h>

struct rbi_ctl_json {
    FILE *out;
    bool first; /* no comma before the next member */
};

/** "{" at the start of a line. */
void rbi_ctl_json_begin(struct rbi_ctl_json *json, FILE *out);
/** "}" and the newline. */
void rbi_ctl_json_end(struct rbi_ctl_json *json);
void rbi_ctl_json_text(struct rbi_ctl_json *json, const char *name, const char *text);
void rbi_ctl_json_u64(struct rbi_ctl_json *json, const char *name, uint64_t value);
void rbi_ctl_json_i64(struct rbi_ctl_json *json, const char *name, int64_t value);
void rbi_ctl_json_hex(struct rbi_ctl_json *json, const char *name, uint64_t value);
void rbi_ctl_json_real(struct rbi_ctl_json *json, const char *name, double value);
void rbi_ctl_json_bool(struct rbi_ctl_json *json, const char *name, bool value);
/** Bytes as member "data" when they are UTF-8, else as member "base64". Untrusted input. */
void rbi_ctl_json_data(struct rbi_ctl_json *json, const void *data, size_t size);
/** Opens an object or array inside; @p name NULL inside an array. */
void rbi_ctl_json_open(struct rbi_ctl_json *json, const char *name, char bracket);
void rbi_ctl_json_close(struct rbi_ctl_json *json, char bracket);

/** True when the bytes are well-formed UTF-8: no overlong forms, no surrogates. */
bool rbi_ctl_utf8_valid(const unsigned char *data, size_t size);

#endif
