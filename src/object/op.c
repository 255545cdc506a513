/* SPDX-License-Identifier: MIT */
/* op.c - the beginning and the end of each public call on an object, and those calls that are the same for all */
#include "object/acquire.h"

/* The usual case: this process has bound the handle, and the client is open. NULL: it is another one. */
static struct lk__binding *enter_bound(struct lk__handle handle)
{
    uintptr_t process = __atomic_load_n(handle.process, __ATOMIC_ACQUIRE);
    struct lk__binding *binding = NULL;
    if ((process & ~(uintptr_t)LK__EXPLICIT) == lk__process())
        binding = __atomic_load_n(handle.impl, __ATOMIC_ACQUIRE); /* NULL: another thread is about to set it */
    return lk__binding_enter(binding) ? binding : NULL;
}

static int enter(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us)
{
    int rc = 0;
    op->self = lk__thread_self();
    if (op->self == NULL)
        return ENOMEM; /* no memory for an error text either */
    struct lk__binding *binding = enter_bound(handle);
    if (binding == NULL)
        rc = lk__handle_enter(handle, kind, limit_us, &binding);
    if (rc != 0)
        return rc;
    op->binding = binding;
    op->object = binding->object;
    op->attr = binding->attr;
    return 0;
}

int lk__op_enterby(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us)
{
    if (handle.name == NULL)
        return lk__fail(EINVAL, "no %s was given", kind->noun);
    op->api = lk__api_enter();
    int rc = enter(op, handle, kind, limit_us);
    return rc == 0 ? 0 : lk__api_leave(&op->api, rc);
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

/* The binding's reference is dropped before the call ends, as a close waits for the call, and the object may end here. */
int lk__op_leave(const struct lk__op *op, int code)
{
    lk_client_t *client = op->object->client;
    lk__binding_unref(op->binding);
    lk__client_leave(client);
    return lk__api_leave(&op->api, code);
}

int lk__op_hold(const struct lk__op *op, struct lk__hold **hold)
{
    *hold = lk__object_hold(op->object, op->self->owner);
    if (*hold == NULL)
        return lk__fail(EPERM, "%s: not held by this thread", op->object->what);
    if (!lk__lease_isgood((*hold)->lease, NULL))
        return lk__fail(ESTALE, "%s: the lease was lost; unlock as often as it was locked", op->object->what);
    return 0;
}

int lk__op_unlock(struct lk__handle handle, const struct lk__kind *kind)
{
    struct lk__op op;
    int rc = lk__op_enter(&op, handle, kind);
    if (rc == ECANCELED && lk__handle_isinherited(handle))
        return lk__fail(EPERM, "%s: held by another process, not by this one", lk__handle_name(handle));
    if (rc != 0)
        return rc;
    struct lk__object *object = op.object;
    struct lk__hold *hold = lk__object_hold(object, op.self->owner);
    if (hold == NULL) {
        rc = lk__fail(EPERM, "%s: not held by this thread", object->what);
    } else if ((int64_t)hold->holds + hold->reads > 1) {
        rc = kind->unlock_inner(&op, hold);
    } else {
        rc = lk__object_release(object, hold); /* the server frees it, or hands it to the first waiter */
        lk__object_drophold(object, hold);
        op.self->holds--;
    }
    return lk__op_leave(&op, rc);
}
