/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/labels.c - a caller that is moved to another set or place by the operator goes on
 * there, without a new connection: it reads of itself what the others read of it.
 */
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy(char *to, const char *text)
{
    (void)snprintf(to, RBI_DIRECTORY_LABEL_MAX + 1, "%s", text != NULL ? text : "");
}

void rbi_labels_init(struct ringbus *bus)
{
    copy(bus->labels.set, bus->set);
    copy(bus->labels.idc, bus->idc);
    copy(bus->labels.tags, bus->tags);
}

static void take(struct ringbus *bus, const struct rbi_directory_instance *self)
{
    struct rbi_labels *labels = &bus->labels;
    copy(labels->tags, self->tags);
    if (strcmp(labels->set, self->set) == 0 && strcmp(labels->idc, self->idc) == 0) {
        return;
    }
    copy(labels->set, self->set);
    copy(labels->idc, self->idc);
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        rbi_cluster_changed(bus, bus->clusters[i]);
    }
}

void rbi_labels_look(struct ringbus *bus)
{
    struct rbi_labels *labels = &bus->labels;
    struct rbi_directory_cluster head;
    bool absent = false;
    const uint64_t daemon = rbi_directory_daemon(&bus->directory);
    const uint64_t epoch = rbi_directory_epoch(&bus->directory, bus->self.cluster);
    if (epoch == 0 || (epoch == labels->epoch && daemon == labels->daemon)) {
        return; /* a daemon that does not know us yet moves nobody */
    }
    struct rbi_directory_instance *instances =
        rbi_directory_snapshot(&bus->directory, bus->self.cluster, &head, &absent);
    if (instances == NULL) {
        return; /* with the next change */
    }
    labels->daemon = daemon;
    labels->epoch = head.epoch;
    for (uint32_t i = 0; i < head.instance_count; i++) {
        if (instances[i].instance == bus->self.instance &&
            instances[i].incarnation == bus->self.incarnation) {
            take(bus, &instances[i]);
        }
    }
    free(instances);
}
