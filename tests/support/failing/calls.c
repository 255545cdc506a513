/* SPDX-License-Identifier: MIT */
/*
 * calls.c - the system calls that the library makes, in front of the C library's: they fail when told
 *
 * Each has ways to fail, listed where it is defined: an error, or less done than asked for. What a caller meets
 * by repeating the call fails once only: a signal that comes each time is no system that works.
 */
#include "failing/failing.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Ways that are no errno. */
enum { WELL = 0, SHORTER = -1, ENDED = -2 };

/* The function that would be there without this file. */
#define NEXT(name) ((__typeof__(&name))next(#name))

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* How this call is to go. */
static int way_of(const char *name, const void *caller, const int ways[], int count)
{
    if (failing_code(caller) != CODE_HERE || failing_way() >= count)
        return WELL;
    int way = ways[failing_way()];
    if (failing_lasts() && (way == EINTR || way == SHORTER))
        return WELL;
    return failing_now(FAIL_CALL, name) ? way : WELL;
}

#define WAY(name, ...)                                                                                                 \
    way_of(name, __builtin_return_address(0), (const int[]){ __VA_ARGS__ },                                            \
           (int)(sizeof(int[]){ __VA_ARGS__ } / sizeof(int)))

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* --- sockets ------------------------------------------------------------------------------------------- */

int socket(int domain, int type, int protocol)
{
    int way = WAY("socket", EMFILE, ENOBUFS);
    return way != WELL ? refuse(way) : NEXT(socket)(domain, type, protocol);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
    int way = WAY("connect", ECONNREFUSED, EAGAIN, EINTR);
    if (way == EINTR) { /* it goes on by itself */
        int rc = NEXT(connect)(fd, address, size);
        return rc == 0 ? refuse(EINTR) : rc;
    }
    return way != WELL ? refuse(way) : NEXT(connect)(fd, address, size);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    int way = WAY("send", EPIPE, EAGAIN, EINTR, SHORTER, ENOBUFS);
    if (way == SHORTER)
        size = 1;
    else if (way != WELL)
        return refuse(way);
    return NEXT(send)(fd, bytes, size, flags);
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    int way = WAY("recv", ECONNRESET, EAGAIN, EINTR, SHORTER, ENDED);
    if (way == ENDED)
        return 0;
    if (way == SHORTER)
        size = 1;
    else if (way != WELL)
        return refuse(way);
    return NEXT(recv)(fd, bytes, size, flags);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    int way = WAY("setsockopt", ENOPROTOOPT);
    return way != WELL ? refuse(way) : NEXT(setsockopt)(fd, level, option, value, size);
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    int way = WAY("getsockopt", ENOBUFS);
    return way != WELL ? refuse(way) : NEXT(getsockopt)(fd, level, option, value, size);
}

int shutdown(int fd, int how)
{
    int way = WAY("shutdown", ENOTCONN);
    return way != WELL ? refuse(way) : NEXT(shutdown)(fd, how);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int way = WAY("getaddrinfo", EAI_MEMORY, EAI_AGAIN, EAI_NONAME);
    return way != WELL ? way : NEXT(getaddrinfo)(name, service, hints, found);
}

/* --- waiting -------------------------------------------------------------------------------------------- */

int poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    int way = WAY("poll", ENOMEM, EINTR);
    return way != WELL ? refuse(way) : NEXT(poll)(polled, count, timeout_ms);
}

int ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    int way = WAY("ppoll", ENOMEM, EINTR);
    return way != WELL ? refuse(way) : NEXT(ppoll)(polled, count, timeout, mask);
}

int eventfd(unsigned int count, int flags)
{
    int way = WAY("eventfd", EMFILE);
    return way != WELL ? refuse(way) : NEXT(eventfd)(count, flags);
}

int timerfd_create(clockid_t clock, int flags)
{
    int way = WAY("timerfd_create", EMFILE);
    return way != WELL ? refuse(way) : NEXT(timerfd_create)(clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    int way = WAY("timerfd_settime", ECANCELED);
    return way != WELL ? refuse(way) : NEXT(timerfd_settime)(fd, flags, value, old);
}

/* --- files, random numbers, threads ------------------------------------------------------------------------ */

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    int way = WAY("open", EMFILE, EACCES, EIO);
    return way != WELL ? refuse(way) : NEXT(open)(path, flags, mode);
}

int fstat(int fd, struct stat *about)
{
    int way = WAY("fstat", EIO);
    return way != WELL ? refuse(way) : NEXT(fstat)(fd, about);
}

ssize_t read(int fd, void *bytes, size_t size)
{
    int way = WAY("read", EIO, EINTR);
    return way != WELL ? refuse(way) : NEXT(read)(fd, bytes, size);
}

ssize_t getrandom(void *bytes, size_t size, unsigned int flags)
{
    int way = WAY("getrandom", ENOSYS, EINTR, SHORTER);
    if (way == SHORTER)
        size = 1;
    else if (way != WELL)
        return refuse(way);
    return NEXT(getrandom)(bytes, size, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    int way = WAY("pthread_create", EAGAIN);
    return way != WELL ? way : NEXT(pthread_create)(thread, attr, run, arg);
}

int pthread_key_create(pthread_key_t *key, void (*destroy)(void *))
{
    int way = WAY("pthread_key_create", EAGAIN);
    return way != WELL ? way : NEXT(pthread_key_create)(key, destroy);
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
    int way = WAY("pthread_setspecific", ENOMEM);
    return way != WELL ? way : NEXT(pthread_setspecific)(key, value);
}
