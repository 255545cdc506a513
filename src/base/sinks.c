/* SPDX-License-Identifier: MIT */
/*
 * sinks.c - where lines go: functions of the program, or stderr as long as none was ever added
 *
 * There is no lock, as any thread may write a line under any lock of the program's, and a fork's child must be able to
 * write the next one. A sink has a place in a list that only grows; a place is used again, and never freed. Whoever is
 * about to call a sink counts itself first and looks then whether it is still there. Whoever removes one says first that
 * it is gone and looks then whether somebody is counted. So one of the two sees the other.
 *
 * The hard case: a place is free again only when nobody is counted after its sink was gone. `leaving` keeps it until
 * then: whoever leaves last frees the place, be it the one that removes or the last caller. Handles are never given out
 * twice, so who waits for a removal to be over cannot take the next sink in this place for it.
 */
#include "base/base.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "latchkey: "
#define MOVING_IN UINT64_MAX

struct sink {
    struct sink *older;            /* never changes */
    atomic_uint_least64_t handle;  /* 0: nobody is to call it */
    atomic_uint_least64_t leaving; /* the handle that is being removed; or MOVING_IN; 0: neither */
    atomic_int running;            /* threads that call it, or look whether they may */
    atomic_int level;              /* the least important one that it wants; 0: none */
    lk_log_t log;                  /* written while nobody may call it, as the next one */
    void *arg;
};

static struct sink first; /* the first place: it goes with the library when that is unloaded */
static atomic_bool first_taken;
static _Atomic(struct sink *) newest; /* NULL: none was ever added */
static atomic_uint_least64_t handles; /* given out so far */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The sink that this thread is in. */
static _Thread_local struct sink *inside __attribute__((tls_model("initial-exec")));

bool lk__sinks_ishere(void)
{
    return inside != NULL;
}

/* --- stderr ----------------------------------------------------------------------------------------------------- */

/* From LATCHKEY_LOG's level on. */
static int stderr_level(void)
{
    static atomic_int level = -1;
    static const char *const names[] = { "off", "error", "warning", "info", "debug" };
    int known = atomic_load(&level);
    if (known >= 0)
        return known;
    const char *wanted = secure_getenv("LATCHKEY_LOG");
    known = LK_LOG_WARNING;
    for (int i = 0; wanted != NULL && i <= LK_LOG_DEBUG; i++)
        if (strcmp(wanted, names[i]) == 0)
            known = i;
    atomic_store(&level, known);
    return known;
}

/* One write, as stdio wants more stack than callers may have. A pipe or terminal that takes nothing now: false. */
static bool write_stderr(const char *text, int patience_ms)
{
    char line[sizeof PREFIX + LK__LINE_SIZE];
    size_t length = (size_t)snprintf(line, sizeof line, PREFIX "%s\n", text);
    struct pollfd polled = { STDERR_FILENO, POLLOUT, 0 };
    while (poll(&polled, 1, patience_ms) < 0 && errno == EINTR)
        ;
    return (polled.revents & (POLLOUT | POLLERR)) == POLLOUT && write(STDERR_FILENO, line, length) == (ssize_t)length;
}

/* --- calling ---------------------------------------------------------------------------------------------------- */

/* The place of a sink that is gone is free when nobody calls it any more. */
static void settle(struct sink *sink)
{
    uint64_t leaving = atomic_load(&sink->leaving);
    if (leaving != 0 && leaving != MOVING_IN && atomic_load(&sink->handle) == 0 && atomic_load(&sink->running) == 0)
        atomic_compare_exchange_strong(&sink->leaving, &leaving, 0);
}

static void end_call(struct sink *sink)
{
    if (atomic_fetch_sub(&sink->running, 1) == 1)
        settle(sink);
}

/* False: there is no sink in this place. */
static bool begin_call(struct sink *sink)
{
    if (atomic_load(&sink->handle) == 0)
        return false;
    atomic_fetch_add(&sink->running, 1);
    if (atomic_load(&sink->handle) != 0)
        return true;
    end_call(sink);
    return false;
}

static void call(struct sink *sink, int level, const char *text)
{
    if (!begin_call(sink))
        return;
    if (level <= atomic_load(&sink->level)) {
        inside = sink;
        sink->log(sink->arg, level, text);
        inside = NULL;
    }
    end_call(sink);
}

