/* SPDX-License-Identifier: MIT */
/*
 * sharded_test.c - a node that has sharded messages publishes and hears them for every primitive, and asks for the
 * rights to them alone
 *
 * Nodes of single servers have plain messages; here they are told otherwise, as a node of a cluster will be. A server
 * that is in no cluster knows sharded messages, too: they reach whoever subscribed to them, and nobody else.
 *
 * labels: threads
 * simulated: yes
 */
#include "client/client.h"
#include "hub/hub.h"
#include "proxy.h"
#include "subject.h"

#include <stdio.h>
#include <string.h>

/* Who polls, and does not hear, comes too late. */
#define OPTIONS "lease=60s&poll=60s"
enum { SOON_MS = 10000 };

static lk_client_t *sharded_client(struct world *w, const char *options)
{
    lk_client_t *client = world_client(w, options);
    client->node.server.pubsub = LK__PUBSUB_SHARDED;
    return client;
}

static int64_t listeners(struct world *w, const char *pattern)
{
    return world_elements(w, "PUBSUB SHARDCHANNELS %s", pattern);
}

static void expect_sharded_only(struct world *w)
{
    assert_true(world_commands(w, "spublish") > 0);
    assert_int_equal(0, world_commands(w, "publish"));
    assert_int_equal(0, world_elements(w, "PUBSUB CHANNELS"));
    assert_int_equal(0, world_commands(w, "subscribe"));
}

static void hand_over(struct world *w, struct subject *from, struct subject *to)
{
    struct errand errand;
    errand_start(&errand, to, 6 * SOON_MS);
    eventually(subject_queued(w, from) == 1 && listeners(w, "latchkey:client:*") >= 1, SOON_MS);
    assert_lk(0, subject_give(from));
    errand_join(&errand);
    assert_lk(0, errand.took);
    assert_lk(0, errand.gave);
    assert_true(errand.took_ms - errand.began_ms < 2 * SOON_MS);
}

/* Also after the server forgot the scripts, and with a subscription that was cut. */
static void a_waiter_hears_that_it_was_granted(struct world *w, const struct subject_kind *kind)
{
    struct subject *mine = world_subject(w, sharded_client(w, OPTIONS), subject_keeper(kind), "orders");
    struct subject *theirs = world_subject(w, sharded_client(w, OPTIONS), kind, "orders");
    for (int round = 0; round < 4; round++) {
        assert_lk(0, subject_take(mine, 0));
        hand_over(w, mine, theirs);
        world_blow(w, round % 2 == 0 ? 0 : 2);
    }
    expect_sharded_only(w);
}

/* Nobody of Redisson's listens, so no hand-over is left to it: its channels are compared by sharded messages as well. */
static void none_is_left_to_a_redisson_that_is_not_there(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *client = sharded_client(w, OPTIONS "&redisson=yes");
    struct subject *mine = world_subject(w, client, subject_keeper(kind), "orders");
    struct subject *theirs = world_subject(w, sharded_client(w, OPTIONS "&redisson=yes"), kind, "orders");
    world_allow(w, "redisson_lock_token:*");
    for (int round = 0; round < 40; round++) {
        assert_lk(0, subject_take(mine, 0));
        hand_over(w, mine, theirs);
    }
    expect_sharded_only(w);
    assert_true(lk__node_stats(&client->node).reloads < 10); /* after the first time the server knows them by SHA1 */
}

static void a_latch_opens_for_those_who_wait(struct world *w)
{
    lk_latch_t *here = world_latch(w, sharded_client(w, OPTIONS), "gate");
    lk_latch_t *there = world_latch(w, sharded_client(w, OPTIONS), "gate");
    struct worker waiter;
    assert_lk(0, lk_latch_trysetcount(here, 1));
    worker_start(&waiter, await_latch, there);
    eventually(listeners(w, "redisson_countdownlatch__channel__{gate}") == 1, SOON_MS);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_latch_countdown(here));
    assert_int_equal(0, worker_join(&waiter));
    assert_true(now_ms() - began_ms < SOON_MS);
    expect_sharded_only(w);
}

/* A plain message does not reach it: the two kinds are different channels. */
static void a_plain_node_is_not_heard(struct world *w)
{
    lk_latch_t *here = world_latch(w, world_client(w, OPTIONS), "gate");
    lk_latch_t *there = world_latch(w, sharded_client(w, "lease=60s&poll=1s"), "gate");
    struct worker waiter;
    assert_lk(0, lk_latch_trysetcount(here, 1));
    worker_start(&waiter, await_latch, there);
    eventually(listeners(w, "redisson_countdownlatch__channel__{gate}") == 1, SOON_MS);
    world_subscribe(w, "redisson_countdownlatch__channel__{gate}");
    assert_lk(0, lk_latch_countdown(here));
    assert_string_equal("0", world_message(w, SOON_MS));
    assert_int_equal(0, world_commands(w, "spublish"));
    assert_int_equal(0, worker_join(&waiter)); /* it polled */
}

