/* SPDX-License-Identifier: MIT */
/* object.c - the table of the latch: its keys, its channel and its attributes */
#include "latch/latch.h"

_Static_assert(sizeof(lk_latch_t) == 8 * sizeof(void *), "ABI");

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

/* There are none yet: a size, and zeroes for as far as it reaches. */
static int check(void *checked, const void *given)
{
    lk_latchattr_t *attr = checked;
    int rc = lk__sized_read(attr, sizeof attr->size, given, sizeof attr->size, "latch attributes");
    attr->size = sizeof *attr;
    return rc;
}

#define AT(member) offsetof(struct lk__latchblock, member)

static const struct lk__keyspec keys[] = {
    { AT(keys.count), NULL, LK__KEY_NAME, false },
    { AT(keys.mark), "latchkey:opened", LK__KEY_OURS, false },
    { AT(keys.once), "latchkey:once", LK__KEY_OURS, false },
    { AT(channel), "redisson_countdownlatch__channel__", LK__KEY_BRACED, false },
};

const struct lk__kind lk__latch_kind = {
    .number = LK_KIND_LATCH,
    .name = "latch",
    .noun = "latch",
    .commands = lk__lua_latch_commands,
    .counted = true,
    .size = sizeof(struct lk__latch),
    .block_size = sizeof(struct lk__latchblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_latchattr_t),
    .check = check,
    .init = latch_init,
    .stop = latch_stop,
    .cancel = latch_cancel,
    .destroy = latch_destroy,
};

int lk_latch_init(lk_latch_t *l, lk_client_t *client, const char *name, const lk_latchattr_t *attr)
{
    return lk__op_init(__func__, LK__HANDLE(l), &lk__latch_kind, client, name, attr);
}

int lk_latch_destroy(lk_latch_t *l)
{
    return lk__op_destroy(__func__, LK__HANDLE(l), &lk__latch_kind);
}
