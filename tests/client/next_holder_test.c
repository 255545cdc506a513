/* SPDX-License-Identifier: MIT */
/*
 * next_holder_test.c - who is let in by a call may destroy the object before that call returns
 *
 * POSIX allows to destroy a mutex as soon as it is unlocked and a semaphore after the wait that the last post
 * ended; programs keep both in memory that the next holder frees. The first thread is then still inside its call.
 *
 * labels: memory threads
 * simulated: yes
 * seconds: 6
 * processors: 4
 */
#include "world.h"

#include <stdlib.h>

enum { ROUNDS = 400, ROUNDS_MS = 2500 };

#define PATIENT "command_timeout=5s"

/* What two threads share, each round anew. */
struct job {
    lk_client_t *client;
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t done;
    lk_latch_t latch;
    int users; /* under the lock */
};

struct kind {
    const char *options; /* of the client */
    int (*make)(struct job *job);
    int (*first)(struct job *job);
    int (*second)(struct job *job); /* destroys it; `job` is freed when both are through */
};

static int first_worst(int a, int b)
{
    return a != 0 ? a : b;
}

struct round {
    const struct kind *kind;
    struct job *job;
};

static int run_first(void *arg)
{
    struct round *round = arg;
    return round->kind->first(round->job);
}

static void play(struct world *w, const struct kind *kind)
{
    lk_client_t *client = world_client(w, kind->options);
    int64_t until_ms = now_ms() + ROUNDS_MS;
    for (int i = 0; i < ROUNDS && now_ms() < until_ms; i++) {
        struct worker worker;
        struct round round = { kind, calloc(1, sizeof *round.job) };
        round.job->client = client;
        assert_lk(0, kind->make(round.job));
        worker_start(&worker, run_first, &round);
        assert_lk(0, kind->second(round.job));
        assert_lk(0, worker_join(&worker));
    }
}

/* --- semaphores: "the job is done" -------------------------------------------------------------------------------- */

static int make_done(struct job *job)
{
    return lk_sem_init(&job->done, job->client, "done", 0, NULL);
}

static int post(struct job *job)
{
    return lk_sem_post(&job->done);
}

static int await_and_free(struct job *job)
{
    int rc = lk_sem_wait(&job->done);
    rc = first_worst(rc, lk_sem_destroy(&job->done));
    free(job);
    return rc;
}

static void the_waiter_of_a_post_may_destroy_the_semaphore(struct world *w)
{
    play(w, &(struct kind){ PATIENT, make_done, post, await_and_free });
    world_allow(w, "*done*");
    world_redis(w, "DEL done");
}

/* --- locks of a counted object: the last user frees it ------------------------------------------------------------- */

static void leave_mutex(struct job *job, int *rc)
{
    bool last = --job->users == 0;
    *rc = first_worst(*rc, lk_mutex_unlock(&job->mutex));
    if (last) {
        *rc = first_worst(*rc, lk_mutex_destroy(&job->mutex));
        free(job);
    }
}

static int use_mutex(struct job *job)
{
    int rc = lk_mutex_lock(&job->mutex);
    leave_mutex(job, &rc);
    return rc;
}

static int make_mutex(struct job *job)
{
    job->users = 2;
    return lk_mutex_init(&job->mutex, job->client, "orders", NULL);
}

static int make_fair_mutex(struct job *job)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = 1;
    job->users = 2;
    return lk_mutex_init(&job->mutex, job->client, "orders", &attr);
}

static void the_next_holder_may_destroy_the_mutex(struct world *w)
{
    play(w, &(struct kind){ PATIENT, make_mutex, use_mutex, use_mutex });
}

static void the_next_holder_may_destroy_the_fair_mutex(struct world *w)
{
    play(w, &(struct kind){ PATIENT "&redisson=yes", make_fair_mutex, use_mutex, use_mutex });
    world_allow(w, "redisson_lock_token:*");
}

static void leave_rwlock(struct job *job, int *rc)
{
    bool last = __atomic_sub_fetch(&job->users, 1, __ATOMIC_ACQ_REL) == 0;
    *rc = first_worst(*rc, lk_rwlock_unlock(&job->rwlock));
    if (last) {
        *rc = first_worst(*rc, lk_rwlock_destroy(&job->rwlock));
        free(job);
    }
}

static int use_rwlock(struct job *job)
{
    int rc = lk_rwlock_wrlock(&job->rwlock);
    leave_rwlock(job, &rc);
    return rc;
}

static int make_rwlock(struct job *job)
{
    job->users = 2;
    return lk_rwlock_init(&job->rwlock, job->client, "orders", NULL);
}

static void the_next_writer_may_destroy_the_rwlock(struct world *w)
{
    play(w, &(struct kind){ PATIENT, make_rwlock, use_rwlock, use_rwlock });
}

static int make_leased(struct job *job)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = 1;
    job->users = 2;
    return lk_sem_init(&job->done, job->client, "orders", 1, &attr);
}

static int use_leased(struct job *job)
{
    int rc = lk_sem_wait(&job->done);
    bool last = --job->users == 0;
    rc = first_worst(rc, lk_sem_post(&job->done));
    if (last) {
        rc = first_worst(rc, lk_sem_destroy(&job->done));
        free(job);
    }
    return rc;
}

static void the_next_holder_may_destroy_the_leased_semaphore(struct world *w)
{
    play(w, &(struct kind){ PATIENT, make_leased, use_leased, use_leased });
    world_allow(w, "*orders*");
}

/* --- latches -------------------------------------------------------------------------------------------------------- */

static int make_latch(struct job *job)
{
    int rc = lk_latch_init(&job->latch, job->client, "gate", NULL);
    return first_worst(rc, lk_latch_trysetcount(&job->latch, 1));
}

static int count_down(struct job *job)
{
    return lk_latch_countdown(&job->latch);
}

static int await_latch_and_free(struct job *job)
{
    int rc = lk_latch_wait(&job->latch);
    rc = first_worst(rc, lk_latch_destroy(&job->latch));
    free(job);
    return rc;
}

static void who_waited_may_destroy_the_latch(struct world *w)
{
    play(w, &(struct kind){ PATIENT, make_latch, count_down, await_latch_and_free });
    world_allow(w, "*gate*");
}

/* --- and the client behind it ----------------------------------------------------------------------------------------- */

static int post_in_thread(void *arg)
{
    struct job *job = arg;
    return lk_sem_post(&job->done);
}

/* Likewise all the rest: the client is closed by who was let in. */
static void who_was_let_in_may_close_the_client(struct world *w)
{
    for (int i = 0; i < 60; i++) {
        struct worker worker;
        struct job *job = calloc(1, sizeof *job);
        job->client = world_open(w, PATIENT);
        assert_lk(0, make_done(job));
        worker_start(&worker, post_in_thread, job);
        assert_lk(0, lk_sem_wait(&job->done));
        assert_lk(0, lk_client_close(job->client)); /* the post is through before this returns */
        assert_lk(0, lk_sem_destroy(&job->done));
        assert_lk(0, worker_join(&worker));
        free(job);
    }
    world_allow(w, "*done*");
    world_redis(w, "DEL done");
}

int main(void)
{
    return world_run(the_waiter_of_a_post_may_destroy_the_semaphore, the_next_holder_may_destroy_the_mutex,
                     the_next_holder_may_destroy_the_fair_mutex, the_next_writer_may_destroy_the_rwlock,
                     the_next_holder_may_destroy_the_leased_semaphore, who_waited_may_destroy_the_latch,
                     who_was_let_in_may_close_the_client);
}
