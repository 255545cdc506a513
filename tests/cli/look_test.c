/* SPDX-License-Identifier: MIT */
/*
 * look_test.c - `latchkey ls`, `top` and `force-release`: what operators see, and what they take away
 *
 * seconds: 8
 */
#include "command.h"
#include "quorum.h"
#include "rights.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Hold a name until the file "go" is there; the file "held" tells that it is held. */
static pid_t hold(struct world *w, const char *options, const char *name)
{
    pid_t holder = command_begin(w, "rm -f held go; latchkey run %s %s -- sh -c 'echo $LATCHKEY_OWNER >held; "
                                    "until [ -e go ]; do sleep 0.02; done'", options, name);
    eventually(command(w, "[ -s held ]")->code == 0, 20000);
    return holder;
}

static void let_go(struct world *w, pid_t holder)
{
    assert_exits(0, w, "touch go");
    assert_int_equal(0, command_end(w, holder)->code);
}

static void ls_lists_what_is_locked(struct world *w)
{
    world_allow(w, "latchkey:total:{pool}");
    assert_exits(0, w, "[ \"$(latchkey ls)\" = \"$(latchkey ls | head -n 1)\" ] && latchkey ls | grep -q '^NAME  *KIND  "
                       "*STATE  *HOLDERS  *WAITERS  *TTL  *HELD  *WAITED OWNER$' && [ -z \"$(latchkey ls --json)\" ]");
    pid_t holder = hold(w, "--lease 20s", "jobs:1");
    assert_exits(0, w, "latchkey run -s jobs:2 -- latchkey run --permits 3 pool -- latchkey ls >table");
    assert_exits(0, w, "[ $(wc -l <table) = 5 ] && grep -q '^jobs:1 mutex  *exclusive  *1  *0  *[0-9.]*s  *[0-9.]*s  "
                       "*- [0-9a-f]*:' table && grep -q \"^jobs:1 .* $(cat held):\" table && "
                       "grep -q '^jobs:1 rwlock  *exclusive ' table && grep -q '^jobs:2 rwlock  *shared  *1 ' table && "
                       "grep -q '^pool   permits  *2/3  *1 ' table");
    assert_exits(0, w, "latchkey ls 'jobs:[1-1]' | grep -c jobs:1 | grep -qx 2");
    assert_exits(0, w, "latchkey ls 'nothing*' | wc -l | grep -qx 1");
    assert_exits(0, w, "latchkey ls --json 'jobs:*' | head -n 1 | grep -q '^{\"name\":\"jobs:1\",\"kind\":\"mutex\","
                       "\"state\":\"exclusive\",\"holders\":1,\"waiters\":0,\"ttl_ms\":[0-9]*,\"held_ms\":[0-9]*,"
                       "\"token\":[0-9]*,\"owner\":\"[0-9a-f:]*\"[,}]'");
    pid_t waiter = command_begin(w, "exec latchkey run -w 30 jobs:1 true");
    eventually(command(w, "latchkey ls --json | grep '\"kind\":\"mutex\"' | grep '\"waiters\":1,' | "
                          "grep -q '\"waited_ms\":'")->code == 0, 20000);
    let_go(w, holder);
    assert_int_equal(0, command_end(w, waiter)->code);
    assert_same(0, world_commands(w, "keys"));
}

/* Bytes of a name that a terminal would obey are not printed, and JSON stays JSON. */
static void names_cannot_write_to_the_terminal(struct world *w)
{
    static const char key[] = "latchkey:robust:mutex:{a\033[2J\xff}";
    world_redis(w, "SET %b unrecoverable", key, sizeof key - 1);
    assert_exits(0, w, "latchkey ls | grep -q '^a?\\[2J?  *mutex  *unrecoverable ' && ! latchkey ls | grep -q \"$(printf "
                       "'\\033')\"");
    assert_exits(0, w, "latchkey ls --json | grep -qF '{\"name\":\"a?[2J?\",\"kind\":\"mutex\",\"state\":\"unrecoverable\","
                       "\"holders\":0,\"waiters\":0}'");
    world_redis(w, "FLUSHALL");
}

