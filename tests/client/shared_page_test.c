/* SPDX-License-Identifier: MIT */
/*
 * shared_page_test.c - objects in memory that several processes map, as PTHREAD_PROCESS_SHARED ones are
 *
 * Each process has its own binding of such a shell, whoever of them was first, and none writes over another's.
 *
 * labels: memory
 */
#include "world.h"

#include <malloc.h>
#include <unistd.h>

enum { PROCESSES = 3, ROUNDS = SANITIZED ? 100 : 300 };

struct page {
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t sem;
    lk_sem_t permits;
    lk_latch_t latch;
    lk_cond_t cond;
    lk_barrier_t barrier;
    lk_once_t once;
    lk_mutex_t later; /* initialised after the children were made */
    lk_mutex_t sooner;
    struct gate start, initialised, looked;
    int inside, counter;
};

static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };

static void lay_out(struct page *page)
{
    page->mutex = (lk_mutex_t)LK_MUTEX_INITIALIZER("orders");
    page->rwlock = (lk_rwlock_t)LK_RWLOCK_INITIALIZER("letters");
    page->sem = (lk_sem_t)LK_SEM_INITIALIZER("slots", 2);
    page->permits = (lk_sem_t)LK_SEM_INITIALIZER_ATTR("permits", 2, &leased);
    page->latch = (lk_latch_t)LK_LATCH_INITIALIZER("gate");
    page->cond = (lk_cond_t)LK_COND_INITIALIZER("orders");
    page->barrier = (lk_barrier_t)LK_BARRIER_INITIALIZER("stage", 1);
    page->once = (lk_once_t)LK_ONCE_INITIALIZER("work");
}

static void use_all(struct page *page)
{
    int64_t left_ms;
    unsigned count;
    assert_lk(EPERM, lk_mutex_remaining(&page->mutex, &left_ms));
    assert_lk(EPERM, lk_mutex_unlock(&page->mutex)); /* whoever holds it, not we */
    assert_lk(0, lk_mutex_lock(&page->mutex));
    assert_that(__atomic_add_fetch(&page->inside, 1, __ATOMIC_SEQ_CST) == 1);
    page->counter++;
    assert_lk(0, lk_mutex_remaining(&page->mutex, &left_ms));
    assert_that(__atomic_sub_fetch(&page->inside, 1, __ATOMIC_SEQ_CST) == 0);
    assert_lk(0, lk_mutex_unlock(&page->mutex));
    assert_lk(0, lk_rwlock_rdlock(&page->rwlock));
    assert_lk(0, lk_rwlock_unlock(&page->rwlock));
    assert_lk(0, lk_sem_wait(&page->sem));
    assert_lk(0, lk_sem_post(&page->sem));
    assert_lk(0, lk_sem_wait(&page->permits));
    assert_lk(0, lk_sem_post(&page->permits));
    assert_lk(0, lk_latch_getcount(&page->latch, &count));
    assert_lk(0, lk_cond_signal(&page->cond));
    assert_lk(LK_BARRIER_SERIAL, lk_barrier_wait(&page->barrier));
    assert_lk(0, lk_once_begin(&page->once, 20000));
    assert_lk(0, lk_once_fail(&page->once));
}

static void destroy_all(struct page *page)
{
    lk_client_t *client;
    assert_lk(0, lk_mutex_destroy(&page->mutex));
    assert_lk(0, lk_rwlock_destroy(&page->rwlock));
    assert_lk(0, lk_sem_destroy(&page->sem));
    assert_lk(0, lk_sem_destroy(&page->permits));
    assert_lk(0, lk_latch_destroy(&page->latch));
    assert_lk(0, lk_cond_destroy(&page->cond));
    assert_lk(0, lk_barrier_destroy(&page->barrier));
    assert_lk(0, lk_once_destroy(&page->once));
    assert_lk(0, lk_client_default(&client));
    assert_lk(0, lk_client_close(client));
}

static int work(struct world *w, void *arg)
{
    struct page *page = arg;
    size_t before = 0;
    world_ready(w);
    gate_pass(&page->start);
    for (int i = 0; i < ROUNDS; i++) {
        use_all(page);
        if (i == ROUNDS / 4)
            before = mallinfo2().uordblks;
    }
    /* A binding for each call would be some 100 bytes each. */
    if (!SANITIZED)
        assert_that(mallinfo2().uordblks < before + (size_t)ROUNDS * 100);
    use_all(page);
    destroy_all(page);
    return 0;
}

