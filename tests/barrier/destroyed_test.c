/* SPDX-License-Identifier: MIT */
/*
 * destroyed_test.c - the serial party destroys the barrier at once, wherever the others are on their way out by then
 *
 * One of them stands still in a signal handler at the moment that matters, so nothing is left to the scheduler.
 *
 * labels: threads memory
 * simulated: except tsan
 * seconds: 10
 */
#include "proxy.h"
#include "still.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = SANITIZED ? 10 : 40 };

/* A follower takes the role of a leader that stands still after a quarter of a command timeout. */
#define OPTIONS "lease=40s&command_timeout=6s&poll=10s"

static struct proxy *p;
static lk_client_t *client;
static lk_barrier_t stage; /* destroyed by the test */
static lk_barrier_t *theirs;

static void open_stage(struct world *w, unsigned parties)
{
    world_allow(w, "latchkey:*:{stage}");
    p = proxy_begin(w);
    client = proxy_client(p, OPTIONS);
    theirs = world_barrier(w, world_client(w, OPTIONS), "stage", parties, NULL);
    assert_lk(0, lk_barrier_init(&stage, client, "stage", parties, NULL));
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(&stage, 0)); /* the server knows the script */
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(theirs, 0));
}

static int meet(void *barrier)
{
    return lk_barrier_waitfor(barrier, 30000);
}

static int64_t arrived(struct world *w)
{
    return world_int(w, "ZCARD latchkey:parties:{stage}");
}

/* How many threads of the client wait at the barrier, as a destroy sees it; -1: there is none. */
static int waiting(void)
{
    char *json;
    int count = -1;
    assert_lk(0, lk_client_stats(client, &json));
    const char *object = strstr(json, "\"stage\""), *found = object != NULL ? strstr(object, "\"waiting\":") : NULL;
    if (found != NULL)
        count = (int)strtol(found + strlen("\"waiting\":"), NULL, 10);
    lk_free(json);
    return count;
}

/* It has come, and stands still before it knows that. */
static void come_and_stand_still(struct world *w, struct worker *party)
{
    proxy_stall(p, PROXY_DOWN);
    worker_start(party, meet, &stage);
    eventually(arrived(w) == 1, 5000);
    still_begin(party);
    proxy_resume(p);
}

static void one_does_not_know_yet_that_it_came(struct world *w)
{
    struct worker party;
    open_stage(w, 2);
    come_and_stand_still(w, &party);
    assert_int_equal(LK_BARRIER_SERIAL, meet(&stage));
    assert_lk(0, lk_barrier_destroy(&stage));
    still_end();
    assert_int_equal(0, worker_join(&party));
}

/* It learns that it came to a round that is over by then, and has to ask how that ended. */
static void one_learns_of_it_when_the_round_is_over(struct world *w)
{
    struct worker party;
    open_stage(w, 2);
    come_and_stand_still(w, &party);
    assert_int_equal(LK_BARRIER_SERIAL, meet(&stage));
    world_stop_server(w);
    int64_t asked = proxy_bytes(p, PROXY_UP);
    still_end();
    eventually(proxy_bytes(p, PROXY_UP) > asked, 5000);
    assert_lk(0, lk_barrier_destroy(&stage));
    world_cont_server(w);
    assert_int_equal(0, worker_join(&party));
}

/* The serial party is somebody else's: who returns here first knows that all have come. */
static void one_has_not_looked_yet(struct world *w)
{
    struct worker first, second;
    open_stage(w, 3);
    worker_start(&second, meet, &stage);
    eventually(arrived(w) == 1, 5000);
    eventually(waiting() == 1, 5000);
    still_begin(&second);
    worker_start(&first, meet, &stage);
    eventually(arrived(w) == 2, 5000);
    assert_int_equal(LK_BARRIER_SERIAL, meet(theirs));
    assert_int_equal(0, worker_join(&first));
    assert_lk(0, lk_barrier_destroy(&stage));
    still_end();
    assert_int_equal(0, worker_join(&second));
}

/* Who has come to the next round waits, though it was taken for one of the last as long as that was not known. */
static void one_that_waits_again_is_minded(struct world *w)
{
    struct worker serial, party, next;
    open_stage(w, 2);
    worker_start(&party, meet, &stage);
    eventually(arrived(w) == 1, 5000);
    eventually(waiting() == 1, 5000);
    proxy_stall(p, PROXY_DOWN);
    worker_start(&serial, meet, &stage);
    eventually(arrived(w) == 0, 5000);
    worker_start(&next, meet, &stage);
    eventually(arrived(w) == 1, 5000);
    proxy_resume(p);
    assert_int_equal(LK_BARRIER_SERIAL, worker_join(&serial));
    assert_int_equal(0, worker_join(&party));
    eventually(waiting() == 1, 5000);
    assert_lk(EBUSY, lk_barrier_destroy(&stage));
    assert_int_equal(LK_BARRIER_SERIAL, meet(theirs));
    assert_int_equal(0, worker_join(&next));
    assert_lk(0, lk_barrier_destroy(&stage));
}

static int meet_and_destroy(int index, void *barrier)
{
    (void)index;
    int rc = meet(barrier);
    return rc == LK_BARRIER_SERIAL ? lk_barrier_destroy(barrier) : rc;
}

/* Whatever the scheduler does: among many rounds, under the noise build as well, none is minded. */
static void many_rounds_of_many(struct world *w)
{
    enum { PARTIES = 5 };
    lk_barrier_t brief;
    world_allow(w, "latchkey:*:{brief}");
    client = world_client(w, OPTIONS);
    for (int i = 0; i < ROUNDS; i++) {
        assert_lk(0, lk_barrier_init(&brief, client, "brief", PARTIES, NULL));
        assert_int_equal(0, run_threads(PARTIES, meet_and_destroy, &brief));
    }
}

int main(void)
{
    return world_run(one_does_not_know_yet_that_it_came, one_learns_of_it_when_the_round_is_over,
                     one_has_not_looked_yet, one_that_waits_again_is_minded, many_rounds_of_many);
}
