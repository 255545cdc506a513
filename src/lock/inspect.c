/* SPDX-License-Identifier: MIT */
/* inspect.c - what anybody may ask of a mutex, and the operator's way to end a hold */
#include "lock/lock.h"
#include "lock/scripts.h"

#include <string.h>

/* Call a script of this mutex and hand its reply, of at least `integers` integers, to `read`. */
static int ask(const struct lk__frame *frame, const struct lk__script *script, const char *const *args, int arg_count,
               bool resend, unsigned integers, void (*read)(const struct lk__reply *reply, void *arg), void *arg)
{
    struct lk__mutex *mutex = lk__mutex_of(frame);
    struct lk__request *request = NULL;
    struct lk__command command;
    int rc = lk__command_seal(&command, script, mutex->keys, args, arg_count);
    if (rc == 0)
        rc = lk__call(&mutex->object.client->conn, mutex->object.what, &command, -1, resend, &request, NULL);
    if (rc == 0 && !lk__reply_integers(request->reply, integers))
        rc = lk__fail(EPROTO, "%s: the server's answer has the wrong shape", mutex->object.what);
    if (rc == 0 && read != NULL)
        read(request->reply, arg);
    lk__request_free(request);
    lk__command_free(&command);
    return rc;
}

int lk_mutex_forceunlock(lk_mutex_t *m)
{
    struct lk__frame frame;
    int rc = lk__mutex_enter(m, &frame);
    if (rc != 0)
        return rc;
    char letters[8];
    lk__mutex_letters(letters, frame.object, false);
    const char *args[] = { lk__mutex_of(&frame)->claim_ms, letters, lk__mutex_of(&frame)->channel };
    rc = ask(&frame, &lk__lua_lock_force, args, 3, false, 2, NULL, NULL);
    return lk__frame_leave(&frame, rc);
}

static void read_info(const struct lk__reply *reply, void *arg)
{
    lk_mutexinfo_t *info = arg;
    const struct lk__value *values = reply->values;
    info->held = values[0].number == 1;
    info->remaining_ms = info->held ? values[1].number : 0;
    info->token = (uint64_t)values[2].number;
    info->waiters = (unsigned)values[3].number;
    info->recoverable = values[4].number == 1;
    info->holds = (unsigned)values[5].number;
    strncpy(info->holder, lk__reply_text(reply, 7), sizeof info->holder - 1);
}

int lk_mutex_info(lk_mutex_t *m, lk_mutexinfo_t *info)
{
    struct lk__frame frame;
    lk_mutexinfo_t seen = LK_MUTEXINFO_INIT;
    if (info == NULL || info->size != sizeof *info)
        return lk__fail(EINVAL, "lk_mutex_info: begin with LK_MUTEXINFO_INIT");
    int rc = lk__mutex_enter(m, &frame);
    if (rc != 0)
        return rc;
    rc = ask(&frame, &lk__lua_lock_info, NULL, 0, true, 7, read_info, &seen);
    if (rc == 0)
        *info = seen;
    return lk__frame_leave(&frame, rc);
}
