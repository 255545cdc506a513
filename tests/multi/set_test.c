/* SPDX-License-Identifier: MIT */
/*
 * set_test.c - which locks a set can have, and what it refuses
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

static lk_client_t *client;

/* One lock is in a set once, whatever it is called by: a thread would wait for itself. */
static void a_lock_is_a_member_once(struct world *w)
{
    client = world_client(w, "prefix=shop:");
    lk_client_t *same = world_client(w, "lease=5s");
    lk_mutex_t *a = world_mutex(w, client, "a", NULL), *again = world_mutex(w, client, "a", NULL);
    lk_mutex_t *spelled = world_mutex(w, same, "shop:a", NULL);
    lk_rwlock_t *rw = world_rwlock(w, client, "a", NULL), *too = world_rwlock(w, same, "shop:a", NULL);
    lk_multi_t *s = world_multi(w, client);
    assert_lk(0, lk_multi_addmutex(s, a));
    assert_lk(EINVAL, lk_multi_addmutex(s, a));
    assert_lk(EINVAL, lk_multi_addmutex(s, again));
    assert_lk(EINVAL, lk_multi_addmutex(s, spelled));
    assert_non_null(strstr(lk_errortext(), "has it already"));
    assert_lk(0, lk_multi_addread(s, rw)); /* another lock than the mutex of its name */
    assert_lk(EINVAL, lk_multi_addread(s, rw));
    assert_lk(EINVAL, lk_multi_addwrite(s, rw));
    assert_non_null(strstr(lk_errortext(), "in the other way"));
    assert_lk(EINVAL, lk_multi_addwrite(s, too));
    assert_lk(0, lk_multi_trylock(s));
    assert_int_equal(1, world_holds(w, "shop:a"));
    assert_int_equal(1, world_rwholds(w, "shop:a"));
    assert_lk(0, lk_multi_unlock(s));
    assert_int_equal(-1, world_holds(w, "shop:a"));
}

/* Another database has other locks. */
static void databases_are_told_apart(struct world *w)
{
    client = world_client(w, "");
    lk_client_t *second = world_client(w, "db=1");
    lk_multi_t *s = world_multi(w, client);
    assert_lk(0, lk_multi_addmutex(s, world_mutex(w, client, "a", NULL)));
    assert_lk(0, lk_multi_addmutex(s, world_mutex(w, second, "a", NULL)));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_multi_unlock(s));
}

/* Two URLs may lead to one server. Then its lock is found in its own way, and the call does not wait for itself. */
static void another_spelling_of_the_server_is_found_out(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    client = world_client(w, "");
    lk_client_t *around = proxy_client(p, "");
    lk_multi_t *s = world_multi(w, client), *rw = world_multi(w, client);
    assert_lk(0, lk_multi_addmutex(s, world_mutex(w, client, "a", NULL)));
    assert_lk(0, lk_multi_addmutex(s, world_mutex(w, around, "a", NULL)));
    assert_lk(EINVAL, lk_multi_lock(s));
    assert_non_null(strstr(lk_errortext(), "mutex a: twice"));
    assert_int_equal(-1, world_holds(w, "a"));
    assert_lk(EBUSY, lk_multi_trylock(s));
    assert_int_equal(-1, world_holds(w, "a"));
    assert_lk(0, lk_multi_addwrite(rw, world_rwlock(w, client, "a", NULL)));
    assert_lk(0, lk_multi_addread(rw, world_rwlock(w, around, "a", NULL)));
    assert_lk(EINVAL, lk_multi_lock(rw));
    assert_int_equal(0, world_rwholds(w, "a"));
    world_close(w, s);
    world_close(w, rw);
    proxy_end(p);
}

