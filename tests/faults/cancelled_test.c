/* SPDX-License-Identifier: MIT */
/*
 * cancelled_test.c - F56: a thread is cancelled while it waits, or at any moment
 *
 * labels: threads
 * simulated: yes
 * processors: 4
 */
#include "subject.h"

#include <string.h>

enum { THREADS = 4, ROUNDS = 12 };

enum { COMMAND_MS = 2900 };

#define OPTIONS "lease=9s&command_timeout=2900ms&poll=200ms"

static bool is_cancellation_point(const struct subject_kind *kind)
{
    return strstr(kind->name, "semaphore") != NULL;
}

static void *wait_and_give(void *arg)
{
    struct subject *s = arg;
    if (subject_take(s, LK_FOREVER) != 0)
        return NULL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return subject_give(s) == 0 ? s : NULL;
}

/* A semaphore's wait ends and leaves nothing, as sem_wait() does; a lock's goes on, as pthread_mutex_lock() does. */
static void a_waiter_is_cancelled(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, OPTIONS);
    pthread_t thread;
    void *result;
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    assert_lk(0, subject_take(keeper, 1000));
    assert_int_equal(0, pthread_create(&thread, NULL, wait_and_give, mine));
    eventually(subject_queued(w, mine) == 1, 3000);
    sleep_ms(30);
    int64_t began_ms = now_ms();
    assert_int_equal(0, pthread_cancel(thread));
    if (is_cancellation_point(kind)) {
        assert_int_equal(0, pthread_join(thread, &result));
        assert_between(now_ms() - began_ms, 0, COMMAND_MS + SLACK_MS); /* it says that it leaves */
        assert_ptr_equal(PTHREAD_CANCELED, result);
        assert_int_equal(0, subject_queued(w, mine));
        assert_lk(0, subject_give(keeper));
    } else {
        sleep_ms(100);
        assert_int_equal(1, subject_queued(w, mine));
        assert_lk(0, subject_give(keeper));
        assert_int_equal(0, pthread_join(thread, &result));
        assert_ptr_equal(mine, result); /* it got it, gave it back, and met no cancellation point */
    }
    assert_int_equal(0, subject_held(w, mine));
}

static void *take_and_give(void *arg)
{
    for (;;) {
        if (subject_take(arg, LK_FOREVER) != 0)
            return NULL;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        if (subject_give(arg) != 0)
            return NULL;
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_testcancel();
    }
}

/* Whenever it comes: nothing is held, nobody is queued, no lock of the library's own is stuck. */
static void threads_are_cancelled_at_any_moment(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *client = world_client(w, OPTIONS);
    struct subject *mine = world_subject(w, client, kind, "thing");
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(0, pthread_create(&threads[i], NULL, take_and_give, mine));
        sleep_ms(3 + 2 * round);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(0, pthread_cancel(threads[i]));
        for (int i = 0; i < THREADS; i++) {
            void *result;
            assert_int_equal(0, pthread_join(threads[i], &result));
            assert_ptr_equal(PTHREAD_CANCELED, result);
        }
    }
    assert_int_equal(0, subject_held(w, mine));
    assert_int_equal(0, subject_queued(w, mine));
    assert_lk(0, subject_take(mine, 0));
    assert_lk(0, subject_give(mine));
}

int main(void)
{
    if (SANITIZED && !THREAD_SANITIZED)
        return 77; /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    return subject_run(a_waiter_is_cancelled, threads_are_cancelled_at_any_moment);
}
