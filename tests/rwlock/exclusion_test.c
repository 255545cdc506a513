/* SPDX-License-Identifier: MIT */
/*
 * exclusion_test.c - never a writer with anyone, of all threads of all processes; readers do meet
 *
 * processors: 4
 *
 * labels: threads memory noise
 */
#include "world.h"

enum { PROCESSES = 8, THREADS = 4, ROUNDS = SANITIZED ? 8 : 24 };

/* Checked by whoever is inside. Only the lock guards `pair`, `writes` and `token`. */
struct guarded {
    int readers, writers; /* atomic builtins */
    int met;              /* likewise: most readers seen at once */
    int pair[2];          /* always equal, unless one looks while somebody writes */
    int writes;
    uint64_t token;
};

static struct guarded *guarded;
static lk_rwlock_t *stock;
static lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;

static int load(const int *value)
{
    return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}

static int look(void)
{
    int wrong = 0, readers = __atomic_add_fetch(&guarded->readers, 1, __ATOMIC_SEQ_CST);
    if (readers > load(&guarded->met))
        __atomic_store_n(&guarded->met, readers, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 2 && wrong == 0; i++, sleep_ms(1))
        if (load(&guarded->writers) != 0 || guarded->pair[0] != guarded->pair[1])
            wrong = 3;
    __atomic_sub_fetch(&guarded->readers, 1, __ATOMIC_SEQ_CST);
    return wrong;
}

static int change(void)
{
    uint64_t token;
    int wrong = 0;
    if (__atomic_add_fetch(&guarded->writers, 1, __ATOMIC_SEQ_CST) != 1 || load(&guarded->readers) != 0)
        wrong = 4;
    guarded->pair[0]++;
    if (lk_rwlock_token(stock, &token) != 0 || token <= guarded->token)
        wrong = 5;
    guarded->token = token;
    guarded->writes++;
    sleep_ms(1);
    guarded->pair[1]++;
    if (load(&guarded->readers) != 0)
        wrong = 6;
    __atomic_sub_fetch(&guarded->writers, 1, __ATOMIC_SEQ_CST);
    return wrong;
}

/* 0, or what was wrong with one visit. Every fourth is a writer's; some of these go down before they go. */
static int visit(int thread, int round)
{
    int number = thread + round;
    bool write = number % 4 == 0;
    int wrong;
    if ((write ? lk_rwlock_wrlock(stock) : lk_rwlock_rdlock(stock)) != 0)
        return 2;
    wrong = write ? change() : look();
    if (wrong == 0 && number % 8 == 4)
        wrong = lk_rwlock_downgrade(stock) != 0 ? 7 : look();
    if (lk_rwlock_unlock(stock) != 0)
        wrong = 8;
    return wrong;
}

static void open_stock(struct world *w, lk_client_t *client)
{
    stock = world_rwlock(w, client, "stock", &attr);
}

static void run_with(struct world *w, int prefer)
{
    attr.prefer = prefer;
    guarded = world_shared(w, sizeof *guarded);
    world_processes(w, &(struct processes){ PROCESSES, THREADS, ROUNDS, "command_timeout=1500ms", open_stock, visit });
    assert_int_equal(PROCESSES * THREADS * ROUNDS / 4, guarded->writes);
    assert_int_equal(guarded->writes, guarded->pair[1]);
    assert_true(guarded->met > 1);
    assert_false(world_exists(w, "latchkey:rw:{stock}"));
    assert_int_equal(0, world_rwqueued(w, "stock"));
}

/* The reason for all of this, whoever is preferred: nobody meets a writer, tokens rise, readers overlap. */
static void nobody_meets_a_writer(struct world *w)
{
    run_with(w, LK_RWLOCK_PREFER_FAIR);
}

static void nor_when_readers_are_preferred(struct world *w)
{
    run_with(w, LK_RWLOCK_PREFER_READER);
}

static void nor_when_writers_are_preferred(struct world *w)
{
    run_with(w, LK_RWLOCK_PREFER_WRITER);
}

static void nor_in_phase_fair_order(struct world *w)
{
    run_with(w, LK_RWLOCK_PREFER_PHASE_FAIR);
}

int main(void)
{
    return world_run(nobody_meets_a_writer, nor_when_readers_are_preferred, nor_when_writers_are_preferred,
                     nor_in_phase_fair_order);
}
