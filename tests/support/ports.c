/* SPDX-License-Identifier: MIT */
/* ports.c - ports for servers, out of those that the kernel gives to connections */
#include "world.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORTS_FROM = 10000,
    PORTS = 20000 /* below those for connections */
};

/* Each process begins elsewhere, and takes one after the other. */
static int next_port(void)
{
    static uint64_t next;
    static pid_t process;
    if (process != getpid()) {
        process = getpid();
        next = (uint64_t)process * 7919 + (uint64_t)now_ms();
    }
    return PORTS_FROM + (int)(next++ % PORTS);
}

static bool is_free(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_that(fd >= 0);
    bool is_mine = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return is_mine;
}

int free_port(void)
{
    int port;
    do
        port = next_port();
    while (!is_free(port));
    return port;
}
