/* SPDX-License-Identifier: MIT */
/* inspect.c - calls that change nothing: getvalue, info, queue */
#include "semaphore/semaphore.h"

int lk__sem_count(const struct lk__semcall *call, struct lk__semcount *counted)
{
    const struct lk__sem *sem = call->sem;
    const struct lk__semaphore_count_args args = { .initial = call->value };
    const struct lk__semaphore_permit_count_args permit_args = { .initial = call->value };
    const struct lk__command command =
        lk__sem_isleased(sem) ? lk__object_command(&sem->object, &lk__lua_semaphore_permit_count, &permit_args)
                              : lk__object_command(&sem->object, &lk__lua_semaphore_count, &args);
    struct lk__replybuf buf;
    int rc = lk__object_ask(&sem->object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc == 0)
        (lk__sem_isleased(sem) ? lk__semaphore_permit_count_read : lk__semaphore_count_read)(&buf.reply, counted);
    return rc;
}

int lk_sem_info(lk_sem_t *s, lk_seminfo_t *info)
{
    struct lk__semcall call;
    struct lk__semcount counted;
    int rc = lk__sized_check(info, LK__THROUGH(lk_seminfo_t, waiters), "lk_seminfo_t");
    if (rc == 0)
        rc = lk__sem_enter(s, LK__NEVER, &call);
    if (rc != 0)
        return rc;
    rc = lk__sem_count(&call, &counted);
    if (rc == 0) {
        const lk_seminfo_t found = { .available = counted.free,
                                     .held = (unsigned)counted.held,
                                     .waiters = (unsigned)counted.waiters,
                                     .total = (unsigned)counted.total,
                                     .exists = counted.exists != 0 };
        lk__sized_write(info, &found, sizeof found);
    }
    return lk__op_leave(&call.op, rc);
}

int lk_sem_getvalue(lk_sem_t *s, int *value)
{
    lk_seminfo_t seen = LK_SEMINFO_INIT;
    if (value == NULL)
        return lk__fail(EINVAL, "lk_sem_getvalue: nowhere to put the value");
    int rc = lk_sem_info(s, &seen);
    if (rc == 0)
        *value = seen.available > 0 ? (int)seen.available : 0;
    return rc;
}

LK__QUEUE_CALL(sem)
