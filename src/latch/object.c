/* SPDX-License-Identifier: MIT */
/* object.c - the keys, the channel and the attributes of a latch, and its handle */
#include "latch/latch.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(lk_latch_t) == 8 * sizeof(void *), "ABI");

static struct lk__latch *latch_of(struct lk__object *object)
{
    return LK__CONTAINER(object, struct lk__latch, object);
}

static void latch_stop(struct lk__object *object)
{
    lk__broadcast_stop(&latch_of(object)->broadcast);
}

static void latch_cancel(struct lk__object *object)
{
    lk__broadcast_wake(&latch_of(object)->broadcast);
}

static void latch_free(struct lk__object *object)
{
    struct lk__latch *latch = latch_of(object);
    lk__broadcast_destroy(&latch->broadcast);
    lk__slots_destroy(&latch->slots);
    lk__block_unref(&latch->block->block);
    lk__free(latch);
}

static const struct lk__kind kind = { .stop = latch_stop, .cancel = latch_cancel, .free = latch_free };

/* The keys and the channel, one after the other. */
static void write_keys(struct lk__latchblock *block, const char *full, const char *end)
{
    char *at = block->strings;
    block->keys.count = at;
    at = stpcpy(at, full) + 1;
    block->keys.mark = at;
    at += lk__key_ours(at, "latchkey:opened", full) + 1;
    block->keys.once = at;
    at += lk__key_ours(at, "latchkey:once", full) + 1;
    block->channel = at; /* in braces even if the name has some: Redisson's exception to its own rule */
    at += sprintf(at, "redisson_countdownlatch__channel__{%s}", full) + 1;
    assert(at <= end);
    (void)end;
}

static struct lk__latchblock *make_block(const char *full)
{
    size_t room = 4 * (strlen(full) + 64);
    struct lk__latchblock *block = lk__alloc(sizeof *block + room);
    if (block == NULL)
        return NULL;
    block->block.refs = 1;
    write_keys(block, full, block->strings + room);
    return block;
}

static struct lk__object *make(lk_client_t *client, const char *full, int fair, bool robust)
{
    struct lk__latch *latch = lk__alloc(sizeof *latch);
    (void)fair, (void)robust;
    if (latch == NULL || (latch->block = make_block(full)) == NULL) {
        lk__free(latch);
        return NULL;
    }
    latch->slots.letter = 'l';
    latch->object.block = &latch->block->block;
    latch->object.kind = &kind;
    lk__broadcast_init(&latch->broadcast, client, latch->block->channel);
    return &latch->object;
}

/* There are none yet: a size, and zeroes for as far as it reaches. */
static int check(void *checked, const void *given)
{
    lk_latchattr_t *attr = checked;
    int rc = lk__attr_take(attr, sizeof attr->size, given, sizeof attr->size, "latch");
    attr->size = sizeof *attr;
    return rc;
}

static void traits(const void *checked, int *fair, bool *robust)
{
    (void)checked;
    *fair = *robust = false;
}

static const struct lk__handletype latch_type = {
    .kind = LK_KIND_LATCH,
    .attr_size = sizeof(lk_latchattr_t),
    .commands = lk__lua_latch_commands,
    .make = make,
    .check = check,
    .traits = traits,
};

static struct lk__handle shell_of(lk_latch_t *l)
{
    return (struct lk__handle){ &l->lk_name, (const void **)&l->lk_attr, &l->lk_impl, &l->lk_process, l->lk_spare };
}

int lk__latch_enter(lk_latch_t *l, struct lk__op *op)
{
    return lk__latch_enterby(l, LK__NEVER, op);
}

int lk__latch_enterby(lk_latch_t *l, int64_t limit_us, struct lk__op *op)
{
    if (l == NULL)
        return lk__fail(EINVAL, "no latch was given");
    return lk__op_enterby(op, shell_of(l), &latch_type, limit_us);
}

int lk_latch_init(lk_latch_t *l, lk_client_t *client, const char *name, const lk_latchattr_t *attr)
{
    if (l == NULL)
        return lk__fail(EINVAL, "lk_latch_init: no latch was given");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_init(shell_of(l), &latch_type, client, name, attr));
}

int lk_latch_destroy(lk_latch_t *l)
{
    if (l == NULL)
        return lk__fail(EINVAL, "lk_latch_destroy: no latch was given");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_destroy(shell_of(l)));
}
