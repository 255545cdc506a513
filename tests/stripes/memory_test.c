/* SPDX-License-Identifier: MIT */
/*
 * memory_test.c - a stripe that nobody uses costs little, and one that is destroyed gives back what it had
 *
 * labels: memory
 * simulated: yes
 * support: failing
 */
#include "failing/failing.h"

enum { N = 2000 };

static void use(lk_stripes_t *s)
{
    for (unsigned i = 0; i < N; i++) {
        assert_lk(0, lk_mutex_trylock(lk_stripes_at(s, i)));
        assert_lk(0, lk_mutex_unlock(lk_stripes_at(s, i)));
    }
}

static void stripes_are_paid_for_when_they_are_used(struct world *w)
{
    lk_stripes_t s;
    lk_client_t *client = world_client(w, "");
    for (int i = 0; i < 2; i++) { /* tables that double have their final size the second time */
        long before = failing_bytes();
        assert_lk(0, lk_stripes_init(&s, client, "stock", N));
        assert_between((failing_bytes() - before) / N, 1, 80);
        use(&s);
        if (i == 1)
            assert_between((failing_bytes() - before) / N, 80, 800);
        for (unsigned at = 0; at < N; at++)
            assert_lk(0, lk_mutex_destroy(lk_stripes_at(&s, at)));
        if (i == 1)
            assert_between((failing_bytes() - before) / N, 1, 80);
        assert_lk(0, lk_stripes_destroy(&s));
        if (i == 1)
            assert_between(failing_bytes() - before, -1000, 1000);
    }
}

int main(void)
{
    return world_run(stripes_are_paid_for_when_they_are_used);
}
