/* SPDX-License-Identifier: MIT */
/*
 * latch_wait_test.c - every allocation and every system call fails while a latch is waited for
 *
 * labels: memory
 * simulated: yes
 * seconds: 38
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_latch_t *gate, *theirs;

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

static int begin_theirs(void)
{
    return lk_latch_trysetcount(theirs, 1);
}

static int count_theirs(void)
{
    return lk_latch_countdown(theirs);
}

static void wait_until_it_opens(struct world *w)
{
    struct rival rival;
    begin(w);
    rival_start(&rival, begin_theirs, count_theirs, 20);
    failing_begin();
    tried(0, lk_latch_waitfor(gate, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT);
    failing_end();
    rival_end(&rival);
    assert_lk(0, lk_latch_waitfor(gate, 5000));
    end(w);
}

static int nothing_yet(void)
{
    return 0;
}

static int set_and_open_theirs(void)
{
    int rc = lk_latch_trysetcount(theirs, 1);
    return rc == 0 ? lk_latch_countdown(theirs) : rc;
}

/* It waits for a count before there is one. */
static void wait_until_it_appears(struct world *w)
{
    struct rival rival;
    begin_with(w, &(lk_latchattr_t){ .size = sizeof(lk_latchattr_t), .appear = 1 });
    rival_start(&rival, nothing_yet, set_and_open_theirs, 20);
    failing_begin();
    tried(0, lk_latch_waitfor(gate, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT);
    failing_end();
    rival_end(&rival);
    assert_lk(0, lk_latch_waitfor(gate, 5000));
    end(w);
}

static void wait_in_vain(struct world *w)
{
    begin(w);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    failing_begin();
    tried(ETIMEDOUT, lk_latch_waitfor(gate, 15), ENOMEM, UNREACHABLE);
    failing_end();
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    lk_client_t *other = world_client(w, "lease=20s");
    theirs = world_latch(w, other, "gate");
    each_failure(w, "wait", kind, wait_until_it_opens);
    each_failure(w, "appear", kind, wait_until_it_appears);
    world_close(w, other);
    each_failure(w, "timeout", kind, wait_in_vain);
}

int main(void)
{
    return all_failures(all_of);
}
