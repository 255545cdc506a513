/* SPDX-License-Identifier: MIT */
/*
 * memory_test.c - any one allocation fails: ENOMEM, nothing happened, nothing leaked
 *
 * labels: memory
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_latch_t gate;

/* Each call, with the code it has when no allocation fails. */
static int make(void)
{
    return lk_latch_init(&gate, client, "gate", NULL);
}

static int set(void)
{
    return lk_latch_trysetcount(&gate, 2);
}

static int count(void)
{
    unsigned n;
    return lk_latch_getcount(&gate, &n);
}

static int try(void)
{
    return lk_latch_waitfor(&gate, 1);
}

static int down(void)
{
    return lk_latch_countdown(&gate);
}

static int look(void)
{
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    return lk_latch_info(&gate, &info);
}

static int drop(void)
{
    return lk_latch_delete(&gate);
}

/* `count_after` is what Redis has when the call succeeded; before that it must be `count_before`. */
static void fail_each_allocation(struct world *w, int (*call)(void), int expected, int64_t count_before,
                                 int64_t count_after)
{
    for (int n = 1; n < 1000; n++) {
        failing_plan(&(struct failure){ .kind = FAIL_ALLOCATION, .nth = n });
        failing_begin();
        int rc = call();
        failing_end();
        if (!failing_happened()) {
            assert_int_equal(expected, rc);
            assert_int_equal(count_after, world_int(w, "GET gate"));
            return;
        }
        if (rc == expected && count_before == count_after && call != make)
            continue; /* it could do without */
        if (rc == expected && count_after == world_int(w, "GET gate"))
            return;
        assert_int_equal(ENOMEM, rc);
        assert_int_equal(count_before, world_int(w, "GET gate"));
    }
    fail_msg("it allocates for ever");
}

static void every_allocation_may_fail(struct world *w)
{
    client = world_client(w, "poll=100ms");
    fail_each_allocation(w, make, 0, -1, -1);
    fail_each_allocation(w, set, 0, -1, 2);
    fail_each_allocation(w, count, 0, 2, 2);
    fail_each_allocation(w, try, ETIMEDOUT, 2, 2);
    fail_each_allocation(w, down, 0, 2, 1);
    fail_each_allocation(w, look, 0, 1, 1);
    fail_each_allocation(w, drop, 0, 1, -1);
    assert_lk(0, lk_latch_destroy(&gate));
}

int main(void)
{
    return failing_run(every_allocation_may_fail);
}
