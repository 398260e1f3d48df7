/* SPDX-License-Identifier: Apache-2.0 */
/* bench/contenders/nng.c - nng's pair protocol over ipc, blocking, buffers of 128 messages. */
#include "bench/loops.h"

#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct nng_end {
    nng_socket socket;
};

static int side_open(struct bench_end *end)
{
    char address[160];
    struct nng_end *n = calloc(1, sizeof *n);
    end->state = n;
    if (n == NULL || nng_pair0_open(&n->socket) != 0) {
        return -1;
    }
    (void)nng_socket_set_int(n->socket, NNG_OPT_RECVBUF, 128);
    (void)nng_socket_set_int(n->socket, NNG_OPT_SENDBUF, 128);
    (void)nng_socket_set_size(n->socket, NNG_OPT_RECVMAXSZ, 0);
    (void)snprintf(address, sizeof address, "ipc://%s/nng-%u", end->place->directory,
                   end->place->number);
    if (end->side == 1) {
        return nng_listen(n->socket, address, NULL, 0) == 0 ? 0 : -1;
    }
    for (int i = 0; i < 5000; i++) {
        if (nng_dial(n->socket, address, NULL, 0) == 0) {
            return 0;
        }
        (void)usleep(1000);
    }
    return -1;
}

static void side_close(struct bench_end *end)
{
    struct nng_end *n = end->state;
    if (n != NULL) {
        (void)nng_close(n->socket);
        free(n);
    }
}

static int send_nng(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct nng_end *n = end->state;
    nng_msg *message = NULL;
    if (nng_msg_alloc(&message, size) != 0) {
        return -1;
    }
    memcpy(nng_msg_body(message), data, size);
    if (nng_sendmsg(n->socket, message, 0) != 0) {
        nng_msg_free(message);
        return -1;
    }
    return 1;
}

static int poll_nng(struct bench_end *end, unsigned max)
{
    struct nng_end *s = end->state;
    unsigned n = 0;
    while (n < max) {
        nng_msg *message = NULL;
        const int r = nng_recvmsg(s->socket, &message, n > 0 ? NNG_FLAG_NONBLOCK : 0);
        if (r != 0) {
            return n > 0 && r == NNG_EAGAIN ? (int)n : -1;
        }
        bench_take(end, nng_msg_body(message), nng_msg_len(message));
        n++;
        if (!end->echo) {
            nng_msg_free(message);
        } else if (nng_sendmsg(s->socket, message, 0) != 0) {
            nng_msg_free(message);
            return -1;
        }
    }
    return (int)n;
}
BENCH_LOOPS(pair0, send_nng, poll_nng)

const struct bench_contender bench_nng = {
    .name = "nng-pair",
    .package = "libnng-dev",
    .text = "nng pair over ipc, messages not copied by the library, blocking",
    .abilities = BENCH_CAN_SLEEP | BENCH_TRIPS | BENCH_STREAM,
    .size_max = 1U << 20,
    .open = side_open,
    .close = side_close,
    .trips = pair0_trips,
    .stream = pair0_stream,
    .put = pair0_put_loop,
    .take = pair0_take_loop,
};
