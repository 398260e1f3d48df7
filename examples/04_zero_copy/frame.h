/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_EXAMPLES_FRAME_H
#define RINGBUS_EXAMPLES_FRAME_H
/* What camera and viewer agree on. */
#include <stddef.h>
#include <stdint.h>

#define FRAME_BYTES ((size_t)1 << 20)

/* A small message, built in place: what the next frame will be. */
struct caption {
    uint32_t number;
    char text[48];
};

static inline uint32_t frame_sum(const unsigned char *bytes, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += bytes[i];
    }
    return sum;
}

#endif
