/* SPDX-License-Identifier: MIT */
/*
 * walk_test.c - a walk finds what the library keeps on a server, of every kind, and nothing of anybody else's
 *
 * labels: threads memory
 * simulated: yes
 */
#include "rights.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE "lease=20s"

/* What a whole walk found: `count` is of all, also of those without room. */
struct found {
    lk_inspected_t each[40];
    int count;
    lk_inspectstats_t stats;
};

static lk_inspect_t *open_walk(lk_client_t *client, const char *pattern, unsigned kinds)
{
    lk_inspectattr_t attr = LK_INSPECTATTR_INIT;
    lk_inspect_t *walk;
    attr.pattern = pattern;
    attr.kinds = kinds;
    assert_lk(0, lk_inspect_open(&walk, client, &attr));
    return walk;
}

static void walk_through(struct found *found, lk_client_t *client, const char *pattern, unsigned kinds)
{
    lk_inspect_t *walk = open_walk(client, pattern, kinds);
    lk_inspected_t object = LK_INSPECTED_INIT;
    int rc;
    found->count = 0;
    while ((rc = lk_inspect_next(walk, &object)) == 0)
        if (found->count++ < 40)
            found->each[found->count - 1] = object;
    assert_lk(ENOENT, rc);
    assert_lk(ENOENT, lk_inspect_next(walk, &object));
    found->stats = (lk_inspectstats_t)LK_INSPECTSTATS_INIT;
    assert_lk(0, lk_inspect_stats(walk, &found->stats));
    lk_inspect_close(walk);
}

/* The only one of that name and kind. */
static const lk_inspected_t *one(const struct found *found, int kind, const char *name)
{
    const lk_inspected_t *it = NULL;
    for (int i = 0; i < found->count && i < 40; i++)
        if (found->each[i].kind == kind && strcmp(found->each[i].name, name) == 0) {
            assert_null(it);
            it = &found->each[i];
        }
    if (it == NULL)
        fail_msg("no %s of kind %d among %d", name, kind, found->count);
    return it;
}

static int count_of(lk_client_t *client, const char *pattern, unsigned kinds)
{
    struct found found;
    walk_through(&found, client, pattern, kinds);
    return found.count;
}

static void an_empty_server_has_nothing(struct world *w)
{
    struct found found;
    walk_through(&found, world_client(w, ""), NULL, 0);
    assert_int_equal(0, found.count);
    assert_int_equal(1, found.stats.servers);
    assert_int_equal(0, found.stats.hidden);
    assert_int_equal(0, found.stats.slots_missing);
}

