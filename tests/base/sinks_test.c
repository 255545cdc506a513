/* SPDX-License-Identifier: MIT */
/*
 * sinks_test.c - several users of one log: each hears what it wants, and goes when it wants to
 *
 * labels: threads memory noise
 */
#include "assert_lk.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One of several users of the log. */
struct user {
    uint64_t handle;
    atomic_int lines, inside, code;
    atomic_bool shut;
    char last[64];
};

static struct user users[2];

static int begin(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        users[i] = (struct user){ .handle = 0 };
    return 0;
}

static void hear(void *arg, int level, const char *line)
{
    struct user *user = arg;
    (void)level;
    atomic_fetch_add(&user->inside, 1);
    while (atomic_load(&user->shut))
        sleep_ms(1);
    snprintf(user->last, sizeof user->last, "%s", line);
    atomic_fetch_add(&user->lines, 1);
    atomic_fetch_sub(&user->inside, 1);
}

static void add(struct user *user, lk_log_t log, int level)
{
    assert_lk(0, lk_addlog(log, level, user, &user->handle));
}

static void go(struct user *user)
{
    assert_lk(0, lk_removelog(user->handle));
}

static void each_hears_what_it_wants(void)
{
    add(&users[0], hear, LK_LOG_DEBUG);
    add(&users[1], hear, LK_LOG_WARNING);
    assert_true(users[0].handle != 0 && users[1].handle != 0 && users[0].handle != users[1].handle);
    lk__log(LK_LOG_WARNING, "both");
    lk__log(LK_LOG_INFO, "one");
    assert_int_equal(2, users[0].lines);
    assert_int_equal(1, users[1].lines);
    assert_string_equal("both", users[1].last);
    go(&users[0]);
    lk__log(LK_LOG_INFO, "nobody");
    lk__log(LK_LOG_ERROR, "the other");
    go(&users[1]);
    lk__log(LK_LOG_ERROR, "nobody");
    assert_int_equal(2, users[0].lines);
    assert_int_equal(2, users[1].lines);
    assert_string_equal("the other", users[1].last);
}

static void mistakes_change_nothing(void)
{
    uint64_t handle = 7;
    assert_lk(EINVAL, lk_addlog(hear, 0, &users[0], &handle));
    assert_lk(EINVAL, lk_addlog(hear, LK_LOG_DEBUG + 1, &users[0], &handle));
    assert_true(handle == 7);
    add(&users[0], hear, LK_LOG_INFO);
    assert_lk(ENOENT, lk_removelog(0));
    assert_lk(ENOENT, lk_removelog(users[0].handle + 1));
    assert_lk(ENOENT, lk_removelog(UINT64_MAX));
    go(&users[0]);
    assert_lk(ENOENT, lk_removelog(users[0].handle));
    assert_lk(0, lk_addlog(NULL, LK_LOG_INFO, NULL, NULL)); /* silence that is not taken back */
}

/* --- going while it runs ------------------------------------------------------------------------------------- */

static int say(void *arg)
{
    (void)arg;
    lk__log(LK_LOG_ERROR, "a line");
    return 0;
}

/* Nobody is in the function when it returns. */
static int remove_first(void *arg)
{
    (void)arg;
    int rc = lk_removelog(users[0].handle);
    return users[0].inside == 0 ? rc : -1;
}

static void who_removes_a_function_waits_until_it_is_not_running(void)
{
    struct worker speaker, removers[2];
    atomic_store(&users[0].shut, true);
    add(&users[0], hear, LK_LOG_INFO);
    worker_start(&speaker, say, NULL);
    eventually(atomic_load(&users[0].inside) == 1, 5000);
    worker_start(&removers[0], remove_first, NULL);
    worker_start(&removers[1], remove_first, NULL);
    eventually(!lk__sinks_want(LK_LOG_ERROR), 5000); /* else this thread would be in it as well, for ever */
    sleep_ms(100);
    add(&users[1], hear, LK_LOG_INFO);
    lk__log(LK_LOG_INFO, "to the other alone"); /* also while the removal is under way */
    assert_int_equal(1, users[1].lines);
    atomic_store(&users[0].shut, false);
    int codes[2] = { worker_join(&removers[0]), worker_join(&removers[1]) };
    assert_true((codes[0] == 0 && codes[1] == ENOENT) || (codes[0] == ENOENT && codes[1] == 0));
    assert_int_equal(0, worker_join(&speaker));
    assert_int_equal(1, users[0].lines);
    go(&users[1]);
}

static void remove_from_inside(void *arg, int level, const char *line)
{
    struct user *user = arg;
    hear(user, level, line);
    atomic_store(&user->code, lk_removelog(user->handle));
}

static void a_function_removes_itself(void)
{
    add(&users[0], remove_from_inside, LK_LOG_INFO);
    add(&users[1], hear, LK_LOG_INFO);
    lk__log(LK_LOG_INFO, "once");
    lk__log(LK_LOG_INFO, "twice");
    assert_int_equal(0, users[0].code);
    assert_int_equal(1, users[0].lines);
    assert_int_equal(2, users[1].lines);
    assert_lk(ENOENT, lk_removelog(users[0].handle));
    go(&users[1]);
}

