/* SPDX-License-Identifier: MIT */
/* process.c - see process.h */
#include "process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

static int alarm_count;

static void count_alarm(int number)
{
    (void)number;
    __atomic_add_fetch(&alarm_count, 1, __ATOMIC_RELAXED);
}

void alarm_each_ms(int ms, int flags)
{
    struct sigaction action = { .sa_handler = count_alarm, .sa_flags = flags };
    struct itimerval often = { { 0, ms * 1000 }, { 0, ms * 1000 } };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

int alarms(void)
{
    return __atomic_load_n(&alarm_count, __ATOMIC_RELAXED);
}

int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}
