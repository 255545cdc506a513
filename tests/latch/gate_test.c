/* SPDX-License-Identifier: MIT */
/*
 * gate_test.c - a start gate and a finish line for many threads of many processes
 *
 * processors: 4
 *
 * labels: threads memory
 */
#include "world.h"

#include <string.h>

enum { PROCESSES = 8, THREADS = 4, ALL = PROCESSES * THREADS, ROUNDS = SANITIZED ? 3 : 8 };
enum { SOON_MS = 3000 }; /* polls are 4 s apart at least */

/* What the threads have in common; each time is written by one of them, or by the test. */
struct race {
    struct gate begin[ROUNDS]; /* the test has set both latches of the round */
    int ended[ROUNDS];         /* threads that are through with it; atomic builtins */
    int64_t opens_ms[ROUNDS];  /* just before the last countdown of the start gate */
    int64_t started_ms[ROUNDS][ALL];
    int64_t counted_ms[ROUNDS][ALL]; /* just before its countdown of the finish line */
    int64_t ended_ms[ROUNDS][ALL];
};

struct process {
    struct race *race;
    lk_latch_t start, finish;
    int first; /* number of its first thread */
};

static int run_races(int index, void *arg)
{
    struct process *process = arg;
    struct race *race = process->race;
    int me = process->first + index;
    for (int round = 0; round < ROUNDS; round++) {
        gate_pass(&race->begin[round]);
        if (lk_latch_wait(&process->start) != 0)
            return 2;
        race->started_ms[round][me] = now_ms();
        race->counted_ms[round][me] = now_ms();
        if (lk_latch_countdown(&process->finish) != 0)
            return 3;
        if (lk_latch_wait(&process->finish) != 0)
            return 4;
        race->ended_ms[round][me] = now_ms();
        __atomic_add_fetch(&race->ended[round], 1, __ATOMIC_RELEASE);
    }
    return 0;
}

static int child(struct world *w, void *arg)
{
    struct process process = { .race = arg, .first = THREADS * w->me };
    lk_client_t *client = world_client(w, "lease=20s&poll=5s&command_timeout=5s");
    assert_lk(0, lk_latch_init(&process.start, client, "start", NULL));
    assert_lk(0, lk_latch_init(&process.finish, client, "finish", NULL));
    world_ready(w);
    int rc = run_threads(THREADS, run_races, &process);
    assert_lk(0, lk_latch_destroy(&process.start));
    assert_lk(0, lk_latch_destroy(&process.finish));
    world_close(w, client);
    return rc;
}

static int64_t latest(const int64_t times[ALL])
{
    int64_t most = times[0];
    for (int i = 1; i < ALL; i++)
        most = times[i] > most ? times[i] : most;
    return most;
}

static int64_t earliest(const int64_t times[ALL])
{
    int64_t least = times[0];
    for (int i = 1; i < ALL; i++)
        least = times[i] < least ? times[i] : least;
    return least;
}

/* Until the finish line opens its count never rises. */
static void watch_the_count(lk_latch_t *finish)
{
    unsigned last = ALL, count;
    do {
        assert_lk(0, lk_latch_getcount(finish, &count));
        assert_true(count <= last);
        last = count;
    } while (count > 0);
}

/* Nobody starts before the gate opens, nobody ends before all have arrived, and nobody sleeps on. */
static void all_start_together_and_wait_for_the_last(struct world *w)
{
    struct race *race = world_shared(w, sizeof *race);
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        children[i] = world_fork(w, child, race);
    lk_client_t *client = world_client(w, "lease=20s&poll=5s");
    lk_latch_t *start = world_latch(w, client, "start");
    lk_latch_t *finish = world_latch(w, client, "finish");
    for (int round = 0; round < ROUNDS; round++) {
        assert_lk(0, lk_latch_trysetcount(start, 2));
        assert_lk(0, lk_latch_trysetcount(finish, ALL));
        gate_open(&race->begin[round]);
        assert_lk(0, lk_latch_countdown(start)); /* one is not enough */
        sleep_ms(round % 2 == 0 ? 100 : round);
        race->opens_ms[round] = now_ms();
        assert_lk(0, lk_latch_countdown(start));
        watch_the_count(finish);
        assert_lk(0, lk_latch_waitfor(finish, 30000));
        /* Between its countdown and its wait a thread has no claim to this count: no new one before all are through. */
        eventually(__atomic_load_n(&race->ended[round], __ATOMIC_ACQUIRE) == ALL, 30000);
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, children[i]));
    for (int round = 0; round < ROUNDS; round++) {
        assert_true(earliest(race->started_ms[round]) >= race->opens_ms[round]);
        assert_between(latest(race->started_ms[round]) - race->opens_ms[round], 0, SOON_MS);
        assert_true(earliest(race->ended_ms[round]) >= latest(race->counted_ms[round]));
        assert_between(latest(race->ended_ms[round]) - latest(race->counted_ms[round]), 0, SOON_MS);
    }
}

static int dying_child(struct world *w, void *arg)
{
    (void)arg;
    lk_latch_t *finish = world_latch(w, world_client(w, ""), "finish");
    world_ready(w);
    return lk_latch_wait(finish);
}

/* Waiters that are killed are no burden to the others, and count nothing down. */
static void killed_waiters_change_nothing(struct world *w)
{
    lk_latch_t *finish;
    pid_t children[4];
    world_redis(w, "SET finish 1");
    for (int i = 0; i < 4; i++)
        children[i] = world_fork(w, dying_child, NULL);
    eventually(world_int(w, "PUBLISH redisson_countdownlatch__channel__{finish} 1") == 4, 5000); /* they all listen */
    finish = world_latch(w, world_client(w, ""), "finish");
    for (int i = 0; i < 4; i++)
        world_kill(w, children[i]);
    assert_int_equal(1, world_int(w, "GET finish"));
    assert_lk(0, lk_latch_countdown(finish));
    assert_lk(0, lk_latch_wait(finish));
}

int main(void)
{
    return world_run(all_start_together_and_wait_for_the_last, killed_waiters_change_nothing);
}
