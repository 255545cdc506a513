/* SPDX-License-Identifier: MIT */
/*
 * run_test.c - `latchkey run`: options, exit codes, and what the command finds
 *
 * seconds: 11
 */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* What the command says last is what latchkey says: its own codes are others. */
static void the_exit_code_is_that_of_the_command(struct world *w)
{
    assert_exits(0, w, "latchkey run a true");
    assert_exits(7, w, "latchkey run a -- sh -c 'exit 7'");
    assert_exits(143, w, "latchkey run a -- sh -c 'kill -TERM $$'");
    assert_exits(5, w, "latchkey run -c 'exit 5' a");
    assert_exits(127, w, "latchkey run a -- no-such-command");
    assert_exits(126, w, "latchkey run a -- /etc/passwd");
    assert_false(world_exists(w, "a"));
}

static void a_name_is_taken_for_as_long_as_the_command_runs(struct world *w)
{
    assert_exits(0, w, "latchkey run a -- sh -c '! latchkey run -n a -- touch entered'");
    assert_false(command_left(w, "entered"));
    assert_exits(75, w, "latchkey run a -- latchkey run -n a true");
    assert_exits(75, w, "latchkey run a -- latchkey run -w 50ms a true");
    assert_exits(75, w, "latchkey run a -- latchkey run --wait 0.05 a true");
    assert_exits(75, w, "latchkey run a -- latchkey run --timeout=0 a true");
    assert_exits(3, w, "latchkey run a -- latchkey run -n -E 3 a true");
    assert_exits(0, w, "latchkey run a -- latchkey run -q -n a true");
    assert_exits(4, w, "latchkey run a -- latchkey run -q -n -E 4 a true");
    assert_string_equal("", command(w, "latchkey run a -- latchkey run -q -n a true")->err);
    assert_that(strstr(command(w, "latchkey run a -- latchkey run -n a true")->err, "held by someone else") != NULL);
    assert_exits(0, w, "latchkey run b -- latchkey run --fair -w 20 a true");
}

static void one_that_waits_runs_when_the_name_is_free(struct world *w)
{
    pid_t first = command_begin(w, "latchkey run a -- sh -c 'echo 1 >began; until [ -e go ]; do sleep 0.01; done; "
                                   "echo 1 >>order'");
    eventually(command_number(w, "began") == 1, 20000);
    pid_t second = command_begin(w, "latchkey run -w 30 a -- sh -c 'echo 2 >>order'");
    eventually(world_queued(w, "a") == 1, 20000);
    assert_exits(0, w, "touch go");
    assert_int_equal(0, command_end(w, second)->code);
    assert_int_equal(0, command_end(w, first)->code);
    assert_exits(0, w, "printf '1\\n2\\n' | cmp - order");
}

/* Readers share, writers do not; a semaphore lets in as many as it has permits. */
static void each_kind_lets_in_as_many_as_it_says(struct world *w)
{
    world_allow(w, "latchkey:total:{[pq]}"); /* how many permits there are in all, for as long as there are some */
    assert_exits(0, w, "latchkey run -s r -- latchkey run -n -s r true");
    assert_exits(75, w, "latchkey run -s r -- latchkey run -n -x r true");
    assert_exits(75, w, "latchkey run -x r -- latchkey run -n --shared r true");
    assert_exits(75, w, "latchkey run --exclusive r -- latchkey run -n -x r true");
    assert_exits(0, w, "latchkey run --permits 2 p -- latchkey run -n --permits 2 p true");
    assert_exits(75, w, "latchkey run --permits 1 q -- latchkey run -n --permits 1 q true");
}

/*
 * As with flock(1): of two, one alone may say -s, or both have to. Nor is it alone with programs: the mutex and the
 * read-write lock of that name are both kept.
 */
