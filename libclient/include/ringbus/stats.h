/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_STATS_H
#define RINGBUS_STATS_H
/* ringbus/stats.h - the counters of an endpoint. */
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text): counters since open. */
#define RINGBUS_STATS(X)                                                                           \
    X(sent, "messages accepted by send, request or reply")                                         \
    X(sent_bytes, "payload bytes of those")                                                        \
    X(received, "messages handed to the application")                                              \
    X(received_bytes, "payload bytes of those")                                                    \
    X(full, "sends refused because the lane was full")                                             \
    X(no_chunk, "sends refused because the pool had no chunk")                                     \
    X(no_peer, "sends refused because nobody could take them")                                     \
    X(too_big, "sends refused because of their size")                                              \
    X(requests, "requests sent")                                                                   \
    X(replies, "replies received in time")                                                         \
    X(timeouts, "requests that ended without a reply in time")                                     \
    X(late_replies, "replies dropped because nobody waited for them")                              \
    X(undelivered, "messages given back because their receiver died")                              \
    X(bells_rung, "wake-ups sent to sleeping receivers, one system call each")                     \
    X(sleeps, "times this endpoint went to sleep")                                                 \
    X(polls, "calls of poll, updated when idle")                                                   \
    X(links_opened, "links that became READY")                                                     \
    X(links_closed, "links that ended")                                                            \
    X(bad_peer, "links closed because the peer broke the rules")                                   \
    X(daemon_lost, "times the connection to the daemon was lost")                                  \
    X(pings_missed, "PINGs that were not answered in their interval")                              \
    X(redelivered, "messages sent on to another instance because their receiver ended")            \
    X(expired, "messages dropped unhandled because their deadline was over")                       \
    X(retried, "requests asked again after they were refused or lost")                             \
    X(retry_denied, "those not asked again because the retry budget was used up")                  \
    X(mocked, "requests ended by a mock, a local callback or failsafe, not by an instance")        \
    X(diverted, "messages with a key sent to another instance, its own being out of reach")        \
    X(limited, "sends refused because a limit of the policy was reached")                          \
    X(limited_dry, "sends that a limit in a dry run would have refused")                           \
    X(denied, "messages that came without the right to be sent, and were dropped")                 \
    X(not_owner, "requests refused because another instance owns their key")                       \
    X(limited_in, "requests of others that a limit of this cluster refused")                       \
    X(shed, "requests of others refused because more came than could be done")                     \
    X(bad_choice, "messages refused because a hook named an instance that cannot take them")       \
    X(delayed, "one-way messages that waited here until a limit let them pass (max_wait)")         \
    X(duplicates, "messages of other hosts sent again that had been read, and were dropped")

struct ringbus_stats {
    size_t struct_size; /**< set by the caller: sizeof(struct ringbus_stats) */
    uint64_t links;     /**< READY now */
    uint64_t pool_used; /**< chunks out now */
#define RINGBUS_STATS_FIELD(name, text) uint64_t name;
    RINGBUS_STATS(RINGBUS_STATS_FIELD)
#undef RINGBUS_STATS_FIELD
};
/** Copies the figures; no system call. */
RINGBUS_API int ringbus_stats(const struct ringbus *bus, struct ringbus_stats *out);

#ifdef __cplusplus
}
#endif

#endif
