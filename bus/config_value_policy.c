/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_value_policy.c - the values that only policies have: percentages, masks, ranges of
 * methods, labels, patterns, bytes. As strict as the others: a unit is part of the value.
 */
#include "bus/config_schema.h"
#include "bus/glob.h"
#include "bus/label.h"
#include "bus/policy.h"

#include <stdio.h>
#include <string.h>

#define MILLION          1000000
#define DECIMALS         6U
#define HINT(fault, ...) (void)snprintf((fault)->hint, sizeof(fault)->hint, __VA_ARGS__)

/* ---- what they look like ---------------------------------------------------------------- */

void rbi_config_policy_range(const struct rbi_config_key *key, char *buffer, size_t size)
{
    const unsigned long long min = key->min;
    const unsigned long long max = key->max;
    switch ((unsigned)key->type) {
    case RBI_CONFIG_TYPE_PERCENT:
        (void)snprintf(buffer, size, "%llu%%..%llu%%", min, max);
        break;
    case RBI_CONFIG_TYPE_SHARE:
        (void)snprintf(buffer, size, "%llu%%..%llu%%", min / 100, max / 100);
        break;
    case RBI_CONFIG_TYPE_MICROS:
        (void)snprintf(buffer, size, max < 1000000 ? "%lluus..%llums" : "%lluus..%llus", min,
                       max < 1000000 ? max / 1000 : max / 1000000);
        break;
    case RBI_CONFIG_TYPE_DECIMAL:
        (void)snprintf(buffer, size, "%llu..%llu", min / MILLION, max / MILLION);
        break;
    case RBI_CONFIG_TYPE_POWER:
        (void)snprintf(buffer, size, "0, or a power of two in %llu..%llu", min, max);
        break;
    case RBI_CONFIG_TYPE_RANGE:
        (void)snprintf(buffer, size, "N, N..M, all");
        break;
    case RBI_CONFIG_TYPE_SET:
        (void)snprintf(buffer, size, "name.area.group");
        break;
    case RBI_CONFIG_TYPE_IDC:
        (void)snprintf(buffer, size, "group, group/zone");
        break;
    case RBI_CONFIG_TYPE_LABEL:
    case RBI_CONFIG_TYPE_GLOB:
    case RBI_CONFIG_TYPE_BYTES:
    case RBI_CONFIG_TYPE_HEX:
        (void)snprintf(buffer, size, "%llu..%llu bytes", min, max);
        break;
    case RBI_CONFIG_TYPE_INSTANCE:
        (void)snprintf(buffer, size, "%u elements", RBI_PATH_INSTANCE_ELEMENTS);
        break;
    case RBI_CONFIG_TYPE_MASK:
    case RBI_CONFIG_TYPE_MASK64:
        (void)snprintf(buffer, size, "0..0x%llx", max);
        break;
    default:
        (void)snprintf(buffer, size, "%llu..%llu", min, max);
        break;
    }
}

void rbi_config_policy_describe(const struct rbi_config_key *key, struct rbi_config_fault *fault)
{
    char range[RBI_CONFIG_VALUE_MAX];
    const char *form = "a decimal number in ";
    rbi_config_policy_range(key, range, sizeof range);
    switch ((unsigned)key->type) {
    case RBI_CONFIG_TYPE_PERCENT:
        form = "a whole percentage such as 50% in ";
        break;
    case RBI_CONFIG_TYPE_SHARE:
        form = "a percentage such as 5% or 0.25% in ";
        break;
    case RBI_CONFIG_TYPE_MICROS:
        form = "a duration such as 500us, 5ms or 1s in ";
        break;
    case RBI_CONFIG_TYPE_DECIMAL:
        form = "a number such as 250 or 0.05 in ";
        break;
    case RBI_CONFIG_TYPE_POWER:
        form = "a number that is ";
        break;
    case RBI_CONFIG_TYPE_MASK:
    case RBI_CONFIG_TYPE_MASK64:
        form = "a number such as 255 or 0xff in ";
        break;
    case RBI_CONFIG_TYPE_RANGE:
        form = "numbers as ";
        break;
    case RBI_CONFIG_TYPE_LABEL:
        form = "letters, digits and any of _.-*:,= of ";
        break;
    case RBI_CONFIG_TYPE_SET:
        form = "a set as ";
        break;
    case RBI_CONFIG_TYPE_IDC:
        form = "a location as ";
        break;
    case RBI_CONFIG_TYPE_GLOB:
        form = "a pattern of paths such as /game/*/*/*/*/lobby or /game/** of ";
        break;
    case RBI_CONFIG_TYPE_INSTANCE:
        form = "the path of an instance of ";
        break;
    case RBI_CONFIG_TYPE_BYTES:
        form = "a text of ";
        break;
    case RBI_CONFIG_TYPE_HEX:
        form = "two hexadecimal digits for each of ";
        break;
    default:
        break;
    }
    fault->hint[0] = '\0';
    (void)snprintf(fault->expected, sizeof fault->expected, "%s%.90s", form, range);
}

