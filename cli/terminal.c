/* SPDX-License-Identifier: MIT */
#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

int terminal_open(void)
{
    return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

bool terminal_is_of(int terminal, pid_t group)
{
    return terminal >= 0 && tcgetpgrp(terminal) == group;
}

bool terminal_is_ours(int terminal)
{
    return terminal_is_of(terminal, getpgrp());
}

void terminal_give(int terminal, pid_t group)
{
    if (terminal >= 0)
        (void)tcsetpgrp(terminal, group);
}

bool terminal_has_jobs(void)
{
    return getsid(0) != getpgrp();
}
