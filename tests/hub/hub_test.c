/* SPDX-License-Identifier: MIT */
/*
 * hub_test.c - a subscription that is refused, passed over or cut is asked for again, at a pace; each answer
 * goes to the ear that asked
 *
 * labels: threads memory
 * simulated: yes
 */
#include "fake_server.h"
#include "hub/hub.h"
#include "log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CONFIRMED(channel) "*3\r\n$9\r\nsubscribe\r\n$3\r\n" channel "\r\n:1\r\n"

struct listener {
    struct lk__subscription subscription;
    atomic_int looks, messages;
};

struct bench {
    struct lk__connector *connector;
    struct lk__node node;
    struct lk__hub hub;
};

static void on_message(struct lk__subscription *subscription, const char *payload)
{
    struct listener *listener = LK__CONTAINER(subscription, struct listener, subscription);
    atomic_fetch_add(payload != NULL ? &listener->messages : &listener->looks, 1);
}

static struct listener listener_on(const char *channel)
{
    return (struct listener){ .subscription = { .entry = { .key = channel, .length = strlen(channel) },
                                                .on_message = on_message } };
}

static void bench_begin(struct bench *bench, const char *url)
{
    struct lk__options options;
    assert_int_equal(0, lk__options_url(&options, url));
    assert_int_equal(0, lk__connector_start(&bench->connector));
    assert_int_equal(0, lk__node_init(&bench->node, bench->connector, &options));
    assert_int_equal(0, lk__hub_init(&bench->hub, &bench->node));
}

static void bench_end(struct bench *bench)
{
    lk__hub_stop(&bench->hub);
    lk__connector_stop(bench->connector);
    lk__hub_destroy(&bench->hub);
    lk__node_destroy(&bench->node);
    lk__connector_unref(bench->connector);
}

static int warnings;

static void count_warning(void *arg, int level, const char *line)
{
    (void)arg;
    (void)line;
    if (level == LK_LOG_WARNING)
        __atomic_fetch_add(&warnings, 1, __ATOMIC_RELAXED);
}

static int64_t connections(struct fake *f)
{
    return fake_asked(f, "ROLE"); /* one in each handshake */
}

/* --- refusals ------------------------------------------------------------------------------------------------- */

/* A server that is busy, or loads, does not serve now; that is no refusal for good. */
static void a_busy_server_is_asked_again(struct world *w)
{
    static const char *const passing[] = { "-BUSY Redis is busy running a script.\r\n",
                                           "-LOADING Redis is loading the dataset in memory\r\n" };
    struct fake *f = fake_begin(w);
    for (size_t i = 0; i < 2; i++) {
        struct listener a = listener_on("abc");
        struct bench bench;
        int64_t before = fake_asked(f, "SUBSCRIBE");
        fake_answer(f, "SUBSCRIBE", passing[i]);
        bench_begin(&bench, fake_url(f, "retry_min=20ms&retry_max=100ms"));
        assert_int_equal(0, lk__hub_subscribe(&bench.hub, &a.subscription));
        eventually(fake_asked(f, "SUBSCRIBE") > before + 2, 5000);
        assert_false(lk__hub_isrefused(&bench.hub, &a.subscription));
        assert_int_equal(0, atomic_load(&a.looks));
        fake_answer(f, "SUBSCRIBE", CONFIRMED("abc"));
        eventually(atomic_load(&a.looks) == 1, 5000);
        lk__hub_unsubscribe(&bench.hub, &a.subscription);
        bench_end(&bench);
    }
    fake_end(f);
}

static void a_refusal_is_told_to_its_ear(struct world *w)
{
    struct fake *f = fake_begin(w);
    struct listener a = listener_on("abc"), b = listener_on("def");
    struct bench bench;
    fake_answer(f, "SUBSCRIBE", "-NOPERM No permissions to access a channel\r\n");
    bench_begin(&bench, fake_url(f, ""));
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &a.subscription));
    eventually(lk__hub_isrefused(&bench.hub, &a.subscription), 5000);
    assert_int_equal(1, atomic_load(&a.looks));
    fake_answer(f, "SUBSCRIBE", CONFIRMED("def"));
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &b.subscription));
    eventually(atomic_load(&b.looks) == 1, 5000);
    assert_true(lk__hub_isrefused(&bench.hub, &a.subscription));
    assert_false(lk__hub_isrefused(&bench.hub, &b.subscription));
    lk__hub_unsubscribe(&bench.hub, &a.subscription);
    lk__hub_unsubscribe(&bench.hub, &b.subscription);
    bench_end(&bench);
    fake_end(f);
}

