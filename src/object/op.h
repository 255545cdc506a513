/* SPDX-License-Identifier: MIT */
/*
 * op.h - one public call on an object
 */
#ifndef LK__OBJECT_OP_H
#define LK__OBJECT_OP_H

#include "object/handle.h"

struct lk__op {
    struct lk__binding *binding;
    struct lk__object *object;
    const void *attr;        /* as this handle has them: the primitive's type */
    struct lk__thread *self; /* the calling thread */
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
int lk__op_leave(const struct lk__op *op, int code);

/* The public calls lk_..._init(), lk_..._destroy() and lk_..._unlock(), whole; `function` is the name of the call, for error texts. */
int lk__op_init(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_client_t *client,
                const char *name, const void *attr);
int lk__op_destroy(const char *function, struct lk__handle handle, const struct lk__kind *kind);
int lk__op_unlock(struct lk__handle handle, const struct lk__kind *kind); /* one level of the caller's hold, or all */

/* The caller's hold: 0 it is good · EPERM there is none · ESTALE it was lost; with an error text. */
int lk__op_hold(const struct lk__op *op, struct lk__hold **hold);

#endif
