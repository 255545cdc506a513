/* SPDX-License-Identifier: MIT */
/*
 * process.c - which process and which thread is this?
 *
 * A fork makes a new process with the old memory: the child forgets the number, draws its own when it first
 * needs one, and closes its copies of the parent's descriptors. Thread ids of the system come back after a thread ended, so owners are counted.
 */
#include "base/base.h"

#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static _Atomic uintptr_t number; /* 0: not drawn yet in this process */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint key_place; /* 1 + the key of struct lk__thread; 0: not made yet */
static atomic_uint_least64_t owners;
static _Atomic(void (*)(uint64_t)) onexit_handler;

/* A thread of the library. In the block that each thread is made with: to look at it allocates nothing. */
static _Thread_local bool ours __attribute__((tls_model("initial-exec")));

/* In the child of a fork, before its own code runs. */
static void forget(void)
{
    atomic_store(&number, 0);
    lk__fd_closeall();
}

static void thread_ends(void *self)
{
    struct lk__thread *thread = self;
    void (*exited)(uint64_t) = atomic_load(&onexit_handler);
    if (thread->holds > 0 && thread->process == lk__process() && exited != NULL)
        exited(thread->owner);
    lk__release(thread);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget);
}

/* Makes it on first use; the system may have none left now, and some later. */
static bool find_key(pthread_key_t *key)
{
    unsigned known = atomic_load(&key_place);
    pthread_key_t fresh;
    if (known == 0) {
        if (pthread_key_create(&fresh, thread_ends) != 0)
            return false;
        if (atomic_compare_exchange_strong(&key_place, &known, fresh + 1))
            known = fresh + 1;
        else
            pthread_key_delete(fresh); /* another thread was faster */
    }
    *key = known - 1;
    return true;
}

uintptr_t lk__process(void)
{
    pthread_once(&once, watch_forks);
    uintptr_t known = atomic_load(&number), fresh = 0;
    while (known == 0) {
        if (getrandom(&fresh, sizeof fresh, 0) != sizeof fresh)
            fresh = (uintptr_t)getpid() << 32 ^ (uintptr_t)lk__now_us();
        fresh &= ~(uintptr_t)1;
        if (fresh != 0 && atomic_compare_exchange_strong(&number, &known, fresh))
            known = fresh;
    }
    return known;
}

static void adopt(struct lk__thread *thread)
{
    thread->process = lk__process();
    thread->owner = atomic_fetch_add(&owners, 1) + 1;
    thread->holds = 0;
    thread->inside = 0;
}

struct lk__thread *lk__thread_known(void)
{
    pthread_key_t key;
    return find_key(&key) ? pthread_getspecific(key) : NULL;
}

struct lk__thread *lk__thread_self(void)
{
    pthread_key_t key;
    struct lk__thread *thread = lk__thread_known();
    if (thread != NULL) {
        if (thread->process != lk__process())
            adopt(thread);
        return thread;
    }
    if (!find_key(&key) || (thread = lk__alloc(sizeof *thread)) == NULL)
        return NULL;
    if (pthread_setspecific(key, thread) != 0) {
        lk__release(thread);
        return NULL;
    }
    adopt(thread);
    return thread;
}

void lk__thread_onexit(void (*exited)(uint64_t owner))
{
    atomic_store(&onexit_handler, exited);
}

/* What a thread of the library is born with. */
struct birth {
    void *(*run)(void *);
    void *arg;
};

static void *live(void *arg)
{
    struct birth birth = *(struct birth *)arg;
    lk__release(arg);
    ours = true;
    return birth.run(birth.arg);
}

int lk__thread_spawn(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    struct birth *birth = lk__alloc(sizeof *birth);
    if (birth == NULL)
        return ENOMEM;
    *birth = (struct birth){ run, arg };
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, live, birth);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        pthread_setname_np(*thread, name);
    else
        lk__release(birth);
    return rc;
}

int lk__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    int rc = lk__thread_spawn(thread, name, run, arg);
    return rc == 0 ? 0 : lk__fail(ENOMEM, "no thread could be started for %s: %s", name, strerrordesc_np(rc));
}

bool lk__thread_isinside(void)
{
    const struct lk__thread *thread = ours ? NULL : lk__thread_known();
    return ours || (thread != NULL && thread->inside > 0);
}
