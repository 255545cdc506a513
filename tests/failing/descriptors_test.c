/* SPDX-License-Identifier: MIT */
/*
 * descriptors_test.c - a process that has no descriptor left: what is open goes on, what is not is refused
 *
 * labels: memory
 * support: failing
 */
#include "descriptors.h"
#include "failing/failing.h"

#define OPTIONS "lease=6s&poll=100ms"

static int teardown(void **state)
{
    descriptors_lift();
    return failing_teardown(state);
}

/* A client needs six eventfds and a socket: with any fewer it says so, and leaves none open. */
static void a_client_is_refused(struct world *w)
{
    lk_client_t *client = NULL;
    int rc = ENOMEM, refusals = 0;
    const char *url = world_url(w, OPTIONS);
    while (rc != 0) {
        assert_that(refusals < 20);
        descriptors_more(refusals);
        errno = ERRNO_MARK;
        rc = open_patiently(&client, url);
        int errno_after = errno;
        descriptors_lift();
        assert_int_equal(ERRNO_MARK, errno_after);
        assert_that(rc == 0 || rc == ENOMEM);
        refusals += rc != 0;
    }
    assert_that(refusals > 1);
    assert_lk(0, lk_client_close(client));
}

/* Nobody can tell it that the mutex is free, so it asks. */
static void a_waiter_polls(struct world *w)
{
    lk_client_t *client = world_client(w, OPTIONS), *other = world_client(w, OPTIONS);
    lk_mutex_t *m = world_mutex(w, client, "m", NULL);
    lk_mutex_t *theirs = world_mutex(w, other, "m", NULL);
    assert_lk(0, lk_mutex_lock(theirs));
    assert_lk(0, lk_mutex_extend(theirs, 6000)); /* its watchdog is connected */
    assert_int_equal(1, world_holds(w, "m"));   /* the world has its connection */
    descriptors_more(0);
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(m, 150));
    assert_int_equal(0, world_elements(w, "PUBSUB CHANNELS latchkey:client:*"));
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_lk(0, lk_mutex_lockfor(m, 2000));
    assert_lk(0, lk_mutex_unlock(m));
    descriptors_lift();
    assert_lk(0, lk_mutex_lock(m)); /* and goes on when there are some again */
    assert_lk(0, lk_mutex_unlock(m));
}

/* A hold whose watchdog has its connection is kept for as long as it takes. */
static void a_hold_is_kept(struct world *w)
{
    lk_mutex_t *m = world_mutex(w, world_client(w, OPTIONS), "m", NULL);
    int64_t left_ms;
    assert_lk(0, lk_mutex_lock(m));
    assert_lk(0, lk_mutex_extend(m, 3000));
    int64_t extended_ms = now_ms();
    descriptors_more(0);
    eventually(lk_mutex_remaining(m, &left_ms) != 0 || left_ms > 3000 - (now_ms() - extended_ms), 3000); /* renewed */
    assert_lk(0, lk_mutex_check(m));
    assert_lk(0, lk_mutex_unlock(m));
    descriptors_lift();
}

/* Without a thread to renew it nothing is taken. */
static void no_watchdog_no_hold(struct world *w)
{
    lk_mutex_t *m = world_mutex(w, world_client(w, OPTIONS), "m", NULL);
    failing_plan(&(struct failure){ .kind = FAIL_CALL, .nth = 1 }); /* pthread_create() is the first call */
    failing_begin();
    assert_lk(ENOMEM, lk_mutex_lock(m));
    failing_end();
    assert_that(failing_happened() && !world_exists(w, "m"));
    assert_lk(0, lk_mutex_lock(m));
    assert_lk(0, lk_mutex_unlock(m));
}

int main(void)
{
    return world_run_with(teardown, a_client_is_refused, a_waiter_polls, a_hold_is_kept, no_watchdog_no_hold);
}
