/* SPDX-License-Identifier: MIT */
/*
 * holder.h - what a holder may ask and say of its hold: public calls, whole
 *
 * Each works on the good hold of `owner`, NULL: of the calling thread. `function` is the name of the call, for words.
 * Who has leased permits may have several holds: remaining is then the least of all, and check and extend begin with the
 * oldest and end with one that fails.
 */
#ifndef LK__OBJECT_HOLDER_H
#define LK__OBJECT_HOLDER_H

#include "object/acquire.h"

int lk__holder_token(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner,
                     uint64_t *token);
int lk__holder_remaining(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner,
                         int64_t *ms);
int lk__holder_check(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner);
int lk__holder_extend(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner, int64_t lease_ms);
/* 0, or EINVAL, with an error text: no lease has that length. */
int lk__holder_leasecheck(int64_t lease_ms);
int lk__holder_consistent(struct lk__handle handle, const struct lk__kind *kind, lk_owner_t *owner);

/* Within a public call: set the lease of that good hold. */
int lk__op_extend(const struct lk__op *op, struct lk__hold *hold, int64_t lease_ms);

#endif
