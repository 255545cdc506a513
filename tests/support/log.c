/* SPDX-License-Identifier: MIT */
/* log.c - see log.h */
#include "log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int log_to(lk_log_t log, int level, void *arg)
{
    static uint64_t handle;
    uint64_t fresh;
    int rc = lk_addlog(log, level, arg, &fresh);
    if (rc != 0)
        return rc;
    if (handle != 0)
        rc = lk_removelog(handle);
    handle = fresh;
    return rc;
}

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* lines come from the thread that writes the log */
static char kept[65536];

static void keep(void *arg, int level, const char *line)
{
    (void)arg, (void)level;
    pthread_mutex_lock(&mu);
    size_t used = strlen(kept), length = strlen(line);
    if (used + length + 2 > sizeof kept) { /* a line that is not kept is one that no test finds */
        fputs("the lines of the log are too many to be kept\n", stderr);
        abort();
    }
    snprintf(kept + used, sizeof kept - used, "%s\n", line);
    pthread_mutex_unlock(&mu);
}

int log_keep(int level)
{
    pthread_mutex_lock(&mu);
    kept[0] = '\0';
    pthread_mutex_unlock(&mu);
    return log_to(keep, level, NULL);
}

const char *log_kept(void)
{
    static char copy[sizeof kept];
    pthread_mutex_lock(&mu);
    memcpy(copy, kept, strlen(kept) + 1);
    pthread_mutex_unlock(&mu);
    return copy;
}
