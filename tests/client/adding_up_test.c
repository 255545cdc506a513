/* SPDX-License-Identifier: MIT */
/*
 * adding_up_test.c - what many threads of a client post, take and count down at once adds up
 *
 * The requests of one client on bare numbers share slots of a record at the server, and a thread may be overtaken
 * by others at each step of its own request. The build with noise makes that happen all the time.
 *
 * labels: threads memory noise
 * processors: 4
 */
#include "world.h"

enum { THREADS = 8, ROUNDS = SANITIZED ? 150 : 1000 };

static lk_client_t *client;
static lk_sem_t *pool;
static lk_latch_t *gate;
static int taken[THREADS];

static void begin(struct world *w, int permits)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:*");
    client = world_client(w, "command_timeout=5s");
    pool = world_sem(w, client, "pool", (unsigned)permits, NULL);
    gate = world_latch(w, client, "gate");
}

static int post(int index, void *arg)
{
    (void)index;
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        int rc = lk_sem_post(pool);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void each_post_is_a_permit(struct world *w)
{
    begin(w, 0);
    assert_int_equal(0, run_threads(THREADS, post, NULL));
    assert_int_equal(THREADS * ROUNDS, world_int(w, "GET pool"));
}

static int count_down(int index, void *arg)
{
    (void)index;
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        int rc = lk_latch_countdown(gate);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void each_countdown_counts(struct world *w)
{
    unsigned left = 77;
    begin(w, 0);
    assert_lk(0, lk_latch_trysetcount(gate, THREADS * ROUNDS + 1));
    assert_int_equal(0, run_threads(THREADS, count_down, NULL));
    assert_lk(0, lk_latch_getcount(gate, &left));
    assert_int_equal(1, left);
    assert_lk(0, lk_latch_countdown(gate));
}

/* Takes and gives as it comes; taken[] is how many more it took than it gave back. */
static int take_and_give(int index, void *arg)
{
    int rc = 0;
    (void)arg;
    for (int i = 0; i < ROUNDS && (rc == 0 || rc == EAGAIN); i++) {
        if ((i * 7 + index) % 3 != 0) {
            rc = lk_sem_trywait(pool);
            taken[index] += rc == 0;
        } else {
            rc = i % 2 == 0 ? lk_sem_post(pool) : lk_sem_addpermits(pool, 1);
            taken[index] -= rc == 0;
        }
    }
    return rc == EAGAIN ? 0 : rc;
}

static void what_is_taken_and_given_adds_up(struct world *w)
{
    const int permits = THREADS * ROUNDS / 6;
    int out = 0;
    begin(w, permits);
    for (int i = 0; i < THREADS; i++)
        taken[i] = 0;
    assert_int_equal(0, run_threads(THREADS, take_and_give, NULL));
    for (int i = 0; i < THREADS; i++)
        out += taken[i];
    assert_int_equal(permits, out + world_int(w, "GET pool"));
}

int main(void)
{
    return world_run(each_post_is_a_permit, each_countdown_counts, what_is_taken_and_given_adds_up);
}
