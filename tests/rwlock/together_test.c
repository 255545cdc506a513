/* SPDX-License-Identifier: MIT */
/*
 * together_test.c - readers of a client that come in a row have one place in the queue: one of them asks, and all come in
 *
 * labels: threads memory noise
 * simulated: except tsan
 * seconds: 33
 */
#include "proxy.h"

#include <signal.h>

enum { READERS = SANITIZED ? 30 : 150, LONG_MS = 20000 };

static lk_client_t *client;
static lk_rwlock_t *near, *far; /* one name, two clients; those who read together do so by `near` */

struct crowd {
    struct worker workers[READERS];
    struct gate leave;
    int64_t limit_ms;
    int coming, inside; /* atomic builtins */
};

static struct crowd crowd;

static int read_with_others(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&crowd.coming, 1, __ATOMIC_SEQ_CST);
    int rc = lk_rwlock_rdlockfor(near, crowd.limit_ms);
    if (rc != 0)
        return rc;
    __atomic_add_fetch(&crowd.inside, 1, __ATOMIC_SEQ_CST);
    gate_pass(&crowd.leave);
    return lk_rwlock_unlock(near);
}

static void open_by(struct world *w, const char *options, int prefer, int robust)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .prefer = prefer, .robust = robust };
    client = world_client(w, options);
    near = world_rwlock(w, client, "config", &attr);
    far = world_rwlock(w, world_client(w, "lease=20s&command_timeout=5s"), "config", &attr);
    if (robust != 0)
        world_allow(w, "latchkey:robust:*");
}

static void open_both(struct world *w, const char *options)
{
    open_by(w, options, LK_RWLOCK_PREFER_FAIR, 0);
}

/* All of them wait; each has asked once. */
static void gather(struct world *w, int64_t limit_ms)
{
    crowd = (struct crowd){ .limit_ms = limit_ms };
    int64_t asks = world_commands(w, "evalsha");
    for (int i = 0; i < READERS; i++)
        worker_start(&crowd.workers[i], read_with_others, NULL);
    eventually(world_commands(w, "evalsha") >= asks + READERS, 20000);
    for (int looks = 0; looks < 100; looks++) { /* among these asks are others of the one that asks for all */
        asks = world_commands(w, "evalsha");
        sleep_ms(100);
        if (world_commands(w, "evalsha") <= asks + 2)
            break;
    }
}

static int inside(void)
{
    return __atomic_load_n(&crowd.inside, __ATOMIC_SEQ_CST);
}

static void all_leave(void)
{
    gate_open(&crowd.leave);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(0, worker_join(&crowd.workers[i]));
}

