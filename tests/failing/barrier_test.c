/* SPDX-License-Identifier: MIT */
/*
 * barrier_test.c - every allocation and every system call fails while two meet at a barrier: both pass, or the round breaks
 *
 * The other party is none of this process, whose calls all fail together: what it does at the server is done by hand.
 *
 * labels: memory
 * simulated: yes
 * seconds: 46
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

#include <string.h>

#define STATE "latchkey:barrier:{stage}"
#define PARTIES "latchkey:parties:{stage}"

static lk_client_t *client;
static lk_barrier_t *mine;
static struct world *world;
static atomic_bool over;

/* A connection that is cut in vain is waited for at each leave: not for long. */
static const char *options(void)
{
    return failing_patience_ms() < 1000 ? "lease=1500ms&connect_timeout=1500ms&command_timeout=300ms&poll=100ms"
                                        : failing_options();
}

static void begin(struct world *w)
{
    world = w;
    client = world_client(w, options());
    mine = world_barrier(w, client, "stage", 2, NULL);
}

static void end(struct world *w)
{
    world_close(w, client);
    world_redis(w, "DEL " STATE " " PARTIES " latchkey:past:{stage} latchkey:once:{stage}");
}

static int positive(int code)
{
    return code == LK_BARRIER_SERIAL ? EEXIST : code; /* a code that no wait returns */
}

/* The other one waits already: this one is the serial party. */
static void come_last(struct world *w)
{
    begin(w);
    world_redis(w, "HSET " STATE " parties 2 generation 5 first 5 ended 0 before 0 broken %s", "");
    world_redis(w, "ZADD " PARTIES " 99999999999999 other");
    failing_begin();
    int rc = tried(EEXIST, positive(lk_barrier_waitfor(mine, failing_patience_ms())), ENOMEM, UNREACHABLE, ETIMEDOUT);
    int64_t generation = spared(world_int(w, "HGET " STATE " generation"));
    failing_end();
    assert_that(rc == EIO || generation == (rc == EEXIST ? 6 : 5));
    end(w);
}

/* As soon as somebody waits, the other one comes. */
static int come_later(void *arg)
{
    (void)arg;
    failing_spare(1);
    while (!atomic_load(&over) &&
           world_int(world, "EVAL %s 2 " STATE " " PARTIES " latchkey:met:{stage}",
                     "if redis.call('ZCARD', KEYS[2]) == 0 then return 0 end "
                     "redis.call('HINCRBY', KEYS[1], 'generation', 1) redis.call('DEL', KEYS[2]) "
                     "redis.call('PUBLISH', ARGV[1], '0') return 1") == 0)
        sleep_ms(2);
    return 0;
}

static void wait_for_other(struct world *w)
{
    struct worker other;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    begin(w);
    atomic_store(&over, false);
    worker_start(&other, come_later, NULL);
    failing_begin();
    tried(0, positive(lk_barrier_waitfor(mine, failing_patience_ms())), ENOMEM, UNREACHABLE, ETIMEDOUT, ECANCELED);
    atomic_store(&over, true);
    spared(worker_join(&other));
    tried(0, lk_barrier_info(mine, &info), ENOMEM, UNREACHABLE);
    tried(0, lk_barrier_reset(mine), ENOMEM, UNREACHABLE);
    failing_end();
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    world_redis(w, "PING"); /* the connection of this test is there from now on */
    each_failure(w, "last", kind, come_last);
    each_failure(w, "wait", kind, wait_for_other);
}

int main(void)
{
    return all_failures(all_of);
}
