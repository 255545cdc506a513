/* SPDX-License-Identifier: MIT */
/*
 * any_test.c - taking whichever stripe is free
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

enum { N = 5 };

static lk_client_t *client, *others;
static lk_stripes_t *stock, *theirs;

static void open_stock(struct world *w, const lk_mutexattr_t *attr)
{
    client = world_client(w, "lease=5s"); /* commands are counted */
    others = world_client(w, "lease=5s");
    stock = world_stripes(w, client, "stock", N, attr);
    theirs = world_stripes(w, others, "stock", N, attr);
}

static void hold_theirs(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        assert_lk(0, lk_mutex_lock(lk_stripes_at(theirs, i)));
}

static void free_theirs(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        assert_lk(0, lk_mutex_unlock(lk_stripes_at(theirs, i)));
}

static void give(unsigned index)
{
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(stock, index)));
}

/* The one of the hint, else the next one that is free, once around. */
static void the_first_free_one_from_the_hint_on_is_taken(struct world *w)
{
    unsigned index;
    open_stock(w, NULL);
    assert_lk(0, lk_stripes_trylockany(stock, 3, &index));
    assert_int_equal(3, index);
    give(index);
    assert_lk(0, lk_stripes_trylockany(stock, 3 + 7 * N, &index)); /* any number will do */
    assert_int_equal(3, index);
    give(index);
    hold_theirs(2, 5);
    for (index = 2; index < 5; index++) {
        unsigned at = index;
        assert_lk(0, lk_stripes_trylockany(stock, at, &at)); /* read before it is written */
        assert_int_equal(0, at);
        assert_int_equal(1, world_holds(w, "stock:0"));
        give(at);
    }
    free_theirs(2, 5);
}

/* Without a hint threads spread by themselves. */
static void without_a_hint_it_begins_anywhere(struct world *w)
{
    unsigned index, seen[N] = { 0 }, different = 0;
    open_stock(w, NULL);
    for (int i = 0; i < 60; i++) {
        assert_lk(0, lk_stripes_trylockany(stock, LK_STRIPES_ANY, &index));
        assert_true(index < N);
        different += seen[index]++ == 0;
        give(index);
    }
    assert_int_equal(N, different); /* or one in 100,000 */
}

/* When all are held nothing is, and the shortest lease tells when it is worth another try. */
static void when_all_are_held_the_shortest_lease_is_told(struct world *w)
{
    const lk_how_t shortly = { .size = sizeof shortly, .timeout_ms = 0, .lease_ms = 3000 };
    unsigned index = 77;
    open_stock(w, NULL);
    hold_theirs(0, 2);
    assert_lk(0, lk_mutex_lockwith(lk_stripes_at(theirs, 2), &shortly));
    hold_theirs(3, 5);
    assert_lk(EBUSY, lk_stripes_trylockany(stock, 4, &index));
    assert_between(lk_errorleft(), 1, 3000 + 10);
    assert_int_equal(0, lk_errorsettles());
    assert_non_null(strstr(lk_errortext(), "none of 5 stripes"));
    assert_int_equal(77, index);
    for (unsigned i = 0; i < N; i++)
        assert_lk(EPERM, lk_mutex_unlock(lk_stripes_at(stock, i)));
    free_theirs(0, 5);
}

static int64_t asks(struct world *w)
{
    return world_commands(w, "evalsha");
}

/* As many round trips as stripes are asked for, and no command beside. */
static void a_stripe_asked_for_is_a_command(struct world *w)
{
    unsigned index;
    const lk_mutexattr_t short_lived = { .size = sizeof short_lived, .lease_ms = 30000 };
    open_stock(w, &short_lived);
    for (unsigned i = 0; i < N; i++) { /* settings were compared, scripts are known */
        assert_lk(0, lk_stripes_trylockany(stock, i, &index));
        give(index);
    }
    hold_theirs(1, 4);
    for (unsigned hint = 0; hint < N; hint++) {
        int64_t before = asks(w);
        assert_lk(0, lk_stripes_trylockany(stock, hint, &index));
        assert_int_equal(hint >= 1 && hint < 4 ? 4 - hint + 1 : 1, asks(w) - before);
        give(index);
    }
    hold_theirs(0, 1);
    hold_theirs(4, 5);
    int64_t before = asks(w);
    assert_lk(EBUSY, lk_stripes_trylockany(stock, 2, &index));
    assert_int_equal(N, asks(w) - before);
    free_theirs(0, 5);
}

