/* SPDX-License-Identifier: MIT */
/*
 * multi_test.c - every allocation and every system call fails while several locks are gathered and taken: all of them or
 * none, and none stays when the call says so
 *
 * labels: memory
 * simulated: yes
 * seconds: 15
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_mutex_t *a;
static lk_rwlock_t *b;

static int add_all(lk_multi_t *s)
{
    int rc = tried(0, lk_multi_addmutex(s, a), ENOMEM);
    return rc != 0 ? rc : tried(0, lk_multi_addwrite(s, b), ENOMEM);
}

static void use(lk_multi_t *s)
{
    if (tried(0, lk_multi_trylock(s), ENOMEM, UNREACHABLE) == 0)
        tried(0, lk_multi_unlock(s), UNREACHABLE, ESTALE);
    if (tried(0, lk_multi_lockfor(s, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        tried(0, lk_multi_unlock(s), UNREACHABLE, ESTALE);
}

/* It works again, and nothing was kept. */
static void end(struct world *w)
{
    failing_end();
    assert_lk(0, lk_mutex_lockfor(a, FAILING_LONG_MS));
    assert_lk(0, lk_mutex_unlock(a));
    assert_lk(0, lk_rwlock_wrlockfor(b, FAILING_LONG_MS));
    assert_lk(0, lk_rwlock_unlock(b));
    world_close(w, client);
}

static void gather_and_take(struct world *w)
{
    lk_multi_t s;
    client = world_client(w, failing_options());
    a = world_mutex(w, client, "a", NULL);
    b = world_rwlock(w, client, "b", NULL);
    failing_begin();
    if (tried(0, lk_multi_init(&s), ENOMEM) == 0) {
        if (add_all(&s) == 0)
            use(&s);
        assert_lk(0, lk_multi_destroy(&s));
    }
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "multi", kind, gather_and_take);
}

int main(void)
{
    return all_failures(all_of);
}
