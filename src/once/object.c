/* SPDX-License-Identifier: MIT */
/* object.c - the table of what is done once: its keys, its channel and its attributes */
#include "once/once.h"

_Static_assert(sizeof(lk_once_t) == 8 * sizeof(void *), "ABI");

static struct lk__once *once_of(struct lk__object *object)
{
    return LK__CONTAINER(object, struct lk__once, object);
}

static bool once_init(struct lk__object *object)
{
    lk__broadcast_init(&once_of(object)->broadcast, object->client, lk__once_block(object)->fail.channel);
    return true;
}

static void once_stop(struct lk__object *object)
{
    lk__broadcast_stop(&once_of(object)->broadcast);
}

static void once_cancel(struct lk__object *object)
{
    lk__broadcast_wake(&once_of(object)->broadcast);
}

static void once_destroy(struct lk__object *object)
{
    lk__broadcast_destroy(&once_of(object)->broadcast);
}

static int check(void *checked, const void *given)
{
    lk_onceattr_t *attr = checked;
    int rc = lk__sized_read(attr, sizeof *attr, given, sizeof attr->size, "lk_onceattr_t");
    if (rc != 0)
        return rc;
    if ((attr->lk_room[0] | attr->lk_room[1]) != 0)
        return lk__fail(EINVAL, "once attributes: lk_room is zero");
    return lk__attr_leases(attr->lease_ms, 0);
}

#define AT(member) offsetof(struct lk__onceblock, member)

static const struct lk__keyspec keys[] = {
    { AT(keys.run), "latchkey:run", LK__KEY_OURS, false },
    { AT(keys.done), "latchkey:done", LK__KEY_OURS, false },
    { AT(keys.token), "redisson_lock_token", LK__KEY_REDISSON, false },
    { AT(fail.channel), "latchkey:ran", LK__KEY_OURS, false },
};

const struct lk__kind lk__once_kind = {
    .number = LK_KIND_ONCE,
    .noun = "once",
    .commands = lk__lua_once_commands,
    .size = sizeof(struct lk__once),
    .block_size = sizeof(struct lk__onceblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_onceattr_t),
    .check = check,
    .holder = "runner",
    .check_script = &lk__lua_once_check,
    .init = once_init,
    .stop = once_stop,
    .cancel = once_cancel,
    .destroy = once_destroy,
};

LK__INIT_CALLS(once)
LK__HOLDER_CALLS(once)
