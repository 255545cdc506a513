/* SPDX-License-Identifier: MIT */
/*
 * anonymous_test.c - an anonymous semaphore leaves nothing at the server, however its users end
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 29
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

enum { LEASE_MS = 2000, THREADS = 8 };
#define OPTIONS "lease=2s&command_timeout=600ms&poll=200ms" /* keys are counted */

static const lk_semattr_t kinds[] = { { .size = sizeof *kinds, .anonymous = 1 },
                                      { .size = sizeof *kinds, .anonymous = 1, .leased = 1 } };

static lk_client_t *client;

static lk_sem_t *open_pool(struct world *w, int kind, const char *name)
{
    client = world_client(w, OPTIONS);
    return world_sem(w, client, name, 3, &kinds[kind]);
}

static int64_t keys(struct world *w)
{
    return world_elements(w, "KEYS *");
}

static void use(lk_sem_t *s, unsigned in_all)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    assert_lk(0, lk_sem_acquire(s, 2, 0));
    assert_lk(0, lk_sem_trywait(s));
    assert_lk(EAGAIN, lk_sem_trywait(s));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(s, 20));
    assert_lk(0, lk_sem_release(s, 3));
    assert_lk(EEXIST, lk_sem_trysetpermits(s, 9));
    assert_lk(0, lk_sem_addpermits(s, 1));
    assert_lk(0, lk_sem_addpermits(s, -1));
    assert_lk(0, lk_sem_setpermits(s, &in_all, in_all));
    assert_lk(0, lk_sem_info(s, &info));
    assert_int_equal(3, info.available);
    assert_int_equal(1, info.exists);
}

/* It needs no name, lives while it is used, and goes with its last shell. */
static void nothing_is_left(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        lk_sem_t *s = open_pool(w, i, NULL), *same = world_sem(w, client, s->lk_name, 3, &kinds[i]);
        assert_int_equal(0, strncmp(s->lk_name, "anonymous:", 10));
        assert_int_equal(0, keys(w));
        use(s, 3);
        assert_int_equal(0, world_lasting(w));
        sleep_ms(LEASE_MS * 3 / 2);
        use(same, 3);
        assert_int_equal(0, world_lasting(w));
        world_close(w, s);
        use(same, 3);
        world_close(w, same);
        eventually(keys(w) == 0, 5000);
        s = open_pool(w, i, NULL);
        use(s, 3);
        world_close(w, client); /* as does a client with it */
        eventually(keys(w) == 0, 5000);
    }
}

/* Several clients use it; the last one takes it along. */
static void it_goes_with_its_last_user(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        lk_sem_t *s = open_pool(w, i, "pool");
        use(s, 3);
        assert_lk(0, lk_sem_addpermits(s, 2));
        lk_sem_t *other = world_sem(w, world_client(w, OPTIONS), "pool", 3, &kinds[i]);
        assert_lk(0, lk_sem_acquire(other, 5, 0));
        world_close(w, s);
        sleep_ms(LEASE_MS * 5 / 4);
        assert_lk(EAGAIN, lk_sem_trywait(other));
        assert_lk(0, lk_sem_release(other, 5));
        assert_lk(0, lk_sem_acquire(other, 5, 0));
        assert_lk(0, lk_sem_release(other, 5));
        world_close(w, other);
        eventually(keys(w) == 0, 5000);
    }
}

static int use_and_stay(struct world *w, void *arg)
{
    lk_sem_t *s = open_pool(w, *(int *)arg, "pool");
    use(s, 3);
    assert_lk(0, lk_sem_wait(s));
    world_ready(w);
    for (;;)
        sleep_ms(1000);
    return 0;
}

/* A process that is killed says nothing; it is gone a lease later. */
static void a_killed_user_leaves_nothing(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        pid_t child = world_fork(w, use_and_stay, &i);
        assert_true(keys(w) >= 2);
        assert_int_equal(0, world_lasting(w));
        world_kill(w, child);
        eventually(!world_exists(w, "pool") && !world_exists(w, "latchkey:total:{pool}") &&
                       !world_exists(w, "latchkey:users:sem:{pool}") &&
                       !world_exists(w, "latchkey:users:permits:{pool}"),
                   LEASE_MS + 2 * SLACK_MS);
        assert_int_equal(0, world_lasting(w));
        world_redis(w, "FLUSHALL");
    }
}

