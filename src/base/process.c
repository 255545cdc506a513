/* SPDX-License-Identifier: MIT */
/*
 * process.c - which process and which thread is this?
 *
 * A fork makes a new process with the old memory: the child forgets the number, draws its own when it first
 * needs one, and closes its copies of the parent's descriptors. Thread ids of the system come back after a
 * thread ended, so owners are counted.
 *
 * A thread ends when the destructors of its thread-specific data are through. Others' destructors may come after
 * ours and unlock something, so ours is set again and acts in a later round. The system promises four rounds; the
 * third is the latest that also a thread comes to which called the library in its first round for the first time.
 *
 * A thread of the library counts itself once it runs and until it returns. The count is never above the number of
 * those that exist, so an unknown thread of the program, or one that is being made, is never taken for one of them.
 */
#include "base/base.h"

#include <limits.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

static _Atomic uintptr_t number; /* 0: not drawn yet in this process */

enum { LAST_ROUND = 3 };
_Static_assert(LAST_ROUND < PTHREAD_DESTRUCTOR_ITERATIONS, "there is one round more");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint key_place; /* 1 + the key of struct lk__thread; 0: not made yet */
static atomic_uint_least64_t owners;
static _Atomic(void (*)(uint64_t)) onexit_handler;
static _Atomic(void (*)(void)) onend_handler;

/* Threads of the program that know the library, and threads of the library. */
static atomic_int users, helpers;
static _Atomic(void (*)(void)) onlast_handler;

/* Guards: threads_mu all struct lk__thread of this process. */
static struct lk__mu threads_mu = LK__MU_INITIALIZER(LK__MU_THREADS);
static struct lk__link threads = { &threads, &threads };

/* Is this a thread of the library? Thread-local and static: reading it allocates nothing. */
static _Thread_local bool ours __attribute__((tls_model("initial-exec")));

static atomic_uint_least64_t forks;
static atomic_uint_least64_t forks_atbirth; /* 0: not made by a fork, or it was asked for already */

static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

uint64_t lk__forks(void)
{
    return atomic_load(&forks);
}

uint64_t lk__forks_atbirth(void)
{
    return atomic_exchange(&forks_atbirth, 0);
}

/* The parent's threads are not there, and one of them may have the mutex, which ThreadSanitizer does not see. */
__attribute__((no_sanitize("thread"))) static void forget_threads(void)
{
    threads_mu = (struct lk__mu)LK__MU_INITIALIZER(LK__MU_THREADS);
    lk__list_init(&threads);
}

/* In the child of a fork, before its own code runs. */
static void forget(void)
{
    forget_threads();
    if (atomic_load(&forks_atbirth) ==
        0) /* else the parent never asked: it, too, knows what was before its own birth only */
        atomic_store(&forks_atbirth, atomic_load(&forks));
    atomic_store(&number, 0);
    atomic_store(&users, 0);
    atomic_store(&helpers, 0);
    ours = false; /* even if a listener forked */
    lk__fd_closeall();
}

static void user_ends(void)
{
    void (*last)(void) = atomic_load(&onlast_handler);
    if (atomic_fetch_sub(&users, 1) == 1 && atomic_load(&helpers) > 0 && last != NULL)
        last();
}

static void tell_end(void)
{
    void (*ended)(void) = atomic_load(&onend_handler);
    if (ended != NULL)
        ended();
}

static bool come_again(struct lk__thread *thread)
{
    unsigned place = atomic_load(&key_place);
    return ++thread->rounds < LAST_ROUND && place != 0 && pthread_setspecific(place - 1, thread) == 0;
}

static void disown(struct lk__thread *thread)
{
    lk__mu_lock(&threads_mu);
    lk__list_remove(&thread->link);
    lk__mu_unlock(&threads_mu);
}

