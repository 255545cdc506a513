/* SPDX-License-Identifier: MIT */
/*
 * late_verdicts_test.c - F35: the server's clock jumps ahead between a request and its script
 *
 * A script that finds itself past its deadline does nothing and says so. The next attempt knows the new
 * time; a clock that jumps each time is an answer as well.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "fake_server.h"

#include <string.h>

#define NOW "4000000000000000"
#define LATE "*3\r\n:-1\r\n:" NOW "\r\n:#\r\n"
#define GRANTED "*4\r\n:1\r\n:" NOW "\r\n:#\r\n:7\r\n"
#define DONE "*3\r\n:4\r\n:" NOW "\r\n:#\r\n"

static struct fake *f;
static lk_client_t *client;

static void begin(struct world *w, const char *options)
{
    f = fake_begin(w);
    client = fake_client(f, options);
}

/* What is answered, if late, is answered at once. */
#define PROMPT "lease=9s&command_timeout=2s&poll=200ms"

/* An acquire goes on asking until its limit, and holds nothing then. */
static void an_acquire_is_late(struct world *w)
{
    begin(w, "lease=9s&command_timeout=600ms&poll=200ms");
    lk_mutex_t *m = world_mutex(w, client, "thing", NULL);
    fake_answer(f, "EVALSHA", LATE);
    int64_t began_ms = now_ms();
    int rc = lk_mutex_lockfor(m, 200);
    assert_that(rc != 0);
    assert_between(now_ms() - began_ms, 0, 200 + 600 + SLACK_MS);
    assert_int_equal(EPERM, lk_mutex_unlock(m));
    fake_answer(f, "EVALSHA", GRANTED);
    assert_lk(0, lk_mutex_lock(m));
    fake_answer(f, "EVALSHA", DONE);
    assert_lk(0, lk_mutex_unlock(m));
}

/* What a hold asks for: a second lock; it stays as it was. */
static void a_hold_is_late(struct world *w)
{
    int64_t left_ms;
    begin(w, PROMPT);
    lk_mutex_t *m = world_mutex(w, client, "thing", NULL);
    fake_answer(f, "EVALSHA", GRANTED);
    assert_lk(0, lk_mutex_lock(m));
    fake_answer(f, "EVALSHA", LATE);
    assert_lk(ENOTCONN, lk_mutex_lock(m));
    assert_non_null(strstr(lk_errortext(), "clock"));
    assert_int_equal(0, lk_errorsettles());
    assert_lk(ENOTCONN, lk_mutex_forceunlock(m));
    assert_lk(0, lk_mutex_remaining(m, &left_ms));
    fake_answer(f, "EVALSHA", DONE);
    assert_lk(0, lk_mutex_lock(m));
    assert_lk(0, lk_mutex_unlock(m));
    assert_lk(0, lk_mutex_unlock(m));
}

/* Likewise a downgrade. */
static void a_downgrade_is_late(struct world *w)
{
    int64_t left_ms;
    begin(w, PROMPT);
    lk_rwlock_t *rw = world_rwlock(w, client, "book", NULL);
    fake_answer(f, "EVALSHA", GRANTED);
    assert_lk(0, lk_rwlock_wrlock(rw));
    fake_answer(f, "EVALSHA", LATE);
    assert_lk(ENOTCONN, lk_rwlock_downgrade(rw));
    assert_int_equal(0, lk_errorsettles());
    assert_lk(ENOTCONN, lk_rwlock_forceunlock(rw));
    assert_lk(0, lk_rwlock_remaining(rw, &left_ms));
    fake_answer(f, "EVALSHA", DONE);
    assert_lk(0, lk_rwlock_unlock(rw));
}

/* A renewal that came too late is sent again; the lease is not lost for it. */
static void a_renewal_is_late(struct world *w)
{
    int64_t left_ms = 0;
    begin(w, PROMPT);
    lk_mutex_t *m = world_mutex(w, client, "thing", NULL);
    fake_answer(f, "EVALSHA", GRANTED);
    assert_lk(0, lk_mutex_lock(m));
    fake_answer(f, "EVALSHA", LATE);
    int64_t asked = fake_asked(f, "EVALSHA");
    eventually(fake_asked(f, "EVALSHA") > asked, 8000);
    fake_answer(f, "EVALSHA", DONE);
    eventually(lk_mutex_remaining(m, &left_ms) != 0 || left_ms >= 7000, 4000);
    assert_between(left_ms, 7000, 9000);
    assert_lk(0, lk_mutex_extend(m, 5000));
    assert_lk(0, lk_mutex_unlock(m));
}

