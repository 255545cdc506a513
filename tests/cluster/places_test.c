/* SPDX-License-Identifier: MIT */
/*
 * places_test.c - where nodes of a cluster say that they are: names, addresses, nothing; and what says so wrongly
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 30
 */
#include "cluster.h"

#include "subject.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=200ms&retry_max=50ms"

static void works(lk_mutex_t *mutex)
{
    assert_lk(0, lk_mutex_lockfor(mutex, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(mutex));
}

/* On each node, and where a slot has gone unnoticed: MOVED is understood at once, not only once the map was asked for. */
static void all_nodes_are_found(struct world *w, struct cluster *c, lk_client_t *client)
{
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        works(world_mutex(w, client, cluster_name(c, node, "orders"), NULL));
    const char *name = cluster_name(c, 0, "moved");
    lk_mutex_t *moved = world_mutex(w, client, name, NULL);
    works(moved);
    cluster_move(c, cluster_slot(c, name), 0, 1);
    int64_t began_ms = now_ms();
    works(moved);
    assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS);
    assert_int_equal(1, cluster_master(c, name));
}

static void nodes_have_names(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    cluster_setname(c, "localhost");
    cluster_order(c, "CONFIG SET cluster-preferred-endpoint-type hostname");
    all_nodes_are_found(w, c, cluster_client(c, OPTIONS));
}

/* MOVED has no host then, and means the one where it was said. */
static void nodes_do_not_say_where_they_are(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    cluster_order(c, "CONFIG SET cluster-preferred-endpoint-type unknown-endpoint");
    all_nodes_are_found(w, c, cluster_client(c, OPTIONS));
}

/* MOVED says "?" for a host: the map has to tell. */
static void nodes_have_no_names_where_these_are_wanted(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    cluster_order(c, "CONFIG SET cluster-preferred-endpoint-type hostname");
    all_nodes_are_found(w, c, cluster_client(c, OPTIONS));
}

static void nodes_have_long_addresses(struct world *w)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    if (!there) {
        print_message("             no IPv6 here\n");
        return;
    }
    struct cluster *c = cluster_begin_at(w, "::1", false);
    all_nodes_are_found(w, c, cluster_client(c, OPTIONS));
}

/* --- one who is wrong -------------------------------------------------------------------------------------------------- */

/* Tells whoever asks what the test wants it to, and says OK to all else. */
struct liar {
    int fd, port;
    char map[4096];
    atomic_bool over;
    atomic_int told;
    struct worker worker;
};

static void answer(struct liar *liar, int fd, const redisReply *command)
{
    char text[sizeof liar->map + 32] = "+OK\r\n";
    if (strcmp(command->element[0]->str, "CLUSTER") == 0) {
        snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(liar->map), liar->map);
        atomic_fetch_add(&liar->told, 1);
    }
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return;
}

