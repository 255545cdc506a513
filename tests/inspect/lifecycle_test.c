/* SPDX-License-Identifier: MIT */
/*
 * lifecycle_test.c - what a walk, a list and a survey do where clients are closed, processes fork, stacks are small and
 * many threads come at once
 *
 * labels: threads memory
 */
#include "fake_server.h"
#include "proxy.h"
#include "world.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- closed in the middle ----------------------------------------------------------------------------------------- */

enum { MANY = 20000, PAGE = 50 };

static struct asker {
    lk_client_t *client;
    lk_inspect_t *walk;
    lk_mutex_t *mutex;
    struct worker worker;
} asker;

static int walk_on(void *arg)
{
    const struct asker *its = arg;
    lk_inspected_t object = LK_INSPECTED_INIT;
    return lk_inspect_next(its->walk, &object);
}

static int list_on(void *arg)
{
    static lk_holder_t holders[MANY];
    const struct asker *its = arg;
    unsigned count;
    return lk_inspect_holders(its->client, LK_KIND_RWLOCK, "pages", holders, sizeof *holders, MANY, &count);
}

/* The call is under way for good, at a server that answers each of its questions with half an answer. */
static void close_meanwhile(struct fake *f, int (*ask)(void *arg))
{
    int64_t before = fake_asked(f, "EVALSHA");
    fake_pause(f, 50);
    worker_start(&asker.worker, ask, &asker);
    eventually(fake_asked(f, "EVALSHA") >= before + 3, 5000);
    assert_lk(0, lk_client_close(asker.client));
    assert_lk(ECANCELED, worker_join(&asker.worker));
    fake_pause(f, 0);
}

static void a_walk_ends_with_its_client(struct world *w)
{
    struct fake *f = fake_begin(w);
    assert_lk(0, lk_client_open(&asker.client, fake_url(f, "lease=120s&command_timeout=20s&connect_timeout=20s")));
    assert_lk(0, lk_inspect_open(&asker.walk, asker.client, NULL));
    fake_answer(f, "EVALSHA", "*7\r\n:4\r\n:1700000000000000\r\n:#\r\n$1\r\n5\r\n:0\r\n:9\r\n$0\r\n\r\n");
    close_meanwhile(f, walk_on);
    lk_inspect_close(asker.walk);
}

/* A page of them after the other, each full. */
static void answer_pages(struct fake *f, const char *element)
{
    char page[2048] = "*54\r\n:4\r\n:1700000000000000\r\n:#\r\n:30000\r\n";
    for (int i = 0; i < PAGE; i++)
        strcat(page, element);
    fake_answer(f, "EVALSHA", page);
}

static void so_does_a_list_of_holders(struct world *w)
{
    struct fake *f = fake_begin(w);
    assert_lk(0, lk_client_open(&asker.client, fake_url(f, "lease=120s&command_timeout=20s&connect_timeout=20s")));
    answer_pages(f, "$9\r\n900 a:1:1\r\n");
    close_meanwhile(f, list_on);
}

static int queue_on(void *arg)
{
    static lk_waiter_t waiters[MANY];
    const struct asker *its = arg;
    unsigned count;
    return lk_mutex_queue(its->mutex, waiters, sizeof *waiters, MANY, &count);
}

static void so_does_a_list_of_waiters(struct world *w)
{
    struct fake *f = fake_begin(w);
    lk_mutex_t orders;
    assert_lk(0, lk_client_open(&asker.client, fake_url(f, "lease=120s&command_timeout=20s&connect_timeout=20s")));
    assert_lk(0, lk_mutex_init(&orders, asker.client, "orders", NULL));
    asker.mutex = &orders;
    answer_pages(f, "$5\r\na:1:1\r\n");
    close_meanwhile(f, queue_on);
    assert_lk(0, lk_mutex_destroy(&orders));
}

/* --- closed under many ---------------------------------------------------------------------------------------------- */

enum { ASKERS = 8, ROUNDS = SANITIZED ? 40 : 400 };

static atomic_int rounds;

static int ask_for_text(int (*ask)(lk_client_t *client, char **text))
{
    char *text;
    int rc = ask(asker.client, &text);
    if (rc == 0)
        lk_free(text);
    return rc;
}

static int metrics_of_ten(lk_client_t *client, char **text)
{
    return lk_client_metrics(client, 10, text);
}

static int walk_to_the_end(void)
{
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspect_t *walk;
    int rc = lk_inspect_open(&walk, asker.client, NULL);
    if (rc != 0)
        return rc;
    while ((rc = lk_inspect_next(walk, &object)) == 0)
        ;
    lk_inspect_close(walk);
    return rc == ENOENT ? 0 : rc;
}

