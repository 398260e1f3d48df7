/* SPDX-License-Identifier: Apache-2.0 */
#include "support/relay.h"

#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct relay_host *host_of(const struct rbi_proxy *proxy)
{
    return rbi_desk_context(rbi_proxy_desk(proxy));
}

static unsigned side_of(const struct rbi_half *half)
{
    const struct relay_host *host = host_of(rbi_half_proxy(half));
    return host == &host->relay->host[0] ? 0 : 1;
}

/* ---- pairs --------------------------------------------------------------------------------- */

static struct relay_pair *pair_new(struct relay *relay)
{
    struct relay_pair *pair = calloc(1, sizeof *pair);
    CHECK(pair != NULL);
    pair->relay = relay;
    pair->next = relay->pairs;
    relay->pairs = pair;
    return pair;
}

static void pair_free(struct relay_pair *pair)
{
    struct relay_pair **at = &pair->relay->pairs;
    while (*at != pair) {
        at = &(*at)->next;
    }
    *at = pair->next;
    free(pair);
}

struct relay_pair *relay_only(const struct relay *relay)
{
    CHECK(relay->pairs == NULL || relay->pairs->next == NULL);
    return relay->pairs;
}

static void half_over(struct relay_pair *pair, unsigned side, enum rbi_reason reason)
{
    struct rbi_half *half = pair->half[side];
    if (half != NULL) {
        if (pair->lent[side]) {
            pair->lent[side] = false;
            rbi_half_unlend(half, &pair->chunk[side]);
        }
        pair->half[side] = NULL;
        rbi_half_end(half, reason);
    }
}

void relay_pair_over(struct relay_pair *pair, enum rbi_reason reason)
{
    half_over(pair, 0, reason);
    half_over(pair, 1, reason);
    pair_free(pair);
}

/* ---- moving records ------------------------------------------------------------------------ */

/* One record of side, into the other. @return whether it went */
static bool move_inline(struct rbi_half *to, const struct rbi_lane_record *record)
{
    unsigned char *body = NULL;
    const int r = rbi_half_reserve(to, record->meta, record->size, &body);
    if (r != RBI_LANE_OK) {
        CHECK(r == RBI_LANE_FULL || r == -EPIPE);
        return false;
    }
    memcpy(body, record->body, record->size);
    rbi_half_commit(to, record->meta, record->size);
    return true;
}

static bool
move_reference(struct relay_pair *pair, unsigned side, const struct rbi_lane_record *record)
{
    struct rbi_half *to = pair->half[1 - side];
    const unsigned char *payload = NULL;
    uint64_t size = 0;
    unsigned char body[4096] RBI_ALIGNED(8);
    if (rbi_half_payload(pair->half[side], record, &payload, &size) != 0) {
        return false;
    }
    if (!pair->lent[1 - side]) {
        const int r = rbi_half_lend(to, size, &pair->chunk[1 - side]);
        if (r != RBI_POOL_OK) {
            CHECK(r == RBI_POOL_EMPTY || r == -EPIPE);
            return false;
        }
        pair->lent[1 - side] = true;
        memcpy(pair->chunk[1 - side].data, payload, size);
    }
    CHECK(record->size <= sizeof body);
    memcpy(body, record->body, record->size);
    const int r = rbi_half_put_ref(to, record->meta, body, record->size, &pair->chunk[1 - side]);
    if (r != RBI_LANE_OK) {
        CHECK(r == RBI_LANE_FULL || r == -EPIPE);
        return false;
    }
    pair->lent[1 - side] = false;
    return true;
}

static void ack(struct relay_pair *pair, unsigned side)
{
    struct rbi_half *half = pair->half[side];
    struct rbi_half_taken taken;
    if (pair->half[1 - side] != NULL) {
        rbi_half_taken(pair->half[1 - side], &taken); /* as who acknowledges what was read */
    }
    if (!pair->relay->ack_held && half != NULL) {
        CHECK(rbi_half_release(half, rbi_half_pos(half)) == 0);
    }
}

static void move(struct relay_pair *pair, unsigned side)
{
    struct rbi_half *from = pair->half[side];
    struct rbi_half *to = pair->half[1 - side];
    struct rbi_lane_record record = {0};
    unsigned left = pair->relay->batch != 0 ? pair->relay->batch : UINT32_MAX;
    if (from == NULL || to == NULL || !pair->linked[0] || !pair->linked[1] || pair->relay->cut) {
        if (from != NULL) {
            rbi_half_hold(from, true);
        }
        return;
    }
    rbi_half_hold(from, false);
    while (left-- > 0 && rbi_half_peek(from, &record) == RBI_LANE_OK) {
        const bool moved = pair->relay->swallowed ? true
                           : (record.meta >> 8 & RBI_RECORD_REF) != 0
                               ? move_reference(pair, side, &record)
                               : move_inline(to, &record);
        if (!moved) {
            rbi_half_hold(from, true); /* until the other has room */
            break;
        }
        if (rbi_half_step(from, &record) != 0) {
            pair->relay->withdrawn++;
            break;
        }
        pair->moved[side]++;
    }
    ack(pair, side);
}

