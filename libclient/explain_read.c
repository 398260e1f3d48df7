/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/explain_read.c - what an explanation works on, copied from the directory. */
#include "bus/label.h"
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rbi_explain_free(struct rbi_explain *explain)
{
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(explain->instances); i++) {
        free(explain->instances[i]);
        free(explain->invisible[i]);
        free(explain->filtered[i]);
    }
    free(explain->entries);
    free(explain->policy);
    free(explain);
}

/* ---- clusters ----------------------------------------------------------------------------- */

/* Own links that the daemon has refused for want of a right; of others the asker may know. */
static bool is_denied(const struct rbi_explain *explain, uint64_t cluster, int32_t instance)
{
    for (size_t i = 0; i < explain->denied_count; i++) {
        const struct ringbus_addr *denied = &explain->denied[i];
        if (denied->cluster == cluster && denied->instance == instance) {
            return true;
        }
    }
    const struct rbi_cluster *known = rbi_cluster_find(explain->bus, cluster);
    const struct rbi_member *member =
        known != NULL && explain->self ? rbi_member_find(known, instance) : NULL;
    return member != NULL &&
           (rbi_member_is_denied(member) || rbi_rights_bars(member, explain->message.method));
}

static int filter(struct rbi_explain *explain, unsigned at)
{
    bool failed = false;
    const struct rbi_route_cluster *cluster = &explain->clusters[at];
    const struct rbi_filtering filtering = {.target = explain->heads[0].cluster,
                                            .cluster = explain->heads[at].cluster,
                                            .path = explain->heads[at].path,
                                            .instances = explain->instances[at],
                                            .count = cluster->count + cluster->absent_count};
    explain->filtered[at] = rbi_hooks_filter(explain->bus, &filtering, &failed);
    explain->clusters[at].filtered = explain->filtered[at];
    return failed ? rbi_fail(explain->bus, RINGBUS_E_NO_MEMORY, "not enough memory to explain") : 0;
}

static int add_cluster(struct rbi_explain *explain, const char *path)
{
    const unsigned at = explain->cluster_count;
    struct rbi_directory_cluster *head = &explain->heads[at];
    const uint64_t id = rbi_cluster_id(path, strlen(path));
    bool absent = false;
    struct rbi_directory_instance *instances = rbi_directory_list(explain->bus, id, head, &absent);
    if (instances == NULL && !absent) {
        return rbi_fail(explain->bus, RINGBUS_E_NO_MEMORY,
                        "the directory cannot be read now: memory is short, or it keeps changing");
    }
    if (instances == NULL) {
        *head = (struct rbi_directory_cluster){.cluster = id};
        (void)snprintf(head->path, sizeof head->path, "%s", path);
    }
    const uint32_t listed = head->instance_count + head->absent_count;
    uint64_t *invisible = calloc(listed / 64 + 1U, sizeof *invisible);
    explain->instances[at] = instances;
    explain->invisible[at] = invisible;
    if (invisible == NULL) {
        return rbi_fail(explain->bus, RINGBUS_E_NO_MEMORY, "not enough memory to explain");
    }
    for (uint32_t i = 0; instances != NULL && i < listed; i++) {
        if (is_denied(explain, id, instances[i].instance)) {
            invisible[i / 64] |= UINT64_C(1) << (i % 64);
        }
    }
    explain->clusters[at] =
        (struct rbi_route_cluster){.instances = instances,
                                   .count = head->instance_count,
                                   .absent_count = head->absent_count,
                                   .panic = (head->flags & RBI_CLUSTER_PANIC) != 0,
                                   .invisible = invisible};
    explain->cluster_count++;
    return explain->self ? filter(explain, at) : 0;
}

static int read_policy(struct rbi_explain *explain)
{
    const uint64_t key = explain->heads[0].policy;
    if (key != 0 && rbi_policy_read(explain->bus, key, &explain->policy) != RBI_DIRECTORY_OK) {
        return rbi_fail(explain->bus, RINGBUS_E_NO_MEMORY,
                        "the policy cannot be read now: memory is short, or it is being replaced");
    }
    if (explain->policy == NULL && (explain->policy = malloc(sizeof *explain->policy)) != NULL) {
        rbi_policy_defaults(explain->policy);
    }
    return explain->policy != NULL
               ? 0
               : rbi_fail(explain->bus, RINGBUS_E_NO_MEMORY, "not enough memory to explain");
}

