/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stop.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t stopping;
static pid_t owner;

static void on_signal(int number)
{
    if (getpid() != owner) {
        _exit(128 + number);
    }
    stopping = 1;
}

void bench_stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    owner = getpid();
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool bench_stopping(void)
{
    return stopping != 0;
}
