/* SPDX-License-Identifier: MIT */
/* holder.c - what a holder may ask and say of its hold */
#include "object/holder.h"

/* What is asked of an owner's good hold. */
typedef int (*lk__question_t)(const struct lk__op *op, struct lk__hold *hold, void *arg);

/* Ask the hold of an owner; with `all` each that it has of leased permits, the oldest first, up to one that fails. */
static int ask_holds(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner, bool all,
                     lk__question_t question, void *arg)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enterholder(&op, handle, kind, owner);
    if (rc != 0)
        return rc;
    rc = lk__op_leasedonly(&op);
    if (rc == 0)
        rc = lk__op_hold(&op, &hold);
    if (rc == 0)
        rc = question(&op, hold, arg);
    while (rc == 0 && all && (hold = lk__object_nexthold(op.object, hold)) != NULL) {
        rc = lk__op_goodhold(&op, hold);
        if (rc == 0)
            rc = question(&op, hold, arg);
    }
    return lk__op_leave(&op, rc);
}

static int tell_token(const struct lk__op *op, struct lk__hold *hold, void *token)
{
    if (hold->holds == 0)
        return lk__fail(EPERM, "%s: held for reading; only writers have a token", op->object->what);
    if (hold->lease.quorum != NULL && hold->token == 0)
        return lk__fail(ENOTSUP, "%s: not fenced, so its grants have no tokens", op->object->what);
    *(uint64_t *)token = hold->token;
    return 0;
}

int lk__holder_token(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner,
                     uint64_t *token)
{
    if (token == NULL)
        return lk__fail(EINVAL, "%s: nowhere to put the token", function);
    return ask_holds(handle, kind, owner, false, tell_token, token);
}

/* The least of several. */
static int tell_remaining(const struct lk__op *op, struct lk__hold *hold, void *least_us)
{
    int64_t left_us, *least = least_us;
    if (!lk__lease_isgood(&hold->lease, &left_us))
        return lk__fail(ESTALE, "%s: the lease was lost", op->object->what);
    if (left_us < *least)
        *least = left_us;
    return 0;
}

int lk__holder_remaining(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner,
                         int64_t *ms)
{
    if (ms == NULL)
        return lk__fail(EINVAL, "%s: nowhere to put the time", function);
    int64_t least_us = LK__NEVER;
    int rc = ask_holds(handle, kind, owner, true, tell_remaining, &least_us);
    if (rc == 0)
        *ms = (least_us + 999) / 1000;
    return rc;
}

static int ask_server(const struct lk__op *op, struct lk__hold *hold, void *arg)
{
    const struct lk__object *object = op->object;
    const struct lk__command command = lk__object_command(object, object->kind->check_script, NULL);
    struct lk__call call = {
        .node = lk__object_node(object), .what = object->what, .command = &command, .sent = { .id = hold->lease.id }
    };
    (void)arg;
    if (object->kind->ask_held != NULL)
        return object->kind->ask_held(op, hold);
    int rc = lk__call_run(&call);
    if (rc != 0 || call.answer.verdict == LK__TAKEN)
        return rc;
    lk__lease_lose(&hold->lease, LK_REASON_GONE);
    return lk__fail(ESTALE, "%s: the server no longer knows this hold", object->what);
}

int lk__holder_check(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner)
{
    return ask_holds(handle, kind, owner, true, ask_server, NULL);
}

int lk__op_extend(const struct lk__op *op, struct lk__hold *hold, int64_t lease_ms)
{
    const struct lk__object *object = op->object;
    if (lk__object_leasecheck(object, lease_ms) != 0 ||
        (object->kind->check_lease != NULL && object->kind->check_lease(op, lease_ms) != 0))
        return EINVAL;
    int64_t until_us = lk__now_us() + object->client->options->command_timeout_ms * 1000;
    int rc = lk__lease_renew(&hold->lease, lease_ms, until_us);
    const char *replicas = "";
    if (rc == EIO && object->client->options->wait_replicas > 0)
        replicas = ", or too few replicas (wait_replicas) acknowledged it";
    return rc == 0 ? 0 : lk__fail(rc, "%s: the lease could not be set: %s%s", object->what, lk_strerror(rc), replicas);
}

static int extend(const struct lk__op *op, struct lk__hold *hold, void *lease_ms)
{
    return lk__op_extend(op, hold, *(int64_t *)lease_ms);
}

int lk__holder_leasecheck(int64_t lease_ms)
{
    if (lease_ms >= LK__LEASE_MIN_MS && lease_ms <= LK__LEASE_MAX_MS)
        return 0;
    return lk__fail(EINVAL, "a lease of %lld ms: at least %d ms, at most a day", (long long)lease_ms, LK__LEASE_MIN_MS);
}

int lk__holder_extend(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner, int64_t lease_ms)
{
    int rc = lk__holder_leasecheck(lease_ms);
    return rc == 0 ? ask_holds(handle, kind, owner, true, extend, &lease_ms) : rc;
}

static int declare_consistent(const struct lk__op *op, struct lk__hold *hold, void *arg)
{
    const struct lk__object *object = op->object;
    (void)arg;
    if (hold->holds == 0)
        return lk__fail(EPERM, "%s: held for reading; only a writer can repair what it guards", object->what);
    if (!hold->owner_died)
        return lk__fail(EINVAL, "%s: not taken over from a %s that died", object->what, object->kind->holder);
    hold->owner_died = false;
    return 0;
}

int lk__holder_consistent(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner)
{
    return ask_holds(handle, kind, owner, false, declare_consistent, NULL);
}
