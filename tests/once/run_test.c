/* SPDX-License-Identifier: MIT */
/*
 * run_test.c - one runs it, the others wait for that; what each call answers in each state
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

#include <string.h>

enum { THREADS = SANITIZED ? 20 : 60 };

static lk_once_t *mine, *theirs;

static void open_both(struct world *w, const char *options)
{
    world_allow(w, "latchkey:done:*");
    mine = world_once(w, world_client(w, options), "migrated", NULL);
    theirs = world_once(w, world_client(w, options), "migrated", NULL);
}

static void assert_result(const char *expected)
{
    char *text = NULL;
    assert_lk(0, lk_once_result(theirs, &text));
    assert_string_equal(expected, text);
    lk_free(text);
}

static void one_runs_it_and_then_it_is_done(struct world *w)
{
    uint64_t token, later;
    int64_t ms;
    char *text;
    open_both(w, "lease=20s");
    assert_lk(ENOENT, lk_once_result(mine, &text));
    assert_lk(EPERM, lk_once_end(mine, NULL));
    assert_lk(EPERM, lk_once_fail(mine));
    assert_lk(EPERM, lk_once_token(mine, &token));
    assert_lk(0, lk_once_begin(mine, 0));
    assert_lk(EDEADLK, lk_once_begin(mine, 0));
    assert_lk(ETIMEDOUT, lk_once_begin(theirs, 0));
    assert_lk(ETIMEDOUT, lk_once_begin(theirs, 50));
    assert_lk(EPERM, lk_once_end(theirs, "stolen"));
    assert_lk(EBUSY, lk_once_destroy(mine));
    assert_lk(0, lk_once_token(mine, &token));
    assert_lk(0, lk_once_remaining(mine, &ms));
    assert_between(ms, 1, 20000);
    assert_lk(0, lk_once_check(mine));
    assert_lk(0, lk_once_end(mine, "version 7"));
    assert_lk(EPERM, lk_once_end(mine, NULL));
    assert_lk(EALREADY, lk_once_begin(mine, 0));
    assert_lk(EALREADY, lk_once_begin(theirs, LK_FOREVER));
    assert_result("version 7");
    assert_lk(0, lk_once_reset(theirs));
    assert_lk(ENOENT, lk_once_reset(theirs));
    assert_lk(0, lk_once_begin(theirs, 0));
    assert_lk(0, lk_once_token(theirs, &later));
    assert_true(later > token);
    assert_lk(0, lk_once_end(theirs, NULL));
    assert_result("");
}

static void a_run_that_failed_is_the_next_ones(struct world *w)
{
    open_both(w, "lease=20s");
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lk_once_begin(mine, 0));
        assert_lk(0, lk_once_fail(mine));
        assert_lk(0, lk_once_begin(theirs, 0));
        assert_lk(0, lk_once_fail(theirs));
    }
    assert_int_equal(0, world_lasting(w));
}

static void a_result_has_its_limits(struct world *w)
{
    char text[LK_ONCE_RESULT_MAX + 2];
    open_both(w, "");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_lk(0, lk_once_begin(mine, 0));
    assert_lk(EINVAL, lk_once_end(mine, text));
    text[LK_ONCE_RESULT_MAX] = '\0';
    assert_lk(0, lk_once_end(mine, text));
    assert_result(text);
}

static void it_is_looked_at(struct world *w)
{
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    uint64_t token;
    open_both(w, "lease=20s");
    assert_lk(EINVAL, lk_once_info(mine, NULL));
    assert_lk(0, lk_once_info(mine, &info));
    assert_true(!info.done && !info.running && info.token == 0 && info.runner[0] == '\0');
    assert_lk(0, lk_once_begin(mine, 0));
    assert_lk(0, lk_once_token(mine, &token));
    assert_lk(0, lk_once_info(theirs, &info));
    assert_true(!info.done && info.running && info.token == token && info.runner[32] == ':');
    assert_between(info.remaining_ms, 1, 20000);
    assert_lk(0, lk_once_end(mine, "x"));
    assert_lk(0, lk_once_info(theirs, &info));
    assert_true(info.done && !info.running && info.token == token && info.runner[32] == ':');
    assert_int_equal(0, info.remaining_ms);
}

static int coming; /* reached with atomic builtins */

