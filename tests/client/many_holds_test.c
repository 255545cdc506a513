/* SPDX-License-Identifier: MIT */
/*
 * many_holds_test.c - thousands of holds of one object in one client: the k-th costs what the first did
 *
 * labels: threads memory
 */
#include "object/handle.h"
#include "process.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 1000, MANY = 16000, TIMES = SANITIZED ? 8 : 4 };

static lk_client_t *client;
static lk_sem_t *permits;
static struct lk__object *object;
static struct lk__hold *holds[MANY];

static void open_permits(struct world *w)
{
    const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    client = world_client(w, "");
    permits = world_sem(w, client, "permits", MANY, &leased);
    object = ((const struct lk__binding *)permits->lk_impl)->object;
}

/* As lk_sem_acquireid() has it, without the server. */
static void take(int i, uint64_t owner)
{
    char fresh[LK__ID_LENGTH + 1];
    holds[i] = lk__object_newhold(object, owner, NULL);
    assert_non_null(holds[i]);
    assert_int_equal(0, lk__random_id(fresh));
    snprintf(holds[i]->lease.id, sizeof holds[i]->lease.id, "%s:0:%d:1:%s", client->id, i, fresh);
    holds[i]->holds = 1;
    lk__object_addhold(object, holds[i], lk__now_us() + 600000000, LK__NEVER);
}

static struct lk__hold *permit_of(int i)
{
    lk__mu_lock(&object->mu);
    struct lk__hold *found = lk__object_permit(object, strrchr(holds[i]->lease.id, ':') + 1);
    lk__mu_unlock(&object->mu);
    return found;
}

static void fill(int from, int to, uint64_t owner)
{
    for (int i = from; i < to; i++)
        take(i, owner);
}

/* CPU time of giving back and taking again some of the first `count`, which are there; found by their ids. */
static int64_t cost_of_permits(int count)
{
    int64_t began_us = cpu_us();
    for (int i = 0; i < FEW; i++) {
        int which = i * (count / FEW);
        assert_ptr_equal(holds[which], permit_of(which));
        lk__object_drophold(object, holds[which]);
        take(which, 0);
    }
    return cpu_us() - began_us;
}

static void the_number_of_permits_does_not_matter(struct world *w)
{
    open_permits(w);
    fill(0, FEW, 0);
    int64_t few_us = cost_of_permits(FEW);
    fill(FEW, MANY, 0);
    int64_t many_us = cost_of_permits(MANY);
    print_message("%d permits beside %d: %lld us, beside %d: %lld us\n", FEW, FEW, (long long)few_us, MANY,
                  (long long)many_us);
    assert_between(many_us, 0, TIMES * few_us);
    for (int i = 0; i < MANY; i++)
        lk__object_drophold(object, holds[i]);
}

/* Holds of one thread are given back in the order in which it took them. */
static void the_oldest_comes_first(struct world *w)
{
    enum { OWNER = 7, OTHER = 8, SOME = 5 };
    open_permits(w);
    fill(0, SOME, OWNER);
    fill(SOME, 2 * SOME, OTHER);
    assert_int_equal(SOME, lk__object_count(object, OWNER, 100));
    assert_in_range(lk__object_count(object, OWNER, 2), 2, SOME);
    lk__object_drophold(object, holds[2]); /* from the middle */
    static const int order[] = { 0, 1, 3, 4 };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        assert_ptr_equal(holds[order[i]], lk__object_hold(object, OWNER));
        assert_int_equal(SOME - 1 - i, lk__object_count(object, OWNER, 100));
        lk__object_drophold(object, holds[order[i]]);
    }
    assert_null(lk__object_hold(object, OWNER));
    for (int i = SOME; i < 2 * SOME; i++)
        lk__object_drophold(object, lk__object_hold(object, OTHER));
    assert_int_equal(0, object->owners.count);
}

int main(void)
{
    return world_run(the_number_of_permits_does_not_matter, the_oldest_comes_first);
}
