/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/boostmq.cpp - boost::interprocess::message_queue, removed from /dev/shm as
 * soon as both sides have opened it. A queue has slots of its largest message, and slots far
 * apart are cache misses, so there are three for three ranges of sizes.
 */
#include "bench/bench.h"
#include "bench/loops.h"

#include <boost/interprocess/ipc/message_queue.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>

namespace ipc = boost::interprocess;

namespace
{

constexpr std::size_t message_max = 64 << 10;
constexpr int ranges = 3;
constexpr std::size_t largest[ranges] = {256, 8 << 10, message_max};
constexpr std::size_t messages[ranges] = {1024, 128, 32};

struct Boost {
    ipc::message_queue *out[ranges];
    ipc::message_queue *in[ranges];
    unsigned char bytes[message_max];
};

BENCH_INLINE int range_of(std::size_t size)
{
    return size <= largest[0] ? 0 : size <= largest[1] ? 1 : 2;
}

void queue_name(const bench_place *place, int way, int range, char *name, std::size_t size)
{
    (void)std::snprintf(name, size, "ringbus-bench-%d-%u-%d-%d", static_cast<int>(getppid()),
                        place->number, way, range);
}

ipc::message_queue *make(const char *name, int range)
{
    try {
        ipc::message_queue::remove(name);
        return new ipc::message_queue(ipc::create_only, name, messages[range], largest[range]);
    } catch (const std::exception &e) {
        (void)std::fprintf(stderr, "boost: %s\n", e.what());
        return nullptr;
    }
}

/* Waits until the other side has made it; its name goes, the queue stays. */
ipc::message_queue *join(const char *name)
{
    ipc::message_queue *queue = nullptr;
    for (int i = 0; i < 5000 && queue == nullptr; i++) {
        try {
            queue = new ipc::message_queue(ipc::open_only, name);
        } catch (const std::exception &) {
            (void)usleep(1000);
        }
    }
    ipc::message_queue::remove(name);
    return queue;
}

int boost_open(bench_end *end)
{
    auto *b = new Boost{};
    bool good = true;
    char name[64];
    end->state = b;
    for (int i = 0; i < ranges; i++) {
        queue_name(end->place, end->side, i, name, sizeof name);
        b->out[i] = make(name, i);
        good = good && b->out[i] != nullptr;
    }
    for (int i = 0; i < ranges; i++) {
        queue_name(end->place, !end->side, i, name, sizeof name);
        b->in[i] = good ? join(name) : nullptr;
        good = good && b->in[i] != nullptr;
    }
    return good ? 0 : -1;
}

void boost_close(bench_end *end)
{
    auto *b = static_cast<Boost *>(end->state);
    for (int i = 0; i < ranges; i++) {
        delete b->in[i];
        delete b->out[i];
    }
    delete b;
}

BENCH_INLINE int boost_send(bench_end *end, const unsigned char *data, std::size_t size)
{
    auto *out = static_cast<Boost *>(end->state)->out[range_of(size)];
    if (end->sleep) {
        out->send(data, size, 0);
        return 1;
    }
    return out->try_send(data, size, 0) ? 1 : 0;
}

BENCH_INLINE int boost_poll(bench_end *end, unsigned max)
{
    auto *b = static_cast<Boost *>(end->state);
    const int range = range_of(end->size);
    auto *in = b->in[range];
    unsigned n = 0;
    while (n < max) {
        ipc::message_queue::size_type size = 0;
        unsigned priority = 0;
        if (end->sleep && n == 0) {
            in->receive(b->bytes, sizeof b->bytes, size, priority);
        } else if (!in->try_receive(b->bytes, sizeof b->bytes, size, priority)) {
            break;
        }
        bench_take(end, b->bytes, size);
        while (end->echo && boost_send(end, b->bytes, size) == 0) {
        }
        n++;
    }
    /* Who finds nothing leaves the queue's mutex to the sender, which copies under it. */
    for (std::size_t i = 0; n == 0 && i < 32 + end->size / 256; i++) {
        bench_pause();
    }
    return static_cast<int>(n);
}

BENCH_LOOPS(boost, boost_send, boost_poll)

} // namespace

extern "C" {
extern const struct bench_contender bench_boostmq;
const struct bench_contender bench_boostmq = {
    "boost-mq",
    "libboost-dev",
    "boost::interprocess::message_queue, one for each of three ranges of sizes; try_ calls when "
    "busy",
    BENCH_CAN_BUSY | BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,
    message_max,
    nullptr,
    boost_open,
    boost_close,
    nullptr,
    boost_trips,
    boost_stream,
    boost_put_loop,
    boost_take_loop,
};
}
