/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <latchkey/latchkey.h>

#include <stdio.h>

int run_version(struct settings *settings, int count, char **operands)
{
    (void)count, (void)operands;
    const int numbers[] = { LK_VERSION_MAJOR, LK_VERSION_MINOR, LK_VERSION_PATCH };
    printf(settings->json ? "{\"command\":\"%d.%d.%d\",\"library\":\"%s\"}\n" : "latchkey %d.%d.%d, library %s\n",
           numbers[0], numbers[1], numbers[2], lk_version());
    return flush_output();
}
