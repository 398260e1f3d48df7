/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_HELLO_H
#define RINGBUS_DAEMON_HELLO_H
/* daemon/hello.h - the greeting of the daemon: who it is, and its directory. */
#include "shm/base.h"

struct rbi_daemon;
struct rbi_peer;

/** Sends HELLO_OK with the directory. @retval 0; -errno as rbi_peer_send_with_fds() */
RBI_MUST_CHECK int rbi_hello_send(struct rbi_peer *peer, uint32_t reply_to);
/** Sends it to everybody who has greeted: the directory has moved. Who cannot take it is ended. */
void rbi_hello_send_all(struct rbi_daemon *daemon);

#endif
