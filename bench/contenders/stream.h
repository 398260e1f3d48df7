/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_STREAM_H
#define RINGBUS_BENCH_STREAM_H
/*
 * bench/contenders/stream.h - messages over descriptors that carry bytes (pipe, Unix stream,
 * TCP): eight bytes of length in front, one system call a message out, as many messages as
 * there are with one system call in.
 */
#include "bench/loops.h"

/** Descriptors of a side; in sleep mode they block. 0; -1. */
int stream_open(struct bench_end *end, int in, int out);
void stream_close(struct bench_end *end);
int stream_send(struct bench_end *end, const unsigned char *data, size_t size);
int stream_poll(struct bench_end *end, unsigned max);

/** Two connected TCP sockets without Nagle's delay into the place's descriptors. 0; -1. */
int stream_tcp_setup(struct bench_place *place);

#endif
