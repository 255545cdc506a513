/* SPDX-License-Identifier: MIT */
/*
 * count_test.c - setting, counting down, reading and deleting: each code, and what it leaves behind
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_latch_t *gate;

static void open_gate(struct world *w)
{
    client = world_client(w, "");
    gate = world_latch(w, client, "gate");
}

static unsigned count_of(lk_latch_t *l)
{
    unsigned n = 4711;
    assert_lk(0, lk_latch_getcount(l, &n));
    return n;
}

/* From a count to zero, and then once more. */
static void it_counts_down_and_can_be_set_again(struct world *w)
{
    open_gate(w);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(0, count_of(gate));
        assert_lk(0, lk_latch_trysetcount(gate, 3));
        assert_lk(EEXIST, lk_latch_trysetcount(gate, 5));
        assert_int_equal(3, count_of(gate));
        assert_int_equal(3, world_int(w, "GET gate"));
        assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 0));
        assert_lk(0, lk_latch_countdown(gate));
        assert_int_equal(2, count_of(gate));
        assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 0));
        assert_lk(0, lk_latch_countdown(gate));
        assert_lk(0, lk_latch_countdown(gate));
        assert_int_equal(0, count_of(gate));
        assert_false(world_exists(w, "gate"));
        assert_lk(0, lk_latch_wait(gate));
        assert_lk(0, lk_latch_waitfor(gate, 0));
        assert_lk(ENOENT, lk_latch_countdown(gate));
        assert_lk(0, lk_latch_wait(gate)); /* still: an extra countdown changes nothing */
    }
}

/* Several at once; more than there are is down to zero, not below. */
static void it_counts_down_by_several(struct world *w)
{
    open_gate(w);
    assert_lk(0, lk_latch_trysetcount(gate, 1000000));
    assert_lk(0, lk_latch_countdownby(gate, 999990));
    assert_int_equal(10, count_of(gate));
    assert_lk(0, lk_latch_countdownby(gate, 9));
    assert_int_equal(1, count_of(gate));
    assert_lk(0, lk_latch_countdownby(gate, 1000000));
    assert_false(world_exists(w, "gate"));
    assert_lk(0, lk_latch_wait(gate));
}

/* What the caller can see to be wrong is told before anything is sent. */
static void mistakes_are_einval(struct world *w)
{
    struct timespec odd = { 0, 1000000000 };
    lk_latchattr_t attr = LK_LATCHATTR_INIT;
    lk_latchinfo_t info = { 0 };
    lk_latch_t other;
    open_gate(w);
    int64_t sent = world_commands(w, "evalsha") + world_commands(w, "eval");
    assert_lk(EINVAL, lk_latch_trysetcount(gate, 0));
    assert_lk(EINVAL, lk_latch_trysetcount(gate, 1000001));
    assert_lk(EINVAL, lk_latch_countdownby(gate, 0));
    assert_lk(EINVAL, lk_latch_countdownby(gate, 1000001));
    assert_lk(EINVAL, lk_latch_getcount(gate, NULL));
    assert_lk(EINVAL, lk_latch_info(gate, NULL));
    assert_lk(EINVAL, lk_latch_info(gate, &info));
    assert_lk(EINVAL, lk_latch_waitfor(gate, -2));
    assert_lk(EINVAL, lk_latch_timedwait(gate, &odd));
    assert_lk(EINVAL, lk_latch_clockwait(gate, CLOCK_PROCESS_CPUTIME_ID, &odd));
    assert_lk(EINVAL, lk_latch_wait(NULL));
    assert_lk(EINVAL, lk_latch_countdown(NULL));
    assert_lk(EINVAL, lk_latch_delete(NULL));
    assert_lk(EINVAL, lk_latch_destroy(NULL));
    assert_lk(EINVAL, lk_latch_init(NULL, client, "gate", NULL));
    assert_lk(EINVAL, lk_latch_init(&other, client, "", NULL));
    assert_lk(EINVAL, lk_latch_init(&other, client, "latchkey:x", NULL));
    assert_lk(EINVAL, lk_latch_init(&other, client, "a}{b", NULL));
    attr.lk_room[1] = 1;
    assert_lk(EINVAL, lk_latch_init(&other, client, "gate", &attr));
    attr.lk_room[1] = 0;
    attr.size = 0;
    assert_lk(EINVAL, lk_latch_init(&other, client, "gate", &attr));
    attr.size = sizeof attr;
    assert_lk(0, lk_latch_init(&other, client, "gate", &attr));
    assert_lk(0, lk_latch_destroy(&other));
    assert_int_equal(sent, world_commands(w, "evalsha") + world_commands(w, "eval"));
}

/* A key of another kind, or of the same type without a number in it, is left as it is. */
static void a_key_of_another_type_is_eproto(struct world *w)
{
    unsigned n = 4711;
    open_gate(w);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            world_redis(w, "HSET gate somebody:1 1");
        else
            world_redis(w, "SET gate words");
        const char *before = world_str(w, "DUMP gate");
        assert_lk(EPROTO, lk_latch_trysetcount(gate, 1));
        assert_lk(EPROTO, lk_latch_setcount(gate, 1));
        assert_lk(EPROTO, lk_latch_countdown(gate));
        assert_lk(EPROTO, lk_latch_getcount(gate, &n));
        assert_lk(EPROTO, lk_latch_wait(gate));
        assert_lk(EPROTO, lk_latch_delete(gate));
        assert_non_null(strstr(lk_errortext(), "latch gate"));
        assert_int_equal(4711, n);
        assert_string_equal(before, world_str(w, "DUMP gate"));
        assert_string_equal("gate", world_keys(w));
        world_redis(w, "DEL gate");
    }
}

