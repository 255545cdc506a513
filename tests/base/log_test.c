/* SPDX-License-Identifier: MIT */
/*
 * log_test.c - a sink that blocks stops nobody but itself: threads of the library and calls under way leave
 * their lines for another thread, which tells how many there was no room for
 *
 * This program has a pthread_create() of its own, which can be told to fail.
 *
 * labels: threads memory
 */
#include "assert_lk.h"
#include "base/base.h"
#include "log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool no_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    return atomic_load(&no_threads) ? EAGAIN : real(thread, attr, run, arg);
}

/* --- a sink with a door ------------------------------------------------------------------------------------- */

static struct {
    atomic_bool shut;
    atomic_int waiting, lines, dropped;
    pthread_t thread; /* that wrote the last line */
    char last[600];
} on_message;

static void hear(void *arg, int level, const char *line)
{
    unsigned long long dropped;
    (void)arg;
    (void)level;
    atomic_fetch_add(&on_message.waiting, 1);
    while (atomic_load(&on_message.shut))
        sleep_ms(1);
    atomic_fetch_sub(&on_message.waiting, 1);
    on_message.thread = pthread_self();
    if (sscanf(line, "the log was behind: %llu lines were dropped", &dropped) == 1) {
        atomic_fetch_add(&on_message.dropped, (int)dropped);
        return;
    }
    snprintf(on_message.last, sizeof on_message.last, "%s", line);
    atomic_fetch_add(&on_message.lines, 1);
}

static int listen(void **state)
{
    (void)state;
    memset(&on_message, 0, sizeof on_message);
    return log_to(hear, LK_LOG_DEBUG, NULL);
}

static int listen_no_more(void **state)
{
    (void)state;
    atomic_store(&on_message.shut, false);
    lk__log_flush();
    return log_to(NULL, LK_LOG_ERROR, NULL);
}

/* --- threads of the library ----------------------------------------------------------------------------------- */

static void *say(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++)
        lk__log(LK_LOG_WARNING, "line %d", i);
    return NULL;
}

static void library_says(int lines)
{
    pthread_t thread;
    assert_int_equal(0, lk__thread_start(&thread, "lk-test", say, &lines));
    assert_int_equal(0, pthread_join(thread, NULL));
}

static void lines_of_the_library_are_written_in_their_order(void)
{
    library_says(100);
    lk__log_flush();
    assert_int_equal(100, on_message.lines);
    assert_string_equal("line 99", on_message.last);
    library_says(1);
    lk__log_flush();
    assert_string_equal("line 0", on_message.last);
    assert_int_equal(0, on_message.dropped);
}

static void a_sink_that_blocks_stops_no_thread_of_the_library(void)
{
    atomic_store(&on_message.shut, true);
    library_says(1);
    eventually(atomic_load(&on_message.waiting) == 1, 5000);
    int64_t began_ms = now_ms();
    library_says(1000);
    assert_between(now_ms() - began_ms, 0, 5000); /* it would not end at all */
    lk__log_flush();                              /* nor would this */
    assert_int_equal(0, on_message.lines);
    atomic_store(&on_message.shut, false);
    eventually(on_message.lines + on_message.dropped == 1001, 5000);
    assert_int_equal(1 + 256, on_message.lines);
}

static void lines_wait_where_no_thread_can_be_had(void)
{
    int three = 3;
    pthread_t thread;
    assert_int_equal(0, lk__thread_start(&thread, "lk-test", say, &three));
    assert_int_equal(0, pthread_join(thread, NULL));
    lk__log_flush();
    struct lk__apistate api = lk__api_enter();
    atomic_store(&no_threads, true);
    lk__log(LK_LOG_WARNING, "from within a call");
    lk__log_flush();
    assert_int_equal(3, on_message.lines);
    atomic_store(&no_threads, false);
    lk__api_leave(&api, 0);
    lk__log_flush();
    assert_int_equal(4, on_message.lines);
    assert_string_equal("from within a call", on_message.last);
}

/* --- callers -------------------------------------------------------------------------------------------------- */

static void a_failure_is_logged_when_the_call_is_over(void)
{
    struct lk__apistate outer = lk__api_enter(), inner = lk__api_enter();
    lk__fail(EIO, "the first");
    lk__fail(EIO, "the second");
    lk__api_leave(&inner, EIO);
    lk__log_flush();
    assert_int_equal(0, on_message.lines);
    lk__api_leave(&outer, EIO);
    assert_int_equal(1, on_message.lines);
    assert_string_equal("the second", on_message.last);
    assert_true(pthread_equal(on_message.thread, pthread_self()));
}

