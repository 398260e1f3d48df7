/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_WIRE_H
#define RINGBUS_BUS_WIRE_H
/*
 * bus/wire.h - messages of the control socket between a client and ringbusd. Pure:
 * bytes in, structures out.
 *
 * A frame is a 24-byte header and a body of fields {u16 tag, u16 length, value},
 * little-endian. Readers skip fields and message types that they do not know, by
 * length. The socket keeps packets, but frames may come in pieces or several to
 * a packet all the same (bus/wire_stream.h puts them together). Descriptors travel
 * with the packet that holds the first byte of their frame.
 *
 * One file for each message: bus/wire_hello.c and so on hold its field table;
 * encoding and decoding are driven by the tables.
 */
#include "bus/pidf.h"
#include "shm/base.h"

#define RBI_WIRE_MAGIC     0x31434252U /* "RBC1" */
#define RBI_WIRE_HEADER    24U
#define RBI_WIRE_FRAME_MAX 4096U
/* Tests build sides that speak older or newer protocols. */
#ifndef RBI_WIRE_PROTOCOL_MIN
#define RBI_WIRE_PROTOCOL_MIN 1U
#endif
#ifndef RBI_WIRE_PROTOCOL_MAX
#define RBI_WIRE_PROTOCOL_MAX 2U
#endif
#define RBI_WIRE_TEXT_MAX 255U
#define RBI_WIRE_DATA_MAX 1024U

/* X(NAME, name, value, descriptors): values are never reused. */
#define RBI_WIRE_TYPES(X)                                                                          \
    X(HELLO, hello, 1, 0)            /* client: first message */                                   \
    X(HELLO_OK, hello_ok, 2, 1)      /* daemon; descriptor: directory */                           \
    X(ERROR, error, 3, 0)            /* daemon: answer to reply_to, or 0 before closing */         \
    X(REGISTER, registration, 4, 2)  /* client; descriptors: page, pool */                         \
    X(REGISTERED, registered, 5, 0)  /* daemon */                                                  \
    X(SET_STATE, set_state, 6, 0)    /* client: state and weight of its endpoint */                \
    X(OK, ok, 7, 0)                  /* daemon: done, where nothing else is answered */            \
    X(TARGET, target, 8, 0)          /* client: interest in a cluster or instance */               \
    X(UNTARGET, untarget, 9, 0)      /* client */                                                  \
    X(INTRODUCE, introduce, 10, 2)   /* client; descriptors: side, bell */                         \
    X(INTRODUCED, introduced, 11, 4) /* daemon to server; descriptors: side, pool, page, bell */   \
    X(ACCEPT, accept, 12, 1)         /* server to daemon; descriptor: side */                      \
    X(REFUSE, refuse, 13, 0)         /* server to daemon */                                        \
    X(LINKED, linked, 14, 3)         /* daemon, answers INTRODUCE; side, pool, page */             \
    X(LINK_DOWN, link_down, 15, 0)   /* either way: this link has ended */                         \
    X(WATCH, watch, 16, 0)           /* client: events below a prefix */                           \
    X(UNWATCH, unwatch, 17, 0)       /* client */                                                  \
    X(EVENT, event, 18, 0)           /* daemon: one change of the directory */                     \
    X(RESYNC, resync, 19, 0)         /* daemon: events were dropped; read the directory */         \
    X(QUERY, query, 20, 0)           /* client: rows about what the daemon knows */                \
    X(ROW_ENDPOINT, row_endpoint, 21, 1) /* daemon; descriptor: endpoint page */                   \
    X(ROW_LINK, row_link, 22, 0)         /* daemon */                                              \
    X(ROW_STATUS, row_status, 23, 0)     /* daemon */                                              \
    X(QUERY_END, query_end, 24, 0)       /* daemon: no more rows */                                \
    X(STOPPING, stopping, 25, 0)         /* daemon: it stops in order; links go on */              \
    X(RELINK, relink, 26, 0)   /* client: a link that an earlier daemon made; answered by OK */    \
    X(SETTLED, settled, 27, 0) /* daemon: who has not come back to it by now is gone */            \
    X(KEYED, keyed, 28, 0)     /* client: it sends to a cluster by key; unanswered */              \
    X(DRAIN, drain, 32, 0)     /* tool: an instance is to drain, or not any more */                \
    X(DRAIN_ORDER, drain_order, 33, 0)   /* daemon to that instance */                             \
    X(DRAIN_REPORT, drain_report, 34, 0) /* that instance: how far it is; unanswered */            \
    X(DRAIN_STATE, drain_state, 35, 0)   /* daemon, answers DRAIN: as far as it has been told */   \
    X(METHODS, methods, 40, 0)   /* daemon: which methods may be sent on a link, from now on */    \
    X(REPLACED, replaced, 41, 0) /* daemon: another has taken your name over; the end follows */   \
    X(RIGHTS, rights, 42, 0) /* daemon: the rules have changed; what was DENIED may be asked */    \
    X(PROBE, probe, 45, 0)   /* daemon to an instance, which says the same back */                 \
    X(PROBE_GRANT, probe_grant, 46, 0)   /* daemon to a caller: its next request tries that one */ \
    X(PROBE_RESULT, probe_result, 47, 0) /* that caller: how it ended; unanswered */               \
    X(UNSHIELD, unshield, 48, 0)         /* tool: forget what is held against it; OK */            \
    X(OUTCOMES, outcomes, 49, 1)         /* client; descriptor: how its calls ended; unanswered */ \
    X(LEASE, lease, 50, 0)               /* daemon: a caller's share of a limit of all callers */  \
    X(LEASE_DEMAND, lease_demand, 51, 0) /* caller: what it wants of it; unanswered */             \
    X(APPLY, apply, 55, 1)               /* tool; descriptor: a text of the configuration */       \
    X(APPLIED, applied, 56, 0)           /* daemon, answers APPLY, EDIT and ROLLBACK */            \
    X(EDIT, edit, 57, 0)                 /* tool: up to three values of one instance or item */    \
    X(ROLLBACK, rollback, 58, 0)         /* tool: an earlier version is to hold again */           \
    X(GET_TEXT, get_text, 59, 0)         /* tool: answered by TEXT */                              \
    X(TEXT, text, 60, 1)                 /* daemon; descriptor: the text */                        \
    X(HISTORY, history, 61, 0)           /* tool: answered by ROW_VERSION and QUERY_END */         \
    X(ROW_VERSION, row_version, 62, 0)   /* daemon */                                              \
    X(DESCRIBE, describe, 63, 0)         /* client: what people should know of a cluster */        \
    X(DESCRIPTION, description, 64, 0)   /* daemon */                                              \
    X(NODE, node, 65, 0)                 /* client: of the node tree; OK, or NODE_STATE */         \
    X(NODE_STATE, node_state, 66, 0)     /* daemon, answers NODE that looks */                     \
    X(NODE_EVENT, node_event, 67, 0)     /* daemon: a node below a watched prefix */               \
    X(MAY_LINK, may_link, 71, 0)         /* tool: has one instance a right to another? */          \
    X(VERDICT, verdict, 72, 0)           /* daemon, answers MAY_LINK */                            \
    X(ALARM, alarm, 73, 0)               /* daemon to who watches: one fires, or is over */        \
    X(ROW_ALARM, row_alarm, 74, 0)       /* daemon */                                              \
    X(ROW_CALLS, row_calls, 75, 0)       /* daemon: calls to a cluster, or an instance */          \
    X(DRY_RUN, dry_run, 76, 0)           /* caller: a rule would have done this; unanswered */     \
    X(ROW_DRY_RUN, row_dry_run, 77, 0)   /* daemon */                                              \
    X(PLACE, place, 78, 0)               /* client: it has moved to another node; unanswered */    \
    X(WHO, who, 79, 0)                   /* tool: which process is an instance of? */              \
    X(WHO_IS, who_is, 80, 0)             /* daemon, answers WHO */                                 \
    X(PROXY, proxy, 81, 0)       /* proxy: its instance, on its host, is so now; unanswered */     \
    X(BRIDGE, bridge, 82, 0)     /* bridge: this connection is its main one; OK */                 \
    X(HOST, host, 83, 0)         /* bridge: what it knows of one host; unanswered */               \
    X(EDGES, edges, 84, 0)       /* bridge: where one host leads to; unanswered */                 \
    X(WAY, way, 85, 0)           /* daemon to bridge: which neighbour leads to a host */           \
    X(ROW_HOST, row_host, 86, 0) /* daemon */                                                      \
    X(ROW_WAY, row_way, 87, 0)   /* daemon */                                                      \
    X(CONFIRM, confirm, 89, 0)   /* tool, then daemon to bridge: who is out of sight is gone */    \
    X(HOP, hop, 90, 0)           /* bridge, then daemon to tools: where a message came by */       \
    X(FOLLOW, follow, 91, 0)     /* tool: to be told of the HOPs of one trace, for 30 s; OK */

