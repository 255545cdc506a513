/* SPDX-License-Identifier: MIT */
#include "look.h"
#include "found.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The owner is what others wrote. */
static void add(struct rows *rows, struct row row)
{
    make_printable(row.owner);
    rows->row[rows->count++] = row;
}

/* An object of another type has the key: it is not of this kind. */
static int unless_other(int rc)
{
    return rc == EPROTO ? 0 : rc;
}

/* Of a lock that nobody holds. */
static const char *mode_of_free(int recoverable)
{
    return recoverable ? "free" : "unrecoverable";
}

static int look_at_mutex(struct rows *rows, lk_client_t *client, const char *name)
{
    lk_mutex_t mutex;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    int rc = lk_mutex_init(&mutex, client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_mutex_info(&mutex, &info);
    if (rc == 0 && (info.held || info.waiters != 0 || !info.recoverable)) {
        struct row row = { "mutex", info.held ? "exclusive" : mode_of_free(info.recoverable), info.held != 0,
                           info.waiters, info.held ? info.remaining_ms : -1, -1, info.token, { 0 } };
        snprintf(row.owner, sizeof row.owner, "%s", info.holder);
        add(rows, row);
    }
    lk_mutex_destroy(&mutex);
    return unless_other(rc);
}

static int look_at_rwlock(struct rows *rows, lk_client_t *client, const char *name)
{
    static const char *const modes[] = { [LK_RWLOCK_READING] = "shared", [LK_RWLOCK_WRITING] = "exclusive" };
    lk_rwlock_t rwlock;
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    int rc = lk_rwlock_init(&rwlock, client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_rwlock_info(&rwlock, &info);
    bool free = rc == 0 && info.mode == LK_RWLOCK_FREE;
    if (rc == 0 && (!free || info.waiters != 0 || !info.recoverable)) {
        unsigned holders = info.mode == LK_RWLOCK_WRITING ? 1 : info.readers;
        struct row row = { "rwlock", free ? mode_of_free(info.recoverable) : modes[info.mode], holders, info.waiters,
                           free ? -1 : info.remaining_ms, -1, info.token, { 0 } };
        snprintf(row.owner, sizeof row.owner, "%s", info.writer);
        add(rows, row);
    }
    lk_rwlock_destroy(&rwlock);
    return unless_other(rc);
}

static int look_at_permits(struct rows *rows, lk_client_t *client, const char *name)
{
    lk_sem_t sem;
    lk_semattr_t attr = LK_SEMATTR_INIT;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    attr.leased = 1;
    int rc = lk_sem_init(&sem, client, name, 0, &attr);
    if (rc != 0)
        return rc;
    rc = lk_sem_info(&sem, &info);
    if (rc == 0 && info.exists)
        add(rows, (struct row){ "permits", info.available > 0 ? "free" : "taken", info.held, info.waiters, -1, -1, 0,
                                { 0 } });
    lk_sem_destroy(&sem);
    return unless_other(rc);
}

/* A counting semaphore and a latch with a count are both an integer under the name: what is told is the count. */
static int look_at_count(struct rows *rows, lk_client_t *client, const char *name)
{
    lk_latch_t latch;
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    int rc = lk_latch_init(&latch, client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_latch_info(&latch, &info);
    if (rc == 0 && info.set)
        add(rows, (struct row){ "count", "count", 0, 0, -1, info.count, 0, { 0 } });
    else if (rc == 0 && info.opened)
        add(rows, (struct row){ "latch", "open", 0, 0, -1, 0, 0, { 0 } });
    lk_latch_destroy(&latch);
    return unless_other(rc);
}

int look_at_name(struct rows *rows, lk_client_t *client, const char *name)
{
    int rc = look_at_mutex(rows, client, name);
    if (rc == 0)
        rc = look_at_rwlock(rows, client, name);
    if (rc == 0)
        rc = look_at_permits(rows, client, name);
    return rc == 0 ? look_at_count(rows, client, name) : rc;
}

int look_at_queue(lk_client_t *client, const char *kind, const char *name, lk_waiter_t *waiters, unsigned most,
                  unsigned *count)
{
    const size_t stride = sizeof *waiters;
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t sem;
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = 1;
    int rc;
    if (strcmp(kind, "mutex") == 0) {
        rc = lk_mutex_init(&mutex, client, name, NULL);
        if (rc == 0)
            rc = lk_mutex_queue(&mutex, waiters, stride, most, count), lk_mutex_destroy(&mutex);
    } else if (strcmp(kind, "rwlock") == 0) {
        rc = lk_rwlock_init(&rwlock, client, name, NULL);
        if (rc == 0)
            rc = lk_rwlock_queue(&rwlock, waiters, stride, most, count), lk_rwlock_destroy(&rwlock);
    } else {
        rc = lk_sem_init(&sem, client, name, 0, &attr);
        if (rc == 0)
            rc = lk_sem_queue(&sem, waiters, stride, most, count), lk_sem_destroy(&sem);
    }
    return rc;
}
