/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/open.c - the start of a handle: options, memory, registration. */
#include "bus/label.h"
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define LANE_DEFAULT 65536U
/* A round trip to another host takes as long as thousands of messages. */
#define FAR_LANE_DEFAULT   262144U
#define INLINE_DEFAULT_MAX 8192U
#define REFS_DEFAULT       256U
#define SPIN_DEFAULT_US    50U
#define SPIN_MAX_US        1000000U
#define CONNECT_DEFAULT_MS 5000U
#define WEIGHT_DEFAULT     100U
#define WEIGHT_MAX         1000U

/* ---- options -------------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* Largest inline payload that a lane takes with every extension that we may add. */
static uint64_t inline_ceiling(uint64_t lane_bytes)
{
    return rbi_lane_body_max(lane_bytes) - RBI_RECORD_TAG - UINT64_C(8) * (RINGBUS_PARTS_MAX + 1U);
}

static int check_lane(struct ringbus *bus, const struct ringbus_options *options)
{
    bus->lane_bytes = or_default(options->lane_bytes, LANE_DEFAULT);
    if (!rbi_is_pow2(bus->lane_bytes) || bus->lane_bytes < RBI_LANE_CAPACITY_MIN ||
        bus->lane_bytes > RBI_LANE_CAPACITY_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "lane_bytes is %u, expected a power of two from 4096 to 67108864",
                        options->lane_bytes);
    }
    bus->far_lane_bytes = or_default(options->lane_bytes, FAR_LANE_DEFAULT);
    const uint64_t most = inline_ceiling(bus->lane_bytes);
    bus->inline_max = or_default(options->inline_max,
                                 (uint32_t)rbi_min_u64(bus->lane_bytes / 8, INLINE_DEFAULT_MAX));
    if (bus->inline_max > most) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "inline_max is %u, at most %llu fit a lane of %u bytes",
                        options->inline_max, (unsigned long long)most, bus->lane_bytes);
    }
    bus->refs_per_link = or_default(options->refs_per_link, REFS_DEFAULT);
    if (bus->refs_per_link < RBI_RETURNS_MIN || bus->refs_per_link > RBI_RETURNS_MAX ||
        !rbi_is_pow2(bus->refs_per_link)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "refs_per_link is %u, expected a power of two from %u to %u",
                        options->refs_per_link, RBI_RETURNS_MIN, RBI_RETURNS_MAX);
    }
    return 0;
}

static int
plan_pool(struct ringbus *bus, const struct ringbus_options *options, struct rbi_pool_plan *plan)
{
    static const struct ringbus_pool_class defaults[] = {{16384, 16}, {131072, 4}, {1048576, 2}};
    const struct ringbus_pool_class *classes = options->pool;
    unsigned most = RINGBUS_POOL_CLASSES_MAX;
    if (classes[0].count == 0) {
        classes = defaults;
        most = RBI_ARRAY_SIZE(defaults);
    }
    memset(plan, 0, sizeof *plan);
    while (plan->class_count < most && classes[plan->class_count].count != 0) {
        plan->classes[plan->class_count].chunk_bytes =
            rbi_align_up(classes[plan->class_count].chunk_bytes, RBI_LINE);
        plan->classes[plan->class_count].count = classes[plan->class_count].count;
        plan->class_count++;
    }
    if (rbi_pool_plan_size(plan) == 0) {
        return rbi_fail(
            bus, RINGBUS_E_ARGUMENT,
            "pool: chunks of 64 to 2^30 bytes, ascending, 1 to 65536 of them, at most 4 GiB");
    }
    return 0;
}

static int check_rest(struct ringbus *bus, const struct ringbus_options *options)
{
    bus->weight =
        options->weight == RINGBUS_WEIGHT_NONE ? 0 : or_default(options->weight, WEIGHT_DEFAULT);
    bus->spin_us = or_default(options->spin_us, SPIN_DEFAULT_US);
    if (bus->weight > WEIGHT_MAX || bus->spin_us > SPIN_MAX_US ||
        (options->mode != RINGBUS_MODE_SLEEP && options->mode != RINGBUS_MODE_BUSY)) {
        return rbi_fail(
            bus, RINGBUS_E_ARGUMENT, "weight %u (at most %u), spin_us %u (at most %u) or mode %d",
            options->weight, WEIGHT_MAX, options->spin_us, SPIN_MAX_US, (int)options->mode);
    }
    return 0;
}