/* ---- numbers ---------------------------------------------------------------------------- */

static int
parse_percent(const char *text, size_t length, uint64_t *value, struct rbi_config_fault *fault)
{
    if (length == 0 || text[length - 1] != '%') {
        HINT(fault, "the unit is missing: %%");
        return 1;
    }
    return rbi_config_number(text, length - 1, value, fault);
}

/** "2.25%" to 225. */
static int
parse_share(const char *text, size_t length, uint64_t *value, struct rbi_config_fault *fault)
{
    uint64_t hundredths = 0;
    const char *point = memchr(text, '.', length);
    if (!point) {
        const int r = parse_percent(text, length, value, fault);
        *value = r == 0 ? rbi_min_u64(*value, UINT32_MAX) * 100 : 0;
        return r;
    }
    const size_t decimals = (size_t)(text + length - point) - 1; /* and the sign */
    const bool fits = (decimals == 2 || decimals == 3) && text[length - 1] == '%';
    for (size_t i = 1; fits && i < decimals; i++) {
        if (point[i] < '0' || point[i] > '9') {
            return 1;
        }
        hundredths += (uint64_t)(point[i] - '0') * (i == 1 ? 10 : 1);
    }
    if (!fits || rbi_config_number(text, (size_t)(point - text), value, fault) != 0) {
        HINT(fault, "one or two decimals, and %%");
        return 1;
    }
    *value = rbi_min_u64(*value, UINT32_MAX) * 100 + hundredths;
    return 0;
}

/** "0.05" to 50,000: millionths. */
static int
parse_decimal(const char *text, size_t length, uint64_t *value, struct rbi_config_fault *fault)
{
    const char *point = memchr(text, '.', length);
    const size_t digits = point ? (size_t)(point - text) : length;
    const size_t decimals = point ? length - digits - 1 : 0;
    uint64_t part = 0;
    if (point && (decimals == 0 || decimals > DECIMALS)) {
        HINT(fault, "one to six decimals");
        return 1;
    }
    for (size_t i = 1; i <= DECIMALS && point; i++) {
        const char at = (char)(i <= decimals ? point[i] : '0');
        if (at < '0' || at > '9') {
            return 1;
        }
        part = part * 10 + (uint64_t)(at - '0');
    }
    if (rbi_config_number(text, digits, value, fault) != 0) {
        return 1;
    }
    *value = rbi_min_u64(*value, UINT64_MAX / MILLION - 1) * MILLION + part;
    return 0;
}

static int
parse_micros(const char *text, size_t length, uint64_t *value, struct rbi_config_fault *fault)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};
    size_t digits = 0;
    while (digits < length && text[digits] >= '0' && text[digits] <= '9') {
        digits++;
    }
    for (size_t i = 0; i < RBI_ARRAY_SIZE(units); i++) {
        if (strlen(units[i].name) == length - digits &&
            memcmp(text + digits, units[i].name, length - digits) == 0 &&
            rbi_config_number(text, digits, value, fault) == 0) {
            *value = rbi_min_u64(*value, UINT32_MAX) * units[i].factor;
            return 0;
        }
    }
    if (digits == length) {
        HINT(fault, "the unit is missing: us, ms, s");
    }
    return 1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static int
