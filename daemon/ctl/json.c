/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/json.h"

#include <inttypes.h>
#include <string.h>

static void string_put(FILE *out, const unsigned char *data, size_t size)
{
    putc('"', out);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = data[i];
        if (c == '"' || c == '\\') {
            putc('\\', out);
            putc(c, out);
        } else if (c == '\n') {
            fputs("\\n", out);
        } else if (c < 0x20 || c == 0x7f) {
            fprintf(out, "\\u%04x", c);
        } else {
            putc(c, out);
        }
    }
    putc('"', out);
}

static void member(struct rbi_ctl_json *json, const char *name)
{
    if (!json->first) {
        putc(',', json->out);
    }
    json->first = false;
    if (name != NULL) {
        string_put(json->out, (const unsigned char *)name, strlen(name));
        putc(':', json->out);
    }
}

void rbi_ctl_json_begin(struct rbi_ctl_json *json, FILE *out)
{
    json->out = out;
    json->first = true;
    putc('{', out);
}

void rbi_ctl_json_end(struct rbi_ctl_json *json)
{
    fputs("}\n", json->out);
}

void rbi_ctl_json_text(struct rbi_ctl_json *json, const char *name, const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t size = strlen(text);
    member(json, name);
    if (rbi_ctl_utf8_valid(bytes, size)) {
        string_put(json->out, bytes, size);
        return;
    }
    /* Other people's text in no known code: what is not ASCII is shown as '?'. */
    putc('"', json->out);
    for (size_t i = 0; i < size; i++) {
        bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\';
        putc(plain ? bytes[i] : '?', json->out);
    }
    putc('"', json->out);
}

void rbi_ctl_json_u64(struct rbi_ctl_json *json, const char *name, uint64_t value)
{
    member(json, name);
    fprintf(json->out, "%" PRIu64, value);
}

void rbi_ctl_json_i64(struct rbi_ctl_json *json, const char *name, int64_t value)
{
    member(json, name);
    fprintf(json->out, "%" PRId64, value);
}

void rbi_ctl_json_hex(struct rbi_ctl_json *json, const char *name, uint64_t value)
{
    member(json, name);
    fprintf(json->out, "\"%016" PRIx64 "\"", value);
}

void rbi_ctl_json_real(struct rbi_ctl_json *json, const char *name, double value)
{
    member(json, name);
    fprintf(json->out, "%.3f", value);
}

void rbi_ctl_json_bool(struct rbi_ctl_json *json, const char *name, bool value)
{
    member(json, name);
    fputs(value ? "true" : "false", json->out);
}

void rbi_ctl_json_open(struct rbi_ctl_json *json, const char *name, char bracket)
{
    member(json, name);
    putc(bracket, json->out);
    json->first = true;
}

void rbi_ctl_json_close(struct rbi_ctl_json *json, char bracket)
{
    putc(bracket, json->out);
    json->first = false;
}

static void base64_put(FILE *out, const unsigned char *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    putc('"', out);
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        unsigned word = (unsigned)data[i] << 16;
        word |= left > 1 ? (unsigned)data[i + 1] << 8 : 0;
        word |= left > 2 ? (unsigned)data[i + 2] : 0;
        putc(digits[word >> 18], out);
        putc(digits[(word >> 12) & 63], out);
        putc(left > 1 ? digits[(word >> 6) & 63] : '=', out);
        putc(left > 2 ? digits[word & 63] : '=', out);
    }
    putc('"', out);
}

void rbi_ctl_json_data(struct rbi_ctl_json *json, const void *data, size_t size)
{
    if (rbi_ctl_utf8_valid(data, size)) {
        member(json, "data");
        string_put(json->out, data, size);
    } else {
        member(json, "base64");
        base64_put(json->out, data, size);
    }
}

/* Length of the character at data[0], 0 when it is malformed. */
static size_t utf8_length(const unsigned char *data, size_t size)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = data[0];
    size_t length = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;
    if (length == 0 || length > size) {
        return 0;
    }
    if (length == 1) {
        return 1;
    }
    uint32_t code = c & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((data[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = (code << 6) | (data[i] & 0x3fU);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < smallest[length] || code > 0x10ffff || surrogate ? 0 : length;
}

bool rbi_ctl_utf8_valid(const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t length = utf8_length(data + i, size - i);
        if (length == 0) {
            return false;
        }
        i += length;
    }
    return true;
}
