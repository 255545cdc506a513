/* SPDX-License-Identifier: MIT */
/*
 * rounds_test.c - what many wait for and all may have is handed out in rounds: a script serves so many of them, and
 * tells the next one to ask, whose ask goes on
 *
 * Polls are so far apart that none helps. They come one by one from two clients in turn, as readers of one client that
 * come in a row have one place.
 *
 * labels: threads
 * simulated: yes
 */
#include "world.h"

enum { MANY = 130, ROUND = 48, WITHIN_MS = 3000 };

struct thing {
    const char *name, *queue;
    void *(*make)(struct world *w, lk_client_t *client);
    void (*withhold)(void *object);
    void (*let_in)(void *object);
    int (*take)(void *object), (*give)(void *object), (*try)(void *object);
    int refused; /* what a try says */
    int64_t (*taken)(struct world *w);
};

struct crowd {
    const struct thing *thing;
    struct gate start, all;
    int turn, inside; /* atomic builtins */
    void *objects[2];
};

/* --- a read-write lock that is given back by its writer -------------------------------------------------------------- */

static void *make_lock(struct world *w, lk_client_t *client)
{
    return world_rwlock(w, client, "thing", NULL);
}

static void *make_readers_first(struct world *w, lk_client_t *client)
{
    lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    attr.prefer = LK_RWLOCK_PREFER_READER;
    return world_rwlock(w, client, "thing", &attr);
}

static void *make_phase_fair(struct world *w, lk_client_t *client)
{
    lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    attr.prefer = LK_RWLOCK_PREFER_PHASE_FAIR;
    return world_rwlock(w, client, "thing", &attr);
}

static void write_lock(void *object)
{
    assert_lk(0, lk_rwlock_wrlock(object));
}

static void end_writing(void *object)
{
    assert_lk(0, lk_rwlock_unlock(object));
}

static int read_lock(void *object)
{
    return lk_rwlock_rdlock(object);
}

static int try_to_read(void *object)
{
    return lk_rwlock_tryrdlock(object);
}

static int end_reading(void *object)
{
    return lk_rwlock_unlock(object);
}

static int64_t readers(struct world *w)
{
    return world_rwholds(w, "thing");
}

/* --- permits that are given back at once ----------------------------------------------------------------------------- */

static void *make_permits(struct world *w, lk_client_t *client)
{
    return world_sem(w, client, "thing", MANY, NULL);
}

static void *make_leased(struct world *w, lk_client_t *client)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = 1;
    return world_sem(w, client, "thing", MANY, &attr);
}

static void take_all(void *object)
{
    assert_lk(0, lk_sem_acquire(object, MANY, 0));
}

static void give_all(void *object)
{
    assert_lk(0, lk_sem_release(object, MANY));
}

static int take_one(void *object)
{
    return lk_sem_wait(object);
}

static int try_one(void *object)
{
    return lk_sem_trywait(object);
}

static int give_one(void *object)
{
    return lk_sem_post(object);
}

static int64_t permits(struct world *w)
{
    return MANY - world_int(w, "GET thing");
}

static int64_t leased_permits(struct world *w)
{
    return world_int(w, "ZCOUNT latchkey:permits:{thing} 0 +inf");
}

static const struct thing things[] = {
    { "readers", "readers", make_lock, write_lock, end_writing, read_lock, end_reading, try_to_read, EBUSY, readers },
    { "preferred readers", "readers", make_readers_first, write_lock, end_writing, read_lock, end_reading, try_to_read,
      EBUSY, readers },
    { "phase-fair readers", "readers", make_phase_fair, write_lock, end_writing, read_lock, end_reading, try_to_read, EBUSY,
      readers },
    { "permits", "sem", make_permits, take_all, give_all, take_one, give_one, try_one, EAGAIN, permits },
    { "leased permits", "permits", make_leased, take_all, give_all, take_one, give_one, try_one, EAGAIN,
      leased_permits },
};

/* --- many that wait for it ------------------------------------------------------------------------------------------ */

/* Nobody gives anything back before all have it. */
static int take_and_give(int index, void *arg)
{
    struct crowd *crowd = arg;
    void *object = crowd->objects[index % 2];
    while (__atomic_load_n(&crowd->turn, __ATOMIC_SEQ_CST) < index)
        sleep_ms(2);
    int rc = crowd->thing->take(object);
    if (rc != 0)
        return rc;
    if (__atomic_add_fetch(&crowd->inside, 1, __ATOMIC_SEQ_CST) == MANY)
        gate_open(&crowd->all);
    gate_pass(&crowd->all);
    return crowd->thing->give(object);
}

