/* SPDX-License-Identifier: Apache-2.0 */
/* Command line to struct rbi_ctl_args, by the tables of commands.c. */
#include "daemon/ctl/ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RBI_CTL_CPU_MAX         1023U
#define RBI_CTL_DURATION_MAX_MS UINT64_C(3600000)

static int number_parse(const char *text, uint64_t max, uint64_t *out, const char **end)
{
    char *stop = NULL;
    if (*text < '0' || *text > '9') {
        return 1;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &stop, 10);
    if (errno != 0 || value > max) {
        return 1;
    }
    *out = value;
    *end = stop;
    return 0;
}

int rbi_ctl_duration_parse(const char *text, uint32_t *out_ms)
{
    static const struct {
        const char *unit;
        uint64_t factor_ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}};
    uint64_t value = 0;
    const char *unit = NULL;
    if (number_parse(text, RBI_CTL_DURATION_MAX_MS, &value, &unit) != 0) {
        return 1;
    }
    if (value == 0 && *unit == '\0') {
        *out_ms = 0;
        return 0;
    }
    for (size_t i = 0; i < RBI_ARRAY_SIZE(units); i++) {
        if (strcmp(unit, units[i].unit) == 0 &&
            value * units[i].factor_ms <= RBI_CTL_DURATION_MAX_MS) {
            *out_ms = (uint32_t)(value * units[i].factor_ms);
            return 0;
        }
    }
    return 1;
}

/* Of two options with one name it is that of the command. */
static const struct rbi_ctl_option *option_find(const char *text, size_t length, unsigned mask)
{
    for (unsigned i = 0; i < rbi_ctl_option_count; i++) {
        const char *name = rbi_ctl_options[i].name;
        if ((rbi_ctl_options[i].bit & mask) != 0 && strlen(name) == length &&
            memcmp(name, text, length) == 0) {
            return &rbi_ctl_options[i];
        }
    }
    return NULL;
}

static int bad_value(const struct rbi_ctl_option *option, const char *value, const char *expected)
{
    fprintf(stderr, "ringbusctl: %s: expected %s, found '%s'\n", option->name, expected, value);
    return RBI_CTL_USAGE;
}

static int duration_option(const struct rbi_ctl_option *option,
                           const char *value,
                           uint32_t min_ms,
                           uint32_t *out_ms)
{
    uint32_t parsed_ms = 0;
    if (rbi_ctl_duration_parse(value, &parsed_ms) != 0 || parsed_ms < min_ms) {
        return bad_value(option, value, "a time of at most 60m as in 500ms, 5s, 2m");
    }
    *out_ms = parsed_ms;
    return RBI_CTL_OK;
}

/* Numbers separated by commas. @return how many, 0 when the text is anything else */
static unsigned
list_parse(const char *text, uint64_t min, uint64_t max, uint32_t *out, unsigned room)
{
    for (unsigned count = 0; count < room;) {
        uint64_t value = 0;
        const char *end = NULL;
        if (number_parse(text, max, &value, &end) != 0 || value < min) {
            return 0;
        }
        out[count++] = (uint32_t)value;
        if (*end == '\0') {
            return count;
        }
        if (*end != ',') {
            return 0;
        }
        text = end + 1;
    }
    return 0;
}

