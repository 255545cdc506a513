/* SPDX-License-Identifier: MIT */
/* attr.c - attributes of a redlock, checked one by one and together */
#include "redlock/redlock.h"

enum { NODE_TIMEOUTS = 5 /* a lease is so many of them, or longer */ };

static bool is_flag(int value)
{
    return value == 0 || value == 1;
}

static int check_times(const lk_redlockattr_t *attr)
{
    if (attr->longest_lease_ms < -1 || attr->longest_lease_ms > LK__LEASE_MAX_MS)
        return lk__fail(EINVAL, "longest_lease_ms is %lld: at most a day, or -1 where servers forget nothing",
                        (long long)attr->longest_lease_ms);
    if (attr->longest_lease_ms > 0 && attr->lease_ms > attr->longest_lease_ms)
        return lk__fail(EINVAL, "lease_ms is above longest_lease_ms");
    if (attr->node_timeout_ms < 0 || attr->node_timeout_ms > LK__LEASE_MAX_MS / NODE_TIMEOUTS)
        return lk__fail(EINVAL, "node_timeout_ms is %lld: at least 0, at most a fifth of the lease",
                        (long long)attr->node_timeout_ms);
    return lk__attr_leases(attr->lease_ms, attr->max_hold_ms);
}

int lk__redlockattr_check(void *checked, const void *given)
{
    lk_redlockattr_t *attr = checked;
    int rc = lk__sized_read(attr, sizeof *attr, given, LK__THROUGH(lk_redlockattr_t, type), "lk_redlockattr_t");
    if (rc != 0)
        return rc;
    if (attr->type < LK_REDLOCK_RECURSIVE || attr->type > LK_REDLOCK_NORMAL)
        return lk__fail(EINVAL, "redlock type %d: LK_REDLOCK_RECURSIVE, _ERRORCHECK and _NORMAL are 0 to 2", attr->type);
    if (attr->fair != 0)
        return lk__fail(EINVAL, "a redlock cannot be fair: several servers have no queue in common");
    if (attr->robust != 0)
        return lk__fail(EINVAL, "a redlock cannot be robust: a majority may have forgotten who died");
    if (!is_flag(attr->fixed) || !is_flag(attr->fenced))
        return lk__fail(EINVAL, "redlock attributes: fixed and fenced are 0 or 1");
    return check_times(attr);
}

int64_t lk__redlock_lease(const struct lk__op *op)
{
    const lk_redlockattr_t *attr = lk__redlock_attr(op);
    return attr->lease_ms != 0 ? attr->lease_ms : op->object->client->options->lease_ms;
}

/* Of one call's lease the other users know nothing, so it is no measure. */
int64_t lk__redlock_longest(const struct lk__op *op)
{
    const lk_redlockattr_t *attr = lk__redlock_attr(op);
    return attr->longest_lease_ms != 0 ? attr->longest_lease_ms : lk__redlock_lease(op);
}

int lk__redlock_checklease(const struct lk__op *op, int64_t lease_ms)
{
    int64_t longest_ms = lk__redlock_longest(op);
    if (longest_ms < 0 || lease_ms <= longest_ms)
        return 0;
    return lk__fail(EINVAL, "%s: a lease of %lld ms is above longest_lease_ms, %lld", op->object->what,
                    (long long)lease_ms, (long long)longest_ms);
}
