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
    struct lk__call call = {
        .node = lk__object_node(object), .what = object->what, .command = command, .only_once = true
    };
    int rc = lk__call_run(&call);
    *verdict = rc == 0 ? call.answer.verdict : LK__LATE;
    return rc == 0 && *verdict == LK__LATE ? lk__late(object) : rc;
}

int lk__update(struct lk__object *object, struct lk__hold *hold, const struct lk__command *command,
               enum lk__verdict *verdict)
{
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = command,
                             .sent = { .id = hold->lease.id,
                                       .lease_ms = lk__lease_begincall(&hold->lease),
                                       .flags = hold->owner_died ? LK__SENT_UNREPAIRED : 0 } };
    int rc = lk__call_run(&call);
    *verdict = rc == 0 ? call.answer.verdict : LK__LATE;
    lk__lease_endcall(&hold->lease, call.repeated, *verdict == LK__DONE ? call.sent_us : 0);
    if (rc == 0 && *verdict == LK__LATE)
        rc = lk__late(object);
    if (rc == 0 && *verdict == LK__GONE)
        lk__lease_lose(&hold->lease, LK_REASON_GONE);
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