/* --- before it is subscribed ----------------------------------------------------------------------------------- */

/* Turns of those who are not heard are that far apart, and one has to ask shortly before its turn. */
enum { ROUNDS = 4 };

/* By how much the second in the queue, who is heard, had it before the first, whose subscription is still on its way. */
static int64_t passed_by_ms(struct world *w, struct proxy *proxy, struct subject *mine, struct subject *second)
{
    lk_client_t *client = proxy_client(proxy, OPTIONS);
    client->node.server.pubsub = LK__PUBSUB_SHARDED;
    struct subject *first = world_subject(w, client, mine->kind, mine->name);
    struct errand errands[2];
    assert_lk(0, subject_take(mine, 0));
    proxy_once(proxy, PROXY_HOLD_REQUEST, 1, "SSUBSCRIBE");
    errand_start(&errands[0], first, 6 * SOON_MS);
    eventually(subject_queued(w, mine) == 1, SOON_MS);
    errand_start(&errands[1], second, 6 * SOON_MS);
    eventually(subject_queued(w, mine) == 2, SOON_MS);
    assert_lk(0, subject_give(mine));
    for (int i = 0; i < 2; i++) {
        errand_join(&errands[i]);
        assert_lk(0, errands[i].took);
        assert_lk(0, errands[i].gave);
        assert_true(errands[i].took_ms - errands[i].began_ms < 2 * SOON_MS);
    }
    assert_int_equal(1, listeners(w, "latchkey:client:*")); /* of the second one: the first never heard anything */
    proxy_release(proxy);
    world_close(w, client);
    return errands[0].took_ms - errands[1].took_ms;
}

/*
 * Its entry says so: what it is offered is kept for it until it asks again, and nobody passes it. Nor does it sleep until
 * the next poll.
 */
static void who_is_not_heard_yet_is_not_passed(struct world *w)
{
    const struct subject_kind *fair = &subject_kinds[1];
    struct proxy *proxy = proxy_begin(w);
    struct subject *mine = world_subject(w, sharded_client(w, OPTIONS), fair, "orders");
    struct subject *second = world_subject(w, sharded_client(w, OPTIONS), fair, "orders");
    int64_t passed_ms = 1;
    assert_lk(0, subject_take(mine, 0));
    hand_over(w, mine, second); /* from now on it is heard */
    for (int i = 0; i < ROUNDS && passed_ms > 0; i++) { /* on a busy machine it may take too long to come to that */
        passed_ms = passed_by_ms(w, proxy, mine, second);
    }
    assert_true(passed_ms <= 0);
}

/* --- rights ---------------------------------------------------------------------------------------------------- */

/* A node that logs in as that user; "" if it comes up, or why it does not. */
static const char *trouble_of(struct world *w, enum lk__pubsub_kind pubsub)
{
    static char errmsg[LK__ERRMSG_MAX];
    char url[160];
    struct lk__options options;
    struct lk__connector *connector;
    struct lk__node node;
    snprintf(url, sizeof url, "unix://app:secret@%s", w->socket);
    assert_int_equal(0, lk__options_url(&options, url));
    assert_int_equal(0, lk__connector_start(&connector));
    assert_int_equal(0, lk__node_init(&node, connector, &options));
    node.server.pubsub = pubsub;
    lk__node_want(&node, LK__LANE_COMMANDS);
    struct lk__conn *conn = &node.lanes[LK__LANE_COMMANDS];
    eventually(lk__conn_isup(conn) || lk__conn_failures(conn) > 0, SOON_MS);
    lk__conn_lasterror(&node.lanes[LK__LANE_COMMANDS], errmsg, sizeof errmsg);
    for (int lane = 0; lane < LK__LANES; lane++)
        lk__node_close(&node, (enum lk__lane)lane);
    lk__connector_stop(connector);
    lk__node_destroy(&node);
    lk__connector_unref(connector);
    return errmsg;
}

static void it_needs_the_rights_to_its_own_messages(struct world *w)
{
    world_redis(w, "ACL SETUSER app on >secret ~* &* +@all -publish -subscribe -unsubscribe");
    assert_string_equal("", trouble_of(w, LK__PUBSUB_SHARDED));
    assert_non_null(strstr(trouble_of(w, LK__PUBSUB_PLAIN), "+publish +subscribe +unsubscribe"));
    world_redis(w, "ACL SETUSER app +@all -spublish -ssubscribe -sunsubscribe");
    assert_string_equal("", trouble_of(w, LK__PUBSUB_PLAIN));
    assert_non_null(strstr(trouble_of(w, LK__PUBSUB_SHARDED), "+spublish +ssubscribe +sunsubscribe"));
}

int main(void)
{
    int failed =
        world_run(a_latch_opens_for_those_who_wait, a_plain_node_is_not_heard, who_is_not_heard_yet_is_not_passed,
                           it_needs_the_rights_to_its_own_messages);
    return failed + subject_run(a_waiter_hears_that_it_was_granted, none_is_left_to_a_redisson_that_is_not_there);
}
