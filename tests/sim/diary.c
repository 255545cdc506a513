/* SPDX-License-Identifier: MIT */
/* diary.c - see diary.h */
#include "diary.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void diary_write(const char *format, ...)
{
    static int fd = -1;
    char line[512];
    if (fd < 0) {
        int low = (int)sim_kernel(SYS_openat, AT_FDCWD, world->diary, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        fd = (int)sim_kernel(SYS_fcntl, low, F_DUPFD_CLOEXEC, 900); /* in nobody's way */
        sim_kernel(SYS_close, low);
    }
    int length = sim_me == 0 ? snprintf(line, sizeof line, "%14.6f  -  ", (double)world->now_ns / 1e9)
                             : snprintf(line, sizeof line, "%14.6f  %s.%u t%u  ", (double)world->now_ns / 1e9,
                                        world->procs[sim_proc()].name, sim_proc(), sim_me);
    va_list args;
    va_start(args, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, args);
    va_end(args);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    sim_kernel(SYS_write, fd, line, length);
}
