/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_value.c - the text of one value to a member and back. Typing is ours, by
 * the table's type alone: a text stays what was written (NO, 012, 1e3, 22:22), a number is
 * decimal or an error.
 */
#include "bus/config_schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor; /* in base units */
};

/* Smallest first; the first is the base unit. */
static const struct unit duration_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", UINT64_C(60) * 1000}, {"h", UINT64_C(3600) * 1000}, {NULL, 0}};
static const struct unit size_units[] = {{"B", 1},
                                         {"KiB", UINT64_C(1) << 10},
                                         {"MiB", UINT64_C(1) << 20},
                                         {"GiB", UINT64_C(1) << 30},
                                         {NULL, 0}};

/* By type. */
static const struct {
    const char *name;
    const char *unit;
} types[] = {
    [RBI_CONFIG_TYPE_TEXT] = {"text", ""},
    [RBI_CONFIG_TYPE_BOOL] = {"bool", ""},
    [RBI_CONFIG_TYPE_NUMBER] = {"number", ""},
    [RBI_CONFIG_TYPE_RATE] = {"rate", "per second"},
    [RBI_CONFIG_TYPE_DURATION] = {"duration", "ms, s, m, h"},
    [RBI_CONFIG_TYPE_SIZE] = {"size", "B, KiB, MiB, GiB"},
    [RBI_CONFIG_TYPE_MODE] = {"mode", "octal"},
    [RBI_CONFIG_TYPE_CHOICE] = {"choice", ""},
    [RBI_CONFIG_TYPE_USERS] = {"users", ""},
    [RBI_CONFIG_TYPE_PERCENT] = {"percent", "%"},
    [RBI_CONFIG_TYPE_SHARE] = {"share", "%"},
    [RBI_CONFIG_TYPE_MICROS] = {"duration", "us, ms, s"},
    [RBI_CONFIG_TYPE_POWER] = {"number", ""},
    [RBI_CONFIG_TYPE_COUNT] = {"number", ""},
    [RBI_CONFIG_TYPE_MASK] = {"mask", ""},
    [RBI_CONFIG_TYPE_MASK64] = {"mask", ""},
    [RBI_CONFIG_TYPE_RANGE] = {"range", ""},
    [RBI_CONFIG_TYPE_LABEL] = {"label", ""},
    [RBI_CONFIG_TYPE_SET] = {"set", ""},
    [RBI_CONFIG_TYPE_IDC] = {"location", ""},
    [RBI_CONFIG_TYPE_GLOB] = {"pattern", ""},
    [RBI_CONFIG_TYPE_INSTANCE] = {"path", ""},
    [RBI_CONFIG_TYPE_BYTES] = {"text", ""},
    [RBI_CONFIG_TYPE_HEX] = {"bytes", "hexadecimal"},
    [RBI_CONFIG_TYPE_DECIMAL] = {"decimal", ""},
};

const char *rbi_config_type_name(enum rbi_config_type type)
{
    return (size_t)type < RBI_ARRAY_SIZE(types) ? types[type].name : "?";
}

const char *rbi_config_type_unit(enum rbi_config_type type)
{
    return (size_t)type < RBI_ARRAY_SIZE(types) ? types[type].unit : "";
}

static const struct unit *units_of(enum rbi_config_type type)
{
    if (type == RBI_CONFIG_TYPE_DURATION) {
        return duration_units;
    }
    return type == RBI_CONFIG_TYPE_SIZE ? size_units : NULL;
}

/** Appends to a message; what does not fit is cut. */
static RBI_PRINTF(3, 4) void append(char *buffer, size_t size, const char *format, ...)
{
    const size_t used = strlen(buffer);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(buffer + used, size - used, format, args);
    va_end(args);
}

/** A value as one would write it: the largest unit that divides it. */
static void
append_value(const struct rbi_config_key *key, uint64_t value, char *buffer, size_t size)
{
    const struct unit *units = units_of(key->type);
    if (key->type == RBI_CONFIG_TYPE_MODE) {
        append(buffer, size, "%04o", (unsigned)value);
    } else if (!units) {
        append(buffer, size, "%llu", (unsigned long long)value);
    } else {
        const struct unit *best = units;
        for (const struct unit *u = units; u->name; u++) {
            if (value != 0 && value % u->factor == 0) {
                best = u;
            }
        }
        append(buffer, size, "%llu%s", (unsigned long long)(value / best->factor), best->name);
    }
}

