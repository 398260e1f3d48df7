/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_EXPLAIN_H
#define RINGBUS_LIBCLIENT_EXPLAIN_H
/*
 * libclient/explain.h - where a message would go, and why not elsewhere: the router chain on the
 * directory as it is mapped, for any caller. Cold; nothing of what sends use is touched.
 */
#include "bus/route.h"
#include "bus/subject.h"

#include <ringbus/ringbus.h>

struct ringbus;

/** All that one explanation works on. Owned, zeroed at first. */
struct rbi_explain {
    struct ringbus *bus;
    struct ringbus_message_options message;
    struct rbi_policy *policy;
    unsigned cluster_count;
    struct rbi_directory_cluster heads[1 + RBI_REALMS_MAX];       /* their paths are terminated */
    struct rbi_directory_instance *instances[1 + RBI_REALMS_MAX]; /* then the absent ones */
    uint64_t *invisible[1 + RBI_REALMS_MAX];
    uint8_t *filtered[1 + RBI_REALMS_MAX]; /* by this endpoint's own filters */
    struct rbi_route_cluster clusters[1 + RBI_REALMS_MAX];
    char set[RBI_LABEL_MAX + 1]; /* of the caller */
    char idc[RBI_LABEL_MAX + 1];
    uint32_t node;                     /* as struct rbi_route_caller has it */
    bool self;                         /* the caller is this endpoint */
    const struct rbi_subject *subject; /* of another caller; NULL: nothing is known of it */
    struct rbi_subject given;
    const struct ringbus_addr *denied; /* borrowed */
    size_t denied_count;
    struct rbi_route_message class;
    struct rbi_route_memory memory; /* of the choice that messages of this class use */
    struct rbi_route_entry *entries;
    struct rbi_route_result result;
    bool by_key; /* the key decides */
};

/** Reads the clusters that may serve, and the policy. @retval 0; an error (noted) */
int rbi_explain_read(struct rbi_explain *explain,
                     const char *target,
                     const struct ringbus_explain_options *options);
/**
 * Runs the chain over @p count of the clusters, from @p first; may be called again.
 * @retval 0; an error (noted)
 */
int rbi_explain_run(struct rbi_explain *explain, unsigned first, unsigned count);

/** Whose a key is. */
struct rbi_explain_owner {
    struct rbi_route_entry entry; /* index and cluster say who */
    bool absent;                  /* it died just now, and is waited for */
};

/**
 * Finds the owner of the message's key, after the chain was run.
 * @retval 1; 0: nobody has a slot, or there is no memory
 */
int rbi_explain_owner(const struct rbi_explain *explain, struct rbi_explain_owner *owner);
/** What the chain is asked, for @p count of the clusters, from @p first. Borrows from both. */
struct rbi_route_input rbi_explain_input(const struct rbi_explain *explain,
                                         struct rbi_route_caller *caller,
                                         unsigned first,
                                         unsigned count);
void rbi_explain_free(struct rbi_explain *explain);

#endif
