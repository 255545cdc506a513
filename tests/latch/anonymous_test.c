/* SPDX-License-Identifier: MIT */
/*
 * anonymous_test.c - an anonymous latch leaves nothing at the server, however its users end
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 20
 */
#include "proxy.h"

#include <string.h>

enum { LEASE_MS = 2000, THREADS = 8 };
#define OPTIONS "lease=2s&command_timeout=600ms&poll=200ms" /* keys are counted */

static const lk_latchattr_t anonymous = { .size = sizeof anonymous, .anonymous = 1 };
static const lk_latchattr_t awaited = { .size = sizeof awaited, .appear = 1, .anonymous = 1 };

static lk_client_t *client;

static lk_latch_t *open_gate(struct world *w, const char *name)
{
    client = world_client(w, OPTIONS);
    return world_latchwith(w, client, name, &anonymous);
}

static int64_t keys(struct world *w)
{
    return world_elements(w, "KEYS *");
}

/* One whole run, and a second one that is closed with a count of 2. */
static void use(struct world *w, lk_latch_t *l)
{
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    assert_lk(0, lk_latch_setcount(l, 2));
    assert_lk(EEXIST, lk_latch_trysetcount(l, 9));
    assert_lk(0, lk_latch_countdown(l));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(l, 20));
    assert_int_equal(0, world_lasting(w));
    assert_lk(0, lk_latch_countdown(l));
    assert_lk(0, lk_latch_wait(l));
    assert_int_equal(0, world_lasting(w));
    assert_lk(0, lk_latch_trysetcount(l, 1));
    assert_lk(0, lk_latch_delete(l));
    assert_lk(ECANCELED, lk_latch_wait(l));
    assert_int_equal(0, world_lasting(w));
    assert_lk(0, lk_latch_trysetcount(l, 2));
    assert_lk(0, lk_latch_info(l, &info));
    assert_int_equal(2, info.count);
    assert_int_equal(0, world_lasting(w));
}

/* It needs no name, lives while it is used, and goes with the last of its shells, or with the client. */
static void nothing_is_left(struct world *w)
{
    lk_latch_t *l = open_gate(w, NULL), *same = world_latchwith(w, client, l->lk_name, &anonymous);
    unsigned count;
    assert_int_equal(0, strncmp(l->lk_name, "anonymous:", 10));
    assert_int_equal(0, keys(w));
    assert_lk(ENOENT, lk_latch_waitfor(l, 20));
    assert_lk(ENOENT, lk_latch_countdown(l));
    use(w, l);
    sleep_ms(LEASE_MS * 3 / 2);
    assert_lk(0, lk_latch_getcount(l, &count));
    assert_int_equal(2, count); /* a count does not end while it is used */
    use(w, same);
    world_close(w, l);
    sleep_ms(100);
    use(w, same);
    assert_lk(0, lk_latch_countdownby(same, 2));
    sleep_ms(LEASE_MS * 5 / 4);
    assert_lk(0, lk_latch_wait(same)); /* nor is it forgotten that it opened */
    world_close(w, same);
    eventually(keys(w) == 0, 5000);
    use(w, open_gate(w, NULL));
    world_close(w, client);
    eventually(keys(w) == 0, 5000);
}

/* Several clients use it; the last one takes it along, whoever set the count. */
static void it_goes_with_its_last_user(struct world *w)
{
    lk_latch_t *l = open_gate(w, "gate");
    lk_latch_t *other = world_latchwith(w, world_client(w, OPTIONS), "gate", &anonymous);
    unsigned count;
    assert_lk(ENOENT, lk_latch_countdown(other));
    use(w, l);
    world_close(w, l);
    sleep_ms(LEASE_MS * 5 / 4);
    assert_lk(0, lk_latch_getcount(other, &count));
    assert_int_equal(2, count);
    use(w, other);
    world_close(w, other);
    eventually(keys(w) == 0, 5000);
}

