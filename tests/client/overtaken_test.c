/* SPDX-License-Identifier: MIT */
/*
 * overtaken_test.c - requests on bare numbers that pass each other are told so, and each counts once
 *
 * The server remembers of each slot its last request. A thread may be stopped anywhere, also between taking
 * its slot and drawing its number, and a record may be of a later request than it should: none of that may
 * have a request answered with the result of another.
 *
 * labels: threads memory noise
 */
#include "object/idempotent.h"
#include "latch/scripts.h"
#include "rights.h"
#include "semaphore/scripts.h"
#include "world.h"

#include <dlfcn.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- mutexes that are slow to take ------------------------------------------------------------------------- */

static _Atomic(pthread_mutex_t *) watched;
static struct gate gate, there;
static __thread bool held_back; /* before this thread takes `watched` next it is `there`, and waits at the gate */
static __thread unsigned shaky; /* a generator's state; 0: this thread is not delayed at random */

static void delay(void)
{
    if (held_back) {
        held_back = false;
        gate_open(&there);
        gate_pass(&gate);
    }
    if (shaky != 0) {
        shaky = shaky * 1103515245 + 12345;
        if (shaky >> 16 & 4)
            nanosleep(&(struct timespec){ .tv_nsec = shaky >> 16 & 3 ? 50000 : 300000 }, NULL);
    }
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    int (*lock)(pthread_mutex_t *) = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (lock == NULL) {
        *(void **)&lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        __atomic_store_n(&real, lock, __ATOMIC_RELAXED);
    }
    if (mutex == watched)
        delay();
    return lock(mutex);
}

static void watch(void *impl)
{
    gate = there = (struct gate){ 0 };
    watched = &((struct lk__binding *)impl)->object->mu.native;
}

/* --- what is tried ------------------------------------------------------------------------------------------- */

static lk_client_t *client;
static lk_sem_t *pool, *leased;
static lk_latch_t *latch;

static void begin(struct world *w)
{
    static const lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    world_allow(w, "*pool*");
    world_allow(w, "*latch*");
    client = world_client(w, "command_timeout=5s");
    pool = world_sem(w, client, "pool", 10, NULL);
    leased = world_sem(w, client, "leased:pool", 10, &attr);
    latch = world_latch(w, client, "latch");
}

static int post(void *arg)
{
    (void)arg;
    held_back = true;
    return lk_sem_post(pool);
}

static int count_down(void *arg)
{
    (void)arg;
    held_back = true;
    return lk_latch_countdown(latch);
}

/* One thread stands still before it has its slot, another one overtakes it: neither needs to ask twice. */
static void a_number_is_drawn_with_its_slot(struct world *w)
{
    struct worker worker;
    begin(w);
    assert_lk(0, lk_sem_post(pool));
    watch(pool->lk_impl);
    int64_t calls = world_commands(w, "evalsha");
    worker_start(&worker, post, NULL);
    gate_pass(&there);
    assert_lk(0, lk_sem_post(pool));
    gate_open(&gate);
    assert_int_equal(0, worker_join(&worker));
    assert_int_equal(13, world_int(w, "GET pool"));
    assert_int_equal(calls + 2, world_commands(w, "evalsha"));

    assert_lk(0, lk_latch_trysetcount(latch, 3));
    watch(latch->lk_impl);
    worker_start(&worker, count_down, NULL);
    gate_pass(&there);
    assert_lk(0, lk_latch_countdown(latch));
    gate_open(&gate);
    assert_int_equal(0, worker_join(&worker));
    assert_int_equal(1, world_int(w, "GET latch"));
}

enum { THREADS = 8, ROUNDS = SANITIZED ? 60 : 150 };

static int post_and_count(int index, void *arg)
{
    int rc = 0;
    (void)arg;
    shaky = 77 + (unsigned)index;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = lk_sem_post(pool);
        if (rc == 0 && i % 3 == 0)
            rc = lk_sem_acquire(pool, 1, 20000);
    }
    shaky = 0;
    return rc;
}

static int count_and_count(int index, void *arg)
{
    int rc = 0;
    (void)arg;
    shaky = 99 + (unsigned)index;
    for (int i = 0; i < ROUNDS && rc == 0; i++)
        rc = lk_latch_countdown(latch);
    shaky = 0;
    return rc;
}

/* As above by chance, many times: whatever was answered 0 was done. */
static void what_was_answered_was_done(struct world *w)
{
    begin(w);
    assert_lk(0, lk_sem_post(pool));
    watch(pool->lk_impl);
    assert_int_equal(0, run_threads(THREADS, post_and_count, NULL));
    assert_int_equal(11 + THREADS * (ROUNDS - (ROUNDS + 2) / 3), world_int(w, "GET pool"));
    assert_lk(0, lk_latch_trysetcount(latch, THREADS * ROUNDS + 1));
    watch(latch->lk_impl);
    assert_int_equal(0, run_threads(THREADS, count_and_count, NULL));
    assert_int_equal(1, world_int(w, "GET latch"));
}

