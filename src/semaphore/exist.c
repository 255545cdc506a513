/* SPDX-License-Identifier: MIT */
/* exist.c - make a semaphore or open one that exists, and delete it */
#include "semaphore/semaphore.h"

#include <fcntl.h>

/* There is one, or with O_CREAT there is one now. */
static int open_at_server(const struct lk__semcall *call, int oflag, unsigned value)
{
    struct lk__semcount counted;
    int64_t found = 0;
    int rc;
    if (oflag & O_CREAT) {
        rc = lk__sem_make(call, value, &found);
        if (rc != EEXIST || oflag & O_EXCL)
            return rc;
        lk__sem_compare(call, found);
        return 0;
    }
    rc = lk__sem_count(call, &counted);
    return rc != 0 || counted.exists ? rc : lk__fail(ENOENT, "%s: there is none", call->what);
}

int lk_sem_open(lk_sem_t *s, lk_client_t *client, const char *name, int oflag, unsigned value, const lk_semattr_t *attr)
{
    struct lk__semcall call;
    if (name == NULL)
        return lk__fail(EINVAL, "lk_sem_open: no name was given");
    if (oflag != 0 && oflag != O_CREAT && oflag != (O_CREAT | O_EXCL))
        return lk__fail(EINVAL, "lk_sem_open: flags are 0, O_CREAT or O_CREAT | O_EXCL");
    int rc = lk_sem_init(s, client, name, oflag & O_CREAT ? value : 0, attr);
    if (rc != 0)
        return rc;
    rc = lk__sem_enter(s, LK__NEVER, &call);
    if (rc == 0)
        rc = lk__op_leave(&call.op, open_at_server(&call, oflag, value));
    if (rc != 0)
        return lk__op_abandon(LK__HANDLE(s), rc);
    if (oflag & O_EXCL)
        lk__sem_setvalue(s, 0); /* made once: it is not made again by its use */
    return 0;
}

int lk_sem_delete(lk_sem_t *s)
{
    struct lk__semcall call;
    enum lk__verdict verdict;
    int rc = lk__sem_enter(s, LK__NEVER, &call);
    if (rc != 0)
        return rc;
    struct lk__idempotent end = { .command = { .script = lk__sem_isleased(call.sem) ? &lk__lua_semaphore_permit_delete
                                                                                    : &lk__lua_semaphore_delete } };
    rc = lk__sem_idempotent(&call, &end, &verdict);
    if (rc == 0 && verdict == LK__ABSENT)
        rc = lk__fail(ENOENT, "%s: there is none", call.what);
    return lk__op_leave(&call.op, rc);
}
