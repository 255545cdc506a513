/* SPDX-License-Identifier: MIT */
/*
 * parker_test.c - a parked thread wakes when it is told, not otherwise, and no wake-up is lost
 *
 * labels: threads memory noise
 */
#include "assert_lk.h"
#include "base/base.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { BOTH = LK__WOKEN | LK__NUDGED };

static int64_t soon(int64_t ms)
{
    return lk__now_us() + ms * 1000;
}

static int make_parker(void **state)
{
    static struct lk__parker parker;
    lk__parker_init(&parker);
    *state = &parker;
    return 0;
}

static int unmake_parker(void **state)
{
    lk__parker_destroy(*state);
    return 0;
}

/* Who is told before it parks must not sleep through it: there is always a moment between looking and parking. */
static void a_signal_given_before_the_park_ends_it_at_once(void **state)
{
    static const unsigned signals[] = { LK__WOKEN, LK__NUDGED };
    struct lk__parker *parker = *state;
    for (int i = 0; i < 2; i++) {
        lk__parker_signal(parker, signals[i]);
        assert_int_equal(lk__parker_park(parker, LK__NEVER), signals[i]);
    }
}

static void signals_of_two_kinds_are_taken_together_and_once(void **state)
{
    struct lk__parker *parker = *state;
    lk__parker_signal(parker, LK__NUDGED);
    lk__parker_signal(parker, LK__WOKEN);
    lk__parker_signal(parker, LK__NUDGED);
    assert_int_equal(lk__parker_park(parker, LK__NEVER), BOTH);
    assert_int_equal(lk__parker_park(parker, soon(1)), 0);
}

/* A limit in the past is how one asks what came so far. */
static void signals_are_taken_even_after_the_limit(void **state)
{
    struct lk__parker *parker = *state;
    assert_int_equal(lk__parker_park(parker, 0), 0);
    lk__parker_signal(parker, LK__WOKEN);
    assert_int_equal(lk__parker_park(parker, 0), LK__WOKEN);
    assert_int_equal(lk__parker_park(parker, 0), 0);
}

static void a_park_ends_at_its_limit_and_not_before(void **state)
{
    static const int64_t limits_ms[] = { 1, 30, 1100 }; /* the last is longer than one slice of a sleep */
    for (size_t i = 0; i < sizeof limits_ms / sizeof *limits_ms; i++) {
        int64_t until_us = soon(limits_ms[i]);
        assert_int_equal(lk__parker_park(*state, until_us), 0);
        assert_between(lk__now_us() - until_us, 0, SLACK_MS * 1000);
    }
}

struct late_signal {
    struct lk__parker *parker;
    unsigned signal;
};

static int signal_later(void *arg)
{
    struct late_signal *late = arg;
    sleep_ms(20);
    lk__parker_signal(late->parker, late->signal);
    return 0;
}

static void a_parked_thread_is_woken_by_either_kind(void **state)
{
    for (unsigned signal = LK__WOKEN; signal <= LK__NUDGED; signal++) {
        struct late_signal late = { *state, signal };
        struct worker worker;
        worker_start(&worker, signal_later, &late);
        unsigned got = lk__parker_park(*state, LK__NEVER);
        assert_int_equal(worker_join(&worker), 0);
        assert_int_equal(got, signal);
    }
}

static bool is_readable(int fd)
{
    struct pollfd polled = { fd, POLLIN, 0 };
    return poll(&polled, 1, 0) == 1;
}

/* Who reads for all others sleeps in poll(), where no condition variable reaches it. */
static void a_thread_in_a_poll_is_kicked_through_its_descriptor(void **state)
{
    struct lk__parker *parker = *state;
    int fd = lk__eventfd_open();
    assert_true(fd >= 0);
    lk__parker_signal(parker, LK__NUDGED);
    assert_false(is_readable(fd));
    assert_int_equal(lk__parker_pollwith(parker, fd), LK__NUDGED); /* came before: told now, no kick needed */
    assert_false(is_readable(fd));

    struct late_signal late = { parker, LK__WOKEN };
    struct worker worker;
    worker_start(&worker, signal_later, &late);
    struct pollfd polled = { fd, POLLIN, 0 };
    int ready = poll(&polled, 1, 10000);
    assert_int_equal(worker_join(&worker), 0);
    assert_int_equal(ready, 1);
    lk__eventfd_clear(fd);
    assert_false(is_readable(fd));

    assert_int_equal(lk__parker_pollwith(parker, -1), LK__WOKEN);
    lk__parker_signal(parker, LK__WOKEN); /* the condition again */
    assert_false(is_readable(fd));
    assert_int_equal(lk__parker_park(parker, LK__NEVER), LK__WOKEN);
    close(fd);
}

