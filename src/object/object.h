/* SPDX-License-Identifier: MIT */
/*
 * object.h - the object behind all handles of one name in a client, with the holds of all threads
 */
#ifndef LK__OBJECT_H
#define LK__OBJECT_H

#include "client/client.h"
#include "object/keys.h"

#include <string.h>

/* --- object.c ------------------------------------------------------------------------------------------------ */

struct lk__object;
struct lk__op;
struct lk__queuepage;

/*
 * What attributes say of the name and not of a handle: all handles of one name in a client agree. Three bytes, as there may
 * be many objects.
 */
struct __attribute__((packed)) lk__traits {
    unsigned stripes : 16;  /* it is one of so many, which share keys among them; 0: it stands alone */
    unsigned order : 6;     /* fair, or who is preferred */
    unsigned robust : 1;    /* who follows a dead holder is told */
    unsigned anonymous : 1; /* there at the server as long as somebody uses it: anonymous.h */
};

/* A primitive, as a table. */
struct lk__kind {
    int number;           /* LK_KIND_..., whose name is in the names of its objects: see client/kinds.def */
    const char *noun;     /* in error texts: "read-write lock" */
    const char *commands; /* commands of the server that its scripts use */
    bool counted;         /* what is acquired has no lease */
    bool quorum;          /* a majority of servers grants it: it is for clients of a quorum, and they have nothing else */
    bool long_ids;        /* those of its holds end with a number, and may with an id of their own */

    size_t size;       /* size of its object, which begins with a struct lk__object */
    size_t block_size; /* size of its block: a struct lk__block, the keys of its scripts, more */
    const struct lk__keyspec *keys;
    int key_count;

    size_t attr_size;
    /* Check the user's attributes (NULL: defaults) and complete them into `attr`, which is zeroed. */
    int (*check)(void *attr, const void *given);
    /* Of a kind that has a holder. */
    const char *holder;                    /* for words: who may die holding it */
    const struct lk__script *check_script; /* does the server know this hold? */
    /* Give back one level that is not the last. The caller holds one less, whatever comes of it. */
    int (*unlock_inner)(const struct lk__op *op, struct lk__hold *hold);
    /* NULL, or of a kind of a quorum: give all of a hold back, as lk__op_giveback(), and does it stand? */
    int (*release)(struct lk__object *object, struct lk__hold *hold);
    int (*ask_held)(const struct lk__op *op, struct lk__hold *hold);
    int (*check_lease)(const struct lk__op *op, int64_t lease_ms); /* NULL, or EINVAL: a hold may not be given that one */

    /* Of a kind that is waited for in Redis: ask for these places of the queue, and tell from an id what its waiter wants. */
    int (*ask_queue)(const struct lk__object *object, unsigned first, unsigned last, struct lk__reply *reply,
                     struct lk__queuepage *page);
    void (*read_waiter)(lk_waiter_t *waiter);

    /* NULL, or of anonymous objects: go on using it, and use it no longer. Both take no arguments. */
    const struct lk__script *keep, *end;
    /* Of a kind that is acquired: its settings mark, and the words of each order, not robust and robust. */
    const char *settings_key;
    const char *const *settings;

    /* NULL, or the traits of checked attributes. */
    struct lk__traits (*traits)(const void *attr);
    /* NULL, or the kind that an object with these checked attributes is; its sizes are the same. */
    const struct lk__kind *(*variant)(const void *attr);

    /* Completes a new object, whose common part and keys are set. False: ENOMEM, and the call has undone its part. */
    bool (*init)(struct lk__object *object);
    /* NULL, or ends the object's subscriptions, before the hub ends. Under client->mu. */
    void (*stop)(struct lk__object *object);
    /* NULL, or wakes threads that do not wait in Redis: the client is closing. Under client->mu. */
    void (*cancel)(struct lk__object *object);
    void (*destroy)(struct lk__object *object); /* NULL, or undoes init() */
};

struct lk__object {
    struct lk__member member; /* in its client */
    unsigned refs : 31;       /* under client->mu: bindings */
    unsigned quiet : 1;       /* under client->mu: the object was stopped, and has no holds */
    atomic_int waiting;       /* threads that are acquiring it */
    struct lk__traits traits;
    atomic_bool compared;            /* what the server has was compared with what the program says */
    _Atomic(uint16_t) settings_seen; /* when that was, see settings.c; short, as there may be many objects */
    _Atomic(uint16_t) settings_told; /* when it was told last that others differ, and whether they still do */
    lk_client_t *client;
    struct lk__block *block; /* the keys of its commands, and its names */
    const char *what;        /* "mutex orders", for error texts */
    const struct lk__kind *kind;