/* --- records of later requests ------------------------------------------------------------------------------- */

/* As if each slot's last request were a later one with this result. */
static void overtake(struct world *w, const char *name, const char *result)
{
    world_redis(w, "EVAL %s 1 latchkey:once:{%s} %s",
                "for _, slot in ipairs(redis.call('HKEYS', KEYS[1])) do redis.call('HSET', KEYS[1], slot,"
                "'9000000000000000 ' .. ARGV[1] .. ' ' .. redis.call('TIME')[1] .. '000000') end",
                name, result);
}

static int64_t permits(struct world *w)
{
    return world_int(w, "GET pool");
}

/* Giving and taking of bare numbers: done under another number, not answered with what the record says. */
static void a_later_record_is_not_the_answer(struct world *w)
{
    unsigned taken;
    begin(w);
    assert_lk(0, lk_sem_post(pool));
    overtake(w, "pool", "1");
    assert_lk(0, lk_sem_post(pool));
    assert_int_equal(12, permits(w));
    overtake(w, "pool", "-3");
    assert_lk(0, lk_sem_release(pool, 3));
    assert_int_equal(15, permits(w));
    overtake(w, "pool", "1");
    assert_lk(0, lk_sem_addpermits(pool, -5));
    assert_int_equal(10, permits(w));
    overtake(w, "pool", "1");
    assert_lk(0, lk_sem_trywait(pool));
    assert_int_equal(9, permits(w));
    overtake(w, "pool", "0");
    assert_lk(0, lk_sem_acquire(pool, 2, 3000));
    assert_int_equal(7, permits(w));
    overtake(w, "pool", "0");
    assert_lk(ETIMEDOUT, lk_sem_acquire(pool, 8, 20));
    overtake(w, "pool", "77");
    assert_lk(0, lk_sem_drain(pool, &taken));
    assert_int_equal(7, taken);
    world_redis(w, "DEL pool");
    overtake(w, "pool", "0");
    assert_lk(0, lk_sem_trysetpermits(pool, 4));
    assert_int_equal(4, permits(w));
}

static void nor_for_totals_and_latches(struct world *w)
{
    begin(w);
    assert_lk(0, lk_sem_addpermits(leased, 1));
    overtake(w, "leased:pool", "-3");
    assert_lk(0, lk_sem_addpermits(leased, 2));
    assert_int_equal(13, world_int(w, "GET latchkey:total:{leased:pool}"));
    overtake(w, "leased:pool", "1");
    assert_lk(EEXIST, lk_sem_trysetpermits(leased, 2));

    assert_lk(0, lk_latch_trysetcount(latch, 5));
    overtake(w, "latch", "1");
    assert_lk(0, lk_latch_countdown(latch));
    assert_int_equal(4, world_int(w, "GET latch"));
    overtake(w, "latch", "1");
    assert_lk(EEXIST, lk_latch_trysetcount(latch, 5));
    overtake(w, "latch", "1");
    assert_lk(0, lk_latch_delete(latch));
    assert_false(world_exists(w, "latch"));
    overtake(w, "latch", "-2");
    assert_lk(0, lk_latch_trysetcount(latch, 2));
    overtake(w, "latch", "1");
    assert_lk(0, lk_latch_countdownby(latch, 2));
    assert_false(world_exists(w, "latch"));
}

/* Whatever this client asks has a later record: it says so and did nothing, and goes on under names of its own. */
static void three_later_records_are_enough(struct world *w)
{
    char owner[64];
    begin(w);
    assert_lk(0, lk_sem_post(pool));
    snprintf(owner, sizeof owner, "%.33s",
             world_str(w, "EVAL %s 1 latchkey:once:{pool}", "return redis.call('HKEYS', KEYS[1])[1]"));
    for (int i = 0; i < 2 * LK__NUMBERS_MAX; i++)
        world_redis(w, "HSET latchkey:once:{pool} %ss0x%d %s", owner, i, "9000000000000000 1 9999999999000000");
    assert_lk(EPROTO, lk_sem_post(pool));
    assert_int_equal(11, permits(w));
    assert_lk(EPROTO, lk_sem_acquire(pool, 1, 1000));
    assert_int_equal(11, permits(w));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_trywait(pool));
    assert_int_equal(11, permits(w));
}

/* --- the scripts ----------------------------------------------------------------------------------------------- */

