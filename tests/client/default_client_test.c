/* SPDX-License-Identifier: MIT */
/*
 * default_client_test.c - the default client is set by the program or opened by its first use, and ends with its last user
 *
 * labels: threads memory noise
 */
#include "log.h"
#include "world.h"

#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static lk_mutex_t orders = LK_MUTEX_INITIALIZER("orders");

/* Each way to a client has a prefix of its own, so the server tells which one was taken. */
static void begin(struct world *w)
{
    unsetenv("REDIS_URL");
    assert_int_equal(0, setenv("LATCHKEY_URL", world_url(w, "connect_timeout=10s&prefix=environment:"), 1));
}

static void use(void)
{
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_unlock(&orders));
}

static void expect_place(struct world *w, const char *key)
{
    assert_lk(0, lk_mutex_lock(&orders));
    assert_true(world_exists(w, key));
    assert_lk(0, lk_mutex_unlock(&orders));
}

static lk_client_t *ask(void)
{
    lk_client_t *client;
    assert_lk(0, lk_client_default(&client));
    return client;
}

static void end(void)
{
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_client_setdefault(NULL));
    assert_lk(0, lk_client_setdefaulturl(NULL));
}

/* --- counting ------------------------------------------------------------------------------------------------ */

static void it_ends_with_its_last_user(struct world *w)
{
    begin(w);
    lk_client_t *one = ask(), *two = ask();
    assert_ptr_equal(one, two);
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_client_close(one));
    assert_lk(0, lk_mutex_check(&orders)); /* as if nothing had been closed */
    assert_lk(0, lk_client_close(two));
    assert_false(world_exists(w, "environment:orders"));
    assert_lk(0, lk_mutex_lock(&orders)); /* and begins again */
    assert_lk(0, lk_client_close(ask()));
    assert_false(world_exists(w, "environment:orders"));
    assert_lk(EINVAL, lk_client_default(NULL));
    end();
}

enum { THREADS = 6, ROUNDS = SANITIZED ? 20 : 100 };

static int ask_use_and_close(int index, void *arg)
{
    lk_client_t *client;
    lk_mutex_t own;
    char name[] = { 'o', 'w', 'n', (char)('0' + index), '\0' };
    int rc = 0;
    (void)arg;
    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        rc = lk_client_default(&client);
        if (rc != 0 || (rc = lk_mutex_init(&own, client, name, NULL)) != 0)
            break;
        if ((rc = lk_mutex_lock(&own)) == 0)
            rc = lk_mutex_unlock(&own);
        lk_mutex_destroy(&own);
        int closed = lk_client_close(client);
        rc = rc != 0 ? rc : closed;
    }
    return rc;
}

/* Nobody closes it under another one, or uses it when it is gone. */
static void users_come_and_go_at_once(struct world *w)
{
    begin(w);
    assert_lk(0, run_threads(THREADS, ask_use_and_close, NULL));
    assert_lk(0, lk_client_setdefault(NULL)); /* there is none now */
    end();
}

/* What static objects were bound to before goes when they are bound anew: a job runner closes after each job. */
static void rounds_leave_no_memory(struct world *w)
{
    enum { OBJECTS = 10, FEW = 10, MANY = SANITIZED ? 30 : 300, MOST = 200000 };
    static lk_mutex_t mutexes[OBJECTS] = { LK_MUTEX_INITIALIZER("0"), LK_MUTEX_INITIALIZER("1"),
                                           LK_MUTEX_INITIALIZER("2"), LK_MUTEX_INITIALIZER("3"),
                                           LK_MUTEX_INITIALIZER("4"), LK_MUTEX_INITIALIZER("5"),
                                           LK_MUTEX_INITIALIZER("6"), LK_MUTEX_INITIALIZER("7"),
                                           LK_MUTEX_INITIALIZER("8"), LK_MUTEX_INITIALIZER("9") };
    size_t before = 0;
    begin(w);
    for (int round = 0; round < FEW + MANY; round++) {
        lk_client_t *client = ask();
        for (int i = 0; i < OBJECTS; i++)
            assert_lk(0, lk_mutex_trylock(&mutexes[i]));
        for (int i = 0; i < OBJECTS; i++)
            assert_lk(0, lk_mutex_unlock(&mutexes[i]));
        assert_lk(0, lk_client_close(client));
        if (round == FEW)
            before = mallinfo2().uordblks;
    }
    if (!SANITIZED) /* whose allocator does not count so */
        assert_between((int64_t)mallinfo2().uordblks - (int64_t)before, -MOST, MOST);
    for (int i = 0; i < OBJECTS; i++)
        assert_lk(0, lk_mutex_destroy(&mutexes[i]));
    end();
}

static lk_mutex_t common = LK_MUTEX_INITIALIZER("common");

