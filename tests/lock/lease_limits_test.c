/* SPDX-License-Identifier: MIT */
/*
 * lease_limits_test.c - fixed leases, also of what was destroyed, shortest and longest holds
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "news.h"
#include "proxy.h"

#include <time.h>

static lk_client_t *client, *other;
static lk_mutex_t *orders, *same_name;
static lk_events_t *events;

static void open_orders(struct world *w, const lk_mutexattr_t *attr)
{
    client = world_client(w, "lease=6s");
    other = world_client(w, "lease=6s");
    events = world_events(w, client);
    orders = world_mutex(w, client, "orders", attr);
    same_name = world_mutex(w, other, "orders", NULL);
}

/* Wait for the end of this thread's hold, and see that it was told once, with that reason. */
static void expect_loss(int reason)
{
    lk_event_t event = LK_EVENT_INIT;
    int64_t left_ms;
    uint64_t token;
    eventually(lk_mutex_remaining(orders, &left_ms) == ESTALE, 5000);
    assert_lk(ESTALE, lk_mutex_token(orders, &token));
    eventually(lk_events_next(events, &event) == 0, 1000);
    assert_int_equal(LK_EVENT_LOST, event.type);
    assert_int_equal(reason, event.reason);
    assert_int_equal(LK_KIND_MUTEX, event.kind);
    assert_int_equal(0, event.remaining_ms);
    assert_string_equal("orders", event.name);
    sleep_ms(100);
    assert_lk(EAGAIN, lk_events_next(events, &event));
}

/* Redisson's lock(leaseTime): who hangs loses it, whatever its watchdog does. */
static void a_fixed_lease_ends_by_itself(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    int64_t began_ms = now_ms();
    attr.fixed = 1;
    attr.lease_ms = 1500;
    open_orders(w, &attr);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lockfor(same_name, 5000));
    assert_between(now_ms() - began_ms, 1500, 1500 + 2 * SLACK_MS + 500);
    expect_loss(LK_REASON_FIXED);
    assert_lk(ESTALE, lk_mutex_lock(orders));
    assert_lk(ESTALE, lk_mutex_trylock(orders));
    assert_lk(ESTALE, lk_mutex_unlock(orders)); /* one for each lock */
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_check(same_name)); /* and the next holder saw nothing of it */
    assert_lk(0, lk_mutex_unlock(same_name));
}

/* Who needs longer says so, and how much. */
static void a_fixed_lease_can_be_extended(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    int64_t left_ms;
    attr.fixed = 1;
    attr.lease_ms = 1500;
    open_orders(w, &attr);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_extend(orders, 4000));
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_between(left_ms, 2000, 4000);
    assert_between(world_pttl(w, "orders"), 2000, 4000);
    sleep_ms(1700);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(EINVAL, lk_mutex_extend(orders, 99));
    int rc = lk_mutex_extend(orders, 100); /* shorter again; its end may come before the answer */
    assert_true(rc == 0 || rc == ESTALE);
    expect_loss(LK_REASON_FIXED);
    assert_lk(ESTALE, lk_mutex_extend(orders, 2000));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
}

/* A hung thread does not keep a name for ever only because its process lives. */
static void the_longest_hold_ends_a_renewed_lease(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    int64_t began_ms = now_ms();
    attr.lease_ms = 1500;
    attr.max_hold_ms = 2500;
    open_orders(w, &attr);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lockfor(same_name, 5000));
    assert_between(now_ms() - began_ms, 2450, 2500 + 2 * SLACK_MS + 500);
    expect_loss(LK_REASON_MAX_HOLD);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(same_name));
}

/* A cron job on ten machines: whoever is late must find the name taken although the job was quick. */
static void the_shortest_hold_outlives_the_unlock(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    int64_t began_ms = now_ms();
    attr.min_hold_ms = 2000;
    open_orders(w, &attr);
    assert_lk(0, lock_and_unlock(orders));
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_lk(EBUSY, lk_mutex_trylock(same_name));
    assert_lk(EBUSY, lk_mutex_trylock(orders)); /* not even who had it */
    assert_between(world_pttl(w, "orders"), 1, 2001);
    assert_lk(0, lk_mutex_lockfor(same_name, 5000));
    assert_between(now_ms() - began_ms, 1990, 2000 + 2 * SLACK_MS + 1000);
    assert_lk(0, lk_mutex_unlock(same_name));
}

