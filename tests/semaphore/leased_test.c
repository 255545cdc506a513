/* SPDX-License-Identifier: MIT */
/*
 * leased_test.c - permits with leases: whose they are, how they come back, how many there are
 *
 * labels: threads memory noise
 * simulated: yes
 * seconds: 16
 */
#include "world.h"

#include <string.h>

enum { LEASE_MS = 3000, TOTAL = 4 };

static lk_client_t *client;
static lk_sem_t *pool;

static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1, .lease_ms = LEASE_MS };

static void join_pool(struct world *w)
{
    client = world_client(w, "");
    pool = world_sem(w, client, "pool", TOTAL, &leased);
}

static void open_pool(struct world *w)
{
    world_allow(w, "latchkey:total:{pool}");
    world_allow(w, "latchkey:permits:{pool}");
    world_allow(w, "latchkey:once:{pool}");
    join_pool(w);
}

/* available + held = total, at every quiescent moment. */
static void expect(unsigned held, unsigned total)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    assert_lk(0, lk_sem_info(pool, &info));
    assert_int_equal(held, info.held);
    assert_int_equal(total, info.total);
    assert_int_equal((int64_t)total - held, info.available);
}

/* When the first or the last of the permits ends, by the server's clock. */
static int64_t end_of(struct world *w, const char *which)
{
    return world_int(w, "EVAL %s 1 latchkey:permits:{pool} %s",
                     "local ends = redis.call('ZRANGEBYSCORE', KEYS[1], 0, '+inf', 'WITHSCORES') "
                     "return ends[ARGV[1] == 'first' and 2 or #ends]",
                     which);
}

/* Each permit ends later than any did before. */
static void await_renewals(struct world *w)
{
    int64_t last = end_of(w, "last");
    eventually(end_of(w, "first") > last, 2 * LEASE_MS);
}

WORK(post, arg, lk_sem_post(arg))

/* A permit is the thread's that took it: it gives back what it has, in parts or at once, and no more. */
static void a_thread_gives_back_what_it_took(struct world *w)
{
    int64_t ms;
    unsigned taken;
    open_pool(w);
    assert_lk(0, lk_sem_release(pool, 0));
    assert_lk(EPERM, lk_sem_post(pool));
    assert_lk(EPERM, lk_sem_release(pool, LK_SEM_VALUE_MAX));
    assert_lk(EPERM, lk_sem_remaining(pool, &ms));
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    expect(3, TOTAL);
    assert_lk(0, lk_sem_remaining(pool, &ms));
    assert_between(ms, 1, LEASE_MS);
    assert_int_equal(EPERM, in_thread(post, pool));
    assert_lk(EPERM, lk_sem_release(pool, 4));
    expect(3, TOTAL);
    assert_lk(0, lk_sem_post(pool));
    expect(2, TOTAL);
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_trywait(pool));
    expect(4, TOTAL);
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(pool, 20));
    await_renewals(w); /* of all of them, also of what is left of the three */
    expect(4, TOTAL);
    assert_lk(0, lk_sem_release(pool, 3));
    expect(1, TOTAL);
    assert_lk(EBUSY, lk_sem_destroy(pool));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(EPERM, lk_sem_post(pool));
    assert_lk(ENOTSUP, lk_sem_drain(pool, &taken));
    assert_lk(EINVAL, lk_sem_acquire(pool, TOTAL + 1, 0));
    assert_lk(EINVAL, lk_sem_acquire(pool, TOTAL + 1, 1000));
    assert_lk(EINVAL, lk_sem_acquire(pool, LK_SEM_LEASED_MAX + 1, 0));
    expect(0, TOTAL);
    assert_false(world_exists(w, "latchkey:queue:permits:{pool}"));
}

struct shared {
    struct gate held, never;
    char id[LK_PERMIT_ID];
};

static int hold_three(struct world *w, void *arg)
{
    struct shared *shared = arg;
    join_pool(w);
    assert_lk(0, lk_sem_acquire(pool, 2, 0));
    assert_lk(0, lk_sem_acquireid(pool, 0, shared->id));
    world_ready(w);
    gate_pass(&shared->never);
    return 0;
}

