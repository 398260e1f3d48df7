/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_error.c - messages about a configuration: list, quoting, nearness of
 * words, and the look at the raw bytes before the YAML reader sees them.
 */
#include "bus/config_schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool rbi_config_error_wanted(const struct rbi_config_errors *errors)
{
    return errors->count < RBI_CONFIG_ERRORS_MAX;
}

void rbi_config_error_add(struct rbi_config_errors *errors,
                          struct rbi_config_place place,
                          const char *format,
                          ...)
{
    if (rbi_config_error_wanted(errors)) {
        struct rbi_config_error *error = &errors->items[errors->count];
        error->line = place.line;
        error->column = place.column;
        va_list args;
        va_start(args, format);
        (void)vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    errors->count++;
}

const char *rbi_config_quote(const char *text, size_t length, char *buffer, size_t size)
{
    const size_t room = size - sizeof "\"...\"";
    size_t n = 0;
    buffer[n++] = '"';
    for (size_t i = 0; i < length && i < room; i++) {
        buffer[n++] = '?';
        if (text[i] >= 0x20 && text[i] < 0x7f) { /* char is signed or not */
            buffer[n - 1] = text[i];
        }
    }
    (void)snprintf(buffer + n, size - n, "%s", length > room ? "...\"" : "\"");
    return buffer;
}

/* Words longer than this are nobody's typing mistake. */
#define DISTANCE_LENGTH_MAX 40U

unsigned rbi_config_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned row[DISTANCE_LENGTH_MAX + 1];
    if (a_length > DISTANCE_LENGTH_MAX || b_length > DISTANCE_LENGTH_MAX) {
        return UINT32_MAX;
    }
    for (unsigned j = 0; j <= b_length; j++) {
        row[j] = j;
    }
    for (unsigned i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const unsigned above = row[j];
            const unsigned replaced = diagonal + (a[i - 1] != b[j - 1]);
            const unsigned moved = (above < row[j - 1] ? above : row[j - 1]) + 1;
            row[j] = replaced < moved ? replaced : moved;
            diagonal = above;
        }
    }
    const size_t longer = a_length > b_length ? a_length : b_length;
    const unsigned most = longer < 6 ? 1 : (unsigned)longer / 3;
    return row[b_length] <= most && row[b_length] < longer ? row[b_length] : UINT32_MAX;
}

/** Complains about an encoding that is not UTF-8; the reader would guess. */
static int check_encoding(const char *text, size_t size, struct rbi_config_errors *errors)
{
    const struct rbi_config_place start = {1, 1};
    if (size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0)) {
        rbi_config_error_add(errors, start, "expected UTF-8, found UTF-16; save it as UTF-8");
        return 1;
    }
    return 0;
}

int rbi_config_text_check(const char *text,
                          size_t size,
                          size_t *skip,
                          struct rbi_config_errors *errors)
{
    struct rbi_config_place place = {1, 1};
    if (check_encoding(text, size, errors) != 0) {
        return 1;
    }
    const size_t first = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    for (size_t i = first; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n' || (c == '\r' && (i + 1 == size || text[i + 1] != '\n'))) {
            place.line++;
            place.column = 1;
            continue;
        }
        if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
            rbi_config_error_add(errors, place, "expected text, found control character 0x%02x",
                                 (unsigned)c);
            return 1;
        }
        /* The reader compares each directive with all before it: many of them take minutes. */
        if (c == '%' && place.column == 1) {
            rbi_config_error_add(errors, place, "a line cannot start with %%: no YAML directives");
            return 1;
        }
        place.column += (c & 0xc0) != 0x80; /* columns count characters, not bytes */
    }
    *skip = first;
    return 0;
}