static int ask_once(int what)
{
    lk_holder_t holder;
    unsigned count;
    switch (what) {
    case 0:
        return ask_for_text(metrics_of_ten);
    case 1:
        return ask_for_text(lk_client_stats);
    case 2:
        return lk_inspect_holders(asker.client, LK_KIND_MUTEX, "orders", &holder, sizeof holder, 1, &count);
    default:
        return walk_to_the_end();
    }
}

static int ask_until_it_is_closed(int index, void *arg)
{
    int rc;
    (void)arg;
    while ((rc = ask_once(index % 4)) == 0)
        atomic_fetch_add(&rounds, 1);
    return rc == ECANCELED ? 0 : rc;
}

static int ask_all_of_it(void *arg)
{
    return run_threads(ASKERS, ask_until_it_is_closed, arg);
}

/* A walk that is open keeps the client's memory, so that who comes late is told, and not only who is in a call. */
static void who_asks_is_told_that_it_is_closed(struct world *w)
{
    lk_mutex_t orders;
    atomic_store(&rounds, 0);
    assert_lk(0, lk_client_open(&asker.client, world_url(w, "connect_timeout=10s&lease=20s&command_timeout=6s")));
    assert_lk(0, lk_mutex_init(&orders, asker.client, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_inspect_open(&asker.walk, asker.client, NULL));
    worker_start(&asker.worker, ask_all_of_it, NULL);
    eventually(atomic_load(&rounds) >= ROUNDS, 20000);
    assert_lk(0, lk_client_close(asker.client));
    assert_lk(0, worker_join(&asker.worker));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(ECANCELED, ask_once(0));
    lk_inspect_close(asker.walk);
}

/* --- a survey ------------------------------------------------------------------------------------------------------- */

static int survey_once(int index, void *arg)
{
    const lk_clientattr_t attr = { .size = sizeof attr, .url = arg };
    char *text;
    (void)index;
    int rc = lk_survey(&attr, &text);
    if (rc == 0)
        lk_free(text);
    return rc;
}

static void many_surveys_at_once(struct world *w)
{
    assert_lk(0, run_threads(SANITIZED ? 10 : 40, survey_once, (void *)world_url(w, "connect_timeout=20s")));
}

/* A survey whose answer gets lost, or whose server stands still or ends, says so in its time and leaves nothing. */
static void a_survey_is_cut_short(struct world *w)
{
    static const enum proxy_fault faults[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_DROP_REPLY };
    struct proxy *p = proxy_begin(w);
    char url[256];
    snprintf(url, sizeof url, "%s", proxy_url(p, "connect_timeout=700ms"));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        proxy_once(p, faults[i], 1, "INFO");
        for (int64_t until_ms = now_ms() + 20000; proxy_faults(p) == (int)i && now_ms() < until_ms;) {
            int64_t began_ms = now_ms();
            int rc = survey_once(0, url);
            assert_true(rc == 0 || rc == ENOTCONN);
            assert_between(now_ms() - began_ms, 0, 2 * 700 + 2 * SLACK_MS);
        }
        assert_int_equal(i + 1, proxy_faults(p));
    }
    proxy_stall(p, PROXY_DOWN);
    assert_lk(ENOTCONN, survey_once(0, url));
    proxy_resume(p);
    world_kill_server(w);
    assert_lk(ENOTCONN, survey_once(0, url));
    world_restart_server(w);
    eventually(survey_once(0, url) == 0, 20000);
}

/* --- forked ------------------------------------------------------------------------------------------------------- */

static lk_mutex_t *begin_walk(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *bills = world_mutex(w, client, "bills", NULL);
    lk_inspected_t object = LK_INSPECTED_INIT;
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(bills));
    asker = (struct asker){ .client = client, .mutex = bills };
    assert_lk(0, lk_inspect_open(&asker.walk, client, NULL));
    assert_lk(0, lk_inspect_next(asker.walk, &object));
    return orders;
}

static int use_what_the_parent_has(struct world *w)
{
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    lk_clientattr_t attr = { .size = sizeof attr, .url = world_url(w, "connect_timeout=20s") };
    lk_inspect_t *another = NULL;
    unsigned count = 77;
    char *text = NULL;
    in_child = true;
    assert_lk(ECANCELED, lk_inspect_next(asker.walk, &object));
    assert_lk(0, lk_inspect_stats(asker.walk, &stats));
    assert_lk(ECANCELED, lk_inspect_open(&another, asker.client, NULL));
    assert_lk(ECANCELED, lk_inspect_holders(asker.client, LK_KIND_MUTEX, "orders", NULL, 0, 0, &count));
    assert_lk(ECANCELED, lk_client_metrics(asker.client, 10, &text));
    assert_that(stats.servers == 1 && another == NULL && count == 77 && text == NULL);
    if (!THREAD_SANITIZED) { /* which cannot follow threads that a child starts */
        assert_lk(0, lk_survey(&attr, &text)); /* it opens a client of its own */
        lk_free(text);
    }
    assert_lk(0, lk_client_close(asker.client));
    lk_inspect_close(asker.walk);
    return 0;
}

