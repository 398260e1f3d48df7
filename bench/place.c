/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/place.c - what contenders share: memory, helpers (the daemons of peers), payload
 * checks, clocks.
 */
#include "bench/bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int bench_place_memory(struct bench_place *place, size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("bench: mmap");
        return -1;
    }
    place->memory = memory;
    place->memory_bytes = bytes;
    return 0;
}

void bench_place_free(struct bench_place *place)
{
    if (place->memory != NULL) {
        (void)munmap(place->memory, place->memory_bytes);
        place->memory = NULL;
    }
}

int bench_place_helper(struct bench_place *place, const char *const *argv)
{
    char log[128];
    (void)snprintf(log, sizeof log, "%s/%s.helper.log", place->directory, place->contender->name);
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0) {
        perror("bench: fork");
        return -1;
    }
    if (pid == 0) {
        const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        char *copy[16] = {NULL};
        for (unsigned i = 0; i < 15 && argv[i] != NULL; i++) {
            copy[i] = strdup(argv[i]);
        }
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        bench_step_ahead();
        (void)dup2(fd, 1);
        (void)dup2(fd, 2);
        (void)execvp(copy[0], copy);
        perror(copy[0]);
        _exit(127);
    }
    place->helper = pid;
    return 0;
}

void bench_place_helper_stop(struct bench_place *place)
{
    if (place->helper <= 0) {
        return;
    }
    (void)kill(place->helper, SIGTERM);
    for (int i = 0; i < 2000; i++) {
        if (waitpid(place->helper, NULL, WNOHANG) != 0) {
            place->helper = 0;
            return;
        }
        (void)usleep(1000);
    }
    (void)kill(place->helper, SIGKILL);
    (void)waitpid(place->helper, NULL, 0);
    place->helper = 0;
}

void bench_compare(struct bench_end *end, const unsigned char *data, size_t size)
{
    /* Its first and last word hold the number and were checked. */
    if (size > 16 && memcmp(data + 8, end->pattern + 8, size - 16) != 0) {
        end->errors++;
    }
}

uint64_t bench_cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
