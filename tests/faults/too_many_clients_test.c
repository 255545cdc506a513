/* SPDX-License-Identifier: MIT */
/*
 * too_many_clients_test.c - F12: the server lets nobody in; who is inside goes on
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 18
 */
#include "blackout.h"

#include <string.h>

static bool is_connected(struct world *w, const char *client_name)
{
    return strstr(world_str(w, "CLIENT LIST"), client_name) != NULL;
}

static int64_t subscribers(struct world *w)
{
    int64_t lines = 0;
    for (const char *c = world_str(w, "CLIENT LIST TYPE pubsub"); *c != 0; c++)
        lines += *c == '\n';
    return lines;
}

static void fill_up(struct rig *rig, struct proxy *p)
{
    proxy_refuse(p, true);
    proxy_reset(p);
    eventually(!is_connected(rig->w, " name=behind "), 5000);
    world_redis(rig->w, "CONFIG SET maxclients %d", (int)world_counter(rig->w, "connected_clients"));
    proxy_refuse(p, false);
}

static void make_room(struct rig *rig, struct proxy *p)
{
    (void)p;
    world_redis(rig->w, "CONFIG SET maxclients 1000");
}

static void no_new_connection(struct world *w)
{
    static const struct blackout blackout = { "F12: too many clients", NULL, fill_up, make_room };
    blackout_meets_all(w, &blackout);
}

/* W: no subscription can be had, so waiters poll on the connection that stands; holds need none for their events. */
static void waiters_poll_without_a_subscription(struct world *w)
{
    struct errand errands[RIG_PLACES];
    struct party party;
    int64_t given_ms[RIG_PLACES];
    struct proxy *p = proxy_begin_tcp(w);
    struct rig *rig = rig_begin(w, proxy_url(p, RIG_OPTIONS), "lease=10s");
    for_each_place(place, rig)
        assert_lk(0, subject_take(&place->theirs, 5000));
    world_redis(w, "CONFIG SET maxclients %d", (int)(world_counter(w, "connected_clients") - subscribers(w)));
    world_killsubscriptions(w);
    for (int i = 0; i < RIG_PLACES; i++)
        errand_start(&errands[i], &rig->places[i].mine, 10000);
    for_each_place(place, rig) {
        eventually(errand_waits(w, &errands[place - rig->places]), 5000);
        given_ms[place - rig->places] = now_ms();
        assert_lk(0, subject_give(&place->theirs));
    }
    party_wait(rig, &party, &rig->stage, 10000);
    int64_t met_ms = now_ms();
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    assert_lk(0, party_join(&party));
    assert_between(party.went_ms - met_ms, 0, RIG_POLL_MS * 6 / 5 + RIG_SLACK_MS);
    for (int i = 0; i < RIG_PLACES; i++) {
        errand_join(&errands[i]);
        errand_had_it(&errands[i]);
        assert_between(errands[i].took_ms - given_ms[i], 0, RIG_POLL_MS * 6 / 5 + RIG_SLACK_MS);
    }
    assert_int_equal(0, world_elements(w, "PUBSUB CHANNELS latchkey:*"));
    world_redis(w, "CONFIG SET maxclients 1000");
    rig_works(rig);
}

int main(void)
{
    return world_run(no_new_connection, waiters_poll_without_a_subscription);
}