/* Sleep until the system clock shows that. */
static void sleep_until_us(int64_t us)
{
    const struct timespec until = { us / 1000000, us % 1000000 * 1000 };
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

/* A server ends keys by the millisecond. If one ends amid the unlock, the next grant is still not too early. */
static void the_shortest_hold_lasts_to_its_end(struct world *w)
{
    enum { LEAST_US = 5000, ROUNDS = 1000, WAY_US = 200 };
    static const lk_mutexattr_t attr = { .size = sizeof attr, .min_hold_ms = LEAST_US / 1000 };
    open_orders(w, &attr);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t token, next; /* the server's time of the grants */
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_token(orders, &token));
        int64_t ends_us = (int64_t)token + LEAST_US; /* its millisecond begins about when the unlock arrives */
        sleep_until_us(ends_us - ends_us % 1000 - round % WAY_US);
        assert_lk(0, lk_mutex_unlock(orders));
        assert_lk(0, lk_mutex_lock(same_name));
        assert_lk(0, lk_mutex_token(same_name, &next));
        assert_true(next >= token + LEAST_US);
        assert_lk(0, lk_mutex_unlock(same_name));
    }
}

/* A hold that lasted long enough is given back at once. */
static void a_long_enough_hold_ends_with_its_unlock(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.min_hold_ms = 200;
    open_orders(w, &attr);
    assert_lk(0, lk_mutex_lock(orders));
    sleep_ms(250);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
}

/* Whoever has decided only now that the name is to stay taken locks it again by a handle that says so. */
static void a_handle_that_locks_again_keeps_the_name(struct world *w)
{
    static const lk_mutexattr_t quick = { .size = sizeof quick, .min_hold_ms = 1, .nested_local = 1 };
    static const lk_mutexattr_t kept = { .size = sizeof kept, .min_hold_ms = 3000, .nested_local = 1 };
    open_orders(w, NULL);
    lk_mutex_t *handles[] = { world_mutex(w, client, "orders", &kept), world_mutex(w, client, "orders", &quick) };
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < 2; i++) {
        assert_lk(0, lock_and_unlock(handles[i]));
        assert_between(world_pttl(w, "orders"), 3001, 6000);
    }
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(EBUSY, lk_mutex_trylock(same_name));
    assert_between(world_pttl(w, "orders"), 1, 3000 + SLACK_MS); /* the server's clock is known by as much as an answer took */
    assert_lk(0, lk_mutex_lockfor(same_name, 6000));
    assert_between(now_ms() - began_ms, 2990, 3000 + 2 * SLACK_MS + 1000);
    assert_lk(0, lk_mutex_unlock(same_name));
}

/* So does one whose renewals are overdue in that moment, if one succeeds in time. */
static void a_hold_at_risk_is_kept_as_well(struct world *w)
{
    static const lk_mutexattr_t kept = { .size = sizeof kept, .min_hold_ms = 60000, .nested_local = 1 };
    open_orders(w, NULL);
    lk_client_t *lasting = world_client(w, "lease=6s");
    lk_mutex_t *jobs = world_mutex(w, lasting, "jobs", NULL), *again = world_mutex(w, lasting, "jobs", &kept);
    struct news *n = news_of(w, lasting, "jobs");
    assert_lk(0, lk_mutex_lock(jobs));
    world_redis(w, "ACL SETUSER default -evalsha -eval"); /* renewals are refused */
    eventually(news(n, LK_EVENT_AT_RISK) == 1, 6000);
    assert_lk(0, lk_mutex_lock(again));
    world_redis(w, "ACL SETUSER default +evalsha +eval");
    eventually(news(n, LK_EVENT_RECOVERED) == 1, 6000);
    assert_lk(0, lk_mutex_unlock(again));
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_between(world_pttl(w, "jobs"), 6001, 60000);
    world_redis(w, "DEL jobs");
}

/* One that is locked again when the time is over is given back at once. */
static void time_that_is_over_keeps_nothing(struct world *w)
{
    static const lk_mutexattr_t kept = { .size = sizeof kept, .min_hold_ms = 100 };
    open_orders(w, NULL);
    lk_mutex_t *again = world_mutex(w, client, "orders", &kept);
    assert_lk(0, lk_mutex_lock(orders));
    sleep_ms(150);
    assert_lk(0, lock_and_unlock(again));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
}

