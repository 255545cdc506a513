/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - several locks, and what can go wrong: leases that are lost, holders that died, answers that are lost,
 * clients that are closed, processes that fork, threads that are cancelled
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_mutex_t *a, *b;
static lk_multi_t *s;

static void open_both(struct world *w, const char *options, const lk_mutexattr_t *of_a)
{
    client = world_client(w, options);
    a = world_mutex(w, client, "a", of_a);
    b = world_mutex(w, client, "b", NULL);
    s = world_multi(w, client);
    assert_lk(0, lk_multi_addmutex(s, b));
    assert_lk(0, lk_multi_addmutex(s, a));
}

WORK(lock_all, arg, lk_multi_lockfor(arg, 20000))

/* --- lost -------------------------------------------------------------------------------------------------------------- */

/* Of several that are held one is taken away: it is told by its name, and all are given back. */
static void the_one_that_was_lost_is_named(struct world *w)
{
    int64_t ms;
    open_both(w, "lease=5s", NULL);
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_mutex_forceunlock(world_mutex(w, world_client(w, ""), "b", NULL)));
    assert_lk(ESTALE, lk_multi_check(s));
    assert_non_null(strstr(lk_errortext(), "mutex b"));
    assert_lk(ESTALE, lk_multi_remaining(s, &ms));
    assert_lk(ESTALE, lk_multi_lock(s)); /* a level more of what is lost: nothing is added to the other one */
    assert_int_equal(1, world_holds(w, "a"));
    assert_lk(ESTALE, lk_multi_unlock(s));
    assert_non_null(strstr(lk_errortext(), "mutex b"));
    assert_int_equal(-1, world_holds(w, "a"));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_multi_unlock(s));
}

/* While others are waited for, a lease that is not renewed ends: whoever gets all has all of them. */
static void what_ended_meanwhile_is_taken_anew(struct world *w)
{
    const lk_mutexattr_t brief = { .size = sizeof brief, .fixed = 1, .lease_ms = 1000 };
    struct worker waiter;
    int64_t ms = 0;
    lk_how_t how = LK_HOW_INIT;
    open_both(w, "", &brief);
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "b", NULL);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, lock_and_unlock_all, s);
    eventually(world_queued(w, "b") == 1, 20000);
    eventually(world_holds(w, "a") == -1, 20000); /* lost */
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(0, worker_join(&waiter));
    how.lease_ms = 4000;
    assert_lk(0, lk_multi_lockwith(s, &how));
    assert_lk(0, lk_multi_remaining(s, &ms));
    assert_lk(0, lk_multi_unlock(s));
}

/* --- died -------------------------------------------------------------------------------------------------------------- */

static const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
static const lk_mutexattr_t dies = { .size = sizeof dies, .robust = 1, .lease_ms = 400 }; /* of who is going to */

static int hold_until_killed(struct world *w, void *arg)
{
    open_both(w, "", &dies);
    assert_lk(0, lk_mutex_lock(a));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

static void leave_it_dead(struct world *w)
{
    world_kill(w, world_fork(w, hold_until_killed, world_shared(w, sizeof(struct gate))));
}

static void a_dead_holder_of_one_is_told_with_all_held(struct world *w)
{
    leave_it_dead(w);
    open_both(w, "", &robust);
    assert_lk(EOWNERDEAD, lk_multi_lockfor(s, 20000));
    assert_non_null(strstr(lk_errortext(), "mutex a"));
    assert_lk(EINVAL, lk_mutex_consistent(b));
    assert_lk(0, lk_mutex_consistent(a));
    assert_lk(0, lk_multi_unlock(s));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_multi_unlock(s));
}

/* Where the set is not to be had, the death is news to the next one, and not that somebody left it unrepaired. */
static void who_gives_it_back_on_the_way_keeps_the_news(struct world *w)
{
    leave_it_dead(w);
    open_both(w, "", &robust);
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "b", NULL);
    eventually(world_holds(w, "a") == -1, 20000);
    assert_lk(0, lk_mutex_lock(held));
    assert_lk(EBUSY, lk_multi_trylock(s));
    assert_lk(ETIMEDOUT, lk_multi_lockfor(s, 600));
    assert_lk(0, lk_mutex_unlock(held));
    assert_lk(EOWNERDEAD, lk_multi_lockfor(s, 20000));
    assert_lk(0, lk_mutex_consistent(a));
    assert_lk(0, lk_multi_unlock(s));
}

