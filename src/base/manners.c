/* SPDX-License-Identifier: MIT */
/*
 * manners.c - a call leaves errno alone, is no cancellation point unless it says so, and logs what it failed at
 * when it is over
 */
#include "base/base.h"

struct lk__manners lk__begin(void)
{
    struct lk__manners manners = { .error = errno };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &manners.cancel_state);
    manners.thread = lk__thread_self();
    if (manners.thread != NULL)
        manners.thread->inside++;
    return manners;
}

int lk__end(const struct lk__manners *manners, int code)
{
    struct lk__thread *thread = manners->thread;
    if (thread != NULL && thread->inside > 0 && --thread->inside == 0 && thread->unlogged)
        lk__log_failure(thread); /* not in the child of a fork amid the call: it begins anew */
    pthread_setcancelstate(manners->cancel_state, NULL);
    errno = manners->error;
    return code;
}