void rbi_config_value_range(const struct rbi_config_key *key, char *buffer, size_t size)
{
    buffer[0] = '\0';
    if (key->type > RBI_CONFIG_TYPE_USERS) {
        rbi_config_policy_range(key, buffer, size);
    } else if (key->type == RBI_CONFIG_TYPE_BOOL) {
        append(buffer, size, "true, false");
    } else if (key->type == RBI_CONFIG_TYPE_CHOICE) {
        for (const char *const *c = key->choices; *c; c++) {
            append(buffer, size, "%s%s", c == key->choices ? "" : ", ", *c);
        }
    } else {
        append_value(key, key->min, buffer, size);
        append(buffer, size, "..");
        append_value(key, key->max, buffer, size);
        append(buffer, size, "%s",
               key->type == RBI_CONFIG_TYPE_TEXT    ? " bytes"
               : key->type == RBI_CONFIG_TYPE_USERS ? " users"
                                                    : "");
    }
}

void rbi_config_value_describe(const struct rbi_config_key *key, struct rbi_config_fault *fault)
{
    char range[RBI_CONFIG_VALUE_MAX];
    const char *form = "";
    if (key->type > RBI_CONFIG_TYPE_USERS) {
        rbi_config_policy_describe(key, fault);
        return;
    }
    rbi_config_value_range(key, range, sizeof range);
    switch ((unsigned)key->type) { /* the others are those of policies */
    case RBI_CONFIG_TYPE_TEXT:
        form = "a text of ";
        break;
    case RBI_CONFIG_TYPE_BOOL:
    case RBI_CONFIG_TYPE_CHOICE:
        form = "one of ";
        break;
    case RBI_CONFIG_TYPE_NUMBER:
        form = "a decimal number in ";
        break;
    case RBI_CONFIG_TYPE_RATE:
        form = "a decimal number (per second) in ";
        break;
    case RBI_CONFIG_TYPE_DURATION:
        form = "a duration such as 500ms, 5s, 2m or 1h in ";
        break;
    case RBI_CONFIG_TYPE_SIZE:
        form = "a size such as 512B, 64KiB, 4MiB or 1GiB in ";
        break;
    case RBI_CONFIG_TYPE_MODE:
        form = "four octal digits such as 0666 in ";
        break;
    case RBI_CONFIG_TYPE_USERS:
        form = "a map of user ids, such as {65534: {links: 10}}, of ";
        break;
    default:
        break;
    }
    fault->expected[0] = '\0';
    fault->hint[0] = '\0';
    append(fault->expected, sizeof fault->expected, "%s%s", form, range);
}

#define HINT(fault, ...) append((fault)->hint, sizeof(fault)->hint, __VA_ARGS__)

/** Number of leading decimal digits. */
static size_t digits_at(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && text[n] >= '0' && text[n] <= '9') {
        n++;
    }
    return n;
}

/** Decimal digits to a value; saturates, since no range reaches that far. */
static uint64_t decimal(const char *text, size_t length)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
            return UINT64_MAX;
        }
    }
    return value;
}

/** Why this is not a plain decimal number; @p n digits lead it. */
static void hint_number(const char *text, size_t length, size_t n, struct rbi_config_fault *fault)
{
    if (length > 0 && text[0] == '-') {
        HINT(fault, "it cannot be negative");
    } else if (length > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        HINT(fault, "hexadecimal is not taken");
    } else if (n > 1 && text[0] == '0') {
        HINT(fault, "a leading zero could mean octal");
    } else if (n > 0 && n < length && (text[n] == '.' || text[n] == 'e' || text[n] == 'E')) {
        HINT(fault, "whole numbers only");
    } else if (n > 0 && n < length && (text[n] == '_' || text[n] == ',')) {
        HINT(fault, "digits are not grouped");
    }
}

