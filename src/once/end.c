/* SPDX-License-Identifier: MIT */
/* end.c - completing a run, giving it up; and calling a function once */
#include "once/once.h"

#include <pthread.h>
#include <string.h>

/* --- complete ----------------------------------------------------------------------------------------------------- */

/* What the command that completes a run points into; the result and copies of the keys lie behind it. */
struct completion {
    struct lk__block block;
    struct lk__once_keys keys;
    struct lk__once_end_args args;
};

static const char *put(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

/* NULL: ENOMEM. */
static struct completion *new_completion(const struct lk__onceblock *block, const char *result)
{
    size_t size = strlen(block->keys.run) + strlen(block->keys.done) + strlen(block->fail.channel) + strlen(result) + 4;
    struct completion *completion = lk__alloc(sizeof *completion + size);
    if (completion == NULL)
        return NULL;
    char *at = (char *)(completion + 1);
    completion->block.refs = 1;
    completion->keys = (struct lk__once_keys){ .run = put(&at, block->keys.run), .done = put(&at, block->keys.done) };
    completion->args.channel = put(&at, block->fail.channel);
    completion->args.result = put(&at, result);
    return completion;
}

/* The request that completes the run of this hold, to be repeated if it gets no answer. NULL: ENOMEM, with an error text. */
static struct lk__outboxentry *new_request(struct lk__object *object, const struct lk__hold *hold, const char *result)
{
    struct lk__outboxentry *entry = NULL;
    struct completion *completion = new_completion(lk__once_block(object), result);
    if (completion == NULL) {
        lk__fail(ENOMEM, "%s: out of memory for the result", object->what);
        return NULL;
    }
    entry = lk__outboxentry_new(&object->client->dog, hold->lease.id, &completion->block);
    if (entry != NULL)
        entry->command = (struct lk__command){
            .script = &lk__lua_once_end, .keys = &completion->keys, .args = &completion->args };
    lk__block_unref(&completion->block);
    return entry;
}

/* Begin a call that ends the run of `owner`, NULL: of the thread. 0 and the hold, or why not, with an error text. */
static int enter(struct lk__op *op, lk_once_t *o, lk_owner_t *owner, struct lk__hold **hold)
{
    int rc = lk__op_enterholder(op, LK__HANDLE(o), &lk__once_kind, owner);
    if (rc == ECANCELED && lk__handle_isinherited(LK__HANDLE(o)))
        return lk__fail(EPERM, "%s: run by another process, not by this one", lk__handle_name(LK__HANDLE(o)));
    if (rc != 0)
        return rc;
    *hold = lk__object_hold(op->object, lk__op_owner(op));
    if (*hold != NULL)
        return 0;
    return lk__op_leave(op, lk__fail(EPERM, "%s: not run by %s", op->object->what, lk__op_holder(op)));
}

int lk_once_endby(lk_once_t *o, lk_owner_t *owner, const char *result)
{
    struct lk__op op;
    struct lk__hold *hold;
    if (result == NULL)
        result = "";
    if (strnlen(result, LK_ONCE_RESULT_MAX + 1) > LK_ONCE_RESULT_MAX)
        return lk__fail(EINVAL, "lk_once_end: the result is longer than %d bytes", LK_ONCE_RESULT_MAX);
    int rc = enter(&op, o, owner, &hold);
    if (rc != 0)
        return rc;
    struct lk__outboxentry *entry = new_request(op.object, hold, result);
    rc = entry != NULL ? lk__op_givebackby(&op, hold, entry) : ENOMEM;
    lk__outboxentry_unref(entry);
    return lk__op_leave(&op, rc);
}

int lk_once_end(lk_once_t *o, const char *result)
{
    return lk_once_endby(o, NULL, result);
}

/* --- given up ----------------------------------------------------------------------------------------------------- */

int lk_once_failby(lk_once_t *o, lk_owner_t *owner)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = enter(&op, o, owner, &hold);
    return rc != 0 ? rc : lk__op_leave(&op, lk__op_giveback(&op, hold));
}

int lk_once_fail(lk_once_t *o)
{
    return lk_once_failby(o, NULL);
}

/* --- called ------------------------------------------------------------------------------------------------------- */

static void give_up(void *o)
{
    lk_once_fail(o);
}

int lk_once_call(lk_once_t *o, int (*fn)(void *arg), void *arg)
{
    if (fn == NULL)
        return lk__fail(EINVAL, "lk_once_call: no function was given");
    int rc = lk_once_begin(o, LK_FOREVER);
    if (rc != 0)
        return rc == EALREADY ? 0 : rc;
    pthread_cleanup_push(give_up, o);
    rc = fn(arg);
    pthread_cleanup_pop(0);
    if (rc == 0)
        return lk_once_end(o, NULL);
    give_up(o);
    return rc;
}
