/* SPDX-License-Identifier: MIT */
/*
 * forged_grant_test.c - a grant is for one acquisition: who waits in the same thread later does not take it
 *
 * labels: threads memory
 */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As a release would publish it, for that acquisition of whoever waits as `waiter`. */
static void publish_grant(struct world *w, const char *waiter, int64_t acquisition)
{
    char channel[64], grant[192];
    const char *time = "local t = redis.call('TIME') return t[1] * 1000000 + t[2]";
    int owner = (int)(strrchr(waiter, ':') - waiter);
    snprintf(channel, sizeof channel, "latchkey:client:%.32s", waiter);
    snprintf(grant, sizeof grant, "G %.*s:%" PRId64 " %" PRId64 " 5000 4711 0", owner, waiter, acquisition,
             world_int(w, "EVAL %s 0", time));
    world_redis(w, "PUBLISH %s %s", channel, grant);
}

/* A message that was delayed since the thread's last wait, or made up, grants nothing. */
static void a_grant_for_another_acquisition_grants_nothing(struct world *w)
{
    struct worker waiter;
    lk_mutex_t *orders;
    char id[128];
    const char *first_of_queue = "return redis.call('ZRANGE', 'latchkey:queue:mutex:{orders}', 0, 0)[1]";
    lk_client_t *client = world_client(w, "lease=20s&poll=10s");
    orders = world_mutex(w, client, "orders", NULL);
    world_redis(w, "HSET orders somebody:1 1");
    worker_start(&waiter, lock_and_unlock, orders);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
    sleep_ms(100); /* it has asked again, and sleeps */
    snprintf(id, sizeof id, "%s", world_str(w, "EVAL %s 0", first_of_queue));
    int64_t acquisition = strtoll(strrchr(id, ':') + 1, NULL, 10);
    publish_grant(w, id, acquisition - 1);
    publish_grant(w, id, acquisition + 1);
    sleep_ms(200);
    assert_int_equal(1, world_queued(w, "orders"));
    assert_string_equal("somebody:1", world_owner(w, "orders"));
    publish_grant(w, id, acquisition); /* the same for its own is taken, whoever sent it: the unlock then finds out */
    assert_int_equal(ESTALE, worker_join(&waiter));
    world_redis(w, "DEL orders");
}

int main(void)
{
    return world_run(a_grant_for_another_acquisition_grants_nothing);
}
