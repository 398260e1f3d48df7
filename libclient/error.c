/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/error.c - error codes, their texts, and the sentence of the last failure. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ringbus_open() has no handle yet to keep its sentence in. */
static _Thread_local char open_error[512];

void rbi_open_error_set(const char *text)
{
    (void)snprintf(open_error, sizeof open_error, "%s", text);
}

struct error_entry {
    int value;
    enum ringbus_error_kind kind;
    const char *name;
    const char *text;
};

static const struct error_entry *find(int error)
{
    static const struct error_entry entries[] = {
        {RINGBUS_OK, RINGBUS_ERROR_NONE, "RINGBUS_OK", "no error"},
#define RBI_ERROR_ENTRY(name, value, kind, text)                                                   \
    {value, RINGBUS_ERROR_##kind, "RINGBUS_E_" #name, text},
        RINGBUS_ERRORS(RBI_ERROR_ENTRY)
#undef RBI_ERROR_ENTRY
    };
    static const struct error_entry unknown = {1, RINGBUS_ERROR_NONE, "RINGBUS_E_?",
                                               "unknown error"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(entries); i++) {
        if (entries[i].value == error) {
            return &entries[i];
        }
    }
    return error > 0 ? &entries[0] : &unknown; /* counts are no errors */
}

const char *ringbus_strerror(int error)
{
    return find(error)->text;
}

const char *ringbus_error_name(int error)
{
    return find(error)->name;
}

enum ringbus_error_kind ringbus_error_kind(int error)
{
    return find(error)->kind;
}

int rbi_fail(struct ringbus *bus, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(bus->error.text, sizeof bus->error.text, format, args);
    va_end(args);
    bus->error.code = code;
    bus->error.formatted = true;
    return code;
}

int rbi_fail_fast(struct ringbus *bus, int code, const struct rbi_pidf *peer, uint64_t value)
{
    bus->error.code = code;
    bus->error.formatted = false;
    bus->error.value = value;
    if (peer != NULL) {
        bus->error.peer = *peer;
    } else {
        memset(&bus->error.peer, 0, sizeof bus->error.peer);
    }
    return code;
}

int rbi_fail_errno(struct ringbus *bus, int negative_errno, const char *what)
{
    char reason[128];
    const int number = -negative_errno;
    int code = RINGBUS_E_SYSTEM;
    if (number == ENOMEM || number == ENOSPC) {
        code = RINGBUS_E_NO_MEMORY;
    } else if (number == EMFILE || number == ENFILE) {
        code = RINGBUS_E_NO_FDS;
    }
    /* The GNU form: returns the text, which need not be in the buffer. */
    return rbi_fail(bus, code, "%s: %s", what, strerror_r(number, reason, sizeof reason));
}

/* Sentences of the hot path's failures, made only when somebody asks. */
static void format_fast(struct ringbus *bus)
{
    struct rbi_bus_error *error = &bus->error;
    char peer[RBI_PATH_MAX + 1];
    const unsigned long long value = (unsigned long long)error->value;
    const struct ringbus_addr addr = rbi_addr(&error->peer);

    if (ringbus_format(bus, &addr, peer, sizeof peer) < 0) {
        peer[0] = '\0';
    }
    switch (error->code) {
    case RINGBUS_E_FULL:
        (void)snprintf(error->text, sizeof error->text,
                       "lane to %s is full (%u bytes, %u to other hosts): wait and retry, or open "
                       "with larger lane_bytes",
                       peer, bus->lane_bytes, bus->far_lane_bytes);
        break;
    case RINGBUS_E_NO_CHUNK:
        (void)snprintf(error->text, sizeof error->text,
                       "no chunk of %llu bytes is free (%u chunks out): wait for returns, or open "
                       "with a larger pool",
                       value, rbi_pool_used(&bus->pool));
        break;
    case RINGBUS_E_TOO_BIG:
        (void)snprintf(error->text, sizeof error->text,
                       "%llu bytes are more than the limit of %zu (largest chunk of the pool)",
                       value, ringbus_size_max(bus));
        break;
    case RINGBUS_E_LIMITED:
        if (bus->refusal.inflight != 0) {
            (void)snprintf(error->text, sizeof error->text,
                           "%llu requests to the cluster of %s wait for their reply, and "
                           "overload.max_inflight allows %u: go on when one has ended",
                           value, peer, bus->refusal.inflight);
            break;
        }
        (void)snprintf(error->text, sizeof error->text,
                       "limit '%s' on what is sent to %s is reached: retry after %llu us",
                       bus->refusal.id, peer, value);
        break;
    default: {
        const struct rbi_cluster *cluster =
            error->code == RINGBUS_E_DENIED ? rbi_cluster_find(bus, error->peer.cluster) : NULL;
        const char *why = cluster != NULL ? rbi_rights_why(cluster, error->peer.instance) : "";
        (void)snprintf(error->text, sizeof error->text, "%s%s%s%s%s", peer,
                       peer[0] != '\0' ? ": " : "", ringbus_strerror(error->code),
                       why[0] != '\0' ? ": " : "", why);
        break;
    }
    }
    error->formatted = true;
}

const char *ringbus_errmsg(const struct ringbus *bus)
{
    if (bus == NULL) {
        return open_error;
    }
    if (rbi_load_rlx(bus->guard) != RBI_GUARD_ALIVE) {
        return ringbus_strerror(RINGBUS_E_WRONG_PROCESS);
    }
    if (bus->error.code == 0) {
        return "";
    }
    if (!bus->error.formatted) {
        format_fast(rbi_mutable(bus));
    }
    return bus->error.text;
}

const char *ringbus_version(void)
{
#define RBI_STRING_(x) #x
#define RBI_STRING(x)  RBI_STRING_(x)
    return RBI_STRING(RINGBUS_VERSION_MAJOR) "." RBI_STRING(RINGBUS_VERSION_MINOR) "." RBI_STRING(
        RINGBUS_VERSION_PATCH);
}
