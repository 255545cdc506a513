/* SPDX-License-Identifier: MIT */
/*
 * static_test.c - read-write locks at file scope, and what an operator sees of them
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_rwlock_t config = LK_RWLOCK_INITIALIZER("config");
static const lk_rwlockattr_t eager = { .size = sizeof eager, .prefer = LK_RWLOCK_PREFER_WRITER };
static lk_rwlock_t preferring = LK_RWLOCK_INITIALIZER_ATTR("preferring", &eager);
static lk_rwlock_t zeroed; /* all zero but the name */

static void use_server(struct world *w)
{
    use_default(world_url(w, "lease=3s"));
}

/* No line of setup: the first call binds it. Destroyed, it begins anew. */
static void a_static_lock_just_works(struct world *w)
{
    use_server(w);
    zeroed.lk_name = "zeroed";
    for (int i = 0; i < 2; i++) {
        assert_lk(0, lk_rwlock_rdlock(&config));
        assert_lk(0, lk_rwlock_wrlock(&preferring));
        assert_lk(0, lk_rwlock_wrlock(&zeroed));
        assert_true(world_exists(w, "latchkey:rw:{config}"));
        assert_lk(0, lk_rwlock_unlock(&config));
        assert_lk(0, lk_rwlock_unlock(&preferring));
        assert_lk(0, lk_rwlock_unlock(&zeroed));
        assert_lk(0, lk_rwlock_destroy(&config));
        assert_lk(0, lk_rwlock_destroy(&preferring));
        assert_lk(0, lk_rwlock_destroy(&zeroed));
        zeroed.lk_name = "zeroed";
    }
    close_default();
}

/* "Who has it, for how long, who waits?" */
static void info_tells_what_the_server_knows(struct world *w)
{
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    struct worker writer, reader;
    uint64_t token;
    lk_rwlock_t *rw = world_rwlock(w, world_client(w, "lease=20s"), "config", NULL);
    assert_lk(0, lk_rwlock_info(rw, &info));
    assert_int_equal(LK_RWLOCK_FREE, info.mode);
    assert_int_equal(1, info.recoverable);
    assert_true(info.token == 0);
    assert_true(info.remaining_ms == 0);

    assert_lk(0, lk_rwlock_rdlock(rw));
    worker_start(&writer, write_once, rw);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    worker_start(&reader, read_once, rw);
    eventually(world_rwqueued(w, "config") == 2, 5000);
    assert_lk(0, lk_rwlock_info(rw, &info));
    assert_int_equal(LK_RWLOCK_READING, info.mode);
    assert_int_equal(1, info.readers);
    assert_int_equal(2, info.waiters);
    assert_int_equal(1, info.waiting_writers);
    assert_string_equal("", info.writer);
    assert_between(info.remaining_ms, 10000, 20000);
    assert_lk(0, lk_rwlock_unlock(rw));
    assert_int_equal(0, worker_join(&writer));
    assert_int_equal(0, worker_join(&reader));

    assert_lk(0, lk_rwlock_wrlock(rw));
    assert_lk(0, lk_rwlock_token(rw, &token));
    assert_lk(0, lk_rwlock_info(rw, &info));
    assert_int_equal(LK_RWLOCK_WRITING, info.mode);
    assert_int_equal(0, info.readers);
    assert_true(info.token == token);
    assert_non_null(strstr(info.writer, ":w"));
    assert_lk(0, lk_rwlock_unlock(rw));
    info.size = 0;
    assert_lk(EINVAL, lk_rwlock_info(rw, &info));
}

/* The one call that breaks the promise: all holders are robbed and told, who waits comes in. */
static void forceunlock_robs_all_who_hold_it(struct world *w)
{
    struct worker writer;
    int64_t ms;
    lk_rwlock_t *one = world_rwlock(w, world_client(w, "lease=3s&poll=1s"), "config", NULL);
    lk_rwlock_t *two = world_rwlock(w, world_client(w, "lease=3s&poll=1s"), "config", NULL);
    assert_lk(0, lk_rwlock_forceunlock(one));
    assert_lk(0, lk_rwlock_rdlock(one));
    assert_lk(0, lk_rwlock_rdlock(two));
    worker_start(&writer, write_once, two);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    assert_lk(0, lk_rwlock_forceunlock(two));
    assert_int_equal(0, worker_join(&writer));
    eventually(lk_rwlock_remaining(one, &ms) == ESTALE, 3000); /* at its next renewal */
    assert_lk(ESTALE, lk_rwlock_unlock(one));
    assert_lk(ESTALE, lk_rwlock_check(two));
    assert_lk(ESTALE, lk_rwlock_unlock(two));
}

/* A mutex and a read-write lock of one name are two things, but for the tokens, which rise over both. */
static void tokens_rise_over_the_kinds_of_a_name(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    uint64_t last = 0, token;
    lk_rwlock_t *rw = world_rwlock(w, client, "config", NULL);
    lk_mutex_t *m = world_mutex(w, client, "config", NULL);
    assert_lk(0, lk_mutex_lock(m));
    for (int i = 0; i < 4; i++) {
        assert_lk(0, lk_rwlock_wrlock(rw));
        assert_lk(0, lk_rwlock_token(rw, &token));
        assert_true(token > last);
        last = token;
        assert_lk(0, lk_mutex_unlock(m));
        assert_lk(0, lk_mutex_lock(m));
        assert_lk(0, lk_mutex_token(m, &token));
        assert_true(token > last);
        last = token;
        assert_lk(0, lk_rwlock_unlock(rw));
    }
    assert_lk(0, lk_mutex_unlock(m));
}

/* Each kind has figures of its own. */
static void statistics_count_it_as_what_it_is(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    char *json;
    lk_rwlock_t *rw = world_rwlock(w, client, "config", NULL);
    assert_lk(0, read_once(rw));
    assert_lk(0, lk_client_stats(client, &json));
    assert_non_null(strstr(json, "\"rwlock\": {"));
    assert_non_null(strstr(json, "\"kind\": \"rwlock\""));
    lk_free(json);
}

int main(void)
{
    return world_run(a_static_lock_just_works, info_tells_what_the_server_knows, forceunlock_robs_all_who_hold_it,
                     tokens_rise_over_the_kinds_of_a_name, statistics_count_it_as_what_it_is);
}
