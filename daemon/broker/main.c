/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/broker/main.c - arguments of ringbus-broker; everything else is in the library. */
#include "daemon/broker/broker.h"
#include "daemon/log.h"
#include "daemon/notify.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "Usage: ringbus-broker --config FILE [OPTION]...\n"
    "Stands for clusters of one bus, or of one business, on another one: shows them there under\n"
    "names of its own, and brings them what is sent to those.\n"
    "\n"
    "  --config FILE     which buses, and what is shown where (YAML)\n"
    "  --check           check the file and exit: 0 good, 1 not\n"
    "  --version         print the version and exit\n"
    "  --help            print this and exit\n"
    "\n"
    "Signals: SIGHUP reads the file again, SIGUSR1 logs the counters, SIGTERM and SIGINT leave in\n"
    "order.\n";

static int run(const char *path)
{
    static struct rbi_broker broker;
    rbi_log_init();
    rbi_notify_open();
    int r = rbi_broker_init(&broker, path);
    if (r == 0) {
        r = rbi_broker_run(&broker);
    }
    if (r < 0) {
        rbi_log(RBI_LOG_ERROR, "broker_failed", "why=%s", rbi_log_errno(-r));
    }
    rbi_broker_deinit(&broker);
    rbi_notify_close();
    return r == 0 ? 0 : 1;
}

static int check(const char *path)
{
    struct rbi_broker_config *config = malloc(sizeof *config);
    const int r = config != NULL ? rbi_broker_read(path, config) : 1;
    free(config);
    return r;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"config", required_argument, NULL, 'c'},
        {"check", no_argument, NULL, 'k'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *path = NULL;
    bool checks = false;
    int option = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((option = getopt_long(argc, argv, "c:h", known, NULL)) != -1) {
        switch (option) {
        case 'c':
            path = optarg;
            break;
        case 'k':
            checks = true;
            break;
        case 'V':
            (void)puts("ringbus-broker " RINGBUS_VERSION_TEXT);
            return 0;
        case 'h':
            (void)fputs(usage, stdout);
            return 0;
        default:
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (path == NULL || optind < argc) {
        (void)fputs(usage, stderr);
        return 2;
    }
    return checks ? check(path) : run(path);
}
