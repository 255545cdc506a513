/* SPDX-License-Identifier: MIT */
/*
 * thread_data_test.c - destructors of thread-specific data may unlock what their thread holds, and lock
 *
 * Cleanup frameworks do that. The system calls destructors in no order that a program could rely on, so it may not
 * matter whether the library's own comes first.
 *
 * labels: memory threads
 * simulated: yes
 */
#include "world.h"

struct cleaning {
    lk_mutex_t *mutex;
    lk_rwlock_t *rwlock;
    lk_sem_t *permits;
    lk_once_t *work;
    pthread_key_t early, late; /* made before the library's own key, and after it */
    int early_code, late_code;
    int again; /* how often a destructor puts itself off */
};

static struct cleaning cleaning;

static int first_of(int a, int b)
{
    return a != 0 ? a : b;
}

static int unlock_all(void)
{
    int rc = lk_mutex_unlock(cleaning.mutex);
    rc = first_of(rc, lk_rwlock_unlock(cleaning.rwlock));
    rc = first_of(rc, lk_once_fail(cleaning.work));
    return first_of(rc, lk_sem_post(cleaning.permits));
}

static int lock_all(void)
{
    int rc = lk_mutex_lock(cleaning.mutex);
    rc = first_of(rc, lk_rwlock_wrlock(cleaning.rwlock));
    rc = first_of(rc, lk_once_begin(cleaning.work, 0));
    return first_of(rc, lk_sem_wait(cleaning.permits));
}

static void clean_early(void *what)
{
    (void)what;
    cleaning.early_code = unlock_all();
}

static void clean_late(void *what)
{
    if (cleaning.again-- > 0)
        pthread_setspecific(cleaning.late, what);
    else
        cleaning.late_code = unlock_all();
}

static int lock_and_end_early(void *arg)
{
    pthread_setspecific(cleaning.early, arg);
    return lock_all();
}

static int lock_and_end_late(void *arg)
{
    pthread_setspecific(cleaning.late, arg);
    return lock_all();
}

static void a_destructor_may_unlock(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    lk_semattr_t leased = LK_SEMATTR_INIT;
    leased.leased = 1;
    cleaning.mutex = world_mutex(w, client, "orders", NULL);
    cleaning.rwlock = world_rwlock(w, client, "letters", NULL);
    cleaning.permits = world_sem(w, client, "permits", 1, &leased);
    cleaning.work = world_once(w, client, "work", NULL);
    assert_int_equal(0, pthread_key_create(&cleaning.late, clean_late));
    for (int again = 0; again < 2; again++) {
        cleaning.early_code = cleaning.late_code = -1;
        cleaning.again = again;
        assert_lk(0, in_thread(lock_and_end_early, &cleaning));
        assert_lk(0, cleaning.early_code);
        assert_lk(0, in_thread(lock_and_end_late, &cleaning));
        assert_lk(0, cleaning.late_code);
        assert_lk(0, in_thread(lock_and_end_early, &cleaning)); /* nothing is left of them */
    }
    world_allow(w, "*permits*");
    world_allow(w, "latchkey:rw:*");
}

static void lock_at_the_end(void *what)
{
    cleaning.late_code = lk_mutex_lock(what);
}

static int only_end(void *arg)
{
    return pthread_setspecific(cleaning.early, arg);
}

/* A thread that calls the library for the first time when it ends, and holds on: it is renewed no more. */
static void a_hold_of_a_destructor_ends_with_its_thread(struct world *w)
{
    if (THREAD_SANITIZED)
        skip(); /* it forgets a thread before the system calls the last destructors */
    lk_client_t *client = world_client(w, "lease=1500ms");
    lk_mutex_t *m = world_mutex(w, client, "orders", NULL);
    lk_mutex_t *other = world_mutex(w, client, "letters", NULL);
    pthread_key_delete(cleaning.early);
    assert_int_equal(0, pthread_key_create(&cleaning.early, lock_at_the_end));
    pthread_key_delete(cleaning.late);
    assert_int_equal(0, pthread_key_create(&cleaning.late, lock_at_the_end));
    cleaning.late_code = -1;
    assert_lk(0, in_thread(only_end, m));
    assert_lk(0, cleaning.late_code);
    pthread_key_t early = cleaning.early;
    cleaning.early = cleaning.late; /* a greater number than the library's */
    cleaning.late_code = -1;
    assert_lk(0, in_thread(only_end, other));
    assert_lk(0, cleaning.late_code);
    eventually(!world_exists(w, "orders") && !world_exists(w, "letters"), 1500 + SLACK_MS);
    pthread_key_delete(cleaning.early);
    pthread_key_delete(early);
}

int main(void)
{
    pthread_key_create(&cleaning.early, clean_early); /* before the library is called */
    return world_run(a_destructor_may_unlock, a_hold_of_a_destructor_ends_with_its_thread);
}