/* A call that succeeds leaves the words of the last failure alone, whatever refused it on its way. */
static void refusals_on_the_way_are_no_failure(struct world *w)
{
    char words[400];
    unsigned index;
    open_stock(w, NULL);
    hold_theirs(0, 2);
    assert_lk(EPERM, lk_mutex_unlock(lk_stripes_at(stock, 4)));
    snprintf(words, sizeof words, "%s", lk_errortext());
    assert_lk(0, lk_stripes_trylockany(stock, 0, &index));
    assert_int_equal(2, index);
    assert_string_equal(words, lk_errortext());
    assert_int_equal(-1, lk_errorleft());
    give(index);
    free_theirs(0, 2);
}

/* What the thread holds itself is free to it if the type says so. */
static void one_s_own_count_as_their_type_says(struct world *w)
{
    const lk_mutexattr_t errorcheck = { .size = sizeof errorcheck, .type = LK_MUTEX_ERRORCHECK };
    unsigned index;
    open_stock(w, NULL);
    for (int i = 0; i < 2; i++) {
        assert_lk(0, lk_stripes_trylockany(stock, 1, &index));
        assert_int_equal(1, index);
    }
    assert_int_equal(2, world_holds(w, "stock:1"));
    give(1);
    give(1);
    lk_stripes_t *checked = world_stripes(w, world_client(w, ""), "stock", N, &errorcheck);
    for (unsigned i = 0; i < N; i++) {
        assert_lk(0, lk_stripes_trylockany(checked, 1, &index));
        assert_int_equal((1 + i) % N, index);
    }
    assert_lk(EBUSY, lk_stripes_trylockany(checked, 1, &index));
    assert_true(lk_errorleft() > 0);
    for (unsigned i = 0; i < N; i++)
        assert_lk(0, lk_mutex_unlock(lk_stripes_at(checked, i)));
}

WORK(unlock_for, owner, lk_mutex_unlockby(lk_stripes_at(stock, 1), owner))

/* For an owner that is no thread: taken here, given back there. */
static void an_owner_takes_any_as_well(struct world *w)
{
    lk_owner_t *owner, *stranger;
    unsigned index = 77;
    open_stock(w, NULL);
    owner = world_newowner(w, client);
    stranger = world_newowner(w, others);
    hold_theirs(0, 1);
    assert_lk(0, lk_stripes_trylockanyby(stock, owner, 0, &index));
    assert_int_equal(1, index);
    assert_lk(EPERM, lk_mutex_unlock(lk_stripes_at(stock, 1)));
    assert_int_equal(0, in_thread(unlock_for, owner));
    assert_lk(EINVAL, lk_stripes_trylockanyby(stock, stranger, 0, &index));
    assert_lk(0, lk_stripes_trylockanyby(stock, NULL, 1, &index));
    give(index);
    hold_theirs(1, 5);
    assert_lk(EBUSY, lk_stripes_trylockanyby(stock, owner, 0, &index));
    free_theirs(0, 5);
}

static int hold_the_second(struct world *w, void *arg)
{
    const lk_mutexattr_t *robust = arg;
    lk_stripes_t *s = world_stripes(w, world_client(w, "lease=1200ms"), "stock", N, robust);
    assert_lk(0, lk_mutex_lock(lk_stripes_at(s, 1)));
    world_ready(w);
    sleep_ms(60000);
    return 0;
}

