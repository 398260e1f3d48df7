/* SPDX-License-Identifier: Apache-2.0 */
/*
 * camera N: waits for N viewers, then for each of three frames sends
 *   a caption to the viewers, one by one, built in the room where it will be read (claim);
 *   the frame of 1 MiB to all of them, filled once and copied never (loan).
 */
#include "frame.h"

#include <ringbus/ringbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VIEWERS "/Demo/cn/pc/w1/g1/Viewer"

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    long *ready = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        *ready += 1;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        *ready -= 1;
    }
}

/* @return 1, or an error */
static int send_caption(struct ringbus *bus, struct ringbus_addr to, int viewer, uint32_t number)
{
    struct ringbus_claim claim;
    to.instance = viewer;
    int r = ringbus_claim(bus, &to, 0, sizeof(struct caption), 0, &claim);
    if (r < 0) {
        return r;
    }
    struct caption *caption = claim.data; /* undefined content: every byte is ours to write */
    memset(caption, 0, sizeof *caption);
    caption->number = number;
    snprintf(caption->text, sizeof caption->text, "frame %u for viewer %d", number, viewer);
    return ringbus_commit(bus, &claim, sizeof *caption);
}

/* @return number of viewers that have it, or an error */
static int send_frame(struct ringbus *bus, struct ringbus_addr to, uint32_t number)
{
    struct ringbus_loan loan;
    int r = ringbus_loan(bus, FRAME_BYTES, &loan);
    while (r == RINGBUS_E_NO_CHUNK) { /* viewers still hold the earlier ones */
        r = ringbus_wait(bus, 100) >= 0 ? ringbus_poll(bus, 100) : RINGBUS_E_SYSTEM;
        if (r >= 0) {
            r = ringbus_loan(bus, FRAME_BYTES, &loan);
        }
    }
    if (r < 0) {
        return r;
    }
    memset(loan.data, (int)number, FRAME_BYTES);
    to.instance = RINGBUS_ALL;
    r = ringbus_send_loan(bus, &to, 0, &loan, FRAME_BYTES, 0);
    int returned = ringbus_loan_return(bus, &loan);
    return returned < 0 ? returned : r;
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr viewers;
    struct ringbus *bus;
    long ready = 0;
    long wanted = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (wanted < 1 || wanted > 100) {
        fputs("usage: camera N\n", stderr);
        return 2;
    }
    options.on_event = on_event;
    options.user = &ready;
    options.pool[0].chunk_bytes = (uint32_t)FRAME_BYTES;
    options.pool[0].count = 2;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "camera: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_target(bus, VIEWERS, NULL, &viewers);
    while (r >= 0 && ready < wanted) {
        r = ringbus_wait(bus, 5000) == 1 ? ringbus_poll(bus, 100) : RINGBUS_E_TIMEOUT;
    }
    for (uint32_t number = 1; r >= 0 && number <= 3; number++) {
        for (int viewer = 1; r >= 0 && viewer <= (int)wanted; viewer++) {
            r = send_caption(bus, viewers, viewer, number);
        }
        if (r >= 0) {
            r = send_frame(bus, viewers, number);
        }
        if (r >= 0) {
            printf("frame %u: written once, lent to %d viewers\n", number, r);
        }
    }
    if (r < 0) {
        fprintf(stderr, "camera: %s\n", ringbus_strerror(r));
    }
    return ringbus_close(bus, 2000) == 0 && r > 0 ? 0 : 1;
}
