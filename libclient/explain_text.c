/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/explain_text.c - an explanation as lines of text. */
#include "libclient/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
    char *buffer;
    size_t size;
    size_t length; /* of all, whether it fits or not */
};

static RBI_PRINTF(2, 3) void append(struct text *text, const char *format, ...)
{
    char line[3 * RBI_PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    /* The analyzer loses va_start() where it inlines this. */
    const int printed = /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
        vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const size_t length = printed < 0 ? 0 : rbi_min_u64((uint64_t)printed, sizeof line - 1);
    if (text->length < text->size) {
        (void)snprintf(text->buffer + text->length, text->size - text->length, "%s", line);
    }
    text->length += length;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void stage_line(struct text *text, const struct ringbus_explain_row *row)
{
    append(text, "%-8s %-6s %u -> %u%s%s%s\n", row->stage, row->mode, row->before, row->after,
           row->skipped ? ", does not apply" : "",
           row->fell_back ? ", fell back: nobody healthy fits" : "",
           row->panic ? ", panic: shields are ignored" : "");
}

static void instance_line(struct text *text, const struct ringbus_explain_row *row, char sign)
{
    append(text, "  %c %s: %s%s%s%s%s\n", sign, name_of(row->path),
           row->kind == RINGBUS_EXPLAIN_WOULD ? "dry run: " : "", row->reason,
           row->rule[0] != '\0' ? " (" : "", row->rule, row->rule[0] != '\0' ? ")" : "");
}

static void line(void *user, const struct ringbus_explain_row *row)
{
    struct text *text = user;
    switch (row->kind) {
    case RINGBUS_EXPLAIN_TARGET:
        append(text, "%s: %u instances, epoch %llu%s\n", row->path, row->before,
               (unsigned long long)row->epoch, row->panic ? ", in panic" : "");
        break;
    case RINGBUS_EXPLAIN_STAGE:
        stage_line(text, row);
        break;
    case RINGBUS_EXPLAIN_OUT:
        instance_line(text, row, '-');
        break;
    case RINGBUS_EXPLAIN_WOULD:
        instance_line(text, row, '?');
        break;
    case RINGBUS_EXPLAIN_IN:
        append(text, "in       %s: share %u, level %u%s%s\n", row->path, row->weight, row->level,
               row->reason[0] != '\0' ? ", " : "", row->reason);
        break;
    case RINGBUS_EXPLAIN_OWNER:
        append(text, "owner    %s%s%s\n", row->path, row->reason[0] != '\0' ? ": " : "",
               row->reason);
        break;
    }
}

int ringbus_explain_text(struct ringbus *bus,
                         const char *target,
                         const struct ringbus_explain_options *options,
                         char *buffer,
                         size_t size)
{
    struct text text = {buffer, size, 0};
    if (buffer == NULL && size > 0) {
        return RINGBUS_E_ARGUMENT;
    }
    if (size > 0) {
        buffer[0] = '\0';
    }
    const int r = ringbus_explain(bus, target, options, line, &text);
    return r < 0 ? r : (int)text.length;
}
