/* SPDX-License-Identifier: MIT */
/* inspect.c - what anybody may ask of a read-write lock, and the operator's way to end its holds */
#include "rwlock/rwlock.h"
#include "rwlock/scripts.h"

#include <string.h>

/* What info.lua answers, in order. */
enum { READERS, WRITERS, LEFT, TOKEN, WAITERS, WAITING_WRITERS, RECOVERABLE, SERVER_US, WRITER };

static void read_info(const struct lk__reply *reply, lk_rwlockinfo_t *info)
{
    const struct lk__value *values = reply->values;
    info->mode = values[WRITERS].number > 0   ? LK_RWLOCK_WRITING
                 : values[READERS].number > 0 ? LK_RWLOCK_READING
                                              : LK_RWLOCK_FREE;
    info->readers = (unsigned)values[READERS].number;
    info->remaining_ms = values[LEFT].number;
    info->token = (uint64_t)values[TOKEN].number;
    info->waiters = (unsigned)values[WAITERS].number;
    info->waiting_writers = (unsigned)values[WAITING_WRITERS].number;
    info->recoverable = values[RECOVERABLE].number == 1;
    strncpy(info->writer, lk__reply_text(reply, WRITER), sizeof info->writer - 1);
}

static int look(const struct lk__frame *frame, lk_rwlockinfo_t *info)
{
    struct lk__rwlock *lock = lk__rwlock_of(frame);
    const char *what = lock->object.what;
    struct lk__request *request = NULL;
    struct lk__command command;
    int rc = lk__command_seal(&command, &lk__lua_rwlock_info, lock->keys, NULL, 0);
    if (rc == 0)
        rc = lk__call(&lock->object.client->conn, what, &command, -1, true, &request, NULL);
    if (rc == 0 && !lk__reply_integers(request->reply, WRITER))
        rc = lk__fail(EPROTO, "%s: the server's answer has the wrong shape", what);
    if (rc == 0)
        read_info(request->reply, info);
    lk__request_free(request);
    lk__command_free(&command);
    return rc;
}

int lk_rwlock_forceunlock(lk_rwlock_t *rw)
{
    struct lk__frame frame;
    int rc = lk__rwlock_enter(rw, &frame);
    if (rc != 0)
        return rc;
    char letters[8];
    lk__rwlock_letters(letters, frame.object, false);
    struct lk__rwlock *lock = lk__rwlock_of(&frame);
    const char *args[] = { lock->terms.claim_text, letters, NULL };
    struct lk__command command;
    rc = lk__command_seal(&command, &lk__lua_rwlock_force, lock->keys, args, 3);
    if (rc == 0)
        rc = lk__force(frame.object, &command);
    lk__command_free(&command);
    return lk__frame_leave(&frame, rc);
}

int lk_rwlock_info(lk_rwlock_t *rw, lk_rwlockinfo_t *info)
{
    struct lk__frame frame;
    lk_rwlockinfo_t seen = LK_RWLOCKINFO_INIT;
    if (info == NULL || info->size != sizeof *info)
        return lk__fail(EINVAL, "lk_rwlock_info: begin with LK_RWLOCKINFO_INIT");
    int rc = lk__rwlock_enter(rw, &frame);
    if (rc != 0)
        return rc;
    rc = look(&frame, &seen);
    if (rc == 0)
        *info = seen;
    return lk__frame_leave(&frame, rc);
}
