/* SPDX-License-Identifier: MIT */
/*
 * lost_answers_test.c - a server grants, and its answer gets lost: what it has is renewed if the others make a majority,
 * and given back in any case
 *
 * One of the three servers is the world's own, behind a proxy.
 *
 * labels: threads
 * simulated: yes
 */
#include "proxy.h"
#include "quorum.h"
#include "lock/scripts.h"

#include <stdio.h>
#include <string.h>

#define TIMES "lease=20s&command_timeout=1500ms&describe=no"

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1 };

/*
 * The next request of that script: others go through the proxy as well, the first renewal of a part that did not answer in
 * time, or a release that is repeated after it.
 */
static void once(struct proxy *p, enum proxy_fault fault, const struct lk__script *script)
{
    proxy_once(p, fault, 1, script->sha1[LK__PUBSUB_PLAIN]);
}

struct rig {
    struct quorum *q;
    struct proxy *proxy;
    lk_redlock_t *r;
};

/* Does the first one have it, after a while? A server that was not connected when it was asked does not. */
static bool is_there(struct world *w)
{
    for (int64_t until_ms = now_ms() + 1000; now_ms() < until_ms; sleep_ms(2))
        if (world_exists(w, "jobs"))
            return true;
    return false;
}

/* The first of three servers is behind the proxy, which takes so long, and knows the scripts. */
static void begin_slowly(struct world *w, struct rig *rig, int others, int64_t ms)
{
    char url[160];
    rig->proxy = proxy_begin_tcp(w);
    proxy_delay(rig->proxy, ms);
    rig->q = quorum_begin(w, 3);
    snprintf(url, sizeof url, "redis-quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?" TIMES, proxy_port(rig->proxy),
             quorum_port(rig->q, 1), quorum_port(rig->q, 2));
    rig->r = quorum_redlock(w, world_client_at(w, rig->q, url), "jobs", &no_wait);
    int known = 0;
    for (int i = 0; i < 20 && known < 3; i++) {
        assert_lk(0, lk_redlock_lockfor(rig->r, 10000));
        known += is_there(w);
        assert_lk(0, lk_redlock_unlock(rig->r));
        eventually(quorum_having(rig->q, "jobs") == 0 && !world_exists(w, "jobs"), 10000); /* two have said so */
    }
    assert_same(3, known);
    for (int i = 0; i < 2 - others; i++) { /* a rival has it there */
        quorum_int(rig->q, 1 + i, "HSET jobs 285475da-9152-4c83-822a-67ee2f116a7%d:1 1", i);
        quorum_int(rig->q, 1 + i, "PEXPIRE jobs 30000");
    }
}

static void begin(struct world *w, struct rig *rig, int others)
{
    begin_slowly(w, rig, others, 0);
}

/* At all three. */
static void lock_all(struct world *w, struct rig *rig)
{
    bool all = false;
    for (int i = 0; i < 10 && !all; i++) {
        if (i > 0) {
            assert_lk(0, lk_redlock_unlock(rig->r));
            eventually(quorum_having(rig->q, "jobs") == 0 && !world_exists(w, "jobs"), 10000);
        }
        assert_lk(0, lk_redlock_lockfor(rig->r, 10000));
        for (int64_t until_ms = now_ms() + 1000; now_ms() < until_ms && !all; sleep_ms(2))
            all = world_exists(w, "jobs") && quorum_int(rig->q, 1, "EXISTS jobs") == 1 &&
                  quorum_int(rig->q, 2, "EXISTS jobs") == 1;
    }
    assert_true(all);
}

/* No majority: what may have been granted is given back, long before its lease ends. */
static void a_failed_try_gives_back_what_it_was_not_told_of(struct world *w)
{
    struct rig rig;
    begin(w, &rig, 0);
    once(rig.proxy, PROXY_DROP_REPLY, &lk__lua_lock_acquire);
    assert_lk(EBUSY, lk_redlock_trylock(rig.r));
    eventually(proxy_faults(rig.proxy) == 1, 10000); /* the other two may have answered before */
    eventually(!world_exists(w, "jobs"), 10000);
    for (int i = 1; i < 3; i++)
        quorum_int(rig.q, i, "DEL jobs");
}

