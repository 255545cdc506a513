/* SPDX-License-Identifier: MIT */
/* op.c - the beginning and the end of each public call on an object */
#include "object/op.h"

static int enter(struct lk__op *op, struct lk__handle handle, const struct lk__handletype *type, int64_t limit_us)
{
    struct lk__binding *binding;
    op->self = lk__thread_self();
    if (op->self == NULL)
        return ENOMEM; /* not even room for words */
    int rc = lk__handle_enter(handle, type, limit_us, &binding);
    if (rc != 0)
        return rc;
    op->binding = binding;
    op->object = binding->object;
    op->attr = binding->attr;
    return 0;
}

int lk__op_enterby(struct lk__op *op, struct lk__handle handle, const struct lk__handletype *type, int64_t limit_us)
{
    op->api = lk__api_enter();
    int rc = enter(op, handle, type, limit_us);
    return rc == 0 ? 0 : lk__api_leave(&op->api, rc);
}

int lk__op_leave(const struct lk__op *op, int code)
{
    lk__handle_leave(op->binding);
    return lk__api_leave(&op->api, code);
}

int lk__op_hold(const struct lk__op *op, struct lk__hold **hold)
{
    *hold = lk__object_hold(op->object, op->self->owner);
    if (*hold == NULL)
        return lk__fail(EPERM, "%s: not held by this thread", op->object->what);
    if (!lk__watchdog_good((*hold)->dog, *hold, NULL))
        return lk__fail(ESTALE, "%s: the lease was lost; unlock as often as it was locked", op->object->what);
    return 0;
}
