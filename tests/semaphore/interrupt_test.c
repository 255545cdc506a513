/* SPDX-License-Identifier: MIT */
/*
 * interrupt_test.c - a signal handler ends the wait for an interruptible semaphore, and no other
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 6
 */
#include "world.h"

#include <pthread.h>
#include <signal.h>

enum { THREADS = 4, ROUNDS = SANITIZED ? 30 : 100, PERMITS = 2 };

static lk_client_t *client;
static lk_sem_t *pool;

static void on_signal(int number)
{
    (void)number;
}

static void catch_with(int flags)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
    sigemptyset(&action.sa_mask);
    assert_int_equal(0, sigaction(SIGUSR1, &action, NULL));
}

static void open_pool(struct world *w, bool leased, bool interruptible)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = leased;
    attr.interruptible = interruptible;
    if (w->allowed_count == 0) {
        world_allow(w, "pool");
        world_allow(w, "latchkey:*:{pool}");
    }
    client = world_client(w, "command_timeout=2s");
    pool = world_sem(w, client, "pool", 0, &attr);
}

/* --- each form ----------------------------------------------------------------------------------------------------- */

static struct timespec in_20s(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_sec += 20;
    return at;
}

static int by_wait(void)
{
    return lk_sem_wait(pool);
}

static int by_timedwait(void)
{
    struct timespec at = in_20s(CLOCK_REALTIME);
    return lk_sem_timedwait(pool, &at);
}

static int by_clockwait(void)
{
    struct timespec at = in_20s(CLOCK_MONOTONIC);
    return lk_sem_clockwait(pool, CLOCK_MONOTONIC, &at);
}

static int by_waitfor(void)
{
    return lk_sem_waitfor(pool, 20000);
}

static int by_acquire(void)
{
    return lk_sem_acquire(pool, 3, LK_FOREVER);
}

static int (*const forms[])(void) = { by_wait, by_timedwait, by_clockwait, by_waitfor, by_acquire };
enum { FORMS = sizeof forms / sizeof *forms };

struct waiting {
    int (*form)(void);
    int rc, errno_after;
    int over; /* atomic builtins */
};

