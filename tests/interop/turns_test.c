/* SPDX-License-Identifier: MIT */
/*
 * turns_test.c - processes of this library and the real Redisson exclude each other, and neither starves: at one lock, at
 * several at once, at one on several servers
 *
 * A turn counts in Redis by reading and writing, so that one of two at a time would get lost, and appends who it was to
 * a list. Three processes of C and three threads of Java have the turns.
 *
 * seconds: 30
 * processors: 6
 */
#include "java.h"
#include "world_parts.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum { EACH_MAX = 6, TURNS = 900, WARM_UP = 300, PERMITS = 2, WITHIN_MS = 120000 };

enum what { MUTEX, SEMAPHORE, REDLOCK, MULTI };

struct kind {
    const char *verb;  /* Java's */
    int of_c, of_java; /* processes, threads */
    enum what what;
    bool fair;
    int busy_ms; /* how long C keeps a mutex */
    int rest_ms; /* how long a thread of Java is without the lock after each turn */
};

struct start {
    struct kind kind;
    struct quorum *quorum;
    struct gate gate;
};

static const char *const java_names[] = { "orders", "pool", "orders*", "orders+stock+users" };

/* --- turns of C --------------------------------------------------------------------------------------- */

static void append_turn(struct world *w, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "C %llu", (unsigned long long)number);
    world_redis(w, "RPUSH trace %s", text);
}

/* False when all turns were had. */
static bool turn(struct world *w, uint64_t token)
{
    int64_t before = world_int(w, "GET turns");
    before = before < 0 ? 0 : before;
    if (before == TURNS)
        return false;
    append_turn(w, token);
    world_redis(w, "SET turns %lld", (long long)before + 1);
    return true;
}

static int mutex_turns(struct world *w, lk_mutex_t *mutex, int busy_ms)
{
    bool more = true;
    while (more) {
        uint64_t token;
        assert_lk(0, lk_mutex_lock(mutex));
        assert_lk(0, lk_mutex_token(mutex, &token));
        more = turn(w, token);
        sleep_ms(busy_ms);
        assert_lk(0, lk_mutex_unlock(mutex));
    }
    return 0;
}

/* Likewise where several may be in; the trace has how many were. */
static int semaphore_turns(struct world *w, lk_sem_t *semaphore)
{
    bool more = true;
    while (more) {
        assert_lk(0, lk_sem_wait(semaphore));
        int64_t inside = world_int(w, "INCR inside");
        more = world_int(w, "INCR turns") <= TURNS;
        if (more)
            append_turn(w, (uint64_t)inside);
        world_redis(w, "DECR inside");
        assert_lk(0, lk_sem_post(semaphore));
    }
    return 0;
}

static int redlock_turns(struct world *w, lk_redlock_t *r)
{
    bool more = true;
    while (more) {
        assert_lk(0, lk_redlock_lock(r));
        more = turn(w, 0);
        assert_lk(0, lk_redlock_unlock(r));
    }
    return 0;
}

static int multi_turns(struct world *w, lk_multi_t *s)
{
    bool more = true;
    while (more) {
        assert_lk(0, lk_multi_lock(s));
        more = turn(w, 0);
        assert_lk(0, lk_multi_unlock(s));
    }
    return 0;
}

static lk_multi_t *several(struct world *w, lk_client_t *client)
{
    lk_multi_t *s = world_multi(w, client);
    const char *const names[] = { "orders", "stock", "users" };
    for (int i = 0; i < 3; i++)
        assert_lk(0, lk_multi_addmutex(s, world_mutex(w, client, names[i], NULL)));
    return s;
}

static lk_redlock_t *redlock_of(struct world *w, struct quorum *q)
{
    static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1, .node_timeout_ms = 1000 };
    return quorum_redlock(w, quorum_client(q, "redisson=yes"), "orders", &no_wait);
}

