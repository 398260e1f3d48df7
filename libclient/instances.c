/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/instances.c - the list of the instances of a cluster, as the directory has it. */
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rbi_instance_fill(struct ringbus *bus,
                       const struct rbi_directory_cluster *head,
                       const struct rbi_directory_instance *from,
                       struct ringbus_instance *to)
{
    memset(to, 0, sizeof *to);
    to->addr.cluster = head->cluster;
    to->addr.instance = from->instance;
    to->addr.incarnation = from->incarnation;
    to->state = (enum ringbus_instance_state)from->state;
    to->weight = from->weight;
    (void)snprintf(to->path, sizeof to->path, "%.*s/%.*s", (int)head->path_length, head->path,
                   (int)from->name_length, from->name);
    const struct rbi_end *end = rbi_end_find(bus, head->cluster, from->instance);
    to->linked = end != NULL && end->usable && end->peer.incarnation == from->incarnation ? 1 : 0;
}

static int
do_instances(struct ringbus *bus, const char *path, struct ringbus_instance *out, size_t max)
{
    struct rbi_path_info info = {0};
    struct rbi_directory_cluster head;
    int r =
        rbi_address_path(bus, path, RBI_PATH_CLUSTER_ELEMENTS, RBI_PATH_CLUSTER_ELEMENTS, &info);
    if (r != 0) {
        return r;
    }
    if (max > 0 && out == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "no room given for %zu instances", max);
    }
    if (!bus->directory_mapped) {
        return rbi_fail(bus, RINGBUS_E_NO_DAEMON, "the directory was never received");
    }
    const unsigned room = max > 65536 ? 65536U : (unsigned)max;
    bool absent = false;
    struct rbi_directory_instance *instances =
        rbi_directory_list(bus, rbi_cluster_id(path, info.length), &head, &absent);
    if (instances == NULL) {
        return absent ? rbi_fail(bus, RINGBUS_E_NO_SERVICE, "no cluster %s is known", path)
                      : rbi_fail(bus, RINGBUS_E_NOT_READY, "%s changes too fast; try again", path);
    }
    for (unsigned i = 0; i < room && i < head.instance_count; i++) {
        rbi_instance_fill(bus, &head, &instances[i], &out[i]);
    }
    free(instances);
    return head.instance_count > INT32_MAX ? INT32_MAX : (int)head.instance_count;
}

int ringbus_instances(struct ringbus *bus,
                      const char *path,
                      struct ringbus_instance *out,
                      size_t max)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = do_instances(bus, path, out, max);
        rbi_leave(bus);
    }
    return r;
}
