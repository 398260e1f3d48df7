/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_ERROR_H
#define RINGBUS_ERROR_H
/* ringbus/error.h - the codes that calls return, and their sentences. */
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an error asks of the caller. */
enum ringbus_error_kind {
    RINGBUS_ERROR_NONE = 0,
    RINGBUS_ERROR_RETRY = 1,    /**< try again later, the same call may succeed */
    RINGBUS_ERROR_GONE = 2,     /**< the peer or the daemon is lost */
    RINGBUS_ERROR_DENIED = 3,   /**< rights, quota or limit forbid it */
    RINGBUS_ERROR_USAGE = 4,    /**< the caller's bug */
    RINGBUS_ERROR_SYSTEM = 5,   /**< the kernel refused; errno is in ringbus_errmsg() */
    RINGBUS_ERROR_INTERNAL = 6, /**< a bug of ringbus: please report */
};

/* X(name, value, kind, text). Values are part of the ABI and never reused. */
#define RINGBUS_ERRORS(X)                                                                          \
    X(FULL, -1, RETRY, "the receiver's lane is full; ringbus_wait() returns when there is room")   \
    X(NO_CHUNK, -2, RETRY, "every chunk of the pool that is large enough is in use")               \
    X(NOT_READY, -3, RETRY, "the instance is known but its link is not READY yet")                 \
    X(TIMEOUT, -4, RETRY, "the time given is over")                                                \
    X(BUSY, -5, RETRY, "not inside a callback, or another claim on this link is open")             \
    X(RESTARTING, -6, RETRY, "the owner of this key has died and may come back at its place")      \
    X(SHIELDED, -7, RETRY, "the owner of this key, or all there are, failed too often: shielded")  \
    X(LIMITED, -8, RETRY, "a rate limit of the bus is reached")                                    \
    X(SHED, -9, RETRY, "the receiver has more to do than it can, and refused it")                  \
    X(NO_SERVICE, -10, GONE, "no such cluster is known")                                           \
    X(NO_INSTANCE, -11, GONE, "the cluster has no such instance now")                              \
    X(PEER_GONE, -12, GONE, "the instance died or left")                                           \
    X(NO_DAEMON, -13, GONE, "ringbusd cannot be reached")                                          \
    X(CLOSED, -14, GONE, "the handle, claim or loan has ended")                                    \
    X(UNKNOWN_OUTCOME, -15, GONE, "the request was sent and its receiver may have seen it")        \
    X(NO_MATCH, -16, GONE, "every instance fell out by a routing rule; ringbus_explain() tells")   \
    X(NOT_OWNER, -17, RETRY, "the key has another owner now, as the receiver sees it")             \
    X(UNREACHABLE, -18, GONE, "its host cannot be reached, or its host's bridge has ended")        \
    X(NO_ROUTE, -19, GONE, "no way leads to its host; ringbusctl route FROM TO shows why")         \
    X(DENIED, -20, DENIED, "the rules of the bus forbid it")                                       \
    X(IN_USE, -21, DENIED, "this address is taken by a living instance")                           \
    X(QUOTA, -22, DENIED, "a quota of this user or endpoint is used up")                           \
    X(CLASH, -23, DENIED, "another name has the same id; choose a different one")                  \
    X(VERSION, -24, DENIED, "the other side speaks another version of the protocol or layout")     \
    X(DRAINING, -25, RETRY, "the instance is leaving and takes nothing new; another may come")     \
    X(TOO_BIG, -30, USAGE, "larger than the limit")                                                \
    X(ARGUMENT, -31, USAGE, "an argument is out of its range")                                     \
    X(PATH, -32, USAGE, "not a path /App/Area/Platform/World/Group/Cluster[/Instance]")            \
    X(WRONG_PROCESS, -33, USAGE, "the handle was opened before fork() by the parent")              \
    X(WRONG_THREAD, -34, USAGE, "another thread is inside this handle now")                        \
    X(NOT_TARGET, -35, USAGE, "call ringbus_target() for this cluster first")                      \
    X(NOT_REQUEST, -36, USAGE, "the message is not a request")                                     \
    X(HANDLER_FAILED, -37, GONE, "the receiver's handler reported a failure")                      \
    X(NO_MEMORY, -40, SYSTEM, "not enough memory")                                                 \
    X(NO_FDS, -41, SYSTEM, "out of file descriptors")                                              \
    X(SYSTEM, -42, SYSTEM, "the kernel refused a call")                                            \
    X(BAD_PEER, -50, GONE, "the peer broke the rules of the protocol")                             \
    X(INTERNAL, -99, INTERNAL, "a bug in ringbus")

enum ringbus_error {
    RINGBUS_OK = 0,
#define RINGBUS_ERROR_ENUM(name, value, kind, text) RINGBUS_E_##name = (value),
    RINGBUS_ERRORS(RINGBUS_ERROR_ENUM)
#undef RINGBUS_ERROR_ENUM
};

/** Fixed English text of an error code; never NULL. Any thread. */
RINGBUS_API const char *ringbus_strerror(int error);
/** "RINGBUS_E_FULL" for -1 and so on; never NULL. Any thread. */
RINGBUS_API const char *ringbus_error_name(int error);
/** What the code asks of the caller. Any thread. */
RINGBUS_API enum ringbus_error_kind ringbus_error_kind(int error);
/**
 * Sentence about the last failed call on this handle, with names and limits.
 * @param bus  a handle, or NULL for the last ringbus_open() that failed in this thread
 * @return valid until the next call on the handle; empty when nothing failed
 */
RINGBUS_API const char *ringbus_errmsg(const struct ringbus *bus);
/**
 * After RINGBUS_E_LIMITED: when it is worth trying again, in microseconds from the refusal on. By
 * then the message passes the limit, unless others were sent in between. No system call.
 * @return 0 when the last failure of this handle was another one, or it was the number of requests
 *         under way that is limited: then, when one of them has ended
 */
RINGBUS_API uint64_t ringbus_retry_after_us(const struct ringbus *bus);
/** "0.1.0". */
RINGBUS_API const char *ringbus_version(void);

#ifdef __cplusplus
}
#endif

#endif
