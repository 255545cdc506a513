/* SPDX-License-Identifier: MIT */
/*
 * hold_test.c - a thread or an owner with several leased permits asks about all of them, and extends all of them
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

#include <stdio.h>

enum { LEASE_MS = 2000, TOTAL = 6 };

static lk_client_t *client;
static lk_sem_t *pool;

static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1, .lease_ms = LEASE_MS };

static void open_pool(struct world *w)
{
    world_allow(w, "latchkey:*");
    client = world_client(w, "");
    pool = world_sem(w, client, "pool", TOTAL, &leased);
}

/* Permits that end no earlier than in so many milliseconds. */
static int64_t lasting(struct world *w, int64_t ms)
{
    static const char count[] = "local t = redis.call('TIME') "
                                "return redis.call('ZCOUNT', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1], "
                                "'+inf')";
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)ms);
    return world_int(w, "EVAL %s 1 latchkey:permits:{pool} %s", count, text);
}

/* Each call has a lease of its own; the questions are for all that it took. */
static void all_of_them_are_meant(struct world *w)
{
    int64_t ms;
    lk_how_t brief = LK_HOW_INIT;
    brief.lease_ms = 1500;
    open_pool(w);
    assert_lk(0, lk_sem_acquire(pool, 2, 0));
    assert_lk(0, lk_sem_acquirewith(pool, 1, &brief));
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_remaining(pool, &ms));
    assert_between(ms, 1, 1500); /* the least */
    assert_lk(0, lk_sem_check(pool));
    assert_lk(0, lk_sem_extend(pool, 30000));
    assert_int_equal(4, lasting(w, 30000 - SLACK_MS));
    assert_lk(0, lk_sem_remaining(pool, &ms));
    assert_between(ms, LEASE_MS, 30000);
    assert_lk(0, lk_sem_post(pool)); /* of the oldest two */
    assert_lk(0, lk_sem_extend(pool, 60000));
    assert_int_equal(3, lasting(w, 60000 - SLACK_MS));
    assert_lk(0, lk_sem_check(pool));
    assert_lk(0, lk_sem_release(pool, 3));
    assert_lk(EPERM, lk_sem_check(pool));
    assert_lk(EPERM, lk_sem_extend(pool, LEASE_MS));
    assert_lk(EPERM, lk_sem_remaining(pool, &ms));
}

/* Also those that were taken last. */
static void one_that_was_lost_is_enough(struct world *w)
{
    int64_t ms;
    lk_how_t lasting_how = LK_HOW_INIT;
    lasting_how.lease_ms = 60000;
    open_pool(w);
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_acquirewith(pool, 1, &lasting_how));
    world_redis(w, "ZREMRANGEBYRANK latchkey:permits:{pool} -1 -1"); /* what was taken last ends last */
    assert_lk(0, lk_sem_remaining(pool, &ms));
    assert_lk(ESTALE, lk_sem_check(pool));
    assert_lk(ESTALE, lk_sem_remaining(pool, &ms));
    assert_lk(ESTALE, lk_sem_extend(pool, 30000));
    assert_int_equal(2, lasting(w, 2 * LEASE_MS)); /* the older ones are extended */
    assert_lk(0, lk_sem_release(pool, 2));
    assert_lk(ESTALE, lk_sem_post(pool));
    assert_lk(EPERM, lk_sem_check(pool));
}

WORK(extend, arg, lk_sem_extend(arg, 30000))

/* Threads and owners have each their own. */
static void nobody_elses_are_meant(struct world *w)
{
    int64_t ms;
    lk_owner_t *owner;
    lk_how_t how = LK_HOW_INIT;
    open_pool(w);
    owner = world_newowner(w, client);
    how.owner = owner;
    assert_lk(0, lk_sem_acquirewith(pool, 2, &how));
    assert_lk(EPERM, lk_sem_check(pool));
    assert_int_equal(EPERM, in_thread(extend, pool));
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_extendby(pool, owner, 30000));
    assert_int_equal(2, lasting(w, 2 * LEASE_MS));
    assert_lk(0, lk_sem_checkby(pool, owner));
    assert_lk(0, lk_sem_remainingby(pool, owner, &ms));
    assert_between(ms, LEASE_MS, 30000);
    assert_lk(0, lk_sem_remainingby(pool, NULL, &ms));
    assert_between(ms, 1, LEASE_MS);
    assert_lk(0, lk_sem_releaseby(pool, owner, 2));
    assert_lk(EPERM, lk_sem_checkby(pool, owner));
    assert_lk(0, lk_sem_checkby(pool, NULL));
    assert_lk(0, lk_sem_extendby(pool, NULL, 30000));
    assert_lk(0, lk_sem_post(pool));
}

/* Permits that are a plain number have no lease. */
static void counting_ones_are_refused(struct world *w)
{
    int64_t ms;
    open_pool(w);
    lk_owner_t *owner;
    lk_sem_t *plain = world_sem(w, client, "plain", 0, NULL);
    owner = world_newowner(w, client);
    assert_lk(ENOTSUP, lk_sem_check(plain));
    assert_lk(ENOTSUP, lk_sem_checkby(plain, owner));
    assert_lk(ENOTSUP, lk_sem_extend(plain, LEASE_MS));
    assert_lk(ENOTSUP, lk_sem_extendby(plain, owner, LEASE_MS));
    assert_lk(ENOTSUP, lk_sem_remaining(plain, &ms));
    assert_lk(ENOTSUP, lk_sem_remainingby(plain, owner, &ms));
    assert_lk(EINVAL, lk_sem_extend(pool, 99));
    assert_lk(EINVAL, lk_sem_remaining(pool, NULL));
    assert_lk(EINVAL, lk_sem_check(NULL));
}

/* Without an answer about one of them the others keep what they have, and none is lost. */
static void an_answer_about_one_is_lost(struct world *w)
{
    int64_t ms;
    world_allow(w, "latchkey:*");
    struct proxy *p = proxy_begin(w);
    pool = world_sem(w, proxy_client(p, "command_timeout=900ms"), "pool", TOTAL, &leased);
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_extend(pool, LEASE_MS));
    proxy_once(p, PROXY_DROP_REPLY, 2, "\r\n30000\r\n"); /* not of a renewal */
    assert_lk(EIO, lk_sem_extend(pool, 30000));
    assert_lk(0, lk_sem_remaining(pool, &ms)); /* a renewal may have been answered already */
    assert_between(ms, 1, 30000);
    eventually(lasting(w, 2 * LEASE_MS) == 2, 3000); /* the renewals know it */
    assert_lk(0, lk_sem_release(pool, 2));
}

int main(void)
{
    return world_run(all_of_them_are_meant, one_that_was_lost_is_enough, nobody_elses_are_meant,
                     counting_ones_are_refused, an_answer_about_one_is_lost);
}