/* A killed holder's permits come back when their lease ends, not before, and wake who waits. */
static void a_killed_holders_permits_come_back(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    pid_t holder = world_fork(w, hold_three, shared);
    open_pool(w);
    await_renewals(w);
    expect(3, TOTAL);
    int64_t began_ms = now_ms(), left_ms = world_killholder(w, holder, "pool");
    assert_between(left_ms, 1, LEASE_MS);
    assert_lk(0, lk_sem_acquire(pool, TOTAL, 5000));
    assert_between(now_ms() - began_ms, left_ms - 1, left_ms + 2 * SLACK_MS);
    expect(TOTAL, TOTAL);
    assert_lk(ESTALE, lk_sem_releaseid(pool, shared->id));
    assert_lk(0, lk_sem_release(pool, TOTAL));
    expect(0, TOTAL);
}

VISIT(wait_five_seconds, arg, lk_sem_waitfor(arg, 5000), lk_sem_post(arg))

/* The total may change in use: growing serves those who wait, shrinking takes effect as permits come back. */
static void the_total_changes_in_use(struct world *w)
{
    struct worker waiter;
    open_pool(w);
    assert_lk(EINVAL, lk_sem_addpermits(pool, -TOTAL - 1));
    assert_lk(EOVERFLOW, lk_sem_addpermits(pool, LK_SEM_PERMITS_MAX));
    assert_lk(0, lk_sem_acquire(pool, TOTAL, 0));
    assert_lk(EEXIST, lk_sem_trysetpermits(pool, 9));
    worker_start(&waiter, wait_five_seconds, pool);
    eventually(world_int(w, "ZCARD latchkey:queue:permits:{pool}") == 1, 3000);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_sem_addpermits(pool, 1));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, SLACK_MS);
    expect(TOTAL, TOTAL + 1);
    assert_lk(0, lk_sem_addpermits(pool, -3));
    expect(TOTAL, TOTAL - 2);
    assert_lk(0, lk_sem_release(pool, 2));
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_trywait(pool));
    assert_lk(0, lk_sem_release(pool, 2));
    assert_lk(0, lk_sem_addpermits(pool, -2));
    expect(0, 0);
    worker_start(&waiter, wait_five_seconds, pool); /* a pause, not an error */
    eventually(world_int(w, "ZCARD latchkey:queue:permits:{pool}") == 1, 3000);
    assert_lk(0, lk_sem_addpermits(pool, 1));
    assert_int_equal(0, worker_join(&waiter));
}

WORK(release_by_id, arg, lk_sem_releaseid(pool, arg))

/* A permit with an id is given back by who knows the id: another thread, another process, and once. */
static void an_id_is_enough_to_give_back(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    char id[LK_PERMIT_ID], second[LK_PERMIT_ID];
    pid_t holder = world_fork(w, hold_three, shared);
    open_pool(w);
    assert_lk(0, lk_sem_acquireid(pool, 0, id));
    assert_int_equal(32, strspn(id, "0123456789abcdef"));
    assert_lk(EPERM, lk_sem_post(pool)); /* nobody's but who knows its id */
    assert_lk(ETIMEDOUT, lk_sem_acquireid(pool, 0, second));
    assert_lk(ETIMEDOUT, lk_sem_acquireid(pool, 20, second));
    assert_int_equal(0, in_thread(release_by_id, id));
    assert_int_equal(EPERM, in_thread(release_by_id, id));
    assert_lk(EPERM, lk_sem_releaseid(pool, id));
    expect(3, TOTAL);
    assert_lk(0, lk_sem_releaseid(pool, shared->id)); /* of the other process */
    assert_lk(EPERM, lk_sem_releaseid(pool, shared->id));
    expect(2, TOTAL);
    assert_lk(EINVAL, lk_sem_releaseid(pool, "abc"));
    assert_lk(EINVAL, lk_sem_releaseid(pool, NULL));
    assert_lk(EINVAL, lk_sem_releaseid(pool, "0123456789ABCDEF0123456789ABCDEF"));
    world_kill(w, holder);
}

static uint64_t handed_token;

/* What was handed over has its token, too. */
static int wait_and_tell(void *arg)
{
    int rc = lk_sem_waitfor(arg, 5000);
    if (rc == 0)
        rc = lk_sem_token(arg, &handed_token);
    return rc != 0 ? rc : lk_sem_post(arg);
}

struct giving {
    char id[LK_PERMIT_ID];
    int done;
};

static int give_at_once(int index, void *arg)
{
    struct giving *giving = arg;
    (void)index;
    int rc = lk_sem_releaseid(pool, giving->id);
    if (rc == 0)
        __atomic_add_fetch(&giving->done, 1, __ATOMIC_SEQ_CST);
    return rc == 0 || rc == EPERM || rc == ESTALE ? 0 : rc;
}

