/* SPDX-License-Identifier: MIT */
/*
 * try.c - trying several locks at once
 *
 * Each is asked for by the script of its kind, as lk_mutex_trylock() does, but all are asked for before the first answer is
 * awaited: one round trip, to however many servers. So what decides on a lock is written once, and nothing is done by a
 * script that is undone by another one.
 */
#include "multi/multi.h"

/* One try. */
struct lk__tried {
    bool begun;
    int code; /* unless it was begun */
    struct lk__op op;
    struct lk__acquire acquire;
    union {
        struct lk__lock_acquire_args mutex;
        struct lk__rwlock_acquire_args rwlock;
    } args;
    struct lk__begun under_way;
};

int lk__try_prepare(struct lk__taking *taking)
{
    taking->tried = lk__alloc(taking->multi->count * sizeof *taking->tried);
    taking->before = lk__alloc(sizeof *taking->before);
    if (taking->tried != NULL && taking->before != NULL)
        return 0;
    lk__try_end(taking);
    return lk__fail(ENOMEM, "out of memory for %u locks at once", taking->multi->count);
}

void lk__try_end(struct lk__taking *taking)
{
    lk__free(taking->tried);
    lk__free(taking->before);
}

int lk__part_lock(const struct lk__part *part, const struct lk__how *how)
{
    return part->kind == &lk__mutex_kind ? lk__mutex_lockas(part->handle, how)
                                         : lk__rwlock_lockas(part->handle, part->write, how);
}

static void plan(struct lk__tried *tried, const struct lk__part *part, const struct lk__how *how)
{
    if (part->kind == &lk__mutex_kind)
        lk__mutex_plan(&tried->acquire, &tried->args.mutex, &tried->op, how);
    else
        lk__rwlock_plan(&tried->acquire, &tried->args.rwlock, &tried->op, part->write, how);
}

static int enter(struct lk__tried *tried, const struct lk__part *part, const struct lk__how *how, int64_t limit_us)
{
    int rc = lk__op_enterby(&tried->op, part->handle, part->kind, limit_us);
    if (rc != 0)
        return rc;
    rc = lk__op_beginlock(&tried->op, how->by, 0);
    return rc == 0 ? 0 : lk__op_leave(&tried->op, rc);
}

/* `how`: of a call that only tries. What its owner has already is had once more here. */
static void begin(struct lk__tried *tried, const struct lk__part *part, const struct lk__how *how, int64_t limit_us)
{
    tried->begun = false;
    tried->code = enter(tried, part, how, limit_us);
    if (tried->code != 0)
        return;
    if (lk__object_hold(tried->op.object, lk__op_owner(&tried->op)) != NULL) {
        lk__op_leave(&tried->op, 0);
        tried->code = lk__part_lock(part, how);
        return;
    }
    lk__op_beginwait(&tried->op);
    plan(tried, part, how);
    lk__acquire_begin(&tried->under_way, &tried->acquire);
    tried->begun = true;
}

static int end(struct lk__tried *tried)
{
    return tried->begun ? lk__op_leave(&tried->op, lk__acquire_end(&tried->under_way)) : tried->code;
}

static bool is_failure(int code)
{
    return code != 0 && code != EOWNERDEAD;
}

/*
 * The words of the first that fails are those of the call, whatever was said of others meanwhile. Of these only what may be
 * at their servers counts.
 */
static void note(struct lk__taking *taking, unsigned i, int code, unsigned *first, int *first_code,
                 struct lk__failure *words)
{
    taking->held[i] = !is_failure(code);
    taking->died[i] = code == EOWNERDEAD;
    if (taking->held[i])
        return;
    if (*first < taking->multi->count)
        lk__taking_noteopen(taking, i > *first ? lk__thread_self()->settled_us : words->settled_us);
    if (i > *first)
        return;
    *first = i;
    *first_code = code;
    lk__failure_keep(words);
}

unsigned lk__try_all(struct lk__taking *taking, int *code)
{
    const struct lk__multi *multi = taking->multi;
    struct lk__how how = *taking->how;
    struct lk__failure words = { .unlogged = false };
    unsigned first = multi->count;
    bool asked[LK_MULTI_MAX];
    how.limit_us = 0;
    how.only_try = true;
    lk__failure_keep(&words);
    for (unsigned i = 0; i < multi->count; i++) {
        asked[i] = !taking->held[i];
        if (!asked[i])
            continue;
        begin(&taking->tried[i], multi->parts[i], &how, taking->how->limit_us);
        if (!taking->tried[i].begun)
            note(taking, i, taking->tried[i].code, &first, code, &words);
    }
    for (unsigned i = 0; i < multi->count; i++)
        if (asked[i] && taking->tried[i].begun)
            note(taking, i, end(&taking->tried[i]), &first, code, &words);
    lk__failure_restore(&words);
    return first;
}