/* An eventfd keeps its state however often it is set, and neither call touches errno. */
static void an_eventfd_is_set_or_clear(void **state)
{
    int fd = lk__eventfd_open();
    (void)state;
    assert_true(fd >= 0);
    errno = ERRNO_MARK;
    lk__eventfd_clear(fd);
    for (int i = 0; i < 3; i++)
        lk__eventfd_set(fd);
    assert_int_equal(errno, ERRNO_MARK);
    assert_true(is_readable(fd));
    lk__eventfd_clear(fd);
    assert_false(is_readable(fd));
    lk__eventfd_clear(-1);
    lk__eventfd_set(-1);
    assert_int_equal(errno, ERRNO_MARK);
    close(fd);
}

/* --- a signal in two steps ------------------------------------------------------------------------------ */

static int wake_later(void *arg)
{
    sleep_ms(100);
    lk__parker_wake(arg);
    return 0;
}

/* Who looks finds what was noted; who sleeps sleeps on until it is woken. */
static void a_noted_signal_wakes_nobody_and_is_found(void **state)
{
    struct lk__parker *parker = *state;
    sem_t *tick = lk__parker_note(parker, LK__NUDGED);
    assert_non_null(tick);
    assert_int_equal(lk__parker_park(parker, soon(1000)), LK__NUDGED);
    assert_int_equal(lk__parker_park(parker, soon(20)), 0);
    lk__parker_wake(tick);
    assert_int_equal(lk__parker_park(parker, soon(20)), 0); /* a wake-up without a signal is none */
    lk__parker_signal(parker, LK__WOKEN);
    assert_int_equal(lk__parker_park(parker, LK__NEVER), LK__WOKEN);
    lk__parker_wake(NULL);
}

/* A thread that found the signal by itself is done with its parker, and who noted it is not. */
static void a_parker_ends_when_all_noted_wake_ups_came(void **state)
{
    struct lk__parker parker;
    struct worker worker;
    (void)state;
    lk__parker_init(&parker);
    sem_t *first = lk__parker_note(&parker, LK__NUDGED), *second = lk__parker_note(&parker, LK__WOKEN);
    assert_int_equal(lk__parker_park(&parker, 0), BOTH);
    lk__parker_wake(first);
    int64_t began_us = lk__now_us();
    worker_start(&worker, wake_later, second);
    lk__parker_destroy(&parker);
    assert_between(lk__now_us() - began_us, 50000, (100 + SLACK_MS) * 1000);
    assert_int_equal(worker_join(&worker), 0);
}

/* A poll is ended at once, and there is nothing that would have to follow. */
static void a_thread_in_a_poll_needs_no_second_step(void **state)
{
    struct lk__parker *parker = *state;
    int fd = lk__eventfd_open();
    assert_true(fd >= 0);
    lk__parker_pollwith(parker, fd);
    assert_null(lk__parker_note(parker, LK__NUDGED));
    assert_true(is_readable(fd));
    assert_int_equal(lk__parker_pollwith(parker, -1), LK__NUDGED);
    close(fd);
}

/* --- a word is published, its reader destroys the parker at once ---------------------------------------- */

enum { PAIRS = 4, ROUNDS = SANITIZED ? 300 : 1000 };

struct letter {
    struct lk__parker parker;
    _Atomic int word;
};

/* Where a reader leaves its parker for the writer. */
struct post {
    _Atomic(struct letter *) box;
    pthread_mutex_t mu; /* of note and word */
    pthread_barrier_t start;
};

static struct post posts[PAIRS];

static int publish_words(struct post *post)
{
    for (int round = 1; round <= ROUNDS; round++) {
        struct letter *letter;
        while ((letter = atomic_exchange(&post->box, NULL)) == NULL)
            sched_yield();
        pthread_mutex_lock(&post->mu);
        sem_t *tick = lk__parker_note(&letter->parker, LK__NUDGED);
        atomic_store(&letter->word, round); /* from then on only the parker is there */
        pthread_mutex_unlock(&post->mu);
        lk__parker_wake(tick);
    }
    return 0;
}

