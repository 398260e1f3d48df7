/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reload.h"

#include "daemon/daemon.h"
#include "daemon/hello.h"
#include "daemon/mock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Reads up to the limit and one byte more, so that a longer file is recognised by the parser. */
static ssize_t reload_read_text(int fd, char *text, size_t room)
{
    size_t used = 0;
    while (used < room) {
        const ssize_t n = read(fd, text + used, room - used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        if (n == 0) {
            break;
        }
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static int reload_load(const char *path, char **out, size_t *size)
{
    struct stat found;
    const size_t room = RBI_CONFIG_TEXT_MAX + 1;
    /* O_NONBLOCK: a FIFO in its place must not stop the daemon. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    char *text = NULL;
    ssize_t used = -EINVAL;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) {
        text = malloc(room);
        used = text ? reload_read_text(fd, text, room) : -ENOMEM;
    }
    (void)close(fd);
    if (used < 0) {
        free(text);
        return (int)used;
    }
    *out = text;
    *size = (size_t)used;
    return 0;
}

int rbi_reload_read(const char *path,
                    struct rbi_config *out,
                    struct rbi_governance *governance,
                    rbi_reload_report_fn report)
{
    char *text = NULL;
    size_t size = 0;
    struct rbi_config_errors *errors = calloc(1, sizeof(*errors));
    if (!errors) {
        return -ENOMEM;
    }
    int result = reload_load(path, &text, &size);
    if (result < 0) {
        (void)snprintf(errors->items[0].text, sizeof(errors->items[0].text), "cannot be read: %s",
                       rbi_log_errno(-result));
        errors->count = 1;
    } else {
        result = rbi_config_parse_all(text, size, out, governance, errors);
        if (result == 0 && (result = rbi_mocks_read(path, governance, errors)) != 0) {
            rbi_governance_deinit(governance);
        }
    }
    const unsigned kept =
        errors->count < RBI_CONFIG_ERRORS_MAX ? errors->count : RBI_CONFIG_ERRORS_MAX;
    for (unsigned i = 0; result != 0 && i < kept; i++) {
        report(path, &errors->items[i]);
    }
    free(text);
    free(errors);
    return result;
}

void rbi_reload_log_error(const char *path, const struct rbi_config_error *error)
{
    struct rbi_log_text quoted;
    rbi_log(RBI_LOG_ERROR, "config_error", "file=%s line=%u column=%u why=%s", path, error->line,
            error->column, rbi_log_quote(&quoted, error->text, strlen(error->text)));
}

static void reload_log_change(void *context,
                              const char *key,
                              const char *old_value,
                              const char *new_value,
                              bool needs_restart)
{
    (void)context;
    rbi_log(RBI_LOG_INFO, "config_changed", "key=%s old=\"%s\" new=\"%s\" result=\"%s\"", key,
            old_value, new_value, needs_restart ? "needs restart" : "applied");
}

/** Rules may name this host: who lives here is on another one by now. */
static void reload_rename_host(struct rbi_daemon *daemon, const char *before)
{
    if (strcmp(before, daemon->config.bridge.host) == 0) {
        return;
    }
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        rbi_rights_forget(RBI_CONTAINER_OF(node, struct rbi_peer, in_peers));
    }
}

void rbi_reload(struct rbi_daemon *daemon)
{
    struct rbi_config next;
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    if (!daemon->config_path) {
        rbi_log(RBI_LOG_WARNING, "reload_skipped", "why=\"started without --config\"");
        return;
    }
    if (rbi_reload_read(daemon->config_path, &next, &governance, rbi_reload_log_error) != 0) {
        daemon->counters.reloads_failed++;
        rbi_log(RBI_LOG_ERROR, "reload_failed", "file=%s effect=\"the old configuration stays\"",
                daemon->config_path);
        return;
    }
    rbi_config_diff(&daemon->config, &next, reload_log_change, NULL);
    /* What needs a restart keeps its running value, so that the next reload reports it again. */
    memcpy(next.daemon.socket, daemon->config.daemon.socket, sizeof(next.daemon.socket));
    memcpy(next.daemon.state_dir, daemon->config.daemon.state_dir, sizeof(next.daemon.state_dir));
    next.daemon.socket_mode = daemon->config.daemon.socket_mode;
    next.daemon.loop = daemon->config.daemon.loop;
    next.directory = daemon->config.directory;
    const bool liveness_changed =
        memcmp(&next.liveness, &daemon->config.liveness, sizeof(next.liveness)) != 0;
    const struct rbi_bridge_config bridge = daemon->config.bridge;
    daemon->config = next;
    rbi_quota_follow(&daemon->quota);
    reload_rename_host(daemon, bridge.host);
    rbi_log_set_level(next.daemon.log_level);
    rbi_tokens_load(daemon); /* first: what follows looks at all links again */
    rbi_live_set_file(daemon, &governance);
    rbi_bridge_process_follow(daemon, &bridge);
    daemon->counters.reloads++;
    rbi_log(RBI_LOG_INFO, "reloaded", "file=%s", daemon->config_path);
    if (liveness_changed) {
        rbi_hello_send_all(daemon); /* it carries what clients left open */
    }
}
