/* SPDX-License-Identifier: MIT */
/* log.c - see log.h */
#include "log.h"

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
