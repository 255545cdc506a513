/* SPDX-License-Identifier: MIT */
/*
 * owner_test.c - leased permits that explicit owners hold
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

enum { TOTAL = 6, THREADS = 6, ROUNDS = SANITIZED ? 10 : 30 };

static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1, .lease_ms = 20000 };

static lk_client_t *client;
static lk_sem_t *pool;
static lk_owner_t *owner;

static void open_pool(struct world *w)
{
    client = world_client(w, "");
    pool = world_sem(w, client, "pool", TOTAL, &leased);
    world_allow(w, "latchkey:total:{pool}");
    world_allow(w, "latchkey:permits:{pool}"); /* which remembers permits that ended */
    owner = world_newowner(w, client);
}

static int take(lk_owner_t *by, unsigned n, int64_t timeout_ms)
{
    const lk_how_t how = { .size = sizeof how, .timeout_ms = timeout_ms, .owner = by };
    return lk_sem_acquirewith(pool, n, &how);
}

WORK(take_two, by, take(by, 2, 10000))
WORK(give_three, by, lk_sem_releaseby(pool, by, 3))

static void expect_free(int expected)
{
    int value;
    assert_lk(0, lk_sem_getvalue(pool, &value));
    assert_int_equal(expected, value);
}

/* What several threads took for an owner, any thread gives back, the oldest first and in parts. */
static void any_thread_gives_back(struct world *w)
{
    int64_t left_ms;
    open_pool(w);
    assert_lk(0, in_thread(take_two, owner));
    assert_lk(0, take(owner, 2, 0));
    expect_free(2);
    assert_lk(EPERM, lk_sem_post(pool));
    assert_lk(EPERM, lk_sem_remaining(pool, &left_ms));
    assert_lk(0, lk_sem_remainingby(pool, owner, &left_ms));
    assert_lk(EPERM, lk_sem_releaseby(pool, owner, 5));
    assert_lk(EBUSY, lk_owner_free(owner));
    assert_lk(0, in_thread(give_three, owner));
    expect_free(5);
    assert_lk(0, lk_sem_releaseby(pool, owner, 1));
    assert_lk(EPERM, lk_sem_releaseby(pool, owner, 1));
    assert_lk(0, take(NULL, TOTAL, 0));
    assert_lk(ETIMEDOUT, take(owner, 1, 0));
    assert_lk(0, lk_sem_releaseby(pool, NULL, TOTAL));
}

/* Two calls of one owner take at the same time; neither waits for the other's end. */
static void calls_of_one_owner_take_side_by_side(struct world *w)
{
    struct worker waiter;
    open_pool(w);
    assert_lk(0, lk_sem_acquire(pool, TOTAL - 1, 0));
    worker_start(&waiter, take_two, owner);
    eventually(world_semqueued(w, "pool") == 1 && world_listening(w, "permits:{pool}"), 5000);
    assert_lk(EPERM, lk_sem_releaseby(pool, owner, 1));
    assert_lk(ETIMEDOUT, take(owner, 1, 50)); /* in its turn, behind the other call */
    assert_lk(0, lk_sem_release(pool, TOTAL - 1));
    assert_lk(0, worker_join(&waiter));
    assert_lk(0, take(owner, 1, 0));
    assert_lk(0, lk_sem_releaseby(pool, owner, 3));
    expect_free(TOTAL);
}

/* The token is that of the oldest permit that the owner has, whoever else took one since. */
static void an_owners_permits_have_a_token(struct world *w)
{
    uint64_t first, token, mine;
    open_pool(w);
    assert_lk(EPERM, lk_sem_tokenby(pool, owner, &token));
    assert_lk(0, take(owner, 1, 0));
    assert_lk(0, lk_sem_tokenby(pool, owner, &first));
    assert_lk(EPERM, lk_sem_token(pool, &mine));
    assert_lk(0, take(NULL, 1, 0));
    assert_lk(0, lk_sem_token(pool, &mine));
    assert_lk(0, lk_sem_tokenby(pool, NULL, &token));
    assert_true(token == mine && mine > first);
    assert_lk(0, lk_sem_tokenby(pool, owner, &token));
    assert_true(token == first);
    assert_lk(0, take(owner, 1, 0));
    assert_lk(0, lk_sem_tokenby(pool, owner, &token));
    assert_true(token == first);
    assert_lk(0, lk_sem_releaseby(pool, owner, 2));
    assert_lk(EPERM, lk_sem_tokenby(pool, owner, &token));
    assert_lk(0, lk_sem_post(pool));
}

