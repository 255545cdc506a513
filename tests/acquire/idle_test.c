/* SPDX-License-Identifier: MIT */
/*
 * idle_test.c - who waits for long sends little: no pings beside its questions, unless a message did not come
 *
 * labels: threads
 * seconds: 8
 */
#include "proxy.h"
#include "subject.h"

#include <stdio.h>

enum { KINDS_MAX = 16, SPAN_MS = 3500, LIMIT_MS = 30000 };

static struct subject held[KINDS_MAX], wanted[KINDS_MAX];
static struct errand errands[KINDS_MAX];

/* One of each kind is held by one client and wanted by another. Returns how many. */
static int let_wait(struct world *w, lk_client_t *holding, lk_client_t *waiting)
{
    int n = 0;
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++, n++) {
        char name[16];
        assert_true(n < KINDS_MAX);
        snprintf(name, sizeof name, "thing-%d", n);
        subject_init(w, &held[n], subject_keeper(kind), holding, name, 0);
        subject_init(w, &wanted[n], kind, waiting, name, 0);
        assert_lk(0, subject_take(&held[n], 1000));
        errand_start(&errands[n], &wanted[n], LIMIT_MS);
        eventually(subject_queued(w, &wanted[n]) == 1, 5000);
    }
    return n;
}

static void let_go(int i)
{
    assert_lk(0, subject_give(&held[i]));
    errand_join(&errands[i]);
    assert_lk(0, errands[i].took);
    assert_lk(0, errands[i].gave);
    assert_lk(0, subject_destroy(&wanted[i]));
    assert_lk(0, subject_destroy(&held[i]));
}

/* Its questions go by another connection than messages, but would find out that none come. */
static void a_wait_needs_no_pings(struct world *w)
{
    lk_client_t *holding = world_client(w, "lease=30s"), *waiting = world_client(w, "lease=30s");
    int n = let_wait(w, holding, waiting);
    int64_t before = world_commands(w, "ping");
    sleep_ms(SPAN_MS);
    assert_int_equal(before, world_commands(w, "ping"));
    for (int i = 0; i < n; i++)
        let_go(i);
    assert_int_equal(before, world_commands(w, "ping")); /* messages told of all */
}

/* A subscription that is dead is noticed by the first message that does not come, and not with the next ping. */
static void a_message_that_does_not_come_is_asked_after(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    lk_client_t *holding = world_client(w, "lease=30s"), *waiting = proxy_client(p, "lease=30s");
    int n = let_wait(w, holding, waiting);
    for (int i = 0; i < n; i++) {
        int64_t before = world_commands(w, "ping"), faults = proxy_faults(p);
        proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
        let_go(i);
        if (proxy_faults(p) > faults) /* on a busy machine, a question may come before a message */
            eventually(world_commands(w, "ping") > before, 1000);
    }
}

int main(void)
{
    return world_run(a_wait_needs_no_pings, a_message_that_does_not_come_is_asked_after);
}
