/* SPDX-License-Identifier: MIT */
/*
 * unlock_test.c - all members are given back at once: by the caller, and on the way when one is not to be had; what is told of
 * those that are lost, not answered for, or unrepaired
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"
#include "world.h"

#include <string.h>

enum { MANY = 16, DELAY_MS = 400, TIMEOUT_MS = 1000 };

static lk_client_t *client, *theirs;
static lk_multi_t *s;

static void add(struct world *w, lk_client_t *of, const char *name, const lk_mutexattr_t *attr)
{
    assert_lk(0, lk_multi_addmutex(s, world_mutex(w, of, name, attr)));
}

/* --- one round trip ----------------------------------------------------------------------------------------------------- */

/* All of them once, so that scripts are known and settings compared. */
static struct proxy *begin_far_away(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=5s"); /* commands are counted */
    lk_stripes_t *many = world_stripes(w, client, "s", MANY, NULL);
    s = world_multi(w, client);
    for (unsigned i = 0; i < MANY; i++)
        assert_lk(0, lk_multi_addmutex(s, lk_stripes_at(many, i)));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_multi_unlock(s));
    return p;
}

static void end_far_away(struct world *w, struct proxy *p)
{
    proxy_delay(p, 0);
    world_close(w, s);
    proxy_end(p);
}

/* Far away from the server one round trip is what it costs, and one request each. */
static void releases_go_out_together(struct world *w)
{
    struct proxy *p = begin_far_away(w);
    assert_lk(0, lk_multi_lock(s));
    int64_t before = world_commands(w, "evalsha");
    proxy_delay(p, DELAY_MS);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_multi_unlock(s));
    assert_between(now_ms() - began_ms, DELAY_MS, 4 * DELAY_MS + SLACK_MS); /* one after the other: 16 or more */
    assert_int_equal(MANY, world_commands(w, "evalsha") - before);
    end_far_away(w, p);
}

/* Likewise of what was free around the one that somebody has. */
static void so_does_what_is_given_back_on_the_way(struct world *w)
{
    struct proxy *p = begin_far_away(w);
    lk_stripes_t *taken = world_stripes(w, world_client(w, ""), "s", MANY, NULL);
    assert_lk(0, lk_mutex_lock(lk_stripes_at(taken, 0)));
    assert_lk(EBUSY, lk_multi_trylock(s));
    int64_t before = world_commands(w, "evalsha");
    proxy_delay(p, DELAY_MS);
    int64_t began_ms = now_ms();
    assert_lk(EBUSY, lk_multi_trylock(s));
    assert_between(now_ms() - began_ms, 2 * DELAY_MS, 8 * DELAY_MS + SLACK_MS);
    assert_int_equal(2 * MANY - 1, world_commands(w, "evalsha") - before);
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(taken, 0)));
    end_far_away(w, p);
}

/* --- what is not confirmed ---------------------------------------------------------------------------------------------- */

/* One command timeout for all of them; and all are told again. */
static void lost_answers_cost_one_timeout(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=1s");
    s = world_multi(w, client);
    for (const char *const *name = (const char *const[]){ "a", "b", "c", "d", "e", "f", NULL }; *name != NULL; name++)
        add(w, client, *name, NULL);
    assert_lk(0, lk_multi_lock(s));
    proxy_stall(p, PROXY_UP);
    int64_t began_ms = now_ms();
    assert_lk(EIO, lk_multi_unlock(s));
    assert_between(now_ms() - began_ms, TIMEOUT_MS, 3 * TIMEOUT_MS + SLACK_MS); /* one after the other: six */
    assert_between(lk_errorsettles(), 1, 60000);
    assert_lk(EPERM, lk_multi_unlock(s));
    proxy_resume(p);
    eventually(world_elements(w, "KEYS ?") == 0, 20000);
    assert_lk(0, lk_multi_lockfor(s, 20000));
    assert_lk(0, lk_multi_unlock(s));
    world_close(w, s);
    proxy_end(p);
}

/* "a" here, "z" at another server, which comes first when they are given back. */
static struct world *begin_two_servers(struct world *w, const char *options)
{
    struct world *other = world_second(w);
    client = world_client(w, options);
    theirs = world_client_at(w, other, world_url(other, options));
    s = world_multi(w, client);
    add(w, client, "a", NULL);
    lk_mutex_t *z = world_mutex(w, theirs, "z", NULL);
    assert_lk(0, lk_multi_addmutex(s, z));
    assert_lk(0, lk_multi_lockfor(s, 20000));
    return other;
}

static void end_two_servers(struct world *w, struct world *other)
{
    world_cont_server(other);
    eventually(world_holds(other, "z") == -1, 20000);
    assert_lk(0, lk_multi_lockfor(s, 20000));
    assert_lk(0, lk_multi_unlock(s));
    world_close(w, s);
}

/* It is given back meanwhile, also if its server has to be told the script first. */
static void a_server_that_stands_still_is_nothing_to_the_others(struct world *w)
{
    struct world *other = begin_two_servers(w, "lease=20s&command_timeout=1s");
    int64_t before = world_commands(w, "evalsha");
    world_stop_server(other);
    assert_lk(EIO, lk_multi_unlock(s));
    assert_non_null(strstr(lk_errortext(), "mutex z"));
    assert_int_equal(-1, world_holds(w, "a"));
    world_cont_server(other);
    eventually(world_holds(other, "z") == -1, 20000);
    assert_int_equal(1, world_commands(w, "evalsha") - before);
    end_two_servers(w, other);
}

