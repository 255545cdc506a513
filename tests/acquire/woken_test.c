/* SPDX-License-Identifier: MIT */
/*
 * woken_test.c - a waiter finds out when a lease or a claim ends which nobody gives back
 *
 * labels: threads
 * simulated: yes
 * seconds: 35
 */
#include "line.h"

#include <string.h>

enum { CLAIM_MS = 3000, ASKS_BY_MS = 2000 };

/* --- others who wait die, or stand still -------------------------------------------------------------------------------- */

static int wait_for_all(struct world *w, void *arg)
{
    const struct line *line = arg;
    struct line mine = { .n = line->n };
    for (int i = 0; i < line->n; i++)
        memcpy(mine.held[i].name, line->held[i].name, sizeof mine.held[i].name);
    want_all(w, &mine, world_client(w, "lease=60s"));
    world_ready(w);
    sleep_ms(120000);
    return 0;
}

static void allow_what_the_dead_leave(struct world *w)
{
    static const char *const left[] = { "latchkey:queue:*", "latchkey:alive:*", "latchkey:claims:*",
                                        "latchkey:rw:*",    "latchkey:once:*", "thing-*" };
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        world_allow(w, left[i]);
}

/*
 * Of the processes in front three stand still, and one is killed. One of these is granted a claim. The last in the
 * line looks when that ends, and the other two were silent for too long by then.
 */
static void a_claim_that_ends_is_found(struct world *w)
{
    enum { FROZEN = 3 };
    pid_t killed, frozen[FROZEN];
    struct line *line = world_shared(w, sizeof *line);
    *line = (struct line){ .n = 0 };
    hold_all(w, line, world_client(w, "lease=60s"));
    for (int i = 0; i < FROZEN; i++)
        frozen[i] = world_fork(w, wait_for_all, line);
    await_queued(w, line, FROZEN);
    killed = world_fork(w, wait_for_all, line);
    await_queued(w, line, FROZEN + 1);
    want_all(w, line, world_client(w, "lease=60s"));
    await_queued(w, line, FROZEN + 2);
    world_kill(w, killed);
    for (int i = 0; i < FROZEN; i++)
        world_stop(frozen[i]);
    int64_t began_ms = now_ms();
    give_all(line);
    assert_between(join_all(line) - began_ms, 0, CLAIM_MS + ASKS_BY_MS + 5 * SLACK_MS);
    for (int i = 0; i < FROZEN; i++)
        world_kill(w, frozen[i]);
    end_all(line);
    allow_what_the_dead_leave(w);
}

/* --- the holder dies --------------------------------------------------------------------------------------------------- */

enum { LEASE_MS = 9000 };

static int hold_for_ever(struct world *w, void *arg)
{
    hold_all(w, arg, world_client(w, "lease=9s"));
    world_ready(w);
    sleep_ms(120000);
    return 0;
}

/* What the dead holder had is found when its lease ends, as the first one wakes then; permits without leases stay away. */
static void the_end_of_a_lease_is_found_at_once(struct world *w)
{
    struct line *line = world_shared(w, sizeof *line);
    pid_t holder = world_fork(w, hold_for_ever, line);
    want_all(w, line, world_client(w, "lease=9s"));
    await_queued(w, line, 1);
    world_kill(w, holder);
    int64_t killed_ms = now_ms();
    for (int i = 0; i < line->n; i++)
        if (!subject_kinds[i].leased)
            world_redis(w, "EVAL %s 1 %s", "redis.call('SET', KEYS[1], 1)", line->held[i].name);
    join_all(line);
    for (int i = 0; i < line->n; i++)
        if (subject_kinds[i].leased)
            assert_between(line->errands[i].took_ms - killed_ms, LEASE_MS / 3, LEASE_MS + 3 * SLACK_MS);
    allow_what_the_dead_leave(w);
}

int main(void)
{
    return world_run(a_claim_that_ends_is_found, the_end_of_a_lease_is_found_at_once);
}
