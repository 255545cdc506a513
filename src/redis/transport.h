/* SPDX-License-Identifier: MIT */
/*
 * transport.h - how bytes get to a server and from it: as they are, or through TLS
 *
 * A transport is a table of functions over one connected socket, and none of them waits but `connect`. Two threads never
 * are in the functions of one socket at a time: a connection sees to that, as a session of TLS bears only one.
 */
#ifndef LK__TRANSPORT_H
#define LK__TRANSPORT_H

#include "config/options.h"

#include <netdb.h>

struct lk__socket {
    const struct lk__transport *transport;
    int fd;
    const char *host;        /* that it was asked for; only while it connects; NULL: a unix socket */
    short read_on, write_on; /* what poll() sees before it makes sense to read, or to write, again */
    atomic_bool more;        /* bytes may be here that no poll() tells of: who would poll reads first */
    bool distrusted;         /* told by `connect` that failed: who is there has not shown to be the server */
    struct lk__tls *tls;     /* NULL: there is none */
};

struct lk__transport {
    /*
     * From a socket that is connected to one that bytes may pass: 0, or with words ECANCELED, ENOMEM, ENOTCONN, EACCES
     * the server refuses this client, EINVAL the options cannot be followed. Takes as much stack as it likes.
     */
    int (*connect)(struct lk__socket *socket, const struct lk__options *options, int64_t until_us, int cancel_fd,
                   char *errmsg, size_t size);
    /*
     * `count` bytes at most, which is more than none. How many these were; -EAGAIN none now, -EIO gone. After -EAGAIN of a
     * write the next one is of the same bytes, and maybe more behind them. They need no more stack than callers of the
     * library have.
     */
    ssize_t (*read)(struct lk__socket *socket, char *bytes, size_t count);
    ssize_t (*write)(struct lk__socket *socket, const char *bytes, size_t count);
    /* Words for why it is gone, and the code of that if `code` is not NULL; NULL: the server closed it, and said no more. */
    const char *(*why)(const struct lk__socket *socket, int *code);
    void (*close)(struct lk__socket *socket); /* sends nothing */
};

extern const struct lk__transport lk__plain, lk__secured;

/* --- socket.c -------------------------------------------------------------------------------------------- */

/*
 * To an address: 0, ETIMEDOUT, ECANCELED, ENOMEM, or what connect() says. `socket` has its transport, and -1 for its
 * descriptor; it is closed by lk__socket_close(), also after a failure.
 */
int lk__socket_connect(struct lk__socket *socket, const struct lk__options *options, const struct addrinfo *address,
                       int64_t until_us, int cancel_fd);
void lk__socket_close(struct lk__socket *socket);
/* Until poll() sees one of `events`: 0, ETIMEDOUT, ECANCELED, ENOMEM. */
int lk__socket_await(int fd, short events, int64_t until_us, int cancel_fd);

#endif
