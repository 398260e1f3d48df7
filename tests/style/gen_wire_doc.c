/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what docs/internals/wire.md says of frames from the lists of bus/frame.h and
 * bus/frame_field.h, each with its golden vector: "kinds" or "frames".
 */
#include "bus/frame_field.h"
#include "unit/frame_golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *kind;
    const char *name;
    const char *meaning;
};

/** Size of a kind, "8" or "1..256". */
static const char *size_of(const char *kind)
{
#define SIZE(name, size, layout)                                                                   \
    if (strcmp(kind, #name) == 0) {                                                                \
        return size;                                                                               \
    }
    RBI_FRAME_KINDS(SIZE)
#undef SIZE
    abort();
}

static void print_vector(const struct golden *golden)
{
    printf("\n```\n");
    for (size_t i = 0; i < golden->size; i++) {
        const bool ends = i % 16 == 15 || i + 1 == golden->size;
        if (i % 16 == 0) {
            printf("%3zu  ", i);
        }
        printf("%02x%s", golden->bytes[i], ends ? "\n" : " ");
    }
    printf("```\n");
}

static void print_frame(
    const char *name, unsigned value, const char *what, const struct row *rows, size_t count)
{
    unsigned long offset = RBI_FRAME_HEADER;
    bool varies = false;
    printf("\n### %u %s\n\n%s\n\n", value, name, what);
    printf("| offset | field | kind | bytes | meaning |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < count; i++) {
        const char *size = size_of(rows[i].kind);
        if (varies) {
            printf("| behind");
        } else {
            printf("| %lu", offset);
        }
        printf(" | `%s` | %s | %s | %s |\n", rows[i].name, rows[i].kind, size, rows[i].meaning);
        varies |= strstr(size, "..") != NULL;
        offset += strtoul(size, NULL, 10);
    }
    print_vector(&goldens[value - 1]);
}

static void print_frames(void)
{
#define ROW(kind, name, meaning) {#kind, #name, meaning},
#define FRAME(NAME, frame, value, what)                                                            \
    {                                                                                              \
        static const struct row rows[] = {RBI_FRAME_FIELDS_##frame(ROW)};                          \
        print_frame(#NAME, value, what, rows, RBI_ARRAY_SIZE(rows));                               \
    }
    RBI_FRAME_TYPES(FRAME)
#undef FRAME
#undef ROW
}

static void print_kinds(void)
{
    printf("| kind | bytes | layout |\n| --- | --- | --- |\n");
#define KIND(name, size, layout)                                                                   \
    printf("| %s | %s | ", #name, size);                                                           \
    for (const char *c = layout; *c != 0; c++) {                                                   \
        printf(*c == '|' ? "\\%c" : "%c", *c);                                                     \
    }                                                                                              \
    printf(" |\n");
    RBI_FRAME_KINDS(KIND)
#undef KIND
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "kinds") == 0) {
        print_kinds();
    } else if (argc == 2 && strcmp(argv[1], "frames") == 0) {
        print_frames();
    } else {
        (void)fprintf(stderr, "usage: gen_wire_doc kinds|frames\n");
        return 2;
    }
    return 0;
}