static int begin_it(void *once)
{
    __atomic_add_fetch(&coming, 1, __ATOMIC_SEQ_CST);
    return lk_once_begin(once, 20000);
}

static bool is_quiet(struct world *w)
{
    int64_t before = world_commands(w, "evalsha");
    sleep_ms(100);
    return world_commands(w, "evalsha") == before;
}

/* How many clients hear messages of it. */
static int64_t listening(struct world *w)
{
    return world_int(w, "EVAL %s 0", "return redis.call('PUBSUB', 'NUMSUB', 'latchkey:ran:{migrated}')[2]");
}

/* All threads of two clients are told by one message each, and look as one. */
static void all_who_wait_are_told(struct world *w)
{
    struct worker workers[THREADS];
    open_both(w, "lease=20s&poll=5s");
    assert_lk(0, lk_once_begin(mine, 0));
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], begin_it, i % 2 == 0 ? theirs : mine);
    eventually(__atomic_load_n(&coming, __ATOMIC_SEQ_CST) == THREADS && listening(w) == 2, 20000);
    eventually(is_quiet(w), 20000); /* all have asked what they ask at first */
    int64_t before = world_commands(w, "evalsha"), began_ms = now_ms();
    assert_lk(0, lk_once_end(mine, NULL));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(EALREADY, worker_join(&workers[i]));
    assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS);
    assert_between(world_commands(w, "evalsha") - before, 3, 6); /* the end, a look of each client */
}

struct runs {
    lk_once_t *once;
    int begun; /* reached with atomic builtins, as what follows */
};

/* Who is let in gives up, the last one completes. */
static int run_in_turn(int index, void *arg)
{
    struct runs *runs = arg;
    (void)index;
    int rc = lk_once_begin(runs->once, 20000);
    if (rc == EALREADY)
        return 0;
    if (rc == 0 && __atomic_add_fetch(&runs->begun, 1, __ATOMIC_SEQ_CST) == 10)
        return lk_once_end(runs->once, "the tenth");
    return rc == 0 ? lk_once_fail(runs->once) : rc;
}

static void given_up_it_is_handed_on(struct world *w)
{
    open_both(w, "lease=20s&poll=5s");
    struct runs runs = { .once = mine };
    int64_t began_ms = now_ms();
    assert_int_equal(0, run_threads(THREADS, run_in_turn, &runs));
    assert_int_equal(10, runs.begun);
    assert_between(now_ms() - began_ms, 0, 4000);
    assert_result("the tenth");
}

static int count_it(void *count)
{
    return ++*(int *)count > 1 ? 0 : 42;
}

static void a_function_is_called_until_it_succeeds(struct world *w)
{
    int count = 0;
    open_both(w, "");
    assert_lk(EINVAL, lk_once_call(mine, NULL, NULL));
    assert_int_equal(42, lk_once_call(mine, count_it, &count));
    assert_lk(0, lk_once_call(mine, count_it, &count));
    assert_lk(0, lk_once_call(theirs, count_it, &count));
    assert_int_equal(2, count);
}

static int exit_in_it(void *arg)
{
    pthread_exit(arg);
}

static void *call_and_exit(void *once)
{
    return (void *)(intptr_t)lk_once_call(once, exit_in_it, once);
}

static void who_leaves_in_it_gives_it_up(struct world *w)
{
    pthread_t thread;
    void *result;
    int count = 1;
    open_both(w, "lease=20s");
    assert_int_equal(0, pthread_create(&thread, NULL, call_and_exit, mine));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_ptr_equal(mine, result);
    assert_lk(0, lk_once_call(theirs, count_it, &count));
}

