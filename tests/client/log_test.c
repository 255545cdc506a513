/* SPDX-License-Identifier: MIT */
/*
 * log_test.c - whatever a log does, leases are renewed, waits end at their limits, and clients close
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 18
 */
#include "log.h"
#include "world.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const lk_mutexattr_t fixed = { .size = sizeof(lk_mutexattr_t), .lease_ms = 200, .fixed = 1 };

/* --- a sink that blocks ----------------------------------------------------------------------------------------- */

struct holds {
    lk_client_t *client;
    lk_mutex_t *short_lived, *kept, *other;
};

static struct holds open_holds(struct world *w)
{
    lk_client_t *client = world_open(w, "lease=3s&poll=200ms");
    return (struct holds){ client, world_mutex(w, client, "short", &fixed), world_mutex(w, client, "kept", NULL),
                           world_mutex(w, client, "other", NULL) };
}

/* As assert_lk(), which may not be used here: it would print to what blocks. */
#define must(expected, call)                                                                                           \
    do {                                                                                                               \
        errno = ERRNO_MARK;                                                                                            \
        int must_code = (call);                                                                                        \
        if (must_code != (expected) || errno != ERRNO_MARK)                                                            \
            return __LINE__;                                                                                           \
    } while (0)

/*
 * A lease runs out, which the watchdog logs; from then on the log blocks. A renewed lease stays what it is, other
 * connections come back, and close returns. 0, or the line of what is not so.
 */
static int renew_beside_it(struct world *w, const struct holds *holds)
{
    int64_t left_ms;
    must(0, lk_mutex_lock(holds->kept));
    must(0, lk_mutex_lock(holds->short_lived));
    for (int i = 0; i < 8; i++) {
        sleep_ms(450);
        must(0, lk_mutex_remaining(holds->kept, &left_ms));
        if (i == 2)
            world_killcommands(w);
    }
    must(ESTALE, lk_mutex_unlock(holds->short_lived));
    must(0, lk_mutex_lockfor(holds->other, 5000));
    must(0, lk_mutex_unlock(holds->other));
    must(0, lk_mutex_unlock(holds->kept));
    int64_t began_ms = now_ms();
    must(0, lk_client_close(holds->client));
    return now_ms() - began_ms <= 3000 ? 0 : __LINE__;
}

/* Before any lk_addlog(): the default. */
static void a_stderr_that_nobody_reads(struct world *w)
{
    int ends[2], before = dup(2);
    char bytes[4096] = { 0 };
    struct holds holds = open_holds(w);
    assert_int_equal(0, pipe(ends));
    assert_int_equal(0, fcntl(ends[1], F_SETFL, O_NONBLOCK));
    while (write(ends[1], bytes, sizeof bytes) > 0)
        ;
    assert_int_equal(0, fcntl(ends[1], F_SETFL, 0));
    assert_int_equal(2, dup2(ends[1], 2));
    close(ends[1]);
    int wrong = renew_beside_it(w, &holds);
    assert_int_equal(2, dup2(before, 2));
    close(before);
    close(ends[0]); /* which ends what waits for it */
    assert_int_equal(0, wrong);
}

static atomic_bool shut;
static atomic_int lines;

static void block(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
    while (atomic_load(&shut))
        sleep_ms(1);
    atomic_fetch_add(&lines, 1);
}

static void a_sink_that_blocks(struct world *w)
{
    struct holds holds = open_holds(w);
    atomic_store(&shut, true);
    assert_lk(0, log_to(block, LK_LOG_INFO, NULL));
    int wrong = renew_beside_it(w, &holds);
    atomic_store(&shut, false);
    assert_int_equal(0, wrong);
    eventually(atomic_load(&lines) > 0, 5000);
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
}

/* Twice as long as it takes until the line is due, and said by the next poll. */
static int wait_for_6_s(void *arg)
{
    return lk_mutex_lockfor(arg, 6000);
}

/* The line about a long wait is said in the middle of the wait, which ends at its limit all the same. */
static void a_long_wait_beside_a_sink_that_blocks(struct world *w)
{
    struct worker waiter;
    lk_client_t *client = world_client(w, "lease=10s"), *other = world_client(w, "lease=10s&poll=200ms");
    lk_mutex_t *held = world_mutex(w, client, "m", NULL);
    lk_mutex_t *wanted = world_mutex(w, other, "m", NULL);
    assert_lk(0, lk_mutex_lock(held));
    atomic_store(&lines, 0);
    atomic_store(&shut, true);
    assert_lk(0, log_to(block, LK_LOG_WARNING, NULL));
    int64_t began_ms = now_ms();
    worker_start(&waiter, wait_for_6_s, wanted);
    assert_int_equal(ETIMEDOUT, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 6000, 8000 + SLACK_MS);
    assert_int_equal(0, atomic_load(&lines));
    atomic_store(&shut, false);
    eventually(atomic_load(&lines) > 0, 5000);
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    assert_lk(0, lk_mutex_unlock(held));
}

