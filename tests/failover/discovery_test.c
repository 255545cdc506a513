/* SPDX-License-Identifier: MIT */
/*
 * discovery_test.c - the master is found wherever it is named, and with words where it is not
 *
 * labels: memory
 * simulated: yes
 * seconds: 10
 */
#include "failover.h"
#include "subject.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=500ms"

/* A port on which connections are made, and nobody says a word. */
static int silent_port(int *listener)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(bind(*listener, (struct sockaddr *)&address, size) == 0 && listen(*listener, 16) == 0);
    assert_int_equal(0, getsockname(*listener, (struct sockaddr *)&address, &size));
    return ntohs(address.sin_port);
}

static int tcp_port(struct failover *f, int node)
{
    return atoi(strstr(failover_str(f, node, "INFO server"), "tcp_port:") + strlen("tcp_port:"));
}

static void works(struct world *w, struct failover *f, const char *url)
{
    lk_client_t *client = world_client_at(w, f, url);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_between(now_ms() - began_ms, 0, 500 + SLACK_MS);
    world_close(w, client);
}

static const char *replaced(const char *url, const char *from, const char *to)
{
    static char texts[2][512];
    static unsigned next;
    char *changed = texts[next++ % 2];
    const char *at = strstr(url, from);
    assert_non_null(at);
    snprintf(changed, sizeof texts[0], "%.*s%s%s", (int)(at - url), url, to, at + strlen(from));
    return changed;
}

/* Who does not answer, or answers nothing of use, has a share of the time; the next one is asked. */
static void found_by_whoever_knows(struct world *w)
{
    int listener, silent;
    struct failover *f = failover_begin(w, NULL);
    silent = silent_port(&listener);
    works(w, f, failover_url(f, OPTIONS));
    works(w, f, failover_listurl(f, OPTIONS));
    works(w, f, failover_urlwith(failover_url(f, OPTIONS), 1));
    works(w, f, failover_urlwith(failover_listurl(f, OPTIONS), 1));
    works(w, f, failover_urlwith(failover_url(f, OPTIONS), silent));
    works(w, f, failover_urlwith(failover_listurl(f, OPTIONS), silent));
    failover_refused(ENOTCONN, replaced(failover_url(f, OPTIONS), FAILOVER_SERVICE, "bills-db"),
                     "knows no such master: bills-db");
    failover_refused(EACCES, replaced(failover_url(f, OPTIONS), "sentinel_password=", "sentinel_password=x"),
                     "refuses the user");
    failover_refused(EACCES, replaced(failover_url(f, OPTIONS), "app:", "app:x"),
                     "the server refuses the user or the password");
    failover_refused(ENOTCONN, "redis-sentinel://127.0.0.1:1,127.0.0.1:2/" FAILOVER_SERVICE, "Connection refused");
    failover_refused(ENOTCONN, "redis://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:2: Connection refused");
    close(listener);

    failover_stopsentinel(f, 0);
    works(w, f, failover_url(f, OPTIONS));
    failover_contsentinel(f, 0);
    failover_demand(f);
    assert_int_not_equal(0, failover_await(f, 0, NULL));
    works(w, f, failover_url(f, OPTIONS));
    works(w, f, failover_listurl(f, OPTIONS)); /* the first one is a replica now */
}

/* A plain list follows a failover that ends the old master's connections, or at which it says READONLY. */
/* The old master may end the connection while it answers. */
static int check_over_failover(lk_mutex_t *mutex)
{
    int rc;
    do
        rc = lk_mutex_check(mutex);
    while (rc == EIO);
    return rc;
}

