/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DRAIN_H
#define RINGBUS_LIBCLIENT_DRAIN_H
/*
 * libclient/drain.h - leaving in order: how far this endpoint is.
 * Part of internal.h: include that.
 */
#include "bus/wire.h"

struct rbi_drain {
    bool asked;      /* by the application: ringbus_drain(), ringbus_close() */
    bool ordered;    /* by the operator, through the daemon */
    bool closing;    /* inside ringbus_close(): there is no way back */
    bool marked;     /* all that came was dispatched; the marks of the links are set */
    bool told;       /* the daemon has had the last report */
    uint64_t number; /* of this drain among those of the handle; 0: none so far */
    uint64_t since_ns;
    uint64_t next_look_ns;
    uint64_t reported_ns;
    enum rbi_drain_step step;
    uint32_t left; /* links or requests that keep it at this step */
    enum rbi_drain_step reported_step;
    uint32_t reported_left;
};

#endif