static int
copy_label(struct ringbus *bus, const char *name, const char *value, size_t most, char **out)
{
    if (value == NULL) {
        return 0;
    }
    if (strnlen(value, most + 1) > most) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "%s is longer than %zu bytes", name, most);
    }
    *out = strdup(value);
    return *out != NULL ? 0 : rbi_fail_errno(bus, -ENOMEM, name);
}

/* What is not of its form would count as not given, and mix what is to be kept apart. */
static int check_labels(struct ringbus *bus)
{
    if (bus->set != NULL && !rbi_label_set_valid(bus->set)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "set \"%s\" is not \"name.area.group\" of [A-Za-z0-9_-], group or *",
                        bus->set);
    }
    if (bus->idc != NULL && !rbi_label_idc_valid(bus->idc)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "idc \"%s\" is not \"group\" or \"group/zone\"",
                        bus->idc);
    }
    if (bus->tags != NULL && !rbi_label_tags_valid(bus->tags)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "tags \"%s\" are not of [A-Za-z0-9_.*:=-] and \",\"", bus->tags);
    }
    return 0;
}

static int copy_labels(struct ringbus *bus, const struct ringbus_options *options)
{
    int r = copy_label(bus, "set", options->set, RBI_DIRECTORY_LABEL_MAX, &bus->set);
    r = r != 0 ? r : copy_label(bus, "idc", options->idc, RBI_DIRECTORY_LABEL_MAX, &bus->idc);
    r = r != 0 ? r : copy_label(bus, "tags", options->tags, RBI_DIRECTORY_LABEL_MAX, &bus->tags);
    r = r != 0 ? r : check_labels(bus);
    rbi_labels_init(bus);
    return r != 0 ? r : copy_label(bus, "token", options->token, RBI_WIRE_TEXT_MAX, &bus->token);
}

