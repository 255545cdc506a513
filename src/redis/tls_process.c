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
 * handler of the program's, and all connections wait with it. A thread that ends is in OpenSSL once more, to give back what
 * belongs to it: so it does that here, before OpenSSL does it unseen.
 */
#include "redis/tls.h"

#include <stdlib.h>
#include <time.h>

enum { LEAVE_WITHIN_MS = 50, FORK_WITHIN_MS = 200 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready, guarded; /* by `once` */
static atomic_int inside;   /* threads */
static atomic_int forking;  /* threads that are about to, or just did: several may be at once */
static atomic_bool over;

static void pause_ms(void)
{
    nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

static void await_none(int within_ms)
{
    for (int i = 0; i < within_ms && atomic_load(&inside) > 0; i++)
        pause_ms();
}

static void end_all(void)
{
    atomic_store(&over, true);
    await_none(LEAVE_WITHIN_MS);
}

static void before_fork(void)
{
    atomic_fetch_add(&forking, 1);
    await_none(FORK_WITHIN_MS);
}

static void after_fork(void)
{
    atomic_fetch_sub(&forking, 1);
}

static void in_child(void)
{
    atomic_store(&inside, 0); /* they are not here */
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
    guarded = used && atexit(end_all) == 0;
    ready = ready && pthread_atfork(before_fork, after_fork, in_child) == 0;
    lk__thread_onend(end_thread);
}

bool lk__tls_begin(void)
{
    pthread_once(&once, begin_all);
    return ready;
}

bool lk__tls_enter(void)
{
    for (;;) {
        atomic_fetch_add(&inside, 1);
        bool ended = guarded && atomic_load(&over);
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