static void what_is_not_recoverable_leaves_nothing(struct world *w)
{
    leave_it_dead(w);
    open_both(w, "", &robust);
    world_allow(w, "latchkey:robust:mutex:{a}");
    assert_lk(EOWNERDEAD, lk_mutex_lockfor(a, 20000));
    assert_lk(0, lk_mutex_unlock(a));
    assert_lk(ENOTRECOVERABLE, lk_multi_trylock(s));
    assert_lk(ENOTRECOVERABLE, lk_multi_lock(s));
    assert_non_null(strstr(lk_errortext(), "mutex a"));
    assert_int_equal(-1, world_holds(w, "b"));
    assert_lk(0, lk_mutex_forceunlock(a));
    assert_lk(0, lock_and_unlock(a));
}

/* --- unknown ----------------------------------------------------------------------------------------------------------- */

/* An answer that is lost says so, and nothing of it stays. */
static void a_lost_answer_of_one_is_unknown_and_ends(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    client = proxy_client(p, "lease=5s&command_timeout=1s");
    a = world_mutex(w, client, "a", NULL);
    b = world_mutex(w, client, "b", NULL);
    s = world_multi(w, client);
    assert_lk(0, lk_multi_addmutex(s, a));
    assert_lk(0, lk_multi_addmutex(s, b));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_multi_unlock(s));
    proxy_stall(p, PROXY_DOWN);
    assert_lk(EIO, lk_multi_trylock(s));
    assert_between(lk_errorsettles(), 1, 60000);
    proxy_resume(p);
    eventually(world_holds(w, "a") == -1 && world_holds(w, "b") == -1, 20000);
    assert_lk(0, lk_multi_lockfor(s, 20000));
    assert_lk(0, lk_multi_unlock(s));
    world_close(w, s);
    proxy_end(p);
}

/* Also where another one is in the way, which comes first in their order, and by itself would say that nothing is held. */
static void a_lost_answer_behind_one_that_is_held_is_unknown(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    open_both(w, "lease=5s", NULL);
    lk_client_t *away = proxy_client(p, "lease=5s&command_timeout=500ms");
    lk_mutex_t *behind = world_mutex(w, away, "behind", NULL), *held = world_mutex(w, world_client(w, ""), "a", NULL);
    lk_multi_t *both = world_multi(w, away);
    assert_lk(0, lk_multi_addmutex(both, a));
    assert_lk(0, lk_multi_addmutex(both, behind));
    assert_lk(0, lk_multi_lock(both));
    assert_lk(0, lk_multi_unlock(both));
    assert_lk(0, lk_mutex_lock(held));
    assert_lk(EBUSY, lk_multi_trylock(both));
    assert_int_equal(0, lk_errorsettles());
    proxy_once(p, PROXY_DROP_REPLY, 1, "behind");
    assert_lk(EIO, lk_multi_trylock(both));
    assert_says("mutex a");
    assert_between(lk_errorsettles(), 1, 60000);
    eventually(world_holds(w, "behind") == -1, 20000);
    assert_lk(0, lk_mutex_unlock(held));
    assert_lk(0, lk_multi_lockfor(both, 20000));
    assert_lk(0, lk_multi_unlock(both));
}

/* A wait that has time goes on when connections end. */
static void connections_that_end_are_not_noticed(struct world *w)
{
    struct worker waiter;
    open_both(w, "lease=5s", NULL);
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "b", NULL);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, lock_and_unlock_all, s);
    eventually(world_queued(w, "b") == 1, 20000);
    for (int i = 0; i < WORLD_BLOWS; i++)
        world_blow(w, i);
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(0, worker_join(&waiter));
}

/* --- clients, processes, threads ---------------------------------------------------------------------------------------- */

/* What a waiter had of the set goes with its client. */
static void a_close_ends_the_wait(struct world *w)
{
    struct worker waiter;
    lk_multi_t mine;
    lk_client_t *closed = world_open(w, "");
    lk_mutex_t one, two;
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "b", NULL);
    assert_lk(0, lk_mutex_init(&one, closed, "a", NULL));
    assert_lk(0, lk_mutex_init(&two, closed, "b", NULL));
    assert_lk(0, lk_multi_init(&mine));
    assert_lk(0, lk_multi_addmutex(&mine, &one));
    assert_lk(0, lk_multi_addmutex(&mine, &two));
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, lock_all, &mine);
    eventually(world_queued(w, "b") == 1, 20000);
    assert_lk(0, lk_client_close(closed));
    assert_int_equal(ECANCELED, worker_join(&waiter));
    assert_int_equal(-1, world_holds(w, "a"));
    assert_lk(ECANCELED, lk_multi_trylock(&mine));
    assert_lk(ECANCELED, lk_multi_addmutex(&mine, &two));
    assert_lk(0, lk_multi_destroy(&mine));
    assert_lk(0, lk_mutex_destroy(&one));
    assert_lk(0, lk_mutex_destroy(&two));
    assert_lk(0, lk_mutex_unlock(held));
}

