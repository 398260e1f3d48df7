/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers requests in the three ways there are: at once, with a failure, and later.
 * Text comes back in capitals; empty text is a failure; text that begins with "slow" is
 * answered only after the callback, with a copy of its reply_to.
 */
#include <ctype.h>
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX  256
#define LATER_MAX 16
#define LEAVE_S   5

struct later {
    struct ringbus_reply_to to;
    char text[TEXT_MAX];
    size_t size;
};

struct server {
    struct later later[LATER_MAX];
    unsigned later_count;
};

static struct ringbus *bus;
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
    ringbus_wake(bus);
}

static void capitals(char *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        out[i] = (char)toupper((unsigned char)text[i]);
    }
}

/* The message is lent for its callback only; the copy of reply_to may stay. */
static int note_later(struct server *server, const struct ringbus_message *message)
{
    struct later *later = &server->later[server->later_count++];
    later->to = message->reply_to;
    later->size = message->size;
    capitals(later->text, message->data, message->size);
    return 1;
}

static void on_message(struct ringbus *from, const struct ringbus_message *message, void *user)
{
    struct server *server = user;
    const char *text = message->data;
    int r = 1;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    if (message->size == 0 || message->size > TEXT_MAX) {
        r = ringbus_reply_error(from, &message->reply_to, "1 to 256 bytes, please");
    } else if (message->size >= 4 && memcmp(text, "slow", 4) == 0) {
        if (server->later_count == LATER_MAX) {
            r = ringbus_reply_error(from, &message->reply_to, "too much to do");
        } else {
            r = note_later(server, message);
        }
    } else {
        char answer[TEXT_MAX];
        capitals(answer, text, message->size);
        r = ringbus_reply(from, &message->reply_to, answer, message->size, 0);
        if (r == RINGBUS_E_FULL && server->later_count < LATER_MAX) {
            r = note_later(server, message); /* the client has not read its answers yet */
        }
    }
    if (r < 0) {
        fprintf(stderr, "server: no answer to %s: %s\n", message->from_path, ringbus_strerror(r));
    }
}

static void answer_later_ones(struct server *server)
{
    unsigned done = 0;
    for (; done < server->later_count; done++) {
        const struct later *later = &server->later[done];
        int r = ringbus_reply(bus, &later->to, later->text, later->size, 0);
        if (r == RINGBUS_E_FULL) {
            break; /* ringbus_wait() returns when there is room */
        }
        if (r < 0) {
            fprintf(stderr, "server: no late answer: %s\n", ringbus_strerror(r));
        }
    }
    server->later_count -= done;
    memmove(server->later, server->later + done, server->later_count * sizeof server->later[0]);
}

/*
 * Nothing new comes any more, but what was asked before is still answered, the late ones
 * among them: only the server knows of those. A client that hangs must not keep it for ever.
 */
static void leave(struct server *server)
{
    time_t deadline = time(NULL) + LEAVE_S;
    ringbus_drain(bus);
    while ((ringbus_drained(bus) == 0 || server->later_count > 0) && time(NULL) <= deadline &&
           ringbus_poll(bus, 100) >= 0) {
        answer_later_ones(server);
        ringbus_wait(bus, 100);
    }
}

int main(void)
{
    static struct server server;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.path = "/Demo/cn/pc/w1/g1/Capitals/1";
    options.on_message = on_message;
    options.user = &server;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "server: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop && ringbus_wait(bus, -1) >= 0 && ringbus_poll(bus, 100) >= 0) {
        answer_later_ones(&server);
    }
    leave(&server);
    return ringbus_close(bus, 1000) == 0 ? 0 : 1;
}
