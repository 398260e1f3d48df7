/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ACL_H
#define RINGBUS_BUS_ACL_H
/*
 * bus/acl.h - who may do what to whom: an ordered list of rules. Pure; plain data without pointers,
 * which the parser fills and the daemon asks. Any thread that may read the list.
 *
 * The first rule that names the verb and matches both sides decides; when none does, the default
 * of the list (docs/guide/rights.md has the table). A rule matches when all that it says matches;
 * what it leaves open matches everybody.
 *
 * Rules are many, and callers ask about many objects: what a rule says of the caller is matched
 * once (rbi_acl_bind()), and only the rules that are left are walked for each object.
 */
#include "bus/policy.h"

/** What can be allowed or denied: bits, so that a rule may name several. */
enum rbi_acl_verb {
    RBI_ACL_OWN = 1,      /* to register under the name of the object, when it is free */
    RBI_ACL_TAKEOVER = 2, /* to take that name from an instance that lives */
    RBI_ACL_CONNECT = 4,  /* to ask for a link to the object */
    RBI_ACL_SEND = 8,     /* to send it messages, by method; answers to requests need no right */
    RBI_ACL_WATCH = 16,   /* to be told of it: events and rows */
    RBI_ACL_ADMIN = 32,   /* to drain, isolate, unshield it and the like */
};
#define RBI_ACL_VERBS 63U

/** What holds where no rule does. */
enum rbi_acl_default {
    RBI_ACL_DEFAULT_REALM = 0, /* as shipped: denied across realms; who is anonymous is in none */
    RBI_ACL_DEFAULT_ALLOW = 1,
    RBI_ACL_DEFAULT_DENY = 2,
};

#define RBI_ACL_BY_UID 1U /* given: the rule says which user */
#define RBI_ACL_BY_GID 2U

/** One rule. Texts are terminated; an empty one, but for the id, leaves it open. */
struct rbi_acl_rule {
    char id[RBI_LABEL_MAX + 1]; /* unique; told to whoever is refused by it */
    uint32_t deny;              /* 0: allows, 1: denies */
    uint32_t verbs;             /* enum rbi_acl_verb, one at least */
    uint32_t given;             /* RBI_ACL_BY_* */
    uint32_t uid;               /* of the caller's process */
    uint32_t gid;               /* its first group: as the kernel tells it of a connection */
    uint32_t method_low;        /* of SEND, inclusive; 0..UINT32_MAX: every one */
    uint32_t method_high;
    uint32_t reserved;
    char from[RBI_GLOB_MAX + 1];    /* glob of the caller's path; never anonymous */
    char to[RBI_GLOB_MAX + 1];      /* glob of the object's path */
    char realm[RBI_LABEL_MAX + 1];  /* of the caller: first element of its path */
    char tag[RBI_LABEL_MAX + 1];    /* that the caller carries, among others */
    char program[RBI_GLOB_MAX + 1]; /* its file, as the kernel names it: whole path, or last part */
    char cgroup[RBI_GLOB_MAX + 1];  /* glob of its control group */
    char host[RBI_LABEL_MAX + 1];   /* on which the caller lives; "*": any other than this one */
};

#define RBI_ACL_RULES_MAX 256U

/** All of them, in order. Zero bytes: none, and the default as shipped. */
struct rbi_acl {
    uint32_t otherwise; /* enum rbi_acl_default */
    uint32_t count;
    struct rbi_acl_rule rules[RBI_ACL_RULES_MAX];
};

/** Who asks. Texts are lent, need not be terminated where a length is beside them. */
struct rbi_acl_subject {
    const char *path;     /* of the caller, canonical */
    size_t path_length;   /* 0: anonymous, which has no path that a rule could name */
    const char *tags;     /* "a,b"; terminated */
    const char *program;  /* path of its file; terminated; "" is not known; for rbi_acl_bind() */
    const char *cgroup;   /* path of its control group (bus/cgroup.h); for rbi_acl_bind() */
    size_t cgroup_length; /* 0: not known */
    const char *host;     /* that it lives on; terminated; "" or NULL: this one, without a name */
    uint32_t uid;         /* of a remote one, what its host says */
    uint32_t gid;
    bool privileged; /* root, or the user that runs the daemon: they could replace it */
    /* Lives on another host: of its process nothing is known but by that host's word, which counts
     * for rules only that name the host. */
    bool remote;
};