/* They cost the server what one waiter does, and all are in soon after one of them is. */
static void they_wait_as_one(struct world *w)
{
    for (int kind = 0; kind < 5; kind++) {
        static const int prefer[] = { LK_RWLOCK_PREFER_FAIR, LK_RWLOCK_PREFER_READER, LK_RWLOCK_PREFER_WRITER,
                                      LK_RWLOCK_PREFER_FAIR, LK_RWLOCK_PREFER_PHASE_FAIR };
        open_by(w, "lease=20s&poll=500ms", prefer[kind], kind == 3);
        assert_lk(0, lk_rwlock_wrlock(far));
        gather(w, LONG_MS);
        assert_int_equal(1, world_rwqueued(w, "config"));
        int64_t began_ms = now_ms(), before = world_commands(w, "evalsha");
        sleep_ms(2000);
        int64_t asks = world_commands(w, "evalsha") - before;
        assert_between(asks, 1, 8 * (now_ms() - began_ms) / 2000);
        assert_lk(0, lk_rwlock_unlock(far));
        eventually(inside() == READERS, 5000);
        all_leave();
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

VISIT(write_briefly, rw, lk_rwlock_wrlock(rw), lk_rwlock_unlock(rw))
VISIT(read_late, arg, lk_rwlock_rdlock(near), lk_rwlock_unlock(near))

/* A writer that came behind them waits for all of them, and the readers that came behind that writer for it. */
static void a_writer_behind_them_comes_after_all(struct world *w)
{
    struct worker writer, late;
    open_both(w, "lease=20s&poll=5s");
    assert_lk(0, lk_rwlock_wrlock(far));
    gather(w, LONG_MS);
    worker_start(&writer, write_briefly, near);
    eventually(world_rwqueued(w, "config") == 2, 5000);
    worker_start(&late, read_late, NULL);
    eventually(world_rwqueued(w, "config") == 3, 5000);
    assert_lk(0, lk_rwlock_unlock(far));
    eventually(inside() == READERS, 5000);
    assert_int_equal(2, world_rwqueued(w, "config"));
    all_leave();
    assert_int_equal(0, worker_join(&writer));
    assert_int_equal(0, worker_join(&late));
}

/* Those whose time is over leave the others where they are, the one that asks for all of them as well. */
static int read_for_a_time(int index, void *arg)
{
    int64_t limit_ms = index % 10 == 9 ? LONG_MS : 200 + index % 10 * 50, began_ms = now_ms();
    (void)arg;
    int rc = lk_rwlock_rdlockfor(near, limit_ms);
    if (rc == 0)
        return lk_rwlock_unlock(near);
    return rc == ETIMEDOUT && now_ms() - began_ms >= limit_ms - 1 ? 0 : rc;
}

WORK(read_for_times, arg, run_threads(READERS, read_for_a_time, arg))

static bool a_reader_is_first(struct world *w)
{
    return world_int(w, "EVAL %s 2 latchkey:queue:readers:{config} latchkey:queue:writers:{config}",
                     "local function first(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or 'inf') end "
                     "return first(KEYS[1]) < first(KEYS[2]) and 1 or 0") == 1;
}

/* One place for those who are left, behind it the writer, and perhaps those who came late. */
static void each_has_its_own_time(struct world *w)
{
    struct worker readers, writer;
    open_both(w, "lease=20s&poll=5s");
    assert_lk(0, lk_rwlock_wrlock(far));
    worker_start(&readers, read_for_times, NULL);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    sleep_ms(300);
    worker_start(&writer, write_briefly, far);
    sleep_ms(900);
    eventually(world_rwqueued(w, "config") >= 2 && world_rwqueued(w, "config") <= 3 && a_reader_is_first(w), 4000);
    assert_lk(0, lk_rwlock_unlock(far));
    assert_int_equal(0, worker_join(&readers));
    assert_int_equal(0, worker_join(&writer));
    assert_int_equal(0, world_rwqueued(w, "config"));
}

/* The message with the grant is lost: the poll of the one is enough for all. */
static void without_messages_one_poll_lets_in_all(struct world *w)
{
    open_both(w, "lease=20s&poll=300ms&pubsub=no");
    assert_lk(0, lk_rwlock_wrlock(far));
    gather(w, LONG_MS);
    assert_int_equal(1, world_rwqueued(w, "config"));
    assert_lk(0, lk_rwlock_unlock(far));
    eventually(inside() == READERS, 5000);
    all_leave();
}

/* A cut, whoever asks at that moment. */
static void cuts_lose_nobody(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    const lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    client = proxy_client(p, "lease=20s&poll=300ms");
    near = world_rwlock(w, client, "config", &attr);
    far = world_rwlock(w, world_client(w, "lease=20s"), "config", &attr);
    assert_lk(0, lk_rwlock_wrlock(far));
    gather(w, LONG_MS);
    for (int i = 0; i < 5; i++) {
        proxy_cut(p);
        sleep_ms(50);
    }
    proxy_refuse(p, true);
    proxy_cut(p);
    assert_lk(0, lk_rwlock_unlock(far));
    sleep_ms(300);
    proxy_refuse(p, false);
    eventually(inside() == READERS, 10000);
    all_leave();
}

/* The server forgets its queue, and all are let in all the same, by the poll of the one. */
static void a_lost_queue_is_found_again(struct world *w)
{
    open_both(w, "lease=20s&poll=300ms");
    assert_lk(0, lk_rwlock_wrlock(far));
    gather(w, LONG_MS);
    world_redis(w, "DEL latchkey:queue:readers:{config} latchkey:queue:writers:{config} latchkey:alive:rw:{config}");
    assert_lk(0, lk_rwlock_unlock(far));
    eventually(inside() == READERS, 5000);
    all_leave();
}

/* Clients close while their readers wait. */
static void a_closing_client_ends_all(struct world *w)
{
    open_both(w, "lease=20s&poll=5s");
    assert_lk(0, lk_rwlock_wrlock(far));
    gather(w, LONG_MS);
    assert_lk(0, close_by_hand(w, client));
    for (int i = 0; i < READERS; i++)
        assert_int_equal(ECANCELED, worker_join(&crowd.workers[i]));
    eventually(world_rwqueued(w, "config") == 0, 5000);
    assert_lk(0, lk_rwlock_unlock(far));
}

/* Of a lock that nobody can repair all of them are told. */
static void all_hear_that_it_is_not_recoverable(struct world *w)
{
    open_by(w, "lease=20s&poll=5s", LK_RWLOCK_PREFER_FAIR, 1);
    assert_lk(0, lk_rwlock_wrlock(far));
    world_redis(w, "SET latchkey:robust:rw:{config} x");
    gather(w, LONG_MS);
    world_redis(w, "DEL latchkey:rw:{config}");
    world_redis(w, "SET latchkey:robust:rw:{config} unrecoverable");
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    assert_lk(0, lk_rwlock_info(far, &info));
    for (int i = 0; i < READERS; i++)
        assert_int_equal(ENOTRECOVERABLE, worker_join(&crowd.workers[i]));
    assert_lk(ESTALE, lk_rwlock_unlock(far));
    assert_lk(0, lk_rwlock_forceunlock(far));
}

/* The one that asks for all hangs in a signal handler ... */
static int hang_ms;

static void hang(int number)
{
    (void)number;
    sleep_ms(hang_ms);
}

static void hang_the_first(struct world *w, const char *options, int ms)
{
    struct sigaction slow = { .sa_handler = hang }, before;
    hang_ms = ms;
    open_both(w, options);
    assert_lk(0, lk_rwlock_wrlock(far));
    crowd = (struct crowd){ .limit_ms = 4 * LONG_MS };
    worker_start(&crowd.workers[0], read_with_others, NULL);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    for (int i = 1; i < READERS; i++)
        worker_start(&crowd.workers[i], read_with_others, NULL);
    sleep_ms(500);
    assert_int_equal(0, sigaction(SIGUSR1, &slow, &before));
    threads_rest();
    assert_int_equal(0, pthread_kill(crowd.workers[0].thread, SIGUSR1));
    sleep_ms(200);
    assert_lk(0, lk_rwlock_unlock(far));
    eventually(inside() >= READERS - 1, ms - 700);
    all_leave();
    assert_int_equal(0, sigaction(SIGUSR1, &before, NULL));
}

/* ... and the others are let in by the message that it does not take. */
static void a_message_for_one_that_hangs_lets_in_the_others(struct world *w)
{
    hang_the_first(w, "lease=30s&poll=300ms", 3500);
}

/* ... and another one notices, and asks in its place: after a liveness of five seconds, and half of one more at most. */
static void one_that_hangs_is_succeeded(struct world *w)
{
    hang_the_first(w, "lease=30s&poll=300ms&pubsub=no", 9500);
}

int main(void)
{
    return world_run(they_wait_as_one, a_writer_behind_them_comes_after_all, each_has_its_own_time,
                     without_messages_one_poll_lets_in_all, cuts_lose_nobody, a_lost_queue_is_found_again,
                     a_closing_client_ends_all, all_hear_that_it_is_not_recoverable,
                     a_message_for_one_that_hangs_lets_in_the_others, one_that_hangs_is_succeeded);
}
