/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/contenders/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM ((1U << 20) + (64U << 10))

struct stream_end {
    int in;
    int out;
    size_t start; /* of the bytes not yet handed out */
    size_t fill;
    unsigned char *bytes;
};

int stream_open(struct bench_end *end, int in, int out)
{
    struct stream_end *s = calloc(1, sizeof *s);
    end->state = s;
    if (s == NULL) {
        return -1;
    }
    s->in = in;
    s->out = out;
    s->bytes = malloc(ROOM);
    if (!end->sleep) {
        (void)fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
        (void)fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    }
    return s->bytes == NULL ? -1 : 0;
}

void stream_close(struct bench_end *end)
{
    struct stream_end *s = end->state;
    if (s != NULL) {
        free(s->bytes);
        free(s);
    }
}

/* The rest of a message that was begun has to follow. */
static int send_rest(const struct stream_end *s, const unsigned char *data, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(s->out, data, size);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return -1;
        }
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return 1;
}

int stream_send(struct bench_end *end, const unsigned char *data, size_t size)
{
    const struct stream_end *s = end->state;
    uint64_t length = size;
    const struct iovec parts[2] = {{&length, sizeof length}, {(void *)(uintptr_t)data, size}};
    const ssize_t n = writev(s->out, parts, 2);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    size_t sent = (size_t)n;
    if (sent < sizeof length) {
        if (send_rest(s, (const unsigned char *)&length + sent, sizeof length - sent) != 1) {
            return -1;
        }
        sent = sizeof length;
    }
    return send_rest(s, data + (sent - sizeof length), size - (sent - sizeof length));
}

static unsigned hand_out(struct bench_end *end, struct stream_end *s, unsigned max)
{
    unsigned n = 0;
    for (uint64_t length = 0; n < max && s->fill - s->start >= sizeof length; n++) {
        memcpy(&length, s->bytes + s->start, sizeof length);
        if (length > ROOM - sizeof length || s->fill - s->start - sizeof length < length) {
            break;
        }
        const unsigned char *data = s->bytes + s->start + sizeof length;
        bench_take(end, data, (size_t)length);
        while (end->echo && stream_send(end, data, (size_t)length) == 0) {
        }
        s->start += sizeof length + (size_t)length;
    }
    return n;
}

int stream_poll(struct bench_end *end, unsigned max)
{
    struct stream_end *s = end->state;
    unsigned n = hand_out(end, s, max);
    if (n > 0) {
        return (int)n;
    }
    memmove(s->bytes, s->bytes + s->start, s->fill - s->start);
    s->fill -= s->start;
    s->start = 0;
    const ssize_t got = read(s->in, s->bytes + s->fill, ROOM - s->fill);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    }
    s->fill += (size_t)got;
    return (int)hand_out(end, s, max);
}
