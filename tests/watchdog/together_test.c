/* SPDX-License-Identifier: MIT */
/*
 * together_test.c - many holds are renewed by few requests, and what is wrong with one of them harms no other
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 30
 */
#include "client/client.h"
#include "lock/scripts.h"
#include "log.h"
#include "news.h"
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NDEBUG /* as users get it: in scripts/test --full alone */
enum { FULL = 1 };
#else
enum { FULL = 0 };
#endif

enum {
    FAR = SANITIZED || NOISY ? 300
          : FULL             ? 20000
                             : 2000, /* holds at a round trip of ... */
    FAR_MS = 100,
    FAR_LEASE_MS = SANITIZED || NOISY ? 9000
                   : FULL             ? 6000
                                      : 5000,
    MANY = 60,
    LEASE_MS = SANITIZED || NOISY ? 3000 : 1200,
    COMMAND_MS = LEASE_MS * 8 / 25, /* nearly as long as may be: a busy machine is slow to answer */
    BAD = 17                        /* the hold that something is wrong with */
};

static lk_client_t *client;
static lk_mutex_t *mutexes[FAR];
static int told[FAR], reasons[FAR]; /* atomic builtins */

static int number_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash != NULL ? atoi(dash + 1) : 0;
}

static void listen_to_losses(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type != LK_EVENT_LOST)
        return;
    __atomic_store_n(&reasons[number_of(event->name)], event->reason, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&told[number_of(event->name)], 1, __ATOMIC_SEQ_CST);
}

static void hold(struct world *w, int count, const lk_mutexattr_t *(*attr_of)(int i))
{
    memset(told, 0, sizeof told);
    assert_lk(0, lk_client_addlistener(client, listen_to_losses, NULL, NULL));
    for (int i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof name, "order-%d", i);
        mutexes[i] = world_mutex(w, client, name, attr_of != NULL ? attr_of(i) : NULL);
        assert_lk(0, lk_mutex_lock(mutexes[i]));
    }
}

static void open_client(struct world *w)
{
    char options[80];
    snprintf(options, sizeof options, "lease=%dms&command_timeout=%dms", LEASE_MS, COMMAND_MS);
    client = world_client(w, options);
}

static bool is_lost(int i)
{
    return __atomic_load_n(&told[i], __ATOMIC_SEQ_CST) != 0;
}

/* All but number `bad` are held, and give theirs back. */
static void all_stand(int count, int bad)
{
    for (int i = 0; i < count; i++) {
        if (i != bad && is_lost(i))
            fail_msg("%d was lost, for reason %d", i, __atomic_load_n(&reasons[i], __ATOMIC_SEQ_CST));
        assert_lk(i == bad ? ESTALE : 0, lk_mutex_unlock(mutexes[i]));
    }
}

static int64_t scripts_run(struct world *w)
{
    return world_commands(w, "evalsha") + world_commands(w, "eval");
}

/* All go by themselves next time, as after a batch that was refused. */
static void renew_one_by_one(void)
{
    lk__mu_lock(&client->dog.mu);
    for (struct lk__link *l = lk__list_first(&client->dog.leases); l != NULL; l = lk__list_next(&client->dog.leases, l))
        LK__CONTAINER(l, struct lk__lease, all)->alone = true;
    lk__mu_unlock(&client->dog.mu);
}

/* All are due at this moment. */
static void renew_together(void)
{
    lk__mu_lock(&client->dog.mu);
    for (struct lk__link *l = lk__list_first(&client->dog.leases); l != NULL;
         l = lk__list_next(&client->dog.leases, l)) {
        struct lk__lease *lease = LK__CONTAINER(l, struct lk__lease, all);
        lk__lease_renewat(lease, lk__now_us());
        lk__lease_schedule(&client->dog, lease);
    }
    client->dog.asleep_us = 0;
    lk__watchdog_wake(&client->dog);
    lk__mu_unlock(&client->dog.mu);
}

/* Many renewals are needed within each round trip, by batches and one by one. */
static void holds_far_away_are_kept(struct world *w)
{
    char options[80];
    struct proxy *p = proxy_begin(w);
    snprintf(options, sizeof options, "lease=%dms", FAR_LEASE_MS);
    client = proxy_client(p, options);
    hold(w, FAR, NULL);
    proxy_delay(p, FAR_MS / 2);
    int64_t before = scripts_run(w), renewed = world_commands(w, "pexpire");
    sleep_ms(FAR_LEASE_MS * 3 / 2);
    before = scripts_run(w) - before;
    renewed = world_commands(w, "pexpire") - renewed;
    print_message("%d renewals by %d scripts\n", (int)renewed, (int)before);
    assert_true(renewed >= 3 * FAR && before * 4 < renewed);
    renew_one_by_one();
    sleep_ms(FAR_LEASE_MS);
    proxy_delay(p, 0);
    all_stand(FAR, -1);
}