    struct lk__mu mu;
    struct lk__link holds;   /* under mu: holds of all owners; lost ones until each unlock was made */
    struct lk__map owners;   /* under mu: the oldest hold of each owner, and each permit with an id */
    struct lk__link orphans; /* under dog->mu: leases of lost ones that nobody can give back */
    atomic_ullong acquisitions, contended, renewals, losses; /* sums over holds that ended */
};

/*
 * The object of that name, made if there is none, with one reference more. EINVAL for a refused name, or for an
 * object that has other attributes.
 */
int lk__object_get(lk_client_t *client, const struct lk__kind *kind, const char *name, struct lk__traits traits,
                   struct lk__object **object);
void lk__object_unref(struct lk__object *object);

/* settings.c: the next acquire is to look at the settings mark. */
void lk__settings_makedue(struct lk__object *object);

/* Its name as the user gave it. */
static inline const char *lk__object_name(const struct lk__object *object)
{
    return object->what + strlen(lk__kind_names[object->kind->number]) + 1;
}

/* The server where the keys of an object are. */
static inline struct lk__node *lk__object_node(const struct lk__object *object)
{
    return &object->client->node;
}

/* A command of one of its scripts. */
static inline struct lk__command lk__object_command(const struct lk__object *object, const struct lk__script *script,
                                                    const void *args)
{
    return (struct lk__command){ .script = script, .keys = object->block + 1, .args = args };
}

/* --- holds.c: its holds ----------------------------------------------------------------------------------------- */

/* A hold to be of `owner`, with its id: a fresh acquisition, and `suffix` if that is not NULL. NULL: with an error text. */
struct lk__hold *lk__object_newhold(struct lk__object *object, uint64_t owner, const char *suffix);
/* The hold of `owner`, the oldest if it has several, or NULL; under object->mu or by the owner itself. */
struct lk__hold *lk__object_hold(struct lk__object *object, uint64_t owner);
/*
 * The hold is its owner's from now on, as lk__lease_take(). True: some holds are lost that nobody gives back. Another
 * thread may give it back at once.
 */
bool lk__object_addhold(struct lk__object *object, struct lk__hold *hold, int64_t valid_until_us, int64_t first_us);
void lk__object_drophold(struct lk__object *object, struct lk__hold *hold); /* and drop its reference */

/* Under object->mu: how `owners` tells its entries apart; lk__object_hold(); and take a hold off, false: it was off. */
enum { LK__BY_OWNER, LK__BY_ID };
struct lk__hold *lk__object_oldest(const struct lk__object *object, uint64_t owner);
bool lk__object_takeoff(struct lk__object *object, struct lk__hold *hold);

/* A permit that has an id, or NULL. Under object->mu. */
struct lk__hold *lk__object_permit(struct lk__object *object, const char *id);
/* That permit, with a reference, unless a thread gives it back; NULL: this client has none. */
struct lk__hold *lk__object_usepermit(struct lk__object *object, const char *id);
/* The one that its owner has after this one, NULL if there is none; by the owner itself. */
struct lk__hold *lk__object_nexthold(struct lk__object *object, struct lk__hold *hold);
/* How many permits all holds of `owner` have; counting ends at `enough`. */
unsigned lk__object_count(struct lk__object *object, uint64_t owner, unsigned enough);
/* Under client->mu: take all holds from the object. `leftover`: NULL, or where they go for a close to release. */
void lk__object_dropholds(struct lk__object *object, struct lk__link *leftover);
/* Set fixed leases that were handed over, for one command timeout at most. False: one is not set. */
bool lk__object_settle(struct lk__object *object);
/* Is the object held, by a good lease that is renewed, or waited for, through this client? */
bool lk__object_isbusy(struct lk__object *object);

/* --- what statistics have ------------------------------------------------------------------------------- */

/* So many threads more want it, or less. */
static inline void lk__object_addwaiting(struct lk__object *object, int more)
{
    atomic_fetch_add(&object->waiting, more);
    atomic_fetch_add(&object->client->stats[object->kind->number].waiting, more);
}

/* A thread has it, or what it waited for, since `began_us`, when the call began; `contended`: it had to wait. */
void lk__object_acquired(struct lk__object *object, int64_t began_us, bool contended);
/* That owner waits for too long. */
void lk__object_waitslong(struct lk__object *object, uint64_t owner);
/* It waited for too long, since `began_us`, and the log does not know. */
void lk__object_waitedlong(struct lk__object *object, int64_t began_us);
/* That hold is given back now. */
void lk__object_gaveback(struct lk__object *object, const struct lk__hold *hold);
/* Add the counts of holds that have not ended. */
void lk__object_addlive(struct lk__object *object, struct lk__memberstats *stats);

#endif