enum rbi_wire_type {
#define RBI_WIRE_TYPE_ENUM(NAME, name, value, fds) RBI_WIRE_##NAME = (value),
    RBI_WIRE_TYPES(RBI_WIRE_TYPE_ENUM)
#undef RBI_WIRE_TYPE_ENUM
};

/** Text of a message: terminated, without NUL inside, at most RBI_WIRE_TEXT_MAX bytes. */
struct rbi_text {
    uint16_t length;
    char bytes[RBI_WIRE_TEXT_MAX + 1];
};

/** Bytes of any kind: value of a node. */
struct rbi_data {
    uint16_t length;
    unsigned char bytes[RBI_WIRE_DATA_MAX];
};

/* Field lists: F(type, name, tag, required). Types u8 u16 u32 i32 u64 text data. A field
 * that is absent and not required is zero or empty. Tags are never reused. */
#define RBI_WIRE_FIELDS_hello(F)                                                                   \
    F(u16, protocol_min, 1, 1)                                                                     \
    F(u16, protocol_max, 2, 1)                                                                     \
    F(u64, fingerprint, 3, 1) /* rbi_layout_fingerprint() */                                       \
    F(u64, features, 4, 0)                                                                         \
    F(text, software, 5, 0) /* "libringbus 0.1.0" */                                               \
    F(text, program, 6, 0)                                                                         \
    F(u32, layout_min, 7, 0) /* versions of shared memory that it can read, for the text */        \
    F(u32, layout_max, 8, 0)
#define RBI_WIRE_FIELDS_hello_ok(F)                                                                \
    F(u16, protocol, 1, 1)                                                                         \
    F(u64, daemon_incarnation, 2, 1) /* random, one each start of the daemon */                    \
    F(u64, features, 3, 0)                                                                         \
    F(text, software, 4, 0)                                                                        \
    F(u64, directory_bytes, 5, 1)                                                                  \
    F(u32, ping_interval_ms, 6, 0) /* for clients that name none; 0: the client's own default */   \
    F(u32, ping_misses, 7, 0)                                                                      \
    F(u8, settling, 8, 0)    /* 1: the daemon is new, SETTLED will follow when all had time */     \
    F(u8, debug_hold, 9, 0)  /* 1: clients that do not say otherwise hold for a debugger */        \
    F(u16, nodes, 10, 0)     /* NUMA nodes of the host; not more than 1: clients say none */       \
    F(u8, nodes_lost, 11, 0) /* 1: of the tree not all is known that the one before knew */
#define RBI_WIRE_FIELDS_error(F)                                                                   \
    F(i32, code, 1, 1) /* enum ringbus_error */                                                    \
    F(text, text, 2, 0)                                                                            \
    F(u64, link_id, 3, 0) /* INTRODUCE that meets a link of the same pair: that link */            \
    F(u8, refused, 4, 0)  /* 1: INTRODUCE failed at the server, whatever the code; no right lacks */