static void times_are_checked(struct world *w)
{
    struct timespec past = { 1, 0 }, wrong = { 1, 1000000000 }, soon;
    open_both(w, "");
    assert_lk(EINVAL, lk_once_begin(mine, -2));
    assert_lk(EINVAL, lk_once_timedbegin(mine, &wrong));
    assert_lk(EINVAL, lk_once_clockbegin(mine, 12345, &past));
    assert_lk(0, lk_once_timedbegin(mine, &past));
    assert_lk(ETIMEDOUT, lk_once_timedbegin(theirs, &past));
    assert_int_equal(0, clock_gettime(CLOCK_MONOTONIC, &soon));
    soon.tv_sec++;
    int64_t began_ms = now_ms();
    assert_lk(ETIMEDOUT, lk_once_clockbegin(theirs, CLOCK_MONOTONIC, &soon));
    assert_between(now_ms() - began_ms, 990, 1000 + 2 * SLACK_MS);
    assert_lk(0, lk_once_fail(mine));
}

static void attributes_are_checked(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    lk_once_t once;
    lk_onceattr_t attr = LK_ONCEATTR_INIT;
    attr.lease_ms = 99;
    assert_lk(EINVAL, lk_once_init(&once, client, "migrated", &attr));
    attr = (lk_onceattr_t){ .size = sizeof attr, .lk_room = { 1, 0 } };
    assert_lk(EINVAL, lk_once_init(&once, client, "migrated", &attr));
    assert_lk(EINVAL, lk_once_init(&once, client, "", NULL));
    assert_lk(EINVAL, lk_once_init(NULL, client, "migrated", NULL));
    assert_lk(EINVAL, lk_once_begin(NULL, 0));
    assert_lk(EINVAL, lk_once_destroy(NULL));
    attr = (lk_onceattr_t){ .size = sizeof attr, .lease_ms = 2000 };
    lk_once_t *shorter = world_once(w, client, "migrated", &attr);
    assert_lk(0, lk_once_begin(shorter, 0));
    assert_between(world_pttl(w, "latchkey:run:{migrated}"), 1, 2000);
    eventually(world_pttl(w, "latchkey:run:{migrated}") < 1700, 5000);
    eventually(world_pttl(w, "latchkey:run:{migrated}") > 1700, 5000); /* it is renewed */
    assert_lk(0, lk_once_check(shorter));
    assert_lk(0, lk_once_fail(shorter));
}

static void another_type_is_no_run(struct world *w)
{
    char *text;
    open_both(w, "");
    world_redis(w, "SET latchkey:done:{migrated} text");
    assert_lk(EPROTO, lk_once_begin(mine, 0));
    assert_lk(EPROTO, lk_once_result(mine, &text));
    world_redis(w, "DEL latchkey:done:{migrated}");
    world_redis(w, "HSET latchkey:run:{migrated} a b");
    assert_lk(EPROTO, lk_once_begin(mine, 0));
    world_redis(w, "DEL latchkey:run:{migrated}");
}

static lk_once_t still = LK_ONCE_INITIALIZER("still");

static void a_static_one_uses_the_default_client(struct world *w)
{
    int count = 1;
    world_allow(w, "latchkey:done:*");
    use_default(world_url(w, ""));
    assert_lk(0, lk_once_call(&still, count_it, &count));
    assert_lk(EALREADY, lk_once_begin(&still, 0));
    assert_lk(0, lk_once_destroy(&still));
    close_default();
}

int main(void)
{
    return world_run(one_runs_it_and_then_it_is_done, a_run_that_failed_is_the_next_ones, a_result_has_its_limits,
                     it_is_looked_at, all_who_wait_are_told, given_up_it_is_handed_on,
                     a_function_is_called_until_it_succeeds, who_leaves_in_it_gives_it_up, times_are_checked,
                     attributes_are_checked, another_type_is_no_run, a_static_one_uses_the_default_client);
}
