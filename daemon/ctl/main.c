/* SPDX-License-Identifier: Apache-2.0 */
/* ringbusctl: looks at a bus, sends to it and receives from it. Arguments only. */
#include "daemon/ctl/ctl.h"

#include <signal.h>

int main(int argc, char **argv)
{
    struct rbi_ctl_args args;
    int r = rbi_ctl_args_parse(argc, argv, &args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    /* A reader that went away is an error of write(), to be told, not a silent death. */
    signal(SIGPIPE, SIG_IGN);
    return rbi_ctl_finish(&args, args.command->run(&args));
}
