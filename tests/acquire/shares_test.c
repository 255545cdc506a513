/* SPDX-License-Identifier: MIT */
/*
 * shares_test.c - eight clients that hear no message share one object evenly, whatever it is; and beside others, or with
 * other settings than the rest, each has its turn
 *
 * simulated: yes
 * seconds: 90
 * processors: 2
 */
#include "subject.h"

#include <stdatomic.h>
#include <string.h>

/* The pause is shorter than what comes between two turns of others: who just had it is back before anybody asks. */
enum { CLIENTS = 8, HOLD_MS = 5, PAUSE_MS = 5, WARM_MS = 1000, RUN_MS = 7000, TRIES = 5 };

struct contest {
    const struct subject_kind *kind;
    const char *const *options; /* of each client */
    atomic_int seats;
    struct gate begin, stop;
    atomic_int turns[CLIENTS];
    int before[CLIENTS];
};

static int compete(struct world *w, void *arg)
{
    struct contest *contest = arg;
    int seat = atomic_fetch_add(&contest->seats, 1);
    struct subject *s = world_subject(w, world_client(w, contest->options[seat]), contest->kind, "thing");
    world_ready(w);
    gate_pass(&contest->begin);
    while (!gate_is_open(&contest->stop)) {
        assert_lk(0, subject_take(s, 60000));
        atomic_fetch_add(&contest->turns[seat], 1);
        sleep_ms(HOLD_MS);
        assert_lk(0, subject_give(s));
        sleep_ms(PAUSE_MS);
    }
    return 0;
}

static struct contest *begin_contest(struct world *w, const struct subject_kind *kind, const char *const *options,
                                     pid_t *pids)
{
    struct contest *contest = world_shared(w, sizeof *contest);
    contest->kind = kind;
    contest->options = options;
    world_allow(w, "*"); /* how many permits there are */
    for (int i = 0; i < CLIENTS; i++)
        pids[i] = world_fork(w, compete, contest);
    gate_open(&contest->begin);
    return contest;
}

static void end_contest(struct world *w, struct contest *contest, const pid_t *pids)
{
    gate_open(&contest->stop);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
}

/* From now on. */
static void begin_count(struct contest *contest)
{
    for (int i = 0; i < CLIENTS; i++)
        contest->before[i] = atomic_load(&contest->turns[i]);
}

/* How many turns each has had when some more time has passed; returns the least, and the most by `most`. */
static int count_turns(struct world *w, struct contest *contest, int *most)
{
    int least = INT32_MAX;
    int64_t commands = world_commands(w, "evalsha");
    *most = 0;
    sleep_ms(RUN_MS);
    for (int i = 0; i < CLIENTS; i++) {
        int turns = atomic_load(&contest->turns[i]) - contest->before[i];
        print_message("%d ", turns);
        least = turns < least ? turns : least;
        *most = turns > *most ? turns : *most;
    }
    print_message("turns of %s, %lld commands\n", contest->kind->name, (long long)(world_commands(w, "evalsha") - commands));
    return least;
}

static const struct subject_kind *kind_named(const char *name)
{
    const struct subject_kind *kind = subject_kinds;
    while (strcmp(kind->name, name) != 0)
        kind++;
    return kind;
}

static void share(struct world *w, const char *name)
{
    static const char *const unheard[CLIENTS] = { "pubsub=no", "pubsub=no", "pubsub=no", "pubsub=no",
                                                  "pubsub=no", "pubsub=no", "pubsub=no", "pubsub=no" };
    pid_t pids[CLIENTS];
    int most;
    struct contest *contest = begin_contest(w, kind_named(name), unheard, pids);
    sleep_ms(WARM_MS);
    begin_count(contest);
    int least = count_turns(w, contest, &most);
    for (int i = 1; i < TRIES && 2 * least < most;
         i++) /* on a busy machine turns are fewer, and the luckiest has more */
        least = count_turns(w, contest, &most);
    end_contest(w, contest, pids);
    if (!SANITIZED && !NOISY)
        assert_true(2 * least >= most);
    assert_true(least > 0);
}

static void a_mutex_is_shared_evenly(struct world *w)
{
    share(w, "mutex");
}

static void permits_are_shared_evenly(struct world *w)
{
    share(w, "semaphore");
}

/* Whether a waiter receives messages, and how often it asks, makes no difference. */
static void beside_others_each_has_its_turn(struct world *w)
{
    static const char *const mixed[CLIENTS] = {
        "",
        "poll=500ms",
        "pubsub=no",
        "pubsub=no&poll=100ms",
        "pubsub=no&poll=5ms",
        "pubsub=no&poll=200ms",
        "pubsub=no&poll=1666ms",
        "pubsub=no&poll=3s",
    };
    pid_t pids[CLIENTS];
    int most, least;
    struct contest *contest = begin_contest(w, kind_named("fair mutex"), mixed, pids);
    sleep_ms(WARM_MS);
    begin_count(contest);
    least = count_turns(w, contest, &most);
    end_contest(w, contest, pids);
    assert_true(2 * least >= most);
}

int main(void)
{
    return world_run(a_mutex_is_shared_evenly, permits_are_shared_evenly, beside_others_each_has_its_turn);
}
