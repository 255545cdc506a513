/* SPDX-License-Identifier: MIT */
/*
 * unread_events_test.c - events that nobody fetches take no more memory from a number on, and no loss is kept quiet
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "log.h"
#include "world.h"

#include <stdio.h>

enum { KEPT = 4096, HOLDS = KEPT + 200, BATCH = HOLDS / 2 };

static lk_mutex_t mutexes[BATCH];
static lk_client_t *client;

static void make_mutexes(void)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .fixed = 1, .lease_ms = 1000 };
    for (int i = 0; i < BATCH; i++) {
        char name[16];
        snprintf(name, sizeof name, "object-%d", i);
        assert_lk(0, lk_mutex_init(&mutexes[i], client, name, &attr));
    }
}

/* Lock all, and be late with each. */
static void lose_all(void)
{
    int64_t left_ms;
    for (int i = 0; i < BATCH; i++)
        assert_lk(0, lk_mutex_lock(&mutexes[i]));
    for (int i = 0; i < BATCH; i++) {
        eventually(lk_mutex_remaining(&mutexes[i], &left_ms) == ESTALE, 5000);
        assert_lk(ESTALE, lk_mutex_unlock(&mutexes[i]));
    }
}

/* Two users: one that reads what is there, and one that comes late. */
static void losses_are_counted_where_they_are_not_kept(struct world *w)
{
    lk_event_t event = LK_EVENT_INIT;
    uint64_t events = 0, losses = 0;
    world_allow(w, "*");
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    client = world_client(w, "connect_timeout=10s&warn_wait=no"); /* losses alone are events */
    lk_events_t *unread = world_events(w, client), *half = world_events(w, client);
    make_mutexes();
    lose_all();
    for (int i = 0; i < BATCH; i++)
        assert_lk(0, lk_events_next(half, &event));
    assert_lk(EAGAIN, lk_events_next(half, &event));
    lose_all();
    lk_mutex_t *next = world_mutex(w, client, "next", NULL);
    assert_lk(0, lk_mutex_lock(next)); /* a new hold makes room */
    assert_lk(0, lk_mutex_unlock(next));
    for (; lk_events_next(unread, &event) == 0; events++) {
        assert_int_equal(LK_EVENT_LOST, event.type);
        assert_true(events > 0
                        ? event.count == 1 && event.name[0] != '\0'
                        : event.count == HOLDS - KEPT && event.name[0] == '\0' && event.reason == LK_REASON_NONE);
        losses += event.count;
    }
    assert_int_equal(KEPT + 1, events);
    assert_int_equal(HOLDS, losses);
    for (int i = 0; i < BATCH; i++) {
        assert_lk(0, lk_events_next(half, &event));
        assert_true(event.count == 1);
    }
    assert_lk(EAGAIN, lk_events_next(half, &event));
    for (int i = 0; i < BATCH; i++)
        assert_lk(0, lk_mutex_destroy(&mutexes[i]));
}

int main(void)
{
    return world_run(losses_are_counted_where_they_are_not_kept);
}
