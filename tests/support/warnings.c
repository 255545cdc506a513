/* SPDX-License-Identifier: MIT */
/* warnings.c - see warnings.h */
#include "log.h"
#include "warnings.h"

#include "assert_lk.h"

#include <latchkey/latchkey.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* lines come from the thread that writes the log */
static char kept[1024];

static void keep(void *arg, int level, const char *line)
{
    (void)arg;
    pthread_mutex_lock(&mu);
    if (level == LK_LOG_WARNING)
        snprintf(kept + strlen(kept), sizeof kept - strlen(kept), "%s\n", line);
    pthread_mutex_unlock(&mu);
}

void warnings_keep(void)
{
    pthread_mutex_lock(&mu);
    kept[0] = '\0';
    pthread_mutex_unlock(&mu);
    assert_lk(0, log_to(keep, LK_LOG_WARNING, NULL));
}

const char *warnings(void)
{
    static char told[sizeof kept];
    pthread_mutex_lock(&mu);
    memcpy(told, kept, sizeof told);
    pthread_mutex_unlock(&mu);
    return told;
}
