/* SPDX-License-Identifier: MIT */
/*
 * pair.c - a condition with a mutex: the keys of both, and how the server tells which mutex it is
 *
 * Guards: the condition's object.mu the last pair that was used.
 */
#include "cond/cond.h"

#include <stdio.h>

/* In front of the mutex in a record: is it robust, is it shared with Redisson? */
enum { LETTERS = 2, RECORD_MAX = LETTERS + 1 + LK__KEY_MAX };

/* What the server hashes of a name: the text in its braces, or all of it. */
static const char *tag_of(const char *name, size_t *length)
{
    const char *open = strchr(name, '{');
    if (open == NULL) {
        *length = strlen(name);
        return name;
    }
    *length = strcspn(open + 1, "}");
    return open + 1;
}

static bool same_slot(const char *one, const char *other)
{
    size_t length, other_length;
    const char *tag = tag_of(one, &length), *other_tag = tag_of(other, &other_length);
    return length == other_length && memcmp(tag, other_tag, length) == 0;
}

static const struct lk__condblock *names_of(const struct lk__cond *cond)
{
    return LK__CONTAINER(cond->object.block, struct lk__condblock, block);
}

/* Keys of a mutex of that name, in `mutex` and behind it. */
static size_t mutex_room(const char *name)
{
    return lk__keys_room(lk__mutex_kind.keys, lk__mutex_kind.key_count, name, 0);
}

/* The pair lies in one memory: the struct, the record, the name, keys of the mutex, keys of the condition. */
static struct lk__condpair *make(const struct lk__cond *cond, const char *record)
{
    const struct lk__condblock *names = names_of(cond);
    const char *const ours[] = { names->record, names->waiting, names->calive, names->moved };
    struct lk__mutexblock mutex = { 0 };
    const char *copies[4];
    size_t length = strlen(record), room = length + 1 + mutex_room(record + LETTERS + 1);
    for (int i = 0; i < 4; i++)
        room += strlen(ours[i]) + 1;
    struct lk__condpair *pair = lk__alloc(sizeof *pair + room);
    if (pair == NULL)
        return NULL;
    char *at = (char *)(pair + 1);
    memcpy(at, record, length + 1);
    const char *name = at + LETTERS + 1;
    char *keys_at = at + length + 1;
    lk__keys_write(lk__mutex_kind.keys, lk__mutex_kind.key_count, name, 0, &mutex, keys_at);
    keys_at += mutex_room(name);
    for (int i = 0; i < 4; i++) {
        size_t size = strlen(ours[i]) + 1;
        copies[i] = memcpy(keys_at, ours[i], size);
        keys_at += size;
    }
    pair->block.refs = 1;
    pair->mine = at;
    pair->leave.mine = at;
    pair->leave.channel = mutex.release.channel;
    pair->leave.flags = (at[0] == 'r' ? LK__COND_ROBUST : 0) | (at[1] == 's' ? LK__COND_SHARED : 0);
    pair->keys = (struct lk__cond_keys){ .mutex = mutex.keys.mutex,
                                         .token = mutex.keys.token,
                                         .queue = mutex.keys.queue,
                                         .alive = mutex.keys.alive,
                                         .mark = mutex.keys.mark,
                                         .record = copies[0],
                                         .waiting = copies[1],
                                         .calive = copies[2],
                                         .moved = copies[3] };
    return pair;
}

/* The last pair that was used, if it is of that record or any will do, with a reference; or NULL. */
static struct lk__condpair *known(struct lk__cond *cond, const char *record)
{
    lk__mu_lock(&cond->object.mu);
    struct lk__condpair *pair = cond->pair;
    if (pair != NULL && record != NULL && strcmp(pair->mine, record) != 0)
        pair = NULL;
    if (pair != NULL)
        lk__block_ref(&pair->block);
    lk__mu_unlock(&cond->object.mu);
    return pair;
}

static int use(struct lk__cond *cond, const char *record, struct lk__condpair **pair)
{
    *pair = known(cond, record);
    if (*pair != NULL)
        return 0;
    *pair = make(cond, record);
    if (*pair == NULL)
        return lk__fail(ENOMEM, "%s: out of memory", cond->object.what);
    lk__mu_lock(&cond->object.mu);
    struct lk__condpair *before = cond->pair;
    cond->pair = *pair;
    lk__block_ref(&cond->pair->block);
    lk__mu_unlock(&cond->object.mu);
    lk__condpair_unref(before);
    return 0;
}

int lk__condpair_with(struct lk__cond *cond, const struct lk__mutex *mutex, struct lk__condpair **pair)
{
    const char *name = lk__mutex_block(mutex)->keys.mutex;
    char record[RECORD_MAX];
    if (cond->object.client != mutex->object.client)
        return lk__fail(EINVAL, "%s and %s are of two clients: a condition and its mutex are of one", cond->object.what,
                        mutex->object.what);
    if (!same_slot(names_of(cond)->name, name))
        return lk__fail(EINVAL, "%s and %s lie in two slots: give both one {tag}, or the same name", cond->object.what,
                        mutex->object.what);
    snprintf(record, sizeof record, "%c%c %s", mutex->object.traits.robust ? 'r' : '-',
             mutex->object.client->options->redisson ? 's' : '-', name);
    return use(cond, record, pair);
}

static bool is_record(const struct lk__cond *cond, const char *record)
{
    return strlen(record) > LETTERS + 1 && strlen(record) < RECORD_MAX && (record[0] == 'r' || record[0] == '-') &&
           (record[1] == 's' || record[1] == '-') && record[LETTERS] == ' ' &&
           same_slot(names_of(cond)->name, record + LETTERS + 1);
}

int lk__condpair_found(struct lk__cond *cond, const char *record, struct lk__condpair **pair)
{
    char nobodys[RECORD_MAX];
    if (record != NULL && !is_record(cond, record))
        return lk__fail(EPROTO, "%s: the server has no mutex there, but \"%s\"", cond->object.what, record);
    *pair = record == NULL ? known(cond, NULL) : NULL;
    if (*pair != NULL)
        return 0;
    if (record == NULL) /* any will do to ask with */
        snprintf(nobodys, sizeof nobodys, "-- %s", names_of(cond)->name);
    return use(cond, record != NULL ? record : nobodys, pair);
}