static void who_says_nothing_is_alone(struct world *w)
{
    static const char *const kinds[] = { "", "-x", "-s", "--fair", "--hold-at-least 100ms" };
    enum { KINDS = sizeof kinds / sizeof kinds[0], SHARED = 2 };
    for (int first = 0; first < KINDS; first++)
        for (int second = 0; second < KINDS; second++) {
            bool both = first == SHARED && second == SHARED;
            assert_exits(both ? 0 : 75, w, "latchkey run -w 30 %s a -- latchkey run -n %s a true", kinds[first],
                         kinds[second]);
        }
    eventually(!world_exists(w, "a"), 20000);

    lk_client_t *client = world_client(w, "");
    lk_mutex_t *mutex = world_mutex(w, client, "a", NULL);
    lk_rwlock_t *rwlock = world_rwlock(w, client, "a", NULL);
    assert_lk(0, lk_mutex_lock(mutex));
    assert_exits(75, w, "latchkey run -n a true");
    assert_exits(0, w, "latchkey run -n -s a true");
    assert_lk(0, lk_mutex_unlock(mutex));
    assert_lk(0, lk_rwlock_rdlock(rwlock));
    assert_exits(75, w, "latchkey run -n a true");
    assert_exits(0, w, "latchkey run -n -s a true");
    assert_lk(0, lk_rwlock_unlock(rwlock));
    assert_lk(0, lk_rwlock_wrlock(rwlock));
    assert_exits(75, w, "latchkey run -n a true");
    assert_exits(75, w, "latchkey run -n -s a true");
    assert_lk(0, lk_rwlock_unlock(rwlock));
}

/* Readers were in the way: nobody ran, so the name is not kept for as long as if somebody had. */
static void a_name_that_was_not_had_is_not_kept(struct world *w)
{
    assert_exits(75, w, "latchkey run -s a -- latchkey run -n --hold-at-least 1h a true");
    assert_exits(75, w, "latchkey run -s a -- latchkey run -w 100ms --hold-at-least 1h a true");
    assert_false(world_exists(w, "a"));
    assert_exits(0, w, "latchkey run -n a true");
}

/* Nor is it when a signal ends the wait for the readers. */
static void who_is_told_to_give_up_keeps_nothing(struct world *w)
{
    static const int signals[] = { SIGINT, SIGTERM };
    lk_rwlock_t *rwlock = world_rwlock(w, world_client(w, ""), "a", NULL);
    assert_lk(0, lk_rwlock_rdlock(rwlock));
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        pid_t waiter = command_begin(w, "exec latchkey %s --hold-at-least 1h a %s", i == 0 ? "run" : "hold",
                                     i == 0 ? "touch ran" : "");
        eventually(world_rwqueued(w, "a") == 1 && world_exists(w, "a"), 20000);
        kill(waiter, signals[i]);
        assert_int_equal(128 + signals[i], command_end(w, waiter)->code);
        assert_false(world_exists(w, "a"));
        assert_int_equal(0, world_rwqueued(w, "a"));
    }
    assert_lk(0, lk_rwlock_unlock(rwlock));
    assert_false(command_left(w, "ran"));
    assert_exits(0, w, "latchkey run -n a true");
}

/* Who lost the mutex as it waited for the readers does not end what another has got meanwhile. */
static void what_another_has_got_meanwhile_is_left_alone(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    lk_mutex_t *mutex = world_mutex(w, client, "a", NULL);
    lk_rwlock_t *rwlock = world_rwlock(w, client, "a", NULL);
    assert_lk(0, lk_rwlock_rdlock(rwlock));
    pid_t waiter = command_begin(w, "exec latchkey run -w 3s --hold-at-least 1h a touch ran");
    eventually(world_rwqueued(w, "a") == 1 && world_exists(w, "a"), 20000);
    world_redis(w, "DEL a");
    assert_lk(0, lk_mutex_lock(mutex));
    assert_int_equal(75, command_end(w, waiter)->code);
    assert_lk(0, lk_mutex_check(mutex));
    assert_lk(0, lk_mutex_unlock(mutex));
    assert_lk(0, lk_rwlock_unlock(rwlock));
    assert_false(command_left(w, "ran"));
}

/* Nor does it begin with the half that it got: that is taken anew. */
static void nothing_begins_without_all_of_its_name(struct world *w)
{
    static const char *const lines[] = { "run --on-lost=warn --lease 6s --hold-at-least 1h a latchkey status --check a",
                                         "hold --lease 6s --hold-at-least 1h a" };
    lk_rwlock_t *rwlock = world_rwlock(w, world_client(w, ""), "a", NULL);
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_lk(0, lk_rwlock_rdlock(rwlock));
        pid_t waiter = command_begin(w, "exec latchkey %s 2>said", lines[i]);
        eventually(world_rwqueued(w, "a") == 1 && world_exists(w, "a"), 20000);
        world_redis(w, "DEL a");
        eventually(command(w, "grep -q 'a: the lease was lost' said")->code == 0, 20000);
        assert_lk(0, lk_rwlock_unlock(rwlock));
        const struct ran *ran = command_end(w, waiter);
        assert_int_equal(0, ran->code);
        assert_true(i > 0 || (strstr(ran->out, " mutex ") != NULL && strstr(ran->out, " rwlock ") != NULL));
        assert_exits(75, w, "latchkey run -n a true"); /* it is kept */
        world_redis(w, "DEL a");
    }
}

