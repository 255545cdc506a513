/* SPDX-License-Identifier: MIT */
/*
 * queue_test.c - who waits for what can be held, in order, and what each of them wants
 *
 * labels: threads memory
 * simulated: yes
 */
#include "subject.h"

#include <string.h>

enum { WAITERS = 60 }; /* more than a page has */

static lk_client_t *client;
static lk_waiter_t seen[WAITERS];

/* Whatever its kind: those who wait are listed as the server has them, and no others. */
static void all_kinds_list_who_waits(struct world *w, const struct subject_kind *kind)
{
    struct errand errands[3];
    unsigned count = 4711;
    client = world_client(w, "lease=20s");
    struct subject *mine = world_subject(w, client, subject_keeper(kind), "orders");
    assert_lk(0, subject_queue(mine, NULL, 0, &count));
    assert_int_equal(0, count);
    assert_lk(0, subject_take(mine, 0));
    for (int i = 0; i < 3; i++) { /* each of a client of its own: a plain mutex has one waiter of each */
        struct subject *theirs = world_subject(w, world_client(w, "lease=20s"), kind, "orders");
        errand_start(&errands[i], theirs, PATIENT_MS);
        eventually(subject_queued(w, mine) == i + 1, 5000);
    }
    memset(seen, 0, sizeof seen);
    assert_lk(0, subject_queue(mine, seen, 2, &count));
    assert_int_equal(3, count);
    assert_string_equal("", seen[2].id);
    assert_lk(0, subject_queue(mine, seen, WAITERS, &count));
    assert_int_equal(3, count);
    for (int i = 0; i < 3; i++) {
        assert_non_null(strchr(seen[i].id, ':'));
        assert_int_equal(1, seen[i].n);
        assert_int_equal(kind->wants, seen[i].wants);
        assert_true(i == 0 || strcmp(seen[i].id, seen[i - 1].id) != 0);
    }
    assert_string_equal("", seen[3].id);
    assert_lk(EINVAL, subject_queue(mine, NULL, 3, &count));
    assert_lk(EINVAL, subject_queue(mine, seen, 3, NULL));
    assert_lk(0, subject_give(mine));
    for (int i = 0; i < 3; i++) {
        errand_join(&errands[i]);
        assert_int_equal(0, errands[i].took);
        assert_int_equal(0, errands[i].gave);
    }
    assert_lk(0, subject_queue(mine, seen, WAITERS, &count));
    assert_int_equal(0, count);
}

static int read_it(void *rw)
{
    int rc = lk_rwlock_rdlockfor(rw, PATIENT_MS);
    return rc != 0 ? rc : lk_rwlock_unlock(rw);
}

static int write_it(void *rw)
{
    int rc = lk_rwlock_wrlockfor(rw, PATIENT_MS);
    return rc != 0 ? rc : lk_rwlock_unlock(rw);
}

/* Each thread has its place, with what it wants. */
static void readers_and_writers_are_told_apart(struct world *w)
{
    struct worker workers[4];
    unsigned count;
    client = world_client(w, "lease=20s");
    lk_rwlock_t *rw = world_rwlock(w, client, "config", NULL);
    assert_lk(0, lk_rwlock_wrlock(rw));
    for (int i = 0; i < 4; i++) {
        worker_start(&workers[i], i % 2 == 0 ? write_it : read_it, rw);
        eventually(world_rwqueued(w, "config") == i + 1, 5000);
    }
    assert_lk(0, lk_rwlock_queue(rw, seen, sizeof *seen, WAITERS, &count));
    assert_int_equal(4, count);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(i % 2 == 0 ? LK_WANTS_WRITE : LK_WANTS_READ, seen[i].wants);
        assert_int_equal(1, seen[i].n);
        assert_string_equal(seen[i].id, world_str(w, "EVAL %s 1 latchkey:queue:%s:{config} %d",
                                                  "return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1])[1]",
                                                  i % 2 == 0 ? "writers" : "readers", i / 2));
    }
    assert_lk(0, lk_rwlock_unlock(rw));
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, worker_join(&workers[i]));
}

static lk_sem_t *pool;

static int take_some(void *n)
{
    int rc = lk_sem_acquire(pool, *(unsigned *)n, PATIENT_MS);
    return rc != 0 ? rc : lk_sem_release(pool, *(unsigned *)n);
}

static int take_with_an_id(void *arg)
{
    char id[LK_PERMIT_ID];
    (void)arg;
    int rc = lk_sem_acquireid(pool, PATIENT_MS, id);
    return rc != 0 ? rc : lk_sem_releaseid(pool, id);
}

/* How many permits each one asked for; the id of a permit to be, which is enough to give it back, is told to nobody. */
static void permits_asked_for_are_told(struct world *w)
{
    static const unsigned wanted[] = { 3, 1, 12 };
    world_allow(w, "*");
    client = world_client(w, "lease=20s");
    for (int leased = 0; leased < 2; leased++) {
        const lk_semattr_t attr = { .size = sizeof attr, .leased = leased };
        const char *queue = leased ? "latchkey:queue:permits:{pool}" : "latchkey:queue:sem:{pool}";
        struct worker workers[4];
        unsigned count;
        pool = world_sem(w, client, "pool", 12, &attr);
        assert_lk(0, lk_sem_acquire(pool, 12, 0));
        for (int i = 0; i < 3 + leased; i++) {
            worker_start(&workers[i], i < 3 ? take_some : take_with_an_id, i < 3 ? (void *)&wanted[i] : NULL);
            eventually(world_int(w, "ZCARD %s", queue) == i + 1, 5000);
        }
        assert_lk(0, lk_sem_queue(pool, seen, sizeof *seen, WAITERS, &count));
        assert_int_equal(3 + leased, count);
        for (int i = 0; i < 3 + leased; i++) {
            assert_int_equal(LK_WANTS_PERMITS, seen[i].wants);
            assert_int_equal(i < 3 ? wanted[i] : 1, seen[i].n);
            assert_true(strlen(strrchr(seen[i].id, ':')) <= 3);
        }
        assert_lk(0, lk_sem_release(pool, 12));
        for (int i = 0; i < 3 + leased; i++)
            assert_int_equal(0, worker_join(&workers[i]));
    }
}

static int write_briefly(int index, void *rw)
{
    (void)index;
    return write_it(rw);
}

static int write_with_many(void *rw)
{
    return run_threads(WAITERS, write_briefly, rw);
}

/* Asked for page by page, nobody is missing and nobody comes twice. */
static void a_long_queue_is_listed_whole(struct world *w)
{
    struct worker writers;
    unsigned count;
    client = world_client(w, "lease=60s");
    lk_rwlock_t *rw = world_rwlock(w, client, "config", NULL);
    assert_lk(0, lk_rwlock_wrlock(rw));
    worker_start(&writers, write_with_many, rw);
    eventually(world_rwqueued(w, "config") == WAITERS, 20000);
    assert_lk(0, lk_rwlock_queue(rw, seen, sizeof *seen, WAITERS, &count));
    assert_int_equal(WAITERS, count);
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(LK_WANTS_WRITE, seen[i].wants);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(seen[k].id, seen[i].id);
    }
    assert_lk(0, lk_rwlock_unlock(rw));
    assert_int_equal(0, worker_join(&writers));
}

static void run_all_kinds(struct world *w)
{
    (void)w;
    for_each_subject(NULL, all_kinds_list_who_waits);
}

int main(void)
{
    return world_run(run_all_kinds, readers_and_writers_are_told_apart, permits_asked_for_are_told,
                     a_long_queue_is_listed_whole);
}
