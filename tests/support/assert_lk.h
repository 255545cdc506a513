/* SPDX-License-Identifier: MIT */
/*
 * assert_lk.h - assertions on codes, time and events, and threads to make them about
 *
 * Threads  cmocka's assertions leave the test by a jump, so only the thread that runs the test may
 *          assert; workers return a result and worker_join() hands it over.
 * Children In a process made by world_fork() assert_lk(), assert_that() and eventually() print and end
 *          that process with status 1; cmocka's own assertions must not be used there.
 */
#ifndef TESTS_ASSERT_LK_H
#define TESTS_ASSERT_LK_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZED 1
#endif
#endif
#ifndef THREAD_SANITIZED
#define THREAD_SANITIZED 0
#endif

/* The library delays itself: noise/noise.h. */
#ifdef LATCHKEY_NOISE
#define NOISY 1
#else
#define NOISY 0
#endif

/*
 * How much later than planned things may happen. Nothing may happen earlier. Up to eight times as much where the
 * machine was busy since slack_begin(): the kernel tells how long processes had to wait for a processor.
 */
#define SLACK_MS slack_ms()
int64_t slack_ms(void);
void slack_begin(void); /* world_begin() calls it */

/*
 * The call returns `expected`, and leaves errno alone as every function of the library promises.
 */
#define assert_lk(expected, call)                                                                                      \
    do {                                                                                                               \
        errno = ERRNO_MARK;                                                                                            \
        int assert_lk_code = (call);                                                                                   \
        assert_lk_result((expected), assert_lk_code, errno, #call, __FILE__, __LINE__);                                \
    } while (0)

/* The condition holds; unlike assert_true() also usable in a child. */
#define assert_that(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            assert_failed(__FILE__, __LINE__, "not so: %s", #condition);                                               \
    } while (0)

/* The numbers are the same; unlike assert_int_equal() also usable in a child. */
#define assert_same(expected, actual)                                                                                  \
    do {                                                                                                               \
        int64_t assert_same_expected = (expected);                                                                     \
        assert_between_result((actual), assert_same_expected, assert_same_expected, #actual, __FILE__, __LINE__);      \
    } while (0)

/*
 * The condition becomes true within `ms`; looks every other millisecond, and once more when the time is over: this thread
 * may have stood still since it looked.
 */
#define eventually(condition, ms)                                                                                      \
    do {                                                                                                               \
        int64_t eventually_until_ms = now_ms() + (ms);                                                                 \
        for (bool eventually_over = false; !(condition); sleep_ms(2)) {                                                \
            if (eventually_over)                                                                                       \
                assert_failed(__FILE__, __LINE__, "not so within %d ms: %s", (int)(ms), #condition);                   \
            eventually_over = now_ms() > eventually_until_ms;                                                          \
        }                                                                                                              \
    } while (0)

/* `actual` lies in least..most; prints all three. */
#define assert_between(actual, least, most)                                                                            \
    assert_between_result((int64_t)(actual), (int64_t)(least), (int64_t)(most), #actual, __FILE__, __LINE__)

/* "EBUSY" for EBUSY, "0" for 0, "?" for codes the library never returns. */
const char *code_name(int code);

int64_t now_ms(void); /* CLOCK_MONOTONIC */
void sleep_ms(int64_t ms);

/* A thread of a test. */
struct worker {
    pthread_t thread;
    int (*work)(void *arg);
    void *arg;
    int result;
};

void worker_start(struct worker *worker, int (*work)(void *arg), void *arg);
int worker_join(struct worker *worker); /* what `work` returned */

/* Such a function that is one call, of `it`; or one that enters and leaves: WORK(take_two, sem, lk_sem_acquire(sem, 2, 10000)) */
#define WORK(name, it, call)                                                                                           \
    static int name(void *it)                                                                                          \
    {                                                                                                                  \
        (void)it;                                                                                                      \
        return call;                                                                                                   \
    }
#define VISIT(name, it, enter, leave)                                                                                  \
    static int name(void *it)                                                                                          \
    {                                                                                                                  \
        (void)it;                                                                                                      \
        int rc = enter;                                                                                                \
        return rc != 0 ? rc : leave;                                                                                   \
    }

/* Run `work` in one other thread and return what it returned: "as somebody else". */
int in_thread(int (*work)(void *arg), void *arg);

/* Run `work` in `count` threads at once; 0, or one of the results that were not 0. */
int run_threads(int count, int (*work)(int index, void *arg), void *arg);

/* Tests that take nothing: `return plain_run(this, that);` in main(). */
typedef void plain_test_fn(void);
#define plain_run(...) plain_run_with(NULL, __VA_ARGS__)

/* Likewise with a setup before each, or with something behind each, too. */
#define plain_run_with(setup, ...) plain_run_between(setup, NULL, __VA_ARGS__)
#define plain_run_between(setup, teardown, ...)                                                                        \
    plain_run_tests(setup, teardown, #__VA_ARGS__, (plain_test_fn *const[]){ __VA_ARGS__ })
int plain_run_tests(CMFixtureFunction setup, CMFixtureFunction teardown, const char *names,
                    plain_test_fn *const tests[]);

/*
 * What such macros stand on: a group of tests called `names`, which are divided by ", ". Each begins with a pointer to
 * its own of `functions`, an array of pointers to them, as cmocka's state. Returns how many failed.
 */
int run_group(const char *names, const void *functions, CMUnitTestFunction body, CMFixtureFunction setup,
              CMFixtureFunction teardown);

/* What the macros stand on. */
#define ERRNO_MARK 7777
void assert_lk_result(int expected, int code, int errno_after, const char *call, const char *file, int line);
void assert_between_result(int64_t actual, int64_t least, int64_t most, const char *text, const char *file, int line);
void assert_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4), noreturn));

/* Set by world_fork() in the child. */
extern bool in_child;

#endif