/* What is wrong with a ping is not wrong with the subscription behind it. */
static void an_error_belongs_to_the_question_in_its_place(struct world *w)
{
    struct fake *f = fake_begin(w);
    struct listener a = listener_on("abc"), b = listener_on("def");
    struct bench bench;
    fake_answer(f, "SUBSCRIBE", CONFIRMED("abc"));
    fake_answer(f, "PING", FAKE_SILENT);
    bench_begin(&bench, fake_url(f, "poll=300ms&command_timeout=5s&lease=60s"));
    atomic_store(&bench.hub.waiters, 1);
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &a.subscription));
    eventually(fake_asked(f, "PING") == 1, 15000);
    fake_answer(f, "SUBSCRIBE", "-NOPERM about the ping\r\n" CONFIRMED("def"));
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &b.subscription));
    eventually(atomic_load(&b.looks) == 1, 3000);
    assert_false(lk__hub_isrefused(&bench.hub, &b.subscription));
    lk__hub_unsubscribe(&bench.hub, &a.subscription);
    lk__hub_unsubscribe(&bench.hub, &b.subscription);
    bench_end(&bench);
    fake_end(f);
}

/* --- silence ---------------------------------------------------------------------------------------------------------- */

/* Who misses a message has the connection pinged now; one that does not answer ends, and the next one is heard. */
static void a_connection_in_doubt_is_pinged_at_once(struct world *w)
{
    struct fake *f = fake_begin(w);
    struct listener a = listener_on("abc");
    struct bench bench;
    fake_answer(f, "SUBSCRIBE", CONFIRMED("abc"));
    bench_begin(&bench, fake_url(f, "poll=30s&command_timeout=900ms&lease=60s"));
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &a.subscription));
    eventually(atomic_load(&a.looks) == 1, 5000);
    assert_int_equal(0, fake_asked(f, "PING"));
    lk__hub_doubt(&bench.hub);
    eventually(fake_asked(f, "PING") == 1, 2000);
    sleep_ms(1000);
    assert_int_equal(1, connections(f)); /* the answer came */
    fake_answer(f, "PING", FAKE_SILENT);
    lk__hub_doubt(&bench.hub);
    eventually(atomic_load(&a.looks) == 2, 5000);
    assert_int_equal(2, connections(f));
    assert_int_equal(2, fake_asked(f, "PING"));
    lk__hub_unsubscribe(&bench.hub, &a.subscription);
    bench_end(&bench);
    fake_end(f);
}

/* --- ears that come and go ---------------------------------------------------------------------------------------- */

/* Withdrawn before it was confirmed: the connection stays, for all others. */
static void one_that_is_withdrawn_costs_no_connection(struct world *w)
{
    struct fake *f = fake_begin(w);
    struct bench bench;
    fake_answer(f, "SUBSCRIBE", FAKE_SILENT);
    bench_begin(&bench, fake_url(f, "lease=60s&command_timeout=5s"));
    for (int i = 1; i <= 10; i++) {
        struct listener a = listener_on("abc");
        assert_int_equal(0, lk__hub_subscribe(&bench.hub, &a.subscription));
        eventually(fake_asked(f, "SUBSCRIBE") == i, 5000);
        lk__hub_unsubscribe(&bench.hub, &a.subscription);
    }
    eventually(fake_asked(f, "UNSUBSCRIBE") > 0, 5000);
    assert_int_equal(1, connections(f));
    bench_end(&bench);
    fake_end(f);
}