/* Redisson's tryAcquire(waitTime, leaseTime): a permit for so long and no longer. */
static void a_call_says_its_lease(struct world *w)
{
    lk_how_t how = { .size = sizeof how, .timeout_ms = 0, .lease_ms = 1500, .fixed = 1 };
    int64_t left_ms;
    open_pool(w);
    how.owner = owner;
    assert_lk(0, lk_sem_acquirewith(pool, TOTAL, &how));
    assert_lk(0, lk_sem_remainingby(pool, owner, &left_ms));
    assert_between(left_ms, 1, 1500);
    assert_lk(0, lk_sem_acquire(pool, 1, 5000));
    eventually(lk_sem_remainingby(pool, owner, &left_ms) == ESTALE, 5000);
    assert_lk(ESTALE, lk_sem_releaseby(pool, owner, TOTAL));
    assert_lk(0, lk_sem_post(pool));
    how.fixed = 0;
    how.lease_ms = 3000;
    assert_lk(0, lk_sem_acquirewith(pool, 1, &how));
    sleep_ms(4000);
    assert_lk(0, lk_sem_releaseby(pool, owner, 1)); /* it was renewed */
}

/* Permits of a counting semaphore are nobody's, and have no lease. */
static void a_counting_semaphore_knows_no_owners(struct world *w)
{
    lk_how_t how = LK_HOW_INIT;
    open_pool(w);
    lk_sem_t *plain = world_sem(w, client, "plain", 2, NULL);
    world_allow(w, "plain");
    world_allow(w, "latchkey:once:{plain}");
    how.timeout_ms = 0;
    assert_lk(0, lk_sem_acquirewith(plain, 1, &how));
    assert_lk(0, lk_sem_acquirewith(plain, 1, &how));
    assert_lk(ETIMEDOUT, lk_sem_acquirewith(plain, 1, &how));
    assert_lk(0, lk_sem_releaseby(plain, NULL, 2));
    how.owner = owner;
    assert_lk(ENOTSUP, lk_sem_acquirewith(plain, 1, &how));
    assert_lk(ENOTSUP, lk_sem_releaseby(plain, owner, 1));
    how = (lk_how_t){ .size = sizeof how, .lease_ms = 1000 };
    assert_lk(ENOTSUP, lk_sem_acquirewith(plain, 1, &how));
    how = (lk_how_t){ .size = sizeof how, .fixed = 1 };
    assert_lk(ENOTSUP, lk_sem_acquirewith(plain, 1, &how));
}

static void *take_until_cancelled(void *by)
{
    lk_how_t how = LK_HOW_INIT;
    how.owner = by;
    (void)!lk_sem_acquirewith(pool, 1, &how);
    return NULL;
}

/* A cancelled thread leaves nothing of its call with the owner. */
static void a_cancelled_call_leaves_its_owner(struct world *w)
{
    pthread_t thread;
    void *result;
    if (SANITIZED && !THREAD_SANITIZED)
        skip(); /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    open_pool(w);
    assert_lk(0, lk_sem_acquire(pool, TOTAL, 0));
    assert_int_equal(0, pthread_create(&thread, NULL, take_until_cancelled, owner));
    eventually(world_semqueued(w, "pool") == 1, 5000);
    assert_lk(EBUSY, lk_owner_free(owner));
    assert_int_equal(0, pthread_cancel(thread));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_ptr_equal(PTHREAD_CANCELED, result);
    assert_int_equal(0, world_semqueued(w, "pool"));
    assert_lk(0, lk_sem_release(pool, TOTAL));
}

static int borrow(int index, void *arg)
{
    int rc = 0, *most = arg;
    unsigned n = 1 + (unsigned)index % 2;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = take(owner, n, LK_FOREVER);
        if (rc != 0)
            break;
        if (__atomic_add_fetch(&most[0], (int)n, __ATOMIC_RELAXED) > TOTAL)
            most[1] = 1;
        __atomic_fetch_sub(&most[0], (int)n, __ATOMIC_RELAXED);
        rc = lk_sem_releaseby(pool, owner, n);
    }
    return rc;
}

/* Takes and releases of one owner on many threads never lend too many, and lose none. */
static void what_many_threads_took_adds_up(struct world *w)
{
    int most[2] = { 0, 0 };
    open_pool(w);
    assert_lk(0, run_threads(THREADS, borrow, most));
    assert_int_equal(0, most[1]);
    expect_free(TOTAL);
    assert_lk(EPERM, lk_sem_releaseby(pool, owner, 1));
}

int main(void)
{
    return world_run(any_thread_gives_back, calls_of_one_owner_take_side_by_side, an_owners_permits_have_a_token,
                     a_call_says_its_lease, a_counting_semaphore_knows_no_owners, a_cancelled_call_leaves_its_owner,
                     what_many_threads_took_adds_up);
}