/* Attributes that contradict each other or the rules are mistakes. */
static void impossible_times_are_refused(struct world *w)
{
    static const struct {
        int64_t lease_ms, min_hold_ms, max_hold_ms;
    } impossible[] = { { 99, 0, 0 }, { -1, 0, 0 }, { 0, -1, 0 }, { 0, 0, -1 }, { 0, 0, 99 }, { 0, 2000, 1000 } };
    lk_mutex_t m;
    open_orders(w, NULL);
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
        attr.lease_ms = impossible[i].lease_ms;
        attr.min_hold_ms = impossible[i].min_hold_ms;
        attr.max_hold_ms = impossible[i].max_hold_ms;
        assert_lk(EINVAL, lk_mutex_init(&m, client, "stock", &attr));
    }
}

struct stay {
    lk_mutex_t mutex;
    struct gate held, enough;
};

static int lock_and_stay(void *arg)
{
    struct stay *stay = arg;
    int rc = lk_mutex_lock(&stay->mutex);
    gate_open(&stay->held);
    gate_pass(&stay->enough);
    return rc != 0 ? rc : lk_mutex_unlock(&stay->mutex);
}

/* Who is handed the mutex gets a lease from who gave it, and then its own at once, also when that is shorter. */
static void a_handed_over_hold_has_its_own_lease(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    struct worker waiter;
    struct stay brief = { 0 };
    attr.lease_ms = 1500;
    open_orders(w, NULL);
    lk_client_t *third = world_client(w, "");
    assert_lk(0, lk_mutex_init(&brief.mutex, third, "orders", &attr));
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_and_stay, &brief);
    eventually(world_queued(w, "orders") == 1, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:*") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    gate_pass(&brief.held);
    eventually(world_pttl(w, "orders") <= 1500, SLACK_MS); /* the claim would be 3 s, and be confirmed after 1 s */
    gate_open(&brief.enough);
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_mutex_destroy(&brief.mutex));
}

/* What is left of the lease as soon as it is held. */
static int lock_and_look(void *left_ms)
{
    int rc = lk_mutex_lock(orders);
    if (rc == 0)
        rc = lk_mutex_remaining(orders, left_ms);
    return rc != 0 ? rc : lk_mutex_unlock(orders);
}

/* Who hands it over does not know how long it may be held. The new holder does, from the first moment on. */
static void a_handed_over_hold_is_never_good_for_more_than_it_may_last(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    for (int fixed = 0; fixed < 2; fixed++) {
        struct worker waiter;
        int64_t left_ms = 0;
        attr.fixed = fixed;
        attr.lease_ms = fixed ? 1500 : 0;
        attr.max_hold_ms = fixed ? 0 : 1500;
        open_orders(w, &attr);
        assert_lk(0, lk_mutex_lock(same_name));
        worker_start(&waiter, lock_and_look, &left_ms);
        eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
        assert_lk(0, lk_mutex_unlock(same_name));
        assert_int_equal(0, worker_join(&waiter));
        assert_between(left_ms, 1, 1495); /* the server ends it after 1500 */
        world_close(w, client);
        world_close(w, other);
    }
}

/* --- fixed leases of what was destroyed: they end by themselves ---------------------------------------------------------- */

enum { LEASE_MS = 1500 };

static struct news *orders_news;

static void open_client(struct world *w)
{
    client = world_client(w, "");
    orders_news = news_of(w, client, "orders");
}

/* The name stays taken until the lease is over, and no event tells of that end. */
static void expect_detached(struct world *w, const char *key, int64_t began_ms)
{
    assert_true(world_exists(w, key));
    eventually(!world_exists(w, key), LEASE_MS + SLACK_MS);
    assert_between(now_ms() - began_ms, LEASE_MS / 2, LEASE_MS + SLACK_MS);
    sleep_ms(100);
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(orders_news, type));
}

static void a_fixed_mutex_is_detached(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    lk_mutex_t fixed_one, another;
    attr.fixed = 1;
    attr.lease_ms = LEASE_MS;
    open_client(w);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_init(&fixed_one, client, "orders", &attr));
    assert_lk(0, lk_mutex_lock(&fixed_one));
    assert_lk(0, lk_mutex_init(&another, client, "orders", &attr));
    assert_lk(0, lk_mutex_destroy(&another));
    assert_lk(0, lk_mutex_check(&fixed_one)); /* another object of the name had the hold yet */
    assert_lk(0, lk_mutex_destroy(&fixed_one));
    assert_lk(0, lk_mutex_init(&fixed_one, client, "orders", NULL));
    assert_lk(EPERM, lk_mutex_unlock(&fixed_one));
    assert_lk(EBUSY, lk_mutex_trylock(&fixed_one));
    assert_lk(0, lk_mutex_destroy(&fixed_one));
    expect_detached(w, "orders", began_ms);
}

