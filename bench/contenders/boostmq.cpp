/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/boostmq.cpp - boost::interprocess::message_queue, removed from /dev/shm as
 * soon as both sides have opened it.
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
constexpr std::size_t messages = 64;

struct Boost {
    ipc::message_queue *out;
    ipc::message_queue *in;
    unsigned char bytes[message_max];
};

void queue_name(const bench_place *place, int way, char *name, std::size_t size)
{
    (void)std::snprintf(name, size, "ringbus-bench-%d-%u-%d", static_cast<int>(getppid()),
                        place->number, way);
}

int boost_open(bench_end *end)
{
    char out[64];
    char in[64];
    queue_name(end->place, end->side, out, sizeof out);
    queue_name(end->place, !end->side, in, sizeof in);
    auto *b = new Boost{};
    end->state = b;
    try {
        ipc::message_queue::remove(out);
        b->out = new ipc::message_queue(ipc::create_only, out, messages, message_max);
    } catch (const std::exception &e) {
        (void)std::fprintf(stderr, "boost: %s\n", e.what());
        return -1;
    }
    for (int i = 0; i < 5000 && b->in == nullptr; i++) {
        try {
            b->in = new ipc::message_queue(ipc::open_only, in);
        } catch (const std::exception &) {
            (void)usleep(1000);
        }
    }
    /* Ours is removed by the peer, which has opened it by then. */
    ipc::message_queue::remove(in);
    return b->in == nullptr ? -1 : 0;
}

void boost_close(bench_end *end)
{
    auto *b = static_cast<Boost *>(end->state);
    delete b->in;
    delete b->out;
    delete b;
}

BENCH_INLINE int boost_send(bench_end *end, const unsigned char *data, std::size_t size)
{
    auto *b = static_cast<Boost *>(end->state);
    if (end->sleep) {
        b->out->send(data, size, 0);
        return 1;
    }
    return b->out->try_send(data, size, 0) ? 1 : 0;
}

BENCH_INLINE int boost_poll(bench_end *end, unsigned max)
{
    auto *b = static_cast<Boost *>(end->state);
    unsigned n = 0;
    while (n < max) {
        ipc::message_queue::size_type size = 0;
        unsigned priority = 0;
        if (end->sleep && n == 0) {
            b->in->receive(b->bytes, sizeof b->bytes, size, priority);
        } else if (!b->in->try_receive(b->bytes, sizeof b->bytes, size, priority)) {
            break;
        }
        bench_take(end, b->bytes, size);
        while (end->echo && boost_send(end, b->bytes, size) == 0) {
        }
        n++;
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
    "boost::interprocess::message_queue, 64 messages; try_ calls when busy",
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
