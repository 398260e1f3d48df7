/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SIM_STREAM_WORLD_H
#define RINGBUS_TESTS_SIM_STREAM_WORLD_H
/*
 * Two hosts with a bridge each, two endpoints that talk, and two connections that come and go. The
 * streams are the real ones (bus/stream.h); lanes, connections, endpoints and the clock are these.
 *
 * What an endpoint writes is numbered by link; the world knows how much of each link has arrived
 * at the other host, and holds every acknowledgement and every end against it.
 */
#include "bus/stream.h"

#define HOSTS       2U
#define WAYS        2U
#define QUEUE       4096U /* frames on a connection, one direction */
#define RECORDS     512U  /* in a lane */
#define STREAMS     64U   /* of a host, at once */
#define LINKS       4096U /* in a run */
#define HANDLES     4096U
#define LANE_BYTES  UINT64_C(16384)
#define WINDOW      UINT64_C(4096)
#define SECOND      UINT64_C(1000000000)
#define UNREACHABLE (2 * SECOND)
#define NOBODY      UINT32_MAX

/** A record in a lane. */
struct record {
    uint64_t pos;
    uint64_t next;
    uint64_t payload; /* by reference; 0: inline */
    uint32_t size;    /* of the body in the lane */
    uint32_t link;    /* of its writer, and its number in it */
    uint32_t number;
};

/** What the world knows of a local link, for ever. */
struct ledger {
    uint32_t written;
    uint32_t arrived; /* in the other host's lane */
    bool left;        /* its endpoint has ended it */
    bool ended;
    uint32_t acked; /* when it ended */
    uint32_t seen;
};

enum link_state { LINK_NONE = 0, LINK_ASKED = 1, LINK_UP = 2, LINK_LEFT = 3 };

/** The link of an endpoint with its bridge. */
struct link {
    enum link_state state;
    uint32_t id;   /* in the ledger */
    uint32_t peer; /* whose records have come; NOBODY: none yet */
    bool held;
    uint64_t write_pos;
    uint64_t released;
    struct record lane[RECORDS]; /* towards the bridge, by number */
    uint64_t unread;             /* bytes in the lane towards the endpoint */
    uint32_t unread_records;
    uint64_t unread_sizes[RECORDS];
    uint32_t read_records;
};

/** A record that came and is not in the lane yet. */
struct waiting {
    struct record record;
    uint64_t kept; /* bytes of frames */
    bool whole;
};

struct tunnel {
    bool used;
    uint64_t born; /* counts */
    struct rbi_stream stream;
    uint32_t link; /* index of host->links */
    bool linking;  /* acceptor: the local link is to be made */
    uint32_t way;
    uint32_t conn;   /* id of the connection; 0: none */
    uint32_t handle; /* ours, on it */
    uint32_t theirs;
    uint64_t offset; /* of the record at tx.pos that went */
    bool begun;
    struct waiting queue[RECORDS];
    uint32_t queued;
    unsigned resumes;
    bool clean; /* the CLOSE that came answers ours */
};

struct host {
    uint64_t id;
    bool alive; /* its bridge */
    uint64_t life;
    uint64_t count;       /* of streams that it opened in this life */
    uint32_t next_handle; /* handles are never used twice, so one counter does for all */
    struct tunnel tunnels[STREAMS];
    struct link links[STREAMS];
    uint32_t link; /* the endpoint's newest, or NOBODY */
};

struct frame {
    unsigned type; /* enum rbi_frame_type */
    unsigned flags;
    uint32_t handle;
    uint32_t ours;
    uint32_t mark;
    struct rbi_stream_input input;
    struct record record;
    uint64_t offset;
    uint64_t part;
    uint64_t bytes;
};

struct conn {
    uint32_t id;
    bool cut;                         /* nothing more is sent */
    bool up[HOSTS];                   /* as that host believes */
    struct frame queue[HOSTS][QUEUE]; /* towards that host */
    uint32_t head[HOSTS];
    uint32_t tail[HOSTS];
};