/* After a dead holder: held, and told so. What cannot be repaired is passed by as long as there is another one. */
static void a_dead_holder_s_stripe_is_taken_and_a_spoilt_one_is_not(struct world *w)
{
    lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
    unsigned index;
    world_allow(w, "latchkey:robust:mutex:{stock:*");
    world_killholder(w, world_fork(w, hold_the_second, &robust), "stock:1");
    open_stock(w, &robust);
    eventually(!world_exists(w, "stock:1"), 5000);
    assert_lk(EOWNERDEAD, lk_stripes_trylockany(stock, 1, &index));
    assert_int_equal(1, index);
    give(index); /* unrepaired */
    assert_lk(0, lk_stripes_trylockany(stock, 1, &index));
    assert_int_equal(2, index);
    give(index);
    hold_theirs(0, 1);
    hold_theirs(2, 5);
    assert_lk(EBUSY, lk_stripes_trylockany(stock, 1, &index));
    free_theirs(0, 1);
    free_theirs(2, 5);
    lk_stripes_t *one = world_stripes(w, world_client(w, ""), "stock", 1, &robust);
    world_redis(w, "SET latchkey:robust:mutex:{stock:0} unrecoverable");
    assert_lk(ENOTRECOVERABLE, lk_stripes_trylockany(one, 0, &index));
    assert_int_equal(-1, lk_errorleft());
}

/* A lease that this thread lost is told where it is given back, and keeps nobody from the others. */
static void a_lost_stripe_is_passed_by(struct world *w)
{
    unsigned index;
    open_stock(w, NULL);
    assert_lk(0, lk_stripes_trylockany(stock, 2, &index));
    world_redis(w, "DEL stock:2");
    assert_lk(ESTALE, lk_mutex_check(lk_stripes_at(stock, 2)));
    assert_lk(0, lk_stripes_trylockany(stock, 2, &index));
    assert_int_equal(3, index);
    give(3);
    hold_theirs(0, 5);
    assert_lk(EBUSY, lk_stripes_trylockany(stock, 2, &index));
    free_theirs(0, 5);
    assert_lk(ESTALE, lk_mutex_unlock(lk_stripes_at(stock, 2)));
    assert_lk(0, lk_stripes_trylockany(stock, 2, &index));
    assert_int_equal(2, index);
    give(2);
}

/* What is no matter of one holder ends the search: it would hide a mistake. */
static void a_fault_ends_the_search(struct world *w)
{
    unsigned index = 77;
    open_stock(w, NULL);
    world_redis(w, "SET stock:1 400");
    assert_lk(EPROTO, lk_stripes_trylockany(stock, 1, &index));
    assert_int_equal(77, index);
    world_redis(w, "DEL stock:1");
    world_kill_server(w);
    int64_t began_ms = now_ms();
    int rc = lk_stripes_trylockany(stock, 1, &index);
    assert_true(rc == ENOTCONN || rc == EIO);
    assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS); /* one command timeout */
    world_restart_server(w);
    assert_lk(0, lk_mutex_lockfor(lk_stripes_at(stock, 1), 10000));
    give(1);
}

/* A server that stands still is waited for once, not once for each stripe. */
static void a_silent_server_is_waited_for_once(struct world *w)
{
    unsigned index;
    open_stock(w, NULL);
    assert_lk(0, lk_stripes_trylockany(stock, 0, &index));
    give(index);
    world_stop_server(w);
    int64_t began_ms = now_ms();
    int rc = lk_stripes_trylockany(stock, 1, &index);
    world_cont_server(w);
    assert_true(rc == ENOTCONN || rc == EIO);
    assert_between(now_ms() - began_ms, 500, 1000 + SLACK_MS);
    eventually(lk_stripes_trylockany(stock, 1, &index) == 0, 10000);
    give(index);
}

int main(void)
{
    return world_run(the_first_free_one_from_the_hint_on_is_taken, without_a_hint_it_begins_anywhere,
                     when_all_are_held_the_shortest_lease_is_told, a_stripe_asked_for_is_a_command,
                     refusals_on_the_way_are_no_failure, one_s_own_count_as_their_type_says, an_owner_takes_any_as_well,
                     a_dead_holder_s_stripe_is_taken_and_a_spoilt_one_is_not, a_lost_stripe_is_passed_by,
                     a_fault_ends_the_search, a_silent_server_is_waited_for_once);
}