/** What it is about: an instance, or the name that one asks for. */
struct rbi_acl_object {
    const char *path;
    size_t path_length;
    uint32_t uid;   /* whom it belongs to; of a free name, the caller's */
    bool anonymous; /* its path says nothing: it is of no realm */
};

/** Which rules are left for one caller. Good for as long as the list and the caller stay. */
struct rbi_acl_bound {
    uint64_t rules[RBI_ACL_RULES_MAX / 64];
};

#define RBI_ACL_NO_RULE UINT32_MAX

struct rbi_acl_verdict {
    bool allow;
    uint32_t rule; /* index of the rule that decided, or RBI_ACL_NO_RULE: the default did */
};

/** What is wrong with a list, for whoever wrote it. */
struct rbi_acl_fault {
    uint32_t rule; /* index */
    char text[160];
};

/** Whether every field is in its range. @retval 0; 1 @p fault names the first that is not */
RBI_MUST_CHECK int rbi_acl_check(const struct rbi_acl *acl, struct rbi_acl_fault *fault);
/** Finds the rules that match a caller. Cost: one walk over all rules. */
void rbi_acl_bind(const struct rbi_acl *acl,
                  const struct rbi_acl_subject *subject,
                  struct rbi_acl_bound *out);
/**
 * Whether the caller may do it. Cost: one glob for each rule of @p bound that names the verb.
 * @param verb  one of them. SEND: whether it may send any method at all; the rule is the first
 *              that allows one, or that denies them all.
 */
struct rbi_acl_verdict rbi_acl_ask(const struct rbi_acl *acl,
                                   const struct rbi_acl_bound *bound,
                                   const struct rbi_acl_subject *subject,
                                   enum rbi_acl_verb verb,
                                   const struct rbi_acl_object *object);
/** Name of the rule, or "default": lent by @p acl. */
const char *rbi_acl_rule_id(const struct rbi_acl *acl, struct rbi_acl_verdict verdict);
/** "connect", or "?". */
const char *rbi_acl_verb_name(enum rbi_acl_verb verb);

/* ---- methods --------------------------------------------------------------------------- */

#define RBI_ACL_RANGES_MAX 32U

struct rbi_acl_range {
    uint32_t low; /* inclusive */
    uint32_t high;
};

/** Which methods may be sent: ascending, apart from each other. */
struct rbi_acl_methods {
    uint32_t count; /* 0: none at all */
    struct rbi_acl_range ranges[RBI_ACL_RANGES_MAX];
};

/**
 * The right to send of one caller to one object, method by method.
 * @retval 0
 * @retval 1  it has more pieces than there is room for: the highest ones are left out, denied
 */
int rbi_acl_ask_methods(const struct rbi_acl *acl,
                        const struct rbi_acl_bound *bound,
                        const struct rbi_acl_subject *subject,
                        const struct rbi_acl_object *object,
                        struct rbi_acl_methods *out);
/** The same for one of them, with the rule that decides it. */
struct rbi_acl_verdict rbi_acl_ask_method(const struct rbi_acl *acl,
                                          const struct rbi_acl_bound *bound,
                                          const struct rbi_acl_subject *subject,
                                          const struct rbi_acl_object *object,
                                          uint32_t method);
/** Every method: nothing to look at. */
bool rbi_acl_methods_all(const struct rbi_acl_methods *methods);
bool rbi_acl_methods_have(const struct rbi_acl_methods *methods, uint32_t method);
bool rbi_acl_methods_equal(const struct rbi_acl_methods *a, const struct rbi_acl_methods *b);
/**
 * As text: "1-99,200"; "" every method, "none" none.
 * @retval 0
 * @retval 1  it does not fit: the highest pieces are left out, denied
 */
int rbi_acl_methods_write(const struct rbi_acl_methods *methods, char *out, size_t size);
/** The way back. Untrusted input, terminated. @retval 0; 1 it is none: @p out is no method */
int rbi_acl_methods_read(const char *text, struct rbi_acl_methods *out);

#endif
