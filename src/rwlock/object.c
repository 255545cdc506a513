/* SPDX-License-Identifier: MIT */
/* object.c - the table of the read-write lock: its keys, and what goes with its attributes */
#include "rwlock/rwlock.h"

#include <string.h>

_Static_assert(sizeof(lk_rwlock_t) == 8 * sizeof(void *), "ABI");

static unsigned flags_of(const struct lk__options *options, int prefer, bool robust)
{
    static const unsigned first[] = { [LK_RWLOCK_PREFER_FAIR] = 0,
                                      [LK_RWLOCK_PREFER_READER] = LK__RWLOCK_READERS_FIRST,
                                      [LK_RWLOCK_PREFER_WRITER] = LK__RWLOCK_WRITERS_FIRST,
                                      [LK_RWLOCK_PREFER_PHASE_FAIR] = LK__RWLOCK_PHASE_FAIR };
    return first[prefer] | (robust ? LK__RWLOCK_ROBUST : 0) | (options->redisson ? LK__RWLOCK_SHARED : 0);
}

static bool rwlock_init(struct lk__object *object)
{
    struct lk__rwlockblock *block = lk__rwlock_block(object);
    block->release.flags = flags_of(object->client->options, object->traits.order, object->traits.robust);
    return true;
}

static struct lk__traits traits(const void *checked)
{
    const lk_rwlockattr_t *attr = checked;
    return (struct lk__traits){ .order = (unsigned)attr->prefer, .robust = attr->robust != 0 };
}

LK__ASK_QUEUE(rwlock)

/* "<client id>:<owner>:<acquisition>:<mode>" */
static void read_waiter(lk_waiter_t *waiter)
{
    size_t length = strlen(waiter->id);
    waiter->wants = length > 0 && waiter->id[length - 1] == 'w' ? LK_WANTS_WRITE : LK_WANTS_READ;
}

#define AT(member) offsetof(struct lk__rwlockblock, member)

static const struct lk__keyspec keys[] = {
    { AT(keys.holders), "latchkey:rw", LK__KEY_OURS, false },
    { AT(keys.token), "redisson_lock_token", LK__KEY_REDISSON, false },
    { AT(keys.readers), "latchkey:queue:readers", LK__KEY_OURS, false },
    { AT(keys.writers), "latchkey:queue:writers", LK__KEY_OURS, false },
    { AT(keys.alive), "latchkey:alive:rw", LK__KEY_OURS, false },
    { AT(keys.mark), "latchkey:robust:rw", LK__KEY_OURS, false },
};

#define ORDER(order, words) [2 * (order)] = words " robust=no", [2 * (order) + 1] = words " robust=yes"

static const char *const settings[] = { ORDER(LK_RWLOCK_PREFER_FAIR, "prefer=fair"),
                                        ORDER(LK_RWLOCK_PREFER_READER, "prefer=reader"),
                                        ORDER(LK_RWLOCK_PREFER_WRITER, "prefer=writer"),
                                        ORDER(LK_RWLOCK_PREFER_PHASE_FAIR, "prefer=phase-fair") };

/* Nothing of its own listens: grants come on the client's channel. */
const struct lk__kind lk__rwlock_kind = {
    .number = LK_KIND_RWLOCK,
    .noun = "read-write lock",
    .commands = lk__lua_rwlock_commands,
    .size = sizeof(struct lk__object),
    .block_size = sizeof(struct lk__rwlockblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_rwlockattr_t),
    .check = lk__rwlockattr_check,
    .traits = traits,
    .settings_key = "latchkey:settings:rw",
    .settings = settings,
    .holder = "writer",
    .check_script = &lk__lua_rwlock_check,
    .unlock_inner = lk__rwlock_unlockinner,
    .ask_queue = ask_queue,
    .read_waiter = read_waiter,
    .init = rwlock_init,
};

LK__INIT_CALLS(rwlock)
LK__HOLDER_CALLS(rwlock)
LK__EXTEND_CALLS(rwlock)
LK__CONSISTENT_CALLS(rwlock)
