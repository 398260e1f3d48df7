/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_INSTRUCTIONS_PHASES_H
#define RINGBUS_TESTS_INSTRUCTIONS_PHASES_H
/*
 * tests/instructions/phases.h - what is counted.
 *
 * A phase is rounds x operations. Each round has a part that is not counted (what a poll
 * is to find is sent, what was sent is taken) around the one that is.
 *
 * The numbers are chosen so that whatever comes periodically comes equally often wherever
 * in its period a phase begins: polls by 1024 (a tick), 48-byte messages by 1024 (a lap of
 * the lane), 1 KiB ones by 60 (the same), empty polls of 64 links by 28 (the quiet ones in
 * turn).
 */
#include "tests/instructions/group.h"

/* The groups that phases work on. */
enum phase_group { GROUP_ONE, GROUP_SLEEPER, GROUP_8, GROUP_64, GROUP_512, GROUP_COUNT };

struct phase {
    const char *name;
    enum phase_group group;
    unsigned rounds;
    unsigned operations; /* of a round */
    /** Not counted; may be NULL. */
    void (*prepare)(struct group *group, unsigned operations);
    void (*run)(struct group *group, unsigned operations);
};

extern const struct phase phases[];
extern const unsigned phase_count;

#endif