static int have_turns(struct world *w, void *arg)
{
    struct start *start = arg;
    const struct kind *kind = &start->kind;
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = kind->fair;
    lk_client_t *client = world_client(w, "redisson=yes");
    lk_mutex_t *mutex = world_mutex(w, client, "orders", &attr);
    lk_sem_t *semaphore = world_sem(w, client, "pool", 0, NULL);
    lk_redlock_t *redlock = kind->what == REDLOCK ? redlock_of(w, start->quorum) : NULL;
    lk_multi_t *multi = kind->what == MULTI ? several(w, client) : NULL;
    world_ready(w);
    gate_pass(&start->gate);
    switch (kind->what) {
    case SEMAPHORE:
        return semaphore_turns(w, semaphore);
    case REDLOCK:
        return redlock_turns(w, redlock);
    case MULTI:
        return multi_turns(w, multi);
    default:
        return mutex_turns(w, mutex, kind->busy_ms);
    }
}

/* --- what came of them ---------------------------------------------------------------------------------- */

struct tally {
    int all, of_c, of_java;
    int longest_c, longest_java; /* turns in a row */
    int changes;
    bool rising; /* the numbers: tokens */
    long most;   /* the greatest: how many were in */
};

static struct tally tally_of(struct world *w)
{
    struct tally t = { .rising = true };
    redisReply *trace = world_reply(w, "LRANGE trace 0 -1");
    char last_who = 0;
    long long last = 0;
    int row = 0;
    for (size_t i = 0; i < trace->elements; i++) {
        char who = trace->element[i]->str[0];
        long long number = strtoll(trace->element[i]->str + 2, NULL, 10);
        int *count = who == 'C' ? &t.of_c : &t.of_java, *longest = who == 'C' ? &t.longest_c : &t.longest_java;
        row = who == last_who ? row + 1 : 1;
        *longest = row > *longest ? row : *longest;
        t.changes += i > 0 && who != last_who;
        t.rising = t.rising && number > last;
        t.most = number > t.most ? number : t.most;
        ++*count;
        last_who = who;
        last = number;
    }
    t.all = (int)trace->elements;
    freeReplyObject(trace);
    print_message("%d turns of C, %d of Java; at most %d and %d in a row\n", t.of_c, t.of_java, t.longest_c,
                  t.longest_java);
    return t;
}

/* All begin when each of them is ready, and Java's code is compiled. */
static struct tally all_have_turns(struct world *w, struct kind kind)
{
    const char *name = java_names[kind.what];
    pid_t children[EACH_MAX];
    struct start *start = world_shared(w, sizeof *start);
    start->kind = kind;
    world_allow(w, "*");
    struct java *java = java_open(w, 30000);
    if (kind.what == REDLOCK)
        java_quorum(java, start->quorum = quorum_begin(w, 3), 30000);
    if (kind.what == SEMAPHORE)
        assert_string_equal("true", java_does(java, 'a', "set pool %d", PERMITS));
    for (int i = 0; i < kind.of_c; i++)
        children[i] = world_fork(w, have_turns, start);
    for (int i = 0; i < kind.of_java; i++)
        assert_string_equal("ok", java_does(java, (char)('a' + i), "%s %s %d", kind.verb, name, (i + 1) * WARM_UP));
    world_redis(w, "DEL trace turns");
    for (int i = 0; i < kind.of_java; i++)
        java_tell(java, (char)('a' + i), "%s %s %d %d", kind.verb, name, TURNS, kind.rest_ms);
    gate_open(&start->gate);
    for (int i = 0; i < kind.of_java; i++)
        assert_string_equal("ok", java_says(java, (char)('a' + i), WITHIN_MS));
    for (int i = 0; i < kind.of_c; i++)
        assert_int_equal(0, world_wait(w, children[i]));
    return tally_of(w);
}

/* Each side has a share of the turns, and never waits for long while the other one has them all. */
static void check_shares(struct tally t)
{
    assert_between(t.of_java, TURNS / 50, TURNS);
    assert_between(t.of_c, TURNS / 50, TURNS);
    assert_between(t.longest_c, 1, TURNS / 2);
    assert_between(t.longest_java, 1, TURNS / 2);
}

