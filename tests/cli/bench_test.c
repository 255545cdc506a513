/* SPDX-License-Identifier: MIT */
/*
 * bench_test.c - `latchkey bench` measures, and leaves nothing behind, however it ends
 *
 * labels: long
 * processors: 6
 */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* What is held ends soon, and a machine that stands still for half a second is waited for. */
#define BRIEF "lease=2s&command_timeout=600ms&connect_timeout=2s"

/* Is nothing of it taken, nobody queued, and all that is left to end by itself? */
static bool nothing_is_left(struct world *w)
{
    return world_int(w, "EVAL %s 0", "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do "
                                     "if redis.call('TTL', key) < 0 or string.find(key, '^latchkey.bench') "
                                     "or string.find(key, '^latchkey:rw:') "
                                     "or string.find(key, '^latchkey:queue:') then n = n + 1 end end return n") == 0;
}

static void each_figure_is_measured(struct world *w)
{
    static const char *const figures[] = { "question", "pair", "pairs", "hand-over", "run" };
    const struct ran *ran = command(w, "latchkey bench --seconds 3 --json");
    char words[64];
    assert_int_equal(0, ran->code);
    assert_string_equal("", ran->err);
    for (unsigned i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        snprintf(words, sizeof words, "{\"figure\":\"%s\",\"count\":", figures[i]);
        const char *line = strstr(ran->out, words);
        unsigned long long count = 0, half = 0, most = 0, longest = 0;
        double rate = 0;
        if (line == NULL)
            assert_failed(__FILE__, __LINE__, "no %s in:\n%s", figures[i], ran->out);
        line += strlen(words);
        assert_int_equal(5, sscanf(line, "%llu,\"per_second\":%lf,\"p50_us\":%llu,\"p99_us\":%llu,\"max_us\":%llu}",
                                   &count, &rate, &half, &most, &longest));
        assert_true(count > 0 && rate > 0 && half > 0 && half <= most && most <= longest);
    }
    assert_true(nothing_is_left(w));
    assert_exits(0, w, "latchkey bench --seconds 1 >table && [ $(grep -c ' ms  ' table) -ge 4 ] && "
                       "! awk 'length > 80' table | grep .");
}

static void two_do_not_measure_each_other(struct world *w)
{
    assert_exits(75, w, "latchkey run latchkey.bench -- latchkey bench --seconds 1");
    assert_exits(64, w, "latchkey bench --seconds 0");
    assert_exits(69, w, "latchkey bench -u redis://127.0.0.1:1");
}

/* Nor does it wait for a name that somebody else has: it says which. */
static void a_name_of_it_that_is_taken_ends_it(struct world *w)
{
    const struct ran *ran = command(w, "latchkey run latchkey.bench.3 -- latchkey bench --seconds 1");
    assert_int_equal(75, ran->code);
    assert_that(strstr(ran->err, "latchkey.bench.3") != NULL);
    ran = command(w, "latchkey run latchkey.bench.run -- latchkey bench --seconds 1");
    assert_int_equal(69, ran->code);
    assert_that(strstr(ran->err, "bench: latchkey run failed, or somebody else has latchkey.bench.run") != NULL);
}

/* Whichever figure it is at: nothing is held, and no process is left. */
static void ctrl_c_leaves_nothing(struct world *w)
{
    static const char *const names[] = { "latchkey.bench", "latchkey.bench.to-and-fro", "latchkey.bench.run" };
    static const int signals[] = { SIGINT, SIGQUIT, SIGTERM };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        pid_t bench = command_begin(w, "exec latchkey bench --seconds %d", i == 0 ? 60 : 5);
        eventually(world_exists(w, names[i]), 120000); /* the last figure is measured after all others */
        kill(-bench, signals[i]);
        assert_int_equal(128 + signals[i], command_end(w, bench)->code);
        assert_true(nothing_is_left(w));
        eventually(kill(-bench, 0) != 0, 20000);
    }
}

static void a_killed_one_leaves_no_process(struct world *w)
{
    pid_t bench = command_begin(w, "exec latchkey bench --seconds 60 -u 'unix://%s?" BRIEF "'", w->socket);
    eventually(world_exists(w, "latchkey.bench"), 20000);
    kill(bench, SIGKILL);
    assert_int_equal(137, command_end(w, bench)->code);
    eventually(kill(-bench, 0) != 0, 20000);
    eventually(!world_exists(w, "latchkey.bench"), 20000);
}

static void without_a_server_it_ends(struct world *w)
{
    pid_t bench = command_begin(w, "latchkey bench --seconds 60 -u 'unix://%s?" BRIEF "'", w->socket);
    eventually(world_exists(w, "latchkey.bench"), 20000);
    world_kill_server(w);
    assert_int_equal(69, command_end(w, bench)->code);
    world_restart_server(w);
}

int main(void)
{
    return world_run(each_figure_is_measured, two_do_not_measure_each_other,
                     a_name_of_it_that_is_taken_ends_it, ctrl_c_leaves_nothing,
                     a_killed_one_leaves_no_process, without_a_server_it_ends);
}
