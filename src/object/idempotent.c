/* SPDX-License-Identifier: MIT */
/*
 * idempotent.c - requests that count once, however often they are sent, on objects that are plain numbers
 *
 * A number has no owner that a script could find, so the server keeps a record: for each slot the last request and its
 * result, as NFSv4.1 does for the slots of a session. A slot has one request at a time, with rising numbers: a number is
 * drawn when the slot is taken, not before. There are as many slots as there were requests at once, so the record has one
 * entry for each thread at most. A request that got no answer keeps the name of its slot, as its entry must not be
 * overwritten while copies of it may be on the way: the slot goes on under a new name, and so do the slots of an object
 * that is made anew. A request whose slot has a later record than it should did nothing, and is sent again under
 * another number.
 *
 * Guards: object->mu the slots.
 */
#include "object/idempotent.h"

#include <stdio.h>
#include <string.h>

enum { LASTING_US = 30000000 }; /* the record keeps entries for a minute, see idempotent.lua */

/* A slot of that index, which the object did not have. NULL: ENOMEM, with an error text. */
static struct lk__slotentry *new_entry(const struct lk__object *object, struct lk__slots *slots, unsigned index)
{
    struct lk__slotentry *entry = index == 0 ? &slots->first : lk__alloc(sizeof *entry);
    if (entry == NULL)
        lk__fail(ENOMEM, "%s: out of memory for a request", object->what);
    else
        *entry = (struct lk__slotentry){ .index = index, .generation = atomic_load(&object->client->abandoned) };
    return entry;
}

int lk__slot_take(struct lk__object *object, struct lk__slots *slots, struct lk__slot *slot)
{
    lk_client_t *client = object->client;
    lk__mu_lock(&object->mu);
    struct lk__slotentry *entry = slots->free;
    if (entry != NULL)
        slots->free = entry->next;
    else
        slots->count++;
    unsigned index = slots->count - 1;
    lk__mu_unlock(&object->mu);
    if (entry == NULL && (entry = new_entry(object, slots, index)) == NULL)
        return ENOMEM;
    /* Drawn now, with the slot taken: its last user drew a smaller number, and it has no other one at present. */
    unsigned long long number = atomic_fetch_add(&client->acquisitions, 1) + 1;
    slot->entry = entry;
    snprintf(slot->owner, sizeof slot->owner, "%s:%c%ux%u", client->id, slots->tag, entry->index, entry->generation);
    slot->nth = (int64_t)number;
    return 0;
}

void lk__slot_put(struct lk__object *object, struct lk__slots *slots, const struct lk__slot *slot, bool answered)
{
    struct lk__slotentry *entry = slot->entry;
    lk__mu_lock(&object->mu);
    if (!answered)
        entry->generation = atomic_fetch_add(&object->client->abandoned, 1) + 1;
    entry->next = slots->free;
    slots->free = entry;
    lk__mu_unlock(&object->mu);
}

void lk__slots_destroy(struct lk__slots *slots)
{
    while (slots->free != NULL) {
        struct lk__slotentry *entry = slots->free;
        slots->free = entry->next;
        if (entry != &slots->first)
            lk__free(entry);
    }
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* One request, under one number. */
struct request {
    struct lk__object *object;
    struct lk__idempotent *once;
    struct lk__slot slot;
    struct lk__outboxentry *entry; /* what undoes it, or goes on asking, if no answer comes */
    int64_t end_us;                /* of all calls of it, under whichever number */
    int64_t settled_us;            /* by then no copy takes effect any more */
    bool unsure;                   /* a copy may have taken effect */
};

/* What may have to be sent in the end is made before: what undoes the request, or itself. */
static int make_entry(struct request *request)
{
    const struct lk__idempotent *once = request->once;
    struct lk__object *object = request->object;
    struct lk__outboxentry *entry = lk__outboxentry_new(&object->client->dog, request->slot.owner, object->block);
    if (entry == NULL)
        return ENOMEM;
    entry->nth = request->slot.nth;
    lk__outboxentry_set(entry, once->lasting ? &once->command : &once->undone, once->args_size);
    request->entry = entry;
    return 0;
}

/* 0: the server answered, in time or late. */
static int call(struct request *request, enum lk__verdict *verdict)
{
    struct lk__outboxentry *entry = request->entry;
    struct lk__call call = { .node = lk__object_node(request->object),
                             .what = request->object->what,
                             .command = &request->once->command,
                             .sent = { .id = entry->id, .nth = entry->nth },
                             .lasts_us = request->once->lasting ? LASTING_US : 0,
                             .end_us = request->end_us };
    int rc = lk__call_run(&call);
    entry->until = (struct lk__until){ { call.sent.deadline_us, call.sent.epoch }, call.sent.deadline_here_us };
    entry->dating = LK__DEADLINE;
    request->unsure |= call.repeated;
    request->once->until = entry->until;
    request->settled_us = call.until.here_us;
    *verdict = call.answer.verdict;
    if (rc == 0)
        request->once->number = call.answer.number;
    return rc;
}

/* The request's outcome is unknown. */
static void go_on(const struct request *request)
{
    int64_t settled_us = request->settled_us;
    if (request->entry->command.script != NULL) {
        int64_t end_us = lk__now_us() + LASTING_US;
        lk__outbox_send(&request->object->client->dog, request->entry, end_us);
        if (end_us > settled_us)
            settled_us = end_us;
    }
    lk__error_settles(settled_us);
}

static int lost(const struct request *request, const char *why)
{
    return lk__fail(EIO, "%s: the answer got lost, and %s; the outcome is unknown", request->object->what, why);
}

static int call_it(struct request *request, enum lk__verdict *verdict)
{
    struct lk__object *object = request->object;
    int rc = call(request, verdict);
    if (rc == 0 && *verdict == LK__OVERTAKEN && request->unsure)
        rc = lost(request, "its record is gone");
    else if (rc == 0 && *verdict == LK__LATE && request->unsure)
        rc = lost(request, "the server's clock moves too fast to ask again");
    if (rc != 0 && request->unsure)
        go_on(request);
    return rc == 0 && *verdict == LK__LATE ? lk__late(object) : rc;
}

/* Under one number. */
static int try_once(const struct lk__op *op, struct lk__slots *slots, struct lk__idempotent *once, int64_t end_us,
                    enum lk__verdict *verdict)
{
    struct lk__object *object = op->object;
    struct request request = { .object = object, .once = once, .end_us = end_us };
    int rc = lk__slot_take(object, slots, &request.slot);
    if (rc != 0)
        return rc;
    rc = make_entry(&request);
    if (rc == 0)
        rc = call_it(&request, verdict);
    lk__slot_put(object, slots, &request.slot, rc == 0 && *verdict != LK__OVERTAKEN);
    lk__outboxentry_unref(request.entry);
    return rc;
}

int lk__idempotent_overtaken(const struct lk__object *object)
{
    return lk__fail(EPROTO, "%s: the server's record does not fit the requests of this client; nothing was done",
                    object->what);
}

int lk__idempotent(const struct lk__op *op, struct lk__slots *slots, struct lk__idempotent *once,
                   enum lk__verdict *verdict)
{
    int64_t end_us = lk__now_us() + op->object->client->options->command_timeout_ms * 1000;
    for (int numbers = 0; numbers < LK__NUMBERS_MAX; numbers++) {
        int rc = try_once(op, slots, once, end_us, verdict);
        if (rc != 0 || *verdict != LK__OVERTAKEN)
            return rc;
    }
    return lk__idempotent_overtaken(op->object);
}
