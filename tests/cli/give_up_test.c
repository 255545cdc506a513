/* SPDX-License-Identifier: MIT */
/*
 * give_up_test.c - a signal while the grant is under way: nothing ran, so the name is not kept for --hold-at-least
 *
 * seconds: 9
 */
#include "command.h"
#include "proxy.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { DELAY_MS = 80, STEP_MS = 30 };

/* The command runs, or nothing is left; whether it ran. */
static bool end_waiter(struct world *w, pid_t waiter, const char *name)
{
    kill(waiter, SIGINT);
    const struct ran *ran = command_end(w, waiter);
    bool held = strstr(ran->err, "\"event\":\"held\"") != NULL;
    if (!held && ran->code != 128 + SIGINT)
        fail_msg("exit code %d: %s", ran->code, ran->err);
    if (!held && world_exists(w, name))
        fail_msg("%s is kept for %lld ms", name, (long long)world_pttl(w, name));
    if (held)
        assert_exits(0, w, "rm -f ran; redis-cli -s %s DEL %s", w->socket, name);
    return held;
}

/* A signal at that moment after the grant, or, where a reader went before that, after the hand-over. Did it give up? */
static bool gives_up(struct world *w, struct proxy *p, lk_rwlock_t *reader, int moment_ms)
{
    if (reader != NULL)
        assert_lk(0, lk_rwlock_rdlock(reader));
    pid_t waiter = command_begin(w, "exec latchkey run --json -u '%s' --hold-at-least 1h a touch ran", proxy_url(p, COMMAND_PATIENT));
    eventually((reader == NULL || world_rwqueued(w, "a") == 1) && world_exists(w, "a"), 20000);
    if (reader != NULL)
        assert_lk(0, lk_rwlock_unlock(reader));
    sleep_ms(moment_ms);
    return !end_waiter(w, waiter, "a");
}

/* At several moments, and until one was early enough. */
static void give_up(struct world *w, lk_rwlock_t *reader)
{
    struct proxy *p = proxy_begin(w);
    int given_up = 0;
    proxy_delay(p, DELAY_MS);
    for (int moment_ms = 0; moment_ms <= DELAY_MS + 20; moment_ms += STEP_MS)
        given_up += gives_up(w, p, reader, moment_ms);
    for (int64_t until_ms = now_ms() + 20000; given_up == 0 && now_ms() < until_ms;)
        given_up += gives_up(w, p, reader, 0);
    assert_true(given_up > 0);
}

/* The mutex and the write lock are granted, and their answers are on the way. */
static void a_signal_before_the_answer_keeps_nothing(struct world *w)
{
    give_up(w, NULL);
}

/* The mutex is had; the write lock is handed over, and the message of that is on the way. */
static void a_signal_before_the_hand_over_is_heard_keeps_nothing(struct world *w)
{
    give_up(w, world_rwlock(w, world_client(w, ""), "a", NULL));
}

/* What gives the mutex back gets no answer, or one when the command is long gone. */
static void a_server_that_hears_of_it_late_keeps_nothing(struct world *w)
{
    static const char *const lines[] = { "run --hold-at-least 1h", "hold --no-stdin --hold-at-least 1h",
                                         "run -w 1h --hold-at-least 1h" };
    struct proxy *p = proxy_begin(w);
    lk_rwlock_t *rwlock = world_rwlock(w, world_client(w, "lease=30s"), "a", NULL);
    assert_lk(0, lk_rwlock_rdlock(rwlock));
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        pid_t waiter = command_begin(w, "exec latchkey %s -u '%s' a %s", lines[i],
                                     proxy_url(p, "lease=9s&command_timeout=300ms"),
                                     i == 1 ? "" : "touch ran");
        eventually(world_rwqueued(w, "a") == 1 && world_exists(w, "a"), 20000);
        proxy_once(p, PROXY_HOLD_REQUEST, 1, "EVALSHA");
        kill(waiter, SIGTERM);
        assert_int_equal(128 + SIGTERM, command_end(w, waiter)->code);
        proxy_release(p);
        assert_in_range(world_pttl(w, "a") + 2, 0, 9002); /* at the worst it ends with its lease */
        eventually(!world_exists(w, "a") && world_rwqueued(w, "a") == 0, 30000);
    }
    assert_lk(0, lk_rwlock_unlock(rwlock));
    assert_false(command_left(w, "ran"));
}

/* What ran, for however short a time, keeps the name. */
static void a_command_that_ran_keeps_its_name(struct world *w)
{
    assert_exits(143, w, "latchkey run --hold-at-least 20s a -- sh -c 'kill -TERM $$'");
    assert_in_range(world_pttl(w, "a"), 10000, 20000);
    assert_exits(75, w, "latchkey run -n a true");
    world_redis(w, "DEL a");
    assert_exits(0, w, "latchkey hold -n --hold-at-least 20s a");
    assert_in_range(world_pttl(w, "a"), 10000, 20000);
    world_redis(w, "DEL a");
}

int main(void)
{
    return world_run(a_signal_before_the_answer_keeps_nothing, a_signal_before_the_hand_over_is_heard_keeps_nothing,
                     a_server_that_hears_of_it_late_keeps_nothing, a_command_that_ran_keeps_its_name);
}
