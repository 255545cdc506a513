/* SPDX-License-Identifier: MIT */
/*
 * crowded_test.c - a server that does not read: who finds no room for a request waits within its limit, for as long
 * as it takes or for nothing
 *
 * labels: threads memory
 */
#include "client/client.h"
#include "world.h"

#include <stdio.h>

enum { THREADS = 24, PLACES = 8, STOPPED_MS = 300, LIMIT_MS = 100 };

static lk_client_t *client;
static lk_mutex_t *mutexes[THREADS];

/* With few places, one of them for an ECHO and two for renewals. */
static void open_all(struct world *w)
{
    client = world_client(w, "lease=15s");
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        mutexes[i] = world_mutex(w, client, name, NULL);
    }
    assert_int_equal(client->node.lanes[LK__LANE_COMMANDS].oldest, client->node.lanes[LK__LANE_COMMANDS].end);
    client->node.lanes[LK__LANE_COMMANDS].places = PLACES;
}

static bool is_crowded(void)
{
    lk__mu_lock(&client->node.lanes[LK__LANE_COMMANDS].mu);
    bool full = client->node.lanes[LK__LANE_COMMANDS].full;
    lk__mu_unlock(&client->node.lanes[LK__LANE_COMMANDS].mu);
    return full;
}

static void all_get_their_turn(struct world *w)
{
    struct worker workers[THREADS];
    open_all(w);
    world_stop_server(w);
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], lock_and_unlock, mutexes[i]);
    eventually(is_crowded(), 5000);
    sleep_ms(STOPPED_MS);
    world_cont_server(w);
    for (int i = 0; i < THREADS; i++)
        assert_lk(0, worker_join(&workers[i]));
}

static int try_in_vain(void *arg)
{
    return lk_mutex_lockfor(arg, LIMIT_MS);
}

/* Those that were sent are unknown, the others are known to have done nothing. */
static void who_finds_no_room_in_time_did_nothing(struct world *w)
{
    struct worker workers[THREADS];
    int unknown = 0, undone = 0;
    open_all(w);
    world_stop_server(w);
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], try_in_vain, mutexes[i]);
    for (int i = 0; i < THREADS; i++) {
        int rc = worker_join(&workers[i]);
        unknown += rc == EIO;
        undone += rc == ENOTCONN;
    }
    world_cont_server(w);
    assert_int_equal(THREADS, unknown + undone);
    assert_in_range(unknown, 1, PLACES);
}

int main(void)
{
    return world_run(all_get_their_turn, who_finds_no_room_in_time_did_nothing);
}
