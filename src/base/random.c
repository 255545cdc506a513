/* SPDX-License-Identifier: MIT */
/* random.c - identities from the kernel, jitter from a cheap generator */
#include "base/base.h"

#include <sys/random.h>

int lk__random_id(char id[LK__ID_LENGTH + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[LK__ID_LENGTH / 2];
    size_t got = 0;
    while (got < sizeof bytes) {
        ssize_t more = getrandom(bytes + got, sizeof bytes - got, 0);
        if (more < 0 && errno != EINTR)
            return lk__fail(ENOMEM, "the kernel gives no random numbers");
        if (more > 0)
            got += (size_t)more;
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        id[2 * i] = digits[bytes[i] >> 4];
        id[2 * i + 1] = digits[bytes[i] & 15];
    }
    id[LK__ID_LENGTH] = '\0';
    return 0;
}

/* splitmix64 over a shared counter: each call gets a number of its own, whoever calls. */
uint64_t lk__random_below(uint64_t bound)
{
    static atomic_uint_least64_t state;
    uint64_t z = atomic_fetch_add(&state, 0x9e3779b97f4a7c15ULL) ^ (uint64_t)lk__process();
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return bound == 0 ? 0 : z % bound;
}
