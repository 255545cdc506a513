/* SPDX-License-Identifier: MIT */
/*
 * latch_test.c - every allocation and every system call on the way of a latch fails: counted once or not at all
 *
 * labels: memory
 * simulated: yes
 * seconds: 25
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_latch_t *gate;

static void begin_with(struct world *w, const lk_latchattr_t *attr)
{
    client = world_client(w, failing_options());
    gate = world_latchwith(w, client, "gate", attr);
}

static void begin(struct world *w)
{
    begin_with(w, NULL);
}

static void end(struct world *w)
{
    world_close(w, client);
    world_redis(w, "DEL gate latchkey:opened:{gate} latchkey:once:{gate}");
}

/* `before` if the call failed, `after` if not; unknown: one of both. */
static void assert_count(struct world *w, int code, int64_t before, int64_t after)
{
    int64_t count = spared(world_int(w, "GET gate"));
    if (count != (code == 0 ? after : before) && !(code == EIO && (count == before || count == after)))
        assert_failed(__FILE__, __LINE__, "%s, and the count is %d", code_name(code), (int)count);
}

/* Nothing of what was given up as unknown may come later: set by hand what the next call finds. */
static int set_by_hand(struct world *w, int count)
{
    world_redis(w, "SET gate %d", count);
    return 0;
}

static void count(struct world *w)
{
    unsigned n;
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    begin(w);
    failing_begin();
    int rc = tried(0, lk_latch_trysetcount(gate, 2), ENOMEM, UNREACHABLE);
    assert_count(w, rc, -1, 2);
    if (rc == EIO)
        goto out;
    spared(set_by_hand(w, 2));
    tried(0, lk_latch_getcount(gate, &n), ENOMEM, UNREACHABLE);
    tried(0, lk_latch_info(gate, &info), ENOMEM, UNREACHABLE);
    rc = tried(0, lk_latch_countdown(gate), ENOMEM, UNREACHABLE);
    assert_count(w, rc, 2, 1);
    if (rc == EIO)
        goto out;
    spared(set_by_hand(w, 1));
    rc = tried(0, lk_latch_setcount(gate, 3), ENOMEM, UNREACHABLE);
    assert_count(w, rc, 1, 3);
    if (rc == EIO)
        goto out;
    spared(set_by_hand(w, 1));
    rc = tried(0, lk_latch_delete(gate), ENOMEM, UNREACHABLE);
    assert_count(w, rc, 1, -1);
out:
    failing_end();
    end(w);
}

/* A count is never there without its end. */
static void count_that_ends(struct world *w)
{
    begin_with(w, &(lk_latchattr_t){ .size = sizeof(lk_latchattr_t), .ttl_ms = FAILING_LONG_MS });
    failing_begin();
    int rc = tried(0, lk_latch_trysetcount(gate, 2), ENOMEM, UNREACHABLE);
    assert_count(w, rc, -1, 2);
    if (rc == 0)
        rc = tried(0, lk_latch_setcount(gate, 3), ENOMEM, UNREACHABLE);
    assert_that(spared(world_pttl(w, "gate")) != -1);
    failing_end();
    end(w);
}

static void anonymous(struct world *w)
{
    static const lk_latchattr_t attr = { .size = sizeof attr, .anonymous = 1 };
    lk_latch_t a;
    client = world_client(w, failing_options());
    failing_begin();
    if (tried(0, lk_latch_init(&a, client, NULL, &attr), ENOMEM) == 0) {
        if (tried(0, lk_latch_trysetcount(&a, 1), ENOMEM, UNREACHABLE, ESTALE) == 0)
            tried(0, lk_latch_countdown(&a), ENOMEM, UNREACHABLE, ESTALE);
        lk_latch_destroy(&a);
    }
    failing_end();
    world_close(w, client);
    /* It ended, or does with its lease; the record of a countdown that nobody answered has a minute. */
    eventually(world_elements(w, "KEYS *anonymous:*") == world_elements(w, "KEYS latchkey:once:{anonymous:*"),
               FAILING_LONG_MS);
    assert_int_equal(0, world_lasting(w));
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "count", kind, count);
    each_failure(w, "ttl", kind, count_that_ends);
    each_failure(w, "anonymous", kind, anonymous);
}

int main(void)
{
    return all_failures(all_of);
}
