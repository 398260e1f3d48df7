/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SOAK_ACTOR_H
#define RINGBUS_TESTS_SOAK_ACTOR_H
/* soak/actor.h - one process of the soak: sends to everybody, checks what comes. */
#include "ledger.h"

/* Short, so that stopped processes are given up now and then. */
#define SOAK_PING_MS 150U

/** Lives until SIGTERM, then drains and leaves. @return exit code of the process */
int soak_actor(struct soak_ledger *ledger, uint32_t life, const char *socket, uint64_t seed);

#endif