/* What stays taken when it is given back would be neither held nor free where the others are not to be had. */
static void what_does_not_fit_is_refused(struct world *w)
{
    const lk_mutexattr_t kept = { .size = sizeof kept, .min_hold_ms = 300 };
    lk_multi_t s, none = { 0 };
    int64_t ms;
    lk_multiinfo_t info = LK_MULTIINFO_INIT;
    lk_how_t how = LK_HOW_INIT;
    client = world_client(w, "");
    lk_mutex_t *a = world_mutex(w, client, "a", NULL);
    assert_lk(EINVAL, lk_multi_init(NULL));
    assert_lk(EINVAL, lk_multi_addmutex(NULL, a));
    assert_lk(EINVAL, lk_multi_addmutex(&none, a));
    assert_lk(EINVAL, lk_multi_lock(&none));
    assert_lk(EINVAL, lk_multi_destroy(NULL));
    assert_lk(0, lk_multi_destroy(&none));
    assert_lk(0, lk_multi_init(&s));
    assert_lk(EINVAL, lk_multi_lock(&s)); /* nothing */
    assert_lk(EINVAL, lk_multi_unlock(&s));
    assert_lk(EINVAL, lk_multi_remaining(&s, &ms));
    assert_lk(EINVAL, lk_multi_check(&s));
    assert_lk(0, lk_multi_destroy(&s));
    assert_lk(0, lk_multi_init(&s));
    assert_lk(EINVAL, lk_multi_addmutex(&s, NULL));
    assert_lk(EINVAL, lk_multi_addread(&s, NULL));
    assert_lk(EINVAL, lk_multi_addwrite(&s, NULL));
    assert_lk(EINVAL, lk_multi_addmutex(&s, world_mutex(w, client, "kept", &kept)));
    assert_non_null(strstr(lk_errortext(), "min_hold_ms"));
    assert_lk(0, lk_multi_addmutex(&s, a));
    how.timeout_ms = -2;
    assert_lk(EINVAL, lk_multi_lockwith(&s, &how));
    assert_lk(EINVAL, lk_multi_lockfor(&s, -2));
    assert_lk(EINVAL, lk_multi_clocklock(&s, CLOCK_PROCESS_CPUTIME_ID, &(struct timespec){ 0, 0 }));
    assert_lk(EINVAL, lk_multi_timedlock(&s, &(struct timespec){ 0, 1000000000 }));
    assert_lk(EPERM, lk_multi_unlock(&s));
    assert_lk(EPERM, lk_multi_remaining(&s, &ms));
    assert_lk(EPERM, lk_multi_check(&s));
    assert_lk(EINVAL, lk_multi_remaining(&s, NULL));
    info.size = 0;
    assert_lk(EINVAL, lk_multi_info(&s, &info));
    assert_lk(0, lk_multi_lock(&s));
    assert_lk(EINVAL, lk_multi_addmutex(&s, world_mutex(w, client, "late", NULL)));
    assert_non_null(strstr(lk_errortext(), "complete"));
    assert_lk(0, lk_multi_destroy(&s)); /* what is held stays so */
    assert_int_equal(1, world_holds(w, "a"));
    assert_lk(0, lk_mutex_unlock(a));
}

static void a_set_has_so_many_at_most(struct world *w)
{
    client = world_client(w, "");
    lk_stripes_t *many = world_stripes(w, client, "s", LK_MULTI_MAX + 1, NULL);
    lk_multi_t *s = world_multi(w, client);
    lk_multiinfo_t info = LK_MULTIINFO_INIT;
    for (unsigned i = LK_MULTI_MAX + 1; i-- > 1;)
        assert_lk(0, lk_multi_addmutex(s, lk_stripes_at(many, i)));
    assert_lk(EINVAL, lk_multi_addmutex(s, lk_stripes_at(many, 0)));
    assert_lk(0, lk_multi_lock(s));
    assert_lk(0, lk_multi_info(s, &info));
    assert_int_equal(LK_MULTI_MAX, info.members);
    assert_int_equal(LK_MULTI_MAX, info.taken);
    assert_lk(0, lk_multi_unlock(s));
}

int main(void)
{
    return world_run(a_lock_is_a_member_once, databases_are_told_apart, another_spelling_of_the_server_is_found_out,
                     what_does_not_fit_is_refused, a_set_has_so_many_at_most);
}
