/* SPDX-License-Identifier: MIT */
/*
 * others_test.c - `latchkey hold`, `status`, `sem`, `latch`, `server` and `version`
 *
 * seconds: 6
 */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static void hold_holds_until_its_input_ends(struct world *w)
{
    assert_exits(0, w, "mkfifo input; latchkey hold a <input >held & exec 3>input; until [ -s held ]; do sleep "
                       "0.02; done; "
                       "[ $(cat held) = $(redis-cli -s %s get 'redisson_lock_token:{a}') ] || exit 1; "
                       "latchkey run -n a true; [ $? = 75 ] || exit 2; exec 3>&-; wait $! || exit 3; latchkey run "
                       "-n a true",
                 w->socket);
    assert_exits(75, w, "latchkey run a -- latchkey hold -n a");
    assert_exits(0, w, "latchkey hold -s --json a | grep -q "
                       "'^{\"name\":\"a\",\"owner\":\".*\",\"mode\":\"shared\",\"token\":0,\"server\":\"unix://.*\"}$'");
    assert_exits(74, w, "latchkey hold a >/dev/full");
    assert_false(world_exists(w, "a"));
}

static void hold_ends_with_a_signal_and_with_its_lease(struct world *w)
{
    pid_t holder = command_begin(w, "exec latchkey hold --no-stdin a");
    eventually(world_exists(w, "a") && command_number(w, "out") > 0, 20000);
    kill(holder, SIGTERM);
    assert_int_equal(0, command_end(w, holder)->code);
    assert_false(world_exists(w, "a"));

    holder = command_begin(w, "rm out; trap '' HUP; exec latchkey hold --no-stdin a >out"); /* as nohup(1) does */
    eventually(world_exists(w, "a") && command_number(w, "out") > 0, 20000);
    kill(holder, SIGHUP);
    assert_exits(75, w, "latchkey run -w 200ms a true");
    kill(holder, SIGTERM);
    assert_int_equal(0, command_end(w, holder)->code);

    holder = command_begin(w, "rm out; exec latchkey hold --lease 3s --no-stdin a >out");
    eventually(world_exists(w, "a") && command_number(w, "out") > 0, 20000);
    world_redis(w, "DEL a");
    assert_int_equal(79, command_end(w, holder)->code);
}

static void status_tells_who_holds_and_who_waits(struct world *w)
{
    world_allow(w, "latchkey:total:{p}");
    assert_exits(0, w, "latchkey run a -- latchkey status --check a >table && grep -q '^a  *mutex  *exclusive  *1  "
                       "*0 .*:' table");
    assert_exits(1, w, "latchkey run a -- latchkey status --check a b >table");
    assert_exits(0, w, "grep -q '^b  *-  *free  *0  *0  *-  *-  *-$' table");
    assert_exits(0, w, "latchkey run -s a -- latchkey run -s a -- latchkey status a | grep -q '^a  *rwlock  *shared "
                       " *2 '");
    assert_exits(0, w, "latchkey run -x a -- latchkey status --json a | "
                       "grep -q '^{\"name\":\"a\",\"kind\":\"rwlock\",\"mode\":\"exclusive\",\"holders\":1,\"waiters\":0,\"ttl_ms\":[0-9]*,"
                       "\"token\":[0-9]*,\"owner\":\"[0-9a-f:w]*\"[,}]'");
    assert_exits(0, w, "latchkey run --permits 1 p -- latchkey status --check p | grep -q '^p  *permits  *taken  *1 '");
    assert_exits(0, w, "latchkey latch create l 3; latchkey status l | grep -q '^l  *count  *count 3 '");
    assert_exits(0, w, "latchkey latch count-down l 3; latchkey status l | grep -q '^l  *latch  *open '");
    pid_t holder = command_begin(w, "latchkey run a -- sh -c 'touch held; until latchkey status a | "
                                    "grep -q \"exclusive  *1  *1 \"; do sleep 0.05; done'");
    eventually(command_left(w, "held"), 20000);
    assert_exits(0, w, "latchkey run -w 30 a true");
    assert_int_equal(0, command_end(w, holder)->code);
    world_allow(w, "*{l}*");
}

/* Where a line has no room, it has no token, and eight digits of the owner. */
static void a_narrow_terminal_has_lines_that_fit(struct world *w)
{
    if (command(w, "command -v script")->code != 0)
        return;
    assert_exits(0, w, "export TERM=xterm; latchkey run a -- " ON_TERMINAL("stty cols 80; latchkey status a", "shown") "; "
                       "tr -d '\\r' <shown >narrow; grep '^a  *mutex ' narrow && ! awk 'length > 80' narrow | grep . || exit 1; "
                       "latchkey run a -- " ON_TERMINAL("stty cols 140; latchkey status a", "shown") "; tr -d '\\r' <shown >wide; "
                       "grep -q TOKEN wide && grep -q '[0-9a-f]\\{32\\}:[0-9:]*$' wide");
}

static void a_semaphore_is_looked_at_and_resized(struct world *w)
{
    world_allow(w, "latchkey:total:{p}");
    assert_exits(1, w, "latchkey sem status p");
    assert_exits(0, w, "latchkey sem resize p 3 && [ \"$(latchkey sem status p)\" = '3 available, 0 held, 3 in all, "
                       "0 waiting' ]");
    assert_exits(0, w, "latchkey run --permits 3 p -- latchkey sem resize p 1");
    assert_exits(0, w, "latchkey sem status --json p | "
                       "grep -qx '{\"name\":\"p\",\"kind\":\"permits\",\"available\":1,\"held\":0,\"total\":1,"
                       "\"waiters\":0,\"server\":\"unix://.*\"}'");
}