/* No turn got lost. */
static void check_turns(struct world *w, struct tally t)
{
    assert_int_equal(TURNS, t.all);
    assert_int_equal(TURNS, world_int(w, "GET turns"));
    assert_false(world_exists(w, "orders"));
    check_shares(t);
}

static void a_lock_is_had_by_one_side_at_a_time(struct world *w)
{
    check_turns(w, all_have_turns(w, (struct kind){ "lockturns", 3, 3, MUTEX, false, 0, 0 }));
}

/* Strict order among those of C. */
static void a_fair_mutex_as_well(struct world *w)
{
    check_turns(w, all_have_turns(w, (struct kind){ "lockturns", 3, 3, MUTEX, true, 0, 0 }));
}

static void one_of_c_among_many_of_java(struct world *w)
{
    check_turns(w, all_have_turns(w, (struct kind){ "lockturns", 1, 6, MUTEX, false, 0, 0 }));
}

static void one_of_java_among_many_of_c(struct world *w)
{
    check_turns(w, all_have_turns(w, (struct kind){ "lockturns", 6, 1, MUTEX, false, 0, 0 }));
}

/* It has the mutex for nearly all of the time, and nobody of ours waits. */
static void java_beside_a_busy_process(struct world *w)
{
    check_turns(w, all_have_turns(w, (struct kind){ "lockturns", 1, 1, MUTEX, false, 5, 0 }));
}

/* Java takes them one after the other, this library all at once. */
static void several_locks_at_once(struct world *w)
{
    check_turns(w, all_have_turns(w, (struct kind){ "lockturns", 3, 3, MULTI, false, 0, 0 }));
    assert_true(!world_exists(w, "stock") && !world_exists(w, "users"));
}

/* A majority is had by one side at a time. Nobody queues: who never rests would have it nearly all the time. */
static void a_lock_on_three_servers(struct world *w)
{
    check_turns(w, all_have_turns(w, (struct kind){ "lockturns", 2, 2, REDLOCK, false, 0, 10 }));
}

/* Tokens go on from one side to the other. */
static void tokens_of_both_sides_rise(struct world *w)
{
    struct tally t = all_have_turns(w, (struct kind){ "tokenturns", 3, 3, MUTEX, false, 0, 0 });
    check_turns(w, t);
    assert_true(t.rising);
    assert_true(t.changes > 10);
}

static void check_permits(struct world *w, struct tally t)
{
    assert_int_equal(TURNS, t.all);
    assert_between(t.most, 1, PERMITS);
    assert_int_equal(PERMITS, world_int(w, "GET pool"));
    assert_int_equal(0, world_int(w, "GET inside"));
    check_shares(t);
}

static void a_semaphore_has_no_permit_too_many(struct world *w)
{
    check_permits(w, all_have_turns(w, (struct kind){ "semturns", 4, 4, SEMAPHORE, false, 0, 0 }));
}

static void a_permit_for_java_among_many_of_c(struct world *w)
{
    check_permits(w, all_have_turns(w, (struct kind){ "semturns", 6, 3, SEMAPHORE, false, 0, 0 }));
}

static void a_permit_for_c_among_many_of_java(struct world *w)
{
    check_permits(w, all_have_turns(w, (struct kind){ "semturns", 1, 6, SEMAPHORE, false, 0, 0 }));
}

int main(void)
{
    java_begin();
    return world_run(a_lock_is_had_by_one_side_at_a_time, a_fair_mutex_as_well, one_of_c_among_many_of_java,
                     one_of_java_among_many_of_c, java_beside_a_busy_process, several_locks_at_once,
                     a_lock_on_three_servers, tokens_of_both_sides_rise,
                     a_semaphore_has_no_permit_too_many, a_permit_for_java_among_many_of_c,
                     a_permit_for_c_among_many_of_java);
}
