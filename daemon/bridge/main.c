/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/main.c - arguments and signals of ringbus-bridge; the rest is in the library. */
#include "daemon/bridge/bridge.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/reload.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Started by ringbusd, which comes back within this time or was stopped for good. */
#define ORPHAN_NS (UINT64_C(30) * 1000 * 1000 * 1000)

static const char usage[] =
    "Usage: ringbus-bridge --config FILE [OPTION]...\n"
    "Joins the ringbusd of this host to those of others, as the section \"bridge\" of the\n"
    "configuration says. ringbusd starts it by itself, unless bridge.start is false.\n"
    "\n"
    "  --config FILE     configuration (YAML), the same as ringbusd's\n"
    "  --socket PATH     of ringbusd; default as for ringbusd\n"
    "  --folder PATH     where what is known of other hosts is kept; default: nowhere\n"
    "  --child           end by itself when there is no ringbusd for 30 s\n"
    "  --version         print the version and exit\n"
    "  --help            print this and exit\n"
    "\n"
    "Signals: SIGHUP reads the configuration again, SIGTERM and SIGINT stop.\n";

struct program {
    const char *config_path;
    const char *socket_option;
    const char *folder;
    bool child;
    char socket[RBI_SOCKET_PATH_MAX + 1];
    struct rbi_config config;
    struct rbi_bridge bridge;
    struct rbi_loop *loop;
    int signal_fd;
    struct rbi_loop_source signal_source;
};

enum action { ACTION_RUN, ACTION_VERSION, ACTION_HELP, ACTION_BAD };

static enum action parse(int argc, char **argv, struct program *program)
{
    static const struct option known[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket", required_argument, NULL, 's'},
        {"folder", required_argument, NULL, 'f'},
        {"child", no_argument, NULL, 'C'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((option = getopt_long(argc, argv, "c:s:f:h", known, NULL)) != -1) {
        switch (option) {
        case 'c':
            program->config_path = optarg;
            break;
        case 's':
            program->socket_option = optarg;
            break;
        case 'f':
            program->folder = optarg;
            break;
        case 'C':
            program->child = true;
            break;
        case 'V':
            return ACTION_VERSION;
        case 'h':
            return ACTION_HELP;
        default:
            return ACTION_BAD;
        }
    }
    return optind == argc && program->config_path != NULL ? ACTION_RUN : ACTION_BAD;
}

static int read_config(const struct program *program, struct rbi_config *config)
{
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    const int result =
        rbi_reload_read(program->config_path, config, &governance, rbi_reload_log_error);
    if (result == 0) {
        rbi_governance_deinit(&governance);
    }
    if (result == 0 && !config->bridge.given) {
        rbi_log(RBI_LOG_ERROR, "no_bridge", "file=%s text=\"it has no section bridge\"",
                program->config_path);
        return 1;
    }
    return result;
}

static void reload(struct program *program)
{
    static struct rbi_config next;
    rbi_config_defaults(&next);
    if (read_config(program, &next) != 0) {
        return; /* the old one stays */
    }
    if (strcmp(next.bridge.host, program->config.bridge.host) != 0 ||
        next.bridge.insecure != program->config.bridge.insecure ||
        next.bridge.listen_count != program->config.bridge.listen_count ||
        memcmp(next.bridge.listen, program->config.bridge.listen, sizeof next.bridge.listen) != 0) {
        rbi_log(RBI_LOG_WARNING, "needs_restart",
                "keys=\"bridge.host bridge.listen bridge.insecure\"");
    }
    program->config = next;
    rbi_log_set_level(next.daemon.log_level);
    rbi_bridge_configure(&program->bridge, &next.bridge);
    rbi_log(RBI_LOG_INFO, "reloaded", "file=%s", program->config_path);
}

static void on_signal(void *context, unsigned events)
{
    struct program *program = context;
    struct signalfd_siginfo info;
    ssize_t n = 0;
    (void)events;
    while ((n = read(program->signal_fd, &info, sizeof info)) == (ssize_t)sizeof info ||
           (n < 0 && errno == EINTR)) {
        if (n > 0 && info.ssi_signo == SIGHUP) {
            reload(program);
        } else if (n > 0) {
            rbi_loop_stop(program->loop);
        }
    }
}

static int watch_signals(struct program *program)
{
    sigset_t set;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    if (sigaction(SIGPIPE, &ignore, NULL) < 0 || pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return -EINVAL;
    }
    program->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return program->signal_fd < 0
               ? -errno
               : rbi_loop_add(program->loop, &program->signal_source, program->signal_fd,
                              RBI_LOOP_IN, on_signal, program);
}

static int run(struct program *program)
{
    const struct rbi_bridge_options options = {.loop = program->loop,
                                               .socket = program->socket,
                                               .folder = program->folder,
                                               .orphan_ns = program->child ? ORPHAN_NS : 0};
    int result = watch_signals(program);
    if (result == 0) {
        result = rbi_bridge_init(&program->bridge, &program->config.bridge, &options);
        if (result == 0) {
            result = rbi_loop_run(program->loop);
        }
        rbi_bridge_deinit(&program->bridge);
    }
    return result;
}

int main(int argc, char **argv)
{
    static struct program program = {.signal_fd = -1};
    const enum action action = parse(argc, argv, &program);
    if (action == ACTION_BAD || action == ACTION_HELP) {
        (void)fputs(usage, action == ACTION_HELP ? stdout : stderr);
        return action == ACTION_HELP ? 0 : 2;
    }
    if (action == ACTION_VERSION) {
        (void)puts("ringbus-bridge " RINGBUS_VERSION_TEXT);
        return 0;
    }
    rbi_log_init();
    rbi_config_defaults(&program.config);
    if (read_config(&program, &program.config) != 0) {
        return 1;
    }
    rbi_log_set_level(program.config.daemon.log_level);
    if (rbi_listener_place(program.socket_option, program.config.daemon.socket, program.socket) <
            0 ||
        rbi_loop_new(&program.loop, program.config.daemon.loop) < 0) {
        return 1;
    }
    const int result = run(&program);
    rbi_loop_remove(&program.signal_source);
    if (program.signal_fd >= 0) {
        (void)close(program.signal_fd);
    }
    program.loop = rbi_loop_free(program.loop);
    return result == 0 ? 0 : 1;
}
