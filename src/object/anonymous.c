/* SPDX-License-Identifier: MIT */
/*
 * anonymous.c - objects that leave nothing at the server
 *
 * The life of such an object is a lease of its client, renewed by the watchdog and ended by a release, as that of a
 * hold; nobody holds it. Threads that use it first may all begin, under an id each; one of them stays.
 */
#include "object/anonymous.h"

#include "object/acquire.h"

#include <inttypes.h>
#include <stdio.h>

int lk__anonymous_init(struct lk__handle handle, const struct lk__kind *kind, lk_client_t *client, const char *name,
                       const void *attr, bool anonymous)
{
    char id[LK__ID_LENGTH + 1], fresh[sizeof "anonymous:" + LK__ID_LENGTH];
    if (name == NULL && anonymous) {
        int rc = lk__random_id(id);
        if (rc != 0)
            return rc;
        snprintf(fresh, sizeof fresh, "anonymous:%s", id);
        name = fresh;
    }
    return lk__handle_init(handle, kind, client, name, attr);
}

static struct lk__lease *new_presence(struct lk__object *object)
{
    lk_client_t *client = object->client;
    struct lk__lease *lease = lk__lease_new(&client->dog, 0, LK__OWNER_ID_SHORT);
    if (lease == NULL)
        return NULL;
    unsigned long long number = atomic_fetch_add(&client->acquisitions, 1) + 1;
    snprintf(lease->id, LK__OWNER_ID_SHORT, "%s:0:%llu", client->id, number);
    lease->name = lk__object_name(object);
    lease->lease_ms = lease->wanted_ms = (int)client->options->lease_ms;
    lease->renewal = object->kind->keep;
    lease->release.block = lk__block_ref(object->block);
    lease->release.command = lk__object_command(object, object->kind->end, NULL);
    return lease;
}

static int send_begin(struct lk__object *object, struct lk__lease *lease, const struct lk__command *begin,
                      struct lk__answer *answer, int64_t *sent_us)
{
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = begin,
                             .sent = { .id = lease->id, .lease_ms = lease->lease_ms } };
    int rc = lk__call_run(&call);
    *sent_us = call.sent_us;
    lease->epoch = call.epoch;
    *answer = call.answer;
    return rc;
}

/* What was begun and is not needed ends; without an answer it ends by itself. */
static void stay(struct lk__object *object, struct lk__presence *presence, struct lk__lease *lease, int64_t sent_us)
{
    struct lk__lease *none = NULL;
    lk__lease_takesent(lease, sent_us);
    if (atomic_compare_exchange_strong(&presence->lease, &none, lease))
        return;
    if (lk__lease_end(lease, NULL))
        lk__outbox_send(&object->client->dog, &lease->release, sent_us + lease->lease_ms * INT64_C(1000));
    lk__lease_unref(lease);
}

static int begin_using(struct lk__object *object, struct lk__presence *presence, const struct lk__command *begin)
{
    struct lk__answer answer;
    int64_t sent_us = 0;
    struct lk__lease *lease = new_presence(object);
    if (lease == NULL)
        return ENOMEM;
    int rc = send_begin(object, lease, begin, &answer, &sent_us);
    if (rc == 0 && answer.verdict == LK__LATE)
        rc = lk__late(object);
    if (rc == 0)
        stay(object, presence, lease, sent_us);
    else
        lk__lease_unref(lease);
    return rc;
}

static int is_over(const struct lk__object *object)
{
    return lk__fail(ESTALE, "%s: its lease was lost, and an anonymous object ends with that", object->what);
}

int lk__anonymous_use(const struct lk__op *op, struct lk__presence *presence, const struct lk__command *begin)
{
    struct lk__object *object = op->object;
    struct lk__lease *lease = atomic_load(&presence->lease);
    if (lease == NULL) {
        int rc = begin_using(object, presence, begin);
        if (rc != 0)
            return rc;
        lease = atomic_load(&presence->lease);
    }
    return lk__lease_isgood(lease, NULL) ? 0 : is_over(object);
}

int lk__anonymous_waited(const struct lk__object *object, struct lk__presence *presence, int code)
{
    return lk__lease_ranout(atomic_load(&presence->lease)) ? is_over(object) : code;
}

void lk__anonymous_leave(struct lk__object *object, struct lk__presence *presence)
{
    struct lk__lease *lease = atomic_exchange(&presence->lease, NULL);
    if (lease == NULL)
        return;
    int64_t end_us;
    if (lk__lease_end(lease, &end_us))
        lk__outbox_send(&object->client->dog, &lease->release, end_us);
    lk__lease_unref(lease);
}
