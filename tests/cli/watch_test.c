/* SPDX-License-Identifier: MIT */
/*
 * watch_test.c - `latchkey watch` says what happens to a name, and `--alert` exits with 1 when waits take too long
 *
 * seconds: 9
 */
#include "command.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { PATIENT_MS = 20000 };

static lk_mutex_t *mine, *theirs;

static void open_mutexes(struct world *w)
{
    mine = world_mutex(w, world_client(w, "lease=20s"), "a", NULL);
    theirs = world_mutex(w, world_client(w, "lease=20s"), "a", NULL);
}

static FILE *open_out(const struct world *w)
{
    char path[128];
    snprintf(path, sizeof path, "%s/watched", w->dir);
    return fopen(path, "r");
}

/* How many lines of what the watch said have those words. */
static int said(const struct world *w, const char *words)
{
    char line[1024];
    int count = 0;
    FILE *out = open_out(w);
    while (out != NULL && fgets(line, sizeof line, out) != NULL)
        count += strstr(line, words) != NULL;
    if (out != NULL)
        fclose(out);
    return count;
}

static int lock_theirs(void *arg)
{
    (void)arg;
    return lk_mutex_lock(theirs);
}

/* Locked, waited for, handed over, given back: by a program, not by the command. */
static void each_change_is_a_line(struct world *w)
{
    struct worker waiter;
    char held[200];
    open_mutexes(w);
    pid_t watch = command_begin(w, "exec latchkey watch a >watched");
    eventually(said(w, "Z a - free\n") == 1, PATIENT_MS);
    assert_lk(0, lk_mutex_lock(mine));
    snprintf(held, sizeof held, "Z a mutex held exclusive by %s, token ", world_owner(w, "a"));
    eventually(said(w, held) == 1, PATIENT_MS);
    worker_start(&waiter, lock_theirs, NULL);
    eventually(said(w, "Z a mutex waiters 1\n") == 1, PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(mine));
    assert_int_equal(0, worker_join(&waiter)); /* that thread ended, and its hold ends with its lease */
    snprintf(held, sizeof held, "Z a mutex held exclusive by %s, token ", world_owner(w, "a"));
    eventually(said(w, held) == 1 && said(w, "Z a mutex waiters 0\n") == 1, PATIENT_MS);
    assert_lk(0, lk_mutex_forceunlock(mine));
    eventually(said(w, "Z a mutex free\n") == 1, PATIENT_MS);
    assert_int_equal(2, said(w, " held "));
    kill(watch, SIGTERM);
    assert_int_equal(0, command_end(w, watch)->code);
}

static void json_has_an_object_for_each(struct world *w)
{
    char line[1024];
    int lines = 0;
    world_allow(w, "*");
    pid_t watch = command_begin(w, "exec latchkey watch --json a b l >watched");
    eventually(said(w, "\"name\":\"l\",\"kind\":\"-\",\"event\":\"free\"") == 1, PATIENT_MS);
    assert_exits(0, w, "latchkey run --permits 2 b -- sh -c 'until grep -q permits.*holders watched; do sleep 0.05; done'");
    assert_exits(0, w, "latchkey latch create l 3");
    eventually(said(w, "\"kind\":\"count\",\"event\":\"count\",") == 1, PATIENT_MS);
    assert_exits(0, w, "latchkey latch count-down l 3");
    eventually(said(w, "\"kind\":\"latch\",\"event\":\"open\",\"mode\":\"open\"") == 1, PATIENT_MS);
    kill(watch, SIGINT);
    assert_int_equal(0, command_end(w, watch)->code);
    FILE *out = open_out(w);
    for (; fgets(line, sizeof line, out) != NULL; lines++) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *time, *name, *kind, *event, *mode;
        int holders, waiters;
        assert_non_null(object);
        assert_int_equal(0, json_unpack(object, "{s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "time", &time, "name", &name,
                                        "kind", &kind, "event", &event, "mode", &mode, "holders", &holders, "waiters",
                                        &waiters));
        assert_int_equal(strlen(time), strlen("2026-05-04T09:12:44.103Z"));
        json_decref(object);
    }
    fclose(out);
    assert_true(lines >= 6);
}

static void it_ends_when_it_is_to(struct world *w)
{
    open_mutexes(w);
    assert_exits(0, w, "latchkey watch --for 300ms a");
    assert_exits(74, w, "latchkey watch --for 5s a >/dev/full");
    assert_exits(69, w, "latchkey watch -q -u redis://127.0.0.1:1 a");
    assert_exits(64, w, "latchkey watch");
    assert_exits(64, w, "latchkey watch --alert mean-wait a 2>said");
    assert_exits(0, w, "grep -q \"watch: --alert: 'mean-wait' is not mean-wait=DUR\" said");
    assert_exits(64, w, "latchkey watch --alert mean-wait=soon a");
    assert_exits(64, w, "latchkey watch --alert p99=1s a");
    assert_exits(64, w, "latchkey watch --for 0 a");
}

static void an_alert_is_exit_code_one(struct world *w)
{
    struct worker waiter;
    open_mutexes(w);
    assert_lk(0, lk_mutex_lock(mine)); /* held for long, and nobody waits */
    assert_exits(0, w, "latchkey watch --alert mean-wait=100ms --for 1s a >alerted && [ ! -s alerted ]");
    worker_start(&waiter, lock_theirs, NULL);
    eventually(world_queued(w, "a") == 1, PATIENT_MS);
    assert_exits(0, w, "latchkey watch --alert mean-wait=1h --for 500ms b a >alerted && [ ! -s alerted ]");
    assert_exits(1, w, "latchkey watch --alert mean-wait=300ms --for 30s b a >alerted");
    assert_exits(0, w, "grep -qE 'Z alert: waits took [0-9]{3,} ms in the mean of 1$' alerted && "
                       "[ $(wc -l <alerted) = 1 ]");
    assert_exits(1, w, "latchkey watch --json --alert mean-wait=300ms a >alerted");
    assert_exits(0, w, "grep -qE '^\\{\"time\":\"[^\"]*\",\"event\":\"alert\",\"mean_wait_ms\":[0-9]+,\"waits\":1,"
                       "\"server\":\"unix://.*\"\\}$' "
                       "alerted");
    assert_lk(0, lk_mutex_unlock(mine));
    assert_int_equal(0, worker_join(&waiter));
    assert_exits(0, w, "latchkey watch --alert mean-wait=100ms --for 500ms a >alerted");
    assert_lk(0, lk_mutex_forceunlock(mine));
}

int main(void)
{
    return world_run(each_change_is_a_line, json_has_an_object_for_each, it_ends_when_it_is_to,
                     an_alert_is_exit_code_one);
}
