/* SPDX-License-Identifier: MIT */
/* hold.c - what a holder may ask and say of its hold */
#include "rwlock/rwlock.h"

/* Runs `body` with the calling thread's good hold. */
static int with_hold(lk_rwlock_t *rw, int (*body)(struct lk__object *, struct lk__hold *, void *), void *arg)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enter(&op, LK__HANDLE(rw), &lk__rwlock_kind);
    if (rc != 0)
        return rc;
    rc = lk__op_hold(&op, &hold);
    if (rc == 0)
        rc = body(op.object, hold, arg);
    return lk__op_leave(&op, rc);
}

static int tell_token(struct lk__object *object, struct lk__hold *hold, void *token)
{
    if (!lk__rwlock_iswriter(hold))
        return lk__fail(EPERM, "%s: held for reading; only writers have a token", object->what);
    *(uint64_t *)token = hold->token;
    return 0;
}

int lk_rwlock_token(lk_rwlock_t *rw, uint64_t *token)
{
    if (token == NULL)
        return lk__fail(EINVAL, "lk_rwlock_token: nowhere to put the token");
    return with_hold(rw, tell_token, token);
}

static int tell_remaining(struct lk__object *object, struct lk__hold *hold, void *ms)
{
    int64_t left_us;
    if (!lk__watchdog_good(hold->dog, hold, &left_us))
        return lk__fail(ESTALE, "%s: the lease was lost", object->what);
    *(int64_t *)ms = (left_us + 999) / 1000;
    return 0;
}

int lk_rwlock_remaining(lk_rwlock_t *rw, int64_t *ms)
{
    if (ms == NULL)
        return lk__fail(EINVAL, "lk_rwlock_remaining: nowhere to put the time");
    return with_hold(rw, tell_remaining, ms);
}

static int ask_server(struct lk__object *object, struct lk__hold *hold, void *arg)
{
    const char *what = object->what;
    const struct lk__command command = { .script = &lk__lua_rwlock_check, .keys = &lk__rwlock_block(object)->keys };
    struct lk__call call = {
        .node = lk__object_node(object), .what = what, .command = &command, .sent = { .id = hold->id }
    };
    struct lk__answer answer;
    (void)arg;
    int rc = lk__call_run(&call);
    if (rc != 0)
        return rc;
    if (!lk__rwlock_check_read(call.reply, &answer))
        return lk__call_garbled(what);
    if (answer.verdict == LK__TAKEN)
        return 0;
    lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
    return lk__fail(ESTALE, "%s: the server no longer knows this hold", what);
}

int lk_rwlock_check(lk_rwlock_t *rw)
{
    return with_hold(rw, ask_server, NULL);
}

static int declare_consistent(struct lk__object *object, struct lk__hold *hold, void *arg)
{
    (void)arg;
    if (!lk__rwlock_iswriter(hold))
        return lk__fail(EPERM, "%s: held for reading; only a writer can repair what it guards", object->what);
    if (!hold->owner_died)
        return lk__fail(EINVAL, "%s: not taken over from a writer that died", object->what);
    hold->owner_died = false;
    return 0;
}

int lk_rwlock_consistent(lk_rwlock_t *rw)
{
    return with_hold(rw, declare_consistent, NULL);
}
