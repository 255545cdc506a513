/* SPDX-License-Identifier: MIT */
/*
 * migrating_test.c - what is given back while its slot migrates is free at once, and goes to the next one as soon as that is
 * over
 *
 * The hold is at one node and other keys are at another one, or nowhere, so no script may have all until all is there. The
 * hold alone can be given back; who waits is served later.
 *
 * labels: threads
 * simulated: yes
 * seconds: 45
 * processors: 2
 */
#include "cluster.h"
#include "subject.h"

#include <stdio.h>
#include <string.h>

#define OPTIONS "lease=30s&command_timeout=500ms&poll=1s"

enum { ROUNDS = 4, MIGRATES_MS = 1500, SETTLED_MS = 500 };

/* The rest of the release may be told to come back after a second at most, and so may the waiter; both for the last time. */
#define SOON_MS (1000 + SLACK_MS)

static const char *key_of_hold(const struct subject_kind *kind, const char *name)
{
    static char key[96];
    bool rwlock = kind->wants == LK_WANTS_WRITE || kind->wants == LK_WANTS_READ;
    const char *prefix = rwlock ? "latchkey:rw:" : "latchkey:permits:";
    if (kind->wants == LK_WANTS_LOCK)
        return name;
    snprintf(key, sizeof key, "%s{%s}", prefix, name);
    return key;
}

static void finish_move(struct cluster *c, const char *name, int from, int to)
{
    int slot = cluster_slot(c, name);
    while (cluster_movekeys(c, slot, from, to) > 0)
        continue;
    cluster_endmove(c, slot, from, to);
}

/* Waits for the next one, who has it soon after the move was over. */
static void expect_soon(struct errand *errand, int64_t over_ms)
{
    errand_join(errand);
    assert_lk(0, errand->took);
    assert_lk(0, errand->gave);
    print_message("             the next one had it %lld ms after the end\n", (long long)(errand->took_ms - over_ms));
    assert_between(errand->took_ms - over_ms, -MIGRATES_MS - 500, SOON_MS);
}

/* The hold goes ahead of all other keys, or stays behind. */
static void the_next_one_has_it_soon(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    int slot = cluster_slot(c, name);
    struct subject *mine = world_subject(w, one, subject_kinds, name),
                   *theirs = world_subject(w, other, subject_kinds, name);
    char queue[64];
    snprintf(queue, sizeof queue, "latchkey:queue:mutex:{%s}", name);
    for (int i = 0; i < ROUNDS; i++) {
        int from = i % 2, to = 1 - from;
        struct errand errand;
        assert_lk(0, subject_take(mine, PATIENT_MS));
        errand_start(&errand, theirs, 4 * PATIENT_MS);
        eventually(cluster_queued(c, from, name) == 1, PATIENT_MS);
        cluster_beginmove(c, slot, from, to);
        cluster_movekey(c, i < ROUNDS / 2 ? name : queue, from, to);
        assert_lk(0, subject_give(mine));
        sleep_ms(MIGRATES_MS);
        finish_move(c, name, from, to);
        expect_soon(&errand, now_ms());
        eventually(cluster_master(c, name) == to, CLUSTER_WITHIN_MS);
    }
}

/* A newcomer is in no queue yet, so no message reaches it. */
static void who_comes_meanwhile_has_it_soon(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    const char *name = cluster_name(c, 0, "orders");
    struct subject *mine = world_subject(w, cluster_client(c, "lease=60s&command_timeout=500ms"), subject_kinds, name);
    struct errand errand;
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    errand_start(&errand, mine, 4 * PATIENT_MS);
    sleep_ms(2 * MIGRATES_MS);
    finish_move(c, name, 0, 1);
    expect_soon(&errand, now_ms());
}