/* How long a token is good: seconds, minutes, hours or days. */
static int
ttl_option(const struct rbi_ctl_option *option, const char *value, struct rbi_ctl_args *args)
{
    static const struct {
        const char *unit;
        uint32_t factor_s;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    uint64_t number = 0;
    const char *unit = NULL;
    if (number_parse(value, RBI_CTL_TTL_MAX_S, &number, &unit) == 0 && number > 0) {
        for (size_t i = 0; i < RBI_ARRAY_SIZE(units); i++) {
            if (strcmp(unit, units[i].unit) == 0 &&
                number * units[i].factor_s <= RBI_CTL_TTL_MAX_S) {
                args->ttl_s = number * units[i].factor_s;
                return RBI_CTL_OK;
            }
        }
    }
    return bad_value(option, value, "a time of at most 3660d as in 90s, 30m, 1h, 7d");
}

/* Of bench. */
static int
bench_option(struct rbi_ctl_args *args, const struct rbi_ctl_option *option, const char *value)
{
    uint32_t numbers[RBI_CTL_SIZES_MAX];
    unsigned count = 0;
    switch (option->bit) {
    case RBI_CTL_SECONDS:
        if (list_parse(value, 1, RBI_CTL_SECONDS_MAX, &args->seconds, 1) != 1) {
            return bad_value(option, value, "a number from 1 to 60");
        }
        return RBI_CTL_OK;
    case RBI_CTL_SIZE:
        count = list_parse(value, RBI_CTL_SIZE_MIN, RBI_CTL_SIZE_MAX, numbers, RBI_CTL_SIZES_MAX);
        if (count == 0) {
            return bad_value(option, value, "1 to 8 numbers from 16 to 1048576 as in 48,1024");
        }
        memcpy(args->sizes, numbers, count * sizeof numbers[0]);
        args->size_count = count;
        return RBI_CTL_OK;
    case RBI_CTL_CPUS:
        if (list_parse(value, 0, RBI_CTL_CPU_MAX, args->cpus, 2) != 2) {
            return bad_value(option, value, "two cores from 0 to 1023 as in 2,3");
        }
        return RBI_CTL_OK;
    default:
        return RBI_CTL_OK;
    }
}

/* Of changes of the configuration. */
static int
change_option(struct rbi_ctl_args *args, const struct rbi_ctl_option *option, const char *value)
{
    const char *end = NULL;
    switch (option->bit) {
    case RBI_CTL_EXPECT:
        if (number_parse(value, UINT64_MAX, &args->expect, &end) != 0 || *end != '\0') {
            return bad_value(option, value, "a version, as history shows it; 0: none yet");
        }
        return RBI_CTL_OK;
    case RBI_CTL_REVISION:
        if (number_parse(value, UINT64_MAX, &args->revision, &end) != 0 || *end != '\0' ||
            args->revision == 0) {
            return bad_value(option, value, "a revision, as get shows it");
        }
        return RBI_CTL_OK;
    case RBI_CTL_WHY:
        args->why = value;
        return RBI_CTL_OK;
    case RBI_CTL_TAGS:
        args->tags = value;
        return RBI_CTL_OK;
    default:
        return bench_option(args, option, value);
    }
}

/* Of explain. */
static int
message_option(struct rbi_ctl_args *args, const struct rbi_ctl_option *option, const char *value)
{
    switch (option->bit) {
    case RBI_CTL_TAG:
        args->tag = value;
        return RBI_CTL_OK;
    case RBI_CTL_METHOD:
        if (list_parse(value, 0, UINT32_MAX, &args->method, 1) != 1) {
            return bad_value(option, value, "a number from 0 to 4294967295");
        }
        return RBI_CTL_OK;
    case RBI_CTL_LABELS:
        if (list_parse(value, 0, UINT32_MAX, args->labels, RBI_CTL_LABELS_MAX) == 0) {
            return bad_value(option, value, "1 to 4 numbers as in 7,0,3");
        }
        return RBI_CTL_OK;
    case RBI_CTL_SET:
        args->set = value;
        return RBI_CTL_OK;
    case RBI_CTL_IDC:
        args->idc = value;
        return RBI_CTL_OK;
    case RBI_CTL_STATE:
        args->state = value;
        return RBI_CTL_OK;
    default:
        return change_option(args, option, value);
    }
}

static int
option_set(struct rbi_ctl_args *args, const struct rbi_ctl_option *option, const char *value)
{
    const char *end = NULL;
    args->given |= option->bit;
    switch (option->bit) {
    case RBI_CTL_JSON:
        args->json = true;
        return RBI_CTL_OK;
    case RBI_CTL_SOCKET:
        args->socket = value;
        return *value != '\0' ? RBI_CTL_OK : bad_value(option, value, "a file name");
    case RBI_CTL_KEY:
        args->key = value;
        return RBI_CTL_OK;
    case RBI_CTL_COUNT:
        if (number_parse(value, UINT64_C(1000000000000), &args->count, &end) != 0 || *end != '\0' ||
            args->count == 0) {
            return bad_value(option, value, "a number from 1 to 10^12");
        }
        return RBI_CTL_OK;
    case RBI_CTL_WAIT:
        return duration_option(option, value, 1, &args->timeout_ms);
    case RBI_CTL_INTERVAL:
        return duration_option(option, value, 0, &args->interval_ms);
    case RBI_CTL_PATH:
        args->path = value;
        return RBI_CTL_OK;
    case RBI_CTL_SUBJECT:
        args->subject = value;
        return RBI_CTL_OK;
    case RBI_CTL_TARGET:
        args->target = value;
        return RBI_CTL_OK;
    case RBI_CTL_KEY_FILE:
        args->key_file = value;
        return RBI_CTL_OK;
    case RBI_CTL_TTL:
        return ttl_option(option, value, args);
    default:
        return message_option(args, option, value);
    }
}

/* Takes the option at argv[*idx], and its value where it has one. */
static int option_parse(struct rbi_ctl_args *args, int argc, char **argv, int *idx)
{
    const char *text = argv[*idx];
    const char *equals = strchr(text, '=');
    const struct rbi_ctl_option *option = option_find(
        text, equals != NULL ? (size_t)(equals - text) : strlen(text), args->command->options);
    if (option == NULL) {
        fprintf(stderr, "ringbusctl: %s has no option '%s'; see: ringbusctl help %s\n",
                args->command->name, text, args->command->name);
        return RBI_CTL_USAGE;
    }
    if (option->value == NULL) {
        if (equals != NULL) {
            fprintf(stderr, "ringbusctl: %s takes no value\n", option->name);
            return RBI_CTL_USAGE;
        }
        return option_set(args, option, "");
    }
    if (equals != NULL) {
        return option_set(args, option, equals + 1);
    }
    if (*idx + 1 >= argc) {
        fprintf(stderr, "ringbusctl: %s needs a value: %s\n", option->name, option->value);
        return RBI_CTL_USAGE;
    }
    *idx += 1;
    return option_set(args, option, argv[*idx]);
}

static int operands_check(const struct rbi_ctl_args *args, unsigned count)
{
    const struct rbi_ctl_command *command = args->command;
    if (count >= command->operand_min && count <= command->operand_max) {
        return RBI_CTL_OK;
    }
    fprintf(stderr, "ringbusctl: usage: ringbusctl %s [OPTION...]%s%s\n", command->name,
            command->operands[0] != '\0' ? " " : "", command->operands);
    return RBI_CTL_USAGE;
}

static const struct rbi_ctl_command *command_of(int argc, char **argv)
{
    if (argc < 2) {
        fputs("ringbusctl: a command is needed; see: ringbusctl help\n", stderr);
        return NULL;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0) {
        name = "version";
    }
    const struct rbi_ctl_command *command = rbi_ctl_command_find(name);
    if (command == NULL) {
        fprintf(stderr, "ringbusctl: no command '%s'; see: ringbusctl help\n", name);
    }
    return command;
}

int rbi_ctl_args_parse(int argc, char **argv, struct rbi_ctl_args *out)
{
    struct rbi_ctl_args args = {.timeout_ms = 5000,
                                .interval_ms = 100,
                                .seconds = 5,
                                .sizes = {48, 1024, 65536},
                                .size_count = 3};
    unsigned count = 0;
    bool options = true;
    args.command = command_of(argc, argv);
    if (args.command == NULL) {
        return RBI_CTL_USAGE;
    }
    for (int i = 2; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            int r = option_parse(&args, argc, argv, &i);
            if (r != RBI_CTL_OK) {
                return r;
            }
        } else {
            if (count < RBI_ARRAY_SIZE(args.operands)) {
                args.operands[count] = argv[i];
            }
            count++;
        }
    }
    int r = operands_check(&args, count);
    if (r == RBI_CTL_OK) {
        args.operand_count = count;
        *out = args;
    }
    return r;
}
