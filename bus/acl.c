/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/acl.h"

#include "bus/glob.h"
#include "bus/subject.h"

#include <stdio.h>
#include <string.h>

/* ---- checking what was written ------------------------------------------------------------ */

static bool acl_text_ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/** @return what is wrong with a glob, or NULL */
static const char *acl_glob_fault(const char *glob)
{
    if (!acl_text_ends(glob, RBI_GLOB_MAX + 1)) {
        return "it does not end";
    }
    const size_t length = strlen(glob);
    const enum rbi_glob_error error = length ? rbi_glob_check(glob, length, NULL) : RBI_GLOB_OK;
    return error == RBI_GLOB_OK ? NULL : rbi_glob_error_text(error);
}

static bool acl_labels_end(const struct rbi_acl_rule *rule)
{
    return acl_text_ends(rule->id, sizeof(rule->id)) &&
           acl_text_ends(rule->realm, sizeof(rule->realm)) &&
           acl_text_ends(rule->tag, sizeof(rule->tag)) &&
           acl_text_ends(rule->program, sizeof(rule->program)) &&
           acl_text_ends(rule->host, sizeof(rule->host));
}

/** @return what is wrong with a rule, or NULL */
static const char *acl_rule_fault(const struct rbi_acl_rule *rule)
{
    if (!acl_labels_end(rule)) {
        return "a text does not end";
    }
    if (rule->id[0] == '\0') {
        return "it has no id";
    }
    if (rule->deny > 1 || (rule->given & ~(RBI_ACL_BY_UID | RBI_ACL_BY_GID)) != 0) {
        return "a flag is out of range";
    }
    if (rule->verbs == 0 || (rule->verbs & ~RBI_ACL_VERBS) != 0) {
        return "it names no verb that there is";
    }
    if (rule->method_low > rule->method_high) {
        return "its methods end before they begin";
    }
    if ((rule->verbs & RBI_ACL_SEND) == 0 &&
        (rule->method_low != 0 || rule->method_high != UINT32_MAX)) {
        return "it names methods, and not the verb send";
    }
    if (strchr(rule->tag, ',')) {
        return "its tag has a comma: no caller carries that";
    }
    return NULL;
}

static bool acl_id_is_taken(const struct rbi_acl *acl, uint32_t rule)
{
    for (uint32_t i = 0; i < rule; i++) {
        if (strcmp(acl->rules[i].id, acl->rules[rule].id) == 0) {
            return true;
        }
    }
    return false;
}

static int acl_fault(struct rbi_acl_fault *fault, uint32_t rule, const char *what, const char *text)
{
    fault->rule = rule;
    (void)snprintf(fault->text, sizeof(fault->text), "%s%s", what, text);
    return 1;
}

int rbi_acl_check(const struct rbi_acl *acl, struct rbi_acl_fault *fault)
{
    if (acl->otherwise > RBI_ACL_DEFAULT_DENY || acl->count > RBI_ACL_RULES_MAX) {
        return acl_fault(fault, 0, "", "more rules than there may be, or no such default");
    }
    for (uint32_t i = 0; i < acl->count; i++) {
        const struct rbi_acl_rule *rule = &acl->rules[i];
        const char *text = acl_rule_fault(rule);
        if (text) {
            return acl_fault(fault, i, "", text);
        }
        text = acl_glob_fault(rule->from);
        if (text) {
            return acl_fault(fault, i, "from: ", text);
        }
        text = acl_glob_fault(rule->to);
        if (text) {
            return acl_fault(fault, i, "to: ", text);
        }
        text = acl_glob_fault(rule->cgroup);
        if (text) {
            return acl_fault(fault, i, "cgroup: ", text);
        }
        if (acl_id_is_taken(acl, i)) {
            return acl_fault(fault, i, "another rule has this id: ", rule->id);
        }
    }
    return 0;
}

/* ---- matching ------------------------------------------------------------------------------ */

/** First element of a path. @return its length; 0: there is none */
static size_t acl_realm(const char *path, size_t length, const char **realm)
{
    if (length < 2) {
        return 0;
    }
    const char *end = memchr(path + 1, '/', length - 1);
    *realm = path + 1;
    return end ? (size_t)(end - path) - 1 : length - 1;
}

