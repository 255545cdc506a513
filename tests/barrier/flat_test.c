/* SPDX-License-Identifier: MIT */
/*
 * flat_test.c - a round of a barrier is one command of each party, and one for all of a client when it is over
 *
 * labels: threads
 */
#include "world.h"

enum { CROWD = 100, MORE = 6 /* looks of each of two clients, and what they ask for while they begin to listen */ };

static int wait_at(void *barrier)
{
    return lk_barrier_waitfor(barrier, 60000);
}

static int64_t arrived(struct world *w)
{
    return world_int(w, "ZCARD latchkey:parties:{stage}");
}

/* Of two clients: one has all parties but the last. */
static void a_round_is_a_command_for_each_party(struct world *w)
{
    static struct worker crowd[CROWD];
    world_allow(w, "latchkey:*:{stage}");
    lk_client_t *many = world_client(w, "lease=60s&poll=20s&command_timeout=15s");
    lk_client_t *last = world_client(w, "lease=60s&poll=20s&command_timeout=15s");
    for (int count = 1; count <= CROWD; count *= 10) {
        lk_barrier_t *theirs = world_barrier(w, many, "stage", (unsigned)count + 1, NULL);
        lk_barrier_t *mine = world_barrier(w, last, "stage", (unsigned)count + 1, NULL);
        for (int round = 0; round < 2; round++) {
            int64_t sent = world_commands(w, "evalsha");
            for (int i = 0; i < count; i++)
                worker_start(&crowd[i], wait_at, theirs);
            eventually(arrived(w) == count, 20000);
            assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(mine));
            for (int i = 0; i < count; i++)
                assert_int_equal(0, worker_join(&crowd[i]));
            assert_between(world_commands(w, "evalsha") - sent, count + 1, count + 1 + MORE);
        }
    }
}

int main(void)
{
    return world_run(a_round_is_a_command_for_each_party);
}