/* Nor are they where the name was said: a line is an object's. */
static void a_line_is_a_line_whatever_the_name(struct world *w)
{
    assert_exits(0, w, "n=$(printf 'a\nb\033[2J'); latchkey run \"$n\" -- sh -c 'latchkey status \"$LATCHKEY_NAME\" >said; "
                       "latchkey watch --for 200ms \"$LATCHKEY_NAME\" >>said; "
                       "latchkey force-release --owner nobody \"$LATCHKEY_NAME\" 2>>said; "
                       "latchkey force-release --yes \"$LATCHKEY_NAME\" >>said'; "
                       "[ $(grep -cF 'a?b?[2J ' said) = 7 ] && ! tr -d '\n -~' <said | grep -q . && ! grep -q '^b' said");
    world_redis(w, "FLUSHALL");
}

/* Nor are those of an owner, which anybody may have written. */
static void owners_cannot_write_to_the_terminal(struct world *w)
{
    world_redis(w, "HSET a %b 1", "\033]0;x\a\xff:1", (size_t)9);
    assert_exits(0, w, "latchkey status a >said && latchkey watch --for 200ms a >>said && grep -cF '?]0;x??:1' said | "
                       "grep -qx 2 && ! tr -d '\n -~' <said | grep -q .");
    assert_exits(0, w, "latchkey status --json a | grep -qF '\"owner\":\"?]0;x??:1\"}'");
    world_redis(w, "FLUSHALL");
}

/* A name that is no UTF-8 is said in JSON all the same. */
static void any_name_is_said_in_json(struct world *w)
{
    static const char *const lines[] = { "status --json $n",   "watch --for 200ms --json $n",
                                         "hold --json $n",     "run --json $n true",
                                         "latch status --json $n", "sem resize $n 2; latchkey sem status --json $n" };
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_exits(0, w, "n=$(printf 'a\377'); { latchkey %s; } >said 2>&1; grep -q '\"name\":\"a?\"' said", lines[i]);
    assert_exits(0, w, "n=$(printf 'a\377'); latchkey run $n latchkey force-release --yes --json $n >said; "
                       "grep -q '\"name\":\"a?\"' said");
    world_redis(w, "FLUSHALL");
}

static void what_cannot_be_seen_is_said(struct world *w)
{
    struct words rights;
    rights_documented(&rights);
    rights_user(w, &rights, "~shop:*", NULL);
    world_allow(w, "private");
    world_redis(w, "SET private 1");
    assert_exits(77, w, "latchkey ls -u 'unix://app:secret@%s'", w->socket);
    assert_that(strstr(command(w, "latchkey ls -u 'unix://app:secret@%s?prefix=shop:'", w->socket)->err, "+scan") != NULL);
    world_redis(w, "ACL SETUSER app +scan");
    const struct ran *ran = command(w, "latchkey ls -u 'unix://app:secret@%s?prefix=shop:'", w->socket);
    assert_int_equal(0, ran->code);
    assert_that(strstr(ran->err, "ls: access rules (ACL) keep 1 of 1 keys from this user") != NULL);
    assert_string_equal("", command(w, "latchkey ls -q -u 'unix://app:secret@%s?prefix=shop:'", w->socket)->err);
    ran = command(w, "printf '%%s\n' \"trap : INT; latchkey top --interval 1h -u 'unix://app:secret@%s?prefix=shop:'; touch over\" >line; "
                     "(until grep -q 'access rules' out; do sleep 0.02; done; until [ -e over ]; do printf '\\003'; sleep 0.2; done) | "
                     ON_TERMINAL("bash line", "out"), w->socket);
    const char *cleared = strstr(ran->out, "\033[H\033[J"), *told = strstr(ran->out, "access rules (ACL)");
    assert_that(cleared != NULL && told != NULL && cleared < told);
    assert_exits(69, w, "latchkey ls -u 'redis://127.0.0.1:1?connect_timeout=200ms'");
    assert_exits(74, w, "latchkey ls >/dev/full");
    assert_exits(64, w, "latchkey ls a b");
}

/* One server of a quorum that is away is said, and what the others have is told. */
static void a_quorum_is_seen_without_one_server(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    for (int node = 0; node < 3; node++)
        quorum_str(q, node, "SET latchkey:robust:mutex:{jobs} unrecoverable");
    quorum_kill(q, 0);
    const struct ran *ran = command(w, "latchkey ls -u '%s' | grep -c '^jobs  *redlock  *unrecoverable ' | grep -qx 2",
                                    quorum_url(q, "command_timeout=2s"));
    assert_int_equal(0, ran->code);
    assert_that(strstr(ran->err, "ls: 1 of 3 servers of the quorum do not answer") != NULL);
    assert_string_equal("", command(w, "latchkey ls -q -u '%s'", quorum_url(q, "command_timeout=2s"))->err);
}

