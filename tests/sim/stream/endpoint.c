/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints write and read at their own pace; a link that has ended is held against the ledger. */
#include "world.h"

#include <string.h>

uint32_t link_new(struct host *host, enum link_state state)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct link *link = &host->links[i];
        if (link->state == LINK_NONE) {
            CHECK(world.ledger_count < LINKS, "more links than a run makes", NULL);
            memset(link, 0, sizeof *link);
            link->state = state;
            link->peer = NOBODY;
            link->id = world.ledger_count++;
            link->write_pos = link->released = world.start;
            memset(&world.ledgers[link->id], 0, sizeof world.ledgers[0]);
            host->link = i;
            return i;
        }
    }
    fail("no link is ever given back", NULL);
    return 0;
}

/** Mostly small; some longer than a frame may be for its window, some by reference. */
static void some_size(struct record *record)
{
    record->payload = 0;
    record->size = 8 + below(200);
    if (chance(60)) {
        record->size = 1000 + below(6000);
    } else if (chance(60)) {
        record->size = 32 + below(300);
        record->payload = 1 + below(20000);
    }
}

void link_write(struct link *link)
{
    struct record record = {.pos = link->write_pos};
    struct ledger *ledger = &world.ledgers[link->id];
    some_size(&record);
    record.next = rbi_stream_next(record.pos, record.size);
    const uint32_t oldest = link_before(link, link->released);
    if (record.next - link->released > LANE_BYTES || ledger->written - oldest >= RECORDS) {
        return; /* full */
    }
    record.link = link->id;
    record.number = ledger->written++;
    link->lane[record.number % RECORDS] = record;
    link->write_pos = record.next;
}

bool link_room(const struct link *link, const struct record *record)
{
    return link->unread + (record->next - record->pos) <= LANE_BYTES &&
           link->unread_records - link->read_records < RECORDS;
}

void link_put(struct link *link, const struct record *record)
{
    struct ledger *ledger = &world.ledgers[record->link];
    CHECK(link->state == LINK_UP, "put into a lane that nobody reads", NULL);
    CHECK(record->number == ledger->arrived, "a record twice, or one is missing", NULL);
    CHECK(link->peer == NOBODY || link->peer == record->link, "records of two links in one", NULL);
    CHECK(link->peer != NOBODY || record->number == 0, "a link begins in the middle", NULL);
    CHECK(!ledger->ended || record->number < ledger->seen, "seen, though it was said not to be",
          NULL);
    link->peer = record->link;
    ledger->arrived++;
    world.arrived++;
    link->unread += record->next - record->pos;
    link->unread_sizes[link->unread_records++ % RECORDS] = record->next - record->pos;
}

void link_read(struct link *link)
{
    if (link->read_records != link->unread_records) {
        link->unread -= link->unread_sizes[link->read_records++ % RECORDS];
    }
}

const struct record *link_record(const struct link *link, uint64_t pos)
{
    const uint32_t written = world.ledgers[link->id].written;
    for (uint32_t i = written; i-- > 0 && written - i <= RECORDS;) {
        const struct record *record = &link->lane[i % RECORDS];
        if (record->pos == pos) {
            return record;
        }
    }
    return NULL;
}

/** Records that end at or before a position. */
uint32_t link_before(const struct link *link, uint64_t pos)
{
    uint32_t count = world.ledgers[link->id].written;
    while (count > 0 && rbi_stream_behind(link->lane[(count - 1) % RECORDS].next, pos)) {
        count--;
        if (world.ledgers[link->id].written - count >= RECORDS) {
            break;
        }
    }
    return count;
}

void link_release(struct link *link, uint64_t acked)
{
    const struct ledger *ledger = &world.ledgers[link->id];
    CHECK(!rbi_stream_behind(link->released, acked), "released backwards", NULL);
    const uint32_t count = link_before(link, acked);
    CHECK(count == 0 || link->lane[(count - 1) % RECORDS].next == acked || acked == link->released,
          "acknowledged in the middle of a record", NULL);
    CHECK(count <= ledger->arrived, "acknowledged what has not arrived", NULL);
    link->released = acked;
}

void link_end(struct host *host, struct tunnel *tunnel, uint64_t seen)
{
    struct link *link = &host->links[tunnel->link];
    struct ledger *ledger = &world.ledgers[link->id];
    CHECK(!ledger->ended, "a link ends twice", tunnel);
    ledger->ended = true;
    ledger->acked = link_before(link, tunnel->stream.tx.acked);
    ledger->seen = link_before(link, seen);
    if (host->link == tunnel->link) {
        host->link = NOBODY;
    }
    link->state = LINK_NONE;
}

void ledgers_check(void)
{
    for (uint32_t i = 0; i < world.ledger_count; i++) {
        const struct ledger *ledger = &world.ledgers[i];
        CHECK(ledger->arrived <= ledger->written, "arrived and not written", NULL);
        if (ledger->ended) {
            CHECK(ledger->acked <= ledger->arrived, "acknowledged and not arrived", NULL);
            CHECK(ledger->arrived <= ledger->seen, "arrived and said not to be seen", NULL);
        }
    }
}
