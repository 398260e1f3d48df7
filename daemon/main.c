/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/main.c - arguments of ringbusd; everything else is in the library. */
#include "daemon/daemon.h"
#include "daemon/reload.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static const char usage[] =
    "Usage: ringbusd [OPTION]...\n"
    "The daemon of ringbus: names, admits, introduces and watches services of this host.\n"
    "\n"
    "  --config FILE     configuration (YAML); without it, the defaults\n"
    "  --socket PATH     where clients connect; default: daemon.socket of the configuration,\n"
    "                    $RINGBUS_SOCKET, /run/ringbus/bus.sock (root),\n"
    "                    $XDG_RUNTIME_DIR/ringbus/bus.sock\n"
    "  --check           check the configuration and exit: 0 good, 1 not\n"
    "  --print-config    print every key with its value and exit\n"
    "  --version         print the version and exit\n"
    "  --help            print this and exit\n"
    "\n"
    "Signals: SIGHUP reads the configuration again, SIGTERM and SIGINT stop.\n";

enum action { ACTION_RUN, ACTION_CHECK, ACTION_PRINT, ACTION_VERSION, ACTION_HELP, ACTION_BAD };

static enum action parse(int argc, char **argv, struct rbi_daemon_options *options)
{
    static const struct option known[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket", required_argument, NULL, 's'},
        {"check", no_argument, NULL, 'k'},
        {"print-config", no_argument, NULL, 'p'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    enum action action = ACTION_RUN;
    int option = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((option = getopt_long(argc, argv, "c:s:h", known, NULL)) != -1) {
        switch (option) {
        case 'c':
            options->config_path = optarg;
            break;
        case 's':
            options->socket_path = optarg;
            break;
        case 'k':
            action = ACTION_CHECK;
            break;
        case 'p':
            action = ACTION_PRINT;
            break;
        case 'V':
            return ACTION_VERSION;
        case 'h':
            return ACTION_HELP;
        default:
            return ACTION_BAD;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "ringbusd: not an option: %s\n", argv[optind]);
        return ACTION_BAD;
    }
    return action;
}

static void report_error(const char *path, const struct rbi_config_error *error)
{
    if (error->line) {
        (void)fprintf(stderr, "%s:%u:%u: %s\n", path, error->line, error->column, error->text);
    } else {
        (void)fprintf(stderr, "%s: %s\n", path, error->text);
    }
}

static void print_key(void *context, const char *key, const char *value, bool is_default)
{
    (void)context;
    (void)printf("%s = %s%s\n", key, value, is_default ? " (default)" : "");
}

static int run(const struct rbi_daemon_options *options)
{
    static struct rbi_daemon daemon;
    int result = rbi_daemon_init(&daemon, options);
    if (result == 0) {
        result = rbi_daemon_run(&daemon);
    }
    rbi_daemon_deinit(&daemon);
    return result == 0 ? 0 : 1;
}

/** Whoever started us without 0, 1 or 2 must not get log lines into a client's socket. */
static void hold_standard_descriptors(void)
{
    int fd = 0;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    struct rbi_daemon_options options = {.config_path = NULL};
    const enum action action = parse(argc, argv, &options);
    if (action == ACTION_BAD || action == ACTION_HELP) {
        (void)fputs(usage, action == ACTION_HELP ? stdout : stderr);
        return action == ACTION_HELP ? 0 : 2;
    }
    if (action == ACTION_VERSION) {
        (void)puts("ringbusd " RINGBUS_VERSION_TEXT);
        return 0;
    }
    rbi_config_defaults(&options.config);
    if (options.config_path &&
        rbi_reload_read(options.config_path, &options.config, &governance, report_error) != 0) {
        return 1;
    }
    options.governance = &governance;
    if (action == ACTION_CHECK || action == ACTION_PRINT) {
        if (action == ACTION_PRINT) {
            rbi_config_print(&options.config, print_key, NULL);
        }
        rbi_governance_deinit(&governance);
        return 0;
    }
    return run(&options); /* which takes it over */
}
