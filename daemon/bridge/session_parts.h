/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_SESSION_PARTS_H
#define RINGBUS_DAEMON_BRIDGE_SESSION_PARTS_H
/* daemon/bridge/session_parts.h - between session.c and session_frames.c alone. */
#include "daemon/bridge/session.h"

void rbi_session_on_hello(struct rbi_session *session, const struct rbi_frame_hello *hello);
void rbi_session_on_pong(struct rbi_session *session, const struct rbi_frame_pong *pong);
/** Of rbi_session_ops: untrusted bytes. @return how many were taken */
size_t
rbi_session_bytes(void *context, struct rbi_conn *conn, const unsigned char *bytes, size_t size);

#endif