/* The last object of a name is being destroyed while the next one of that name begins to wait. */
static void two_ears_may_share_a_channel(struct world *w)
{
    struct listener old = listener_on("abc"), fresh = listener_on("abc");
    struct bench bench;
    bench_begin(&bench, world_url(w, ""));
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &old.subscription));
    eventually(atomic_load(&old.looks) > 0, 5000);
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &fresh.subscription));
    eventually(atomic_load(&fresh.looks) > 0, 5000);
    lk__hub_unsubscribe(&bench.hub, &old.subscription);
    sleep_ms(50);
    world_redis(w, "PUBLISH abc hello");
    eventually(atomic_load(&fresh.messages) == 1, 5000);
    assert_int_equal(0, atomic_load(&old.messages));
    lk__hub_unsubscribe(&bench.hub, &fresh.subscription);
    eventually(world_elements(w, "PUBSUB CHANNELS") == 0, 5000);
    bench_end(&bench);
}

/* --- connections that are cut --------------------------------------------------------------------------------------- */

/* As some proxies do. What has to be heard is polled for, and the connection is not made for ever and ever. */
static void a_proxy_that_ends_what_subscribes_is_asked_seldom(struct world *w)
{
    struct fake *f = fake_begin(w);
    struct listener a = listener_on("abc"), b = listener_on("def");
    struct bench bench;
    fake_answer(f, "SUBSCRIBE", FAKE_CLOSE);
    warnings = 0;
    assert_lk(0, log_to(count_warning, LK_LOG_WARNING, NULL));
    bench_begin(&bench, fake_url(f, "retry_min=10ms&retry_max=100ms"));
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &a.subscription));
    eventually(lk__hub_isrefused(&bench.hub, &a.subscription), 10000);
    assert_int_equal(1, atomic_load(&a.looks));
    assert_int_equal(0, lk__hub_subscribe(&bench.hub, &b.subscription));
    eventually(lk__hub_isrefused(&bench.hub, &b.subscription), 5000);
    int64_t before = connections(f);
    sleep_ms(3000);
    assert_between(connections(f) - before, 1, 5); /* about one a second here, by default two a minute */
    assert_between(fake_asked(f, "SUBSCRIBE"), 6, 20);
    lk__log_flush();
    assert_int_equal(1, __atomic_load_n(&warnings, __ATOMIC_RELAXED));
    fake_answer(f, "SUBSCRIBE", CONFIRMED("abc") CONFIRMED("def"));
    eventually(!lk__hub_isrefused(&bench.hub, &a.subscription) && !lk__hub_isrefused(&bench.hub, &b.subscription),
               5000);
    lk__hub_unsubscribe(&bench.hub, &a.subscription);
    lk__hub_unsubscribe(&bench.hub, &b.subscription);
    bench_end(&bench);
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    fake_end(f);
}

/* --- no server ------------------------------------------------------------------------------------------------ */

enum { CHANNELS = 100 };

static unsigned length_of(struct lk__hub *hub, const struct lk__link *list)
{
    unsigned length = 0;
    lk__mu_lock(&hub->mu);
    for (struct lk__link *l = lk__list_first(list); l != NULL; l = lk__list_next(list, l))
        length++;
    lk__mu_unlock(&hub->mu);
    return length;
}

/* What nobody hears need not be left: who comes and goes while the server is away leaves nothing behind. */
static void what_is_left_while_there_is_no_server_is_forgotten(struct world *w)
{
    struct bench bench;
    char url[64], channel[32];
    (void)w;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", free_port());
    bench_begin(&bench, url);
    for (int i = 0; i < CHANNELS; i++) {
        snprintf(channel, sizeof channel, "channel-%d", i);
        struct listener ear = listener_on(channel);
        assert_int_equal(0, lk__hub_subscribe(&bench.hub, &ear.subscription));
        lk__hub_unsubscribe(&bench.hub, &ear.subscription);
    }
    assert_int_equal(0, length_of(&bench.hub, &bench.hub.leaving));
    bench_end(&bench);
}

int main(void)
{
    return world_run(a_busy_server_is_asked_again, a_refusal_is_told_to_its_ear,
                     an_error_belongs_to_the_question_in_its_place, a_connection_in_doubt_is_pinged_at_once,
                     one_that_is_withdrawn_costs_no_connection, two_ears_may_share_a_channel,
                     a_proxy_that_ends_what_subscribes_is_asked_seldom,
                     what_is_left_while_there_is_no_server_is_forgotten);
}
