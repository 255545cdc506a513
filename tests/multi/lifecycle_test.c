/* SPDX-License-Identifier: MIT */
/*
 * lifecycle_test.c - several locks in programs that are unkind to them: hundreds of threads at their first use, forks in the
 * middle of a lock, a close with threads inside, no descriptors, a thread that stands still with a part of them
 *
 * labels: threads memory
 */
#include "descriptors.h"
#include "still.h"
#include "world.h"

enum { MANY = SANITIZED ? 200 : 500, INSIDE = 32, WITHIN_MS = 30000 };

static lk_mutex_t one = LK_MUTEX_INITIALIZER("a"), two = LK_MUTEX_INITIALIZER("b");

static void end_default(void)
{
    assert_lk(0, lk_mutex_destroy(&one));
    assert_lk(0, lk_mutex_destroy(&two));
    close_default();
}

static int gather(lk_multi_t *s, lk_mutex_t *first, lk_mutex_t *second)
{
    int rc = lk_multi_init(s);
    if (rc == 0 && (rc = lk_multi_addmutex(s, first)) == 0)
        rc = lk_multi_addmutex(s, second);
    return rc;
}

static int use_first(int index, void *arg)
{
    int *inside = arg, rc;
    lk_multi_t s;
    rc = index % 2 ? gather(&s, &one, &two) : gather(&s, &two, &one);
    if (rc == 0 && (rc = lk_multi_lockfor(&s, WITHIN_MS)) == 0) {
        int met = (*inside)++; /* guarded by both */
        (*inside)--;
        rc = met != 0 ? -1 : lk_multi_unlock(&s);
    }
    int destroyed = lk_multi_destroy(&s);
    return rc != 0 ? rc : destroyed;
}

static void hundreds_of_threads_gather_the_same(struct world *w)
{
    int inside = 0;
    use_default(world_url(w, "connect_timeout=10s&command_timeout=9s"));
    assert_lk(0, run_threads(MANY, use_first, &inside));
    end_default();
}

struct loop {
    lk_multi_t s;
    struct gate stop;
};

static int lock_on_and_on(void *arg)
{
    struct loop *loop = arg;
    int rc = 0;
    while (rc == 0 && !gate_is_open(&loop->stop))
        rc = lock_and_unlock_all(&loop->s);
    return rc;
}

static int use_beside_the_parent(struct world *w, void *arg)
{
    struct loop *loop = arg;
    world_ready(w);
    assert_lk(EPERM, lk_multi_unlock(&loop->s));
    assert_lk(0, lock_and_unlock_all(&loop->s));
    assert_lk(0, lk_multi_destroy(&loop->s));
    close_default();
    return 0;
}

static void forks_in_the_middle_of_locks_disturb_nobody(struct world *w)
{
    struct worker worker;
    struct loop loop = { .stop = { 0 } };
    if (SANITIZED)
        skip(); /* their own locks may be taken at that moment */
    use_default(world_url(w, "connect_timeout=10s&command_timeout=9s"));
    assert_lk(0, gather(&loop.s, &one, &two));
    worker_start(&worker, lock_on_and_on, &loop);
    for (int i = 0; i < 8; i++)
        assert_int_equal(0, world_wait(w, world_fork(w, use_beside_the_parent, &loop)));
    gate_open(&loop.stop);
    assert_lk(0, worker_join(&worker));
    assert_lk(0, lk_multi_destroy(&loop.s));
    end_default();
}

struct crowd {
    lk_mutex_t a, b;
    int turns; /* atomic */
};

static int lock_until_closed(int index, void *arg)
{
    struct crowd *crowd = arg;
    lk_multi_t s;
    int rc = index % 2 ? gather(&s, &crowd->a, &crowd->b) : gather(&s, &crowd->b, &crowd->a);
    while (rc == 0 || rc == EBUSY) {
        rc = index % 4 == 0 ? lk_multi_trylock(&s) : lk_multi_lockfor(&s, WITHIN_MS);
        if (rc == 0)
            rc = lk_multi_unlock(&s);
        __atomic_add_fetch(&crowd->turns, rc == 0, __ATOMIC_SEQ_CST);
    }
    bool told = rc == ECANCELED || rc == EPERM || rc == ESTALE || rc == EIO;
    return lk_multi_destroy(&s) == 0 && told ? 0 : rc;
}

WORK(lock_all_until_closed, arg, run_threads(INSIDE, lock_until_closed, arg))

