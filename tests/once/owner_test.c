/* SPDX-License-Identifier: MIT */
/*
 * owner_test.c - the run of an explicit owner: begun by one thread, ended by another, and no thread takes it along
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_once_t *work;
static lk_owner_t *owner;

static void open_work(struct world *w, const char *options)
{
    world_allow(w, "latchkey:done:*");
    client = world_client(w, options);
    work = world_once(w, client, "work", NULL);
    assert_lk(0, lk_owner_new(client, &owner));
}

static int begin_for(lk_owner_t *by, int64_t timeout_ms)
{
    const lk_how_t how = { .size = sizeof how, .timeout_ms = timeout_ms, .owner = by };
    return lk_once_beginwith(work, &how);
}

static int begin_by_owner(void *timeout_ms)
{
    return begin_for(owner, *(const int *)timeout_ms);
}

static int end_by_owner(void *result)
{
    return lk_once_endby(work, owner, result);
}

/* What a runner may ask, for `by`: 0, the one code of all, or -1. */
static int ask_all(lk_owner_t *by)
{
    uint64_t token = 4711;
    int64_t left_ms = 4711;
    int rc = lk_once_tokenby(work, by, &token);
    if (lk_once_remainingby(work, by, &left_ms) != rc || lk_once_checkby(work, by) != rc)
        return -1;
    return (rc == 0) == (token != 4711) && (rc == 0) == (left_ms != 4711) ? rc : -1;
}

static void any_thread_runs_it_for_an_owner(struct world *w)
{
    int at_once = 0;
    char *text;
    char result[] = "moved";
    open_work(w, "lease=20s");
    assert_lk(0, in_thread(begin_by_owner, &at_once));
    assert_lk(0, ask_all(owner));
    assert_lk(EDEADLK, begin_for(owner, 0));
    assert_non_null(strstr(lk_errortext(), "this owner"));
    assert_lk(EBUSY, lk_owner_free(owner));
    assert_lk(EBUSY, lk_once_destroy(work));
    assert_lk(0, in_thread(end_by_owner, result));
    assert_lk(EPERM, lk_once_endby(work, owner, NULL));
    assert_lk(EPERM, lk_once_failby(work, owner));
    assert_lk(EALREADY, begin_for(owner, 0));
    assert_lk(0, lk_once_result(work, &text));
    assert_string_equal("moved", text);
    lk_free(text);
    assert_lk(0, lk_owner_free(owner));
}

static void a_thread_and_its_owners_are_several(struct world *w)
{
    lk_owner_t *other;
    open_work(w, "lease=20s");
    assert_lk(0, lk_owner_new(client, &other));
    assert_lk(0, begin_for(owner, 0));
    assert_lk(ETIMEDOUT, lk_once_begin(work, 20));
    assert_lk(ETIMEDOUT, begin_for(other, 0));
    assert_lk(EPERM, ask_all(NULL));
    assert_lk(EPERM, ask_all(other));
    assert_lk(EPERM, lk_once_end(work, NULL));
    assert_lk(EPERM, lk_once_failby(work, NULL));
    assert_lk(EPERM, lk_once_endby(work, other, NULL));
    assert_lk(0, lk_once_failby(work, owner));
    assert_lk(0, begin_for(NULL, 0));
    assert_lk(EPERM, lk_once_endby(work, owner, NULL));
    assert_lk(0, lk_once_endby(work, NULL, NULL));
    assert_lk(0, lk_owner_free(owner));
    assert_lk(0, lk_owner_free(other));
}

/* The thread that began it is gone for longer than the lease. */
static void it_is_renewed_without_a_thread(struct world *w)
{
    int at_once = 0;
    open_work(w, "lease=1s");
    assert_lk(0, in_thread(begin_by_owner, &at_once));
    sleep_ms(1500);
    assert_lk(0, lk_once_checkby(work, owner));
    assert_lk(0, lk_once_endby(work, owner, NULL));
    assert_lk(0, lk_owner_free(owner));
}

