/* SPDX-License-Identifier: MIT */
/* inspect.c - the result, forgetting it, who runs it */
#include "once/once.h"

#include <string.h>

/* Room for a reply with a result, and the result. */
struct room {
    struct lk__reply reply;
    struct lk__value values[LK__REPLYBUF_VALUES];
    char text[LK_ONCE_RESULT_MAX + LK__REPLYBUF_VALUES];
};

static int ask_result(const struct lk__object *object, struct room *room, char **text)
{
    const struct lk__command command = lk__object_command(object, &lk__lua_once_result, NULL);
    struct lk__once_result_reply reply;
    lk__reply_in(&room->reply, room->values, LK__REPLYBUF_VALUES, room->text, sizeof room->text);
    int rc = lk__object_ask(object, &command, NULL, &room->reply);
    if (rc != 0)
        return rc;
    lk__once_result_read(&room->reply, &reply);
    if (reply.verdict == LK__ABSENT)
        return lk__fail(ENOENT, "%s: is not done", object->what);
    size_t size = strlen(reply.result) + 1;
    char *copy = lk__alloc(size);
    if (copy == NULL)
        return lk__fail(ENOMEM, "%s: out of memory for the result", object->what);
    *text = memcpy(copy, reply.result, size);
    return 0;
}

int lk_once_result(lk_once_t *o, char **text)
{
    struct lk__op op;
    if (text == NULL)
        return lk__fail(EINVAL, "lk_once_result: nowhere to put the result");
    int rc = lk__op_enter(&op, LK__HANDLE(o), &lk__once_kind);
    if (rc != 0)
        return rc;
    struct room *room = lk__alloc(sizeof *room);
    if (room == NULL)
        rc = lk__fail(ENOMEM, "%s: out of memory for the result", op.object->what);
    else
        rc = ask_result(op.object, room, text);
    lk__free(room);
    return lk__op_leave(&op, rc);
}

static int reset(struct lk__object *object)
{
    const struct lk__command command = lk__object_command(object, &lk__lua_once_reset, NULL);
    enum lk__verdict verdict;
    int rc = lk__force(object, &command, &verdict);
    if (rc == 0 && verdict == LK__ABSENT)
        rc = lk__fail(ENOENT, "%s: is not done", object->what);
    return rc;
}

int lk_once_reset(lk_once_t *o)
{
    struct lk__op op;
    int rc = lk__op_enter(&op, LK__HANDLE(o), &lk__once_kind);
    return rc != 0 ? rc : lk__op_leave(&op, reset(op.object));
}

static int read_info(const struct lk__op *op, lk_onceinfo_t *info)
{
    const struct lk__object *object = op->object;
    const struct lk__command command = lk__object_command(object, &lk__lua_once_info, NULL);
    struct lk__replybuf buf;
    struct lk__once_info_reply reply;
    int rc = lk__object_ask(object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc != 0)
        return rc;
    lk__once_info_read(&buf.reply, &reply);
    lk_onceinfo_t found = { .done = reply.verdict == LK__DONE,
                            .running = reply.verdict == LK__TAKEN,
                            .remaining_ms = reply.left_ms,
                            .token = (uint64_t)reply.token };
    strncpy(found.runner, reply.runner, sizeof found.runner - 1);
    lk__sized_write(info, &found, sizeof found);
    return 0;
}

LK__INFO_CALL(once, runner)
