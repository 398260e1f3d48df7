/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_HANDLE_H
#define RINGBUS_LIBCLIENT_HANDLE_H
/* libclient/handle.h - what a handle holds (struct ringbus). */
#include "bus/directory.h"
#include "bus/link.h"
#include "bus/pidf.h"
#include "libclient/alarms.h"
#include "libclient/control.h"
#include "libclient/delay.h"
#include "libclient/divert.h"
#include "libclient/drain.h"
#include "libclient/dry.h"
#include "libclient/error.h"
#include "libclient/event.h"
#include "libclient/failback.h"
#include "libclient/gap.h"
#include "libclient/gate.h"
#include "libclient/labels.h"
#include "libclient/limit.h"
#include "libclient/nodes.h"
#include "libclient/outcome.h"
#include "libclient/place.h"
#include "libclient/probe.h"
#include "libclient/request.h"
#include "libclient/retry.h"
#include "libclient/seen.h"
#include "libclient/spin.h"
#include "libclient/undelivered.h"
#include "libclient/watched.h"
#include "shm/atomic.h"
#include "shm/layout.h"
#include "shm/pool.h"
#include "shm/segment.h"

#include <ck_hs.h>
#include <ringbus/ringbus.h>
#include <stdbool.h>
#include <stdint.h>

struct rbi_attributes;
struct rbi_cluster;
struct rbi_end;
struct rbi_hooks;
struct rbi_owned;

/* Peers that a send finds without a look-up: power of two. */
#define RBI_RECENT 64U

struct ringbus {
    /* Hot: read by every call. */
    const rbi_au64 *guard;              /* a page that the kernel wipes in the child of a fork */
    struct rbi_cluster *last_cluster;   /* cache of the last lookup */
    struct rbi_end *recent[RBI_RECENT]; /* and of the last peers, each in its place */
    struct rbi_end **ends;              /* LINKED and LEAVING ones */
    uint64_t *due;                      /* when each is to be looked at next, by its position */
    unsigned end_count;
    unsigned end_room;
    unsigned next_end;     /* where the next poll starts */
    unsigned active_count; /* of ends: those that every poll looks at */
    unsigned next_quiet;   /* where the next sweep of the others goes on */
    unsigned tick_countdown;
    unsigned idle_turns; /* looks that found nothing, and sends that found no room */
    unsigned tick_polls; /* polls between two ticks, adapted to the pace of the caller */
    uint32_t inline_max;
    uint64_t size_max; /* largest payload */
    bool busy_mode;
    bool in_callback;
    bool reap_needed;
    bool woken;         /* ringbus_wake() was called */
    bool external_loop; /* ringbus_fd() was called */
    bool balance_all;   /* some target's balance.mode is all, or was */
    bool probing;       /* a request may be the probe that the daemon asked for */
    bool polling;       /* inside ringbus_poll(), which prepares an external loop at its end */
    uint8_t measured;   /* RBI_MEASURED: how long messages wait, and polls are apart (gate.h) */
    bool brokers;       /* some peer stands for others, or did: a broadcast asks which */
    bool chunk_starved; /* a send found no chunk, or no slot for one */
    uint64_t returned;  /* references and chunks that came back so far */
    uint64_t returned_until; /* of them, when chunk_starved was set */
    uint64_t now_ns;         /* as of the last tick */
    uint64_t core;           /* as told in the page */
    uint64_t load_depth;     /* messages that waited at the last tick (load.c) */
    uint64_t load_begin_ns;  /* when the poll of that tick began to read */
    uint64_t load_ewma_ns;   /* that one takes; 0: unknown */
    uint64_t next_deadline_ns;
    uint64_t target_due_ns; /* when a member is to be introduced, or one that is lost dropped */
    uint64_t late_ns;       /* the most by which a tick came late, of the last seconds */
    uint64_t late_at_ns;    /* and when that was */
    uint64_t counters[RBI_COUNTER_COUNT];
    struct rbi_end *dirty;    /* ends with unrung records */
    struct rbi_end *blocked;  /* ends that a send found full */
    struct rbi_end *residues; /* ended links with payloads out */
    struct rbi_page *page;    /* own, writable */
    struct rbi_pool pool;
    struct rbi_calls calls;
    struct rbi_asks asks;
    struct rbi_outcome_table outcomes;
    struct rbi_probe probe;
    struct rbi_divert divert;
    struct rbi_kept_messages kept;
    struct rbi_delays delays;
    struct rbi_events events;
    ringbus_message_fn on_message;
    ringbus_event_fn on_event;
    void *user;
    /* What messages sent by the running callback inherit; NULL: nothing. */
    const struct rbi_attributes *inherited;

