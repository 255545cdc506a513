/* SPDX-License-Identifier: MIT */
/*
 * by_id.c - what may be asked and said of a permit by its id: token, remaining, check, extend
 *
 * Of a permit that this client took, and renews, its hold tells; of any other the server.
 */
#include "semaphore/semaphore.h"

/* Begin a call on that permit. `hold`: with a reference; NULL: it is not this client's. */
static int enter(const char *function, lk_sem_t *s, const char *id, struct lk__semcall *call, struct lk__hold **hold)
{
    int rc = lk__sem_idcheck(function, id);
    if (rc == 0)
        rc = lk__sem_enter(s, LK__NEVER, call);
    if (rc != 0)
        return rc;
    *hold = NULL;
    rc = lk__op_leasedonly(&call->op);
    if (rc != 0)
        return lk__op_leave(&call->op, rc);
    *hold = lk__object_usepermit(call->op.object, id);
    return 0;
}

static int leave(struct lk__semcall *call, struct lk__hold *hold, int code)
{
    lk__hold_unref(hold);
    return lk__op_leave(&call->op, code);
}

static int ask_server(const struct lk__semcall *call, const char *id, int64_t *left_ms)
{
    const struct lk__command command = lk__object_command(call->op.object, &lk__lua_semaphore_permit_check, NULL);
    struct lk__replybuf buf;
    struct lk__semaphore_permit_check_reply told;
    int rc = lk__object_ask(call->op.object, &command, id, lk__replybuf_reply(&buf));
    if (rc != 0)
        return rc;
    lk__semaphore_permit_check_read(&buf.reply, &told);
    if (rc == 0 && told.verdict == LK__GONE)
        rc = lk__sem_nopermit(call, id, told.ended == 1);
    if (rc == 0)
        *left_ms = told.left_ms;
    return rc;
}

/* 0, or ESTALE: the lease of this client's hold was lost. */
static int good(const struct lk__semcall *call, const char *id, struct lk__hold *hold, int64_t *left_ms)
{
    int64_t left_us;
    if (!lk__lease_isgood(&hold->lease, &left_us))
        return lk__sem_nopermit(call, id, true);
    *left_ms = (left_us + 999) / 1000;
    return 0;
}

int lk_sem_remainingid(lk_sem_t *s, const char *id, int64_t *ms)
{
    struct lk__semcall call;
    struct lk__hold *hold;
    if (ms == NULL)
        return lk__fail(EINVAL, "%s: nowhere to put the time", __func__);
    int rc = enter(__func__, s, id, &call, &hold);
    if (rc != 0)
        return rc;
    rc = hold != NULL ? good(&call, id, hold, ms) : ask_server(&call, id, ms);
    return leave(&call, hold, rc);
}

int lk_sem_tokenid(lk_sem_t *s, const char *id, uint64_t *token)
{
    struct lk__semcall call;
    struct lk__hold *hold;
    int64_t left_ms;
    if (token == NULL)
        return lk__fail(EINVAL, "%s: nowhere to put the token", __func__);
    int rc = enter(__func__, s, id, &call, &hold);
    if (rc != 0)
        return rc;
    rc = hold != NULL ? good(&call, id, hold, &left_ms)
                      : lk__fail(EPERM, "%s: this client has no permit %s", call.what, id);
    if (rc == 0)
        *token = hold->token;
    return leave(&call, hold, rc);
}

int lk_sem_checkid(lk_sem_t *s, const char *id)
{
    struct lk__semcall call;
    struct lk__hold *hold;
    int64_t left_ms;
    int rc = enter(__func__, s, id, &call, &hold);
    if (rc != 0)
        return rc;
    if (hold != NULL)
        rc = good(&call, id, hold, &left_ms);
    if (rc == 0)
        rc = ask_server(&call, id, &left_ms);
    if (hold != NULL && (rc == EPERM || rc == ESTALE))
        lk__lease_lose(&hold->lease, LK_REASON_RELEASED); /* as its next renewal would find */
    return leave(&call, hold, rc);
}

/* Of a permit that this client does not renew. */
static int let_last(const struct lk__semcall *call, const char *id, int64_t least_ms)
{
    const struct lk__semaphore_permit_extend_args args = { .least_ms = least_ms };
    const struct lk__command command = lk__object_command(call->op.object, &lk__lua_semaphore_permit_extend, &args);
    struct lk__semaphore_permit_extend_reply told;
    struct lk__replybuf buf;
    int rc = lk__object_ask(call->op.object, &command, id, lk__replybuf_reply(&buf));
    if (rc != 0)
        return rc;
    lk__semaphore_permit_extend_read(&buf.reply, &told);
    if (rc == 0 && told.verdict == LK__LATE)
        rc = lk__late(call->op.object);
    if (rc == 0 && told.verdict == LK__GONE)
        rc = lk__sem_nopermit(call, id, told.ended == 1);
    return rc;
}

int lk_sem_extendid(lk_sem_t *s, const char *id, int64_t lease_ms)
{
    struct lk__semcall call;
    struct lk__hold *hold;
    int rc = lk__holder_leasecheck(lease_ms);
    if (rc == 0)
        rc = enter(__func__, s, id, &call, &hold);
    if (rc != 0)
        return rc;
    rc = hold != NULL ? lk__op_extend(&call.op, hold, lease_ms) : let_last(&call, id, lease_ms);
    return leave(&call, hold, rc);
}
