/* SPDX-License-Identifier: MIT */
/*
 * once.c - requests that count once, however often they are sent, on objects that are bare numbers
 *
 * Numbers have no owner that a script could find, so the server keeps a record: of each slot the last
 * request and its result. A slot has one request at a time, with rising numbers: a number is drawn when the
 * slot is taken, not before. There are as many slots as there were requests at once, so the record has one
 * entry for each thread at most. A request that got no answer keeps its name for itself, as its entry must
 * not be overwritten while copies of it may be on the way: the slot goes on under another one, and so does
 * one of the same object made anew. Likewise a request whose slot has a later record than it should: it did
 * nothing, and is asked anew under another number.
 *
 * Guards: object->mu the slots.
 */
#include "client/client.h"

#include <stdio.h>
#include <string.h>

enum { LASTING_US = 30000000 }; /* once.lua remembers for a minute */

/* Of a place that this object had none for. NULL: ENOMEM, with words. */
static struct lk__seat *new_seat(const struct lk__object *object, unsigned place)
{
    struct lk__seat *seat = lk__alloc(sizeof *seat);
    if (seat == NULL)
        lk__fail(ENOMEM, "%s: out of memory for a request", object->what);
    else
        *seat = (struct lk__seat){ .place = place, .epoch = atomic_load(&object->client->abandoned) };
    return seat;
}

int lk__slot_take(struct lk__object *object, struct lk__slots *slots, struct lk__slot *slot)
{
    lk_client_t *client = object->client;
    pthread_mutex_lock(&object->mu);
    struct lk__seat *seat = slots->free;
    if (seat != NULL)
        slots->free = seat->next;
    else
        slots->places++;
    unsigned place = slots->places - 1;
    pthread_mutex_unlock(&object->mu);
    if (seat == NULL && (seat = new_seat(object, place)) == NULL)
        return ENOMEM;
    /* Only now: who had this seat before drew a smaller one, and nobody else has it at present. */
    unsigned long long number = atomic_fetch_add(&client->acquisitions, 1) + 1;
    slot->seat = seat;
    snprintf(slot->owner, sizeof slot->owner, "%s:%c%ux%u", client->id, slots->letter, seat->place, seat->epoch);
    snprintf(slot->number, sizeof slot->number, "%llu", number);
    return 0;
}

void lk__slot_put(struct lk__object *object, struct lk__slots *slots, const struct lk__slot *slot, bool answered)
{
    struct lk__seat *seat = slot->seat;
    pthread_mutex_lock(&object->mu);
    if (!answered)
        seat->epoch = atomic_fetch_add(&object->client->abandoned, 1) + 1;
    seat->next = slots->free;
    slots->free = seat;
    pthread_mutex_unlock(&object->mu);
}

void lk__slots_destroy(struct lk__slots *slots)
{
    while (slots->free != NULL) {
        struct lk__seat *seat = slots->free;
        slots->free = seat->next;
        lk__release(seat);
    }
}

/* What is asked: the hold's release, which the watchdog goes on sending, or beside it when that undoes it. */
static struct lk__command *asked(struct lk__hold *hold, const struct lk__once *once)
{
    return once->undo != NULL ? &hold->nest : &hold->release;
}

/* A command whose arguments are the slot's, `more`, and a hole for a deadline if it has one. */
static int seal(struct lk__command *command, const struct lk__slot *slot, const struct lk__script *script,
                const char *const *keys, const char *const *more, int count, bool deadline)
{
    const char *args[16] = { slot->owner, slot->number };
    assert(count + 3 <= (int)(sizeof args / sizeof *args));
    if (count > 0)
        memcpy(args + 2, more, (size_t)count * sizeof *more);
    return lk__command_seal(command, script, keys, args, count + 2 + deadline);
}

static int seal_all(struct lk__hold *hold, const struct lk__slot *slot, const struct lk__once *once)
{
    int rc = seal(asked(hold, once), slot, once->script, once->keys, once->more, once->count, true);
    if (rc == 0 && once->undo != NULL)
        rc = seal(&hold->release, slot, once->undo, once->undo_keys, once->undo_more, once->undo_count, false);
    return rc;
}

