/* SPDX-License-Identifier: MIT */
/*
 * op.h - one public call on an object
 */
#ifndef LK__OBJECT_OP_H
#define LK__OBJECT_OP_H

#include "client/owner.h"
#include "object/handle.h"

struct lk__op {
    struct lk__binding *binding;
    struct lk__object *object;
    const void *attr;          /* as this handle has them: the primitive's type */
    struct lk__thread *self;   /* the calling thread */
    lk_owner_t *by;            /* whose call it is; NULL: the thread's */
    struct lk__ownercall call; /* of an explicit owner */
    struct lk__apistate api;
};

/*
 * Begin a call; after 0 object, attributes and client stay until the call ends, also when the handle is destroyed
 * or the client closed meanwhile. To be ended with lk__op_leave(), which returns its code; nothing of them may
 * be touched afterwards. `limit_us`: how long the call is to wait, LK__NEVER if it does not wait.
 */
int lk__op_enterby(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us);
int lk__op_enter(struct lk__op *op, struct lk__handle handle,
                 const struct lk__kind *kind); /* of a call that does not wait */
int lk__op_leave(struct lk__op *op, int code);

/*
 * The call is `owner`'s from now on; NULL: it stays the thread's. 0 or why not, with an error text; then it is to be left
 * as well.
 */
int lk__op_setowner(struct lk__op *op, lk_owner_t *owner);
/* Of a call that is to acquire: likewise, and no other call of its owner is acquiring the object, or looks at its hold. */
int lk__op_beginlock(struct lk__op *op, lk_owner_t *owner, int64_t limit_us);
/* Others may look at the owner's hold again: this call is about to wait. */
void lk__op_beginwait(struct lk__op *op);
/* Of a call on a hold: it is `owner`'s, and no other call of the owner looks at the hold meanwhile. As _setowner(). */
int lk__op_beginhold(struct lk__op *op, lk_owner_t *owner);
/* Begin a call on the hold of `owner`, NULL: of the thread. */
int lk__op_enterholder(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner);

static inline uint64_t lk__op_owner(const struct lk__op *op)
{
    return op->by == NULL ? op->self->owner : op->by->number;
}

/* "this thread", for words. */
static inline const char *lk__op_holder(const struct lk__op *op)
{
    return op->by == NULL ? "this thread" : "this owner";
}

/* EBUSY, with words: the call's owner has that hold. `how`: "", or behind these words. */
int lk__op_busy(const struct lk__op *op, const struct lk__hold *hold, const char *how);

/* Its owner holds something more. */
static inline void lk__op_counthold(const struct lk__op *op)
{
    if (op->by == NULL)
        op->self->holds++;
    else
        atomic_fetch_add(&op->by->holds, 1);
}

/* The public calls lk_..._init(), lk_..._destroy() and lk_..._unlock(), whole; `function` is the name of the call, for error texts. */
int lk__op_init(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_client_t *client,
                const char *name, const void *attr);
int lk__op_destroy(const char *function, struct lk__handle handle, const struct lk__kind *kind);
/* Of a handle that could not be opened, for `code`, which it returns. */
int lk__op_abandon(struct lk__handle handle, int code);
/* One level of the hold of `owner`, or all; NULL: of the calling thread. */
int lk__op_unlock(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner);
/*
 * Give all of `hold` back, and forget it. 0 · ESTALE it had been lost · else the outcome is open, and the release goes on in
 * the background; with an error text.
 */
int lk__op_giveback(const struct lk__op *op, struct lk__hold *hold);
/* Likewise by that request instead of its release, which says GONE where it did not find the hold. */
int lk__op_givebackby(const struct lk__op *op, struct lk__hold *hold, struct lk__outboxentry *release);

/* The hold of the call's owner: 0 it is good · EPERM there is none · ESTALE it was lost; with an error text. */
int lk__op_hold(const struct lk__op *op, struct lk__hold **hold);
/* 0, or ESTALE: that hold was lost; with an error text. */
int lk__op_goodhold(const struct lk__op *op, struct lk__hold *hold);
/* 0, or ENOTSUP, with an error text: what is acquired of this object has no lease. */
int lk__op_leasedonly(const struct lk__op *op);

#endif
