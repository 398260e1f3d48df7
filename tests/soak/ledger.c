/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map(size_t size)
{
    void *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        perror("soak: mapping the ledger");
        exit(2); /* NOLINT(concurrency-mt-unsafe) */
    }
    return at;
}

struct soak_ledger *soak_ledger_new(uint32_t slots, uint32_t lives_max, uint32_t tables)
{
    struct soak_ledger *ledger = map(sizeof *ledger);
    ledger->slots = slots;
    ledger->lives_max = lives_max;
    ledger->tables = tables;
    ledger->lives = map(lives_max * sizeof *ledger->lives);
    ledger->fates = map((size_t)tables * SOAK_MESSAGES * sizeof *ledger->fates);
    return ledger;
}

struct soak_fate *
soak_fate(const struct soak_ledger *ledger, const struct soak_life *life, uint32_t seq)
{
    return &ledger->fates[(size_t)life->fates * SOAK_MESSAGES + (seq - 1)];
}

bool soak_goes_on(const struct soak_fate *fate)
{
    return fate->kind == SOAK_ANY || fate->kind == SOAK_ASKED;
}

struct soak_life *
soak_life_of(const struct soak_ledger *ledger, uint32_t slot, uint32_t incarnation)
{
    for (uint32_t i = 0; i < ledger->lives_max && incarnation != 0; i++) {
        struct soak_life *life = &ledger->lives[i];
        if (life->slot == slot && atomic_load(&life->incarnation) == incarnation) {
            return life;
        }
    }
    return NULL;
}

const struct soak_down *
soak_down_of(const struct soak_life *life, uint32_t slot, uint32_t incarnation)
{
    for (uint32_t i = atomic_load(&life->down_count); i-- > 0;) {
        const struct soak_down *down = &life->downs[i];
        if (down->slot == slot && down->incarnation == incarnation) {
            return down;
        }
    }
    return NULL;
}

uint32_t soak_down_times(const struct soak_life *life, uint32_t slot, uint32_t incarnation)
{
    uint32_t times = 0;
    for (uint32_t i = atomic_load(&life->down_count); i-- > 0;) {
        times += life->downs[i].slot == slot && life->downs[i].incarnation == incarnation;
    }
    return times;
}

void soak_down_add(struct soak_life *life, uint32_t slot, uint32_t incarnation, unsigned reason)
{
    const uint32_t at = atomic_load(&life->down_count);
    if (at < SOAK_DOWNS) {
        life->downs[at] = (struct soak_down){
            .slot = (uint16_t)slot, .reason = (uint16_t)reason, .incarnation = incarnation};
        atomic_store(&life->down_count, at + 1);
    }
}

void soak_violation(struct soak_ledger *ledger, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (atomic_fetch_add(&ledger->violations, 1) < 20) {
        (void)fprintf(stderr, "soak: VIOLATION [%d] %s\n", (int)getpid(), text);
    }
}
