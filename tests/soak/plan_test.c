/* SPDX-License-Identifier: MIT */
/*
 * plan_test.c - what a soak does to its servers, network and processes follows from the seed, and is enough
 */
#include "driver.h"

#include <string.h>

#define ROOM 512
#define STORM_MS 53000 /* of a round of a minute */
#define SEEDS 200

static int plan_of(uint64_t seed, enum deployment deployment, struct fault *plan)
{
    struct table table = { .seed = seed,
                           .processes = 4,
                           .threads = 6,
                           .lease_ms = deployment != SINGLE_SERVER ? 2000 : 1000,
                           .deployment = deployment };
    memset(plan, 0, ROOM * sizeof *plan);
    return plan_make(plan, ROOM, &table, STORM_MS);
}

static void a_seed_makes_the_same_plan_again(void)
{
    static struct fault first[ROOM], again[ROOM], other[ROOM];
    assert_int_equal(plan_of(7, SINGLE_SERVER, first), plan_of(7, SINGLE_SERVER, again));
    assert_memory_equal(first, again, sizeof first);
    plan_of(8, SINGLE_SERVER, other);
    assert_memory_not_equal(first, other, sizeof first);
}

/* A server must be able to take the order that ends a fault, and the storm has an end. */
static void check_plan(const struct fault *plan, int count, int drawn[FAULT_KINDS])
{
    int free_ms = 0;
    for (int i = 0; i < count; i++) {
        drawn[plan[i].kind]++;
        assert_true(plan[i].at_ms + plan[i].length_ms <= STORM_MS);
        if (plan[i].kind < STOP_SERVER)
            continue;
        assert_true(plan[i].at_ms >= free_ms);
        free_ms = plan[i].at_ms + plan[i].length_ms;
    }
}

/* Where servers replace each other there are no proxies, nor orders that a single server would take. */
static void each_deployment_has_all_faults_of_its_own_one_at_a_time(void)
{
    static const int first[] = { CUT, KILL_MASTER, KILL_NODE }, behind[] = { KILL_MASTER, KILL_NODE, LOST_PATIENCE };
    static struct fault plan[ROOM];
    for (int deployment = 0; deployment < 3; deployment++) {
        int drawn[FAULT_KINDS] = { 0 };
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            int count = plan_of(seed, (enum deployment)deployment, plan);
            assert_in_range(count, deployment == SINGLE_SERVER ? 30 : 5, ROOM);
            check_plan(plan, count, drawn);
        }
        for (int kind = 0; kind < FAULT_KINDS; kind++)
            if (kind != CANCEL_THREAD)
                assert_int_equal(drawn[kind] > 0,
                                 kind < CUT || (kind >= first[deployment] && kind < behind[deployment]));
    }
}

int main(void)
{
    return plain_run(a_seed_makes_the_same_plan_again, each_deployment_has_all_faults_of_its_own_one_at_a_time);
}
