/* SPDX-License-Identifier: MIT */
/*
 * server_clock.c - a wall clock that a test can set, preloaded into its redis-server
 *
 * The offset is read from a file that both map: $SERVER_CLOCK, microseconds. Monotonic clocks stay as they are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *offset_us;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("SERVER_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (memory != MAP_FAILED)
        offset_us = memory;
}

static int64_t wall_us(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    int64_t shift_us = offset_us != NULL ? __atomic_load_n(offset_us, __ATOMIC_SEQ_CST) : 0;
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + shift_us;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, clock, now);
    int64_t us = wall_us();
    *now = (struct timespec){ (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    int64_t us = wall_us();
    *now = (struct timeval){ (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };
    return 0;
}

time_t time(time_t *now)
{
    time_t seconds = (time_t)(wall_us() / 1000000);
    if (now != NULL)
        *now = seconds;
    return seconds;
}