/* Some enter by a binding while others replace it. */
static int use_and_close(int index, void *arg)
{
    int rc = 0;
    (void)index, (void)arg;
    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        lk_client_t *client;
        rc = lk_client_default(&client);
        if (rc != 0)
            return rc;
        if (i % 2 == 0) {
            rc = lk_mutex_lock(&common);
            rc = rc != 0 ? rc : lk_mutex_unlock(&common);
        }
        int closed = lk_client_close(client);
        rc = rc != 0 ? rc : closed;
        int64_t ms;
        lk_mutex_remaining(&common, &ms); /* with a client or without */
    }
    return rc;
}

static void threads_use_what_is_bound_anew(struct world *w)
{
    begin(w);
    assert_lk(0, run_threads(THREADS, use_and_close, NULL));
    close_default();
    assert_lk(0, lk_mutex_destroy(&common));
    end();
}

/* --- a client that was set ----------------------------------------------------------------------------------- */

static void static_objects_use_the_client_that_was_set(struct world *w)
{
    begin(w);
    lk_client_t *given = world_open(w, "connect_timeout=10s&prefix=given:");
    assert_lk(0, lk_client_setdefault(given));
    expect_place(w, "given:orders");
    assert_ptr_equal(given, ask());
    assert_lk(0, lk_client_close(given)); /* its opener's */
    expect_place(w, "given:orders");
    assert_lk(0, lk_client_close(given));         /* the other one's */
    assert_lk(ECANCELED, lk_mutex_lock(&orders)); /* no other is opened, which might be elsewhere */
    assert_lk(ECANCELED, lk_client_default(&given));
    given = world_open(w, "connect_timeout=10s&prefix=another:");
    assert_lk(0, lk_client_setdefault(given));
    expect_place(w, "another:orders");
    assert_lk(0, lk_client_close(given));
    assert_lk(0, lk_client_setdefault(NULL));
    expect_place(w, "environment:orders");
    close_default();
    end();
}

static void it_can_be_set_until_it_is_used(struct world *w)
{
    begin(w);
    lk_client_t *first = world_open(w, "connect_timeout=10s&prefix=first:"), *second = world_open(w, "prefix=second:");
    assert_lk(0, lk_client_setdefault(first));
    assert_lk(0, lk_client_setdefault(second));
    assert_lk(0, lk_client_setdefault(NULL));
    assert_lk(0, lk_client_setdefaulturl(world_url(w, "connect_timeout=10s&prefix=url:")));
    assert_lk(0, lk_client_setdefault(second));
    expect_place(w, "second:orders");
    assert_lk(EBUSY, lk_client_setdefault(first));
    assert_lk(EBUSY, lk_client_setdefault(NULL));
    assert_lk(EBUSY, lk_client_setdefaulturl(NULL));
    assert_lk(EBUSY, lk_client_setdefaulturl("redis://elsewhere"));
    expect_place(w, "second:orders");
    assert_lk(0, lk_client_close(second));
    assert_lk(ECANCELED, lk_mutex_lock(&orders));
    assert_lk(0, lk_client_setdefault(first));
    assert_lk(0, lk_client_close(first)); /* before anybody used it */
    assert_lk(ECANCELED, lk_mutex_lock(&orders));
    assert_lk(0, lk_client_setdefault(NULL));
    expect_place(w, "url:orders");
    close_default();
    end();
}

/* Two threads, as close to one moment as they get. */
static int set_or_close(int index, void *arg)
{
    static int here;
    int rounds_here = __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
    for (int other = rounds_here % 2; other != 0 && __atomic_load_n(&here, __ATOMIC_SEQ_CST) == rounds_here;)
        sched_yield();
    if (index == 1)
        return lk_client_close(arg);
    int rc = lk_client_setdefault(arg);
    return rc == ECANCELED ? 0 : rc;
}

/* One that is being closed while it is set does not become the default client, or does not stay it. */
static void one_that_is_being_closed_is_not_set(struct world *w)
{
    begin(w);
    for (int i = 0; i < 4 * ROUNDS; i++) {
        lk_events_t *queue;
        lk_client_t *fresh = world_open(w, "connect_timeout=10s"), *found;
        assert_lk(0, lk_events_open(fresh, &queue)); /* a client that is closed is there as long as that */
        assert_int_equal(0, run_threads(2, set_or_close, fresh));
        int rc = lk_client_default(&found);
        assert_true(rc == ECANCELED || rc == 0);
        if (rc == 0)
            assert_lk(0, lk_client_close(found));
        assert_lk(0, lk_events_close(queue));
        assert_lk(0, lk_client_setdefault(NULL));
    }
    end();
}

static void one_opened_by_its_first_use_is_in_use(struct world *w)
{
    begin(w);
    lk_client_t *other = world_client(w, "");
    use();
    assert_lk(EBUSY, lk_client_setdefault(other));
    assert_lk(EBUSY, lk_client_setdefaulturl(world_url(w, "connect_timeout=10s&prefix=url:")));
    expect_place(w, "environment:orders");
    close_default();
    end();
}