static void a_mutex_is_told_with_its_holder_and_waiters(struct world *w)
{
    struct found found;
    struct worker waiter;
    lk_client_t *client = world_client(w, LEASE), *other = world_client(w, LEASE);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    lk_mutex_t *theirs = world_mutex(w, other, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    walk_through(&found, client, NULL, 0);
    assert_int_equal(1, found.count);
    const lk_inspected_t *it = one(&found, LK_KIND_MUTEX, "orders");
    assert_int_equal(LK_STATE_EXCLUSIVE, it->state);
    assert_int_equal(1, it->holders);
    assert_int_equal(0, it->waiters);
    assert_same(-1, it->waited_ms);
    assert_between(it->remaining_ms, 1, 20000);
    assert_between(it->held_ms, 0, 20000);
    assert_string_equal(it->holder, world_owner(w, "orders"));
    assert_int_equal(0, it->server);
    assert_true(it->token > 0);

    worker_start(&waiter, lock_and_unlock, theirs);
    eventually(world_queued(w, "orders") == 1, 5000);
    sleep_ms(50);
    walk_through(&found, client, NULL, 0);
    it = one(&found, LK_KIND_MUTEX, "orders");
    assert_int_equal(1, it->waiters);
    assert_between(it->waited_ms, 50, 20000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_int_equal(0, count_of(client, NULL, 0)); /* its token is still there, and is no object */
    assert_true(world_exists(w, "redisson_lock_token:{orders}"));
}

/* A queue without a holder, the mark of a robust mutex: the object is found by what is there of it. */
static void a_mutex_that_nobody_holds_is_found_by_what_is_left(struct world *w)
{
    struct found found;
    lk_client_t *client = world_client(w, LEASE);
    world_allow(w, "latchkey:*");
    world_redis(w, "ZADD latchkey:queue:mutex:{free} 5 a:1:1");
    world_redis(w, "HSET latchkey:alive:mutex:{free} a %s", "9000000000000 5000 3000 0");
    world_redis(w, "SET latchkey:robust:mutex:{dead} x");
    world_redis(w, "SET latchkey:robust:mutex::{eu}ruined unrecoverable");
    world_redis(w, "SET latchkey:robust:rw:{dead} x");
    walk_through(&found, client, NULL, 0);
    assert_int_equal(4, found.count);
    assert_int_equal(LK_STATE_FREE, one(&found, LK_KIND_MUTEX, "free")->state);
    assert_int_equal(1, one(&found, LK_KIND_MUTEX, "free")->waiters);
    assert_int_equal(LK_STATE_OWNERDEAD, one(&found, LK_KIND_MUTEX, "dead")->state);
    assert_int_equal(LK_STATE_UNRECOVERABLE, one(&found, LK_KIND_MUTEX, "{eu}ruined")->state);
    assert_int_equal(LK_STATE_OWNERDEAD, one(&found, LK_KIND_RWLOCK, "dead")->state);
}

static void readers_and_a_writer(struct world *w)
{
    struct found found;
    lk_client_t *client = world_client(w, LEASE), *other = world_client(w, LEASE);
    lk_rwlock_t *mine = world_rwlock(w, client, "pages", NULL), *theirs = world_rwlock(w, other, "pages", NULL);
    assert_lk(0, lk_rwlock_rdlock(mine));
    assert_lk(0, lk_rwlock_rdlock(theirs));
    walk_through(&found, client, NULL, 0);
    const lk_inspected_t *it = one(&found, LK_KIND_RWLOCK, "pages");
    assert_int_equal(LK_STATE_SHARED, it->state);
    assert_int_equal(2, it->holders);
    assert_between(it->remaining_ms, 1, 20000);
    assert_same(-1, it->held_ms);
    assert_lk(0, lk_rwlock_unlock(mine));
    assert_lk(0, lk_rwlock_unlock(theirs));
    assert_lk(0, lk_rwlock_wrlock(mine));
    walk_through(&found, client, NULL, 1U << LK_KIND_RWLOCK);
    it = one(&found, LK_KIND_RWLOCK, "pages");
    assert_int_equal(LK_STATE_EXCLUSIVE, it->state);
    assert_int_equal(1, it->holders);
    assert_between(it->held_ms, 0, 20000);
    assert_lk(0, lk_rwlock_unlock(mine));
    assert_int_equal(0, count_of(client, NULL, 0));
}

static int meet(void *barrier)
{
    int rc = lk_barrier_wait(barrier);
    return rc == LK_BARRIER_SERIAL ? 0 : rc;
}

static void semaphores_latches_runs_and_barriers(struct world *w)
{
    struct found found;
    struct worker party;
    lk_client_t *client = world_client(w, LEASE);
    lk_semattr_t leased = LK_SEMATTR_INIT;
    leased.leased = 1;
    world_allow(w, "latchkey:*");
    world_allow(w, "slots");
    world_allow(w, "gate");
    lk_sem_t *pool = world_sem(w, client, "pool", 3, &leased), *slots = world_sem(w, client, "slots", 2, NULL);
    lk_latch_t *gate = world_latch(w, client, "gate"), *opened = world_latch(w, client, "opened");
    lk_once_t *run = world_once(w, client, "migrate", NULL), *done = world_once(w, client, "done", NULL);
    lk_barrier_t *stage = world_barrier(w, client, "stage", 2, NULL);
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_wait(slots));
    assert_lk(0, lk_latch_setcount(gate, 4));
    assert_lk(0, lk_latch_setcount(opened, 1));
    assert_lk(0, lk_latch_countdown(opened));
    assert_lk(0, lk_once_begin(run, LK_FOREVER));
    assert_lk(0, lk_once_begin(done, LK_FOREVER));
    assert_lk(0, lk_once_end(done, NULL));
    worker_start(&party, meet, stage);
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 1, 5000);

    walk_through(&found, client, NULL, 0);
    assert_int_equal(7, found.count);
    const lk_inspected_t *it = one(&found, LK_KIND_PERMITS, "pool");
    assert_int_equal(1, it->holders);
    assert_same(2, it->number);
    assert_same(3, it->total);
    assert_between(it->remaining_ms, 1, 20000);
    assert_true(it->token > 0 && it->holder[0] != '\0');
    it = one(&found, LK_KIND_SEM, "slots");
    assert_int_equal(LK_STATE_COUNTING, it->state);
    assert_same(1, it->number);
    assert_same(2, it->total);
    it = one(&found, LK_KIND_LATCH, "gate");
    assert_int_equal(LK_STATE_COUNTING, it->state);
    assert_same(4, it->number);
    assert_int_equal(LK_STATE_OPEN, one(&found, LK_KIND_LATCH, "opened")->state);
    it = one(&found, LK_KIND_ONCE, "migrate");
    assert_int_equal(LK_STATE_EXCLUSIVE, it->state);
    assert_true(it->holder[0] != '\0' && it->held_ms >= 0);
    assert_int_equal(LK_STATE_COMPLETE, one(&found, LK_KIND_ONCE, "done")->state);
    it = one(&found, LK_KIND_BARRIER, "stage");
    assert_int_equal(LK_STATE_COUNTING, it->state);
    assert_same(1, it->number);
    assert_same(2, it->total);

    assert_lk(0, lk_once_end(run, NULL));
    assert_lk(LK_BARRIER_SERIAL, lk_barrier_wait(stage));
    assert_int_equal(0, worker_join(&party));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_post(slots));
}

