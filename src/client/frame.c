/* SPDX-License-Identifier: MIT */
/* frame.c - the beginning and the end of each public call on an object */
#include "client/client.h"

static int enter(struct lk__frame *frame, struct lk__shell shell, const struct lk__shelltype *type, int64_t limit_us)
{
    struct lk__binding *binding;
    frame->self = lk__thread_self();
    if (frame->self == NULL)
        return ENOMEM; /* not even room for words */
    int rc = lk__shell_enter(shell, type, limit_us, &binding);
    if (rc != 0)
        return rc;
    frame->binding = binding;
    frame->object = binding->object;
    frame->attr = binding->attr;
    return 0;
}

int lk__frame_enterby(struct lk__frame *frame, struct lk__shell shell, const struct lk__shelltype *type,
                      int64_t limit_us)
{
    frame->manners = lk__begin();
    int rc = enter(frame, shell, type, limit_us);
    return rc == 0 ? 0 : lk__end(&frame->manners, rc);
}

int lk__frame_leave(const struct lk__frame *frame, int code)
{
    lk__shell_leave(frame->binding);
    return lk__end(&frame->manners, code);
}

int lk__frame_hold(const struct lk__frame *frame, struct lk__hold **hold)
{
    *hold = lk__object_hold(frame->object, frame->self->owner);
    if (*hold == NULL)
        return lk__fail(EPERM, "%s: not held by this thread", frame->object->what);
    if (!lk__watchdog_good((*hold)->dog, *hold, NULL))
        return lk__fail(ESTALE, "%s: the lease was lost; unlock as often as it was locked", frame->object->what);
    return 0;
}