/* The same cluster of the businesses that the policy imports from. */
static int add_imports(struct rbi_explain *explain, const char *target)
{
    const char *rest = strchr(target + 1, '/');
    const struct rbi_realm_policy *realm = &explain->policy->realm;
    int r = 0;
    for (unsigned i = 0; r == 0 && rest != NULL && i < realm->count; i++) {
        char path[RBI_LABEL_MAX + RBI_PATH_MAX + 2];
        struct rbi_path_info info;
        const int length = snprintf(path, sizeof path, "/%s%s", realm->imports[i], rest);
        if (rbi_path_parse(path, (size_t)length, &info) == 0) {
            r = add_cluster(explain, path);
        }
    }
    return r;
}

/* ---- the caller --------------------------------------------------------------------------- */

static int labels_of_other(struct rbi_explain *explain, const char *caller)
{
    struct rbi_pidf pidf;
    struct rbi_path_info info;
    struct rbi_directory_cluster head;
    bool absent = false;
    if (rbi_pidf_parse(caller, strnlen(caller, RBI_PATH_MAX + 1), &pidf, &info) != 0 ||
        pidf.instance == 0) {
        return rbi_fail(explain->bus, RINGBUS_E_PATH, "the caller is not the path of an instance");
    }
    struct rbi_directory_instance *instances =
        rbi_directory_list(explain->bus, pidf.cluster, &head, &absent);
    bool found = false;
    for (uint32_t i = 0; instances != NULL && i < head.instance_count; i++) {
        if (instances[i].instance == pidf.instance) {
            found = true;
            memcpy(explain->set, instances[i].set, sizeof explain->set);
            memcpy(explain->idc, instances[i].idc, sizeof explain->idc);
            explain->node = instances[i].node;
        }
    }
    free(instances);
    return found ? 0
                 : rbi_fail(explain->bus, RINGBUS_E_NO_INSTANCE, "%s is not registered", caller);
}

static void copy_label(char *to, const char *text)
{
    (void)snprintf(to, RBI_LABEL_MAX + 1, "%s", text);
}

static int read_caller(struct rbi_explain *explain, const struct ringbus_explain_options *options)
{
    const struct ringbus *bus = explain->bus;
    if (options->subject != NULL) {
        const struct ringbus_subject *given = options->subject;
        explain->given = (struct rbi_subject){
            .uid = given->uid,
            .gid = given->gid,
            .program = given->program != NULL ? given->program : "",
            .cgroup = given->cgroup,
            .cgroup_length = given->cgroup != NULL ? strlen(given->cgroup) : 0};
        explain->subject = &explain->given;
    }
    explain->denied = options->denied;
    explain->denied_count = options->denied != NULL ? options->denied_count : 0;
    explain->self = options->caller == NULL || strcmp(options->caller, bus->self_path) == 0;
    int r = 0;
    if (explain->self) {
        copy_label(explain->set, bus->labels.set);
        copy_label(explain->idc, bus->labels.idc);
        explain->node = bus->place.node;
    } else if (options->caller[0] != '\0') {
        r = labels_of_other(explain, options->caller);
    }
    if ((options->set != NULL && !rbi_label_set_valid(options->set)) ||
        (options->idc != NULL && !rbi_label_idc_valid(options->idc))) {
        return rbi_fail(explain->bus, RINGBUS_E_ARGUMENT,
                        "set is \"name.area.group\", idc is \"group\" or \"group/zone\"");
    }
    if (options->set != NULL) {
        copy_label(explain->set, options->set);
    }
    if (options->idc != NULL) {
        copy_label(explain->idc, options->idc);
    }
    return r;
}

int rbi_explain_read(struct rbi_explain *explain,
                     const char *target,
                     const struct ringbus_explain_options *options)
{
    struct rbi_path_info info;
    struct ringbus *bus = explain->bus;
    if (rbi_path_parse(target, strnlen(target, RBI_PATH_MAX + 1), &info) != 0 ||
        info.elements != RBI_PATH_CLUSTER_ELEMENTS) {
        return rbi_fail(bus, RINGBUS_E_PATH,
                        "the target is not the path of a cluster: to an instance's own path "
                        "messages go without being routed");
    }
    if (!bus->directory_mapped) {
        return rbi_fail(bus, RINGBUS_E_NO_DAEMON, "there is no directory yet");
    }
    int r = read_caller(explain, options);
    if (r == 0) {
        r = rbi_options_take(bus, options->message, false, &explain->message);
    }
    if (r == 0) {
        r = add_cluster(explain, target);
    }
    if (r == 0 && explain->instances[0] == NULL) {
        r = rbi_fail(bus, RINGBUS_E_NO_SERVICE, "%s is not known: nobody is or was there", target);
    }
    if (r == 0) {
        r = read_policy(explain);
    }
    return r == 0 ? add_imports(explain, target) : r;
}
