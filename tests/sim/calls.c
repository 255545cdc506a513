/* SPDX-License-Identifier: MIT */
/* calls.c - who one is, what time it is, what comes by chance, and other small calls that a seed decides here */
#include "sim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* --- identities --------------------------------------------------------------------------------------------------- */

pid_t getpid(void)
{
    return sim_on() ? SIM_PID + (pid_t)sim_proc() : sim_kernelpid();
}

pid_t getppid(void)
{
    return sim_on() ? SIM_PID + (pid_t)world->procs[sim_proc()].parent : (pid_t)sim_kernel(SYS_getppid);
}

int gethostname(char *name, size_t length)
{
    snprintf(name, length, "sim");
    return 0;
}

ssize_t getrandom(void *bytes, size_t length, unsigned flags)
{
    (void)flags;
    if (!sim_on())
        return sim_kernel(SYS_getrandom, bytes, length, flags);
    sim_point("getrandom", length);
    for (size_t i = 0; i < length; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)sim_draw(IDENTITIES);
    return (ssize_t)length;
}

int getentropy(void *bytes, size_t length)
{
    return getrandom(bytes, length, 0) < 0 ? -1 : 0;
}

/* Load and memory differ from run to run. A server prints them, and what is longer by a digit is read in other parts. */
static bool tells_of_machine(const char *path)
{
    return strcmp(path, "/proc/pressure/cpu") == 0 || strcmp(path, "/proc/self/stat") == 0 ||
           strcmp(path, "/proc/self/smaps") == 0;
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
    if (!sim_on())
        return (int)sim_kernel(SYS_getrusage, who, usage);
    memset(usage, 0, sizeof *usage);
    return 0;
}

/* The kernel knows other numbers of processes than this world does, and no seed. */
static const char *path_of(const char *path, char room[256])
{
    int pid, used = 0;
    if (!sim_on() || path == NULL || strncmp(path, "/proc/", 6) != 0)
        return path;
    if (tells_of_machine(path))
        return "/proc/self/none";
    const char *number = strncmp(path, "/proc/self/task/", 16) == 0 ? path + 16 : path + 6;
    if (sscanf(number, "%d%n", &pid, &used) != 1 || sim_procof(pid) == 0)
        return path;
    snprintf(room, 256, "%.*s%d%s", (int)(number - path), path, (int)world->procs[sim_procof(pid)].pid, number + used);
    return room;
}

