/* SPDX-License-Identifier: MIT */
/*
 * fork_test.c - stripes and fork: those of the default client work in both processes, others answer ECANCELED
 *
 * labels: threads memory
 */
#include "world.h"

struct inheritance {
    lk_stripes_t stripes;
    unsigned used; /* a stripe that the parent has used */
};

/* ThreadSanitizer cannot follow a fork out of a process with threads when the child starts its own. */
static void use_server(struct world *w)
{
    if (THREAD_SANITIZED)
        skip();
    use_default(world_url(w, "lease=20s&connect_timeout=10s"));
}

static int child_of_a_holder(struct world *w, void *arg)
{
    struct inheritance *from = arg;
    unsigned index;
    assert_lk(EPERM, lk_mutex_unlock(lk_stripes_at(&from->stripes, from->used)));
    assert_lk(EBUSY, lk_mutex_trylock(lk_stripes_at(&from->stripes, from->used)));
    assert_lk(0, lk_stripes_trylockany(&from->stripes, from->used, &index));
    assert_that(index == from->used + 1);
    assert_lk(EBUSY, lk_stripes_destroy(&from->stripes));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&from->stripes, index)));
    world_ready(w);
    assert_lk(0, lk_mutex_lockfor(lk_stripes_at(&from->stripes, from->used), 10000));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&from->stripes, from->used)));
    assert_lk(0, lk_stripes_destroy(&from->stripes)); /* the child's part of it */
    close_default();
    return 0;
}

/* A server that forks its workers makes its stripes before: each process is another holder. */
static void stripes_of_the_default_client_work_in_parent_and_child(struct world *w)
{
    struct inheritance from = { .used = 1 };
    use_server(w);
    assert_lk(0, lk_stripes_init(&from.stripes, NULL, "stock", 4));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(&from.stripes, 1)));
    pid_t child = world_fork(w, child_of_a_holder, &from);
    assert_lk(0, lk_mutex_check(lk_stripes_at(&from.stripes, 1)));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&from.stripes, 1)));
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, lock_and_unlock(lk_stripes_at(&from.stripes, 2)));
    assert_lk(0, lk_stripes_destroy(&from.stripes));
    close_default();
}

static int child_of_an_open_client(struct world *w, void *arg)
{
    struct inheritance *from = arg;
    unsigned index = 77;
    assert_that(lk_stripes_count(&from->stripes) == 4);
    assert_lk(ECANCELED, lk_stripes_trylockany(&from->stripes, 0, &index));
    assert_lk(ECANCELED, lk_mutex_lock(lk_stripes_at(&from->stripes, 0))); /* nobody used it before */
    assert_lk(ECANCELED, lk_mutex_lock(lk_stripes_at(&from->stripes, from->used)));
    assert_lk(EPERM, lk_mutex_unlock(lk_stripes_at(&from->stripes, from->used)));
    assert_that(index == 77);
    assert_lk(0, lk_stripes_destroy(&from->stripes));
    world_ready(w);
    return 0;
}

/* An explicitly opened client belongs to who opened it; the child ends nothing of its parent's. */
static void stripes_of_an_open_client_answer_ecanceled_in_the_child(struct world *w)
{
    struct inheritance from = { .used = 1 };
    use_server(w);
    lk_client_t *client = world_client(w, "lease=20s&command_timeout=5s");
    assert_lk(0, lk_stripes_init(&from.stripes, client, "stock", 4));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(&from.stripes, 1)));
    assert_int_equal(0, world_wait(w, world_fork(w, child_of_an_open_client, &from)));
    assert_lk(0, lk_mutex_check(lk_stripes_at(&from.stripes, 1)));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&from.stripes, 1)));
    assert_lk(0, lock_and_unlock(lk_stripes_at(&from.stripes, 3)));
    assert_lk(0, lk_stripes_destroy(&from.stripes));
}

struct shared {
    lk_stripes_t stripes;
    struct gate made, done;
};

static int child_that_makes_stripes(struct world *w, void *arg)
{
    struct shared *shared = arg;
    lk_client_t *client = world_client(w, "");
    assert_lk(0, lk_stripes_init(&shared->stripes, client, "stock", 4));
    gate_open(&shared->made);
    world_ready(w);
    gate_pass(&shared->done);
    assert_that(lk_stripes_count(&shared->stripes) == 4);
    assert_lk(0, lk_stripes_destroy(&shared->stripes));
    world_close(w, client);
    return 0;
}

/* Another process' stripes in memory that both see give an answer, not a crash. */
static void stripes_in_shared_memory_are_no_trap(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    unsigned index = 77;
    pid_t child = world_fork(w, child_that_makes_stripes, shared);
    gate_pass(&shared->made);
    assert_null(lk_stripes_at(&shared->stripes, 0));
    assert_null(lk_stripes_of(&shared->stripes, "a", 1));
    assert_int_equal(0, lk_stripes_count(&shared->stripes));
    assert_lk(ECANCELED, lk_stripes_trylockany(&shared->stripes, 0, &index));
    assert_lk(0, lk_stripes_destroy(&shared->stripes)); /* nothing of it is here */
    gate_open(&shared->done);
    assert_int_equal(0, world_wait(w, child));
}

int main(void)
{
    return world_run(stripes_of_the_default_client_work_in_parent_and_child,
                     stripes_of_an_open_client_answer_ecanceled_in_the_child, stripes_in_shared_memory_are_no_trap);
}
