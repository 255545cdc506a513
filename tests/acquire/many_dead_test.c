/* SPDX-License-Identifier: MIT */
/*
 * many_dead_test.c - thousands of waiters died in front of a live one: no script evicts them all, and it has its turn at once
 *
 * Who is told to ask goes on where the script left off, long before its poll. When nobody lives all go at once.
 *
 * simulated: yes
 */
#include "subject.h"

#include <stdio.h>
#include <string.h>

enum { DEAD = 4000, BY_ONE_SCRIPT = 128 + 100 + 32, SOON_MS = 3000 };

/* What stands behind the id of a waiter, as the kind writes it, and its queue. */
static const char *queue_of(const struct subject_kind *kind, const char **rest)
{
    const char *name = kind->name;
    *rest = strstr(name, "mutex") != NULL    ? ""
            : strcmp(name, "writer") == 0 ? ":w"
            : strcmp(name, "reader") == 0 ? ":r"
                                          : ":1";
    return strstr(name, "mutex") != NULL       ? "mutex"
           : strcmp(name, "semaphore") == 0    ? "sem"
           : strstr(name, "semaphore") != NULL ? "permits"
           : strcmp(name, "writer") == 0       ? "writers"
                                               : "readers";
}

/* They came before everybody else, and were last heard of long ago. */
static void bury_in(struct world *w, const char *queue, const char *rest)
{
    world_redis(w, "EVAL %s 2 latchkey:queue:%s:{thing} latchkey:alive:%s:{thing} %d %s",
                "for i = 1, ARGV[1] do "
                "    local id = string.format('%032x:9:%d', i % 50, i) .. ARGV[2] "
                "    redis.call('ZADD', KEYS[1], i, id) redis.call('HSET', KEYS[2], string.sub(id, 1, 32), '5 5000 3000 0') "
                "end "
                "redis.call('PEXPIRE', KEYS[1], 60000) redis.call('PEXPIRE', KEYS[2], 60000)",
                queue, alive_of(queue), DEAD, rest);
}

static void bury(struct world *w, const struct subject_kind *kind)
{
    const char *rest, *queue = queue_of(kind, &rest);
    bury_in(w, queue, rest);
}

/* No question is under way. */
static void await_rest(struct world *w)
{
    int64_t asked;
    do {
        asked = world_commands(w, "evalsha");
        sleep_ms(200);
    } while (world_commands(w, "evalsha") != asked);
}

/* The live one, which has it until the test has looked: its release finds nobody else alive. */
struct survivor {
    struct subject *subject;
    struct gate has, looked;
};

static int survive(void *arg)
{
    struct survivor *survivor = arg;
    int rc = subject_take(survivor->subject, PATIENT_MS);
    if (rc != 0)
        return rc;
    gate_open(&survivor->has);
    while (!gate_is_open(&survivor->looked))
        sleep_ms(2);
    return subject_give(survivor->subject);
}

/* It waits, and has asked again since it listens. */
static void let_wait(struct world *w, struct survivor *survivor, struct worker *worker)
{
    worker_start(worker, survive, survivor);
    eventually(subject_queued(w, survivor->subject) == 1, PATIENT_MS);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") >= 1, PATIENT_MS);
    await_rest(w);
}

static void the_dead_cost_no_script_much(struct world *w, const struct subject_kind *kind)
{
    static struct survivor survivor; /* a test that failed leaves its thread behind, which goes on with it */
    struct worker worker;
    lk_client_t *one = world_client(w, "lease=20s&poll=8s");
    lk_client_t *other = world_client(w, "lease=20s&poll=8s");
    struct subject *keeper = world_subject(w, other, subject_keeper(kind), "thing");
    survivor = (struct survivor){ .subject = world_subject(w, one, kind, "thing") };
    assert_lk(0, subject_take(keeper, PATIENT_MS));
    let_wait(w, &survivor, &worker);
    bury(w, kind);

    int64_t before = world_commands(w, "evalsha");
    assert_lk(0, subject_give(keeper));
    eventually(gate_is_open(&survivor.has), SOON_MS + SLACK_MS); /* its poll is further away */
    int64_t commands = world_commands(w, "evalsha") - before, gone = DEAD - subject_queued(w, survivor.subject);
    print_message("                 %d gone in %d commands\n", (int)gone, (int)commands);
    assert_between(gone, 1, commands * BY_ONE_SCRIPT);
    gate_open(&survivor.looked);
    assert_int_equal(0, worker_join(&worker));
    assert_int_equal(0, subject_queued(w, keeper));
}

/* --- a newcomer ------------------------------------------------------------------------------------------------------- */

/* Nobody else lives whom a message would reach, so the first ask of a newcomer that hears none has to get by all of them. */
static void a_newcomer_alone_looks_at_few_of_the_dead(struct world *w)
{
    static const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    lk_mutex_t *m = world_mutex(w, world_client(w, "pubsub=no"), "thing", &fair);
    bury_in(w, "mutex", "");
    int64_t looks = world_commands(w, "hmget");
    assert_lk(0, lk_mutex_lock(m));
    assert_between(world_commands(w, "hmget") - looks, 1, DEAD / 50);
    assert_int_equal(0, world_queued(w, "thing"));
    assert_lk(0, lk_mutex_unlock(m));
    assert_false(world_exists(w, "latchkey:queue:mutex:{thing}"));
}

/* --- a condition ----------------------------------------------------------------------------------------------------- */

static lk_mutex_t *thing;
static lk_cond_t *some;

static int wait_for_some(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(thing);
    if (rc == 0)
        rc = lk_cond_waitfor(some, thing, PATIENT_MS);
    return rc != 0 ? rc : lk_mutex_unlock(thing);
}

/* A signal does not get lost among the dead, and a broadcast goes on until it is through. */
static void a_signal_finds_the_live_one(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&poll=8s");
    thing = world_mutex(w, client, "thing", NULL);
    some = world_cond(w, client, "thing", NULL);
    for (int all = 0; all < 2; all++) {
        struct worker worker;
        worker_start(&worker, wait_for_some, NULL);
        eventually(world_condqueued(w, "thing") == 1, PATIENT_MS);
        await_rest(w);
        bury_in(w, "cond", "");
        int64_t before = world_commands(w, "evalsha"), began_ms = now_ms();
        assert_lk(0, all ? lk_cond_broadcast(some) : lk_cond_signal(some));
        int64_t gone = DEAD - world_condqueued(w, "thing"), commands = world_commands(w, "evalsha") - before;
        assert_int_equal(0, worker_join(&worker));
        assert_between(now_ms() - began_ms, 0, SOON_MS + SLACK_MS);
        print_message("             %d gone in %d commands\n", (int)gone, (int)commands);
        assert_between(gone, all ? DEAD : 1, (commands + 1) * BY_ONE_SCRIPT);
        assert_lk(0, lk_cond_broadcast(some)); /* nobody lives */
        assert_int_equal(0, world_condqueued(w, "thing"));
    }
}

int main(void)
{
    return subject_run(the_dead_cost_no_script_much) +
           world_run(a_signal_finds_the_live_one, a_newcomer_alone_looks_at_few_of_the_dead);
}