static void a_fixed_reader_and_a_fixed_writer_are_detached(struct world *w)
{
    lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    lk_rwlock_t fixed_one;
    attr.fixed = 1;
    attr.lease_ms = LEASE_MS;
    open_client(w);
    lk_rwlock_t *next = world_rwlock(w, client, "next", NULL);
    for (int write = 0; write < 2; write++) {
        int64_t began_ms = now_ms();
        assert_lk(0, lk_rwlock_init(&fixed_one, client, "orders", &attr));
        assert_lk(0, write ? lk_rwlock_wrlock(&fixed_one) : lk_rwlock_rdlock(&fixed_one));
        assert_lk(0, lk_rwlock_destroy(&fixed_one));
        expect_detached(w, "latchkey:rw:{orders}", began_ms);
    }
    assert_lk(0, lk_rwlock_wrlock(next)); /* the client goes on */
    assert_lk(0, lk_rwlock_unlock(next));
}

/* For one acquire the caller says so; the owner can then be freed as well. */
static void a_hold_that_was_fixed_by_the_call_is_detached(struct world *w)
{
    lk_how_t how = LK_HOW_INIT;
    lk_mutex_t fixed_one;
    open_client(w);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_owner_new(client, &how.owner));
    how.fixed = 1;
    how.lease_ms = LEASE_MS;
    assert_lk(0, lk_mutex_init(&fixed_one, client, "orders", NULL));
    assert_lk(0, lk_mutex_lockwith(&fixed_one, &how));
    assert_lk(EBUSY, lk_owner_free(how.owner));
    assert_lk(0, lk_mutex_destroy(&fixed_one));
    assert_lk(0, lk_owner_free(how.owner));
    expect_detached(w, "orders", began_ms);
}

static lk_how_t how = LK_HOW_INIT;

static int take(void *mutex)
{
    return lk_mutex_lockwith(mutex, &how); /* for an owner, who does not end with the thread */
}

/*
 * A hand-over brings a claim of 3 s: the whole lease is asked for before the object goes, and while the server does not
 * get that question the object stays.
 */
static void a_fixed_lease_that_was_handed_over_is_set_first(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct worker heir;
    lk_mutex_t fixed;
    client = proxy_client(p, "lease=60s&poll=30s&command_timeout=400ms");
    how.fixed = 1;
    how.lease_ms = 20000;
    assert_lk(0, lk_owner_new(client, &how.owner));
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "orders", NULL);
    assert_lk(0, lk_mutex_lock(held));
    assert_lk(0, lk_mutex_init(&fixed, client, "orders", NULL));
    worker_start(&heir, take, &fixed);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
    sleep_ms(100); /* it has asked again, and sleeps */
    proxy_stall(p, PROXY_UP);
    assert_lk(0, lk_mutex_unlock(held));
    assert_lk(0, worker_join(&heir)); /* by the message */
    assert_lk(EBUSY, lk_mutex_destroy(&fixed));
    proxy_resume(p);
    eventually(lk_mutex_destroy(&fixed) == 0, 2000);
    assert_lk(0, lk_owner_free(how.owner));
    assert_between(world_pttl(w, "orders"), 15000, 20000);
    assert_lk(0, lk_mutex_forceunlock(held));
}

int main(void)
{
    return world_run(a_fixed_lease_ends_by_itself, a_fixed_lease_can_be_extended, the_longest_hold_ends_a_renewed_lease,
                     the_shortest_hold_outlives_the_unlock, the_shortest_hold_lasts_to_its_end,
                     a_long_enough_hold_ends_with_its_unlock, a_handle_that_locks_again_keeps_the_name,
                     a_hold_at_risk_is_kept_as_well, time_that_is_over_keeps_nothing, impossible_times_are_refused,
                     a_handed_over_hold_has_its_own_lease, a_handed_over_hold_is_never_good_for_more_than_it_may_last,
                     a_fixed_mutex_is_detached, a_fixed_reader_and_a_fixed_writer_are_detached,
                     a_hold_that_was_fixed_by_the_call_is_detached, a_fixed_lease_that_was_handed_over_is_set_first);
}
