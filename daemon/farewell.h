/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_FAREWELL_H
#define RINGBUS_DAEMON_FAREWELL_H
/*
 * daemon/farewell.h - ends connections so that the other side can read what it was told
 * last. Closing a socket with unread input makes the kernel report a reset to the
 * client, in front of the words that lie in its queue.
 */
#include "shm/base.h"

/** Ends both directions and throws unread input away, descriptors too; stays open. */
void rbi_farewell_silence(int fd);
/** Throws unread input away, whatever descriptors it carries too, and closes. */
void rbi_farewell_close(int fd);
/** Says ERROR on a connection that never became a peer, and closes it. */
void rbi_farewell_refuse(int fd, int code, const char *text);

#endif
