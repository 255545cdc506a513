/* SPDX-License-Identifier: MIT */
/*
 * refused_test.c - what a server refused was not done, unless an earlier copy was; and that stays known
 *
 * labels: threads memory
 */
#include "proxy.h"

enum { COMMAND_MS = 1500, WAY_MS = 200 };

static lk_client_t *client;
static lk_sem_t *pool;
static lk_rwlock_t *config;

static struct proxy *open_all(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    world_allow(w, "pool");
    client = proxy_client(p, "lease=5s&command_timeout=1500ms&retry_max=50ms");
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

static int downgrade_and_unlock(void *arg)
{
    int code = lk_rwlock_downgrade(arg), rc = lk_rwlock_unlock(arg);
    return code == EIO ? rc : -1;
}

static int write_and_go_down(void *arg)
{
    struct gate *gates = arg;
    int rc = lk_rwlock_wrlock(config);
    gate_open(&gates[0]);
    while (!gate_is_open(&gates[1]))
        sleep_ms(1);
    return rc != 0 ? rc : downgrade_and_unlock(config);
}

/* One copy was carried out, its answer got lost, the next copy was refused: unknown, not "unchanged". */
static void a_refused_copy_says_nothing_of_the_first(struct world *w)
{
    struct proxy *p = open_all(w);
    struct gate gates[2] = { 0 };
    struct worker writer;
    worker_start(&writer, write_and_go_down, gates);
    gate_pass(&gates[0]);
    proxy_once(p, PROXY_CUT_REPLY, 1, "EVAL");
    proxy_delay(p, WAY_MS); /* the copy comes when writes are refused */
    gate_open(&gates[1]);
    eventually(world_int(w, "ZCOUNT latchkey:rw:{config} -inf +inf") == 1 && proxy_faults(p) == 1, 2000);
    refuse_writes(w, true);
    proxy_delay(p, 0);
    sleep_ms(COMMAND_MS);
    refuse_writes(w, false);
    assert_int_equal(0, worker_join(&writer));
}

int main(void)
{
    return world_run(a_slow_refusal_is_known, a_refused_copy_says_nothing_of_the_first);
}
