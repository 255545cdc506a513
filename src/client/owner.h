/* SPDX-License-Identifier: MIT */
/*
 * owner.h - an explicit owner, and its calls that are under way
 */
#ifndef LK__CLIENT_OWNER_H
#define LK__CLIENT_OWNER_H

#include "client/client.h"

#include <latchkey/owner.h>

/* What no two calls of one owner do to an object at a time. */
enum {
    LK__ACQUIRING = 1, /* becoming its holder, however long that takes */
    LK__HANDLING = 2   /* looking at the hold there is, changing it, or giving it back: soon over */
};

/* One call, on its stack. */
struct lk__ownercall {
    struct lk__link link; /* under owner->mu: in owner->busy while it does something */
    const void *object;
    unsigned does; /* under owner->mu: LK__ACQUIRING, LK__HANDLING */
};

struct lk_owner {
    uintptr_t process; /* a fork's child only ever reads this, and never the rest */
    uint64_t number;   /* never changes */
    lk_client_t *client;
    atomic_uint holds; /* not given back; those of objects that were destroyed since are among them */

    struct lk__mu mu;
    pthread_cond_t over;  /* with mu: a call does something no more */
    struct lk__link busy; /* under mu: calls that do something */
    unsigned calls;       /* under mu: all that are under way */
};

/* Does it belong to another process, such as the parent of a fork? */
static inline bool lk__owner_isinherited(const lk_owner_t *owner)
{
    return owner->process != lk__process();
}

/*
 * Begin a call of `owner` on an object of that client. 0, or with an error text EINVAL: it belongs to another client,
 * ECANCELED: it belongs to a client that was closed, or to another process. `what`: the object, for words.
 */
int lk__owner_enter(lk_owner_t *owner, const lk_client_t *client, const char *what);
/* End it, with all that it does. The owner may be freed then. */
void lk__owner_leave(lk_owner_t *owner, struct lk__ownercall *call);

/* Begin to do that to call->object, as soon as no other call of the owner does. False: not until then. */
bool lk__owner_begin(lk_owner_t *owner, struct lk__ownercall *call, unsigned what, int64_t until_us);
void lk__owner_end(lk_owner_t *owner, struct lk__ownercall *call, unsigned what);

#endif