static bool is_random(const char *path)
{
    return sim_on() && path != NULL && (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

static int open_bytes(const void *bytes, size_t length, int flags)
{
    int fd = memfd_create("bytes", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    sim_kernel(SYS_write, fd, bytes, length);
    sim_kernel(SYS_lseek, fd, 0, SEEK_SET);
    return fd;
}

static int open_random(int flags)
{
    unsigned char bytes[4096];
    getrandom(bytes, sizeof bytes, 0);
    return open_bytes(bytes, sizeof bytes, flags);
}

/* To the kernel all threads sleep but one: who asks is told which of them wait here. 0: no such file is asked for. */
static int state_of_thread(const char *path, char text[64])
{
    int tid, used = 0;
    if (!sim_on() || sscanf(path, "/proc/self/task/%d/stat%n", &tid, &used) != 1 || used == 0 || path[used] != 0)
        return 0;
    for (uint32_t i = 1; i <= world->thread_count; i++)
        if (world->threads[i].state != FREE && world->threads[i].proc == sim_proc() && world->threads[i].tid == tid)
            return snprintf(text, 64, "%d (sim) %c 0\n", tid, world->threads[i].state == BLOCKED ? 'S' : 'R');
    return 0;
}

int open64(const char *path, int flags, ...)
{
    char room[256];
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    sim_point("open", 0);
    if (is_random(path))
        return open_random(flags);
    return (int)sim_kernel(SYS_openat, AT_FDCWD, path_of(path, room), flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    return open64(path, flags, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    char room[256], text[64];
    sim_point("fopen", 0);
    int length = state_of_thread(path, text);
    if (length > 0)
        return fdopen(open_bytes(text, (size_t)length, O_CLOEXEC), mode);
    return is_random(path) ? fdopen(open_random(0), mode) : REAL(fopen64)(path_of(path, room), mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return fopen64(path, mode);
}

DIR *opendir(const char *path)
{
    char room[256];
    return REAL(opendir)(path_of(path, room));
}

/* --- clocks and rest ---------------------------------------------------------------------------------------------- */

static bool is_ours(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
           clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME ||
           clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!is_ours(clock) || (!sim_on() && getenv("SIM_WORLD") == NULL))
        return (int)sim_kernel(SYS_clock_gettime, clock, time);
    if (!sim_is_on) { /* an allocator looks before any constructor runs, and remembers what it saw */
        *time = sim_timespec(BEGIN_NS);
        return 0;
    }
    sim_point("clock", (uint64_t)clock);
    *time = sim_timespec(sim_clock(clock, world->now_ns));
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds != NULL)
        *seconds = now.tv_sec;
    return now.tv_sec;
}

static int rest(uint64_t until_ns)
{
    sim_point("sleep", 0);
    pthread_testcancel();
    if (until_ns <= world->now_ns)
        return 0;
    bool woken = sim_block("sleep", until_ns, true);
    pthread_testcancel();
    return woken ? EINTR : 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!sim_on())
        return (int)sim_kernel(SYS_nanosleep, time, left);
    uint64_t until_ns = sim_after(time);
    if (rest(until_ns) == 0)
        return 0;
    if (left != NULL)
        *left = sim_timespec(until_ns > world->now_ns ? until_ns - world->now_ns : 0);
    errno = EINTR;
    return -1;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    (void)left;
    return rest((flags & TIMER_ABSTIME) != 0 ? sim_deadline(clock, time) : sim_after(time));
}

int usleep(useconds_t us)
{
    return nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

unsigned sleep(unsigned seconds)
{
    return nanosleep(&(struct timespec){ seconds, 0 }, NULL) == 0 ? 0 : 1;
}

int sched_yield(void)
{
    if (!sim_on())
        return (int)sim_kernel(SYS_sched_yield);
    sim_point("yield", 0);
    return 0;
}

int pause(void)
{
    sim_point("pause", 0);
    sim_block("pause", NEVER, true);
    errno = EINTR;
    return -1;
}

/* --- others ------------------------------------------------------------------------------------------------------- */

/* A program that stands in front of libc itself asks the kernel directly. */
long syscall(long number, ...)
{
    long arg[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    struct file *file = number == SYS_recvfrom ? sim_file((int)arg[0]) : NULL;
    if (file != NULL) {
        sim_point("recv", (uint64_t)arg[0]);
        return sim_receive(file, (void *)arg[1], (size_t)arg[2], (int)arg[3]);
    }
    if (number == SYS_clock_gettime)
        return clock_gettime((clockid_t)arg[0], (struct timespec *)arg[1]);
    if (number == SYS_getrandom)
        return getrandom((void *)arg[0], (size_t)arg[1], (unsigned)arg[2]);
    if (number != SYS_nanosleep || !sim_on())
        return sim_kernel(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
    sim_point("sleep", 0); /* and no point of cancellation */
    sim_block("sleep", sim_after((const struct timespec *)arg[0]), false);
    return 0;
}

/* Each run has a folder of its own name, and a server tells scripts where it began: that has to be the same in all. */
char *getcwd(char *path, size_t size)
{
    static const char here[] = "/proc/self/cwd";
    if (!sim_is_on || path == NULL)
        return REAL(getcwd)(path, size);
    if (size < sizeof here) {
        errno = ERANGE;
        return NULL;
    }
    return memcpy(path, here, sizeof here);
}

/* A test may preload a library of its own: it comes behind this one. */
int setenv(const char *name, const char *value, int replace)
{
    char both[4096];
    const char *mine = getenv("LD_PRELOAD");
    if (sim_is_on && strcmp(name, "LD_PRELOAD") == 0 && mine != NULL && strstr(value, "libsim.so") == NULL) {
        snprintf(both, sizeof both, "%.*s%s%s", (int)strcspn(mine, ":"), mine, value[0] != 0 ? ":" : "", value);
        value = both;
    }
    return REAL(setenv)(name, value, replace);
}

int unsetenv(const char *name)
{
    return sim_is_on && strcmp(name, "LD_PRELOAD") == 0 ? setenv(name, "", 1) : REAL(unsetenv)(name);
}

/* The clock that tests set for their servers, as tests/faults/server_clock.c reads it. */
static int64_t *shift_us;

int64_t sim_servershift_us(void)
{
    return shift_us != NULL ? __atomic_load_n(shift_us, __ATOMIC_SEQ_CST) : 0;
}

void sim_beginshift(void)
{
    const char *path = getenv("SERVER_CLOCK");
    int fd = path != NULL ? (int)sim_kernel(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    shift_us = mmap(NULL, sizeof *shift_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sim_kernel(SYS_close, fd);
}

/* jemalloc's own thread would run beside all others. */
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
{
    if (sim_on() && new != NULL && strcmp(name, "background_thread") == 0)
        return 0;
    return REAL(mallctl)(name, old, old_size, new, new_size);
}
