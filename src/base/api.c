/* SPDX-License-Identifier: MIT */
/*
 * api.c - a public call leaves errno alone, is no cancellation point unless it says so, and logs what it failed at
 * when it is over; and where logs go
 */
#include "base/base.h"

struct lk__apistate lk__api_enter(void)
{
    struct lk__apistate api = { .error = errno };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &api.cancel_state);
    api.thread = lk__thread_self();
    if (api.thread != NULL)
        api.thread->inside++;
    return api;
}

int lk__api_leave(const struct lk__apistate *api, int code)
{
    struct lk__thread *thread = api->thread;
    if (thread != NULL && thread->inside > 0 && --thread->inside == 0 && thread->unlogged)
        lk__log_failure(thread); /* not in the child of a fork amid the call: it begins anew */
    pthread_setcancelstate(api->cancel_state, NULL);
    errno = api->error;
    return code;
}

int lk_addlog(lk_log_t log, int level, void *arg, uint64_t *handle)
{
    if (level < LK_LOG_ERROR || level > LK_LOG_DEBUG)
        return lk__fail(EINVAL, "log level %d: LK_LOG_ERROR to LK_LOG_DEBUG are 1 to 4", level);
    struct lk__apistate api = lk__api_enter();
    int rc = lk__sinks_add(log, level, arg, handle);
    return lk__api_leave(&api, rc == 0 ? 0 : lk__fail(rc, "out of memory for a log"));
}

int lk_removelog(uint64_t handle)
{
    struct lk__apistate api = lk__api_enter();
    int rc = lk__sinks_remove(handle);
    return lk__api_leave(&api, rc == 0 ? 0 : lk__fail(rc, "there is no log of this handle, or it was removed"));
}
