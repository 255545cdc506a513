/* SPDX-License-Identifier: MIT */
/*
 * assert_lk.c - see assert_lk.h
 */
#include "assert_lk.h"

#include <latchkey/latchkey.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

bool in_child;

static const struct {
    int code;
    const char *name;
} codes[] = {
    { 0, "0" },
    { EACCES, "EACCES" },
    { EAGAIN, "EAGAIN" },
    { EBUSY, "EBUSY" },
    { ECANCELED, "ECANCELED" },
    { EDEADLK, "EDEADLK" },
    { EEXIST, "EEXIST" },
    { EINVAL, "EINVAL" },
    { EIO, "EIO" },
    { ENOENT, "ENOENT" },
    { ENOMEM, "ENOMEM" },
    { ENOSPC, "ENOSPC" },
    { ENOTCONN, "ENOTCONN" },
    { ENOTRECOVERABLE, "ENOTRECOVERABLE" },
    { ENOTSUP, "ENOTSUP" },
    { EOVERFLOW, "EOVERFLOW" },
    { EOWNERDEAD, "EOWNERDEAD" },
    { EPERM, "EPERM" },
    { EPROTO, "EPROTO" },
    { ESTALE, "ESTALE" },
    { ETIMEDOUT, "ETIMEDOUT" },
};

const char *code_name(int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return codes[i].name;
    return "?";
}

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum { MORE_SLACK = 7 };

/* How long, in all, some process of the machine was waiting for a processor. 0 where the kernel does not say. */
static int64_t waited_ms(void)
{
    unsigned long long us = 0;
    FILE *file = fopen("/proc/pressure/cpu", "r");
    if (file == NULL || fscanf(file, "some %*s %*s %*s total=%llu", &us) != 1)
        us = 0;
    if (file != NULL)
        fclose(file);
    return (int64_t)(us / 1000);
}

static int64_t waited_before_ms;

void slack_begin(void)
{
    waited_before_ms = waited_ms();
}

__attribute__((constructor)) static void slack_of_the_program(void)
{
    slack_begin();
}

int64_t slack_ms(void)
{
    int error = errno;
    int64_t idle_ms = SANITIZED || NOISY ? 600 : 300, more_ms = waited_ms() - waited_before_ms;
    errno = error;
    return idle_ms + (more_ms < MORE_SLACK * idle_ms ? more_ms : MORE_SLACK * idle_ms);
}

void sleep_ms(int64_t ms)
{
    struct timespec left = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

void assert_failed(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (in_child) {
        fprintf(stderr, "%s:%d: in child %d: %s\n", file, line, (int)getpid(), text);
        _exit(1);
    }
    print_error("%s\n", text);
    _fail(file, line);
    abort(); /* not reached; cmocka does not say so */
}

void assert_lk_result(int expected, int code, int errno_after, const char *call, const char *file, int line)
{
    if (code != expected)
        assert_failed(file, line, "%s\n  returned %s (%d), not %s%s%s", call, code_name(code), code,
                      code_name(expected), code != 0 ? ": " : "", code != 0 ? lk_errortext() : "");
    if (errno_after != ERRNO_MARK)
        assert_failed(file, line, "%s\n  changed errno to %d", call, errno_after);
}

void assert_between_result(int64_t actual, int64_t least, int64_t most, const char *text, const char *file, int line)
{
    if (actual < least || actual > most)
        assert_failed(file, line, "%s is %lld, not in %lld..%lld", text, (long long)actual, (long long)least,
                      (long long)most);
}

static void *worker_run(void *arg)
{
    struct worker *worker = arg;
    worker->result = worker->work(worker->arg);
    return NULL;
}

void worker_start(struct worker *worker, int (*work)(void *arg), void *arg)
{
    worker->work = work;
    worker->arg = arg;
    worker->result = -1;
    if (pthread_create(&worker->thread, NULL, worker_run, worker) != 0)
        assert_failed(__FILE__, __LINE__, "no thread could be started");
}

int worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
    return worker->result;
}

int in_thread(int (*work)(void *arg), void *arg)
{
    struct worker worker;
    worker_start(&worker, work, arg);
    return worker_join(&worker);
}

struct numbered {
    struct worker worker;
    int (*work)(int index, void *arg);
    void *arg;
    int index;
};

static int numbered_run(void *arg)
{
    struct numbered *numbered = arg;
    return numbered->work(numbered->index, numbered->arg);
}

int run_threads(int count, int (*work)(int index, void *arg), void *arg)
{
    struct numbered *all = calloc((size_t)count, sizeof *all);
    int result = 0;
    if (all == NULL)
        assert_failed(__FILE__, __LINE__, "out of memory");
    for (int i = 0; i < count; i++) {
        all[i].work = work;
        all[i].arg = arg;
        all[i].index = i;
        worker_start(&all[i].worker, numbered_run, &all[i]);
    }
    for (int i = 0; i < count; i++) {
        int rc = worker_join(&all[i].worker);
        if (rc != 0)
            result = rc;
    }
    free(all);
    return result;
}