static void a_close_ends_all_who_are_inside(struct world *w)
{
    for (int i = 0; i < 3; i++) {
        struct crowd crowd = { .turns = 0 };
        struct worker worker;
        lk_client_t *client = world_open(w, "lease=5s");
        assert_lk(0, lk_mutex_init(&crowd.a, client, "a", NULL));
        assert_lk(0, lk_mutex_init(&crowd.b, client, "b", NULL));
        worker_start(&worker, lock_all_until_closed, &crowd);
        eventually(__atomic_load_n(&crowd.turns, __ATOMIC_SEQ_CST) > 20, WITHIN_MS);
        assert_lk(0, lk_client_close(client));
        assert_lk(0, worker_join(&worker));
        assert_int_equal(-1, world_holds(w, "a"));
        assert_int_equal(-1, world_holds(w, "b"));
        assert_int_equal(0, world_queued(w, "a") + world_queued(w, "b"));
        assert_lk(0, lk_mutex_destroy(&crowd.a));
        assert_lk(0, lk_mutex_destroy(&crowd.b));
    }
}

/* Both are connected, and go on; a wait finds out by asking. */
static void no_descriptor_is_needed(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&poll=200ms"), *rival = world_client(w, "lease=20s");
    lk_mutex_t *a = world_mutex(w, client, "a", NULL), *b = world_mutex(w, client, "b", NULL);
    lk_mutex_t *theirs = world_mutex(w, rival, "b", NULL);
    lk_multi_t *s = world_multi(w, client);
    assert_lk(0, lk_multi_addmutex(s, a));
    assert_lk(0, lk_multi_addmutex(s, b));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_mutex_extend(a, 20000)); /* the watchdog is connected */
    assert_lk(0, lk_multi_unlock(s));
    assert_lk(0, lk_mutex_lock(theirs));
    assert_lk(0, lk_mutex_extend(theirs, 20000));
    descriptors_more(0);
    int busy = lk_multi_trylock(s), late = lk_multi_lockfor(s, 300), given = lk_mutex_unlock(theirs);
    int held = lk_multi_lockfor(s, WITHIN_MS), unlocked = lk_multi_unlock(s);
    descriptors_lift();
    assert_int_equal(EBUSY, busy);
    assert_int_equal(ETIMEDOUT, late);
    assert_true(given == 0 && held == 0 && unlocked == 0);
}

/* --- a thread that stands still ------------------------------------------------------------------------------------------ */

/* It has the first and waits for the second: others of that client go on, and what it has is renewed for it. */
static void one_that_stands_still_holds_up_nobody(struct world *w)
{
    const lk_mutexattr_t brief = { .size = sizeof brief, .lease_ms = 2000 };
    lk_client_t *client = world_client(w, "lease=20s&command_timeout=5s"), *rival = world_client(w, "lease=20s");
    lk_mutex_t *a = world_mutex(w, client, "a", &brief), *b = world_mutex(w, client, "b", NULL);
    lk_mutex_t *c = world_mutex(w, client, "c", NULL), *d = world_mutex(w, client, "d", NULL);
    lk_mutex_t *theirs = world_mutex(w, rival, "b", NULL);
    lk_multi_t *s = world_multi(w, client), *others = world_multi(w, client);
    struct worker waiter;
    assert_lk(0, lk_multi_addmutex(s, a));
    assert_lk(0, lk_multi_addmutex(s, b));
    assert_lk(0, lk_multi_addmutex(others, c));
    assert_lk(0, lk_multi_addmutex(others, d));
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiter, lock_and_unlock_all, s);
    eventually(world_queued(w, "b") == 1 && world_holds(w, "a") == 1, WITHIN_MS);
    still_begin(&waiter);
    for (int64_t until_ms = now_ms() + 2500; now_ms() < until_ms; sleep_ms(50))
        assert_lk(0, lock_and_unlock_all(others));
    assert_int_equal(1, world_holds(w, "a")); /* longer than its lease */
    assert_lk(0, lk_mutex_unlock(theirs));
    still_end();
    assert_lk(0, worker_join(&waiter));
}

int main(void)
{
    return world_run(hundreds_of_threads_gather_the_same, forks_in_the_middle_of_locks_disturb_nobody,
                     a_close_ends_all_who_are_inside, no_descriptor_is_needed, one_that_stands_still_holds_up_nobody);
}
