/* SPDX-License-Identifier: MIT */
/*
 * holder_stopped_test.c - F51: a process stands still for longer than its lease, and goes on
 *
 * labels: memory
 * simulated: yes
 * seconds: 20
 */
#include "subject.h"

#include <string.h>

enum { LEASE_MS = 1500 };

#define OPTIONS "lease=1500ms&command_timeout=450ms&poll=200ms"

/* What a child found out. */
struct findings {
    const struct subject_kind *kind;
    struct gate resumed, looked, close;
    int remaining, token, nested, give, again, take;
    int64_t looked_for_ms, lost_events;
};

static void count_losses(const lk_event_t *event, void *arg)
{
    struct findings *found = arg;
    if (event->type == LK_EVENT_LOST)
        __atomic_add_fetch(&found->lost_events, 1, __ATOMIC_SEQ_CST);
}

static int hold_and_look(struct world *w, void *arg)
{
    struct findings *found = arg;
    lk_client_t *client = world_client(w, OPTIONS);
    int64_t left_ms;
    uint64_t token;
    assert_lk(0, lk_client_addlistener(client, count_losses, found, NULL));
    struct subject *s = world_subject(w, client, found->kind, "thing");
    assert_lk(0, subject_take(s, 1000));
    world_ready(w);
    gate_pass(&found->resumed);
    int64_t began_ms = now_ms();
    found->remaining = subject_remaining(s, &left_ms);
    found->token = found->kind->fenced ? found->kind->token(s, &token) : found->remaining;
    found->nested = strstr(found->kind->name, "semaphore") == NULL ? subject_take(s, 0) : found->remaining;
    found->looked_for_ms = now_ms() - began_ms;
    found->give = subject_give(s);
    if (found->kind->leased)
        found->again = subject_give(s);
    gate_open(&found->looked);
    gate_pass(&found->close);
    return 0;
}

/* It learns of its loss by itself, with the server out of reach, and the other's hold stays whole. */
static void a_holder_is_stopped(struct world *w, const struct subject_kind *kind)
{
    struct findings *found = world_shared(w, sizeof *found);
    found->kind = kind;
    pid_t child = world_fork(w, hold_and_look, found);
    lk_client_t *client = world_client(w, "lease=20s");
    struct subject *keeper = world_subject(w, client, subject_keeper(kind), "thing");
    world_stop(child);
    assert_lk(kind->leased ? 0 : ETIMEDOUT, subject_take(keeper, LEASE_MS + 2 * SLACK_MS));
    if (kind->leased)
        world_stop_server(w);
    gate_open(&found->resumed);
    world_cont(child);
    gate_pass(&found->looked);
    assert_int_equal(kind->leased ? ESTALE : 0, found->remaining);
    assert_int_equal(found->remaining, found->token);
    assert_int_equal(found->remaining, found->nested);
    assert_between(found->looked_for_ms, 0, SLACK_MS);
    assert_int_equal(kind->leased ? ESTALE : 0, found->give);
    assert_int_equal(kind->leased ? EPERM : 0, found->again);
    if (kind->leased)
        world_cont_server(w);
    gate_open(&found->close);
    assert_int_equal(0, world_wait(w, child));
    assert_int_equal(kind->leased, found->lost_events);
    assert_int_equal(kind->leased, subject_held(w, keeper));
    if (kind->leased) {
        assert_lk(0, subject_check(keeper));
        assert_lk(0, subject_give(keeper));
    }
}

static int wait_and_give(struct world *w, void *arg)
{
    struct findings *found = arg;
    lk_client_t *client = world_client(w, OPTIONS);
    struct subject *s = world_subject(w, client, found->kind, "thing");
    world_ready(w);
    gate_pass(&found->resumed);
    found->take = subject_take(s, LK_FOREVER);
    if (found->take == 0)
        found->give = subject_give(s);
    return 0;
}

/* One that waits stands still: it may be handed the thing, which then is somebody else's when its claim ends. */
static void a_waiter_is_stopped(struct world *w, const struct subject_kind *kind)
{
    struct findings *found = world_shared(w, sizeof *found);
    found->kind = kind;
    pid_t child = world_fork(w, wait_and_give, found);
    lk_client_t *client = world_client(w, OPTIONS);
    struct subject *keeper = world_subject(w, client, subject_keeper(kind), "thing");
    struct subject *mine = world_subject(w, client, kind, "thing");
    assert_lk(0, subject_take(keeper, 1000));
    gate_open(&found->resumed);
    eventually(subject_queued(w, mine) == 1, 2000);
    world_stop(child);
    assert_lk(0, subject_give(keeper));
    /* A claim lasts as long as the lease; that of a bare permit 3 seconds. */
    assert_lk(0, subject_take(keeper, (kind->leased ? LEASE_MS : 3000) + 2 * SLACK_MS));
    world_cont(child);
    sleep_ms(100); /* its old grant must not count */
    assert_int_equal(1, subject_held(w, keeper));
    assert_lk(0, subject_give(keeper));
    assert_int_equal(0, world_wait(w, child));
    assert_int_equal(0, found->take);
    assert_int_equal(0, found->give);
}

int main(void)
{
    return subject_run(a_holder_is_stopped, a_waiter_is_stopped);
}