/* Numbers: nothing was counted. */
static void a_count_is_late(struct world *w)
{
    unsigned taken = 77;
    begin(w, PROMPT);
    lk_sem_t *s = world_sem(w, client, "pool", 3, NULL);
    lk_latch_t *l = world_latch(w, client, "gate");
    fake_answer(f, "EVALSHA", LATE);
    assert_lk(ENOTCONN, lk_sem_post(s));
    assert_lk(ENOTCONN, lk_sem_addpermits(s, 5));
    assert_lk(ENOTCONN, lk_sem_trysetpermits(s, 5));
    assert_lk(ENOTCONN, lk_sem_drain(s, &taken));
    assert_int_equal(77, taken);
    assert_lk(ENOTCONN, lk_latch_trysetcount(l, 3));
    assert_lk(ENOTCONN, lk_latch_setcount(l, 3));
    assert_lk(ENOTCONN, lk_latch_countdown(l));
    assert_lk(ENOTCONN, lk_latch_delete(l));
    assert_int_equal(0, lk_errorsettles());
    fake_answer(f, "EVALSHA", DONE);
    assert_lk(0, lk_sem_post(s));
    assert_lk(0, lk_latch_countdown(l));
}

/* A call has one command timeout for all its copies. */
static void a_slow_answer_is_late(struct world *w)
{
    begin(w, "lease=30s&command_timeout=3s"); /* after one answer there is no time for a second */
    lk_mutex_t *m = world_mutex(w, client, "thing", NULL);
    lk_sem_t *s = world_sem(w, client, "pool", 3, NULL);
    fake_answer(f, "EVALSHA", GRANTED);
    assert_lk(0, lk_mutex_lock(m));
    fake_answer(f, "EVALSHA", LATE);
    fake_pause(f, 1200);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_sem_post(s));
    assert_between(now_ms() - began_ms, 1200, 3000 + SLACK_MS);
    began_ms = now_ms();
    assert_lk(ENOTCONN, lk_mutex_lock(m));
    assert_between(now_ms() - began_ms, 1200, 3000 + SLACK_MS);
    assert_int_equal(0, lk_errorsettles());
    fake_pause(f, 0);
    fake_answer(f, "EVALSHA", DONE);
    assert_lk(0, lk_mutex_unlock(m));
}

static int post(void *arg)
{
    int rc = lk_sem_post(arg);
    return rc == EIO && lk_errorsettles() == 0 ? -1 : rc;
}

static int count_down(void *arg)
{
    int rc = lk_latch_countdown(arg);
    return rc == EIO && lk_errorsettles() == 0 ? -1 : rc;
}

/* Copies are late, but the first one may have come in time. */
static void lost_then_late(int (*ask)(void *), void *object)
{
    struct worker worker;
    fake_answer(f, "EVALSHA", FAKE_CLOSE);
    int64_t asked = fake_asked(f, "EVALSHA");
    worker_start(&worker, ask, object);
    eventually(fake_asked(f, "EVALSHA") > asked, 4000);
    fake_answer(f, "EVALSHA", LATE);
    assert_int_equal(EIO, worker_join(&worker));
    fake_answer(f, "EVALSHA", DONE); /* to what goes on with it */
}

static void a_post_is_lost_then_late(struct world *w)
{
    begin(w, PROMPT);
    lk_sem_t *s = world_sem(w, client, "pool", 1, NULL);
    lost_then_late(post, s);
}

static void a_countdown_is_lost_then_late(struct world *w)
{
    begin(w, PROMPT);
    lk_latch_t *l = world_latch(w, client, "gate");
    lost_then_late(count_down, l);
}

int main(void)
{
    return world_run(an_acquire_is_late, a_hold_is_late, a_downgrade_is_late, a_renewal_is_late, a_count_is_late,
                     a_slow_answer_is_late, a_post_is_lost_then_late, a_countdown_is_lost_then_late);
}
