/* SPDX-License-Identifier: MIT */
/*
 * owner.c - an explicit owner, and its calls that are under way
 *
 * Guards: owner->mu its calls, and what each does to which object. Order: no other mutex is taken under it.
 *
 * A thread makes one call after the other; an owner may be used by several threads at once. So its calls on one object
 * exclude each other; calls on different objects do not know each other.
 *
 * The hard case: a lock waits for somebody else, for long, and meanwhile the owner gives something back, or that very
 * mutex, if it is of the normal type and the owner waits for itself. So acquiring excludes acquiring, and handling a
 * hold excludes handling it: a lock does both while it looks whether the owner holds the object already, and handles
 * nothing any more before it waits. A call that handles a hold never begins to acquire, and is over in a command timeout
 * or two. One that gives several locks back handles all of their holds at once, and begins with them in one order: an owner
 * has one client, whose objects all sets have in the order of kind and key. So calls do not wait in a circle. None of them
 * has a mutex meanwhile.
 */
#include "client/owner.h"

#include "client/process.h"

/* --- calls -------------------------------------------------------------------------------------------------------- */

int lk__owner_enter(lk_owner_t *owner, const lk_client_t *client, const char *what)
{
    if (lk__owner_isinherited(owner))
        return lk__fail(ECANCELED, "%s: the owner belongs to another process, or to the parent of a fork", what);
    if (owner->client != client)
        return lk__client_isclosed(owner->client) ? lk__fail(ECANCELED, "%s: the client of the owner was closed", what)
                                                  : lk__fail(EINVAL, "%s: the owner belongs to another client", what);
    lk__mu_lock(&owner->mu);
    owner->calls++;
    lk__mu_unlock(&owner->mu);
    return 0;
}

static void end(lk_owner_t *owner, struct lk__ownercall *call, unsigned what)
{
    assert(lk__mu_held(&owner->mu));
    if ((call->does & what) != 0)
        pthread_cond_broadcast(&owner->over);
    call->does &= ~what;
    if (call->does == 0)
        lk__list_remove(&call->link);
}

void lk__owner_leave(lk_owner_t *owner, struct lk__ownercall *call)
{
    lk__mu_lock(&owner->mu);
    end(owner, call, LK__ACQUIRING | LK__HANDLING);
    owner->calls--;
    lk__mu_unlock(&owner->mu);
}

/* Does another call do that there? */
static bool is_excluded(const lk_owner_t *owner, const struct lk__ownercall *call, unsigned what)
{
    assert(lk__mu_held(&owner->mu));
    for (struct lk__link *l = lk__list_first(&owner->busy); l != NULL; l = lk__list_next(&owner->busy, l)) {
        const struct lk__ownercall *other = LK__CONTAINER(l, struct lk__ownercall, link);
        if (other != call && other->object == call->object && (other->does & what) != 0)
            return true;
    }
    return false;
}

bool lk__owner_begin(lk_owner_t *owner, struct lk__ownercall *call, unsigned what, int64_t until_us)
{
    int rc = 0;
    lk__mu_lock(&owner->mu);
    while (rc == 0 && is_excluded(owner, call, what))
        rc = lk__cond_wait(&owner->over, &owner->mu, until_us);
    bool begun = rc == 0 || !is_excluded(owner, call, what);
    if (begun && call->does == 0)
        lk__list_append(&owner->busy, &call->link);
    if (begun)
        call->does |= what;
    lk__mu_unlock(&owner->mu);
    return begun;
}

void lk__owner_end(lk_owner_t *owner, struct lk__ownercall *call, unsigned what)
{
    lk__mu_lock(&owner->mu);
    end(owner, call, what);
    lk__mu_unlock(&owner->mu);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int make(lk_client_t *client, lk_owner_t **made)
{
    lk_owner_t *owner = lk__alloc(sizeof *owner);
    if (owner == NULL)
        return lk__fail(ENOMEM, "out of memory for an owner");
    owner->process = client->process;
    owner->number = lk__owner_fresh();
    owner->client = client;
    atomic_fetch_add(&client->refs, 1);
    lk__mu_init(&owner->mu, LK__MU_OWNER);
    lk__cond_init(&owner->over);
    lk__list_init(&owner->busy);
    *made = owner;
    return 0;
}

static int new_owner(lk_client_t *client, lk_owner_t **owner)
{
    if (owner == NULL)
        return lk__fail(EINVAL, "lk_owner_new: nowhere to put the owner");
    int rc = client != NULL ? lk__client_enter(client) : lk__client_enterdefault(&client, LK__NEVER);
    if (rc != 0)
        return rc;
    rc = make(client, owner);
    lk__client_leave(client);
    return rc;
}

int lk_owner_new(lk_client_t *client, lk_owner_t **owner)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, new_owner(client, owner));
}

uint64_t lk_owner_number(const lk_owner_t *owner)
{
    if (owner != NULL)
        return owner->number;
    const struct lk__thread *self = lk__thread_self();
    return self != NULL ? self->owner : 0;
}

/* Is a call of the owner under way? */
static bool is_calling(lk_owner_t *owner)
{
    lk__mu_lock(&owner->mu);
    bool calling = owner->calls > 0;
    lk__mu_unlock(&owner->mu);
    return calling;
}

/* False: the owner holds something. A close has released what it held. */
static bool end_holds(lk_owner_t *owner)
{
    if (atomic_load(&owner->holds) == 0 || !lk__client_tryenter(owner->client))
        return true;
    bool ended = lk__watchdog_endowner(&owner->client->dog, owner->number);
    lk__client_leave(owner->client);
    return ended;
}

static int free_owner(lk_owner_t *owner)
{
    if (lk__owner_isinherited(owner)) {
        lk__free(owner); /* in a fork's child: a copy, and its mutex may be in any state */
        return 0;
    }
    if (is_calling(owner))
        return lk__fail(EBUSY, "owner %llu: a call of it is under way", (unsigned long long)owner->number);
    if (!end_holds(owner))
        return lk__fail(EBUSY, "owner %llu: it holds something", (unsigned long long)owner->number);
    pthread_cond_destroy(&owner->over);
    lk__mu_destroy(&owner->mu);
    lk__client_unref(owner->client);
    lk__free(owner);
    return 0;
}

int lk_owner_free(lk_owner_t *owner)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, owner != NULL ? free_owner(owner) : 0);
}