static void add_and_remove_from_inside(void *arg, int level, const char *line)
{
    struct user *user = arg;
    hear(user, level, line);
    if (users[1].handle == 0)
        atomic_store(&user->code, lk_addlog(hear, LK_LOG_INFO, &users[1], &users[1].handle));
    else
        atomic_store(&user->code, lk_removelog(users[1].handle));
}

static void a_function_adds_and_removes_another(void)
{
    add(&users[0], add_and_remove_from_inside, LK_LOG_INFO);
    for (int i = 0; i < 3; i++)
        lk__log(LK_LOG_INFO, "line %d", i);
    lk__log_flush(); /* the last removal failed, and says so in a line of its own */
    assert_int_equal(ENOENT, users[0].code);
    assert_int_equal(3, users[0].lines);
    assert_true(users[1].lines <= 1);
    go(&users[0]);
}

/* --- all at once --------------------------------------------------------------------------------------------- */

enum { SPEAKERS = 3, RESTLESS = 3, LINES = SANITIZED ? 300 : 5000 };

static atomic_bool over;

static void count(void *arg, int level, const char *line)
{
    (void)level;
    (void)line;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static int come_and_go(void *arg)
{
    int rc = 0;
    (void)arg;
    while (rc == 0 && !atomic_load(&over)) {
        struct user *user = calloc(1, sizeof *user); /* whoever comes late finds it freed */
        rc = lk_addlog(count, LK_LOG_ERROR, &user->lines, &user->handle);
        sched_yield();
        if (rc == 0)
            rc = lk_removelog(user->handle);
        free(user);
    }
    return rc;
}

static int say_lines(int index, void *arg)
{
    (void)index;
    (void)arg;
    for (int i = 0; i < LINES; i++)
        lk__log(LK_LOG_ERROR, "line %d", i);
    return 0;
}

/* Whoever stays hears each line once, whoever else comes and goes. */
static void lines_reach_those_who_stay(void)
{
    static atomic_int lines;
    struct worker restless[RESTLESS];
    uint64_t handle;
    assert_lk(0, lk_addlog(count, LK_LOG_ERROR, &lines, &handle));
    atomic_store(&over, false);
    for (int i = 0; i < RESTLESS; i++)
        worker_start(&restless[i], come_and_go, NULL);
    assert_int_equal(0, run_threads(SPEAKERS, say_lines, NULL));
    atomic_store(&over, true);
    for (int i = 0; i < RESTLESS; i++)
        assert_int_equal(0, worker_join(&restless[i]));
    assert_lk(0, lk_removelog(handle));
    assert_int_equal(SPEAKERS * LINES, lines);
}

/* --- forks --------------------------------------------------------------------------------------------------- */

static int use_the_parents(void)
{
    lk__log(LK_LOG_ERROR, "the child's");
    if (strcmp(users[1].last, "the child's") != 0)
        return 1;
    users[0].shut = false;
    if (lk_removelog(users[0].handle) != 0) /* the thread that is in it is the parent's */
        return 2;
    if (lk_removelog(users[1].handle) != 0 || lk_addlog(hear, LK_LOG_INFO, &users[0], &users[0].handle) != 0)
        return 3;
    return lk_removelog(users[0].handle) == 0 ? 0 : 4;
}

static void a_child_has_the_functions_of_its_parent(void)
{
    struct worker speaker;
    int status;
    if (THREAD_SANITIZED)
        skip(); /* it does not follow a fork out of a process with threads */
    atomic_store(&users[0].shut, true);
    add(&users[1], hear, LK_LOG_INFO);
    add(&users[0], hear, LK_LOG_ERROR); /* the last to be added is the first to be called */
    worker_start(&speaker, say, NULL);
    eventually(atomic_load(&users[0].inside) == 1, 5000);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        users[0].shut = false;
        _exit(use_the_parents());
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    atomic_store(&users[0].shut, false);
    assert_int_equal(0, worker_join(&speaker));
    go(&users[0]);
    go(&users[1]);
}

static void fork_inside(void *arg, int level, const char *line)
{
    struct user *user = arg;
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(lk_removelog(user->handle) == 0 ? 0 : 1);
    }
    hear(user, level, line);
    atomic_store(&user->code, waitpid(child, &status, 0) == child ? status : -1);
}

static void a_function_forks(void)
{
    if (THREAD_SANITIZED)
        skip();
    add(&users[0], fork_inside, LK_LOG_ERROR);
    lk__log(LK_LOG_ERROR, "a line");
    assert_int_equal(0, users[0].code);
    go(&users[0]);
}

int main(void)
{
    return plain_run_with(begin, each_hears_what_it_wants, mistakes_change_nothing,
                          who_removes_a_function_waits_until_it_is_not_running, a_function_removes_itself,
                          a_function_adds_and_removes_another, lines_reach_those_who_stay,
                          a_child_has_the_functions_of_its_parent, a_function_forks);
}
