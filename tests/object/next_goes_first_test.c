/* SPDX-License-Identifier: MIT */
/*
 * next_goes_first_test.c - who hands something on lets the next holder have its processor, unless others take it then
 *
 * labels: threads
 * simulated: yes
 * seconds: 3
 */
#include "world.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { ROUNDS = 200, SLOW_MS = 3 };

static int yields, slow; /* atomic builtins */

/* In front of the C library's. Threads of the library's own yield to callers, and do not count. */
int sched_yield(void)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strncmp(name, "lk-", 3) == 0)
        return 0;
    __atomic_add_fetch(&yields, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&slow, __ATOMIC_SEQ_CST))
        sleep_ms(SLOW_MS);
    return 0;
}

/* How often it yielded while two clients hand a mutex to and fro. */
static int yields_of_two(struct world *w, int how)
{
    lk_mutex_t *orders[2];
    for (int i = 0; i < 2; i++)
        orders[i] = world_mutex(w, world_client(w, ""), "orders", NULL);
    yields = 0;
    slow = how;
    hand_to_and_fro(orders, ROUNDS);
    print_message("%d yields\n", yields);
    return yields;
}

static void where_nobody_waits_nobody_yields(struct world *w)
{
    yields = 0;
    assert_int_equal(0, lock_rounds(world_mutex(w, world_client(w, ""), "orders", NULL), ROUNDS));
    assert_true(NOISY || yields == 0);
}

static void the_next_one_goes_first(struct world *w)
{
    assert_true(yields_of_two(w, 0) > ROUNDS / 10);
}

/* Each client finds out once in a while. Noise yields by itself. */
static void a_busy_processor_is_kept(struct world *w)
{
    assert_in_range(yields_of_two(w, 1), 1, NOISY ? UINT_MAX : 10);
}

int main(void)
{
    return world_run(where_nobody_waits_nobody_yields, the_next_one_goes_first, a_busy_processor_is_kept);
}
