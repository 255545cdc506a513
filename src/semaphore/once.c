/* SPDX-License-Identifier: MIT */
/*
 * once.c - requests that count once, however often they are sent
 *
 * Numbers have no owner that a script could find, so the server keeps a record: of each slot the last
 * request and its result. A slot has one request at a time, with rising numbers; one that got no answer
 * keeps its slot for itself, as its entry must not be overwritten while copies of it may be on the way.
 *
 * Guards: object->mu the slots.
 */
#include "semaphore/semaphore.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LASTING_US = 30000000 }; /* once.lua remembers for a minute */

static int free_place(const struct lk__sem *sem)
{
    for (int i = 0; i < LK__SLOTS; i++)
        if ((sem->slots_used & (UINT64_C(1) << i)) == 0)
            return i;
    return -1;
}

void lk__slot_take(struct lk__sem *sem, struct lk__slot *slot)
{
    lk_client_t *client = sem->object.client;
    unsigned long long number = atomic_fetch_add(&client->acquisitions, 1) + 1, name = number;
    pthread_mutex_lock(&sem->object.mu);
    slot->place = free_place(sem);
    if (slot->place >= 0) {
        sem->slots_used |= UINT64_C(1) << slot->place;
        name = (unsigned long long)sem->epochs[slot->place] * LK__SLOTS + (unsigned)slot->place;
    }
    pthread_mutex_unlock(&sem->object.mu);
    /* The letter keeps the kinds apart, and the numbered slots from those that exist once. */
    const char *kind = sem->leased ? "p" : "s", *series = slot->place >= 0 ? "" : "x";
    snprintf(slot->owner, sizeof slot->owner, "%s:%s%s%llu", client->id, kind, series, name);
    snprintf(slot->number, sizeof slot->number, "%llu", number);
}

void lk__slot_put(struct lk__sem *sem, const struct lk__slot *slot, bool answered)
{
    if (slot->place < 0)
        return;
    pthread_mutex_lock(&sem->object.mu);
    sem->slots_used &= ~(UINT64_C(1) << slot->place);
    if (!answered)
        sem->epochs[slot->place]++;
    pthread_mutex_unlock(&sem->object.mu);
}

static int call_until_in_time(const struct lk__semcall *call, struct lk__hold *hold, bool lasting, int64_t *verdict)
{
    lk_client_t *client = call->sem->object.client;
    int64_t last_us = lasting ? LASTING_US : client->options->command_timeout_ms * 1000;
    for (int attempt = 0; attempt < 2; attempt++) {
        lk__command_fill(&hold->release, 0, lk__conn_servertime(&client->conn, lk__now_us()) + last_us);
        int rc = lk__call(&client->conn, call->what, &hold->release, -1, true, &hold->call, NULL);
        if (rc == EIO && lasting)
            lk__watchdog_sweep(hold->dog, hold, 0, lk__now_us() + last_us);
        if (rc != 0)
            return rc;
        const struct lk__reply *reply = hold->call->reply;
        if (!lk__reply_integers(reply, 2))
            return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", call->what);
        lk__conn_clock(&client->conn, hold->call->sent_us, reply->values[1].number);
        *verdict = reply->values[0].number;
        if (*verdict != -1)
            return 0;
    }
    return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done", call->what);
}

int lk__sem_once(const struct lk__semcall *call, const struct lk__script *script, const char *const *keys,
                 const char *const *more, int count, bool lasting, int64_t *verdict)
{
    struct lk__object *object = call->frame.object;
    const char *args[16];
    struct lk__slot slot;
    assert(count + 3 <= (int)(sizeof args / sizeof *args));
    /* Never a hold, but something that the watchdog can go on sending. */
    struct lk__hold *hold = lk__client_newhold(object->client, object, call->frame.self->owner);
    if (hold == NULL)
        return ENOMEM;
    lk__slot_take(call->sem, &slot);
    args[0] = slot.owner;
    args[1] = slot.number;
    memcpy(args + 2, more, (size_t)count * sizeof *more);
    args[count + 2] = NULL;
    int rc = lk__command_seal(&hold->release, script, keys, args, count + 3);
    if (rc == 0)
        rc = call_until_in_time(call, hold, lasting, verdict);
    lk__slot_put(call->sem, &slot, rc == 0);
    lk__hold_drop(hold);
    return rc;
}
