/* SPDX-License-Identifier: MIT */
/* hold.c - what a holder may ask and say of its hold */
#include "lock/mutex.h"

/* Runs `body` with the calling thread's good hold. */
static int with_hold(lk_mutex_t *m, int (*body)(const struct lk__op *, struct lk__hold *, void *), void *arg)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enter(&op, LK__HANDLE(m), &lk__mutex_kind);
    if (rc != 0)
        return rc;
    rc = lk__op_hold(&op, &hold);
    if (rc == 0)
        rc = body(&op, hold, arg);
    return lk__op_leave(&op, rc);
}

static int tell_token(const struct lk__op *op, struct lk__hold *hold, void *token)
{
    (void)op;
    *(uint64_t *)token = hold->token;
    return 0;
}

int lk_mutex_token(lk_mutex_t *m, uint64_t *token)
{
    if (token == NULL)
        return lk__fail(EINVAL, "lk_mutex_token: nowhere to put the token");
    return with_hold(m, tell_token, token);
}

static int tell_remaining(const struct lk__op *op, struct lk__hold *hold, void *ms)
{
    int64_t left_us;
    if (!lk__watchdog_good(hold->dog, hold, &left_us))
        return lk__fail(ESTALE, "%s: the lease was lost", op->object->what);
    *(int64_t *)ms = (left_us + 999) / 1000;
    return 0;
}

int lk_mutex_remaining(lk_mutex_t *m, int64_t *ms)
{
    if (ms == NULL)
        return lk__fail(EINVAL, "lk_mutex_remaining: nowhere to put the time");
    return with_hold(m, tell_remaining, ms);
}

static int ask_server(const struct lk__op *op, struct lk__hold *hold, void *arg)
{
    struct lk__mutex *mutex = lk__mutex_of(op);
    const char *what = mutex->object.what;
    const struct lk__command command = { .script = &lk__lua_lock_check, .keys = &lk__mutex_block(mutex)->keys };
    struct lk__call call = {
        .node = lk__object_node(&mutex->object), .what = what, .command = &command, .sent = { .id = hold->id }
    };
    struct lk__answer answer;
    (void)arg;
    int rc = lk__call_run(&call);
    if (rc != 0)
        return rc;
    if (!lk__lock_check_read(call.reply, &answer))
        return lk__call_garbled(what);
    if (answer.verdict == LK__TAKEN)
        return 0;
    lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
    return lk__fail(ESTALE, "%s: the server no longer knows this hold", what);
}

int lk_mutex_check(lk_mutex_t *m)
{
    return with_hold(m, ask_server, NULL);
}

static int renew_with(const struct lk__op *op, struct lk__hold *hold, void *lease_ms)
{
    const struct lk__object *object = op->object;
    int64_t until_us = lk__now_us() + object->client->options->command_timeout_ms * 1000;
    int rc = lk__watchdog_renew(hold->dog, hold, *(int64_t *)lease_ms, until_us);
    return rc == 0 ? 0 : lk__fail(rc, "%s: the lease could not be set: %s", object->what, lk_strerror(rc));
}

int lk_mutex_extend(lk_mutex_t *m, int64_t lease_ms)
{
    if (lease_ms < 100 || lease_ms > LK__LEASE_MAX_MS)
        return lk__fail(EINVAL, "a lease of %lld ms: at least 100 ms, at most a day", (long long)lease_ms);
    return with_hold(m, renew_with, &lease_ms);
}

static int declare_consistent(const struct lk__op *op, struct lk__hold *hold, void *arg)
{
    (void)arg;
    if (!hold->owner_died)
        return lk__fail(EINVAL, "%s: not taken over from a holder that died", op->object->what);
    hold->owner_died = false;
    return 0;
}

int lk_mutex_consistent(lk_mutex_t *m)
{
    return with_hold(m, declare_consistent, NULL);
}
