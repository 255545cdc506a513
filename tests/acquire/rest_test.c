/* SPDX-License-Identifier: MIT */
/*
 * rest_test.c - a waiter that knows of a lease which ends late rests: it sends next to nothing, and misses nothing but a
 * message that gets lost
 *
 * labels: threads
 * simulated: yes
 * seconds: 45
 */
#include "proxy.h"
#include "rest.h"

enum { CLAIM_MS = 3000, REST_MAX_MS = 16000 };

/* --- at rest ------------------------------------------------------------------------------------------------------- */

/* Nobody asks, and nothing is pinged, for some seconds. Their turn comes at once, though. */
static void who_rests_sends_next_to_nothing(struct world *w)
{
    enum { SPAN_MS = 5000 };
    struct line line;
    lk_client_t *holding = world_client(w, "lease=60s");
    lk_client_t *waiting = world_client(w, "lease=60s");
    hold_all(w, &line, holding);
    want_all(w, &line, waiting);
    eventually(resting(w) == line.n, RESTS_BY_MS);
    int64_t asked = asks(w), pinged = world_commands(w, "ping");
    sleep_ms(SPAN_MS);
    assert_between(asks(w) - asked, 0, 1);
    assert_between(world_commands(w, "ping") - pinged, 0, 1);
    int64_t began_ms = now_ms();
    give_all(&line);
    assert_between(join_all(&line) - began_ms, 0, 2 * SLACK_MS);
    end_all(&line);
}

/* A client whose poll ceiling is shorter asks as often as that says. */
static void who_shall_ask_often_does_not_rest(struct world *w)
{
    struct line line;
    lk_client_t *holding = world_client(w, "lease=60s");
    lk_client_t *waiting = world_client(w, "lease=60s&poll=500ms");
    hold_all(w, &line, holding);
    want_all(w, &line, waiting);
    sleep_ms(6000);
    assert_int_equal(0, resting(w));
    int64_t asked = asks(w);
    eventually(asks(w) - asked >= 2 * line.n, 4000);
    give_all(&line);
    join_all(&line);
    end_all(&line);
}

/* --- messages get lost ------------------------------------------------------------------------------------------------- */

/* With the connection: as soon as there is another one, each asks. */
static void a_new_subscription_wakes_those_who_rest(struct world *w)
{
    struct line line;
    hold_all(w, &line, world_client(w, "lease=60s"));
    want_all(w, &line, world_client(w, "lease=60s"));
    eventually(resting(w) == line.n, RESTS_BY_MS);
    int64_t asked = asks(w);
    world_killsubscriptions(w);
    eventually(asks(w) - asked >= line.n, 5000);
    give_all(&line);
    join_all(&line);
    end_all(&line);
}

/* Without: the next question finds out, which comes while its place is kept. */
static void a_message_that_is_lost_costs_one_rest(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct line line;
    hold_all(w, &line, world_client(w, "lease=60s"));
    want_all(w, &line, proxy_client(p, "lease=60s"));
    eventually(resting(w) == line.n, RESTS_BY_MS);
    int64_t began_ms = now_ms();
    for (int i = 0; i < line.n; i++) {
        int64_t faults = proxy_faults(p);
        proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
        assert_lk(0, subject_give(&line.held[i]));
        eventually(proxy_faults(p) > faults, 3000);
    }
    assert_between(join_all(&line) - began_ms, CLAIM_MS, REST_MAX_MS + SLACK_MS);
    end_all(&line);
}

int main(void)
{
    return world_run(who_rests_sends_next_to_nothing, who_shall_ask_often_does_not_rest,
                     a_new_subscription_wakes_those_who_rest, a_message_that_is_lost_costs_one_rest);
}