parse_mask(const char *text, size_t length, uint64_t *value, struct rbi_config_fault *fault)
{
    if (length < 2 || memcmp(text, "0x", 2) != 0) {
        return rbi_config_number(text, length, value, fault);
    }
    uint64_t mask = 0;
    for (size_t i = 2; i < length; i++) {
        const int digit = hex_digit(text[i]);
        if (digit < 0 || length > 18) {
            return 1;
        }
        mask = mask << 4 | (uint64_t)digit;
    }
    *value = mask;
    return length > 2 ? 0 : 1;
}

static int
parse_range(const char *text, size_t length, char *member, struct rbi_config_fault *fault)
{
    uint32_t range[2] = {0, UINT32_MAX};
    uint64_t low = 0;
    uint64_t high = UINT32_MAX;
    size_t first = 0;
    if (length != 3 || memcmp(text, "all", 3) != 0) {
        while (first < length && text[first] != '.') {
            first++;
        }
        const bool one = first == length;
        if (rbi_config_number(text, first, &low, fault) != 0 ||
            (!one &&
             (length - first < 3 || text[first + 1] != '.' ||
              rbi_config_number(text + first + 2, length - first - 2, &high, fault) != 0))) {
            return 1;
        }
        high = one ? low : high;
        if (low > high || high > UINT32_MAX) {
            HINT(fault, low > high ? "the first is above the second" : "out of range");
            return 1;
        }
    }
    range[0] = (uint32_t)low;
    range[1] = (uint32_t)high;
    memcpy(member, range, sizeof range);
    return 0;
}

/* ---- texts ------------------------------------------------------------------------------ */

static int parse_label(const struct rbi_config_key *key,
                       const char *text,
                       size_t length,
                       char *member,
                       struct rbi_config_fault *fault)
{
    if (length < key->min || length > key->max) {
        HINT(fault, "it has %zu bytes", length);
        return 1;
    }
    for (size_t i = 0; i < length; i++) {
        if (!rbi_label_byte(text[i])) {
            return 1;
        }
    }
    memset(member, 0, RBI_LABEL_MAX + 1);
    memcpy(member, text, length);
    return 0;
}

/** A label of a form: what is not of it would count as not given. */
static int parse_place(const struct rbi_config_key *key,
                       const char *text,
                       size_t length,
                       char *member,
                       struct rbi_config_fault *fault)
{
    char place[RBI_LABEL_MAX + 1] = {0};
    if (length > RBI_LABEL_MAX || memchr(text, '\0', length)) {
        HINT(fault, "it has %zu bytes", length);
        return 1;
    }
    memcpy(place, text, length);
    if (!(key->type == RBI_CONFIG_TYPE_SET ? rbi_label_set_valid : rbi_label_idc_valid)(place)) {
        return 1;
    }
    memcpy(member, place, sizeof place);
    return 0;
}

static int parse_glob(const struct rbi_config_key *key,
                      const char *text,
                      size_t length,
                      char *member,
                      struct rbi_config_fault *fault)
{
    unsigned offset = 0;
    const enum rbi_glob_error error =
        length == 0 && key->min == 0 ? RBI_GLOB_OK : rbi_glob_check(text, length, &offset);
    if (error != RBI_GLOB_OK || length > key->max) {
        HINT(fault, "%s, at byte %u", rbi_glob_error_text(error), offset);
        return 1;
    }
    memset(member, 0, RBI_GLOB_MAX + 1);
    memcpy(member, text, length);
    return 0;
}

static int parse_instance(const char *text, size_t length, struct rbi_config_fault *fault)
{
    struct rbi_path_info info;
    if (rbi_path_parse(text, length, &info) != 0) {
        HINT(fault, "%s, at byte %u", rbi_path_error_text(info.error), info.error_offset);
        return 1;
    }
    if (info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        HINT(fault, "it has %u elements", info.elements);
        return 1;
    }
    return 0;
}