WORK(wait_here, arg, lk_sem_acquire(arg, 3, 20000))

/* One that is gone is not made again by whoever still believes in it: not by those who wait, and by no post. */
static void what_is_gone_stays_gone(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        struct worker waiter;
        unsigned in_all = 3;
        lk_sem_t *s = open_pool(w, i, "pool");
        use(s, 3);
        assert_lk(0, lk_sem_acquire(s, 2, 0));
        worker_start(&waiter, wait_here, s);
        eventually(world_semqueued(w, "pool") == 1, 3000);
        world_redis(w, "DEL pool latchkey:total:{pool}");
        if (i == 0)
            assert_lk(ESTALE, lk_sem_post(s));
        else
            lk_sem_release(s, 2); /* the permits are there without a total */
        assert_lk(ESTALE, lk_sem_setpermits(s, &in_all, 4));
        assert_lk(ESTALE, lk_sem_addpermits(s, 1));
        assert_lk(ESTALE, lk_sem_trysetpermits(s, 1));
        int code = worker_join(&waiter);
        assert_true(code == ECANCELED || code == ESTALE); /* on a slow machine its lease may have run out before */
        eventually(lk_sem_trywait(s) == ESTALE, 2000);
        assert_lk(ESTALE, lk_sem_post(s));
        assert_false(world_exists(w, "pool"));
        assert_false(world_exists(w, "latchkey:total:{pool}"));
        world_close(w, client);
        assert_int_equal(0, world_lasting(w));
        world_redis(w, "FLUSHALL");
    }
}

/* Cut off for longer than a lease: nobody knows what became of it, and all calls say so. */
static void who_is_cut_off_is_told(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        lk_sem_t *s = open_pool(w, i, NULL);
        int value;
        use(s, 3);
        world_stop_server(w);
        sleep_ms(LEASE_MS + 100);
        assert_lk(ESTALE, lk_sem_trywait(s));
        assert_lk(ESTALE, lk_sem_getvalue(s, &value));
        world_cont_server(w);
        assert_lk(ESTALE, lk_sem_wait(s));
        world_close(w, client);
        eventually(keys(w) == 0 || world_lasting(w) == 0, 3000);
        world_redis(w, "FLUSHALL");
    }
}

/* Who waits meanwhile is told the same, and not that somebody deleted it. */
static void who_waits_is_told(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        struct worker waiter;
        lk_sem_t *s = open_pool(w, i, NULL);
        assert_lk(0, lk_sem_acquire(s, 2, 0));
        worker_start(&waiter, wait_here, s);
        eventually(world_semqueued(w, s->lk_name) == 1, 3000);
        world_stop_server(w);
        sleep_ms(LEASE_MS + 100);
        world_cont_server(w);
        assert_int_equal(ESTALE, worker_join(&waiter));
        world_close(w, client);
        eventually(keys(w) == 0 || world_lasting(w) == 0, 3000);
        world_redis(w, "FLUSHALL");
    }
}

/* Permits of one that is over are given back all the same, and nothing is in the way of its destruction. */
static void what_is_over_can_be_given_back(struct world *w)
{
    lk_sem_t *s = open_pool(w, 1, "pool");
    char id[LK_PERMIT_ID];
    assert_lk(0, lk_sem_acquire(s, 1, 0));
    assert_lk(0, lk_sem_acquireid(s, 0, id));
    world_redis(w, "DEL latchkey:total:{pool} latchkey:users:permits:{pool}");
    eventually(lk_sem_trywait(s) == ESTALE, 3000);
    assert_lk(ESTALE, lk_sem_release(s, 1));
    assert_lk(ESTALE, lk_sem_releaseid(s, id));
    assert_lk(0, lk_sem_destroy(s));
    eventually(!world_exists(w, "latchkey:permits:{pool}") || world_lasting(w) == 0, 2000);
    world_redis(w, "FLUSHALL");
    world_close(w, client);
}

