/* SPDX-License-Identifier: MIT */
/*
 * history_test.c - four processes take a redlock in turn for seconds, while one or two of the five servers are killed and
 * started again with nothing, or stand still: no two hold it at once, tokens rise, and nobody waits in vain
 *
 * Each process writes down what it does in memory that all share: one turn after another, so who was in has left before the
 * next one comes, or its hold was lost by then. With names of their own, which nobody else wants, nearly all of what they
 * try succeeds at once. LATCHKEY_HISTORY_SECONDS has each last for so long; --full means a minute.
 *
 * labels: long threads
 * simulated: yes
 * seconds: 20
 */
#include "quorum.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROCESSES = 4, LEASE_MS = 1500, LIMIT_MS = 8000 };

#define TIMES "lease=1500ms&command_timeout=300ms&retry_max=50ms"

static const lk_redlockattr_t attr = { .size = sizeof attr, .fenced = 1, .longest_lease_ms = LEASE_MS,
                                       .node_timeout_ms = LEASE_MS / 5 };

struct history {
    struct gate stop;
    const char *url;
    int inside;        /* who is in, from 1 on; 0: nobody. Reached with atomic builtins, as the rest */
    uint64_t token;    /* of the last who was in */
    int overlaps;      /* somebody was in with a good hold when another one came, whose hold was good */
    int falls;         /* a token was not above the one before */
    int turns, losses; /* how often anybody was in, and lost it meanwhile */
    int timeouts, others;
    int taken, missed; /* of what nobody else wanted: had at once, or not */
    /* Of each process: until when, at least, the hold is good with which it came in last. */
    int64_t good_ms[PROCESSES];
};

static void count(int *number)
{
    __atomic_add_fetch(number, 1, __ATOMIC_SEQ_CST);
}

static int64_t lasts_ms(void)
{
    const char *seconds = getenv("LATCHKEY_HISTORY_SECONDS");
    return seconds != NULL ? 1000 * atoll(seconds) : getenv("LATCHKEY_TEST_FULL") != NULL ? 60000 : 4000;
}

/*
 * In, with a good hold; others would be seen. Time left is looked at first and last, so a hold that ran out proves nothing:
 * neither that of who came, nor that of one that stands still inside.
 */