static void a_call_under_way_waits_for_no_sink(void)
{
    struct lk__apistate api = lk__api_enter();
    atomic_store(&on_message.shut, true);
    lk__log(LK_LOG_WARNING, "in the middle");
    atomic_store(&on_message.shut, false);
    lk__log_flush();
    assert_int_equal(1, on_message.lines);
    assert_false(pthread_equal(on_message.thread, pthread_self()));
    lk__api_leave(&api, 0);
}

/* --- forks ---------------------------------------------------------------------------------------------------- */

/* The thread and the lines that wait for it are the parent's; the child has a thread of its own. */
static void a_child_has_its_own_lines_only(void)
{
    int status;
    if (THREAD_SANITIZED)
        skip(); /* it does not follow a fork out of a process with threads */
    atomic_store(&on_message.shut, true);
    library_says(3);
    eventually(atomic_load(&on_message.waiting) == 1, 5000);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int one = 1;
        pthread_t thread;
        atomic_store(&on_message.shut, false);
        if (lk__thread_start(&thread, "lk-test", say, &one) != 0)
            _exit(1);
        pthread_join(thread, NULL);
        lk__log_flush();
        _exit(on_message.lines == 1 && strcmp(on_message.last, "line 0") == 0 ? 0 : 2);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    atomic_store(&on_message.shut, false);
    eventually(on_message.lines == 3, 5000);
}

/* --- stderr, before any lk_addlog() ------------------------------------------------------------------------------- */

static int pipe_ends[2], stderr_before;

/* From now on stderr is a pipe with no room left. */
static void fill_stderr(void)
{
    char bytes[4096] = { 0 };
    stderr_before = dup(2);
    assert_int_equal(0, pipe(pipe_ends));
    assert_int_equal(0, fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK));
    while (write(pipe_ends[1], bytes, sizeof bytes) > 0)
        ;
    assert_int_equal(0, fcntl(pipe_ends[1], F_SETFL, 0));
    assert_int_equal(2, dup2(pipe_ends[1], 2));
    close(pipe_ends[1]);
}

/* What came out of it but zeroes, until a line contains `last`. */
static void drain_stderr(const char *last, char *said, size_t size)
{
    char bytes[4096];
    size_t used = 0;
    said[0] = '\0';
    while (strstr(said, last) == NULL) {
        ssize_t got = read(pipe_ends[0], bytes, sizeof bytes);
        assert_true(got > 0);
        for (ssize_t i = 0; i < got && used < size - 1; i++)
            if (bytes[i] != 0)
                said[used++] = bytes[i];
        said[used] = '\0';
    }
    dup2(stderr_before, 2);
    close(stderr_before);
    close(pipe_ends[0]);
}

static void a_full_pipe_stops_nobody(void)
{
    char said[4096];
    fill_stderr();
    library_says(3);
    lk__log(LK_LOG_WARNING, "dropped"); /* between two calls: there and then, or never */
    lk__log_flush();
    drain_stderr("were dropped\n", said, sizeof said);
    lk__log_flush();
    assert_string_equal(said, "latchkey: line 0\nlatchkey: line 1\nlatchkey: line 2\n"
                              "latchkey: the log was behind: 1 lines were dropped\n");
}

static void *say_little(void *arg)
{
    lk__log(LK_LOG_WARNING, "%s", (const char *)arg);
    lk__fail(EIO, "%s", (const char *)arg);
    return NULL;
}

/* stdio would want half of it. */
static void a_small_stack_is_enough(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    char text[] = "from a small stack";
    if (SANITIZED)
        skip(); /* its frames are larger */
    assert_int_equal(0, pthread_attr_init(&attr));
    assert_int_equal(0, pthread_attr_setstacksize(&attr, 16384));
    assert_int_equal(0, pthread_create(&thread, &attr, say_little, text));
    assert_int_equal(0, pthread_join(thread, NULL));
    pthread_attr_destroy(&attr);
}

int main(void)
{
    int failed = plain_run(a_full_pipe_stops_nobody, a_small_stack_is_enough);
    return failed + plain_run_between(listen, listen_no_more, lines_of_the_library_are_written_in_their_order,
                                      a_sink_that_blocks_stops_no_thread_of_the_library,
                                      lines_wait_where_no_thread_can_be_had, a_failure_is_logged_when_the_call_is_over,
                                      a_call_under_way_waits_for_no_sink, a_child_has_its_own_lines_only);
}