static bool acl_in_realm(const struct rbi_acl_subject *subject, const char *name)
{
    const char *realm = NULL;
    const size_t length = acl_realm(subject->path, subject->path_length, &realm);
    return length != 0 && strlen(name) == length && memcmp(realm, name, length) == 0;
}

static bool acl_has_tag(const char *tags, const char *tag)
{
    const size_t length = strlen(tag);
    for (const char *at = tags; *at != '\0';) {
        const size_t here = strcspn(at, ",");
        if (here == length && memcmp(at, tag, length) == 0) {
            return true;
        }
        at += here + (at[here] == ',' ? 1U : 0U);
    }
    return false;
}

static bool acl_is_on(const struct rbi_acl_rule *rule, const struct rbi_acl_subject *subject)
{
    if (strcmp(rule->host, "*") == 0) {
        return subject->remote;
    }
    return subject->host && strcmp(rule->host, subject->host) == 0;
}

/** Whether a rule asks of the process of a caller what nobody here can know. */
static bool acl_asks_in_vain(const struct rbi_acl_rule *rule, const struct rbi_acl_subject *subject)
{
    return subject->remote && ((rule->given & RBI_ACL_BY_GID) != 0 || rule->program[0] != '\0' ||
                               rule->cgroup[0] != '\0' ||
                               ((rule->given & RBI_ACL_BY_UID) != 0 && rule->host[0] == '\0'));
}

static bool acl_rule_is_of(const struct rbi_acl_rule *rule, const struct rbi_acl_subject *subject)
{
    return !acl_asks_in_vain(rule, subject) &&
           (rule->host[0] == '\0' || acl_is_on(rule, subject)) &&
           ((rule->given & RBI_ACL_BY_UID) == 0 || rule->uid == subject->uid) &&
           ((rule->given & RBI_ACL_BY_GID) == 0 || rule->gid == subject->gid) &&
           (rule->realm[0] == '\0' || acl_in_realm(subject, rule->realm)) &&
           (rule->tag[0] == '\0' || acl_has_tag(subject->tags, rule->tag)) &&
           (rule->program[0] == '\0' || rbi_subject_runs(rule->program, subject->program)) &&
           (rule->cgroup[0] == '\0' ||
            rbi_subject_is_in(rule->cgroup, subject->cgroup, subject->cgroup_length)) &&
           (rule->from[0] == '\0' ||
            (subject->path_length != 0 &&
             rbi_glob_match(rule->from, strlen(rule->from), subject->path, subject->path_length)));
}

void rbi_acl_bind(const struct rbi_acl *acl,
                  const struct rbi_acl_subject *subject,
                  struct rbi_acl_bound *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < acl->count; i++) {
        if (acl_rule_is_of(&acl->rules[i], subject)) {
            out->rules[i / 64] |= UINT64_C(1) << (i % 64);
        }
    }
}

/** Next rule from @p from on that is about this. @return its index, or RBI_ACL_NO_RULE */
static uint32_t acl_next(const struct rbi_acl *acl,
                         const struct rbi_acl_bound *bound,
                         uint32_t from,
                         enum rbi_acl_verb verb,
                         const struct rbi_acl_object *object)
{
    for (uint32_t i = from; i < acl->count; i++) {
        const uint64_t left = bound->rules[i / 64] >> (i % 64);
        if (left == 0) {
            i |= 63U; /* nothing more in this word */
            continue;
        }
        const struct rbi_acl_rule *rule = &acl->rules[i];
        if ((left & 1U) != 0 && (rule->verbs & (uint32_t)verb) != 0 &&
            (rule->to[0] == '\0' ||
             rbi_glob_match(rule->to, strlen(rule->to), object->path, object->path_length))) {
            return i;
        }
    }
    return RBI_ACL_NO_RULE;
}

/* ---- defaults ------------------------------------------------------------------------------ */