/* The child can end a walk and no more; the parent's goes on. */
static void a_child_walks_no_further(struct world *w)
{
    lk_mutex_t *orders = begin_walk(w);
    lk_inspected_t object = LK_INSPECTED_INIT;
    int status;
    world_rest();
    pid_t pid = fork();
    if (pid == 0)
        _exit(use_what_the_parent_has(w));
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_int_equal(0, status);
    assert_lk(0, lk_inspect_next(asker.walk, &object));
    assert_lk(ENOENT, lk_inspect_next(asker.walk, &object));
    lk_inspect_close(asker.walk);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(asker.mutex));
}

/* --- small stacks ------------------------------------------------------------------------------------------------- */

static const char *here;

/* 0, or which call failed. */
static intptr_t look_at_all(void)
{
    lk_clientattr_t attr = { .size = sizeof attr, .url = here };
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspect_t *walk;
    lk_holder_t holder;
    unsigned count;
    char *text;
    int found = 0;
    if (lk_survey(&attr, &text) != 0)
        return 1;
    lk_free(text);
    if (lk_client_metrics(asker.client, LK_METRICS_OBJECTS_MAX, &text) != 0)
        return 2;
    lk_free(text);
    if (lk_inspect_holders(asker.client, LK_KIND_MUTEX, "bills", &holder, sizeof holder, 1, &count) != 0 || count != 1)
        return 3;
    if (lk_inspect_open(&walk, asker.client, NULL) != 0)
        return 4;
    while (lk_inspect_next(walk, &object) == 0)
        found++;
    lk_inspect_close(walk);
    return found == 2 ? 0 : 5;
}

static void *look_at_all_there(void *arg)
{
    (void)arg;
    return (void *)look_at_all();
}

static void a_small_stack_is_enough(struct world *w)
{
    pthread_attr_t attr;
    pthread_t thread;
    void *failed;
    if (SANITIZED)
        skip(); /* sanitizers need more stack than that for themselves */
    lk_mutex_t *orders = begin_walk(w);
    here = world_url(w, "connect_timeout=20s");
    pthread_attr_init(&attr);
    assert_int_equal(0, pthread_attr_setstacksize(&attr, 16384));
    assert_int_equal(0, pthread_create(&thread, &attr, look_at_all_there, NULL));
    pthread_join(thread, &failed);
    pthread_attr_destroy(&attr);
    assert_int_equal(0, (intptr_t)failed);
    lk_inspect_close(asker.walk);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(asker.mutex));
}

/* --- many at once ------------------------------------------------------------------------------------------------- */

enum { CROWD = SANITIZED ? 100 : 500 };

/* One of the threads opens the default client. */
static int walk_by_default(int index, void *arg)
{
    lk_client_t *client, **users = arg;
    lk_inspect_t *walk;
    lk_inspected_t object = LK_INSPECTED_INIT;
    char *text;
    int rc = lk_client_default(&client);
    if (rc == 0)
        rc = lk_inspect_open(&walk, client, NULL);
    if (rc != 0)
        return rc;
    users[index] = client;
    rc = lk_inspect_next(walk, &object);
    lk_inspect_close(walk);
    if (rc == 0 && strcmp(object.name, "x") == 0 && (rc = lk_client_metrics(client, 1, &text)) == 0)
        lk_free(text);
    return rc;
}

static void many_threads_begin_with_a_walk(struct world *w)
{
    static lk_client_t *users[CROWD];
    world_redis(w, "SET latchkey:robust:mutex:{x} y");
    assert_int_equal(0, setenv("LATCHKEY_URL", world_url(w, "connect_timeout=10s&command_timeout=9s"), 1));
    assert_lk(0, run_threads(CROWD, walk_by_default, users));
    for (int i = 0; i < CROWD; i++) {
        assert_ptr_equal(users[0], users[i]);
        assert_lk(0, lk_client_close(users[i]));
    }
    world_redis(w, "DEL latchkey:robust:mutex:{x}");
}

int main(void)
{
    return world_run(a_walk_ends_with_its_client, so_does_a_list_of_holders, so_does_a_list_of_waiters,
                     who_asks_is_told_that_it_is_closed, many_surveys_at_once, a_survey_is_cut_short,
                     a_child_walks_no_further, a_small_stack_is_enough, many_threads_begin_with_a_walk);
}
