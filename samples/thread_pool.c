/* SPDX-License-Identifier: MIT */
/*
 * thread_pool.c - a request goes from thread to thread, and takes its lock along
 *
 * Each process has a pool of threads. A request has three steps, each carried out by whichever thread is free: the
 * first reads a balance, the second works on it, the third saves it. So no thread can be the holder of the mutex: the
 * request has an owner of its own, and any thread locks and unlocks for that. With --unsafe nobody locks.
 *
 * A step that waits keeps a thread busy. So some threads never begin a request: they carry on with those that hold the
 * mutex, and a pool whose other threads all wait goes on.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, BEGINNERS = 2 }; /* threads of a process, and those of them that begin requests */

struct request {
    lk_owner_t *owner;
    long balance;
    int steps; /* done */
    pthread_t thread;
    struct request *next;
};

/* What the threads of one process share. */
static struct {
    pthread_mutex_t mu;
    pthread_cond_t more;
    struct request *under_way; /* under mu: requests whose next step is due */
    int unbegun, unfinished;   /* under mu */
    bool failed;               /* under mu */
} pool = { .mu = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static lk_mutex_t account = LK_MUTEX_INITIALIZER("samples:thread_pool");

static const struct options *options_here;
static int account_fd;
static long *moves; /* steps that another thread did than the one before, in all processes */

/* --- the steps; 0 or a code of Latchkey's ----------------------------------------------------------------------- */

static int lock_for(struct request *request)
{
    lk_how_t how = LK_HOW_INIT;
    how.owner = request->owner;
    return options_here->unsafe ? 0 : lk_mutex_lockwith(&account, &how);
}

static int unlock_for(struct request *request)
{
    return options_here->unsafe ? 0 : lk_mutex_unlockby(&account, request->owner); /* ESTALE: the lease was lost */
}

static int begin(struct request *request)
{
    int rc = options_here->unsafe ? 0 : lk_owner_new(NULL, &request->owner);
    if (rc == 0)
        rc = lock_for(request);
    if (rc == 0)
        request->balance = number_read(account_fd);
    return rc;
}

/* As a function does that may be called by who holds the mutex, or not: one level more, for the request. */
static int charge(struct request *request)
{
    int rc = lock_for(request);
    if (rc != 0)
        return rc;
    work_a_little();
    request->balance++;
    return unlock_for(request);
}

static int finish(struct request *request)
{
    number_write(account_fd, request->balance);
    int rc = unlock_for(request);
    if (rc == 0 && !options_here->unsafe)
        rc = lk_owner_free(request->owner);
    return rc;
}

/* --- the pool --------------------------------------------------------------------------------------------------- */

static int (*const steps[])(struct request *request) = { begin, charge, finish };
enum { STEPS = sizeof steps / sizeof *steps };

static struct request *make_request(void)
{
    struct request *request = calloc(1, sizeof *request);
    pool.unbegun--;
    if (request == NULL)
        pool.failed = true;
    return request;
}

/* The next request to work on; NULL: there will be none. */
static struct request *next_request(bool beginner)
{
    struct request *request = NULL;
    pthread_mutex_lock(&pool.mu);
    while (!pool.failed && pool.under_way == NULL && pool.unfinished > 0 && !(beginner && pool.unbegun > 0))
        pthread_cond_wait(&pool.more, &pool.mu);
    if (pool.under_way != NULL) {
        request = pool.under_way;
        pool.under_way = request->next;
    } else if (!pool.failed && beginner && pool.unbegun > 0) {
        request = make_request();
    }
    pthread_mutex_unlock(&pool.mu);
    return request;
}

/* Its next step is for whichever thread comes first, or it was the last. */
static void pass_on(struct request *request, int rc)
{
    bool done = rc != 0 || ++request->steps == STEPS;
    pthread_mutex_lock(&pool.mu);
    pool.failed |= rc != 0;
    if (done) {
        pool.unfinished--;
    } else {
        request->next = pool.under_way;
        pool.under_way = request;
    }
    pthread_cond_broadcast(&pool.more);
    pthread_mutex_unlock(&pool.mu);
    if (done)
        free(request);
    if (done && rc == 0)
        round_done();
}

static void *run(void *beginner)
{
    struct request *request;
    while ((request = next_request(beginner != NULL)) != NULL) {
        if (request->steps > 0 && !pthread_equal(request->thread, pthread_self()))
            __atomic_fetch_add(moves, 1, __ATOMIC_RELAXED);
        request->thread = pthread_self();
        int rc = steps[request->steps](request);
        if (rc != 0)
            fprintf(stderr, "thread_pool: %s\n", lk_errortext());
        pass_on(request, rc);
    }
    return NULL;
}

/* Runs in each worker process. */
static int serve(const struct options *options)
{
    pthread_t threads[THREADS];
    int started = 0;
    options_here = options;
    pool.unbegun = pool.unfinished = options->rounds;
    while (started < THREADS && pthread_create(&threads[started], NULL, run, started < BEGINNERS ? &pool : NULL) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started < THREADS || pool.failed || pool.unfinished > 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 4, .rounds = 100 };
    options_read(&options, argc, argv, "Requests on thread pools change a balance, in steps on several threads.");
    account_fd = shared_file();
    moves = shared_memory(sizeof *moves);

    long total = (long)options.workers * options.rounds;
    printf("%d processes of %d threads, %d requests each, %s\n", options.workers, THREADS, options.rounds,
           options.unsafe ? "without a lock" : "each an owner of the mutex");
    int failed = workers_run(&options, total, serve);

    long balance = number_read(account_fd);
    return verdict("no change is lost, though a request goes from thread to thread", failed == 0 && balance == total,
                   "balance %ld after %ld requests, %ld steps on another thread than the one before, %d of %d workers "
                   "failed",
                   balance, total, *moves, failed, options.workers);
}