#define RBI_WIRE_FIELDS_registration(F)                                                            \
    F(text, path, 1, 0) /* empty: anonymous */                                                     \
    F(u32, weight, 2, 0)                                                                           \
    F(text, set, 3, 0)                                                                             \
    F(text, idc, 4, 0)                                                                             \
    F(text, tags, 5, 0)                                                                            \
    F(text, token, 6, 0)                                                                           \
    F(u32, state, 7, 1)       /* enum rbi_endpoint_state */                                        \
    F(u32, incarnation, 8, 0) /* not 0: comes back after the daemon was lost */                    \
    F(u64, page_bytes, 9, 1)                                                                       \
    F(u64, pool_bytes, 10, 1)                                                                      \
    F(u64, daemon_incarnation, 11, 0) /* of the daemon that gave the incarnation */                \
    F(u64, cookie, 12, 0)             /* proves that it is the same endpoint that comes back */    \
    F(u8, takeover, 13, 0)            /* 1: also from an instance that lives, if it may */         \
    F(u16, node, 14, 0)               /* 1 + NUMA node; 0: unknown, or the host has one */         \
    /* A proxy: an instance of another host, registered by its bridge in its stead. */             \
    F(text, host, 15, 0)              /* its home; empty: this host, and it is no proxy */         \
    F(u8, hidden, 16, 0)              /* 1: not in the directory; it only asks for links */        \
    F(u32, origin_incarnation, 17, 0) /* that it has at home: taken as it is */                    \
    F(u32, cost, 18, 0)               /* of the way there */                                       \
    F(text, via, 19, 0)               /* the neighbour that the way begins with */                 \
    F(u8, stale, 20, 0)               /* 1: its host cannot be reached just now */                 \
    F(u32, health, 21, 0)             /* as its own daemon says: enum rbi_health */                \
    F(u32, reported, 22, 0)           /* weight by its load, the same: bus/reported.h; 0: none */  \
    F(u32, origin_uid, 23, 0)         /* as its host says: nothing is decided by it */
#define RBI_WIRE_FIELDS_registered(F)                                                              \
    F(u64, cluster, 1, 1)                                                                          \
    F(i32, instance, 2, 1)                                                                         \
    F(u32, incarnation, 3, 1)                                                                      \
    F(u32, slot, 4, 1) /* attention word in the directory */                                       \
    F(text, path, 5, 1)                                                                            \
    F(u64, cookie, 6, 1)
#define RBI_WIRE_FIELDS_set_state(F)                                                               \
    F(u32, state, 1, 1) F(u32, weight, 2, 0) F(u8, weight_set, 3, 0)
/* All of it each time; the labels empty where it has none. */
#define RBI_WIRE_FIELDS_proxy(F)                                                                   \
    F(u32, state, 1, 1) /* enum rbi_endpoint_state */                                              \
    F(u32, weight, 2, 1)                                                                           \
    F(text, set, 3, 0)                                                                             \
    F(text, idc, 4, 0)                                                                             \
    F(text, tags, 5, 0)                                                                            \
    F(u32, health, 6, 0) /* these and the next as in REGISTER */                                   \
    F(u32, reported, 7, 0)                                                                         \
    F(u8, stale, 8, 0)                                                                             \
    F(u32, cost, 9, 0)                                                                             \
    F(text, via, 10, 0)                                                                            \
    F(u8, hidden, 11, 0)
#define RBI_WIRE_FIELDS_place(F)    F(u16, node, 1, 1) /* 1 + NUMA node; 0: unknown */
#define RBI_WIRE_FIELDS_ok(F)       F(u64, value, 1, 0)
#define RBI_WIRE_FIELDS_keyed(F)    F(u64, cluster, 1, 1)
#define RBI_WIRE_FIELDS_target(F)   F(text, path, 1, 1)
#define RBI_WIRE_FIELDS_untarget(F) F(text, path, 1, 1)
#define RBI_WIRE_FIELDS_introduce(F)                                                               \
    F(u64, cluster, 1, 1)                                                                          \
    F(i32, instance, 2, 1)                                                                         \
    F(u32, incarnation, 3, 0)                                                                      \
    F(u64, side_bytes, 4, 1)
#define RBI_WIRE_FIELDS_introduced(F)                                                              \
    F(u64, link_id, 1, 1)                                                                          \
    F(u64, cluster, 2, 1)                                                                          \
    F(i32, instance, 3, 1)                                                                         \
    F(u32, incarnation, 4, 1)                                                                      \
    F(text, path, 5, 1)                                                                            \
    F(u64, side_bytes, 6, 1)                                                                       \
    F(u64, pool_bytes, 7, 1)                                                                       \
    F(u32, uid, 8, 0)                                                                              \
    F(text, get, 9, 0)    /* methods that the other may send (bus/acl.h); empty: every one */      \
    F(text, send, 10, 0)  /* and that the one who is told may send */                              \
    F(u8, relayed, 11, 0) /* 1: the other is on another host, this link leads to its proxy */
#define RBI_WIRE_FIELDS_accept(F) F(u64, link_id, 1, 1) F(u64, side_bytes, 2, 1)
#define RBI_WIRE_FIELDS_refuse(F) F(u64, link_id, 1, 1) F(i32, code, 2, 1) F(text, text, 3, 0)
#define RBI_WIRE_FIELDS_linked(F)                                                                  \
    F(u64, link_id, 1, 1)                                                                          \
    F(u64, cluster, 2, 1)                                                                          \
    F(i32, instance, 3, 1)                                                                         \
    F(u32, incarnation, 4, 1)                                                                      \
    F(text, path, 5, 1)                                                                            \
    F(u64, side_bytes, 6, 1)                                                                       \
    F(u64, pool_bytes, 7, 1)                                                                       \
    F(text, get, 8, 0) /* as in INTRODUCED */                                                      \
    F(text, send, 9, 0)                                                                            \
    F(u8, relayed, 10, 0)
