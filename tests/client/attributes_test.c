/* SPDX-License-Identifier: MIT */
/*
 * attributes_test.c - attributes whose size was never set are a caller's mistake, and are told as one
 *
 * labels: memory
 */
#include "assert_lk.h"

#include <latchkey/latchkey.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* `size` bytes that end where the memory of this process does. */
static void *at_the_edge(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_that(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    return pages + page - size;
}

static void away(void *edge, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap((char *)edge + size - page, 2 * page);
}

static void nothing_behind_them_is_read(void)
{
    static const size_t garbage[] = { 0, 1, 513, 4096, (size_t)1 << 32, (size_t)-1 };
    lk_mutexattr_t *mutex = at_the_edge(sizeof *mutex);
    lk_rwlockattr_t *rwlock = at_the_edge(sizeof *rwlock);
    lk_semattr_t *sem = at_the_edge(sizeof *sem);
    lk_latchattr_t *latch = at_the_edge(sizeof *latch);
    lk_condattr_t *cond = at_the_edge(sizeof *cond);
    lk_barrierattr_t *barrier = at_the_edge(sizeof *barrier);
    lk_onceattr_t *once = at_the_edge(sizeof *once);
    lk_mutex_t m;
    lk_rwlock_t r;
    lk_sem_t s;
    lk_latch_t l;
    lk_cond_t c;
    lk_barrier_t b;
    lk_once_t o;
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        mutex->size = rwlock->size = sem->size = latch->size = garbage[i];
        cond->size = barrier->size = once->size = garbage[i];
        assert_lk(EINVAL, lk_mutex_init(&m, NULL, "orders", mutex));
        assert_lk(EINVAL, lk_rwlock_init(&r, NULL, "orders", rwlock));
        assert_lk(EINVAL, lk_sem_init(&s, NULL, "orders", 1, sem));
        assert_lk(EINVAL, lk_latch_init(&l, NULL, "orders", latch));
        assert_lk(EINVAL, lk_cond_init(&c, NULL, "orders", cond));
        assert_lk(EINVAL, lk_barrier_init(&b, NULL, "orders", 2, barrier));
        assert_lk(EINVAL, lk_once_init(&o, NULL, "orders", once));
    }
    away(mutex, sizeof *mutex);
    away(rwlock, sizeof *rwlock);
    away(sem, sizeof *sem);
    away(latch, sizeof *latch);
    away(cond, sizeof *cond);
    away(barrier, sizeof *barrier);
    away(once, sizeof *once);
}

int main(void)
{
    return plain_run(nothing_behind_them_is_read);
}
