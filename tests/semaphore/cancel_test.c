/* SPDX-License-Identifier: MIT */
/*
 * cancel_test.c - a semaphore's wait is a cancellation point, as sem_wait() is
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "proxy.h"

static lk_client_t *client;
static lk_sem_t *pool;
static int cleaned;

static void open_pool(struct world *w, bool leased)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = leased;
    if (SANITIZED && !THREAD_SANITIZED)
        skip(); /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    if (w->allowed_count == 0) {
        world_allow(w, "pool");
        world_allow(w, "latchkey:once:{pool}");
        world_allow(w, "latchkey:total:{pool}");
        world_allow(w, "latchkey:permits:{pool}");
    }
    client = world_client(w, "");
    pool = world_sem(w, client, "pool", 0, &attr);
}

static void clean(void *arg)
{
    (void)arg;
    cleaned++;
}

static void *wait_here(void *arg)
{
    int rc = 0;
    pthread_cleanup_push(clean, NULL);
    rc = lk_sem_acquire(pool, 2, arg != NULL ? 20000 : LK_FOREVER);
    pthread_cleanup_pop(0);
    return rc == 0 ? (void *)pool : NULL;
}

/* A cancelled waiter takes no permit and leaves no place; the program's own handlers run. */
static void a_cancelled_waiter_leaves_nothing(struct world *w)
{
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        void *result;
        open_pool(w, i >= 2);
        assert_lk(0, lk_sem_trysetpermits(pool, 1));
        assert_lk(0, lk_sem_addpermits(pool, 1));
        assert_lk(0, lk_sem_wait(pool));
        cleaned = 0;
        assert_int_equal(0, pthread_create(&thread, NULL, wait_here, i % 2 ? pool : NULL));
        eventually(world_semqueued(w, "pool") == 1, 3000);
        sleep_ms(50);
        int64_t began_ms = now_ms();
        assert_int_equal(0, pthread_cancel(thread));
        assert_int_equal(0, pthread_join(thread, &result));
        assert_between(now_ms() - began_ms, 0, SLACK_MS);
        assert_ptr_equal(PTHREAD_CANCELED, result);
        assert_int_equal(1, cleaned);
        assert_int_equal(0, world_semqueued(w, "pool"));
        assert_lk(0, lk_sem_trywait(pool));
        assert_lk(0, lk_sem_release(pool, 2));
        assert_lk(0, lk_sem_acquire(pool, 2, 0));
        assert_lk(0, lk_sem_release(pool, 2));
        world_close(w, client);
        world_redis(w, "FLUSHALL");
    }
}

/* Nobody answers when it wants to leave: the thread ends in time, and what was on its way is given back later. */
static void a_cancelled_waiter_without_an_answer_leaves_later(struct world *w)
{
    enum { COMMAND_MS = 300 };
    if (SANITIZED && !THREAD_SANITIZED)
        skip();
    for (int leased = 0; leased < 2; leased++) {
        struct proxy *p = proxy_begin(w);
        pthread_t thread;
        void *result;
        int value;
        lk_semattr_t attr = LK_SEMATTR_INIT;
        lk_client_t *far;
        lk_sem_t *same;
        attr.leased = leased;
        far = proxy_client(p, "command_timeout=300ms");
        open_pool(w, leased); /* whose threads wait: by way of the proxy */
        world_close(w, pool);
        pool = world_sem(w, far, "pool", 2, &attr);
        same = world_sem(w, client, "pool", 2, &attr);
        assert_lk(0, lk_sem_wait(same));
        assert_int_equal(0, pthread_create(&thread, NULL, wait_here, NULL));
        eventually(world_semqueued(w, "pool") == 1, 3000);
        sleep_ms(50);
        proxy_stall(p, PROXY_UP);
        int64_t began_ms = now_ms();
        assert_int_equal(0, pthread_cancel(thread));
        assert_int_equal(0, pthread_join(thread, &result));
        assert_between(now_ms() - began_ms, 0, COMMAND_MS + SLACK_MS);
        assert_ptr_equal(PTHREAD_CANCELED, result);
        assert_lk(0, lk_sem_post(same)); /* two are free now: it is granted them */
        proxy_resume(p);
        eventually(lk_sem_getvalue(same, &value) == 0 && value == 2 && world_semqueued(w, "pool") == 0, 5000);
        world_close(w, client);
        world_close(w, far);
        proxy_end(p);
        world_redis(w, "FLUSHALL");
    }
}

/* With cancellation disabled, the wait goes on. */
static void *wait_undisturbed(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return wait_here(arg);
}

static void a_disabled_cancellation_waits(struct world *w)
{
    pthread_t thread;
    void *result;
    open_pool(w, false);
    assert_int_equal(0, pthread_create(&thread, NULL, wait_undisturbed, NULL));
    eventually(world_semqueued(w, "pool") == 1, 3000);
    assert_int_equal(0, pthread_cancel(thread));
    sleep_ms(50);
    assert_int_equal(1, world_semqueued(w, "pool"));
    assert_lk(0, lk_sem_release(pool, 2));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_ptr_equal(pool, result);
}

int main(void)
{
    return world_run(a_cancelled_waiter_leaves_nothing, a_cancelled_waiter_without_an_answer_leaves_later,
                     a_disabled_cancellation_waits);
}