#define RBI_WIRE_FIELDS_link_down(F) F(u64, link_id, 1, 1) F(u32, reason, 2, 1) F(text, text, 3, 0)
#define RBI_WIRE_FIELDS_watch(F)     F(text, prefix, 1, 1)
#define RBI_WIRE_FIELDS_unwatch(F)   F(text, prefix, 1, 1)
#define RBI_WIRE_FIELDS_event(F)                                                                   \
    F(u32, change, 1, 1)   /* enum rbi_change */                                                   \
    F(u64, revision, 2, 1) /* of the directory, grows by one at each change */                     \
    F(u64, cluster, 3, 1)                                                                          \
    F(i32, instance, 4, 1)                                                                         \
    F(u32, incarnation, 5, 1)                                                                      \
    F(u32, state, 6, 1)                                                                            \
    F(u32, weight, 7, 1)                                                                           \
    F(text, path, 8, 1)   /* of the instance */                                                    \
    F(u32, reason, 9, 0)  /* REMOVED: enum rbi_reason */                                           \
    F(u8, initial, 10, 0) /* part of the answer to WATCH or TARGET, not a change */                \
    F(u32, health, 11, 0) /* enum rbi_health */                                                    \
    F(u8, panic, 12, 0)   /* 1: the shields of its cluster are ignored */
#define RBI_WIRE_FIELDS_resync(F) F(u64, revision, 1, 1)
#define RBI_WIRE_FIELDS_query(F)  F(u32, what, 1, 1) /* enum rbi_query */ F(text, prefix, 2, 0)
#define RBI_WIRE_FIELDS_row_endpoint(F)                                                            \
    F(text, path, 1, 1)                                                                            \
    F(u64, cluster, 2, 1)                                                                          \
    F(i32, instance, 3, 1)                                                                         \
    F(u32, incarnation, 4, 1)                                                                      \
    F(u32, state, 5, 1)                                                                            \
    F(u32, weight, 6, 1)                                                                           \
    F(u32, uid, 7, 1)                                                                              \
    F(u32, pid, 8, 0) /* 0: unknown (another pid namespace) */                                     \
    F(text, program, 9, 0)                                                                         \
    F(u64, age_ms, 10, 1)                                                                          \
    F(u32, links, 11, 1)                                                                           \
    F(u64, pool_bytes, 12, 1)                                                                      \
    F(text, tags, 13, 0)                                                                           \
    F(text, set, 14, 0)                                                                            \
    F(text, idc, 15, 0)                                                                            \
    F(u32, health, 16, 0) /* enum rbi_health */                                                    \
    F(u32, ramp, 17, 0)   /* percent of its weight, on its way back */                             \
    F(u8, panic, 18, 0)   /* 1: the shields of its cluster are ignored */                          \
    F(text, host, 19, 0)  /* of a proxy, these and the next as in REGISTER; empty: of this host */ \
    F(text, via, 20, 0)                                                                            \
    F(u32, cost, 21, 0)                                                                            \
    F(u8, stale, 22, 0)                                                                            \
    F(u8, hidden, 23, 0)
#define RBI_WIRE_FIELDS_row_link(F)                                                                \
    F(u64, link_id, 1, 1)                                                                          \
    F(text, requester, 2, 1)                                                                       \
    F(text, server, 3, 1)                                                                          \
    F(u32, state, 4, 1) /* 0 being introduced, 1 linked */                                         \
    F(u64, age_ms, 5, 1)                                                                           \
    F(u64, side_bytes, 6, 1) /* both sides together */
#define RBI_WIRE_FIELDS_row_status(F) F(text, name, 1, 1) F(u64, value, 2, 0) F(text, text, 3, 0)
#define RBI_WIRE_FIELDS_query_end(F)  F(u32, rows, 1, 1)
#define RBI_WIRE_FIELDS_drain(F)                                                                   \
    F(text, path, 1, 1) /* of the instance */                                                      \
    F(u32, what, 2, 1)  /* enum rbi_drain_what */                                                  \
    F(u32, incarnation, 3, 0)
#define RBI_WIRE_FIELDS_drain_order(F) F(u32, what, 1, 1) /* RBI_DRAIN_START or RBI_DRAIN_STOP */
#define RBI_WIRE_FIELDS_drain_report(F)                                                            \
    F(u32, step, 1, 1) /* enum rbi_drain_step */                                                   \
    F(u32, left, 2, 0) /* links, or requests, that keep it at this step */
#define RBI_WIRE_FIELDS_drain_state(F)                                                             \
    F(u32, incarnation, 1, 1)                                                                      \
    F(u32, state, 2, 1)   /* in the directory */                                                   \
    F(u8, reported, 3, 0) /* 0: the instance has not said anything about it yet */                 \
    F(u32, step, 4, 0)                                                                             \
    F(u32, left, 5, 0)
#define RBI_WIRE_FIELDS_probe(F) F(u64, number, 1, 1)
#define RBI_WIRE_FIELDS_probe_grant(F)                                                             \
    F(u64, token, 1, 1)                                                                            \
    F(u64, cluster, 2, 1)                                                                          \
    F(i32, instance, 3, 1)                                                                         \
    F(u32, incarnation, 4, 1)                                                                      \
    F(u32, use_ms, 5, 1)     /* to be begun within so long, else given back */                     \
    F(u32, timeout_ms, 6, 1) /* to be ended within so long, else it counts as failed */
#define RBI_WIRE_FIELDS_probe_result(F)                                                            \
    F(u64, token, 1, 1)                                                                            \
    F(u32, outcome, 2, 1) /* enum rbi_probe_outcome */
#define RBI_WIRE_FIELDS_unshield(F)                                                                \
    F(text, path, 1, 1) /* of the instance */                                                      \
    F(u32, incarnation, 2, 0)
#define RBI_WIRE_FIELDS_may_link(F)                                                                \
    F(text, from, 1, 1) /* path of an instance */                                                  \
    F(text, to, 2, 1)                                                                              \
    F(u32, method, 3, 0) /* of a message that it would send */
#define RBI_WIRE_FIELDS_who(F) F(text, path, 1, 1)
#define RBI_WIRE_FIELDS_who_is(F)                                                                  \
    F(u32, uid, 1, 1)                                                                              \
    F(u32, gid, 2, 1)                                                                              \
    F(text, program, 3, 0) /* path of its file; empty: not to be known */                          \
    F(text, cgroup, 4, 0)  /* path of its control group; empty: the same, or longer than a text */
#define RBI_WIRE_FIELDS_verdict(F)                                                                 \
    F(u8, allowed, 1, 1)                                                                           \
    F(text, why, 2, 0) /* it is not */
