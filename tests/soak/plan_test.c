/* SPDX-License-Identifier: MIT */
/*
 * plan_test.c - what a soak does to its server, network and processes follows from the seed, and is enough
 */
#include "nemesis.h"

#include <string.h>

#define ROOM 512
#define STORM_MS 53000 /* of a round of a minute */

static int plan_with(uint64_t seed, struct fault *plan, enum deployment deployment)
{
    struct table table = {
        .seed = seed,
        .processes = 4,
        .threads = 6,
        .lease_ms = deployment != SINGLE_SERVER ? 2000 : 1000,
        .deployment = deployment,
    };
    memset(plan, 0, ROOM * sizeof *plan);
    return plan_make(plan, ROOM, &table, STORM_MS);
}

static int plan_of(uint64_t seed, struct fault *plan)
{
    return plan_with(seed, plan, SINGLE_SERVER);
}

static void a_seed_makes_the_same_plan_again(void)
{
    static struct fault first[ROOM], again[ROOM], other[ROOM];
    assert_int_equal(plan_of(7, first), plan_of(7, again));
    assert_memory_equal(first, again, sizeof first);
    plan_of(8, other);
    assert_memory_not_equal(first, other, sizeof first);
}

static void each_minute_has_faults_enough_and_all_are_drawn(void)
{
    static struct fault plan[ROOM];
    int drawn[FAULT_KINDS] = { 0 };
    for (uint64_t seed = 0; seed < 200; seed++) {
        int count = plan_of(seed, plan);
        assert_in_range(count, 30, ROOM);
        for (int i = 0; i < count; i++)
            drawn[plan[i].kind]++;
    }
    for (int kind = 0; kind < KILL_MASTER; kind++)
        if (drawn[kind] == 0 && !(kind == CANCEL_THREAD && SANITIZED))
            fail_msg("never drawn: %s", fault_name(kind));
}

/* Where servers replace each other there are no proxies, nor orders that a single server would take. */
static void servers_that_replace_each_other_have_their_own_faults(void)
{
    static const struct {
        enum deployment deployment;
        int first, behind;
    } own[] = { { SENTINELS, KILL_MASTER, KILL_NODE }, { CLUSTER, KILL_NODE, LOST_PATIENCE } };
    static struct fault plan[ROOM];
    for (size_t which = 0; which < sizeof own / sizeof own[0]; which++) {
        int drawn[FAULT_KINDS] = { 0 };
        for (uint64_t seed = 0; seed < 200; seed++)
            for (int i = 0, count = plan_with(seed, plan, own[which].deployment); i < count; i++)
                drawn[plan[i].kind]++;
        for (int kind = 0; kind < LOST_PATIENCE; kind++)
            if (kind != CANCEL_THREAD)
                assert_int_equal(drawn[kind] > 0, kind < CUT || (kind >= own[which].first && kind < own[which].behind));
    }
}

/* The server must be able to take the order that ends a fault, and the storm has an end. */
static void a_server_has_one_fault_at_a_time_and_calm_at_last(void)
{
    static struct fault plan[ROOM];
    for (uint64_t seed = 0; seed < 200; seed++) {
        int count = plan_of(seed, plan), free_ms = 0;
        for (int i = 0; i < count; i++) {
            assert_true(plan[i].at_ms + plan[i].length_ms <= STORM_MS);
            if (plan[i].kind < STOP_SERVER)
                continue;
            assert_true(plan[i].at_ms >= free_ms);
            free_ms = plan[i].at_ms + plan[i].length_ms;
        }
    }
}

int main(void)
{
    return plain_run(a_seed_makes_the_same_plan_again, each_minute_has_faults_enough_and_all_are_drawn,
                     servers_that_replace_each_other_have_their_own_faults,
                     a_server_has_one_fault_at_a_time_and_calm_at_last);
}
