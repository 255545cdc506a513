/* SPDX-License-Identifier: MIT */
/* object.c - the table of the condition variable: its keys and its attributes */
#include "cond/cond.h"

_Static_assert(sizeof(lk_cond_t) == 8 * sizeof(void *), "ABI");

static bool cond_init(struct lk__object *object)
{
    (void)object;
    return true;
}

static void cond_destroy(struct lk__object *object)
{
    lk__condpair_unref(LK__CONTAINER(object, struct lk__cond, object)->pair);
}

static int check(void *checked, const void *given)
{
    lk_condattr_t *attr = checked;
    int rc = lk__sized_read(attr, sizeof *attr, given, sizeof attr->size, "lk_condattr_t");
    if (rc != 0)
        return rc;
    if (attr->clock != CLOCK_REALTIME && attr->clock != CLOCK_MONOTONIC && attr->clock != CLOCK_BOOTTIME)
        return lk__fail(EINVAL, "condition attributes: clock %d: CLOCK_REALTIME, _MONOTONIC or _BOOTTIME", attr->clock);
    if ((attr->lk_room[0] | attr->lk_room[1] | attr->lk_room[2]) != 0)
        return lk__fail(EINVAL, "condition attributes: lk_room is zero");
    return 0;
}

#define AT(member) offsetof(struct lk__condblock, member)

static const struct lk__keyspec keys[] = {
    { AT(name), NULL, LK__KEY_NAME, false },
    { AT(record), "latchkey:cond", LK__KEY_OURS, false },
    { AT(waiting), "latchkey:queue:cond", LK__KEY_OURS, false },
    { AT(calive), "latchkey:alive:cond", LK__KEY_OURS, false },
    { AT(moved), "latchkey:moved:cond", LK__KEY_OURS, false },
};

const struct lk__kind lk__cond_kind = {
    .number = LK_KIND_COND,
    .noun = "condition",
    .commands = lk__lua_cond_commands,
    .counted = true,
    .size = sizeof(struct lk__cond),
    .block_size = sizeof(struct lk__condblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_condattr_t),
    .check = check,
    .init = cond_init,
    .destroy = cond_destroy,
};

LK__INIT_CALLS(cond)