/* A key that another program made something else of is lost; it was in a batch, which fails as a whole. */
static void a_key_of_another_type_is_lost_alone(struct world *w)
{
    open_client(w);
    hold(w, MANY, NULL);
    world_redis(w, "SET order-%d something", BAD);
    renew_together();
    eventually(is_lost(BAD), 2 * LEASE_MS);
    assert_int_equal(LK_REASON_GONE, __atomic_load_n(&reasons[BAD], __ATOMIC_SEQ_CST));
    sleep_ms(LEASE_MS * 3 / 2);
    all_stand(MANY, BAD);
    world_redis(w, "DEL order-%d", BAD);
}

static void so_is_one_that_was_taken_away(struct world *w)
{
    open_client(w);
    hold(w, MANY, NULL);
    world_redis(w, "DEL order-%d", BAD);
    world_redis(w, "HSET order-%d somebody:else 1", BAD);
    renew_together();
    eventually(is_lost(BAD), 2 * LEASE_MS);
    assert_int_equal(LK_REASON_GONE, __atomic_load_n(&reasons[BAD], __ATOMIC_SEQ_CST));
    sleep_ms(LEASE_MS * 3 / 2);
    all_stand(MANY, BAD);
    assert_int_equal(1, world_int(w, "HEXISTS order-%d somebody:else", BAD)); /* nobody's but its owner's */
    assert_int_equal(-1, world_int(w, "PTTL order-%d", BAD));
    world_redis(w, "DEL order-%d", BAD);
}

/* Access rules refuse a script for one of its keys. */
static void so_is_one_that_access_rules_forbid(struct world *w)
{
    open_client(w);
    hold(w, MANY, NULL);
    world_redis(w, "ACL SETUSER default resetkeys ~order-?* ~latchkey:* ~redisson*");
    sleep_ms(LEASE_MS / 2);
    world_redis(w, "ACL SETUSER default resetkeys ~order-[0-9] ~order-[02-9]? ~order-1[0-689] ~latchkey:* ~redisson*");
    renew_together();
    eventually(is_lost(BAD), 3 * LEASE_MS);
    assert_int_equal(LK_REASON_EXPIRED, __atomic_load_n(&reasons[BAD], __ATOMIC_SEQ_CST));
    sleep_ms(LEASE_MS * 3 / 2);
    world_redis(w, "ACL SETUSER default allkeys");
    all_stand(MANY, BAD);
}

/* The server forgets scripts again and again. */
static void forgotten_scripts_are_sent_again(struct world *w)
{
    open_client(w);
    hold(w, MANY, NULL);
    for (int i = 0; i < 12; i++) {
        world_redis(w, "SCRIPT FLUSH");
        sleep_ms(LEASE_MS / 6);
    }
    all_stand(MANY, -1);
}

static const lk_mutexattr_t *long_or_short(int i)
{
    static const lk_mutexattr_t lengths[] = { { .size = sizeof lengths[0], .lease_ms = LEASE_MS },
                                              { .size = sizeof lengths[0], .lease_ms = 3 * LEASE_MS } };
    return &lengths[i % 2];
}

/* Of different lengths each has its own. */
static void each_keeps_its_length(struct world *w)
{
    char name[24];
    open_client(w);
    hold(w, MANY, long_or_short);
    for (int k = 0; k < 4; k++) {
        sleep_ms(LEASE_MS / 2);
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "order-%d", i);
            assert_between(world_pttl(w, name), 1, long_or_short(i)->lease_ms);
        }
        snprintf(name, sizeof name, "order-%d", 1);
        assert_true(world_pttl(w, name) > LEASE_MS);
    }
    all_stand(MANY, -1);
}

/* Renewals are under way when the server dies: each hold is lost, and told so once. */
static void a_server_that_dies_is_survived_by_none(struct world *w)
{
    open_client(w);
    hold(w, MANY, NULL);
    world_stop_server(w);
    sleep_ms(LEASE_MS / 3 + LEASE_MS / 20); /* now they are under way */
    world_cont_server(w);
    world_kill_server(w);
    for (int i = 0; i < MANY; i++)
        eventually(is_lost(i), LEASE_MS + 10 * SLACK_MS);
    world_restart_server(w);
    sleep_ms(LEASE_MS / 2);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(1, __atomic_load_n(&told[i], __ATOMIC_SEQ_CST));
        assert_lk(ESTALE, lk_mutex_unlock(mutexes[i]));
    }
}

/* The connection ends while a batch is on its way: it is asked again, and a late copy does no harm. */
static void a_batch_without_an_answer_is_sent_again(struct world *w)
{
    char options[80];
    struct proxy *p = proxy_begin(w);
    snprintf(options, sizeof options, "lease=%dms&command_timeout=%dms", LEASE_MS, COMMAND_MS);
    client = proxy_client(p, options);
    hold(w, MANY, NULL);
    proxy_once(p, PROXY_PARK_REQUEST, 1, lk__lua_lock_renew_batch.sha1[LK__PUBSUB_PLAIN]);
    eventually(proxy_faults(p) == 1, LEASE_MS);
    sleep_ms(LEASE_MS / 2);
    proxy_release(p);
    sleep_ms(LEASE_MS);
    all_stand(MANY, -1);
    assert_string_equal("", world_owner(w, "order-1"));
}

