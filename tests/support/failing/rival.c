/* SPDX-License-Identifier: MIT */
/* rival.c - somebody else who holds what the test wants */
#include "failing/failing.h"

static int hold_for_a_while(void *arg)
{
    struct rival *rival = arg;
    failing_spare(1);
    int rc = rival->take();
    atomic_store(&rival->holds, true);
    sleep_ms(rival->hold_ms);
    return rc != 0 ? rc : rival->give();
}

void rival_start(struct rival *rival, int (*take)(void), int (*give)(void), int64_t hold_ms)
{
    *rival = (struct rival){ .take = take, .give = give, .hold_ms = hold_ms };
    worker_start(&rival->worker, hold_for_a_while, rival);
    eventually(atomic_load(&rival->holds), 5000);
}

void rival_end(struct rival *rival)
{
    assert_that(worker_join(&rival->worker) == 0);
}
