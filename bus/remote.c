/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/remote.h"

#include "bus/label.h"

#include <string.h>

#define REMOTE_WEIGHT_MAX 1000U

static bool label_valid(const char *text, bool (*is_valid)(const char *text))
{
    return memchr(text, '\0', RBI_DIRECTORY_LABEL_MAX + 1) != NULL && is_valid(text);
}

bool rbi_remote_valid(const struct rbi_remote *remote)
{
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (remote->path_length == 0 || remote->path_length > RBI_PATH_MAX ||
        remote->path[remote->path_length] != '\0' ||
        rbi_pidf_parse(remote->path, remote->path_length, &pidf, &info) != 0) {
        return false;
    }
    return info.elements == RBI_PATH_INSTANCE_ELEMENTS && pidf.cluster == remote->pidf.cluster &&
           pidf.instance == remote->pidf.instance && remote->pidf.incarnation != 0 &&
           remote->state < RBI_ENDPOINT_CLOSED && remote->health <= RBI_HEALTH_RAMP &&
           remote->weight <= REMOTE_WEIGHT_MAX && remote->reported <= UINT16_MAX &&
           label_valid(remote->set, rbi_label_set_valid) &&
           label_valid(remote->idc, rbi_label_idc_valid) &&
           label_valid(remote->tags, rbi_label_tags_valid);
}

bool rbi_remote_equal(const struct rbi_remote *a, const struct rbi_remote *b)
{
    return a->pidf.cluster == b->pidf.cluster && a->pidf.instance == b->pidf.instance &&
           a->pidf.incarnation == b->pidf.incarnation && a->state == b->state &&
           a->health == b->health && a->weight == b->weight && a->reported == b->reported &&
           strcmp(a->path, b->path) == 0 && strcmp(a->set, b->set) == 0 &&
           strcmp(a->idc, b->idc) == 0 && strcmp(a->tags, b->tags) == 0;
}

int rbi_remote_set_path(struct rbi_remote *remote, const char *path, size_t length)
{
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (rbi_pidf_parse(path, length, &pidf, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        return 1;
    }
    memcpy(remote->path, path, length);
    remote->path[length] = '\0';
    remote->path_length = (uint32_t)length;
    remote->pidf.cluster = pidf.cluster;
    remote->pidf.instance = pidf.instance;
    return 0;
}

size_t rbi_remote_cluster_length(const struct rbi_remote *remote)
{
    const char *end = strrchr(remote->path, '/');
    return end ? (size_t)(end - remote->path) : 0;
}