/* With a majority it is kept, and confirmed by its first renewal; then it counts like the others. */
static void what_a_server_did_not_tell_counts_from_its_first_renewal_on(struct world *w)
{
    struct rig rig;
    begin(w, &rig, 2);
    once(rig.proxy, PROXY_DROP_REPLY, &lk__lua_lock_acquire);
    assert_lk(0, lk_redlock_trylock(rig.r));
    eventually(proxy_faults(rig.proxy) == 1 && world_exists(w, "jobs"), 10000);
    int64_t renewals = world_commands(w, "pexpire");
    eventually(world_commands(w, "pexpire") > renewals, 10000);
    quorum_int(rig.q, 1, "FLUSHALL"); /* that and one other one are two of three */
    eventually(lk_redlock_check(rig.r) == 0, 10000); /* the connection without that answer is made anew */
    assert_lk(0, lk_redlock_extend(rig.r, 20000));
    assert_lk(0, lk_redlock_unlock(rig.r));
    eventually(!world_exists(w, "jobs"), 10000);
}

/* The server got the question, and the answer comes when the lock was given back long ago. */
static void a_grant_that_nobody_heard_of_is_given_back_with_the_others(struct world *w)
{
    struct rig rig;
    begin(w, &rig, 2);
    proxy_stall(rig.proxy, PROXY_DOWN);
    assert_lk(0, lk_redlock_lockfor(rig.r, 10000));
    eventually(world_exists(w, "jobs"), 10000);
    assert_lk(0, lk_redlock_unlock(rig.r));
    eventually(!world_exists(w, "jobs"), 10000);
    proxy_resume(rig.proxy);
    assert_lk(0, lk_redlock_lockfor(rig.r, 10000));
    assert_lk(0, lk_redlock_unlock(rig.r));
}

/* A question that was held up comes when nobody waits for it any more: it does nothing, or is taken back. */
static void a_late_question_leaves_nothing_behind(struct world *w)
{
    struct rig rig;
    begin(w, &rig, 2);
    once(rig.proxy, PROXY_HOLD_REQUEST, &lk__lua_lock_acquire);
    assert_lk(0, lk_redlock_lockfor(rig.r, 10000));
    assert_lk(0, lk_redlock_unlock(rig.r));
    eventually(proxy_faults(rig.proxy) == 1, 10000);
    sleep_ms(1500);
    proxy_release(rig.proxy);
    eventually(!world_exists(w, "jobs"), 10000);
    sleep_ms(100);
    assert_false(world_exists(w, "jobs"));
}

/*
 * The first server refuses a second copy of the question, because a rival has the name. The first copy is still on its
 * way. Then the rival leaves, and that copy arrives before its deadline. A lease of 20 s would be left there.
 */
static void come_after_a_refusal(struct world *w, struct rig *rig, int code, int64_t ms)
{
    world_int(w, "HSET jobs 285475da-9152-4c83-822a-67ee2f116a79:1 1");
    world_int(w, "PEXPIRE jobs 30000");
    once(rig->proxy, PROXY_PARK_REQUEST, &lk__lua_lock_acquire);
    assert_lk(code, lk_redlock_trylock(rig->r));
    assert_int_equal(1, proxy_faults(rig->proxy));
    assert_int_equal(1, world_int(w, "DEL jobs"));
    sleep_ms(ms);
    proxy_release(rig->proxy);
}

static void a_copy_behind_a_refusal_is_given_back_without_a_majority(struct world *w)
{
    struct rig rig;
    begin(w, &rig, 1);
    come_after_a_refusal(w, &rig, EBUSY, 100);
    eventually(world_exists(w, "jobs"), 1000);
    eventually(!world_exists(w, "jobs"), 10000);
}

/* A slow connection knows the clock of its server badly, so a request that was sent on it has a later deadline. */
static void a_copy_of_a_slow_connection_is_given_back(struct world *w)
{
    struct rig rig;
    begin_slowly(w, &rig, 1, 400);
    proxy_delay(rig.proxy, 0);
    come_after_a_refusal(w, &rig, EBUSY, 1200); /* past the deadline of a quick connection */
    eventually(world_exists(w, "jobs"), 1000);
    eventually(!world_exists(w, "jobs"), 10000);
}

static void a_copy_behind_a_refusal_is_given_back_with_the_others(struct world *w)
{
    struct rig rig;
    begin(w, &rig, 2);
    quorum_str(rig.q, 2, "CLIENT PAUSE 300 ALL"); /* the refusal comes before the majority is there */
    come_after_a_refusal(w, &rig, 0, 100);
    eventually(world_exists(w, "jobs"), 1000);
    assert_lk(0, lk_redlock_unlock(rig.r));
    eventually(!world_exists(w, "jobs"), 10000);
}

