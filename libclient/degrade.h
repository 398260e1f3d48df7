/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DEGRADE_H
#define RINGBUS_LIBCLIENT_DEGRADE_H
/*
 * libclient/degrade.h - what ends a request when nobody can be asked, or nobody is to be: a mock
 * or a callback of the application's. The rules of the bus's configuration come first, then those
 * of ringbus_degrade(); the first that covers method and trigger counts.
 */
#include <ringbus/ringbus.h>
#include <stdbool.h>

struct rbi_ask;
struct rbi_cluster;
struct ringbus;

struct rbi_degrade_rule {
    uint32_t method_low;
    uint32_t method_high;
    enum ringbus_degrade_action action;
    unsigned triggers;
    unsigned char *mock;
    size_t mock_size;
    ringbus_local_fn local;
    void *context;
};

/** Rules of one ringbus_degrade(); kept while a callback looks at a mock of theirs. */
struct rbi_degrade_rules {
    unsigned refs;
    unsigned count;
    struct rbi_degrade_rule rules[];
};

/** What is done instead of asking. */
struct rbi_degraded {
    struct ringbus_part reply;
    int error;                       /* not 0: no reply, the local callback failed so */
    struct rbi_degrade_rules *rules; /* given back when the reply was looked at; may be NULL */
    void *owned;                     /* the same, by free(); may be NULL */
};

/**
 * Whether a rule covers a request that nobody handled for that reason. @param error  0: before
 * anybody is asked
 */
bool rbi_degrade_covers(struct ringbus *bus, const struct rbi_ask *ask, int error);
/** Whether the rule that covers it before anybody is asked says that it fails. */
bool rbi_degrade_fails(struct ringbus *bus, const struct rbi_ask *ask);
/**
 * Does what the rule says that covers it. In poll only.
 * @param buffer  RBI_MOCK_MAX bytes, for a mock of the bus's configuration
 * @return false: none does, or it says that it fails
 */
bool rbi_degrade(struct ringbus *bus,
                 struct rbi_ask *ask,
                 int error,
                 unsigned char *buffer,
                 struct rbi_degraded *out);
/** The policy of a cluster is another: what its mock_files hold is read from the directory. */
void rbi_degrade_follow(struct ringbus *bus, struct rbi_cluster *cluster);
void rbi_degrade_forget(struct rbi_cluster *cluster);
void rbi_degrade_rules_unref(struct rbi_degrade_rules *rules);

#endif