/* Sees the word, destroys and frees: now by a park that was woken, now by a look at the right moment. */
static int read_words(struct post *post)
{
    int wrong = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        struct letter *letter = calloc(1, sizeof *letter);
        if (letter == NULL)
            return ENOMEM;
        lk__parker_init(&letter->parker);
        atomic_store(&post->box, letter);
        while (atomic_load(&letter->word) == 0)
            if (round % 2 == 0) {
                lk__parker_park(&letter->parker, LK__NEVER);
                pthread_mutex_lock(&post->mu); /* a note that was found comes before its word */
                pthread_mutex_unlock(&post->mu);
            } else
                sched_yield();
        wrong += atomic_load(&letter->word) != round;
        lk__parker_destroy(&letter->parker);
        free(letter);
    }
    return wrong;
}

static int read_or_publish(int index, void *arg)
{
    struct post *post = &posts[index / 2];
    (void)arg;
    pthread_barrier_wait(&post->start);
    return index % 2 == 0 ? read_words(post) : publish_words(post);
}

static void who_sees_a_published_word_may_destroy_the_parker(void **state)
{
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        pthread_barrier_init(&posts[i].start, NULL, 2);
        pthread_mutex_init(&posts[i].mu, NULL);
    }
    assert_int_equal(run_threads(2 * PAIRS, read_or_publish, NULL), 0);
    for (int i = 0; i < PAIRS; i++)
        pthread_barrier_destroy(&posts[i].start);
}

/* --- many tell one: each signal is seen in some park ---------------------------------------------------- */

enum { TELLERS = 8, WORDS = SANITIZED ? 300 : 2000 };

struct broadcast {
    struct lk__parker *parker;
    atomic_int said;
};

static int say_words(int index, void *arg)
{
    struct broadcast *broadcast = arg;
    for (int i = 0; i < WORDS; i++) {
        atomic_fetch_add(&broadcast->said, 1);
        lk__parker_signal(broadcast->parker, index % 2 == 0 ? LK__WOKEN : LK__NUDGED);
    }
    return 0;
}

static int speak(void *arg)
{
    return run_threads(TELLERS, say_words, arg);
}

static void no_signal_of_many_threads_is_lost(void **state)
{
    struct broadcast broadcast = { .parker = *state };
    struct worker worker;
    int on_message = 0;
    worker_start(&worker, speak, &broadcast);
    while (on_message < TELLERS * WORDS && lk__parker_park(broadcast.parker, soon(30000)) != 0)
        on_message = atomic_load(&broadcast.said);
    assert_int_equal(worker_join(&worker), 0);
    assert_int_equal(on_message, TELLERS * WORDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_signal_given_before_the_park_ends_it_at_once, make_parker, unmake_parker),
        cmocka_unit_test_setup_teardown(signals_of_two_kinds_are_taken_together_and_once, make_parker, unmake_parker),
        cmocka_unit_test_setup_teardown(signals_are_taken_even_after_the_limit, make_parker, unmake_parker),
        cmocka_unit_test_setup_teardown(a_park_ends_at_its_limit_and_not_before, make_parker, unmake_parker),
        cmocka_unit_test_setup_teardown(a_parked_thread_is_woken_by_either_kind, make_parker, unmake_parker),
        cmocka_unit_test_setup_teardown(a_thread_in_a_poll_is_kicked_through_its_descriptor, make_parker,
                                        unmake_parker),
        cmocka_unit_test(an_eventfd_is_set_or_clear),
        cmocka_unit_test_setup_teardown(a_noted_signal_wakes_nobody_and_is_found, make_parker, unmake_parker),
        cmocka_unit_test(a_parker_ends_when_all_noted_wake_ups_came),
        cmocka_unit_test_setup_teardown(a_thread_in_a_poll_needs_no_second_step, make_parker, unmake_parker),
        cmocka_unit_test(who_sees_a_published_word_may_destroy_the_parker),
        cmocka_unit_test_setup_teardown(no_signal_of_many_threads_is_lost, make_parker, unmake_parker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