/** Of two digits, which were looked at. */
static unsigned char hex_byte(const char *digits)
{
    const unsigned high = (unsigned)hex_digit(digits[0]);
    return (unsigned char)(high << 4 | (unsigned)hex_digit(digits[1]));
}

static int parse_bytes(const struct rbi_config_key *key,
                       const char *text,
                       size_t length,
                       char *member,
                       struct rbi_config_fault *fault)
{
    const bool hex = key->type == RBI_CONFIG_TYPE_HEX;
    const uint32_t size = (uint32_t)(hex ? length / 2 : length);
    if (length / (hex ? 2 : 1) > key->max || (hex && length % 2 != 0)) {
        HINT(fault, hex && length % 2 != 0 ? "half a byte is left" : "it is longer");
        return 1;
    }
    for (size_t i = 0; hex && i < length; i++) {
        if (hex_digit(text[i]) < 0) {
            return 1;
        }
    }
    unsigned char *bytes = (unsigned char *)member + 8;
    memset(bytes, 0, key->max);
    for (uint32_t i = 0; i < size; i++) {
        if (hex) {
            bytes[i] = hex_byte(text + (size_t)i * 2);
        } else {
            bytes[i] = (unsigned char)text[i];
        }
    }
    memcpy(member, &size, sizeof size);
    return 0;
}

/* ---- all -------------------------------------------------------------------------------- */

static int store_number(const struct rbi_config_key *key,
                        uint64_t value,
                        char *member,
                        struct rbi_config_fault *fault)
{
    const uint32_t narrow = (uint32_t)value;
    const bool none = key->type == RBI_CONFIG_TYPE_POWER && value == 0;
    if (!none && (value < key->min || value > key->max ||
                  (key->type == RBI_CONFIG_TYPE_POWER && !rbi_is_pow2(value)))) {
        HINT(fault, "out of range");
        return 1;
    }
    if (key->type == RBI_CONFIG_TYPE_COUNT || key->type == RBI_CONFIG_TYPE_MASK64 ||
        key->type == RBI_CONFIG_TYPE_DECIMAL) {
        memcpy(member, &value, sizeof value);
    } else {
        memcpy(member, &narrow, sizeof narrow);
    }
    return 0;
}

int rbi_config_policy_parse(const struct rbi_config_key *key,
                            const char *text,
                            size_t length,
                            void *config,
                            struct rbi_config_fault *fault)
{
    char *member = (char *)config + key->offset;
    uint64_t value = 0;
    int r = 1;
    switch ((unsigned)key->type) {
    case RBI_CONFIG_TYPE_PERCENT:
        r = parse_percent(text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_SHARE:
        r = parse_share(text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_MICROS:
        r = parse_micros(text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_DECIMAL:
        r = parse_decimal(text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_MASK:
    case RBI_CONFIG_TYPE_MASK64:
        r = parse_mask(text, length, &value, fault);
        break;
    case RBI_CONFIG_TYPE_RANGE:
        return parse_range(text, length, member, fault);
    case RBI_CONFIG_TYPE_LABEL:
        return parse_label(key, text, length, member, fault);
    case RBI_CONFIG_TYPE_SET:
    case RBI_CONFIG_TYPE_IDC:
        return parse_place(key, text, length, member, fault);
    case RBI_CONFIG_TYPE_GLOB:
        return parse_glob(key, text, length, member, fault);
    case RBI_CONFIG_TYPE_INSTANCE:
        return parse_instance(text, length, fault);
    case RBI_CONFIG_TYPE_BYTES:
    case RBI_CONFIG_TYPE_HEX:
        return parse_bytes(key, text, length, member, fault);
    default:
        r = rbi_config_number(text, length, &value, fault);
        break;
    }
    return r != 0 ? 1 : store_number(key, value, member, fault);
}
