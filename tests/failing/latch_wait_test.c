/* SPDX-License-Identifier: MIT */
/*
 * latch_wait_test.c - every allocation and every system call fails while a latch is waited for
 *
 * labels: memory
 * seconds: 22
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

#define LEASE_MS FAILING_LEASE_MS
#define UNREACHABLE ENOTCONN, EIO

static lk_client_t *client, *other;
static lk_latch_t gate, theirs;

static void begin(struct world *w)
{
    client = world_open(w, failing_options());
    assert_lk(0, lk_latch_init(&gate, client, "gate", NULL));
}

static void end(struct world *w)
{
    assert_lk(0, lk_latch_destroy(&gate));
    assert_lk(0, lk_client_close(client));
    world_redis(w, "DEL gate latchkey:opened:{gate} latchkey:once:{gate}");
}

static int begin_theirs(void)
{
    return lk_latch_trysetcount(&theirs, 1);
}

static int count_theirs(void)
{
    return lk_latch_countdown(&theirs);
}

static void wait_until_it_opens(struct world *w)
{
    struct rival rival;
    begin(w);
    rival_start(&rival, begin_theirs, count_theirs, 20);
    failing_begin();
    tried(0, lk_latch_waitfor(&gate, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT);
    failing_end();
    rival_end(&rival);
    assert_lk(0, lk_latch_waitfor(&gate, 5000));
    end(w);
}

static void wait_in_vain(struct world *w)
{
    begin(w);
    assert_lk(0, lk_latch_trysetcount(&gate, 1));
    failing_begin();
    tried(ETIMEDOUT, lk_latch_waitfor(&gate, 15), ENOMEM, UNREACHABLE);
    failing_end();
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    other = world_open(w, "lease=20s");
    assert_lk(0, lk_latch_init(&theirs, other, "gate", NULL));
    each_failure(w, "wait", kind, LEASE_MS, wait_until_it_opens);
    assert_lk(0, lk_latch_destroy(&theirs));
    assert_lk(0, lk_client_close(other));
    each_failure(w, "timeout", kind, LEASE_MS, wait_in_vain);
}

int main(void)
{
    return all_failures(all_of);
}