/* A writer that waits comes when the last reader went, and the next reader after it. */
static void those_who_share_and_those_who_do_not_take_turns(struct world *w)
{
    pid_t reader = command_begin(w, "latchkey run -s a -- sh -c 'echo 1 >began; until [ -e go ]; do sleep 0.01; done; "
                                    "echo r >>order'");
    eventually(command_number(w, "began") == 1, 20000);
    pid_t writer = command_begin(w, "latchkey run -w 30 a -- sh -c 'echo w >>order'");
    eventually(world_rwqueued(w, "a") == 1, 20000);
    assert_exits(75, w, "latchkey run -n -s a true");
    assert_exits(0, w, "touch go");
    assert_int_equal(0, command_end(w, writer)->code);
    assert_int_equal(0, command_end(w, reader)->code);
    assert_exits(0, w, "printf 'r\nw\n' | cmp - order");
}

static void the_command_finds_what_it_needs_in_its_environment(struct world *w)
{
    const struct ran *ran = command(w, "latchkey run --lease 60s a -- sh -c 'echo "
                                       "$LATCHKEY_NAME/$LATCHKEY_MODE/$LATCHKEY_OWNER; "
                                       "echo $LATCHKEY_TOKEN $LATCHKEY_LEASE_MS >numbers'; latchkey run -s r -- "
                                       "sh -c 'echo ${LATCHKEY_TOKEN-none}'");
    assert_true(strncmp(ran->out, "a/exclusive/", 12) == 0 && strlen(ran->out) > 12 + 32);
    assert_true(strstr(ran->out, "\nnone\n") != NULL);
    assert_exits(0, w, "read token lease <numbers && [ $token = $(redis-cli -s %s get 'redisson_lock_token:{a}') ] && "
                       "[ $lease -le 60000 ] && [ $lease -gt 50000 ]", w->socket);
}

/* A password is not handed on to what needs none; all else is. */
static void the_password_stays_behind(struct world *w)
{
    assert_exits(0, w, "export REDIS_URL='redis://app:SECRET@cache.example:6379/2?x=1' REDISCLI_AUTH=SECRET "
                       "LATCHKEY_PASSWORD=SECRET; "
                       "latchkey run a -- sh -c 'env >env; latchkey run b true'; ! grep SECRET env && "
                       "grep -qx 'REDIS_URL=redis://cache.example:6379/2?x=1' env && grep -q ^LATCHKEY_URL= env && "
                       "latchkey run --keep-env a env | grep -q REDISCLI_AUTH=SECRET");
    world_redis(w, "CONFIG SET requirepass SECRET");
    assert_exits(77, w, "latchkey run a true");
    assert_exits(0, w, "export WORD=SECRET && printf '{\"path\":\"%%s\",\"password\":\"${WORD}\"}' '%s' >config && "
                       "latchkey run --config config a env >env && ! grep SECRET env && grep -q ^LATCHKEY_NAME=a "
                       "env && unset WORD && "
                       "LATCHKEY_URL=unix://:SECRET@%s latchkey run a env >env && ! grep SECRET env",
                 w->socket, w->socket);
    assert_exits(0, w, "export WORD=SECRET && printf '{\"path\":\"%%s\",\"password\":\"${WORD:-none}\"}' '%s' >config && "
                       "latchkey run --config config a env >env && ! grep SECRET env && grep -q ^LATCHKEY_NAME=a env",
                 w->socket);
    world_redis(w, "CONFIG SET requirepass \"\"");
}

/* What is left of a URL without its last parameter is one. */
static void a_url_without_its_secret_is_one(struct world *w)
{
    assert_exits(0, w, "u=$LATCHKEY_URL; export REDIS_URL='redis-sentinel://:@h:1/orders?sentinel_password=SECRET' "
                       "VALKEY_URL='redis-sentinel://h:1/orders?lease=2s&sentinel_password=SECRET'; "
                       "latchkey run a env >env && grep -qx 'REDIS_URL=redis-sentinel://h:1/orders' env && "
                       "grep -qx 'VALKEY_URL=redis-sentinel://h:1/orders?lease=2s' env && grep -qxF \"LATCHKEY_URL=$u\" env");
}

