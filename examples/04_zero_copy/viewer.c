/* SPDX-License-Identifier: Apache-2.0 */
/*
 * viewer N: keeps the newest frame beyond the callback that brought it (ringbus_keep),
 * looks at it after the loop has gone on, and lets go of it when the next one comes.
 * Nothing is copied: the kept frame lies in the camera's memory, even after its death.
 */
#include "frame.h"

#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct viewer {
    const char *name;
    struct ringbus_kept *newest;
    int fresh;
};

static struct ringbus *bus;
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
    ringbus_wake(bus);
}

static void on_message(struct ringbus *from, const struct ringbus_message *message, void *user)
{
    struct viewer *viewer = user;
    if (message->size == sizeof(struct caption)) {
        struct caption caption; /* a copy: what a peer wrote is looked at once */
        memcpy(&caption, message->data, sizeof caption);
        printf("viewer %s: caption %u, %.*s\n", viewer->name, caption.number,
               (int)sizeof caption.text, caption.text);
        return;
    }
    ringbus_release(from, viewer->newest);
    viewer->newest = NULL;
    int r = ringbus_keep(from, message, &viewer->newest);
    if (r < 0) {
        fprintf(stderr, "viewer %s: %s\n", viewer->name, ringbus_strerror(r));
        return;
    }
    viewer->fresh = 1;
    printf("viewer %s: frame by reference: %s\n", viewer->name,
           (message->flags & RINGBUS_MESSAGE_REFERENCED) != 0 ? "yes" : "no");
}

static void look(struct viewer *viewer)
{
    if (viewer->fresh) {
        printf("viewer %s: sum of %zu bytes is %u\n", viewer->name, viewer->newest->size,
               frame_sum(viewer->newest->data, viewer->newest->size));
        viewer->fresh = 0;
    }
}

int main(int argc, char **argv)
{
    struct viewer viewer = {.name = argc == 2 ? argv[1] : ""};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    char path[RINGBUS_PATH_MAX + 1];
    if (argc != 2) {
        fputs("usage: viewer N\n", stderr);
        return 2;
    }
    snprintf(path, sizeof path, "/Demo/cn/pc/w1/g1/Viewer/%s", argv[1]);
    options.path = path;
    options.on_message = on_message;
    options.user = &viewer;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "viewer %s: %s\n", argv[1], ringbus_errmsg(NULL));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    /* One message at a time, so that each frame is looked at. */
    while (!stop && ringbus_wait(bus, -1) >= 0 && ringbus_poll(bus, 1) >= 0) {
        look(&viewer);
        fflush(stdout);
    }
    ringbus_release(bus, viewer.newest);
    return ringbus_close(bus, 1000) == 0 ? 0 : 1;
}
