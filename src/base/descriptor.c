/* SPDX-License-Identifier: MIT */
/*
 * descriptor.c - descriptors of the library are none of the three that every program writes and reads
 *
 * A daemon that closed its standard descriptors is given them back by the next open(). Were one of them the
 * socket of a connection, each line printed to stdout or stderr would be a request of its own, whose answer is
 * taken for that of another.
 */
#include "base/base.h"

#include <fcntl.h>
#include <unistd.h>

enum { FIRST_OURS = 3 };

int lk__fd_ours(int fd)
{
    if (fd < 0 || fd >= FIRST_OURS)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OURS);
    int error = moved >= 0        ? errno
                : errno == EINVAL ? EMFILE
                                  : errno; /* EINVAL: this process may have no more than 3 */
    close(fd);
    errno = error;
    return moved;
}
