/* SPDX-License-Identifier: MIT */
/*
 * lease_test.c - `latchkey run` when the lease cannot be kept, latchkey dies or stands still, or the command will not end
 *
 * seconds: 38
 */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LEASE_MS = 2000 };

/* Writes its number, and ends when it is told to. */
static const char obedient[] = "echo $$ >pid; while :; do sleep 0.02; done";

/* Will not. */
static const char stubborn[] = "trap \"\" TERM INT HUP; echo $$ >pid; while :; do sleep 0.02; done";

/* latchkey's process, whose shell writes its number and becomes it; when the command runs. */
static pid_t begin(struct world *w, const char *url_options, const char *run_options, const char *line)
{
    command_options(url_options);
    pid_t latchkey = command_begin(w, "exec latchkey run %s -c '%s' a", run_options, line);
    eventually(command_number(w, "pid") > 0, 20000);
    return latchkey;
}

/* With a lease that ends soon. */
static pid_t begin_run(struct world *w, const char *run_options, const char *line)
{
    return begin(w, "lease=2s&command_timeout=600ms&connect_timeout=2s", run_options, line);
}

/* With one whose end is not the point. */
static pid_t begin_steady(struct world *w, const char *run_options, const char *line)
{
    return begin(w, COMMAND_PATIENT, run_options, line);
}

/* What the lease is good for now; the command has to be gone by then. */
static int64_t lease_ends_ms(struct world *w)
{
    int64_t left_ms = world_pttl(w, "a");
    assert_between(left_ms, 1, LEASE_MS);
    return now_ms() + left_ms;
}

static void the_command_is_gone_by(struct world *w, int64_t at_ms)
{
    while (is_running(command_number(w, "pid")))
        sleep_ms(2);
    assert_between(now_ms(), 0, at_ms + SLACK_MS);
}

/* Nothing that latchkey began runs on without it. */
static void a_killed_latchkey_takes_the_command_along(struct world *w)
{
    pid_t latchkey = begin_run(w, "", obedient);
    world_stop(latchkey);
    int64_t ends_ms = lease_ends_ms(w);
    kill(latchkey, SIGKILL);
    assert_int_equal(137, command_end(w, latchkey)->code);
    the_command_is_gone_by(w, ends_ms);
    eventually(!world_exists(w, "a"), 20000);
}

static void also_one_that_ignores_signals(struct world *w)
{
    pid_t latchkey = begin_run(w, "-k 1h", stubborn);
    world_stop(latchkey);
    int64_t ends_ms = lease_ends_ms(w);
    kill(latchkey, SIGKILL);
    assert_int_equal(137, command_end(w, latchkey)->code);
    the_command_is_gone_by(w, ends_ms);
    eventually(!world_exists(w, "a"), 20000);
}

/* Nobody renews while latchkey stands still, so the command is ended before somebody else may come. */
static void a_latchkey_that_stands_still_keeps_no_command(struct world *w)
{
    pid_t latchkey = begin_run(w, "", stubborn);
    world_stop(latchkey);
    int64_t ends_ms = lease_ends_ms(w);
    the_command_is_gone_by(w, ends_ms);
    world_cont(latchkey);
    assert_int_equal(79, command_end(w, latchkey)->code);
    eventually(!world_exists(w, "a"), 20000);
}

static void without_a_server_the_command_ends_before_the_lease(struct world *w)
{
    pid_t latchkey = begin_run(w, "", "trap \"echo told >told; exit 0\" TERM; echo $$ >pid; while :; do sleep 0.02; "
                                      "done");
    world_stop(latchkey); /* so that what is seen of the lease is the last of it */
    int64_t ends_ms = lease_ends_ms(w);
    world_stop_server(w);
    world_cont(latchkey);
    the_command_is_gone_by(w, ends_ms);
    assert_true(command_left(w, "told")); /* it had its time to clear up */
    assert_int_equal(79, command_end(w, latchkey)->code);
    world_cont_server(w);
    eventually(!world_exists(w, "a"), 20000);
}

