/* SPDX-License-Identifier: MIT */
/* socket.c - a socket is connected to an address; bytes pass it as they are */
#include "redis/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

enum { BACKLOG_PAUSE_MS = 10 };

static void set_int(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof value); /* options are optimisations: a refusal is no error */
}

static void tune(int fd, int family, const struct lk__options *options)
{
    if (family == AF_UNIX)
        return;
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (options->keepalive_ms > 0) {
        int idle_s = (int)((options->keepalive_ms + 999) / 1000);
        set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
        set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, idle_s < 15 ? (idle_s + 2) / 3 : 5);
        set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
}

int lk__socket_await(int fd, short events, int64_t until_us, int cancel_fd)
{
    struct pollfd polled[2] = { { fd, events, 0 }, { cancel_fd, POLLIN, 0 } };
    for (;;) {
        int ready = poll(polled, 2, lk__ms_until(until_us, lk__now_us()));
        if (ready > 0)
            return polled[1].revents != 0 ? ECANCELED : 0;
        if (ready < 0 && errno != EINTR)
            return ENOMEM; /* the only other error of poll() */
        if (lk__now_us() >= until_us)
            return ETIMEDOUT;
    }
}

/* 0, ETIMEDOUT, ECANCELED, ENOMEM, or the socket's own error. */
static int finish_connect(int fd, int64_t until_us, int cancel_fd)
{
    int rc = lk__socket_await(fd, POLLOUT, until_us, cancel_fd), error = 0;
    socklen_t size = sizeof error;
    if (rc != 0)
        return rc;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

/* connect(), once. A unix socket says EAGAIN while its backlog is full, and no poll tells when there is room. */
static int begin_connect(int fd, const struct sockaddr *address, socklen_t size, int64_t until_us, int cancel_fd)
{
    for (;;) {
        struct pollfd cancel = { cancel_fd, POLLIN, 0 };
        int rc = connect(fd, address, size) == 0 ? 0 : errno;
        if (rc != EAGAIN)
            return rc;
        if (lk__now_us() >= until_us)
            return ETIMEDOUT;
        if (poll(&cancel, 1, 1 + (int)lk__random_below(BACKLOG_PAUSE_MS)) > 0)
            return ECANCELED;
    }
}

int lk__socket_connect(struct lk__socket *fresh, const struct lk__options *options, const struct addrinfo *address,
                       int64_t until_us, int cancel_fd)
{
    fresh->read_on = POLLIN;
    fresh->write_on = POLLOUT;
    fresh->fd = lk__fd_ours(socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fresh->fd < 0)
        return errno;
    tune(fresh->fd, address->ai_family, options);
    int rc = begin_connect(fresh->fd, address->ai_addr, address->ai_addrlen, until_us, cancel_fd);
    return rc == EINPROGRESS || rc == EINTR ? finish_connect(fresh->fd, until_us, cancel_fd) : rc;
}

void lk__socket_close(struct lk__socket *socket)
{
    socket->transport->close(socket);
    if (socket->fd >= 0)
        lk__fd_close(socket->fd);
}

/* --- bytes as they are ------------------------------------------------------------------------------------ */

static int plain_connect(struct lk__socket *socket, const struct lk__options *options, int64_t until_us, int cancel_fd,
                         char *errmsg, size_t size)
{
    (void)socket, (void)options, (void)until_us, (void)cancel_fd, (void)errmsg, (void)size;
    return 0;
}

/* Of recv() and send(), which failed. */
static ssize_t failed(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : -EIO;
}

static ssize_t plain_read(struct lk__socket *socket, char *bytes, size_t count)
{
    ssize_t got;
    do
        got = recv(socket->fd, bytes, count, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        return got;
    return got == 0 ? -EIO : failed();
}

static ssize_t plain_write(struct lk__socket *socket, const char *bytes, size_t count)
{
    ssize_t taken;
    do
        taken = send(socket->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (taken < 0 && errno == EINTR);
    return taken >= 0 ? taken : failed();
}

static const char *plain_why(const struct lk__socket *socket, int *code)
{
    (void)socket, (void)code;
    return NULL;
}

static void plain_close(struct lk__socket *socket)
{
    (void)socket;
}

const struct lk__transport lk__plain = { plain_connect, plain_read, plain_write, plain_why, plain_close };
