/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/bridge_config.h"

#include <string.h>
#include <xxhash.h>

void rbi_bridge_config_defaults(struct rbi_bridge_config *config)
{
    *config = (struct rbi_bridge_config){
        .start = true,
        .transit = true,
        .user = RBI_BRIDGE_NO_USER,
        .import = {.count = 1, .items = {"/**"}},
        .ping_interval_ms = 1000,
        .ping_misses = 3,
        .unreachable_after_ms = 10000,
        .grace_ms = 60000,
        .mass_hold_ms = 30000,
        .window_bytes = UINT64_C(512) << 10,
        .batch_delay_us = 50,
        .limits = {.instances = 1024, .streams = 4096, .queue_bytes = UINT64_C(4) << 20},
    };
}

bool rbi_host_name_valid(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char c = name[i];
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-') {
            return false;
        }
    }
    return length >= 1 && length <= RBI_HOST_NAME_MAX;
}

uint64_t rbi_host_id(const char *name, size_t length)
{
    const uint64_t id = XXH3_64bits(name, length);
    return id ? id : 1;
}

const struct rbi_bridge_peer *rbi_bridge_config_peer(const struct rbi_bridge_config *config,
                                                     const char *host)
{
    for (uint32_t i = 0; i < config->peer_count; i++) {
        if (strcmp(config->peers[i].host, host) == 0) {
            return &config->peers[i];
        }
    }
    return NULL;
}
