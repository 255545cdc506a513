/* SPDX-License-Identifier: MIT */
/*
 * departed_test.c - a client lives on while nodes come and go, more of them than it can know at a time
 *
 * One server has all slots, and an address of this machine after another, which it tells to whoever asks for the map.
 *
 * labels: fullthreads long memory
 * simulated: yes
 * seconds: 60
 */
#include "news.h"
#include "redis/cluster.h"
#include "subject.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS "lease=20s&command_timeout=2s&poll=1s&retry_max=50ms"

enum { LIVES = LK__NODES_MAX + 20, PLACES_FEW = 8, DESCRIPTORS_EACH = 4 };

static const char *address_of(int life)
{
    static char address[32];
    snprintf(address, sizeof address, "127.0.%d.%d", 1 + life / 200, 1 + life % 200);
    return address;
}

static int descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* A server that is a cluster, on all addresses. */
static struct world *begin(int *port)
{
    char args[192];
    *port = free_port();
    snprintf(args, sizeof args,
             "--cluster-enabled yes --port %d --bind 0.0.0.0 --protected-mode no --cluster-port %d "
             "--cluster-announce-ip %s",
             *port, free_port(), address_of(0));
    struct world *w = world_begin(args);
    world_redis(w, "CLUSTER ADDSLOTSRANGE 0 16383");
    eventually(strstr(world_str(w, "CLUSTER INFO"), "cluster_state:ok") != NULL, PATIENT_MS);
    return w;
}

/* Is what is asked for asked at that address? */
static bool is_there(struct world *w, lk_mutex_t *visited, const char *address, int port)
{
    char there[48];
    if (lock_and_unlock(visited) != 0)
        return false;
    snprintf(there, sizeof there, " laddr=%s:%d ", address, port);
    return strstr(world_str(w, "CLIENT LIST"), there) != NULL;
}

/* What is held is held on, who waits waits on, and each node that left makes room for the next one. */
static void nodes_come_and_go(void)
{
    int port, before = 0;
    struct world *w = begin(&port);
    char url[192];
    struct worker waiter;
    snprintf(url, sizeof url, "redis-cluster://%s:%d/?" OPTIONS, address_of(0), port);
    lk_client_t *client = world_client_at(w, NULL, url);
    lk_mutex_t *held = world_mutex(w, client, "held", NULL), *visited = world_mutex(w, client, "visited", NULL);
    struct news *n = news_of(w, client, "held");
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, lock_and_unlock, held);
    eventually(world_queued(w, "held") == 1, PATIENT_MS);
    for (int life = 1; life < LIVES; life++) {
        world_redis(w, "CONFIG SET cluster-announce-ip %s", address_of(life));
        world_killcommands(w);
        world_killsubscriptions(w);
        eventually(is_there(w, visited, address_of(life), port), PATIENT_MS);
        if (life == PLACES_FEW)
            before = descriptors();
        if (life > PLACES_FEW && descriptors() > before + 2 * PLACES_FEW * DESCRIPTORS_EACH)
            fail_msg("%d descriptors after %d nodes, %d before", descriptors(), life, before);
    }
    assert_lk(0, lk_mutex_check(held));
    assert_int_equal(0, news(n, LK_EVENT_LOST));
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(0, worker_join(&waiter));
    world_close(w, NULL);
    world_end(w);
}

int main(void)
{
    return plain_run(nodes_come_and_go);
}