static void top_looks_once_where_there_is_no_terminal(struct world *w)
{
    pid_t holder = hold(w, "--lease 20s", "b");
    pid_t waiter = command_begin(w, "exec latchkey run -w 30 b true");
    eventually(command(w, "latchkey ls b | grep -q 'mutex  *exclusive  *1  *1 '")->code == 0, 20000);
    assert_exits(0, w, "latchkey run a latchkey top >table && head -n 1 table | grep -qx '4 objects, 4 held, 1 waiters' && "
                       "sed -n 3p table | grep -q '^b  *mutex ' && [ $(wc -l <table) = 6 ]");
    assert_exits(0, w, "latchkey top --once --interval 1h 'b*' | tail -n +3 | grep -c '^b ' | grep -qx 2");
    assert_exits(0, w, "latchkey top --json | head -n 1 | grep -q '^{\"name\":\"b\",\"kind\":\"mutex\",.*\"waiters\":1,'");
    assert_exits(64, w, "latchkey top --interval 10ms");
    let_go(w, holder);
    assert_int_equal(0, command_end(w, waiter)->code);
}

/* On a terminal it looks again, over the last look, no wider than that is; Ctrl-C ends it. */
static void top_is_live_on_a_terminal(struct world *w)
{
    pid_t holder = hold(w, "--lease 20s", "a");
    const struct ran *ran = command(
        w, "cat >line <<'END'\nstty cols 40 rows 24; trap : INT; latchkey top --interval 100ms; echo code $?; touch over\nEND\n"
           "(until grep -q '2 objects, 2 held, 0 waiters' out; do sleep 0.02; done; touch go; "
           "until grep -q '0 objects, 0 held, 0 waiters' out; do sleep 0.02; done; "
           "until [ -e over ]; do printf '\\003'; sleep 0.2; done) | " ON_TERMINAL("bash line", "out"));
    assert_that(strstr(ran->out, "2 objects, 2 held, 0 waiters") != NULL);
    assert_that(strstr(ran->out, "0 objects, 0 held, 0 waiters") != NULL);
    assert_that(strstr(ran->out, "\033[H\033[J") != NULL);
    assert_that(strstr(ran->out, "code 130") != NULL);
    assert_exits(0, w, "cat >line <<'END'\nstty cols 40; latchkey top --once\nEND\n"
                       ON_TERMINAL("bash line", "shown") "; tr -d '\\r' <shown | awk 'length > 40 { exit 1 }'");
    assert_int_equal(0, command_end(w, holder)->code);
}

static void force_release_takes_a_name_away(struct world *w)
{
    pid_t holder = hold(w, "--lease 20s --on-lost warn", "a");
    assert_exits(64, w, "latchkey force-release a");
    const struct ran *ran = command(w, "latchkey force-release a");
    assert_that(strstr(ran->err, "mutex a is held by ") != NULL && strstr(ran->err, "say --yes") != NULL);
    assert_true(world_exists(w, "a"));
    assert_exits(1, w, "latchkey force-release --yes --owner nobody a");
    assert_exits(1, w, "latchkey force-release --yes --owner $(cut -c 1-20 held) a");
    assert_true(world_exists(w, "a"));
    assert_exits(0, w, "latchkey force-release --yes --owner $(cat held) --json a >said && "
                       "grep -q \"^{\\\"name\\\":\\\"a\\\",\\\"kind\\\":\\\"mutex\\\",\\\"holders\\\":1,\\\"owners\\\":"
                       "\\[\\\"$(cat held):\" said && [ $(wc -l <said) = 2 ]");
    assert_false(world_exists(w, "a"));
    assert_exits(0, w, "latchkey run -n a true");
    assert_exits(1, w, "latchkey force-release -f a");
    assert_exits(0, w, "touch go");
    (void)command_end(w, holder);
}

/* Of several readers one cannot be taken alone. */
static void readers_are_ended_together(struct world *w)
{
    assert_exits(1, w, "latchkey run -s a -- latchkey run -s a -- sh -c "
                       "'latchkey force-release -f --owner $LATCHKEY_OWNER a'");
    pid_t holder = hold(w, "-s --lease 20s --on-lost warn", "a");
    assert_exits(0, w, "latchkey force-release -f --owner $(cat held) a | grep -q '^rwlock a was taken from .*:r$'");
    assert_false(world_exists(w, "latchkey:rw:{a}"));
    assert_exits(0, w, "touch go");
    (void)command_end(w, holder);
}

