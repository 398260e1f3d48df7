/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SIM_KERNEL_H
#define RINGBUS_TESTS_SIM_KERNEL_H
/*
 * kernel.h - a kernel for many simulated processes inside one real one: descriptors, sockets,
 * epoll sets, memfds, a clock. Everything happens in one thread and follows from the seed.
 *
 * A process is a fiber with a heap of its own. It gives up the processor in calls that wait
 * and, now and then, in any other call; so histories differ in how calls of different
 * processes follow each other. Killing one forgets its fiber and heap and drops what the
 * kernel held for it, as the real one does: the memory that others map stays as it is.
 */
#include "tests/sim/network/calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PROCESSES_MAX 9U
#define SIM_FDS_MAX       192U
#define SIM_NEVER         UINT64_MAX
#define SIM_US            UINT64_C(1000)
#define SIM_MS            UINT64_C(1000000)
#define SIM_S             UINT64_C(1000000000)
#define SIM_SOCKET_PATH   "/sim/bus.sock"
#define SIM_SOCKET_BESIDE "/sim/bus.sock.new" /* where it is made */

/* ---- heap.c ---------------------------------------------------------------------------- */

#define SIM_HEAP_CLASSES 40U

struct sim_heap {
    char *base;
    size_t used;
    size_t room;
    unsigned live; /* allocations that were not freed */
    void *free_blocks[SIM_HEAP_CLASSES];
};

void sim_heap_init(struct sim_heap *heap, size_t room);
/** Forgets everything that was allocated. */
void sim_heap_reset(struct sim_heap *heap);
void *sim_heap_alloc(struct sim_heap *heap, size_t size);
void sim_heap_free(struct sim_heap *heap, void *p);

/* ---- fiber.c --------------------------------------------------------------------------- */

struct sim_fiber;

struct sim_fiber *sim_fiber_new(void);
/** The next switch enters @p program from its beginning, on an empty stack. */
void sim_fiber_prepare(struct sim_fiber *fiber, void (*program)(void *), void *context);
/** From the scheduler: runs the fiber until it gives up the processor. */
void sim_fiber_enter(struct sim_fiber *fiber);
/** From the fiber: back to the scheduler. */
void sim_fiber_leave(struct sim_fiber *fiber);

/* ---- files ----------------------------------------------------------------------------- */

enum sim_kind {
    SIM_NULL,
    SIM_LOCK,
    SIM_EVENTFD,
    SIM_TIMERFD,
    SIM_SIGNALFD,
    SIM_PIDFD,
    SIM_SOCKET,
    SIM_LISTENER,
    SIM_EPOLL,
    SIM_MEMFD,
};

struct sim_file;
struct sim_process;

struct sim_packet {
    struct sim_packet *next;
    size_t size;
    unsigned file_count;
    struct sim_file *files[8];
    unsigned char bytes[];
};

/** A file that an epoll set listens to. */
struct sim_watch {
    struct sim_watch *next_of_file;
    struct sim_watch *next_of_epoll;
    struct sim_file *file;
    struct sim_file *epoll;
    int fd;
    uint32_t events;
    uint64_t data;
    uint64_t edges_seen;
};

struct sim_socket {
    int type;
    struct sim_file *peer; /* NULL: closed, or never connected */
    struct sim_packet *first;
    struct sim_packet **last;
    size_t queued; /* as the kernel charges it */
    bool connected;
    bool no_receive;
    bool no_send;
    bool reset; /* ECONNRESET waits to be told */
    /* Who made the other end. */
    unsigned peer_process;
    unsigned peer_life;
};

struct sim_memory {
    struct sim_buffer *buffer; /* NULL: not reserved yet */
    size_t size;
    int seals;
};

struct sim_file {
    enum sim_kind kind;
    unsigned refs;  /* descriptors, packets and mappings that hold it */
    uint64_t edges; /* grows with everything that an edge-triggered watch reports */
    struct sim_watch *watches;
    union {
        uint64_t counter;    /* eventfd, signalfd (a set of signals) */
        uint64_t expires_ns; /* timerfd; SIM_NEVER = disarmed */
        struct {
            unsigned process;
            unsigned life;
        } pid;
        struct sim_socket socket;
        struct {
            struct sim_file *first[64]; /* connected, not accepted yet */
            unsigned count;
        } listener;
        struct sim_watch *watched; /* epoll */
        struct sim_memory memory;
        struct {
            unsigned number; /* inode */
            bool held;
        } lock;
    } u;
};

