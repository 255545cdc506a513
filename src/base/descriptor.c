/* SPDX-License-Identifier: MIT */
/*
 * descriptor.c - descriptors of the library: none of the three that every program uses, none in a fork's child
 *
 * A daemon that closed its standard descriptors is given them back by the next open(). Were one of them the
 * socket of a connection, each line printed to stdout or stderr would be a request of its own, whose answer is
 * taken for that of another.
 *
 * A child that kept a copy of a socket would keep that connection alive after its parent was killed, and the server
 * would take a dead process for one that listens. So the library knows which descriptors are its own, and the child
 * closes them while it is being made: before any code of it could have closed them and been given the same numbers.
 * A descriptor is known as long as it is open, and no longer; what another thread opens during the fork itself may
 * escape. No byte goes out, and the parent's end stays as it is.
 */
#include "base/base.h"

#include <fcntl.h>
#include <unistd.h>

enum { FIRST_OURS = 3, KNOWN_MAX = 1 << 20, WORD_BITS = 64 };

/* One bit each, without a lock, as a fork may come at any moment. Pages that are never used cost nothing. */
static atomic_uint_least64_t known[KNOWN_MAX / WORD_BITS];
static atomic_int used_words;

static void know(int fd)
{
    int word = fd / WORD_BITS, used = atomic_load(&used_words);
    if (fd >= KNOWN_MAX)
        return;
    atomic_fetch_or(&known[word], UINT64_C(1) << fd % WORD_BITS);
    while (used <= word && !atomic_compare_exchange_weak(&used_words, &used, word + 1))
        ;
}

static int moved_up(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OURS);
    int error = moved >= 0        ? errno
                : errno == EINVAL ? EMFILE
                                  : errno; /* EINVAL: this process may have no more than 3 */
    close(fd);
    errno = error;
    return moved;
}

int lk__fd_ours(int fd)
{
    if (fd >= 0 && fd < FIRST_OURS)
        fd = moved_up(fd);
    if (fd >= 0)
        know(fd);
    return fd;
}

void lk__fd_close(int fd)
{
    if (fd < KNOWN_MAX)
        atomic_fetch_and(&known[fd / WORD_BITS], ~(UINT64_C(1) << fd % WORD_BITS));
    close(fd);
}

void lk__fd_closeall(void)
{
    int error = errno, words = atomic_load(&used_words);
    for (int word = 0; word < words; word++) {
        uint64_t bits = atomic_exchange(&known[word], 0);
        for (int bit = 0; bits != 0; bit++, bits >>= 1)
            if (bits & 1)
                close(word * WORD_BITS + bit);
    }
    errno = error;
}