/* What was lost is given back once; a server that does not answer is not waited for again, by run and hold alike. */
static void without_a_server_latchkey_ends_soon(struct world *w)
{
    enum { OWN_LEASE_MS = 6000, TIMEOUT_MS = 1900, HOLDERS = 16 };
    pid_t holders[HOLDERS], latchkey = begin(w, "lease=6s&command_timeout=1900ms&retry_max=50ms", "-k 500ms", obedient);
    for (int i = 0; i < HOLDERS; i++) { /* of both objects of a name, of which one is lost before the other */
        char said[16];
        snprintf(said, sizeof said, "said%d", i);
        holders[i] = command_begin(w, "exec latchkey hold --no-stdin b%d >said%d", i, i);
        eventually(command_number(w, said) > 0, 20000);
    }
    sleep_ms(OWN_LEASE_MS / 2); /* they are renewed, each at its own time */
    world_stop_server(w);
    int64_t stopped_ms = now_ms();
    eventually(!is_running(command_number(w, "pid")), 20000);
    int64_t began_ms = now_ms();
    assert_int_equal(79, command_end(w, latchkey)->code);
    assert_between(now_ms() - began_ms, 0, 2 * TIMEOUT_MS);
    for (int i = 0; i < HOLDERS; i++)
        assert_int_equal(79, command_end(w, holders[i])->code);
    assert_between(now_ms() - stopped_ms, 0, OWN_LEASE_MS + 2 * TIMEOUT_MS);
    world_cont_server(w);
    eventually(!world_exists(w, "a") && world_int(w, "EXISTS b0 b7 b%d", HOLDERS - 1) == 0, 20000);
}

static void a_stubborn_one_is_killed_before_the_lease_ends(struct world *w)
{
    pid_t latchkey = begin_run(w, "-k 200ms --signal INT", stubborn);
    world_stop(latchkey); /* so that what is seen of the lease is the last of it */
    int64_t ends_ms = lease_ends_ms(w);
    world_stop_server(w);
    world_cont(latchkey);
    the_command_is_gone_by(w, ends_ms);
    assert_int_equal(79, command_end(w, latchkey)->code);
    world_cont_server(w);
    eventually(!world_exists(w, "a"), 20000);
}

/* An operator takes the name away: the holder learns of it with the next renewal. */
static void a_robbed_holder_is_ended(struct world *w)
{
    pid_t latchkey = begin_run(w, "", obedient);
    world_redis(w, "DEL a");
    the_command_is_gone_by(w, now_ms() + LEASE_MS);
    const struct ran *ran = command_end(w, latchkey);
    assert_int_equal(79, ran->code);
    assert_that(strstr(ran->err, "the lease could not be kept") != NULL);
}

static void who_only_wants_a_warning_runs_on(struct world *w)
{
    pid_t latchkey = begin_run(w, "--on-lost warn", "echo $$ >pid; until [ -e go ]; do sleep 0.02; done; exit 9");
    world_redis(w, "DEL a");
    sleep_ms(LEASE_MS + LEASE_MS / 2); /* longer than the lease could last */
    assert_true(is_running(command_number(w, "pid")));
    assert_exits(0, w, "touch go");
    assert_int_equal(9, command_end(w, latchkey)->code);
}

static void a_line_of_ones_own_is_run_in_place_of_the_signal(struct world *w)
{
    pid_t latchkey = begin_run(w, "--on-lost 'exec:echo $LATCHKEY_GROUP >told'", stubborn);
    world_stop_server(w);
    eventually(command_number(w, "told") > 0, 20000);
    assert_same(command_number(w, "pid"), command_number(w, "told"));
    assert_int_equal(79, command_end(w, latchkey)->code);
    assert_false(is_running(command_number(w, "pid")));
    world_cont_server(w);
    eventually(!world_exists(w, "a"), 20000);
}

static void after_its_time_the_command_is_ended(struct world *w)
{
    command_options(COMMAND_PATIENT);
    assert_exits(124, w, "latchkey run --max-time 100ms a sleep 60");
    assert_exits(124, w, "latchkey run --max-time 100ms -k 100ms -c '%s' a", stubborn);
    assert_exits(0, w, "latchkey run --max-time 1h a true");
    assert_false(world_exists(w, "a"));
}

static void signals_are_passed_on_and_the_name_given_back(struct world *w)
{
    static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        assert_exits(0, w, "rm -f pid");
        pid_t latchkey = begin_steady(w, "", obedient);
        kill(latchkey, signals[i]);
        assert_int_equal(128 + signals[i], command_end(w, latchkey)->code);
        assert_false(world_exists(w, "a"));
    }
}