/* Its connection to the node where the slot will be ended meanwhile, and nobody noticed. */
static void who_comes_meanwhile_and_is_cut_off_has_it_soon(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, "lease=60s&command_timeout=500ms");
    const char *name = cluster_name(c, 0, "orders");
    struct subject *mine = world_subject(w, client, subject_kinds, name),
                   *there = world_subject(w, client, subject_kinds, cluster_name(c, 1, "bills"));
    struct errand errand;
    assert_lk(0, subject_take(there, PATIENT_MS));
    assert_lk(0, subject_give(there));
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    errand_start(&errand, mine, 4 * PATIENT_MS);
    sleep_ms(2 * MIGRATES_MS);
    cluster_str(c, 1, "CLIENT KILL TYPE normal SKIPME yes");
    finish_move(c, name, 0, 1);
    expect_soon(&errand, now_ms());
}

/* Nobody waits: who comes then finds it free, and did not have to wait for a lease. A number cannot: it has a record. */
static void it_is_free_at_once(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        for (int moved = 0; kind->leased && moved < 2; moved++) {
            char prefix[16];
            snprintf(prefix, sizeof prefix, "%c%d-", 'a' + (int)(kind - subject_kinds), moved);
            const char *name = cluster_name(c, 0, prefix);
            struct subject *mine = world_subject(w, one, kind, name);
            struct subject *theirs = world_subject(w, other, subject_keeper(kind), name);
            assert_lk(0, subject_take(mine, PATIENT_MS));
            cluster_beginmove(c, cluster_slot(c, name), 0, 2);
            if (moved != 0)
                cluster_movekey(c, key_of_hold(kind, name), 0, 2);
            assert_lk(0, subject_give(mine));
            assert_int_not_equal(0, subject_take(theirs, 0));
            finish_move(c, name, 0, 2);
            int64_t over_ms = now_ms();
            assert_lk(0, subject_take(theirs, PATIENT_MS));
            assert_between(now_ms() - over_ms, 0, SOON_MS);
            assert_lk(0, subject_give(theirs));
        }
}

/* What was lost before is told all the same. */
static void a_hold_that_was_lost_is_not_given_back(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    struct subject *mine = world_subject(w, client, subject_kinds, name);
    assert_lk(0, subject_take(mine, PATIENT_MS));
    assert_int_equal(1, cluster_int(c, 0, "DEL %s", name));
    assert_int_equal(1, cluster_int(c, 0, "HSET %s ffffffffffffffffffffffffffffffff:1:1 1", name));
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    assert_lk(ESTALE, subject_give(mine));
    assert_int_equal(1, cluster_int(c, 0, "DEL %s", name));
    finish_move(c, name, 0, 1);
}

/* Part of what a holder has, and what somebody else took and gave an id. */
static void permits_go_back_one_by_one(struct world *w)
{
    static const lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "pool");
    lk_sem_t *mine = world_sem(w, one, name, 3, &attr), *theirs = world_sem(w, other, name, 3, &attr);
    char id[LK_PERMIT_ID];
    assert_lk(0, lk_sem_acquire(mine, 2, PATIENT_MS));
    assert_lk(0, lk_sem_acquireid(theirs, PATIENT_MS, id));
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    cluster_movekey(c, key_of_hold(&subject_kinds[5], name), 0, 1);
    assert_lk(0, lk_sem_release(mine, 1));
    assert_lk(0, lk_sem_releaseid(mine, id));
    assert_lk(EPERM, lk_sem_releaseid(mine, "00000000000000000000000000000000"));
    finish_move(c, name, 0, 1);
    assert_lk(0, lk_sem_acquire(theirs, 2, PATIENT_MS));
    assert_lk(EAGAIN, lk_sem_trywait(theirs));
    assert_lk(ESTALE, lk_sem_releaseid(theirs, id));
    assert_lk(0, lk_sem_release(theirs, 2));
    assert_lk(0, lk_sem_release(mine, 1));
}

/* It is nobody's, and not free before the time. */
static void a_name_is_kept_as_long_as_it_was_to_be(struct world *w)
{
    static const lk_mutexattr_t attr = { .size = sizeof attr, .min_hold_ms = 20000 };
    struct cluster *c = cluster_begin(w, false);
    const char *name = cluster_name(c, 0, "orders");
    lk_mutex_t *mine = world_mutex(w, cluster_client(c, OPTIONS), name, &attr);
    assert_lk(0, lk_mutex_lock(mine));
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    assert_lk(0, lk_mutex_unlock(mine));
    assert_between(cluster_int(c, 0, "PTTL %s", name), 1, 20000);
    assert_int_equal(1, cluster_int(c, 0, "DEL %s", name));
    finish_move(c, name, 0, 1);
}

