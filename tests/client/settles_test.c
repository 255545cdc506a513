/* SPDX-License-Identifier: MIT */
/*
 * settles_test.c - a call without an answer says by when nothing of it is left, and keeps to that
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 36
 */
#include "fake_server.h"
#include "proxy.h"
#include "subject.h"

#include <string.h>

enum { LEASE_MS = 3000, COMMAND_MS = 900 };

#define OPTIONS "lease=3s&command_timeout=900ms&poll=200ms"
#define BRIEF "lease=400ms&command_timeout=100ms&retry_max=100ms"

static struct proxy *p;
static lk_client_t *ours, *theirs;
static struct subject *mine, *other;

/* Let the fault befall the next request, which is a call's: nothing is under way behind earlier ones. */
static void arm(enum proxy_fault fault)
{
    eventually(client_settled(ours), 40000);
    proxy_once(p, fault, 1, "thing");
}

static void begin(struct world *w, const struct subject_kind *kind)
{
    p = proxy_begin(w);
    theirs = world_client(w, OPTIONS);
    ours = proxy_client(p, OPTIONS);
    mine = world_subject(w, ours, kind, "thing");
    other = world_subject(w, theirs, kind, "thing");
    assert_lk(0, subject_take(mine, 1000)); /* scripts are known, connections up */
    assert_lk(0, subject_give(mine));
}

/* What was granted unseen is free again by the moment told. */
static void unseen_grants_end(struct world *w, const struct subject_kind *kind)
{
    static const enum proxy_fault faults[] = { PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };
    begin(w, kind);
    for (int i = 0; i < 2; i++) {
        arm(faults[i]);
        assert_lk(EIO, subject_take(mine, 0));
        int64_t settles_ms = lk_errorsettles(), until_ms = now_ms() + settles_ms;
        assert_between(settles_ms, 1, kind->leased ? 2 * COMMAND_MS + LEASE_MS : 2 * COMMAND_MS + 30000);
        assert_non_null(strstr(lk_errortext(), "given back"));
        assert_lk(0, subject_take(other, settles_ms + SLACK_MS));
        assert_between(now_ms(), 0, until_ms + SLACK_MS);
        proxy_release(p); /* a late copy of the ask changes nothing any more */
        sleep_ms(100);
        assert_int_equal(1, subject_held(w, other));
        assert_lk(0, subject_give(other));
        assert_int_equal(0, subject_held(w, other));
    }
}

/*
 * The server's clock is known by as much as its last answer took, which lets a deadline be later. A count whose
 * request comes when the moment told has passed is not set.
 */
static void a_slow_clock_is_allowed_for(struct world *w)
{
    p = proxy_begin(w);
    ours = proxy_client(p, "lease=5s&command_timeout=1500ms");
    lk_latch_t *gate = world_latch(w, ours, "gate");
    world_allow(w, "latchkey:*:{gate}");
    world_allow(w, "latchkey:once:{gate}");
    assert_lk(0, lk_latch_trysetcount(gate, 1)); /* the script is known */
    assert_lk(0, lk_latch_countdown(gate));
    proxy_delay(p, 250);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
    proxy_delay(p, 0);
    proxy_once(p, PROXY_HOLD_REQUEST, 1, "gate");
    assert_lk(EIO, lk_latch_trysetcount(gate, 3));
    assert_between(lk_errorsettles(), 1, 1000);
    sleep_ms(lk_errorsettles());
    proxy_release(p);
    sleep_ms(100);
    assert_false(world_exists(w, "gate"));
}

/* A release that got no answer goes on; by the moment told the next one can have it. */
static void unanswered_releases_end(struct world *w, const struct subject_kind *kind)
{
    static const enum proxy_fault faults[] = { PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };
    begin(w, kind);
    for (int i = 0; i < 2; i++) {
        assert_lk(0, subject_take(mine, 1000));
        arm(faults[i]);
        assert_lk(EIO, subject_give(mine));
        int64_t settles_ms = lk_errorsettles();
        /* numbers: copies have deadlines of half a minute, on a clock that may go a hundredth slower */
        assert_between(settles_ms, 1, kind->leased ? 2 * LEASE_MS : 30300 + SLACK_MS);
        assert_lk(0, subject_take(other, settles_ms + SLACK_MS));
        proxy_release(p);
        sleep_ms(100);
        assert_int_equal(1, subject_held(w, other));
        assert_lk(0, subject_give(other));
    }
}

static int fall_silent(void *arg)
{
    sleep_ms(*(int64_t *)arg);
    proxy_stall(p, PROXY_BOTH);
    return 0;
}

/* A wait that is cut off stands in the queue still, where something is handed to it. By the moment told that is over. */
static void places_end(struct world *w, const struct subject_kind *kind, int64_t wait_ms)
{
    int64_t silent_ms = wait_ms - 100;
    struct worker silence;
    p = proxy_begin(w);
    theirs = world_client(w, "lease=20s");
    ours = proxy_client(p, BRIEF);
    mine = world_subject(w, ours, kind, "thing");
    other = world_subject(w, theirs, subject_keeper(kind), "thing");
    assert_lk(0, subject_take(other, 1000));
    worker_start(&silence, fall_silent, &silent_ms);
    assert_lk(EIO, subject_take(mine, wait_ms));
    sleep_ms(lk_errorsettles());
    worker_join(&silence);
    assert_lk(0, subject_give(other));
    assert_int_equal(0, subject_held(w, other));
    proxy_resume(p);
}

static void places_of_the_impatient_end(struct world *w, const struct subject_kind *kind)
{
    places_end(w, kind, 500);
}