/* Whoever waits for a condition, and nobody else's keys: hashes, numbers, and some that look like ours. */
static void what_is_not_ours_is_left_out(struct world *w)
{
    lk_client_t *client = world_client(w, LEASE);
    world_allow(w, "*");
    world_redis(w, "HSET session:1 user 7");
    world_redis(w, "HSET session:2 285475da-9152-4c83-822a-67ee2f116a79:1 1 and 2");
    world_redis(w, "HSET session:3 cafe:1 1");
    world_redis(w, "HSET latchkey:done:{session:4} id 1 token 2"); /* which was reset */
    world_redis(w, "SET hits 17");
    world_redis(w, "SET latchkey:rw:{x} a-string");
    world_redis(w, "ZADD latchkey:unknown:{x} 9000000000000 a:1:1:r");
    world_redis(w, "ZADD latchkey:rw:x 9000000000000 a:1:1:r");
    world_redis(w, "ZADD latchkey:rw:%b 9000000000000 a:1:1:r", "{a\0b}", (size_t)5);
    world_redis(w, "HSET %b 285475da-9152-4c83-822a-67ee2f116a79:1 1", "a\0b", (size_t)3);
    assert_int_equal(0, count_of(client, NULL, 0));
    world_redis(w, "HSET java 285475da-9152-4c83-822a-67ee2f116a79:1 1");
    assert_int_equal(1, count_of(client, NULL, 0));
    world_redis(w, "FLUSHALL");
}

/* Numbers that none of ours writes, and texts of a megabyte: each object is told with what fits, and so are the others. */
static void what_fits_nowhere_hides_nothing(struct world *w)
{
    struct found found;
    lk_client_t *client = world_client(w, LEASE);
    world_allow(w, "*");
    world_redis(w, "HSET a 285475da-9152-4c83-822a-67ee2f116a79:1 1");
    world_redis(w, "SET redisson_lock_token:{a} inf");
    world_redis(w, "HSET b 285475da-9152-4c83-822a-67ee2f116a79:1 1");
    world_redis(w, "SET redisson_lock_token:{b} -nan");
    world_redis(w, "EVAL %s 0", "redis.call('HSET', 'c', '285475da-9152-4c83-822a-67ee2f116a79:1' .. "
                                "string.rep('x', 1048576), '1')");
    world_redis(w, "EVAL %s 0", "redis.call('HSET', string.rep('y', 1048576), "
                                "'285475da-9152-4c83-822a-67ee2f116a79:1', '1')");
    world_redis(w, "EVAL %s 0", "redis.call('SET', 'd', string.rep('9', 309)) redis.call('SET', 'latchkey:once:{d}', '1')");
    world_redis(w, "ZADD latchkey:rw:{e} inf a:1:1:r");
    world_redis(w, "ZADD latchkey:permits:{f} inf a:1:1");
    world_redis(w, "ZADD latchkey:permits:{f} -inf token");
    world_redis(w, "SET latchkey:run:{g} %s", "a:1:1 99999999999999999999");
    walk_through(&found, client, NULL, 0);
    assert_int_equal(7, found.count);
    for (int i = 0; i < 3; i++) {
        const lk_inspected_t *mutex = one(&found, LK_KIND_MUTEX, (const char *[]){ "a", "b", "c" }[i]);
        assert_int_equal(LK_STATE_EXCLUSIVE, mutex->state);
        assert_same(0, mutex->token);
        assert_same(-1, mutex->held_ms);
        assert_memory_equal("285475da-9152-4c83-822a-67ee2f116a79:1", mutex->holder, 38);
    }
    assert_int_equal(159, strlen(one(&found, LK_KIND_MUTEX, "c")->holder));
    assert_same(-1, one(&found, LK_KIND_LATCH, "d")->number);
    assert_same(-1, one(&found, LK_KIND_RWLOCK, "e")->remaining_ms);
    assert_same(-1, one(&found, LK_KIND_PERMITS, "f")->remaining_ms);
    assert_same(0, one(&found, LK_KIND_PERMITS, "f")->token);
    assert_same(0, one(&found, LK_KIND_ONCE, "g")->token);
    world_redis(w, "FLUSHALL");
}

