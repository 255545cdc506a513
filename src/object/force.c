/* SPDX-License-Identifier: MIT */
/*
 * force.c - an operator takes something away from whoever holds it
 *
 * It names no hold, so a copy of the request would end the next one as well: it is sent once, and has a
 * deadline, behind which it does nothing.
 */
#include "object/acquire.h"

static int send_it(struct lk__object *object, const struct lk__command *command, struct lk__answer *answer)
{
    struct lk__call call = {
        .node = lk__object_node(object), .what = object->what, .command = command, .only_once = true
    };
    int rc = lk__call_run(&call);
    if (rc == 0 && !lk__answer_read(command->script, call.reply, answer))
        rc = lk__call_garbled(object->what);
    return rc;
}

int lk__force(struct lk__object *object, const struct lk__command *command)
{
    struct lk__answer answer = { .verdict = LK__LATE };
    int rc = 0;
    for (int attempt = 0; attempt < 2 && rc == 0 && answer.verdict == LK__LATE; attempt++)
        rc = send_it(object, command, &answer); /* again after a deadline: the clock moved, and is known now */
    if (rc == 0 && answer.verdict == LK__LATE)
        rc = lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                      object->what);
    return rc;
}