/** Who has no path is of no business: tools, tests, clients of all of them. */
static bool acl_same_realm(const struct rbi_acl_subject *subject,
                           const struct rbi_acl_object *object)
{
    const char *mine = NULL;
    const char *theirs = NULL;
    if (subject->path_length == 0 || object->anonymous) {
        return true;
    }
    const size_t length = acl_realm(subject->path, subject->path_length, &mine);
    return length != 0 && acl_realm(object->path, object->path_length, &theirs) == length &&
           memcmp(mine, theirs, length) == 0;
}

static bool acl_default(const struct rbi_acl *acl,
                        const struct rbi_acl_subject *subject,
                        enum rbi_acl_verb verb,
                        const struct rbi_acl_object *object)
{
    const bool open = acl->otherwise != RBI_ACL_DEFAULT_DENY;
    switch (verb) {
    case RBI_ACL_OWN:
        return open;
    case RBI_ACL_TAKEOVER:
    case RBI_ACL_ADMIN:
        /* Whoever could stop its process, and put another in its place. */
        return subject->privileged || (open && !subject->remote && subject->uid == object->uid);
    case RBI_ACL_WATCH:
        if (subject->privileged) {
            return true;
        }
        break;
    case RBI_ACL_CONNECT:
    case RBI_ACL_SEND:
        break;
    }
    return acl->otherwise == RBI_ACL_DEFAULT_ALLOW || (open && acl_same_realm(subject, object));
}

/* ---- asking -------------------------------------------------------------------------------- */

/** SEND: rules about some methods only may each decide a part. */
static struct rbi_acl_verdict acl_ask_send(const struct rbi_acl *acl,
                                           const struct rbi_acl_bound *bound,
                                           const struct rbi_acl_subject *subject,
                                           const struct rbi_acl_object *object)
{
    struct rbi_acl_methods methods;
    uint32_t denied = RBI_ACL_NO_RULE;
    (void)rbi_acl_ask_methods(acl, bound, subject, object, &methods);
    for (uint32_t i = acl_next(acl, bound, 0, RBI_ACL_SEND, object); i != RBI_ACL_NO_RULE;
         i = acl_next(acl, bound, i + 1, RBI_ACL_SEND, object)) {
        if (!acl->rules[i].deny && methods.count != 0) {
            return (struct rbi_acl_verdict){.allow = true, .rule = i};
        }
        denied = acl->rules[i].deny && denied == RBI_ACL_NO_RULE ? i : denied;
    }
    return (struct rbi_acl_verdict){.allow = methods.count != 0,
                                    .rule = methods.count != 0 ? RBI_ACL_NO_RULE : denied};
}

struct rbi_acl_verdict rbi_acl_ask(const struct rbi_acl *acl,
                                   const struct rbi_acl_bound *bound,
                                   const struct rbi_acl_subject *subject,
                                   enum rbi_acl_verb verb,
                                   const struct rbi_acl_object *object)
{
    if (verb == RBI_ACL_SEND) {
        return acl_ask_send(acl, bound, subject, object);
    }
    const uint32_t rule = acl_next(acl, bound, 0, verb, object);
    return (struct rbi_acl_verdict){.allow = rule != RBI_ACL_NO_RULE
                                                 ? !acl->rules[rule].deny
                                                 : acl_default(acl, subject, verb, object),
                                    .rule = rule};
}

/* ---- methods ------------------------------------------------------------------------------- */

/**
 * Whether this one method may be sent.
 * @param last  written: up to this one the answer is the same for sure, as no rule begins or ends
 */
static bool acl_ask_method(const struct rbi_acl *acl,
                           const struct rbi_acl_bound *bound,
                           const struct rbi_acl_subject *subject,
                           const struct rbi_acl_object *object,
                           uint32_t method,
                           uint32_t *last)
{
    uint64_t until = UINT32_MAX;
    for (uint32_t i = acl_next(acl, bound, 0, RBI_ACL_SEND, object); i != RBI_ACL_NO_RULE;
         i = acl_next(acl, bound, i + 1, RBI_ACL_SEND, object)) {
        const struct rbi_acl_rule *rule = &acl->rules[i];
        if (rule->method_low <= method && method <= rule->method_high) {
            *last = (uint32_t)rbi_min_u64(until, rule->method_high);
            return !rule->deny;
        }
        if (rule->method_low > method) {
            until = rbi_min_u64(until, rule->method_low - 1U);
        }
    }
    *last = (uint32_t)until;
    return acl_default(acl, subject, RBI_ACL_SEND, object);
}

