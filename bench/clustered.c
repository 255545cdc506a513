/* SPDX-License-Identifier: MIT */
/*
 * clustered.c - pairs of many threads of one process, each with a mutex of its own: at one server, and in a cluster
 *
 *   cluster.us.one       processor time of the servers per pair: one server by itself
 *   cluster.us.<n>       of a cluster of three masters, of which n have the mutexes, with as many threads each
 *   cluster.pairs.one    pairs per second, likewise
 *   cluster.pairs.<n>
 *
 * The three take turns, TURNS times, so that they see the same noise.
 */
#include "measure.h"
#include "server.h"
#include "subject.h"
#include "wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 3, EACH = 32, THREADS_MAX = NODES * EACH, WARM = 20, TURNS = 5, SLOTS = 16384 };

struct server {
    struct wire *wire;
    pid_t pid;
};

struct way { /* a client, and mutexes at `count` of its servers */
    const char *name;
    lk_client_t *client;
    struct server *servers;
    int server_count, count;
    char names[THREADS_MAX][32];
    double us, pairs; /* sums of all turns */
};

struct seat {
    const struct way *way;
    const char *name;
    pthread_barrier_t *start, *end;
    const atomic_int *over;
    int64_t pairs;
};

static void *work(void *arg)
{
    struct seat *seat = arg;
    struct subject own;
    subject_init(&own, &subject_kinds[0], seat->way->client, seat->name);
    for (int i = 0; i < WARM; i++)
        subject_pair(&own);
    pthread_barrier_wait(seat->start); /* all are warm, and the servers' times are taken */
    pthread_barrier_wait(seat->start);
    for (seat->pairs = 0; !atomic_load_explicit(seat->over, memory_order_relaxed); seat->pairs++)
        subject_pair(&own);
    pthread_barrier_wait(seat->end);
    subject_destroy(&own);
    return NULL;
}

static double cpu_us(const struct way *way)
{
    double us = 0;
    for (int i = 0; i < way->server_count; i++)
        us += (double)server_cost(way->servers[i].wire, way->servers[i].pid).cpu_ns / 1e3;
    return us;
}

static void rest(int64_t ms)
{
    struct timespec pause = { 0, 1000000 };
    for (int64_t end = now_ns() + ms * 1000000; now_ns() < end;)
        nanosleep(&pause, NULL);
}

static void measure(struct way *way, int64_t ms)
{
    static struct seat seats[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    pthread_barrier_t start, end;
    atomic_int over = 0;
    int threads = way->count * EACH;
    int64_t pairs = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        seats[i] = (struct seat){ way, way->names[i], &start, &end, &over, 0 };
        if (pthread_create(&ids[i], NULL, work, &seats[i]) != 0)
            fail("thread");
    }
    pthread_barrier_wait(&start);
    double before = cpu_us(way);
    pthread_barrier_wait(&start);
    int64_t began = now_ns();
    rest(ms);
    atomic_store(&over, 1);
    pthread_barrier_wait(&end);
    double seconds = (double)(now_ns() - began) / 1e9, spent = cpu_us(way) - before;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        pairs += seats[i].pairs;
    }
    pthread_barrier_destroy(&start);
    pthread_barrier_destroy(&end);
    way->us += spent / (double)pairs;
    way->pairs += (double)pairs / seconds;
}

static struct server open_server(const char *address, const char *pid)
{
    return (struct server){ wire_open(address), (pid_t)strtol(pid, NULL, 10) };
}

static lk_client_t *open_at(const char *scheme, const char *address)
{
    char url[128];
    snprintf(url, sizeof url, "%s://%s?" PATIENCE, scheme, address);
    return open_client(url);
}

/* EACH for each of the nodes that are to have some, which have a third of the slots each. */
static void choose_names(struct way *way)
{
    int chosen[NODES] = { 0 }, wanted = way->count * EACH;
    for (int number = 0, made = 0; made < wanted; number++) {
        char *name = way->names[made];
        snprintf(name, sizeof way->names[0], "thread-%04d", number);
        int64_t slot = reply_number(wire_ask(way->servers[0].wire, WORDS("CLUSTER", "KEYSLOT", name)));
        int node = (int)(slot * NODES / SLOTS);
        if (node < way->count && chosen[node] < EACH) {
            chosen[node]++;
            made++;
        }
    }
}

int main(int argc, char **argv)
{
    static struct way ways[3] = { { .name = "one", .count = 1 },
                                  { .name = "1", .count = 1 },
                                  { .name = "3", .count = NODES } };
    struct server servers[1 + NODES];
    struct place place;
    int at = place_read(&place, argc, argv, "ADDRESS PID of one server, then of three nodes");
    if (argc - at != 2 * (1 + NODES))
        fail("ADDRESS PID of four servers");
    for (int i = 0; i <= NODES; i++)
        servers[i] = open_server(argv[at + 2 * i], argv[at + 2 * i + 1]);
    lk_client_t *one = open_at("redis", argv[at]), *cluster = open_at("redis-cluster", argv[at + 2]);
    for (int i = 0; i < 3; i++) {
        ways[i].client = i == 0 ? one : cluster;
        ways[i].servers = i == 0 ? servers : servers + 1;
        ways[i].server_count = i == 0 ? 1 : NODES;
        if (i > 0)
            choose_names(&ways[i]);
    }
    memcpy(ways[0].names, ways[1].names, sizeof ways[0].names);
    for (int turn = 0; turn < TURNS * 3; turn++)
        measure(&ways[turn % 3], place.ms / 3 + 1);
    for (int i = 0; i < 3; i++) {
        tell(ways[i].us / TURNS, "cluster.us.%s", ways[i].name);
        tell(ways[i].pairs / TURNS, "cluster.pairs.%s", ways[i].name);
    }
    for (int i = 0; i <= NODES; i++)
        wire_close(servers[i].wire);
    return lk_client_close(one) | lk_client_close(cluster);
}
