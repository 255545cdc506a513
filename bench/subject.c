/* SPDX-License-Identifier: MIT */
#include "subject.h"

#include "measure.h"

#include <stddef.h>
#include <string.h>

enum { PERMITS = 5, SAMPLES = 20000, WARM = 100 };

static int mutex_init(struct subject *s, lk_client_t *client, const char *name)
{
    return lk_mutex_init(&s->mutex, client, name, NULL);
}

static int fair_init(struct subject *s, lk_client_t *client, const char *name)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = 1;
    return lk_mutex_init(&s->mutex, client, name, &attr);
}

static int mutex_take(struct subject *s)
{
    return lk_mutex_lock(&s->mutex);
}

static int mutex_give(struct subject *s)
{
    return lk_mutex_unlock(&s->mutex);
}

static int mutex_destroy(struct subject *s)
{
    return lk_mutex_destroy(&s->mutex);
}

static int rwlock_init(struct subject *s, lk_client_t *client, const char *name)
{
    return lk_rwlock_init(&s->rwlock, client, name, NULL);
}

static int rwlock_read(struct subject *s)
{
    return lk_rwlock_rdlock(&s->rwlock);
}

static int rwlock_write(struct subject *s)
{
    return lk_rwlock_wrlock(&s->rwlock);
}

static int rwlock_give(struct subject *s)
{
    return lk_rwlock_unlock(&s->rwlock);
}

static int rwlock_destroy(struct subject *s)
{
    return lk_rwlock_destroy(&s->rwlock);
}

static int sem_init(struct subject *s, lk_client_t *client, const char *name)
{
    return lk_sem_init(&s->sem, client, name, PERMITS, NULL);
}

static int permit_init(struct subject *s, lk_client_t *client, const char *name)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = 1;
    return lk_sem_init(&s->sem, client, name, PERMITS, &attr);
}

static int sem_take(struct subject *s)
{
    return lk_sem_wait(&s->sem);
}

static int sem_give(struct subject *s)
{
    return lk_sem_post(&s->sem);
}

static int sem_destroy(struct subject *s)
{
    return lk_sem_destroy(&s->sem);
}

const struct subject_kind subject_kinds[] = {
    { "pair", mutex_init, mutex_take, mutex_give, mutex_destroy },
    { "fair", fair_init, mutex_take, mutex_give, mutex_destroy },
    { "rdlock", rwlock_init, rwlock_read, rwlock_give, rwlock_destroy },
    { "wrlock", rwlock_init, rwlock_write, rwlock_give, rwlock_destroy },
    { "sem", sem_init, sem_take, sem_give, sem_destroy },
    { "permit", permit_init, sem_take, sem_give, sem_destroy },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct subject_kind *subject_kind(const char *name)
{
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        if (strcmp(kind->name, name) == 0)
            return kind;
    return NULL;
}

lk_client_t *open_client(const char *url)
{
    lk_client_t *client;
    if (lk_client_open(&client, url) != 0)
        fail(url);
    return client;
}

void subject_init(struct subject *s, const struct subject_kind *kind, lk_client_t *client, const char *name)
{
    s->kind = kind;
    if (kind->init(s, client, name) != 0)
        fail(name);
}

void subject_pair(struct subject *s)
{
    if (s->kind->take(s) != 0 || s->kind->give(s) != 0)
        fail(s->kind->name);
}

void subject_destroy(struct subject *s)
{
    if (s->kind->destroy(s) != 0)
        fail(s->kind->name);
}

static int64_t time_pair(struct subject *s)
{
    int64_t began = now_ns();
    subject_pair(s);
    return now_ns() - began;
}

void compare_sides(const struct side sides[2], int64_t ms)
{
    static int64_t ns[2][SAMPLES];
    struct subject subjects[2];
    int samples = 0;
    for (int i = 0; i < 2; i++)
        subject_init(&subjects[i], &subject_kinds[0], sides[i].client, sides[i].name);
    int64_t end = now_ns() + ms * 1000000;
    for (int turn = 0; samples < SAMPLES && (turn <= WARM || now_ns() < end); turn++) {
        for (int i = 0; i < 2; i++)
            ns[i][samples] = time_pair(&subjects[i]);
        samples += turn >= WARM; /* what came before is overwritten */
    }
    for (int i = 0; i < 2; i++) {
        tell(median_us(ns[i], samples), "%s", sides[i].figure);
        subject_destroy(&subjects[i]);
    }
}
