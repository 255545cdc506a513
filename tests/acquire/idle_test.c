/* SPDX-License-Identifier: MIT */
/*
 * idle_test.c - who waits for long sends little: no pings beside its questions, unless a message did not come
 *
 * labels: threads
 * simulated: yes
 * seconds: 8
 */
#include "proxy.h"
#include "line.h"

enum { SPAN_MS = 3500, SETTLE_MS = 400 };

/* One of each kind is held by one client and wanted by another. */
static void let_wait(struct world *w, struct line *line, lk_client_t *holding, lk_client_t *waiting)
{
    hold_all(w, line, holding);
    want_all(w, line, waiting);
    await_queued(w, line, 1);
    sleep_ms(SETTLE_MS); /* who has just subscribed asks once more */
}

/* Its questions go by another connection than messages, but would find out that none come. */
static void a_wait_needs_no_pings(struct world *w)
{
    lk_client_t *holding = world_client(w, "lease=30s");
    lk_client_t *waiting = world_client(w, "lease=30s");
    struct line line;
    let_wait(w, &line, holding, waiting);
    int64_t before = world_commands(w, "ping");
    sleep_ms(SPAN_MS);
    assert_int_equal(before, world_commands(w, "ping"));
    give_all(&line);
    join_all(&line);
    assert_int_equal(before, world_commands(w, "ping")); /* messages told of all */
    end_all(&line);
}

/* A subscription that is dead is noticed by the first message that does not come, and not with the next ping. */
static void a_message_that_does_not_come_is_asked_after(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    lk_client_t *holding = world_client(w, "lease=30s"),
                *waiting = proxy_client(p, "lease=30s&poll=900ms");
    struct line line;
    let_wait(w, &line, holding, waiting);
    for (int i = 0; i < line.n; i++) {
        proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
        int64_t before = world_commands(w, "ping"), faults = proxy_faults(p);
        assert_lk(0, subject_give(&line.held[i]));
        join_one(&line, i);
        if (proxy_faults(p) > faults) /* on a busy machine, a question may come before a message */
            eventually(world_commands(w, "ping") > before, 3000);
    }
    end_all(&line);
}

/* With the connection messages may have been lost: as soon as there is another one, each asks. */
static void a_new_subscription_has_each_ask(struct world *w)
{
    struct line line;
    let_wait(w, &line, world_client(w, "lease=60s"), world_client(w, "lease=60s&poll=20s"));
    int64_t asked = asks(w);
    world_killsubscriptions(w);
    eventually(asks(w) - asked >= line.n, 5000);
    give_all(&line);
    join_all(&line);
    end_all(&line);
}

int main(void)
{
    return world_run(a_wait_needs_no_pings, a_message_that_does_not_come_is_asked_after, a_new_subscription_has_each_ask);
}
