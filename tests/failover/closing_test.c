/* SPDX-License-Identifier: MIT */
/*
 * closing_test.c - a Sentinel that answers and closes is asked later and later
 *
 * simulated: yes
 */
#include "failover.h"
#include "subject.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=500ms"

enum { WATCHED_MS = 2000, CONNECTIONS_MAX = 40 };

/* Says of the master that it is at a port, and closes. */
struct closing {
    int listener, port, master;
    atomic_int connections;
    atomic_bool over;
};

/* When all questions came. */
static void answer(const struct closing *c, int fd)
{
    char bytes[1024] = "", port[8];
    size_t length = 0;
    ssize_t got;
    while (strstr(bytes, "+switch-master") == NULL && length + 1 < sizeof bytes &&
           (got = recv(fd, bytes + length, sizeof bytes - 1 - length, 0)) > 0)
        bytes[length += (size_t)got] = '\0';
    int digits = snprintf(port, sizeof port, "%d", c->master);
    dprintf(fd,
            "+OK\r\n*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n*2\r\n$12\r\nconfig-epoch\r\n$1\r\n0\r\n"
            "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n"
            "$8\r\n+monitor\r\n:2\r\n",
            digits, port);
}

static int close_each(void *arg)
{
    struct closing *c = arg;
    while (!atomic_load(&c->over)) {
        struct pollfd polled = { c->listener, POLLIN, 0 };
        if (poll(&polled, 1, 50) <= 0)
            continue;
        int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
        answer(c, fd);
        shutdown(fd, SHUT_WR);
        close(fd);
        atomic_fetch_add(&c->connections, 1);
    }
    return 0;
}

static void listen_somewhere(struct closing *c)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    c->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(bind(c->listener, (struct sockaddr *)&address, size) == 0 && listen(c->listener, 16) == 0);
    assert_int_equal(0, getsockname(c->listener, (struct sockaddr *)&address, &size));
    c->port = ntohs(address.sin_port);
}

static void one_that_answers_and_closes(struct world *w)
{
    struct closing c = { 0 };
    struct worker worker;
    struct failover *f = failover_begin(w, NULL);
    const char *info = failover_str(f, 0, "INFO server");
    assert_int_equal(1, sscanf(strstr(info, "tcp_port:"), "tcp_port:%d", &c.master));
    listen_somewhere(&c);
    worker_start(&worker, close_each, &c);
    lk_client_t *client = world_client_at(w, f, failover_urlwith(failover_url(f, OPTIONS), c.port));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    sleep_ms(WATCHED_MS);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_between(atomic_load(&c.connections), 2, CONNECTIONS_MAX);
    world_close(w, client);
    atomic_store(&c.over, true);
    assert_int_equal(0, worker_join(&worker));
    close(c.listener);
}

int main(void)
{
    return world_run(one_that_answers_and_closes);
}