static void places_of_the_patient_end(struct world *w, const struct subject_kind *kind)
{
    places_end(w, kind, 9000);
}

/* After a known outcome there is nothing to wait for. */
static void known_outcomes_are_settled(struct world *w, const struct subject_kind *kind)
{
    begin(w, kind);
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    assert_lk(0, subject_take(keeper, 0));
    assert_lk(ETIMEDOUT, subject_take(mine, 20));
    assert_int_equal(0, lk_errorsettles());
    assert_lk(0, subject_give(keeper));
}

/* Parts of a hold that were given back, unseen by the server, are renewed no more. */
static void unseen_parts_end_with_their_lease(struct world *w)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    int value;
    attr.leased = 1;
    world_allow(w, "latchkey:total:*");
    world_allow(w, "latchkey:permits:*");
    p = proxy_begin(w);
    ours = proxy_client(p, OPTIONS);
    lk_sem_t *pool = world_sem(w, ours, "pool", 3, &attr);
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    proxy_once(p, PROXY_HOLD_REQUEST, 1, "pool");
    assert_lk(EIO, lk_sem_release(pool, 2));
    int64_t settles_ms = lk_errorsettles();
    assert_between(settles_ms, LEASE_MS, 2 * LEASE_MS);
    sleep_ms(settles_ms);
    assert_lk(0, lk_sem_getvalue(pool, &value));
    assert_int_equal(2, value);
    assert_lk(0, lk_sem_post(pool)); /* the one that was kept is renewed all the time */
    assert_lk(0, lk_sem_getvalue(pool, &value));
    assert_int_equal(3, value);
}

/* A server that did not get an extend for less has the longer lease still. */
static void longer_leases_end(struct world *w)
{
    p = proxy_begin(w);
    ours = proxy_client(p, "lease=9s&command_timeout=300ms");
    lk_mutex_t *m = world_mutex(w, ours, "thing", NULL);
    assert_lk(0, lk_mutex_lock(m));
    proxy_stall(p, PROXY_BOTH);
    assert_lk(EIO, lk_mutex_extend(m, 2000));
    assert_lk(EIO, lk_mutex_unlock(m));
    sleep_ms(lk_errorsettles());
    assert_false(world_exists(w, "thing"));
    proxy_resume(p);
}

/* A shorter lease that the server has is all there is. */
static void shorter_leases_end_sooner(struct world *w)
{
    p = proxy_begin(w);
    ours = proxy_client(p, "lease=9s&command_timeout=300ms");
    lk_mutex_t *m = world_mutex(w, ours, "thing", NULL);
    assert_lk(0, lk_mutex_lock(m));
    assert_lk(0, lk_mutex_extend(m, 2000));
    proxy_stall(p, PROXY_BOTH);
    assert_lk(EIO, lk_mutex_unlock(m));
    assert_between(lk_errorsettles(), 1, 2500);
    proxy_resume(p);
}

/* What the real server answered is made unreadable on its way: the release goes on, at its own pace. */
static void an_unreadable_release_goes_on(struct world *w)
{
    struct fake *f = fake_begin(w);
    assert_lk(0, open_patiently(&ours, fake_url(f, OPTIONS)));
    lk_mutex_t *m = world_mutex(w, ours, "thing", NULL);
    fake_answer(f, "EVALSHA", "*4\r\n:1\r\n:4000000000000000\r\n:#\r\n:7\r\n");
    assert_lk(0, lk_mutex_lock(m));
    fake_answer(f, "EVALSHA", "+who knows\r\n");
    int64_t asked = fake_asked(f, "EVALSHA");
    assert_lk(EPROTO, lk_mutex_unlock(m));
    assert_between(lk_errorsettles(), LEASE_MS, 2 * LEASE_MS);
    sleep_ms(1500);
    assert_between(fake_asked(f, "EVALSHA") - asked, 2, 20); /* neither given up nor a flood */
    fake_answer(f, "EVALSHA", "*3\r\n:4\r\n:4000000000000000\r\n:#\r\n");
    assert_lk(0, lk_client_close(ours));
}

/* A server that knows no script, not even as text, is not asked without pause: by a call, a renewal or a release. */
static void no_script_is_no_flood(struct world *w)
{
    struct fake *f = fake_begin(w);
    assert_lk(0, open_patiently(&ours, fake_url(f, OPTIONS)));
    lk_mutex_t *m = world_mutex(w, ours, "thing", NULL);
    fake_answer(f, "EVALSHA", "*4\r\n:1\r\n:4000000000000000\r\n:#\r\n:7\r\n");
    assert_lk(0, lk_mutex_lock(m));
    fake_answer(f, "EVALSHA", "-NOSCRIPT none\r\n");
    fake_answer(f, "EVAL", "-NOSCRIPT none\r\n");
    int64_t asked = fake_asked(f, "EVAL");
    sleep_ms(1500); /* renewals */
    assert_lk(EPROTO, lk_mutex_check(m));
    assert_lk(EPROTO, lk_mutex_unlock(m));
    sleep_ms(1000); /* the release */
    assert_between(fake_asked(f, "EVAL") - asked, 3, 40);
    fake_answer(f, "EVALSHA", "*3\r\n:4\r\n:4000000000000000\r\n:#\r\n");
    assert_lk(0, lk_client_close(ours));
}

int main(void)
{
    int failed = subject_run(unseen_grants_end, unanswered_releases_end, places_of_the_impatient_end,
                             places_of_the_patient_end, known_outcomes_are_settled);
    return failed + world_run(a_slow_clock_is_allowed_for, unseen_parts_end_with_their_lease, longer_leases_end,
                              shorter_leases_end_sooner, an_unreadable_release_goes_on, no_script_is_no_flood);
}
