/* SPDX-License-Identifier: MIT */
/* dated.c - requests that have a deadline in the server's time, after which they do nothing */
#include "object/acquire.h"

int lk__late(const struct lk__object *object)
{
    return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                    object->what);
}

/*
 * The request names no hold, so a copy would end the next hold as well: it is sent once, and has a deadline, after
 * which it does nothing.
 */
int lk__force(struct lk__object *object, const struct lk__command *command, enum lk__verdict *verdict)
{
    struct lk__answer answer = { .verdict = LK__LATE };
    struct lk__replybuf buf;
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = command,
                             .only_once = true,
                             .reply = lk__replybuf_reply(&buf) };
    int rc = lk__call_run(&call);
    if (rc == 0 && !lk__answer_read(command->script, call.reply, &answer))
        rc = lk__call_garbled(object->what);
    *verdict = answer.verdict;
    return rc == 0 && answer.verdict == LK__LATE ? lk__late(object) : rc;
}

static int send_update(struct lk__object *object, struct lk__hold *hold, const struct lk__command *command,
                       struct lk__answer *answer)
{
    struct lk__replybuf buf;
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = command,
                             .reply = lk__replybuf_reply(&buf),
                             .sent = { .id = hold->lease.id,
                                       .lease_ms = lk__lease_begincall(&hold->lease),
                                       .flags = hold->owner_died ? LK__SENT_UNREPAIRED : 0 } };
    int64_t confirmed_us = 0;
    int rc = lk__call_run(&call);
    if (rc == 0 && !lk__answer_read(command->script, call.reply, answer))
        rc = lk__call_garbled(object->what);
    if (rc == 0 && answer->verdict == LK__DONE)
        confirmed_us = call.sent_us;
    lk__lease_endcall(&hold->lease, call.repeated, confirmed_us);
    return rc;
}

int lk__update(struct lk__object *object, struct lk__hold *hold, const struct lk__command *command,
               enum lk__verdict *verdict)
{
    struct lk__answer answer = { .verdict = LK__LATE };
    int rc = send_update(object, hold, command, &answer);
    if (rc == 0 && answer.verdict == LK__LATE)
        rc = lk__late(object);
    if (rc == 0 && answer.verdict == LK__GONE)
        lk__lease_lose(&hold->lease, LK_REASON_GONE);
    *verdict = answer.verdict;
    return rc;
}

int lk__object_ask(const struct lk__object *object, const struct lk__command *command, const char *id,
                   struct lk__reply *reply)
{
    struct lk__call call = {
        .node = lk__object_node(object), .what = object->what, .command = command, .sent = { .id = id }, .reply = reply
    };
    return lk__call_run(&call);
}
