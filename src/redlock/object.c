/* SPDX-License-Identifier: MIT */
/* object.c - the table of the redlock: its keys are those of a mutex, at each server */
#include "redlock/redlock.h"

_Static_assert(sizeof(lk_redlock_t) == 8 * sizeof(void *), "ABI");

static bool redlock_init(struct lk__object *object)
{
    struct lk__redlockblock *block = lk__redlock_block(object);
    block->release.flags = object->client->options->redisson ? LK__LOCK_SHARED : 0;
    return true;
}

/* Levels above the first are this client's alone. */
static int unlock_inner(const struct lk__op *op, struct lk__hold *hold)
{
    int rc = lk__op_hold(op, &hold);
    hold->holds--;
    return rc;
}

#define AT(member) offsetof(struct lk__redlockblock, member)

static const struct lk__keyspec keys[] = {
    { AT(keys.mutex), NULL, LK__KEY_NAME, false },
    { AT(fence.mutex), NULL, LK__KEY_SAME, false },
    { AT(keys.token), "redisson_lock_token", LK__KEY_REDISSON, false },
    { AT(fence.token), NULL, LK__KEY_SAME, false },
    { AT(keys.queue), "latchkey:queue:mutex", LK__KEY_OURS, false },
    { AT(keys.alive), "latchkey:alive:mutex", LK__KEY_OURS, false },
    { AT(keys.mark), "latchkey:robust:mutex", LK__KEY_OURS, false },
    { AT(release.channel), "redisson_lock__channel", LK__KEY_REDISSON, false },
    { AT(renew.channel), NULL, LK__KEY_SAME, false },
};

const struct lk__kind lk__redlock_kind = {
    .number = LK_KIND_REDLOCK,
    .noun = "redlock",
    .commands = lk__lua_lock_commands,
    .quorum = true,
    .size = sizeof(struct lk__object),
    .block_size = sizeof(struct lk__redlockblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_redlockattr_t),
    .check = lk__redlockattr_check,
    .holder = "holder",
    .unlock_inner = unlock_inner,
    .release = lk__redlock_release,
    .ask_held = lk__redlock_askheld,
    .check_lease = lk__redlock_checklease,
    .init = redlock_init,
};

LK__INIT_CALLS(redlock)
LK__HOLDER_CALLS(redlock)
LK__EXTEND_CALLS(redlock)
