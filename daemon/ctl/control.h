/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_CONTROL_H
#define RINGBUS_DAEMON_CTL_CONTROL_H
/*
 * daemon/ctl/control.h - asks the daemon over its control socket, without being an
 * endpoint: HELLO, then QUERY and its rows, or one message and its answer. Waits, at most
 * until the deadline. What the daemon sends is decoded by bus/wire.h and not trusted further
 * than that.
 */
#include "bus/wire.h"
#include "bus/wire_stream.h"
#include "daemon/ctl/ctl.h"

#define RBI_CTL_FDS_MAX 64U

struct rbi_ctl_control {
    const struct rbi_ctl_args *args;
    int sock;          /* owned */
    unsigned protocol; /* that the daemon has chosen */
    uint32_t serial;
    uint64_t deadline_ns;
    bool quiet; /* the deadline is nothing to complain of */
    struct rbi_wire_stream stream;
    /* Received descriptors, owned, in the order of their frames. */
    int fds[RBI_CTL_FDS_MAX];
    unsigned fd_count;
};

/**
 * Called for each row; @p fd is that of the row or -1, lent for the call.
 * @return RBI_CTL_OK, or an exit code that ends the query
 */
typedef int (*rbi_ctl_row_fn)(void *context,
                              unsigned type,
                              const union rbi_wire_body *body,
                              int fd);

/**
 * Connects and says HELLO. Complains itself.
 * @retval RBI_CTL_OK  to be ended by rbi_ctl_control_deinit(); otherwise an exit code
 */
RBI_MUST_CHECK int rbi_ctl_control_init(struct rbi_ctl_control *control,
                                        const struct rbi_ctl_args *args);
void rbi_ctl_control_deinit(struct rbi_ctl_control *control);

/** Sends one QUERY and hands out its rows. Complains itself. @return exit code */
RBI_MUST_CHECK int rbi_ctl_control_query(struct rbi_ctl_control *control,
                                         enum rbi_query what,
                                         const char *prefix,
                                         rbi_ctl_row_fn on_row,
                                         void *context);

/** The same for any other message that is answered by rows and QUERY_END. */
RBI_MUST_CHECK int rbi_ctl_control_rows(struct rbi_ctl_control *control,
                                        enum rbi_wire_type type,
                                        const void *question,
                                        rbi_ctl_row_fn on_row,
                                        void *context);

/**
 * Sends one message, with a descriptor or -1, and waits for its answer. Complains itself, but for
 * an ERROR: that is an answer.
 * @param answer_fd  that of the answer or -1, to be closed; NULL: not wanted
 * @return exit code
 */
RBI_MUST_CHECK int rbi_ctl_control_exchange(struct rbi_ctl_control *control,
                                            enum rbi_wire_type type,
                                            const void *body,
                                            int with_fd,
                                            unsigned *answer_type,
                                            union rbi_wire_body *answer,
                                            int *answer_fd);

/**
 * Waits for the next message of a type, and drops others.
 * @retval RBI_CTL_OK       @p body is filled
 * @retval RBI_CTL_TIMEOUT  none came until @p until_ns; not complained of
 * @return else an exit code; complains itself
 */
RBI_MUST_CHECK int rbi_ctl_control_next(struct rbi_ctl_control *control,
                                        enum rbi_wire_type type,
                                        uint64_t until_ns,
                                        union rbi_wire_body *body);

/** Called for each EVENT that comes between. */
typedef void (*rbi_ctl_event_fn)(void *context, const struct rbi_wire_event *event);
/**
 * Sends one message and waits for its answer. Complains itself, but for an ERROR: that is an
 * answer.
 * @param on_event  or NULL
 * @param answer    the message of type @p answer_type, ERROR or OK
 * @return exit code
 */
RBI_MUST_CHECK int rbi_ctl_control_ask(struct rbi_ctl_control *control,
                                       enum rbi_wire_type type,
                                       const void *body,
                                       rbi_ctl_event_fn on_event,
                                       void *context,
                                       unsigned *answer_type,
                                       union rbi_wire_body *answer);

/** Checks a path of 1 to 7 elements, or "/". Complains itself. @return exit code */
RBI_MUST_CHECK int rbi_ctl_prefix_check(const struct rbi_ctl_args *args, const char *prefix);
/**
 * For commands about a prefix, their only operand: checks it, and connects as
 * rbi_ctl_control_init(). @param prefix  set: that operand, or "/" when there is none
 */
RBI_MUST_CHECK int rbi_ctl_control_init_below(struct rbi_ctl_control *control,
                                              const struct rbi_ctl_args *args,
                                              const char **prefix);

#endif