/* The release of one that is cut off comes in the background. */
static void a_release_is_repeated_where_it_was_not_heard(struct world *w)
{
    struct rig rig;
    begin(w, &rig, 2);
    lock_all(w, &rig);
    once(rig.proxy, PROXY_CUT_REQUEST, &lk__lua_lock_release);
    assert_lk(0, lk_redlock_unlock(rig.r));
    eventually(proxy_faults(rig.proxy) == 1 && !world_exists(w, "jobs"), 10000);
}

/* Its answers always come after those of the majority, so nobody hears that it does not know the script. */
static void the_slowest_server_has_it_like_the_others(struct world *w)
{
    struct rig rig;
    begin_slowly(w, &rig, 2, 50);
}

/* --- leases that differ: an unlock outlasts the longest, and says when it is over -------------------------------------- */

enum { SHORT_MS = 2000 };

#define OPTIONS "lease=9s&command_timeout=300ms&retry_max=50ms"

/* So many of three refuse what changes anything, the last ones. */
static void refuse(struct quorum *q, int count)
{
    for (int i = 0; i < 3; i++)
        quorum_str(q, i, i < 3 - count ? "REPLICAOF NO ONE" : "REPLICAOF 127.0.0.1 1");
}

/* All three have it, then so many of them refuse. */
static lk_redlock_t *lock_and_refuse(struct world *w, struct quorum **q, int refusing)
{
    *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(*q, OPTIONS), "jobs", &no_wait);
    quorum_lockall(*q, r, "jobs");
    refuse(*q, refusing);
    return r;
}

/* The last server serves again when the short lease would be over, and the longer one is not. */
static void assert_given_back(struct quorum *q)
{
    sleep_ms(SHORT_MS + 1000);
    assert_same(1, quorum_int(q, 2, "EXISTS jobs"));
    refuse(q, 0);
    eventually(quorum_int(q, 2, "EXISTS jobs") == 0, 1000);
}

static void an_unlock_outlasts_the_longer_lease(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = lock_and_refuse(w, &q, 1);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    assert_lk(0, lk_redlock_unlock(r));
    assert_given_back(q);
}

static void an_unlock_says_when_the_longer_lease_is_over(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = lock_and_refuse(w, &q, 2);
    assert_lk(EIO, lk_redlock_extend(r, SHORT_MS));
    assert_lk(EIO, lk_redlock_unlock(r));
    sleep_ms(lk_errorsettles());
    assert_same(0, quorum_having(q, "jobs"));
}

static void an_unlock_ends_with_the_shorter_lease_that_all_have(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = lock_and_refuse(w, &q, 0);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    eventually(quorum_int(q, 0, "PTTL jobs") <= SHORT_MS && quorum_int(q, 1, "PTTL jobs") <= SHORT_MS &&
                   quorum_int(q, 2, "PTTL jobs") <= SHORT_MS,
               1000);
    sleep_ms(100); /* the last answer is here */
    refuse(q, 2);
    assert_lk(EIO, lk_redlock_unlock(r));
    assert_between(lk_errorsettles(), 1, SHORT_MS + 700);
    refuse(q, 0);
    eventually(quorum_having(q, "jobs") == 0, 1000);
}

/* The others renew it. */
static void a_part_that_ran_out_is_given_back(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = lock_and_refuse(w, &q, 1);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    assert_given_back(q);
    assert_lk(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_unlock(r));
}

/* Two no longer know it: what the third one has is given back with the whole. */
static void what_is_left_of_a_loss_is_given_back(struct world *w)
{
    struct quorum *q;
    int64_t left_ms;
    lk_redlock_t *r = lock_and_refuse(w, &q, 1);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    quorum_str(q, 0, "DEL jobs");
    quorum_str(q, 1, "DEL jobs");
    eventually(lk_redlock_remaining(r, &left_ms) == ESTALE, SHORT_MS);
    assert_given_back(q);
    assert_lk(ESTALE, lk_redlock_unlock(r));
}

int main(void)
{
    return world_run(the_slowest_server_has_it_like_the_others, a_failed_try_gives_back_what_it_was_not_told_of,
                     what_a_server_did_not_tell_counts_from_its_first_renewal_on,
                     a_grant_that_nobody_heard_of_is_given_back_with_the_others, a_late_question_leaves_nothing_behind,
                     a_copy_behind_a_refusal_is_given_back_without_a_majority,
                     a_copy_of_a_slow_connection_is_given_back, a_copy_behind_a_refusal_is_given_back_with_the_others,
                     a_release_is_repeated_where_it_was_not_heard, an_unlock_outlasts_the_longer_lease,
                     an_unlock_says_when_the_longer_lease_is_over, an_unlock_ends_with_the_shorter_lease_that_all_have,
                     a_part_that_ran_out_is_given_back, what_is_left_of_a_loss_is_given_back);
}