static int64_t had_ms;

static int have_it(void *mutex)
{
    int rc = lk_mutex_lockfor(mutex, 20000);
    had_ms = now_ms();
    return rc == 0 ? lk_mutex_unlock(mutex) : rc;
}

/* Who waits for "a" has it at once, and not when the release of "z" was waited for, for four seconds. */
static int unlock_under(struct world *w, struct world *other, void (*blow)(struct world *other))
{
    struct worker waiter;
    worker_start(&waiter, have_it, world_mutex(w, world_client(w, "lease=20s"), "a", NULL));
    eventually(world_queued(w, "a") == 1, 20000);
    world_redis(w, "SCRIPT FLUSH");
    blow(other);
    int64_t began_ms = now_ms();
    int rc = lk_multi_unlock(s);
    assert_non_null(strstr(lk_errortext(), "mutex z"));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(had_ms - began_ms, 0, 3000);
    return rc;
}

/* Its answers are read meanwhile. */
static void nobody_waits_for_a_server_that_stands_still(struct world *w)
{
    struct world *other = begin_two_servers(w, "lease=20s&command_timeout=4s");
    int rc = unlock_under(w, other, world_stop_server);
    assert_int_equal(EIO, rc);
    end_two_servers(w, other);
}

/* Nor for one that is away, for which a release would wait as long as it may. */
static void a_server_that_is_away_is_nothing_to_the_others(struct world *w)
{
    struct world *other = begin_two_servers(w, "lease=20s&command_timeout=4s");
    int rc = unlock_under(w, other, world_kill_server);
    assert_true(rc == EIO || rc == ENOTCONN); /* the first where the release was on its way */
    world_restart_server(other);
    end_two_servers(w, other);
}

/* That one was lost is worse news than that another one is still being given back; when that ends is told as well. */
static void a_loss_is_told_before_all_else(struct world *w)
{
    struct world *other = begin_two_servers(w, "lease=20s&command_timeout=1s");
    assert_lk(0, lk_mutex_forceunlock(world_mutex(w, world_client(w, ""), "a", NULL)));
    world_stop_server(other);
    assert_lk(ESTALE, lk_multi_unlock(s));
    assert_non_null(strstr(lk_errortext(), "mutex a"));
    assert_between(lk_errorsettles(), 1, 60000);
    end_two_servers(w, other);
}

static void also_before_a_client_that_was_closed(struct world *w)
{
    begin_two_servers(w, "lease=20s&command_timeout=1s");
    assert_lk(0, lk_mutex_forceunlock(world_mutex(w, world_client(w, ""), "a", NULL)));
    assert_lk(0, close_by_hand(w, theirs));
    assert_lk(ESTALE, lk_multi_unlock(s));
    assert_non_null(strstr(lk_errortext(), "mutex a"));
}

/* --- robust members ------------------------------------------------------------------------------------------------------- */

static const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
static const lk_mutexattr_t plain = { .size = sizeof plain };

static void open_robust(struct world *w, const char *options)
{
    client = world_client(w, options);
    s = world_multi(w, client);
    add(w, client, "a", &robust);
    add(w, client, "b", &plain);
    add(w, client, "c", &robust);
}

static int hold_until_killed(struct world *w, void *arg)
{
    (void)arg;
    open_robust(w, "lease=1s&connect_timeout=1s");
    assert_lk(0, lk_multi_lock(s));
    world_ready(w);
    sleep_ms(60000);
    return 1;
}

/* One of two is repaired: the other one is told as unrepaired, and nothing of them stays taken. */
static void what_is_unrepaired_is_left_as_such(struct world *w)
{
    world_allow(w, "latchkey:robust:mutex:{c}");
    world_kill(w, world_fork(w, hold_until_killed, NULL));
    open_robust(w, "");
    assert_lk(EOWNERDEAD, lk_multi_lockfor(s, 20000));
    lk_mutex_t *a = world_mutex(w, client, "a", &robust), *b = world_mutex(w, client, "b", &plain);
    lk_mutex_t *c = world_mutex(w, client, "c", &robust);
    assert_lk(0, lk_mutex_consistent(a));
    assert_lk(0, lk_multi_unlock(s));
    assert_lk(0, lk_mutex_trylock(a));
    assert_lk(0, lk_mutex_trylock(b));
    assert_lk(ENOTRECOVERABLE, lk_mutex_trylock(c));
    assert_lk(0, lk_mutex_unlock(a));
    assert_lk(0, lk_mutex_unlock(b));
    assert_lk(0, lk_mutex_forceunlock(c));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_multi_unlock(s));
}

int main(void)
{
    return world_run(releases_go_out_together, so_does_what_is_given_back_on_the_way, lost_answers_cost_one_timeout,
                     a_server_that_stands_still_is_nothing_to_the_others, nobody_waits_for_a_server_that_stands_still,
                     a_server_that_is_away_is_nothing_to_the_others, a_loss_is_told_before_all_else,
                     also_before_a_client_that_was_closed, what_is_unrepaired_is_left_as_such);
}