static void serve(struct liar *liar, int fd)
{
    char bytes[4096];
    redisReader *reader = redisReaderCreate();
    for (ssize_t got; (got = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
        redisReply *command = NULL;
        redisReaderFeed(reader, bytes, (size_t)got);
        while (redisReaderGetReply(reader, (void **)&command) == REDIS_OK && command != NULL) {
            answer(liar, fd, command);
            freeReplyObject(command);
        }
    }
    redisReaderFree(reader);
    close(fd);
}

static int lie(void *arg)
{
    struct liar *liar = arg;
    struct pollfd listening = { liar->fd, POLLIN, 0 };
    const struct timeval patience = { 1, 0 };
    while (!atomic_load(&liar->over)) {
        int fd = poll(&listening, 1, 50) == 1 ? accept4(liar->fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        serve(liar, fd);
    }
    close(liar->fd);
    return 0;
}

static void end_liar(void *arg)
{
    struct liar *liar = arg;
    atomic_store(&liar->over, true);
    assert_int_equal(0, worker_join(&liar->worker));
    free(liar);
}

static struct liar *liar_begin(struct world *w)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    struct liar *liar = calloc(1, sizeof *liar);
    assert_non_null(liar);
    liar->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(0, bind(liar->fd, (struct sockaddr *)&address, size));
    assert_int_equal(0, listen(liar->fd, 8));
    assert_int_equal(0, getsockname(liar->fd, (struct sockaddr *)&address, &size));
    liar->port = ntohs(address.sin_port);
    worker_start(&liar->worker, lie, liar);
    world_at_end(w, NULL, liar, end_liar);
    return liar;
}

/* Each third of the slots belongs to the node at that port. */
static void say(struct liar *liar, const int ports[CLUSTER_MASTERS])
{
    static const char *const thirds[CLUSTER_MASTERS] = { "0-5460", "5461-10921", "10922-16383" };
    int used = snprintf(liar->map, sizeof liar->map, "%s\n", "no line of a map");
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        used += snprintf(liar->map + used, sizeof liar->map - (size_t)used,
                         "%040d 127.0.0.1:%d@1 master - 0 0 %d connected %s\n", i, ports[i], i + 1, thirds[i]);
}

static lk_client_t *client_by(struct world *w, struct cluster *c, struct liar *liar, const char *others)
{
    char hosts[64];
    snprintf(hosts, sizeof hosts, "127.0.0.1:%d%s", liar->port, others);
    return world_client_at(w, c, cluster_url_of(c, CLUSTER_USER ":" CLUSTER_PASSWORD, hosts, OPTIONS));
}

/* Everything is elsewhere: each node says where, and tells the right map when it is asked. */
static void the_map_is_of_others(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    struct liar *liar = liar_begin(w);
    say(liar, (int[]){ cluster_port(c, 1), cluster_port(c, 2), cluster_port(c, 0) });
    lk_client_t *client = client_by(w, c, liar, "");
    int64_t began_ms = now_ms();
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        works(world_mutex(w, client, cluster_name(c, node, "orders"), NULL));
    assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS);
    assert_true(atomic_load(&liar->told) >= 1);
}

/* One that is named is not there, and another is not a node: who knows better is asked. */
static void the_map_names_who_is_not_there(struct world *w)
{
    char others[32];
    struct cluster *c = cluster_begin(w, false);
    struct liar *liar = liar_begin(w);
    say(liar, (int[]){ free_port(), cluster_port(c, 1), cluster_port(c, 2) });
    snprintf(others, sizeof others, ",127.0.0.1:%d", cluster_port(c, 2));
    lk_client_t *client = client_by(w, c, liar, others);
    for (int node = CLUSTER_MASTERS - 1; node >= 0; node--)
        works(world_mutex(w, client, cluster_name(c, node, "orders"), NULL));
}

/* It knows of no slots: the next one is asked; there is none: no node of a cluster is there yet. */
static void the_map_is_empty(struct world *w)
{
    char others[32];
    lk_client_t *client;
    struct cluster *c = cluster_begin(w, false);
    struct liar *liar = liar_begin(w);
    snprintf(liar->map, sizeof liar->map, "%040d :%d@0 myself,master - 0 0 0 connected\n", 1, liar->port);
    snprintf(others, sizeof others, "127.0.0.1:%d", liar->port);
    assert_lk(ENOTCONN, lk_client_open(&client, cluster_url_of(c, CLUSTER_USER ":" CLUSTER_PASSWORD, others, OPTIONS)));
    assert_non_null(strstr(lk_errortext(), "has no slots yet"));
    snprintf(others, sizeof others, ",127.0.0.1:%d", cluster_port(c, 0));
    client = client_by(w, c, liar, others);
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        works(world_mutex(w, client, cluster_name(c, node, "orders"), NULL));
}

int main(void)
{
    return world_run(nodes_have_names, nodes_do_not_say_where_they_are, nodes_have_no_names_where_these_are_wanted,
                     nodes_have_long_addresses, the_map_is_of_others, the_map_names_who_is_not_there, the_map_is_empty);
}
