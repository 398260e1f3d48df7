/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_CONFIG_H
#define RINGBUS_DAEMON_BROKER_CONFIG_H
/*
 * daemon/broker/config.h - the file of ringbus-broker: on which buses it stands (sides), and which
 * clusters of one it shows on another, under which names (exports). As strict as the file of
 * ringbusd (bus/config.h), by the same reader.
 */
#include "bus/config.h"
#include "bus/policy.h"

#define RBI_BROKER_SIDES_MAX    8U
#define RBI_BROKER_EXPORTS_MAX  64U
#define RBI_BROKER_UPSTREAM_MAX 16U
#define RBI_BROKER_POOL_MAX     8U

/** One bus, and who the broker is there. */
struct rbi_broker_side {
    char name[RBI_LABEL_MAX + 1];
    char socket[RBI_CONFIG_STRING_MAX + 1]; /* "": as every client */
    char path[RBI_CONFIG_STRING_MAX + 1];   /* 7 elements; its instance is that of all portals */
    char token[RBI_CONFIG_STRING_MAX + 1];  /* a file that holds it; "": none */
    /* Whose word for the origin of a message is taken: other brokers, by their paths. */
    uint32_t upstream_count;
    char upstream[RBI_BROKER_UPSTREAM_MAX][RBI_GLOB_MAX + 1];
};

/** Clusters of one side that are shown on another. */
struct rbi_broker_export {
    char id[RBI_LABEL_MAX + 1];
    char from[RBI_LABEL_MAX + 1]; /* names of sides */
    char to[RBI_LABEL_MAX + 1];
    char match[RBI_GLOB_MAX + 1]; /* paths of clusters there: daemon/broker/rename.h */
    char as[RBI_GLOB_MAX + 1];    /* and here */
    uint32_t brokers;             /* 1: those found there are portals themselves */
    uint32_t redeliver;           /* 1: what an instance has not handled goes to another */
    uint32_t from_side;           /* indexes into sides */
    uint32_t to_side;
};

/** Chunks of one size: payloads that do not fit a lane are copied into one. */
struct rbi_broker_chunks {
    uint64_t bytes;
    uint32_t count;
};

struct rbi_broker_config {
    uint32_t request_timeout_ms; /* of requests that name no deadline */
    uint32_t hold_ms;    /* one-way messages wait so long for a receiver that is not ready */
    uint32_t drain_ms;   /* leaving takes at most so long */
    uint32_t requests;   /* of one caller, under way */
    uint32_t spin_us;    /* it looks so long before it sleeps */
    uint32_t lane_bytes; /* towards each peer */
    uint32_t pool_count; /* 0: as the library has it */
    struct rbi_broker_chunks pool[RBI_BROKER_POOL_MAX]; /* of each endpoint, ascending */
    uint32_t side_count;
    uint32_t export_count;
    struct rbi_broker_side sides[RBI_BROKER_SIDES_MAX];
    struct rbi_broker_export exports[RBI_BROKER_EXPORTS_MAX];
};

/**
 * Untrusted text. @p out is written on success only.
 * @retval 0; 1 @p errors say why; -ENOMEM
 */
RBI_MUST_CHECK int rbi_broker_config_parse(const char *text,
                                           size_t size,
                                           struct rbi_broker_config *out,
                                           struct rbi_config_errors *errors);

#endif
