/* SPDX-License-Identifier: MIT */
/* op.c - the beginning and the end of each public call on an object, and those calls that are the same for all */
#include "object/acquire.h"

#include <limits.h>

/* The usual case: this process has bound the handle, and the client is open. NULL: it is another one. */
static struct lk__binding *enter_bound(struct lk__handle handle, struct lk__thread *self)
{
    uintptr_t process = __atomic_load_n(handle.process, __ATOMIC_ACQUIRE);
    if ((process & ~(uintptr_t)LK__EXPLICIT) != lk__process())
        return NULL;
    struct lk__binding *binding = __atomic_load_n(handle.impl, __ATOMIC_ACQUIRE);
    atomic_store(&self->follows, binding); /* NULL: another thread is about to set it */
    bool stays = __atomic_load_n(handle.impl, __ATOMIC_SEQ_CST) == binding; /* else it may be gone, as retired */
    bool entered = stays && lk__binding_enter(binding);
    atomic_store_explicit(&self->follows, NULL, memory_order_release);
    return entered ? binding : NULL;
}

int lk__op_enterby(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us)
{
    if (handle.name == NULL)
        return lk__fail(EINVAL, "no %s was given", kind->noun);
    op->api = lk__api_enter();
    op->by = NULL;
    op->self = op->api.thread;
    if (op->self == NULL)
        return lk__api_leave(&op->api, ENOMEM); /* no memory for an error text either */
    op->binding = enter_bound(handle, op->self);
    int rc = op->binding == NULL ? lk__handle_enter(handle, kind, limit_us, &op->binding) : 0;
    if (rc != 0)
        return lk__api_leave(&op->api, rc);
    op->object = op->binding->object;
    op->attr = op->binding->attr;
    return 0;
}

int lk__op_enter(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind)
{
    return lk__op_enterby(op, handle, kind, LK__NEVER);
}

int lk__op_init(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_client_t *client,
                const char *name, const void *attr)
{
    if (handle.name == NULL)
        return lk__fail(EINVAL, "%s: no %s was given", function, kind->noun);
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_init(handle, kind, client, name, attr));
}

int lk__op_destroy(const char *function, struct lk__handle handle, const struct lk__kind *kind)
{
    if (handle.name == NULL)
        return lk__fail(EINVAL, "%s: no %s was given", function, kind->noun);
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_destroy(handle));
}

int lk__op_abandon(struct lk__handle handle, int code)
{
    struct lk__apistate api = lk__api_enter();
    lk__handle_abandon(handle);
    return lk__api_leave(&api, code);
}

/* The binding's reference is dropped before the call ends, as a close waits for the call, and the object may end here. */
int lk__op_leave(struct lk__op *op, int code)
{
    lk_client_t *client = op->object->client;
    if (op->by != NULL)
        lk__owner_leave(op->by, &op->call);
    lk__binding_unref(op->binding);
    lk__client_leave(client);
    return lk__api_leave(&op->api, code);
}

void lk__acquire_leaveop(struct lk__acquire *acquire)
{
    lk__op_leave(acquire->op, ECANCELED);
}

/* --- the owner whose call it is ----------------------------------------------------------------------------------- */

int lk__op_setowner(struct lk__op *op, lk_owner_t *owner)
{
    if (owner == NULL)
        return 0;
    int rc = lk__owner_enter(owner, op->object->client, op->object->what);
    if (rc != 0)
        return rc;
    op->call = (struct lk__ownercall){ .object = op->object };
    op->by = owner;
    return 0;
}

int lk__op_beginlock(struct lk__op *op, lk_owner_t *owner, int64_t limit_us)
{
    if (owner == NULL)
        return 0;
    int rc = lk__op_setowner(op, owner);
    if (rc != 0)
        return rc;
    int64_t grace_us = op->object->client->options->command_timeout_ms * 1000, now_us = lk__now_us();
    if (lk__owner_begin(op->by, &op->call, LK__ACQUIRING, limit_us) &&
        lk__owner_begin(op->by, &op->call, LK__HANDLING, lk__later(limit_us > now_us ? limit_us : now_us, grace_us)))
        return 0;
    return lk__fail(ETIMEDOUT, "%s: not within the time; another call of this owner is at it", op->object->what);
}

void lk__op_beginwait(struct lk__op *op)
{
    if (op->by != NULL)
        lk__owner_end(op->by, &op->call, LK__HANDLING);
}

int lk__op_beginhold(struct lk__op *op, lk_owner_t *owner)
{
    if (owner == NULL)
        return 0;
    int rc = lk__op_setowner(op, owner);
    if (rc == ECANCELED && lk__owner_isinherited(owner))
        return lk__fail(EPERM, "%s: the owner belongs to another process, which may hold it", op->object->what);
    if (rc == 0)
        lk__owner_begin(owner, &op->call, LK__HANDLING, LK__NEVER);
    return rc;
}

int lk__op_enterholder(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner)
{
    int rc = lk__op_enterby(op, handle, kind, LK__NEVER);
    if (rc != 0)
        return rc;
    rc = lk__op_beginhold(op, owner);
    return rc == 0 ? 0 : lk__op_leave(op, rc);
}

/* --- acquiring ---------------------------------------------------------------------------------------------------- */

