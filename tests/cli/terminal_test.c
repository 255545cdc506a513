/* SPDX-License-Identifier: MIT */
/*
 * terminal_test.c - `latchkey run` on a terminal, which script(1) makes: keys reach the command, and nothing stays locked
 *
 * seconds: 11
 */
#include "command.h"

#include <string.h>
#include <unistd.h>

/* A shell line on a terminal, whose keyboard types what `keys` prints. */
static const struct ran *on_terminal(struct world *w, const char *keys, const char *line)
{
    command_options("lease=20s&command_timeout=6s&connect_timeout=20s");
    return command(w, "cat >line <<'END'\n%s\nEND\n(%s) | " ON_TERMINAL("bash line", "out"), line, keys);
}

static const char ctrl_c[] = "until [ -e pid ]; do sleep 0.02; done; printf '\\003'; until [ -e over ]; do sleep "
                             "0.02; done";

static void ctrl_c_ends_the_command_and_frees_the_name(struct world *w)
{
    const struct ran *ran = on_terminal(w, ctrl_c, "latchkey run a -- sh -c 'echo $$ >pid; sleep 30'; echo code $?; "
                                                   "touch over");
    assert_that(strstr(ran->out, "code 130") != NULL);
    assert_false(world_exists(w, "a"));
}

/* One that ignores Ctrl-C goes on, and its name stays taken: nothing runs unguarded. */
static void a_command_that_ignores_ctrl_c_keeps_the_name(struct world *w)
{
    const struct ran *ran = on_terminal(
        w, ctrl_c, "latchkey run a -- sh -c 'trap \"\" INT; echo $$ >pid; sleep 0.5; latchkey run -n a true; echo "
                   "inner $?'; "
                   "echo code $?; touch over");
    assert_that(strstr(ran->out, "inner 75") != NULL && strstr(ran->out, "code 0") != NULL);
    assert_false(world_exists(w, "a"));
}

static void ctrl_c_ends_a_wait(struct world *w)
{
    pid_t holder = command_begin(w, "latchkey run -c 'touch held; until [ -e over ]; do sleep 0.02; done' a "
                                    ">/dev/null");
    eventually(command_left(w, "held"), 20000);
    const struct ran *ran = on_terminal(
        w, "until [ -e waits ]; do sleep 0.02; done; printf '\\003'; until [ -e over ]; do sleep 0.02; done",
        "until latchkey status a | grep -q 'exclusive  *1  *1 '; do sleep 0.05; done >/dev/null && touch waits & "
        "latchkey run a touch ran; echo code $?; touch over");
    assert_that(strstr(ran->out, "code 130") != NULL);
    assert_false(command_left(w, "ran"));
    assert_int_equal(0, command_end(w, holder)->code);
}

static void the_terminal_is_lent_and_given_back(struct world *w)
{
    const struct ran *ran = on_terminal(w, "until [ -e over ]; do sleep 0.02; done",
                                        "latchkey run a -- sh -c '[ $(ps -o tpgid= -p $$) = $$ ] && echo lent'; "
                                        "[ $(ps -o tpgid= -p $$) = $(ps -o pgid= -p $$) ] && echo back; touch over");
    assert_that(strstr(ran->out, "lent") != NULL && strstr(ran->out, "back") != NULL);
}

/* In a pipeline the others of it have the terminal, until the command asks for it. */
static void a_command_in_a_pipeline_can_read_the_terminal(struct world *w)
{
    const struct ran *ran = on_terminal(w, "sleep 0.3; echo typed; until [ -e over ]; do sleep 0.02; done",
                                        "latchkey run a -- head -n 1 | cat; echo over; touch over");
    assert_that(strstr(ran->out, "typed") != NULL && strstr(ran->out, "over") != NULL);
    assert_false(world_exists(w, "a"));
}

/*
 * Ctrl-Z stops it for the shell, and it goes on with its lease. The job is one of bash: dash does not stop while what it forked
 * stands in front of its exec.
 */
static void a_stopped_job_goes_on(struct world *w)
{
    const struct ran *ran = on_terminal(
        w, "until [ -s pid ]; do sleep 0.02; done; printf '\\032'; until [ -e over ]; do sleep 0.02; done",
        "set -m; latchkey run a -- bash -c 'echo $$ >pid; until [ -e go ]; do sleep 0.02; done; exit 6'; echo stopped "
        "$?; "
        "latchkey run -n a true; echo meanwhile $?; touch go; fg; echo code $?; touch over");
    assert_that(strstr(ran->out, "stopped 14") != NULL);
    assert_that(strstr(ran->out, "meanwhile 75") != NULL);
    assert_that(strstr(ran->out, "code 6") != NULL);
    assert_false(world_exists(w, "a"));
}

/* In a pipeline, which has the terminal as a whole, it stops and goes on with all of it. */
static void a_stopped_pipeline_goes_on(struct world *w)
{
    const struct ran *ran = on_terminal(
        w, "until [ -s pid ]; do sleep 0.02; done; printf '\\032'; until [ -e over ]; do sleep 0.02; done",
        "set -m; latchkey run a -- bash -c 'echo $$ >pid; until [ -e go ]; do sleep 0.02; done; echo $((40 + 2)) times' | cat; "
        "echo stopped $?; latchkey run -n a true; echo meanwhile $?; touch go; fg; touch over");
    if (strstr(ran->out, "stopped 14") == NULL || strstr(ran->out, "meanwhile 75") == NULL ||
        strstr(ran->out, "42 times") == NULL)
        fail_msg("the pipeline does not stop and go on: %s", ran->out);
    assert_false(world_exists(w, "a"));
}

/*
 * One that stays stopped for longer than its lease is not there any more when somebody else comes: the keeper begins to end
 * it when a third of that is left.
 */
static void a_job_that_stays_stopped_is_ended(struct world *w)
{
    const struct ran *ran = on_terminal(
        w, "until [ -s pid ]; do sleep 0.02; done; printf '\\032'; until [ -e over ]; do sleep 0.02; done",
        "set -m; latchkey run --lease 8s a -- bash -c 'echo $$ >pid; sleep 30; touch survived'; echo stopped $?; "
        "latchkey run -w 20 a -- sh -c 'grep -v \") Z\" /proc/$(cat pid)/stat || echo mine'; fg; echo code $?; "
        "touch over");
    if (strstr(ran->out, "mine") == NULL || command_left(w, "survived"))
        fail_msg("the job goes on: %s", ran->out);
    assert_that(strstr(ran->out, "code 79") != NULL);
    eventually(!world_exists(w, "a"), 20000);
}

int main(void)
{
    if (access("/usr/bin/script", X_OK) != 0 || access("/bin/bash", X_OK) != 0)
        return 77;
    return world_run(ctrl_c_ends_the_command_and_frees_the_name, a_command_that_ignores_ctrl_c_keeps_the_name,
                     ctrl_c_ends_a_wait, the_terminal_is_lent_and_given_back, a_command_in_a_pipeline_can_read_the_terminal,
                     a_stopped_job_goes_on, a_stopped_pipeline_goes_on, a_job_that_stays_stopped_is_ended);
}