static void thread_ends(void *self)
{
    struct lk__thread *thread = self;
    void (*exited)(uint64_t) = atomic_load(&onexit_handler);
    if (come_again(thread)) {
        tell_end();
        return;
    }
    bool here = thread->process == lk__process();
    if (thread->holds > 0 && here && exited != NULL)
        exited(thread->owner);
    tell_end();
    if (here)
        disown(thread);
    lk__free(thread);
    if (here && !ours)
        user_ends();
}

static void watch_forks(void)
{
    pthread_atfork(count_fork, NULL, forget);
}

/* The key of thread-specific data, made on first use; the system may be out of keys now, and not later. */
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

/*
 * A program may unload a plugin that has the library in it while its threads live on: their end must not call what
 * is no longer there. At the end of a process this comes after all other destructors; other threads may be in the library
 * then, so what is kept for them stays.
 */
__attribute__((destructor(101))) static void unloaded(void)
{
    unsigned place = atomic_exchange(&key_place, 0);
    if (place == 0)
        return;
    struct lk__thread *self = pthread_getspecific(place - 1);
    pthread_key_delete(place - 1);
    lk__free(self);
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

uint64_t lk__owner_fresh(void)
{
    return atomic_fetch_add(&owners, 1) + 1;
}

static void adopt(struct lk__thread *thread)
{
    thread->process = lk__process();
    thread->owner = lk__owner_fresh();
    thread->holds = 0;
    thread->inside = 0;
    thread->link = (struct lk__link){ NULL, NULL };
    lk__mu_lock(&threads_mu);
    lk__list_append(&threads, &thread->link);
    lk__mu_unlock(&threads_mu);
    if (!ours)
        atomic_fetch_add(&users, 1);
}

static bool set_self(struct lk__thread *thread)
{
    pthread_key_t key;
    return find_key(&key) && pthread_setspecific(key, thread) == 0;
}

struct lk__thread *lk__thread_known(void)
{
    pthread_key_t key;
    return find_key(&key) ? pthread_getspecific(key) : NULL;
}

struct lk__thread *lk__thread_self(void)
{
    struct lk__thread *thread = lk__thread_known();
    if (thread != NULL) {
        if (thread->process != lk__process())
            adopt(thread);
        return thread;
    }
    thread = lk__alloc(sizeof *thread);
    if (thread == NULL)
        return NULL;
    if (!set_self(thread)) {
        lk__free(thread);
        return NULL;
    }
    adopt(thread);
    return thread;
}

bool lk__thread_follows(const void *what)
{
    bool follows = false;
    lk__mu_lock(&threads_mu);
    for (struct lk__link *l = lk__list_first(&threads); l != NULL && !follows; l = lk__list_next(&threads, l))
        follows = atomic_load(&LK__CONTAINER(l, struct lk__thread, link)->follows) == what;
    lk__mu_unlock(&threads_mu);
    return follows;
}

void lk__thread_onexit(void (*exited)(uint64_t owner))
{
    atomic_store(&onexit_handler, exited);
}

void lk__thread_onend(void (*ended)(void))
{
    atomic_store(&onend_handler, ended);
}

void lk__thread_onlast(void (*last)(void))
{
    atomic_store(&onlast_handler, last);
}

int lk__thread_users(void)
{
    return atomic_load(&users);
}

int lk__thread_helpers(void)
{
    return atomic_load(&helpers);
}

/* What a new thread of the library is told. */
struct birth {
    void *(*run)(void *);
    void *arg;
};

static void helper_ends(void *arg)
{
    (void)arg;
    tell_end();
    atomic_fetch_sub(&helpers, 1);
}

static void *live(void *arg)
{
    struct birth birth = *(struct birth *)arg;
    void *result;
    lk__free(arg);
    ours = true;
    atomic_fetch_add(&helpers, 1);
    pthread_cleanup_push(helper_ends, NULL); /* a listener may call pthread_exit() */
    result = birth.run(birth.arg);
    pthread_cleanup_pop(1);
    return result;
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
        lk__free(birth);
    return rc;
}

bool lk__thread_isinside(void)
{
    const struct lk__thread *thread = ours ? NULL : lk__thread_known();
    return ours || (thread != NULL && thread->inside > 0);
}