static struct news late_news;
static int64_t risk_left_ms; /* left of the lease when it was told that it is at risk; atomic builtins */

static void hear_of_risk(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_AT_RISK)
        __atomic_store_n(&risk_left_ms, event->remaining_ms, __ATOMIC_SEQ_CST);
}

/* A lease that nothing holds at the server, good for `ms`, and to be renewed in `first_ms`. */
static struct lk__lease *lease_of_nothing(const char *name, bool held, int64_t ms, int64_t first_ms)
{
    static const struct lk__lock_keys keys = { .mutex = "nothing" };
    static const struct lk__lock_renew_args args = { .channel = "none" };
    struct lk__lease *lease = lk__lease_new(&client->dog, held ? offsetof(struct lk__hold, lease) : 0, LK__OWNER_ID);
    assert_non_null(lease);
    strcpy(lease->id, "nobody");
    lease->name = name;
    lease->release.command.keys = &keys;
    lease->renewal = &lk__lua_lock_renew;
    lease->renewal_args = &args;
    lease->lease_ms = lease->wanted_ms = ms;
    if (held) {
        struct lk__hold *hold = LK__CONTAINER(lease, struct lk__hold, lease);
        hold->refs = 1;
        hold->kind = LK_KIND_MUTEX;
        lease->holder = hold;
    }
    int64_t now_us = lk__now_us();
    lk__lease_take(lease, now_us + ms * 1000, now_us + first_ms * 1000);
    return lease;
}

static int lines; /* atomic builtins */

static void count_lines(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, "take longer leases") != NULL)
        __atomic_add_fetch(&lines, 1, __ATOMIC_SEQ_CST);
}

static unsigned answers(void)
{
    lk__mu_lock(&client->dog.mu);
    unsigned timed = client->dog.window.timed;
    lk__mu_unlock(&client->dog.mu);
    return timed;
}

/* The server answers too late for a renewal that is due: its holder is told then, and the log what to do. */
static void a_renewal_that_comes_too_late_is_told_of_early(struct world *w)
{
    enum { TRIP_MS = 1200, LATE_MS = 1800, DUE_MS = 800 };
    struct proxy *p = proxy_begin(w);
    struct lk__lease *timed[LK__WINDOW_TIMED];
    client = proxy_client(p, "lease=30s&command_timeout=5s");
    assert_lk(0, lk_client_addlistener(client, hear_of_risk, NULL, NULL));
    news_listen(&late_news, client, "late");
    struct lk__lease *first = lease_of_nothing("first", false, 30000, 0);
    eventually(lk__lease_waslost(first), 4000); /* the lane is up, and the server knows the script */
    unsigned before = answers();
    proxy_delay(p, TRIP_MS / 2);
    lines = 0;
    risk_left_ms = 0;
    log_to(count_lines, LK_LOG_WARNING, NULL);
    for (int i = 0; i < LK__WINDOW_TIMED; i++) {
        timed[i] = lease_of_nothing("timed", false, 30000, 10 * i);
        lk__mu_lock(&client->dog.mu);
        timed[i]->alone = true;
        lk__mu_unlock(&client->dog.mu);
    }
    eventually(answers() >= before + LK__WINDOW_TIMED, 3 * TRIP_MS + 10 * SLACK_MS);
    struct lk__lease *late = lease_of_nothing("late", true, LATE_MS, DUE_MS);
    eventually(__atomic_load_n(&risk_left_ms, __ATOMIC_SEQ_CST) != 0, LATE_MS);
    int64_t left_ms = __atomic_load_n(&risk_left_ms, __ATOMIC_SEQ_CST);
    assert_between(left_ms, (LATE_MS - DUE_MS) / 2 + 1, LATE_MS - DUE_MS); /* at half of that it would be told anyway */
    eventually(news(&late_news, LK_EVENT_AT_RISK) == 1, 1000);
    eventually(__atomic_load_n(&lines, __ATOMIC_SEQ_CST) == 1, 1000);
    eventually(news(&late_news, LK_EVENT_LOST) == 1, LATE_MS);
    proxy_delay(p, 0);
    log_to(NULL, LK_LOG_WARNING, NULL);
    for (int i = 0; i < LK__WINDOW_TIMED; i++) {
        lk__lease_end(timed[i], NULL);
        lk__lease_unref(timed[i]);
    }
    lk__lease_end(late, NULL);
    lk__lease_unref(late);
    lk__lease_end(first, NULL);
    lk__lease_unref(first);
}

int main(void)
{
    log_to(NULL, LK_LOG_WARNING, NULL);
    return world_run(holds_far_away_are_kept, a_key_of_another_type_is_lost_alone, so_is_one_that_was_taken_away,
                     so_is_one_that_access_rules_forbid, forgotten_scripts_are_sent_again, each_keeps_its_length,
                     a_server_that_dies_is_survived_by_none, a_batch_without_an_answer_is_sent_again,
                     a_renewal_that_comes_too_late_is_told_of_early);
}
