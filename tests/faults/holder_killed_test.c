/* SPDX-License-Identifier: MIT */
/*
 * holder_killed_test.c - F50: a process is killed while it holds or waits
 *
 * labels: memory
 * simulated: yes
 * seconds: 22
 */
#include "subject.h"

#include <string.h>

enum { LEASE_MS = 1500, POLL_MS = 200, LIVENESS_MS = 5000, DEAD = 5 };

#define OPTIONS "lease=1500ms&command_timeout=450ms&poll=200ms" /* of those who are killed */
#define PATIENTLY "lease=5s&poll=200ms"

struct order {
    const struct subject_kind *kind;
    uint64_t token;
    struct gate leave;
};

/* Until it is told to leave, or killed. */
static int hold(struct world *w, void *arg)
{
    struct order *order = arg;
    struct subject *s = world_subject(w, world_client(w, OPTIONS), order->kind, "thing");
    assert_lk(0, subject_take(s, 1000));
    order->token = subject_token(s);
    world_ready(w);
    gate_pass(&order->leave);
    return subject_give(s);
}

static int wait_until_killed(struct world *w, void *arg)
{
    struct subject *s = world_subject(w, world_client(w, OPTIONS), arg, "thing");
    world_ready(w);
    return subject_take(s, LK_FOREVER);
}

/* The next one has it when the lease ends, not before, and with a greater token. A bare permit is gone. */
static void a_holder_is_killed(struct world *w, const struct subject_kind *kind)
{
    struct order *order = world_shared(w, sizeof *order);
    order->kind = subject_keeper(kind);
    pid_t holder = world_fork(w, hold, order);
    lk_client_t *client = world_client(w, PATIENTLY);
    struct subject *mine = world_subject(w, client, kind, "thing");
    if (kind->leased)
        assert_int_equal(1, subject_held(w, mine));
    int64_t began_ms = now_ms(), left_ms = world_killholder(w, holder, "thing");
    if (kind->leased) {
        assert_between(left_ms, 1, LEASE_MS);
        assert_lk(0, subject_take(mine, LEASE_MS + 2 * SLACK_MS));
        assert_between(now_ms() - began_ms, left_ms - 1, left_ms + 2 * SLACK_MS);
        assert_true(!kind->fenced || subject_token(mine) > order->token);
        assert_lk(0, subject_give(mine));
    } else {
        assert_lk(ETIMEDOUT, subject_take(mine, 2 * LEASE_MS));
        assert_lk(0, subject_give(mine)); /* an operator's work: the number is put right */
        assert_lk(0, subject_take(mine, 0));
        assert_lk(0, subject_give(mine));
    }
}

/* Several who wait are killed: those behind them pay once, not for each. */
static void waiters_are_killed(struct world *w, const struct subject_kind *kind)
{
    struct order *order = world_shared(w, sizeof *order);
    pid_t waiters[DEAD];
    order->kind = subject_keeper(kind);
    pid_t holder = world_fork(w, hold, order);
    for (int i = 0; i < DEAD; i++)
        waiters[i] = world_fork(w, wait_until_killed, (void *)kind);
    lk_client_t *client = world_client(w, PATIENTLY);
    struct subject *mine = world_subject(w, client, kind, "thing");
    struct subject *keeper = world_subject(w, client, subject_keeper(kind), "thing");
    eventually(subject_queued(w, mine) == DEAD && subject_listening(w, mine), 5000);
    for (int i = 0; i < DEAD; i++)
        world_kill(w, waiters[i]);
    world_kill(w, holder);
    if (!kind->leased)
        assert_lk(0, subject_give(mine)); /* for the one that was killed */
    assert_lk(0, subject_take(mine, LEASE_MS + LIVENESS_MS + POLL_MS + SLACK_MS));
    assert_lk(0, subject_give(mine));
    assert_lk(0, subject_take(keeper, SLACK_MS));
    assert_lk(0, subject_give(keeper));
    subject_forget_queues(w);
}

/* Where the server knows that their connections ended, places of the dead cost those behind them nothing. */
static void what_is_free_behind_the_dead_is_had_at_once(struct world *w, const struct subject_kind *kind)
{
    const struct subject thing = { .kind = kind, .name = "thing" };
    struct order *order = world_shared(w, sizeof *order);
    pid_t waiters[DEAD];
    order->kind = subject_keeper(kind);
    pid_t holder = world_fork(w, hold, order);
    for (int i = 0; i < DEAD; i++)
        waiters[i] = world_fork(w, wait_until_killed, (void *)kind);
    eventually(subject_queued(w, &thing) == DEAD && subject_listening(w, &thing), 5000);
    for (int i = 0; i < DEAD; i++)
        world_kill(w, waiters[i]);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 0, 5000);
    gate_open(&order->leave);
    assert_int_equal(0, world_wait(w, holder));
    lk_client_t *client = world_client(w, PATIENTLY);
    struct subject *both[] = { world_subject(w, client, subject_keeper(kind), "thing"),
                               world_subject(w, world_client(w, PATIENTLY), kind, "thing") };
    for (int i = 0; i < 6; i++) {
        int64_t began_ms = now_ms();
        assert_lk(0, subject_take(both[i % 2], 5000));
        assert_lk(0, subject_give(both[i % 2]));
        assert_between(now_ms() - began_ms, 0, SLACK_MS);
    }
    subject_forget_queues(w);
}

int main(void)
{
    return subject_run(a_holder_is_killed, waiters_are_killed, what_is_free_behind_the_dead_is_had_at_once);
}
