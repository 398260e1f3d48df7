/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_EPOLL_H
#define RINGBUS_LIBCLIENT_EPOLL_H
/* libclient/epoll.h - what the kernel tells us: bells, the control socket, the wake-up. */
#include <stdbool.h>
#include <stdint.h>

struct rbi_end;
struct ringbus;

/**
 * Looks at the epoll set without waiting (@p timeout_ms 0) or waiting. @return events, < 0 -errno
 */
int rbi_epoll_events(struct ringbus *bus, int timeout_ms);
void rbi_epoll_deinit(struct ringbus *bus);
int rbi_epoll_init(struct ringbus *bus);
int rbi_epoll_add(struct ringbus *bus, int fd, uint64_t tag, bool writable);
/** Listens to the bell of a link. */
int rbi_epoll_add_bell(struct ringbus *bus, struct rbi_end *end, int bell);
/**
 * Before closing: a child of a fork may hold the same description, and would keep it in the set.
 */
void rbi_epoll_remove(struct ringbus *bus, int fd);
int rbi_epoll_modify(struct ringbus *bus, int fd, uint64_t tag, bool writable);
/** Listens again to a bell whose mute time is over. */
void rbi_epoll_unmute(struct ringbus *bus, struct rbi_end *end, uint64_t now_ns);

#define RBI_EPOLL_CONTROL UINT64_C(1)
#define RBI_EPOLL_WAKE    UINT64_C(2)
#define RBI_EPOLL_TIMER   UINT64_C(3)

#endif
