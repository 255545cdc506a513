/* SPDX-License-Identifier: MIT */
/*
 * many_names_test.c - a hundred thousand names, and thousands of permits of one: the k-th costs what the first did
 *
 * labels: memory
 */
#include "process.h"
#include "world.h"

#include <stdio.h>

enum { NAMES = SANITIZED ? 20000 : 100000, PERMITS = SANITIZED ? 4000 : 16000, SOME = 1000, TIMES = SANITIZED ? 8 : 4 };

/* --- names ------------------------------------------------------------------------------------------------------ */

static lk_client_t *client;
static lk_mutex_t mutexes[NAMES];

static void name_them(int from, int to)
{
    for (int i = from; i < to; i++) {
        char name[24];
        snprintf(name, sizeof name, "order-%d", i);
        assert_lk(0, lk_mutex_init(&mutexes[i], client, name, NULL));
    }
}

static void destroy_them(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_lk(0, lk_mutex_destroy(&mutexes[i]));
}

/* CPU time of making the last SOME of `count` names and of destroying them, the rest being there. */
static int64_t cost_of_names(int count)
{
    int64_t began_us = cpu_us();
    name_them(count - SOME, count);
    destroy_them(count - SOME, count);
    return cpu_us() - began_us;
}

static void the_number_of_names_does_not_matter(struct world *w)
{
    client = world_client(w, "");
    int64_t few_us = cost_of_names(SOME);
    name_them(0, NAMES - SOME);
    int64_t many_us = cost_of_names(NAMES);
    print_message("%d names: %lld us, beside %d: %lld us\n", SOME, (long long)few_us, NAMES, (long long)many_us);
    assert_between(many_us, 0, TIMES * few_us);
    assert_lk(0, lk_mutex_lock(&mutexes[NAMES / 2]));
    assert_lk(0, lk_mutex_unlock(&mutexes[NAMES / 2]));
    destroy_them(0, NAMES - SOME);
}

/* --- permits ---------------------------------------------------------------------------------------------------- */

static lk_sem_t *permits;
static char ids[PERMITS][LK_PERMIT_ID];

static void acquire(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_lk(0, lk_sem_acquireid(permits, 5000, ids[i]));
}

static void release(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_lk(0, lk_sem_releaseid(permits, ids[i]));
}

/* CPU time in this client of the last permits of `count` and of giving them back, the rest being held. */
static int64_t cost_of_permits(int count)
{
    int64_t began_us = cpu_us();
    acquire(count - SOME, count);
    release(count - SOME, count);
    return cpu_us() - began_us;
}

static void the_number_of_permits_does_not_matter(struct world *w)
{
    const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    client = world_client(w, "lease=1h&command_timeout=5s");
    world_allow(w, "latchkey:total:*");
    permits = world_sem(w, client, "permits", PERMITS, &leased);
    int64_t few_us = cost_of_permits(SOME);
    acquire(0, PERMITS - SOME);
    int64_t many_us = cost_of_permits(PERMITS);
    print_message("%d permits: %lld us, beside %d: %lld us\n", SOME, (long long)few_us, PERMITS, (long long)many_us);
    assert_between(many_us, 0, TIMES * few_us);
    release(0, PERMITS - SOME);
}

int main(void)
{
    return world_run(the_number_of_names_does_not_matter, the_number_of_permits_does_not_matter);
}