int lk__op_enterlock(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind,
                     const struct lk__how *how, struct lk__hold **hold)
{
    int rc = lk__op_enterby(op, handle, kind, how->limit_us);
    if (rc != 0)
        return rc;
    rc = lk__op_beginlock(op, how->by, how->limit_us);
    *hold = rc == 0 ? lk__object_hold(op->object, lk__op_owner(op)) : NULL;
    if (*hold != NULL)
        rc = lk__op_goodhold(op, *hold);
    return rc == 0 ? 0 : lk__op_leave(op, rc);
}

int lk__op_leavelock(struct lk__op *op, const struct lk__how *how, int code)
{
    return lk__op_leave(op, code == EBUSY && !how->only_try ? ETIMEDOUT : code);
}

int lk__op_checkagain(const struct lk__op *op, const struct lk__hold *hold, const struct lk__how *how, bool errorcheck)
{
    const char *what = op->object->what;
    if (errorcheck && how->only_try)
        return lk__op_busy(op, hold, "");
    if (errorcheck)
        return lk__fail(EDEADLK, "%s: held by %s, which would wait for itself", what, lk__op_holder(op));
    return hold->holds == INT_MAX ? lk__fail(EAGAIN, "%s: held %d times", what, hold->holds) : 0;
}

/* --- its hold ----------------------------------------------------------------------------------------------------- */

int lk__op_hold(const struct lk__op *op, struct lk__hold **hold)
{
    *hold = lk__object_hold(op->object, lk__op_owner(op));
    if (*hold == NULL)
        return lk__fail(EPERM, "%s: not held by %s", op->object->what, lk__op_holder(op));
    return lk__op_goodhold(op, *hold);
}

int lk__op_goodhold(const struct lk__op *op, struct lk__hold *hold)
{
    if (lk__lease_isgood(&hold->lease, NULL))
        return 0;
    return lk__fail(ESTALE, "%s: the lease was lost; give back as much as was taken", op->object->what);
}

int lk__op_leasedonly(const struct lk__op *op)
{
    return op->object->kind->counted
               ? lk__fail(ENOTSUP, "%s: only permits of a leased semaphore can do that", op->object->what)
               : 0;
}

int lk__op_busy(const struct lk__op *op, const struct lk__hold *hold, const char *how)
{
    lk__fail(EBUSY, "%s: held by %s%s", op->object->what, lk__op_holder(op), how);
    lk__error_leaves(atomic_load(&hold->lease.valid_until_us));
    return EBUSY;
}

static void forget(const struct lk__op *op, struct lk__hold *hold)
{
    bool owned = hold->lease.owner != 0;
    lk__object_drophold(op->object, hold);
    if (owned && op->by == NULL)
        op->self->holds--;
    else if (owned)
        atomic_fetch_sub(&op->by->holds, 1);
}

int lk__op_givebackby(const struct lk__op *op, struct lk__hold *hold, struct lk__outboxentry *release)
{
    struct lk__releasing releasing;
    lk__release_begin(&releasing, op->object, hold, release);
    int rc = lk__release_end(&releasing); /* the server frees it, or hands it to the first waiter */
    forget(op, hold);
    return rc;
}

int lk__op_giveback(const struct lk__op *op, struct lk__hold *hold)
{
    if (op->object->kind->release == NULL)
        return lk__op_givebackby(op, hold, &hold->lease.release);
    int rc = op->object->kind->release(op->object, hold);
    forget(op, hold);
    return rc;
}

/* --- unlocking ---------------------------------------------------------------------------------------------------- */

/* With a release that is this request alone, the call goes on; else it is over. */
void lk__unlock_begin(struct lk__unlocking *unlocking, struct lk__handle handle, const struct lk__kind *kind,
                      lk_owner_t *owner)
{
    struct lk__op *op = &unlocking->op;
    unlocking->begun = false;
    unlocking->code = lk__op_enterholder(op, handle, kind, owner);
    if (unlocking->code == ECANCELED && lk__handle_isinherited(handle))
        unlocking->code = lk__fail(EPERM, "%s: held by another process, not by this one", lk__handle_name(handle));
    if (unlocking->code != 0)
        return;
    int rc;
    struct lk__hold *hold = lk__object_hold(op->object, lk__op_owner(op));
    if (hold == NULL) {
        rc = lk__fail(EPERM, "%s: not held by %s", op->object->what, lk__op_holder(op));
    } else if ((int64_t)hold->holds + hold->reads > 1) {
        rc = kind->unlock_inner(op, hold);
    } else if (kind->release != NULL) {
        rc = lk__op_giveback(op, hold);
    } else {
        unlocking->begun = true;
        lk__release_begin(&unlocking->releasing, op->object, hold, &hold->lease.release);
        return;
    }
    unlocking->code = lk__op_leave(op, rc);
}

bool lk__unlock_await(struct lk__unlocking *unlocking, int64_t until_us)
{
    struct lk__releasing *releasing = &unlocking->releasing;
    return !unlocking->begun || !releasing->ended || lk__call_await(&releasing->ongoing, until_us);
}

int lk__unlock_end(struct lk__unlocking *unlocking)
{
    if (!unlocking->begun)
        return unlocking->code;
    int rc = lk__release_end(&unlocking->releasing);
    forget(&unlocking->op, unlocking->releasing.hold);
    return lk__op_leave(&unlocking->op, rc);
}

int lk__op_unlock(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner)
{
    struct lk__unlocking unlocking;
    lk__unlock_begin(&unlocking, handle, kind, owner);
    return lk__unlock_end(&unlocking);
}