static int child_of_a_holder(struct world *w, void *arg)
{
    int64_t ms;
    (void)arg;
    assert_lk(EPERM, lk_multi_unlock(s));
    assert_lk(ECANCELED, lk_multi_trylock(s));
    assert_lk(ECANCELED, lk_multi_remaining(s, &ms));
    assert_lk(0, lk_multi_destroy(s));
    world_ready(w);
    return 0;
}

static void a_child_holds_nothing_of_its_parent(struct world *w)
{
    if (THREAD_SANITIZED)
        skip();
    open_both(w, "", NULL);
    assert_lk(0, lk_multi_lock(s));
    assert_int_equal(0, world_wait(w, world_fork(w, child_of_a_holder, NULL)));
    assert_lk(0, lk_multi_check(s));
    assert_lk(0, lk_multi_unlock(s));
}

/* The default client's work in both processes; a set that was made before the fork is of use to both. */
static int child_with_a_default_client(struct world *w, void *arg)
{
    world_ready(w);
    assert_lk(EPERM, lk_multi_unlock(arg));
    assert_lk(EBUSY, lk_multi_trylock(arg));
    assert_lk(0, lk_multi_lockfor(arg, 20000));
    assert_lk(0, lk_multi_unlock(arg));
    close_default();
    return 0;
}

static void a_set_of_the_default_client_is_of_use_to_a_child(struct world *w)
{
    static lk_mutex_t one = LK_MUTEX_INITIALIZER("a"), two = LK_MUTEX_INITIALIZER("b");
    lk_multi_t set;
    if (THREAD_SANITIZED)
        skip();
    use_default(world_url(w, "lease=5s"));
    assert_lk(0, lk_multi_init(&set));
    assert_lk(0, lk_multi_addmutex(&set, &two));
    assert_lk(0, lk_multi_addmutex(&set, &one));
    assert_lk(0, lk_multi_lock(&set));
    pid_t child = world_fork(w, child_with_a_default_client, &set);
    eventually(world_queued(w, "a") == 1, 20000);
    assert_lk(0, lk_multi_unlock(&set));
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, lk_multi_destroy(&set));
    assert_lk(0, lk_mutex_destroy(&one));
    assert_lk(0, lk_mutex_destroy(&two));
    close_default();
}

struct cancelling {
    lk_multi_t *set;
    int code, unlocked;
};

static void give_back(void *arg)
{
    struct cancelling *told = arg;
    told->unlocked = lk_multi_unlock(told->set);
}

static void *lock_until_cancelled(void *arg)
{
    struct cancelling *told = arg;
    told->code = lk_multi_lockfor(told->set, 20000);
    pthread_cleanup_push(give_back, told);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

/* As lk_mutex_lock() it is no cancellation point: the thread gets all, and its handlers give them back. */
static void a_cancelled_thread_gives_all_back(struct world *w)
{
    struct cancelling told = { .code = -1, .unlocked = -1 };
    pthread_t thread;
    void *end;
    open_both(w, "", NULL);
    told.set = s;
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "b", NULL);
    assert_lk(0, lk_mutex_lock(held));
    assert_int_equal(0, pthread_create(&thread, NULL, lock_until_cancelled, &told));
    eventually(world_queued(w, "b") == 1, 20000);
    assert_int_equal(0, pthread_cancel(thread));
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(0, pthread_join(thread, &end));
    assert_true(end == PTHREAD_CANCELED && told.code == 0 && told.unlocked == 0);
    assert_true(world_holds(w, "a") == -1 && world_holds(w, "b") == -1);
}

int main(void)
{
    return world_run(the_one_that_was_lost_is_named, what_ended_meanwhile_is_taken_anew,
                     a_dead_holder_of_one_is_told_with_all_held, who_gives_it_back_on_the_way_keeps_the_news,
                     what_is_not_recoverable_leaves_nothing, a_lost_answer_of_one_is_unknown_and_ends,
                     a_lost_answer_behind_one_that_is_held_is_unknown, connections_that_end_are_not_noticed,
                     a_close_ends_the_wait, a_child_holds_nothing_of_its_parent,
                     a_set_of_the_default_client_is_of_use_to_a_child, a_cancelled_thread_gives_all_back);
}