#define RBI_WIRE_FIELDS_outcomes(F)                                                                \
    F(u64, bytes, 1, 1)                                                                            \
    F(u8, fresh, 2, 0) /* 1: all that it counts has come while this daemon was there */
#define RBI_WIRE_FIELDS_lease(F)                                                                   \
    F(u64, cluster, 1, 1)                                                                          \
    F(text, limit, 2, 1)   /* id in the cluster's policy */                                        \
    F(u64, share, 3, 1)    /* thousandths of a unit a second, for RBI_LEASE_FRESH_NS */            \
    F(u64, fallback, 4, 1) /* the same, from then on */
#define RBI_WIRE_FIELDS_lease_demand(F)                                                            \
    F(u64, cluster, 1, 1) F(text, limit, 2, 1) F(u64, demand, 3, 1) /* thousandths a second */
/* A text is in memory that is sealed against writing and shrinking, at most 1 MiB. With expected,
 * the change is made only while version expect is the current one. */
#define RBI_WIRE_FIELDS_apply(F)                                                                   \
    F(u32, size, 1, 1)                                                                             \
    F(u64, expect, 2, 0)                                                                           \
    F(u8, expected, 3, 0)                                                                          \
    F(u8, dry_run, 4, 0) /* 1: only checked and counted */                                         \
    F(text, why, 5, 0)   /* for the history */
#define RBI_WIRE_FIELDS_applied(F)                                                                 \
    F(u64, version, 1, 1)   /* that holds now */                                                   \
    F(u32, clusters, 2, 0)  /* that have another policy, or would have */                          \
    F(u32, instances, 3, 0) /* that are seen otherwise, or would be */                             \
    F(text, warning, 4, 0)  /* why it will not outlive the daemon */
#define RBI_WIRE_FIELDS_edit(F)                                                                    \
    F(u32, what, 1, 1)    /* enum rbi_edit_what */                                                 \
    F(text, target, 2, 1) /* path of an instance, or pattern of clusters */                        \
    F(text, list, 3, 0)   /* of clusters: which of their lists */                                  \
    F(text, id, 4, 0)     /* of its item */                                                        \
    F(text, key1, 5, 0)                                                                            \
    F(text, value1, 6, 0)                                                                          \
    F(text, key2, 7, 0)                                                                            \
    F(text, value2, 8, 0)                                                                          \
    F(text, key3, 9, 0)                                                                            \
    F(text, value3, 10, 0)                                                                         \
    F(u64, expect, 11, 0)                                                                          \
    F(u8, expected, 12, 0)                                                                         \
    F(text, why, 13, 0)
#define RBI_WIRE_FIELDS_rollback(F)                                                                \
    F(u64, version, 1, 1)                                                                          \
    F(u64, expect, 2, 0)                                                                           \
    F(u8, expected, 3, 0)                                                                          \
    F(text, why, 4, 0)
#define RBI_WIRE_FIELDS_get_text(F)                                                                \
    F(u64, version, 1, 0) /* 0: the current one */                                                 \
    F(u8, edits, 2, 0)    /* 1: the single changes, else what was applied */
#define RBI_WIRE_FIELDS_text(F)    F(u64, version, 1, 1) F(u32, size, 2, 1)
#define RBI_WIRE_FIELDS_history(F) F(u32, most, 1, 0) /* 0: all that are kept */
#define RBI_WIRE_FIELDS_row_version(F)                                                             \
    F(u64, version, 1, 1)                                                                          \
    F(u32, uid, 2, 1)                                                                              \
    F(u32, pid, 3, 0)    /* 0: unknown */                                                          \
    F(u64, when_s, 4, 0) /* of the wall clock, since 1970; 0: unknown */                           \
    F(text, program, 5, 0)                                                                         \
    F(text, why, 6, 0)                                                                             \
    F(u32, applied_bytes, 7, 0)                                                                    \
    F(u32, edits_bytes, 8, 0)                                                                      \
    F(u8, current, 9, 0) /* 1: it holds */
#define RBI_WIRE_FIELDS_node(F)                                                                    \
    F(u32, what, 1, 1) /* enum rbi_node_what */                                                    \
    F(text, path, 2, 1)                                                                            \
    F(data, value, 3, 0)                                                                           \
    F(u64, revision, 4, 0) /* SET, REMOVE: only while it has that one; 0: whatever it has */       \
    F(u32, flags, 5, 0)    /* RBI_NODE_EPHEMERAL, RBI_NODE_AGAIN */                                \
    F(text, after, 6, 0)   /* GET: children behind this name; SCAN: nodes behind this path */
#define RBI_WIRE_FIELDS_node_state(F)                                                              \
    F(u32, kind, 1, 1)     /* enum rbi_node_kind */                                                \
    F(u64, revision, 2, 0) /* of its last change; 0: not a node of a user */                       \
    F(u32, flags, 3, 0)                                                                            \
    F(data, value, 4, 0)                                                                           \
    F(u32, uid, 5, 0)                                                                              \
    F(text, creator, 6, 0)   /* path of the endpoint that made it, or program of the tool */       \
    F(data, names, 7, 0)     /* of children, ascending, a newline behind each */                   \
    F(u8, more, 8, 0)        /* 1: there are more: ask for those after the last */                 \
    F(text, after, 9, 0)     /* SCAN: the last path that was looked at */                          \
    F(u32, instances, 10, 0) /* of a cluster, how many can be seen */
#define RBI_WIRE_FIELDS_node_event(F)                                                              \
    F(u32, change, 1, 1)   /* enum rbi_change */                                                   \
    F(u64, revision, 2, 1) /* of the node; of a removal, the removal's own */                      \
    F(text, path, 3, 1)                                                                            \
    F(data, value, 4, 0)                                                                           \
    F(u32, flags, 5, 0)                                                                            \
    F(u8, initial, 6, 0) /* part of the answer to SCAN, not a change */                            \
    F(u32, reason, 7, 0) /* REMOVED: enum rbi_reason, of an ephemeral one whose owner ended */
