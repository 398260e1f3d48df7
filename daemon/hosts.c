/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/hosts.h"

#include <stdlib.h>
#include <string.h>

void rbi_hosts_init(struct rbi_hosts *hosts)
{
    *hosts = (struct rbi_hosts){.next_order = 1};
    rbi_list_init(&hosts->all);
}

static void hosts_free(struct rbi_hosts *hosts, struct rbi_host *host)
{
    rbi_list_remove(&host->in_hosts);
    hosts->count--;
    free(host);
}

void rbi_hosts_deinit(struct rbi_hosts *hosts)
{
    RBI_LIST_EACH(node, spare, &hosts->all)
    {
        hosts_free(hosts, RBI_CONTAINER_OF(node, struct rbi_host, in_hosts));
    }
}

uint32_t rbi_host_state(const struct rbi_host *host)
{
    if (host->told) {
        return host->row.state;
    }
    return host->way.hops > 0 ? RBI_HOST_REACHABLE : RBI_HOST_DOWN;
}

struct rbi_host *rbi_hosts_find(const struct rbi_hosts *hosts, const char *name)
{
    RBI_LIST_EACH(node, spare, &hosts->all)
    {
        struct rbi_host *host = RBI_CONTAINER_OF(node, struct rbi_host, in_hosts);
        if (strcmp(host->name, name) == 0) {
            return host;
        }
    }
    return NULL;
}

static bool hosts_has_number(const struct rbi_hosts *hosts, uint32_t number)
{
    RBI_LIST_EACH(node, spare, &hosts->all)
    {
        if (RBI_CONTAINER_OF(node, struct rbi_host, in_hosts)->number == number) {
            return true;
        }
    }
    return false;
}

/**
 * From the name, so that it is the same under the next daemon, which finds instances of that host
 * in the directory of this one. Two names that meet, of four thousand million, share it till then.
 */
static uint32_t hosts_number(const struct rbi_hosts *hosts, const char *name)
{
    uint32_t number = (uint32_t)rbi_host_id(name, strlen(name));
    while (number == 0 || hosts_has_number(hosts, number)) {
        number++;
    }
    return number;
}

struct rbi_host *rbi_hosts_take(struct rbi_hosts *hosts, const char *name)
{
    struct rbi_host *host = rbi_hosts_find(hosts, name);
    if (host || hosts->count == RBI_HOSTS_MAX) {
        return host;
    }
    host = calloc(1, sizeof(*host));
    if (!host) {
        return NULL;
    }
    rbi_list_init(&host->in_hosts);
    memcpy(host->name, name, strnlen(name, RBI_HOST_NAME_MAX));
    host->number = hosts_number(hosts, host->name);
    host->order = hosts->next_order++;
    rbi_list_push_back(&hosts->all, &host->in_hosts);
    hosts->count++;
    return host;
}

void rbi_hosts_drop(struct rbi_hosts *hosts, struct rbi_host *host)
{
    if (host->proxies == 0 && !host->told && host->way.next[0] == '\0') {
        hosts_free(hosts, host);
    }
}
