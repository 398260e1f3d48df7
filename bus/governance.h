/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GOVERNANCE_H
#define RINGBUS_BUS_GOVERNANCE_H
/*
 * bus/governance.h - what a configuration says of clusters, instances and rights, as it was
 * written: one text is one layer. The daemon has several over each other (its file, what was
 * applied while it ran, single edits), and asks for what holds: the policy of a cluster, the
 * override of an instance, the list of rights. What is applied changes no item with an id of the
 * file (governance_static.h); an edit may.
 *
 * All entries whose pattern matches hold, in order: those of a lower layer first, and in a layer
 * as they are written; a later one changes the fields that it names. Of lists with ids a later one
 * changes the item with the same id, or appends; other lists it replaces. Pure, but for the memory
 * of the text; any thread that may read it.
 */
#include "bus/acl.h"
#include "bus/alarm.h"
#include "bus/config_tree.h"
#include "bus/policy.h"

struct rbi_governance_file;

/** One text. */
struct rbi_governance {
    struct rbi_tree tree;
    struct rbi_governance_file *files; /* that it names, as they were read (governance_file.h) */
    uint32_t file_count;
    struct rbi_tree_name *instances; /* by path, ascending */
    uint32_t instance_count;
};

#define RBI_GOVERNANCE_NULL       ((struct rbi_governance){.tree = {.nodes = NULL}})
#define RBI_GOVERNANCE_LAYERS_MAX 3U

/** Texts over each other, the lowest first. Lent. */
struct rbi_governance_layers {
    unsigned count;
    const struct rbi_governance *items[RBI_GOVERNANCE_LAYERS_MAX];
    unsigned fixed; /* items of the lowest so many are not changed by the layer above; 0: all are */
};

/** The table of everything below the sections clusters, instances, realms, rights and alarms. */
extern const struct rbi_tree_field rbi_governance_schema;
/** The same with what a file of ringbusd has beside it (bus/config_bridge.h). */
extern const struct rbi_tree_field rbi_governance_file_schema;

/**
 * Parses a text with these sections only. Untrusted input; time and memory are bounded by its
 * length (RBI_CONFIG_TEXT_MAX).
 * @retval 0  @p out is to be ended by rbi_governance_deinit()
 * @retval 1  @p errors has at least one entry; @p out is untouched
 * @retval -ENOMEM
 */
RBI_MUST_CHECK int rbi_governance_parse(const char *text,
                                        size_t size,
                                        struct rbi_governance *out,
                                        struct rbi_config_errors *errors);
/**
 * The same of a whole file of ringbusd: its own keys, and these sections.
 * @retval 0  both are written; @p governance is to be ended by rbi_governance_deinit()
 * @retval 1, -ENOMEM  as above
 */
RBI_MUST_CHECK int rbi_config_parse_all(const char *text,
                                        size_t size,
                                        struct rbi_config *config,
                                        struct rbi_governance *governance,
                                        struct rbi_config_errors *errors);
/** Accepts RBI_GOVERNANCE_NULL. */
void rbi_governance_deinit(struct rbi_governance *governance);
/**
 * Checks what no field can tell of itself: whether they fit together, in each entry of a text.
 * rbi_governance_parse() and rbi_config_parse_all() have done that.
 * @return whether nothing was wrong; else @p errors has more entries
 */
bool rbi_governance_check(const struct rbi_governance *governance,
                          struct rbi_config_errors *errors);
/** The same for one policy. @return NULL, or what is wrong, a sentence */
const char *rbi_governance_check_policy(const struct rbi_policy *policy);

/** What was wrong while layers were laid over each other. */
struct rbi_governance_fault {
    char text[RBI_TREE_NAME_MAX]; /* "" when nothing was */
};

/**
 * The policy of a cluster: the defaults, the imports of its realm, and then the entries that
 * match. Sealed.
 * @param path   of the cluster, canonical; need not be terminated
 * @param fault  says when a list had no room for all items, or fields do not fit together; NULL
 *               when that is not wanted
 * @return whether nothing was wrong; @p policy is written and valid anyway, without those items
 */
bool rbi_governance_policy(const struct rbi_governance_layers *layers,
                           const char *path,
                           size_t length,
                           struct rbi_policy *policy,
                           struct rbi_governance_fault *fault);

/** Which members of an override were given. */
enum rbi_governance_given {
    RBI_GIVEN_WEIGHT = 1,
    RBI_GIVEN_ISOLATED = 2,
    RBI_GIVEN_STAGED = 4,
    RBI_GIVEN_SET = 8,
    RBI_GIVEN_IDC = 16,
    RBI_GIVEN_TAGS = 32,
};

/** What the operator says of one instance. */
struct rbi_governance_override {
    uint32_t given; /* enum rbi_governance_given */
    uint32_t weight;
    uint32_t isolated;
    uint32_t staged;
    char set[RBI_LABEL_MAX + 1];
    char idc[RBI_LABEL_MAX + 1];
    char tags[RBI_LABEL_MAX + 1];
};

/** @param path  of the instance. @return whether there is an entry; @p out is written anyway */
bool rbi_governance_override(const struct rbi_governance_layers *layers,
                             const char *path,
                             size_t length,
                             struct rbi_governance_override *out);

/** What is said of a cluster to people (scenario: whom to ask). */
struct rbi_governance_description {
    uint64_t qps;    /* calls a second that it is made for; 0: not said */
    uint32_t p99_us; /* 0: not said */
    char owner[RBI_CONFIG_STRING_MAX + 1];
    char schema[RBI_CONFIG_STRING_MAX + 1]; /* of its messages: a name or a hash */
};
void rbi_governance_describe(const struct rbi_governance_layers *layers,
                             const char *path,
                             size_t length,
                             struct rbi_governance_description *out);

/**
 * The rules of all layers, those of the lowest first.
 * @return false: there are more than RBI_ACL_RULES_MAX; @p out has the first of them
 */
bool rbi_governance_acl(const struct rbi_governance_layers *layers, struct rbi_acl *out);

/**
 * The rules of what is to wake somebody, of all layers: a later one with the same id changes the
 * fields that it names.
 * @return false: there are more than RBI_ALARMS_MAX; @p out has the first of them
 */
bool rbi_governance_alarms(const struct rbi_governance_layers *layers, struct rbi_alarm_rules *out);

/** The table behind docs/configuration.md: one call a value, as "clusters[].balance.mode". */
void rbi_governance_doc(rbi_config_doc_fn report, void *context);

#endif
