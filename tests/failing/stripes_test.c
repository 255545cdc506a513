/* SPDX-License-Identifier: MIT */
/*
 * stripes_test.c - every allocation and every system call fails while stripes are made, bound and taken: a set is
 * made or not, and a stripe that could not be bound is bound by the next call
 *
 * labels: memory
 * seconds: 15
 * support: failing
 */
#include "failing/failing.h"

enum { N = 4 };

static lk_client_t *client;

static void use(lk_stripes_t *s)
{
    unsigned index;
    if (tried(0, lk_stripes_trylockany(s, 0, &index), ENOMEM, UNREACHABLE) == 0)
        tried(0, lk_mutex_unlock(lk_stripes_at(s, index)), UNREACHABLE, ESTALE);
    if (tried(0, lk_mutex_lockfor(lk_stripes_of(s, "a", 1), failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) ==
        0)
        tried(0, lk_mutex_unlock(lk_stripes_of(s, "a", 1)), UNREACHABLE, ESTALE);
}

/* It works again, and all is given back. */
static void end(struct world *w, lk_stripes_t *s)
{
    failing_end();
    for (unsigned i = 0; i < N; i++) {
        assert_lk(0, lk_mutex_lockfor(lk_stripes_at(s, i), FAILING_LONG_MS));
        assert_lk(0, lk_mutex_unlock(lk_stripes_at(s, i)));
    }
    assert_lk(0, lk_stripes_destroy(s));
    world_close(w, client);
}

static void make_and_take(struct world *w)
{
    lk_stripes_t s;
    const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    client = world_client(w, failing_options());
    failing_begin();
    if (tried(0, lk_stripes_initattr(&s, client, "s", N, &fair), ENOMEM) == 0) {
        use(&s);
    } else {
        failing_end();
        assert_lk(0, lk_stripes_initattr(&s, client, "s", N, &fair));
    }
    end(w, &s);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "stripes", kind, make_and_take);
}

int main(void)
{
    return all_failures(all_of);
}