static void a_signal_ends_the_wait(struct world *w)
{
    static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
    pid_t holder = begin_steady(w, "", obedient);
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        pid_t waiter = command_begin(w, "exec latchkey run a touch ran");
        eventually(world_queued(w, "a") == 1, 20000);
        kill(waiter, signals[i]);
        assert_int_equal(128 + signals[i], command_end(w, waiter)->code);
        assert_int_equal(0, world_queued(w, "a"));
    }
    kill(holder, SIGTERM);
    assert_int_equal(143, command_end(w, holder)->code);
    assert_false(command_left(w, "ran"));
    assert_false(world_exists(w, "a"));
}

/* As under nohup(1), and in the background of a script: neither a wait nor a command ends. */
static void a_signal_that_is_ignored_does_nothing(struct world *w)
{
    static const int signals[] = { SIGHUP, SIGINT, SIGQUIT };
    pid_t holder = begin_run(w, "", obedient);
    pid_t latchkey = command_begin(w, "trap '' HUP INT QUIT; exec latchkey run a -- sh -c 'echo $$ >ran; until [ -e go ]; "
                                      "do sleep 0.02; done; exit 6'");
    eventually(world_queued(w, "a") == 1, 20000);
    for (unsigned i = 0; i < 3; i++)
        kill(latchkey, signals[i]);
    kill(holder, SIGTERM);
    assert_int_equal(143, command_end(w, holder)->code);
    eventually(command_number(w, "ran") > 0, 20000);
    for (unsigned i = 0; i < 3; i++)
        kill(latchkey, signals[i]);
    assert_exits(75, w, "latchkey run -n a true");
    assert_exits(0, w, "touch go");
    assert_int_equal(6, command_end(w, latchkey)->code);
    assert_false(world_exists(w, "a"));
}

/* The name is held until the last of the group is gone, as flock(1) has it. */
static void what_runs_in_the_background_is_waited_for(struct world *w)
{
    pid_t latchkey = begin_steady(w, "", "(echo 1 >pid; until [ -e go ]; do sleep 0.02; done; echo done >done) & exit 4");
    sleep_ms(200); /* the command itself has long ended */
    assert_true(world_exists(w, "a"));
    assert_exits(0, w, "touch go");
    assert_int_equal(4, command_end(w, latchkey)->code);
    assert_true(command_left(w, "done"));
    assert_false(world_exists(w, "a"));
}

/* But who was told to end takes all along: Ctrl-C does not wait for what ignores it in the background. */
static void what_a_signal_left_behind_is_ended(struct world *w)
{
    pid_t latchkey = begin_steady(w, "-k 300ms", "(trap \"\" INT TERM; sleep 60) & echo $! >pid; wait");
    kill(latchkey, SIGINT);
    assert_int_equal(130, command_end(w, latchkey)->code);
    assert_false(is_running(command_number(w, "pid")));
    assert_false(world_exists(w, "a"));
}

/* Whoever kills the keeper gets no unguarded command. */
static void without_a_keeper_the_command_is_ended(struct world *w)
{
    pid_t latchkey = begin_steady(w, "", stubborn);
    assert_exits(0, w, "for p in $(pgrep -P %d); do grep -q latchkey-keeper /proc/$p/comm && kill -9 $p; done; true", (int)latchkey);
    assert_int_equal(70, command_end(w, latchkey)->code);
    assert_false(is_running(command_number(w, "pid")));
    assert_false(world_exists(w, "a"));
}

/* It is renewed for as long as the command runs. */
static void a_lease_outlives_its_length(struct world *w)
{
    command_options(COMMAND_PATIENT);
    pid_t latchkey = command_begin(w, "exec latchkey run --lease 2s -c 'echo $$ >pid; sleep 3; latchkey run -n a "
                                      "true' a");
    assert_int_equal(75, command_end(w, latchkey)->code);
    assert_false(world_exists(w, "a"));
}

int main(void)
{
    return world_run(a_killed_latchkey_takes_the_command_along, also_one_that_ignores_signals,
                     a_latchkey_that_stands_still_keeps_no_command, without_a_server_the_command_ends_before_the_lease,
                     without_a_server_latchkey_ends_soon, a_stubborn_one_is_killed_before_the_lease_ends, a_robbed_holder_is_ended,
                     who_only_wants_a_warning_runs_on, a_line_of_ones_own_is_run_in_place_of_the_signal,
                     after_its_time_the_command_is_ended, signals_are_passed_on_and_the_name_given_back,
                     a_signal_ends_the_wait, a_signal_that_is_ignored_does_nothing, what_runs_in_the_background_is_waited_for,
                     what_a_signal_left_behind_is_ended, without_a_keeper_the_command_is_ended, a_lease_outlives_its_length);
}