static void a_latch_is_created_counted_down_and_awaited(struct world *w)
{
    world_allow(w, "*{l}*");
    assert_exits(1, w, "latchkey latch status l");
    assert_exits(1, w, "latchkey latch count-down l");
    assert_exits(1, w, "latchkey latch wait l");
    assert_exits(0, w, "latchkey latch create l 3");
    assert_exits(1, w, "latchkey latch create l 2");
    assert_exits(75, w, "latchkey latch wait -w 50ms l");
    assert_exits(5, w, "latchkey latch wait -n -E 5 l");
    assert_exits(0, w, "latchkey latch count-down l && [ \"$(latchkey latch status l)\" = 'closed, count 2' ]");
    assert_exits(0, w, "latchkey latch wait l & latchkey latch count-down l 2; wait $!");
    assert_exits(0, w, "latchkey latch status --json l | grep -qx "
                       "'{\"name\":\"l\",\"kind\":\"latch\",\"state\":\"open\",\"count\":0,\"server\":\"unix://.*\"}'");
}

/* The first minute: a server of one's own, gone without a trace. */
static void a_server_is_there_and_gone(struct world *w)
{
    pid_t server = command_begin(w, "TMPDIR=%s exec latchkey server >url", w->dir);
    eventually(command(w, "[ -s url ]")->code == 0, 20000);
    assert_exits(0, w, "export LATCHKEY_URL=$(cat url) && case $LATCHKEY_URL in unix://%s/latchkey-*/redis.sock) ;; "
                       "*) exit 9 ;; esac && "
                       "latchkey run a true && [ $(stat -c %%a ${LATCHKEY_URL#unix://}) = 700 ]", w->dir);
    kill(server, SIGINT);
    assert_int_equal(0, command_end(w, server)->code);
    assert_exits(0, w, "! ls -d latchkey-*");

    server = command_begin(w, "TMPDIR=%s exec latchkey server --port %d --json >url2", w->dir, free_port());
    eventually(command(w, "[ -s url2 ]")->code == 0, 20000);
    assert_exits(0, w, "LATCHKEY_URL=$(grep -o 'redis://[^\"]*' url2) latchkey run a true");
    assert_exits(0, w, "grep -o 'pid\":[0-9]*' url2 | cut -d: -f2 >pid");
    assert_true(is_running(command_number(w, "pid")));
    kill(server, SIGKILL); /* it takes the server along, whose port may be another's at once */
    assert_int_equal(137, command_end(w, server)->code);
    eventually(!is_running(command_number(w, "pid")), 20000);
    assert_exits(0, w, "rm -r latchkey-*");

    server = command_begin(w, "mkdir 'a b%%'; TMPDIR=\"$PWD/a b%%\" exec latchkey server >url3");
    eventually(command(w, "[ -s url3 ]")->code == 0, 20000);
    assert_exits(0, w, "LATCHKEY_URL=$(cat url3) latchkey run a true");
    kill(server, SIGTERM);
    assert_int_equal(0, command_end(w, server)->code);
    assert_exits(0, w, "rmdir 'a b%%'");
}

static void a_server_that_cannot_start_says_why(struct world *w)
{
    assert_exits(69, w, "mkdir bin; ln -s $(command -v latchkey) bin; TMPDIR=%s PATH=$PWD/bin latchkey server", w->dir);
    assert_that(strstr(command(w, "TMPDIR=%s PATH=$PWD/bin latchkey server", w->dir)->err, "neither redis-server nor") != NULL);
    assert_exits(70, w, "TMPDIR=/nowhere latchkey server");
    assert_exits(0, w, "! ls -d latchkey-*");
}

/* Whoever has the port already is not taken for it, and nobody is told to go there. */
static void a_port_that_another_server_has_is_told(struct world *w)
{
    int port = free_port();
    pid_t other = command_begin(w, "TMPDIR=%s exec latchkey server --port %d >url", w->dir, port);
    eventually(command(w, "[ -s url ]")->code == 0, 20000);
    assert_exits(69, w, "TMPDIR=%s latchkey server --port %d >url2", w->dir, port);
    assert_exits(0, w, "[ ! -s url2 ] && LATCHKEY_URL=$(cat url) latchkey run a true && [ $(ls -d latchkey-* | wc -l) = 1 ]");
    kill(other, SIGTERM);
    assert_int_equal(0, command_end(w, other)->code);
    assert_exits(0, w, "! ls -d latchkey-*");
}

static void the_version_is_that_of_the_library(struct world *w)
{
    char words[64];
    snprintf(words, sizeof words, "latchkey %s, library %s\n", lk_version(), lk_version());
    assert_string_equal(words, command(w, "latchkey version")->out);
    assert_string_equal(words, command(w, "latchkey --version")->out);
    snprintf(words, sizeof words, "{\"command\":\"%s\",\"library\":\"%s\"}\n", lk_version(), lk_version());
    assert_string_equal(words, command(w, "latchkey version --json")->out);
}

int main(void)
{
    return world_run(hold_holds_until_its_input_ends, hold_ends_with_a_signal_and_with_its_lease,
                     status_tells_who_holds_and_who_waits, a_narrow_terminal_has_lines_that_fit,
                     a_semaphore_is_looked_at_and_resized,
                     a_latch_is_created_counted_down_and_awaited, a_server_is_there_and_gone,
                     a_server_that_cannot_start_says_why, a_port_that_another_server_has_is_told, the_version_is_that_of_the_library);
}