#define RBI_WIRE_FIELDS_describe(F) F(text, path, 1, 1)
#define RBI_WIRE_FIELDS_description(F)                                                             \
    F(text, owner, 1, 0)                                                                           \
    F(text, schema, 2, 0)                                                                          \
    F(u64, qps, 3, 0)                                                                              \
    F(u32, p99_us, 4, 0)                                                                           \
    F(u64, policy, 5, 0) /* fingerprint; 0: the defaults */
#define RBI_WIRE_FIELDS_alarm(F)                                                                   \
    F(u32, what, 1, 1)  /* enum rbi_alarm_what */                                                  \
    F(text, path, 2, 1) /* of the cluster; of BEGIN and END the watched prefix */                  \
    F(text, rule, 3, 0)                                                                            \
    F(u32, metric, 4, 0) /* enum rbi_alarm_metric */                                               \
    F(u8, below, 5, 0)                                                                             \
    F(u64, threshold, 6, 0) /* millionths */                                                       \
    F(u64, value, 7, 0)     /* the same, as it was then */                                         \
    F(u8, known, 8, 0)      /* 0: there is no value, as without calls */
#define RBI_WIRE_FIELDS_row_alarm(F)                                                               \
    F(text, path, 1, 1)                                                                            \
    F(text, rule, 2, 1)                                                                            \
    F(u32, state, 3, 1) /* enum rbi_alarm_state */                                                 \
    F(u32, metric, 4, 1)                                                                           \
    F(u8, below, 5, 0)                                                                             \
    F(u64, threshold, 6, 1)                                                                        \
    F(u64, value, 7, 0)                                                                            \
    F(u8, known, 8, 0)                                                                             \
    F(u64, since_ms, 9, 0)  /* in that state */                                                    \
    F(u64, fired_ms, 10, 0) /* since it fires */
#define RBI_WIRE_FIELDS_row_calls(F)                                                               \
    F(text, path, 1, 1) /* of a cluster, or of an instance */                                      \
    F(u64, ok, 2, 0)    /* since this daemon runs, and this life of the instance */                \
    F(u64, failed, 3, 0)                                                                           \
    F(u64, lost, 4, 0)                                                                             \
    F(u64, slow, 5, 0)                                                                             \
    F(u64, latency_ns, 6, 0) /* sum */                                                             \
    F(u64, p50_ns, 7, 0)     /* of a cluster: over the last 10 s; 0: no calls */                   \
    F(u64, p90_ns, 8, 0)                                                                           \
    F(u64, p99_ns, 9, 0)                                                                           \
    F(u64, p999_ns, 10, 0)                                                                         \
    F(data, below, 11, 0) /* of a cluster: calls below each power of two from 1024 ns on, u64 */   \
    F(u64, recent_calls, 12, 0) /* of a cluster: in the last recent_ms */                          \
    F(u64, recent_bad, 13, 0)                                                                      \
    F(u64, recent_ms, 14, 0)
#define RBI_WIRE_FIELDS_dry_run(F)                                                                 \
    F(u64, cluster, 1, 1)                                                                          \
    F(u32, kind, 2, 1)  /* enum rbi_dry_kind */                                                    \
    F(text, rule, 3, 0) /* id; empty: there is one of that kind */                                 \
    F(u64, count, 4, 1) /* messages since it was last told */
#define RBI_WIRE_FIELDS_row_dry_run(F)                                                             \
    F(text, path, 1, 1) F(u32, kind, 2, 1) F(text, rule, 3, 0) F(u64, count, 4, 1)
/* Other hosts. A name is 1 to RBI_HOST_NAME_MAX bytes [a-z0-9.-] (bus/bridge_config.h). */
#define RBI_WIRE_FIELDS_bridge(F)                                                                  \
    F(text, host, 1, 1)       /* ours, as in its certificate */                                    \
    F(u64, incarnation, 2, 1) /* of this life of the bridge; not 0 */                              \
    F(u32, instances, 3, 0)   /* proxies that it will register at most; 0: as the daemon's limit */
#define RBI_WIRE_FIELDS_host(F)                                                                    \
    F(text, name, 1, 1)                                                                            \
    F(u32, state, 2, 1) /* enum rbi_host_state; GONE: no longer of interest */                     \
    F(text, via, 3, 0)  /* the neighbour that leads there; empty: it is one, or there is no way */ \
    F(text, address, 4, 0)                                                                         \
    F(u32, cost, 5, 0)                                                                             \
    F(u64, connected_ms, 6, 0) /* since when it is in that state */                                \
    F(text, why, 7, 0)         /* the last cut, or what keeps it from being reached */             \
    F(u8, secure, 8, 0)        /* 1: TLS; 2: and the kernel does it */                             \
    F(u8, peer, 9, 0)          /* 1: a neighbour by the configuration */                           \
    F(u32, instances, 10, 0)   /* imported from it */                                              \
    F(u32, unconfirmed, 11, 0) /* of them: out of sight, and not yet known to be gone */           \
    F(u32, streams, 12, 0)                                                                         \
    F(u32, held, 13, 0)     /* of them: without a way just now */                                  \
    F(u32, connects, 14, 0) /* connections that came up, since the bridge runs */                  \
    F(u64, sent_frames, 15, 0)                                                                     \
    F(u64, sent_bytes, 16, 0)                                                                      \
    F(u64, received_frames, 17, 0)                                                                 \
    F(u64, received_bytes, 18, 0)                                                                  \
    F(u64, resends, 19, 0)     /* records that were sent again */                                  \
    F(u64, duplicates, 20, 0)  /* records that came again, and were left out */                    \
    F(u64, rtt_ns, 21, 0)      /* between the bridges, smoothed; 0: unknown */                     \
    F(u64, queue_bytes, 22, 0) /* wait to be sent */                                               \
    F(u64, incarnation, 23, 0) /* of its bridge */                                                 \
    F(text, software, 24, 0)                                                                       \
    F(u64, forwarded, 25, 0) /* frames that went through this host to it, for others */            \
    F(u8, mass_held, 26, 0)  /* 1: its removals wait for CONFIRM, or the mass guard */
/* All edges of one origin, in one or more frames: the first with begin, the last with end; they
 * replace all that were known of it. An edge is {u8 length of the name, the name, u32 cost}. */