bool lk__sinks_want(int level)
{
    struct sink *sink = atomic_load(&newest);
    if (sink == NULL)
        return level <= stderr_level();
    while (sink != NULL && (atomic_load(&sink->handle) == 0 || level > atomic_load(&sink->level)))
        sink = sink->older;
    return sink != NULL;
}

bool lk__sinks_write(int level, const char *text, int patience_ms)
{
    struct sink *sink = atomic_load(&newest);
    int before = errno, cancel_state;
    bool written = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    if (sink == NULL && level <= stderr_level())
        written = write_stderr(text, patience_ms);
    for (; sink != NULL; sink = sink->older)
        call(sink, level, text);
    pthread_setcancelstate(cancel_state, NULL);
    errno = before;
    return written;
}

/* --- coming and going ------------------------------------------------------------------------------------------- */

/* In a fork's child: of the threads that were in a sink, or about to change one, there is none but this. */
static void forget_others(void)
{
    for (struct sink *sink = atomic_load(&newest); sink != NULL; sink = sink->older) {
        bool here = sink == inside;
        atomic_store(&sink->running, here);
        if (!here || atomic_load(&sink->handle) != 0)
            atomic_store(&sink->leaving, 0);
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_others);
}

/* A place that is free, for the caller alone; or NULL. */
static struct sink *free_place(void)
{
    for (struct sink *sink = atomic_load(&newest); sink != NULL; sink = sink->older) {
        uint64_t nobody = 0;
        if (atomic_load(&sink->handle) != 0 || !atomic_compare_exchange_strong(&sink->leaving, &nobody, MOVING_IN))
            continue;
        if (atomic_load(&sink->handle) == 0)
            return sink;
        atomic_store(&sink->leaving, 0); /* another one has moved in meanwhile */
    }
    return NULL;
}

/* Another one; NULL when out of memory. */
static struct sink *new_place(void)
{
    return atomic_exchange(&first_taken, true) ? lk__alloc(sizeof(struct sink)) : &first;
}

static void fill(struct sink *sink, lk_log_t log, int level, void *arg, uint64_t handle)
{
    sink->log = log;
    sink->arg = arg;
    atomic_store(&sink->level, log != NULL ? level : 0);
    atomic_store(&sink->handle, handle);
    atomic_store(&sink->leaving, 0);
}

int lk__sinks_add(lk_log_t log, int level, void *arg, uint64_t *handle)
{
    pthread_once(&once, watch_forks);
    struct sink *sink = free_place(), *fresh = sink == NULL ? new_place() : NULL;
    if (sink == NULL && fresh == NULL)
        return ENOMEM;
    uint64_t mine = atomic_fetch_add(&handles, 1) + 1;
    if (handle != NULL)
        *handle = mine;
    fill(sink != NULL ? sink : fresh, log, level, arg, mine);
    if (fresh == NULL)
        return 0;
    fresh->older = atomic_load(&newest);
    while (!atomic_compare_exchange_weak(&newest, &fresh->older, fresh))
        ;
    return 0;
}

/* Say that the sink is gone. False: it was before. */
static bool withdraw(struct sink *sink, uint64_t handle)
{
    uint64_t leaving = 0;
    while (!atomic_compare_exchange_strong(&sink->leaving, &leaving, handle)) {
        if (leaving == handle)
            return false;
        leaving = 0; /* another thread looks whether the place is free */
        sched_yield();
    }
    bool there = atomic_load(&sink->handle) == handle;
    if (there)
        atomic_store(&sink->handle, 0);
    else
        atomic_store(&sink->leaving, 0);
    settle(sink);
    return there;
}

/* Sinks return soon, or block for as long as they like: there is nothing that could wake this thread in either case. */
static void await_calls(const struct sink *sink, uint64_t handle)
{
    const struct timespec pause = { 0, 1000000 };
    while (inside == NULL && atomic_load(&sink->leaving) == handle)
        nanosleep(&pause, NULL);
}

int lk__sinks_remove(uint64_t handle)
{
    bool removed = false;
    for (struct sink *sink = atomic_load(&newest); sink != NULL && handle != 0; sink = sink->older) {
        if (atomic_load(&sink->handle) == handle)
            removed = withdraw(sink, handle);
        await_calls(sink, handle);
    }
    return removed ? 0 : ENOENT;
}
