/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_RIGHTS_H
#define RINGBUS_DAEMON_RIGHTS_H
/*
 * daemon/rights.h - the rules of bus/acl.h, asked where a client asks for something, and asked
 * again for what it has when they change: links that lost their right are ended at both ends,
 * within one turn for each RIGHTS_BATCH of them; who was refused is told that it may ask again.
 *
 * What the rules say of a client alone is found once for each change of them, or of the client
 * (struct rbi_peer_rights); what is left is matched with the object.
 */
#include "bus/acl.h"
#include "bus/wire.h"
#include "daemon/log.h"
#include "daemon/loop.h"

struct rbi_daemon;
struct rbi_endpoint;
struct rbi_link;
struct rbi_peer;
struct rbi_request;

/** What is known of one client's rights. Zero: nothing yet. */
struct rbi_peer_rights {
    uint64_t epoch;  /* of the rules that bound was made from; 0: of none */
    uint32_t change; /* grows with each change of what is known of the client */
    struct rbi_acl_bound bound;
    bool denied; /* was refused what other rules may allow */
    bool hidden; /* something that it watches was kept from it */
};

struct rbi_rights {
    struct rbi_acl *acl;
    uint64_t epoch;   /* grows with each change of the rules, from 1 on */
    bool by_program;  /* a rule names a program */
    bool by_cgroup;   /* a rule names a control group */
    uint32_t uid;     /* that the daemon runs as */
    uint64_t checked; /* number of the last link that was asked about again */
    struct rbi_loop_timer recheck_timer;
    struct rbi_log_limit denied_limit;
};

/** Without rules: the default as shipped. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_rights_init(struct rbi_rights *rights);
void rbi_rights_deinit(struct rbi_rights *rights);
/**
 * The rules are these from now on; tokens and policies may be other ones as well. Tells those who
 * were refused that they may ask again, and looks at all links.
 */
void rbi_rights_set(struct rbi_daemon *daemon, const struct rbi_acl *acl);
/** What is known of a client has changed: its path, its labels. */
void rbi_rights_forget(struct rbi_peer *peer);

/**
 * Whether a client may do that to an endpoint. Not for what it wants to own.
 * @param why  written when not: the rule, the verb, the object
 */
bool rbi_rights_may(struct rbi_peer *peer,
                    enum rbi_acl_verb verb,
                    const struct rbi_endpoint *object,
                    struct rbi_text *why);
/** The same about a path that nobody need have: a cluster, a prefix. */
bool rbi_rights_may_path(struct rbi_peer *peer,
                         enum rbi_acl_verb verb,
                         const char *path,
                         size_t length,
                         struct rbi_text *why);
/** The same about a path that is a user's. */
bool rbi_rights_may_path_of(struct rbi_peer *peer,
                            enum rbi_acl_verb verb,
                            const char *path,
                            size_t length,
                            uint32_t uid,
                            struct rbi_text *why);
/**
 * Whether a client may be called @p endpoint->path, whose labels are set.
 * @param holder_uid  TAKEOVER: whose it is now
 */
bool rbi_rights_may_own(struct rbi_peer *peer,
                        const struct rbi_endpoint *endpoint,
                        enum rbi_acl_verb verb,
                        uint32_t holder_uid,
                        struct rbi_text *why);
/** Whether a link may be made, or go on: the requester's right to connect, and its token. */
bool rbi_rights_may_link(const struct rbi_endpoint *requester,
                         const struct rbi_endpoint *server,
                         struct rbi_text *why);

/** Whether @p sender may send a message of this method; @p why names the rule that says no. */
bool rbi_rights_may_send(const struct rbi_endpoint *sender,
                         const struct rbi_endpoint *receiver,
                         uint32_t method,
                         struct rbi_text *why);
/** Which methods @p sender may send to @p receiver, as text for the wire. */
void rbi_rights_methods_between(const struct rbi_endpoint *sender,
                                const struct rbi_endpoint *receiver,
                                struct rbi_text *out);
/** Both ways of a link, requester's first; notes that its ends are told now. */
void rbi_rights_methods_of(struct rbi_link *link, struct rbi_text out[2]);
/** Tells the ends of a link which methods they may send, if that is other than they know. */
void rbi_rights_tell_methods(struct rbi_link *link);

/** Answers ERROR for a right that is missing, counts it, logs it now and then. */
void rbi_rights_refuse(const struct rbi_request *request, const struct rbi_text *why);
/** Asks for ADMIN. @return false: the client has been told */
bool rbi_rights_admin(const struct rbi_request *request, const struct rbi_endpoint *object);
/** The same for what is no endpoint: a cluster, a prefix, "/" for the daemon as a whole. */
bool rbi_rights_admin_path(const struct rbi_request *request, const char *path, size_t length);

/** What a link's right was asked of. Zero: it was not asked about yet. */
struct rbi_link_rights {
    uint64_t epoch;
    uint32_t changes[2]; /* requester's, server's */
};
/** Its right has been asked for, and given: as long as nothing changes, it has it. */
void rbi_rights_note_link(struct rbi_link *link);
/** Ends a link that has no right to be. */
void rbi_rights_recheck_link(struct rbi_link *link);
/** Looks again at the links that an endpoint has asked for. */
void rbi_rights_recheck_of(struct rbi_endpoint *requester);
/** Looks at all links again, as after a change of the rules. */
void rbi_rights_recheck(struct rbi_daemon *daemon);

#endif
