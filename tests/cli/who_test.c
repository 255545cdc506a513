/* SPDX-License-Identifier: MIT */
/*
 * who_test.c - who holds a name, and who waits for it: what `run --why` and all others say of themselves, and who reads it
 *
 * seconds: 9
 */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char host[256];

/* Hold the name "a" by `options` and a shell that has these words, until the file "go" is there. */
static pid_t hold(struct world *w, const char *options, const char *words)
{
    assert_int_equal(0, gethostname(host, sizeof host - 1));
    pid_t holder = command_begin(w, "rm -f held go; exec latchkey run %s a -- /bin/sh -c ': >held; until [ -e go ]; do "
                                    "sleep 0.02; done; : %s'", options, words);
    eventually(command_left(w, "held"), 20000);
    return holder;
}

static void let_go(struct world *w, pid_t holder)
{
    assert_exits(0, w, "touch go");
    assert_int_equal(0, command_end(w, holder)->code);
}

/* Does a line come to say that? A client is described a moment after its grant. */
#define eventually_exits(...) eventually(command(__VA_ARGS__)->code == 0, 20000)

static void status_tells_who_holds_and_who_waits(struct world *w)
{
    pid_t holder = hold(w, "--why 'nightly export'", "");
    pid_t waiter = command_begin(w, "exec latchkey run -w 30 a /bin/true");
    eventually_exits(w, "latchkey status a | grep -q '^  held by  %s:%d sh -c .* (nightly export)$' && "
                        "latchkey status a | grep -q '^  waits:   %s:%d true$'", host, (int)holder, host, (int)waiter);
    assert_exits(0, w, "latchkey status --json a >said && "
                       "[ $(grep -c ',\"who\":{\"host\":\"%s\",\"pid\":%d,\"program\":\"sh\",\"arguments\":\"-c .*\",\"why\":\"nightly "
                       "export\"},\"held_by\":\\[{\"owner\":\"[0-9a-f:]*w*\",\"who\":{\"host\":' said) = 2 ] && "
                       "grep -q '\"waited_by\":\\[{\"owner\":\"[0-9a-f:]*\",\"who\":{\"host\":\"%s\",\"pid\":%d,\"program\":\"true\"}}\\],"
                       "\"server\":\"unix://.*\"}$' "
                       "said", host, (int)holder, host, (int)waiter);
    let_go(w, holder);
    assert_int_equal(0, command_end(w, waiter)->code);
}

/* Readers and permits have several holders: each of them is told. */
static void each_of_several_is_told(struct world *w)
{
    world_allow(w, "latchkey:total:{p}");
    pid_t first = command_begin(w, "exec latchkey hold -s --why first --no-stdin r"),
          second = command_begin(w, "exec latchkey hold -s --why second --no-stdin r >other"),
          third = command_begin(w, "exec latchkey hold --permits 2 --why third --no-stdin p >another");
    eventually_exits(w, "latchkey status r p >said; grep -q '^  held by  .*:%d latchkey (first)$' said && grep -q '^  held by  "
                        ".*:%d latchkey (second)$' said && grep -q '^  held by  .*:%d latchkey (third)$' said",
                     (int)first, (int)second, (int)third);
    pid_t all[] = { first, second, third };
    for (int i = 0; i < 3; i++) {
        kill(all[i], SIGTERM);
        assert_int_equal(0, command_end(w, all[i])->code);
    }
}

static void the_others_tell_it_as_well(struct world *w)
{
    pid_t holder = hold(w, "--lease 20s --on-lost warn --why nightly", "");
    eventually_exits(w, "latchkey ls | grep -q '^a .*mutex .* [0-9a-f:]* %s:%d sh -c .* (nightly)$'", host, (int)holder);
    assert_exits(0, w, "latchkey top --once | grep -c '%s:%d sh -c .* (nightly)$' | grep -qx 2", host, (int)holder);
    assert_exits(0, w, "latchkey ls --json | grep -c '\"who\":{\"host\":\"%s\",\"pid\":%d,' | grep -qx 2", host, (int)holder);
    assert_exits(0, w, "latchkey watch --for 300ms a | grep -c 'held .*, %s:%d sh -c .* (nightly)$' | grep -qx 2", host,
                 (int)holder);
    assert_exits(0, w, "latchkey watch --json --for 300ms a | grep -c '\"who\":{.*\"why\":\"nightly\"}' | grep -qx 2");
    const struct ran *ran = command(w, "latchkey force-release a");
    assert_int_equal(64, ran->code);
    assert_that(strstr(ran->err, " (nightly)\n") != NULL && strstr(ran->err, host) != NULL);
    assert_exits(0, w, "latchkey force-release -f --json a | grep -c '\"held_by\":\\[{\"owner\":\".*\",\"who\":{\"host\":' | "
                       "grep -qx 2");
    assert_exits(0, w, "touch go");
    (void)command_end(w, holder);
}

