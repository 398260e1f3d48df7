/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/contenders/slots.h"

#include <stdlib.h>

int slots_setup(struct bench_place *place)
{
    return bench_place_memory(place, 2 * sizeof(struct slots_ring));
}

int slots_open(struct bench_end *end)
{
    struct slots_ring *rings = (struct slots_ring *)(void *)end->place->memory;
    struct slots_end *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return -1;
    }
    s->tx = &rings[end->side];
    s->rx = &rings[!end->side];
    end->state = s;
    return 0;
}

void slots_close(struct bench_end *end)
{
    free(end->state);
}

BENCH_INLINE int send_slot(struct bench_end *end, const unsigned char *data, size_t size)
{
    return slots_put(end->state, data, size);
}

BENCH_INLINE int poll_slots(struct bench_end *end, unsigned max)
{
    struct slots_end *s = end->state;
    unsigned n = 0;
    for (const unsigned char *data; n < max && (data = slots_peek(s, end->size)) != NULL; n++) {
        bench_take(end, data, end->size);
        if (end->echo) {
            while (slots_put(s, data, end->size) == 0) {
            }
        }
    }
    if (n > 0) {
        slots_done(s);
    }
    return (int)n;
}
BENCH_LOOPS(slots, send_slot, poll_slots)

const struct bench_contender bench_slots = {
    .name = "bare-slots",
    .package = "",
    .text = "256 KiB of slots of one size, commit word in the slot, no checks",
    .abilities = BENCH_CAN_BUSY | BENCH_IS_LIMIT | BENCH_TRIPS | BENCH_STREAM,
    .size_max = SLOTS_BYTES / 2 - 64,
    .setup = slots_setup,
    .open = slots_open,
    .close = slots_close,
    .trips = slots_trips,
    .stream = slots_stream,
    .put = slots_put_loop,
    .take = slots_take_loop,
};
