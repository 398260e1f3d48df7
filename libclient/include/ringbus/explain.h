/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_EXPLAIN_H
#define RINGBUS_EXPLAIN_H
/* ringbus/explain.h - how a message would be routed, and why. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/message.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ringbus_explain_kind {
    RINGBUS_EXPLAIN_TARGET = 1, /**< a cluster that may serve: path, before, epoch, panic */
    /** A stage of routing: stage, mode, before, after, would_out, skipped, fell_back, panic. */
    RINGBUS_EXPLAIN_STAGE = 2,
    RINGBUS_EXPLAIN_OUT = 3,   /**< it took this instance out: stage, path, reason, rule */
    RINGBUS_EXPLAIN_WOULD = 4, /**< its dry run would have: the same */
    RINGBUS_EXPLAIN_IN = 5,    /**< nobody did: path, weight, level; reason, if it is shielded */
    /** Has the message's key, where a key decides: path; reason, if it is shielded or has died. */
    RINGBUS_EXPLAIN_OWNER = 6,
};

/** One line of an explanation. Texts are never NULL where its kind has them; lent for the call. */
struct ringbus_explain_row {
    enum ringbus_explain_kind kind;
    /**
     * "state", "acl", "filter" (only where there is a hook of that kind), "realm", "set", "tag",
     * "rules", "locality", "health"
     */
    const char *stage;
    const char *mode;   /**< "off", "prefer", "strict" */
    const char *path;   /**< of the cluster or the instance */
    const char *reason; /**< a few words */
    const char *rule;   /**< id of the rule or canary, or name of the hook, that did it; "" none */
    unsigned before;    /**< instances that came to the stage; of a cluster: all */
    unsigned after;     /**< and that were left */
    unsigned would_out; /**< of those, that its dry run would have taken out */
    int skipped;        /**< the stage had nothing to say */
    int fell_back;      /**< nobody healthy fitted, so that others stayed */
    int panic;          /**< so few are healthy that shields are ignored */
    unsigned level;     /**< of locality: 0 same node to 5 anywhere */
    uint32_t weight;    /**< share, to be compared with the others' */
    uint64_t epoch;     /**< of the cluster's snapshot */
};

/** Called for each row, in order. A callback: ringbus_poll() and _close() are refused in it. */
typedef void (*ringbus_explain_fn)(void *user, const struct ringbus_explain_row *row);

/** A process, as rules that are about some callers ask: rules[].caller of a policy. */
struct ringbus_subject {
    uint32_t uid;
    uint32_t gid;        /**< its first group */
    const char *program; /**< path of the file that it runs; NULL: not known */
    const char *cgroup;  /**< path of its control group of version 2; NULL: not known */
};

/** Whose message of which kind. Start from zero; a zero field means this endpoint, or nothing. */
struct ringbus_explain_options {
    size_t struct_size; /**< sizeof(struct ringbus_explain_options) */
    const char *caller; /**< path of an instance that is registered; NULL: this endpoint; "" none */
    const char *set;    /**< instead of the caller's; "" none */
    const char *idc;
    const struct ringbus_message_options *message; /**< flags, key, tag, method, labels, trace_id */
    /** Instances that the caller has no right to. What was denied to this endpoint is known. */
    const struct ringbus_addr *denied;
    size_t denied_count;
    /** Process of another caller; NULL: rules that are about some callers match none. */
    const struct ringbus_subject *subject;
};

/**
 * Tells how a message would be routed: each stage, who was in, who fell out and by which rule.
 * From the mapped directory, so that it works while ringbusd is away; no system call; nothing is
 * sent, and nothing changes.
 *
 * It says who may get the message and, by key, whose it is; not which of several gets one without
 * a key, and not whether the link is up. Of rights it knows those that this endpoint was refused,
 * to link or to send the method. Of own messages it counts what the stage of locality remembers of
 * the last seconds.
 *
 * @param target   path of a cluster (6 elements); it need not be a target of this endpoint
 * @param options  NULL: this endpoint, a message that says nothing of itself
 * @return number of instances that are in; 0: nobody could get it. Or
 * @retval RINGBUS_E_PATH         target or caller is no such path
 * @retval RINGBUS_E_NO_SERVICE   the cluster was never seen; start an instance, or mind the name
 * @retval RINGBUS_E_NO_INSTANCE  the caller is not registered
 * @retval RINGBUS_E_NO_DAEMON    there is no directory yet: poll until the daemon is there
 * @retval RINGBUS_E_NO_MEMORY; RINGBUS_E_ARGUMENT
 * Cost: cold; allocates, and copies the snapshots.
 */
RINGBUS_API int ringbus_explain(struct ringbus *bus,
                                const char *target,
                                const struct ringbus_explain_options *options,
                                ringbus_explain_fn tell,
                                void *user);

/**
 * The same as text, one row a line, for a log or a person. The format may change.
 * @param buffer  terminated, and cut off where it ends; NULL with size 0: only the length
 * @return bytes of the whole text without its terminator, or an error as ringbus_explain()
 */
RINGBUS_API int ringbus_explain_text(struct ringbus *bus,
                                     const char *target,
                                     const struct ringbus_explain_options *options,
                                     char *buffer,
                                     size_t size);

#ifdef __cplusplus
}
#endif

#endif
