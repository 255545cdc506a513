/* SPDX-License-Identifier: MIT */
/* thread.c - a thread of the library, or words for why there is none */
#include "base/base.h"

#include <string.h>

int lk__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    int rc = lk__thread_spawn(thread, name, run, arg);
    return rc == 0 ? 0 : lk__fail(ENOMEM, "no thread could be started for %s: %s", name, strerrordesc_np(rc));
}
