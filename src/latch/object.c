/* SPDX-License-Identifier: MIT */
/* object.c - the table of the latch: its keys, its channel and its attributes */
#include "latch/latch.h"

_Static_assert(sizeof(lk_latch_t) == 8 * sizeof(void *), "ABI");

#define TTL_MAX_MS (366 * INT64_C(86400000))

static struct lk__latch *latch_of(struct lk__object *object)
{
    return LK__CONTAINER(object, struct lk__latch, object);
}

static bool latch_init(struct lk__object *object)
{
    struct lk__latch *latch = latch_of(object);
    latch->slots.tag = 'l';
    latch->block = LK__CONTAINER(object->block, struct lk__latchblock, block);
    lk__broadcast_init(&latch->broadcast, object->client, latch->block->channel);
    return true;
}

static void latch_stop(struct lk__object *object)
{
    lk__broadcast_stop(&latch_of(object)->broadcast);
    lk__anonymous_leave(object, &latch_of(object)->presence);
}

static void latch_cancel(struct lk__object *object)
{
    lk__broadcast_wake(&latch_of(object)->broadcast);
}

static void latch_destroy(struct lk__object *object)
{
    struct lk__latch *latch = latch_of(object);
    lk__broadcast_destroy(&latch->broadcast);
    lk__slots_destroy(&latch->slots);
}

static int check(void *checked, const void *given)
{
    lk_latchattr_t *attr = checked;
    int rc = lk__sized_read(attr, sizeof *attr, given, sizeof attr->size, "lk_latchattr_t");
    if (rc != 0)
        return rc;
    if (attr->ttl_ms != 0 && (attr->ttl_ms < LK__LEASE_MIN_MS || attr->ttl_ms > TTL_MAX_MS))
        return lk__fail(EINVAL, "ttl_ms is %lld: at least %d, at most a year, or 0 for no end", (long long)attr->ttl_ms,
                        LK__LEASE_MIN_MS);
    if (attr->appear != 0 && attr->appear != 1)
        return lk__fail(EINVAL, "latch attributes: appear is 0 or 1");
    if (attr->anonymous != 0 && attr->anonymous != 1)
        return lk__fail(EINVAL, "latch attributes: anonymous is 0 or 1");
    if (attr->anonymous && attr->ttl_ms != 0)
        return lk__fail(EINVAL,
                        "latch attributes: ttl_ms is not for an anonymous one, whose count ends with its users");
    if ((attr->lk_room[0] | attr->lk_room[1]) != 0)
        return lk__fail(EINVAL, "latch attributes: lk_room is zero");
    return 0;
}

static struct lk__traits traits(const void *checked)
{
    const lk_latchattr_t *attr = checked;
    return (struct lk__traits){ .anonymous = attr->anonymous };
}

#define AT(member) offsetof(struct lk__latchblock, member)

static const struct lk__keyspec keys[] = {
    { AT(keys.count), NULL, LK__KEY_NAME, false },
    { AT(keys.mark), "latchkey:opened", LK__KEY_OURS, false },
    { AT(keys.once), "latchkey:once", LK__KEY_OURS, false },
    { AT(keys.users), "latchkey:users:latch", LK__KEY_OURS, LK__IF_ANONYMOUS },
    { AT(channel), "redisson_countdownlatch__channel__", LK__KEY_BRACED, false },
};

const struct lk__kind lk__latch_kind = {
    .number = LK_KIND_LATCH,
    .noun = "latch",
    .commands = lk__lua_latch_commands,
    .counted = true,
    .size = sizeof(struct lk__latch),
    .block_size = sizeof(struct lk__latchblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_latchattr_t),
    .check = check,
    .keep = &lk__lua_latch_keep,
    .end = &lk__lua_latch_end,
    .traits = traits,
    .init = latch_init,
    .stop = latch_stop,
    .cancel = latch_cancel,
    .destroy = latch_destroy,
};

int lk__latch_use(const struct lk__op *op)
{
    if (!op->object->traits.anonymous)
        return 0;
    const struct lk__command begin = lk__object_command(op->object, &lk__lua_latch_begin, NULL);
    return lk__anonymous_use(op, &lk__latch_of(op)->presence, &begin);
}

int lk__latch_enter(struct lk__op *op, lk_latch_t *l, int64_t limit_us)
{
    int rc = lk__op_enterby(op, LK__HANDLE(l), &lk__latch_kind, limit_us);
    if (rc != 0)
        return rc;
    rc = lk__latch_use(op);
    return rc == 0 ? 0 : lk__op_leave(op, rc);
}

int lk_latch_init(lk_latch_t *l, lk_client_t *client, const char *name, const lk_latchattr_t *attr)
{
    lk_latchattr_t checked = { 0 };
    if (l == NULL)
        return lk__fail(EINVAL, "lk_latch_init: no latch was given");
    struct lk__apistate api = lk__api_enter();
    int rc = attr != NULL ? check(&checked, attr) : 0;
    if (rc == 0)
        rc = lk__anonymous_init(LK__HANDLE(l), &lk__latch_kind, client, name, attr, checked.anonymous);
    return lk__api_leave(&api, rc);
}

LK__DESTROY_CALL(latch)