static void *wait_here(void *arg)
{
    struct waiting *waiting = arg;
    errno = 77;
    waiting->rc = waiting->form();
    waiting->errno_after = errno;
    __atomic_store_n(&waiting->over, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void is_interrupted(struct world *w, int (*form)(void), bool queued)
{
    pthread_t thread;
    struct waiting waiting = { .form = form };
    assert_int_equal(0, pthread_create(&thread, NULL, wait_here, &waiting));
    if (queued)
        eventually(world_semqueued(w, "pool") == 1, 3000);
    sleep_ms(50); /* it sleeps */
    for (int i = 0; i < 100 && !__atomic_load_n(&waiting.over, __ATOMIC_SEQ_CST); i++) {
        pthread_kill(thread, SIGUSR1); /* the first one, unless the thread did not get to sleep yet */
        sleep_ms(50);
    }
    assert_true(__atomic_load_n(&waiting.over, __ATOMIC_SEQ_CST));
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_lk(EINTR, waiting.rc);
    assert_int_equal(77, waiting.errno_after);
}

/* Whatever the handler's flags are, and nothing is left of the wait. */
static void a_handler_ends_the_wait(struct world *w)
{
    static const int flags[] = { 0, SA_RESTART };
    for (int i = 0; i < 2; i++) {
        open_pool(w, i == 1, true);
        assert_lk(0, lk_sem_trysetpermits(pool, 3));
        assert_lk(0, lk_sem_acquire(pool, 3, 0));
        for (int f = 0; f < 2 * FORMS; f++) {
            catch_with(flags[f % 2]);
            is_interrupted(w, forms[f / 2], true);
            assert_int_equal(0, world_semqueued(w, "pool"));
        }
        assert_lk(0, lk_sem_release(pool, 3));
        assert_lk(0, lk_sem_acquire(pool, 3, 0));
        assert_lk(0, lk_sem_release(pool, 3));
        world_redis(w, "FLUSHALL");
        world_close(w, client);
    }
}

/* Without a server, too. */
static void it_ends_without_a_server(struct world *w)
{
    catch_with(0);
    open_pool(w, false, true);
    world_kill_server(w);
    is_interrupted(w, by_wait, false);
    is_interrupted(w, by_waitfor, false);
    world_restart_server(w);
}

/* --- others ---------------------------------------------------------------------------------------------------------- */

static void *shoot(void *arg)
{
    pthread_t *target = arg;
    for (int i = 0; i < 100; i++) {
        pthread_kill(*target, SIGUSR1);
        sleep_ms(3);
    }
    return NULL;
}

/* No other semaphore is, and where a permit is free none waits. */
static void no_other_call_is_ended(struct world *w)
{
    pthread_t self = pthread_self(), shooter;
    catch_with(0);
    for (int i = 0; i < 4; i++) {
        open_pool(w, i % 2 == 1, i >= 2);
        assert_lk(0, lk_sem_trysetpermits(pool, 1));
        if (i < 2)
            assert_lk(0, lk_sem_wait(pool));
        assert_int_equal(0, pthread_create(&shooter, NULL, shoot, &self));
        int64_t began_ms = now_ms();
        while (i < 2 && now_ms() - began_ms < 250)
            assert_lk(ETIMEDOUT, lk_sem_waitfor(pool, 100));
        while (i >= 2 && now_ms() - began_ms < 250) {
            assert_lk(0, lk_sem_wait(pool));
            assert_lk(EAGAIN, lk_sem_trywait(pool));
            assert_lk(0, lk_sem_post(pool));
        }
        assert_int_equal(0, pthread_join(shooter, NULL));
        if (i < 2)
            assert_lk(0, lk_sem_post(pool));
        world_redis(w, "FLUSHALL");
        world_close(w, client);
    }
}

/* --- a grant and a signal at once ------------------------------------------------------------------------------------- */

static pthread_t users[THREADS];
static int running; /* atomic builtins */

static void *use(void *arg)
{
    int *rc = arg;
    for (int i = 0; i < ROUNDS && *rc == 0; i++) {
        int got = lk_sem_acquire(pool, 1 + (unsigned)i % 2, 5000);
        if (got == 0)
            *rc = lk_sem_release(pool, 1 + (unsigned)i % 2);
        else if (got != EINTR)
            *rc = got;
    }
    __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) > 0)
        sleep_ms(1); /* signals may still come for this thread */
    return NULL;
}

/* No permit is lost, none is left with a waiter that gave up. */
static void no_permit_is_lost(struct world *w)
{
    catch_with(0);
    for (int i = 0; i < 2; i++) {
        lk_seminfo_t info = LK_SEMINFO_INIT;
        int codes[THREADS] = { 0 };
        open_pool(w, i == 1, true);
        assert_lk(0, lk_sem_trysetpermits(pool, PERMITS));
        __atomic_store_n(&running, THREADS, __ATOMIC_SEQ_CST);
        for (int k = 0; k < THREADS; k++)
            assert_int_equal(0, pthread_create(&users[k], NULL, use, &codes[k]));
        for (int k = 0; __atomic_load_n(&running, __ATOMIC_SEQ_CST) > 0; k++) {
            pthread_kill(users[k % THREADS], SIGUSR1);
            usleep(200);
        }
        for (int k = 0; k < THREADS; k++) {
            assert_int_equal(0, pthread_join(users[k], NULL));
            assert_lk(0, codes[k]);
        }
        eventually(lk_sem_info(pool, &info) == 0 && info.available == PERMITS && info.held == 0 && info.waiters == 0,
                   5000);
        assert_lk(0, lk_sem_acquire(pool, PERMITS, 0));
        assert_lk(EAGAIN, lk_sem_trywait(pool));
        assert_lk(0, lk_sem_release(pool, PERMITS));
        world_redis(w, "FLUSHALL");
        world_close(w, client);
    }
}

int main(void)
{
    return world_run(a_handler_ends_the_wait, it_ends_without_a_server, no_other_call_is_ended, no_permit_is_lost);
}
