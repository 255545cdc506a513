/* SPDX-License-Identifier: MIT */
/*
 * early_news_test.c - a Sentinel has news right behind its first answers, in the same bytes: they are heard at once
 *
 * It is one of the test's own, in front of the real ones; the master that it names is the right one.
 *
 * labels: threads
 */
#include "failover.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENT_MS = 8000 /* less than the silence after which a Sentinel is pinged */, ASKED_MAX = 8 };

static int listener, master_port;
static atomic_int asked;
static atomic_bool over;

/* What a Sentinel says to the password and three questions; and, once, that the master moves. */
static int say(char *text, size_t size, bool news)
{
    char port[8], message[128];
    int digits = snprintf(port, sizeof port, "%d", master_port);
    int length = snprintf(message, sizeof message, "%s 127.0.0.1 1 127.0.0.1 2", FAILOVER_SERVICE);
    int used = snprintf(text, size,
                        "+OK\r\n*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n*2\r\n$12\r\nconfig-epoch\r\n$1\r\n0\r\n"
                        "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n", digits, port);
    if (news)
        used += snprintf(text + used, size - (size_t)used,
                         "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$%d\r\n%s\r\n", length, message);
    return used;
}

/* Read until the subscription is asked for, and answer all in one write. A connector that is woken hangs up, and asks anew. */
static void answer(int fd)
{
    char bytes[4096] = "", text[1024];
    size_t got = 0;
    ssize_t more;
    while (strstr(bytes, "+switch-master") == NULL && got < sizeof bytes - 1 &&
           (more = recv(fd, bytes + got, sizeof bytes - 1 - got, 0)) > 0)
        got += (size_t)more;
    if (got == 0)
        return;
    int length = say(text, sizeof text, atomic_fetch_add(&asked, 1) == 0);
    (void)!send(fd, text, (size_t)length, MSG_NOSIGNAL);
}

static int be_a_sentinel(void *arg)
{
    int each[ASKED_MAX], count = 0;
    (void)arg;
    while (!atomic_load(&over)) {
        struct pollfd polled = { listener, POLLIN, 0 };
        if (poll(&polled, 1, 50) <= 0 || count == ASKED_MAX)
            continue;
        each[count] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        answer(each[count++]);
    }
    while (count > 0)
        close(each[--count]);
    return 0;
}

static int listen_somewhere(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 16) == 0);
    assert_int_equal(0, getsockname(listener, (struct sockaddr *)&address, &size));
    return ntohs(address.sin_port);
}

static void news_behind_an_answer_are_heard(struct world *w)
{
    struct worker sentinel;
    struct failover *f = failover_begin(w, NULL);
    const char *told = strstr(failover_str(f, 0, "INFO server"), "tcp_port:");
    assert_non_null(told);
    master_port = atoi(told + strlen("tcp_port:"));
    int port = listen_somewhere();
    worker_start(&sentinel, be_a_sentinel, NULL);
    (void)world_client_at(w, f, failover_urlwith(failover_url(f, "lease=10s"), port));
    eventually(atomic_load(&asked) >= 2, PATIENT_MS);
    failover_end(f);
    atomic_store(&over, true);
    assert_int_equal(0, worker_join(&sentinel));
    close(listener);
}

int main(void)
{
    return world_run(news_behind_an_answer_are_heard);
}