static struct page *make_page(struct world *w)
{
    struct page *page = world_shared(w, sizeof *page);
    use_default(world_url(w, "connect_timeout=10s&command_timeout=5s"));
    lay_out(page);
    return page;
}

static void processes_may_share_the_very_objects(struct world *w)
{
    struct page *page = make_page(w);
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = world_fork(w, work, page);
    gate_open(&page->start);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
    assert_int_equal(PROCESSES * (ROUNDS + 1), page->counter);
    world_redis(w, "DEL slots");
    world_allow(w, "*permits*");
    world_allow(w, "latchkey:*");
}

static int look_at_an_initialised_one(struct world *w, void *arg)
{
    struct page *page = arg;
    world_ready(w);
    gate_pass(&page->initialised);
    assert_lk(ECANCELED, lk_mutex_trylock(&page->later));
    assert_lk(ECANCELED, lk_mutex_unlock(&page->later));
    assert_lk(0, lk_mutex_destroy(&page->later));
    assert_lk(0, lk_mutex_trylock(&page->sooner));
    assert_lk(0, lk_mutex_unlock(&page->sooner));
    assert_lk(0, lk_mutex_destroy(&page->sooner));
    lk_client_t *client;
    assert_lk(0, lk_client_default(&client));
    assert_lk(0, lk_client_close(client));
    gate_open(&page->looked);
    return 0;
}

/* lk_mutex_init() copies the name to memory that only its process has, and those forked from it later. */
static void one_that_was_initialised_is_no_trap(struct world *w)
{
    struct page *page = make_page(w);
    assert_lk(0, lk_mutex_init(&page->sooner, NULL, "sooner", NULL));
    pid_t child = world_fork(w, look_at_an_initialised_one, page);
    assert_lk(0, lk_mutex_init(&page->later, NULL, "later", NULL));
    gate_open(&page->initialised);
    gate_pass(&page->looked);
    assert_lk(0, lk_mutex_lock(&page->later)); /* the child's destroy was its own affair */
    assert_lk(0, lk_mutex_unlock(&page->later));
    assert_lk(0, lk_mutex_lock(&page->sooner));
    assert_lk(0, lk_mutex_unlock(&page->sooner));
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, lk_mutex_destroy(&page->later));
    assert_lk(0, lk_mutex_destroy(&page->sooner));
    lk_client_t *client;
    assert_lk(0, lk_client_default(&client));
    assert_lk(0, lk_client_close(client));
}

/* Of one address. */
union remade {
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
};

struct remaking {
    union remade it;
    struct gate used, made_anew;
};

static int use_before_and_after(struct world *w, void *arg)
{
    struct remaking *remaking = arg;
    world_ready(w);
    assert_lk(0, lk_mutex_lock(&remaking->it.mutex));
    assert_lk(0, lk_mutex_unlock(&remaking->it.mutex));
    gate_open(&remaking->used);
    gate_pass(&remaking->made_anew);
    assert_lk(EBUSY, lk_rwlock_trywrlock(&remaking->it.rwlock));
    return 0;
}

/* What this process kept for the mutex is not taken for a read-write lock. */
static void a_place_may_become_an_object_of_another_kind(struct world *w)
{
    struct remaking *remaking = world_shared(w, sizeof *remaking);
    lk_client_t *client;
    use_default(world_url(w, "connect_timeout=10s&command_timeout=5s"));
    remaking->it.mutex = (lk_mutex_t)LK_MUTEX_INITIALIZER("orders");
    assert_lk(0, lk_mutex_lock(&remaking->it.mutex));
    assert_lk(0, lk_mutex_unlock(&remaking->it.mutex));
    pid_t child = world_fork(w, use_before_and_after, remaking);
    gate_pass(&remaking->used);
    assert_lk(0, lk_mutex_destroy(&remaking->it.mutex));
    remaking->it.rwlock = (lk_rwlock_t)LK_RWLOCK_INITIALIZER("orders");
    assert_lk(0, lk_rwlock_wrlock(&remaking->it.rwlock));
    gate_open(&remaking->made_anew);
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, lk_rwlock_unlock(&remaking->it.rwlock));
    assert_lk(0, lk_rwlock_destroy(&remaking->it.rwlock));
    assert_lk(0, lk_client_default(&client));
    assert_lk(0, lk_client_close(client));
}

int main(void)
{
    return world_run(processes_may_share_the_very_objects, one_that_was_initialised_is_no_trap,
                     a_place_may_become_an_object_of_another_kind);
}