static int wait_in_crowd(struct world *w, void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < 2; i++)
        crowd->objects[i] = crowd->thing->make(w, world_client(w, "lease=60s&poll=10s"));
    world_ready(w);
    gate_pass(&crowd->start);
    int failed = run_threads(MANY, take_and_give, crowd);
    world_close(w, NULL);
    return failed;
}

static int64_t queued(struct world *w, const struct thing *thing)
{
    return world_int(w, "ZCARD latchkey:queue:%s:{thing}", thing->queue);
}

static void hand_out(struct world *w, const struct thing *thing)
{
    static const char *const left[] = { "thing", "latchkey:*:{thing}" };
    struct crowd *crowd = world_shared(w, sizeof *crowd);
    *crowd = (struct crowd){ .thing = thing };
    print_message("%s\n", thing->name);
    pid_t waiting = world_fork(w, wait_in_crowd, crowd);
    void *object = thing->make(w, world_client(w, "lease=60s"));
    for (int i = 0; i < 2; i++)
        world_allow(w, left[i]);
    thing->withhold(object);
    gate_open(&crowd->start);
    for (int i = 0; i < MANY; i++) {
        __atomic_store_n(&crowd->turn, i, __ATOMIC_SEQ_CST);
        eventually(queued(w, thing) == i + 1, 5000);
    }
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 2, 10000);
    sleep_ms(300); /* what asks the subscription caused are answered */
    world_stop(waiting);
    for (int i = 0; i < 3; i++) /* then what they had asked is answered, too: such an ask would go on with the round */
        assert_int_equal(MANY, queued(w, thing));
    thing->let_in(object);
    assert_int_equal(ROUND, thing->taken(w)); /* of those who stand still nobody goes on */
    assert_int_equal(MANY - ROUND, queued(w, thing));
    assert_lk(thing->refused, thing->try(object)); /* it goes on, and takes nothing from those who are left */
    assert_int_equal(2 * ROUND, thing->taken(w));
    world_cont(waiting);
    int64_t began_ms = now_ms();
    eventually(thing->taken(w) == MANY || __atomic_load_n(&crowd->inside, __ATOMIC_SEQ_CST) == MANY, 20000);
    assert_between(now_ms() - began_ms, 0, WITHIN_MS + SLACK_MS);
    assert_int_equal(0, world_wait(w, waiting));
    assert_int_equal(0, queued(w, thing));
    world_close(w, NULL);
    world_redis(w, "FLUSHALL");
}

static void each_script_serves_some_and_the_next_one_goes_on(struct world *w)
{
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        hand_out(w, &things[i]);
}

/* Waiters that receive no messages cannot be told to go on: each asks soon by itself, and keeps its place until then. */
static void a_quiet_crowd_keeps_its_places(struct world *w)
{
    enum { QUIET = 60 };
    lk_sem_t *sem = world_sem(w, world_client(w, ""), "thing", 0, NULL);
    world_redis(w, "EVAL %s 2 latchkey:queue:sem:{thing} latchkey:alive:sem:{thing} %d",
                "local now = redis.call('TIME')[1] * 1000 for i = 1, ARGV[1] do local client = string.format('%032x', i) "
                "redis.call('ZADD', KEYS[1], i, client .. ':s1x0:1:1') "
                "redis.call('HSET', KEYS[2], client, string.format('%.0f 5000 300 1', now + 5000)) end "
                "redis.call('PEXPIRE', KEYS[1], 60000) redis.call('PEXPIRE', KEYS[2], 60000)",
                QUIET);
    assert_lk(0, lk_sem_release(sem, QUIET));
    assert_int_equal(ROUND, world_int(w, "ZCARD latchkey:claims:{thing}"));
    assert_int_equal(QUIET - ROUND, world_int(w, "ZCARD latchkey:queue:sem:{thing}"));
    assert_int_equal(QUIET, world_int(w, "HLEN latchkey:alive:sem:{thing}"));
    world_allow(w, "*"); /* nobody confirms */
}

int main(void)
{
    return world_run(a_quiet_crowd_keeps_its_places, each_script_serves_some_and_the_next_one_goes_on);
}