/* One attempt. 0: the server answered, in time or late. `unsure`: a copy of this or an earlier one may have counted. */
static int call(struct lk__object *object, struct lk__hold *hold, struct lk__command *command, int64_t last_us,
                int64_t *verdict, bool *unsure)
{
    struct lk__conn *conn = &object->client->conn;
    lk__command_fill(command, 0, lk__conn_servertime(conn, lk__now_us()) + last_us);
    bool repeated = false;
    int rc = lk__call(conn, object->what, command, -1, true, &hold->call, &repeated);
    *unsure |= repeated;
    if (rc != 0)
        return rc;
    const struct lk__reply *reply = hold->call->reply;
    if (!lk__reply_integers(reply, 2)) {
        *unsure = true;
        return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
    }
    lk__conn_clock(conn, hold->call->sent_us, reply->values[1].number);
    *verdict = reply->values[0].number;
    if (*verdict == LK__OVERTAKEN && *unsure)
        return lk__fail(EIO, "%s: the answer got lost, and its record is gone; the outcome is unknown", object->what);
    return 0;
}

/* Its outcome is unknown. */
static void go_on(struct lk__hold *hold, const struct lk__once *once, int64_t deadline_us)
{
    bool sweeps = once->lasting || once->undo != NULL;
    int64_t end_us = sweeps ? lk__now_us() + LASTING_US : deadline_us;
    if (sweeps)
        lk__watchdog_sweep(hold->dog, hold, 0, end_us);
    lk__settles(end_us);
}

static int call_until_in_time(struct lk__object *object, struct lk__hold *hold, const struct lk__once *once,
                              int64_t *verdict)
{
    int64_t last_us = once->lasting ? LASTING_US : object->client->options->command_timeout_ms * 1000;
    int64_t deadline_us = 0;
    bool unsure = false;
    for (int attempt = 0; attempt < 2; attempt++) {
        deadline_us = lk__conn_passedby(&object->client->conn, lk__now_us() + last_us);
        int rc = call(object, hold, asked(hold, once), last_us, verdict, &unsure);
        if (rc != 0 && unsure)
            go_on(hold, once, deadline_us);
        if (rc != 0 || *verdict != LK__LATE)
            return rc;
    }
    if (!unsure)
        return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                        object->what);
    lk__fail(EIO, "%s: the answer got lost, and copies came too late; the outcome is unknown", object->what);
    go_on(hold, once, deadline_us);
    return EIO;
}

/* Under one number. */
static int try_once(const struct lk__frame *frame, struct lk__slots *slots, const struct lk__once *once,
                    int64_t *verdict)
{
    struct lk__object *object = frame->object;
    struct lk__slot slot;
    /* Never a hold, but something that the watchdog can go on sending. */
    struct lk__hold *hold = lk__client_newhold(object->client, object, frame->self->owner);
    if (hold == NULL)
        return ENOMEM;
    int rc = lk__slot_take(object, slots, &slot);
    if (rc != 0)
        goto out;
    rc = seal_all(hold, &slot, once);
    if (rc == 0)
        rc = call_until_in_time(object, hold, once, verdict);
    lk__slot_put(object, slots, &slot, rc == 0 && *verdict != LK__OVERTAKEN);
out:
    lk__hold_drop(hold);
    return rc;
}

int lk__once_overtaken(const struct lk__object *object)
{
    return lk__fail(EPROTO, "%s: the server's record does not fit the requests of this client; nothing was done",
                    object->what);
}

int lk__once(const struct lk__frame *frame, struct lk__slots *slots, const struct lk__once *once, int64_t *verdict)
{
    for (int numbers = 0; numbers < LK__NUMBERS_MAX; numbers++) {
        int rc = try_once(frame, slots, once, verdict);
        if (rc != 0 || *verdict != LK__OVERTAKEN)
            return rc;
    }
    return lk__once_overtaken(frame->object);
}