static void a_list_follows(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = world_client_at(w, f, failover_listurl(f, OPTIONS));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    failover_sync(f, 0);
    failover_demand(f);
    int master = failover_await(f, 0, NULL);
    eventually(strstr(failover_str(f, 0, "INFO replication"), "role:slave") != NULL, FAILOVER_WITHIN_MS);
    assert_lk(0, check_over_failover(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    eventually(failover_connections(f, 0) == 0, PATIENT_MS);
    assert_int_equal(0, failover_int(f, master, "EXISTS orders"));
}

/* Sentinels are told to forget the master, and that another one has its name: they say nothing of a failover then. */
static void watch_another_one(struct failover *f, int node)
{
    char command[96];
    failover_str(f, node, "REPLICAOF NO ONE");
    snprintf(command, sizeof command, "SENTINEL MONITOR " FAILOVER_SERVICE " 127.0.0.1 %d 2", failover_serverport(f, node));
    failover_ordersentinels(f, "SENTINEL REMOVE " FAILOVER_SERVICE);
    failover_ordersentinels(f, command);
}

static void another_one_is_monitored(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = failover_client(f, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    watch_another_one(f, 1); /* the old one goes on, and is left */
    eventually(failover_connections(f, 0) == 0 && failover_connections(f, 1) > 0, PATIENT_MS);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));

    /* To who may not hear of it the Sentinels say so when they are asked, as nobody is at the old place. */
    failover_ordersentinels(f, FAILOVER_READER " resetchannels &+switch-master >word");
    const char *url = replaced(failover_url(f, OPTIONS), "?", "?sentinel_user=reader&");
    url = replaced(url, "=" FAILOVER_SENTINEL_PASSWORD, "=word");
    lk_client_t *reader = world_client_at(w, f, url);
    lk_mutex_t *bills = world_mutex(w, reader, "bills", NULL);
    assert_lk(0, lk_mutex_lock(bills));
    assert_lk(0, lk_mutex_unlock(bills));
    watch_another_one(f, 2);
    failover_kill(f, 1);
    assert_lk(0, lk_mutex_lockfor(bills, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(bills));
    assert_true(failover_connections(f, 2) > 0);
}

/* All that came to this listener so far. */
static size_t received(int listener, char *bytes, size_t size)
{
    size_t length = 0;
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        ssize_t got;
        while (length + 1 < size && (got = recv(fd, bytes + length, size - 1 - length, 0)) > 0)
            length += (size_t)got;
        close(fd);
    }
    bytes[length] = '\0';
    return length;
}

/* Who may replicate has the master name any address as a replica's: no password goes there in clear. */
static void a_named_replica_is_told_no_password(struct world *w)
{
    char bytes[4096];
    int listener;
    struct failover *f = failover_begin(w, NULL);
    int silent = silent_port(&listener);
    assert_int_equal(0, fcntl(listener, F_SETFL, O_NONBLOCK));
    redisContext *replica = redisConnect("127.0.0.1", tcp_port(f, 0));
    freeReplyObject(redisCommand(replica, "AUTH app " FAILOVER_PASSWORD));
    freeReplyObject(redisCommand(replica, "REPLCONF listening-port %d", silent));
    freeReplyObject(redisCommand(replica, "REPLCONF ip-address 127.0.0.1"));
    assert_int_equal(REDIS_OK, redisAppendCommand(replica, "PSYNC ? -1"));
    int done = 0;
    while (done == 0)
        assert_int_equal(REDIS_OK, redisBufferWrite(replica, &done));
    char named[32];
    snprintf(named, sizeof named, "port=%d,", silent);
    eventually(strstr(failover_str(f, 0, "INFO replication"), named) != NULL, PATIENT_MS);

    works(w, f, failover_url(f, OPTIONS));
    assert_true(received(listener, bytes, sizeof bytes) > 0);
    assert_true(strstr(bytes, "TIME") != NULL || tcp_port(f, 0) != failover_serverport(f, 0));
    assert_null(strstr(bytes, "\r\napp\r\n")); /* Sentinels log in there, as somebody else */
    redisFree(replica);
    close(listener);
}

int main(void)
{
    return world_run(found_by_whoever_knows, a_list_follows, another_one_is_monitored,
                     a_named_replica_is_told_no_password);
}