/* --- robust ones --------------------------------------------------------------------------------------------------- */

static int take(lk_mutex_t *m, lk_rwlock_t *rw)
{
    return m != NULL ? lk_mutex_lockfor(m, PATIENT_MS) : lk_rwlock_wrlockfor(rw, PATIENT_MS);
}

static int give(lk_mutex_t *m, lk_rwlock_t *rw)
{
    return m != NULL ? lk_mutex_unlock(m) : lk_rwlock_unlock(rw);
}

static int repair(lk_mutex_t *m, lk_rwlock_t *rw)
{
    return m != NULL ? lk_mutex_consistent(m) : lk_rwlock_consistent(rw);
}

/* Somebody died with it, so the next one is told; who comes after that one depends on what it says. */
static void hand_on_robust(struct world *w, struct cluster *c, bool rwlock, bool repaired)
{
    static const lk_mutexattr_t mutexattr = { .size = sizeof mutexattr, .robust = 1 };
    static const lk_rwlockattr_t rwlockattr = { .size = sizeof rwlockattr, .robust = 1 };
    char prefix[16], mark[96];
    snprintf(prefix, sizeof prefix, "%s%d-", rwlock ? "rw" : "m", repaired);
    const char *name = cluster_name(c, 0, prefix);
    lk_client_t *clients[2] = { cluster_client(c, OPTIONS), cluster_client(c, OPTIONS) };
    lk_mutex_t *m[2] = { NULL, NULL };
    lk_rwlock_t *rw[2] = { NULL, NULL };
    snprintf(mark, sizeof mark, "latchkey:robust:%s:{%s}", rwlock ? "rw" : "mutex", name);
    assert_string_equal("OK", cluster_str(c, 0, "SET %s %s", mark, "ffffffffffffffffffffffffffffffff:1:1 7 0"));
    for (int i = 0; i < 2; i++)
        if (rwlock)
            rw[i] = world_rwlock(w, clients[i], name, &rwlockattr);
        else
            m[i] = world_mutex(w, clients[i], name, &mutexattr);
    assert_lk(EOWNERDEAD, take(m[0], rw[0]));
    if (repaired)
        assert_lk(0, repair(m[0], rw[0]));
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    cluster_movekey(c, mark, 0, 1);
    assert_lk(0, give(m[0], rw[0]));
    finish_move(c, name, 0, 1);
    assert_lk(repaired ? 0 : ENOTRECOVERABLE, take(m[1], rw[1]));
    if (repaired)
        assert_lk(0, give(m[1], rw[1]));
    cluster_int(c, 1, "DEL %s", mark);
}

static void what_a_robust_one_says_is_kept(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    for (int i = 0; i < 4; i++)
        hand_on_robust(w, c, i % 2 != 0, i / 2 != 0);
}

/* The hold goes first, and the next time its mark: by then the new node knows the script of each step. */
static void each_step_goes_where_its_key_is(struct world *w)
{
    static const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, OPTIONS);
    for (int i = 0; i < 2; i++) {
        char mark[96];
        const char *name = cluster_name(c, 0, i == 0 ? "hold-" : "mark-");
        lk_mutex_t *m = world_mutex(w, client, name, &robust);
        snprintf(mark, sizeof mark, "latchkey:robust:mutex:{%s}", name);
        assert_lk(0, lk_mutex_lockfor(m, PATIENT_MS));
        cluster_beginmove(c, cluster_slot(c, name), 0, 1);
        cluster_movekey(c, i == 0 ? name : mark, 0, 1);
        assert_lk(0, lk_mutex_unlock(m));
        finish_move(c, name, 0, 1);
        assert_int_equal(0, cluster_int(c, 1, "EXISTS %s", name));
    }
}

