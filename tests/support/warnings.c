/* SPDX-License-Identifier: MIT */
/* warnings.c - see warnings.h */
#include "log.h"
#include "warnings.h"

#include "assert_lk.h"

#include <latchkey/latchkey.h>

#include <stdio.h>
#include <string.h>

static char kept[1024];

static void keep(void *arg, int level, const char *line)
{
    (void)arg;
    if (level == LK_LOG_WARNING)
        snprintf(kept + strlen(kept), sizeof kept - strlen(kept), "%s\n", line);
}

void warnings_keep(void)
{
    kept[0] = '\0';
    assert_lk(0, log_to(keep, LK_LOG_WARNING, NULL));
}

const char *warnings(void)
{
    return kept;
}
