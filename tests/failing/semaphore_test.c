/* SPDX-License-Identifier: MIT */
/*
 * semaphore_test.c - every allocation and every system call on the way of a permit fails: none is taken without
 * its caller knowing, none is lost, and none is given back twice
 *
 * labels: memory
 * simulated: yes
 * seconds: 48
 * support: failing
 */
#include "failing/failing.h"

#include <fcntl.h>

#define TOTAL 3

static lk_client_t *client;
static lk_sem_t *s;
static unsigned taken; /* by us, as far as we were told */

static void begin(struct world *w, int leased)
{
    client = world_client(w, failing_options());
    s = world_sem(w, client, "s", TOTAL, &(lk_semattr_t){ .size = sizeof(lk_semattr_t), .leased = leased });
    taken = 0;
}

static void end(struct world *w)
{
    world_close(w, client);
    world_redis(w, "DEL s latchkey:total:{s} latchkey:total:sem:{s} latchkey:permits:{s} latchkey:queue:sem:{s} "
                   "latchkey:queue:permits:{s}");
}

static void take(unsigned n)
{
    if (tried(0, lk_sem_acquire(s, n, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        taken += n;
}

/* Of a counting semaphore: what was refused is still ours to give. */
static void give(unsigned n)
{
    if (taken < n)
        return;
    int rc = tried(0, lk_sem_release(s, n), ENOMEM, UNREACHABLE);
    if (rc == 0 || rc == EIO)
        taken -= n;
}

static void counting(struct world *w)
{
    int value;
    begin(w, 0);
    failing_begin();
    take(1);
    take(2);
    tried(0, lk_sem_getvalue(s, &value), ENOMEM, UNREACHABLE);
    give(2);
    give(1);
    failing_end();
    eventually(lk_sem_getvalue(s, &value) == 0, FAILING_LONG_MS); /* its connection is back */
    if (taken < TOTAL)
        assert_lk(0, lk_sem_acquire(s, TOTAL - taken, FAILING_LONG_MS)); /* what we do not have is there */
    assert_lk(0, lk_sem_release(s, TOTAL));
    assert_that(world_int(w, "GET s") == TOTAL);
    end(w);
}

static void draining(struct world *w)
{
    unsigned n = 0;
    int value;
    begin(w, 0);
    failing_begin();
    int rc = tried(0, lk_sem_drain(s, &n), ENOMEM, UNREACHABLE);
    failing_end();
    eventually(lk_sem_getvalue(s, &value) == 0, FAILING_LONG_MS); /* its connection is back */
    if (rc == 0)
        assert_lk(0, lk_sem_release(s, n));
    value = (int)world_int(w, "GET s"); /* unknown: all or nothing */
    assert_that(value == TOTAL || (rc == EIO && value == 0) || (rc != 0 && value == -1));
    end(w);
}

static void waiting_in_vain(struct world *w)
{
    int value;
    begin(w, 0);
    assert_lk(0, lk_sem_acquire(s, TOTAL, FAILING_LONG_MS));
    failing_begin();
    tried(ETIMEDOUT, lk_sem_waitfor(s, 15), ENOMEM, UNREACHABLE);
    failing_end();
    eventually(lk_sem_getvalue(s, &value) == 0, FAILING_LONG_MS); /* its connection is back */
    assert_lk(0, lk_sem_release(s, TOTAL));
    assert_lk(0, lk_sem_acquire(s, TOTAL, FAILING_LONG_MS));
    end(w);
}

/* Made, resized, deleted: each is done or not, and what nobody knows is one of the two. */
static void whole(struct world *w)
{
    lk_sem_t made;
    unsigned total = TOTAL;
    int deleted = -1;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    begin(w, 0);
    failing_begin();
    if (tried(0, lk_sem_open(&made, client, "s", O_CREAT, TOTAL, NULL), ENOMEM, UNREACHABLE) == 0) {
        tried(0, lk_sem_setpermits(&made, &total, 9), ENOMEM, UNREACHABLE);
        deleted = tried(0, lk_sem_delete(&made), ENOMEM, UNREACHABLE);
        lk_sem_destroy(&made);
    }
    failing_end();
    eventually(lk_sem_info(s, &info) == 0, FAILING_LONG_MS); /* its connection is back */
    assert_that(deleted != 0 || !info.exists);
    assert_that(info.total == 9 || info.total == TOTAL);
    end(w);
}

/* Set and added to: each once, or not at all. */
static void numbers(struct world *w)
{
    begin(w, 0);
    failing_begin();
    int set = tried(0, lk_sem_trysetpermits(s, 5), ENOMEM, UNREACHABLE);
    int added = tried(0, lk_sem_addpermits(s, 1), ENOMEM, UNREACHABLE);
    failing_end();
    assert_lk(0, lk_sem_acquire(s, TOTAL, FAILING_LONG_MS)); /* its connection is back */
    int64_t found = world_int(w, "GET s") + TOTAL;
    bool could_be_5 = set == 0 || set == EIO, could_be_3 = set != 0;
    bool could_add = added == 0 || added == EIO, could_leave = added != 0;
    assert_that((could_be_5 && ((could_add && found == 6) || (could_leave && found == 5))) ||
                (could_be_3 && ((could_add && found == TOTAL + 1) || (could_leave && found == TOTAL))));
    end(w);
}

static void anonymous(struct world *w)
{
    static const lk_semattr_t attr = { .size = sizeof attr, .anonymous = 1 };
    lk_sem_t a;
    client = world_client(w, failing_options());
    failing_begin();
    if (tried(0, lk_sem_init(&a, client, NULL, TOTAL, &attr), ENOMEM) == 0) {
        if (tried(0, lk_sem_acquire(&a, 1, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT, ESTALE) == 0)
            tried(0, lk_sem_post(&a), ENOMEM, UNREACHABLE, ESTALE);
        lk_sem_destroy(&a);
    }
    failing_end();
    world_close(w, client);
    /* It ended, or does with its lease; the record of a release that nobody answered has a minute. */
    eventually(world_elements(w, "KEYS *anonymous:*") == world_elements(w, "KEYS latchkey:once:{anonymous:*"),
               FAILING_LONG_MS);
    assert_int_equal(0, world_lasting(w));
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "counting", kind, counting);
    each_failure(w, "drain", kind, draining);
    each_failure(w, "timeout", kind, waiting_in_vain);
    each_failure(w, "whole", kind, whole);
    each_failure(w, "numbers", kind, numbers);
    each_failure(w, "anonymous", kind, anonymous);
}

int main(void)
{
    return all_failures(all_of);
}