static void a_pattern_kinds_and_the_prefix(struct world *w)
{
    struct found found;
    lk_client_t *client = world_client(w, LEASE "&prefix=shop:"), *all = world_client(w, LEASE);
    lk_mutex_t *mutexes[3];
    const char *const names[] = { "order:1", "order:2", "stock[1]" };
    for (int i = 0; i < 3; i++) {
        mutexes[i] = world_mutex(w, client, names[i], NULL);
        assert_lk(0, lk_mutex_lock(mutexes[i]));
    }
    lk_rwlock_t *order = world_rwlock(w, all, "order:3", NULL);
    assert_lk(0, lk_rwlock_rdlock(order));

    walk_through(&found, client, NULL, 0);
    assert_int_equal(3, found.count);
    one(&found, LK_KIND_MUTEX, "order:1");
    assert_int_equal(2, count_of(client, "order:*", 0));
    assert_int_equal(1, count_of(client, "order:[2-3]", 0));
    assert_int_equal(1, count_of(client, "order:[^1]", 0));
    assert_int_equal(1, count_of(client, "*\\[?]", 0));
    assert_int_equal(1, count_of(client, "s*k*]", 0));
    assert_int_equal(0, count_of(client, "order", 0));
    assert_int_equal(0, count_of(client, "", 0));
    assert_int_equal(0, count_of(client, NULL, 1U << LK_KIND_RWLOCK));
    assert_int_equal(4, count_of(all, NULL, 0));
    assert_int_equal(2, count_of(all, "shop:order:*", 0));
    assert_int_equal(1, count_of(all, "order:*", 1U << LK_KIND_RWLOCK | 1U << LK_KIND_COND));
    for (int i = 0; i < 3; i++)
        assert_lk(0, lk_mutex_unlock(mutexes[i]));
    assert_lk(0, lk_rwlock_unlock(order));
}

/* Many locks among many keys of others: all are found, in steps, and the server runs no KEYS. */
static void all_of_many_are_found(struct world *w)
{
    enum { MANY = 500, OTHERS = 3000 };
    lk_client_t *client = world_client(w, LEASE);
    static lk_mutex_t mutexes[MANY];
    static bool seen[MANY];
    memset(seen, 0, sizeof seen);
    world_allow(w, "other:*");
    world_redis(w, "EVAL %s 0 %d", "for i = 1, ARGV[1] do redis.call('SET', 'other:' .. i, i) end", OTHERS);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, i % 2 == 0 ? "many:%d" : "many:%d{tag}", i);
        assert_lk(0, lk_mutex_init(&mutexes[i], client, name, NULL));
        assert_lk(0, lk_mutex_lock(&mutexes[i]));
    }
    lk_inspect_t *walk = open_walk(client, "many:*", 0);
    lk_inspected_t object = LK_INSPECTED_INIT;
    while (lk_inspect_next(walk, &object) == 0)
        seen[atoi(object.name + 5)] = true;
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    assert_lk(0, lk_inspect_stats(walk, &stats));
    assert_true(stats.keys >= MANY + OTHERS);
    lk_inspect_close(walk);
    assert_same(0, world_commands(w, "keys"));
    assert_true(world_commands(w, "scan") >= (MANY + OTHERS) / 200);
    for (int i = 0; i < MANY; i++) {
        assert_true(seen[i]);
        assert_lk(0, lk_mutex_unlock(&mutexes[i]));
        assert_lk(0, lk_mutex_destroy(&mutexes[i]));
    }
}