struct sim_file *sim_file_new(enum sim_kind kind);
void sim_file_ref(struct sim_file *file);
void sim_file_unref(struct sim_file *file);
/** Something happened that an edge-triggered watch reports. */
void sim_file_edge(struct sim_file *file);
/** EPOLL* of what can be done with it now. */
uint32_t sim_file_ready(const struct sim_file *file);
/** The current process's file, or NULL with errno EBADF. */
struct sim_file *sim_fd_file(int fd);
/** Gives the current process a descriptor; takes over the reference. -1 with errno EMFILE */
int sim_fd_install(struct sim_file *file);
void sim_fd_close(struct sim_process *process, unsigned fd);

uint32_t sim_socket_ready(const struct sim_file *file);
void sim_socket_close(struct sim_file *file);
void sim_listener_close(struct sim_file *file);
uint32_t sim_epoll_ready(const struct sim_file *epoll);
void sim_epoll_forget(struct sim_file *file);
void sim_epoll_close(struct sim_file *epoll);
void sim_memory_close(struct sim_file *file);
/** Drops the mappings of a process that ends. @return how many there were */
unsigned sim_memory_unmap_all(struct sim_process *process);
/** Earliest time at which a watched timer expires. */
uint64_t sim_epoll_deadline_ns(const struct sim_file *epoll);

/* ---- process.c ------------------------------------------------------------------------- */

enum sim_state { SIM_ENDED, SIM_RUNNABLE, SIM_BLOCKED };

struct sim_mapping;

struct sim_process {
    unsigned id;
    unsigned life; /* grows with each start */
    const char *name;
    enum sim_state state;
    uint64_t paused_till_ns; /* SIGSTOP until then; 0 = it runs */
    uint64_t wake_ns;        /* BLOCKED: at the latest */
    struct sim_file *waits_for[4];
    short waits_events[4];
    unsigned waits_count;
    struct sim_file *fds[SIM_FDS_MAX];
    unsigned fd_count;
    struct sim_mapping *mappings;
    unsigned mapping_count;
    struct sim_heap heap;
    struct sim_fiber *fiber;
    void (*program)(void *);
    void *context;
    uint64_t stopped_ns;  /* when the last pause ended; 0 = never paused in this life */
    unsigned left_behind; /* by an exit: blocks, mappings and descriptors together */
};

struct sim_kernel {
    uint64_t now_ns;
    uint64_t rng;
    uint64_t steps;
    unsigned preempt_one_in; /* calls; 0 = never */
    size_t send_buffer;      /* bytes that a seqpacket socket takes */
    struct sim_process processes[SIM_PROCESSES_MAX];
    struct sim_process *current; /* NULL: the scheduler */
    struct sim_heap heap;
    unsigned files;
    struct sim_file *listener; /* at SIM_SOCKET_PATH */
    unsigned socket_inode;     /* of that name; 0 = there is none */
    unsigned beside_inode;     /* of the name beside it */
    unsigned lock_inode;
    struct sim_file *lock_holder;
    unsigned inodes;
    bool verbose;
};

extern struct sim_kernel sim;

void sim_kernel_init(void);
/** Before a history: everything of the last one is forgotten. */
void sim_kernel_reset(uint64_t seed);

uint64_t sim_random(void);
uint32_t sim_below(uint32_t n);
/** True once in @p n times. */
bool sim_one_in(uint32_t n);

void sim_process_start(struct sim_process *process, void (*program)(void *), void *context);
/** SIGKILL. */
void sim_process_kill(struct sim_process *process);
/** From the process itself; does not return. What it left behind is in left_behind. */
__attribute__((noreturn)) void sim_process_exit(void);
/** Whether it would run now if it were chosen. */
bool sim_process_can_run(const struct sim_process *process);
/** When it will be able to run without anybody else's doing. */
uint64_t sim_process_deadline_ns(const struct sim_process *process);
void sim_process_run(struct sim_process *process);
void sim_process_pause(struct sim_process *process, uint64_t till_ns);
bool sim_process_is_paused(const struct sim_process *process);

/** Start of each call: time passes, and perhaps somebody else runs. */
void sim_call(void);
/**
 * Waits for one of the files or for the time. The files' readiness is for the caller to see.
 */
void sim_block(struct sim_file *const *files,
               const short *events,
               unsigned count,
               uint64_t wake_ns);
void sim_yield(void);

__attribute__((format(printf, 1, 2))) void sim_log(const char *format, ...);
/** The simulator itself met something that it does not model. */
__attribute__((format(printf, 1, 2), noreturn)) void sim_unsupported(const char *format, ...);

#endif