/* A pipe can be read once; whoever asks it again would wait for somebody to write. */
static void a_configuration_may_come_by_a_pipe(struct world *w)
{
    assert_exits(0, w, "mkfifo pipe && { printf '{\"path\":\"%%s\",\"lease\":\"10s\"}' '%s' >pipe & } && "
                       "latchkey run --config pipe a touch ran && [ -e ran ]", w->socket);
}

/* As flock(1) has it; latchkey itself ignores more. */
static void a_command_ignores_what_was_ignored(struct world *w)
{
    assert_exits(0, w, "ignored() { awk '/^SigIgn/ { print $2 }' /proc/self/status; }; ignored >before; "
                       "latchkey run a -- awk '/^SigIgn/ { print $2 }' /proc/self/status | cmp - before || exit 1; "
                       "trap '' HUP PIPE; ignored >inside; ! cmp -s before inside || exit 2; "
                       "latchkey run a -- awk '/^SigIgn/ { print $2 }' /proc/self/status | cmp - inside");
}

static void streams_are_passed_on_and_descriptors_are_not_leaked(struct world *w)
{
    assert_exits(0, w, "[ \"$(echo hello | latchkey run a cat)\" = hello ]");
    assert_exits(0, w, "[ -z \"$(echo hello | latchkey run --no-stdin a cat)\" ]");
    /* What it was given, 7, it passes on, and nothing of its own. */
    assert_exits(0, w, "exec 7</dev/null; ls -1 /proc/self/fd >without; latchkey run a -- ls -1 /proc/self/fd >with && "
                       "grep -q 7 with && cmp with without");
    assert_exits(0, w, "latchkey run a -- true >&- 2>&- <&-");
    assert_exits(0, w, "latchkey run a -- sh -c '! echo x' >&- 2>/dev/null");
    assert_exits(74, w, "latchkey status a >/dev/full");
    assert_exits(0, w, "latchkey run -c 'ps -o pgid= -p $$ >pgid; echo $$ >pid' a; [ $(cat pgid) = $(cat pid) ]");
}

/* For what cannot be: an error that tells what, and nothing was done. */
static void what_is_wrong_is_told_and_nothing_done(struct world *w)
{
    static const struct {
        int code;
        const char *line, *words;
    } wrong[] = {
        { 64, "run a", "a command is missing" },
        { 64, "run", "usage: latchkey run" },
        { 64, "run a -n touch ran", "options go before NAME" },
        { 64, "run -w soon a touch ran", "'soon' is not a duration" },
        { 64, "run -w -1 a touch ran", "not a duration" },
        { 64, "run --lease 10ms a touch ran", "not long enough" },
        { 64, "run --lease 3h30 a touch ran", "not a duration" },
        { 64, "run -E 256 a touch ran", "a number from 0 to 255" },
        { 64, "run --permits 0 a touch ran", "a number from 1" },
        { 64, "run --signal FOO a touch ran", "not a signal" },
        { 64, "run --on-lost=pray a touch ran", "kill, warn or exec:LINE" },
        { 64, "run -s -x a touch ran", "does not go with" },
        { 64, "run -n -w 1 a touch ran", "does not go with" },
        { 64, "run -s --hold-at-least 1s a touch ran", "does not go with" },
        { 64, "run -c 'touch ran' a touch ran", "a command and --command" },
        { 64, "run --bogus a touch ran", "unrecognized option '--bogus'" },
        { 64, "run 'a{' touch ran", "braces" },
        { 64, "run '' touch ran", "name" },
        { 64, "bogus", "no command" },
        { 64, "", "a command is missing" },
        { 64, "latch", "latch create" },
        { 64, "completion csh", "none of bash" },
        { 64, "latch create a 0", "not a number" },
        { 64, "sem resize a x", "not a number" },
        { 69, "run -u redis://127.0.0.1:1 a touch ran", "refused" },
        { 69, "status -u unix:///nowhere/redis.sock a", "No such file" },
        { 78, "run -u 'redis://127.0.0.1?leese=3s' a touch ran", "did you mean lease" },
        { 78, "run --config /nowhere a touch ran", "/nowhere" },
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_exits(wrong[i].code, w, "latchkey %s", wrong[i].line);
        const struct ran *ran = command(w, "latchkey %s", wrong[i].line);
        if (strstr(ran->err, wrong[i].words) == NULL)
            fail_msg("latchkey %s: no '%s' in: %s", wrong[i].line, wrong[i].words, ran->err);
        assert_string_equal("", ran->out);
    }
    assert_false(command_left(w, "ran"));
    assert_string_equal("", world_keys(w));
}