static int set_path(struct ringbus *bus, const char *path)
{
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (path == NULL) {
        return 0; /* the daemon names anonymous clients */
    }
    if (rbi_pidf_parse(path, strnlen(path, RBI_PATH_MAX + 1), &pidf, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        return rbi_fail(bus, RINGBUS_E_PATH,
                        "\"%.*s\": expected /App/Area/Platform/World/Group/Cluster/Instance%s%s",
                        (int)RBI_PATH_MAX, path, info.error != RBI_PATH_OK ? "; " : "",
                        info.error != RBI_PATH_OK ? rbi_path_error_text(info.error) : "");
    }
    (void)snprintf(bus->self_path, sizeof bus->self_path, "%s", path);
    return 0;
}

static int set_socket(struct ringbus *bus, const char *given)
{
    char standard[4096];
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is read only */
    const char *path = given != NULL ? given : getenv("RINGBUS_SOCKET");
    if (path == NULL || path[0] == '\0') {
        const char *runtime = getenv("XDG_RUNTIME_DIR"); /* NOLINT(concurrency-mt-unsafe) */
        path = "/run/ringbus/bus.sock";
        if (access(path, F_OK) != 0 && runtime != NULL && runtime[0] != '\0') {
            (void)snprintf(standard, sizeof standard, "%s/ringbus/bus.sock", runtime);
            path = standard;
        }
    }
    if (strnlen(path, RBI_SOCKET_PATH_MAX + 1) > RBI_SOCKET_PATH_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "socket path is longer than %u bytes: %.60s...",
                        RBI_SOCKET_PATH_MAX, path);
    }
    memcpy(bus->socket_path, path, strlen(path) + 1);
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int make_guard(struct ringbus *bus)
{
    void *page = mmap(NULL, RBI_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return -errno;
    }
    bus->guard_page = page;
    if (madvise(page, RBI_PAGE, MADV_WIPEONFORK) != 0) {
        return -errno;
    }
    rbi_store_rlx(page, RBI_GUARD_ALIVE);
    bus->guard = page;
    return 0;
}

static void *hs_malloc(size_t size)
{
    return malloc(size);
}

static void hs_free(void *p, size_t size, bool defer)
{
    (void)size;
    (void)defer; /* single-threaded: nobody reads the old table any more */
    free(p);
}

static unsigned long hs_hash(const void *object, unsigned long seed)
{
    const struct rbi_pidf *peer = object;
    (void)seed;
    return rbi_end_hash(peer->cluster, peer->instance);
}

static bool hs_compare(const void *a, const void *b)
{
    const struct rbi_pidf *x = a;
    const struct rbi_pidf *y = b;
    return x->cluster == y->cluster && x->instance == y->instance;
}

int rbi_address_set_init(ck_hs_t *set)
{
    static struct ck_malloc allocator = {.malloc = hs_malloc, .free = hs_free};
    return ck_hs_init(set, CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT, hs_hash, hs_compare, &allocator, 64,
                      0)
               ? 0
               : -ENOMEM;
}

static int make_memory(struct ringbus *bus, const struct rbi_pool_plan *plan)
{
    int r = rbi_pool_init(&bus->pool, plan);
    if (r == -ENOMEM) {
        return rbi_fail(bus, RINGBUS_E_NO_MEMORY,
                        "the pool needs %llu bytes, %llu are available: open with a smaller pool",
                        (unsigned long long)rbi_pool_plan_size(plan),
                        (unsigned long long)rbi_memory_available());
    }
    if (r < 0) {
        return rbi_fail_errno(bus, r, "memory of the pool");
    }
    /* Behind the pool: nothing but that asks how much memory there is. */
    r = rbi_segment_create(&bus->page_segment, "ringbus-page", RBI_SEGMENT_PAGE, RBI_PAGE, 0);
    if (r < 0) {
        return rbi_fail_errno(bus, r, "memory of the endpoint page");
    }
    bus->page = bus->page_segment.base;
    bus->page->flags =
        (bus->busy_mode ? RBI_PAGE_BUSY_POLL : 0) | (rbi_barrier_join() ? RBI_PAGE_FENCED : 0);
    bus->size_max = rbi_max_u64(rbi_pool_chunk_max(&bus->pool), bus->inline_max);
    return 0;
}

static void note_program(struct ringbus *bus)
{
    /* program_invocation_short_name is the caller's own word for itself; for people only. */
    (void)snprintf(bus->program, sizeof bus->program, "%s", program_invocation_short_name);
}

/* ---- open ------------------------------------------------------------------------------------ */

static void init_fields(struct ringbus *bus, const struct ringbus_options *options)
{
    bus->page_segment.fd = bus->directory_segment.fd = bus->pool.segment.fd = -1;
    bus->held_segment.fd = -1;
    bus->sweep_ns = RBI_NEVER;
    bus->reread_ns = RBI_NEVER;
    rbi_gate_init(&bus->gate);
    bus->epoll = bus->wake = bus->timer = -1;
    bus->control.sock = -1;
    bus->control.out_last = &bus->control.out_first;
    rbi_wire_stream_init(&bus->control.stream);
    rbi_calls_init(&bus->calls);
    bus->asks.due_ns = RBI_NEVER;
    bus->nodes.due_ns = RBI_NEVER;
    rbi_outcomes_init(&bus->outcomes);
    bus->kept.due_ns = RBI_NEVER;
    rbi_delay_init(&bus->delays);
    bus->state = RBI_ENDPOINT_READY;
    bus->next_deadline_ns = RBI_NEVER;
    bus->timer_armed_ns = RBI_NEVER;
    bus->tick_polls = 64;
    bus->tick_countdown = 1;
    bus->now_ns = rbi_now_ns();
    bus->last_epoll_ns = bus->now_ns;
    bus->on_message = options->on_message;
    bus->on_event = options->on_event;
    bus->user = options->user;
    bus->busy_mode = options->mode == RINGBUS_MODE_BUSY;
    bus->takeover = options->takeover != 0;
    bus->broker = options->broker != 0;
    if (getrandom(&bus->random, sizeof bus->random, GRND_NONBLOCK) != sizeof bus->random) {
        bus->random = bus->now_ns ^ (uint64_t)(uintptr_t)bus;
    }
    bus->life = bus->random | 1;
}

static int
prepare(struct ringbus *bus, const struct ringbus_options *options, struct rbi_pool_plan *plan)
{
    int r = check_lane(bus, options);
    r = r != 0 ? r : plan_pool(bus, options, plan);
    r = r != 0 ? r : rbi_terms_open(bus, options);
    r = r != 0 ? r : check_rest(bus, options);
    r = r != 0 ? r : copy_labels(bus, options);
    r = r != 0 ? r : set_path(bus, options->path);
    r = r != 0 ? r : set_socket(bus, options->socket);
    r = r != 0 ? r : rbi_owned_open(bus, options->slots);
    if (r != 0) {
        return r;
    }
    r = rbi_address_set_init(&bus->peers);
    r = r != 0 ? r : rbi_epoll_init(bus);
    return r < 0 ? rbi_fail_errno(bus, r, "opening a handle") : 0;
}

/*
 * Getting pages for the pool takes longer than all else. It is done between HELLO and its
 * answer, and is no part of the time that the daemon is given.
 */
static int
join(struct ringbus *bus, const struct ringbus_options *options, const struct rbi_pool_plan *plan)
{
    const uint32_t timeout_ms = or_default(options->connect_timeout_ms, CONNECT_DEFAULT_MS);
    uint64_t deadline_ns = rbi_now_ns() + timeout_ms * RBI_NS_PER_MS;
    int r = rbi_control_connect(bus, deadline_ns);
    if (r != 0) {
        return r;
    }
    const uint64_t start_ns = rbi_now_ns();
    r = make_memory(bus, plan);
    if (r != 0) {
        return r;
    }
    deadline_ns += rbi_now_ns() - start_ns;
    return rbi_control_register(bus, deadline_ns, timeout_ms);
}

int ringbus_open(const struct ringbus_options *options, struct ringbus **out)
{
    static const struct ringbus_options defaults = RINGBUS_OPTIONS_INIT;
    struct ringbus_options given = RINGBUS_OPTIONS_INIT;
    if (out == NULL) {
        rbi_open_error_set("no place for the handle");
        return RINGBUS_E_ARGUMENT;
    }
    options = options != NULL ? options : &defaults;
    if (options->struct_size < offsetof(struct ringbus_options, path) ||
        options->struct_size > 16 * sizeof given) {
        rbi_open_error_set(
            "struct_size of the options is not set: start from RINGBUS_OPTIONS_INIT");
        return RINGBUS_E_ARGUMENT;
    }
    /* A caller built against another version knows fewer or more fields. */
    memcpy(&given, options,
           options->struct_size < sizeof given ? options->struct_size : sizeof given);
    struct rbi_pool_plan plan;
    struct ringbus *bus = NULL;
    if (posix_memalign((void **)&bus, RBI_LINE, rbi_align_up(sizeof *bus, RBI_LINE)) != 0) {
        rbi_open_error_set("not enough memory for a handle");
        return RINGBUS_E_NO_MEMORY;
    }
    memset(bus, 0, sizeof *bus);
    init_fields(bus, &given);
    int r = make_guard(bus);
    r = r < 0 ? rbi_fail_errno(bus, r, "guard page") : 0;
    if (r == 0) {
        note_program(bus);
        r = prepare(bus, &given, &plan);
    }
    if (r == 0) {
        r = join(bus, &given, &plan);
    }
    if (r != 0) {
        rbi_open_error_set(bus->error.text);
        rbi_handle_free(bus);
        return r;
    }
    bus->error.code = 0;
    *out = bus;
    return 0;
}

/* ---- who one is ------------------------------------------------------------------------------ */

int ringbus_self(const struct ringbus *bus, struct ringbus_addr *out)
{
    const int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (out != NULL) {
        *out = rbi_addr(&bus->self);
    }
    rbi_leave(bus);
    return out != NULL ? 0 : RINGBUS_E_ARGUMENT;
}

const char *ringbus_self_path(const struct ringbus *bus)
{
    return bus != NULL && rbi_load_rlx(bus->guard) == RBI_GUARD_ALIVE ? bus->self_path : NULL;
}

void *ringbus_user(const struct ringbus *bus)
{
    return bus != NULL ? bus->user : NULL;
}