/* Deleted is neither open nor never set. */
static void a_deleted_latch_is_told(struct world *w)
{
    open_gate(w);
    assert_lk(ENOENT, lk_latch_delete(gate));
    assert_lk(ENOENT, lk_latch_wait(gate));
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    assert_lk(0, lk_latch_delete(gate));
    assert_false(world_exists(w, "gate"));
    assert_lk(ENOENT, lk_latch_delete(gate)); /* which leaves it deleted */
    assert_lk(ECANCELED, lk_latch_wait(gate));
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_wait(gate));
}

static void expect_info(int set, int opened, int deleted, unsigned count)
{
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    assert_lk(0, lk_latch_info(gate, &info));
    assert_int_equal(set, info.set);
    assert_int_equal(opened, info.opened);
    assert_int_equal(deleted, info.deleted);
    assert_int_equal(count, info.count);
}

static void info_tells_what_is_known(struct world *w)
{
    open_gate(w);
    expect_info(0, 0, 0, 0);
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    expect_info(1, 0, 0, 2);
    assert_lk(0, lk_latch_countdownby(gate, 2));
    expect_info(0, 1, 0, 0);
    assert_lk(0, lk_latch_trysetcount(gate, 7));
    expect_info(1, 0, 0, 7);
    assert_lk(0, lk_latch_delete(gate));
    expect_info(0, 0, 1, 0);
    assert_lk(0, lk_latch_trysetcount(gate, 7));
    world_redis(w, "DEL gate"); /* by some accident */
    expect_info(0, 0, 0, 0);
    assert_lk(ENOENT, lk_latch_wait(gate)); /* that it once was deleted says nothing of this count */
}

/* A full server refuses new counts, but nobody is kept from counting down. */
static void a_full_server_still_counts_down(struct world *w)
{
    lk_latch_t other;
    open_gate(w);
    assert_lk(0, lk_latch_init(&other, client, "other", NULL));
    assert_lk(0, lk_latch_trysetcount(gate, 3));
    assert_lk(0, lk_latch_trysetcount(&other, 3));
    world_redis(w, "DEL latchkey:once:{gate} latchkey:once:{other}"); /* the first request after a while */
    world_redis(w, "CONFIG SET maxmemory 1");
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(2, count_of(gate));
    assert_lk(0, lk_latch_countdownby(gate, 2));
    assert_lk(0, lk_latch_wait(gate));
    assert_lk(0, lk_latch_delete(&other));
    assert_lk(ENOSPC, lk_latch_trysetcount(&other, 3));
    assert_false(world_exists(w, "other"));
    world_redis(w, "CONFIG SET maxmemory 0");
    assert_lk(0, lk_latch_destroy(&other));
}

/* Statistics count the waits that ended with an open latch, under a kind of their own. */
static void statistics_know_latches(struct world *w)
{
    char *json;
    open_gate(w);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_wait(gate));
    assert_lk(0, lk_client_stats(client, &json));
    assert_non_null(strstr(json, "\"latch\": {"));
    assert_non_null(strstr(json, "\"mutex\": {"));
    assert_non_null(strstr(json, "\"kind\": \"latch\""));
    assert_non_null(strstr(json, "\"acquisitions\": 1"));
    lk_free(json);
}

/* A latch has no helper key in common with a mutex of another name; braces and the prefix are part of it. */
static void names_and_prefixes(struct world *w)
{
    client = world_client(w, "prefix=eu:");
    gate = world_latch(w, client, "gate");
    lk_latch_t *tagged = world_latch(w, client, "{tag}gate");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_trysetcount(tagged, 2));
    assert_int_equal(1, world_int(w, "GET eu:gate"));
    assert_int_equal(2, world_int(w, "GET eu:{tag}gate"));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_countdownby(tagged, 2));
    assert_true(world_exists(w, "latchkey:opened:{eu:gate}"));
    assert_true(world_exists(w, "latchkey:opened::eu:{tag}gate"));
    assert_true(world_exists(w, "latchkey:once:{eu:gate}"));
    assert_true(world_exists(w, "latchkey:once::eu:{tag}gate"));
}

static lk_latch_t at_file_scope = LK_LATCH_INITIALIZER("static");

/* The default client is opened by the first call; a destroyed one may begin anew. */
static void a_static_latch_just_works(struct world *w)
{
    use_default(world_url(w, ""));
    for (int i = 0; i < 2; i++) {
        assert_lk(0, lk_latch_trysetcount(&at_file_scope, 1));
        assert_lk(ETIMEDOUT, lk_latch_waitfor(&at_file_scope, 20));
        assert_lk(0, lk_latch_countdown(&at_file_scope));
        assert_lk(0, lk_latch_wait(&at_file_scope));
        assert_lk(0, lk_latch_destroy(&at_file_scope));
    }
    close_default();
    assert_lk(0, lk_latch_wait(&at_file_scope)); /* with a new default client */
    assert_lk(0, lk_latch_destroy(&at_file_scope));
    close_default();
}

int main(void)
{
    return world_run(it_counts_down_and_can_be_set_again, it_counts_down_by_several, mistakes_are_einval,
                     a_key_of_another_type_is_eproto, a_deleted_latch_is_told, info_tells_what_is_known,
                     a_full_server_still_counts_down, statistics_know_latches, names_and_prefixes,
                     a_static_latch_just_works);
}
