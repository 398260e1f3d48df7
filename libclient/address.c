/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/address.c - text to address and back, keys. */
#include "libclient/internal.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

int ringbus_resolve(const char *path, struct ringbus_addr *out)
{
    if (path == NULL || out == NULL) {
        return RINGBUS_E_ARGUMENT;
    }
    struct rbi_pidf pidf;
    struct rbi_path_info info;
    if (rbi_pidf_parse(path, strnlen(path, RBI_PATH_MAX + 1), &pidf, &info) != 0) {
        return RINGBUS_E_PATH;
    }
    *out = rbi_addr(&pidf);
    return 0;
}

int rbi_address_path(struct ringbus *bus,
                     const char *path,
                     unsigned elements_min,
                     unsigned elements_max,
                     struct rbi_path_info *info)
{
    if (path == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "path is NULL");
    }
    if (rbi_path_parse(path, strnlen(path, RBI_PATH_MAX + 1), info) != 0) {
        return rbi_fail(bus, RINGBUS_E_PATH, "\"%.*s\" at byte %u: %s", (int)RBI_PATH_MAX, path,
                        info->error_offset, rbi_path_error_text(info->error));
    }
    if (info->elements < elements_min || info->elements > elements_max) {
        return rbi_fail(bus, RINGBUS_E_PATH, "\"%s\" has %u elements, expected %u to %u", path,
                        info->elements, elements_min, elements_max);
    }
    return 0;
}

uint64_t ringbus_key(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

static int copy_text(char *buffer, size_t size, const char *text)
{
    const size_t length = strlen(text);
    if (length >= size) {
        return RINGBUS_E_ARGUMENT;
    }
    memcpy(buffer, text, length + 1);
    return (int)length;
}

/* Known from the directory: path of the cluster and, where it lists it, the instance's name. */
static int format_from_directory(const struct ringbus *bus,
                                 const struct rbi_pidf *pidf,
                                 char *buffer,
                                 size_t size)
{
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[64];
    if (!bus->directory_mapped) {
        return RINGBUS_E_NO_SERVICE;
    }
    const int r = rbi_directory_read(&bus->directory, pidf->cluster, &head, instances,
                                     RBI_ARRAY_SIZE(instances));
    if (r != RBI_DIRECTORY_OK && r != RBI_DIRECTORY_ROOM) {
        return RINGBUS_E_NO_SERVICE;
    }
    char text[RBI_PATH_MAX + 1 + 1 + RBI_PATH_ELEMENT_MAX + 1];
    if (pidf->instance == 0) {
        return copy_text(buffer, size, head.path);
    }
    const unsigned count = head.instance_count < RBI_ARRAY_SIZE(instances)
                               ? head.instance_count
                               : RBI_ARRAY_SIZE(instances);
    for (unsigned i = 0; i < count; i++) {
        if (instances[i].instance == pidf->instance) {
            (void)snprintf(text, sizeof text, "%s/%s", head.path, instances[i].name);
            return copy_text(buffer, size, text);
        }
    }
    (void)snprintf(text, sizeof text, "%s/%d", head.path, pidf->instance);
    return copy_text(buffer, size, text);
}

int ringbus_format(struct ringbus *bus, const struct ringbus_addr *addr, char *buffer, size_t size)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (addr == NULL || buffer == NULL) {
        rbi_leave(bus);
        return RINGBUS_E_ARGUMENT;
    }
    struct rbi_pidf pidf;
    memcpy(&pidf, addr, sizeof pidf);
    const struct rbi_end *end =
        pidf.instance > 0 ? rbi_end_find(bus, pidf.cluster, pidf.instance) : NULL;
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, pidf.cluster);
    const struct rbi_member *member =
        cluster != NULL ? rbi_member_find(cluster, pidf.instance) : NULL;
    if (pidf.cluster == bus->self.cluster && pidf.instance == bus->self.instance) {
        r = copy_text(buffer, size, bus->self_path);
    } else if (end != NULL) {
        r = copy_text(buffer, size, end->path);
    } else if (member != NULL) {
        r = copy_text(buffer, size, member->path);
    } else if (cluster != NULL && pidf.instance <= 0) {
        r = copy_text(buffer, size, cluster->path);
    } else {
        r = format_from_directory(bus, &pidf, buffer, size);
        if (r == RINGBUS_E_NO_SERVICE) {
            char raw[32];
            (void)rbi_pidf_format_raw(&pidf, raw, sizeof raw);
            r = copy_text(buffer, size, raw);
        }
    }
    rbi_leave(bus);
    return r;
}