static void force_release_asks_on_a_terminal(struct world *w)
{
    pid_t holder = hold(w, "--lease 20s --on-lost warn", "a");
    static const char asks[] = "rm -f over; echo 'latchkey force-release a; echo code $?; touch over' >line; "
                               "(until grep -q y/N out; do sleep 0.02; done; printf '%s\\n'; "
                               "until [ -e over ]; do sleep 0.02; done) | " ON_TERMINAL("bash line", "out");
    assert_that(strstr(command(w, asks, "n")->out, "code 1") != NULL);
    assert_true(world_exists(w, "a"));
    assert_that(strstr(command(w, asks, "y")->out, "code 0") != NULL);
    assert_false(world_exists(w, "a"));
    assert_exits(0, w, "touch go");
    (void)command_end(w, holder);
}

/* The next holder of a robust mutex is told, and one that nobody can use is usable again. */
static void a_robust_mutex_tells_the_next_holder(struct world *w)
{
    const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
    lk_client_t *client = world_client(w, "lease=20s");
    lk_mutex_t *mine = world_mutex(w, client, "r", &robust);
    lk_mutex_t *theirs = world_mutex(w, world_client(w, "lease=20s"), "r", &robust);
    assert_lk(0, lk_mutex_lock(mine));
    assert_exits(0, w, "latchkey force-release -f r | grep -q '^mutex r was taken from '");
    assert_lk(EOWNERDEAD, lk_mutex_trylock(theirs));
    assert_lk(0, lk_mutex_consistent(theirs));
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_lk(ESTALE, lk_mutex_check(mine));
    assert_lk(ESTALE, lk_mutex_unlock(mine));
}

/* Nobody holds what was given back unrepaired; that is seen, and mended by who says so. */
static void what_was_given_back_unrepaired_is_usable_again(struct world *w)
{
    const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
    const lk_rwlockattr_t robust_too = { .size = sizeof robust_too, .robust = 1 };
    lk_client_t *client = world_client(w, "");
    lk_mutex_t *mutex = world_mutex(w, client, "r", &robust);
    lk_rwlock_t *rwlock = world_rwlock(w, client, "r", &robust_too);
    assert_exits(0, w, "latchkey watch --for 30s r >seen & echo $! >watcher; until grep -q free seen; do sleep 0.02; done");
    world_redis(w, "SET latchkey:robust:mutex:{r} unrecoverable");
    world_redis(w, "SET latchkey:robust:rw:{r} unrecoverable");
    assert_lk(ENOTRECOVERABLE, lk_mutex_trylock(mutex));
    assert_lk(ENOTRECOVERABLE, lk_rwlock_tryrdlock(rwlock));
    assert_exits(1, w, "latchkey status --check r >said");
    assert_exits(0, w, "grep -q '^r  *mutex  *unrecoverable  *0  *0 ' said && grep -q '^r  *rwlock  *unrecoverable  *0 ' said");
    assert_exits(64, w, "latchkey force-release r");
    assert_that(strstr(command(w, "latchkey force-release r")->err, "mutex r was given back unrepaired") != NULL);
    assert_exits(1, w, "latchkey force-release -f --owner nobody r");
    eventually(command(w, "grep -c unrecoverable seen | grep -qx 2")->code == 0, 20000);
    assert_exits(0, w, "latchkey force-release -f r >said && printf 'rwlock r is usable again\nmutex r is usable again\n' | "
                       "cmp - said");
    assert_lk(0, lk_mutex_trylock(mutex));
    assert_lk(0, lk_mutex_unlock(mutex));
    assert_lk(0, lk_rwlock_trywrlock(rwlock));
    assert_lk(0, lk_rwlock_unlock(rwlock));
    assert_exits(1, w, "latchkey force-release -f r");
    eventually(command(w, "[ $(grep -c 'mutex free' seen) -ge 1 ]")->code == 0, 20000);
    assert_exits(0, w, "kill $(cat watcher)");
}

int main(void)
{
    return world_run(ls_lists_what_is_locked, names_cannot_write_to_the_terminal, a_line_is_a_line_whatever_the_name,
                     owners_cannot_write_to_the_terminal, any_name_is_said_in_json, what_cannot_be_seen_is_said,
                     a_quorum_is_seen_without_one_server, top_looks_once_where_there_is_no_terminal, top_is_live_on_a_terminal,
                     force_release_takes_a_name_away, readers_are_ended_together, force_release_asks_on_a_terminal,
                     a_robust_mutex_tells_the_next_holder, what_was_given_back_unrepaired_is_usable_again);
}
