/* SPDX-License-Identifier: MIT */
/*
 * refused_test.c - what a server refused was not done, unless an earlier copy was; and that stays known
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

#include <string.h>

enum { COMMAND_MS = 2200, WAY_MS = 200 }; /* with its proof a refusal takes four ways: there is no time for another */

static lk_client_t *client;
static lk_sem_t *pool;
static lk_rwlock_t *config;

static struct proxy *open_all(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    world_allow(w, "pool");
    client = proxy_client(p, "lease=20s&command_timeout=2200ms&retry_max=50ms");
    pool = world_sem(w, client, "pool", 1, NULL);
    config = world_rwlock(w, client, "config", NULL);
    return p;
}

static void refuse_writes(struct world *w, bool refuse)
{
    world_redis(w, "CONFIG SET min-replicas-to-write %d", refuse);
}

/* It is not tried once more when an answer could not come in time: that would turn "not done" into "unknown". */
static void a_slow_refusal_is_known(struct world *w)
{
    struct proxy *p = open_all(w);
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_post(pool)); /* the server knows the script from now on */
    assert_lk(0, lk_sem_wait(pool));
    refuse_writes(w, true);
    proxy_delay(p, WAY_MS);
    for (int i = 0; i < 3; i++) {
        int64_t began_ms = now_ms();
        assert_lk(ENOTCONN, lk_sem_post(pool));
        assert_between(now_ms() - began_ms, 0, COMMAND_MS + SLACK_MS);
    }
    assert_int_equal(0, world_int(w, "GET pool"));
    proxy_delay(p, 0);
    refuse_writes(w, false);
    assert_lk(0, lk_sem_post(pool));
    assert_int_equal(1, world_int(w, "GET pool"));
}

/* What the writer and the test tell each other. */
struct steps {
    struct gate writes, goes_down, is_down, gives_back;
};

static int write_and_go_down(void *arg)
{
    struct steps *steps = arg;
    int rc = lk_rwlock_wrlock(config);
    gate_open(&steps->writes);
    while (!gate_is_open(&steps->goes_down))
        sleep_ms(1);
    int code = lk_rwlock_downgrade(config);
    gate_open(&steps->is_down);
    while (!gate_is_open(&steps->gives_back))
        sleep_ms(1);
    rc = rc != 0 ? rc : lk_rwlock_unlock(config);
    return code == EIO ? rc : -1;
}

/* The downgrade was carried out: a reader has it. */
static bool is_read(struct world *w)
{
    const char *holder =
        world_str(w, "EVAL %s 1 latchkey:rw:{config}", "return redis.call('ZRANGE', KEYS[1], 0, 0)[1]");
    return holder[0] != '\0' && holder[strlen(holder) - 1] == 'r';
}

/* One copy was carried out, its answer got lost, the next copy was refused: unknown, not "unchanged". */
static void a_refused_copy_says_nothing_of_the_first(struct world *w)
{
    struct proxy *p = open_all(w);
    struct steps steps = { 0 };
    struct worker writer;
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_downgrade(config)); /* the server knows the script from now on */
    assert_lk(0, lk_rwlock_unlock(config));
    worker_start(&writer, write_and_go_down, &steps);
    gate_pass(&steps.writes);
    assert_false(is_read(w));
    proxy_once(p, PROXY_CUT_REPLY, 1, "config");
    proxy_refuse(p, true); /* the copy comes when writes are refused */
    gate_open(&steps.goes_down);
    eventually(is_read(w), 5000);
    refuse_writes(w, true);
    proxy_refuse(p, false);
    gate_pass(&steps.is_down);
    refuse_writes(w, false);
    gate_open(&steps.gives_back);
    assert_int_equal(0, worker_join(&writer));
}

static int write_soon(void *unused)
{
    (void)unused;
    int code = lk_rwlock_wrlockfor(config, 600);
    bool why = strstr(lk_errortext(), "NOPERM") != NULL && lk_errorsettles() > 0;
    return code == EACCES && !why ? -1 : code;
}

/* The right to run scripts goes while a writer waits. Its time is over before it asks again, and it may not leave. */
static void who_may_not_leave_the_queue_is_told_why(struct world *w)
{
    struct worker writer;
    open_all(w);
    assert_lk(0, lk_rwlock_wrlock(config));
    worker_start(&writer, write_soon, NULL);
    eventually(world_exists(w, "latchkey:queue:writers:{config}"), 5000);
    sleep_ms(300);
    world_redis(w, "ACL SETUSER default -eval -evalsha");
    assert_int_equal(EACCES, worker_join(&writer));
    world_redis(w, "ACL SETUSER default +eval +evalsha");
    assert_lk(0, lk_rwlock_unlock(config));
}

int main(void)
{
    return world_run(a_slow_refusal_is_known, a_refused_copy_says_nothing_of_the_first,
                     who_may_not_leave_the_queue_is_told_why);
}
