/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_NEWS_H
#define RINGBUS_LIBCLIENT_NEWS_H
/* libclient/news.h - what an event of the daemon tells to one who knows something already. */
#include "bus/wire.h"

#include <stdint.h>

struct ringbus;

enum rbi_news {
    RBI_NEWS_NONE = 0, /* known already */
    RBI_NEWS_ADDED = 1,
    RBI_NEWS_UPDATED = 2,
    RBI_NEWS_REMOVED = 3,
    RBI_NEWS_REPLACED = 4, /* another life of what is known: REMOVED, then ADDED */
};

/** What an event tells to one who knows this. @param known_incarnation  0: knows nothing */
enum rbi_news rbi_news_of(uint32_t known_incarnation,
                          uint32_t known_state,
                          uint32_t known_weight,
                          const struct rbi_wire_event *event);
/** Reports it to the application. */
void rbi_news_emit(struct ringbus *bus,
                   enum rbi_news news,
                   const struct rbi_wire_event *event,
                   uint32_t old_incarnation);

#endif
