/* SPDX-License-Identifier: MIT */
/*
 * noise.c - how long each delay is: see noise.h
 *
 * Each thread draws its own numbers, from the seed and from how many threads came before it. Nothing here
 * is shared but that count, so that the delays order nothing that the library does not order itself.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void lk__noise(void);

static struct {
    uint64_t seed, percent;
    unsigned threads;
} noise; /* but for `threads`, as the constructor left it */

static _Thread_local uint64_t state; /* 0: nothing was drawn yet */

/* splitmix64, as in base/random.c. */
static uint64_t draw(void)
{
    if (state == 0)
        state = noise.seed + __atomic_add_fetch(&noise.threads, 1, __ATOMIC_RELAXED) * 0xd1342543de82ef95ULL;
    uint64_t z = state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static void sleep_us(uint64_t us)
{
    struct timespec pause = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };
    syscall(SYS_nanosleep, &pause, NULL); /* nanosleep() is a cancellation point */
}

/* Of 100,000 operations. Two in a lock, two in an unlock: an uncontended lock() and unlock() has about a hundred. */
enum { YIELDS = 2000, NAPS = 150, STALLS = 4 };

void lk__noise(void)
{
    if (noise.percent == 0)
        return;
    uint64_t drawn = draw(), lot = (drawn >> 32) % 10000000, extent = drawn & 0xffff;
    if (lot >= (YIELDS + NAPS + STALLS) * noise.percent)
        return;
    int error = errno;
    if (lot < STALLS * noise.percent)
        sleep_us(1000 + extent / 10);
    else if (lot < (STALLS + NAPS) * noise.percent)
        sleep_us(20 + extent / 128);
    else
        sched_yield();
    errno = error;
}

static void tell_seed(int status, void *arg)
{
    (void)arg;
    if (status != 0 && status != 77 && noise.percent > 0)
        fprintf(stderr, "noise: LATCHKEY_NOISE_SEED=%llu\n", (unsigned long long)noise.seed);
}

static uint64_t setting(const char *name, uint64_t standard)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : standard;
}

__attribute__((constructor)) static void begin(void)
{
    uint64_t drawn = (uint64_t)time(NULL);
    char text[24];
    ssize_t got = getrandom(&drawn, sizeof drawn, 0);
    (void)got;
    noise.percent = setting("LATCHKEY_NOISE", 100);
    noise.seed = setting("LATCHKEY_NOISE_SEED", drawn % 1000000);
    snprintf(text, sizeof text, "%llu", (unsigned long long)noise.seed);
    setenv("LATCHKEY_NOISE_SEED", text, 1);
    on_exit(tell_seed, NULL);
}
