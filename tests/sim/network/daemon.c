/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - the process that runs ringbusd: what daemon/main.c does after its options. */
#include "daemon/daemon.h"

#include "bus/governance.h"
#include "tests/sim/network/world.h"

static void daemon_main(void *context)
{
    struct rbi_daemon_options options = {.socket_path = SIM_SOCKET_PATH};
    struct rbi_daemon *daemon = sim_calloc(1, sizeof *daemon);
    (void)context;
    rbi_config_defaults(&options.config);
    options.config.daemon.loop = RBI_LOOP_EPOLL;
    options.config.daemon.log_level = sim.verbose ? RBI_LOG_DEBUG : RBI_LOG_ERROR;
    options.config.directory.slots = 64;
    options.config.directory.clusters = 16;
    options.config.directory.snapshot_bytes = 65536;
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    policy_parse(&governance);
    options.governance = &governance;
    const int result = rbi_daemon_init(daemon, &options);
    if (result != 0) {
        violation(NULL, "the daemon does not start: %d", result);
        sim_process_exit();
    }
    world.daemon_runs = true;
    if (rbi_daemon_run(daemon) != 0) {
        violation(NULL, "the daemon's loop ended");
    }
    world.daemon_runs = false;
    rbi_daemon_deinit(daemon);
    sim_free(daemon);
    sim_process_exit();
}

void daemon_start(void)
{
    world.daemon_starts++;
    sim_process_start(&sim.processes[0], daemon_main, NULL);
    sim.processes[0].name = "ringbusd";
}