static void all_holders_are_listed(struct world *w)
{
    enum { READERS = 60 };
    lk_client_t *client = world_client(w, LEASE "&prefix=p:");
    lk_rwlock_t *pages = world_rwlock(w, client, "pages", NULL);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    lk_once_t *run = world_once(w, client, "migrate", NULL);
    lk_owner_t *owners[READERS];
    lk_holder_t holders[READERS + 1];
    unsigned count = 77;
    world_allow(w, "latchkey:done:*");
    for (int i = 0; i < READERS; i++) {
        assert_lk(0, lk_owner_new(client, &owners[i]));
        const lk_how_t how = { .size = sizeof how, .owner = owners[i] };
        assert_lk(0, lk_rwlock_rdlockwith(pages, &how));
    }
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_once_begin(run, LK_FOREVER));
    assert_lk(0, lk_inspect_holders(client, LK_KIND_RWLOCK, "pages", holders, sizeof *holders, READERS + 1, &count));
    assert_int_equal(READERS, count);
    for (int i = 0; i < READERS; i++) {
        assert_between(holders[i].remaining_ms, 1, 20000);
        assert_string_equal(holders[i].id + strlen(holders[i].id) - 2, ":r");
        for (int j = 0; j < i; j++)
            assert_string_not_equal(holders[i].id, holders[j].id);
    }
    assert_lk(0, lk_inspect_holders(client, LK_KIND_RWLOCK, "pages", holders, sizeof *holders, 2, &count));
    assert_int_equal(READERS, count);
    assert_lk(0, lk_inspect_holders(client, LK_KIND_MUTEX, "orders", holders, sizeof *holders, 2, &count));
    assert_int_equal(1, count);
    assert_string_equal(holders[0].id, world_owner(w, "p:orders"));
    assert_lk(0, lk_inspect_holders(client, LK_KIND_ONCE, "migrate", holders, sizeof *holders, 2, &count));
    assert_int_equal(1, count);
    assert_memory_equal(holders[0].id, world_owner(w, "p:orders"), 32);
    assert_lk(0, lk_inspect_holders(client, LK_KIND_PERMITS, "nobody", NULL, 0, 0, &count));
    assert_int_equal(0, count);
    assert_lk(0, lk_inspect_holders(client, LK_KIND_MUTEX, "nobody", NULL, 0, 0, &count));
    assert_int_equal(0, count);

    assert_lk(EINVAL, lk_inspect_holders(client, LK_KIND_SEM, "pages", NULL, 0, 0, &count));
    assert_lk(EINVAL, lk_inspect_holders(client, 99, "pages", NULL, 0, 0, &count));
    assert_lk(EINVAL, lk_inspect_holders(client, LK_KIND_MUTEX, "a}", NULL, 0, 0, &count));
    assert_lk(EINVAL, lk_inspect_holders(client, LK_KIND_MUTEX, NULL, NULL, 0, 0, &count));
    assert_lk(EINVAL, lk_inspect_holders(client, LK_KIND_MUTEX, "pages", NULL, 0, 1, &count));
    assert_lk(EINVAL, lk_inspect_holders(client, LK_KIND_MUTEX, "pages", holders, 8, 1, &count));
    assert_lk(EINVAL, lk_inspect_holders(client, LK_KIND_MUTEX, "pages", NULL, 0, 0, NULL));
    world_redis(w, "SET p:number 1");
    assert_lk(EPROTO, lk_inspect_holders(client, LK_KIND_MUTEX, "number", NULL, 0, 0, &count));
    world_redis(w, "DEL p:number");
    world_redis(w, "HSET p:session user 7 cart 2"); /* the application's: its fields hold nothing */
    assert_lk(EPROTO, lk_inspect_holders(client, LK_KIND_MUTEX, "session", holders, sizeof *holders, 2, &count));
    world_redis(w, "DEL p:session");

    assert_lk(0, lk_once_end(run, NULL));
    assert_lk(0, lk_mutex_unlock(orders));
    for (int i = 0; i < READERS; i++) {
        assert_lk(0, lk_rwlock_unlockby(pages, owners[i]));
        assert_lk(0, lk_owner_free(owners[i]));
    }
}

