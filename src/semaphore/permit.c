/* SPDX-License-Identifier: MIT */
/*
 * permit.c - permits with an id of their own, which any thread or process may give back
 *
 * Guards: object->mu, `holds` of a permit: 0 while a thread gives it back.
 */
#include "semaphore/semaphore.h"

#include <string.h>

int lk__sem_idcheck(const char *function, const char *id)
{
    if (id != NULL && strlen(id) == LK__ID_LENGTH && strspn(id, "0123456789abcdef") == LK__ID_LENGTH)
        return 0;
    return lk__fail(EINVAL, "%s: the id of a permit has 32 hex digits", function);
}

static int take(struct lk__semcall *call, const struct lk__how *how, char id[LK_PERMIT_ID])
{
    char fresh[LK__ID_LENGTH + 1];
    int rc = lk__op_leasedonly(&call->op);
    if (rc == 0 && how->by != NULL)
        rc = lk__fail(EINVAL, "%s: a permit with an id has no owner", call->what);
    if (rc == 0)
        rc = lk__random_id(fresh);
    if (rc == 0)
        rc = lk__leased_take(call, 1, how, fresh);
    if (rc == 0)
        strcpy(id, fresh);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

static int take_as(const char *function, lk_sem_t *s, const struct lk__how *how, char id[LK_PERMIT_ID])
{
    struct lk__semcall call;
    if (id == NULL)
        return lk__fail(EINVAL, "%s: nowhere to put the id", function);
    pthread_testcancel();
    int rc = lk__sem_enter(s, how->limit_us, &call);
    return rc != 0 ? rc : lk__op_leave(&call.op, take(&call, how, id));
}

int lk_sem_acquireid(lk_sem_t *s, int64_t timeout_ms, char id[LK_PERMIT_ID])
{
    struct lk__how how = { 0 };
    int rc = lk__deadline_in(timeout_ms, &how.limit_us);
    return rc != 0 ? rc : take_as(__func__, s, &how, id);
}

int lk_sem_timedacquireid(lk_sem_t *s, const struct timespec *abstime, char id[LK_PERMIT_ID])
{
    return lk_sem_clockacquireid(s, CLOCK_REALTIME, abstime, id);
}

int lk_sem_clockacquireid(lk_sem_t *s, clockid_t clock, const struct timespec *abstime, char id[LK_PERMIT_ID])
{
    struct lk__how how = { 0 };
    int rc = lk__deadline_at(clock, abstime, &how.limit_us);
    return rc != 0 ? rc : take_as(__func__, s, &how, id);
}

int lk_sem_acquireidwith(lk_sem_t *s, const lk_how_t *how, char id[LK_PERMIT_ID])
{
    struct lk__how taken;
    int rc = lk__how_take(&taken, how);
    return rc != 0 ? rc : take_as(__func__, s, &taken, id);
}

int lk__sem_nopermit(const struct lk__semcall *call, const char *id, bool ended)
{
    return ended ? lk__fail(ESTALE, "%s: permit %s had ended", call->what, id)
                 : lk__fail(EPERM, "%s: there is no permit %s", call->what, id);
}

/* The hold of that permit, with a reference, which only the caller may give back now; NULL: not this client's. */
static struct lk__hold *claim(struct lk__object *object, const char *id)
{
    lk__mu_lock(&object->mu);
    struct lk__hold *found = lk__object_permit(object, id);
    if (found != NULL && found->holds == 0)
        found = NULL;
    if (found != NULL)
        lk__hold_ref(found)->holds = 0;
    lk__mu_unlock(&object->mu);
    return found;
}

/* Give back a permit that another client took, or nobody. */
static int release_by_id(const struct lk__semcall *call, const char *id)
{
    const struct lk__semblock *block = lk__sem_block(call->sem);
    const struct lk__command command = { .script = &lk__lua_semaphore_permit_release,
                                         .keys = &block->keys,
                                         .args = &block->release };
    struct lk__call release = { .node = lk__object_node(&call->sem->object),
                                .what = call->what,
                                .command = &command,
                                .sent = { .id = id },
                                .by_steps = true };
    int rc = lk__call_run(&release);
    if (rc == 0 && release.answer.verdict == LK__GONE && !release.repeated)
        rc = lk__sem_nopermit(call, id, release.answer.number == 1); /* whether it ended */
    return rc;
}

int lk_sem_releaseid(lk_sem_t *s, const char *id)
{
    struct lk__semcall call;
    int rc = lk__sem_idcheck(__func__, id);
    if (rc == 0)
        rc = lk__sem_entergiver(s, NULL, &call);
    if (rc != 0)
        return rc;
    rc = lk__op_leasedonly(&call.op);
    if (rc == 0) {
        struct lk__hold *hold = claim(call.op.object, id);
        rc = hold != NULL ? lk__op_giveback(&call.op, hold) : release_by_id(&call, id);
        lk__hold_unref(hold);
    }
    return lk__sem_gave(&call, rc);
}
