/* SPDX-License-Identifier: MIT */
/*
 * tls_process.c - exit(), fork() and the end of a thread, while others are in OpenSSL
 *
 * exit() runs what was left there by atexit() while all threads go on. OpenSSL leaves a function there that takes away what
 * its calls stand on, unless the first one to use it says otherwise: the library does so. When somebody was faster, the
 * library leaves a function of its own, which is later and so is run before that one: from then on no thread enters
 * OpenSSL, and those that are in it have the time to leave.
 *
 * fork() takes OpenSSL's locks along as they are, and nobody in the child would give back what another thread has: so it
 * waits until none is in OpenSSL, and none enters meanwhile. That is not for long, as a thread may stand still there in a
 * handler of the program's, and all connections wait with it. Reading and writing hold hardly any lock. But if a thread
 * still makes a connection then, the child uses no OpenSSL: a lock that is never released would stop it. A thread that
 * ends is in OpenSSL once more, to give back what belongs to it: so it does that here, before OpenSSL does it unseen.
 */
#include "redis/tls.h"

#include <stdlib.h>
#include <time.h>

enum { LEAVE_WITHIN_MS = 50, FORK_WITHIN_MS = 500 };

static pthread_once_t watch = PTHREAD_ONCE_INIT, once = PTHREAD_ONCE_INIT;
static bool watched;        /* by `watch` */
static bool ready;          /* by `once` */
static atomic_bool guarded; /* likewise */
static atomic_int inside;   /* threads */
static atomic_int making;   /* of these: that make a connection */
static atomic_int forking;  /* threads that are about to, or just did: several may be at once */
static atomic_bool over;
static atomic_bool orphaned; /* this is the child of a fork that did not wait for one of these */

/* So does the fork of this thread. */
static _Thread_local bool deserts __attribute__((tls_model("initial-exec")));

static void pause_ms(void)
{
    nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

static bool await_none(int within_ms)
{
    for (int i = 0; i < within_ms; i++) {
        if (atomic_load(&inside) == 0)
            return true;
        pause_ms();
    }
    return false;
}

static void end_all(void)
{
    atomic_store(&over, true);
    await_none(LEAVE_WITHIN_MS);
}

static void before_fork(void)
{
    atomic_fetch_add(&forking, 1);
    deserts = !await_none(FORK_WITHIN_MS) && atomic_load(&making) > 0;
}

static void after_fork(void)
{
    atomic_fetch_sub(&forking, 1);
}

static void in_child(void)
{
    if (deserts)
        atomic_store(&orphaned, true);
    atomic_store(&inside, 0); /* they are not here */
    atomic_store(&making, 0);
    atomic_store(&forking, 0);
}

static void end_thread(void)
{
    if (!lk__tls_enter())
        return;
    OPENSSL_thread_stop();
    lk__tls_leave();
}

/* Has OpenSSL asked for memory before? From then on nobody may give it other functions for that. */
static bool is_used(void)
{
    CRYPTO_malloc_fn get;
    CRYPTO_realloc_fn change;
    CRYPTO_free_fn give;
    CRYPTO_get_mem_functions(&get, &change, &give);
    return CRYPTO_set_mem_functions(get, change, give) != 1;
}

static void begin_all(void)
{
    bool used = is_used();
    ready = OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
    atomic_store(&guarded, used && atexit(end_all) == 0);
    lk__thread_onend(end_thread);
}

static void watch_forks(void)
{
    watched = pthread_atfork(before_fork, after_fork, in_child) == 0;
}

int lk__tls_begin(const char **why)
{
    *why = "out of memory for TLS";
    pthread_once(&watch, watch_forks);
    if (!watched)
        return ENOMEM;
    if (!lk__tls_enter()) {
        *why = "the process is over";
        if (atomic_load(&orphaned))
            *why = "a thread stood still in OpenSSL when this process was forked: TLS needs an exec()";
        return ENOTCONN;
    }
    atomic_fetch_add(&making, 1);
    pthread_once(&once, begin_all); /* OpenSSL takes locks and reads files, so a fork has to know of it */
    if (ready)
        return 0;
    lk__tls_end();
    return ENOMEM;
}

void lk__tls_end(void)
{
    atomic_fetch_sub(&making, 1);
    lk__tls_leave();
}

bool lk__tls_enter(void)
{
    for (;;) {
        atomic_fetch_add(&inside, 1);
        bool ended = (atomic_load(&guarded) && atomic_load(&over)) || atomic_load(&orphaned);
        if (!ended && atomic_load(&forking) == 0)
            return true;
        atomic_fetch_sub(&inside, 1);
        if (ended)
            return false;
        pause_ms();
    }
}

void lk__tls_leave(void)
{
    atomic_fetch_sub(&inside, 1);
}