/* A user of the documented rule may not SCAN, and is told so; one who may sees what the rule covers, and hears of the rest. */
static void access_rules_are_said(struct world *w)
{
    struct words rights;
    struct found found;
    rights_documented(&rights);
    rights_user(w, &rights, "~shop:*", NULL);
    lk_client_t *client = world_client_at(w, NULL, rights_url(w, LEASE "&prefix=shop:"));
    lk_mutex_t *stock = world_mutex(w, client, "stock", NULL);
    lk_inspected_t object = LK_INSPECTED_INIT;
    assert_lk(0, lk_mutex_lock(stock));
    world_allow(w, "private:*");
    world_redis(w, "HSET private:1 285475da-9152-4c83-822a-67ee2f116a79:1 1");
    lk_inspect_t *walk = open_walk(client, NULL, 0);
    assert_lk(EACCES, lk_inspect_next(walk, &object));
    assert_non_null(strstr(lk_errortext(), "+scan"));

    world_redis(w, "ACL SETUSER app +scan");
    assert_lk(0, lk_inspect_next(walk, &object)); /* it stands where it stood */
    assert_string_equal("stock", object.name);
    lk_inspect_close(walk);
    walk_through(&found, client, NULL, 0);
    assert_int_equal(1, found.count);
    assert_same(1, found.stats.hidden);
    assert_same(0, world_elements(w, "ACL LOG")); /* what is out of reach is not tried */
    assert_lk(0, lk_mutex_unlock(stock));
}

static void mistakes_are_told(struct world *w)
{
    lk_client_t *client = world_open(w, LEASE);
    lk_inspectattr_t attr = LK_INSPECTATTR_INIT;
    lk_inspect_t *walk = NULL;
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    assert_lk(EINVAL, lk_inspect_open(NULL, client, NULL));
    assert_lk(EINVAL, lk_inspect_open(&walk, NULL, NULL));
    attr.kinds = 1;
    assert_lk(EINVAL, lk_inspect_open(&walk, client, &attr));
    attr.kinds = 1U << 31;
    assert_lk(EINVAL, lk_inspect_open(&walk, client, &attr));
    attr.size = 0;
    assert_lk(EINVAL, lk_inspect_open(&walk, client, &attr));
    assert_null(walk);
    assert_lk(0, lk_inspect_open(&walk, client, NULL));
    object.size = 1;
    assert_lk(EINVAL, lk_inspect_next(walk, &object));
    assert_lk(EINVAL, lk_inspect_next(walk, NULL));
    object.size = sizeof object;
    assert_lk(EINVAL, lk_inspect_next(NULL, &object));
    assert_lk(EINVAL, lk_inspect_stats(NULL, &stats));
    stats.size = 0;
    assert_lk(EINVAL, lk_inspect_stats(walk, &stats));
    struct {
        lk_inspected_t known;
        char later[64];
    } larger = { .known = { .size = sizeof larger } };
    memset(larger.later, 0x5a, sizeof larger.later);
    world_redis(w, "SET latchkey:robust:mutex:{x} y");
    assert_lk(0, lk_inspect_next(walk, &larger.known));
    assert_string_equal("x", larger.known.name);
    assert_same(sizeof larger, larger.known.size);
    for (size_t i = 0; i < sizeof larger.later; i++)
        assert_int_equal(0, larger.later[i]);
    world_redis(w, "DEL latchkey:robust:mutex:{x}");
    assert_lk(0, close_by_hand(w, client));
    assert_lk(ECANCELED, lk_inspect_next(walk, &object));
    lk_inspect_close(walk);
    lk_inspect_close(NULL);
}

/* A server that is away and comes back: the walk goes on. */
static void a_walk_goes_on_after_an_outage(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&command_timeout=300ms");
    lk_mutex_t *orders = world_mutex(w, world_client(w, LEASE), "orders", NULL);
    lk_inspected_t object = LK_INSPECTED_INIT;
    assert_lk(0, lk_mutex_lock(orders));
    lk_inspect_t *walk = open_walk(client, NULL, 0);
    world_stop_server(w);
    int rc = lk_inspect_next(walk, &object);
    world_cont_server(w);
    assert_true(rc == EIO || rc == ENOTCONN);
    eventually(lk_inspect_next(walk, &object) == 0, 5000);
    assert_string_equal("orders", object.name);
    lk_inspect_close(walk);
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(an_empty_server_has_nothing, a_mutex_is_told_with_its_holder_and_waiters,
                     a_mutex_that_nobody_holds_is_found_by_what_is_left, readers_and_a_writer,
                     semaphores_latches_runs_and_barriers, what_is_not_ours_is_left_out,
                     what_fits_nowhere_hides_nothing, a_pattern_kinds_and_the_prefix, all_of_many_are_found,
                     all_holders_are_listed, access_rules_are_said, mistakes_are_told, a_walk_goes_on_after_an_outage);
}
