/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_CONFIG_SCHEMA_H
#define RINGBUS_BUS_CONFIG_SCHEMA_H
/*
 * bus/config_schema.h - the table that drives the configuration parser, and the
 * parser over any such table (tests bring tables of their own). Internal to
 * bus/config*.c and their tests. Pure; any thread.
 */
#include "bus/config.h"

/** What a value looks like, and the member that it fills. */
enum rbi_config_type {
    RBI_CONFIG_TYPE_TEXT,     /* char[RBI_CONFIG_STRING_MAX + 1]; min, max: bytes */
    RBI_CONFIG_TYPE_BOOL,     /* bool: true or false */
    RBI_CONFIG_TYPE_NUMBER,   /* uint32_t: decimal, no sign, no leading zero */
    RBI_CONFIG_TYPE_RATE,     /* uint32_t: the same, a second */
    RBI_CONFIG_TYPE_DURATION, /* uint32_t, ms: number and ms, s, m or h */
    RBI_CONFIG_TYPE_SIZE,     /* uint64_t, bytes: number and B, KiB, MiB or GiB */
    RBI_CONFIG_TYPE_MODE,     /* uint32_t: four octal digits */
    RBI_CONFIG_TYPE_CHOICE,   /* enum (uint32_t): index into choices */
    /* struct rbi_config_users: a map from user ids to maps of the other keys of its section */
    RBI_CONFIG_TYPE_USERS,
    /* What policies need as well (config_value_policy.c). */
    RBI_CONFIG_TYPE_PERCENT,  /* uint32_t: number and % */
    RBI_CONFIG_TYPE_SHARE,    /* uint32_t, of 10,000: percent with up to two decimals */
    RBI_CONFIG_TYPE_MICROS,   /* uint32_t, us: number and us, ms or s */
    RBI_CONFIG_TYPE_POWER,    /* uint32_t: 0 or a power of two */
    RBI_CONFIG_TYPE_COUNT,    /* uint64_t: as NUMBER */
    RBI_CONFIG_TYPE_MASK,     /* uint32_t: decimal, or hexadecimal with 0x */
    RBI_CONFIG_TYPE_MASK64,   /* uint64_t: the same */
    RBI_CONFIG_TYPE_RANGE,    /* uint32_t[2]: "7", "3..9" or "all" */
    RBI_CONFIG_TYPE_LABEL,    /* char[RBI_LABEL_MAX + 1]; min, max: bytes */
    RBI_CONFIG_TYPE_SET,      /* the same: name.area.group (label.h), or "" */
    RBI_CONFIG_TYPE_IDC,      /* the same: group or group/zone, or "" */
    RBI_CONFIG_TYPE_GLOB,     /* char[RBI_GLOB_MAX + 1]: pattern of paths (glob.h); min 0: or "" */
    RBI_CONFIG_TYPE_INSTANCE, /* no member: path of 7 elements, as a name */
    RBI_CONFIG_TYPE_BYTES,    /* {uint32_t size, uint32_t, unsigned char[max]}: text as it stands */
    RBI_CONFIG_TYPE_HEX,      /* the same: two hexadecimal digits a byte */
    RBI_CONFIG_TYPE_DECIMAL,  /* uint64_t, millionths: number with up to six decimals */
};

/** Room for the member of any type. */
#define RBI_CONFIG_MEMBER_MAX 1032U

struct rbi_config_key {
    const char *name; /* "section.key" */
    enum rbi_config_type type;
    bool restart;
    size_t offset; /* of the member */
    uint64_t min;  /* in base units; inclusive */
    uint64_t max;
    const char *default_text;
    const char *const *choices; /* CHOICE only, ends with NULL */
    const char *text;
};

#define RBI_CONFIG_KEYS_MAX 64U

struct rbi_config_schema {
    const struct rbi_config_key *keys; /* keys of one section stand together */
    size_t count;                      /* at most RBI_CONFIG_KEYS_MAX */
    size_t size;                       /* bytes of the structure */
};

extern const struct rbi_config_schema rbi_config_schema;

/**
 * As rbi_config_parse(), over any table. @p out holds @p schema->size bytes.
 * @param scratch  as large as @p out; its content is undefined after a failure
 */
RBI_MUST_CHECK int rbi_config_parse_with(const struct rbi_config_schema *schema,
                                         const char *text,
                                         size_t size,
                                         void *out,
                                         void *scratch,
                                         struct rbi_config_errors *errors);
/** As rbi_config_defaults(), over any table. */
void rbi_config_defaults_with(const struct rbi_config_schema *schema, void *config);

/* ---- values (config_value.c) ------------------------------------------------------------ */

/** Room for any value or range as text. */
#define RBI_CONFIG_VALUE_MAX (RBI_CONFIG_STRING_MAX + 16U)

/** Why a value was refused. */
struct rbi_config_fault {
    char expected[160]; /* "a duration such as 500ms, 5s, 2m or 1h" */
    char hint[120];     /* "the unit is missing"; empty when there is nothing to add */
};

