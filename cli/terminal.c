/* SPDX-License-Identifier: MIT */
#include "terminal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

int terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return columns != NULL && atoi(columns) > 0 ? atoi(columns) : 80;
}

void print_wrapped(int indent, int width, const char *words)
{
    int room = width > indent + 16 ? width - indent : 16, used = 0;
    while (*words != 0) {
        int length = (int)strcspn(words, " \n");
        if (used > 0 && used + 1 + length > room) {
            printf("\n%*s", indent, "");
            used = 0;
        }
        printf("%s%.*s", used > 0 ? " " : "", length, words);
        used += length + (used > 0);
        words += length + strspn(words + length, " \n");
    }
    putchar('\n');
}

bool terminal_has_colours(void)
{
    const char *unwanted = getenv("NO_COLOR"), *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && (unwanted == NULL || unwanted[0] == 0) && kind != NULL && strcmp(kind, "dumb") != 0;
}