static void take_turn(struct history *h, lk_redlock_t *r, int me)
{
    uint64_t token = 0;
    int64_t left_ms = 0, came_ms = now_ms();
    int who = 0; /* nobody */
    if (lk_redlock_token(r, &token) != 0 || lk_redlock_remaining(r, &left_ms) != 0)
        return;
    __atomic_store_n(&h->good_ms[me - 1], came_ms + left_ms, __ATOMIC_SEQ_CST);
    bool entered = __atomic_compare_exchange_n(&h->inside, &who, me, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    bool beside = !entered && __atomic_load_n(&h->good_ms[who - 1], __ATOMIC_SEQ_CST) > came_ms;
    uint64_t before = __atomic_exchange_n(&h->token, token, __ATOMIC_SEQ_CST);
    sleep_ms(2);
    bool good = lk_redlock_remaining(r, &left_ms) == 0;
    if (good && beside)
        count(&h->overlaps);
    if (good && before >= token)
        count(&h->falls);
    if (entered)
        __atomic_store_n(&h->inside, 0, __ATOMIC_SEQ_CST);
    count(&h->turns);
}

static int take_turns(struct world *w, void *arg)
{
    struct history *h = arg;
    lk_client_t *client = NULL;
    lk_redlock_t r;
    assert_lk(0, open_patiently(&client, h->url));
    assert_lk(0, lk_redlock_init(&r, client, "jobs", &attr));
    world_ready(w);
    while (!gate_is_open(&h->stop)) {
        int rc = lk_redlock_lockfor(&r, LIMIT_MS);
        if (rc == 0) {
            take_turn(h, &r, w->me + 1);
            rc = lk_redlock_unlock(&r);
            if (rc == ESTALE)
                count(&h->losses);
        } else {
            count(rc == ETIMEDOUT ? &h->timeouts : &h->others);
        }
        sleep_ms(1);
    }
    (void)lk_redlock_destroy(&r);
    (void)lk_client_close(client);
    return 0;
}

/* Whatever one of them forgot was over when it gets its vote: two others may be away meanwhile, and no more. */
static void break_two(struct quorum *q, int round)
{
    int a = round % 5, b = (round + 2) % 5;
    quorum_kill(q, a);
    quorum_stop(q, b);
    sleep_ms(400);
    quorum_start(q, a);
    sleep_ms(300);
    quorum_cont(q, b);
    sleep_ms(LEASE_MS + 2500); /* until the first one votes */
}

static void nobody_is_in_twice(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    struct history *h = world_shared(w, sizeof *h);
    pid_t pids[PROCESSES];
    h->url = quorum_url(q, TIMES);
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = world_fork(w, take_turns, h);
    eventually(__atomic_load_n(&h->turns, __ATOMIC_SEQ_CST) > 0, 10000);
    int64_t until_ms = now_ms() + lasts_ms();
    for (int round = 0; now_ms() < until_ms; round++)
        break_two(q, round);
    gate_open(&h->stop);
    for (int i = 0; i < PROCESSES; i++)
        assert_same(0, world_wait(w, pids[i]));
    assert_same(0, h->overlaps);
    assert_same(0, h->falls);
    assert_same(0, h->timeouts);
    assert_same(0, h->others);
    assert_between(h->turns, 20, INT32_MAX);
    assert_between(h->losses, 0, h->turns / 10);
}

/* A name of its own. Within its limit a round may be tried again: somebody who is alone has it at once, or in the next one. */
static int take_own(struct world *w, void *arg)
{
    struct history *h = arg;
    lk_client_t *client = NULL;
    lk_redlock_t r;
    char name[16];
    uint64_t last = 0, token;
    snprintf(name, sizeof name, "own-%d", w->me);
    assert_lk(0, open_patiently(&client, h->url));
    assert_lk(0, lk_redlock_init(&r, client, name, &attr));
    eventually(lk_redlock_lockfor(&r, LIMIT_MS) == 0, 2 * LIMIT_MS); /* servers that started a moment ago do not vote yet */
    (void)lk_redlock_unlock(&r); /* whose answers may be late on a busy machine, as below */
    world_ready(w);
    while (!gate_is_open(&h->stop)) {
        int rc = lk_redlock_lockfor(&r, LIMIT_MS / 2);
        count(rc == 0 ? &h->taken : &h->missed);
        if (rc == 0 && (lk_redlock_token(&r, &token) != 0 || token <= last))
            count(&h->falls);
        last = rc == 0 ? token : last;
        if (rc == 0)
            (void)lk_redlock_unlock(&r);
        sleep_ms(1);
    }
    (void)lk_redlock_destroy(&r);
    (void)lk_client_close(client);
    return 0;
}

/* One at a time, so there always is a majority: killed and back with nothing, or stopped and going on. */
static void break_one(struct quorum *q, int round)
{
    int node = round % 5;
    if (round % 2 == 0) {
        quorum_kill(q, node);
        sleep_ms(200);
        quorum_start(q, node);
        sleep_ms(LEASE_MS + 1500); /* until it votes */
    } else {
        quorum_stop(q, node);
        sleep_ms(500);
        quorum_cont(q, node);
    }
}

static void nearly_all_succeed_while_a_minority_fails(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    struct history *h = world_shared(w, sizeof *h);
    pid_t pids[PROCESSES];
    h->url = quorum_url(q, TIMES);
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = world_fork(w, take_own, h);
    int64_t until_ms = now_ms() + lasts_ms();
    for (int round = 0; now_ms() < until_ms; round++)
        break_one(q, round);
    gate_open(&h->stop);
    for (int i = 0; i < PROCESSES; i++)
        assert_same(0, world_wait(w, pids[i]));
    print_message("%d taken, %d missed\n", h->taken, h->missed);
    assert_same(0, h->falls);
    assert_between(h->taken, 100, INT32_MAX);
    assert_between(h->missed, 0, h->taken / 999); /* 99.9 % */
}

int main(void)
{
    return world_run(nobody_is_in_twice, nearly_all_succeed_while_a_minority_fails);
}
