/* SPDX-License-Identifier: MIT */
/* error.c - words of the last failure, words for codes */
#include "base/base.h"

#include <string.h>

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

static void set_words(struct lk__thread *thread, const char *format, va_list args)
{
    lk__line_print(thread->errortext, sizeof thread->errortext, format, args);
    thread->unlogged = true;
    if (thread->inside == 0)
        lk__log_failure(thread);
}

int lk__fail(int code, const char *format, ...)
{
    struct lk__thread *thread = lk__thread_self();
    if (thread != NULL) {
        va_list args;
        thread->settled_us = thread->others_until_us = 0;
        va_start(args, format);
        set_words(thread, format, args);
        va_end(args);
    }
    return code;
}

int lk__error_reword(int code, const char *format, ...)
{
    struct lk__thread *thread = lk__thread_known();
    if (thread != NULL) {
        va_list args;
        va_start(args, format);
        set_words(thread, format, args);
        va_end(args);
    }
    return code;
}

void lk__failure_keep(struct lk__failure *failure)
{
    const struct lk__thread *thread = lk__thread_known();
    if (thread == NULL)
        return;
    memcpy(failure->errortext, thread->errortext, sizeof failure->errortext);
    failure->others_until_us = thread->others_until_us;
    failure->settled_us = thread->settled_us;
    failure->unlogged = thread->unlogged;
}

void lk__failure_restore(const struct lk__failure *failure)
{
    struct lk__thread *thread = lk__thread_known();
    if (thread == NULL)
        return;
    memcpy(thread->errortext, failure->errortext, sizeof thread->errortext);
    thread->others_until_us = failure->others_until_us;
    thread->settled_us = failure->settled_us;
    thread->unlogged = failure->unlogged;
}

void lk__log_failure(struct lk__thread *thread)
{
    thread->unlogged = false;
    lk__log(LK_LOG_DEBUG, "%s", thread->errortext);
}

const char *lk_errortext(void)
{
    struct lk__thread *thread = lk__thread_known();
    return thread == NULL ? "" : thread->errortext;
}

void lk__error_settles(int64_t settled_us)
{
    struct lk__thread *thread = lk__thread_known();
    if (thread != NULL)
        thread->settled_us = settled_us;
}

void lk__error_leaves(int64_t until_us)
{
    struct lk__thread *thread = lk__thread_known();
    if (thread != NULL)
        thread->others_until_us = until_us;
}

int64_t lk_errorleft(void)
{
    const struct lk__thread *thread = lk__thread_known();
    if (thread == NULL || thread->others_until_us == 0)
        return -1;
    int64_t left_us = thread->others_until_us - lk__now_us();
    return left_us > 0 ? (left_us + 999) / 1000 : 0;
}

int64_t lk_errorsettles(void)
{
    const struct lk__thread *thread = lk__thread_known();
    int64_t left_us = thread == NULL ? 0 : thread->settled_us - lk__now_us();
    return left_us > 0 ? (left_us + 999) / 1000 : 0;
}

const char *lk_version(void)
{
    return QUOTE(LK_VERSION_MAJOR) "." QUOTE(LK_VERSION_MINOR) "." QUOTE(LK_VERSION_PATCH);
}

const char *lk_strerror(int code)
{
    static const struct {
        int code;
        const char *errmsg;
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
        { EALREADY, "done already" },
        { ECANCELED, "the client was closed or forked away, or the latch deleted" },
        { EINVAL, "a mistake in the call" },
        { ENOMEM, "out of memory, descriptors or threads" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code)
            return table[i].errmsg;
    return "a code that this library does not return";
}
