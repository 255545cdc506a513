/* SPDX-License-Identifier: MIT */
/* total.c - how many permits there are: set, add, drain */
#include "semaphore/semaphore.h"

#include <stdio.h>

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

/* Set (`letters` "s") or change a total. */
static int change_total(const struct lk__semcall *call, long n, const char *letters)
{
    struct lk__sem *sem = call->sem;
    char number[24];
    int64_t verdict;
    snprintf(number, sizeof number, "%ld", n);
    const char *more[] = { number, call->initial, letters, sem->terms.claim_text, QUOTE(LK_SEM_PERMITS_MAX) };
    struct lk__once change = { .script = &lk__lua_semaphore_permit_total,
                               .keys = sem->keys,
                               .more = more,
                               .count = 5,
                               .lasting = letters[0] != 's' };
    int rc = lk__once(&call->frame, &sem->slots, &change, &verdict);
    if (rc != 0 || verdict == 1)
        return rc;
    if (verdict == 0)
        return lk__fail(EEXIST, "%s: the total is set already", call->what);
    if (verdict == -4)
        return lk__fail(EINVAL, "%s: the total would be below 0", call->what);
    return lk__fail(EOVERFLOW, "%s: that would be more than %d permits", call->what, LK_SEM_PERMITS_MAX);
}

static int set_number(const struct lk__semcall *call, unsigned n)
{
    struct lk__sem *sem = call->sem;
    char number[24], letters[8];
    int64_t verdict;
    snprintf(number, sizeof number, "%u", n);
    lk__sem_letters(letters, sem, false);
    const char *more[] = { number, letters, sem->channel, sem->terms.claim_text };
    struct lk__once set = { .script = &lk__lua_semaphore_set, .keys = sem->keys, .more = more, .count = 4 };
    int rc = lk__once(&call->frame, &sem->slots, &set, &verdict);
    if (rc != 0 || verdict == 1)
        return rc;
    return lk__fail(EEXIST, "%s: its permits are set already", call->what);
}

int lk_sem_trysetpermits(lk_sem_t *s, unsigned n)
{
    struct lk__semcall call;
    int rc = lk__sem_enter(s, &call);
    if (rc != 0)
        return rc;
    rc = lk__sem_valuecheck(call.attr, n);
    if (rc == 0)
        rc = call.sem->leased ? change_total(&call, (long)n, "s") : set_number(&call, n);
    return lk__sem_leave(&call, rc);
}

int lk_sem_addpermits(lk_sem_t *s, long n)
{
    struct lk__semcall call;
    int rc = lk__sem_enter(s, &call);
    if (rc != 0)
        return rc;
    if (n == 0 || n > LK_SEM_VALUE_MAX || n < -LK_SEM_VALUE_MAX)
        rc = lk__fail(EINVAL, "%s: %ld permits to add: not 0, at most %d either way", call.what, n, LK_SEM_VALUE_MAX);
    else
        rc = call.sem->leased ? change_total(&call, n, "-") : lk__counted_give(&call, n);
    return lk__sem_leave(&call, rc);
}

static int drain(const struct lk__semcall *call, unsigned *taken)
{
    struct lk__sem *sem = call->sem;
    const char *keys[] = { sem->keys[LK__SEM_NAME], sem->keys[LK__SEM_CLAIMS], sem->keys[LK__SEM_ONCE] };
    const char *more[] = { call->initial };
    char letters[8];
    int64_t verdict;
    lk__sem_letters(letters, sem, false);
    const char *undo[] = { letters, sem->channel, sem->terms.claim_text };
    if (sem->leased)
        return lk__fail(ENOTSUP, "%s: leased permits have to be held by somebody", call->what);
    struct lk__once all = { .script = &lk__lua_semaphore_drain,
                            .keys = keys,
                            .more = more,
                            .count = 1,
                            .undo = &lk__lua_semaphore_undrain,
                            .undo_keys = sem->keys,
                            .undo_more = undo,
                            .undo_count = 3 };
    int rc = lk__once(&call->frame, &sem->slots, &all, &verdict);
    if (rc == 0)
        *taken = (unsigned)verdict;
    return rc;
}

int lk_sem_drain(lk_sem_t *s, unsigned *taken)
{
    struct lk__semcall call;
    if (taken == NULL)
        return lk__fail(EINVAL, "lk_sem_drain: nowhere to put the number");
    int rc = lk__sem_enter(s, &call);
    return rc != 0 ? rc : lk__sem_leave(&call, drain(&call, taken));
}