struct world {
    uint64_t seed;
    uint64_t rng;
    uint64_t now_ns;
    uint64_t start; /* of all lanes */
    bool quiet;     /* no more faults */
    bool verbose;
    /* How often things happen, of 1000; each run has its own. */
    unsigned cut_rate; /* 0: nothing goes wrong, so every link that is asked for is made */
    unsigned death_rate;
    unsigned leave_rate;
    unsigned notice_rate;
    unsigned jump_rate;
    unsigned speed[WAYS]; /* of deliveries */
    unsigned reads[HOSTS];
    unsigned writes[HOSTS];
    struct host hosts[HOSTS];
    struct conn conns[WAYS];
    uint32_t conn_count;
    struct ledger ledgers[LINKS];
    uint32_t ledger_count;
    uint64_t tunnel_count;
    /* what a run was about */
    uint64_t arrived;
    uint64_t cuts;
    uint64_t resumed;
    uint64_t resent;
    uint64_t deaths;
    uint64_t clean_ends;
};

extern struct world world;

uint32_t below(uint32_t n);
bool chance(unsigned of_1000);
void fail(const char *what, const struct tunnel *tunnel);
#define CHECK(right, what, tunnel)                                                                 \
    do {                                                                                           \
        if (!(right)) {                                                                            \
            fail(what, tunnel);                                                                    \
        }                                                                                          \
    } while (0)

/* tunnel.c: what a bridge does with a stream */
struct tunnel *tunnel_new(struct host *host);
struct rbi_stream_terms tunnel_terms(void);
void tunnel_send(struct host *host, const struct tunnel *tunnel, struct frame frame);
void tunnel_refuse(struct host *host,
                   uint32_t way,
                   uint32_t conn,
                   const struct rbi_stream_actions *act);
/** Feeds what came by a connection that may not be the stream's, with a handle in it. */
void tunnel_feed_by(struct host *host,
                    struct tunnel *tunnel,
                    struct rbi_stream_input input,
                    uint32_t way,
                    uint32_t conn,
                    uint32_t theirs,
                    struct rbi_stream_actions *act);
void tunnel_open(struct host *host, uint32_t link);
void tunnel_feed(struct host *host, struct tunnel *tunnel, struct rbi_stream_input input);
void tunnel_pump(struct host *host, struct tunnel *tunnel);
void tunnel_find_way(struct host *host, struct tunnel *tunnel);

/* receive.c: what it does with frames */
void tunnel_frame(struct host *host, uint32_t way, const struct frame *frame);
void tunnel_serve(struct host *host, struct tunnel *tunnel);

/* endpoint.c: the local links, and what the world holds against them */
uint32_t link_new(struct host *host, enum link_state state);
void link_write(struct link *link);
void link_read(struct link *link);
void link_end(struct host *host, struct tunnel *tunnel, uint64_t seen);
void link_put(struct link *link, const struct record *record);
bool link_room(const struct link *link, const struct record *record);
void link_release(struct link *link, uint64_t acked);
const struct record *link_record(const struct link *link, uint64_t pos);
uint32_t link_before(const struct link *link, uint64_t pos);
void ledgers_check(void);

/* wire.c: the connections */
void wire_send(struct host *from, uint32_t way, uint32_t conn, struct frame frame);
bool wire_deliver(uint32_t way, unsigned to);
void wire_connect(uint32_t way);
void wire_cut(uint32_t way);
void wire_notice(uint32_t way, unsigned host);

static inline struct link *link_of(struct host *host, const struct tunnel *tunnel)
{
    return tunnel->link == NOBODY ? NULL : &host->links[tunnel->link];
}

static inline struct host *other_host(const struct host *host)
{
    return &world.hosts[host == &world.hosts[0] ? 1 : 0];
}

#endif
