/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_FAULT_PROXY_H
#define RINGBUS_TESTS_SUPPORT_FAULT_PROXY_H
/*
 * The network between two hosts, in a thread of the test: a TCP proxy that cuts, stalls, swallows
 * and delays what goes through it when it is told to. Faults hold for connections that are there
 * and those to come, until they are taken back; a call returns when its fault holds. What cannot be
 * made ends the test.
 *
 *   who connects --> FAULT_TO --> target
 *                <-- FAULT_BACK <--
 */
#include <stdbool.h>
#include <stdint.h>

struct fault_proxy;

enum fault_way { FAULT_NONE = 0, FAULT_TO = 1, FAULT_BACK = 2, FAULT_BOTH = 3 };

enum fault_door {
    FAULT_OPEN,
    FAULT_CLOSED, /* nobody listens: connections are refused */
    FAULT_DEAF,   /* connects to nobody, and answers for the dead: the peer is connected */
    FAULT_TWICE,  /* connects to the target a second time, and says nothing there */
    FAULT_HOLD,   /* connects to the target when it is open again: the last who came first */
};

/** @param target  "127.0.0.1:7740"; listens at a port of 127.0.0.1 */
struct fault_proxy *fault_proxy_start(const char *target);
/** Cuts all. Accepts NULL. */
void fault_proxy_stop(struct fault_proxy *proxy);
/** Where to connect to; the same for its life. */
const char *fault_proxy_address(const struct fault_proxy *proxy);
/** New connections go there. */
void fault_proxy_target(struct fault_proxy *proxy, const char *target);

/** Ends every connection. @param reset  by a reset, else in order */
void fault_proxy_cut(struct fault_proxy *proxy, bool reset);
/**
 * The connection that brings the byte with this number, from now on, in one direction, ends behind
 * it: exactly so many bytes are passed on. Once; the next call, or UINT64_MAX, takes it back.
 */
void fault_proxy_cut_after(struct fault_proxy *proxy,
                           enum fault_way way,
                           uint64_t bytes,
                           bool reset);
/** Passes nothing on, and reads nothing: queues fill. FAULT_NONE goes on. */
void fault_proxy_stall(struct fault_proxy *proxy, enum fault_way ways);
/** Reads and drops: connections are half-open. What was dropped is gone for good. */
void fault_proxy_swallow(struct fault_proxy *proxy, enum fault_way ways);
/** Passes bytes on so much later, up to 4 MiB a direction under way. */
void fault_proxy_delay(struct fault_proxy *proxy, enum fault_way ways, unsigned ms);
/** Passes at most so many bytes on at once; 0: as they come. */
void fault_proxy_pieces(struct fault_proxy *proxy, unsigned bytes);
void fault_proxy_door(struct fault_proxy *proxy, enum fault_door door);

/** Bytes passed on in one direction, of all connections. */
uint64_t fault_proxy_passed(const struct fault_proxy *proxy, enum fault_way way);
/** Connections that have come, and those that are there. */
uint64_t fault_proxy_came(const struct fault_proxy *proxy);
unsigned fault_proxy_there(const struct fault_proxy *proxy);

#endif