/* Does the watch tell of a holder that comes now, and who that is? */
static bool who_came_is_told(struct world *w)
{
    assert_exits(0, w, "latchkey watch --for 60s a >seen & echo $! >watcher; until grep -q free seen; do sleep 0.02; done");
    pid_t holder = hold(w, "--lease 20s", "");
    eventually_exits(w, "grep -c 'held exclusive by .*, token [0-9]*' seen | grep -qx 2");
    bool told = command(w, "grep -c 'held exclusive by .*, token [0-9]*, %s:%d sh$' seen | grep -qx 2", host, (int)holder)->code == 0;
    let_go(w, holder);
    assert_exits(0, w, "kill $(cat watcher)");
    return told;
}

/* Whoever comes while somebody watches has not said it yet. It is a moment, and no more: one who is late is not told. */
static void a_watch_waits_a_moment_for_it(struct world *w)
{
    bool told = false;
    for (int tries = 0; tries < 5 && !told; tries++)
        told = who_came_is_told(w);
    assert_true(told);
}

/* What stands on a command line may be a password; so may what a shell is given. */
static void arguments_are_said_only_with_a_reason(struct world *w)
{
    static const char *const lines[] = { "a -- /bin/sh -c 'sleep 30; : SECRET' SECRET", "-c 'sleep 30; : SECRET' a" };
    static const char *const options[] = { "", "--why ''", "--why export" };
    for (int i = 0; i < 6; i++) {
        pid_t holder = command_begin(w, "exec latchkey run %s %s", options[i / 2], lines[i % 2]);
        eventually_exits(w, "redis-cli -s %s --scan --pattern 'latchkey:who:*' | grep -q .", w->socket);
        assert_exits(0, w, "redis-cli -s %s --scan | while read k; do case $k in latchkey:who:*) redis-cli -s %s GET $k ;; *) "
                           "redis-cli -s %s DUMP $k; echo $k ;; esac; done >all; grep -q '\"program\":\"sh\"' all && "
                           "! grep -q /bin all && %s grep -q SECRET all",
                     w->socket, w->socket, w->socket, i < 4 ? "!" : "");
        kill(holder, SIGTERM);
        assert_int_equal(143, command_end(w, holder)->code);
        eventually_exits(w, "! redis-cli -s %s --scan --pattern 'latchkey:who:*' | grep -q .", w->socket);
    }
}

/* Who wants to be nobody is, whatever the command line says. */
static void nothing_is_said_with_describe_no(struct world *w)
{
    command_options(COMMAND_PATIENT "&describe=no");
    pid_t holder = hold(w, "--why nightly", "");
    sleep_ms(300);
    assert_exits(0, w, "! redis-cli -s %s --scan --pattern 'latchkey:who:*' | grep -q .", w->socket);
    assert_exits(0, w, "latchkey status a >said && [ $(wc -l <said) = 3 ] && ! latchkey ls --json | grep -q who");
    let_go(w, holder);
    command_options(COMMAND_PATIENT "&describe=yes");
}

/* Anybody may have written it: it is a line, and nothing that a terminal obeys. */
static void what_is_said_cannot_write_to_the_terminal(struct world *w)
{
    static const char id[] = "0123456789abcdef0123456789abcdef";
    world_redis(w, "HSET a %s:1:1 1", id);
    assert_exits(0, w, "latchkey status a >said && [ $(wc -l <said) = 2 ]"); /* nothing is known of it */
    world_redis(w, "SET latchkey:who:%s %s", id, "{\"pid\":1,\"host\":\"\\u001b[2Jx\",\"program\":\"b\\nc\\u00e9\",\"why\":\"\\t)\"}");
    assert_exits(0, w, "latchkey status a >said && [ $(wc -l <said) = 3 ] && latchkey ls >>said && latchkey watch --for 200ms a >>said; "
                       "latchkey force-release a 2>>said; [ $(grep -c 'x:1 b' said) = 4 ] && "
                       "! tr -d '\\n -~' <said | grep -q .");
    world_redis(w, "SET latchkey:who:%s garbage", id);
    assert_exits(0, w, "latchkey status a >said && [ $(wc -l <said) = 2 ] && latchkey ls | grep -q '^a .*%s:1:1$'", id);
    world_redis(w, "FLUSHALL");
}

/* With a thousand waiters status tells of the first of them. */
static void a_long_queue_is_told_in_part(struct world *w)
{
    pid_t holder = hold(w, "", "");
    assert_exits(0, w, "i=0; while [ $i -lt 30 ]; do latchkey run -w 60 a touch ran & i=$((i + 1)); done; "
                       "until latchkey status a | grep -q 'mutex  *exclusive  *1  *30 ' && "
                       "[ $(latchkey status a | grep -c '^  waits: ') -ge 11 ]; do sleep 0.1; done; "
                       "latchkey status a >said; [ $(grep -c '^  waits: ' said) = 11 ] && grep -q '^  waits:   and 20 more$' said; "
                       "code=$?; touch go; wait; exit $code");
    assert_int_equal(0, command_end(w, holder)->code);
}

int main(void)
{
    command_options(COMMAND_PATIENT "&describe=yes");
    return world_run(status_tells_who_holds_and_who_waits, each_of_several_is_told, the_others_tell_it_as_well, a_watch_waits_a_moment_for_it,
                     arguments_are_said_only_with_a_reason, nothing_is_said_with_describe_no,
                     what_is_said_cannot_write_to_the_terminal, a_long_queue_is_told_in_part);
}
