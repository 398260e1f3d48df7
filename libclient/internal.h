/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_INTERNAL_H
#define RINGBUS_LIBCLIENT_INTERNAL_H
/*
 * libclient/internal.h - what the files of libringbus share: all of their headers, each of which
 * has one subject and stands alone. One handle (struct ringbus, handle.h) owns everything below
 * it; nothing is global, nothing is locked.
 *
 *   bus ── control    connection to ringbusd (control.h)
 *       ── ends       our end of each link (end.h), by address in `peers`
 *       ── clusters   what we know of each cluster that we target (cluster.h, target.h)
 *       ── calls      requests that wait for their reply (request.h)
 *       ── asks       requests that may take several of those (retry.h)
 *       ── pool, page our own shared memory
 *
 * Callbacks run in ringbus_poll() only; ends are freed there only, after the
 * last callback that could hold them (reap in poll.c).
 */
#include "bus/directory.h"
#include "bus/hrw.h"
#include "bus/link.h"
#include "bus/pidf.h"
#include "bus/record.h"
#include "bus/wire.h"
#include "bus/wire_stream.h"
#include "libclient/address.h"
#include "libclient/alarms.h"
#include "libclient/attributes.h"
#include "libclient/bound.h"
#include "libclient/choice.h"
#include "libclient/clock.h"
#include "libclient/cluster.h"
#include "libclient/control.h"
#include "libclient/core.h"
#include "libclient/deadline.h"
#include "libclient/degrade.h"
#include "libclient/delay.h"
#include "libclient/directory.h"
#include "libclient/divert.h"
#include "libclient/drain.h"
#include "libclient/dry.h"
#include "libclient/end.h"
#include "libclient/end_control.h"
#include "libclient/epoll.h"
#include "libclient/error.h"
#include "libclient/event.h"
#include "libclient/explain.h"
#include "libclient/failback.h"
#include "libclient/gap.h"
#include "libclient/gate.h"
#include "libclient/guard.h"
#include "libclient/handle.h"
#include "libclient/health.h"
#include "libclient/hooks.h"
#include "libclient/labels.h"
#include "libclient/limit.h"
#include "libclient/load.h"
#include "libclient/news.h"
#include "libclient/nodes.h"
#include "libclient/outcome.h"
#include "libclient/owned.h"
#include "libclient/place.h"
#include "libclient/policy.h"
#include "libclient/poll.h"
#include "libclient/probe.h"
#include "libclient/reach.h"
#include "libclient/realm.h"
#include "libclient/receive.h"
#include "libclient/redeliver.h"
#include "libclient/refused.h"
#include "libclient/relayed.h"
#include "libclient/request.h"
#include "libclient/residue.h"
#include "libclient/retry.h"
#include "libclient/rights.h"
#include "libclient/seen.h"
#include "libclient/send.h"
#include "libclient/send_on.h"
#include "libclient/spin.h"
#include "libclient/stats.h"
#include "libclient/subject.h"
#include "libclient/subset.h"
#include "libclient/target.h"
#include "libclient/terms.h"
#include "libclient/turn.h"
#include "libclient/undelivered.h"
#include "libclient/wait.h"
#include "libclient/watched.h"
#include "shm/barrier.h"
#include "shm/bell.h"
#include "shm/handoff.h"
#include "shm/lane.h"
#include "shm/layout.h"
#include "shm/pool.h"
#include "shm/segment.h"
#include "shm/side.h"

#include <ck_hs.h>
#include <ringbus/ringbus.h>
#include <string.h>

#endif