void relay_go_on(struct relay *relay)
{
    relay->cut = relay->ack_held = false;
    for (struct relay_pair *pair = relay->pairs; pair != NULL; pair = pair->next) {
        move(pair, 0);
        move(pair, 1);
    }
}

/* ---- events -------------------------------------------------------------------------------- */

/* In the name of who asks on the other host: all that it asks for waits for its proxy. */
static void on_registered(struct rbi_proxy *proxy)
{
    struct relay *relay = host_of(proxy)->relay;
    const unsigned side = host_of(proxy) == &relay->host[0] ? 0 : 1;
    const struct rbi_pidf self = rbi_proxy_pidf(proxy);
    relay->registered++;
    for (struct relay_pair *pair = relay->pairs; pair != NULL; pair = pair->next) {
        if (pair->half[side] != NULL || pair->half[1 - side] == NULL ||
            rbi_half_phase(pair->half[1 - side]) != RBI_HALF_INTRODUCED) {
            continue;
        }
        const struct rbi_pidf *asks = rbi_half_peer(pair->half[1 - side]);
        const struct rbi_pidf peer = rbi_proxy_pidf(rbi_half_proxy(pair->half[1 - side]));
        if (asks->cluster == self.cluster && asks->instance == self.instance) {
            CHECK(rbi_proxy_introduce(proxy, &peer, 0, pair, &pair->half[side]) == 0);
        }
    }
}

static void on_refused(struct rbi_proxy *proxy, int code, const char *text)
{
    struct relay *relay = host_of(proxy)->relay;
    (void)text;
    relay->refused++;
    relay->code = code;
}

/* Both hosts have been asked at once: what waits there is the other half of this one. */
static bool join(struct rbi_half *half, struct rbi_half *waiting)
{
    if (waiting == NULL || rbi_half_phase(waiting) != RBI_HALF_INTRODUCED) {
        return false;
    }
    struct relay_pair *pair = rbi_half_context(waiting);
    pair->half[side_of(half)] = half;
    rbi_half_set_context(half, pair);
    CHECK(rbi_half_accept(half, 0) == 0);
    return true;
}

static void on_introduced(struct rbi_proxy *proxy, struct rbi_half *half)
{
    struct relay *relay = host_of(proxy)->relay;
    const unsigned side = side_of(half);
    struct relay_host *other = &relay->host[1 - side];
    const struct rbi_pidf *peer = rbi_half_peer(half);
    const struct rbi_pidf to = rbi_proxy_pidf(proxy);
    struct rbi_proxy *mirror = rbi_proxy_find(other->desk, peer->cluster, peer->instance);
    if (mirror != NULL && join(half, rbi_proxy_half(mirror, to.cluster, to.instance))) {
        return;
    }
    struct relay_pair *pair = pair_new(relay);
    pair->half[side] = half;
    rbi_half_set_context(half, pair);
    if (mirror != NULL && rbi_proxy_pidf(mirror).incarnation != peer->incarnation) {
        rbi_proxy_free(mirror, RBI_REASON_CRASHED);
        mirror = NULL;
    }
    if (mirror != NULL) {
        const int r = rbi_proxy_introduce(mirror, &to, 0, pair, &pair->half[1 - side]);
        if (r == -EEXIST) { /* an earlier link of the two has not ended there */
            pair_free(pair);
            rbi_half_refuse(half, RINGBUS_E_IN_USE, "not yet");
            return;
        }
        CHECK(r == 0 || r == -EAGAIN); /* when it is registered */
        return;
    }
    const struct rbi_proxy_spec spec = {.path = rbi_half_peer_path(half),
                                        .incarnation = peer->incarnation,
                                        .host = relay->host[side].name,
                                        .state = RBI_ENDPOINT_READY,
                                        .weight = 100,
                                        .uid = rbi_half_peer_uid(half),
                                        .hidden = true};
    CHECK(rbi_proxy_new(other->desk, &spec, NULL, &mirror) == 0);
}

static void on_linked(struct rbi_half *half)
{
    struct relay_pair *pair = rbi_half_context(half);
    const unsigned side = side_of(half);
    pair->relay->linked++;
    pair->linked[side] = true;
    if (!pair->linked[1 - side] && pair->half[1 - side] != NULL &&
        rbi_half_phase(pair->half[1 - side]) == RBI_HALF_INTRODUCED) {
        if (rbi_half_accept(pair->half[1 - side], 0) != 0) {
            relay_pair_over(pair, RBI_REASON_REFUSED);
        }
        return;
    }
    move(pair, 0);
    move(pair, 1);
}

