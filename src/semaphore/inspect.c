/* SPDX-License-Identifier: MIT */
/* inspect.c - what anybody may ask of a semaphore */
#include "semaphore/scripts.h"
#include "semaphore/semaphore.h"

static int count(const struct lk__semcall *call, lk_seminfo_t *info)
{
    const struct lk__sem *sem = call->sem;
    const char *keys[] = { sem->keys[0], sem->keys[1], sem->keys[LK__SEM_SEEN] };
    const char *args[] = { call->initial };
    struct lk__request *request = NULL;
    struct lk__command command;
    unsigned numbers = sem->leased ? 5 : 4;
    int rc = lk__command_seal(&command, sem->leased ? &lk__lua_semaphore_permit_count : &lk__lua_semaphore_count, keys,
                              args, 1);
    if (rc == 0)
        rc = lk__call(&sem->object.client->conn, call->what, &command, -1, true, &request, NULL);
    if (rc == 0 && !lk__reply_integers(request->reply, numbers))
        rc = lk__fail(EPROTO, "%s: the server's answer has the wrong shape", call->what);
    if (rc == 0) {
        const struct lk__value *values = request->reply->values;
        info->available = values[0].number;
        info->held = (unsigned)values[1].number;
        info->waiters = (unsigned)values[2].number;
        info->total = sem->leased ? (unsigned)values[4].number : 0;
    }
    lk__request_free(request);
    lk__command_free(&command);
    return rc;
}

int lk_sem_info(lk_sem_t *s, lk_seminfo_t *info)
{
    struct lk__semcall call;
    lk_seminfo_t seen = LK_SEMINFO_INIT;
    if (info == NULL || info->size != sizeof *info)
        return lk__fail(EINVAL, "lk_sem_info: begin with LK_SEMINFO_INIT");
    int rc = lk__sem_enter(s, &call);
    if (rc != 0)
        return rc;
    rc = count(&call, &seen);
    if (rc == 0)
        *info = seen;
    return lk__sem_leave(&call, rc);
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