/* Several threads that give one permit back at once free one. */
static void one_of_many_gives_it_back(struct world *w)
{
    open_pool(w);
    for (int i = 0; i < 20; i++) {
        struct giving giving = { .done = 0 };
        assert_lk(0, lk_sem_acquireid(pool, 0, giving.id));
        assert_int_equal(0, run_threads(4, give_at_once, &giving));
        assert_int_equal(1, giving.done);
        expect(0, TOTAL);
    }
}

/* max_hold_ms ends a permit that is never given back; the id is told from one that never was. */
static void a_hung_holder_is_not_renewed(struct world *w)
{
    lk_semattr_t capped = leased;
    char id[LK_PERMIT_ID];
    open_pool(w);
    capped.max_hold_ms = 1500;
    lk_sem_t *same = world_sem(w, client, "pool", TOTAL, &capped);
    assert_lk(0, lk_sem_acquireid(same, 0, id));
    assert_lk(0, lk_sem_wait(same));
    expect(2, TOTAL);
    sleep_ms(1520);
    expect(0, TOTAL);
    assert_lk(ESTALE, lk_sem_post(same));
    assert_lk(ESTALE, lk_sem_releaseid(same, id));
}

/* Each permit has a token, larger than all before it: of any thread, process or id, and after a loss of the key. */
static void tokens_rise(struct world *w)
{
    struct worker waiter;
    uint64_t token, last = 0;
    char id[LK_PERMIT_ID];
    open_pool(w);
    lk_sem_t *same = world_sem(w, world_client(w, ""), "pool", TOTAL, &leased);
    assert_lk(EPERM, lk_sem_token(pool, &token));
    for (int i = 0; i < 20; i++) {
        lk_sem_t *s = i % 2 ? pool : same;
        assert_lk(0, lk_sem_acquire(s, 1 + (unsigned)i % 3, 0));
        assert_lk(0, lk_sem_token(s, &token));
        assert_true(token > last);
        last = token;
        assert_lk(0, lk_sem_acquireid(s, 0, id));
        assert_lk(0, lk_sem_tokenid(s, id, &token));
        assert_true(token > last);
        last = token;
        assert_lk(EPERM, lk_sem_tokenid(i % 2 ? same : pool, id, &token));
        assert_lk(0, lk_sem_releaseid(s, id));
        assert_lk(EPERM, lk_sem_tokenid(s, id, &token));
        assert_lk(0, lk_sem_release(s, 1 + (unsigned)i % 3));
        if (i == 10)
            world_redis(w, "DEL latchkey:permits:{pool}");
        if (i == 15) /* the clock went back */
            world_redis(w, "ZADD latchkey:permits:{pool} -4000000000000000 token");
        if (i >= 15)
            assert_true(last > (i > 15 ? 4000000000000000U : 0));
    }
    assert_lk(0, lk_sem_acquire(pool, TOTAL, 0));
    assert_lk(0, lk_sem_token(pool, &last));
    worker_start(&waiter, wait_and_tell, same);
    eventually(world_semqueued(w, "pool") == 1, 3000);
    assert_lk(0, lk_sem_release(pool, TOTAL));
    assert_int_equal(0, worker_join(&waiter));
    assert_true(handed_token > last);
    assert_lk(EINVAL, lk_sem_token(pool, NULL));
    assert_lk(EINVAL, lk_sem_tokenid(pool, id, NULL));
    assert_lk(EINVAL, lk_sem_tokenid(pool, "x", &token));
}

/* Closing a client gives back what its threads hold. */
static void closing_the_client_gives_back(struct world *w)
{
    char id[LK_PERMIT_ID];
    open_pool(w);
    assert_lk(0, lk_sem_acquire(pool, 2, 0));
    assert_lk(0, lk_sem_acquireid(pool, 0, id));
    expect(3, TOTAL);
    assert_lk(0, close_by_hand(w, client));
    assert_int_equal(0, world_int(w, "ZCOUNT latchkey:permits:{pool} 0 inf"));
    assert_lk(ECANCELED, lk_sem_post(pool));
}

int main(void)
{
    return world_run(a_thread_gives_back_what_it_took, a_killed_holders_permits_come_back, the_total_changes_in_use,
                     an_id_is_enough_to_give_back, one_of_many_gives_it_back, a_hung_holder_is_not_renewed, tokens_rise,
                     closing_the_client_gives_back);
}
