/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/ready.c - waiting until a target can be sent to, for programs that may wait. */
#include "libclient/internal.h"

#include <string.h>

#define READY_BATCH 256

/* Whether a link to the cluster, or to one instance of it, is READY. */
static bool is_ready(struct ringbus *bus, const struct rbi_pidf *pidf)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, pidf->cluster);
    for (unsigned m = 0; cluster != NULL && m < cluster->member_count; m++) {
        const struct rbi_member *member = &cluster->members[m];
        if ((pidf->instance == 0 || pidf->instance == member->instance) && member->wanted &&
            member->end != NULL && member->end->usable) {
            return true;
        }
    }
    return false;
}

/* What is missing. A public error (noted) */
static int missing(struct ringbus *bus, const char *path, const struct rbi_pidf *pidf)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, pidf->cluster);
    const int count = ringbus_instances(bus, cluster->path, NULL, 0);
    bool there = false;
    for (unsigned m = 0; m < cluster->member_count; m++) {
        const struct rbi_member *member = &cluster->members[m];
        there = there || (member->incarnation != 0 &&
                          (pidf->instance == 0 || pidf->instance == member->instance));
    }
    if (there) {
        return rbi_fail(bus, RINGBUS_E_NOT_READY, "%s is there, its link is not READY", path);
    }
    if (count < 0) {
        return rbi_fail(bus, RINGBUS_E_NO_SERVICE, "nobody has ever heard of %s", cluster->path);
    }
    return rbi_fail(bus, RINGBUS_E_NO_INSTANCE, "%s is known, and nobody is there", path);
}

static bool is_target(struct ringbus *bus, const struct rbi_pidf *pidf)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, pidf->cluster);
    if (cluster == NULL || pidf->instance == 0) {
        return cluster != NULL && cluster->all;
    }
    const struct rbi_member *member = rbi_member_find(cluster, pidf->instance);
    return cluster->all || (member != NULL && member->pinned);
}

static int wait_ready(struct ringbus *bus, const char *path, int timeout_ms)
{
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (bus->in_callback) {
        return rbi_fail(bus, RINGBUS_E_BUSY, "ringbus_wait_ready() inside a callback");
    }
    if (path == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "path is NULL");
    }
    if (rbi_pidf_parse(path, strnlen(path, RBI_PATH_MAX + 1), &pidf, &info) != 0) {
        return rbi_fail(bus, RINGBUS_E_PATH, "\"%.*s\" at byte %u: %s", (int)RBI_PATH_MAX, path,
                        info.error_offset, rbi_path_error_text(info.error));
    }
    const uint64_t until_ns =
        timeout_ms < 0 ? RBI_NEVER : rbi_now_ns() + (uint64_t)timeout_ms * RBI_NS_PER_MS;
    for (;;) {
        if (!is_target(bus, &pidf)) { /* a callback may have ended the interest */
            return rbi_fail(bus, RINGBUS_E_NOT_TARGET, "%s is not a target", path);
        }
        if (is_ready(bus, &pidf)) {
            return 0;
        }
        const uint64_t now_ns = rbi_now_ns();
        if (bus->closing) {
            return rbi_fail(bus, RINGBUS_E_CLOSED, "%s has ended", bus->self_path);
        }
        const uint64_t left_ms =
            until_ns == RBI_NEVER ? 0 : (until_ns - rbi_min_u64(now_ns, until_ns)) / RBI_NS_PER_MS;
        int r = ringbus_wait(
            bus, until_ns == RBI_NEVER
                     ? -1
                     : (int)rbi_min_u64(left_ms + (now_ns < until_ns ? 1U : 0U), INT32_MAX));
        r = r < 0 ? r : ringbus_poll(bus, READY_BATCH);
        if (r < 0) {
            return r;
        }
        if (now_ns >= until_ns && !is_ready(bus, &pidf) && is_target(bus, &pidf)) {
            return missing(bus, path, &pidf);
        }
    }
}

int ringbus_wait_ready(struct ringbus *bus, const char *path, int timeout_ms)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = wait_ready(bus, path, timeout_ms);
        rbi_leave(bus);
    }
    return r;
}
