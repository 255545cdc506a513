/* SPDX-License-Identifier: MIT */
/*
 * many_threads_test.c - many threads share one connection, and each gets its own answers
 *
 * processors: 4
 *
 * labels: threads memory noise
 */
#include "world.h"

#include <stdio.h>

enum { THREADS = 128, ROUNDS = SANITIZED ? 4 : 10 };

struct crowd {
    lk_client_t *client;
    lk_mutex_t *shared;
    int inside, counter;
};

/* Take a mutex of one's own and ask who has it: an answer meant for another thread would show. */
static int visit_own(lk_mutex_t *own)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    uint64_t token;
    int rc;
    if ((rc = lk_mutex_lock(own)) != 0 || (rc = lk_mutex_lock(own)) != 0)
        return rc;
    if ((rc = lk_mutex_token(own, &token)) != 0 || (rc = lk_mutex_info(own, &info)) != 0)
        return rc;
    if (info.token != token || info.holds != 2 || info.held != 1)
        return -2;
    if ((rc = lk_mutex_unlock(own)) != 0 || (rc = lk_mutex_unlock(own)) != 0)
        return rc;
    return 0;
}

static int visit_shared(struct crowd *crowd)
{
    int rc = lk_mutex_lock(crowd->shared), met;
    if (rc != 0)
        return rc;
    met = crowd->inside++;
    crowd->counter++;
    crowd->inside--;
    rc = lk_mutex_unlock(crowd->shared);
    return met != 0 ? -3 : rc;
}

static int member(int index, void *arg)
{
    struct crowd *crowd = arg;
    lk_mutex_t own;
    char name[16];
    int rc;
    snprintf(name, sizeof name, "own-%d", index);
    rc = lk_mutex_init(&own, crowd->client, name, NULL);
    for (int i = 0; i < ROUNDS && rc == 0; i++)
        rc = i % 5 == 0 ? visit_shared(crowd) : visit_own(&own);
    return rc != 0 ? rc : lk_mutex_destroy(&own);
}

/* No answer goes to the wrong thread, no reader's role is lost, nothing happens twice. */
static void a_crowd_gets_its_own_answers(struct world *w)
{
    struct crowd crowd = { .client = world_client(w, "command_timeout=1500ms") };
    crowd.shared = world_mutex(w, crowd.client, "shared", NULL);
    assert_int_equal(0, run_threads(THREADS, member, &crowd));
    assert_int_equal(THREADS * ((ROUNDS + 4) / 5), crowd.counter);
}

int main(void)
{
    return world_run(a_crowd_gets_its_own_answers);
}