/* Nor does a close that has something to say. */
static void a_close_that_fails_beside_a_sink_that_blocks(struct world *w)
{
    lk_client_t *client = world_open(w, "lease=2s&command_timeout=200ms");
    assert_lk(0, lk_mutex_lock(world_mutex(w, client, "m", NULL)));
    atomic_store(&lines, 0);
    atomic_store(&shut, true);
    assert_lk(0, log_to(block, LK_LOG_DEBUG, NULL));
    world_stop_server(w);
    int64_t began_ms = now_ms();
    assert_lk(EIO, lk_client_close(client));
    assert_between(now_ms() - began_ms, 0, 5000);
    world_cont_server(w);
    atomic_store(&shut, false);
    eventually(atomic_load(&lines) > 0, 5000);
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    eventually(!world_exists(w, "m"), 5000); /* released late, or its lease ended */
}

/* --- a sink that takes a lock of the program ----------------------------------------------------------------------- */

static struct {
    lk_client_t *client;
    atomic_bool in_sink, through;
    bool in_time;
} meeting;

static void take_a_lock(void *arg, int level, const char *line)
{
    int64_t until_ms = now_ms() + 3000;
    (void)arg;
    (void)level;
    if (strstr(line, "other attributes") == NULL)
        return;
    atomic_store(&meeting.in_sink, true);
    while (!atomic_load(&meeting.through) && now_ms() < until_ms)
        sleep_ms(1);
    meeting.in_time = atomic_load(&meeting.through);
}

static int call_meanwhile(void *arg)
{
    lk_mutex_t m;
    (void)arg;
    while (!atomic_load(&meeting.in_sink))
        sleep_ms(1);
    int rc = lk_mutex_init(&m, meeting.client, "another", NULL);
    rc = rc == 0 ? lk_mutex_destroy(&m) : rc;
    atomic_store(&meeting.through, true);
    return rc;
}

/* What a call failed at is logged when it is over: it holds nothing then that others need. */
static void a_sink_holds_no_lock_of_the_library(struct world *w)
{
    const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    struct worker other;
    lk_mutex_t same;
    meeting.client = world_client(w, "");
    world_mutex(w, meeting.client, "m", NULL);
    assert_lk(0, log_to(take_a_lock, LK_LOG_DEBUG, NULL));
    worker_start(&other, call_meanwhile, NULL);
    assert_lk(EINVAL, lk_mutex_init(&same, meeting.client, "m", &fair));
    assert_int_equal(0, worker_join(&other));
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    assert_true(meeting.in_time);
}

/* --- a small stack ------------------------------------------------------------------------------------------------------ */

static void *wait_long(void *arg)
{
    return (void *)(intptr_t)lk_mutex_lockfor(arg, 4500); /* one poll comes after 3 s, however they fall */
}

/* In a process of its own, which has the default log. */
static int wait_on_a_small_stack(struct world *w, void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    void *result;
    int *ends = arg;
    char said[512] = "";
    world_ready(w);
    assert_that(dup2(ends[1], 2) == 2);
    lk_client_t *client = world_client(w, "lease=10s"), *other = world_client(w, "lease=10s&poll=200ms");
    lk_mutex_t *held = world_mutex(w, client, "m", NULL);
    lk_mutex_t *wanted = world_mutex(w, other, "m", NULL);
    assert_lk(0, lk_mutex_lock(held));
    pthread_attr_init(&attr);
    assert_that(pthread_attr_setstacksize(&attr, 16384) == 0);
    assert_that(pthread_create(&thread, &attr, wait_long, wanted) == 0);
    pthread_join(thread, &result);
    pthread_attr_destroy(&attr);
    assert_that((intptr_t)result == ETIMEDOUT);
    assert_lk(0, lk_mutex_unlock(held));
    assert_that(read(ends[0], said, sizeof said - 1) > 0);
    return strstr(said, "waiting for more than 3 s") != NULL ? 0 : 1;
}

static void a_long_wait_on_a_small_stack(struct world *w)
{
    int ends[2];
    if (SANITIZED)
        skip(); /* sanitizers need more stack than that for themselves */
    assert_int_equal(0, pipe(ends));
    assert_int_equal(0, world_wait(w, world_fork(w, wait_on_a_small_stack, ends)));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    return world_run(a_stderr_that_nobody_reads, a_long_wait_on_a_small_stack, a_sink_that_blocks,
                     a_long_wait_beside_a_sink_that_blocks, a_close_that_fails_beside_a_sink_that_blocks,
                     a_sink_holds_no_lock_of_the_library);
}
