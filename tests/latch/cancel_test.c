/* SPDX-License-Identifier: MIT */
/*
 * cancel_test.c - a wait is a cancellation point while it sleeps, the other calls are none; nothing stays behind
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_latch_t *gate;
static int cleaned; /* how many cleanup handlers of waiting threads ran; atomic builtins */

static void open_gate(struct world *w, const char *options)
{
    client = world_client(w, options);
    gate = world_latch(w, client, "gate");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    cleaned = 0;
}

static void clean_up(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

static void *wait_for_it(void *arg)
{
    int rc;
    pthread_cleanup_push(clean_up, NULL);
    rc = lk_latch_wait(arg);
    pthread_cleanup_pop(0);
    return (void *)(intptr_t)rc;
}

/* At whatever moment it comes: the thread ends, and the latch is as if it had never waited. */
static void a_cancelled_wait_leaves_nothing(struct world *w)
{
    enum { TIMES = 20 };
    static const char *const options[] = { "lease=20s&poll=5s", "poll=20ms&pubsub=no" };
    for (int i = 0; i < 2; i++) {
        open_gate(w, options[i]);
        for (int k = 0; k < TIMES; k++) {
            pthread_t thread;
            void *result;
            assert_int_equal(0, pthread_create(&thread, NULL, wait_for_it, gate));
            sleep_ms(k);
            assert_int_equal(0, pthread_cancel(thread));
            assert_int_equal(0, pthread_join(thread, &result));
            assert_ptr_equal(PTHREAD_CANCELED, result);
        }
        assert_int_equal(TIMES, cleaned);
        assert_lk(0, lk_latch_countdown(gate));
        assert_lk(0, lk_latch_wait(gate));
        world_close(w, NULL); /* nobody counts as waiting any more */
    }
}

/* Others who wait for the same latch are not disturbed. */
static void the_others_wait_on(struct world *w)
{
    pthread_t threads[8];
    void *result;
    open_gate(w, "lease=20s&poll=5s");
    for (int i = 0; i < 8; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, wait_for_it, gate));
    sleep_ms(100);
    for (int i = 0; i < 8; i += 2)
        assert_int_equal(0, pthread_cancel(threads[i]));
    for (int i = 0; i < 8; i += 2) { /* first: one that finds it open has no need to sleep */
        assert_int_equal(0, pthread_join(threads[i], &result));
        assert_ptr_equal(PTHREAD_CANCELED, result);
    }
    int64_t counted_ms = now_ms();
    assert_lk(0, lk_latch_countdown(gate));
    for (int i = 1; i < 8; i += 2) {
        assert_int_equal(0, pthread_join(threads[i], &result));
        assert_null(result);
    }
    assert_between(now_ms() - counted_ms, 0, 3000); /* polls are 4 s apart at least */
    assert_int_equal(4, cleaned);
}

static void *wait_uncancelable(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return wait_for_it(arg);
}

/* Who has switched cancellation off is not cancelled in here either. */
static void disabled_is_disabled(struct world *w)
{
    pthread_t thread;
    void *result;
    open_gate(w, "poll=20ms");
    assert_int_equal(0, pthread_create(&thread, NULL, wait_uncancelable, gate));
    sleep_ms(50);
    assert_int_equal(0, pthread_cancel(thread));
    sleep_ms(50);
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_null(result);
}

static void *count_while_cancelled(void *arg)
{
    intptr_t wrong = 0;
    unsigned count;
    pthread_cancel(pthread_self());
    wrong += lk_latch_trysetcount(arg, 1) != EEXIST;
    wrong += lk_latch_getcount(arg, &count) != 0;
    wrong += lk_latch_countdown(arg) != 0;
    wrong += lk_latch_wait(arg) != 0; /* open: it does not sleep */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return (void *)wrong;
}

/* Calls that do not wait are no cancellation points: what they do is done wholly, and reported. */
static void other_calls_are_no_cancellation_points(struct world *w)
{
    pthread_t thread;
    void *result;
    open_gate(w, "");
    assert_int_equal(0, pthread_create(&thread, NULL, count_while_cancelled, gate));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_null(result);
}

int main(void)
{
    return world_run(a_cancelled_wait_leaves_nothing, the_others_wait_on, disabled_is_disabled,
                     other_calls_are_no_cancellation_points);
}