    /* Cold. */
    struct rbi_pidf self;
    char self_path[RBI_PATH_MAX + 1];
    struct rbi_segment page_segment;
    struct rbi_segment directory_segment;
    struct rbi_directory_view directory;
    struct rbi_segment held_segment; /* of the daemon before; base NULL: none is held */
    struct rbi_directory_view held_directory;
    struct rbi_pidf *gone; /* whose links told of their end while no daemon could */
    unsigned gone_count;
    unsigned cluster_count;      /* of clusters */
    uint64_t directory_revision; /* as of the last look */
    uint64_t picks;              /* number of the last pick that took the cold way */
    uint64_t sweep_ns;           /* when who was not named by a new daemon is dropped; RBI_NEVER */
    uint64_t reread_ns;          /* when events are made up for that found no memory; RBI_NEVER */
    void *guard_page;
    ck_hs_t peers; /* &end->peer of every end, by (cluster, instance) */
    struct rbi_end *loop_end;
    struct rbi_cluster **clusters;
    struct rbi_watches watches;
    struct rbi_nodes nodes;
    struct rbi_alarm_sights alarms;
    struct rbi_dry_counts dry;
    struct rbi_hooks *hooks; /* NULL: ringbus_hook() was not called */
    struct rbi_owned *owned; /* NULL: the option slots was not given */
    struct rbi_control control;
    int epoll;
    int wake;             /* eventfd of our own, never handed out */
    int timer;            /* timerfd for external loops, -1 until asked for */
    unsigned introducing; /* INTRODUCE sent, not answered yet */
    uint64_t timer_armed_ns;
    uint64_t idle_since_ns;   /* when messages last came, as far as ticks saw */
    uint64_t last_epoll_ns;   /* when the kernel was last asked for news */
    uint64_t published_ns;    /* when the counters were last copied into the page */
    uint64_t traffic_at_tick; /* to tell a quiet time from a busy one */
    uint32_t state;           /* enum rbi_endpoint_state */
    uint32_t lane_bytes;
    uint32_t far_lane_bytes; /* the same, towards peers on other hosts */
    uint32_t refs_per_link;
    uint32_t spin_us;
    struct rbi_spin spin;
    uint64_t core_traffic; /* messages so far, at the last question whose core this is */
    uint32_t core_in_vain; /* times in a row that the core was given away, and nothing came */
    uint32_t core_partner; /* the peer last asked */
    uint32_t core_holiday; /* waits without giving way that are left */
    uint32_t load_reports; /* calls of ringbus_report_load() */
    struct rbi_place place;
    uint32_t weight;
    struct rbi_link_terms terms;
    bool terms_from_daemon; /* the application named neither interval nor misses */
    bool hold;              /* we may be stopped in a debugger: peers are told */
    bool hold_from_daemon;  /* neither option nor environment says so */
    bool directory_mapped;
    bool closing;             /* also when another has taken our name over (rights.c) */
    bool broker;              /* we stand for others: messages may be left where they are */
    bool takeover;            /* REGISTER asks for the name of a living instance as well */
    bool daemon_lost_pending; /* events that the next poll reports */
    bool daemon_back_pending;
    uint64_t alive_due_ns; /* when ringbus_alive() is to look at the links again */
    uint64_t random;
    uint64_t link_lives;   /* ends made so far */
    unsigned holding;      /* ends with holds */
    unsigned redelivering; /* ends with again */
    unsigned behind;       /* ends with RBI_HINDERED_BEHIND */
    uint64_t again_number; /* of the last of those */
    struct rbi_gaps gaps;
    struct rbi_seen_links seen;
    struct rbi_view *view; /* of the message whose callback runs */
    uint64_t life;         /* tells loans of this handle from another's */
    struct rbi_drain drain;
    char socket_path[RBI_SOCKET_PATH_MAX + 1];
    char *set;
    char *idc;
    char *tags;
    struct rbi_labels labels; /* as a caller */
    char *token;
    char program[64];
    struct rbi_bus_error error;
    struct rbi_limit_refusal refusal;
    struct rbi_gate gate;
#ifdef RBI_DEBUG
    _Atomic(uint64_t) user_thread; /* thread inside a call now; 0 = none */
    unsigned user_depth;
#endif
};

/** Frees a handle with its ends, also one that ringbus_open() could not finish. */
void rbi_handle_free(struct ringbus *bus);

static inline bool rbi_draining(const struct ringbus *bus)
{
    return bus->drain.asked || bus->drain.ordered;
}

/** In the child of a fork: closes our copies of the descriptors, frees, touches nothing shared. */
void rbi_close_in_child(struct ringbus *bus);

#endif
