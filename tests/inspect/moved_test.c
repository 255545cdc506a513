/* SPDX-License-Identifier: MIT */
/*
 * moved_test.c - a server is started anew, or replaced, or slots go to another node in the middle of a walk: what is there
 * from the beginning to the end is found
 *
 * labels: threads
 * simulated: yes
 * seconds: 20
 */
#include "cluster.h"
#include "failover.h"

#include <stdio.h>
#include <string.h>

#define LEASE "lease=20s&command_timeout=1s"
#define MAKE "for i = 0, ARGV[2] - 1 do redis.call('SET', 'latchkey:robust:mutex:' .. ARGV[1] .. i, 'x') end return 1"

enum { MANY = 3000, HALF = MANY / 2, WITHIN_MS = 40000 };

static int told[MANY]; /* how often each was */

static int untold(void)
{
    int count = 0;
    for (int i = 0; i < MANY; i++)
        count += told[i] == 0;
    return count;
}

/*
 * Go on until so many more of "...}<number>" were told, or to the end: true. What fails as a server is away is asked again.
 */
static bool walk_on(lk_inspect_t *walk, int most)
{
    lk_inspected_t object = LK_INSPECTED_INIT;
    int64_t until_ms = now_ms() + WITHIN_MS;
    for (int count = 0; count < most;) {
        int number, rc = lk_inspect_next(walk, &object);
        if (rc == ENOENT)
            return true;
        const char *digits = rc == 0 ? strrchr(object.name, '}') : NULL;
        if (rc == ENOTCONN || rc == EIO)
            assert_between(now_ms(), 0, until_ms);
        else
            assert_lk(0, rc);
        if (digits == NULL || sscanf(digits, "}%d", &number) != 1)
            continue;
        assert_between(number, 0, MANY - 1);
        told[number]++;
        count++;
    }
    return false;
}

static lk_inspect_t *begin(lk_client_t *client)
{
    lk_inspect_t *walk;
    memset(told, 0, sizeof told);
    assert_lk(0, lk_inspect_open(&walk, client, NULL));
    return walk;
}

/* Nothing moves any more: each is found, and the walk is over. */
static void end(lk_inspect_t *walk)
{
    assert_true(walk_on(walk, 100 * MANY));
    assert_int_equal(0, untold());
    lk_inspect_close(walk);
}

/* --- a server ------------------------------------------------------------------------------------------------------- */

/* Cursors of the one before mean nothing to a server that was started anew. */
static void a_server_is_started_anew(struct world *w)
{
    world_allow(w, "latchkey:robust:mutex:*");
    lk_client_t *client = world_client(w, LEASE);
    world_redis(w, "EVAL %s 0 :{o} %d", MAKE, MANY);
    world_redis(w, "SAVE");
    lk_inspect_t *walk = begin(client);
    assert_false(walk_on(walk, HALF));
    world_kill_server(w);
    world_restart_server(w);
    end(walk);
}

static void another_master_takes_its_place(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = failover_client(f, LEASE);
    assert_same(1, failover_int(f, 0, "EVAL %s 0 :{o} %d", MAKE, MANY));
    failover_sync(f, 0);
    lk_inspect_t *walk = begin(client);
    assert_false(walk_on(walk, HALF));
    failover_kill(f, 0);
    end(walk);
}

/* --- a cluster ------------------------------------------------------------------------------------------------------ */

/* Objects in a slot of a master, the same one for all. */
static int fill(struct cluster *c, int node, int count)
{
    char tag[64];
    snprintf(tag, sizeof tag, "{%s}", cluster_name(c, node, "o"));
    assert_same(1, cluster_int(c, node, "EVAL %s 0 :%s %d", MAKE, tag, count));
    return cluster_slot(c, cluster_name(c, node, "o"));
}

/* A slot that was not gone through yet goes to a node that was; the client asks for nothing else, so nobody tells it. */
static void a_slot_goes_where_the_walk_was(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, LEASE);
    int slot = fill(c, 2, MANY);
    lk_inspect_t *walk = begin(client);
    assert_false(walk_on(walk, 1));
    cluster_move(c, slot, 2, 0);
    end(walk);
    end(begin(client));
    cluster_move(c, slot, 0, 1);
    end(begin(client));
}

/* What the replica has is gone through, from the beginning. */
static void a_replica_takes_the_place_of_its_master(struct world *w)
{
    struct cluster *c = cluster_begin(w, true);
    lk_client_t *client = cluster_client(c, LEASE);
    fill(c, 1, MANY);
    cluster_replicated(c, 1);
    lk_inspect_t *walk = begin(client);
    assert_false(walk_on(walk, HALF));
    cluster_kill(c, 1);
    end(walk);
    cluster_start(c, 1);
}

int main(void)
{
    return world_run(a_server_is_started_anew, another_master_takes_its_place, a_slot_goes_where_the_walk_was,
                     a_replica_takes_the_place_of_its_master);
}
