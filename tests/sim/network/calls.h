/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SIM_CALLS_H
#define RINGBUS_TESTS_SIM_CALLS_H
/*
 * calls.h - the simulated calls, each with the signature of the real one. What they leave out
 * is what ringbus never asks for; such a use ends the simulation with a message, so that it
 * cannot pass unnoticed.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* heap.c: each process has a heap of its own, which ends with it */
void *sim_malloc(size_t size);
void *sim_calloc(size_t count, size_t size);
void *sim_realloc(void *old, size_t size);
int sim_posix_memalign(void **out, size_t alignment, size_t size);
void sim_free(void *p);
char *sim_strdup(const char *text);

/* environment.c: clock, randomness, limits, names */
int sim_clock_gettime(clockid_t clock, struct timespec *out);
int sim_nanosleep(const struct timespec *time, struct timespec *left);
ssize_t sim_getrandom(void *out, size_t size, unsigned flags);
char *sim_getenv(const char *name);
int sim_unsetenv(const char *name);
pid_t sim_getpid(void);
int sim_getrlimit(int resource, struct rlimit *out);
int sim_setrlimit(int resource, const struct rlimit *limit);
mode_t sim_umask(mode_t mask);
int sim_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int sim_pthread_create(pthread_t *out,
                       const pthread_attr_t *attributes,
                       void *(*body)(void *),
                       void *context);
int sim_ioctl(int fd, unsigned long request, ...);
int sim_sigaction(int number, const struct sigaction *action, struct sigaction *old);
int sim_sched_yield(void);
int sim_sched_getcpu(void);
int sim_getcpu(unsigned *cpu, unsigned *node);
int sim_sched_getscheduler(pid_t pid);
int sim_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out);

/* file.c: descriptors, counters, names in the file system */
int sim_close(int fd);
int sim_fcntl(int fd, int command, ...);
ssize_t sim_read(int fd, void *out, size_t size);
ssize_t sim_write(int fd, const void *data, size_t size);
ssize_t sim_pwrite(int fd, const void *data, size_t size, off_t offset);
int sim_ftruncate(int fd, off_t size);
int sim_open(const char *path, int flags, ...);
int sim_openat(int folder, const char *path, int flags, ...);
int sim_access(const char *path, int mode);
int sim_unlink(const char *path);
int sim_rename(const char *old_path, const char *new_path);
int sim_renameat2(
    int old_folder, const char *old_path, int new_folder, const char *new_path, unsigned flags);
int sim_chmod(const char *path, mode_t mode);
int sim_link(const char *old_path, const char *new_path);
int sim_fsync(int fd);
ssize_t sim_readlink(const char *path, char *out, size_t size);
int sim_mkdir(const char *path, mode_t mode);
int sim_flock(int fd, int operation);
int sim_fstat(int fd, struct stat *out);
int sim_lstat(const char *path, struct stat *out);
int sim_eventfd(unsigned value, int flags);
int sim_timerfd_create(int clock, int flags);
int sim_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *old);
int sim_signalfd(int fd, const sigset_t *set, int flags);

/* memory.c: memfds and their mappings */
int sim_memfd_create(const char *name, unsigned flags);
int sim_fallocate(int fd, int mode, off_t offset, off_t size);
int sim_fstatfs(int fd, struct statfs *out);
ssize_t sim_pread(int fd, void *out, size_t size, off_t offset);
void *sim_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *sim_mremap(void *old, size_t old_size, size_t size, int flags, ...);
int sim_munmap(void *address, size_t size);
int sim_madvise(void *address, size_t size, int advice);

/* socket.c */
int sim_socket(int domain, int type, int protocol);
int sim_socketpair(int domain, int type, int protocol, int ends[2]);
int sim_bind(int fd, const struct sockaddr *address, socklen_t size);
int sim_listen(int fd, int backlog);
int sim_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int sim_connect(int fd, const struct sockaddr *address, socklen_t size);
int sim_shutdown(int fd, int how);
int sim_getsockopt(int fd, int level, int name, void *out, socklen_t *size);
int sim_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int sim_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int sim_getsockname(int fd, struct sockaddr *address, socklen_t *size);
ssize_t sim_send(int fd, const void *data, size_t size, int flags);
ssize_t sim_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t sim_recvmsg(int fd, struct msghdr *message, int flags);

/* epoll.c */
int sim_epoll_create1(int flags);
int sim_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int sim_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms);
int sim_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

#endif
