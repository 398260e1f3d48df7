/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_RELAY_H
#define RINGBUS_TESTS_SUPPORT_RELAY_H
/*
 * Two hosts without a network: two daemons, a desk at each, and what lies between two bridges done
 * by hand, record by record, in one process. The simplest that can stand there: a link that an
 * endpoint asks of a proxy is asked for on the other host in its name, and what comes in one half
 * goes into the other. How late an acknowledgement is, the test says.
 */
#include "daemon/bridge/half.h"
#include "daemon/bridge/proxy.h"
#include "support/bus.h"

struct relay;

/** One host. */
struct relay_host {
    struct relay *relay;
    struct cluster cluster;
    struct rbi_desk *desk;
    const char *name;
};

/** Two halves that are joined. */
struct relay_pair {
    struct relay *relay;
    struct relay_pair *next;
    struct rbi_half *half[2]; /* by host; NULL: not there yet, or ended */
    bool linked[2];
    bool down[2]; /* it is, and is read to its end */
    enum rbi_reason reason;
    uint64_t moved[2];         /* records that came in at that host */
    struct rbi_chunk chunk[2]; /* lent towards that host, its payload not complete */
    bool lent[2];
};

struct relay {
    struct rbi_loop *loop;
    struct relay_host host[2];
    struct relay_pair *pairs;
    bool ack_held;  /* nothing is released: the other bridge does not answer */
    bool cut;       /* nothing is moved either; see relay_go_on() */
    bool swallowed; /* what is moved has left, and never arrives: until the pair is over */
    unsigned batch; /* records of a half that are moved in a turn; 0: all */
    unsigned registered;
    unsigned refused;
    int code; /* of the last refusal or failure */
    unsigned linked;
    unsigned failed;
    unsigned downs;
    enum rbi_reason reason; /* of the last */
    uint64_t withdrawn;
};

/** Starts both daemons and makes the desks. @param options  may be NULL */
void relay_up(struct relay *relay, const char *config, const struct rbi_desk_options *options);
/** The same, over this sort of loop instead of epoll. */
void relay_up_on(struct relay *relay,
                 enum rbi_config_loop kind,
                 const char *config,
                 const struct rbi_desk_options *options);
void relay_down(struct relay *relay);
/** One turn of the loop, which waits a millisecond at most, and not while @p busy. */
void relay_turn(struct relay *relay, bool busy);
/** Makes a proxy of an instance of the other host. */
struct rbi_proxy *
relay_proxy(struct relay *relay, unsigned host, const struct rbi_proxy_spec *spec);
/** What a node of the other host is to be seen as. */
struct rbi_proxy_spec relay_spec(const struct relay *relay, unsigned host, const struct node *node);
/** The pair of the only link that there is, or NULL. */
struct relay_pair *relay_only(const struct relay *relay);

/** Nothing is cut or held any more: what waits for that is moved. */
void relay_go_on(struct relay *relay);
/** Ends both halves for that reason, and forgets the pair. */
void relay_pair_over(struct relay_pair *pair, enum rbi_reason reason);

/** Turns and polls until the condition holds. */
#define RELAY_UNTIL(relay, condition, timeout_ms, ...)                                             \
    do {                                                                                           \
        struct node *const nodes_[] = {__VA_ARGS__};                                               \
        const uint64_t deadline_ms_ = test_now_ms() + (timeout_ms);                                \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > deadline_ms_) {                                                    \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            relay_turn(relay, relay_poll(nodes_, sizeof nodes_ / sizeof nodes_[0]));               \
        }                                                                                          \
    } while (0)

/** Polls each node. @return whether one had something */
bool relay_poll(struct node *const *nodes, unsigned count);

#endif
