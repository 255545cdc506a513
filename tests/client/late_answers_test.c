/* SPDX-License-Identifier: MIT */
/*
 * late_answers_test.c - what comes after its caller gave up belongs to nobody else, and takes nothing
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "proxy.h"

enum { COMMAND_MS = 600, PATIENT_MS = 1200 };

#define OPTIONS "lease=20s&poll=2s&command_timeout="

static struct proxy *p;
static lk_client_t *client;
static lk_mutex_t *orders, *stock;

static void open_mutexes(struct world *w, const char *options)
{
    p = proxy_begin(w);
    client = proxy_client(p, options);
    orders = world_mutex(w, client, "orders", NULL);
    stock = world_mutex(w, client, "stock", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* from now on the server knows the scripts: one chunk a call */
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/*
 * The answer that nobody awaits any more is not taken for that of the next request on its connection. Who gives
 * up leaves the connection in use when the request was sent late: here after a new connection was made.
 */
static void the_next_request_gets_its_own_answer(struct world *w)
{
    open_mutexes(w, OPTIONS "1200ms"); /* the late answer leaves the next request most of it */
    world_redis(w, "HSET stock somebody:1 1");
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < 2; i++) {
        proxy_delay(p, 3 * PATIENT_MS / 10); /* one and the same for the greeting and for the request */
        proxy_once(p, PROXY_CUT_REQUEST, 1, "orders");
        int code = i == 0 ? lk_mutex_check(orders) : lk_mutex_unlock(orders);
        assert_true(code == EIO || code == 0); /* a busy machine may look at the clock too late */
        proxy_delay(p, 0);
        assert_lk(EBUSY, lk_mutex_trylock(stock)); /* behind the late answer */
    }
    world_redis(w, "DEL stock");
}

/*
 * A wait whose first request went astray with its connection ends. That request may still be obeyed until its
 * deadline, after all that was sent to take it back: so it is taken back once more when none can come.
 */
static void a_copy_within_its_deadline_is_given_back(struct world *w)
{
    open_mutexes(w, OPTIONS "600ms");
    world_redis(w, "HSET orders somebody:1 1");
    proxy_once(p, PROXY_PARK_REQUEST, 1, "orders");
    int code = lk_mutex_lockfor(orders, COMMAND_MS / 6);
    assert_true(code == EIO || code == ETIMEDOUT); /* the latter when this took longer than the deadline */
    sleep_ms(COMMAND_MS / 12);                     /* the release in the background is through */
    world_redis(w, "DEL orders");
    proxy_release(p);
    sleep_ms(COMMAND_MS / 12);
    eventually(!world_exists(w, "orders"), COMMAND_MS + 2 * SLACK_MS); /* a lease is 20 s */
    eventually(client_settled(client), 5000);                          /* the library knows it, too */
}

/* A request that comes later than anybody expects it does nothing, as nobody is left to take it back. */
static void a_copy_after_its_deadline_does_nothing(struct world *w)
{
    open_mutexes(w, OPTIONS "600ms");
    proxy_once(p, PROXY_HOLD_REQUEST, 1, "orders");
    assert_lk(EIO, lk_mutex_trylock(orders));
    eventually(client_settled(client), 5000); /* the library has taken it back for good */
    int64_t asked = world_commands(w, "evalsha");
    proxy_release(p);
    eventually(world_commands(w, "evalsha") > asked, 5000);
    assert_false(world_exists(w, "orders"));
}

int main(void)
{
    return world_run(the_next_request_gets_its_own_answer, a_copy_within_its_deadline_is_given_back,
                     a_copy_after_its_deadline_does_nothing);
}