static int use_first(int index, void *arg)
{
    (void)index;
    int rc = lk_sem_acquire(arg, 1, 10000);
    return rc != 0 ? rc : lk_sem_release(arg, 1);
}

/* Many threads use it first at once: one use of this client is left, and then none. */
static void many_begin_at_once(struct world *w)
{
    static const char *const users[] = { "latchkey:users:sem:{pool}", "latchkey:users:permits:{pool}" };
    for (int i = 0; i < 2; i++) {
        lk_sem_t *s = open_pool(w, i, "pool");
        assert_int_equal(0, run_threads(THREADS, use_first, s));
        eventually(world_int(w, "ZCARD %s", users[i]) == 1, 2000);
        use(s, 3);
        world_close(w, s);
        eventually(keys(w) == 0, 5000);
    }
}

/* A waiter that died with a grant: what it had been granted has an end as well. */
static void claims_have_an_end(struct world *w)
{
    int kind = 0;
    pid_t child = world_fork(w, use_and_stay, &kind);
    struct worker waiter;
    lk_sem_t *s = open_pool(w, 0, "pool");
    worker_start(&waiter, wait_here, s);
    eventually(world_semqueued(w, "pool") == 1, 3000);
    assert_lk(0, lk_sem_post(s));
    assert_int_equal(0, worker_join(&waiter));
    assert_int_equal(0, world_lasting(w));
    assert_lk(0, lk_sem_release(s, 3));
    world_kill(w, child);
    world_close(w, client);
    eventually(!world_exists(w, "pool"), LEASE_MS + 2 * SLACK_MS);
    world_redis(w, "FLUSHALL");
}

static int wait_for_all(struct world *w, void *taken)
{
    lk_sem_t *s = open_pool(w, 0, "pool");
    world_ready(w);
    gate_pass(taken);
    return wait_here(s);
}

/* A waiter died with a grant, and nobody asks for long: what it was granted comes back all the same. */
static void a_claim_lasts_as_the_semaphore_does(struct world *w)
{
    struct gate *taken = world_shared(w, sizeof *taken);
    pid_t child = world_fork(w, wait_for_all, taken);
    lk_sem_t *s = open_pool(w, 0, "pool");
    assert_lk(0, lk_sem_acquire(s, 3, 0));
    gate_open(taken);
    eventually(world_semqueued(w, "pool") == 1, 3000);
    world_stop(child);
    assert_lk(0, lk_sem_release(s, 3));
    assert_int_equal(1, world_int(w, "ZCARD latchkey:claims:{pool}"));
    world_kill(w, child);
    sleep_ms(7000); /* more than two claims, and more than a lease */
    assert_lk(0, lk_sem_trywait(s));
    assert_lk(0, lk_sem_post(s));
    world_close(w, client);
    world_redis(w, "FLUSHALL");
}

static void mistakes_are_refused(struct world *w)
{
    static const lk_semattr_t plain = { .size = sizeof plain }, odd = { .size = sizeof odd, .anonymous = 2 };
    lk_sem_t bad;
    lk_sem_t *s = open_pool(w, 0, "pool");
    assert_lk(EINVAL, lk_sem_init(&bad, client, NULL, 3, &plain));
    assert_lk(EINVAL, lk_sem_init(&bad, client, NULL, 3, NULL));
    assert_lk(EINVAL, lk_sem_init(&bad, client, "other", 3, &odd));
    assert_lk(EINVAL, lk_sem_init(&bad, client, "pool", 3, &plain)); /* here it is anonymous */
    assert_lk(0, lk_sem_trywait(s));
    assert_lk(0, lk_sem_delete(s));
    eventually(lk_sem_trywait(s) == ESTALE, 2000);
    world_close(w, s);
    world_redis(w, "FLUSHALL");
}

int main(void)
{
    return world_run(nothing_is_left, it_goes_with_its_last_user, a_killed_user_leaves_nothing, what_is_gone_stays_gone,
                     who_is_cut_off_is_told, who_waits_is_told, what_is_over_can_be_given_back, many_begin_at_once,
                     claims_have_an_end, a_claim_lasts_as_the_semaphore_does, mistakes_are_refused);
}