/**
 * Stores a value. Untrusted input, @p text need not be terminated.
 * @retval 0  stored in the member of @p config
 * @retval 1  @p fault says why not; @p config is untouched
 */
RBI_MUST_CHECK int rbi_config_value_parse(const struct rbi_config_key *key,
                                          const char *text,
                                          size_t length,
                                          void *config,
                                          struct rbi_config_fault *fault);
/** Fills in what a key takes; no hint. */
void rbi_config_value_describe(const struct rbi_config_key *key, struct rbi_config_fault *fault);
/** Effective value in base units: "1000 ms", "4194304 B", "200 per second". */
void rbi_config_value_print(const struct rbi_config_key *key,
                            const void *config,
                            char *buffer,
                            size_t size);
/** "100ms..1m"; for choices their list. */
void rbi_config_value_range(const struct rbi_config_key *key, char *buffer, size_t size);
const char *rbi_config_type_name(enum rbi_config_type type);
/** "ms, s, m, h"; empty where there is none. */
const char *rbi_config_type_unit(enum rbi_config_type type);

/* Of the types that policies need as well; each has the contract of the function without "policy".
 */
RBI_MUST_CHECK int rbi_config_policy_parse(const struct rbi_config_key *key,
                                           const char *text,
                                           size_t length,
                                           void *config,
                                           struct rbi_config_fault *fault);
void rbi_config_policy_describe(const struct rbi_config_key *key, struct rbi_config_fault *fault);
void rbi_config_policy_range(const struct rbi_config_key *key, char *buffer, size_t size);
/** What both kinds of types share: digits, and why they are none. */
RBI_MUST_CHECK int
rbi_config_number(const char *text, size_t length, uint64_t *value, struct rbi_config_fault *fault);

/** Copies the value of one key to the member of another of the same type. */
void rbi_config_value_copy(const struct rbi_config_key *from,
                           const struct rbi_config_key *to,
                           void *config);

/* ---- users (config_users.c) ------------------------------------------------------------- */

/** Room for the name of a user's key. */
#define RBI_CONFIG_USER_NAME_MAX 64U

/** A key of a section as one user has it: "quota.links" is "quota.users.1000.links". */
struct rbi_config_user_key {
    struct rbi_config_key key; /* its name is the one below: not to be copied */
    char name[RBI_CONFIG_USER_NAME_MAX];
};
/** @param item  of the users in @p config */
void rbi_config_user_key(const struct rbi_config_key *key,
                         const void *config,
                         const struct rbi_config_user *item,
                         struct rbi_config_user_key *out);
/**
 * Entry of a user id, which is made if there is none yet. Untrusted text.
 * @retval 0  @p idx is set
 * @retval 1  @p fault says why not
 */
RBI_MUST_CHECK int rbi_config_users_enter(struct rbi_config_users *users,
                                          const char *text,
                                          size_t length,
                                          uint32_t *idx,
                                          struct rbi_config_fault *fault);
/** Gives users what was not given for them, once the whole text was read. */
void rbi_config_users_inherit(const struct rbi_config_schema *schema, void *config);

/** The part of rbi_config_diff() and rbi_config_print() that is about quota.users. */
void rbi_config_users_diff(const struct rbi_config_schema *schema,
                           const struct rbi_config *running,
                           const struct rbi_config *next,
                           rbi_config_diff_fn report,
                           void *context);
void rbi_config_users_print(const struct rbi_config_schema *schema,
                            const struct rbi_config *config,
                            rbi_config_print_fn report,
                            void *context);

/* ---- errors (config_error.c) ------------------------------------------------------------ */

/** A place in the text, 1-based; line 0: the file as a whole. */
struct rbi_config_place {
    unsigned line;
    unsigned column;
};

/** Counts an error; formats it only while there is room, so that many errors cost nothing. */
void rbi_config_error_add(struct rbi_config_errors *errors,
                          struct rbi_config_place place,
                          const char *format,
                          ...) RBI_PRINTF(3, 4);
/** False once rbi_config_error_add() only counts: costly details are not worth finding. */
bool rbi_config_error_wanted(const struct rbi_config_errors *errors);

/** Room for rbi_config_quote(). */
#define RBI_CONFIG_QUOTE_MAX 64U
/** "text" in quotes, cut and with unprintable bytes replaced, for a message. @return buffer */
const char *rbi_config_quote(const char *text, size_t length, char *buffer, size_t size);

/** Edit distance of two short texts; UINT32_MAX when it cannot matter (too long, too different). */
unsigned rbi_config_distance(const char *a, size_t a_length, const char *b, size_t b_length);

/**
 * Checks what the YAML reader does not say well or not quickly: bytes that do not belong into a
 * text file, encodings, directives. Untrusted input.
 * @param skip  set on success: bytes of a byte order mark to leave out
 * @retval 0; 1 with an entry in @p errors
 */
RBI_MUST_CHECK int rbi_config_text_check(const char *text,
                                         size_t size,
                                         size_t *skip,
                                         struct rbi_config_errors *errors);

#endif