static void on_failed(struct rbi_half *half, int code, const char *text)
{
    struct relay_pair *pair = rbi_half_context(half);
    const unsigned side = side_of(half);
    struct rbi_half *other = pair->half[1 - side];
    pair->relay->failed++;
    pair->relay->code = code;
    pair->half[side] = NULL;
    rbi_half_end(half, RBI_REASON_NONE);
    if (other != NULL && rbi_half_phase(other) == RBI_HALF_INTRODUCED) {
        pair->half[1 - side] = NULL;
        rbi_half_refuse(other, code, text);
    }
    relay_pair_over(pair, RBI_REASON_REFUSED);
}

static void on_records(struct rbi_half *half)
{
    struct relay_pair *pair = rbi_half_context(half);
    const unsigned side = side_of(half);
    struct rbi_lane_record record;
    move(pair, side);
    if (pair->down[side] && rbi_half_peek(half, &record) == RBI_LANE_EMPTY) {
        relay_pair_over(pair, pair->reason);
    }
}

static void on_room(struct rbi_half *half)
{
    struct relay_pair *pair = rbi_half_context(half);
    move(pair, 1 - side_of(half));
}

static void on_down(struct rbi_half *half, enum rbi_reason reason)
{
    struct relay_pair *pair = rbi_half_context(half);
    const unsigned side = side_of(half);
    struct rbi_lane_record record;
    pair->relay->downs++;
    pair->relay->reason = pair->reason = reason;
    pair->down[side] = true;
    move(pair, side);
    if (pair->half[1 - side] == NULL || rbi_half_phase(pair->half[1 - side]) != RBI_HALF_LINKED ||
        rbi_half_peek(half, &record) == RBI_LANE_EMPTY) {
        relay_pair_over(pair, reason);
    }
}

static const struct rbi_desk_events events = {.on_registered = on_registered,
                                              .on_refused = on_refused,
                                              .on_introduced = on_introduced,
                                              .on_linked = on_linked,
                                              .on_failed = on_failed,
                                              .on_records = on_records,
                                              .on_room = on_room,
                                              .on_down = on_down};

/* ---- life ---------------------------------------------------------------------------------- */

void relay_up(struct relay *relay, const char *config, const struct rbi_desk_options *options)
{
    relay_up_on(relay, RBI_LOOP_EPOLL, config, options);
}

void relay_up_on(struct relay *relay,
                 enum rbi_config_loop kind,
                 const char *config,
                 const struct rbi_desk_options *options)
{
    memset(relay, 0, sizeof *relay);
    CHECK(rbi_loop_new(&relay->loop, kind) == 0);
    for (unsigned i = 0; i < 2; i++) {
        struct relay_host *host = &relay->host[i];
        struct rbi_desk_options wanted = {.lane_bytes = 0};
        if (options != NULL) {
            wanted = *options;
        }
        host->relay = relay;
        host->name = i == 0 ? "alpha" : "beta";
        CHECK(cluster_up(&host->cluster, config) == 0);
        wanted.loop = relay->loop;
        wanted.socket = host->cluster.socket;
        wanted.events = &events;
        wanted.context = host;
        CHECK(rbi_desk_new(&wanted, &host->desk) == 0);
    }
}

void relay_down(struct relay *relay)
{
    for (unsigned i = 0; i < 2; i++) {
        relay->host[i].desk = rbi_desk_free(relay->host[i].desk);
        cluster_down(&relay->host[i].cluster);
    }
    while (relay->pairs != NULL) {
        struct relay_pair *pair = relay->pairs;
        relay->pairs = pair->next;
        free(pair);
    }
    relay->loop = rbi_loop_free(relay->loop);
}

void relay_turn(struct relay *relay, bool busy)
{
    CHECK(rbi_loop_turn(relay->loop, busy ? 0 : UINT64_C(1000000)) == 0);
}

bool relay_poll(struct node *const *nodes, unsigned count)
{
    bool any = false;
    for (unsigned i = 0; i < count; i++) {
        if (nodes[i] != NULL) {
            const int n = ringbus_poll(nodes[i]->bus, 64);
            CHECK(n >= 0);
            any |= n > 0;
        }
    }
    return any;
}

struct rbi_proxy *relay_proxy(struct relay *relay, unsigned host, const struct rbi_proxy_spec *spec)
{
    struct rbi_proxy *proxy = NULL;
    CHECK(rbi_proxy_new(relay->host[host].desk, spec, NULL, &proxy) == 0);
    return proxy;
}

struct rbi_proxy_spec relay_spec(const struct relay *relay, unsigned host, const struct node *node)
{
    struct ringbus_addr self;
    CHECK(ringbus_self(node->bus, &self) == 0);
    return (struct rbi_proxy_spec){.path = ringbus_self_path(node->bus),
                                   .incarnation = self.incarnation,
                                   .host = relay->host[1 - host].name,
                                   .cost = 10,
                                   .state = RBI_ENDPOINT_READY,
                                   .weight = 100};
}