/* A count of a client with a short lease lasts as long as a user with a long one. */
static void the_longest_lease_counts(struct world *w)
{
    lk_latch_t *l = open_gate(w, "gate");
    lk_latch_t *other = world_latchwith(w, world_client(w, "lease=20s"), "gate", &anonymous);
    assert_lk(ENOENT, lk_latch_countdown(other));
    assert_lk(0, lk_latch_trysetcount(l, 3));
    assert_between(world_pttl(w, "gate"), 15000, 20000);
    world_close(w, l);
    sleep_ms(LEASE_MS * 5 / 4);
    assert_lk(0, lk_latch_countdownby(other, 3));
    assert_between(world_pttl(w, "latchkey:opened:{gate}"), 10000, 20000);
    world_close(w, other);
    eventually(keys(w) == 0, 5000);
}

static int use_and_stay(struct world *w, void *arg)
{
    (void)arg;
    use(w, open_gate(w, "gate"));
    world_ready(w);
    for (;;)
        sleep_ms(1000);
    return 0;
}

/* A process that is killed says nothing; it is gone a lease later. */
static void a_killed_user_leaves_nothing(struct world *w)
{
    pid_t child = world_fork(w, use_and_stay, NULL);
    assert_true(keys(w) >= 3);
    assert_int_equal(0, world_lasting(w));
    world_kill(w, child);
    eventually(!world_exists(w, "gate") && !world_exists(w, "latchkey:opened:{gate}") &&
                   !world_exists(w, "latchkey:users:latch:{gate}"),
               LEASE_MS + 2 * SLACK_MS);
    assert_int_equal(0, world_lasting(w)); /* the record of requests has its minute */
    world_redis(w, "FLUSHALL");
}

WORK(wait_here, arg, lk_latch_waitfor(arg, 20000))

/* One that is gone is not made again: not by a count that is set, and who waits for one is told. */
static void what_is_gone_stays_gone(struct world *w)
{
    struct worker waiter;
    lk_latch_t *l = open_gate(w, "gate"), *appearing = world_latchwith(w, client, "gate", &awaited);
    assert_lk(ENOENT, lk_latch_countdown(l));
    worker_start(&waiter, wait_here, appearing);
    sleep_ms(100);
    world_redis(w, "DEL latchkey:opened:{gate}");
    assert_lk(ESTALE, lk_latch_trysetcount(l, 1));
    assert_lk(ESTALE, lk_latch_setcount(l, 1));
    assert_int_equal(ESTALE, worker_join(&waiter));
    assert_lk(ESTALE, lk_latch_countdown(l));
    assert_lk(ESTALE, lk_latch_wait(l));
    assert_false(world_exists(w, "gate"));
    world_close(w, client);
    eventually(world_lasting(w) == 0, 2000);
    world_redis(w, "FLUSHALL");
}

/* Cut off for longer than a lease: nobody knows what became of it, and all calls say so. */
static void who_is_cut_off_is_told(struct world *w)
{
    lk_latch_t *l = open_gate(w, NULL);
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    use(w, l);
    world_stop_server(w);
    sleep_ms(LEASE_MS + 100);
    assert_lk(ESTALE, lk_latch_waitfor(l, 0));
    assert_lk(ESTALE, lk_latch_info(l, &info));
    world_cont_server(w);
    assert_lk(ESTALE, lk_latch_countdown(l));
    assert_lk(ESTALE, lk_latch_setcount(l, 1));
    assert_lk(ESTALE, lk_latch_delete(l));
    world_close(w, client);
    eventually(world_lasting(w) == 0, 3000);
    world_redis(w, "FLUSHALL");
}

WORK(wait_for_it, l, lk_latch_waitfor(l, 300))

static int read_it(void *l)
{
    unsigned count;
    return lk_latch_getcount(l, &count);
}

WORK(count_it, l, lk_latch_countdown(l))
WORK(delete_it, l, lk_latch_delete(l))

/*
 * Likewise if the lease ends amid a call: the server knows the latch no more by then, which otherwise means that it is open. On
 * a busy machine the call may end before.
 */