#define RBI_WIRE_FIELDS_edges(F)                                                                   \
    F(text, origin, 1, 1)                                                                          \
    F(u64, incarnation, 2, 0) /* of its bridge, and */                                             \
    F(u64, seq, 3, 0)         /* the number of its list, for people */                             \
    F(u8, begin, 4, 0)                                                                             \
    F(u8, end, 5, 0)                                                                               \
    F(data, to, 6, 0)
#define RBI_WIRE_FIELDS_way(F)                                                                     \
    F(text, host, 1, 1)                                                                            \
    F(text, next, 2, 0) /* the neighbour; empty: there is no way */                                \
    F(u32, cost, 3, 0)                                                                             \
    F(u32, hops, 4, 0)                                                                             \
    F(u8, again, 5, 0) /* 1: no change; what holds is told to a bridge that has just come */
#define RBI_WIRE_FIELDS_row_host(F)                                                                \
    RBI_WIRE_FIELDS_host(F) F(u32, number, 60, 0) /* in the directory: instance.host */
#define RBI_WIRE_FIELDS_row_way(F)                                                                 \
    F(text, host, 1, 1)                                                                            \
    F(text, next, 2, 0)                                                                            \
    F(u32, cost, 3, 0)                                                                             \
    F(u32, hops, 4, 0)                                                                             \
    F(data, path, 5, 0)  /* the hosts on the way, the last is host: a newline behind each */       \
    F(u64, age_ms, 6, 0) /* since when it is the way */
/* Answered by OK: how many proxies are looked at. Goes on to the bridge as it is. */
#define RBI_WIRE_FIELDS_confirm(F)                                                                 \
    F(text, host, 1, 0)   /* empty: all hosts */                                                   \
    F(text, prefix, 2, 0) /* of paths; empty: all */
#define RBI_WIRE_FIELDS_hop(F)                                                                     \
    F(data, trace, 1, 1) /* 16 bytes */                                                            \
    F(text, host, 2, 1)  /* that tells it */                                                       \
    F(u8, what, 3, 1)    /* enum rbi_hop */                                                        \
    F(u8, reply, 4, 0)   /* 1: the answer, on its way back */                                      \
    F(text, next, 5, 0)  /* the neighbour that it goes to */                                       \
    F(u64, age_ns, 6, 0)                                                                           \
    F(u64, heard_ns, 7, 0) /* CLOCK_MONOTONIC of this host: when its bridge heard of it */         \
    F(u32, uid, 8, 1)      /* of its sender, or its request's, here; UINT32_MAX: unsaid */
#define RBI_WIRE_FIELDS_follow(F)   F(data, trace, 1, 1) /* 16 bytes */
#define RBI_WIRE_FIELDS_stopping(F) F(text, text, 1, 0)
#define RBI_WIRE_FIELDS_relink(F)                                                                  \
    F(u64, link_id, 1, 1) /* as the earlier daemon gave it */                                      \
    F(u64, cluster, 2, 1) /* the other end */                                                      \
    F(i32, instance, 3, 1)                                                                         \
    F(u32, incarnation, 4, 1)                                                                      \
    F(u8, requester, 5, 1)   /* 1: the sender had sent the INTRODUCE */                            \
    F(u64, side_bytes, 6, 1) /* of the sender's side */                                            \
    F(u8, limited, 7, 0)     /* 1: not every method may be sent on it */
#define RBI_WIRE_FIELDS_methods(F)                                                                 \
    F(u64, link_id, 1, 1)                                                                          \
    F(u32, what, 2, 1) /* RBI_METHODS_*: which of the two is said */                               \
    F(text, get, 3, 0) /* as in INTRODUCED */                                                      \
    F(text, send, 4, 0)
#define RBI_WIRE_FIELDS_replaced(F) F(u32, uid, 1, 1) /* of the one who has it now */
#define RBI_WIRE_FIELDS_rights(F)   F(u64, epoch, 1, 1)
#define RBI_WIRE_FIELDS_settled(F)  F(u64, revision, 1, 1)

enum rbi_change { RBI_CHANGE_ADDED = 1, RBI_CHANGE_UPDATED = 2, RBI_CHANGE_REMOVED = 3 };
/** What EDIT asks for; no values but those that are named change. */
enum rbi_edit_what {
    RBI_EDIT_SET = 1,
    /* The keys are as without any edit; a value beside one is set when they would be another. Of an
     * item without keys: all of it. */
    RBI_EDIT_RESET = 2,
    /* Switches (value1: "true" or "false") the entry of "degrade" with this id, or, for a number,
     * the first with the action mock that is about this method. */
    RBI_EDIT_MOCK = 3,
};
/** What NODE asks for. Changes are answered by OK with the new revision. */
enum rbi_node_what {
    RBI_NODE_CREATE = 1,
    RBI_NODE_SET = 2,
    RBI_NODE_REMOVE = 3,
    RBI_NODE_GET = 4,  /* answered by NODE_STATE */
    RBI_NODE_SCAN = 5, /* what there is at and below a path: some NODE_EVENT, then NODE_STATE */
};
#define RBI_NODE_EPHEMERAL 1U /* it ends with the endpoint that made it */
#define RBI_NODE_AGAIN     2U /* CREATE: an earlier daemon has had it from this endpoint */
#define RBI_METHODS_GET    1U
#define RBI_METHODS_SEND   2U
enum rbi_drain_what { RBI_DRAIN_START = 1, RBI_DRAIN_STOP = 2, RBI_DRAIN_LOOK = 3 };
/** What an instance that drains waits for, in this order. */
enum rbi_drain_step {
    RBI_DRAIN_NONE = 0,    /* it does not drain */
    RBI_DRAIN_SENDERS = 1, /* senders that have not acknowledged */
    RBI_DRAIN_UNREAD = 2,  /* links whose lane it has not read to its end */
    RBI_DRAIN_CALLS = 3,   /* requests of its own that are not answered */
    RBI_DRAIN_UNTAKEN = 4, /* links whose peer has not read what it was sent */
    RBI_DRAIN_DONE = 5,
};
/** How a probe ended. */
enum rbi_probe_outcome {
    RBI_PROBE_UNUSED = 0, /* nothing was to be asked, or it was refused before its lane */
    RBI_PROBE_OK = 1,
    RBI_PROBE_FAILED = 2,
    RBI_PROBE_CANCELLED = 3, /* it was sent, and how it ended says nothing of the instance */
    RBI_PROBE_NO_ROOM = 4,   /* its lane, or what it may hold of ours, was full; older: UNUSED */
};
enum rbi_query {
    RBI_QUERY_STATUS = 1,
    RBI_QUERY_ENDPOINTS = 2,
    RBI_QUERY_LINKS = 3,
    RBI_QUERY_ALARMS = 4,         /* ROW_ALARM */
    RBI_QUERY_CLUSTER_CALLS = 5,  /* ROW_CALLS, of clusters that were called */
    RBI_QUERY_INSTANCE_CALLS = 6, /* ROW_CALLS, of instances that were called */
    RBI_QUERY_DRY_RUNS = 7,       /* ROW_DRY_RUN */
    RBI_QUERY_HOSTS = 8,          /* ROW_HOST */
    RBI_QUERY_WAYS = 9,           /* ROW_WAY, from the host that prefix names; empty: from here */
};
/** How far a host is. */
enum rbi_host_state {
    RBI_HOST_GONE = 0,
    RBI_HOST_DOWN = 1,       /* a neighbour, not connected; or known, and without a way */
    RBI_HOST_CONNECTING = 2, /* a neighbour that is being dialled */
    RBI_HOST_UP = 3,         /* a neighbour, connected */
    RBI_HOST_REACHABLE = 4,  /* by way of others */
    RBI_HOST_REFUSED = 5,    /* a neighbour whose certificate, name or version is not taken */
};
/**
 * What ALARM says. All that fire at and below a prefix are told between BEGIN and END when it
 * begins to be watched, and when events were dropped: who is not named is over.
 */