/* --- a URL that was set -------------------------------------------------------------------------------------- */

static void static_objects_use_the_url_that_was_set(struct world *w)
{
    begin(w);
    assert_lk(0, lk_client_setdefaulturl(world_url(w, "connect_timeout=10s&prefix=url:")));
    expect_place(w, "url:orders");
    close_default();
    expect_place(w, "url:orders"); /* also of the next one */
    close_default();
    assert_lk(EINVAL, lk_client_setdefaulturl("cache.example"));
    assert_lk(EINVAL, lk_client_setdefaulturl(world_url(w, "connect_timeout=10s&leese=1s")));
    assert_lk(EINVAL, lk_client_setdefaulturl("redis-cluster://cache.example/1"));
    expect_place(w, "url:orders"); /* mistakes changed nothing */
    close_default();
    assert_lk(0, lk_client_setdefaulturl(NULL));
    expect_place(w, "environment:orders");
    close_default();
    end();
}

static int use_what_was_set(struct world *w, void *arg)
{
    lk_client_t *mine, *given = arg;
    assert_lk(given != NULL ? ECANCELED : 0, lk_mutex_lock(&orders));
    if (given != NULL) {
        assert_lk(ECANCELED, lk_client_setdefault(given));
        assert_lk(0, lk_client_open(&mine, world_url(w, "connect_timeout=10s&prefix=child:")));
        assert_lk(0, lk_client_setdefault(mine));
        assert_lk(0, lk_mutex_lock(&orders));
    }
    assert_that(world_exists(w, given != NULL ? "child:orders" : "url:orders"));
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    if (given != NULL)
        assert_lk(0, lk_client_close(mine));
    else
        close_default();
    world_ready(w);
    return 0;
}

/* A child has the URL of its parent. A client it has not, and has to set one rather than to use what the environment says. */
static void a_child_goes_to_no_other_server(struct world *w)
{
    if (THREAD_SANITIZED)
        skip(); /* it does not follow a fork out of a process with threads */
    begin(w);
    assert_lk(0, lk_client_setdefaulturl(world_url(w, "connect_timeout=10s&prefix=url:")));
    use();
    assert_int_equal(0, world_wait(w, world_fork(w, use_what_was_set, NULL)));
    close_default();
    lk_client_t *given = world_open(w, "connect_timeout=10s&prefix=given:");
    assert_lk(0, lk_client_setdefault(given));
    use();
    assert_int_equal(0, world_wait(w, world_fork(w, use_what_was_set, given)));
    expect_place(w, "given:orders");
    assert_lk(0, lk_client_close(given));
    end();
}

/* --- a URL of several libraries ------------------------------------------------------------------------------ */

static char heard[2048];

static void keep(void *arg, int level, const char *line)
{
    (void)arg;
    if (level == LK_LOG_WARNING)
        strncat(heard, line, sizeof heard - strlen(heard) - 1);
}

/* $REDIS_URL belongs to all libraries of a program, $LATCHKEY_URL to this one. */
static void a_shared_url_may_say_more(struct world *w)
{
    const char *shared =
        world_url(w, "connect_timeout=10s&prefix=shared:&timeout=5&ssl_cert_reqs=none&protocol=3&lease=20s&health");
    begin(w);
    assert_lk(0, log_to(keep, LK_LOG_WARNING, NULL));
    assert_int_equal(0, setenv("LATCHKEY_URL", shared, 1));
    assert_lk(EINVAL, lk_mutex_lock(&orders));
    unsetenv("LATCHKEY_URL");
    assert_int_equal(0, setenv("REDIS_URL", shared, 1));
    for (int i = 0; i < 2; i++) {
        expect_place(w, "shared:orders");
        close_default();
    }
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    const char *timeout = strstr(heard, "timeout"), *health = strstr(heard, "health");
    assert_true(timeout != NULL && strstr(heard, "ssl_cert_reqs") != NULL && strstr(heard, "protocol") != NULL);
    assert_true(health != NULL && strstr(heard, "lease: ") == NULL);
    assert_null(strstr(health + 1, "health")); /* once, however often it is read */
    unsetenv("REDIS_URL");
    end();
}

int main(void)
{
    return world_run(it_ends_with_its_last_user, users_come_and_go_at_once, rounds_leave_no_memory,
                     threads_use_what_is_bound_anew, static_objects_use_the_client_that_was_set,
                     it_can_be_set_until_it_is_used, one_that_is_being_closed_is_not_set,
                     one_opened_by_its_first_use_is_in_use, static_objects_use_the_url_that_was_set,
                     a_child_goes_to_no_other_server, a_shared_url_may_say_more);
}
