/* SPDX-License-Identifier: MIT */
/*
 * permit.c - permits with an id of their own, which any thread or process may give back
 *
 * Guards: object->mu, `holds` of a permit: 0 while a thread gives it back.
 */
#include "semaphore/semaphore.h"

#include <string.h>

static bool is_id(const char *id)
{
    return id != NULL && strlen(id) == LK__ID_LENGTH && strspn(id, "0123456789abcdef") == LK__ID_LENGTH;
}

int lk_sem_acquireid(lk_sem_t *s, int64_t timeout_ms, char id[LK_PERMIT_ID])
{
    struct lk__semcall call;
    char fresh[LK__ID_LENGTH + 1];
    struct lk__how how = { 0 };
    if (id == NULL)
        return lk__fail(EINVAL, "lk_sem_acquireid: nowhere to put the id");
    int rc = lk__deadline_in(timeout_ms, &how.limit_us);
    if (rc == 0)
        pthread_testcancel();
    if (rc == 0)
        rc = lk__sem_enterby(s, how.limit_us, &call);
    if (rc != 0)
        return rc;
    rc = lk__sem_leasedonly(&call);
    if (rc == 0)
        rc = lk__random_id(fresh);
    if (rc == 0)
        rc = lk__leased_take(&call, 1, &how, fresh);
    if (rc == 0)
        strcpy(id, fresh);
    return lk__sem_leave(&call, rc == EBUSY ? ETIMEDOUT : rc);
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
    struct lk__semaphore_permit_release_reply told;
    struct lk__call release = {
        .node = lk__object_node(&call->sem->object), .what = call->what, .command = &command, .sent = { .id = id }
    };
    int rc = lk__call_run(&release);
    if (rc == 0 && !lk__semaphore_permit_release_read(release.reply, &told))
        rc = lk__call_garbled(call->what);
    if (rc == 0 && told.verdict == LK__GONE && !release.repeated)
        rc = told.ended == 1 ? lk__fail(ESTALE, "%s: permit %s had ended", call->what, id)
                             : lk__fail(EPERM, "%s: there is no permit %s", call->what, id);
    return rc;
}

int lk_sem_releaseid(lk_sem_t *s, const char *id)
{
    struct lk__semcall call;
    if (!is_id(id))
        return lk__fail(EINVAL, "lk_sem_releaseid: the id of a permit has 32 hex digits");
    int rc = lk__sem_enter(s, &call);
    if (rc != 0)
        return rc;
    rc = lk__sem_leasedonly(&call);
    if (rc == 0) {
        struct lk__hold *hold = claim(call.op.object, id);
        rc = hold != NULL ? lk__op_giveback(&call.op, hold) : release_by_id(&call, id);
        lk__hold_unref(hold);
    }
    return lk__sem_leave(&call, rc);
}

int lk_sem_tokenby(lk_sem_t *s, lk_owner_t *owner, uint64_t *token)
{
    struct lk__semcall call;
    struct lk__hold *hold;
    if (token == NULL)
        return lk__fail(EINVAL, "lk_sem_token: nowhere to put the token");
    int rc = lk__sem_enterholder(s, owner, &call);
    if (rc != 0)
        return rc;
    rc = lk__sem_leasedonly(&call);
    if (rc == 0)
        rc = lk__op_hold(&call.op, &hold);
    if (rc == 0)
        *token = hold->token;
    return lk__sem_leave(&call, rc);
}

int lk_sem_token(lk_sem_t *s, uint64_t *token)
{
    return lk_sem_tokenby(s, NULL, token);
}

/* Of a permit that this client renews, and nobody is giving back. */
static int token_of(const struct lk__semcall *call, const char *id, uint64_t *token)
{
    struct lk__object *object = call->op.object;
    lk__mu_lock(&object->mu);
    struct lk__hold *hold = lk__object_permit(object, id);
    if (hold != NULL)
        hold = hold->holds != 0 ? lk__hold_ref(hold) : NULL;
    lk__mu_unlock(&object->mu);
    if (hold == NULL)
        return lk__fail(EPERM, "%s: this client has no permit %s", call->what, id);
    bool good = lk__lease_isgood(hold->lease, NULL);
    if (good)
        *token = hold->token;
    lk__hold_unref(hold);
    return good ? 0 : lk__fail(ESTALE, "%s: the lease of permit %s was lost", call->what, id);
}

int lk_sem_tokenid(lk_sem_t *s, const char *id, uint64_t *token)
{
    struct lk__semcall call;
    if (token == NULL)
        return lk__fail(EINVAL, "lk_sem_tokenid: nowhere to put the token");
    if (!is_id(id))
        return lk__fail(EINVAL, "lk_sem_tokenid: the id of a permit has 32 hex digits");
    int rc = lk__sem_enter(s, &call);
    if (rc != 0)
        return rc;
    rc = lk__sem_leasedonly(&call);
    if (rc == 0)
        rc = token_of(&call, id, token);
    return lk__sem_leave(&call, rc);
}