enum rbi_alarm_what {
    RBI_ALARM_WHAT_FIRING = 1,
    RBI_ALARM_WHAT_RESOLVED = 2,
    RBI_ALARM_WHAT_BEGIN = 3,
    RBI_ALARM_WHAT_END = 4,
};

typedef uint8_t rbi_wire_u8;
typedef uint16_t rbi_wire_u16;
typedef uint32_t rbi_wire_u32;
typedef int32_t rbi_wire_i32;
typedef uint64_t rbi_wire_u64;
typedef struct rbi_text rbi_wire_text;
typedef struct rbi_data rbi_wire_data;

#define RBI_WIRE_MEMBER(type, name, tag, required) rbi_wire_##type name;
#define RBI_WIRE_STRUCT(NAME, name, value, fds)                                                    \
    struct rbi_wire_##name {                                                                       \
        RBI_WIRE_FIELDS_##name(RBI_WIRE_MEMBER)                                                    \
    };
RBI_WIRE_TYPES(RBI_WIRE_STRUCT)
#undef RBI_WIRE_STRUCT
#undef RBI_WIRE_MEMBER

/** Header of a frame, decoded. */
struct rbi_wire_header {
    uint32_t length; /* whole frame, header included: RBI_WIRE_HEADER..RBI_WIRE_FRAME_MAX */
    uint16_t type;   /* enum rbi_wire_type, or one that this version does not know */
    uint8_t version; /* RBI_WIRE_PROTOCOL_MAX of the sender */
    uint8_t fd_count;
    uint32_t serial;   /* the sender's number, not 0 */
    uint32_t reply_to; /* serial that this answers, or 0 */
};

enum rbi_wire_result {
    RBI_WIRE_DONE = 0,
    RBI_WIRE_SHORT = 1, /* not all there yet */
};

/**
 * Reads the header of a frame. Untrusted input.
 * @retval RBI_WIRE_DONE; RBI_WIRE_SHORT fewer than 24 bytes
 * @retval -EPROTO  wrong magic, or a length or descriptor count out of bounds
 */
RBI_MUST_CHECK int
rbi_wire_header_decode(const void *data, size_t size, struct rbi_wire_header *out);

/** Body of one message: the variant of the union that its type names. */
union rbi_wire_body {
#define RBI_WIRE_UNION(NAME, name, value, fds) struct rbi_wire_##name name;
    RBI_WIRE_TYPES(RBI_WIRE_UNION)
#undef RBI_WIRE_UNION
};

/** Text of what is wrong with a frame, for the ERROR that answers it. */
struct rbi_wire_fault {
    char text[128];
};

/**
 * Decodes the body of a whole frame. Untrusted input; nothing half-written on failure.
 * @retval 0        @p out holds the message named by @p header->type
 * @retval 1        type is not known to this version: skip the frame
 * @retval -EPROTO  a field of wrong length, a duplicate, a text with NUL inside, a required one
 *                  missing, or a descriptor count that is not the type's; @p fault names message
 *                  and field
 */
RBI_MUST_CHECK int rbi_wire_decode(const struct rbi_wire_header *header,
                                   const void *frame,
                                   union rbi_wire_body *out,
                                   struct rbi_wire_fault *fault);

/**
 * Encodes a message. @p body points to the struct rbi_wire_NAME of @p type.
 * @param frame  RBI_WIRE_FRAME_MAX bytes
 * @return bytes of the frame
 */
size_t rbi_wire_encode(
    enum rbi_wire_type type, const void *body, uint32_t serial, uint32_t reply_to, void *frame);

/** False for types of later versions. */
bool rbi_wire_type_known(unsigned type);
/** Protocol that a side must speak to be sent a message of this type. */
unsigned rbi_wire_type_protocol(unsigned type);
/** "REGISTER", or "?" . */
const char *rbi_wire_type_name(unsigned type);
/** Descriptors that a message of this type carries; 0 for unknown types. */
unsigned rbi_wire_type_fds(unsigned type);

/** Copies a text, cut to RBI_WIRE_TEXT_MAX bytes. @p s may be NULL. */
void rbi_text_set(struct rbi_text *text, const char *s);
void rbi_text_format(struct rbi_text *text, const char *format, ...) RBI_PRINTF(2, 3);

#endif