/* What one call says of its lease: a fixed one ends, though its runner lives. */
static void a_call_has_a_lease_of_its_own(struct world *w)
{
    const lk_how_t fixed = { .size = sizeof fixed, .lease_ms = 1000, .fixed = 1 };
    const lk_how_t wrong[] = { { .size = 0 },
                               { .size = sizeof wrong[0], .timeout_ms = -2 },
                               { .size = sizeof wrong[0], .lease_ms = 99 },
                               { .size = sizeof wrong[0], .fixed = 2 } };
    int64_t ms;
    open_work(w, "lease=20s&poll=200ms");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_lk(EINVAL, lk_once_beginwith(work, &wrong[i]));
    assert_lk(0, lk_once_beginwith(work, &fixed));
    assert_lk(0, lk_once_remaining(work, &ms));
    assert_between(ms, 1, 1000);
    assert_lk(0, begin_for(owner, 10000)); /* of another owner, who waits for the end of that */
    assert_lk(ESTALE, lk_once_end(work, NULL));
    assert_lk(0, lk_once_endby(work, owner, NULL));
    assert_lk(EALREADY, lk_once_beginwith(work, NULL));
    assert_lk(0, lk_owner_free(owner));
}

/* Two calls of one owner: the second waits for the first, and no longer than its limit. */
static void calls_of_one_owner_begin_one_after_the_other(struct world *w)
{
    struct worker waiter;
    int patience_ms = 20000;
    open_work(w, "lease=20s&poll=5s");
    assert_lk(0, lk_once_begin(work, 0));
    worker_start(&waiter, begin_by_owner, &patience_ms);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1, 5000);
    assert_lk(EBUSY, lk_owner_free(owner));
    assert_lk(ETIMEDOUT, begin_for(owner, 50));
    assert_lk(EPERM, lk_once_failby(work, owner)); /* which waits for nobody */
    assert_lk(0, lk_once_fail(work));
    assert_lk(0, worker_join(&waiter));
    assert_lk(EDEADLK, begin_for(owner, 50));
    assert_lk(0, lk_once_endby(work, owner, NULL));
    assert_lk(0, lk_owner_free(owner));
}

static void owners_of_others_are_refused(struct world *w)
{
    lk_owner_t *stranger;
    lk_once_t third;
    open_work(w, "lease=20s");
    lk_client_t *closing = world_open(w, "lease=20s");
    assert_lk(0, lk_owner_new(closing, &stranger));
    assert_lk(EINVAL, begin_for(stranger, 0));
    assert_lk(EINVAL, lk_once_endby(work, stranger, NULL));
    assert_lk(EINVAL, lk_once_failby(work, stranger));
    assert_lk(EINVAL, ask_all(stranger));
    assert_lk(0, lk_once_init(&third, closing, "work", NULL));
    const lk_how_t how = { .size = sizeof how, .owner = stranger };
    assert_lk(0, lk_once_beginwith(&third, &how));
    assert_lk(0, lk_client_close(closing)); /* which gives it up */
    assert_lk(ECANCELED, lk_once_endby(&third, stranger, NULL));
    assert_lk(0, begin_for(owner, 0));
    assert_lk(0, lk_once_failby(work, owner));
    assert_lk(0, lk_once_destroy(&third));
    assert_lk(0, lk_owner_free(stranger));
    assert_lk(0, lk_owner_free(owner));
}

static int child_of_an_owner(struct world *w, void *arg)
{
    (void)arg;
    assert_lk(EPERM, lk_once_endby(work, owner, "by the child"));
    assert_lk(EPERM, lk_once_failby(work, owner));
    assert_lk(ECANCELED, begin_for(owner, 0));
    assert_lk(0, lk_owner_free(owner));
    world_ready(w);
    return 0;
}

static void in_a_child_it_runs_nothing(struct world *w)
{
    if (THREAD_SANITIZED)
        skip(); /* it does not follow a fork out of a process with threads */
    open_work(w, "lease=20s");
    assert_lk(0, begin_for(owner, 0));
    assert_int_equal(0, world_wait(w, world_fork(w, child_of_an_owner, NULL)));
    assert_lk(0, lk_once_checkby(work, owner));
    assert_lk(0, lk_once_endby(work, owner, "by the parent"));
    assert_lk(0, lk_owner_free(owner));
}

int main(void)
{
    return world_run(any_thread_runs_it_for_an_owner, a_thread_and_its_owners_are_several,
                     it_is_renewed_without_a_thread, a_call_has_a_lease_of_its_own,
                     calls_of_one_owner_begin_one_after_the_other, owners_of_others_are_refused,
                     in_a_child_it_runs_nothing);
}
