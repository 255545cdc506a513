/* SPDX-License-Identifier: MIT */
/* total.c - how many permits there are: set, add, drain */
#include "semaphore/semaphore.h"

/*
 * Change a total, or with LK__SEMAPHORE_SET or _COMPARE among the flags set it. EEXIST: there is one, or another one than
 * `found`, which is told.
 */
static int change_total(const struct lk__semcall *call, long n, unsigned flags, int64_t *found)
{
    const struct lk__sem *sem = call->sem;
    const struct lk__semaphore_permit_total_args leased = { .n = n,
                                                            .initial = call->value,
                                                            .largest = lk__semattr_most(call->attr),
                                                            .expected = *found,
                                                            .flags = lk__sem_flags(sem) | flags };
    const struct lk__semaphore_change_args counted = { .n = n,
                                                       .initial = call->value,
                                                       .largest = leased.largest,
                                                       .expected = *found,
                                                       .channel = lk__sem_block(sem)->channel,
                                                       .flags = leased.flags };
    struct lk__idempotent change = { .command = { .script = &lk__lua_semaphore_change, .args = &counted },
                                     .args_size = sizeof counted,
                                     .lasting = flags == 0 };
    enum lk__verdict verdict;
    if (lk__sem_isleased(sem)) {
        change.command = (struct lk__command){ .script = &lk__lua_semaphore_permit_total, .args = &leased };
        change.args_size = sizeof leased;
    }
    int rc = lk__sem_idempotent(call, &change, &verdict);
    if (rc != 0 || verdict == LK__DONE)
        return rc;
    if (verdict == LK__ABSENT)
        return lk__gone(call->op.object);
    if (verdict == LK__PRESENT)
        *found = change.number;
    if (verdict == LK__PRESENT)
        return lk__fail(EEXIST, "%s: its permits are set already, %lld in all", call->what, (long long)change.number);
    if (verdict == LK__NEGATIVE)
        return lk__fail(EINVAL, "%s: the total would be below 0", call->what);
    return lk__fail(EOVERFLOW, "%s: that would be more than %u permits", call->what, lk__semattr_most(call->attr));
}

int lk__sem_make(const struct lk__semcall *call, unsigned n, int64_t *found)
{
    return change_total(call, (long)n, LK__SEMAPHORE_SET, found);
}

int lk_sem_setpermits(lk_sem_t *s, unsigned *expected, unsigned n)
{
    struct lk__semcall call;
    if (expected == NULL)
        return lk__fail(EINVAL, "lk_sem_setpermits: no number to compare with");
    int rc = lk__sem_enter(s, LK__NEVER, &call);
    if (rc != 0)
        return rc;
    int64_t found = *expected;
    rc = lk__sem_valuecheck(call.attr, n);
    if (rc == 0)
        rc = change_total(&call, (long)n, LK__SEMAPHORE_COMPARE, &found);
    if (rc == EEXIST)
        *expected = (unsigned)found;
    return lk__op_leave(&call.op, rc);
}

int lk_sem_trysetpermits(lk_sem_t *s, unsigned n)
{
    struct lk__semcall call;
    int64_t found = 0;
    int rc = lk__sem_enter(s, LK__NEVER, &call);
    if (rc != 0)
        return rc;
    rc = lk__sem_valuecheck(call.attr, n);
    if (rc == 0)
        rc = lk__sem_make(&call, n, &found);
    return lk__op_leave(&call.op, rc);
}

int lk_sem_addpermits(lk_sem_t *s, long n)
{
    struct lk__semcall call;
    int64_t none = 0;
    int rc = lk__sem_enter(s, LK__NEVER, &call);
    if (rc != 0)
        return rc;
    if (n == 0 || n > LK_SEM_VALUE_MAX || n < -LK_SEM_VALUE_MAX)
        rc = lk__fail(EINVAL, "%s: %ld permits to add: not 0, at most %d either way", call.what, n, LK_SEM_VALUE_MAX);
    else
        rc = change_total(&call, n, 0, &none);
    return lk__op_leave(&call.op, rc);
}

static int drain(const struct lk__semcall *call, unsigned *taken)
{
    const struct lk__sem *sem = call->sem;
    if (lk__sem_isleased(sem))
        return lk__fail(ENOTSUP, "%s: leased permits have to be held by somebody", call->what);
    const struct lk__semaphore_drain_args args = { .initial = call->value };
    const struct lk__semaphore_undrain_args back = { .channel = lk__sem_block(sem)->channel,
                                                     .flags = lk__sem_flags(sem) };
    struct lk__idempotent all = { .command = { .script = &lk__lua_semaphore_drain, .args = &args },
                                  .undone = { .script = &lk__lua_semaphore_undrain, .args = &back },
                                  .args_size = sizeof back };
    enum lk__verdict verdict;
    int rc = lk__sem_idempotent(call, &all, &verdict);
    if (rc == 0)
        *taken = (unsigned)all.number;
    return rc;
}

int lk_sem_drain(lk_sem_t *s, unsigned *taken)
{
    struct lk__semcall call;
    if (taken == NULL)
        return lk__fail(EINVAL, "lk_sem_drain: nowhere to put the number");
    int rc = lk__sem_enter(s, LK__NEVER, &call);
    return rc != 0 ? rc : lk__op_leave(&call.op, drain(&call, taken));
}
