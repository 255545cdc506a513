/* SPDX-License-Identifier: MIT */
/*
 * stale_test.c - a Sentinel that is cut off from the others names a master that was, or none, and leads nobody away
 *
 * simulated: yes
 * seconds: 8
 */
#include "failover.h"
#include "subject.h"

#include <hiredis/hiredis.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=500ms"

enum { MOVES_MS = 1000 };

static void works(lk_mutex_t *orders)
{
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* It is the first to be asked, and what it names answers as a master: still the latest failover counts. */
static void the_latest_failover_counts(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    int isolated = failover_isolated(f, "server");
    lk_client_t *client = world_client_at(w, f, failover_urlwith(failover_url(f, OPTIONS), isolated));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    works(orders);
    failover_cutoff(f, 0);
    int master = failover_await(f, 0, NULL);
    eventually(failover_connections(f, 0) == 0 && failover_connections(f, master) == 2, MOVES_MS + 2 * SLACK_MS);

    for (int i = 0; i < 5; i++) { /* each time it looks for the master anew */
        failover_int(f, master, "CLIENT KILL USER app SKIPME yes");
        works(orders);
        assert_int_equal(0, failover_connections(f, 0));
    }

    lk_client_t *late = world_client_at(w, f, failover_urlwith(failover_url(f, OPTIONS), isolated));
    eventually(failover_connections(f, 0) == 0 && failover_connections(f, master) >= 3, MOVES_MS + 2 * SLACK_MS);
    works(world_mutex(w, late, "bills", NULL));
    assert_int_equal(0, failover_connections(f, 0));
}

/* It is the first to be asked, and nobody is where it says. Clients that are there leave the master, and come back. */
static void a_place_without_a_master_is_outvoted(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    int isolated = failover_isolated(f, "server");
    lk_client_t *client = world_client_at(w, f, failover_urlwith(failover_url(f, OPTIONS), isolated));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    works(orders);
    eventually(failover_connections(f, 0) == 2, PATIENT_MS);
    redisContext *sentinel = redisConnect("127.0.0.1", isolated);
    freeReplyObject(redisCommand(sentinel, "AUTH " FAILOVER_SENTINEL_PASSWORD));
    freeReplyObject(redisCommand(sentinel, "SENTINEL REMOVE " FAILOVER_SERVICE));
    freeReplyObject(redisCommand(sentinel, "SENTINEL MONITOR " FAILOVER_SERVICE " 127.0.0.1 1 1"));
    freeReplyObject(redisCommand(sentinel, "CLIENT KILL TYPE pubsub")); /* who was asked before, asks anew */
    redisFree(sentinel);

    lk_client_t *late = world_client_at(w, f, failover_urlwith(failover_url(f, OPTIONS), isolated));
    works(world_mutex(w, late, "bills", NULL));
    for (int i = 0; i < 5; i++) {
        sleep_ms(200);
        assert_lk(0, lk_mutex_lockfor(orders, PATIENT_MS));
        assert_lk(0, lk_mutex_unlock(orders));
        failover_int(f, 0, "CLIENT KILL USER app SKIPME yes");
    }
}

int main(void)
{
    return world_run(the_latest_failover_counts, a_place_without_a_master_is_outvoted);
}