int rbi_config_number(const char *text,
                      size_t length,
                      uint64_t *value,
                      struct rbi_config_fault *fault)
{
    const size_t n = digits_at(text, length);
    if (n == 0 || n != length || (n > 1 && text[0] == '0')) {
        hint_number(text, length, n, fault);
        return 1;
    }
    *value = decimal(text, n);
    return 0;
}

/** Finds the unit that was probably meant: the same first letter, whatever its case. */
static void hint_unit(const struct unit *units,
                      const char *text,
                      size_t length,
                      size_t n,
                      struct rbi_config_fault *fault)
{
    char found[RBI_CONFIG_QUOTE_MAX];
    if (text[n] == ' ' || text[n] == '\t') {
        HINT(fault, "no space before the unit");
        return;
    }
    HINT(fault, "%s is not a unit here",
         rbi_config_quote(text + n, length - n, found, sizeof found));
    if (units == duration_units && text[n] == 'M') {
        HINT(fault, "; minutes are m");
        return;
    }
    if (units == duration_units) {
        return;
    }
    for (const struct unit *u = units; u->name; u++) {
        if ((text[n] | 0x20) == (u->name[0] | 0x20)) {
            HINT(fault, "; did you mean %.*s%s?", (int)rbi_min_u64(n, 12), text, u->name);
        }
    }
}

static int parse_with_unit(const struct rbi_config_key *key,
                           const char *text,
                           size_t length,
                           uint64_t *value,
                           struct rbi_config_fault *fault)
{
    const struct unit *units = units_of(key->type);
    const size_t n = digits_at(text, length);
    if (n == 0 || (n > 1 && text[0] == '0') || (n < length && strchr(".eExX_,", text[n]))) {
        hint_number(text, length, n, fault);
        return 1;
    }
    if (n == length) {
        HINT(fault, "the unit is missing: %s", rbi_config_type_unit(key->type));
        return 1;
    }
    for (const struct unit *u = units; u->name; u++) {
        if (strlen(u->name) == length - n && memcmp(text + n, u->name, length - n) == 0) {
            if (__builtin_mul_overflow(decimal(text, n), u->factor, value)) {
                *value = UINT64_MAX;
            }
            return 0;
        }
    }
    hint_unit(units, text, length, n, fault);
    return 1;
}

static int
parse_mode(const char *text, size_t length, uint64_t *value, struct rbi_config_fault *fault)
{
    uint64_t mode = 0;
    for (size_t i = 0; i < length && i < 4; i++) {
        if (text[i] < '0' || text[i] > '7') {
            return 1;
        }
        mode = mode << 3 | (uint64_t)(text[i] - '0');
    }
    if (length != 4 || text[0] != '0') {
        HINT(fault, "a leading zero and three digits");
        return 1;
    }
    *value = mode;
    return 0;
}

static int parse_word(const char *const *words,
                      const char *text,
                      size_t length,
                      uint64_t *value,
                      struct rbi_config_fault *fault)
{
    const char *near = NULL;
    unsigned nearest = UINT32_MAX;
    for (uint64_t i = 0; words[i]; i++) {
        const size_t word_length = strlen(words[i]);
        if (word_length == length && memcmp(words[i], text, length) == 0) {
            *value = i;
            return 0;
        }
        const unsigned d = rbi_config_distance(words[i], word_length, text, length);
        if (d < nearest) {
            nearest = d;
            near = words[i];
        }
    }
    if (near) {
        HINT(fault, "did you mean %s?", near);
    }
    return 1;
}

static int parse_text(const struct rbi_config_key *key,
                      const char *text,
                      size_t length,
                      void *config,
                      struct rbi_config_fault *fault)
{
    if (length < key->min || length > key->max || length > RBI_CONFIG_STRING_MAX) {
        HINT(fault, "it has %zu bytes", length);
        return 1;
    }
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        /* C2 80..C2 9F are control characters too; a terminal that shows the log obeys them. */
        const bool c1 = c == 0xc2 && i + 1 < length && (unsigned char)text[i + 1] < 0xa0;
        if (c < 0x20 || c == 0x7f || c1) {
            HINT(fault, "control characters are not taken");
            return 1;
        }
    }
    char *member = (char *)config + key->offset;
    memcpy(member, text, length);
    memset(member + length, 0, RBI_CONFIG_STRING_MAX + 1 - length);
    return 0;
}

