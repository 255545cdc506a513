/* SPDX-License-Identifier: MIT */
#include "raw.h"

#include <latchkey/latchkey.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, lk_errortext());
    exit(1);
}

int raw_connect(const char *socket_path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        perror(socket_path);
        exit(1);
    }
    return fd;
}

void raw_ping(int fd)
{
    char answer[16];
    if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6 || recv(fd, answer, sizeof answer, 0) <= 0) {
        perror("ping");
        exit(1);
    }
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

double median_us(int64_t *ns, int count)
{
    qsort(ns, (size_t)count, sizeof *ns, compare);
    return (double)ns[count / 2] / 1e3;
}