#define OWNER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s0"
#define LATER_US "9000000000000000"
#define SEM "pool", "latchkey:claims:{pool}", "latchkey:queue:sem:{pool}", "latchkey:alive:sem:{pool}"
#define PERMITS                                                                                                        \
    "latchkey:permits:{pool}", "latchkey:total:{pool}", "latchkey:queue:permits:{pool}", "latchkey:alive:permits:{pool}"
#define ONCE "latchkey:once:{pool}"
#define SEM_TOTAL SEM, ONCE, "latchkey:total:sem:{pool}"
#define LATCH "pool", "latchkey:opened:{pool}", ONCE
#define SENT OWNER, "#", LATER_US, "1"

static const struct row {
    const struct lk__script *script;
    const char *before;             /* a command */
    const char *keys[6], *args[13]; /* '#': the number of the request */
} rows[] = {
    { &lk__lua_semaphore_give,
      "SET pool 5",
      { SEM_TOTAL },
      { "1", "0", "2147483647", "c", "0", SENT } },
    { &lk__lua_semaphore_drain,
      "SET pool 5",
      { "pool", "latchkey:claims:{pool}", ONCE, "latchkey:total:sem:{pool}" },
      { "0", SENT } },
    { &lk__lua_semaphore_change, "DEL pool", { SEM_TOTAL }, { "5", "0", "1000", "0", "c", "512", SENT } },
    { &lk__lua_semaphore_take,
      "SET pool 5",
      { SEM_TOTAL },
      { "0", "c", "0", OWNER ":#:1", LATER_US, "10240000", "0", "1" } },
    { &lk__lua_semaphore_permit_total,
      "SET latchkey:total:{pool} 5",
      { PERMITS, ONCE },
      { "1", "0", "1000", "0", "0", SENT } },
    { &lk__lua_semaphore_change, "SET pool 5", { SEM_TOTAL }, { "7", "0", "1000", "5", "c", "1024", SENT } },
    { &lk__lua_semaphore_change, "SET pool 5", { SEM_TOTAL }, { "7", "0", "1000", "6", "c", "1024", SENT } },
    { &lk__lua_semaphore_delete, "SET pool 5", { SEM_TOTAL }, { SENT } },
    { &lk__lua_semaphore_permit_delete, "SET latchkey:total:{pool} 5", { PERMITS, ONCE }, { SENT } },
    { &lk__lua_latch_countdown, "SET pool 5", { LATCH }, { "1", "c", "0", SENT } },
    { &lk__lua_latch_set, "DEL pool", { LATCH }, { "5", "0", "c", "0", SENT } },
    { &lk__lua_latch_delete, "SET pool 5", { LATCH }, { "c", "0", SENT } },
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static int64_t verdict_of(struct world *w, const struct row *row, int number)
{
    char *text = text_of_script(row->script);
    const char *argv[24] = { "EVAL", text };
    int argc = 3, keys = 0;
    char count[8], args[13][96];
    while (keys < row->script->keys)
        argv[argc++] = row->keys[keys++];
    snprintf(count, sizeof count, "%d", keys);
    argv[2] = count;
    for (int i = 0; row->args[i] != NULL; i++) {
        const char *arg = row->args[i];
        int before = (int)strcspn(arg, "#");
        if (arg[before] == '#') {
            snprintf(args[i], sizeof args[i], "%.*s%d%s", before, arg, number, arg + before + 1);
            arg = args[i];
        }
        argv[argc++] = arg;
    }
    redisReply *reply = redisCommandArgv(w->redis, argc, argv, NULL);
    free(text);
    assert_non_null(reply);
    if (reply->type != REDIS_REPLY_ARRAY)
        fail_msg("%s: %s", row->script->name, reply->str);
    int64_t verdict = reply->element[0]->integer;
    freeReplyObject(reply);
    return verdict;
}

/* Each script: a copy gets its own result, an older request is overtaken and changes nothing. */
static void an_older_request_is_told_so(struct world *w)
{
    world_allow(w, "*pool*");
    for (int i = 0; i < ROWS; i++) {
        world_redis(w, "FLUSHALL");
        world_redis(w, rows[i].before);
        int64_t verdict = verdict_of(w, &rows[i], 7);
        assert_true(verdict >= 0);
        int64_t left = world_int(w, "GET pool"), total = world_int(w, "GET latchkey:total:{pool}");
        assert_int_equal(verdict, verdict_of(w, &rows[i], 7));
        assert_int_equal(LK__OVERTAKEN, verdict_of(w, &rows[i], 5));
        assert_int_equal(left, world_int(w, "GET pool"));
        assert_int_equal(total, world_int(w, "GET latchkey:total:{pool}"));
    }
}

int main(void)
{
    return world_run(a_number_is_drawn_with_its_slot, what_was_answered_was_done, a_later_record_is_not_the_answer,
                     nor_for_totals_and_latches, three_later_records_are_enough, an_older_request_is_told_so);
}
