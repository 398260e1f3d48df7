/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send: standard input to a receiver, whole or by lines. Lines go out in bursts as large
 * as a read, so that the receiver is woken once a burst.
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEND_BLOCK     ((size_t)1 << 20)
#define SEND_LINE_MAX  ((size_t)16 << 20)
#define SEND_WHOLE_MAX ((size_t)1 << 30)
/* As long as it takes: a receiver that dies meanwhile ends the wait. */
#define SEND_DRAIN_MS UINT32_C(86400000)

struct sender {
    struct rbi_ctl_session session;
    struct ringbus_message_options options; /* of each message */
    bool with;                              /* they say more than a key */
    uint64_t messages;
    uint64_t bytes;
};

static int refused(struct sender *sender, int error)
{
    char what[64];
    snprintf(what, sizeof what, "after %" PRIu64 " messages", sender->messages);
    return rbi_ctl_fail_bus(sender->session.args, error, what, ringbus_errmsg(sender->session.bus));
}

/* The receiver is gone. Another of its cluster may do; an instance is itself only. */
static int receiver_gone(struct sender *sender, int error)
{
    if (sender->session.to.instance != RINGBUS_ANY) {
        return refused(sender, error);
    }
    sender->session.ready = 0;
    return rbi_ctl_session_wait_ready(&sender->session);
}

/* It passes by itself: a limit, or the owner of the key is restarted. Within the time given. */
static int try_later(struct sender *sender, int error, uint64_t *since_ns)
{
    const uint64_t now_ns = rbi_ctl_now_ns();
    *since_ns = *since_ns != 0 ? *since_ns : now_ns;
    if (now_ns - *since_ns >= (uint64_t)sender->session.args->timeout_ms * 1000000) {
        return refused(sender, error);
    }
    return rbi_ctl_session_step(&sender->session, 10);
}

static int try_one(struct sender *sender, const void *data, size_t size, unsigned flags)
{
    struct rbi_ctl_session *session = &sender->session;
    if (RBI_LIKELY(!sender->with)) {
        return ringbus_send(session->bus, &session->to, sender->options.key, data, size,
                            flags | sender->options.flags);
    }
    const struct ringbus_part part = {.data = data, .size = size};
    struct ringbus_message_options options = sender->options;
    options.flags |= flags;
    return ringbus_send_with(session->bus, &session->to, &part, 1, &options);
}

/* Sends one message, waiting for room as long as it takes. @return exit code */
static int send_one(struct sender *sender, const void *data, size_t size, unsigned flags)
{
    uint64_t since_ns = 0;
    for (;;) {
        int r = try_one(sender, data, size, flags);
        if (RBI_LIKELY(r >= 0)) { /* 0: it goes when a limit lets it pass */
            sender->messages++;
            sender->bytes += size;
            return RBI_CTL_OK;
        }
        if (rbi_ctl_stopping()) {
            return rbi_ctl_fail(sender->session.args, RBI_CTL_FAILED,
                                "interrupted after %" PRIu64 " messages", sender->messages);
        }
        if (r == RINGBUS_E_FULL) {
            r = rbi_ctl_session_step(&sender->session, 1000);
        } else if (r == RINGBUS_E_NO_CHUNK) {
            r = rbi_ctl_session_step(&sender->session, 10); /* returned chunks ring no bell */
        } else if (r == RINGBUS_E_NOT_READY || r == RINGBUS_E_NO_INSTANCE ||
                   r == RINGBUS_E_PEER_GONE || r == RINGBUS_E_DRAINING) {
            r = receiver_gone(sender, r);
        } else if (r == RINGBUS_E_RESTARTING || r == RINGBUS_E_LIMITED) {
            r = try_later(sender, r, &since_ns);
        } else {
            r = refused(sender, r < 0 ? r : RINGBUS_E_INTERNAL);
        }
        if (r != RBI_CTL_OK) {
            return r;
        }
    }
}

/* Sends the lines of bytes[0, size), which ends with a newline. */
static int send_lines(struct sender *sender, const unsigned char *bytes, size_t size)
{
    const unsigned char *end = bytes + size;
    while (bytes < end) {
        const unsigned char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        unsigned flags = newline + 1 < end ? RINGBUS_MORE : 0;
        int r = send_one(sender, bytes, (size_t)(newline - bytes), flags);
        if (r != RBI_CTL_OK) {
            return r;
        }
        bytes = newline + 1;
    }
    return RBI_CTL_OK;
}

struct block {
    unsigned char *bytes; /* owned */
    size_t room;
    size_t used; /* the beginning of a line that has not ended yet */
};

/* Makes room for more of a long line. */
static int block_grow(const struct sender *sender, struct block *block)
{
    size_t max = ringbus_size_max(sender->session.bus);
    if (block->used < block->room) {
        return RBI_CTL_OK;
    }
    if (block->used > max) {
        return rbi_ctl_fail(sender->session.args, RBI_CTL_FAILED,
                            "line %" PRIu64 " is longer than %zu bytes", sender->messages + 1, max);
    }
    unsigned char *larger = realloc(block->bytes, block->room * 2);
    if (larger == NULL) {
        return rbi_ctl_fail(sender->session.args, RBI_CTL_FAILED, "not enough memory");
    }
    block->bytes = larger;
    block->room *= 2;
    return RBI_CTL_OK;
}

