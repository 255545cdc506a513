/* SPDX-License-Identifier: MIT */
/*
 * barrier_test.c - latches, one for each round, let nobody through early, and nobody waits for ever
 *
 * labels: threads
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>

enum { PARTIES = 4, ROUNDS = SANITIZED ? 100 : 300 };

/* `parties` processes meet: each calls it with the same name, and with round 0, 1, 2 and so on. */
static int meet(const char *name, unsigned parties, unsigned long round)
{
    char full[LK_NAME_MAX + 1];
    lk_latch_t latch;
    snprintf(full, sizeof full, "%s:%lu", name, round);
    int rc = lk_latch_init(&latch, NULL, full, NULL);
    if (rc != 0)
        return rc;
    rc = lk_latch_trysetcount(&latch, parties); /* the first one does; for the others EEXIST */
    if (rc == 0 || rc == EEXIST)
        rc = lk_latch_countdown(&latch);
    if (rc == 0 || rc == EIO) /* EIO: the library sees to it that it counts, once */
        rc = lk_latch_wait(&latch);
    lk_latch_destroy(&latch);
    return rc;
}

static int take_part(struct world *w, void *arg)
{
    int *arrived = arg;
    use_default(world_url(w, "poll=5s&command_timeout=5s"));
    world_ready(w);
    for (int round = 0; round < ROUNDS; round++) {
        __atomic_add_fetch(&arrived[round], 1, __ATOMIC_SEQ_CST);
        assert_lk(0, meet("stage", PARTIES, (unsigned long)round));
        assert_that(__atomic_load_n(&arrived[round], __ATOMIC_SEQ_CST) == PARTIES);
    }
    close_default();
    return 0;
}

static void all_are_through_when_all_have_come(struct world *w)
{
    int *arrived = world_shared(w, ROUNDS * sizeof *arrived);
    pid_t parties[PARTIES];
    world_allow(w, "latchkey:*:{stage:*}");
    for (int i = 0; i < PARTIES; i++)
        parties[i] = world_fork(w, take_part, arrived);
    for (int i = 0; i < PARTIES; i++)
        assert_int_equal(0, world_wait(w, parties[i]));
}

int main(void)
{
    return world_run(all_are_through_when_all_have_come);
}
