/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BRIDGE_CONFIG_H
#define RINGBUS_BUS_BRIDGE_CONFIG_H
/*
 * bus/bridge_config.h - what the section `bridge:` says of other hosts. Plain data without
 * pointers: bus/config_bridge.c fills and checks it, ringbusd and ringbus-bridge read it.
 */
#include "bus/pidf.h"
#include "shm/base.h"

/** A host is named as in its certificate (dNSName): 1 to 63 bytes [a-z0-9.-]. */
#define RBI_HOST_NAME_MAX 63U

#define RBI_BRIDGE_PEERS_MAX   64U
#define RBI_BRIDGE_LISTEN_MAX  8U
#define RBI_BRIDGE_GLOBS_MAX   32U
#define RBI_BRIDGE_ADDRESS_MAX 255U /* "10.0.0.2:7740", "[fd00::2]:7740", "beta.example:7740" */
#define RBI_BRIDGE_FILE_MAX    255U
#define RBI_BRIDGE_COST_MAX    1000000U
#define RBI_BRIDGE_NO_USER     UINT32_MAX

/** A neighbour. */
struct rbi_bridge_peer {
    char host[RBI_HOST_NAME_MAX + 1];
    char address[RBI_BRIDGE_ADDRESS_MAX + 1]; /* "": it dials us */
    uint32_t cost; /* added to what is measured, 0..RBI_BRIDGE_COST_MAX */
};

/** Clusters, by globs of their paths (bus/glob.h). */
struct rbi_bridge_globs {
    uint32_t count;
    char items[RBI_BRIDGE_GLOBS_MAX][RBI_PATH_MAX + 1];
};

struct rbi_bridge_limits {
    uint32_t instances;   /* imported, 1..65536 */
    uint32_t streams;     /* 1..65536 */
    uint64_t queue_bytes; /* wait to be sent, of a connection, 128 KiB..1 GiB */
};

struct rbi_bridge_config {
    bool given;                       /* the section is there; else nothing of it means anything */
    bool start;                       /* ringbusd starts and watches ringbus-bridge */
    bool insecure;                    /* without TLS; all addresses are loopback */
    bool transit;                     /* forwards for others */
    char host[RBI_HOST_NAME_MAX + 1]; /* ours */
    uint32_t user; /* may register proxies beside root and the daemon's; RBI_BRIDGE_NO_USER: none */
    uint32_t listen_count;
    char listen[RBI_BRIDGE_LISTEN_MAX][RBI_BRIDGE_ADDRESS_MAX + 1];
    uint32_t peer_count;
    struct rbi_bridge_peer peers[RBI_BRIDGE_PEERS_MAX]; /* in the order of the file */
    char certificate[RBI_BRIDGE_FILE_MAX + 1];          /* PEM, the chain */
    char key[RBI_BRIDGE_FILE_MAX + 1];
    char ca[RBI_BRIDGE_FILE_MAX + 1];
    char crl[RBI_BRIDGE_FILE_MAX + 1]; /* "": none */
    struct rbi_bridge_globs export;    /* default: none */
    struct rbi_bridge_globs import;    /* default: every cluster */
    uint32_t ping_interval_ms;         /* of hosts, 10 ms..60 s */
    uint32_t ping_misses;              /* 1..100 */
    uint32_t unreachable_after_ms;     /* a cut longer than that ends links, 0..1 h */
    uint32_t grace_ms;                 /* instances that are out of sight are kept for, 0..24 h */
    uint32_t mass_hold_ms;             /* many removals at once wait for, 0..24 h */
    uint64_t window_bytes;             /* in flight, of a stream, 4 KiB..16 MiB */
    uint32_t batch_delay_us;           /* small frames wait for more, 0..1000 */
    struct rbi_bridge_limits limits;
};

/** All defaults; not given. */
void rbi_bridge_config_defaults(struct rbi_bridge_config *config);
/** Whether it is the name of a host. */
bool rbi_host_name_valid(const char *name, size_t length);
/** Number of a host in frames between hosts: XXH3-64 of its name, never 0. */
uint64_t rbi_host_id(const char *name, size_t length);
/** The neighbour of that name, or NULL. */
const struct rbi_bridge_peer *rbi_bridge_config_peer(const struct rbi_bridge_config *config,
                                                     const char *host);

#endif