/* What it costs the server: two calls to take a free name, sent together, and two to give it back; with -s one each. */
static void a_run_is_four_calls_of_the_server(struct world *w)
{
    assert_exits(0, w, "latchkey run a true && latchkey run -s a true"); /* the server knows the scripts from now on */
    int64_t before = world_commands(w, "evalsha");
    assert_exits(0, w, "latchkey run a true");
    assert_int_equal(before + 4, world_commands(w, "evalsha"));
    assert_exits(0, w, "latchkey run -s a true");
    assert_int_equal(before + 6, world_commands(w, "evalsha"));
    int64_t probes = world_commands(w, "eval"), connections = world_counter(w, "total_connections_received");
    assert_exits(0, w, "latchkey run a true");
    assert_int_equal(probes + 1, world_commands(w, "eval")); /* of the connect: what the user may do */
    assert_in_range(world_counter(w, "total_connections_received") - connections, 1, 2); /* one for renewals */
}

/*
 * Of those who come at once and do not wait, one runs: they try one after the other what they all need first. Who tried
 * both at once could be in the way of another one who does, and both would leave.
 */
static void who_does_not_wait_asks_in_order(struct world *w)
{
    assert_exits(0, w, "latchkey run a true");
    lk_mutex_t *mutex = world_mutex(w, world_client(w, ""), "a", NULL);
    assert_lk(0, lk_mutex_lock(mutex));
    int64_t before = world_commands(w, "evalsha");
    assert_exits(75, w, "latchkey run -n a true");
    assert_int_equal(before + 1, world_commands(w, "evalsha"));
    assert_lk(0, lk_mutex_unlock(mutex));
    assert_exits(0, w, "latchkey run -n a true");
}

/* The clocks of hosts differ, and the job is short: each tick it runs on one of them. */
static void a_cron_job_of_three_hosts_runs_once_a_night(struct world *w)
{
    assert_exits(0, w, "for host in 1 2 3; do { sleep 0.$host; latchkey run -q -n --hold-at-least 3s nightly -- "
                       "sh -c 'echo ran >>runs'; } & hosts=\"$hosts $!\"; done; "
                       "for host in $hosts; do wait $host || exit 1; done; [ $(wc -l <runs) = 1 ]");
    eventually(!world_exists(w, "nightly"), 20000);
    assert_exits(0, w, "latchkey run -q -n nightly -- sh -c 'echo ran >>runs' && [ $(wc -l <runs) = 2 ]");
}

static void what_happens_is_told_as_json(struct world *w)
{
    const struct ran *ran = command(w, "latchkey run --json a -- sh -c 'exit 3'");
    assert_int_equal(3, ran->code);
    assert_true(strncmp(ran->err, "{\"event\":\"held\",\"name\":\"a\",\"owner\":", 35) == 0);
    assert_that(strstr(ran->err, "\n{\"event\":\"released\",\"name\":\"a\",\"exit\":3,\"server\":\"unix://") != NULL);
    assert_that(strstr(command(w, "latchkey run -v a true")->err, "latchkey: a: released\n") != NULL);
}

int main(void)
{
    return world_run(the_exit_code_is_that_of_the_command, a_name_is_taken_for_as_long_as_the_command_runs,
                     one_that_waits_runs_when_the_name_is_free, each_kind_lets_in_as_many_as_it_says,
                     who_says_nothing_is_alone, a_name_that_was_not_had_is_not_kept,
                     who_is_told_to_give_up_keeps_nothing, what_another_has_got_meanwhile_is_left_alone,
                     nothing_begins_without_all_of_its_name, those_who_share_and_those_who_do_not_take_turns,
                     the_command_finds_what_it_needs_in_its_environment, the_password_stays_behind, a_url_without_its_secret_is_one,
                     a_configuration_may_come_by_a_pipe, a_command_ignores_what_was_ignored,
                     streams_are_passed_on_and_descriptors_are_not_leaked, what_is_wrong_is_told_and_nothing_done,
                     a_run_is_four_calls_of_the_server, who_does_not_wait_asks_in_order,
                     a_cron_job_of_three_hosts_runs_once_a_night,
                     what_happens_is_told_as_json);
}