struct rbi_acl_verdict rbi_acl_ask_method(const struct rbi_acl *acl,
                                          const struct rbi_acl_bound *bound,
                                          const struct rbi_acl_subject *subject,
                                          const struct rbi_acl_object *object,
                                          uint32_t method)
{
    uint32_t rule = acl_next(acl, bound, 0, RBI_ACL_SEND, object);
    while (rule != RBI_ACL_NO_RULE &&
           (method < acl->rules[rule].method_low || method > acl->rules[rule].method_high)) {
        rule = acl_next(acl, bound, rule + 1, RBI_ACL_SEND, object);
    }
    return (struct rbi_acl_verdict){.allow = rule != RBI_ACL_NO_RULE
                                                 ? !acl->rules[rule].deny
                                                 : acl_default(acl, subject, RBI_ACL_SEND, object),
                                    .rule = rule};
}

/** @return whether there was room for it */
static bool acl_add_range(struct rbi_acl_methods *methods, uint32_t low, uint32_t high)
{
    struct rbi_acl_range *before = methods->count ? &methods->ranges[methods->count - 1] : NULL;
    if (before && before->high == low - 1U) {
        before->high = high;
        return true;
    }
    if (methods->count == RBI_ACL_RANGES_MAX) {
        return false;
    }
    methods->ranges[methods->count++] = (struct rbi_acl_range){.low = low, .high = high};
    return true;
}

int rbi_acl_ask_methods(const struct rbi_acl *acl,
                        const struct rbi_acl_bound *bound,
                        const struct rbi_acl_subject *subject,
                        const struct rbi_acl_object *object,
                        struct rbi_acl_methods *out)
{
    uint32_t low = 0;
    uint32_t high = 0;
    *out = (struct rbi_acl_methods){.count = 0};
    do {
        const bool allow = acl_ask_method(acl, bound, subject, object, low, &high);
        if (allow && !acl_add_range(out, low, high)) {
            return 1;
        }
        low = high + 1U;
    } while (high != UINT32_MAX);
    return 0;
}

bool rbi_acl_methods_all(const struct rbi_acl_methods *methods)
{
    return methods->count == 1 && methods->ranges[0].low == 0 &&
           methods->ranges[0].high == UINT32_MAX;
}

bool rbi_acl_methods_have(const struct rbi_acl_methods *methods, uint32_t method)
{
    for (uint32_t i = 0; i < methods->count && methods->ranges[i].low <= method; i++) {
        if (method <= methods->ranges[i].high) {
            return true;
        }
    }
    return false;
}

bool rbi_acl_methods_equal(const struct rbi_acl_methods *a, const struct rbi_acl_methods *b)
{
    for (uint32_t i = 0; i < a->count && a->count == b->count; i++) {
        if (a->ranges[i].low != b->ranges[i].low || a->ranges[i].high != b->ranges[i].high) {
            return false;
        }
    }
    return a->count == b->count;
}

/* ---- names --------------------------------------------------------------------------------- */

const char *rbi_acl_rule_id(const struct rbi_acl *acl, struct rbi_acl_verdict verdict)
{
    return verdict.rule < acl->count ? acl->rules[verdict.rule].id : "default";
}

const char *rbi_acl_verb_name(enum rbi_acl_verb verb)
{
    switch (verb) {
    case RBI_ACL_OWN:
        return "own";
    case RBI_ACL_TAKEOVER:
        return "takeover";
    case RBI_ACL_CONNECT:
        return "connect";
    case RBI_ACL_SEND:
        return "send";
    case RBI_ACL_WATCH:
        return "watch";
    case RBI_ACL_ADMIN:
        return "admin";
    }
    return "?";
}
