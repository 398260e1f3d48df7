/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_ROWS_H
#define RINGBUS_DAEMON_CTL_ROWS_H
/*
 * daemon/ctl/rows.h - endpoints and links as the daemon lists them, gathered, so that
 * they can be sorted and joined before they are printed.
 */
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"

/** What an endpoint says in its own page: copied out, untrusted, for show only. */
struct rbi_ctl_page {
    bool known;
    bool asleep;
    bool busy_poll;
    bool debug_hold;
    uint64_t load_depth;
    uint64_t load_ewma_ns;
    uint64_t poll_tick_ms;
    uint64_t *counters; /* RBI_COUNTER_COUNT, owned; NULL when not known */
};

struct rbi_ctl_endpoint {
    struct rbi_wire_row_endpoint row;
    struct rbi_ctl_page page;
};

struct rbi_ctl_rows {
    bool want_pages; /* read the pages too */
    struct rbi_ctl_endpoint *endpoints;
    size_t endpoint_count;
    size_t endpoint_room;
    struct rbi_wire_row_link *links;
    size_t link_count;
    size_t link_room;
};

/**
 * Reads the endpoints at or below @p prefix, sorted by path. Complains itself. @return exit code
 */
RBI_MUST_CHECK int rbi_ctl_rows_endpoints(struct rbi_ctl_rows *rows,
                                          struct rbi_ctl_control *control,
                                          const char *prefix);
/**
 * Reads the links of which an end lies at or below @p prefix. Complains itself. @return exit code
 */
RBI_MUST_CHECK int
rbi_ctl_rows_links(struct rbi_ctl_rows *rows, struct rbi_ctl_control *control, const char *prefix);
void rbi_ctl_rows_deinit(struct rbi_ctl_rows *rows);

/** True for the made-up path of an endpoint that was opened without one. */
bool rbi_ctl_path_anonymous(const char *path);
/** "READY"; "?" for a state that this version does not know. */
const char *rbi_ctl_state_name(uint32_t state);
/** "ok", "shielded", "probed", "ramp": what the daemon found out about it. */
const char *rbi_ctl_health_name(uint32_t health);
/** Room for rbi_ctl_home_text(). */
#define RBI_CTL_HOME_MAX 320U
/** Its program; of an instance of another host the name of that. @return @p buffer */
const char *rbi_ctl_home_text(const struct rbi_wire_row_endpoint *row, char *buffer, size_t size);
/** Members of an instance of another host, none of others. */
void rbi_ctl_home_json(struct rbi_ctl_json *json, const struct rbi_wire_row_endpoint *row);
/** "3d", "12h", "5m", "42s" or "300ms". @p size at least 16 */
void rbi_ctl_age_format(uint64_t age_ms, char *buffer, size_t size);
/** The number, or "unknown" for a process of another PID namespace. @p size at least 16 */
void rbi_ctl_pid_format(uint32_t pid, char *buffer, size_t size);

#endif
