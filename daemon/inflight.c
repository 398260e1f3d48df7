/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/inflight.h"

#include "daemon/daemon.h"
#include "daemon/farewell.h"
#include "daemon/log.h"
#include "daemon/peer.h"
#include "shm/handoff.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOOK_NS      (UINT64_C(10) * 1000 * 1000)
#define LOG_LIMIT_NS (UINT64_C(60) * 1000 * 1000 * 1000)

/** Our end of a connection that is over, with descriptors that the client can still take. */
struct inflight_linger {
    struct rbi_list in_lingers;
    int fd;
    struct rbi_inflight_sent sent;
    struct rbi_charge charge;
};

void rbi_inflight_init(struct rbi_inflight *inflight)
{
    struct rlimit limit = {.rlim_cur = 0};
    *inflight = (struct rbi_inflight){.limit = UINT32_MAX};
    rbi_shares_init(&inflight->users);
    rbi_list_init(&inflight->lingers);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        inflight->limit = rbi_min_u64(limit.rlim_cur, UINT32_MAX);
    }
}

/** Whether something that we have sent lies in the socket still. */
static bool inflight_unread(int fd)
{
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/** Counts them no more: taken by the client, or gone with its end. */
static void inflight_return(struct rbi_inflight *inflight, struct rbi_inflight_sent *sent)
{
    rbi_share_return(sent->share, sent->count);
    inflight->total -= sent->count;
    *sent = (struct rbi_inflight_sent){.share = NULL};
}

static void inflight_look(struct rbi_peer *peer)
{
    if (peer->inflight.count && !inflight_unread(peer->fd)) {
        inflight_return(&peer->daemon->inflight, &peer->inflight);
    }
}

/** Looks at all of them, not too often: whoever waits for this comes again. */
static void inflight_look_again(struct rbi_daemon *daemon)
{
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    if (now_ns - daemon->inflight.looked_ns >= LOOK_NS) {
        daemon->inflight.looked_ns = now_ns;
        rbi_inflight_look(daemon);
    }
}

static uint64_t inflight_room(const struct rbi_inflight *inflight, uint32_t uid)
{
    const uint64_t remaining =
        inflight->limit > inflight->total ? inflight->limit - inflight->total : 0;
    return rbi_shares_room(&inflight->users, remaining, uid);
}

/** The user of a client has too much in flight. Says so now and then. */
static void inflight_log(struct rbi_peer *peer)
{
    struct rbi_inflight *inflight = &peer->daemon->inflight;
    uint64_t suppressed = 0;
    peer->daemon->counters.inflight_waits++;
    if (rbi_log_limit_pass(&inflight->log_limit, rbi_loop_now_ns(peer->daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "descriptors_in_flight",
                "uid=%" PRIu32 " unread=%" PRIu64 " limit=%" PRIu64
                " why=\"clients of this uid do not read what they were sent\" suppressed=%" PRIu64,
                peer->uid, rbi_shares_used(&inflight->users, peer->actor), inflight->limit,
                suppressed);
    }
}

int rbi_inflight_send(
    struct rbi_peer *peer, const void *data, uint64_t size, const int *fds, unsigned fd_count)
{
    struct rbi_inflight *inflight = &peer->daemon->inflight;
    if (fd_count > 0) {
        inflight_look(peer);
        if (fd_count > inflight_room(inflight, peer->actor)) {
            inflight_look_again(peer->daemon);
        }
        if (fd_count > inflight_room(inflight, peer->actor)) {
            inflight_log(peer);
            return -ETOOMANYREFS;
        }
    }
    const int result = rbi_handoff_send(peer->fd, data, size, fds, fd_count);
    if (result < 0 || fd_count == 0) {
        return result;
    }
    /* What it has not read yet is another actor's, if it was found to be a bridge meanwhile: all of
     * it is returned at once, so it is counted at one place. */
    const uint32_t actor = peer->inflight.count > 0 ? peer->inflight.share->actor : peer->actor;
    struct rbi_share *share = rbi_share_take(&inflight->users, actor, fd_count);
    if (share) { /* without memory for it they are not counted */
        peer->inflight.share = share;
        peer->inflight.count += fd_count;
        inflight->total += fd_count;
    }
    return 0;
}

/* ---- after the end --------------------------------------------------------------------- */

void rbi_inflight_close(struct rbi_peer *peer, struct rbi_charge *charge)
{
    struct rbi_inflight *inflight = &peer->daemon->inflight;
    rbi_farewell_silence(peer->fd);
    inflight_look(peer);
    struct inflight_linger *linger =
        peer->inflight.count && !peer->daemon->stopping ? calloc(1, sizeof(*linger)) : NULL;
    if (!linger) {
        inflight_return(inflight, &peer->inflight);
        rbi_charge_release(charge);
        (void)close(peer->fd);
        return;
    }
    linger->fd = peer->fd;
    linger->sent = peer->inflight;
    linger->charge = *charge;
    *charge = (struct rbi_charge){.user = NULL};
    rbi_list_push_back(&inflight->lingers, &linger->in_lingers);
}

static void linger_free(struct rbi_inflight *inflight, struct inflight_linger *linger)
{
    rbi_list_remove(&linger->in_lingers);
    inflight_return(inflight, &linger->sent);
    rbi_charge_release(&linger->charge);
    (void)close(linger->fd);
    free(linger);
}

void rbi_inflight_look(struct rbi_daemon *daemon)
{
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        inflight_look(RBI_CONTAINER_OF(node, struct rbi_peer, in_peers));
    }
    RBI_LIST_EACH(node, spare, &daemon->inflight.lingers)
    {
        struct inflight_linger *linger = RBI_CONTAINER_OF(node, struct inflight_linger, in_lingers);
        if (!inflight_unread(linger->fd)) {
            linger_free(&daemon->inflight, linger);
        }
    }
}

void rbi_inflight_deinit(struct rbi_daemon *daemon)
{
    struct rbi_inflight *inflight = &daemon->inflight;
    while (!rbi_list_empty(&inflight->lingers)) {
        linger_free(inflight,
                    RBI_LIST_FIRST(&inflight->lingers, struct inflight_linger, in_lingers));
    }
}