static void who_is_cut_off_amid_a_call_is_told(struct world *w)
{
    static int (*const calls[])(void *l) = { wait_for_it, read_it, count_it, delete_it };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct worker worker;
        client = world_client(w, "lease=2s&command_timeout=600ms&poll=200ms&redisson=yes");
        lk_latch_t *l = world_latchwith(w, client, NULL, &anonymous);
        assert_lk(0, lk_latch_setcount(l, 2));
        world_stop_server(w);
        sleep_ms(LEASE_MS - 300);
        worker_start(&worker, calls[i], l);
        sleep_ms(400);
        world_cont_server(w);
        int code = worker_join(&worker);
        assert_that(code == ESTALE || code == EIO || code == ENOTCONN || code == ETIMEDOUT);
        world_close(w, client);
        world_redis(w, "FLUSHALL");
    }
}

static int use_first(int index, void *arg)
{
    (void)index;
    int rc = lk_latch_trysetcount(arg, 1);
    return rc == EEXIST ? 0 : rc;
}

/* Many threads use it first at once: one use of this client is left, and then none. */
static void many_begin_at_once(struct world *w)
{
    lk_latch_t *l = open_gate(w, "gate");
    assert_int_equal(0, run_threads(THREADS, use_first, l));
    eventually(world_int(w, "ZCARD latchkey:users:latch:{gate}") == 1, 2000);
    assert_lk(0, lk_latch_countdown(l));
    world_close(w, l);
    eventually(keys(w) == 0, 5000);
}

/* Requests and answers get lost, late or doubled: the count is exact, and in the end nothing is left. */
static void lost_answers_leave_nothing(struct world *w)
{
    static const enum proxy_fault cuts[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_PARK_REQUEST };
    for (size_t i = 0; i < 3; i++) {
        unsigned count;
        struct proxy *p = proxy_begin(w);
        client = proxy_client(p, "lease=5s&command_timeout=1s&poll=200ms");
        lk_latch_t *l = world_latchwith(w, client, "gate", &anonymous);
        proxy_once(p, cuts[i], 1, "users");
        assert_lk(0, lk_latch_trysetcount(l, 3));
        proxy_once(p, cuts[i], 1, "gate");
        assert_lk(0, lk_latch_countdown(l));
        proxy_release(p);
        sleep_ms(50);
        assert_lk(0, lk_latch_getcount(l, &count));
        assert_int_equal(2, count);
        proxy_once(p, cuts[i], 1, "users");
        world_close(w, l);
        eventually(keys(w) == 0, 3000);
        proxy_release(p);
        sleep_ms(50);
        assert_int_equal(0, keys(w)); /* a late copy of its end makes nothing */
        world_close(w, client);
        proxy_end(p);
    }
}

static void mistakes_are_refused(struct world *w)
{
    static const lk_latchattr_t plain = { .size = sizeof plain }, odd = { .size = sizeof odd, .anonymous = 2 },
                                ends = { .size = sizeof ends, .anonymous = 1, .ttl_ms = 5000 };
    lk_latch_t bad;
    lk_latch_t *l = open_gate(w, "gate");
    assert_lk(EINVAL, lk_latch_init(&bad, client, NULL, &plain));
    assert_lk(EINVAL, lk_latch_init(&bad, client, NULL, NULL));
    assert_lk(EINVAL, lk_latch_init(&bad, client, "other", &odd));
    assert_lk(EINVAL, lk_latch_init(&bad, client, "other", &ends));
    assert_lk(EINVAL, lk_latch_init(&bad, client, "gate", &plain)); /* here it is anonymous */
    assert_lk(0, lk_latch_init(&bad, NULL, NULL, &anonymous));
    assert_non_null(bad.lk_name);
    assert_lk(0, lk_latch_destroy(&bad));
    world_close(w, l);
    assert_int_equal(0, keys(w));
}

int main(void)
{
    return world_run(nothing_is_left, it_goes_with_its_last_user, the_longest_lease_counts,
                     a_killed_user_leaves_nothing, what_is_gone_stays_gone, who_is_cut_off_is_told,
                     who_is_cut_off_amid_a_call_is_told, many_begin_at_once, lost_answers_leave_nothing, mistakes_are_refused);
}