/* --- clients that close, waiters that sleep ------------------------------------------------------------------------- */

/* Not with its lease: at once. */
static void a_client_that_closes_gives_back(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    lk_client_t *one;
    lk_mutex_t m = LK_MUTEX_INITIALIZER(name);
    lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
    lk_mutex_t *theirs = world_mutex(w, other, name, &robust);
    assert_lk(0, lk_client_open(&one, cluster_url(c, OPTIONS)));
    assert_lk(0, lk_mutex_init(&m, one, name, &robust));
    assert_lk(0, lk_mutex_lock(&m));
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    cluster_movekey(c, name, 0, 1);
    assert_lk(0, lk_client_close(one));
    assert_lk(0, lk_mutex_destroy(&m));
    finish_move(c, name, 0, 1);
    assert_lk(0, lk_mutex_lockfor(theirs, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(theirs));
}

/* The rest of a release is nothing that a close waits for, or that would be left with a lease. */
static void a_close_does_not_wait_for_the_next_one(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    const char *name = cluster_name(c, 0, "orders");
    lk_client_t *one;
    lk_mutex_t m = LK_MUTEX_INITIALIZER(name);
    assert_lk(0, lk_client_open(&one, cluster_url(c, "lease=30s&command_timeout=8s")));
    assert_lk(0, lk_mutex_init(&m, one, name, NULL));
    assert_lk(0, lk_mutex_lock(&m));
    cluster_beginmove(c, cluster_slot(c, name), 0, 1);
    assert_lk(0, lk_mutex_unlock(&m));
    int64_t began_ms = now_ms();
    assert_lk(0, lk_client_close(one));
    assert_between(now_ms() - began_ms, 0, 8000);
    assert_lk(0, lk_mutex_destroy(&m));
    finish_move(c, name, 0, 1);
}

/* The move is given up, so nothing tells a waiter that asks seldom that something changed: the holder does. */
static void sleep_and_be_called(struct world *w, struct cluster *c, lk_client_t *one, lk_client_t *other,
                               const char *text)
{
    const char *name = cluster_name(c, 0, text);
    int slot = cluster_slot(c, name);
    struct subject *mine = world_subject(w, one, subject_kinds, name),
                   *theirs = world_subject(w, other, subject_kinds, name);
    struct errand errand;
    assert_lk(0, subject_take(mine, PATIENT_MS));
    errand_start(&errand, theirs, 6 * PATIENT_MS);
    eventually(cluster_int(c, 0, "ZCARD latchkey:queue:mutex:{%s}", name) == 1, PATIENT_MS);
    sleep_ms(SETTLED_MS); /* who has just subscribed asks once more */
    cluster_beginmove(c, slot, 0, 1);
    cluster_movekey(c, name, 0, 1);
    assert_lk(0, subject_give(mine));
    cluster_str(c, 0, "CLUSTER SETSLOT %d STABLE", slot);
    cluster_str(c, 1, "CLUSTER SETSLOT %d STABLE", slot);
    expect_soon(&errand, now_ms());
}

/* Each time, as a waiter may happen to ask by itself just then. */
static void a_sleeper_is_called(struct world *w)
{
    static const char *const names[] = { "orders", "bills", "stock", "jobs" };
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, "lease=120s&command_timeout=500ms"),
                *other = cluster_client(c, "lease=120s&command_timeout=500ms&poll=20s");
    for (int i = 0; i < ROUNDS; i++)
        sleep_and_be_called(w, c, one, other, names[i]);
}

int main(void)
{
    return world_run(
        the_next_one_has_it_soon, who_comes_meanwhile_has_it_soon, who_comes_meanwhile_and_is_cut_off_has_it_soon,
        it_is_free_at_once, a_hold_that_was_lost_is_not_given_back, permits_go_back_one_by_one,
        a_name_is_kept_as_long_as_it_was_to_be, what_a_robust_one_says_is_kept, each_step_goes_where_its_key_is,
        a_client_that_closes_gives_back, a_close_does_not_wait_for_the_next_one, a_sleeper_is_called);
}