/* Reads once and sends the lines that are whole. @p end is set at the end of the input. */
static int block_step(struct sender *sender, struct block *block, bool *end)
{
    ssize_t got = read(STDIN_FILENO, block->bytes + block->used, block->room - block->used);
    if (got < 0) {
        if (errno != EINTR) {
            return rbi_ctl_fail(sender->session.args, RBI_CTL_FAILED, "standard input: %s",
                                strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
        }
        return rbi_ctl_stopping()
                   ? rbi_ctl_fail(sender->session.args, RBI_CTL_FAILED, "interrupted")
                   : RBI_CTL_OK;
    }
    if (got == 0) {
        *end = true;
        return block->used > 0 ? send_one(sender, block->bytes, block->used, 0) : RBI_CTL_OK;
    }
    size_t total = block->used + (size_t)got;
    const unsigned char *last = memrchr(block->bytes + block->used, '\n', (size_t)got);
    size_t whole = last != NULL ? (size_t)(last + 1 - block->bytes) : 0;
    int r = send_lines(sender, block->bytes, whole);
    if (r != RBI_CTL_OK) {
        return r;
    }
    memmove(block->bytes, block->bytes + whole, total - whole);
    block->used = total - whole;
    return block_grow(sender, block);
}

/*
 * Waits for input. Meanwhile the endpoint goes on answering its peers, or it would look
 * dead to them.
 */
static int input_wait(struct sender *sender)
{
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    for (;;) {
        int r = poll(fds, 2, fds[1].fd < 0 ? 0 : 1000);
        if (r > 0 && fds[0].revents != 0) {
            return RBI_CTL_OK;
        }
        if (rbi_ctl_stopping()) {
            return rbi_ctl_fail(sender->session.args, RBI_CTL_FAILED, "interrupted");
        }
        r = rbi_ctl_session_step(&sender->session, 0);
        if (r != RBI_CTL_OK) {
            return r;
        }
        fds[1].fd = ringbus_fd(sender->session.bus);
    }
}

static int send_all_lines(struct sender *sender)
{
    struct block block = {.bytes = malloc(SEND_BLOCK), .room = SEND_BLOCK};
    bool end = false;
    int r = RBI_CTL_OK;
    if (block.bytes == NULL) {
        return rbi_ctl_fail(sender->session.args, RBI_CTL_FAILED, "not enough memory");
    }
    while (r == RBI_CTL_OK && !end) {
        r = input_wait(sender);
        if (r == RBI_CTL_OK) {
            r = block_step(sender, &block, &end);
        }
    }
    free(block.bytes);
    return r;
}

static int report(const struct sender *sender, int code, uint64_t elapsed_ns)
{
    const struct rbi_ctl_session *session = &sender->session;
    if (session->args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "to", session->to_path);
        rbi_ctl_json_u64(&json, "messages", sender->messages);
        rbi_ctl_json_u64(&json, "bytes", sender->bytes);
        rbi_ctl_json_u64(&json, "undelivered", session->undelivered);
        rbi_ctl_json_real(&json, "seconds", (double)elapsed_ns / 1e9);
        rbi_ctl_json_end(&json);
    }
    if (session->undelivered == 0) {
        return code;
    }
    return rbi_ctl_fail(session->args, RBI_CTL_FAILED,
                        "%" PRIu64 " of %" PRIu64 " messages were not consumed (receiver: %s)",
                        session->undelivered, sender->messages,
                        rbi_ctl_reason_name(session->lost_reason));
}

static int send_to(const struct rbi_ctl_args *args,
                   struct ringbus_options *options,
                   const unsigned char *whole,
                   size_t size)
{
    struct sender sender = {
        .with = (args->given & (RBI_CTL_TAG | RBI_CTL_METHOD | RBI_CTL_LABELS)) != 0};
    rbi_ctl_message_of(args, &sender.options);
    int r = rbi_ctl_session_open(&sender.session, args, options);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_session_target(&sender.session, args->operands[0]);
    uint64_t begin_ns = rbi_ctl_now_ns();
    if (r == RBI_CTL_OK) {
        r = whole != NULL ? send_one(&sender, whole, size, 0) : send_all_lines(&sender);
    }
    bool drain = sender.messages > 0 && !rbi_ctl_stopping();
    int closed = rbi_ctl_session_close(&sender.session, drain ? SEND_DRAIN_MS : 0);
    if (sender.messages == 0) {
        return r;
    }
    return report(&sender, r != RBI_CTL_OK ? r : closed, rbi_ctl_now_ns() - begin_ns);
}

int rbi_ctl_send(const struct rbi_ctl_args *args)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.lane_bytes = 1U << 20;
    if ((args->given & RBI_CTL_LINES) != 0) {
        rbi_ctl_pool_for(&options, SEND_LINE_MAX);
        return send_to(args, &options, NULL, 0);
    }
    unsigned char *whole = NULL;
    size_t size = 0;
    int r = rbi_ctl_input_read(args, SEND_WHOLE_MAX, &whole, &size);
    if (r == RBI_CTL_OK) {
        rbi_ctl_pool_for(&options, size);
        r = send_to(args, &options, whole, size);
        free(whole);
    }
    return r;
}
