/* SPDX-License-Identifier: MIT */
/* inspect.c - what anybody may ask of a mutex, and the operator's way to end a hold */
#include "lock/lock.h"
#include "lock/scripts.h"

#include <stdio.h>
#include <string.h>

/* What is asked, and who reads the answer: an array that begins with `integers` integers. */
struct question {
    const struct lk__script *script;
    const char *const *keys, *const *args;
    int arg_count;
    unsigned integers;
    void (*read)(const struct lk__reply *reply, void *arg);
    void *arg;
};

static int ask(const struct lk__frame *frame, const struct question *question)
{
    struct lk__object *object = frame->object;
    struct lk__request *request = NULL;
    struct lk__command command;
    int rc = lk__command_seal(&command, question->script, question->keys, question->args, question->arg_count);
    if (rc == 0)
        rc = lk__call(&object->client->conn, object->what, &command, -1, true, &request, NULL);
    if (rc == 0 && !lk__reply_integers(request->reply, question->integers))
        rc = lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
    if (rc == 0)
        question->read(request->reply, question->arg);
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
    struct lk__mutex *mutex = lk__mutex_of(&frame);
    const char *args[] = { mutex->terms.claim_ms, letters, mutex->channel, NULL };
    struct lk__command command;
    rc = lk__command_seal(&command, &lk__lua_lock_force, mutex->keys, args, 4);
    if (rc == 0)
        rc = lk__force(frame.object, &command);
    lk__command_free(&command);
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
    struct question question = {
        .script = &lk__lua_lock_info, .keys = lk__mutex_of(&frame)->keys, .integers = 7, .read = read_info, .arg = &seen
    };
    rc = ask(&frame, &question);
    if (rc == 0)
        *info = seen;
    return lk__frame_leave(&frame, rc);
}

enum { PAGE = 50 }; /* with its two integers a page stays below what a reply may hold */

/* Where the next page goes. */
struct listing {
    lk_mutexwaiter_t *waiters;
    unsigned room, listed, waiting, on_page;
};

static void read_page(const struct lk__reply *reply, void *arg)
{
    struct listing *listing = arg;
    listing->waiting = (unsigned)reply->values[0].number;
    listing->on_page = reply->count - 2;
    for (unsigned i = 2; i < reply->count && listing->listed < listing->room; i++) {
        lk_mutexwaiter_t *waiter = &listing->waiters[listing->listed++];
        snprintf(waiter->id, sizeof waiter->id, "%s", lk__reply_text(reply, i));
    }
}

static int list_queue(const struct lk__frame *frame, struct listing *listing)
{
    const char *const *keys = &lk__mutex_of(frame)->keys[LK__KEY_QUEUE];
    char first[16], last[16];
    const char *args[] = { first, last };
    struct question question = { .script = &lk__lua_lock_queue_page,
                                 .keys = keys,
                                 .args = args,
                                 .arg_count = 2,
                                 .integers = 2,
                                 .read = read_page,
                                 .arg = listing };
    int rc;
    do {
        snprintf(first, sizeof first, "%u", listing->listed);
        snprintf(last, sizeof last, "%u", listing->listed + PAGE - 1);
        rc = ask(frame, &question);
    } while (rc == 0 && listing->on_page == PAGE && listing->listed < listing->room);
    return rc;
}

int lk_mutex_queue(lk_mutex_t *m, lk_mutexwaiter_t *waiters, unsigned room, unsigned *count)
{
    struct lk__frame frame;
    struct listing listing = { .waiters = waiters, .room = room };
    if (count == NULL || (waiters == NULL && room > 0))
        return lk__fail(EINVAL, "lk_mutex_queue: nowhere to put the waiters");
    int rc = lk__mutex_enter(m, &frame);
    if (rc != 0)
        return rc;
    rc = list_queue(&frame, &listing);
    if (rc == 0)
        *count = listing.waiting;
    return lk__frame_leave(&frame, rc);
}
