/* SPDX-License-Identifier: MIT */
/* object.c - the table of the barrier: its keys, its channel, its attributes, and how many parties a handle says */
#include "barrier/barrier.h"

_Static_assert(sizeof(lk_barrier_t) == 8 * sizeof(void *), "ABI");

enum { PARTIES = LK__SPARE_OWN }; /* which spare word of a handle has the number of parties */

static struct lk__barrier *barrier_of(struct lk__object *object)
{
    return LK__CONTAINER(object, struct lk__barrier, object);
}

static bool barrier_init(struct lk__object *object)
{
    struct lk__barrier *barrier = barrier_of(object);
    barrier->slots.tag = 'b';
    lk__broadcast_init(&barrier->broadcast, object->client, lk__barrier_block(object)->leave.channel);
    return true;
}

static void barrier_stop(struct lk__object *object)
{
    lk__broadcast_stop(&barrier_of(object)->broadcast);
}

static void barrier_cancel(struct lk__object *object)
{
    lk__broadcast_wake(&barrier_of(object)->broadcast);
}

static void barrier_destroy(struct lk__object *object)
{
    lk__broadcast_destroy(&barrier_of(object)->broadcast);
    lk__slots_destroy(&barrier_of(object)->slots);
}

static int check(void *checked, const void *given)
{
    lk_barrierattr_t *attr = checked;
    int rc = lk__sized_read(attr, sizeof *attr, given, sizeof attr->size, "lk_barrierattr_t");
    if (rc != 0)
        return rc;
    if ((attr->lk_room[0] | attr->lk_room[1]) != 0)
        return lk__fail(EINVAL, "barrier attributes: lk_room is zero");
    return lk__attr_leases(attr->lease_ms, 0);
}

#define AT(member) offsetof(struct lk__barrierblock, member)

static const struct lk__keyspec keys[] = {
    { AT(keys.state), "latchkey:barrier", LK__KEY_OURS, false },
    { AT(keys.parties), "latchkey:parties", LK__KEY_OURS, false },
    { AT(keys.past), "latchkey:past", LK__KEY_OURS, false },
    { AT(keys.once), "latchkey:once", LK__KEY_OURS, false },
    { AT(leave.channel), "latchkey:met", LK__KEY_OURS, false },
};

const struct lk__kind lk__barrier_kind = {
    .number = LK_KIND_BARRIER,
    .noun = "barrier",
    .commands = lk__lua_barrier_commands,
    .counted = true,
    .size = sizeof(struct lk__barrier),
    .block_size = sizeof(struct lk__barrierblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_barrierattr_t),
    .check = check,
    .init = barrier_init,
    .stop = barrier_stop,
    .cancel = barrier_cancel,
    .destroy = barrier_destroy,
};

static int check_parties(uintptr_t parties)
{
    if (parties >= 1 && parties <= LK_BARRIER_MAX)
        return 0;
    return lk__fail(EINVAL, "a barrier of %llu parties: at least 1, at most %d", (unsigned long long)parties,
                    LK_BARRIER_MAX);
}

int lk__barrier_enter(struct lk__op *op, lk_barrier_t *b, int64_t limit_us, unsigned *parties)
{
    int rc = b != NULL ? check_parties(b->lk_spare[PARTIES]) : 0;
    if (rc != 0)
        return rc;
    *parties = b != NULL ? (unsigned)b->lk_spare[PARTIES] : 0;
    return lk__op_enterby(op, LK__HANDLE(b), &lk__barrier_kind, limit_us);
}

int lk_barrier_init(lk_barrier_t *b, lk_client_t *client, const char *name, unsigned parties,
                    const lk_barrierattr_t *attr)
{
    int rc = check_parties(parties);
    if (rc == 0)
        rc = lk__op_init(__func__, LK__HANDLE(b), &lk__barrier_kind, client, name, attr);
    if (rc == 0)
        b->lk_spare[PARTIES] = parties;
    return rc;
}

LK__DESTROY_CALL(barrier)
