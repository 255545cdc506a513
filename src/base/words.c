/* SPDX-License-Identifier: MIT */
/*
 * words.c - words of the last failure, words for codes, the log
 *
 * A sink is never changed once others can see it: lk_setlog() puts a new one in front. The old ones
 * stay, as a thread may be about to call them; a program sets its log once or twice.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

struct sink {
    lk_log_t log;
    int level;
    void *arg;
    struct sink *older;
};

static _Atomic(struct sink *) sink;

/* What a server or a file says may stand in it, and a log wants one line without tricks. */
static void write_line(char *line, size_t size, const char *format, va_list args)
{
    vsnprintf(line, size, format, args);
    for (; *line != '\0'; line++)
        if ((unsigned char)*line < ' ' || *line == 0x7f)
            *line = '?';
}

int lk__fail(int code, const char *format, ...)
{
    struct lk__thread *thread = lk__thread_self();
    if (thread != NULL) {
        va_list args;
        va_start(args, format);
        write_line(thread->errortext, sizeof thread->errortext, format, args);
        va_end(args);
        thread->settled_us = 0;
        lk__log(LK_LOG_DEBUG, "%s", thread->errortext);
    }
    return code;
}

const char *lk_errortext(void)
{
    struct lk__thread *thread = lk__thread_known();
    return thread == NULL ? "" : thread->errortext;
}

void lk__settles(int64_t settled_us)
{
    struct lk__thread *thread = lk__thread_known();
    if (thread != NULL)
        thread->settled_us = settled_us;
}

int64_t lk_errorsettles(void)
{
    const struct lk__thread *thread = lk__thread_known();
    int64_t left_us = thread == NULL ? 0 : thread->settled_us - lk__now_us();
    return left_us > 0 ? (left_us + 999) / 1000 : 0;
}

/* Until lk_setlog() is called: to stderr, from LATCHKEY_LOG's level on. */
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

void lk__log(int level, const char *format, ...)
{
    struct sink *to = atomic_load(&sink);
    if (level > (to != NULL ? to->level : stderr_level()))
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    write_line(line, sizeof line, format, args);
    va_end(args);
    int before = errno;
    if (to == NULL)
        fprintf(stderr, "latchkey: %s\n", line);
    else if (to->log != NULL)
        to->log(to->arg, level, line);
    errno = before;
}

int lk_setlog(lk_log_t log, int level, void *arg)
{
    if (level < LK_LOG_ERROR || level > LK_LOG_DEBUG)
        return lk__fail(EINVAL, "log level %d: LK_LOG_ERROR to LK_LOG_DEBUG are 1 to 4", level);
    struct sink *fresh = lk__alloc(sizeof *fresh);
    if (fresh == NULL)
        return lk__fail(ENOMEM, "out of memory for a log");
    *fresh = (struct sink){ log, log == NULL ? 0 : level, arg, atomic_load(&sink) };
    while (!atomic_compare_exchange_weak(&sink, &fresh->older, fresh))
        ;
    return 0;
}

const char *lk_version(void)
{
    return QUOTE(LK_VERSION_MAJOR) "." QUOTE(LK_VERSION_MINOR) "." QUOTE(LK_VERSION_PATCH);
}

const char *lk_strerror(int code)
{
    static const struct {
        int code;
        const char *words;
    } table[] = {
        { 0, "done" },
        { EBUSY, "held by someone else" },
        { ETIMEDOUT, "not within the time; not held" },
        { EPERM, "not held by the caller" },
        { ESTALE, "the lease was lost, or the count of a latch" },
        { EDEADLK, "would deadlock" },
        { EAGAIN, "a limit was reached, or nothing is there now" },
        { EOVERFLOW, "count above its maximum" },
        { EOWNERDEAD, "held, but its previous holder died holding it" },
        { ENOTRECOVERABLE, "given back unrepaired after its holder died" },
        { ENOTCONN, "no server would serve it; nothing was done" },
        { EIO, "sent, outcome unknown" },
        { EPROTO, "unreadable answer, or a key of another type" },
        { EACCES, "refused by credentials or access rules" },
        { ENOSPC, "the server is out of memory" },
        { ENOTSUP, "this server or this build cannot" },
        { ENOENT, "no such thing" },
        { EEXIST, "set already" },
        { ECANCELED, "the client was closed or forked away, or the latch deleted" },
        { EINVAL, "a mistake in the call" },
        { ENOMEM, "out of memory, descriptors or threads" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code)
            return table[i].words;
    return "a code that this library does not return";
}
