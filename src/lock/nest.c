/* SPDX-License-Identifier: MIT */
/* nest.c - levels of a mutex above the first: the server has their number */
#include "lock/mutex.h"

int lk__mutex_nest(const struct lk__op *op, struct lk__hold *hold, int holds)
{
    struct lk__object *object = op->object;
    const struct lk__lock_nest_args args = { .holds = holds };
    const struct lk__command command = lk__object_command(object, &lk__lua_lock_nest, &args);
    enum lk__verdict verdict;
    int rc = lk__update(object, hold, &command, &verdict);
    if (rc != 0)
        return rc;
    return lk__lease_isgood(&hold->lease, NULL) ? 0 : lk__gone(object);
}

int lk__mutex_unlockinner(const struct lk__op *op, struct lk__hold *hold)
{
    int rc = lk__op_hold(op, &hold);
    hold->holds--;
    if (rc != 0 || lk__mutex_attr(op)->nested_local)
        return rc;
    return lk__mutex_nest(op, hold, hold->holds);
}