static void store(const struct rbi_config_key *key, uint64_t value, void *config)
{
    char *member = (char *)config + key->offset;
    if (key->type == RBI_CONFIG_TYPE_SIZE) {
        memcpy(member, &value, sizeof value);
    } else if (key->type == RBI_CONFIG_TYPE_BOOL) {
        const bool flag = value != 0;
        memcpy(member, &flag, sizeof flag);
    } else {
        const uint32_t narrow = (uint32_t)value;
        memcpy(member, &narrow, sizeof narrow);
    }
}

static uint64_t load(const struct rbi_config_key *key, const void *config)
{
    const char *member = (const char *)config + key->offset;
    uint64_t value = 0;
    if (key->type == RBI_CONFIG_TYPE_SIZE) {
        memcpy(&value, member, sizeof value);
    } else if (key->type == RBI_CONFIG_TYPE_BOOL) {
        bool flag;
        memcpy(&flag, member, sizeof flag);
        value = flag;
    } else {
        uint32_t narrow;
        memcpy(&narrow, member, sizeof narrow);
        value = narrow;
    }
    return value;
}

void rbi_config_value_copy(const struct rbi_config_key *from,
                           const struct rbi_config_key *to,
                           void *config)
{
    RBI_ASSERT(from->type == to->type && from->type != RBI_CONFIG_TYPE_TEXT);
    store(to, load(from, config), config);
}

int rbi_config_value_parse(const struct rbi_config_key *key,
                           const char *text,
                           size_t length,
                           void *config,
                           struct rbi_config_fault *fault)
{
    static const char *const flags[] = {"false", "true", NULL};
    uint64_t value = 0;
    int r = 1;
    rbi_config_value_describe(key, fault);
    if (key->type > RBI_CONFIG_TYPE_USERS) {
        return rbi_config_policy_parse(key, text, length, config, fault);
    }
    switch ((unsigned)key->type) { /* the others are those of policies */
    case RBI_CONFIG_TYPE_TEXT:
        return parse_text(key, text, length, config, fault);
    case RBI_CONFIG_TYPE_BOOL:
        r = parse_word(flags, text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_CHOICE:
        r = parse_word(key->choices, text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_NUMBER:
    case RBI_CONFIG_TYPE_RATE:
        r = rbi_config_number(text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_DURATION:
    case RBI_CONFIG_TYPE_SIZE:
        r = parse_with_unit(key, text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_MODE:
        r = parse_mode(text, length, &value, fault);
        break;
    default: /* a map is no scalar */
        break;
    }
    if (r != 0) {
        return 1;
    }
    if (value < key->min || value > key->max) {
        HINT(fault, "out of range");
        return 1;
    }
    store(key, value, config);
    return 0;
}

void rbi_config_value_print(const struct rbi_config_key *key,
                            const void *config,
                            char *buffer,
                            size_t size)
{
    buffer[0] = '\0';
    if (key->type == RBI_CONFIG_TYPE_TEXT) {
        append(buffer, size, "\"%s\"", (const char *)config + key->offset);
        return;
    }
    if (key->type == RBI_CONFIG_TYPE_USERS) {
        append(buffer, size, "{}");
        return;
    }
    const uint64_t value = load(key, config);
    switch ((unsigned)key->type) { /* the others are those of policies */
    case RBI_CONFIG_TYPE_BOOL:
        append(buffer, size, "%s", value ? "true" : "false");
        break;
    case RBI_CONFIG_TYPE_CHOICE:
        append(buffer, size, "%s", value <= key->max ? key->choices[value] : "?");
        break;
    case RBI_CONFIG_TYPE_DURATION:
        append(buffer, size, "%llu ms", (unsigned long long)value);
        break;
    case RBI_CONFIG_TYPE_SIZE:
        append(buffer, size, "%llu B", (unsigned long long)value);
        break;
    case RBI_CONFIG_TYPE_RATE:
        append(buffer, size, "%llu per second", (unsigned long long)value);
        break;
    case RBI_CONFIG_TYPE_MODE:
        append(buffer, size, "%04o", (unsigned)value);
        break;
    default:
        append(buffer, size, "%llu", (unsigned long long)value);
        break;
    }
}
