/* SPDX-License-Identifier: MIT */
/*
 * frozen_test.c - a process stands still with many threads that wait: those behind them wait for one claim, not for
 * one of each
 *
 * Its connections stand, so the server counts it among the listeners.
 *
 * simulated: yes
 * seconds: 23
 */
#include "subject.h"

#include <stdlib.h>

/* Those far behind in the queue ask by then. */
enum { ASKS_AGAIN_MS = 50, MANY = SANITIZED ? 200 : 1000, SOME = 60, CLAIM_MS = 3000, SELDOM_CLAIM_MS = 12000, ASKS_BY_MS = 2000, GIVES_UP_MS = 20000 };
enum { LEASE_MS = 5000, LONG_CLAIM_MS = 8000 };

struct broadcast {
    const struct subject_kind *kind;
    const char *options;
    int count;
    struct gate wait;
};

static int wait_for_ever(void *arg)
{
    return subject_take(arg, LK_FOREVER);
}

static int wait_in_crowd(struct world *w, void *arg)
{
    struct broadcast *broadcast = arg;
    struct subject *s;
    struct worker *workers = calloc((size_t)broadcast->count, sizeof *workers);
    s = world_subject(w, world_client(w, broadcast->options), broadcast->kind, "thing");
    world_ready(w);
    gate_pass(&broadcast->wait);
    for (int i = 0; i < broadcast->count; i++)
        worker_start(&workers[i], wait_for_ever, s);
    sleep_ms(120000);
    return 0;
}

static int take_and_give(void *arg)
{
    int rc = subject_take(arg, GIVES_UP_MS);
    return rc != 0 ? rc : subject_give(arg);
}

/* A process with `crowd->count` threads that wait, and stand still. */
static pid_t freeze_crowd(struct world *w, struct broadcast *broadcast, struct subject **keeper_out,
                          const char *options)
{
    bool one = broadcast->kind == subject_kinds || broadcast->kind->wants == LK_WANTS_READ; /* for all its threads */
    int places = one ? 1 : broadcast->count;
    pid_t frozen = world_fork(w, wait_in_crowd, broadcast);
    struct subject *keeper = world_subject(w, world_client(w, options), subject_keeper(broadcast->kind), "thing");
    assert_lk(0, subject_take(keeper, 0));
    gate_open(&broadcast->wait);
    eventually(subject_queued(w, keeper) == places, 60000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 10000);
    sleep_ms(ASKS_AGAIN_MS); /* who has just subscribed asks once more */
    *keeper_out = keeper;
    return frozen;
}

static void end_crowd(struct world *w, pid_t frozen)
{
    static const char *const left[] = { "latchkey:queue:*", "latchkey:alive:*", "latchkey:claims:*", "latchkey:rw:*",
                                        "thing" };
    world_kill(w, frozen);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        world_allow(w, left[i]); /* what the dead had lapses */
}

/* How long a live waiter behind the threads of a process that stands still waits from the unlock on. */
static int64_t wait_behind(struct world *w, const struct subject_kind *kind, const char *options, int count)
{
    struct broadcast *broadcast = world_shared(w, sizeof *broadcast);
    struct subject *mine, *keeper;
    struct worker waiter;
    *broadcast = (struct broadcast){ .kind = kind, .options = options, .count = count };
    pid_t frozen = freeze_crowd(w, broadcast, &keeper, "lease=30s");
    mine = world_subject(w, world_client(w, "lease=30s&poll=200ms"), kind, "thing");
    int64_t before = subject_queued(w, keeper);
    worker_start(&waiter, take_and_give, mine);
    eventually(subject_queued(w, keeper) > before, 5000); /* readers of the crowd that come late stand behind it */
    world_stop(frozen);
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(keeper));
    assert_lk(0, worker_join(&waiter));
    int64_t took_ms = now_ms() - began_ms;
    end_crowd(w, frozen);
    return took_ms;
}

/* A claim, until the next live waiter asks, and whatever this machine takes beside. */
static void a_thousand_threads_are_one_client(struct world *w)
{
    int64_t took_ms = wait_behind(w, &subject_kinds[1], "lease=30s", MANY);
    assert_between(took_ms, 0, CLAIM_MS + ASKS_BY_MS + 5 * SLACK_MS);
}

/* Whatever can be held. A client that asks seldom has longer claims. */
static void one_claim_each(struct world *w, const struct subject_kind *kind)
{
    int64_t took_ms = wait_behind(w, kind, "lease=7s&poll=7s", SOME);
    assert_between(took_ms, 0, SELDOM_CLAIM_MS + ASKS_BY_MS + 5 * SLACK_MS);
}

/* Of the one claim there is, whatever it is on. */
static int64_t claim_left(struct world *w)
{
    return world_int(w, "EVAL %s 4 thing latchkey:rw:{thing} latchkey:permits:{thing} latchkey:claims:{thing}",
                     "local time, left = redis.call('TIME'), redis.call('PTTL', KEYS[1]) "
                     "for i = 2, 4 do "
                     "  local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')[2] "
                     "  if last then left = math.max(left, last - time[1] * 1000 - math.floor(time[2] / 1000)) end "
                     "end return left");
}

/*
 * A claim lasts as long as its waiter needs it, which may be far away, whatever leases those have who hand over to it:
 * theirs may end before it has the message.
 */
static void claims(struct world *w, const struct subject_kind *kind)
{
    struct broadcast *broadcast = world_shared(w, sizeof *broadcast);
    struct subject *keeper;
    *broadcast = (struct broadcast){ .kind = kind, .options = "lease=30s&command_timeout=4s", .count = 1 };
    pid_t frozen = freeze_crowd(w, broadcast, &keeper, "lease=5s");
    world_stop(frozen);
    assert_lk(0, subject_give(keeper));
    assert_int_equal(1, subject_held(w, keeper));
    assert_between(claim_left(w), LEASE_MS + 1, LONG_CLAIM_MS);
    end_crowd(w, frozen);
}

int main(void)
{
    int failed = subject_run(claims, one_claim_each);
    return failed + world_run(a_thousand_threads_are_one_client);
}
