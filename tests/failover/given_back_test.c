/* SPDX-License-Identifier: MIT */
/*
 * given_back_test.c - the next master never heard of a release, and is told it again
 *
 * labels: threads
 * simulated: yes
 * seconds: 6
 */
#include "failover.h"
#include "subject.h"

#define OPTIONS "lease=60s&command_timeout=500ms&poll=500ms"

enum { NEXT_LOCK_MS = 1000, KINDS = 8 };

/* The master confirms releases that no replica gets, and dies. */
static void all_is_free_at_the_next_master(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct subject *mine[KINDS];
    struct errand next[KINDS];
    int64_t announced_ms;
    int count = 0;
    lk_client_t *client = failover_client(f, OPTIONS), *other = failover_client(f, OPTIONS);
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++) {
        if (!kind->leased)
            continue;
        mine[count] = world_subject(w, client, kind, kind->name);
        next[count].subject = world_subject(w, other, subject_keeper(kind), kind->name);
        assert_lk(0, subject_take(mine[count++], 0));
    }
    failover_sync(f, 0);
    failover_cutoff(f, 0);
    for (int i = 0; i < count; i++)
        assert_lk(0, subject_give(mine[i]));

    failover_kill(f, 0);
    for (int i = 0; i < count; i++)
        errand_start(&next[i], next[i].subject, 2 * FAILOVER_WITHIN_MS);
    failover_await(f, 0, &announced_ms);
    for (int i = 0; i < count; i++) {
        errand_join(&next[i]);
        assert_int_equal(0, next[i].took);
        print_message("%s: taken %lld ms after the announcement\n", mine[i]->name,
                      (long long)(next[i].took_ms - announced_ms));
        assert_between(next[i].took_ms - announced_ms, -FAILOVER_WITHIN_MS, NEXT_LOCK_MS + 4 * SLACK_MS);
    }
}

int main(void)
{
    return world_run(all_is_free_at_the_next_master);
}
